/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets at the end of their program: the kernel goes on with what is under way, and waits
 * in the place of those in TIME_WAIT; what cannot go back is brought to its end by us.
 */
#include "config.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "fd/fd_visit.h"
#include "os/inside.h"
#include "sock/kin.h"
#include "sock/tcp/tcp_gift.h"
#include "sock/tcp/tcp_way_back.h"
#include "sock/tcp/tsock_priv.h"

static bool is_waiting(struct tsock *t)
{
	bool result;

	tsock_lock(t);
	result = t->pcb && tcp_state(t->pcb) == TCPS_TIME_WAIT;
	tsock_unlock(t);
	return result;
}

static bool leave_at_exit(struct fd_object *obj, int fd)
{
	/* of one that has ended the process has all, unless it waits, or shares it */
	if (tsock_phase(tsock_of(obj)) == TSOCK_OURS &&
	    (tsock_stays(obj) || is_waiting(tsock_of(obj)) ||
	     kin_is_shared_since(tsock_of(obj)->fork_cnt)))
		tsock_leave(obj, fd, REASON_EXIT, STATS_BY_EXIT);
	return false;
}

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

/* Who may bind the port meanwhile is the listener's to say, whose options nobody knows any
 * more: everybody who says that he shares it. */
static int make_kernel_wait(struct tcp_gift *gift, const struct tcp_waiting *waiting)
{
	static const struct tcp_way_back_ops ops = { .give = give };
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
	err = tcp_way_back_waiting(&twin, waiting, &ops, gift);
	inside_close(twin.fd);
	return err;
}

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

static void leave_waiting(struct tcp_engine *engine, void *ctx UNUSED)
{
	struct leaving *leaving = pages_map(sizeof(*leaving));
	struct tcp_gift gift = { .net = engine->stack->net };
	uint64_t end_ns = clock_monotonic_ns() + WAITING_NS;
	const struct tcp_waiting *waiting;
	unsigned cnt, left = 0, naps = 0;
	int err = 0;

	if (!leaving)
		return;
	gift.frame = &leaving->frame;
	waiting = leaving->waiting;
	stack_lock(engine->stack);
	cnt = tcp_get_waiting(engine->table, leaving->waiting, WAITING_MAX, WAITING_AGE_NS,
			      tcp_engine_now(engine));
	if (cnt)
		stack_engine_tidy(engine->stack);
	stack_unlock(engine->stack);
	while (cnt && !is_tidy(engine) && naps++ < TIDY_NAPS_MAX)
		inside_nap(TIDY_NAP_NS);
	/* it ends when nobody has the right to do so */
	for (unsigned i = 0; i < cnt && err != -EPERM && clock_monotonic_ns() < end_ns; i++) {
		gift.key = &waiting[i].key;
		err = find_way(engine, &gift) ? make_kernel_wait(&gift, &waiting[i]) : -ENETUNREACH;
		/* that thread is at the last twin, or the program has this one, and the
		 * kernel waits already */
		if (err == -EADDRNOTAVAIL && naps < TIDY_NAPS_MAX) {
			naps = TIDY_NAPS_MAX;
			inside_nap(TIDY_NAP_NS);
			err = make_kernel_wait(&gift, &waiting[i]);
		}
		left += !err;
	}
	if (cnt)
		log_dbg("%u in TIME_WAIT are left to the kernel, of %u", left, cnt);
	munmap(leaving, sizeof(*leaving));
}

/* Nobody will accept what waits in a listener, and no queue of the kernel's takes it: it is
 * reset, as by a close. Without that its peers would wait for ever. If the process goes on
 * after all, so does the listener. */
static bool end_queue(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);

	if (tsock_phase(t) != TSOCK_LISTENER)
		return false;
	mutex_acquire(&t->sock.config);
	if (tsock_phase(t) == TSOCK_LISTENER)
		tsock_end_queue(t, fd);
	mutex_release(&t->sock.config);
	return false;
}

void tsocks_before_exit(void)
{
	fd_visit(&tsock_ops, end_queue);
	if (!tsocks_shall_stay()) {
		fd_visit(&tsock_ops, leave_at_exit);
		tsocks_leave_orphans();
	}
	tsocks_end_what_stays();
}

void tsocks_end_what_stays(void)
{
	if (tsocks_exist() && (tsocks_shall_stay() || tsocks_have_stayed()))
		tsocks_flush();
	if (!tsocks_shall_stay())
		tcp_engines_visit(leave_waiting, NULL);
}
