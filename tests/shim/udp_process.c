/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: one thread, with the descriptors, processes and signals of which a
 * socket has to take notice. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/udp.h"
#include "tests/support/sleeper.h"

static void copies_share_the_socket(void)
{
	int pair[2], copy;

	make_pair(pair);
	copy = dup(pair[1]);
	send(pair[0], "one", 3, 0);
	send(pair[0], "two", 3, 0);
	receive(copy, 0);
	close(pair[1]);
	receive(copy, 0);
	send(pair[0], "three", 5, 0);
	receive(copy, 0);
	close(copy);
	SAY("send %s\n", err(send(pair[0], "four", 4, 0)));
	close(pair[0]);
}

static void child_and_parent(void)
{
	struct sockaddr_in name;
	int server = bound(&name), client, status;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		client = socket(AF_INET, SOCK_DGRAM, 0);
		sendto(client, "from the child", 14, 0,
		       (struct sockaddr *)&name, sizeof(name));
		_exit(0);
	}
	/* read first: what a parent leaves unread while a child lives, the child is
	 * taken to want */
	receive(server, 0);
	waitpid(pid, &status, 0);
	SAY("child %d\n", status);
	client = socket(AF_INET, SOCK_DGRAM, 0);
	sendto(client, "from the parent", 15, 0, (struct sockaddr *)&name,
	       sizeof(name));
	receive(server, 0);
	close(client);
	close(server);
}

/* A child reads what waited when it was made; what comes later is the parent's. */
static void inherited(void)
{
	char buf[32], expected[32];
	int pair[2], status, got;
	pid_t pid;

	make_pair(pair);
	for (int i = 0; i < 3; i++) {
		snprintf(buf, sizeof(buf), "number %d", i);
		send(pair[0], buf, 9, 0);
	}
	settle();
	/* a look is enough to have them in the queue */
	recv(pair[1], buf, sizeof(buf), MSG_PEEK);
	kernels_cnt += 3;
	pid = fork();
	if (pid == 0) {
		for (got = 0; got < 3; got++) {
			snprintf(expected, sizeof(expected), "number %d", got);
			if (recv(pair[1], buf, sizeof(buf), 0) != 9 ||
			    memcmp(buf, expected, 9) != 0)
				break;
		}
		_exit(got);
	}
	waitpid(pid, &status, 0);
	SAY("the child got %d\n", WEXITSTATUS(status));
	receive(pair[1], MSG_DONTWAIT);
	send(pair[0], "later", 5, 0);
	receive(pair[1], 0);
	close_pair(pair);
}

/* A child is served while the parent does not read, and then the parent is again. */
static void lent_and_back(void)
{
	enum { LATER = 40 };
	char buf[32];
	int pair[2], status;
	pid_t pid;

	make_pair(pair);
	pid = fork();
	if (pid == 0) {
		ssize_t n = recv(pair[1], buf, sizeof(buf), 0);

		_exit(n == 9 ? 0 : 1);
	}
	send(pair[0], "the child", 9, 0);
	kernels_cnt++;
	waitpid(pid, &status, 0);
	SAY("child %d\n", status);
	/* longer than it is lent at first */
	nanosleep(&(struct timespec){ .tv_nsec = 150000000 }, NULL);
	for (int i = 0; i < LATER; i++) {
		send(pair[0], "the parent", 10, 0);
		if (recv(pair[1], buf, sizeof(buf), 0) == 10)
			received_cnt++;
	}
	SAY("later %lu\n", received_cnt);
	close_pair(pair);
}

/* Whether something waits in the socket of the kernel's. */
static bool waits_in_kernel(int fd)
{
	struct sockaddr_in name = { 0 };
	socklen_t len = sizeof(name);
	FILE *file = fopen("/proc/net/udp", "re");
	unsigned port, waiting = 0;
	char line[256];

	if (getsockname(fd, (struct sockaddr *)&name, &len) != 0)
		SAY("getsockname: %m\n");
	while (file && !waiting && fgets(line, sizeof(line), file))
		if (sscanf(line, " %*u: %*x:%x %*x:%*x %*x %*x:%x", &port, &waiting) != 2 ||
		    port != ntohs(name.sin_port))
			waiting = 0;
	if (file)
		fclose(file);
	return waiting;
}

/* What waits when there is no child any more waits for the parent. Neither one that has
 * ended nor one that has become a program without sockets counts for ever. */
static void no_child_is_left(void)
{
	int pair[2], status;

	make_pair(pair);
	for (int i = 0; i < 2; i++)
		fcntl(pair[i], F_SETFD, FD_CLOEXEC);
	for (int runs_program = 0; runs_program < 2; runs_program++) {
		pid_t pid = fork();

		if (pid == 0 && runs_program)
			execl("/bin/true", "true", NULL);
		if (pid == 0)
			_exit(0);
		waitpid(pid, &status, 0);
		SAY("child %d\n", status);
	}
	send(pair[0], "waits", 5, 0);
	/* much longer than something has to wait to be a child's */
	nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
	if (getenv("VMA_TEST_LOCAL") && waits_in_kernel(pair[1]))
		SAY("it is left to a child\n");
	receive(pair[1], 0);
	close_pair(pair);
}

/* One that is made while the kernel has the socket for an earlier one, which has ended, is
 * served when the parent has it again. */
static void child_while_it_is_lent(void)
{
	char buf[32];
	int pair[2], status;

	make_pair(pair);
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			/* it has nothing else of its parent's */
			close(pair[0]);
			_exit(recv(pair[1], buf, sizeof(buf), 0) == 9 ? 0 : 1);
		}
		/* longer than it is lent at first */
		nanosleep(&(struct timespec){ .tv_nsec = 150000000 }, NULL);
		if (i)
			SAY("nothing %s\n", err(recv(pair[1], buf, sizeof(buf),
						     MSG_DONTWAIT)));
		send(pair[0], "the child", 9, 0);
		kernels_cnt++;
		waitpid(pid, &status, 0);
		SAY("child %d\n", status);
		/* that it has ended is noticed within a second */
		if (!i)
			nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 200000000 },
				  NULL);
	}
	close_pair(pair);
}

/* A program that was started with the socket may read it after all of its parent's forks. */
static void program_of_a_child_reads(void)
{
	enum { CNT = 3 };
	int pair[2], status;

	make_pair(pair);
	for (int i = 0; i < CNT; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			dup2(pair[1], STDIN_FILENO);
			execl("/bin/sh", "sh", "-c", "test $(head -c 6) = child",
			      NULL);
		}
		send(pair[0], "child\n", 6, 0);
		kernels_cnt++;
		waitpid(pid, &status, 0);
		SAY("program %d\n", status);
	}
	close_pair(pair);
}

/* All that waits is found by the kernel when the socket becomes its own. */
static void many_wait_at_a_leave(void)
{
	enum { CNT = 200 };
	char buf[16];
	int pair[2], ends[2], n = 0;

	make_pair(pair);
	if (pipe(ends) != 0)
		SAY("pipe: %m\n");
	for (int i = 0; i < CNT; i++) {
		send(pair[0], "waits", 5, 0);
		if (i % 20 == 19) {
			/* in the queue, not in a ring */
			settle();
			recv(pair[1], buf, sizeof(buf), MSG_PEEK);
		}
	}
	kernels_cnt += CNT;
	/* what splice takes is taken by the kernel */
	SAY("splice %zd\n", splice(pair[1], NULL, ends[1], NULL, 5, 0));
	while (recv(pair[1], buf, sizeof(buf), MSG_DONTWAIT) == 5)
		n++;
	SAY("left %d\n", n);
	received_cnt += (unsigned)n + 1;
	close(ends[0]);
	close(ends[1]);
	close_pair(pair);
}

static void handler(int sig)
{
	(void)sig;
}

/* The flag is the file's, which both processes have. */
static void nonblocking_by_a_child(void)
{
	struct sigaction act = { .sa_handler = handler };
	int pair[2];
	char c;
	ssize_t n;

	make_pair(pair);
	send(pair[0], "before", 6, 0);
	receive(pair[1], 0);
	sigaction(SIGALRM, &act, NULL);
	if (fork() == 0) {
		fcntl(pair[1], F_SETFL, O_NONBLOCK);
		_exit(0);
	}
	waitpid(-1, NULL, 0);
	alarm(5);
	n = recv(pair[1], &c, 1, 0);
	SAY("recv %s\n", err(n));
	alarm(0);
	fcntl(pair[1], F_SETFL, 0);
	send(pair[0], "after", 5, 0);
	receive(pair[1], 0);
	close_pair(pair);
}

struct interrupter {
	pthread_t target;
	_Atomic bool is_over;
};

/* Again and again, since one signal may come between two waits. */
static void *interrupt(void *arg)
{
	struct interrupter *self = arg;

	while (!self->is_over) {
		usleep(20000);
		pthread_kill(self->target, SIGUSR1);
	}
	return NULL;
}

static void interrupted(void)
{
	struct sigaction act = { .sa_handler = handler };
	struct interrupter interrupter = { .target = pthread_self() };
	struct pollfd fd = { .events = POLLIN };
	pthread_t thread;
	int pair[2], n;

	make_pair(pair);
	fd.fd = pair[1];
	sigaction(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, interrupt, &interrupter);
	receive(pair[1], 0);
	n = poll(&fd, 1, -1);
	SAY("poll %d %s\n", n, err(n));
	receive(pair[1], 0);
	interrupter.is_over = true;
	pthread_join(thread, NULL);
	close_pair(pair);
}

static int answer_by;

static void answer(int sig)
{
	(void)sig;
	send(answer_by, "from the handler", 16, 0);
}

static void *interrupt_once(void *arg)
{
	sleeper_await(getpid());
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

static void restarted_and_served_by_its_handler(void)
{
	struct sigaction act = { .sa_handler = answer, .sa_flags = SA_RESTART };
	pthread_t self = pthread_self(), thread;
	int pair[2];

	make_pair(pair);
	answer_by = pair[0];
	sigaction(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, interrupt_once, &self);
	receive(pair[1], 0);
	pthread_join(thread, NULL);
	close_pair(pair);
}

static sigjmp_buf out_of_here;

static void jump(int sig)
{
	(void)sig;
	siglongjmp(out_of_here, 1);
}

static void jumps_out_of_a_wait(void)
{
	struct sigaction act = { .sa_handler = jump };
	pthread_t self = pthread_self(), thread;
	int pair[2];

	make_pair(pair);
	sigaction(SIGUSR1, &act, NULL);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, interrupt_once, &self);
		if (sigsetjmp(out_of_here, 1) == 0)
			receive(pair[1], 0);
		pthread_join(thread, NULL);
		SAY("out\n");
	}
	send(pair[0], "still there", 11, 0);
	receive(pair[1], 0);
	close_pair(pair);
}

struct jumper {
	int fd;
	_Atomic pid_t tid;
};

static void overwrite_stack(void)
{
	volatile char bytes[20000];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0x5a;
}

static void *jump_out_and_end(void *arg)
{
	struct jumper *me = arg;
	char buf[8];

	if (sigsetjmp(out_of_here, 1) == 0) {
		me->tid = gettid();
		recv(me->fd, buf, sizeof(buf), 0);
		return NULL;
	}
	overwrite_stack();
	pthread_exit(me);
}

/* Nothing of the call is left that its end would come by. */
static void jumps_out_of_a_wait_and_ends(void)
{
	struct sigaction act = { .sa_handler = jump };
	struct jumper jumper = { 0 };
	pthread_t thread;
	void *result;
	int pair[2];

	make_pair(pair);
	jumper.fd = pair[1];
	sigaction(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, jump_out_and_end, &jumper);
	while (!jumper.tid)
		sched_yield();
	sleeper_await(jumper.tid);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, &result);
	SAY("%s\n", result == (void *)&jumper ? "ended" : "returned");
	send(pair[0], "still there", 11, 0);
	receive(pair[1], 0);
	close_pair(pair);
}

static void set_effective(uint32_t caps0)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	syscall(SYS_capget, &head, caps);
	caps[0].effective = caps0 & caps[0].permitted;
	if (syscall(SYS_capset, &head, caps) != 0)
		SAY("capset: %m\n");
}

/* Of what waits at a fork nothing is lost, and the buffer that the program once had the right
 * to ask for stays. */
static void forks_without_rights(void)
{
	static const int sizes[] = { 0, 32 << 20 };
	struct sockaddr_in name;
	socklen_t len = sizeof(int);
	int client = bound(&name);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		int fd = bound(&name), before = 0, after = 0, cnt = 0;
		pid_t pid;

		if (sizes[i])
			setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &sizes[i], sizeof(int));
		getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &before, &len);
		for (int n = 0; n < 150; n++)
			sendto(client, "datagram", 8, 0, (struct sockaddr *)&name, sizeof(name));
		settle();
		set_effective(~(1u << CAP_NET_ADMIN));
		pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		while (recv(fd, (char[8]){ 0 }, 8, MSG_DONTWAIT) == 8)
			cnt++;
		getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &after, &len);
		set_effective(~0u);
		kernels_cnt += (unsigned)cnt;
		SAY("%zu: %d of 150, buffer %s\n", i, cnt, after == before ? "as before" : "changed");
		close(fd);
	}
	close(client);
}

static int rcvbuf_of(int fd)
{
	int size = 0;
	socklen_t len = sizeof(size);

	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len);
	return size;
}

/* What waits at a fork may take more of the kernel's buffer than it did here. That leaves as
 * much room as before for what comes by the kernel alone, as long datagrams do over a wire. */
static void long_ones_behind_what_waits(void)
{
	enum { WAIT = 100, BEHIND = 20 };
	static const char datagram[2000];
	struct sockaddr_in name;
	int client = bound(&name), fd = bound(&name), cnt = 0;
	int before = rcvbuf_of(fd), meanwhile;
	pid_t pid;

	for (int n = 0; n < WAIT; n++)
		sendto(client, datagram, 8, 0, (struct sockaddr *)&name, sizeof(name));
	settle();
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	for (int n = 0; n < BEHIND; n++)
		sendto(client, datagram, sizeof(datagram), 0, (struct sockaddr *)&name,
		       sizeof(name));
	settle();
	meanwhile = rcvbuf_of(fd);
	while (recv(fd, (char[8]){ 0 }, 8, MSG_DONTWAIT) == 8)
		cnt++;
	SAY("%d of %d, buffer %+d, then %+d\n", cnt, WAIT + BEHIND, meanwhile - before,
	    rcvbuf_of(fd) - before);
	kernels_cnt += (unsigned)cnt;
	close(fd);
	close(client);
}

/* How wide the kernel's buffer is, which the library may have made wider than the program sees. */
static int kernels_rcvbuf_of(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len);
	return (int)info[SK_MEMINFO_RCVBUF];
}

/* Whatever the program asks for meanwhile, it has from then on. */
static void buffer_is_set_while_something_waits(void)
{
	struct sockaddr_in name;
	int client = bound(&name), fd = bound(&name), half, cnt = 0;
	pid_t pid;

	for (int n = 0; n < 100; n++)
		sendto(client, "datagram", 8, 0, (struct sockaddr *)&name, sizeof(name));
	settle();
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	half = kernels_rcvbuf_of(fd) / 2;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof(half));
	SAY("set: %d\n", rcvbuf_of(fd) == 2 * half);
	while (recv(fd, (char[8]){ 0 }, 8, MSG_DONTWAIT) == 8)
		cnt++;
	SAY("%d read: %d %d\n", cnt, rcvbuf_of(fd) == 2 * half,
	    kernels_rcvbuf_of(fd) == 2 * half);
	kernels_cnt += (unsigned)cnt;
	close(fd);
	close(client);
}

/* -- forks beside a stream --------------------------------------------------------- */

/* Numbered datagrams that go on while the receiver's process makes children. */
struct stream {
	int pair[2];
	unsigned max; /* in a round */
	_Atomic unsigned sent;
	_Atomic bool is_made; /* the child */
};

/* Until the child is made, though not more than may wait. */
static void *send_numbers(void *arg)
{
	struct stream *s = arg;
	unsigned end = s->sent + s->max;

	while (s->sent < end && !s->is_made) {
		uint32_t number = s->sent;

		if (send(s->pair[0], &number, sizeof(number), 0) != sizeof(number))
			break;
		s->sent++;
	}
	return NULL;
}

/* What one reader has received so far. */
struct numbers {
	unsigned cnt, disorder;
	uint32_t next;
};

/* False: none is there within that time. */
static bool take_number(int fd, struct numbers *n, int patience_ms)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	uint32_t number;

	/* what somebody was told of may be on its way to the child just then */
	do {
		if (poll(&readable, 1, patience_ms) != 1)
			return false;
	} while (recv(fd, &number, sizeof(number), MSG_DONTWAIT) != sizeof(number));
	n->cnt++;
	n->disorder += number < n->next;
	n->next = number + 1;
	return true;
}

enum { PATIENCE_MS = 3000 };

static unsigned make_by_fork(int fd)
{
	pid_t pid = fork();

	(void)fd;
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return 0;
}

static unsigned make_by_spawn(int fd)
{
	char *argv[] = { (char *)"true", NULL };
	pid_t pid;

	(void)fd;
	if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) != 0)
		SAY("spawn: %m\n");
	else
		waitpid(pid, NULL, 0);
	return 0;
}

/* The child takes some itself, beside its parent. */
static unsigned make_a_reader(int fd)
{
	struct numbers n = { 0 };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		while (n.cnt < 20 && take_number(fd, &n, 0))
			;
		_exit((int)n.cnt + (n.disorder ? 128 : 0));
	}
	waitpid(pid, &status, 0);
	if (WEXITSTATUS(status) & 128)
		SAY("out of order in the child\n");
	return WEXITSTATUS(status) & 127;
}

static void stream_beside(unsigned (*make)(int fd), int flags)
{
	enum { ROUNDS = 40 };
	struct stream s = { .max = 100 };
	struct numbers n = { 0 };
	unsigned by_children = 0;
	pthread_t thread;

	make_pair(s.pair);
	fcntl(s.pair[1], F_SETFD, flags);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned begin = s.sent;

		s.is_made = false;
		pthread_create(&thread, NULL, send_numbers, &s);
		while (s.sent < begin + 10)
			sched_yield();
		by_children += make(s.pair[1]);
		s.is_made = true;
		pthread_join(thread, NULL);
		while (n.cnt + by_children < s.sent &&
		       take_number(s.pair[1], &n, PATIENCE_MS))
			;
	}
	while (take_number(s.pair[1], &n, 0))
		;
	SAY("%u out of order, %d lost\n", n.disorder,
	    (int)(s.sent - by_children - n.cnt));
	/* which has them all while the socket is lent */
	kernels_cnt += s.sent;
	close_pair(s.pair);
}

static void forks_beside_a_stream(void)
{
	stream_beside(make_by_fork, 0);
	stream_beside(make_by_fork, FD_CLOEXEC);
}

static void spawns_beside_a_stream(void)
{
	stream_beside(make_by_spawn, 0);
	stream_beside(make_by_spawn, FD_CLOEXEC);
}

static void child_reads_of_a_stream(void)
{
	stream_beside(make_a_reader, 0);
}

/* One thread reads while another one forks. */
struct stream_reader {
	struct stream stream;
	_Atomic unsigned taken;
	unsigned total;
	struct numbers numbers;
};

static void *read_numbers(void *arg)
{
	struct stream_reader *r = arg;

	while (r->taken < r->total &&
	       take_number(r->stream.pair[1], &r->numbers, PATIENCE_MS))
		r->taken++;
	/* lost ones would hold up the sender for ever */
	r->taken = r->total;
	return NULL;
}

static void *send_what_is_taken(void *arg)
{
	struct stream_reader *r = arg;

	for (uint32_t n = 0; n < r->total; n++) {
		while (n - r->taken >= r->stream.max && r->taken < r->total)
			sched_yield();
		send(r->stream.pair[0], &n, sizeof(n), 0);
		r->stream.sent++;
	}
	return NULL;
}

static void forks_beside_a_reader(void)
{
	struct stream_reader r = { .stream = { .max = 64 }, .total = 4000 };
	pthread_t sender, reader;

	make_pair(r.stream.pair);
	pthread_create(&reader, NULL, read_numbers, &r);
	pthread_create(&sender, NULL, send_what_is_taken, &r);
	while (r.taken < r.total)
		make_by_fork(-1);
	pthread_join(sender, NULL);
	pthread_join(reader, NULL);
	SAY("%u out of order, %u lost\n", r.numbers.disorder, r.total - r.numbers.cnt);
	kernels_cnt += r.total;
	close_pair(r.stream.pair);
}

/* -- a set of two processes ---------------------------------------------------------- */

enum { END_WORD = 7 };

static bool hears_of_the_end_alone(int set)
{
	struct epoll_event event = { 0 };

	return epoll_wait(set, &event, 1, -1) == 1 && event.data.u64 == END_WORD;
}

struct waits_for_the_end {
	int set;
	_Atomic pid_t tid;
	bool is_right;
};

static void *wait_for_the_end(void *arg)
{
	struct waits_for_the_end *me = arg;

	me->tid = gettid();
	me->is_right = hears_of_the_end_alone(me->set);
	return NULL;
}

static void await_sleep_of(pid_t pid)
{
	char path[32], text[16];
	long call = 0;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	while (call != SYS_epoll_pwait
#ifdef SYS_epoll_wait
	       && call != SYS_epoll_wait
#endif
	) {
		FILE *file = fopen(path, "r");

		sched_yield();
		call = file && fgets(text, sizeof(text), file) ? strtol(text, NULL, 10) : 0;
		if (file)
			fclose(file);
	}
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* The set gets its first socket. Who sleeps for it may have to be woken for that, but not a
 * child, with threads or without. Returns whether the child is told of nothing else. */
static bool child_waits_beside(bool has_threads)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = END_WORD };
	struct waits_for_the_end me = { .set = epoll_create1(0) };
	int end[2], begin[2], fd, status = 0;
	struct sockaddr_in name;
	pthread_t thread;
	pid_t pid;
	char x;

	if (pipe(end) != 0 || pipe(begin) != 0)
		SAY("pipe: %m\n");
	epoll_ctl(me.set, EPOLL_CTL_ADD, end[0], &event);
	pid = fork();
	if (pid == 0) {
		if (has_threads && pthread_create(&thread, NULL, do_nothing, NULL) == 0)
			pthread_join(thread, NULL);
		_exit(read(begin[0], &x, 1) != 1 || !hears_of_the_end_alone(me.set));
	}
	pthread_create(&thread, NULL, wait_for_the_end, &me);
	while (!me.tid)
		sched_yield();
	sleeper_await(me.tid);
	/* Linux wakes the last one first */
	if (write(begin[1], "x", 1) != 1)
		SAY("write: %m\n");
	await_sleep_of(pid);
	fd = bound(&name);
	event.data.u64 = 1;
	epoll_ctl(me.set, EPOLL_CTL_ADD, fd, &event);
	if (write(end[1], "x", 1) != 1)
		SAY("write: %m\n");
	pthread_join(thread, NULL);
	waitpid(pid, &status, 0);
	if (!me.is_right)
		SAY("stray\n");
	close(fd);
	close(me.set);
	for (int i = 0; i < 2; i++) {
		close(end[i]);
		close(begin[i]);
	}
	return status == 0;
}

static void set_of_a_child_gets_a_socket(void)
{
	for (int has_threads = 0; has_threads < 2; has_threads++)
		SAY("%s\n", child_waits_beside(has_threads) ? "the end" : "more");
}

const struct scenario process_scenarios[] = {
	SCENARIO(copies_share_the_socket, 0),
	SCENARIO(child_and_parent, 1),
	SCENARIO(inherited, 0),
	SCENARIO(lent_and_back, 1),
	SCENARIO(no_child_is_left, 0),
	SCENARIO(child_while_it_is_lent, 0),
	SCENARIO(program_of_a_child_reads, 0),
	SCENARIO(many_wait_at_a_leave, 200),
	SCENARIO(nonblocking_by_a_child, 0),
	SCENARIO(interrupted, 0),
	SCENARIO(restarted_and_served_by_its_handler, 0),
	SCENARIO(jumps_out_of_a_wait, 0),
	SCENARIO(jumps_out_of_a_wait_and_ends, 0),
	SCENARIO(forks_without_rights, 0),
	SCENARIO(long_ones_behind_what_waits, 0),
	SCENARIO(buffer_is_set_while_something_waits, 0),
	SCENARIO(forks_beside_a_stream, 0),
	SCENARIO(spawns_beside_a_stream, 0),
	SCENARIO(child_reads_of_a_stream, 0),
	SCENARIO(forks_beside_a_reader, 0),
	SCENARIO(set_of_a_child_gets_a_socket, 0),
	SCENARIO_END,
};
