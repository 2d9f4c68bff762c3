/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets in maps of BPF: programs of the kernel read their streams and write them, and see
 * nothing of what goes by our queues (bpf_call.h).
 */
#include "config.h"

#include "sock-redirect/bpf_call.h"

#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/syscall_raw.h"
#include "core/runtime.h"
#include "fd/fd_table.h"
#include "os/thread.h"
#include "sock/user_msg.h"

/* How long the values of a map of sockets are; 0: it is none, or nobody knows. */
static size_t size_of_sockets(uint32_t map)
{
	struct bpf_map_info info = { .type = 0 };
	union bpf_attr attr = { .info = { .bpf_fd = map,
					  .info_len = sizeof(info),
					  .info = (uintptr_t)&info } };

	if (syscall_raw(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, (long)&attr, sizeof(attr), 0, 0, 0) != 0)
		return 0;
	return info.type == BPF_MAP_TYPE_SOCKMAP || info.type == BPF_MAP_TYPE_SOCKHASH ?
		       info.value_size :
		       0;
}

void bpf_calling(long command, const void *attr, size_t size)
{
	union bpf_attr asked = { .map_fd = 0 };
	uint32_t fd;
	const void *value;

	if (command != BPF_MAP_UPDATE_ELEM || os_is_inside() ||
	    !atomic_load_explicit(&fd_table_root, memory_order_relaxed) ||
	    !user_is_plausible(attr, size))
		return;
	memcpy(&asked, attr, MIN(size, sizeof(asked)));
	value = (const void *)(uintptr_t)asked.value;
	/* a value of eight bytes begins with the number, too, where the low bytes come first */
	if (size_of_sockets(asked.map_fd) < sizeof(fd) ||
	    !user_is_plausible(value, sizeof(fd)))
		return;
	memcpy(&fd, value, sizeof(fd));
	runtime_handing_on((int)fd);
}
