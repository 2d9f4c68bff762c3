/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets at the end of their program: the kernel goes on with what is under way; what
 * cannot go back is brought to its end by us.
 */
#include "config.h"

#include "sock/kin.h"
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

/* Nobody here will accept what waits in a listener: it goes into the kernel's queue, which
 * another process or the next program may have, too, or is reset, as by a close. Without that
 * its peers would wait for ever. If the process goes on after all, so does the listener. */
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
		tcp_engines_visit(tsocks_waiting_leave, NULL);
}
