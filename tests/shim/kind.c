/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A kind of socket for tests, linked into libvma-test.so alone. With
 * SHIM_TEST_KIND=1 every TCP and UDP socket gets an object of this kind, which
 * does the waiting itself, as an accelerated socket does, and moves the data by
 * its kernel twin: so the fd table, the bracket, waits, signals and fork are
 * exercised by any program, and its results must be libc's.
 *
 * It exports counters, by which a test proves which way it went.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "core/runtime.h"
#include "fd/fd_internal.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "fd/fd_wait.h"
#include "os/file.h"
#include "os/thread.h"
#include "sock-redirect/call.h"

EXPORT unsigned long vma_test_entry_cnt(const char *name);
EXPORT unsigned long vma_test_op_cnt(const char *name);
EXPORT int vma_test_object_cnt(void);
EXPORT int vma_test_depth(void);

struct mirror {
	struct fd_object obj;
	/* The twin under a number of our own: calls go on after the program has
	 * closed its numbers. */
	_Atomic int twin;
	bool is_stream;
};

static struct fd_pool pool = FD_POOL_INIT(struct mirror);

static struct mirror *mirror_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct mirror, obj);
}

static int twin_of(struct fd_object *obj)
{
	return atomic_load(&mirror_of(obj)->twin);
}

static bool is_blocking(int fd, int msg_flags)
{
	return !(msg_flags & MSG_DONTWAIT) &&
	       !(real.fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* SO_RCVTIMEO or SO_SNDTIMEO; false when there is none. */
static bool get_timeout(int fd, int option, struct timespec *timeout)
{
	struct timeval tv = { 0 };
	socklen_t len = sizeof(tv);

	if (real.getsockopt(fd, SOL_SOCKET, option, &tv, &len) != 0 ||
	    (tv.tv_sec == 0 && tv.tv_usec == 0))
		return false;
	timeout->tv_sec = tv.tv_sec;
	timeout->tv_nsec = tv.tv_usec * 1000L;
	return true;
}

/* Until the twin is ready. 0, or what the op is to return. A socket with a
 * timeout never restarts, as in Linux. */
static long wait_for(struct fd_object *obj, int fd, short events,
		     const struct signals_mark *mark)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	struct timespec timeout;
	bool is_timed = get_timeout(
		fd, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO, &timeout);
	int n = fd_wait(obj, &poll_fd, 1, is_timed ? &timeout : NULL, mark,
			!is_timed, NULL, NULL);

	if (n == -ECANCELED)
		return FD_ABANDONED;
	if (n == 0)
		return -EAGAIN;
	return n < 0 ? n : 0;
}

/* Tries `attempt`, an expression that never blocks, until it does something,
 * waiting for `events` in between if the socket blocks. */
#define UNTIL_READY(obj, fd, flags, events, attempt)                       \
	({                                                                 \
		struct signals_mark mark_ = signals_mark();                \
		bool blocks_ = is_blocking(fd, flags);                     \
		long n_, wait_ = 0;                                        \
		for (;;) {                                                 \
			n_ = (attempt);                                    \
			if (n_ >= 0)                                       \
				break;                                     \
			n_ = -errno;                                       \
			if (n_ != -EAGAIN || !blocks_)                     \
				break;                                     \
			wait_ = wait_for(obj, fd, events, &mark_);         \
			if (wait_) {                                       \
				n_ = wait_;                                \
				break;                                     \
			}                                                  \
		}                                                          \
		n_;                                                        \
	})

/* Flags whose blocking is more than waiting for the first byte. */
static bool is_left_to_libc(int flags)
{
	return flags & (MSG_WAITALL | MSG_ERRQUEUE | MSG_OOB);
}

static long mirror_recvfrom(struct fd_object *obj, int fd UNUSED, void *buf,
			    size_t len, int flags, struct sockaddr *addr,
			    socklen_t *addr_len)
{
	if (is_left_to_libc(flags))
		return FD_PASS;
	return UNTIL_READY(obj, twin_of(obj), flags, POLLIN,
			   real.recvfrom(twin_of(obj), buf, len, flags | MSG_DONTWAIT,
					 addr, addr_len));
}

static long mirror_recv(struct fd_object *obj, int fd UNUSED, void *buf, size_t len,
			int flags)
{
	if (is_left_to_libc(flags))
		return FD_PASS;
	return UNTIL_READY(obj, twin_of(obj), flags, POLLIN,
			   real.recv(twin_of(obj), buf, len, flags | MSG_DONTWAIT));
}

static long mirror_read(struct fd_object *obj, int fd UNUSED, void *buf, size_t len)
{
	if (len == 0)
		return FD_PASS; /* read returns at once, recv may not */
	return UNTIL_READY(obj, twin_of(obj), 0, POLLIN,
			   real.recv(twin_of(obj), buf, len, MSG_DONTWAIT));
}

static long mirror_recvmsg(struct fd_object *obj, int fd UNUSED, struct msghdr *msg,
			   int flags)
{
	if (is_left_to_libc(flags))
		return FD_PASS;
	return UNTIL_READY(obj, twin_of(obj), flags, POLLIN,
			   real.recvmsg(twin_of(obj), msg, flags | MSG_DONTWAIT));
}

/* A blocking send of a stream waits until all is out: libc's business. */
static long mirror_send(struct fd_object *obj, int fd UNUSED, const void *buf,
			size_t len, int flags)
{
	if (mirror_of(obj)->is_stream)
		return FD_PASS;
	return UNTIL_READY(obj, twin_of(obj), flags, POLLOUT,
			   real.send(twin_of(obj), buf, len, flags | MSG_DONTWAIT));
}

static struct fd_ops ops;

/* An object with a reference for the fd, or NULL. */
static struct fd_object *make_object(int fd, int type)
{
	struct mirror *mirror = fd_pool_get(&pool);

	if (!mirror)
		return NULL;
	mirror->is_stream = type == SOCK_STREAM;
	if (fd_internal_copy(fd, &mirror->twin) != 0) {
		fd_pool_put(&pool, mirror);
		return NULL;
	}
	fd_object_init(&mirror->obj, &ops, file_identify(fd).ino);
	return &mirror->obj;
}

/* The connection is served by an object like its listener's. */
static long adopt_child(long child)
{
	struct fd_object *obj;

	if (child < 0)
		return child;
	fd_table_forget((int)child);
	obj = make_object((int)child, SOCK_STREAM);
	if (obj && fd_table_install((int)child, obj) != 0)
		log_dbg("no memory for fd %ld", child);
	fd_object_put(obj);
	return child;
}

/* accept() has no flag against waiting: poll first, and if another thread was
 * faster, again. */
static long try_accept(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	if (real.poll(&poll_fd, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return real.accept4(fd, addr, len, flags);
}

static long mirror_accept4(struct fd_object *obj, int fd UNUSED, struct sockaddr *addr,
			   socklen_t *len, int flags)
{
	int is_listening = 0;
	socklen_t size = sizeof(is_listening);

	if (real.getsockopt(twin_of(obj), SOL_SOCKET, SO_ACCEPTCONN, &is_listening,
			    &size) != 0 ||
	    !is_listening)
		return FD_PASS;
	return adopt_child(UNTIL_READY(obj, twin_of(obj), 0, POLLIN,
				       try_accept(twin_of(obj), addr, len, flags)));
}

static long mirror_accept(struct fd_object *obj, int fd, struct sockaddr *addr,
			  socklen_t *len)
{
	return mirror_accept4(obj, fd, addr, len, 0);
}

static void mirror_release(struct fd_object *obj)
{
	fd_internal_close(&mirror_of(obj)->twin);
	fd_pool_put(&pool, mirror_of(obj));
}

static void mirror_forked(struct fd_object *obj UNUSED)
{
	fd_pool_forked(&pool);
}

static struct fd_ops ops = {
	.name = "mirror",
	.recv = mirror_recv,
	.recvfrom = mirror_recvfrom,
	.read = mirror_read,
	.recvmsg = mirror_recvmsg,
	.send = mirror_send,
	.accept = mirror_accept,
	.accept4 = mirror_accept4,
	.release = mirror_release,
	.forked = mirror_forked,
};

static struct fd_object *make_mirror(int fd, int domain UNUSED, int type,
				     int protocol UNUSED,
				     int *reason_out UNUSED)
{
	return make_object(fd, type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC));
}

static bool is_any(int type UNUSED)
{
	return true;
}

__attribute__((constructor(102))) static void offer(void)
{
	const char *value = getenv("SHIM_TEST_KIND");

	fd_ops_fill(&ops);
	if (value && strcmp(value, "1") == 0)
		runtime_set_sockets(make_mirror, is_any);
}

static unsigned long count_of(const _Atomic unsigned long *counters,
			      const char *name)
{
	static const char *const names[] = {
#define CALL_NAME(name) #name,
#include "os/calls.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], name) == 0)
			return atomic_load(&counters[i]);
	return 0;
}

/* How often the program came through the wrapper of that name. */
unsigned long vma_test_entry_cnt(const char *name)
{
	return count_of(call_entries, name);
}

/* How often an object of this kind was asked. */
unsigned long vma_test_op_cnt(const char *name)
{
	return count_of(call_ops, name);
}

/* Objects of this kind in use. */
int vma_test_object_cnt(void)
{
	return fd_pool_used_cnt(&pool);
}

/* Open brackets of the calling thread. */
int vma_test_depth(void)
{
	return os_thread.depth;
}
