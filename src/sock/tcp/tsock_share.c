/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listeners that share their ports (tsock_share.h). */
#include "config.h"

#include "sock/tcp/tsock_share.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/pages.h"
#include "fd/fd_pool.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock/port_row.h"

/* A listener, under the lock but for what is fixed. */
struct tsock_sharer {
	struct list link;
	struct tsock *t;
	/* fixed */
	ino_t inode;
	struct flow_key key;
	bool is_ipv6;
	/* it hears IPv6 alone: nothing of what comes to the others could be its own */
	bool is_apart;
	/* the last look has found another process there */
	bool was_elsewhere;
	/* why it is about to be sent to the kernel, or REASON_NONE */
	enum reason leaves_for;
	/* of sharers.join_round: when it had its turn last */
	unsigned join_round;
};

static struct fd_pool pool = FD_POOL_INIT(struct tsock_sharer);

static struct {
	struct mutex lock;
	struct list all;
	/* how often one of a port has asked the others to join */
	unsigned join_round;
	/* how many there are, for who has not the lock */
	_Atomic unsigned cnt;
} sharers = { .lock = MUTEX_INIT(LOCK_RANK_TCP_SHARE),
	      .all = LIST_INIT(sharers.all) };

/* -- who they are -------------------------------------------------------------------- */

void tsock_share(struct tsock *t, int fd)
{
	struct user_name local;
	struct tsock_sharer *s;

	if (t->sharer || !sock_twin_option(fd, SOL_SOCKET, SO_REUSEPORT))
		return;
	s = fd_pool_get(&pool);
	if (!s)
		return;
	local = sock_twin_name(fd, false);
	*s = (struct tsock_sharer){
		.t = t,
		.inode = t->sock.obj.inode,
		.key = { .local = local.addr, .local_port = local.port },
		.is_ipv6 = t->sock.domain == AF_INET6,
		.is_apart = !ip_addr_is_v4(&local.addr) ||
			    (t->sock.domain == AF_INET6 &&
			     sock_twin_option(fd, IPPROTO_IPV6, IPV6_V6ONLY)),
	};
	t->sharer = s;
	mutex_acquire(&sharers.lock);
	list_push_back(&sharers.all, &s->link);
	atomic_fetch_add(&sharers.cnt, 1);
	mutex_release(&sharers.lock);
}

void tsock_unshare(struct tsock *t)
{
	if (!t->sharer)
		return;
	mutex_acquire(&sharers.lock);
	list_remove(&t->sharer->link);
	atomic_fetch_sub(&sharers.cnt, 1);
	mutex_release(&sharers.lock);
	fd_pool_put(&pool, t->sharer);
	t->sharer = NULL;
}

static bool is_beside(const struct tsock_sharer *s, const struct tsock *t)
{
	return s->t != t && s->key.local_port == t->sharer->key.local_port &&
	       !s->is_apart && !t->sharer->is_apart;
}

bool tsock_shares_with_ours(const struct tsock *t)
{
	struct tsock_sharer *s;
	bool result = false;

	if (!t->sharer)
		return false;
	mutex_acquire(&sharers.lock);
	LIST_FOR_EACH(s, &sharers.all, link)
		result |= is_beside(s, t) &&
			  tsock_phase(s->t) == TSOCK_LISTENER;
	mutex_release(&sharers.lock);
	return result;
}

/* -- who else has the port ------------------------------------------------------------- */

enum { TEXT_FIRST = 32 << 10, TEXT_LAST = 8 << 20 };

/* A reading may have caught a socket of ours that is half closed: gone from our list, and
 * not yet from the kernel's. */
enum { READ_AGAIN_NS = 1000000 };

/* Where the lines of listeners end, which come first. NULL: the text was too short to
 * tell. */
static char *end_of_listeners(char *text)
{
	struct port_row row;
	char *at = text, *next;

	for (; (next = strchr(at, '\n')); at = next + 1)
		if (port_row_parse(at, &row) && !row.listens)
			return at;
	return NULL;
}

/* Mapped: a handler that has interrupted malloc may wait for a connection. */
struct text {
	char *at;
	size_t size;
};

/* The listeners of a file that has the connections, too, or NULL. */
static struct text read_listeners(const char *path)
{
	for (size_t size = TEXT_FIRST; size <= TEXT_LAST; size *= 4) {
		char *text = pages_map(size), *end;
		ssize_t len = text ? file_peek(path, text, size - 1) : -ENOMEM;

		if (len >= 0) {
			text[len] = '\0';
			end = end_of_listeners(text);
			if (end)
				*end = '\0';
			if (end || (size_t)len < size - 1)
				return (struct text){ text, size };
		}
		if (text)
			munmap(text, size);
		if (len < 0)
			break;
	}
	return (struct text){ 0 };
}

struct listeners {
	struct text text[2];
};

static struct listeners read_all(void)
{
	return (struct listeners){ {
		read_listeners("/proc/thread-self/net/tcp"),
		read_listeners("/proc/thread-self/net/tcp6"),
	} };
}

static void free_all(struct listeners *l)
{
	for (int i = 0; i < 2; i++)
		if (l->text[i].at)
			munmap(l->text[i].at, l->text[i].size);
}

static bool is_known(ino_t inode) REQUIRES(sharers.lock)
{
	struct tsock_sharer *s;

	LIST_FOR_EACH(s, &sharers.all, link)
		if (s->inode == inode)
			return true;
	return false;
}

/* A socket of IPv6 gets what one of IPv4 with the same name leaves. */
static bool is_rival(const struct tsock_sharer *s, const struct port_row *row)
	REQUIRES(sharers.lock)
{
	if (!row->listens || !port_row_competes(row, &s->key) ||
	    is_known(row->inode))
		return false;
	return s->is_ipv6 || !row->is_ipv6 ||
	       !ip_addr_eq(&row->key.local, &s->key.local);
}

static bool is_elsewhere(const struct tsock_sharer *s,
			 const struct listeners *l) REQUIRES(sharers.lock)
{
	struct port_row row;

	for (int i = 0; i < 2; i++)
		for (const char *at = l->text[i].at; at && *at;
		     at = strchr(at, '\n'), at = at ? at + 1 : NULL)
			if (port_row_parse(at, &row) && is_rival(s, &row))
				return true;
	return false;
}

static bool is_elsewhere_now(struct tsock *t)
{
	struct listeners l = read_all();
	bool result;

	mutex_acquire(&sharers.lock);
	result = is_elsewhere(t->sharer, &l);
	mutex_release(&sharers.lock);
	free_all(&l);
	return result;
}

/* Its own process gives it to the kernel for good, or has done so. */
static bool is_kernels(struct tsock *t)
{
	int leaves_for = atomic_load(&t->leaves_for);

	if (tsock_phase(t) == TSOCK_LISTENER)
		return leaves_for != REASON_NONE && leaves_for != REASON_FORKS;
	return tsock_phase(t) == TSOCK_KERNELS;
}

static bool has_kernels(const struct tsock *t)
{
	struct tsock_sharer *s;
	bool result = false;

	mutex_acquire(&sharers.lock);
	LIST_FOR_EACH(s, &sharers.all, link)
		result |= is_beside(s, t) && is_kernels(s->t);
	mutex_release(&sharers.lock);
	return result;
}

enum reason tsock_share_reason(struct tsock *t)
{
	if (has_kernels(t))
		return REASON_GROUP;
	if (!is_elsewhere_now(t))
		return REASON_NONE;
	inside_nap(READ_AGAIN_NS);
	return is_elsewhere_now(t) ? REASON_PORT_SHARED : REASON_NONE;
}

/* -- together ---------------------------------------------------------------------------- */

/* One that listens without us and has not had its turn in this round, with a reference, or
 * NULL. What is about to be released stays where it is. */
static struct tsock *next_to_join(__be16 port, unsigned round)
{
	struct tsock *found = NULL;
	struct tsock_sharer *s;

	mutex_acquire(&sharers.lock);
	LIST_FOR_EACH(s, &sharers.all, link) {
		if (s->key.local_port != port || s->is_apart || s->join_round == round ||
		    tsock_phase(s->t) != TSOCK_LISTENING)
			continue;
		s->join_round = round;
		if (fd_object_try_hold(&s->t->sock.obj)) {
			found = s->t;
			break;
		}
	}
	mutex_release(&sharers.lock);
	return found;
}

static unsigned begin_round(void)
{
	unsigned round;

	mutex_acquire(&sharers.lock);
	round = ++sharers.join_round;
	mutex_release(&sharers.lock);
	return round;
}

void tsock_share_joins(struct tsock *t)
{
	struct tsock *other;
	unsigned round;
	__be16 port = 0;

	mutex_acquire(&t->sock.config);
	if (t->sharer && tsock_phase(t) == TSOCK_LISTENER)
		port = t->sharer->key.local_port;
	mutex_release(&t->sock.config);
	if (!port)
		return;
	round = begin_round();
	while ((other = next_to_join(port, round))) {
		tsock_visit(other, tsock_join_visited);
		fd_object_put(&other->sock.obj);
	}
}

/* SYNs are the kernel's from now on. The rest is done by who accepts what has come before
 * (tsock_leave_listening); until then the twin's connections are accepted, too. Mostly without
 * its `config`: who has that may be about to send away the one whose we have. So one that is
 * only about to join stays as it is, and looks by itself (tsock_share_joined). */
static void send_away(struct tsock *t, enum reason why)
{
	if (tsock_phase(t) != TSOCK_LISTENER)
		return;
	tsock_lock(t);
	if (t->port) {
		t->port->is_kernels = true;
		atomic_store(&t->leaves_by, STATS_BY_PORT);
		atomic_store(&t->leaves_for, why);
	}
	tsock_unlock(t);
}

void tsock_share_joined(struct tsock *t)
{
	if (t->sharer && has_kernels(t))
		send_away(t, REASON_GROUP);
}

/* The next one that shall leave, with a reference, and why; or NULL. */
static struct tsock *next_to_leave(enum reason *why_out)
{
	struct tsock *found = NULL;
	struct tsock_sharer *s;

	mutex_acquire(&sharers.lock);
	LIST_FOR_EACH(s, &sharers.all, link) {
		if (s->leaves_for == REASON_NONE)
			continue;
		*why_out = s->leaves_for;
		s->leaves_for = REASON_NONE;
		/* what is about to be released needs no kernel any more */
		if (fd_object_try_hold(&s->t->sock.obj)) {
			found = s->t;
			break;
		}
	}
	mutex_release(&sharers.lock);
	return found;
}

/* Not under our lock: what is left to do after an unlock may release another listener. */
static void send_all_away(void)
{
	enum reason why;
	struct tsock *t;

	while ((t = next_to_leave(&why))) {
		send_away(t, why);
		fd_object_put(&t->sock.obj);
	}
}

void tsock_share_leaves(struct tsock *t)
{
	struct tsock_sharer *s;

	if (!t->sharer)
		return;
	mutex_acquire(&sharers.lock);
	LIST_FOR_EACH(s, &sharers.all, link)
		if (is_beside(s, t))
			s->leaves_for = REASON_GROUP;
	mutex_release(&sharers.lock);
	send_all_away();
}

/* Those of one name see the same, so that all of them leave. */
void tsocks_look_at_ports(void)
{
	struct listeners l;
	struct tsock_sharer *s;

	if (!tsocks_share_ports())
		return;
	l = read_all();
	mutex_acquire(&sharers.lock);
	LIST_FOR_EACH(s, &sharers.all, link) {
		bool is_seen = tsock_phase(s->t) == TSOCK_LISTENER &&
			       is_elsewhere(s, &l);

		if (is_seen && s->was_elsewhere)
			s->leaves_for = REASON_PORT_SHARED;
		s->was_elsewhere = is_seen;
	}
	mutex_release(&sharers.lock);
	free_all(&l);
	send_all_away();
}

bool tsocks_share_ports(void)
{
	struct tsock_sharer *s;
	bool result = false;

	if (LIKELY(!atomic_load_explicit(&sharers.cnt, memory_order_relaxed)))
		return false;
	mutex_acquire(&sharers.lock);
	LIST_FOR_EACH(s, &sharers.all, link)
		result |= tsock_phase(s->t) == TSOCK_LISTENER;
	mutex_release(&sharers.lock);
	return result;
}

/* The child's sockets are its heirs', and the parent's memory is left alone. */
void tsocks_share_forked(void)
{
	fd_pool_forked(&pool);
	mutex_init(&sharers.lock, LOCK_RANK_TCP_SHARE);
	list_init(&sharers.all);
	atomic_store(&sharers.cnt, 0);
}
