/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What options.sh looks at: programs on which a VMA_ variable shows. Each prints
 * what it saw.
 *
 *   options PROGRAM
 */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/options.h"
#include "tests/support/sleeper.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* What the accelerated loopback has carried; 0 without the test library. */
static unsigned long carried(void)
{
	unsigned long (*fn)(void) = (unsigned long (*)(void))dlsym(
		RTLD_DEFAULT, "vma_test_local_rx_cnt");

	return fn ? fn() : 0;
}

static const char *err(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

static void make_pair(int pair[2])
{
	struct timeval patience = { .tv_usec = 300 * 1000 };
	struct sockaddr_in names[2];
	socklen_t len = sizeof(names[0]);

	for (int i = 0; i < 2; i++) {
		names[i] = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_addr = { htonl(INADDR_LOOPBACK) },
		};
		pair[i] = socket(AF_INET, SOCK_DGRAM, 0);
		if (bind(pair[i], (struct sockaddr *)&names[i], len) != 0 ||
		    getsockname(pair[i], (struct sockaddr *)&names[i], &len))
			perror("bind");
	}
	for (int i = 0; i < 2; i++) {
		/* what the kernel brings is not looked for at each call */
		setsockopt(pair[i], SOL_SOCKET, SO_RCVTIMEO, &patience,
			   sizeof(patience));
		if (connect(pair[i], (struct sockaddr *)&names[!i], len) != 0)
			perror("connect");
	}
}

/* Ten there, and how many of them were accelerated. */
static void say_way(const int pair[2])
{
	unsigned long before = carried();
	unsigned right = 0;
	char c;

	for (int i = 0; i < 10; i++) {
		send(pair[0], "x", 1, 0);
		right += recv(pair[1], &c, 1, 0) == 1;
	}
	printf("%u of 10 arrived, %lu accelerated\n", right,
	       carried() - before);
}

/* A pair in which nobody waits: what is there is taken, or it is not. */
static void make_impatient_pair(int pair[2])
{
	make_pair(pair);
	for (int i = 0; i < 2; i++)
		fcntl(pair[i], F_SETFL, O_NONBLOCK);
}

static void plain(void)
{
	int pair[2];

	make_pair(pair);
	say_way(pair);
}

/* -- dummy sends ----------------------------------------------------------------- */

void say_dummies(const char *what, int fd, int peer)
{
	enum { DUMMY = MSG_SYN }; /* VMA_SND_FLAGS_DUMMY */
	struct iovec iov = { (void *)"dummy", 5 };
	struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	char text[16];
	ssize_t n;

	printf("%s: %s", what, err(send(fd, "dummy", 5, DUMMY)));
	printf(" %s", err(sendto(fd, "dummy", 5, DUMMY | MSG_DONTWAIT, NULL, 0)));
	printf(" %s", err(sendmsg(fd, &msg.msg_hdr, DUMMY)));
	printf(" %s", err(sendmmsg(fd, &msg, 1, DUMMY)));
	send(fd, "real", 4, 0);
	n = recv(peer, text, sizeof(text), 0);
	printf(", %.*s\n", (int)(n < 0 ? 0 : n), text);
}

static void dummies(void)
{
	int pair[2];

	make_pair(pair);
	say_dummies("UDP", pair[0], pair[1]);
	say_way(pair);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	say_dummies("local", pair[0], pair[1]);
}

/* -- titles ---------------------------------------------------------------------- */

static char **args;

static void *sleep_on(void *nothing)
{
	pause();
	return nothing;
}

/* As setproctitle() does: over the arguments and what the kernel has put behind them. */
static void write_title(void)
{
	size_t cnt = 0;
	char **copy, *end;

	while (environ[cnt])
		cnt++;
	end = environ[cnt - 1] + strlen(environ[cnt - 1]);
	copy = calloc(cnt + 1, sizeof(*copy));
	for (size_t i = 0; i < cnt; i++)
		copy[i] = strdup(environ[i]);
	environ = copy;
	memset(args[0], ' ', (size_t)(end - args[0]));
	strcpy(args[0], "w: x");
}

static void titled(void)
{
	write_title();
	plain();
}

/* One who may not look into the environment, since a thread could change it. */
static void titled_threads(void)
{
	pthread_t thread;

	write_title();
	pthread_create(&thread, NULL, sleep_on, NULL);
	plain();
}

/* -- what only the kernel does --------------------------------------------------- */

static void beyond_option(void)
{
	int pair[2], one = 1, zero = 0;

	make_pair(pair);
	say_way(pair);
	printf("off: %s\n", err(setsockopt(pair[0], SOL_SOCKET, SO_RXQ_OVFL,
					   &zero, sizeof(zero))));
	printf("on: %s\n", err(setsockopt(pair[0], SOL_SOCKET, SO_RXQ_OVFL,
					  &one, sizeof(one))));
	say_way(pair);
}

/* Programs of one line, which let nothing of a datagram through, and all of it. */
static struct sock_filter filter_line = { BPF_RET | BPF_K, 0, 0, 0 };
static struct sock_filter open_line = { BPF_RET | BPF_K, 0, 0, 0xffff };
static struct sock_fprog open_filter = { 1, &open_line };
static struct sock_fprog closed_filter = { 1, &filter_line };

static const struct wished_option {
	const char *name;
	int level, number;
	const void *value;
	socklen_t len;
} wished_options[] = {
#define INT(level, name, value) #name, level, name, &(int){ value }, sizeof(int)
	/* they change nothing of what we do */
	{ INT(SOL_SOCKET, SO_PRIORITY, 3) },
	{ INT(SOL_SOCKET, SO_SNDBUF, 1 << 16) },
	{ INT(IPPROTO_IP, IP_MULTICAST_TTL, 7) },
	{ INT(IPPROTO_IP, IP_FREEBIND, 1) },
	{ INT(IPPROTO_IP, IP_RECVERR, 1) },
	/* we do as they say */
	{ INT(IPPROTO_IP, IP_TTL, 70) },
	{ INT(IPPROTO_IP, IP_PKTINFO, 1) },
	{ INT(SOL_SOCKET, SO_RCVBUF, 1 << 16) },
	{ INT(SOL_SOCKET, SO_REUSEADDR, 1) },
	{ INT(SOL_SOCKET, SO_MAX_PACING_RATE, 1000000) },
	/* switched off, as they are from the start */
	{ INT(SOL_SOCKET, SO_RXQ_OVFL, 0) },
	{ INT(SOL_SOCKET, SO_NO_CHECK, 0) },
	{ INT(SOL_SOCKET, SO_PEEK_OFF, -1) },
	{ INT(SOL_SOCKET, SO_MAX_PACING_RATE, -1) },
	{ INT(IPPROTO_UDP, UDP_GRO, 0) },
	/* Linux refuses them */
	{ "a filter without lines", SOL_SOCKET, SO_ATTACH_FILTER,
	  &(struct sock_fprog){ 0, &filter_line }, sizeof(closed_filter) },
	{ "a filter cut short", SOL_SOCKET, SO_ATTACH_FILTER, &closed_filter, 1 },
	{ INT(SOL_SOCKET, SO_DETACH_FILTER, 0) },
	{ INT(IPPROTO_TCP, 1, 1) },
	{ INT(270 /* SOL_NETLINK */, 3, 1) },
	{ INT(SOL_SOCKET, 9999, 1) },
	{ INT(IPPROTO_IP, 9999, 1) },
	{ INT(IPPROTO_UDP, 9999, 1) },
	{ INT(IPPROTO_IPV6, IPV6_V6ONLY, 1) },
	{ "SO_TXTIME nowhere", SOL_SOCKET, SO_TXTIME, NULL, 8 },
	/* only the kernel does them */
	{ INT(SOL_SOCKET, SO_RXQ_OVFL, 1) },
	{ INT(SOL_SOCKET, SO_NO_CHECK, 1) },
	{ INT(SOL_SOCKET, SO_PEEK_OFF, 0) },
	{ INT(SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1) },
	{ INT(IPPROTO_IP, IP_UNICAST_IF, 1 << 24) },
	{ INT(IPPROTO_IP, IP_MINTTL, 1) },
	{ "SO_ATTACH_FILTER", SOL_SOCKET, SO_ATTACH_FILTER,
	  &open_filter, sizeof(open_filter) },
	/* Linux knows them and we do not */
	{ INT(SOL_SOCKET, SO_INCOMING_CPU, 0) },
	{ INT(IPPROTO_UDP, 101 /* UDP_NO_CHECK6_TX */, 1) },
#undef INT
};

/* Each on a pair of its own: what it says, and who carries its datagrams then. */
static void each_option(void)
{
	for (size_t i = 0; i < ARRAY_LEN(wished_options); i++) {
		const struct wished_option *o = &wished_options[i];
		int pair[2];

		make_pair(pair);
		say_way(pair);
		printf("%s: %s\n", o->name,
		       err(setsockopt(pair[1], o->level, o->number, o->value,
				      o->len)));
		say_way(pair);
		close(pair[0]);
		close(pair[1]);
	}
}

/* A filter that lets nothing through is about what comes later: three wait already. */
static void filtered_late(void)
{
	int pair[2], n = 0;
	char c;

	make_pair(pair);
	for (int i = 0; i < 3; i++)
		send(pair[0], "x", 1, 0);
	printf("filter: %s\n", err(setsockopt(pair[1], SOL_SOCKET,
					      SO_ATTACH_FILTER, &closed_filter,
					      sizeof(closed_filter))));
	send(pair[0], "x", 1, 0);
	while (recv(pair[1], &c, 1, 0) == 1)
		n++;
	printf("%d received\n", n);
}

static void beyond_flags(void)
{
	char buf[10];
	int pair[2];

	make_pair(pair);
	say_way(pair);
	printf("more: %s\n", err(send(pair[0], "a", 1, MSG_MORE)));
	printf("rest: %s\n", err(send(pair[0], "b", 1, 0)));
	printf("%zd bytes\n", recv(pair[1], buf, sizeof(buf), 0));
	say_way(pair);
}

static void beyond_control(void)
{
	/* a mark of this send alone; 0 needs no right on any Linux */
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SO_MARK } };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	char buf[10];
	int pair[2];

	make_pair(pair);
	say_way(pair);
	printf("sendmsg: %s\n", err(sendmsg(pair[0], &msg, 0)));
	printf("%zd bytes\n", recv(pair[1], buf, sizeof(buf), 0));
	say_way(pair);
}

static void beyond_splice(void)
{
	int pair[2], ends[2];
	char c;

	make_pair(pair);
	say_way(pair);
	if (pipe(ends) != 0)
		perror("pipe");
	send(pair[1], "x", 1, 0);
	printf("splice: %s\n",
	       err(splice(pair[0], NULL, ends[1], NULL, 100, 0)));
	/* who refused has not taken it */
	while (recv(pair[0], &c, 1, MSG_DONTWAIT) == 1)
		;
	say_way(pair);
}

/* -- threads ------------------------------------------------------------------------ */

/* The library's sched_yield(), since a program's own comes before libc's. Of this thread
 * alone: one of the library's own may want the same lock. */
static _Thread_local unsigned long yield_cnt;

__attribute__((visibility("default"))) int sched_yield(void)
{
	yield_cnt++;
	return 0;
}

/* Two thousand polls before it sleeps, or gives up. */
static void patient(void)
{
	int pair[2];
	char c;

	make_pair(pair);
	yield_cnt = 0;
	printf("recv: %s, ", err(recv(pair[0], &c, 1, 0)));
	printf("%s\n", yield_cnt >= 1000 ? "gave way" : "did not give way");
}

/* How often the thread has slept. */
static long sleeps(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage) != 0)
		perror("getrusage");
	return usage.ru_nvcsw;
}

/* A process that computes, on the only processor that this one may have. */
static pid_t begin_to_compute(void)
{
	pid_t parent = getpid(), pid;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		perror("sched_setaffinity");
	pid = fork();
	if (pid == 0) {
		while (getppid() == parent)
			;
		_exit(0);
	}
	return pid;
}

/* Calls that time out before their polling is over. */
static void beside_another(void)
{
	struct timeval patience = { .tv_usec = 200 };
	pid_t other = begin_to_compute();
	struct pollfd pollfd = { .events = POLLIN };
	int pair[2];
	long before;
	char c;

	make_pair(pair);
	pollfd.fd = pair[0];
	before = sleeps();
	poll(&pollfd, 1, 60);
	printf("poll: %s, ", sleeps() - before ? "slept" : "did not sleep");
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	before = sleeps();
	for (int i = 0; i < 400; i++)
		(void)!recv(pair[0], &c, 1, 0);
	printf("recv: %s\n", sleeps() - before >= 5 ? "slept" : "did not sleep");
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

enum { PAGE = 4096, HELD_MS = 150 };

static char *page;
static _Atomic bool is_held, has_begun;
/* The processor's time of the one who wants the lock, and what it was at first. */
static clockid_t contender_clock;
static double contender_began;

static double cpu_ms(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* The one who receives into the page is inside the library's lock. Who has to spin for it
 * needs some of the processor's time, which a busy machine may not give it at once. */
static void hold(int sig)
{
	struct timespec nap = { .tv_nsec = HELD_MS * 1000 * 1000 };
	const char *mode = getenv("VMA_THREAD_MODE");
	bool has_to_spin = mode && (*mode == '0' || *mode == '1'), has_spun;
	int rounds = 0;

	(void)sig;
	is_held = true;
	do {
		nanosleep(&nap, NULL);
		has_spun = has_begun &&
			   cpu_ms(contender_clock) - contender_began > HELD_MS / 10;
	} while (has_to_spin && !has_spun && ++rounds < 40);
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void *contend(void *arg)
{
	double spent, yields;
	char c;

	while (!is_held)
		;
	pthread_getcpuclockid(pthread_self(), &contender_clock);
	contender_began = cpu_ms(contender_clock);
	has_begun = true;
	yield_cnt = 0;
	recv(*(int *)arg, &c, 1, MSG_DONTWAIT);
	spent = cpu_ms(contender_clock) - contender_began;
	yields = (double)yield_cnt;
	return yields > 10 * spent + 100 ? "gives way" :
	       spent > HELD_MS / 10	 ? "spins" :
					   "sleeps";
}

/* One thread has the lock for long, by a fault in the copy to its buffer; another
 * one wants it. */
static void contended(void)
{
	struct sigaction action = { .sa_handler = hold };
	pthread_t thread;
	int pair[2];
	void *way;

	make_pair(pair);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &action, NULL);
	/* the way of a datagram is known to be short */
	for (int i = 0; i < 3; i++) {
		send(pair[0], "xyz", 3, 0);
		recv(pair[1], page, PAGE, 0);
	}
	send(pair[0], "xyz", 3, 0);
	mprotect(page, PAGE, PROT_NONE);
	pthread_create(&thread, NULL, contend, &pair[0]);
	printf("%zd bytes, ", recv(pair[1], page, PAGE, 0));
	pthread_join(thread, &way);
	puts(way);
}

/* Two hundred datagrams that nobody asks for, until the end of the input. */
static void unread(void)
{
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < 200; i++)
		send(pair[0], "x", 1, 0);
	puts("ready");
	while (getchar() != EOF)
		;
}

/* 150 datagrams, of which it asks for one, until the end of the input. */
static void batch(void)
{
	char buf[1000] = "";
	int pair[2];

	make_impatient_pair(pair);
	for (int i = 0; i < 150; i++)
		send(pair[0], buf, sizeof(buf), 0);
	printf("recv: %s\n", err(recv(pair[1], buf, sizeof(buf), 0)));
	puts("ready");
	while (getchar() != EOF)
		;
}

/* 100 datagrams, of which it asks for four: the second and later ones are there. */
static void drained(void)
{
	char buf[1000] = "";
	int pair[2];

	make_impatient_pair(pair);
	for (int i = 0; i < 100; i++)
		send(pair[0], buf, sizeof(buf), 0);
	for (int i = 0; i < 4; i++)
		recv(pair[1], buf, sizeof(buf), 0);
	puts("ready");
	while (getchar() != EOF)
		;
}

/* How many of thirty datagrams, all taken at once, a socket keeps that wants to keep
 * two. */
static void buffered(void)
{
	char buf[1000] = "";
	int pair[2], size = 2048, n = 0;

	make_impatient_pair(pair);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	for (int i = 0; i < 30; i++)
		send(pair[0], buf, sizeof(buf), 0);
	while (recv(pair[1], buf, sizeof(buf), 0) > 0)
		n++;
	printf("%d kept\n", n);
}

/* -- calls on several ---------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* One who writes to a pipe in a tenth of a second, and when. */
struct late_writer {
	int fd;
	_Atomic uint64_t written_ns;
};

static void *write_late(void *arg)
{
	struct timespec nap = { .tv_nsec = 100 * 1000 * 1000 };
	struct late_writer *writer = arg;

	nanosleep(&nap, NULL);
	writer->written_ns = now_ns();
	if (write(writer->fd, "x", 1) != 1)
		perror("write");
	return NULL;
}

/* Whether poll(), which looks at our rings for VMA_SELECT_POLL before it sleeps, sees what
 * happens to a pipe meanwhile. */
static void os_ratio(void)
{
	uint64_t spun_ns = strtoull(getenv("VMA_SELECT_POLL"), NULL, 10) * 1000;
	uint64_t called_ns, seen_ns;
	struct late_writer writer;
	struct pollfd fds[2];
	pthread_t thread;
	int pair[2], ends[2];

	make_pair(pair);
	do {
		if (pipe(ends) != 0)
			perror("pipe");
		writer = (struct late_writer){ .fd = ends[1] };
		fds[0] = (struct pollfd){ pair[1], POLLIN, 0 };
		fds[1] = (struct pollfd){ ends[0], POLLIN, 0 };
		pthread_create(&thread, NULL, write_late, &writer);
		called_ns = now_ns();
		poll(fds, 2, 5000);
		seen_ns = now_ns();
		pthread_join(thread, NULL);
	} while (writer.written_ns < called_ns);
	printf("pipe: %s\n", fds[1].revents != POLLIN ? "not seen" :
			     seen_ns - called_ns < spun_ns   ? "seen at once" :
							       "seen late");
}

/* In which of twelve calls a pipe shows beside a socket, when both are readable all the
 * time. */
static void skip_os(void)
{
	struct epoll_event events[2], wish = { .events = EPOLLIN };
	int set = epoll_create1(0), pair[2], ends[2];

	make_pair(pair);
	if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1)
		perror("pipe");
	wish.data.fd = pair[1];
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &wish);
	wish.data.fd = ends[0];
	epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &wish);
	send(pair[0], "x", 1, 0);
	for (int i = 0; i < 12; i++) {
		int n = epoll_wait(set, events, 2, 1000);
		bool has_pipe = false, has_socket = false;

		for (int j = 0; j < n; j++) {
			has_pipe |= events[j].data.fd == ends[0];
			has_socket |= events[j].data.fd == pair[1];
		}
		putchar(!has_socket ? '?' : has_pipe ? '|' : '.');
	}
	putchar('\n');
}

/* One thread's polls of several arrays in turn, each with a socket and a pipe that are readable
 * all the time: of how many arrays the pipe never shows. */
static unsigned unseen_pipes(unsigned cnt)
{
	enum { ARRAYS_MAX = 12, ROUNDS = 1000 };
	struct pollfd fds[ARRAYS_MAX][2];
	bool is_seen[ARRAYS_MAX] = { false };
	unsigned unseen = 0;
	int pairs[ARRAYS_MAX][2], ends[ARRAYS_MAX][2];

	for (unsigned i = 0; i < cnt; i++) {
		make_pair(pairs[i]);
		if (pipe(ends[i]) != 0 || write(ends[i][1], "x", 1) != 1)
			perror("pipe");
		send(pairs[i][0], "x", 1, 0);
		fds[i][0] = (struct pollfd){ pairs[i][1], POLLIN, 0 };
		fds[i][1] = (struct pollfd){ ends[i][0], POLLIN, 0 };
	}
	for (unsigned i = 0; i < ROUNDS * cnt; i++) {
		poll(fds[i % cnt], 2, 1000);
		is_seen[i % cnt] |= fds[i % cnt][1].revents != 0;
	}
	for (unsigned i = 0; i < cnt; i++) {
		unseen += !is_seen[i];
		for (unsigned j = 0; j < 2; j++) {
			close(pairs[i][j]);
			close(ends[i][j]);
		}
	}
	return unseen;
}

static void arrays_in_turn(void)
{
	unsigned unseen = 0;

	for (unsigned cnt = 1; cnt <= 12; cnt++)
		unseen += unseen_pipes(cnt);
	printf("%u not seen\n", unseen);
}

/* -- memory ------------------------------------------------------------------------ */

static _Atomic unsigned huge_cnt;
static size_t lens[100];
static _Atomic unsigned len_cnt;

/* The library's, as sched_yield() above. */
__attribute__((visibility("default"))) void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	huge_cnt += (flags & MAP_HUGETLB) != 0;
	if (fd < 0 && len_cnt < ARRAY_LEN(lens))
		lens[len_cnt++] = len;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

/* Sends to whoever is beyond an interface that is not local. */
static void pages(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, "10.78.0.1", &to.sin_addr);
	printf("sendto: %s\n", err(sendto(fd, "x", 1, 0, (struct sockaddr *)&to,
					  sizeof(to))));
	printf("huge pages asked for: %d\n", huge_cnt != 0);
	printf("KB of memory:");
	for (unsigned i = 0; i < len_cnt; i++)
		printf(" %zu", lens[i] >> 10);
	printf(" .\n");
}

static bool is_carried(const int pair[2])
{
	unsigned long before = carried();
	char c;

	send(pair[0], "x", 1, 0);
	recv(pair[1], &c, 1, 0);
	return carried() > before;
}

/* Asks for a ring, as libuv does, and says whether a socket that was there before stays
 * accelerated for longer than the library takes to find rings. */
static void ring(void)
{
	struct io_uring_params params = { 0 };
	bool is_ours = true;
	int pair[2], fd;

	make_pair(pair);
	fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	printf("ring: %s, ", err(fd));
	for (int i = 0; i < 25 && is_ours; i++) {
		usleep(100 * 1000);
		is_ours = is_carried(pair);
	}
	printf("%s\n", is_ours ? "accelerated" : "by the kernel");
}

/* The thread that is not this one, once it sleeps; 0: there is none within five
 * seconds. */
static pid_t await_other_thread(void)
{
	pid_t tid = 0;

	for (int i = 0; i < 500 && !tid; i++) {
		DIR *tasks = opendir("/proc/self/task");
		struct dirent *entry;

		while (tasks && (entry = readdir(tasks)))
			if (atoi(entry->d_name) && atoi(entry->d_name) != getpid())
				tid = (pid_t)atoi(entry->d_name);
		closedir(tasks);
		usleep(10000);
	}
	return tid && sleeper_await(tid) ? tid : 0;
}

/* Says where the library's thread may run, a mask, and how it is scheduled, in a
 * program that has kept itself to the first CPU and has taken real time. */
static void where(void)
{
	struct sched_param fifo = { .sched_priority = 1 };
	cpu_set_t cpus;
	int pair[2];
	pid_t tid;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (sched_setscheduler(0, SCHED_FIFO, &fifo) != 0)
		printf("no right to real time\n");
	make_pair(pair);
	tid = await_other_thread();
	sched_getaffinity(tid, sizeof(cpus), &cpus);
	printf("%#lx, policy %d\n",
	       *(const unsigned long *)(const void *)&cpus,
	       sched_getscheduler(tid));
}

static const struct program programs[] = {
	{ "plain", plain },
	{ "dummies", dummies },
	{ "titled", titled },
	{ "titled_threads", titled_threads },
	{ "beyond_option", beyond_option },
	{ "each_option", each_option },
	{ "filtered_late", filtered_late },
	{ "beyond_flags", beyond_flags },
	{ "beyond_control", beyond_control },
	{ "beyond_splice", beyond_splice },
	{ "patient", patient },
	{ "contended", contended },
	{ "unread", unread },
	{ "batch", batch },
	{ "drained", drained },
	{ "buffered", buffered },
	{ "beside_another", beside_another },
	{ "os_ratio", os_ratio },
	{ "skip_os", skip_os },
	{ "arrays_in_turn", arrays_in_turn },
	{ "pages", pages },
	{ "where", where },
	{ "ring", ring },
	{ NULL, NULL },
};

static bool run(const struct program *of, const char *name)
{
	for (; of->name; of++) {
		if (strcmp(of->name, name) != 0)
			continue;
		of->run();
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	args = argv;
	if (argc == 2 && (run(programs, argv[1]) || run(tcp_programs, argv[1])))
		return 0;
	fprintf(stderr, "usage: options PROGRAM\n");
	return 2;
}
