/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol of fork (sock/kin.h), tried in every order in which things can
 * happen: a parent with a connection, two children, and a child of the first.
 * Each uses it, closes it, or dies at any moment; the parent serves early or
 * late, closes, exits or is killed. What runs is the library's own code, in
 * processes that do one step each when they are told to; the twin is a socket
 * in TCP_REPAIR, as that of a connection of ours is.
 *
 * After each step the twin is what it should be: nobody uses it while it is the
 * parent's; it becomes the kernel's when somebody needs it and for no other
 * reason; it is lost only with a parent that was killed. Nobody waits for ever,
 * and a parent whose children have ended shares nothing any more.
 *
 * An order is followed until it comes to what another one has come to. So the
 * ways are as many as there are steps from everything that can be.
 */
#include "config.h"

#include "sock/kin.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "fd/fd_visit.h"
#include "sock/sock.h"
#include "tests/engine/ways.h"
#include "tests/system/netns.h"

enum who { PARENT, CHILD, OTHER, GRANDCHILD, PROCESSES };

/* The children of the parent have a channel each; a grandchild has its
 * parent's. */
enum { CHANNELS = 2 };
static const unsigned channel_of[PROCESSES] = { [OTHER] = 1 };

enum { PATIENCE_MS = 20000, NOBODY = 65534 };

/* The ends of the controller and of the processes; the connection's one file.
 */
static int ends[PROCESSES], their_ends[PROCESSES], twin;

/* -- the twin
 * -------------------------------------------------------------------------- */

static bool is_in_repair(void)
{
	int value = 0;
	socklen_t len = sizeof(value);

	CHECK_EQ(getsockopt(twin, IPPROTO_TCP, TCP_REPAIR, &value, &len), 0);
	return value;
}

static int tcp_state(void)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	CHECK_EQ(getsockopt(twin, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	return info.tcpi_state;
}

static void set_repair(int value)
{
	CHECK_EQ(setsockopt(twin, IPPROTO_TCP, TCP_REPAIR, &value,
			    sizeof(value)),
		 0);
}

/* connect() says nothing to anybody here. */
static void make_twin(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(7000),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };

	twin = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(twin >= 0);
	set_repair(TCP_REPAIR_ON);
	CHECK_EQ(bind(twin, (struct sockaddr *)&name, sizeof(name)), 0);
	name.sin_port = htons(7001);
	CHECK_EQ(connect(twin, (struct sockaddr *)&name, sizeof(name)), 0);
}

/* -- the processes
 * ----------------------------------------------------------------------- */

struct order {
	enum { USE, CLOSE, FORK, SERVE, LEAVE_IN_ORDER } what;
	/* of FORK the process, of SERVE the channels that have something */
	unsigned value;
};

struct report {
	enum { DONE, ASKS } what;
	long value;
};

static enum who me;
static bool has_closed, has_left, is_using;
/* the children give up their rights when they are there */
static bool no_rights;

static void report(int what, long value)
{
	struct report r = { what, value };

	if (send(their_ends[me], &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
		_exit(0);
}

static void leave(struct fd_object *obj UNUSED, int fd UNUSED,
		  enum reason reason UNUSED, enum stats_decider decider UNUSED)
{
	if (!has_left)
		set_repair(TCP_REPAIR_OFF_NO_WP);
	has_left = true;
}

/* What has left is no object any more, and has no heirs. */
static struct fd_object *heir(struct fd_object *obj, int fd)
{
	static struct fd_object *place;

	return has_left ? NULL : kin_make_heir(obj, &place, fd, KIN_ANY_USE);
}

static struct fd_ops ops = { .name = "had", .leave = leave, .heir = heir };
static struct fd_object had;

/* The parent's ends of the channels; the one that is being made. */
static struct {
	struct fd_object *obj;
	int fd;
} channels[CHANNELS];
static unsigned channel_made;

static void watch_twin(int fd, struct fd_object *obj)
{
	channels[channel_made].obj = obj;
	channels[channel_made].fd = fd;
}

static struct net *some_net(void)
{
	return (struct net *)&had;
}

/* The way of an answer is made right before the parent is asked. */
static int note_and_make_pair(int domain, int type, int protocol, int pair[2])
{
	if (is_using)
		report(ASKS, 0);
	return socketpair(domain, type, protocol, pair);
}

/* What a call gives: the peer has sent nothing. */
static long use(void)
{
	struct fd_object *obj = fd_table_get(twin);
	char c;
	long n = FD_PASS;

	is_using = true;
	if (obj)
		n = obj->ops->read(obj, twin, &c, 1);
	is_using = false;
	fd_object_put(obj);
	if (n != FD_PASS)
		return n;
	return recv(twin, &c, 1, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* As sock_before_close does it: what is shared goes to the kernel first. */
static void close_it(void)
{
	if (me == PARENT && kin_is_shared_since(0))
		leave(&had, twin, REASON_FORKS, STATS_BY_FORK);
	fd_table_remove(twin);
	has_closed = true;
}

static bool is_descendant(enum who who, enum who of)
{
	return of == PARENT || who == of || (of == CHILD && who == GRANDCHILD);
}

/* Whoever dies is seen to: nobody else has its end. */
static void keep_ends_of(enum who of)
{
	for (enum who who = 0; who < PROCESSES; who++) {
		if (!is_descendant(who, of) && their_ends[who] >= 0) {
			close(their_ends[who]);
			their_ends[who] = -1;
		}
	}
}

static void fork_it(enum who who)
{
	bool is_shared;
	pid_t pid;

	channel_made = channel_of[who];
	is_shared = kin_before_fork(KIN_ANY_USE);
	pid = fork();
	if (pid) {
		CHECK(is_shared);
		kin_after_fork();
		close(their_ends[who]);
		their_ends[who] = -1;
		report(DONE, pid);
		return;
	}
	me = who;
	keep_ends_of(who);
	if (no_rights && who != GRANDCHILD)
		CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	kin_forked_first();
	fd_internal_forked();
	fd_table_forked();
	fd_visit_forked();
	kin_forked();
}

/* Until all of these have something to say; what they have is left there. */
static void await_requests(unsigned mask)
{
	for (unsigned i = 0; i < CHANNELS; i++) {
		struct pollfd pfd = { .fd = channels[i].fd, .events = POLLIN };

		if (mask & 1u << i && channels[i].obj)
			CHECK_EQ(poll(&pfd, 1, PATIENCE_MS), 1);
	}
}

static void serve(unsigned mask)
{
	await_requests(mask);
	for (unsigned i = 0; i < CHANNELS; i++) {
		struct fd_object *of = channels[i].obj;

		if (!(mask & 1u << i) || !of)
			continue;
		CHECK(fd_object_try_hold(of));
		of->ops->twin_event(of, POLLIN);
		fd_object_put(of);
		/* it may be another channel's later */
		if (!atomic_load(&of->refs))
			channels[i].obj = NULL;
	}
}

static void obey(struct order order)
{
	switch (order.what) {
	case USE:
		report(DONE, use());
		return;
	case CLOSE:
		close_it();
		report(DONE, 0);
		return;
	case FORK:
		fork_it(order.value);
		return;
	case SERVE:
		serve(order.value);
		report(DONE, kin_is_shared_since(0));
		return;
	case LEAVE_IN_ORDER:
		if (!has_closed)
			leave(&had, twin, REASON_FORKS, STATS_BY_FORK);
		kin_stop();
		_exit(0);
	}
}

static NO_RETURN void live(void)
{
	struct order order;
	struct stat st;

	me = PARENT;
	test_on_failure(NULL);
	for (enum who who = 0; who < PROCESSES; who++)
		close(ends[who]);
	real.socketpair = note_and_make_pair;
	sock_params.net_if_made = some_net;
	sock_params.watch_twin = watch_twin;
	kin_start();
	fd_ops_fill(&ops);
	CHECK_EQ(fstat(twin, &st), 0);
	fd_object_init(&had, &ops, st.st_ino);
	CHECK_EQ(fd_table_install(twin, &had), 0);
	while (recv(their_ends[me], &order, sizeof(order), 0) == sizeof(order))
		obey(order);
	_exit(0);
}

/* -- what should be
 * ------------------------------------------------------------------------- */

/* Plain numbers, so that two of them can be compared as they are. */
static struct model {
	struct {
		enum { UNBORN, IDLE, WAITS, DEAD } state;
		/* it has not closed its number */
		bool has_number;
		/* it would ask: has an heir that was not answered yet */
		bool is_heir;
	} of[PROCESSES];
	/* the parent has not heard its end */
	bool is_shared[CHANNELS];
	/* requests that the parent has not read, also of the dead */
	unsigned asked_cnt[CHANNELS];
	enum { OURS, KERNELS, ORPHAN, LOST } twin;
} model;

static pid_t pids[PROCESSES];
/* who there can be */
static unsigned members;

static void tell(enum who who, int what, unsigned value)
{
	struct order order = { 0 };

	order.what = what;
	order.value = value;
	CHECK_EQ(send(ends[who], &order, sizeof(order), MSG_NOSIGNAL),
		 (ssize_t)sizeof(order));
}

static struct report heard(enum who who)
{
	struct pollfd pfd = { .fd = ends[who], .events = POLLIN };
	struct report r;

	CHECK_EQ(poll(&pfd, 1, PATIENCE_MS), 1);
	CHECK_EQ(recv(ends[who], &r, sizeof(r), 0), (ssize_t)sizeof(r));
	return r;
}

static long done(enum who who)
{
	struct report r = heard(who);

	CHECK_EQ(r.what, DONE);
	return r.value;
}

static bool is_alive(enum who who)
{
	return model.of[who].state == IDLE || model.of[who].state == WAITS;
}

/* Whether one of its children could still ask. */
static bool has_heirs(unsigned channel)
{
	for (enum who who = CHILD; who < PROCESSES; who++)
		if (channel_of[who] == channel && is_alive(who) &&
		    model.of[who].is_heir)
			return true;
	return false;
}

static bool is_shared(void)
{
	for (unsigned i = 0; i < CHANNELS; i++)
		if (model.is_shared[i])
			return true;
	return false;
}

static void check_twin(void)
{
	bool in_repair = is_in_repair();
	int state = tcp_state();

	switch (model.twin) {
	case OURS:
	case ORPHAN:
		CHECK(in_repair);
		return;
	case KERNELS:
		CHECK(!in_repair);
		CHECK_EQ(state, TCP_ESTABLISHED);
		return;
	case LOST:
		CHECK_EQ(in_repair, no_rights);
		CHECK_EQ(state, TCP_CLOSE);
		return;
	}
}

/* What a use has ended with. */
static void used(enum who who, long result)
{
	if (model.of[who].is_heir && model.twin == ORPHAN)
		model.twin = LOST;
	if (model.twin == KERNELS) {
		CHECK_EQ(result, -EAGAIN);
	} else {
		CHECK_EQ(model.twin, LOST);
		/* an error of the socket is told once */
		CHECK(result == -ECONNABORTED ||
		      (result == -ENOTCONN && !no_rights));
	}
	if (model.twin == KERNELS || !no_rights)
		model.of[who].is_heir = false;
	model.of[who].state = IDLE;
	check_twin();
}

static void askers_are_answered(unsigned channel)
{
	for (enum who who = CHILD; who < PROCESSES; who++)
		if (channel_of[who] == channel && model.of[who].state == WAITS)
			used(who, done(who));
}

/* The parent is gone, and with it the channels. */
static void parent_is_gone(void)
{
	model.of[PARENT].state = DEAD;
	for (unsigned i = 0; i < CHANNELS; i++) {
		model.is_shared[i] = false;
		model.asked_cnt[i] = 0;
		askers_are_answered(i);
	}
}

/* Then it has closed what it had. */
static void await_death(enum who who)
{
	struct pollfd pfd = { .fd = (int)syscall(SYS_pidfd_open, pids[who], 0),
			      .events = POLLIN };

	CHECK(pfd.fd >= 0);
	CHECK_EQ(poll(&pfd, 1, PATIENCE_MS), 1);
	close(pfd.fd);
}

/* -- the steps
 * ---------------------------------------------------------------------------------
 */

static bool can_use(enum who who)
{
	return who != PARENT && model.of[who].state == IDLE &&
	       model.of[who].has_number;
}

/* Who has said that it asks sleeps next when it has asked. */
static void await_sleep(enum who who)
{
	char name[32], state = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pids[who]);
	for (int i = 0; state != 'S'; i++) {
		CHECK(i < 1000000);
		file = fopen(name, "r");
		CHECK(file);
		CHECK_EQ(fscanf(file, "%*d %*s %c", &state), 1);
		fclose(file);
	}
}

static void step_use(enum who who)
{
	struct report r;

	tell(who, USE, 0);
	r = heard(who);
	if (r.what == DONE) {
		used(who, r.value);
		return;
	}
	/* it would not ask for what the kernel has already */
	CHECK(model.of[who].is_heir);
	CHECK(model.twin != KERNELS);
	if (model.of[PARENT].state != IDLE) {
		used(who, done(who));
		return;
	}
	model.of[who].state = WAITS;
	await_sleep(who);
	model.asked_cnt[channel_of[who]]++;
}

static bool can_close(enum who who)
{
	return model.of[who].state == IDLE && model.of[who].has_number;
}

static void step_close(enum who who)
{
	tell(who, CLOSE, 0);
	CHECK_EQ(done(who), 0);
	if (who == PARENT && model.twin == OURS && is_shared())
		model.twin = KERNELS;
	model.of[who].has_number = model.of[who].is_heir = false;
}

static bool can_fork(enum who whom)
{
	enum who who = whom == GRANDCHILD ? CHILD : PARENT;

	return whom != PARENT && members & 1u << whom &&
	       model.of[whom].state == UNBORN && model.of[who].state == IDLE;
}

static void step_fork(enum who whom)
{
	enum who who = whom == GRANDCHILD ? CHILD : PARENT;

	tell(who, FORK, whom);
	pids[whom] = (pid_t)done(who);
	model.of[whom] = model.of[who];
	if (who == PARENT) {
		model.of[whom].is_heir =
			model.of[who].has_number && model.twin == OURS;
		model.is_shared[channel_of[whom]] = true;
	}
}

static bool can_kill(enum who who)
{
	return is_alive(who);
}

static void step_kill(enum who who)
{
	kill(pids[who], SIGKILL);
	await_death(who);
	model.of[who].state = DEAD;
	if (who != PARENT)
		return;
	if (model.twin == OURS)
		model.twin = ORPHAN;
	parent_is_gone();
}

static unsigned channels_to_serve(void)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < CHANNELS; i++)
		if (model.is_shared[i] && (model.asked_cnt[i] || !has_heirs(i)))
			mask |= 1u << i;
	return mask;
}

static bool can_serve(enum who who)
{
	return who == PARENT && model.of[who].state == IDLE &&
	       channels_to_serve();
}

/* The parent may have heard the end of a channel that was answered, or not yet.
 */
static void step_serve(enum who who)
{
	unsigned mask = channels_to_serve();
	bool says_shared;

	for (unsigned i = 0; i < CHANNELS; i++)
		if (mask & 1u << i && model.asked_cnt[i] &&
		    model.of[who].has_number && model.twin == OURS)
			model.twin = KERNELS;
	tell(who, SERVE, mask);
	for (unsigned i = 0; i < CHANNELS; i++) {
		if (!(mask & 1u << i))
			continue;
		model.is_shared[i] = has_heirs(i);
		model.asked_cnt[i] = 0;
		askers_are_answered(i);
	}
	says_shared = done(who);
	CHECK(!says_shared || is_shared());
	CHECK(says_shared || (!has_heirs(0) && !has_heirs(1)));
}

static bool can_exit(enum who who)
{
	return who == PARENT && model.of[who].state == IDLE;
}

static void step_exit(enum who who)
{
	tell(who, LEAVE_IN_ORDER, 0);
	await_death(who);
	if (model.twin == OURS)
		model.twin = model.of[who].has_number ? KERNELS : ORPHAN;
	parent_is_gone();
}

static const struct {
	const char *name;
	bool (*can)(enum who who);
	void (*run)(enum who who);
} steps[] = {
	{ "uses it", can_use, step_use },
	{ "closes it", can_close, step_close },
	{ "is forked", can_fork, step_fork },
	{ "is killed", can_kill, step_kill },
	{ "serves", can_serve, step_serve },
	{ "exits", can_exit, step_exit },
};

static const char *const names[PROCESSES] = { "parent", "child", "other",
					      "grandchild" };

/* The steps of this way, for who reads of a failure. */
static unsigned taken[CHOICES_MAX], step_cnt;

/* Everything that can come next, of which one comes; false: nothing can. */
static bool step(void)
{
	unsigned possible[ARRAY_LEN(steps) * PROCESSES], cnt = 0, chosen;
	enum who who;

	for (unsigned i = 0; i < ARRAY_LEN(possible); i++)
		if (steps[i / PROCESSES].can(i % PROCESSES))
			possible[cnt++] = i;
	if (!cnt)
		return false;
	chosen = possible[choose(cnt)];
	who = chosen % PROCESSES;
	taken[step_cnt++] = chosen;
	steps[chosen / PROCESSES].run(who);
	check_twin();
	return true;
}

/* -- the ways
 * -----------------------------------------------------------------------------------
 */

enum { STATES_MAX = 1 << 18 };

static struct model *seen;
static unsigned seen_cnt;

/* True for what was there before. */
static bool is_seen(void)
{
	static const struct hash_key key;
	static const struct model none;
	size_t i = hash_sip(&key, &model, sizeof(model)) % STATES_MAX;

	for (; memcmp(&seen[i], &none, sizeof(none)) != 0;
	     i = (i + 1) % STATES_MAX)
		if (memcmp(&seen[i], &model, sizeof(model)) == 0)
			return true;
	CHECK(seen_cnt < STATES_MAX / 2);
	seen[i] = model;
	seen_cnt++;
	return false;
}

static void begin(void)
{
	memset(&model, 0, sizeof(model));
	model.of[PARENT].state = IDLE;
	model.of[PARENT].has_number = true;
	for (enum who who = 0; who < PROCESSES; who++) {
		int pair[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		ends[who] = pair[0];
		their_ends[who] = pair[1];
	}
	make_twin();
	pids[PARENT] = fork();
	if (pids[PARENT] == 0)
		live();
	for (enum who who = 0; who < PROCESSES; who++)
		close(their_ends[who]);
}

static void end(void)
{
	for (enum who who = 0; who < PROCESSES; who++)
		if (is_alive(who))
			kill(pids[who], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	for (enum who who = 0; who < PROCESSES; who++)
		close(ends[who]);
	/* without a word to anybody */
	set_repair(TCP_REPAIR_ON);
	close(twin);
}

static void note_steps(void)
{
	for (unsigned i = 0; i < step_cnt; i++)
		test_note("%s %s", names[taken[i] % PROCESSES],
			  steps[taken[i] / PROCESSES].name);
}

/* `beside`: the processes there can be beside the parent and its first child.
 */
static void try_everything(unsigned beside)
{
	unsigned long way_cnt = 0;

	test_apart();
	members = 1u << PARENT | 1u << CHILD | beside;
	/* minutes, so only when asked for (make check-kin-long) */
	if (getenv("KIN_MODEL_ALL"))
		members = (1u << PROCESSES) - 1;
	netns_enter();
	CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	seen = calloc(STATES_MAX, sizeof(*seen));
	CHECK(seen);
	test_on_failure(note_steps);
	do {
		way.cnt = step_cnt = 0;
		begin();
		while (step())
			if (way.cnt >= way.given && is_seen())
				break;
		end();
		way_cnt++;
	} while (next_way());
	test_note("%lu ways to %u states", way_cnt, seen_cnt);
	CHECK(seen_cnt > 100);
	free(seen);
}

TEST(two_children)
{
	try_everything(1u << OTHER);
}

TEST(child_and_grandchild)
{
	try_everything(1u << GRANDCHILD);
}

TEST(children_without_rights)
{
	no_rights = true;
	try_everything(1u << OTHER);
}

TEST(grandchild_without_rights)
{
	no_rights = true;
	try_everything(1u << GRANDCHILD);
}
