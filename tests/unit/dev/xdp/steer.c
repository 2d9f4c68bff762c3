/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the steering program is loaded, up to the call into the kernel, which refuses
 * here. */
#include "config.h"

#include <bpf/libbpf.h>

static int played_load(struct bpf_object *object);
#define bpf_object__load played_load

#include "dev/xdp/steer.c"

#include "tests/support/test.h"

/* -- what steer.c asks of others: there is nothing to adopt ---------------------- */

void services_close_fd(_Atomic int *slot UNUSED) {}

int xdp_adopt_fd(int fd UNUSED, _Atomic int *slot UNUSED)
{
	return -EBADF;
}

/* -- the kernel ------------------------------------------------------------------ */

static uint32_t loaded_flags;

static int played_load(struct bpf_object *object)
{
	loaded_flags = bpf_program__flags(
		bpf_object__find_program_by_name(object, "steer"));
	return -EPERM;
}

static uint32_t flags_of(bool is_single)
{
	static const uint8_t mac[6];
	struct steer *steer = NULL;

	loaded_flags = UINT32_MAX;
	CHECK_EQ(steer_create(mac, is_single, &steer), -EPERM);
	CHECK(!steer);
	return loaded_flags;
}

TEST(a_program_for_several_buffers_says_so)
{
	CHECK_EQ(flags_of(false), (uint32_t)BPF_F_XDP_HAS_FRAGS);
}

TEST(a_program_for_single_buffers_does_not)
{
	CHECK_EQ(flags_of(true), 0);
}
