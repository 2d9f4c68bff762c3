/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The test programs' queue pair; see rig.h. */
#include "config.h"

#include "rig.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/support/test.h"

enum { ETH = 14, VLAN = 4, IPV4 = 20, IPV6 = 40, UDP = 8, TCP = 20 };

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	CHECK(list);
	for (int i = 0; list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	if (!ctx)
		FAIL("no device %s: %s", name, strerror(errno));
	return ctx;
}

static void open_qp(struct rig *rig, const struct rig_params *p)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = rig->send_cq,
		.recv_cq = rig->recv_cq,
		.cap = {
			.max_send_wr = rig->n_send,
			.max_recv_wr = rig->n_recv,
			.max_send_sge = 4,
			.max_recv_sge = 2,
			.max_inline_data = p->max_inline,
		},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
			     (p->create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS :
						0),
		.pd = rig->pd,
		.create_flags = p->create_flags,
		.max_tso_header = 128,
	};

	rig->qp = ibv_create_qp_ex(rig->ctx, &attr);
	if (!rig->qp)
		FAIL("ibv_create_qp_ex: %s", strerror(errno));
}

static void open_recv_cq(struct rig *rig, const struct rig_params *p,
			 uint32_t n)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = n,
		.cq_context = rig,
		.channel = rig->chan,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};

	if (!p->has_time_stamps) {
		rig->recv_cq = ibv_create_cq(rig->ctx, (int)n, rig, rig->chan,
					     0);
		return;
	}
	rig->recv_cq_ex = ibv_create_cq_ex(rig->ctx, &attr);
	CHECK(rig->recv_cq_ex);
	rig->recv_cq = ibv_cq_ex_to_cq(rig->recv_cq_ex);
}

/* The port's GID 0 has the MAC in it. */
static void find_mac(struct rig *rig)
{
	union ibv_gid gid;
	const uint8_t *g = gid.raw;

	CHECK(ibv_query_gid(rig->ctx, 1, 0, &gid) == 0);
	memcpy(rig->mac, (uint8_t[]){ g[8] ^ 2, g[9], g[10], g[13], g[14],
				      g[15] }, 6);
}

void rig_open(struct rig *rig, const struct rig_params *p)
{
	size_t size;
	uint32_t n;

	*rig = (struct rig){
		.n_send = p->n_send ? p->n_send : 64,
		.n_recv = p->n_recv ? p->n_recv : 64,
	};
	n = rig->n_send + rig->n_recv;
	size = (size_t)n * RIG_SLOT;
	rig->ctx = open_named(p->dev);
	if (p->has_channel)
		rig->chan = ibv_create_comp_channel(rig->ctx);
	rig->pd = ibv_alloc_pd(rig->ctx);
	rig->slots = aligned_alloc(4096, size);
	CHECK(rig->pd && rig->slots);
	memset(rig->slots, 0, size);
	rig->mr = ibv_reg_mr(rig->pd, rig->slots, size, IBV_ACCESS_LOCAL_WRITE);
	n = p->n_cqes ? p->n_cqes : n;
	rig->send_cq = ibv_create_cq(rig->ctx, (int)n, rig, rig->chan, 0);
	open_recv_cq(rig, p, n);
	CHECK(rig->mr && rig->send_cq && rig->recv_cq);
	open_qp(rig, p);
	find_mac(rig);
	if (p->is_idle)
		return;
	rig_modify(rig, IBV_QPS_INIT);
	rig_modify(rig, IBV_QPS_RTR);
	rig_modify(rig, IBV_QPS_RTS);
	for (uint32_t i = 0; i < rig->n_recv && !p->is_unposted; i++)
		rig_post_recv(rig, i);
}

void rig_close(struct rig *rig)
{
	CHECK_EQ(ibv_destroy_qp(rig->qp), 0);
	CHECK_EQ(ibv_destroy_cq(rig->send_cq), 0);
	CHECK_EQ(ibv_destroy_cq(rig->recv_cq), 0);
	CHECK_EQ(ibv_dereg_mr(rig->mr), 0);
	CHECK_EQ(ibv_dealloc_pd(rig->pd), 0);
	if (rig->chan)
		CHECK_EQ(ibv_destroy_comp_channel(rig->chan), 0);
	CHECK_EQ(ibv_close_device(rig->ctx), 0);
	free(rig->slots);
}

void rig_modify(struct rig *rig, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };
	int mask = IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0);

	CHECK_EQ(ibv_modify_qp(rig->qp, &attr, mask), 0);
}

void rig_post_recv(struct rig *rig, uint32_t slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rig->slots + (uint64_t)slot * RIG_SLOT,
		.length = RIG_SLOT,
		.lkey = rig->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	CHECK_EQ(ibv_post_recv(rig->qp, &wr, &bad), 0);
}

uint8_t *rig_send_slot(struct rig *rig, uint32_t i)
{
	return rig->slots + (size_t)(rig->n_recv + i) * RIG_SLOT;
}

void rig_post_send(struct rig *rig, uint32_t i, uint32_t len,
		   unsigned int send_flags)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rig_send_slot(rig, i),
		.length = len,
		.lkey = rig->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = send_flags,
	};
	struct ibv_send_wr *bad;

	CHECK_EQ(ibv_post_send(rig->qp, &wr, &bad), 0);
}

/* A command's specifications, one behind the other. */
struct specs {
	struct ibv_flow_attr attr;
	uint8_t bytes[512];
	size_t len;
} __attribute__((packed, aligned(8)));

static void *add_spec(struct specs *s, size_t size)
{
	void *at = s->bytes + s->len;

	s->len += size;
	s->attr.num_of_specs++;
	return at;
}

static void add_eth(struct specs *s, const struct rig_flow *f)
{
	struct ibv_flow_spec_eth *eth = add_spec(s, sizeof(*eth));

	eth->type = IBV_FLOW_SPEC_ETH;
	eth->size = sizeof(*eth);
	memcpy(eth->val.dst_mac, f->dst_mac, 6);
	memset(eth->mask.dst_mac, 0xff, 6);
	if (f->vlan) {
		eth->val.vlan_tag = htons(f->vlan);
		eth->mask.vlan_tag = htons(0xfff);
	}
}

static void put_v6(uint8_t addr[16], uint8_t mask[16], uint32_t ip)
{
	uint32_t ip_be = htonl(ip);

	if (!ip)
		return;
	memcpy(addr + 12, &ip_be, 4);
	memset(mask, 0xff, 16);
}

static void add_l3(struct specs *s, const struct rig_flow *f)
{
	struct ibv_flow_spec_ipv4 *v4;
	struct ibv_flow_spec_ipv6 *v6;

	if (f->is_ipv6) {
		v6 = add_spec(s, sizeof(*v6));
		v6->type = IBV_FLOW_SPEC_IPV6;
		v6->size = sizeof(*v6);
		put_v6(v6->val.src_ip, v6->mask.src_ip, f->src_ip);
		put_v6(v6->val.dst_ip, v6->mask.dst_ip, f->dst_ip);
		return;
	}
	v4 = add_spec(s, sizeof(*v4));
	v4->type = IBV_FLOW_SPEC_IPV4;
	v4->size = sizeof(*v4);
	v4->val.src_ip = htonl(f->src_ip);
	v4->mask.src_ip = f->src_ip ? 0xffffffff : 0;
	v4->val.dst_ip = htonl(f->dst_ip);
	v4->mask.dst_ip = f->dst_ip ? 0xffffffff : 0;
}

static void add_l4(struct specs *s, const struct rig_flow *f)
{
	struct ibv_flow_spec_tcp_udp *l4 = add_spec(s, sizeof(*l4));

	l4->type = f->proto == IPPROTO_TCP ? IBV_FLOW_SPEC_TCP :
					     IBV_FLOW_SPEC_UDP;
	l4->size = sizeof(*l4);
	l4->val.src_port = htons(f->src_port);
	l4->mask.src_port = f->src_port ? 0xffff : 0;
	l4->val.dst_port = htons(f->dst_port);
	l4->mask.dst_port = f->dst_port ? 0xffff : 0;
}

static void add_actions(struct specs *s, const struct rig_flow *f)
{
	if (f->tag) {
		struct ibv_flow_spec_action_tag *tag =
			add_spec(s, sizeof(*tag));

		tag->type = IBV_FLOW_SPEC_ACTION_TAG;
		tag->size = sizeof(*tag);
		tag->tag_id = f->tag;
	}
	if (f->is_drop) {
		struct ibv_flow_spec_action_drop *drop =
			add_spec(s, sizeof(*drop));

		drop->type = IBV_FLOW_SPEC_ACTION_DROP;
		drop->size = sizeof(*drop);
	}
}

struct ibv_flow *rig_flow_try(struct rig *rig, const struct rig_flow *f)
{
	struct specs s = {
		.attr = {
			.type = f->type,
			.size = sizeof(s.attr),
			.priority = f->priority,
			.port = 1,
			.flags = f->is_copy ? IBV_FLOW_ATTR_FLAGS_DONT_TRAP :
					      0,
		},
	};

	if (f->type == IBV_FLOW_ATTR_NORMAL)
		add_eth(&s, f);
	if (f->proto) {
		add_l3(&s, f);
		add_l4(&s, f);
	}
	add_actions(&s, f);
	return ibv_create_flow(rig->qp, (struct ibv_flow_attr *)(void *)&s);
}

struct ibv_flow *rig_flow(struct rig *rig, const struct rig_flow *f)
{
	struct ibv_flow *flow = rig_flow_try(rig, f);

	if (!flow)
		FAIL("ibv_create_flow: %s", strerror(errno));
	return flow;
}

static void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void put32(uint8_t *p, uint32_t value)
{
	put16(p, value >> 16);
	put16(p + 2, value & 0xffff);
}

static uint32_t build_l3(uint8_t *p, const struct rig_frame *f, uint32_t len)
{
	if (f->is_ipv6) {
		memset(p, 0, IPV6);
		p[0] = 0x60;
		put16(p + 4, len);
		p[6] = f->proto;
		p[7] = 64;
		put32(p + 20, f->src_ip);
		put32(p + 36, f->dst_ip);
		return IPV6;
	}
	memset(p, 0, IPV4);
	p[0] = 0x45;
	put16(p + 2, IPV4 + len);
	put16(p + 6, f->fragment);
	p[8] = 64;
	p[9] = f->proto;
	put32(p + 12, f->src_ip);
	put32(p + 16, f->dst_ip);
	return IPV4;
}

static uint32_t build_l4(uint8_t *p, const struct rig_frame *f, uint32_t len)
{
	if (f->proto == IPPROTO_TCP) {
		memset(p, 0, TCP);
		put32(p + 4, 1000);
		p[12] = TCP / 4 << 4;
		p[13] = 0x18;
	} else {
		memset(p, 0, UDP);
		put16(p + 4, UDP + len);
	}
	put16(p, f->src_port);
	put16(p + 2, f->dst_port);
	return f->proto == IPPROTO_TCP ? TCP : UDP;
}

uint32_t rig_build(uint8_t *frame, const struct rig_frame *f, const void *data,
		   uint32_t len)
{
	uint32_t l4 = f->proto == IPPROTO_TCP ? TCP : UDP, at = 12;

	memcpy(frame, f->dst_mac, 6);
	memcpy(frame + 6, f->src_mac, 6);
	if (f->vlan) {
		put16(frame + at, 0x8100);
		put16(frame + at + 2, f->vlan);
		at += VLAN;
	}
	put16(frame + at, f->is_ipv6 ? 0x86dd : 0x0800);
	at += 2;
	at += build_l3(frame + at, f, l4 + len);
	at += build_l4(frame + at, f, len);
	memcpy(frame + at, data, len);
	return at + len;
}

void *rig_softcx(const char *name)
{
	void *fn = dlsym(RTLD_DEFAULT, name);

	if (!fn) {
		fprintf(stderr, "%s: libsoftcx is not preloaded\n", name);
		exit(1);
	}
	return fn;
}

uint64_t rig_now_ns(void)
{
	return clock_monotonic_ns();
}

void rig_settle(void)
{
	uint64_t quiet_since = rig_now_ns();

	while (rig_now_ns() - quiet_since < 2 * NS_PER_MS) {
		if (SOFTCX_CALL(softcx_step) > 0)
			quiet_since = rig_now_ns();
	}
}

struct softcx_stats rig_stats(const char *dev)
{
	struct softcx_stats stats;

	CHECK_EQ(SOFTCX_CALL(softcx_stats, dev, &stats), 0);
	return stats;
}

bool rig_poll(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	CHECK(n >= 0);
	return n == 1;
}

struct ibv_wc rig_next_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	CHECK(STEP_UNTIL(rig_poll(cq, &wc)));
	return wc;
}

void rig_expect_nothing(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	rig_settle();
	CHECK(!rig_poll(cq, &wc));
}

bool rig_is_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

void rig_take_event(struct rig *rig, struct ibv_cq *expected)
{
	struct ibv_cq *cq;
	void *context;

	CHECK_EQ(ibv_get_cq_event(rig->chan, &cq, &context), 0);
	CHECK(cq == expected);
	CHECK(context == rig);
	ibv_ack_cq_events(cq, 1);
}

enum ibv_event_type rig_next_async(struct rig *rig)
{
	struct ibv_async_event event;
	enum ibv_event_type type;

	CHECK(STEP_UNTIL(rig_is_readable(rig->ctx->async_fd)));
	CHECK_EQ(ibv_get_async_event(rig->ctx, &event), 0);
	type = event.event_type;
	if (type == IBV_EVENT_QP_FATAL)
		CHECK(event.element.qp == rig->qp);
	if (type == IBV_EVENT_CQ_ERR)
		CHECK(event.element.cq == rig->recv_cq);
	ibv_ack_async_event(&event);
	return type;
}
