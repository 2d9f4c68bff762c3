/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of connections that the kernel does not go on with, because it shall not
 * (VMA_WAY_BACK=off) or cannot: what was written is delivered as far as VMA_EXIT_LINGER_MSEC
 * allows, and then FIN; else the peer is reset.
 */
#include "config.h"

#include "base/clock.h"
#include "net/net.h"
#include "os/inside.h"
#include "sock/tcp/tsock_priv.h"

#define NAP_NS (NS_PER_MS / 5)

/* As Linux ends a connection with its last descriptor: what was not read resets it. */
static bool begin_end(struct fd_object *obj, int fd UNUSED)
{
	struct tsock *t = tsock_of(obj);

	if (!tsock_lock_ours(t))
		return false;
	tsock_poll_locked(t);
	if (t->pcb && !tsock_is_moving(t)) {
		if (tcp_has_data(t->pcb))
			tcp_abort(t->pcb, tsock_now(t));
		else
			(void)!tcp_shutdown(t->pcb, tsock_now(t));
		/* a program that goes on, since its exec has failed, is told */
		t->is_shut_wr = true;
		tsock_update(t, READY_OUT);
		tcp_engine_due_locked(t->engine);
	}
	tsock_unlock(t);
	return false;
}

/* Its FIN, and so what is before that, was not acknowledged. */
static bool is_behind(const struct tsock *t)
{
	enum tcp_state state = t->pcb && !tsock_is_moving(t) ?
				       tcp_state(t->pcb) :
				       TCPS_CLOSED;

	return state == TCPS_FIN_WAIT_1 || state == TCPS_CLOSING ||
	       state == TCPS_LAST_ACK;
}

static bool is_under_way(struct fd_object *obj, int fd UNUSED)
{
	struct tsock *t = tsock_of(obj);
	bool result;

	if (!tsock_lock_ours(t))
		return false;
	tsock_poll_locked(t);
	result = is_behind(t);
	tsock_unlock(t);
	return result;
}

static bool give_up(struct fd_object *obj, int fd UNUSED)
{
	struct tsock *t = tsock_of(obj);

	if (!tsock_lock_ours(t))
		return false;
	if (is_behind(t)) {
		tcp_abort(t->pcb, tsock_now(t));
		tcp_engine_due_locked(t->engine);
	}
	tsock_unlock(t);
	return false;
}

/* So that who still has the twin, another program that this process becomes, is told that there
 * is no connection. */
static bool show_end(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);

	mutex_acquire(&t->sock.config);
	if (tsock_phase(t) == TSOCK_OURS)
		tsock_unguard(t, fd);
	mutex_release(&t->sock.config);
	return false;
}

/* Of those that the program has closed some are under way; `gives_up`: these are reset. */
struct orphans_seen {
	bool gives_up, are_under_way;
};

static void see_orphans(struct tcp_engine *engine, void *ctx)
{
	struct orphans_seen *seen = ctx;
	struct tsock *t;

	stack_lock(engine->stack);
	(void)stack_poll_locked(engine->stack);
	LIST_FOR_EACH(t, &engine->orphans, orphan)
		if (is_behind(t)) {
			seen->are_under_way = true;
			if (seen->gives_up)
				tcp_abort(t->pcb, tcp_engine_now(engine));
		}
	tcp_engine_due_locked(engine);
	stack_unlock(engine->stack);
}

static bool see_all_orphans(bool gives_up)
{
	struct orphans_seen seen = { .gives_up = gives_up };

	tcp_engines_visit(see_orphans, &seen);
	return seen.are_under_way;
}

static bool are_under_way(void)
{
	bool has_orphans = see_all_orphans(false);

	return fd_visit(&tsock_ops, is_under_way) || has_orphans;
}

void tsocks_flush(void)
{
	uint64_t end = clock_monotonic_ns() +
		       sock_params.exit_linger_ms * NS_PER_MS;
	bool is_late = false;

	fd_visit(&tsock_ops, begin_end);
	while (are_under_way() && !is_late) {
		inside_nap(NAP_NS);
		is_late = clock_monotonic_ns() >= end;
	}
	if (is_late) {
		fd_visit(&tsock_ops, give_up);
		(void)see_all_orphans(true);
	}
	fd_visit(&tsock_ops, show_end);
}
