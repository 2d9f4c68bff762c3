/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library's thread does for TCP sockets, because it takes system calls or the control
 * mutex and whoever finds it due has the stack's lock (stack_engine.tidy): gives up what those
 * have left that are over, gives the kernel those that have lost their way, sends SIGURG.
 */
#include "config.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "base/syscall_raw.h"
#include "sock/tcp/tsock_priv.h"

void tsock_tidy_later(struct tsock *t)
{
	/* it may be among those that have stayed */
	list_remove(&t->tidy);
	list_push_back(&t->engine->untidy, &t->tidy);
	stack_engine_tidy(t->engine->stack);
}

/* An attempt to go back sends what was kept meanwhile, by which a way that is lost is asked
 * for again, and lost again. So the next attempt waits, or there would be no end of it. */
#define AGAIN_NS (NS_PER_SEC / 2)

void tsock_leave_later(struct tsock *t)
{
	struct tcp_engine *engine = t->engine;
	uint64_t now = tsock_now(t);

	if (!t->tried_ns || now - t->tried_ns >= AGAIN_NS) {
		tsock_tidy_later(t);
		return;
	}
	if (!list_is_linked(&t->tidy))
		list_push_back(&engine->stayed, &t->tidy);
	if (!timer_is_pending(&engine->again))
		timer_set(&engine->stack->timers, &engine->again, now + AGAIN_NS);
}

void tsocks_try_again(struct timer *again, uint64_t now_ns UNUSED)
{
	struct tcp_engine *engine = CONTAINER_OF(again, struct tcp_engine, again);

	list_splice_back(&engine->untidy, &engine->stayed);
	stack_engine_tidy(engine->stack);
}

/* What an orphan has left can wait while nobody can want its names: one in TIME_WAIT has
 * them on Linux, too, and an accepted one has its listener's. So our thread is not woken for
 * each of them. */
enum { PATIENT_MAX = 32 };
#define PATIENCE_NS (10 * NS_PER_MS)

static bool is_patient(const struct tsock *t)
{
	if (!t->is_orphan)
		return false;
	return t->port ? t->port->listener != NULL :
			 tcp_is_waiting(t->engine->table, &t->key);
}

static void tidy_in_a_while(struct tsock *t)
{
	struct tcp_engine *engine = t->engine;

	if (++engine->patient_cnt >= PATIENT_MAX) {
		tsock_tidy_later(t);
		return;
	}
	if (!list_is_linked(&t->tidy))
		list_push_back(&engine->untidy, &t->tidy);
	if (!timer_is_pending(&engine->patience))
		timer_set(&engine->stack->timers, &engine->patience,
			  tsock_now(t) + PATIENCE_NS);
}

void tsock_tidy_what_is_left(struct tsock *t)
{
	if (is_patient(t))
		tidy_in_a_while(t);
	else
		tsock_tidy_later(t);
}

void tsocks_lose_patience(struct timer *patience, uint64_t now_ns UNUSED)
{
	stack_engine_tidy(CONTAINER_OF(patience, struct tcp_engine, patience)->stack);
}

/* With a reference, or NULL. One that is about to be released needs no tidying. */
static struct tsock *next_untidy(struct tcp_engine *engine)
{
	struct tsock *t = NULL;
	struct list *link;

	stack_lock(engine->stack);
	while (!t && (link = list_pop_front(&engine->untidy))) {
		t = LIST_ENTRY(link, struct tsock, tidy);
		if (!fd_object_try_hold(&t->sock.obj))
			t = NULL;
	}
	if (!t) {
		engine->patient_cnt = 0;
		timer_cancel(&engine->stack->timers, &engine->patience);
	}
	stack_unlock(engine->stack);
	return t;
}

/* SIGURG to whom F_SETOWN names, a process or, negative, a group. */
static void send_signal(struct tsock *t)
{
	int fd = tsock_fd(t), owner = fd < 0 ? 0 : real.fcntl(fd, F_GETOWN);

	if (owner && owner != -1)
		(void)syscall_raw(SYS_kill, owner, SIGURG, 0, 0, 0, 0);
}

/* The kernel delivers what is left of an orphan. */
void tsock_go_after_way(struct tsock *t)
{
	enum reason why;
	int fd, err;

	tsock_lock(t);
	why = t->lost_way;
	t->lost_way = REASON_NONE;
	t->tried_ns = tsock_now(t);
	tsock_unlock(t);
	tsock_await_answer(t);
	mutex_acquire(&t->sock.config);
	fd = tsock_fd(t);
	err = t->is_orphan ? tsock_orphan_goes_back(t) : tsock_go_back(t, fd);
	if (!err && !t->is_orphan)
		tsock_is_kernels(t, fd, why, STATS_BY_NEWS, "");
	mutex_release(&t->sock.config);
	if (!err && t->is_orphan)
		tsock_orphan_is_over(t);
}

static void tidy_one(struct tsock *t)
{
	bool has_signal, is_gone, has_lost_way;

	tsock_lock(t);
	has_signal = t->has_signal;
	t->has_signal = false;
	is_gone = t->is_gone;
	has_lost_way = t->lost_way != REASON_NONE;
	tsock_unlock(t);
	if (has_signal)
		send_signal(t);
	if (is_gone) {
		/* the twin of an orphan is about to be closed */
		mutex_acquire(&t->sock.config);
		if (t->is_orphan) {
			tsock_waiting_leaves(t);
			tsock_guard_is_over(t);
		} else {
			tsock_unguard(t, tsock_fd(t));
		}
		mutex_release(&t->sock.config);
		tsock_give_up(t);
		if (t->is_orphan)
			tsock_orphan_is_over(t);
	} else if (has_lost_way) {
		tsock_go_after_way(t);
	}
}

void tsocks_tidy(struct stack_engine *base, struct stack *stack UNUSED)
{
	struct tcp_engine *engine = CONTAINER_OF(base, struct tcp_engine, base);
	struct tsock *t;

	while ((t = next_untidy(engine))) {
		tidy_one(t);
		fd_object_put(&t->sock.obj);
	}
	tcp_engine_tidy(engine);
	tcp_foreign_give(engine);
	tcp_ports_tidy(engine);
}
