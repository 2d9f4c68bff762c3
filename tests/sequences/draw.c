/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Draws sequences (sequence.h). Most operations get fds they are made for; some get any,
 * since errors have to be the same, too. */
#include "config.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/rand.h"
#include "tests/sequences/sequence.h"

/* What a slot has, as far as the operations so far say; a close may have failed. */
enum {
	NOTHING = 1,
	SOCKET = 2,
	SET = 4,
	EVENT = 8,
	READER = 16,
	WRITER = 32,
	LISTENER = 64,
	ANY_SOCKET = SOCKET | LISTENER,
};

struct drawer {
	struct rand rand;
	uint8_t has[SLOTS];
	bool is_tame, is_tcp, has_processes;
	/* processes that wait for the one whose operations are drawn */
	unsigned depth;
	/* so far something has been asked for EPOLLOUT; a set is in another one by
	 * EPOLLET */
	bool has_out, has_outer_edge;
};

static uint32_t below(struct drawer *d, uint32_t bound)
{
	return (uint32_t)rand_below(&d->rand, bound);
}

#define ONE_OF(d, list) ((list)[below(d, ARRAY_LEN(list))])

/* A slot that has one of these things; now and then, or if there is none, any. */
static uint8_t slot(struct drawer *d, unsigned what)
{
	uint8_t found[SLOTS];
	unsigned cnt = 0;

	for (uint8_t i = 0; i < SLOTS; i++)
		if (d->has[i] & what)
			found[cnt++] = i;
	if (!cnt || below(d, 40) == 0)
		return (uint8_t)below(d, SLOTS);
	return found[below(d, cnt)];
}

static uint32_t length(struct drawer *d)
{
	static const uint32_t lens[] = { 0, 1, 10, 100, 500, 1400 };

	return ONE_OF(d, lens);
}

enum { OUT_NAMES = EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND };

/* Without edges of EPOLLOUT, also of a set around. */
static uint32_t tame(struct drawer *d, uint32_t flags, bool is_set)
{
	if (flags & EPOLLET && !is_set)
		flags &= ~(uint32_t)OUT_NAMES;
	if (is_set && d->has_out)
		flags &= ~(uint32_t)EPOLLET;
	if (d->has_outer_edge)
		flags &= ~(uint32_t)OUT_NAMES;
	d->has_out |= flags & OUT_NAMES;
	d->has_outer_edge |= is_set && flags & EPOLLET;
	return flags;
}

static uint32_t events(struct drawer *d, bool is_set)
{
	static const uint32_t wanted[] = {
		EPOLLIN, EPOLLIN, EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT,
		EPOLLIN | EPOLLRDHUP, EPOLLIN | EPOLLPRI, EPOLLRDNORM,
		EPOLLIN | EPOLLRDNORM | EPOLLWRNORM, EPOLLERR, 0,
	};
	static const uint32_t how[] = {
		0, 0, 0, EPOLLET, EPOLLET, EPOLLONESHOT,
		EPOLLET | EPOLLONESHOT, EPOLLEXCLUSIVE,
		EPOLLEXCLUSIVE | EPOLLET,
	};
	uint32_t flags = ONE_OF(d, wanted) | ONE_OF(d, how);

	/* known to differ (sequences.sh, 6) */
	if (d->has_processes)
		flags &= ~(uint32_t)(EPOLLONESHOT | (d->is_tcp ? EPOLLET : 0));
	return d->is_tame ? tame(d, flags, is_set) : flags;
}

static bool is_of_processes(size_t kind)
{
	return kind >= OP_fork;
}

static enum op_kind any_kind(struct drawer *d)
{
	static const uint8_t all[][2] = {
#define OP(name, udp, tcp) { udp, tcp },
#include "tests/sequences/ops.def"
	};
	uint8_t weights[ARRAY_LEN(all)];
	uint32_t sum = 0, at;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		weights[i] = is_of_processes(i) && !d->has_processes ?
				     0 :
				     all[i][d->is_tcp];

	for (size_t i = 0; i < ARRAY_LEN(weights); i++)
		sum += weights[i];
	at = below(d, sum);
	for (size_t i = 0; i < ARRAY_LEN(weights); i++) {
		if (at < weights[i])
			return (enum op_kind)i;
		at -= weights[i];
	}
	return 0;
}

/* What a child does with a UDP socket or a set of its parent's that the parent does not hear
 * of. */
static bool is_not_shared(enum op_kind kind)
{
	switch (kind) {
	case OP_connect:
	case OP_disconnect:
	case OP_shutdown:
	case OP_epoll_add:
	case OP_epoll_mod:
	case OP_epoll_del:
		return true;
	default:
		return false;
	}
}

/* Waits cost time. A child that a daemon leaves would play beside the parent that waits for
 * the daemon. */
static bool is_wanted(struct drawer *d, enum op_kind kind)
{
	if (kind == OP_meanwhile)
		return below(d, 8) == 0;
	if (!d->depth)
		return true;
	return kind != OP_leave && (kind != OP_fork || d->depth == 1) &&
	       (d->is_tcp || !is_not_shared(kind));
}

static enum op_kind kind(struct drawer *d)
{
	enum op_kind kind;

	do
		kind = any_kind(d);
	while (!is_wanted(d, kind));
	return kind;
}

static void draw_receive(struct drawer *d, struct op *op)
{
	static const uint32_t flags[] = { 0, 0, 0, 0, MSG_PEEK, MSG_TRUNC,
					  MSG_PEEK | MSG_TRUNC, MSG_WAITALL,
					  MSG_OOB, MSG_ERRQUEUE };

	op->a = slot(d, SOCKET);
	op->b = (uint8_t)below(d, 5);
	op->n = length(d);
	op->flags = ONE_OF(d, flags);
}

static void draw_send(struct drawer *d, struct op *op)
{
	/* Not MSG_DONTROUTE and MSG_MORE, with which the kernel sends: datagrams that
	 * come by two ways may be received in another order. */
	static const uint32_t flags[] = { 0, 0, 0, 0, MSG_DONTWAIT, MSG_CONFIRM,
					  MSG_OOB, MSG_NOSIGNAL };

	op->a = slot(d, SOCKET);
	op->b = slot(d, SOCKET);
	op->n = length(d);
	op->flags = ONE_OF(d, flags);
	/* urgent data differs in what is not promised: where the mark is */
	if (d->is_tcp)
		op->flags &= ~(uint32_t)MSG_OOB;
}

static void draw_op(struct drawer *d, struct op *op)
{
	op->kind = kind(d);
	op->is_by_other = !is_of_processes(op->kind) && below(d, 8) == 0;
	switch (op->kind) {
	case OP_socket:
		op->a = slot(d, NOTHING);
		op->n = below(d, 3);
		d->has[op->a] = SOCKET;
		break;
	case OP_bind:
		op->a = slot(d, SOCKET);
		op->n = below(d, 5);
		break;
	case OP_connect:
		op->a = slot(d, SOCKET);
		op->b = slot(d, d->is_tcp && below(d, 10) ? LISTENER : SOCKET);
		op->n = below(d, 12);
		break;
	case OP_listen:
		op->a = slot(d, ANY_SOCKET);
		op->n = below(d, 2);
		d->has[op->a] = LISTENER;
		break;
	case OP_accept:
		op->a = slot(d, LISTENER);
		op->b = slot(d, NOTHING);
		d->has[op->b] = SOCKET;
		break;
	case OP_option:
		op->a = slot(d, ANY_SOCKET);
		op->n = below(d, 8);
		break;
	case OP_send:
	case OP_sendto:
		draw_send(d, op);
		break;
	case OP_recv:
		draw_receive(d, op);
		break;
	case OP_shutdown:
		op->a = slot(d, ANY_SOCKET);
		op->n = below(d, 4);
		break;
	case OP_close:
		op->a = slot(d, (unsigned)~NOTHING);
		d->has[op->a] = NOTHING;
		break;
	case OP_dup:
	case OP_dup2:
		op->a = slot(d, (unsigned)~NOTHING);
		op->b = slot(d, op->kind == OP_dup ? NOTHING : 0xff);
		d->has[op->b] = d->has[op->a];
		break;
	case OP_disconnect:
	case OP_name:
	case OP_error:
	case OP_waiting:
	case OP_state:
		op->a = slot(d, ANY_SOCKET);
		break;
	case OP_eventfd:
		op->a = slot(d, NOTHING);
		op->n = below(d, 2);
		d->has[op->a] = EVENT;
		break;
	case OP_pipe:
		op->a = slot(d, NOTHING);
		op->b = slot(d, NOTHING);
		d->has[op->a] = READER;
		d->has[op->b] = WRITER;
		break;
	case OP_write:
		op->a = slot(d, EVENT | WRITER | (d->is_tcp ? SOCKET : 0));
		break;
	case OP_read:
		op->a = slot(d, EVENT | READER | (d->is_tcp ? SOCKET : 0));
		break;
	case OP_epoll_create:
		op->a = slot(d, NOTHING);
		d->has[op->a] = SET;
		break;
	case OP_epoll_add:
	case OP_epoll_mod:
		op->a = slot(d, SET);
		op->b = slot(d, below(d, 4) ? ANY_SOCKET : (unsigned)~NOTHING);
		op->flags = events(d, !(d->has[op->b] & ANY_SOCKET));
		break;
	case OP_epoll_del:
		op->a = slot(d, SET);
		op->b = slot(d, (unsigned)~NOTHING);
		break;
	case OP_epoll_wait:
		op->a = slot(d, SET);
		op->n = below(d, 40) == 0;
		break;
	case OP_poll:
	case OP_select:
		op->n = rand_u32(&d->rand);
		op->flags = rand_u32(&d->rand);
		break;
	case OP_params:
		op->a = slot(d, below(d, 8) ? SET : 0xff);
		op->n = below(d, 8);
		op->flags = rand_u32(&d->rand);
		break;
	case OP_meanwhile:
		op->n = below(d, 3);
		op->a = slot(d, op->n ? ANY_SOCKET | EVENT | SET : SET);
		break;
	case OP_fork:
		op->a = slot(d, ANY_SOCKET);
		op->b = slot(d, NOTHING);
		op->n = 1 + below(d, 6);
		op->flags = below(d, d->is_tcp ? 8 : 4);
		break;
	case OP_leave:
		op->flags = below(d, 4);
		break;
	case OP_pass:
		op->a = slot(d, below(d, 8) ? ANY_SOCKET : (unsigned)~NOTHING);
		break;
	case OP_take:
		op->a = slot(d, NOTHING);
		d->has[op->a] = SOCKET;
		break;
	case OP_exec:
	case OP_KINDS:
		break;
	}
}

static unsigned copy_ops(struct op *to, const struct op *from, size_t cnt)
{
	memcpy(to, from, cnt * sizeof(*from));
	return (unsigned)cnt;
}

/* A listener, a connection of it, and a set. */
static unsigned draw_tcp_beginning(struct drawer *d, struct op *ops)
{
	const struct op beginning[] = {
		{ .kind = OP_socket, .a = 0, .n = below(d, 2) },
		{ .kind = OP_bind, .a = 0, .n = 2 * below(d, 2) },
		{ .kind = OP_listen, .a = 0, .n = below(d, 2) },
		{ .kind = OP_socket, .a = 1, .n = below(d, 2) },
		{ .kind = OP_connect, .a = 1, .n = 1 },
		{ .kind = OP_epoll_create, .a = 2 },
		{ .kind = OP_accept, .a = 0, .b = 3 },
	};

	d->has[0] = LISTENER;
	d->has[1] = d->has[3] = SOCKET;
	d->has[2] = SET;
	return copy_ops(ops, beginning, ARRAY_LEN(beginning));
}

/* Something to work with: two sockets, of which the second one is connected to the
 * first, and a set. */
static unsigned draw_beginning(struct drawer *d, struct op *ops)
{
	const struct op beginning[] = {
		{ .kind = OP_socket, .a = 0, .n = below(d, 3) },
		{ .kind = OP_bind, .a = 0, .n = below(d, 5) },
		{ .kind = OP_socket, .a = 1, .n = below(d, 3) },
		{ .kind = OP_bind, .a = 1, .n = 2 },
		{ .kind = OP_connect, .a = 1, .n = 1 },
		{ .kind = OP_epoll_create, .a = 2 },
	};

	d->has[0] = d->has[1] = SOCKET;
	d->has[2] = SET;
	return copy_ops(ops, beginning, ARRAY_LEN(beginning));
}

/* Those of a child come behind its fork, and the parent has what it had. */
static unsigned draw_ops(struct drawer *d, struct op *ops, unsigned at, unsigned until)
{
	uint8_t had[SLOTS];

	while (at < until) {
		struct op *op = &ops[at++];

		draw_op(d, op);
		if (op->kind != OP_fork)
			continue;
		op->n = MIN(op->n, until - at);
		memcpy(had, d->has, sizeof(had));
		d->depth++;
		at = draw_ops(d, ops, at, at + op->n);
		d->depth--;
		memcpy(d->has, had, sizeof(had));
		if (op->flags & FORK_HANDS)
			d->has[op->b] = SOCKET;
	}
	return at;
}

void sequence_draw(struct sequence *s, uint64_t seed, unsigned cnt,
		   const struct sequence_kind *kind)
{
	struct drawer d = { .is_tame = kind->is_tame, .is_tcp = kind->is_tcp,
			    .has_processes = kind->has_processes };
	unsigned begun;

	*s = (struct sequence){ .cnt = MIN(cnt, (unsigned)OPS_MAX),
				.is_tcp = kind->is_tcp,
				.has_processes = kind->has_processes };
	rand_init(&d.rand, seed);
	for (int i = 0; i < SLOTS; i++)
		d.has[i] = NOTHING;
	begun = kind->is_tcp ? draw_tcp_beginning(&d, s->ops) :
			       draw_beginning(&d, s->ops);
	draw_ops(&d, s->ops, begun, s->cnt);
}
