/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Operations of sequences that make processes, go on in another program, or send fds. One
 * process plays at a time, and all of them write into one record, so the outcome does
 * not depend on who is faster.
 */
#define _GNU_SOURCE
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/sequences/play.h"

/* A process that has not come to its end by then is ended. */
enum { PATIENCE_S = 20 };

/* What had been received when this process began. */
static unsigned long received_before, carried_before;

/* -- the record ------------------------------------------------------------------------- */

struct record *record_open(int fd)
{
	void *record = mmap(NULL, sizeof(struct record), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);

	if (record == MAP_FAILED)
		abort();
	return record;
}

struct record *record_create(void)
{
	int fd = memfd_create("record", MFD_CLOEXEC);
	struct record *record;

	if (fd < 0 || ftruncate(fd, sizeof(*record)) != 0)
		abort();
	record = record_open(fd);
	record->fd = fd;
	return record;
}

const char *record_text(const struct record *record, unsigned *len_out)
{
	*len_out = record->len;
	return record->text;
}

void record_clear(struct record *record)
{
	record->len = 0;
}

unsigned long record_received(const struct record *record)
{
	return record->received;
}

unsigned long record_carried(const struct record *record)
{
	return record->carried;
}

static unsigned long carried(void)
{
	unsigned long (*count)(void) = (unsigned long (*)(void))dlsym(
		RTLD_DEFAULT, "vma_test_local_rx_cnt");

	return count ? count() : 0;
}

void process_begin(void)
{
	received_before = sequence_received;
	carried_before = carried();
}

void process_account(void)
{
	play.record->received += sequence_received - received_before;
	play.record->carried += carried() - carried_before;
	process_begin();
}

static bool is_ready(int slot)
{
	struct pollfd fd = { .fd = play.fds[slot], .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* What other processes and programs do not find as it is here: whom a listener has queued,
 * who stays with the process that has completed the connection. Of datagrams, those of the
 * kernel's and ours have no order. */
static bool is_something_private(void)
{
	for (int i = 0; i < SLOTS; i++) {
		const char *what = is_listener(i) && is_ready(i) ? "is waited for" :
				   is_unread(i)			 ? "is unread" :
								   NULL;

		if (what) {
			say(" %d %s", i, what);
			return true;
		}
	}
	return false;
}

/* -- sending fds --------------------------------------------------------------------------- */

static void make_post(int ends[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		abort();
}

static void send_fd(int by, int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, c = 'x';
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = space,
			      .msg_controllen = sizeof(space) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	said(sendmsg(by, &msg, MSG_DONTWAIT));
}

static void take_fd(int by, int slot)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, c = 0;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = space,
			      .msg_controllen = sizeof(space) };
	struct cmsghdr *cmsg;
	int fd;

	if (!said(recvmsg(by, &msg, MSG_DONTWAIT)))
		return;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS) {
		say(" no fd");
		return;
	}
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	put(slot, fd, !(fcntl(fd, F_GETFL) & O_NONBLOCK));
}

void play_pass(const struct op *op)
{
	if (is_something_private())
		return;
	if (play.post[0] < 0)
		make_post(play.post);
	share_all();
	send_fd(play.post[0], play.fds[op->a]);
}

void play_take(const struct op *op)
{
	take_fd(play.post[1], op->a);
}

/* -- processes ----------------------------------------------------------------------------- */

static pid_t fork_here(void)
{
	pid_t pid;

	fflush(NULL);
	share_all();
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		play.is_forked = true;
		alarm(PATIENCE_S);
		forget_other();
		process_begin();
	}
	return pid;
}

void process_end(const struct ending *ending)
{
	if (ending->by >= 0) {
		say("child sends %d:", ending->slot);
		send_fd(ending->by, play.fds[ending->slot]);
		say("\n");
	}
	process_account();
	switch (ending->how) {
	case END_AT_ONCE:
		_exit(0);
	case END_BY_EXIT:
		exit(0);
	case END_BY_SIGNAL:
		raise(SIGTERM);
		abort();
	default:
		execl("/bin/true", "true", NULL);
		abort();
	}
}

/* A child plays the next op->n operations, and ends. FORK_HANDS: its slot a becomes the
 * parent's b. */
void play_fork(const struct op *op)
{
	int ends[2], status = 0;
	pid_t pid;

	end_meanwhile();
	if (is_something_private())
		return;
	make_post(ends);
	say("\n");
	pid = fork_here();
	if (pid == 0) {
		close(ends[0]);
		play.is_child = true;
		play.ending = (struct ending){
			.how = op->flags & END_MASK,
			.slot = op->a,
			.by = op->flags & FORK_HANDS ? ends[1] : -1,
		};
		play.until = MIN(play.at + 1 + op->n, play.until);
		play.at++;
		play_ops();
	}
	close(ends[1]);
	if (waitpid(pid, &status, 0) != pid)
		abort();
	say("child ended, status %x:", (unsigned)status);
	if (op->flags & FORK_HANDS)
		take_fd(ends[0], op->b);
	close(ends[0]);
	play.at = MIN(play.at + op->n, play.until - 1);
}

static void await_end_of(pid_t parent)
{
	while (getppid() == parent)
		usleep(100);
}

/* As daemons do: this process ends, and a child plays the rest. */
void play_leave(const struct op *op)
{
	struct ending ending = { .how = op->flags & END_MASK, .by = -1 };
	pid_t parent = getpid();

	end_meanwhile();
	if (is_something_private())
		return;
	if (fork_here())
		process_end(&ending);
	await_end_of(parent);
}

static void keep_at_exec(int fd)
{
	if (fd >= 0 && fcntl(fd, F_SETFD, 0) != 0)
		abort();
}

/* The program begins anew, with the fds that stay, and plays from play.at on. */
static void begin_anew(void)
{
	char record[16];
	char *args[] = { "sequences", "go-on", record, NULL };

	share_all();
	play.is_forked = false;
	play.record->play = play;
	play.record->sequence = *play.s;
	keep_at_exec(play.post[0]);
	keep_at_exec(play.post[1]);
	keep_at_exec(play.is_child ? play.ending.by : -1);
	keep_at_exec(play.record->fd);
	snprintf(record, sizeof(record), "%d", play.record->fd);
	execv("/proc/self/exe", args);
	abort();
}

void play_exec(const struct op *op UNUSED)
{
	end_meanwhile();
	if (is_something_private())
		return;
	say("\n");
	process_account();
	play.at++;
	begin_anew();
}

/* Not a mere child, which has no local device. */
void sequence_play_apart(const struct sequence *s, struct record *record)
{
	int life[2];
	char c;
	pid_t pid;

	fflush(NULL);
	if (pipe(life) != 0 || (pid = fork()) < 0)
		abort();
	if (pid == 0) {
		close(life[0]);
		alarm(PATIENCE_S);
		play_prepare(s, record);
		begin_anew();
	}
	close(life[1]);
	(void)!read(life[0], &c, 1);
	close(life[0]);
	waitpid(pid, NULL, 0);
}

void sequence_go_on(struct record *record)
{
	play = record->play;
	play.record = record;
	play.s = &record->sequence;
	for (int i = 0; i < SLOTS; i++)
		if (fcntl(play.fds[i], F_GETFD) < 0)
			play.fds[i] = -1;
	play_ops();
}
