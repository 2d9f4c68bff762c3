/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What programs do with UDP sockets, over loopback. Each scenario prints what it
 * saw; udp.sh runs it on libc and under the test library, where loopback is an
 * accelerated device (VMA_TEST_LOCAL), and the outputs must be the same. There at
 * least 95 in 100 datagrams must have come by that device, unless the scenario is
 * about sockets that the kernel keeps.
 *
 * With UDP_OWNED, an address of this host, and UDP_HEARD_AT, one from which a mirror
 * sends back whatever is sent there, the same goes over a wire
 * (tests/system/udp_mirror.sh). UDP_CHECK_SHARE then asks for the same share.
 *
 * The scenarios are in udp_beside.c, udp_calls.c, udp_control.c, udp_process.c,
 * udp_ready.c, udp_mux.c, udp_sets.c, udp_stamps.c and udp_waits.c.
 *
 *   udp NAME     udp --list
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/udp.h"

unsigned long received_cnt, kernels_cnt;

static struct sockaddr_in name_of(const char *variable, uint16_t port)
{
	const char *address = getenv(variable);
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = port,
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };

	if (address)
		inet_pton(AF_INET, address, &name.sin_addr);
	return name;
}

struct sockaddr_in owned(uint16_t port)
{
	return name_of("UDP_OWNED", port);
}

struct sockaddr_in heard_at(uint16_t port)
{
	return name_of("UDP_HEARD_AT", port);
}

int bind_as_heard(int fd, const struct sockaddr_in *name)
{
	struct sockaddr_in own = owned(name->sin_port);

	if (!name->sin_addr.s_addr)
		own.sin_addr.s_addr = 0;
	return bind(fd, (struct sockaddr *)&own, sizeof(own));
}

int bound(struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(*name);

	*name = owned(0);
	if (fd < 0 || bind_as_heard(fd, name) != 0 ||
	    getsockname(fd, (struct sockaddr *)name, &len) != 0)
		SAY("bound: %m\n");
	*name = heard_at(name->sin_port);
	return fd;
}

bool over_wire(void)
{
	return getenv("UDP_HEARD_AT");
}

/* The mirror and the ring keep the order. Behind more than they hold, the datagram that
 * waits for the others may be lost itself. */
void settle(void)
{
	struct timeval patience = { 0, 500000 };
	struct sockaddr_in name;
	char c = 0;
	int fd;

	if (!over_wire())
		return;
	fd = bound(&name);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (int tries = 0; tries < 20; tries++) {
		sendto(fd, &c, 1, 0, (struct sockaddr *)&name, sizeof(name));
		if (recv(fd, &c, 1, 0) != 1)
			continue;
		received_cnt++;
		break;
	}
	close(fd);
}

long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int bound_by_number(struct sockaddr_in *name)
{
	int fd = bound(name);

	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind_as_heard(fd, name) != 0)
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
	ssize_t n;

	if (flags & MSG_DONTWAIT)
		settle();
	n = recv(fd, buf, sizeof(buf) - 1, flags);
	SAY("recv: %zd %s %s\n", n, err(n), n > 0 ? buf : "");
	received_cnt += n >= 0 && !(flags & MSG_PEEK);
	return n;
}

/* -- the runner --------------------------------------------------------------------- */

static const struct scenario *const lists[] = {
	beside_scenarios,
	call_scenarios,
	option_scenarios,
	control_scenarios,
	length_scenarios,
	stamp_scenarios,
	process_scenarios,
	child_scenarios,
	ready_scenarios,
	mux_scenarios,
	set_scenarios,
	wait_scenarios,
};

/* What the kernel's sockets of this host have received. */
static unsigned long kernel_cnt(void)
{
	FILE *file = fopen("/proc/net/snmp", "re");
	unsigned long cnt = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Udp: %lu", &cnt) == 1)
			break;
	if (file)
		fclose(file);
	return cnt;
}

/* Over a wire, under the library. */
static void check_share_of_wire(unsigned by_kernel, unsigned long kernel_before)
{
	unsigned long theirs = kernel_cnt() - kernel_before;

	by_kernel += (unsigned)kernels_cnt;
	if (theirs > by_kernel && (theirs - by_kernel) * 20 > received_cnt)
		SAY("the kernel had %lu of %lu datagrams\n", theirs, received_cnt);
}

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
	unsigned long kernel_before;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		find(NULL);
		return 0;
	}
	scenario = argc == 2 ? find(argv[1]) : NULL;
	if (!scenario) {
		fprintf(stderr, "usage: udp NAME | --list\n");
		return 2;
	}
	kernel_before = kernel_cnt();
	scenario->run();
	check_share(scenario->by_kernel);
	if (getenv("UDP_CHECK_SHARE"))
		check_share_of_wire(scenario->by_kernel, kernel_before);
	return 0;
}
