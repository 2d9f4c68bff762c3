/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads a BPF program of a few instructions that are compiled in. Larger ones are libbpf's
 * (dev/xdp), which only that module links. */
#ifndef BASE_BPF_PROGRAM_H
#define BASE_BPF_PROGRAM_H

#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "base/syscall_raw.h"

/* The program of net/hand_over.h, which other processes of ours see at an interface, and which
 * keeps no frame from anybody else. */
#define BPF_PROGRAM_HAND_OVER "vma_hand_over"

/* The fd, or a negative errno. */
static inline int bpf_program_load(enum bpf_prog_type type, const struct bpf_insn *insns,
				   uint32_t cnt, const char *name)
{
	union bpf_attr attr = {
		.prog_type = type,
		.insns = (uintptr_t)insns,
		.insn_cnt = cnt,
		.license = (uintptr_t)"Dual BSD/GPL",
	};

	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
	return (int)syscall_raw(SYS_bpf, BPF_PROG_LOAD, (long)(uintptr_t)&attr,
				sizeof(attr), 0, 0, 0);
}

#endif
