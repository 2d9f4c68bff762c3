/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steering programs (steering.h). */
#include "config.h"

#include "tools/vma_way_back/steering.h"

#include <bpf/bpf.h>
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
	steer_load_prepare();
}

/* 0: the kernel does not say. */
static uint32_t id_of(int prog)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	/* of what is no program, the kernel refuses to attach it */
	return bpf_obj_get_info_by_fd(prog, &info, &len) == 0 &&
			       info.type == BPF_PROG_TYPE_XDP ?
		       info.id :
		       0;
}

int steering_load(const struct keeper_request *request, int *fds)
{
	int err = steer_load(request, NULL, fds);

	if (!err)
		loaded.ids[loaded.next++ % ARRAY_LEN(loaded.ids)] =
			id_of(fds[STEER_FD_PROG]);
	return err;
}

int steering_attach(const struct keeper_request *request, int prog)
{
	uint32_t id = id_of(prog);

	for (size_t i = 0; id && i < ARRAY_LEN(loaded.ids); i++)
		if (loaded.ids[i] == id)
			return steer_load_attach(request, prog);
	return -EINVAL;
}
