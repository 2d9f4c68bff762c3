/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a parent and its children say to each other, and what they do if one is silent. */
#include "config.h"

#include "sock/kin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "fd/fd_visit.h"
#include "sock/sock.h"
#include "tests/support/test.h"

/* -- a process that has something ---------------------------------------------------- */

static unsigned leave_cnt;
static enum reason left_for;
static int left_as;

static void leave(struct fd_object *obj UNUSED, int fd, enum reason reason,
		  enum stats_decider decider UNUSED)
{
	leave_cnt++;
	left_for = reason;
	left_as = fd;
}

static enum kin_use use;
static struct fd_object *place;

static struct fd_object *heir(struct fd_object *obj, int fd)
{
	return kin_make_heir(obj, &place, fd, use);
}

static struct fd_ops ops = { .name = "had", .leave = leave, .heir = heir };
static struct fd_object had;
/* its twin is one end of a pipe */
static int twin[2];

/* What our thread would watch: the end of the last channel. */
static int channel_fd;
static struct fd_object *channel;

static void watch_twin(int fd, struct fd_object *obj)
{
	channel_fd = fd;
	channel = obj;
}

static struct net *some_net(void)
{
	return (struct net *)&had;
}

static struct net *no_net(void)
{
	return NULL;
}

static void have(enum kin_use as)
{
	struct stat st;

	sock_params.net_if_made = some_net;
	sock_params.watch_twin = watch_twin;
	kin_start();
	fd_ops_fill(&ops);
	CHECK_EQ(pipe(twin), 0);
	CHECK_EQ(fstat(twin[0], &st), 0);
	fd_object_init(&had, &ops, st.st_ino);
	CHECK_EQ(fd_table_install(twin[0], &had), 0);
	leave_cnt = 0;
	use = as;
	place = NULL;
}

static void have_no_more(void)
{
	fd_table_remove(twin[0]);
	close(twin[0]);
	close(twin[1]);
}

/* As core does it. */
static pid_t fork_it(void)
{
	pid_t pid;

	CHECK(kin_before_fork(KIN_ANY_USE));
	pid = fork();
	if (pid) {
		kin_after_fork();
		return pid;
	}
	kin_forked_first();
	fd_internal_forked();
	fd_table_forked();
	fd_visit_forked();
	kin_forked();
	return 0;
}

/* What our thread does, until the channel has ended. */
static void serve_to_the_end(void)
{
	struct fd_object *of = channel;

	while (kin_is_shared_since(kin_fork_cnt() - 1)) {
		struct pollfd pfd = { .fd = channel_fd, .events = POLLIN };

		CHECK_EQ(poll(&pfd, 1, 10000), 1);
		CHECK(fd_object_try_hold(of));
		of->ops->twin_event(of, POLLIN);
		fd_object_put(of);
	}
	CHECK_EQ(atomic_load(&of->refs), 0);
}

static int ended(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The heir as a wrapper would find it. */
static struct fd_object *found(int fd)
{
	struct fd_object *obj = fd_table_get(fd);

	CHECK(obj);
	CHECK(kin_is_heir(obj));
	return obj;
}

static long read_by(int fd)
{
	struct fd_object *obj = found(fd);
	char c;
	long n = obj->ops->read(obj, fd, &c, 1);

	fd_object_put(obj);
	return n;
}

/* -- asking --------------------------------------------------------------------------- */

TEST(first_use_asks_and_later_ones_do_not)
{
	pid_t pid;

	have(KIN_ANY_USE);
	pid = fork_it();
	if (pid == 0) {
		for (int i = 0; i < 3; i++)
			CHECK_EQ(read_by(twin[0]), FD_PASS);
		_exit(0);
	}
	CHECK(kin_is_shared_since(kin_fork_cnt() - 1));
	CHECK(!kin_is_shared_since(kin_fork_cnt()));
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 1);
	CHECK_EQ(left_for, REASON_FORKS);
	CHECK_EQ(left_as, twin[0]);
	have_no_more();
}

TEST(who_uses_nothing_asks_for_nothing)
{
	pid_t pid;

	have(KIN_ANY_USE);
	pid = fork_it();
	if (pid == 0) {
		struct fd_object *obj = found(twin[0]);

		CHECK_EQ(obj->ops->fcntl(obj, twin[0], F_GETFD, NULL), FD_PASS);
		CHECK_EQ(obj->ops->fcntl(obj, twin[0], F_SETFD, NULL), FD_PASS);
		fd_object_put(obj);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 0);
	have_no_more();
}

TEST(listeners_are_asked_for_when_they_are_handed_on)
{
	pid_t pid;

	have(KIN_HANDING_ON);
	pid = fork_it();
	if (pid == 0) {
		struct fd_object *obj = found(twin[0]);

		CHECK_EQ(read_by(twin[0]), FD_PASS);
		(void)!write(twin[1], "x", 1);
		obj->ops->leave(obj, twin[0], REASON_HANDED_ON, STATS_BY_HAND);
		fd_object_put(obj);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 1);
	have_no_more();
}

static long set_flags(struct fd_object *obj, long flags)
{
	return obj->ops->fcntl(obj, twin[0], F_SETFL, (void *)flags);
}

/* What asks of a socket by which the child may receive and send as it is. */
static void change(int step)
{
	struct fd_object *obj = found(twin[0]);
	int yes = 1, no = 0;

	switch (step) {
	case 0:
		CHECK_EQ(set_flags(obj, 0), FD_PASS);
		break;
	case 1:
		CHECK_EQ(obj->ops->ioctl(obj, twin[0], FIONBIO, &no), FD_PASS);
		break;
	case 2:
		CHECK_EQ(set_flags(obj, O_NONBLOCK | O_ASYNC), FD_PASS);
		break;
	case 3:
		CHECK_EQ(obj->ops->shutdown(obj, twin[0], SHUT_RD), FD_PASS);
		break;
	case 4:
		CHECK_EQ(obj->ops->setsockopt(obj, twin[0], SOL_SOCKET, SO_BROADCAST, &yes,
					      sizeof(yes)),
			 FD_PASS);
		break;
	}
	fd_object_put(obj);
}

TEST(changes_are_asked_for)
{
	enum { STEPS = 5 };
	int yes = 1;

	for (int step = 0; step < STEPS; step++) {
		pid_t pid;

		have(KIN_CHANGES);
		fcntl(twin[0], F_SETFL, O_NONBLOCK);
		pid = fork_it();
		if (pid == 0) {
			struct fd_object *obj = found(twin[0]);

			CHECK_EQ(read_by(twin[0]), FD_PASS);
			/* as it is already */
			CHECK_EQ(set_flags(obj, O_NONBLOCK), FD_PASS);
			CHECK_EQ(obj->ops->ioctl(obj, twin[0], FIONBIO, &yes), FD_PASS);
			/* who gets it may use it as well */
			obj->ops->leave(obj, twin[0], REASON_HANDED_ON, STATS_BY_HAND);
			fd_object_put(obj);
			change(step);
			change(step);
			_exit(0);
		}
		serve_to_the_end();
		CHECK_EQ(ended(pid), 0);
		CHECK_EQ(leave_cnt, 1);
		CHECK_EQ(left_for, REASON_FORKS);
		have_no_more();
	}
}

TEST(who_changes_nothing_asks_for_nothing)
{
	pid_t pid;

	have(KIN_CHANGES);
	pid = fork_it();
	if (pid == 0) {
		CHECK_EQ(read_by(twin[0]), FD_PASS);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 0);
	have_no_more();
}

/* -- whether somebody may have it still ----------------------------------------------- */

/* A child does that and ends. Whether its end was the end of the sharing. */
static bool ends_sharing(void (*what)(struct fd_object *obj))
{
	uint64_t before = kin_fork_cnt();
	bool result;
	pid_t pid;

	have(KIN_CHANGES);
	CHECK(kin_may_be_shared(before, before));
	pid = fork_it();
	if (pid == 0) {
		struct fd_object *obj = found(twin[0]);

		what(obj);
		fd_object_put(obj);
		_exit(0);
	}
	CHECK(kin_may_be_shared(before, before));
	CHECK(!kin_may_be_shared(before + 1, before));
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 0);
	result = !kin_may_be_shared(before, before);
	/* the next fork is under way */
	CHECK(kin_may_be_shared(before, before + 1));
	have_no_more();
	return result;
}

static void only_read(struct fd_object *obj UNUSED)
{
	CHECK_EQ(read_by(twin[0]), FD_PASS);
}

/* One that has children itself, who end after it. */
static void have_child(struct fd_object *obj UNUSED)
{
	pid_t own = getpid();

	if (fork_it() != 0)
		return;
	while (getppid() == own)
		usleep(1000);
	CHECK_EQ(read_by(twin[0]), FD_PASS);
}

static void hand_on(struct fd_object *obj)
{
	obj->ops->leave(obj, twin[0], REASON_HANDED_ON, STATS_BY_HAND);
	obj->ops->leave(obj, twin[0], REASON_HANDED_ON, STATS_BY_HAND);
}

static void start_program(struct fd_object *obj UNUSED)
{
	kin_before_spawn();
}

static void start_program_without(struct fd_object *obj UNUSED)
{
	fcntl(twin[0], F_SETFD, FD_CLOEXEC);
	kin_before_spawn();
}

TEST(the_last_child_ends_the_sharing)
{
	CHECK(ends_sharing(only_read));
	CHECK(ends_sharing(have_child));
	CHECK(ends_sharing(start_program_without));
}

TEST(who_was_given_it_by_a_child_may_have_it_for_ever)
{
	CHECK(!ends_sharing(hand_on));
	CHECK(!ends_sharing(start_program));
	/* of what was shared later nobody has anything */
	CHECK(ends_sharing(only_read));
}

TEST(of_children_without_a_channel_nothing_is_heard)
{
	uint64_t before = kin_fork_cnt();

	have(KIN_CHANGES);
	sock_params.net_if_made = no_net;
	CHECK(!kin_before_fork(KIN_CHANGES));
	kin_after_fork();
	CHECK(kin_may_be_shared(before, before));
	have_no_more();
	(void)!ends_sharing(only_read);
	CHECK(kin_may_be_shared(before, before));
}

TEST(when_nobody_listens_any_more_nothing_is_known)
{
	uint64_t before = kin_fork_cnt();
	pid_t pid;

	have(KIN_CHANGES);
	pid = fork_it();
	if (pid == 0)
		_exit(0);
	kin_stop();
	CHECK_EQ(ended(pid), 0);
	CHECK(kin_may_be_shared(before, before));
	have_no_more();
}

/* It has what the kernel has, while nobody tells the parent. */
static void change_without_answer(enum kin_use as)
{
	pid_t pid;

	have(as);
	pid = fork_it();
	if (pid == 0) {
		close_range(STDERR_FILENO + 1, ~0U, 0);
		change(3);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 0);
	have_no_more();
}

TEST(changes_need_no_answer)
{
	change_without_answer(KIN_CHANGES);
}

TEST(changes_of_listeners_need_no_answer)
{
	change_without_answer(KIN_HANDING_ON);
}

TEST(copies_have_one_heir)
{
	int copy;
	pid_t pid;

	have(KIN_ANY_USE);
	copy = dup(twin[0]);
	CHECK_EQ(fd_table_install(copy, &had), 0);
	pid = fork_it();
	if (pid == 0) {
		fd_table_remove(twin[0]);
		close(twin[0]);
		CHECK_EQ(read_by(copy), FD_PASS);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 1);
	fd_table_remove(copy);
	close(copy);
	have_no_more();
}

/* The parent has closed it: it has gone to the kernel before that. */
TEST(what_the_parent_has_not_any_more_is_answered)
{
	pid_t pid;

	have(KIN_ANY_USE);
	pid = fork_it();
	if (pid == 0) {
		CHECK_EQ(read_by(twin[0]), FD_PASS);
		_exit(0);
	}
	fd_table_remove(twin[0]);
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 0);
	have_no_more();
}

/* -- the end of the sharing ------------------------------------------------------------ */

TEST(channel_ends_when_all_heirs_are_closed)
{
	int pipes[2];
	char c;
	pid_t pid;

	have(KIN_ANY_USE);
	CHECK_EQ(pipe(pipes), 0);
	pid = fork_it();
	if (pid == 0) {
		close(pipes[1]);
		fd_table_remove(twin[0]);
		_exit((int)read(pipes[0], &c, 1));
	}
	/* it lives */
	serve_to_the_end();
	close(pipes[0]);
	close(pipes[1]);
	CHECK_EQ(ended(pid), 0);
	have_no_more();
}

TEST(grandchild_asks_the_first_of_them)
{
	pid_t pid;

	have(KIN_ANY_USE);
	pid = fork_it();
	if (pid == 0) {
		pid = fork_it();
		if (pid)
			_exit(0);
		CHECK_EQ(read_by(twin[0]), FD_PASS);
		_exit(0);
	}
	CHECK_EQ(ended(pid), 0);
	serve_to_the_end();
	CHECK_EQ(leave_cnt, 1);
	have_no_more();
}

TEST(many_generations)
{
	pid_t pid;

	have(KIN_ANY_USE);
	pid = fork_it();
	if (pid == 0) {
		for (int i = 0; i < 20; i++) {
			pid = fork_it();
			if (pid)
				_exit(ended(pid));
		}
		CHECK_EQ(read_by(twin[0]), FD_PASS);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 1);
	have_no_more();
}

/* -- who dies ---------------------------------------------------------------------------- */

TEST(child_dies_before_the_answer)
{
	struct pollfd pfd = { .events = POLLIN };
	int status;
	pid_t pid;

	have(KIN_ANY_USE);
	pid = fork_it();
	if (pid == 0) {
		(void)read_by(twin[0]);
		_exit(0);
	}
	pfd.fd = channel_fd;
	CHECK_EQ(poll(&pfd, 1, 10000), 1);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	serve_to_the_end();
	CHECK_EQ(leave_cnt, 1);
	have_no_more();
}

static void allow_no_more_fds(void)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 3;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void parent_ends(bool childs_table_is_full)
{
	struct pollfd pfd = { .events = POLLIN };
	pid_t pid;

	have(KIN_ANY_USE);
	pid = fork_it();
	if (pid == 0) {
		if (childs_table_is_full)
			allow_no_more_fds();
		CHECK_EQ(read_by(twin[0]), FD_PASS);
		_exit(0);
	}
	pfd.fd = channel_fd;
	CHECK_EQ(poll(&pfd, 1, 10000), 1);
	kin_stop();
	CHECK(!kin_is_shared_since(kin_fork_cnt() - 1));
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 0);
	have_no_more();
}

/* Its thread ends without an answer: by the twin the child sees that it may go on. */
TEST(parent_ends_before_the_answer)
{
	parent_ends(false);
}

TEST(parent_ends_before_it_reads_what_has_no_way)
{
	parent_ends(true);
}

/* Without a way for the answer the child asks twice, and knows it by that. */
TEST(full_tables_keep_nobody_waiting)
{
	pid_t pid;

	have(KIN_ANY_USE);
	pid = fork_it();
	if (pid == 0) {
		allow_no_more_fds();
		CHECK_EQ(read_by(twin[0]), FD_PASS);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 2);
	have_no_more();
}

/* There is no thread that would answer. */
TEST(without_a_network_nothing_is_shared)
{
	have(KIN_ANY_USE);
	sock_params.net_if_made = no_net;
	CHECK(!kin_before_fork(KIN_ANY_USE));
	CHECK(!kin_is_shared_since(kin_fork_cnt() - 1));
	have_no_more();
}

TEST(channels_are_used_again)
{
	have(KIN_ANY_USE);
	for (int i = 0; i < 600; i++) {
		pid_t pid = fork_it();

		if (pid == 0)
			_exit(0);
		serve_to_the_end();
		CHECK_EQ(ended(pid), 0);
	}
	have_no_more();
}

/* How many children at once have a channel. */
static int children_with_channels(enum kin_use sets)
{
	int pipes[2], cnt = 0;
	char c;

	have(sets);
	CHECK_EQ(pipe(pipes), 0);
	while (cnt < 1000 && kin_before_fork(sets)) {
		pid_t pid = fork();

		if (pid == 0) {
			/* it has the end of its channel */
			close(pipes[1]);
			_exit((int)read(pipes[0], &c, 1));
		}
		kin_after_fork();
		cnt++;
	}
	close(pipes[1]);
	while (waitpid(-1, NULL, 0) > 0)
		;
	close(pipes[0]);
	kin_stop();
	have_no_more();
	return cnt;
}

/* So many that there is no channel left: what they might use has to go back before. */
TEST(too_many_children_are_refused)
{
	CHECK_EQ(children_with_channels(KIN_ANY_USE), 256);
}

/* Those that ask for changes alone leave the program its descriptors. */
TEST(children_that_need_no_answer_take_few_descriptors)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 64;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_EQ(children_with_channels(KIN_CHANGES), 4);
}

/* -- children that lie -------------------------------------------------------------------- */

/* As the channel's end knows it: object, inode, number. */
struct wish {
	uint64_t object, inode;
	int64_t fd;
};

static void say(int to, const void *text, size_t len, int fd_cnt)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)text, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[3] = { twin[1], twin[1], twin[1] };

	if (fd_cnt) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)fd_cnt * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN((size_t)fd_cnt * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, (size_t)fd_cnt * sizeof(int));
	}
	CHECK_EQ(sendmsg(to, &msg, 0), (ssize_t)len);
}

/* The channel's end in a child that has just been forked: the internal fd above ours. */
static int end_of_channel(void)
{
	int fd = fd_table_next_internal(0, ~0u);

	CHECK(fd >= 0);
	return fd;
}

static unsigned open_fds(void)
{
	unsigned cnt = 0;

	for (int fd = 0; fd < 4096; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}

TEST(lies_do_no_harm)
{
	unsigned open_cnt;
	struct stat st;
	pid_t pid;

	have(KIN_ANY_USE);
	CHECK_EQ(fstat(twin[0], &st), 0);
	open_cnt = open_fds();
	pid = fork_it();
	if (pid == 0) {
		int to = end_of_channel();
		struct wish wish = { (uintptr_t)&had, st.st_ino, twin[0] };
		struct wish wrong = wish;

		say(to, "x", 1, 1);
		say(to, &wish, sizeof(wish) - 1, 0);
		say(to, &wish, sizeof(wish) - 1, 3);
		wrong.object = 8;
		say(to, &wrong, sizeof(wrong), 2);
		wrong = wish;
		wrong.inode++;
		say(to, &wrong, sizeof(wrong), 1);
		wrong.fd = INT64_MIN;
		say(to, &wrong, sizeof(wrong), 1);
		wrong.fd = INT32_MAX;
		say(to, &wrong, sizeof(wrong), 1);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 0);
	CHECK_EQ(open_fds(), open_cnt);
	have_no_more();
}

/* There may be no room for it, in the child or here. */
TEST(what_has_no_way_for_an_answer_is_done)
{
	struct stat st;
	pid_t pid;

	have(KIN_ANY_USE);
	CHECK_EQ(fstat(twin[0], &st), 0);
	pid = fork_it();
	if (pid == 0) {
		struct wish wish = { (uintptr_t)&had, st.st_ino, twin[0] };

		say(end_of_channel(), &wish, sizeof(wish), 0);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 1);
	have_no_more();
}

/* The number is a hint alone. */
TEST(number_may_be_another)
{
	struct stat st;
	pid_t pid;

	have(KIN_ANY_USE);
	CHECK_EQ(fstat(twin[0], &st), 0);
	pid = fork_it();
	if (pid == 0) {
		struct wish wish = { (uintptr_t)&had, st.st_ino, -7 };

		say(end_of_channel(), &wish, sizeof(wish), 1);
		_exit(0);
	}
	serve_to_the_end();
	CHECK_EQ(ended(pid), 0);
	CHECK_EQ(leave_cnt, 1);
	have_no_more();
}
