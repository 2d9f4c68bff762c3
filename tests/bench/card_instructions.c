/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The instructions of UDP and TCP calls on a card, counted by single steps, since valgrind
 * cannot run the software ConnectX. Only the calling thread is stepped, not the
 * card's. Prints the mean and the median of each call, from libc's entry to its
 * return, and how many of them are the driver's: libibverbs' and libmlx5's, which nobody
 * who uses portable verbs gets below.
 *
 *   card_instructions ADDRESS LIBRARIES     over the echo of udp_instructions, and those
 *                                           of card_instructions.sh for TCP, with these
 *                                           preloaded
 *   card_instructions calls ADDRESS         what is stepped
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PORT = 7007, LEN = 64, BURST = 100, ROUNDS = 30, WARM_UP = 20,
	/* an echo of TCP, and how often it is asked */
	ECHO_PORT = 7008, ECHO_CNT = 300,
	/* the bytes of a long write, and how often it is made */
	LONG = 60000, LONG_CNT = 50,
};

/* In the order in which the steps are reported. */
enum call {
	NOTHING, SEND, RECEIVE, LOOK, TCP_SEND, TCP_RECEIVE, TCP_LOOK, WRITE, CALLS
};

static const char *const names[CALLS] = {
	"", "send, connected, 64 bytes", "receive, one waits",
	"receive, nothing there", "send, TCP, 64 bytes", "receive, TCP, 64 bytes",
	"receive, TCP, nothing there", "send, TCP, 60000 bytes",
};

/* -- the stepped process --------------------------------------------------------- */

/* What lies between two of these is stepped. The first has the call's number. */
#define BEGIN(call) __asm__ volatile("int3" : : "a"((long)(call)) : "memory")
#define END() __asm__ volatile("int3" : : "a"(-1L) : "memory")

static long (*volatile nothing)(int, void *, size_t, int);

static long do_nothing(int fd, void *buf, size_t len, int flags)
{
	(void)fd, (void)buf, (void)len, (void)flags;
	return 0;
}

static __attribute__((noinline, noipa)) long step_send(enum call call, int fd, void *buf)
{
	long result;

	BEGIN(call);
	result = send(fd, buf, LEN, 0);
	END();
	return result;
}

static long step_recv(enum call call, int fd, void *buf)
{
	long result;

	BEGIN(call);
	result = recv(fd, buf, LEN, MSG_DONTWAIT);
	END();
	return result;
}

/* All that was sent has been acknowledged, which receives find out. */
static void settle(int fd)
{
	int left = 1;
	char byte;

	while (ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0) {
		usleep(5000);
		(void)!recv(fd, &byte, 1, MSG_DONTWAIT);
	}
}

static int connected(const char *address, uint16_t port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	inet_pton(AF_INET, address, &name.sin_addr);
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* One after the other. What is received has the ACK of what was sent. */
static int echoes(const char *address)
{
	int fd = connected(address, ECHO_PORT);
	unsigned right = 0;
	char buf[LEN] = "";

	if (fd < 0)
		return 1;
	for (int i = 0; i < ECHO_CNT; i++) {
		long sent = step_send(TCP_SEND, fd, buf), received;

		/* whoever looks whether it has come takes it out of the ring */
		usleep(3000);
		received = step_recv(TCP_RECEIVE, fd, buf);
		right += sent == LEN && received == LEN &&
			 step_recv(TCP_LOOK, fd, buf) == -1;
	}
	close(fd);
	if (right < ECHO_CNT * 9 / 10)
		fprintf(stderr, "%u of %u echoes of TCP\n", right, ECHO_CNT);
	return right < ECHO_CNT * 9 / 10;
}

/* Each write finds a window that is wide enough. */
static int writes(const char *address)
{
	int fd = connected(address, PORT);
	static char buf[LONG];
	unsigned done = 0;

	if (fd < 0)
		return 1;
	for (int i = 0; i < LONG_CNT; i++) {
		send(fd, buf, LONG, 0);
		settle(fd);
	}
	for (int i = 0; i < LONG_CNT; i++) {
		long result;

		BEGIN(WRITE);
		result = send(fd, buf, LONG, 0);
		END();
		done += result == LONG;
		settle(fd);
	}
	close(fd);
	return done != LONG_CNT;
}

static int calls(const char *address)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned sent = 0, received = 0, looked = 0;
	char buf[LEN] = "";

	nothing = do_nothing;
	inet_pton(AF_INET, address, &name.sin_addr);
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		return 1;
	for (int i = 0; i < WARM_UP; i++) {
		send(fd, buf, LEN, 0);
		usleep(20000);
		while (recv(fd, buf, LEN, MSG_DONTWAIT) > 0)
			;
	}
	for (int i = 0; i < BURST; i++) {
		BEGIN(NOTHING);
		nothing(fd, buf, LEN, 0);
		END();
	}
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < BURST; k++)
			sent += step_send(SEND, fd, buf) == LEN;
		usleep(20000);
		for (int k = 0; k < BURST; k++)
			received += step_recv(RECEIVE, fd, buf) == LEN;
		for (int k = 0; k < BURST; k++)
			looked += step_recv(LOOK, fd, buf) == -1 &&
				  errno == EAGAIN;
	}
	if (sent + received + looked < 3 * ROUNDS * BURST * 99 / 100) {
		fprintf(stderr, "%u sent, %u received, %u times nothing\n", sent,
			received, looked);
		return 1;
	}
	close(fd);
	return echoes(address) || writes(address);
}

/* -- the stepper ------------------------------------------------------------------- */

static struct {
	unsigned *steps;
	size_t cnt;
	/* of all of them, those in the driver's libraries */
	unsigned long long driver_steps;
} counts[CALLS];

/* The code of the driver's libraries, from the first mark on. */
static struct range {
	unsigned long begin;
	unsigned long end;
} driver[4];
static unsigned driver_cnt;

static void find_driver(pid_t pid)
{
	char path[64], line[512];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && driver_cnt < 4 && fgets(line, sizeof(line), maps)) {
		struct range *range = &driver[driver_cnt];

		driver_cnt += (strstr(line, "/libmlx5") || strstr(line, "/libibverbs")) &&
			      sscanf(line, "%lx-%lx r-x", &range->begin,
				     &range->end) == 2 &&
			      strstr(line, " r-xp ");
	}
	if (maps)
		fclose(maps);
}

static int is_in_driver(unsigned long at)
{
	for (unsigned i = 0; i < driver_cnt; i++)
		if (at >= driver[i].begin && at < driver[i].end)
			return 1;
	return 0;
}

static long accumulator(pid_t pid)
{
	errno = 0;
	/* rax, among the registers of struct user */
	return ptrace(PTRACE_PEEKUSER, pid, (void *)(10 * sizeof(long)), 0);
}

/* Lets it run, or one step, up to the next stop. False: it has ended. */
static int go_on(pid_t pid, int how, int *status)
{
	int signal = 0;

	for (;;) {
		if (ptrace(how, pid, 0, (void *)(long)signal) != 0 ||
		    waitpid(pid, status, 0) != pid || !WIFSTOPPED(*status))
			return 0;
		if (WSTOPSIG(*status) == SIGTRAP)
			return 1;
		signal = WSTOPSIG(*status);
	}
}

static long next_instruction(pid_t pid)
{
	/* rip, among the registers of struct user */
	return ptrace(PTRACE_PEEKUSER, pid, (void *)(16 * sizeof(long)), 0);
}

/* Whether the next instruction is the second mark, whose address is known after the
 * first time. */
static int is_at_end(pid_t pid, long at, long *end)
{
	if (!*end && (ptrace(PTRACE_PEEKTEXT, pid, (void *)at, 0) & 0xff) == 0xcc)
		*end = at;
	return at == *end;
}

/* Steps through a call, or says that the process has ended. */
static int step_call(pid_t pid, long call)
{
	static long ends[CALLS];
	unsigned steps = 0, driver_steps = 0;
	int status;

	for (;; steps++) {
		long at = next_instruction(pid);

		if (is_at_end(pid, at, &ends[call]))
			break;
		driver_steps += (unsigned)is_in_driver((unsigned long)at);
		if (!go_on(pid, PTRACE_SINGLESTEP, &status))
			return 0;
	}
	if (counts[call].cnt < ROUNDS * BURST) {
		counts[call].steps[counts[call].cnt++] = steps;
		counts[call].driver_steps += driver_steps;
	}
	return 1;
}

static int watch(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 1;
	while (go_on(pid, PTRACE_CONT, &status)) {
		long call = accumulator(pid);

		if (call < 0 || call >= CALLS)
			continue;
		if (!driver_cnt)
			find_driver(pid);
		if (!step_call(pid, call))
			return 1;
	}
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? -1 : x > y;
}

static void report(void)
{
	unsigned empty = counts[NOTHING].steps[BURST / 2];

	for (int call = SEND; call < CALLS; call++) {
		unsigned long long sum = 0;
		size_t cnt = counts[call].cnt;

		for (size_t i = 0; i < cnt; i++)
			sum += counts[call].steps[i] - empty;
		qsort(counts[call].steps, cnt, sizeof(unsigned), compare);
		printf("%-28s mean %4llu, %4llu of them the driver's, median %4u, of %zu\n",
		       names[call], cnt ? sum / cnt : 0,
		       cnt ? counts[call].driver_steps / cnt : 0,
		       cnt ? counts[call].steps[cnt / 2] - empty : 0, cnt);
	}
}

int main(int argc, char **argv)
{
	pid_t pid;
	int result;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS LIBRARIES\n", argv[0]);
		return 2;
	}
	if (strcmp(argv[1], "calls") == 0)
		return calls(argv[2]);
	for (int i = 0; i < CALLS; i++)
		counts[i].steps = calloc(ROUNDS * BURST, sizeof(unsigned));
	pid = fork();
	if (pid == 0) {
		setenv("LD_PRELOAD", argv[2], 1);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/proc/self/exe", argv[0], "calls", argv[1], NULL);
		_exit(127);
	}
	result = watch(pid);
	if (!result)
		report();
	return result;
}
