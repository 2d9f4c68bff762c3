/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program that lets every frame through to the kernel (net/give_back.h). Who loads it
 * needs rights. */
#ifndef DEV_PASS_PROGRAM_H
#define DEV_PASS_PROGRAM_H

#include "base/bpf_program.h"
#include "base/compiler.h"
#include "dev/ring.h"

/* The fd, or a negative errno. */
static inline int pass_program_load(void)
{
	/* It puts some bytes of metadata in front of the frame. By their number the
	 * steering program knows that the frame is one that we have given back. */
	static const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2,
		  .imm = -RING_GIVEN_BACK_META },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_xdp_adjust_meta },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0,
		  .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_program_load(BPF_PROG_TYPE_XDP, pass, ARRAY_LEN(pass),
				"vma_give_back");
}

#endif
