/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program and the process that keeps rights for it (tools/vma_way_back) say to each
 * other, over a socket of packets, the channel. The program sends a request with descriptors;
 * the answer is 0 with descriptors, or a negative errno without. The program may have no right
 * any more, so a request is checked as the word of a stranger: it chooses among a few things,
 * and brings nothing that the keeper would run.
 *
 * Each process has a channel of its own, so that none can answer for the keeper in what
 * another one asks. The one that has started it and its children have the entry in common: a
 * socket of packets, too, over which nothing is answered, and which takes channels, and what
 * nobody waits for.
 */
#ifndef OS_KEEPER_ABI_H
#define OS_KEEPER_ABI_H

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The rights that it keeps of those that the process has: TCP_REPAIR, links and programs at
 * interfaces take the first, sockets of AF_XDP the second, maps the third, and the way in which the
 * steering programs handle pointers the last. */
static const int keeper_rights[] = { CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON };

/* The keeper's first word on a channel, without being asked: it is ready. */
enum { KEEPER_ABI = 5 };

/* What it has at its start. */
enum { KEEPER_CHANNEL, KEEPER_ENTRY };

enum keeper_op {
	/* Switches TCP_REPAIR of the socket that comes with it to `value`. */
	KEEPER_REPAIR,
	/* A socket of AF_XDP, bound to nothing yet. */
	KEEPER_XSK,
	/* A socket that hears ICMP (net/path_news.h). */
	KEEPER_ICMP,
	/* The program by which frames go back to the kernel (net/give_back.h). */
	KEEPER_PASS,
	/* The steering program for an interface, and its maps (dev/xdp/steer_load.h). */
	KEEPER_STEER,
	/* Attaches the program that comes with it, which must be one of KEEPER_STEER. */
	KEEPER_ATTACH,
	/* The filter of guards (os/drop_program.h). */
	KEEPER_DROP,
	/* Attaches the program that makes connections of the kernel's to an interface, with a
	 * map of its own (dev/hand_over_load.h). */
	KEEPER_HAND_OVER,
	/* By the entry: has the kernel look whether a neighbour is still there. */
	KEEPER_NEIGHBOUR,
	/* By the entry: a process has the other end of the socket that comes with it. */
	KEEPER_JOIN,
	KEEPER_OP_CNT,
};

/* keeper_request.flags, for STEER and ATTACH. */
enum {
	/* in the driver */
	KEEPER_NATIVE = 1,
	/* a packet is in one buffer */
	KEEPER_SINGLE = 2,
};

/* What an op does not name is 0. */
struct keeper_request {
	uint32_t op;
	uint32_t flags;
	int32_t value; /* REPAIR */
	int32_t ifindex; /* STEER, ATTACH, HAND_OVER, NEIGHBOUR */
	uint32_t sight; /* STEER: enum steer_sight */
	uint32_t rules_max; /* STEER: room of the table of rules */
	uint8_t addr[16]; /* NEIGHBOUR: a struct ip_addr */
};

/* The most descriptors that come with a request or an answer. */
enum { KEEPER_FDS_MAX = 5 };

static inline unsigned keeper_fds_of_request(const struct keeper_request *r)
{
	return r->op == KEEPER_REPAIR || r->op == KEEPER_ATTACH || r->op == KEEPER_JOIN;
}

static inline unsigned keeper_fds_of_answer(const struct keeper_request *r)
{
	switch (r->op) {
	case KEEPER_REPAIR:
	case KEEPER_NEIGHBOUR:
	case KEEPER_JOIN:
		return 0;
	case KEEPER_STEER:
		return KEEPER_FDS_MAX;
	case KEEPER_HAND_OVER:
		return 2;
	default:
		return 1;
	}
}

/* The flags that the op knows. */
static inline uint32_t keeper_flags(uint32_t op)
{
	switch (op) {
	case KEEPER_STEER:
		return KEEPER_NATIVE | KEEPER_SINGLE;
	case KEEPER_ATTACH:
		return KEEPER_NATIVE;
	default:
		return 0;
	}
}

/* Makes a request of `len` bytes that came with so many descriptors. 0, or -EINVAL for one
 * that says what it must not. */
static inline int keeper_request_parse(const void *bytes, size_t len, unsigned fd_cnt,
				       struct keeper_request *r)
{
	static const uint8_t none[sizeof(r->addr)];
	int is_of_interface;

	if (len != sizeof(*r))
		return -EINVAL;
	memcpy(r, bytes, sizeof(*r));
	is_of_interface = r->op == KEEPER_STEER || r->op == KEEPER_ATTACH ||
			  r->op == KEEPER_HAND_OVER || r->op == KEEPER_NEIGHBOUR;
	if (r->op >= KEEPER_OP_CNT || r->flags & ~keeper_flags(r->op) ||
	    fd_cnt != keeper_fds_of_request(r))
		return -EINVAL;
	if (r->op == KEEPER_REPAIR ? r->value < -1 || r->value > 1 : r->value != 0)
		return -EINVAL;
	if (is_of_interface ? r->ifindex <= 0 : r->ifindex != 0)
		return -EINVAL;
	if (r->op != KEEPER_STEER && (r->sight || r->rules_max))
		return -EINVAL;
	if (r->op != KEEPER_NEIGHBOUR && memcmp(r->addr, none, sizeof(none)) != 0)
		return -EINVAL;
	return 0;
}

#endif
