/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the steering program is loaded (steer_load.c), up to the call into the kernel,
 * which refuses here. */
#include "config.h"

#include <bpf/libbpf.h>

static int played_load(struct bpf_object *object);
#define bpf_object__load played_load

#include "dev/xdp/steer_load.c"

#include "tests/support/test.h"

/* -- the kernel ------------------------------------------------------------------ */

static uint32_t loaded_flags;
static char loaded[BPF_OBJ_NAME_LEN];

static int played_load(struct bpf_object *object)
{
	struct bpf_program *prog;

	loaded[0] = '\0';
	bpf_object__for_each_program(prog, object) {
		if (!bpf_program__autoload(prog))
			continue;
		CHECK(!loaded[0]);
		snprintf(loaded, sizeof(loaded), "%s",
			 bpf_program__name(prog));
		loaded_flags = bpf_program__flags(prog);
	}
	return -EPERM;
}

static uint32_t flags_of(bool is_single)
{
	const struct keeper_request request = {
		.op = KEEPER_STEER,
		.flags = is_single ? KEEPER_SINGLE : 0,
		.rules_max = STEER_RULES_FIRST,
	};
	int fds[STEER_FD_CNT];

	loaded_flags = UINT32_MAX;
	CHECK_EQ(steer_load(&request, NULL, fds), -EPERM);
	CHECK_STR(loaded, "steer_by_bytes");
	return loaded_flags;
}

TEST(what_there_is_not_is_not_loaded)
{
	const struct keeper_request bad[] = {
		{ .op = KEEPER_STEER, .sight = ARRAY_LEN(programs),
		  .rules_max = STEER_RULES_FIRST },
		{ .op = KEEPER_STEER, .sight = UINT32_MAX,
		  .rules_max = STEER_RULES_FIRST },
		{ .op = KEEPER_STEER, .rules_max = STEER_RULES_FIRST - 1 },
		{ .op = KEEPER_STEER, .rules_max = STEER_RULES_MAX + 1 },
	};
	int fds[STEER_FD_CNT];

	loaded[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(steer_load(&bad[i], NULL, fds), -EINVAL);
	CHECK_STR(loaded, "");
}

TEST(a_program_for_several_buffers_says_so)
{
	CHECK_EQ(flags_of(false), (uint32_t)BPF_F_XDP_HAS_FRAGS);
}

TEST(a_program_for_single_buffers_does_not)
{
	CHECK_EQ(flags_of(true), 0);
}

/* -- what only the running kernel knows -------------------------------------------- */

static const struct kernel_btf known = {
	.cast_to_kern_ctx = 11,
	.rdonly_cast = 12,
	.rx_vlan_tag = 13,
	.shared_info = 14,
	.shared_info_size = 300,
	.has_known_layout = true,
};

static struct bpf_program *program_of(struct bpf_object *object,
				      enum steer_sight sight)
{
	return bpf_object__find_program_by_name(object, programs[sight]);
}

/* fill_blanks for a program of ours, and how many there were. */
static int fill(enum steer_sight sight, const struct kernel_btf *btf,
		unsigned *cnt_out)
{
	struct bpf_object *object =
		bpf_object__open_mem(steer_object, steer_object_size, NULL);
	struct bpf_program *prog = program_of(object, sight);
	size_t cnt = bpf_program__insn_cnt(prog);
	struct bpf_insn *insns = malloc(cnt * sizeof(*insns));
	int err;

	memcpy(insns, bpf_program__insns(prog), cnt * sizeof(*insns));
	*cnt_out = 0;
	for (size_t i = 0; i < cnt; i++)
		*cnt_out += is_blank(&insns[i]);
	err = fill_blanks(btf, insns, cnt);
	for (size_t i = 0; i < cnt && !err; i++)
		CHECK(!is_blank(&insns[i]));
	free(insns);
	bpf_object__close(object);
	return err;
}

TEST(blanks_are_filled)
{
	unsigned cnt;

	CHECK_EQ(fill(STEER_SIGHT_BYTES, &known, &cnt), 0);
	CHECK_EQ(cnt, 0);
	CHECK_EQ(fill(STEER_SIGHT_GSO, &known, &cnt), 0);
	CHECK_EQ(cnt, 4);
	CHECK_EQ(fill(STEER_SIGHT_TAG, &known, &cnt), 0);
	CHECK_EQ(cnt, 1);
	CHECK_EQ(fill_blank(&known, STEER_BLANK_SHARED_INFO_SIZE), 320);
}

TEST(what_the_kernel_does_not_have_is_not_supported)
{
	struct kernel_btf less = known;
	unsigned cnt;

	less.has_known_layout = false;
	CHECK_EQ(fill(STEER_SIGHT_GSO, &less, &cnt), -EOPNOTSUPP);
	CHECK_EQ(fill(STEER_SIGHT_TAG, &less, &cnt), 0);
	less = (struct kernel_btf){ 0 };
	CHECK_EQ(fill(STEER_SIGHT_TAG, &less, &cnt), -EOPNOTSUPP);
	CHECK_EQ(fill(STEER_SIGHT_BYTES, &less, &cnt), 0);
}
