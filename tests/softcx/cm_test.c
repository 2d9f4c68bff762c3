/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The genuine librdmacm on the card: which device an address belongs to. Run by
 * cm.sh in namespace a of two.
 */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "tests/support/test.h"

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	CHECK_EQ(inet_pton(AF_INET, text, &addr.sin_addr), 1);
	return addr;
}

static enum rdma_cm_event_type next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	CHECK_EQ(rdma_get_cm_event(channel, &event), 0);
	type = event->event;
	CHECK_EQ(rdma_ack_cm_event(event), 0);
	return type;
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

TEST(channel_can_be_non_blocking)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_event *event;

	CHECK_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	CHECK(rdma_get_cm_event(channel, &event) != 0);
	rdma_destroy_event_channel(channel);
}
