/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The filter of a socket that takes none of a packet's bytes (sock/tcp/tcp_twin.h). Who loads
 * it needs CAP_BPF on most kernels. */
#ifndef OS_DROP_PROGRAM_H
#define OS_DROP_PROGRAM_H

#include <linux/bpf.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "base/syscall_raw.h"

/* The fd, or a negative errno. */
static inline int drop_program_load(void)
{
	static const struct bpf_insn drop[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)drop,
		.insn_cnt = ARRAY_LEN(drop),
		.license = (uintptr_t)"Dual BSD/GPL",
		.prog_name = "vma_dropper",
	};

	return (int)syscall_raw(SYS_bpf, BPF_PROG_LOAD, (long)(uintptr_t)&attr,
				sizeof(attr), 0, 0, 0);
}

#endif
