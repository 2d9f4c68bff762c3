/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that processes share since a fork (kin.h). */
#include "config.h"

#include "sock/kin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/syscall_raw.h"
#include "fd/fd_internal.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "fd/fd_visit.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock/sock.h"
#include "sock/tcp_right.h"
#include "sock/user_msg.h"

/* What a child asks for. It had a copy of the parent's memory, so it knows the object by
 * its address there; the parent believes it only what its own table says, too. */
struct request {
	uint64_t object; /* 0: no request, but that somebody has a socket without an heir */
	uint64_t inode; /* 0: a set of epoll */
	int64_t fd; /* under which the parent had it at the fork */
};

/* A message with one descriptor. */
struct message {
	struct msghdr head;
	struct iovec iov;
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
};

static void message_init(struct message *m, struct request *request)
{
	memset(m, 0, sizeof(*m));
	m->iov = (struct iovec){ request, sizeof(*request) };
	m->head = (struct msghdr){
		.msg_iov = &m->iov,
		.msg_iovlen = 1,
		.msg_control = &m->control,
		.msg_controllen = sizeof(m->control),
	};
}

/* -- channels ------------------------------------------------------------------------ */

enum { CHANNELS_MAX = 256 };

/* The parent's end. It is an object, so that our thread can hear of it. */
struct channel {
	struct fd_object obj;
	/* -1: nobody has it */
	_Atomic int fd;
	/* the fork that made it */
	_Atomic uint64_t number;
};

static struct {
	_Atomic uint64_t fork_cnt;
	/* What this fork or an earlier one has shared, somebody may have of whom we do not
	 * hear; 0: none has. */
	_Atomic uint64_t unheard;
	struct channel channels[CHANNELS_MAX];
	/* channels behind it were never used */
	_Atomic unsigned channel_cnt;
	/* The child's end, which both have for the time of a fork; -1. Forks come one
	 * after the other. */
	int childs_end;
	enum kin_use use_of_sets;
} kin = { .childs_end = -1 };

/* One that is not used, and that our thread does not look at either. */
static struct channel *free_channel(void)
{
	unsigned cnt = atomic_load(&kin.channel_cnt);

	for (unsigned i = 0; i < cnt; i++)
		if (atomic_load(&kin.channels[i].obj.refs) == 0)
			return &kin.channels[i];
	if (cnt == CHANNELS_MAX)
		return NULL;
	atomic_store(&kin.channels[cnt].fd, -1);
	atomic_store(&kin.channel_cnt, cnt + 1);
	return &kin.channels[cnt];
}

static struct fd_ops channel_ops;

uint64_t kin_fork_cnt(void)
{
	return atomic_load_explicit(&kin.fork_cnt, memory_order_relaxed);
}

bool kin_is_shared_since(uint64_t fork_cnt)
{
	unsigned cnt = atomic_load(&kin.channel_cnt);

	if (LIKELY(fork_cnt == kin_fork_cnt()))
		return false;
	for (unsigned i = 0; i < cnt; i++)
		if (atomic_load(&kin.channels[i].fd) >= 0 &&
		    atomic_load(&kin.channels[i].number) > fork_cnt)
			return true;
	return false;
}

bool kin_is_shared(void)
{
	return kin_is_shared_since(0);
}

/* The count first, which a fork raises when its channel is there; and what a channel has told
 * after whether it has ended. */
bool kin_may_be_shared(uint64_t first, uint64_t last)
{
	return atomic_load(&kin.fork_cnt) == last || kin_is_shared_since(first) ||
	       atomic_load(&kin.unheard) > first;
}

/* Our thread, and who forks. */
static void note_unheard(uint64_t number)
{
	uint64_t had = atomic_load(&kin.unheard);

	while (had < number &&
	       !atomic_compare_exchange_weak(&kin.unheard, &had, number))
		;
}

/* It exists before there is a child: what another thread closes meanwhile is shared. */
static int open_channel(struct channel *c)
{
	int ends[2], err;

	if (real.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	fd_table_forget(ends[0]);
	fd_table_forget(ends[1]);
	atomic_store(&c->number, kin_fork_cnt() + 1);
	err = fd_internal_adopt(ends[0], &c->fd);
	if (err) {
		inside_close(ends[0]);
		inside_close(ends[1]);
		return err;
	}
	atomic_fetch_add(&kin.fork_cnt, 1);
	kin.childs_end = ends[1];
	fd_object_init(&c->obj, &channel_ops, 0);
	return 0;
}

static bool give_up_own_heirs(void);

enum kin_use kin_use_of_sets(void)
{
	return kin.use_of_sets;
}

/* Each child takes a descriptor of the program's for as long as it lives, which on the kernel
 * it would not. Where only changes are asked for, a child can do without. */
static bool may_take_descriptor(enum kin_use sets)
{
	enum { SHARE = 16 };
	struct rlimit limit;
	unsigned taken = 0;

	if (sets != KIN_CHANGES)
		return true;
	for (unsigned i = 0; i < atomic_load(&kin.channel_cnt); i++)
		taken += atomic_load(&kin.channels[i].fd) >= 0;
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && taken < limit.rlim_cur / SHARE;
}

bool kin_before_fork(enum kin_use sets)
{
	struct channel *c = NULL;

	kin.use_of_sets = sets;
	/* without a network there is no thread of ours that could answer */
	if (sock_params.net_if_made() && may_take_descriptor(sets) && give_up_own_heirs())
		c = free_channel();
	if (!c || open_channel(c) != 0) {
		note_unheard(kin_fork_cnt() + 1);
		return false;
	}
	sock_params.watch_twin(atomic_load(&c->fd), &c->obj);
	return true;
}

void kin_after_fork(void)
{
	if (kin.childs_end >= 0)
		inside_close(kin.childs_end);
	kin.childs_end = -1;
}

static void end_channel(struct channel *c)
{
	fd_internal_close(&c->fd);
	fd_object_put(&c->obj);
}

void kin_stop(void)
{
	unsigned cnt = atomic_load(&kin.channel_cnt);

	note_unheard(kin_fork_cnt());
	for (unsigned i = 0; i < cnt; i++)
		if (atomic_load(&kin.channels[i].fd) >= 0)
			end_channel(&kin.channels[i]);
}

/* -- what the parent does for its children ------------------------------------------- */

static bool leave(struct fd_object *obj, int fd)
{
	obj->ops->leave(obj, fd, REASON_FORKS, STATS_BY_FORK);
	return true;
}

/* With a reference, or NULL. */
static struct fd_object *wanted_at(const struct request *r, int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_object *obj = entry ? fd_table_get_at(entry) : NULL;

	if (obj && (uint64_t)(uintptr_t)obj == r->object &&
	    obj->inode == r->inode && !obj->ops->is_internal)
		return obj;
	fd_object_put(obj);
	return NULL;
}

/* What is closed here has gone to the kernel before (fd_ops.before_close). */
static void give_to_kernel(const struct request *r)
{
	int fd = r->fd >= 0 && r->fd < FD_TABLE_LIMIT ? (int)r->fd : -1;
	struct fd_object *obj = fd >= 0 ? wanted_at(r, fd) : NULL;

	if (!obj)
		for (fd = fd_table_next(0); fd >= 0 && !(obj = wanted_at(r, fd));
		     fd = fd_table_next((unsigned)fd + 1))
			;
	if (obj)
		(void)!fd_visit_at(fd, obj, leave);
	fd_object_put(obj);
}

/* The way for the answer, or -1. Of several, for which there may be room, it is the first. */
static int fd_in(struct message *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(&m->head);
	int fds[sizeof(m->control) / sizeof(int)];
	size_t cnt;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -1;
	cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(*fds);
	memcpy(fds, CMSG_DATA(c), cnt * sizeof(*fds));
	for (size_t i = 0; i < cnt; i++)
		fd_table_forget(fds[i]);
	for (size_t i = 1; i < cnt; i++)
		inside_close(fds[i]);
	return cnt ? fds[0] : -1;
}

/* The answer is one byte. A child that is gone does not need it. */
static void answer(int fd)
{
	struct iovec iov = { (char[]){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	(void)!inside_sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	inside_close(fd);
}

/* 0: there is no more of it for now; 1: one was done; or the channel has ended. */
static long serve_one(const struct channel *c, int fd)
{
	struct request request;
	struct message m;
	int way;
	long n;

	message_init(&m, &request);
	n = inside_recvmsg(fd, &m.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	/* without its end, which the program has closed, nothing is heard either */
	if (n < 0)
		note_unheard(atomic_load(&c->number));
	if (n <= 0)
		return -EPIPE;
	way = fd_in(&m);
	if (n == sizeof(request) && !request.object)
		note_unheard(atomic_load(&c->number));
	else if (n == sizeof(request))
		give_to_kernel(&request);
	/* there may have been no room for it, here or there (ask_in_turn) */
	if (way >= 0)
		answer(way);
	return 1;
}

/* By our thread. What one child asks for is bounded by what it has. */
static void channel_event(struct fd_object *obj, uint32_t events UNUSED)
{
	struct channel *c = CONTAINER_OF(obj, struct channel, obj);
	int fd = atomic_load(&c->fd);
	long n = fd < 0 ? 0 : 1;

	while (n > 0)
		n = serve_one(c, fd);
	if (n < 0)
		end_channel(c);
}

static struct fd_ops channel_ops = {
	.name = "channel",
	.twin_event = channel_event,
};

/* -- heirs --------------------------------------------------------------------------- */

/* The ends of the channels to parents, and to their parents. */
enum { PARENTS_MAX = 8 };

static struct parent {
	_Atomic int fd;
	/* heirs that may have to ask */
	_Atomic unsigned heir_cnt;
	/* it knows that somebody has a socket of it without an heir */
	_Atomic bool is_told;
	/* for one there was no memory here */
	bool lacks_heir;
	/* for the time of a fork */
	int kept;
} parents[PARENTS_MAX];
static unsigned parent_cnt;
#define ASK_AGAIN_NS (2 * NS_PER_MS)
/* Who asks uses the end of a channel; who settles the last heir of it closes that. */
static struct mutex asking = MUTEX_INIT(LOCK_RANK_KIN);

struct heir {
	struct fd_object obj;
	struct fd_object *heir; /* of a child of ours */
	struct request request;
	struct parent *parent;
	enum kin_use use;
	/* The number that it had in this process at first. */
	int fd;
	_Atomic bool is_settled;
	/* what the fork has left of the parent's object; nobody uses its memory again */
	struct fd_object *of;
};

static struct fd_pool heirs = FD_POOL_INIT(struct heir);

static struct heir *heir_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct heir, obj);
}

/* Nobody has to ask any more. */
static void settle(struct heir *h)
{
	if (atomic_exchange(&h->is_settled, true) ||
	    atomic_fetch_sub(&h->parent->heir_cnt, 1) != 1)
		return;
	mutex_acquire(&asking);
	fd_internal_close(&h->parent->fd);
	mutex_release(&asking);
}

static bool names(int fd, const struct heir *h)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);

	return entry && atomic_load_explicit(entry, memory_order_relaxed) ==
				&h->obj;
}

static int fd_of(const struct heir *h)
{
	int fd = h->fd;

	if (LIKELY(names(fd, h)))
		return fd;
	for (fd = fd_table_next(0); fd >= 0 && !names(fd, h);
	     fd = fd_table_next((unsigned)fd + 1))
		;
	return fd;
}

static bool is_in_repair(int fd)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return real.getsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &value, &len) == 0 &&
	       value;
}

/* Whether the twin is a connection of the kernel's. In repair it is the guard of one of the
 * parent's, or about to become the connection; without names it may be the parent's as
 * well. */
static bool is_kernels(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return !is_in_repair(fd) &&
	       real.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_state != TCP_CLOSE && info.tcpi_state != TCP_LISTEN;
}

static long await_answer(int fd)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	long n;

	do
		n = inside_recvmsg(fd, &msg, 0);
	while (n == -EINTR);
	return n;
}

enum answer {
	/* the parent has done what it can */
	DONE,
	/* it is gone, and so is what it had */
	GONE,
	/* we cannot ask, and the parent may still have it */
	UNASKED,
};

/* `way`: for the answer; -1: none. */
static bool send_request(int channel, struct request *request, int way)
{
	struct cmsghdr *c;
	struct message m;
	long n;

	message_init(&m, request);
	c = CMSG_FIRSTHDR(&m.head);
	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS,
			       .cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(c), &way, sizeof(way));
	if (way < 0)
		m.head.msg_controllen = 0;
	do
		n = inside_sendmsg(channel, &m.head, MSG_NOSIGNAL);
	while (n == -EINTR);
	return n > 0;
}

/* False: nothing of that was answered. There may be no room for the way: two descriptors here,
 * and one in the parent. */
static bool ask_with_way(int channel, struct request *request)
{
	int ends[2];
	bool result;

	if (real.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	fd_table_forget(ends[0]);
	fd_table_forget(ends[1]);
	result = send_request(channel, request, ends[1]);
	inside_close(ends[1]);
	result = result && await_answer(ends[0]) > 0;
	inside_close(ends[0]);
	return result;
}

/* Nothing else ever comes from there. */
static bool has_ended(int channel)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return inside_recvmsg(channel, &msg, MSG_PEEK | MSG_DONTWAIT) != -EAGAIN;
}

/* By the parent, or it is gone. */
static bool is_all_read(int channel)
{
	int left = 0;

	return syscall_raw(SYS_ioctl, channel, SIOCOUTQ, (long)&left, 0, 0, 0) != 0 ||
	       !left;
}

/* Without a way for an answer. The parent reads one after the other: when it has read the
 * second one it has done what the first one says. */
static bool ask_in_turn(int channel, struct request *request)
{
	if (!send_request(channel, request, -1) || !send_request(channel, request, -1))
		return false;
	while (!is_all_read(channel))
		inside_nap(ASK_AGAIN_NS);
	return !has_ended(channel);
}

/* The channel's end means nothing any more. */
static void tell_of_unheard(struct parent *parent, int channel)
{
	struct request nothing = { .fd = -1 };

	if (!atomic_load(&parent->is_told) && send_request(channel, &nothing, -1))
		atomic_store(&parent->is_told, true);
}

/* What passes without a question goes to somebody else. */
static COLD void note_handed_on(struct heir *h)
{
	_Atomic int *slot = &h->parent->fd;

	/* maybe behind a filter, which our system calls do not pass */
	if (atomic_load(&h->parent->is_told))
		return;
	mutex_acquire(&asking);
	if (fd_internal_is_intact(slot))
		tell_of_unheard(h->parent, atomic_load(slot));
	mutex_release(&asking);
}

static enum answer ask_with_lock(struct heir *h)
{
	_Atomic int *slot = &h->parent->fd;
	struct request request = h->request;
	int channel;

	if (!fd_internal_is_intact(slot))
		return UNASKED;
	channel = atomic_load(slot);
	if (ask_with_way(channel, &request) || ask_in_turn(channel, &request))
		return DONE;
	return has_ended(channel) ? GONE : UNASKED;
}

static enum answer ask(struct heir *h)
{
	enum answer result;

	mutex_acquire(&asking);
	result = ask_with_lock(h);
	mutex_release(&asking);
	return result;
}

/* The parent was killed, and the connection died with it: the socket says so, and is a
 * fresh one for who connects it again. Where nobody has the right it stays in repair, in which
 * the kernel would speak of permission. */
static void dissolve(int fd)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	int off = TCP_REPAIR_OFF_NO_WP;

	(void)syscall_raw(SYS_connect, fd, (long)&nobody, sizeof(nobody), 0, 0, 0);
	(void)!real.setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off));
	(void)!tcp_right_switch(fd, off);
	log_dbg("fd %d: the process that had the connection was killed", fd);
}

/* Two numbers that the parent's threads close at once may leave a moment in which it does
 * not know the connection any more, and the kernel not yet. */
enum { ASKS_MAX = 100 };

static enum answer ask_until_it_is_done(struct heir *h, int fd)
{
	enum answer answer = ask(h);

	for (int i = 1; answer == DONE && h->request.inode && is_in_repair(fd) &&
			i < ASKS_MAX; i++) {
		inside_nap(ASK_AGAIN_NS);
		answer = ask(h);
	}
	return answer;
}

static COLD long not_done(int fd, const char *why)
{
	log_warn("fd %d: the parent process %s, so this process cannot use it", fd, why);
	return -EIO;
}

/* 0, or why the call cannot be done. Two threads may both ask, which does no harm. */
static COLD long use_twin(struct heir *h)
{
	bool is_socket = h->request.inode;
	enum answer answer;
	int fd = fd_of(h);

	if (fd < 0 || (is_socket && is_kernels(fd))) {
		settle(h);
		return 0;
	}
	answer = ask_until_it_is_done(h, fd);
	if (answer == UNASKED)
		return atomic_load(&h->is_settled) || h->use != KIN_ANY_USE ?
			       0 :
			       not_done(fd, "cannot be asked for the connection");
	if (is_socket && is_in_repair(fd)) {
		if (answer == DONE)
			return not_done(fd, "could not give the connection to the kernel");
		dissolve(fd);
		if (is_in_repair(fd))
			return -ECONNABORTED;
	}
	settle(h);
	return 0;
}

static inline long may_pass(struct fd_object *obj)
{
	struct heir *h = heir_of(obj);

	return h->use != KIN_ANY_USE || atomic_load(&h->is_settled) ?
		       0 :
		       use_twin(h);
}

static long change(struct fd_object *obj)
{
	struct heir *h = heir_of(obj);
	long err = atomic_load(&h->is_settled) ? 0 : use_twin(h);

	return err ? err : FD_PASS;
}

static long use(struct fd_object *obj)
{
	long err = may_pass(obj);

	return err ? err : FD_PASS;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CALL_OP(ret, name, params, args)                                    \
	static long heir_##name(struct fd_object *obj, FD_UNWRAP params)    \
	{                                                                   \
		return use(obj);                                            \
	}
#include "os/calls.def"

#define CHANGE_OP(name, params)                                             \
	static long change_by_##name(struct fd_object *obj, FD_UNWRAP params) \
	{                                                                   \
		return change(obj);                                         \
	}
CHANGE_OP(bind, (int fd, const struct sockaddr *addr, socklen_t len))
CHANGE_OP(connect, (int fd, const struct sockaddr *addr, socklen_t len))
CHANGE_OP(listen, (int fd, int backlog))
CHANGE_OP(shutdown, (int fd, int how))
CHANGE_OP(setsockopt, (int fd, int level, int name, const void *value, socklen_t len))
#pragma GCC diagnostic pop

/* Who sleeps in the parent has looked for O_NONBLOCK before; that it is gone, nobody there
 * looks for. A worker may say again what its parent has said. */
static bool is_unheard(int fd, int flags)
{
	int have = real.fcntl(fd, F_GETFL);

	return have >= 0 && ((have & ~flags & O_NONBLOCK) || (flags & ~have & O_ASYNC));
}

/* What concerns the number alone is this process's own. */
static long fcntl_of_heir(struct fd_object *obj, int fd, int cmd, void *arg)
{
	if (cmd == F_SETFL && is_unheard(fd, (int)(uintptr_t)arg))
		return change(obj);
	return cmd == F_GETFD || cmd == F_SETFD || cmd == F_GETFL ? FD_PASS :
								    use(obj);
}

static long ioctl_of_heir(struct fd_object *obj, int fd, unsigned long request, void *arg)
{
	if ((request != FIONBIO && request != FIOASYNC) ||
	    !user_is_plausible(arg, sizeof(int)))
		return use(obj);
	if (request == FIONBIO)
		return is_unheard(fd, *(int *)arg ? O_NONBLOCK : 0) ? change(obj) :
								      use(obj);
	return *(int *)arg ? change(obj) : use(obj);
}

static long getsockopt_of_heir(struct fd_object *obj, int fd UNUSED, int level,
			       int name, void *value, socklen_t *len)
{
	struct fd_object *of = heir_of(obj)->of;
	long result;

	mutex_acquire(&asking);
	result = of->ops->heir_option(of, level, name, value, len);
	mutex_release(&asking);
	return result == FD_PASS ? use(obj) : result;
}

static void heir_leave(struct fd_object *obj, int fd UNUSED,
		       enum reason reason UNUSED,
		       enum stats_decider decider UNUSED)
{
	struct heir *h = heir_of(obj);

	if (atomic_load(&h->is_settled))
		return;
	if (h->use != KIN_CHANGES)
		(void)!use_twin(h);
	else if (h->request.inode)
		note_handed_on(h);
}

static enum fd_await heir_await(struct fd_object *obj,
				struct endpoint **end_out UNUSED,
				struct stack **stack_out UNUSED)
{
	(void)!may_pass(obj);
	return FD_AWAIT_KERNEL;
}

static struct endpoint *heir_follow(struct fd_object *obj,
				    struct stack **stack_out UNUSED)
{
	(void)!may_pass(obj);
	return NULL;
}

static enum fd_word heir_word(const struct fd_object *obj UNUSED)
{
	return FD_WORD_NOTHING;
}

static void heir_release(struct fd_object *obj)
{
	settle(heir_of(obj));
	fd_pool_put(&heirs, heir_of(obj));
}

static struct fd_object *heir_of_heir(struct fd_object *obj, int fd);

static _Atomic uint64_t numbers;

static struct fd_ops heir_ops = {
	.name = "heir",
	.numbers = &numbers,
#define CALL_OP(ret, name, params, args) .name = heir_##name,
#include "os/calls.def"
	.leave = heir_leave,
	.await = heir_await,
	.follow = heir_follow,
	.word = heir_word,
	.release = heir_release,
	.heir = heir_of_heir,
};

bool kin_is_heir(const struct fd_object *obj)
{
	return obj->ops == &heir_ops;
}

void kin_ask(struct fd_object *heir, bool is_change)
{
	(void)!(is_change ? change(heir) : use(heir));
}

/* -- the child of a fork ------------------------------------------------------------- */

/* `place` NULL: there is no other fd that will ask for the heir. */
static struct fd_object *make(const struct request *request,
			      struct parent *parent, struct fd_object *of,
			      struct fd_object **place, int fd, enum kin_use use)
{
	struct heir *h;

	if (place && *place)
		return fd_object_hold(*place);
	h = fd_pool_get(&heirs);
	if (!h) {
		parent->lacks_heir = true;
		return NULL;
	}
	h->heir = NULL;
	h->request = *request;
	h->of = of;
	h->parent = parent;
	h->use = use;
	h->fd = fd;
	atomic_init(&h->is_settled, false);
	atomic_fetch_add(&parent->heir_cnt, 1);
	fd_object_init(&h->obj, &heir_ops, 0);
	if (place)
		*place = &h->obj;
	return &h->obj;
}

struct fd_object *kin_make_heir(struct fd_object *obj, struct fd_object **place,
				int fd, enum kin_use use)
{
	struct request request = {
		.object = (uint64_t)(uintptr_t)obj,
		.inode = obj->inode,
		.fd = fd,
	};

	/* most have one fd, and nothing is written to what they share with the parent */
	if (atomic_load(&obj->fd_cnt) == 1)
		place = NULL;
	return kin.childs_end < 0 ?
		       NULL :
		       make(&request, &parents[parent_cnt], obj, place, fd, use);
}

static struct fd_object *heir_of_heir(struct fd_object *obj, int fd)
{
	struct heir *h = heir_of(obj);

	return atomic_load(&h->is_settled) || h->parent->kept < 0 ?
		       NULL :
		       make(&h->request, h->parent, h->of, &h->heir, fd, h->use);
}

static bool ask_if_inherited(struct fd_object *obj, int fd)
{
	if (file_is_inherited(fd))
		heir_leave(obj, fd, REASON_FORKS, STATS_BY_FORK);
	return false;
}

void kin_before_spawn(void)
{
	fd_visit(&heir_ops, ask_if_inherited);
}

static bool ask_now(struct fd_object *obj, int fd UNUSED)
{
	(void)!change(obj);
	return false;
}

/* A process of many generations asks for everything, so that there is a place for the
 * channel to itself. */
static bool give_up_own_heirs(void)
{
	if (parent_cnt < PARENTS_MAX)
		return true;
	fd_visit(&heir_ops, ask_now);
	for (unsigned i = 0; i < parent_cnt; i++)
		if (atomic_load(&parents[i].heir_cnt))
			return false;
	parent_cnt = 0;
	return true;
}

/* The channels to older parents live on: their ends of the connections are ours, too. */
void kin_forked_first(void)
{
	for (unsigned i = 0; i < parent_cnt; i++) {
		parents[i].kept = fd_internal_keep(&parents[i].fd);
		atomic_store(&parents[i].heir_cnt, 0);
	}
	if (parent_cnt < PARENTS_MAX)
		parents[parent_cnt] = (struct parent){ .fd = -1 };
	mutex_init(&asking, LOCK_RANK_KIN);
	fd_pool_forked(&heirs);
}

static void keep(struct parent *parent, int fd)
{
	atomic_store(&parent->fd, -1);
	if (fd < 0)
		return;
	if (parent->lacks_heir)
		tell_of_unheard(parent, fd);
	if (!atomic_load(&parent->heir_cnt)) {
		inside_close(fd);
	} else if (fd_internal_adopt(fd, &parent->fd) != 0) {
		tell_of_unheard(parent, fd);
		inside_close(fd);
	}
}

void kin_forked(void)
{
	for (unsigned i = 0; i < atomic_load(&kin.channel_cnt); i++) {
		atomic_store(&kin.channels[i].fd, -1);
		atomic_store(&kin.channels[i].obj.refs, 0);
	}
	for (unsigned i = 0; i < parent_cnt; i++)
		keep(&parents[i], parents[i].kept);
	if (kin.childs_end < 0)
		return;
	keep(&parents[parent_cnt], kin.childs_end);
	if (atomic_load(&parents[parent_cnt].fd) >= 0)
		parent_cnt++;
	kin.childs_end = -1;
}

void kin_start(void)
{
	fd_ops_fill(&channel_ops);
	heir_ops.bind = change_by_bind;
	heir_ops.connect = change_by_connect;
	heir_ops.listen = change_by_listen;
	heir_ops.shutdown = change_by_shutdown;
	heir_ops.setsockopt = change_by_setsockopt;
	heir_ops.fcntl = heir_ops.fcntl64 = fcntl_of_heir;
	heir_ops.ioctl = ioctl_of_heir;
	heir_ops.getsockopt = getsockopt_of_heir;
	fd_ops_fill(&heir_ops);
}
