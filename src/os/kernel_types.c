/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's description of its types (kernel_types.h). */
#include "config.h"

#include "os/kernel_types.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "os/inside.h"

int kernel_types_open(void)
{
	return inside_open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC, 0);
}

void *kernel_types_map(int fd, size_t *len_out)
{
	struct stat st;
	ssize_t cnt = 1;
	uint8_t *mem;

	if (fstat(fd, &st) != 0 || st.st_size <= 0)
		return NULL;
	*len_out = (size_t)st.st_size;
	mem = mmap(NULL, *len_out, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mem != MAP_FAILED)
		return mem;
	/* Linux before 6.16 */
	mem = mmap(NULL, *len_out, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	for (size_t done = 0; done < *len_out && cnt > 0; done += (size_t)MAX(cnt, 0))
		cnt = inside_read(fd, mem + done, *len_out - done);
	return mem;
}
