/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program that makes connections of the kernel's (hand_over_load.h). */
#include "config.h"

#include "dev/hand_over_load.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bpf_program.h"
#include "base/btf.h"
#include "base/linux_compat.h"
#include "os/inside.h"
#include "os/kernel_types.h"
#include "pkt/wire.h"

static long bpf(int command, union bpf_attr *attr)
{
	return syscall_raw(SYS_bpf, command, (long)(uintptr_t)attr, sizeof(*attr), 0, 0,
			   0);
}

/* -- the program ---------------------------------------------------------------------- */

/* Answers of a program at the way in. */
enum { NEXT = -1, DROP = 2 };
enum { LISTENS = 10 }; /* the kernel's TCP_LISTEN */

enum {
	CTX = BPF_REG_6,
	SOCK = BPF_REG_7,
	OFFER = BPF_REG_8,
	ANSWER = BPF_REG_9,
};

#define MOVE(to, from) \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from) }
#define SET(to, value) \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value) }
#define ADD_TO(to, value) \
	{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (value) }
#define LOAD(size, to, from, at)                                                        \
	{ .code = BPF_LDX | BPF_MEM | (size), .dst_reg = (to), .src_reg = (from),       \
	  .off = (int16_t)(at) }
#define STORE(to, at, from)                                                             \
	{ .code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = (to), .src_reg = (from),        \
	  .off = (int16_t)(at) }
#define CALL(function) { .code = BPF_JMP | BPF_CALL, .imm = (function) }
#define JUMP(to) { .code = BPF_JMP | BPF_JA, .off = (to) }
#define JUMP_IF(op, reg, value, to)                                                     \
	{ .code = BPF_JMP | (op) | BPF_K, .dst_reg = (reg), .imm = (value), .off = (to) }

/* Where jumps lead, until the program is complete. */
enum place { AT_END = 1000, AT_RELEASE, AT_OTHER };
/* What is filled in: the map and the kernel's function. */
enum { BLANK_MAP = 1, BLANK_ASSIGN };

enum {
	KEY_AT = -16,
	FRAME_MIN = sizeof(struct wire_eth) + sizeof(struct wire_ipv4) +
		    sizeof(struct wire_tcp),
	IP_AT = sizeof(struct wire_eth),
	ADDRS_AT = IP_AT + offsetof(struct wire_ipv4, src),
	PORTS_AT = IP_AT + sizeof(struct wire_ipv4),
};

/* A segment of a connection that is offered: where a listener would get it, the connection is
 * made; where it is made, we hear how far it is. Else the frame is dropped, for the kernel
 * would answer it with a reset. */
static const struct bpf_insn program[] = {
	MOVE(CTX, BPF_REG_1),
	SET(ANSWER, NEXT),
	LOAD(BPF_W, BPF_REG_2, CTX, offsetof(struct __sk_buff, data)),
	LOAD(BPF_W, BPF_REG_3, CTX, offsetof(struct __sk_buff, data_end)),
	MOVE(BPF_REG_4, BPF_REG_2),
	ADD_TO(BPF_REG_4, FRAME_MIN),
	{ .code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = BPF_REG_4, .src_reg = BPF_REG_3,
	  .off = AT_END },
	/* IPv4 without options, and TCP */
	LOAD(BPF_B, BPF_REG_5, BPF_REG_2, offsetof(struct wire_eth, type)),
	JUMP_IF(BPF_JNE, BPF_REG_5, WIRE_ETH_IPV4 >> 8, AT_END),
	LOAD(BPF_B, BPF_REG_5, BPF_REG_2, offsetof(struct wire_eth, type) + 1),
	JUMP_IF(BPF_JNE, BPF_REG_5, WIRE_ETH_IPV4 & 0xff, AT_END),
	LOAD(BPF_B, BPF_REG_5, BPF_REG_2, IP_AT),
	JUMP_IF(BPF_JNE, BPF_REG_5, 0x45, AT_END),
	LOAD(BPF_B, BPF_REG_5, BPF_REG_2, IP_AT + offsetof(struct wire_ipv4, proto)),
	JUMP_IF(BPF_JNE, BPF_REG_5, WIRE_PROTO_TCP, AT_END),
	LOAD(BPF_W, BPF_REG_5, BPF_REG_2, ADDRS_AT),
	STORE(BPF_REG_10, KEY_AT, BPF_REG_5),
	LOAD(BPF_W, BPF_REG_5, BPF_REG_2, ADDRS_AT + 4),
	STORE(BPF_REG_10, KEY_AT + 4, BPF_REG_5),
	LOAD(BPF_W, BPF_REG_5, BPF_REG_2, PORTS_AT),
	STORE(BPF_REG_10, KEY_AT + 8, BPF_REG_5),
	/* what we offer */
	{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1,
	  .src_reg = BPF_PSEUDO_MAP_FD, .imm = BLANK_MAP },
	{ .code = 0 },
	MOVE(BPF_REG_2, BPF_REG_10),
	ADD_TO(BPF_REG_2, KEY_AT),
	CALL(BPF_FUNC_map_lookup_elem),
	JUMP_IF(BPF_JEQ, BPF_REG_0, 0, AT_END),
	MOVE(OFFER, BPF_REG_0),
	SET(ANSWER, DROP),
	/* who has it */
	MOVE(BPF_REG_1, CTX),
	MOVE(BPF_REG_2, BPF_REG_10),
	ADD_TO(BPF_REG_2, KEY_AT),
	SET(BPF_REG_3, sizeof(struct offer_key)),
	SET(BPF_REG_4, BPF_F_CURRENT_NETNS),
	SET(BPF_REG_5, 0),
	CALL(BPF_FUNC_skc_lookup_tcp),
	JUMP_IF(BPF_JEQ, BPF_REG_0, 0, AT_END),
	MOVE(SOCK, BPF_REG_0),
	LOAD(BPF_W, BPF_REG_1, SOCK, offsetof(struct bpf_sock, state)),
	JUMP_IF(BPF_JNE, BPF_REG_1, LISTENS, AT_OTHER),
	/* a listener, of the first segment; later ones mean what was made of that */
	LOAD(BPF_W, BPF_REG_1, OFFER, offsetof(struct offer, state)),
	JUMP_IF(BPF_JNE, BPF_REG_1, OFFER_NEW, AT_RELEASE),
	MOVE(BPF_REG_1, SOCK),
	CALL(BPF_FUNC_skc_to_tcp_sock),
	JUMP_IF(BPF_JEQ, BPF_REG_0, 0, AT_RELEASE),
	MOVE(BPF_REG_1, CTX),
	MOVE(BPF_REG_2, BPF_REG_0),
	MOVE(BPF_REG_3, OFFER),
	SET(BPF_REG_4, sizeof(struct offer_options)),
	{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_KFUNC_CALL,
	  .imm = BLANK_ASSIGN },
	STORE(OFFER, offsetof(struct offer, state), BPF_REG_0),
	/* it is an int */
	{ .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = BPF_REG_0, .imm = OFFER_MADE,
	  .off = AT_RELEASE },
	SET(ANSWER, NEXT),
	JUMP(AT_RELEASE),
	/* AT_OTHER: something else, which is what was made, if it was */
	LOAD(BPF_W, BPF_REG_1, OFFER, offsetof(struct offer, state)),
	JUMP_IF(BPF_JGT, BPF_REG_1, OFFER_TAKEN, AT_RELEASE),
	SET(ANSWER, NEXT),
	MOVE(BPF_REG_1, SOCK),
	CALL(BPF_FUNC_tcp_sock),
	JUMP_IF(BPF_JEQ, BPF_REG_0, 0, AT_RELEASE),
	LOAD(BPF_W, BPF_REG_1, BPF_REG_0, offsetof(struct bpf_tcp_sock, rcv_nxt)),
	STORE(OFFER, offsetof(struct offer, rcv_nxt), BPF_REG_1),
	SET(BPF_REG_1, OFFER_TAKEN),
	STORE(OFFER, offsetof(struct offer, state), BPF_REG_1),
	/* AT_RELEASE */
	MOVE(BPF_REG_1, SOCK),
	CALL(BPF_FUNC_sk_release),
	/* AT_END */
	MOVE(BPF_REG_0, ANSWER),
	{ .code = BPF_JMP | BPF_EXIT },
};

enum { CNT = ARRAY_LEN(program), END = CNT - 2, RELEASE = END - 2, OTHER = RELEASE - 10 };

static int place_of(int16_t off)
{
	return off == AT_END ? END : off == AT_RELEASE ? RELEASE : OTHER;
}

static int load_program(int map, uint32_t assign)
{
	struct bpf_insn insns[CNT];

	memcpy(insns, program, sizeof(insns));
	for (int i = 0; i < CNT; i++) {
		struct bpf_insn *insn = &insns[i];

		if (insn->off >= AT_END)
			insn->off = (int16_t)(place_of(insn->off) - i - 1);
		if (insn->src_reg == BPF_PSEUDO_MAP_FD && insn->imm == BLANK_MAP)
			insn->imm = map;
		if (insn->src_reg == BPF_PSEUDO_KFUNC_CALL && insn->imm == BLANK_ASSIGN)
			insn->imm = (int32_t)assign;
	}
	return bpf_program_load(BPF_PROG_TYPE_SCHED_CLS, insns, CNT, BPF_PROGRAM_HAND_OVER);
}

/* -- what this kernel can do ---------------------------------------------------------- */

/* -1: not opened yet */
static int cookies_fd = -1;

static int open_cookies(void)
{
	return inside_open("/proc/sys/net/ipv4/tcp_syncookies", O_RDONLY | O_CLOEXEC, 0);
}

void hand_over_load_prepare(void)
{
	cookies_fd = open_cookies();
}

/* Without cookies the kernel resets what a listener gets but SYNs. It may be told so, or
 * otherwise, at any time. */
static bool has_cookies(void)
{
	int fd = cookies_fd >= 0 ? cookies_fd : open_cookies();
	char text[16] = "";
	long n;

	if (fd < 0)
		return false;
	n = inside_pread(fd, text, sizeof(text) - 1, 0);
	if (fd != cookies_fd)
		inside_close(fd);
	return n > 0 && atoi(text) > 0;
}

static uint32_t find_function(void)
{
	uint32_t number;
	size_t len;
	void *mem = kernel_types_map(&len);

	if (!mem)
		return 0;
	number = btf_function(mem, len, "bpf_sk_assign_tcp_reqsk");
	munmap(mem, len);
	return number;
}

/* The kernel does not change; two threads that look at once find the same. */
static uint32_t function(void)
{
	static _Atomic uint32_t number;
	static _Atomic bool is_known;

	if (!atomic_load(&is_known)) {
		atomic_store(&number, find_function());
		atomic_store(&is_known, true);
	}
	return atomic_load(&number);
}

/* -- loading -------------------------------------------------------------------------- */

static int make_map(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_HASH,
		.key_size = sizeof(struct offer_key),
		.value_size = sizeof(struct offer),
		.max_entries = 1,
		.map_name = BPF_PROGRAM_HAND_OVER,
	};

	return (int)bpf(BPF_MAP_CREATE, &attr);
}

static int attach(int program_fd, int ifindex)
{
	union bpf_attr attr = {
		.link_create = {
			.prog_fd = (uint32_t)program_fd,
			.target_ifindex = (uint32_t)ifindex,
			.attach_type = COMPAT_BPF_TCX_INGRESS,
		},
	};

	return (int)bpf(BPF_LINK_CREATE, &attr);
}

static int load_and_attach(int map, uint32_t assign, int ifindex)
{
	int program_fd = load_program(map, assign), link;

	if (program_fd < 0)
		return program_fd;
	link = attach(program_fd, ifindex);
	inside_close(program_fd);
	return link;
}

int hand_over_load(int ifindex, int fds[HAND_OVER_FD_CNT])
{
	uint32_t assign = has_cookies() ? function() : 0;
	int map, link;

	if (!assign)
		return -EOPNOTSUPP;
	map = make_map();
	if (map < 0)
		return map;
	link = load_and_attach(map, assign, ifindex);
	if (link < 0) {
		inside_close(map);
		return link;
	}
	fds[HAND_OVER_FD_MAP] = map;
	fds[HAND_OVER_FD_LINK] = link;
	return 0;
}
