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

/* -1: not opened yet */
static int prepared_fd = -1;

static int open_types(void)
{
	return inside_open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC, 0);
}

void kernel_types_prepare(void)
{
	prepared_fd = open_types();
}

static void *map(int fd, size_t *len_out)
{
	struct stat st;
	long cnt = 1;
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
		cnt = inside_pread(fd, mem + done, *len_out - done, (off_t)done);
	return mem;
}

void *kernel_types_map(size_t *len_out)
{
	int fd = prepared_fd >= 0 ? prepared_fd : open_types();
	void *mem = fd < 0 ? NULL : map(fd, len_out);

	if (fd >= 0 && fd != prepared_fd)
		inside_close(fd);
	return mem;
}
