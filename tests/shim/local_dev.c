/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For libvma-test.so alone: with VMA_TEST_LOCAL=1 what a process says to itself
 * goes over an accelerated device in memory, so that programs written for loopback
 * exercise our sockets. The device passes frames at once and loses none.
 * VMA_TEST_LOCAL_TX_MAX bounds how many may be under way before somebody polls.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/syscall_raw.h"
#include "core/network.h"
#include "dev/fake/fake.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "os/real.h"
#include "pkt/wire.h"

/* A number that no real interface has. */
enum { IFINDEX = 0x7ffffff0 };

/* As loopback, whose datagrams are never fragmented. */
enum { MTU = 65536, FRAME_SIZE = 1 << 17, FRAME_CNT = 512 };

enum { FDS_MAX = 1024 };

static _Atomic int event_fd = -1;
static struct dev *dev;

EXPORT unsigned long vma_test_local_rx_cnt(void);
EXPORT unsigned long vma_test_local_given_cnt(void);
EXPORT int vma_test_has_object(int fd);

/* Datagrams that the device has carried. */
unsigned long vma_test_local_rx_cnt(void)
{
	return dev ? (unsigned long)fake_dev_rx_cnt(dev) : 0;
}

static _Atomic unsigned long given_cnt;

/* Of those, segments that were the kernel's. */
unsigned long vma_test_local_given_cnt(void)
{
	return given_cnt;
}

/* Whether the fd names an object of ours. */
int vma_test_has_object(int fd)
{
	return fd_table_has(fd);
}

/* Readable from a send to the next sleep. Neither of these two may be a call at which a
 * cancelled thread ends: it has the stack's lock. */
static void wake(void *ctx)
{
	uint64_t one = 1;

	(void)ctx;
	(void)syscall_raw(SYS_write, atomic_load(&event_fd), (long)&one,
			  sizeof(one), 0, 0, 0);
}

static void quiet(void *ctx)
{
	uint64_t value;

	(void)ctx;
	(void)syscall_raw(SYS_read, atomic_load(&event_fd), (long)&value,
			  sizeof(value), 0, 0, 0);
}

/* The socket that has sent what comes from this address and port. */
static int find_sender(__be32 addr, __be16 port)
{
	for (int fd = 3; fd < FDS_MAX; fd++) {
		struct sockaddr_in name;
		socklen_t len = sizeof(name);

		if (real.getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
		    name.sin_family == AF_INET && name.sin_port == port &&
		    (!name.sin_addr.s_addr || name.sin_addr.s_addr == addr))
			return fd;
	}
	return -1;
}

/* One in the place of a sender that is gone. */
static int make_sender(__be32 addr, __be16 port)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = port,
				    .sin_addr = { addr } };
	int fd = real.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && real.bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0) {
		real.close(fd);
		return -1;
	}
	return fd;
}

/* A segment can be sent with its header. */
static int give_segment(const struct wire_ipv4 *ip)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { ip->dst } };
	int fd = real.socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	int err = 0;

	if (fd < 0)
		return -errno;
	/* before the kernel counts it, for who looks at both meanwhile */
	given_cnt++;
	if (real.sendto(fd, ip, be16toh(ip->total_len), MSG_DONTWAIT,
			(struct sockaddr *)&to, sizeof(to)) < 0) {
		err = -errno;
		given_cnt--;
	}
	real.close(fd);
	return err;
}

/* Sends it once more, by the kernel. */
static int give_back(const void *frame, uint32_t len)
{
	const struct wire_ipv4 *ip = (const void *)((const char *)frame +
						    sizeof(struct wire_eth));
	const struct wire_udp *udp = (const void *)(ip + 1);
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = udp->dst_port,
				  .sin_addr = { ip->dst } };
	size_t payload = len - ((size_t)((const char *)(udp + 1) -
					 (const char *)frame));
	int fd, made = -1, err = 0;

	if (ip->proto == WIRE_PROTO_TCP)
		return give_segment(ip);
	fd = find_sender(ip->src, udp->src_port);
	if (fd < 0)
		fd = made = make_sender(ip->src, udp->src_port);
	if (real.sendto(fd, udp + 1, payload, MSG_DONTWAIT, (struct sockaddr *)&to,
			sizeof(to)) < 0)
		err = -errno;
	if (made >= 0)
		real.close(made);
	return err;
}

__attribute__((constructor(103))) static void offer(void)
{
	struct fake_cable_params cable_params = { .seed = 1 };
	struct fake_params params = {
		.ifindex = IFINDEX,
		.mtu = MTU,
		.frame_cnt = FRAME_CNT,
		.frame_size = FRAME_SIZE,
		.wake = wake,
		.quiet = quiet,
		.give_back = give_back,
	};
	const char *value = getenv("VMA_TEST_LOCAL");
	const char *tx_max = getenv("VMA_TEST_LOCAL_TX_MAX");
	struct fake_cable *cable;
	int fd;

	if (!value || strcmp(value, "1") != 0)
		return;
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0 || fd_internal_adopt(fd, &event_fd) != 0)
		return;
	params.fd = atomic_load(&event_fd);
	params.tx_max = tx_max ? (uint32_t)atoi(tx_max) : 0;
	cable = fake_cable_create(&cable_params);
	if (cable && fake_dev_create_loop(cable, &params, &dev) == 0)
		network_set_local_dev(dev);
}
