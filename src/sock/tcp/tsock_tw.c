/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections in TIME_WAIT that the program has closed: the kernel waits in our place. Of what
 * the program had opened that is so from the time at which its twin is closed, unless there
 * are many; of the others, at the end of the program.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "os/inside.h"
#include "sock/tcp/tcp_gift.h"
#include "sock/tcp/tcp_way_back.h"
#include "sock/tcp/tsock_priv.h"

/* The way by which the peer's end has come. */
static bool find_way(struct tcp_engine *engine, struct tcp_gift *gift)
{
	struct dst_query query = {
		.local = gift->key->local,
		.remote = gift->key->remote,
	};
	const struct tcp_way *way;

	stack_lock(engine->stack);
	way = tcp_way_between(engine, &query);
	gift->ifindex = way ? way->ifindex : 0;
	if (way)
		gift->header = way->dst.header;
	stack_unlock(engine->stack);
	return gift->ifindex;
}

static int give(void *ctx, const uint8_t *header, size_t header_len,
		const struct pkt *data)
{
	return tcp_gift_give(ctx, header, header_len, data);
}

/* `waiting` has the names that the gift points to. */
static int make_kernel_wait(struct tcp_gift *gift, const struct tcp_waiting *waiting,
			    const struct tcp_twin_socket *twin)
{
	static const struct tcp_way_back_ops ops = { .give = give };

	return tcp_way_back_waiting(twin, waiting, &ops, gift);
}

/* Who may bind the port meanwhile is the listener's to say, whose options nobody knows any
 * more: everybody who says that he shares it. */
static int make_socket_wait(struct tcp_gift *gift, const struct tcp_waiting *waiting)
{
	struct tcp_twin_socket twin = {
		.fd = real.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		.domain = AF_INET,
		.reuse_addr = 1,
	};
	int on = 1, err;

	if (twin.fd < 0)
		return -errno;
	fd_table_forget(twin.fd);
	sock_twin_set(twin.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	sock_twin_set(twin.fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	err = make_kernel_wait(gift, waiting, &twin);
	inside_close(twin.fd);
	return err;
}

/* -- while the program goes on ------------------------------------------------------- */

/* Without its rule we do not hear of a peer that has missed our last word, and anybody may
 * bind the port. The kernel's TIME_WAIT mends both, but takes a dozen system calls, and the
 * port: that of who closes connections all the time, to which the kernel has few ports more
 * to give than it needs for a minute. So only the first ones of many are the kernel's. */
enum { AT_ONCE = 16 };
#define EACH_NS (NS_PER_SEC / 32)

static bool may_leave(struct tcp_engine *engine, uint64_t now_ns)
	REQUIRES(engine->stack->lock)
{
	if (now_ns - engine->left_ns > AT_ONCE * EACH_NS)
		engine->left_ns = now_ns - AT_ONCE * EACH_NS;
	if (now_ns - engine->left_ns < EACH_NS)
		return false;
	engine->left_ns += EACH_NS;
	return true;
}

void tsock_waiting_leaves(struct tsock *t)
{
	struct tcp_engine *engine = t->engine;
	struct tcp_gift gift = { .net = engine->stack->net, .key = &t->key };
	struct tcp_waiting waiting;
	struct tcp_twin_socket twin;
	int fd = atomic_load(&t->twin_fd), err;
	bool leaves;

	/* no frame of the local device of tests comes another way */
	if (fd < 0 || tsocks_shall_stay() || sock_params.listens_early)
		return;
	tsock_lock(t);
	/* that of a listener's has its rule as long as others have that */
	leaves = !(t->port && t->port->listener) &&
		 tcp_find_waiting(engine->table, &t->key, &waiting, tsock_now(t)) &&
		 may_leave(t->engine, tsock_now(t));
	tsock_unlock(t);
	if (!leaves || !find_way(engine, &gift))
		return;
	twin = tsock_twin(t, fd);
	err = make_kernel_wait(&gift, &waiting, &twin);
	tcp_gift_end(&gift);
	if (err) {
		log_dbg("the kernel does not wait in TIME_WAIT for us: %s", strerror(-err));
		return;
	}
	log_dbg("1 in TIME_WAIT is left to the kernel");
	/* While its rule is there the peer's words come to us, and a connection that we do not
	 * know is reset. */
	sock_detach(&t->sock);
	tsock_lock(t);
	tcp_forget_waiting(engine->table, &t->key);
	tsock_unlock(t);
}

/* -- at its end ---------------------------------------------------------------------- */

/* How many connections in TIME_WAIT go back, and how long that may take. They are those that
 * have ended last: a peer that has missed our last word says its end once more soon, and each
 * of the others hears that word a second time, and resets what it does not know any more. */
enum { WAITING_MAX = 2048 };
#define WAITING_AGE_NS (4 * NS_PER_SEC)
#define WAITING_NS (50 * NS_PER_MS)
/* And how long our thread is waited for, which closes the twins of those that have just
 * ended. */
enum { TIDY_NAPS_MAX = 20 };
#define TIDY_NAP_NS NS_PER_MS

static bool is_tidy(struct tcp_engine *engine)
{
	bool result;

	stack_lock(engine->stack);
	result = list_is_empty(&engine->untidy);
	stack_unlock(engine->stack);
	return result;
}

/* What that takes. It is not of malloc(), in whose middle the handler of a signal may end the
 * program. */
struct leaving {
	struct tcp_gift_frame frame;
	struct tcp_waiting waiting[WAITING_MAX];
};

void tsocks_waiting_leave(struct tcp_engine *engine, void *ctx UNUSED)
{
	struct leaving *leaving = pages_map(sizeof(*leaving));
	struct tcp_gift gift = { .net = engine->stack->net };
	uint64_t end_ns = clock_monotonic_ns() + WAITING_NS;
	const struct tcp_waiting *waiting;
	unsigned cnt, left = 0, naps = 0;
	bool is_awaited;
	int err = 0;

	if (!leaving)
		return;
	gift.frame = &leaving->frame;
	waiting = leaving->waiting;
	stack_lock(engine->stack);
	is_awaited = tcp_get_waiting(engine->table, leaving->waiting, 1, WAITING_AGE_NS,
				     tcp_engine_now(engine));
	if (is_awaited)
		stack_engine_tidy(engine->stack);
	stack_unlock(engine->stack);
	while (is_awaited && !is_tidy(engine) && naps++ < TIDY_NAPS_MAX)
		inside_nap(TIDY_NAP_NS);
	stack_lock(engine->stack);
	cnt = tcp_get_waiting(engine->table, leaving->waiting, WAITING_MAX, WAITING_AGE_NS,
			      tcp_engine_now(engine));
	stack_unlock(engine->stack);
	/* it ends when nobody has the right to do so */
	for (unsigned i = 0; i < cnt && err != -EPERM && clock_monotonic_ns() < end_ns; i++) {
		gift.key = &waiting[i].key;
		err = find_way(engine, &gift) ? make_socket_wait(&gift, &waiting[i]) : -ENETUNREACH;
		/* that thread is at the last twin, or the program has this one, and the
		 * kernel waits already */
		if (err == -EADDRNOTAVAIL && naps < TIDY_NAPS_MAX) {
			naps = TIDY_NAPS_MAX;
			inside_nap(TIDY_NAP_NS);
			err = make_socket_wait(&gift, &waiting[i]);
		}
		left += !err;
	}
	if (cnt)
		log_dbg("%u in TIME_WAIT are left to the kernel, of %u", left, cnt);
	munmap(leaving, sizeof(*leaving));
}
