/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library's thread does for TCP sockets, because it takes system calls or the control
 * mutex and whoever finds it due has the stack's lock (stack_engine.tidy): gives up what those
 * have left that are over, gives the kernel those that have lost their way, sends SIGURG.
 */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/log.h"
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
	uint64_t now = tcp_engine_now(engine);

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
			  tcp_engine_now(engine) + PATIENCE_NS);
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

/* By the duplicate of the twin, if there is one, though calls may be inside, or by a number. */
static void visit(struct tsock *t, bool (*each)(struct fd_object *obj, int fd))
{
	int twin_fd = atomic_load(&t->twin_fd);

	if (twin_fd >= 0)
		(void)each(&t->sock.obj, twin_fd);
	else
		tsock_visit(t, each);
}

/* To whom F_SETOWN or F_SETOWN_EX names. For kill() the group of init is everybody. */
static void signal_owner(int fd, int sig)
{
	struct f_owner_ex owner;

	if (real.fcntl(fd, F_GETOWN_EX, &owner) != 0 || owner.pid <= 0 ||
	    (owner.type == F_OWNER_PGRP && owner.pid == 1))
		return;
	if (owner.type == F_OWNER_TID)
		(void)syscall_raw(SYS_tkill, owner.pid, sig, 0, 0, 0, 0);
	else
		(void)syscall_raw(SYS_kill,
				  owner.type == F_OWNER_PGRP ? -owner.pid :
							       owner.pid,
				  sig, 0, 0, 0, 0);
}

static bool send_signal(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);
	bool has_signal;

	tsock_lock(t);
	has_signal = t->has_signal;
	t->has_signal = false;
	tsock_unlock(t);
	if (has_signal)
		signal_owner(fd, SIGURG);
	return false;
}

/* Why it is to leave, which is asked once. */
static enum reason take_lost_way(struct tsock *t)
{
	enum reason why;

	tsock_lock(t);
	why = t->lost_way;
	t->lost_way = REASON_NONE;
	t->tried_ns = tsock_now(t);
	tsock_unlock(t);
	return why;
}

/* Whether it has to be tried again. That a way has moved is news only once; of a way that is
 * none we hear again by the attempt itself. */
static bool is_put_off(enum reason why, int err)
{
	return why == REASON_OTHER_WAY && err && err != -ENOTCONN && err != -EPERM &&
	       err != -EOPNOTSUPP;
}

static bool go_after_way(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);
	enum reason why = take_lost_way(t);
	int err = 0;

	if (why == REASON_NONE)
		return false;
	mutex_acquire(&t->sock.config);
	if (tsock_is_ours(t)) {
		err = tsock_go_back(t, fd);
		if (!err)
			tsock_is_kernels(t, fd, why, STATS_BY_NEWS, "");
	}
	mutex_release(&t->sock.config);
	if (is_put_off(why, err)) {
		log_dbg("fd %d: the connection cannot go back yet: %s", fd,
			strerror(-err));
		tsock_lock(t);
		if (t->pcb && t->lost_way == REASON_NONE)
			t->lost_way = why;
		tsock_unlock(t);
	}
	return false;
}

/* The kernel delivers what is left of an orphan. */
static void orphan_goes_after_way(struct tsock *t)
{
	int err;

	(void)take_lost_way(t);
	mutex_acquire(&t->sock.config);
	err = tsock_orphan_goes_back(t);
	mutex_release(&t->sock.config);
	if (!err)
		tsock_orphan_is_over(t);
}

void tsock_go_after_way(struct tsock *t)
{
	tsock_await_answer(t);
	if (t->is_orphan) {
		orphan_goes_after_way(t);
		return;
	}
	visit(t, go_after_way);
	/* it has no number yet, or just now no twin, or the attempt has failed */
	tsock_lock(t);
	if (t->lost_way != REASON_NONE && tsock_is_ours(t)) {
		t->tried_ns = tsock_now(t);
		tsock_leave_later(t);
	}
	tsock_unlock(t);
}

/* With `config`, since the program may connect it once more. */
static bool is_gone(struct tsock *t)
{
	bool result;

	tsock_lock(t);
	result = t->is_gone;
	tsock_unlock(t);
	return result;
}

static bool unguard(struct fd_object *obj, int fd)
{
	struct tsock *t = tsock_of(obj);

	mutex_acquire(&t->sock.config);
	if (tsock_is_ours(t) && is_gone(t))
		tsock_unguard(t, fd);
	mutex_release(&t->sock.config);
	return false;
}

static void give_up(struct tsock *t)
{
	if (!t->is_orphan)
		visit(t, unguard);
	mutex_acquire(&t->sock.config);
	if (is_gone(t)) {
		/* the twin of an orphan is about to be closed */
		if (t->is_orphan)
			tsock_waiting_leaves(t);
		tsock_guard_is_over(t);
		tsock_give_up(t);
	}
	mutex_release(&t->sock.config);
	if (t->is_orphan)
		tsock_orphan_is_over(t);
}

static void tidy_one(struct tsock *t)
{
	bool has_signal, has_gone, has_lost_way;

	tsock_lock(t);
	has_signal = t->has_signal;
	has_gone = t->is_gone;
	has_lost_way = t->lost_way != REASON_NONE;
	tsock_unlock(t);
	if (has_signal)
		visit(t, send_signal);
	if (has_gone)
		give_up(t);
	else if (has_lost_way)
		tsock_go_after_way(t);
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
