/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of doors.sh: filters, under which the library must not make a call, and rings
 * and AIO, by which the kernel reads from sockets without a call. */
#include "config.h"

#include <aio.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/doors.h"

/* -- filters of system calls ----------------------------------------------------------- */

/* What the program itself needs from then on, and nothing that a library might: whoever
 * calls anything else is killed. */
static const int allowed[] = {
	SYS_read, SYS_write, SYS_recvfrom, SYS_sendto, SYS_close, SYS_socket,
	SYS_clock_nanosleep, SYS_exit_group, SYS_exit, SYS_futex, SYS_brk,
	SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_getpid, SYS_gettid,
	SYS_epoll_wait,
#if HAS_THREAD_SANITIZER
	SYS_nanosleep, SYS_gettimeofday, /* its own thread */
#endif
};

static struct sock_filter filter_code[4 + 2 * ARRAY_LEN(allowed)];

static struct sock_fprog filter(void)
{
	unsigned n = 0;

	filter_code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		filter_code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
		filter_code[n++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter_code[n++] = (struct sock_filter)BPF_STMT(
		BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	return (struct sock_fprog){ (unsigned short)n, filter_code };
}

static _Atomic bool is_there;

static void *sleep_in_kernel(void *arg)
{
	(void)arg;
	/* whatever libc has to do for a new thread has been done */
	atomic_store(&is_there, true);
	sleep(60);
	return NULL;
}

static void live_under_filter(const int pair[2], int epfd)
{
	struct epoll_event event = { 0 };
	int fd;

	SAY("set: %d\n", epoll_wait(epfd, &event, 1, 0));
	receive(pair[0], MSG_DONTWAIT);
	receive(pair[0], MSG_DONTWAIT);
	receive(pair[0], MSG_DONTWAIT);
	send(pair[1], "third", 5, 0);
	receive(pair[0], 0);
	SAY("set: %d\n", epoll_wait(epfd, &event, 1, 0));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	SAY("another: %d\n", fd > pair[1]);
	close(fd);
	/* whatever the library does each second */
	sleep(2);
	SAY("alive\n");
	close_pair(pair);
}

static void filter_for_one_thread(void)
{
	struct sock_fprog program = filter();
	int pair[2], epfd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };

	make_waiting_pair(pair);
	epoll_ctl(epfd, EPOLL_CTL_ADD, pair[0], &event);
	SAY("set: %d\n", epoll_wait(epfd, &event, 1, 0));
	SAY("no new privileges: %d\n",
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SAY("nothing: %s\n", err(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
					NULL)));
	SAY("nothing: %s\n", err(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					 0, NULL)));
	SAY("mode: %d\n", prctl(PR_GET_SECCOMP));
	receive(pair[0], MSG_DONTWAIT);
	receive(pair[0], MSG_DONTWAIT);
	still_hears(pair[0], pair[1]);
	send(pair[1], "first", 5, 0);
	send(pair[1], "second", 6, 0);
	SAY("filter: %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
				   &program));
	live_under_filter(pair, epfd);
}

static void filter_for_all_threads(void)
{
	struct sock_fprog program = filter();
	int pair[2], epfd = epoll_create1(0);
	pthread_t thread;

	pthread_create(&thread, NULL, sleep_in_kernel, NULL);
	while (!atomic_load(&is_there))
		usleep(1000);
	make_waiting_pair(pair);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	SAY("filter: %ld\n", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				     SECCOMP_FILTER_FLAG_TSYNC, &program));
	live_under_filter(pair, epfd);
}

/* All calls but one. */
static void filter_out(int call, unsigned answer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	SAY("filter: %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* The library looks for signals that end the process as long as it has a connection. */
static void make_connection(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(name);

	bind(listener, (struct sockaddr *)&name, sizeof(name));
	listen(listener, 1);
	getsockname(listener, (struct sockaddr *)&name, &len);
	SAY("connect %s\n", err(connect(fd, (struct sockaddr *)&name, len)));
	SAY("accept %d\n", accept(listener, NULL, NULL) > listener);
}

static _Atomic int handled_cnt;

static void count_handled(int sig)
{
	(void)sig;
	atomic_fetch_add(&handled_cnt, 1);
}

static void filter_without_signal_masks(void)
{
	struct sigaction action = { .sa_handler = count_handled }, before;
	int pair[2], status = 0;

	make_waiting_pair(pair);
	sigaction(SIGUSR1, &action, NULL);
	filter_out(SYS_rt_sigprocmask, SECCOMP_RET_KILL_PROCESS);
	kill(getpid(), SIGUSR1);
	sigaction(SIGUSR2, &action, &before);
	SAY("before %d\n", before.sa_handler == SIG_DFL);
	sigaction(SIGUSR1, NULL, &before);
	SAY("it is ours %d\n", before.sa_handler == count_handled);
	kill(getpid(), SIGUSR2);
	SAY("handled %d\n", atomic_load(&handled_cnt));
	if (fork() == 0)
		_exit(3);
	wait(&status);
	SAY("child %#x\n", (unsigned)status);
	close_pair(pair);
}

static void filter_without_signals_to_threads(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		make_connection();
		filter_out(SYS_tgkill, SECCOMP_RET_ERRNO | EPERM);
		kill(getpid(), SIGTERM);
		SAY("alive\n");
		_exit(0);
	}
	waitpid(pid, &status, 0);
	SAY("child %#x\n", (unsigned)status);
}

static void filter_without_process_numbers(void)
{
	char *args[] = { "none", NULL };
	int pair[2], status = 0;
	pid_t pid;

	make_waiting_pair(pair);
	filter_out(SYS_getpid, SECCOMP_RET_KILL_PROCESS);
	SAY("exec %s\n", err(execv("/none", args)));
	pid = fork();
	if (pid == 0)
		_exit(3);
	waitpid(pid, &status, 0);
	SAY("child %#x\n", (unsigned)status);
	close_pair(pair);
}

/* Before the first socket of the process. */
static void filter_before_sockets(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		filter_out(SYS_openat, SECCOMP_RET_KILL_PROCESS);
		SAY("setuid %s\n", err(setuid(getuid())));
		SAY("socket %d\n", socket(AF_INET, SOCK_DGRAM, 0) >= 0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	SAY("child %#x\n", (unsigned)status);
}

static void filter_without_a_look_at_rights(void)
{
	int pair[2];

	make_waiting_pair(pair);
	filter_out(SYS_capget, SECCOMP_RET_KILL_PROCESS);
	SAY("setresuid %s\n", err(setresuid(1000, 1000, 1000)));
	close_pair(pair);
}

/* -- readers that nobody sees ----------------------------------------------------------- */

/* As in programs that contain system calls of their own. */
static long call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#else
	long (*libc)(long, ...) = (long (*)(long, ...))dlsym(
		dlopen("libc.so.6", RTLD_NOW), "syscall");

	return libc(number, a, b, c, d, e, f);
#endif
}

struct ring {
	int fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
};

static void map_ring(struct ring *ring)
{
	size_t sq = ring->params.sq_off.array +
		    ring->params.sq_entries * sizeof(unsigned);
	size_t cq = ring->params.cq_off.cqes +
		    ring->params.cq_entries * sizeof(struct io_uring_cqe);

	ring->sq = mmap(NULL, sq, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			IORING_OFF_SQ_RING);
	ring->cq = mmap(NULL, cq, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, ring->params.sq_entries * sizeof(*ring->sqes),
			  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			  IORING_OFF_SQES);
}

/* False: the kernel has none for us. */
static bool make_ring(struct ring *ring, bool by_libc)
{
	memset(ring, 0, sizeof(*ring));
	ring->fd = (int)(by_libc ? syscall(SYS_io_uring_setup, 4, &ring->params) :
				   call_kernel(SYS_io_uring_setup, 4,
					       (long)&ring->params, 0, 0, 0, 0));
	if (ring->fd >= 0)
		map_ring(ring);
	return ring->fd >= 0;
}

static unsigned *word(char *base, unsigned offset)
{
	return (unsigned *)(void *)(base + offset);
}

/* One datagram by the ring, which waits for it. */
static void submit_recv(struct ring *ring, int fd, char *buf, size_t len)
{
	unsigned *tail = word(ring->sq, ring->params.sq_off.tail);
	unsigned at = *tail & *word(ring->sq, ring->params.sq_off.ring_mask);
	struct io_uring_sqe *sqe = &ring->sqes[at];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_RECV;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)buf;
	sqe->len = (unsigned)len;
	word(ring->sq, ring->params.sq_off.array)[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (call_kernel(SYS_io_uring_enter, ring->fd, 1, 0, 0, 0, 0) != 1)
		SAY("io_uring_enter fails\n");
}

/* Its result, or -ETIME after five seconds. */
static int await_recv(struct ring *ring)
{
	unsigned *head = word(ring->cq, ring->params.cq_off.head);
	unsigned *tail = word(ring->cq, ring->params.cq_off.tail);
	struct io_uring_cqe *cqes =
		(void *)(ring->cq + ring->params.cq_off.cqes);

	for (int i = 0; i < 500; i++) {
		if (__atomic_load_n(tail, __ATOMIC_ACQUIRE) != *head) {
			int result = cqes[*head & *word(ring->cq,
				ring->params.cq_off.ring_mask)].res;

			__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
			return result;
		}
		usleep(10000);
	}
	return -ETIME;
}

static void receive_by_ring(struct ring *ring, int fd, int from, const char *what)
{
	char buf[64] = "";
	int result;

	submit_recv(ring, fd, buf, sizeof(buf) - 1);
	if (what)
		send(from, what, strlen(what), 0);
	result = await_recv(ring);
	SAY("by ring: %d %s\n", result, buf);
}

/* As libuv does: without a ring it does the same by other calls. */
static void ring_with_a_way_around(void)
{
	struct ring ring;
	int pair[2];
	bool is_made = make_ring(&ring, true);

	make_pair(pair);
	if (is_made) {
		receive_by_ring(&ring, pair[0], pair[1], "first");
	} else {
		send(pair[1], "first", 5, 0);
		SAY("by ring: 5 first\n");
		recv(pair[0], (char[8]){ "" }, 8, 0);
	}
	/* and stays accelerated */
	sleep(2);
	still_hears(pair[0], pair[1]);
	close_pair(pair);
}

static void ring_of_its_own_before_sockets(void)
{
	struct ring ring;
	int pair[2];

	if (!make_ring(&ring, false))
		SAY("no ring\n");
	make_pair(pair);
	receive_by_ring(&ring, pair[0], pair[1], "first");
	receive_by_ring(&ring, pair[0], pair[1], "second");
	close_pair(pair);
}

/* What waits is the ring's, too. */
static void ring_of_its_own_after_sockets(void)
{
	struct ring ring;
	int pair[2];

	make_waiting_pair(pair);
	if (!make_ring(&ring, false))
		SAY("no ring\n");
	receive_by_ring(&ring, pair[0], pair[1], NULL);
	receive_by_ring(&ring, pair[0], pair[1], NULL);
	receive_by_ring(&ring, pair[0], pair[1], "third");
	close_pair(pair);
}

static void aio_reads_what_waits(void)
{
	char buf[64] = "";
	struct iocb iocb = { .aio_lio_opcode = IOCB_CMD_PREAD,
			     .aio_buf = (uintptr_t)buf,
			     .aio_nbytes = sizeof(buf) - 1 };
	struct iocb *list[] = { &iocb };
	aio_context_t context = 0;
	struct io_event event = { 0 };
	int pair[2], other[2];

	make_waiting_pair(pair);
	make_pair(other);
	SAY("io_setup: %ld\n", syscall(SYS_io_setup, 4, &context));
	for (int i = 0; i < 2; i++) {
		iocb.aio_fildes = (unsigned)pair[0];
		SAY("io_submit: %ld\n", syscall(SYS_io_submit, context, 1, list));
		SAY("io_getevents: %ld\n",
		    syscall(SYS_io_getevents, context, 1, 1, &event, NULL));
		SAY("read: %lld %s\n", (long long)event.res, buf);
		memset(buf, 0, sizeof(buf));
	}
	SAY("none: %s\n", err(syscall(SYS_io_submit, context, 1, NOWHERE)));
	/* another one's are not concerned */
	still_hears(other[0], other[1]);
	close_pair(pair);
	close_pair(other);
}

/* The last of more than other interfaces take at once. */
static void aio_reads_by_a_long_list(void)
{
	enum { CNT = 5000 };
	static struct iocb iocbs[CNT], *list[CNT];
	static struct io_event events[CNT];
	int zero = open("/dev/zero", O_RDONLY), pair[2];
	char buf[64] = "", byte;
	aio_context_t context = 0;
	long n;

	make_waiting_pair(pair);
	for (int i = 0; i < CNT; i++) {
		bool is_last = i == CNT - 1;

		iocbs[i] = (struct iocb){
			.aio_data = is_last,
			.aio_lio_opcode = IOCB_CMD_PREAD,
			.aio_fildes = (unsigned)(is_last ? pair[0] : zero),
			.aio_buf = (uintptr_t)(is_last ? buf : &byte),
			.aio_nbytes = is_last ? sizeof(buf) - 1 : 1,
		};
		list[i] = &iocbs[i];
	}
	SAY("io_setup: %ld\n", syscall(SYS_io_setup, CNT, &context));
	SAY("io_submit: %ld\n", syscall(SYS_io_submit, context, CNT, list));
	n = syscall(SYS_io_getevents, context, CNT, CNT, events, NULL);
	SAY("io_getevents: %ld\n", n);
	for (long i = 0; i < n; i++)
		if (events[i].data)
			SAY("read: %lld %s\n", (long long)events[i].res, buf);
	syscall(SYS_io_destroy, context);
	close(zero);
	close_pair(pair);
}

/* By a context of libaio, which makes its system calls itself. What waits is the
 * context's, too. */
static void context_of_its_own_after_sockets(void)
{
	char buf[64] = "";
	struct iocb iocb = { .aio_lio_opcode = IOCB_CMD_PREAD,
			     .aio_buf = (uintptr_t)buf,
			     .aio_nbytes = sizeof(buf) - 1 };
	struct iocb *list[] = { &iocb };
	aio_context_t context = 0;
	struct io_event event = { 0 };
	int pair[2];

	make_waiting_pair(pair);
	SAY("io_setup: %ld\n", call_kernel(SYS_io_setup, 4, (long)&context, 0, 0,
					   0, 0));
	iocb.aio_fildes = (unsigned)pair[0];
	for (int i = 0; i < 2; i++) {
		SAY("io_submit: %ld\n", call_kernel(SYS_io_submit, (long)context,
						    1, (long)list, 0, 0, 0));
		SAY("io_getevents: %ld\n",
		    call_kernel(SYS_io_getevents, (long)context, 1, 1,
				(long)&event, 0, 0));
		SAY("read: %lld %s\n", (long long)event.res, buf);
		memset(buf, 0, sizeof(buf));
	}
	close_pair(pair);
}

/* Of files alone, by syscall(): each submission says of which fd it is. */
static void contexts_of_files_leave_sockets_alone(void)
{
	aio_context_t context = 0, second = 0;
	int pair[2];

	SAY("io_setup: %ld\n", syscall(SYS_io_setup, 4, &context));
	make_pair(pair);
	SAY("io_setup: %ld\n", syscall(SYS_io_setup, 4, &second));
	still_hears(pair[0], pair[1]);
	sleep(3);
	still_hears(pair[0], pair[1]);
	SAY("io_destroy: %ld\n", syscall(SYS_io_destroy, context));
	SAY("io_destroy: %ld\n", syscall(SYS_io_destroy, second));
	close_pair(pair);
}

/* -- readers and writers among libc's own threads ---------------------------------------- */

/* The result, or ETIMEDOUT after five seconds. */
static void await_aio(struct aiocb *cb)
{
	const struct aiocb *const list[] = { cb };
	struct timespec patience = { .tv_sec = 5 };

	SAY("aio_suspend: %s\n", err(aio_suspend(list, 1, &patience)));
	SAY("%s ", strerror(aio_error(cb)));
	SAY("%zd %s\n", aio_return(cb), (const char *)cb->aio_buf);
}

static void posix_aio_reads_what_waits(void)
{
	char buf[64] = "";
	struct aiocb cb = { .aio_buf = buf, .aio_nbytes = sizeof(buf) - 1 };
	int pair[2], other[2];

	make_waiting_pair(pair);
	make_pair(other);
	cb.aio_fildes = pair[0];
	for (int i = 0; i < 3; i++) {
		memset(buf, 0, sizeof(buf));
		SAY("aio_read: %d\n", aio_read(&cb));
		if (i == 2)
			send(pair[1], "third", 5, 0);
		await_aio(&cb);
	}
	still_hears(other[0], other[1]);
	close_pair(pair);
	close_pair(other);
}

/* The forms for large files are the same functions by other names. */
static void posix_aio_64_reads_what_waits(void)
{
	char buf[64] = "";
	struct aiocb64 cb = { .aio_buf = buf, .aio_nbytes = sizeof(buf) - 1 };
	struct aiocb64 *list[] = { NULL, &cb };
	int pair[2];

	make_waiting_pair(pair);
	cb.aio_fildes = pair[0];
	SAY("aio_read64: %d\n", aio_read64(&cb));
	await_aio((struct aiocb *)(void *)&cb);
	memset(buf, 0, sizeof(buf));
	cb.aio_lio_opcode = LIO_READ;
	SAY("lio_listio64: %d\n", lio_listio64(LIO_WAIT, list, 2, NULL));
	await_aio((struct aiocb *)(void *)&cb);
	close_pair(pair);
}

static void posix_aio_lists_read_what_waits(void)
{
	char bufs[2][64] = { "", "answer" };
	struct aiocb cbs[2] = {
		{ .aio_lio_opcode = LIO_READ, .aio_buf = bufs[0],
		  .aio_nbytes = sizeof(bufs[0]) - 1 },
		{ .aio_lio_opcode = LIO_WRITE, .aio_buf = bufs[1],
		  .aio_nbytes = 6 },
	};
	struct aiocb *list[] = { &cbs[0], NULL, &cbs[1] };
	int pair[2], other[2];

	make_waiting_pair(pair);
	make_pair(other);
	cbs[0].aio_fildes = pair[0];
	cbs[1].aio_fildes = pair[0];
	SAY("lio_listio: %d\n", lio_listio(LIO_WAIT, list, 3, NULL));
	await_aio(&cbs[0]);
	await_aio(&cbs[1]);
	receive(pair[1], 0);
	/* what does nothing names no socket */
	cbs[0].aio_fildes = other[0];
	cbs[0].aio_lio_opcode = LIO_NOP;
	SAY("lio_listio: %d\n", lio_listio(LIO_WAIT, list, 1, NULL));
	still_hears(other[0], other[1]);
	SAY("mode: %s\n", err(lio_listio(77, list, 1, NULL)));
	SAY("count: %s\n", err(lio_listio(LIO_WAIT, list, -1, NULL)));
	close_pair(pair);
	close_pair(other);
}

/* The kernel sends what is written so; it has to be heard by a socket of ours. */
static void posix_aio_writes(void)
{
	char buf[] = "written";
	struct aiocb cb = { .aio_buf = buf, .aio_nbytes = 7 };
	int pair[2];

	make_pair(pair);
	still_hears(pair[0], pair[1]);
	cb.aio_fildes = pair[0];
	SAY("aio_write: %d\n", aio_write(&cb));
	await_aio(&cb);
	receive(pair[1], 0);
	cb.aio_fildes = -1;
	SAY("no fd: %s\n", err(aio_write(&cb)));
	/* libc says so later, in `cb` */
	while (aio_error(&cb) == EINPROGRESS)
		usleep(1000);
	SAY("error: %s\n", strerrorname_np(aio_error(&cb)));
	close_pair(pair);
}

const struct door reader_doors[] = {
	SCENARIO(filter_for_one_thread),
	SCENARIO(filter_for_all_threads),
	SCENARIO(filter_without_signal_masks),
	SCENARIO(filter_without_signals_to_threads),
	SCENARIO(filter_without_process_numbers),
	SCENARIO(filter_without_a_look_at_rights),
	SCENARIO(filter_before_sockets),
	SCENARIO(ring_with_a_way_around),
	SCENARIO(ring_of_its_own_before_sockets),
	SCENARIO(ring_of_its_own_after_sockets),
	SCENARIO(aio_reads_what_waits),
	SCENARIO(aio_reads_by_a_long_list),
	SCENARIO(context_of_its_own_after_sockets),
	SCENARIO(contexts_of_files_leave_sockets_alone),
	SCENARIO(posix_aio_reads_what_waits),
	SCENARIO(posix_aio_64_reads_what_waits),
	SCENARIO(posix_aio_lists_read_what_waits),
	SCENARIO(posix_aio_writes),
	SCENARIO_END,
};
