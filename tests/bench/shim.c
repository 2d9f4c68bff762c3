/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library costs a program that gains nothing from it: per call that
 * passes through, and at the start of a program without sockets. Children on libc
 * and children under the library take turns, each round a pair; the median of the
 * differences within a pair is what counts. Reports and writes JSON; never fails on
 * a time.
 *
 *   shim LIBRARY [JSON-FILE]     (make bench)
 *   shim --calls                 a child: nanoseconds for each call
 *   shim --idle                  a child: nothing
 *   shim --fork, --fork-socket   a child: microseconds for a fork
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

enum { ROUNDS = 31, CALLS = 200000, BATCHES = 9 };

/* A call that returns at once, so that the wrapper's share shows. */
struct subject {
	const char *name;
	void (*call)(int fd);
};

static void call_read(int fd)
{
	char byte;

	if (read(fd, &byte, 0) < 0)
		abort();
}

static void call_write(int fd)
{
	if (write(fd, "", 0) < 0)
		abort();
}

static void call_fcntl(int fd)
{
	fcntl(fd, F_GETFL);
}

static void call_close(int fd)
{
	(void)fd;
	close(-1);
}

static void call_recv(int fd)
{
	char byte;

	(void)recv(fd, &byte, 1, MSG_DONTWAIT); /* not a socket */
}

static void call_poll(int fd)
{
	(void)fd;
	poll(NULL, 0, 0);
}

static void call_sigaction(int fd)
{
	struct sigaction now;

	(void)fd;
	sigaction(SIGUSR1, NULL, &now);
}

static const struct subject subjects[] = {
	{ "read", call_read },	 { "write", call_write },
	{ "fcntl", call_fcntl }, { "close", call_close },
	{ "recv", call_recv },	 { "poll", call_poll },
	{ "sigaction", call_sigaction },
};

enum { SUBJECTS = ARRAY_LEN(subjects) };

static double once(const struct subject *subject, int fd)
{
	uint64_t start = clock_monotonic_ns();

	for (int i = 0; i < CALLS / BATCHES; i++)
		subject->call(fd);
	return (double)(clock_monotonic_ns() - start) / (CALLS / BATCHES);
}

/* The best of a few batches: what disturbs only ever adds. */
static int calls(void)
{
	int fd = open("/dev/null", O_RDWR);

	for (int i = 0; i < SUBJECTS; i++) {
		double best = 1e9;

		for (int k = 0; k < BATCHES; k++) {
			double ns = once(&subjects[i], fd);

			best = MIN(best, ns);
		}
		printf("%.3f\n", best);
	}
	return 0;
}

/* Until the child's end has been heard of. The socket is of a kind that the library
 * looks after, though it serves none yet. */
static double fork_once(void)
{
	uint64_t start = clock_monotonic_ns();
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return (double)(clock_monotonic_ns() - start) / 1e3;
}

enum { FORKS = 40 };

static int forks(bool has_socket)
{
	double best = 1e9;

	if (has_socket && socket(AF_INET, SOCK_DGRAM, 0) < 0)
		abort();
	for (int i = 0; i < FORKS; i++) {
		double us = fork_once();

		best = MIN(best, us);
	}
	printf("%.3f\n", best);
	return 0;
}

static const char *library;

/* Starts this program again with `mode`, under the library or not; its output
 * goes to `out_fd`. */
static pid_t spawn(const char *mode, bool is_preloaded, int out_fd)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	setenv("VMA_TRACELEVEL", "none", 1);
	if (is_preloaded)
		setenv("LD_PRELOAD", library, 1);
	else
		unsetenv("LD_PRELOAD");
	if (out_fd >= 0)
		dup2(out_fd, STDOUT_FILENO);
	execl("/proc/self/exe", "shim", mode, (char *)NULL);
	_exit(127);
}

/* What a child in this mode prints: `cnt` numbers. */
static void run_child(const char *mode, bool is_preloaded, double *numbers,
		      int cnt)
{
	int fds[2], status;
	FILE *in;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		exit(1);
	pid = spawn(mode, is_preloaded, fds[1]);
	close(fds[1]);
	in = fdopen(fds[0], "r");
	for (int i = 0; i < cnt; i++)
		if (fscanf(in, "%lf", &numbers[i]) != 1)
			exit(1);
	fclose(in);
	waitpid(pid, &status, 0);
}

struct idle {
	double us;
	double kb;
};

static struct idle run_idle(bool is_preloaded)
{
	uint64_t start = clock_monotonic_ns();
	pid_t pid = spawn("--idle", is_preloaded, -1);
	struct rusage usage;
	int status;

	wait4(pid, &status, 0, &usage);
	return (struct idle){
		.us = (double)(clock_monotonic_ns() - start) / 1e3,
		.kb = (double)usage.ru_maxrss,
	};
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct summary {
	double median, low, high; /* low and high: the quartiles */
};

static struct summary summarise(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_value);
	return (struct summary){ values[ROUNDS / 2], values[ROUNDS / 4],
				 values[3 * ROUNDS / 4] };
}

static FILE *json;
static int json_cnt;

static void row(const char *what, const char *unit, double *libc,
		double *difference, double bound)
{
	struct summary base = summarise(libc), more = summarise(difference);

	printf("%-22s %10.1f %10.1f  [%7.1f .. %7.1f] %-3s bound %g\n", what,
	       base.median, more.median, more.low, more.high, unit, bound);
	if (json)
		fprintf(json,
			"%s{\"what\": \"%s\", \"unit\": \"%s\", \"libc\": %.3f, \"over\": %.3f, \"q1\": %.3f, \"q3\": %.3f, \"bound\": %g}",
			json_cnt++ ? ",\n " : "[", what, unit, base.median,
			more.median, more.low, more.high, bound);
}

static void measure_calls(void)
{
	static double libc[SUBJECTS][ROUNDS], over[SUBJECTS][ROUNDS];
	double a[SUBJECTS], b[SUBJECTS];
	char what[64];

	for (int r = 0; r < ROUNDS; r++) {
		run_child("--calls", r % 2, r % 2 ? b : a, SUBJECTS);
		run_child("--calls", !(r % 2), r % 2 ? a : b, SUBJECTS);
		for (int i = 0; i < SUBJECTS; i++) {
			libc[i][r] = a[i];
			over[i][r] = b[i] - a[i];
		}
	}
	for (int i = 0; i < SUBJECTS; i++) {
		snprintf(what, sizeof(what), "%s()", subjects[i].name);
		row(what, "ns", libc[i], over[i], 10);
	}
}

static void measure_start(void)
{
	static double us[ROUNDS], more_us[ROUNDS], kb[ROUNDS], more_kb[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		bool is_turned = r % 2; /* who goes first takes turns, too */
		struct idle first = run_idle(is_turned);
		struct idle second = run_idle(!is_turned);
		struct idle a = is_turned ? second : first;
		struct idle b = is_turned ? first : second;

		us[r] = a.us;
		more_us[r] = b.us - a.us;
		kb[r] = a.kb;
		more_kb[r] = b.kb - a.kb;
	}
	row("start without sockets", "us", us, more_us, 1000);
	row("resident memory", "KB", kb, more_kb, 2048);
}

/* By the library alone, and by its first socket as well. */
static void measure_fork(void)
{
	static double us[ROUNDS], more_us[ROUNDS], with[ROUNDS], socket_us[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		double a, b, c;

		run_child("--fork", r % 2, r % 2 ? &b : &a, 1);
		run_child("--fork-socket", true, &c, 1);
		run_child("--fork", !(r % 2), r % 2 ? &a : &b, 1);
		us[r] = a;
		more_us[r] = b - a;
		with[r] = b;
		socket_us[r] = c - b;
	}
	row("fork", "us", us, more_us, 40);
	row("fork, for a socket", "us", with, socket_us, 20);
}

/* On one core: a second one has a clock and caches of its own. */
static void pin(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

int main(int argc, char **argv)
{
	struct stat st;

	if (argc > 1 && strcmp(argv[1], "--calls") == 0)
		return calls();
	if (argc > 1 && strcmp(argv[1], "--idle") == 0)
		return 0;
	if (argc > 1 && strcmp(argv[1], "--fork") == 0)
		return forks(false);
	if (argc > 1 && strcmp(argv[1], "--fork-socket") == 0)
		return forks(true);
	if (argc < 2 || stat(argv[1], &st) != 0) {
		fprintf(stderr, "usage: shim LIBRARY [JSON-FILE]\n");
		return 2;
	}
	library = realpath(argv[1], NULL);
	json = argc > 2 ? fopen(argv[2], "w") : NULL;
	pin();
	printf("%s: %lld bytes, symbols included; median of %d pairs\n",
	       argv[1], (long long)st.st_size, ROUNDS);
	printf("%-22s %10s %10s  [quartiles of the difference]\n", "", "libc",
	       "more");
	measure_calls();
	measure_start();
	measure_fork();
	if (json) {
		fprintf(json, "]\n");
		fclose(json);
	}
	return 0;
}
