/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The filter of a socket that takes none of a packet's bytes (sock/tcp/tcp_twin.h). Who loads
 * it needs CAP_BPF on most kernels. */
#ifndef OS_DROP_PROGRAM_H
#define OS_DROP_PROGRAM_H

#include "base/bpf_program.h"
#include "base/compiler.h"

/* The fd, or a negative errno. */
static inline int drop_program_load(void)
{
	static const struct bpf_insn drop[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_program_load(BPF_PROG_TYPE_SOCKET_FILTER, drop, ARRAY_LEN(drop),
				"vma_dropper");
}

#endif
