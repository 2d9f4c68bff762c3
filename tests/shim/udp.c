/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What programs do with UDP sockets, over loopback. Each scenario prints what it
 * saw; udp.sh runs it on libc and under the test library, where loopback is an
 * accelerated device (VMA_TEST_LOCAL), and the outputs must be the same. There at
 * least 95 in 100 datagrams must have come by that device, unless the scenario is
 * about sockets that the kernel keeps.
 *
 * The scenarios are in udp_calls.c, udp_control.c and udp_waits.c.
 *
 *   udp NAME     udp --list
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/shim/udp.h"

unsigned long received_cnt;

struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = port,
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

int bound(struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(*name);

	*name = loopback(0);
	if (fd < 0 || bind(fd, (struct sockaddr *)name, len) != 0 ||
	    getsockname(fd, (struct sockaddr *)name, &len) != 0)
		SAY("bound: %m\n");
	return fd;
}

int bound_by_number(struct sockaddr_in *name)
{
	int fd = bound(name);

	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(fd, (struct sockaddr *)name, sizeof(*name)) != 0)
		SAY("bind: %m\n");
	return fd;
}

void make_pair(int pair[2])
{
	struct sockaddr_in names[2];

	for (int i = 0; i < 2; i++)
		pair[i] = bound(&names[i]);
	for (int i = 0; i < 2; i++)
		if (connect(pair[i], (struct sockaddr *)&names[!i],
			    sizeof(names[0])) != 0)
			SAY("connect: %m\n");
}

void close_pair(const int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

void fill(char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (char)('a' + (i * 7 + seed) % 26);
}

unsigned sum(const char *buf, size_t len)
{
	unsigned sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + (unsigned char)buf[i];
	return sum;
}

ssize_t receive(int fd, int flags)
{
	char buf[256] = "";
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, flags);

	SAY("recv: %zd %s %s\n", n, err(n), n > 0 ? buf : "");
	received_cnt += n >= 0 && !(flags & MSG_PEEK);
	return n;
}

/* -- the runner --------------------------------------------------------------------- */

static const struct scenario *const lists[] = {
	call_scenarios,
	control_scenarios,
	wait_scenarios,
};

/* Datagrams that came by the accelerated device; only the test library knows. */
static void check_share(unsigned by_kernel)
{
	unsigned long (*fn)(void) = (unsigned long (*)(void))dlsym(
		RTLD_DEFAULT, "vma_test_local_rx_cnt");
	unsigned long ours;

	if (!fn || !getenv("VMA_TEST_LOCAL"))
		return;
	ours = fn();
	if (ours * 100 < (received_cnt - by_kernel) * 95)
		SAY("only %lu of %lu datagrams were accelerated\n", ours,
		    received_cnt);
}

/* The first of that name; NULL names all, which are printed. */
static const struct scenario *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (const struct scenario *s = lists[i]; s->name; s++)
			if (!name)
				puts(s->name);
			else if (strcmp(s->name, name) == 0)
				return s;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct scenario *scenario;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		find(NULL);
		return 0;
	}
	scenario = argc == 2 ? find(argv[1]) : NULL;
	if (!scenario) {
		fprintf(stderr, "usage: udp NAME | --list\n");
		return 2;
	}
	scenario->run();
	check_share(scenario->by_kernel);
	return 0;
}
