/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports that another process has, too, or a socket of this one that the kernel serves
 * for good. Linux shares the datagrams out, or gives them to the newest; our rules would
 * bring us all of them. So such a socket is the kernel's. Only a socket that allows others
 * on its port can be in this place. We look for others when one gets its name, and once a
 * second, since they may come later.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fd/fd_visit.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock/port_row.h"
#include "sock/udp/udp_priv.h"

/* A line has 128 bytes, 171 for IPv6. */
enum { TEXT_FIRST = 64 << 10, TEXT_LAST = 64 << 20 };

/* Inodes of our sockets, in ascending order when they are all there. */
struct inode_list {
	ino_t *at;
	size_t cnt, room;
};

static struct {
	struct mutex lock;

	/* under the lock: sockets of others, as of read_ns; 0: never */
	struct port_row *rows;
	size_t cnt, room;
	uint64_t read_ns;
	struct inode_list ours;
	/* who wants to know, and is not attached yet */
	const struct sock *asking;

	/* a socket that allows it has been attached */
	_Atomic bool is_wanted;
} ports = { .lock = MUTEX_INIT(LOCK_RANK_UDP_PORTS) };

/* Room for one more element of an array; false without memory. */
static bool make_room(void **array, size_t cnt, size_t *room, size_t size)
{
	size_t wanted = MAX(2 * *room, (size_t)64);
	void *bigger;

	if (cnt < *room)
		return true;
	bigger = realloc(*array, wanted * size);
	if (!bigger)
		return false;
	*array = bigger;
	*room = wanted;
	return true;
}

/* One that the kernel serves for good loses its datagrams to our rules, just as one of another
 * process does; but none that hears no IPv4. */
static bool is_kernels(const struct sock *s, int fd)
{
	return sock_rx_holds(s) & (SOCK_RX_LEFT | SOCK_RX_REFUSED) &&
	       !(s->domain == AF_INET6 && sock_twin_option(fd, IPPROTO_IPV6, IPV6_V6ONLY));
}

/* Called by fd_visit() with the lock. */
static bool note_ours(struct fd_object *obj, int fd)
{
	struct inode_list *ours = &ports.ours;
	const struct sock *s = sock_of(obj);

	if (s != ports.asking && is_kernels(s, fd))
		return false;
	if (make_room((void **)&ours->at, ours->cnt, &ours->room,
		      sizeof(*ours->at)))
		ours->at[ours->cnt++] = obj->inode;
	return false;
}

static int compare_inodes(const void *a, const void *b)
{
	ino_t x = *(const ino_t *)a, y = *(const ino_t *)b;

	return x < y ? -1 : x > y;
}

static void note_row(const char *line) REQUIRES(ports.lock)
{
	struct port_row row;

	if (!port_row_parse(line, &row) ||
	    bsearch(&row.inode, ports.ours.at, ports.ours.cnt,
		    sizeof(row.inode), compare_inodes) ||
	    !make_room((void **)&ports.rows, ports.cnt, &ports.room,
		       sizeof(row)))
		return;
	ports.rows[ports.cnt++] = row;
}

/* All of a file whose size nobody knows, with a NUL, or NULL. */
static char *read_text(const char *path)
{
	for (size_t size = TEXT_FIRST; size <= TEXT_LAST; size *= 4) {
		char *text = malloc(size);
		ssize_t len = text ? file_peek(path, text, size - 1) : -ENOMEM;

		if (len >= 0 && (size_t)len < size - 1) {
			text[len] = '\0';
			return text;
		}
		free(text);
		if (len < 0)
			break;
	}
	return NULL;
}

/* Takes the text. */
static void note_rows(char *text) REQUIRES(ports.lock)
{
	char *rest = text, *line;

	while (rest && (line = strsep(&rest, "\n")))
		note_row(line);
	free(text);
}

/* Our sockets are noted before and after the files are read. One that is closed or made
 * in between would otherwise look like another process's. */
static void read_ports(const struct sock *asking) REQUIRES(ports.lock)
{
	char *text[2];

	ports.asking = asking;
	ports.ours.cnt = 0;
	fd_visit(&udp_ops, note_ours);
	text[0] = read_text("/proc/thread-self/net/udp");
	text[1] = read_text("/proc/thread-self/net/udp6");
	fd_visit(&udp_ops, note_ours);
	qsort(ports.ours.at, ports.ours.cnt, sizeof(*ports.ours.at),
	      compare_inodes);
	ports.cnt = 0;
	note_rows(text[0]);
	note_rows(text[1]);
	ports.read_ns = clock_monotonic_ns();
}

static bool is_elsewhere(const struct flow_key *key) REQUIRES(ports.lock)
{
	for (size_t i = 0; i < ports.cnt; i++)
		if (port_row_competes(&ports.rows[i], key))
			return true;
	return false;
}

/* A reading may be old, or have caught a socket of ours that is half closed: gone
 * from our table, and not yet from the kernel's. */
enum { READ_AGAIN_NS = 1000000 };

bool udp_port_is_elsewhere(const struct sock *s, const struct flow_key *key)
{
	bool result;

	atomic_store(&ports.is_wanted, true);
	mutex_acquire(&ports.lock);
	/* Many sockets that are bound at once look at one reading. */
	if (!ports.read_ns ||
	    clock_monotonic_ns() - ports.read_ns > NS_PER_SEC)
		read_ports(s);
	result = is_elsewhere(key);
	if (result) {
		inside_nap(READ_AGAIN_NS);
		read_ports(s);
		result = is_elsewhere(key);
	}
	mutex_release(&ports.lock);
	return result;
}

/* Leaves at the second look in a row that finds another one. */
static bool leave_if_shared(struct fd_object *obj, int fd)
{
	struct udp *u = udp_of(obj);
	bool is_seen = false, is_shared;

	mutex_acquire(&u->sock.config);
	if (!u->sock.has_left && attachment_is_made(&u->sock.att) && u->sock.set.may_share) {
		mutex_acquire(&ports.lock);
		is_seen = is_elsewhere(&u->sock.end.key);
		mutex_release(&ports.lock);
	}
	is_shared = is_seen && u->was_port_elsewhere;
	u->was_port_elsewhere = is_seen;
	mutex_release(&u->sock.config);
	if (is_shared)
		sock_leave(&u->sock.obj, fd, REASON_PORT_SHARED, STATS_BY_PORT);
	return false;
}

bool udp_looks_at_ports(void)
{
	return atomic_load_explicit(&ports.is_wanted, memory_order_relaxed);
}

void udp_look_at_ports(void)
{
	if (!udp_looks_at_ports())
		return;
	mutex_acquire(&ports.lock);
	read_ports(NULL);
	mutex_release(&ports.lock);
	fd_visit(&udp_ops, leave_if_shared);
}

void udp_ports_forked(void)
{
	mutex_init(&ports.lock, LOCK_RANK_UDP_PORTS);
	ports.read_ns = 0;
	atomic_store(&ports.is_wanted, false);
}
