/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steering programs (steering.h). */
#include "config.h"

#include "tools/vma_way_back/steering.h"

#include <bpf/libbpf.h>

#include "dev/xdp/steer_load.h"

/* The programs that were loaded last. Nothing else is attached: a process may have an fd of
 * another program from the time when it had rights, or from somebody else. */
static struct {
	uint32_t ids[64];
	unsigned next;
} loaded;

void steering_prepare(void)
{
	libbpf_set_print(NULL);
}

int steering_load(const struct keeper_request *request, int *fds)
{
	int err = steer_load(request, NULL, fds);
	uint32_t id;

	/* of one whose number the kernel does not tell it refuses to attach it */
	if (!err && steer_load_id(fds[STEER_FD_PROG], &id) == 0)
		loaded.ids[loaded.next++ % ARRAY_LEN(loaded.ids)] = id;
	return err;
}

int steering_attach(const struct keeper_request *request, int prog)
{
	uint32_t id;
	int err = steer_load_id(prog, &id);

	for (size_t i = 0; !err && i < ARRAY_LEN(loaded.ids); i++)
		if (loaded.ids[i] == id)
			return steer_load_attach(request, prog);
	return -EINVAL;
}
