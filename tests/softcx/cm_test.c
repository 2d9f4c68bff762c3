/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The genuine librdmacm on the card: which device an address belongs to. Run by
 * cm.sh in namespace a of two.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "tests/support/test.h"

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	CHECK_EQ(inet_pton(AF_INET, text, &addr.sin_addr), 1);
	return addr;
}

/* The next event, and its status if that is wanted. */
static enum rdma_cm_event_type
next_event_status(struct rdma_event_channel *channel, int *status_out)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	CHECK_EQ(rdma_get_cm_event(channel, &event), 0);
	type = event->event;
	*status_out = event->status;
	CHECK_EQ(rdma_ack_cm_event(event), 0);
	return type;
}

static enum rdma_cm_event_type next_event(struct rdma_event_channel *channel)
{
	int status;

	return next_event_status(channel, &status);
}

static struct rdma_event_channel *open_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	CHECK(channel);
	return channel;
}

TEST(bound_address_names_its_device)
{
	struct rdma_event_channel *channel = open_channel();
	struct sockaddr_in addr = address("10.9.0.1");
	struct rdma_cm_id *id;

	CHECK_EQ(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	CHECK_EQ(rdma_bind_addr(id, (struct sockaddr *)&addr), 0);
	CHECK(id->verbs);
	CHECK_STR(ibv_get_device_name(id->verbs->device), "mlx5_0");
	CHECK_EQ(id->port_num, 1);
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(foreign_address_has_no_device)
{
	struct rdma_event_channel *channel = open_channel();
	struct sockaddr_in addr = address("192.0.2.1");
	struct rdma_cm_id *id;

	CHECK_EQ(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&addr) != 0);
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(peer_resolves_to_the_device_of_its_route)
{
	struct rdma_event_channel *channel = open_channel();
	struct sockaddr_in addr = address("10.9.0.2");
	struct rdma_cm_id *id;

	CHECK_EQ(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	CHECK_EQ(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000),
		 0);
	CHECK_EQ(next_event(channel), RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK_STR(ibv_get_device_name(id->verbs->device), "mlx5_0");
	CHECK_EQ(rdma_resolve_route(id, 1000), 0);
	CHECK_EQ(next_event(channel), RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/* As of a device, by whichever call it is asked. */
TEST(channel_looks_like_a_device)
{
	struct rdma_event_channel *channel = open_channel();
	struct statx stx;
	struct stat st;

	CHECK_EQ(fstat(channel->fd, &st), 0);
	CHECK(S_ISCHR(st.st_mode));
	CHECK_EQ(statx(channel->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx),
		 0);
	CHECK(S_ISCHR(stx.stx_mode));
	CHECK_EQ(makedev(stx.stx_rdev_major, stx.stx_rdev_minor), st.st_rdev);
	rdma_destroy_event_channel(channel);
}

TEST(channel_can_be_non_blocking)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_event *event;

	CHECK_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	CHECK(rdma_get_cm_event(channel, &event) != 0);
	rdma_destroy_event_channel(channel);
}

/* Whether the kernel knows the MAC of an address, as /proc/net/arp has it. */
static bool is_neighbour(const char *ip)
{
	FILE *table = fopen("/proc/net/arp", "r");
	char line[256], name[64];
	unsigned int type, flags = 0;
	bool is_known = false;

	CHECK(table);
	while (fgets(line, sizeof(line), table)) {
		if (sscanf(line, "%63s %x %x", name, &type, &flags) == 3 &&
		    strcmp(name, ip) == 0)
			is_known = flags & 2;
	}
	fclose(table);
	return is_known;
}

static struct rdma_cm_id *start(struct rdma_event_channel *channel,
				const char *ip, int timeout_ms)
{
	struct sockaddr_in addr = address(ip);
	struct rdma_cm_id *id;

	CHECK_EQ(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	CHECK_EQ(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr,
				   timeout_ms), 0);
	return id;
}

TEST(resolved_peer_is_a_neighbour)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id;

	CHECK(!is_neighbour("10.9.0.3"));
	id = start(channel, "10.9.0.3", 5000);
	CHECK_EQ(next_event(channel), RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(is_neighbour("10.9.0.3"));
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(peer_behind_a_gateway_needs_the_gateway)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id;

	CHECK(!is_neighbour("10.9.0.4"));
	id = start(channel, "10.99.0.1", 5000);
	CHECK_EQ(next_event(channel), RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(is_neighbour("10.9.0.4"));
	CHECK_STR(ibv_get_device_name(id->verbs->device), "mlx5_0");
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(missing_peer_is_an_error_at_the_time_out)
{
	struct rdma_event_channel *channel = open_channel();
	uint64_t start_ns = clock_monotonic_ns();
	struct rdma_cm_id *id = start(channel, "10.9.0.99", 300);
	int status;

	CHECK_EQ(next_event_status(channel, &status), RDMA_CM_EVENT_ADDR_ERROR);
	CHECK_EQ(status, -ETIMEDOUT);
	CHECK(clock_monotonic_ns() - start_ns >= 300 * NS_PER_MS);
	/* It may be tried again, by the same id. */
	CHECK_EQ(rdma_resolve_addr(id, NULL,
				   (struct sockaddr *)&(struct sockaddr_in[]){
					   address("10.9.0.2") }, 5000), 0);
	CHECK_EQ(next_event(channel), RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(peer_that_comes_later_resolves_then)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = start(channel, "10.9.0.5", 20000);
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

	/* cm.sh adds the address to the other namespace when it sees this. */
	CHECK_EQ(poll(&pfd, 1, 200), 0);
	printf("# now 10.9.0.5\n");
	fflush(stdout);
	CHECK_EQ(poll(&pfd, 1, 20000), 1);
	CHECK_EQ(next_event(channel), RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(is_neighbour("10.9.0.5"));
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(peer_without_a_route_is_refused_at_once)
{
	struct rdma_event_channel *channel = open_channel();
	struct sockaddr_in addr = address("198.51.100.1");
	struct rdma_cm_id *id;

	CHECK_EQ(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
	CHECK_EQ(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000),
		 -1);
	CHECK_EQ(errno, ENETUNREACH);
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(peer_behind_no_card_is_an_error)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = start(channel, "127.0.0.1", 1000);
	int status;

	CHECK_EQ(next_event_status(channel, &status), RDMA_CM_EVENT_ADDR_ERROR);
	CHECK_EQ(status, -ENODEV);
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(groups_need_no_neighbour)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = start(channel, "239.1.2.3", 1000);

	CHECK_EQ(next_event(channel), RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK_STR(ibv_get_device_name(id->verbs->device), "mlx5_0");
	CHECK_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

TEST(destroyed_id_resolves_no_more)
{
	struct rdma_event_channel *channel = open_channel();
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct sockaddr_in addr = address("10.9.0.2");
	struct rdma_cm_id *id = start(channel, "10.9.0.98", 100);

	/* One at a time. */
	CHECK_EQ(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 100),
		 -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(rdma_destroy_id(id), 0);
	CHECK_EQ(poll(&pfd, 1, 300), 0);
	rdma_destroy_event_channel(channel);
}
