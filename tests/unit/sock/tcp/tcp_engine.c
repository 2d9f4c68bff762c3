/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the engine's connections do while a ring has no room: a stack on the fake ring, and a
 * cable from which the far end takes nothing unless a case does. Time is virtual.
 */
#include "config.h"

#include "sock/tcp/tcp_engine.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "dev/fake/fake.h"
#include "net/net.h"
#include "os/real.h"
#include "sock/sock.h"
#include "tcp/tcp_options.h"
#include "tests/support/test.h"

enum {
	TX_MAX = 64, /* what the cable holds */
	MSS = 1460,
	PEER_ISN = 5000,
	SENT_MAX = 4096,
};

/* Its view stays as it is. */
static struct net net;

static struct {
	uint64_t now_ns;
	struct fake_cable *cable;
	struct dev *near, *far;
	struct stack *stack;
	struct ring *ring, *far_ring;
	struct pkt_pool pool; /* what is written, and what the peer sends */
	struct pkt_pool far_pool;
	struct tcp_engine *engine;
	struct tcp_pcb *pcb;
	struct flow_key key;
	uint32_t iss;
	/* the segments with data that the ring has taken, by their places */
	uint32_t sent[SENT_MAX];
	unsigned sent_cnt;
} lab;

/* -- the cable ---------------------------------------------------------------------- */

static void see(void *ctx UNUSED, uint64_t now_ns UNUSED, const void *frame, size_t len)
{
	const struct wire_tcp *tcp =
		(const void *)((const uint8_t *)frame + sizeof(struct dst_header));

	if (len < sizeof(struct dst_header))
		return;
	if (tcp->flags & WIRE_TCP_SYN)
		lab.iss = be32toh(tcp->seq);
	else if (len > sizeof(struct dst_header) + (size_t)(tcp->offset_ae >> 4) * 4)
		lab.sent[lab.sent_cnt++ % SENT_MAX] = be32toh(tcp->seq) - lab.iss - 1;
}

/* Frames that others have sent fill the ring. */
static void fill_ring(void)
{
	uint8_t byte = 0;
	struct ring_tx tx = { .header = &byte, .header_len = 1 };

	stack_lock(lab.stack);
	while (lab.ring->ops->tx_fits(lab.ring, 1, 0))
		CHECK_EQ(stack_tx_locked(lab.stack, lab.ring, &tx), 0);
	/* the place of the next short one, too */
	*lab.ring->tx_frame = byte;
	stack_tx_commit_locked(lab.stack, lab.ring, 1);
	CHECK(!lab.ring->tx_frame);
	stack_unlock(lab.stack);
}

/* The far end takes all that is under way. */
static void make_room(void)
{
	(void)lab.far_ring->ops->rx_peek(lab.far_ring);
}

/* -- the stack ---------------------------------------------------------------------- */

static uint64_t virtual_clock(void)
{
	return lab.now_ns;
}

static void open_ends(void)
{
	static const struct demux_from from = { .ifindex = 7 };
	const struct fake_cable_params cable = { .now_ns = &lab.now_ns, .tap = see };
	struct fake_params params = {
		.ifindex = 7,
		.mac = { 2, 0, 0, 0, 0, 1 },
		.mtu = 1500,
		.frame_cnt = 256,
		.frame_size = 2048,
		.fd = -1,
		.tx_max = TX_MAX,
	};

	lab.cable = fake_cable_create(&cable);
	CHECK_EQ(fake_dev_create(lab.cable, 0, &params, &lab.near), 0);
	CHECK_EQ(fake_dev_create(lab.cable, 1, &params, &lab.far), 0);
	pkt_pool_init(&lab.far_pool, 0);
	CHECK_EQ(lab.far->ops->ring_create(lab.far, &lab.far_pool, &lab.far_ring), 0);
	CHECK_EQ(stack_add_ring(lab.stack, lab.near, &from, &lab.ring), 0);
}

/* The engine knows the way to the peer. */
static void learn_way(void)
{
	struct dst dst = {
		.view_gen = net_view_gen(&net.view),
		.ring = lab.ring,
		.packet_max = 1500,
	};
	const struct dst_query query = {
		.local = lab.key.local,
		.remote = lab.key.remote,
		.stack = lab.stack,
	};
	struct tcp_way *way;

	way = tcp_way_get(lab.engine, &query);
	CHECK(way != NULL);
	tcp_way_learn(way, &dst);
	tcp_way_put(way);
}

static void hold_nothing(void)
{
}

static void peer_sends(uint8_t flags, uint32_t seq, uint32_t ack,
		       const struct tcp_options *options)
{
	struct tcp_in in = { .pkt = pkt_alloc(&lab.pool), .key = lab.key };
	size_t len = sizeof(struct wire_tcp);

	CHECK(in.pkt != NULL);
	len += tcp_options_build(in.pkt->data + len, options);
	*(struct wire_tcp *)in.pkt->data = (struct wire_tcp){
		.src_port = lab.key.remote_port,
		.dst_port = lab.key.local_port,
		.seq = htobe32(seq),
		.ack = htobe32(ack),
		.offset_ae = (uint8_t)(len << 2),
		.flags = flags,
		.window = htobe16(60000),
	};
	pkt_append(in.pkt, (uint32_t)len);
	in.pkt->csum_verdict = PKT_CSUM_GOOD;
	stack_lock(lab.engine->stack);
	tcp_input(lab.engine->table, &in, lab.now_ns);
	tcp_engine_due_locked(lab.engine);
	stack_unlock(lab.engine->stack);
}

static void connect_to_peer(void)
{
	const struct tcp_options answer = { .mss = MSS, .has_sack_ok = true };
	const struct tcp_path path = { .mtu = 1500 };

	stack_lock(lab.engine->stack);
	learn_way();
	lab.pcb = tcp_new(lab.engine->table);
	CHECK_EQ(tcp_bind(lab.pcb, &lab.key.local, lab.key.local_port), 0);
	CHECK_EQ(tcp_connect(lab.pcb, &lab.key.remote, lab.key.remote_port, &path,
			     lab.now_ns),
		 0);
	stack_unlock(lab.engine->stack);
	lab.now_ns += 10 * NS_PER_MS;
	peer_sends(WIRE_TCP_SYN | WIRE_TCP_ACK, PEER_ISN, lab.iss + 1, &answer);
	CHECK_EQ(tcp_state(lab.pcb), TCPS_ESTABLISHED);
	make_room();
}

static void begin(void)
{
	const struct stack_params params = {
		.lock_kind = STACK_LOCK_SPIN,
		.poll_batch = 16,
		.net = &net,
		.clock_ns = virtual_clock,
	};

	real_resolve();
	memset(&lab, 0, sizeof(lab));
	lab.now_ns = 1000 * NS_PER_SEC;
	sock_params.hold_conversations = hold_nothing;
	pkt_pool_init(&lab.pool, 0);
	CHECK_EQ(pkt_pool_grow(&lab.pool, 256, 2048), 0);
	CHECK_EQ(stack_create(&params, &lab.stack), 0);
	open_ends();
	lab.engine = tcp_engine_of(lab.stack);
	CHECK(lab.engine != NULL);
	lab.key = (struct flow_key){
		.local = ip_addr_from_v4(htobe32(0x0a000001)),
		.remote = ip_addr_from_v4(htobe32(0x0a000002)),
		.local_port = htobe16(1000),
		.remote_port = htobe16(2000),
	};
	connect_to_peer();
}

static void end(void)
{
	stack_lock(lab.engine->stack);
	if (lab.pcb)
		tcp_abort(lab.pcb, lab.now_ns);
	tcp_engine_due_locked(lab.engine);
	stack_unlock(lab.engine->stack);
	CHECK_EQ(tcp_pcb_cnt(lab.engine->table), 0);
	CHECK_EQ(pkt_pool_destroy(&lab.pool), 0);
	tcp_table_destroy(lab.engine->table);
	CHECK_EQ(pkt_pool_destroy(&lab.engine->borrowers), 0);
	munmap(lab.engine, sizeof(*lab.engine));
	stack_remove_ring(lab.stack, lab.ring);
	ring_end(lab.far_ring);
	lab.near->ops->close(lab.near);
	lab.far->ops->close(lab.far);
	fake_cable_destroy(lab.cable);
	stack_destroy(lab.stack);
}

/* -- what cases do --------------------------------------------------------------------- */

static void write_some(unsigned cnt, uint32_t len)
{
	stack_lock(lab.engine->stack);
	for (unsigned i = 0; i < cnt; i++) {
		struct pkt *pkt = pkt_alloc(&lab.pool);

		memset(pkt_append(pkt, len), 'y', len);
		CHECK_EQ(tcp_write(lab.pcb, pkt), 0);
	}
	tcp_output(lab.pcb, lab.now_ns);
	tcp_engine_due_locked(lab.engine);
	stack_unlock(lab.engine->stack);
}

static void advance_ms(uint64_t ms)
{
	uint64_t until_ns = lab.now_ns + ms * NS_PER_MS;

	stack_lock(lab.engine->stack);
	while (timer_wheel_next_ns(&lab.engine->stack->timers) <= until_ns) {
		lab.now_ns = MAX(lab.now_ns, timer_wheel_next_ns(&lab.engine->stack->timers));
		timer_wheel_advance(&lab.engine->stack->timers, lab.now_ns);
		tcp_engine_due_locked(lab.engine);
	}
	lab.now_ns = until_ns;
	stack_unlock(lab.engine->stack);
}

/* Bytes that the engine takes for sent, and that nobody has acknowledged. */
static uint32_t under_way(void)
{
	struct tcp_pcb_info info;

	tcp_get_info(lab.pcb, &info);
	return info.snd_nxt - info.snd_una;
}

static void set_user_timeout_ms(uint64_t ms)
{
	stack_lock(lab.engine->stack);
	CHECK_EQ(tcp_set_user_timeout(lab.pcb, ms * NS_PER_MS), 0);
	stack_unlock(lab.engine->stack);
}

static void check_nothing_is_lost(void)
{
	const struct tcp_counts *counts = tcp_counts(lab.engine->table);

	CHECK_EQ(counts->retransmitted, 0);
	CHECK_EQ(counts->rto_fired, 0);
}

/* -- a ring without room ---------------------------------------------------------------- */

/* It is waited for, and what waited leaves in its order when it has some. */
TEST(what_waits_for_a_ring_leaves_when_that_has_room)
{
	begin();
	fill_ring();
	write_some(6, MSS);
	advance_ms(100);
	CHECK_EQ(lab.sent_cnt, 0);
	CHECK_EQ(under_way(), 0);
	make_room();
	advance_ms(1);
	CHECK_EQ(lab.sent_cnt, 6);
	for (unsigned i = 0; i < 6; i++)
		CHECK_EQ(lab.sent[i], i * MSS);
	check_nothing_is_lost();
	end();
}

/* With nothing under way no timeout counts meanwhile, and nobody would hear of it. */
TEST(a_ring_that_stays_full_is_waited_for_so_long_and_no_longer)
{
	begin();
	set_user_timeout_ms(1000);
	fill_ring();
	write_some(6, MSS);
	advance_ms(199);
	CHECK_EQ(under_way(), 0);
	advance_ms(2);
	CHECK(under_way() > 0);
	advance_ms(900);
	CHECK_EQ(tcp_state(lab.pcb), TCPS_ESTABLISHED);
	advance_ms(200);
	CHECK_EQ(tcp_state(lab.pcb), TCPS_CLOSED);
	CHECK_EQ(tcp_error(lab.pcb), -ETIMEDOUT);
	CHECK_EQ(lab.sent_cnt, 0);
	end();
}

/* Nor does one that its program has closed keep its memory and its port for ever. */
TEST(an_orphan_before_a_ring_that_stays_full_ends)
{
	begin();
	fill_ring();
	write_some(6, MSS);
	stack_lock(lab.engine->stack);
	tcp_close(lab.pcb, lab.now_ns);
	lab.pcb = NULL;
	stack_unlock(lab.engine->stack);
	for (int i = 0; i < 30; i++)
		advance_ms(60 * 1000);
	CHECK_EQ(tcp_pcb_cnt(lab.engine->table), 0);
	CHECK_EQ(lab.sent_cnt, 0);
	end();
}

/* What comes after room is another jam, which is waited for anew. */
TEST(a_ring_that_is_full_again_is_waited_for_again)
{
	const struct tcp_options none = { .sack_cnt = 0 };

	begin();
	for (unsigned i = 0; i < 4; i++) {
		fill_ring();
		write_some(4, MSS);
		advance_ms(150);
		CHECK_EQ(lab.sent_cnt, 4 * i);
		make_room();
		advance_ms(1);
		CHECK_EQ(lab.sent_cnt, 4 * (i + 1));
		peer_sends(WIRE_TCP_ACK, PEER_ISN + 1, lab.iss + 1 + 4 * (i + 1) * MSS,
			   &none);
	}
	check_nothing_is_lost();
	end();
}

/* -- between two looks ------------------------------------------------------------------- */

static const struct ring_ops *ring_ops;
static unsigned reap_cnt;

/* The far end takes all between the first look for room and the second. */
static void reap_late(struct ring *ring)
{
	if (++reap_cnt == 2)
		make_room();
	ring_ops->reap(ring);
}

/* The ring refuses it, and a moment later, when the engine asks, has much room. */
TEST(what_a_ring_refuses_that_has_room_just_then_is_not_lost)
{
	struct ring_ops late;

	begin();
	fill_ring();
	ring_ops = lab.ring->ops;
	late = *ring_ops;
	late.reap = reap_late;
	lab.ring->ops = &late;
	write_some(1, 64);
	CHECK(reap_cnt >= 2);
	lab.ring->ops = ring_ops;
	advance_ms(1);
	CHECK_EQ(lab.sent_cnt, 1);
	CHECK_EQ(under_way(), 64);
	check_nothing_is_lost();
	end();
}

/* -- a queue with room, and no frame ------------------------------------------------------- */

static unsigned refused_cnt;

/* A segment is copied to a frame of the pool, where the queue has places for more. */
static int tx_with_frame(struct ring *ring, const struct ring_tx *tx)
{
	struct pkt *frame = ring_pkt_alloc(ring);

	if (frame) {
		pkt_put(frame);
		return ring_ops->tx(ring, tx);
	}
	refused_cnt++;
	ring->counts->tx_full++;
	pkt_put(tx->payload);
	return -EAGAIN;
}

static bool fits_with_frames(struct ring *ring, uint32_t cnt, uint32_t copied)
{
	return ring_ops->tx_fits(ring, cnt, copied) && ring_has_pkts(ring, copied);
}

static struct ring_ops begin_with(int (*tx)(struct ring *ring, const struct ring_tx *tx))
{
	struct ring_ops own;

	begin();
	ring_ops = lab.ring->ops;
	own = *ring_ops;
	own.tx = tx;
	refused_cnt = 0;
	return own;
}

static void take_frames(struct list *all)
{
	struct pkt *pkt;

	while ((pkt = ring_pkt_alloc(lab.ring)))
		list_push_back(all, &pkt->link);
}

/* What was sent before has all frames, and leaves when the engine lets go of the lock. */
TEST(a_ring_without_frames_is_waited_for_as_one_without_room)
{
	struct ring_ops own = begin_with(tx_with_frame);
	struct list all;

	list_init(&all);
	own.tx_fits = fits_with_frames;
	lab.ring->ops = &own;
	set_user_timeout_ms(1000);
	take_frames(&all);
	write_some(6, MSS);
	advance_ms(100);
	CHECK_EQ(lab.sent_cnt, 0);
	CHECK_EQ(under_way(), 0);
	CHECK(refused_cnt < 8);
	pkt_put_list(&all);
	advance_ms(1);
	CHECK_EQ(lab.sent_cnt, 6);
	check_nothing_is_lost();
	take_frames(&all);
	/* but not for ever */
	write_some(6, MSS);
	advance_ms(1500);
	CHECK_EQ(tcp_state(lab.pcb), TCPS_CLOSED);
	CHECK_EQ(tcp_error(lab.pcb), -ETIMEDOUT);
	pkt_put_list(&all);
	end();
}

static int tx_never(struct ring *ring, const struct ring_tx *tx)
{
	refused_cnt++;
	ring->counts->tx_full++;
	pkt_put(tx->payload);
	return -EAGAIN;
}

/* Whatever it is for: the lock is let go of before it is asked once more. */
TEST(a_ring_that_refuses_what_it_has_room_for_is_asked_no_more_in_one_go)
{
	const struct tcp_options none = { .sack_cnt = 0 };
	struct ring_ops own = begin_with(tx_never);

	/* by the general rules, and then by the short way */
	for (unsigned i = 1; i <= 3; i++) {
		refused_cnt = 0;
		lab.ring->ops = &own;
		write_some(2, MSS);
		CHECK(refused_cnt >= 1 && refused_cnt <= 2);
		CHECK_EQ(under_way(), 0);
		lab.ring->ops = ring_ops;
		advance_ms(1);
		CHECK_EQ(lab.sent_cnt, 2 * i);
		peer_sends(WIRE_TCP_ACK, PEER_ISN + 1, lab.iss + 1 + 2 * i * MSS, &none);
	}
	check_nothing_is_lost();
	end();
}

static int tx_no_run(struct ring *ring, const struct ring_tx *tx)
{
	if (!tx->run)
		return ring_ops->tx(ring, tx);
	refused_cnt++;
	ring->counts->tx_full++;
	return -EAGAIN;
}

/* There may never be so many frames. */
TEST(a_run_that_a_ring_refuses_leaves_segment_by_segment)
{
	const struct tcp_path path = { .mtu = 1500, .segment_max = 60000 };
	struct ring_ops own = begin_with(tx_no_run);

	lab.ring->ops = &own;
	((struct dev *)lab.ring->dev)->caps.tso_max = 60000;
	stack_lock(lab.engine->stack);
	tcp_set_path(lab.pcb, &path, lab.now_ns);
	stack_unlock(lab.engine->stack);
	write_some(6, MSS);
	CHECK(refused_cnt > 0);
	CHECK_EQ(lab.sent_cnt, 6);
	CHECK_EQ(under_way(), 6 * MSS);
	check_nothing_is_lost();
	lab.ring->ops = ring_ops;
	end();
}

/* -- single segments ---------------------------------------------------------------------- */

/* An order that finds no place is not lost for that: its probe would come tens of
 * milliseconds later. */
static void check_one(uint32_t len)
{
	begin();
	fill_ring();
	write_some(1, len);
	CHECK_EQ(lab.sent_cnt, 0);
	CHECK_EQ(under_way(), 0);
	/* what follows stays behind it */
	write_some(1, len);
	CHECK_EQ(lab.sent_cnt, 0);
	advance_ms(1);
	CHECK_EQ(under_way(), 0);
	make_room();
	advance_ms(1);
	CHECK(lab.sent_cnt > 0);
	CHECK_EQ(lab.sent[0], 0);
	CHECK_EQ(under_way(), 2 * len);
	check_nothing_is_lost();
	end();
}

TEST(a_short_segment_waits_for_a_full_ring)
{
	check_one(64);
}

TEST(a_long_segment_waits_for_a_full_ring)
{
	check_one(MSS);
}
