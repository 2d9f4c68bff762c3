/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What UDP sockets cost before any traffic: the first one of a process that is
 * bound, the next thousand, the first send, and ten seconds asleep in a receive.
 * udp_start.sh runs it on the kernel and under the library.
 *
 *   udp_start OWN-ADDRESS PEER-ADDRESS
 *   udp_start --open-card
 *       what it costs that the first RDMA device is opened, and nothing else: libibverbs,
 *       its driver, and the software ConnectX
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7100, NEXT = 1000, ASLEEP_S = 10 };

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static double resident_kb(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

/* What a folder of /proc has one entry each for: fds, threads. */
static int entries(const char *pattern)
{
	glob_t found;
	int cnt = 0;

	if (glob(pattern, 0, NULL, &found) == 0)
		cnt = (int)found.gl_pathc;
	globfree(&found);
	return cnt;
}

struct mark {
	double us, kb;
	int fds, threads;
};

/* The time is taken last, and at the end first. */
static struct mark mark(void)
{
	struct mark m = { .kb = resident_kb(),
			  .fds = entries("/proc/self/fd/*"),
			  .threads = entries("/proc/self/task/*") };

	m.us = now_us();
	return m;
}

static void say_since(const char *what, const struct mark *m)
{
	double us = now_us() - m->us;

	printf("%s_us %.0f\n", what, us);
	printf("%s_kb %.0f\n", what, resident_kb() - m->kb);
	printf("%s_fds %d\n", what, entries("/proc/self/fd/*") - m->fds);
	printf("%s_threads %d\n", what, entries("/proc/self/task/*") - m->threads);
}

static int open_card(void)
{
	/* what glob() needs is there from now on */
	struct mark m = mark();
	void *verbs, *context = NULL;
	void **(*list_devices)(int *);
	void *(*open_device)(void *), *(*alloc_pd)(void *);

	m = mark();
	verbs = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!verbs)
		return 1;
	list_devices = (void **(*)(int *))dlsym(verbs, "ibv_get_device_list");
	open_device = (void *(*)(void *))dlsym(verbs, "ibv_open_device");
	alloc_pd = (void *(*)(void *))dlsym(verbs, "ibv_alloc_pd");
	if (list_devices && open_device && alloc_pd)
		context = open_device(list_devices(NULL)[0]);
	if (!context || !alloc_pd(context))
		return 1;
	say_since("open", &m);
	return 0;
}

/* Time on a processor, of all threads, as the scheduler has it. */
static double cpu_us(void)
{
	double sum = 0;
	glob_t found;

	if (glob("/proc/self/task/*/schedstat", 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *file = fopen(found.gl_pathv[i], "r");
		double ns;

		if (file && fscanf(file, "%lf", &ns) == 1)
			sum += ns / 1e3;
		if (file)
			fclose(file);
	}
	globfree(&found);
	return sum;
}

static struct sockaddr_in name_of(const char *address, int port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, address, &name.sin_addr);
	return name;
}

static int bound(const char *address, int port)
{
	struct sockaddr_in name = name_of(address, port);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		perror("bind");
	return fd;
}

static void *receive(void *fd)
{
	char buf[64];

	if (recv(*(int *)fd, buf, sizeof(buf), 0) >= 0 || errno != EAGAIN)
		perror("the receive did not last");
	return NULL;
}

/* On a socket that nothing comes to, not even an error. What follows the start, and
 * the time that a receive polls before it sleeps, are over when it begins. */
static void sleep_in_receive(int fd)
{
	struct timeval timeout = { .tv_sec = ASLEEP_S + 2 };
	pthread_t thread;
	double cpu;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	pthread_create(&thread, NULL, receive, &fd);
	sleep(1);
	cpu_us();
	cpu = cpu_us();
	sleep(ASLEEP_S);
	printf("asleep_us_cpu %.0f\n", cpu_us() - cpu);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	struct rlimit limit = { NEXT + 100, NEXT + 100 };
	struct sockaddr_in peer;
	struct mark m;
	double time, memory;
	int fd, quiet = -1;

	if (argc == 2 && strcmp(argv[1], "--open-card") == 0)
		return open_card();

	if (argc != 3) {
		fprintf(stderr, "usage: %s OWN-ADDRESS PEER-ADDRESS\n", argv[0]);
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &limit);
	peer = name_of(argv[2], PORT);

	m = mark();
	m = mark();
	fd = bound(argv[1], PORT);
	say_since("first", &m);

	memory = resident_kb();
	time = now_us();
	for (int i = 1; i <= NEXT; i++)
		quiet = bound(argv[1], PORT + i);
	printf("next_us %.1f\n", (now_us() - time) / NEXT);
	printf("next_kb %.2f\n", (resident_kb() - memory) / NEXT);

	connect(fd, (struct sockaddr *)&peer, sizeof(peer));
	time = now_us();
	send(fd, "", 1, 0);
	printf("send_us %.1f\n", now_us() - time);

	sleep_in_receive(quiet);
	return 0;
}
