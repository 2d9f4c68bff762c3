/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Twins that guard their connections (tcp_twin.h), and what they hear. The peer's segments
 * may come by an interface that we do not drive: its routes have changed, or were never
 * those that we know of. The guard drops them, and the kernel counts what it drops. A
 * connection that has fallen silent while its guard hears the peer goes back to the kernel,
 * which takes segments by any interface.
 */
#include "config.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "net/net.h"
#include "sock/kin.h"
#include "sock/tcp/tcp_twin.h"
#include "sock/tcp/tsock_priv.h"

/* So many guards are asked in a second, each a system call. */
enum { AT_ONCE = 32 };

/* Nothing of the peer has come to us for so long. */
#define SILENCE_NS NS_PER_SEC

static void set_keepalive(int fd, int value)
{
	(void)!real.setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof(value));
}

/* The kernel would send a guard's probes itself, with its own numbers, and reset the peer
 * whose answers it drops. Its first would be due in a second or later. */
void tsock_hide_keepalive(struct tsock *t, int fd)
{
	bool is_set = t->may_keep_alive &&
		      sock_twin_option(fd, SOL_SOCKET, SO_KEEPALIVE);

	atomic_store(&t->hides_keepalive, is_set);
	if (is_set)
		set_keepalive(fd, 0);
}

void tsock_show_keepalive(struct tsock *t, int fd)
{
	if (!atomic_load(&t->hides_keepalive))
		return;
	set_keepalive(fd, 1);
	atomic_store(&t->hides_keepalive, false);
}

struct tcp_twin_socket tsock_twin(const struct tsock *t, int fd)
{
	return (struct tcp_twin_socket){
		.fd = fd,
		.domain = t->sock.domain,
		.is_guard = t->is_guarded,
		.is_bound = t->is_guarded && t->is_guard_bound,
		/* another process may have set it */
		.reuse_addr = kin_is_shared_since(t->fork_cnt) ? -1 : t->reuse_addr,
	};
}

/* No frame of the local device of tests comes another way. */
int tsock_choose_end(struct tsock *t, int fd, const struct flow_key *key, bool is_bound)
{
	struct tcp_twin_socket twin = tsock_twin(t, fd);
	int err;

	if (sock_params.listens_early)
		return -EOPNOTSUPP;
	tsock_hide_keepalive(t, fd);
	err = tcp_twin_guard(&twin, key, is_bound);
	t->is_guard_bound = twin.is_bound;
	if (err) {
		tsock_show_keepalive(t, fd);
		log_dbg("fd %d: the twin cannot guard the connection: %s", fd,
			strerror(-err));
	}
	return err;
}

void tsock_give_end_up(struct tsock *t, int fd)
{
	tcp_twin_unguard(fd, NULL);
	tsock_show_keepalive(t, fd);
}

void tsock_guard(struct tsock *t, int fd, bool is_bound)
{
	if (!t->is_guarded && tsock_choose_end(t, fd, &t->key, is_bound) == 0)
		tsock_is_guarded(t);
}

void tsock_is_guarded(struct tsock *t)
{
	t->is_guarded = true;
	tsock_lock(t);
	list_push_back(&t->engine->guarded, &t->by_guard);
	t->engine->guard_cnt++;
	tsock_unlock(t);
}

void tsock_guard_is_over(struct tsock *t)
{
	if (!t->is_guarded)
		return;
	t->is_guarded = false;
	tsock_lock(t);
	list_remove(&t->by_guard);
	t->engine->guard_cnt--;
	tsock_unlock(t);
}

void tsock_unguard(struct tsock *t, int fd)
{
	if (t->is_guarded && fd >= 0)
		tsock_give_end_up(t, fd);
	tsock_guard_is_over(t);
}

void tsock_unguard_bound(struct tsock *t, int fd)
{
	if (t->is_guarded) {
		tcp_twin_unguard(fd, &t->key);
		tsock_show_keepalive(t, fd);
	}
	tsock_guard_is_over(t);
}

/* -- what they hear ---------------------------------------------------------------- */

static uint32_t drops_of(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	if (real.getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0)
		return 0;
	return info[SK_MEMINFO_DROPS];
}

static bool is_silent_locked(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	struct tcp_pcb_info info;

	if (!t->pcb || tsock_is_moving(t))
		return false;
	tcp_get_info(t->pcb, &info);
	return info.timeouts || tsock_now(t) - info.last_rcvd_ns > SILENCE_NS;
}

static void ask(struct tsock *t)
{
	uint32_t drops;
	int fd;

	mutex_acquire(&t->sock.config);
	fd = t->is_guarded ? tsock_fd(t) : -1;
	drops = fd >= 0 ? drops_of(fd) : 0;
	/* the number may have become another's meanwhile */
	if (drops > t->guard_drops && tsock_fd(t) == fd) {
		t->guard_drops = drops;
		tsock_lock(t);
		if (is_silent_locked(t))
			tsock_lost_way_locked(t, REASON_OTHER_WAY);
		tsock_unlock(t);
	}
	mutex_release(&t->sock.config);
}

/* While something moves all are asked in turn, and once more after that. */
static unsigned how_many(struct tcp_engine *engine)
{
	const struct tcp_counts *now = tcp_counts(engine->table);
	uint64_t moved = now->in_segments + now->out_segments;
	unsigned cnt;

	if (moved != engine->guard_moved)
		engine->guards_left = engine->guard_cnt;
	engine->guard_moved = moved;
	cnt = MIN(engine->guards_left, (unsigned)AT_ONCE);
	engine->guards_left -= cnt;
	return cnt;
}

/* The one that was asked the longest time ago, with a reference; NULL: it is about to be
 * released. */
static struct tsock *next_locked(struct tcp_engine *engine)
{
	struct tsock *t = LIST_ENTRY(engine->guarded.next, struct tsock, by_guard);

	list_remove(&t->by_guard);
	list_push_back(&engine->guarded, &t->by_guard);
	return fd_object_try_hold(&t->sock.obj) ? t : NULL;
}

static void ask_some(struct tcp_engine *engine, void *ctx UNUSED)
{
	struct tsock *t[AT_ONCE];
	unsigned cnt;

	stack_lock(engine->stack);
	cnt = MIN(how_many(engine), engine->guard_cnt);
	for (unsigned i = 0; i < cnt; i++)
		t[i] = next_locked(engine);
	stack_unlock(engine->stack);
	for (unsigned i = 0; i < cnt; i++)
		if (t[i]) {
			ask(t[i]);
			fd_object_put(&t[i]->sock.obj);
		}
}

void tsocks_ask_guards(void)
{
	tcp_engines_visit(ask_some, NULL);
}
