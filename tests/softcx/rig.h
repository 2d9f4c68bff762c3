/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the test programs share: a raw packet queue pair with its buffers, opened
 * through plain verbs, frames to send, and the way to the card's own functions.
 */
#ifndef SOFTCX_RIG_H
#define SOFTCX_RIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "softcx.h"

enum { RIG_SLOT = 2048, RIG_MAX_SLOTS = 1024 };

struct rig_params {
	const char *dev;
	uint32_t n_send;     /* 0: 64 */
	uint32_t n_recv;     /* 0: 64; also the receive slots */
	uint32_t n_cqes;     /* 0: the sum of both */
	uint32_t max_inline; /* bytes */
	uint32_t create_flags;
	bool has_channel;    /* completion events */
	bool is_idle;        /* leave the queue pair in RESET */
	bool is_unposted;    /* post no receive entries */
	bool has_time_stamps; /* recv_cq_ex, with raw ones */
};

/* Slots [0, n_recv) receive, the n_send after them send. */
struct rig {
	struct ibv_context *ctx;
	struct ibv_comp_channel *chan;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_cq_ex *recv_cq_ex; /* the same, or NULL */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *slots;
	uint32_t n_recv;
	uint32_t n_send;
	uint8_t mac[6];
};

/* These end the test case with a line when something fails. */
void rig_open(struct rig *rig, const struct rig_params *params);
void rig_close(struct rig *rig);
void rig_modify(struct rig *rig, enum ibv_qp_state state);
void rig_post_recv(struct rig *rig, uint32_t slot);
uint8_t *rig_send_slot(struct rig *rig, uint32_t i);
/* Posts send slot `i` as a frame; send_flags as in verbs. */
void rig_post_send(struct rig *rig, uint32_t i, uint32_t len,
		   unsigned int send_flags);

/* Addresses and ports in host order. */
struct rig_flow {
	uint8_t dst_mac[6];
	uint16_t vlan;       /* 0: any or none */
	uint32_t src_ip;     /* 0: any */
	uint32_t dst_ip;     /* 0: any */
	uint16_t src_port;   /* 0: any */
	uint16_t dst_port;   /* 0: any */
	uint8_t proto;       /* IPPROTO_UDP, IPPROTO_TCP, 0: no L3, L4 part */
	uint16_t priority;
	uint32_t tag;        /* 0: none */
	bool is_ipv6;        /* the addresses are ::ip */
	bool is_drop;
	bool is_copy;        /* DONT_TRAP: the kernel sees it, too */
	enum ibv_flow_attr_type type;
};
/* NULL with errno. */
struct ibv_flow *rig_flow_try(struct rig *rig, const struct rig_flow *flow);
struct ibv_flow *rig_flow(struct rig *rig, const struct rig_flow *flow);

/* A frame with `len` bytes behind its UDP or TCP header; no checksums. Returns
 * its whole length. */
struct rig_frame {
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	uint16_t vlan;       /* 0: untagged */
	uint32_t src_ip, dst_ip;
	uint16_t src_port, dst_port;
	uint8_t proto;
	bool is_ipv6;
	uint16_t fragment;   /* the IPv4 fragment field */
};
uint32_t rig_build(uint8_t *frame, const struct rig_frame *f, const void *data,
		   uint32_t len);

/* False when there is no completion. */
bool rig_poll(struct ibv_cq *cq, struct ibv_wc *wc);
/* The next completion, stepping the card until it comes. */
struct ibv_wc rig_next_wc(struct ibv_cq *cq);
/* Steps until all is quiet: no completion has come. */
void rig_expect_nothing(struct ibv_cq *cq);
bool rig_is_readable(int fd);
/* Takes the event of the channel, which must name this CQ. */
void rig_take_event(struct rig *rig, struct ibv_cq *expected);
/* The next asynchronous event, stepping the card until it comes. */
enum ibv_event_type rig_next_async(struct rig *rig);

/* A function of softcx.h; ends the program when the card is not there. */
void *rig_softcx(const char *name);
#define SOFTCX_CALL(fn, ...) ((fn##_fn *)rig_softcx(#fn))(__VA_ARGS__)

/* Steps the card until `cond` holds; false after ten seconds without. */
#define STEP_UNTIL(cond)                                               \
	({                                                             \
		uint64_t until_ = rig_now_ns() + 10 * NS_PER_SEC;      \
		bool holds_;                                           \
		while (!(holds_ = (cond)) && rig_now_ns() < until_)    \
			SOFTCX_CALL(softcx_step);                      \
		holds_;                                                \
	})
/* Steps until nothing has happened for a while. */
void rig_settle(void);
uint64_t rig_now_ns(void);
struct softcx_stats rig_stats(const char *dev);

#endif
