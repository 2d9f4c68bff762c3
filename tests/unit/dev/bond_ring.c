/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring of a bond: by which port a frame leaves, whose frames count, and that what is
 * wished of it is wished of all ports. */
#include "config.h"

#include <errno.h>

#include "tests/support/test.h"
#include "tests/unit/dev/bond_lab.h"

/* -- sending --------------------------------------------------------------------------- */

/* Else one would use its doorbell while somebody kicks the bond, and so the port. */
TEST(ports_leave_doorbells_to_kicks)
{
	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1 << 0);
	FOR_EACH_PORT(port)
		CHECK(atomic_load(&port->ring->kick_state));
	lab_end();
}

TEST(frames_leave_by_the_active_port)
{
	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1 << 1);
	CHECK_EQ(lab_way_of(7), 1);
	CHECK_EQ(lab_way_of(8), 1);
	lab_use(1 << 2);
	CHECK_EQ(lab_way_of(7), 2);
	lab_use(1 << 0);
	CHECK_EQ(lab_way_of(7), 0);
	lab_end();
}

TEST(each_flow_stays_on_its_port)
{
	unsigned ways[64], cnt[PORTS] = { 0 };

	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	for (uint16_t i = 0; i < 64; i++) {
		ways[i] = lab_way_of(i);
		cnt[ways[i]]++;
	}
	for (uint16_t i = 0; i < 64; i++)
		CHECK_EQ(lab_way_of(i), ways[i]);
	for (int i = 0; i < PORTS; i++)
		CHECK(cnt[i] > 8);
	/* 0x3910de32 % 3, 0x3910df33 % 3 */
	CHECK_EQ(lab_way_of(0x1234), 0);
	CHECK_EQ(lab_way_of(0x1236), 2);
	/* of two, the second is the third port */
	lab_use(1 << 0 | 1 << 2);
	CHECK_EQ(lab_way_of(0x1234), 0);
	CHECK_EQ(lab_way_of(0x1236), 2);
	lab_use(1 << 1 | 1 << 2);
	CHECK_EQ(lab_way_of(0x1234), 1);
	CHECK_EQ(lab_way_of(0x1236), 2);
	lab_end();
}

TEST(flows_of_two_hosts_have_one_way_by_their_addresses)
{
	lab_begin(BOND_MODE_8023AD, BOND_LAYER2, ALL);
	for (uint16_t i = 0; i < 16; i++)
		CHECK_EQ(lab_way_of(i), 0x8ff % 3);
	lab_end();
}

TEST(no_port_has_ever_been_active)
{
	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 0);
	CHECK(!lab.ring->ops->tx_fits(lab.ring, 1, 0));
	CHECK_EQ(lab_send(7, 0), -EAGAIN);
	CHECK_EQ(lab.ring->counts->tx_full, 1);
	lab_commit(7);
	CHECK_EQ(lab.ring->counts->tx_full, 2);
	CHECK_EQ(lab.ring->counts->tx_pkts, 0);
	lab_all_are_back();
	lab_use(1 << 1);
	CHECK(lab.ring->ops->tx_fits(lab.ring, 1, 0));
	CHECK_EQ(lab_way_of(7), 1);
	/* when none is, the last one stays */
	lab_use(0);
	CHECK_EQ(lab_way_of(7), 1);
	CHECK_EQ(lab.ring->counts->tx_full, 2);
	lab_end();
}

static void begin_narrow(uint8_t mode, uint32_t active, uint32_t tx_max)
{
	lab_prepare();
	lab.tx_max = tx_max;
	lab_open(mode, BOND_LAYER2, active);
}

/* A sender waits then, whatever room others have. A loop's frames are on their way until
 * they are polled. */
TEST(a_port_that_is_full)
{
	begin_narrow(BOND_MODE_ACTIVEBACKUP, 1, 2);
	CHECK_EQ(lab.ring->tx_fits_max, 2);
	lab_commit(7);
	CHECK(lab.ring->tx_frame);
	CHECK(lab.ring->ops->tx_fits(lab.ring, 1, 0));
	CHECK(!lab.ring->ops->tx_fits(lab.ring, 2, 0));
	lab_commit(7);
	CHECK_EQ(lab_sent_by(0), 2);
	CHECK(!lab.ring->tx_frame);
	lab.ring->ops->reap(lab.ring);
	CHECK(!lab.ring->tx_frame);
	CHECK_EQ(lab_send(7, 0), -EAGAIN);
	CHECK_EQ(lab.ring->counts->tx_full, 1);
	CHECK(!lab.ring->ops->tx_fits(lab.ring, 1, 0));
	/* only those that send have to have room */
	lab_use(1 << 1);
	CHECK(lab.ring->ops->tx_fits(lab.ring, 2, 0));
	lab_commit(7);
	CHECK_EQ(lab_left_by(7), 1);
	CHECK_EQ(lab.ring->counts->tx_full, 1);
	lab_end();
}

/* -- frames that another port has --------------------------------------------------------- */

static struct pkt *sending;

/* What a port has sent stays with it until it is asked. */
static void take_back_sent(struct ring *ring UNUSED)
{
	pkt_put(sending);
	sending = NULL;
}

static bool fits_with_frames(struct ring *ring, uint32_t cnt UNUSED, uint32_t copied)
{
	return ring_has_pkts(ring, copied);
}

/* A port that is not active any more has the last one. */
TEST(a_port_finds_the_frames_that_another_one_has_sent)
{
	struct list all;
	struct pkt *pkt;

	list_init(&all);
	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1 << 1);
	lab.ports[0].ring_ops.reap = take_back_sent;
	lab.ports[1].ring_ops.tx_fits = fits_with_frames;
	while ((pkt = ring_pkt_alloc(lab.ring)))
		list_push_back(&all, &pkt->link);
	CHECK(!lab.ring->ops->tx_fits(lab.ring, 1, 1));
	sending = pkt_from_link(list_pop_front(&all));
	CHECK(lab.ring->ops->tx_fits(lab.ring, 1, 1));
	CHECK_EQ(lab.pool.free_cnt, 1);
	CHECK(!lab.ring->ops->tx_fits(lab.ring, 1, 2));
	pkt_put_list(&all);
	lab_end();
}

/* By which one a frame leaves is known when it is written. */
TEST(one_of_several_ports_is_full)
{
	begin_narrow(BOND_MODE_8023AD, 1 << 1, 1);
	lab_commit(7);
	CHECK_EQ(lab_left_by(7), 1);
	lab_use(ALL);
	lab.ring->ops->reap(lab.ring);
	CHECK(!lab.ring->tx_frame);
	CHECK(!lab.ring->ops->tx_fits(lab.ring, 1, 0));
	lab_use(1 << 0 | 1 << 2);
	lab.ring->ops->reap(lab.ring);
	CHECK(lab.ring->tx_frame);
	lab_end();
}

/* It was another one's when the place for the frame was given. */
TEST(a_full_port_becomes_active)
{
	begin_narrow(BOND_MODE_ACTIVEBACKUP, 1, 1);
	lab_commit(7);
	lab_use(1 << 1);
	lab.ring->ops->reap(lab.ring);
	CHECK(lab.ring->tx_frame);
	lab_use(1 << 0);
	lab_commit(7);
	CHECK_EQ(lab_sent_by(0), 1);
	CHECK_EQ(lab_sent_by(1), 0);
	CHECK_EQ(lab.ring->counts->tx_full, 1);
	lab_end();
}

TEST(a_port_that_has_room_again)
{
	begin_narrow(BOND_MODE_8023AD, 1 << 2, 1);
	lab_commit(7);
	CHECK_EQ(lab_sent_by(2), 1);
	lab_use(ALL);
	CHECK_EQ(lab_poll(16), 0);
	CHECK(!lab.ring->tx_frame);
	lab.ring->ops->reap(lab.ring);
	CHECK(lab.ring->tx_frame);
	/* by 0x8ff % 3 */
	lab_commit(7);
	CHECK_EQ(lab_left_by(7), 2);
	/* and when it was not looked at, it looks itself */
	lab_use(1 << 0);
	CHECK_EQ(lab_poll(16), 0);
	CHECK(lab.ring->tx_frame && !lab.ports[2].ring->tx_frame);
	lab_use(1 << 2);
	lab_commit(7);
	CHECK_EQ(lab_left_by(7), 2);
	CHECK_EQ(lab.ring->counts->tx_full, 0);
	lab_end();
}

/* -- receiving ------------------------------------------------------------------------- */

/* Its packets are there for others at once. */
TEST(what_comes_by_another_port_is_dropped)
{
	lab_begin(BOND_MODE_ACTIVEBACKUP, BOND_LAYER2, 1);
	lab_add_rule();
	for (uint16_t i = 0; i < 2 * FRAMES; i++) {
		lab_arrive(1, i);
		lab_use(1 << 0);
		CHECK_EQ(lab_poll(16), 0);
	}
	lab_all_are_back();
	lab_arrive(1, 7);
	lab_arrive(0, 8);
	CHECK_EQ(lab_poll(16), 1);
	lab_use(1 << 1);
	CHECK_EQ(lab_poll(16), 0);
	lab_end();
}

TEST(what_comes_by_each_active_port_is_polled)
{
	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	lab_add_rule();
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < PORTS; i++)
			lab_arrive(i, 7);
		lab_use(ALL);
		CHECK_EQ(lab_poll(16), PORTS);
		CHECK_EQ(lab_poll(16), 0);
	}
	lab_all_are_back();
	lab_end();
}

/* None waits behind one that always has something. */
TEST(each_port_has_its_turn)
{
	unsigned cnt[PORTS] = { 0 };

	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	lab_add_rule();
	for (unsigned i = 0; i < PORTS; i++)
		for (unsigned n = 0; n < 12; n++)
			lab_arrive(i, (uint16_t)i);
	lab_use(ALL);
	for (int i = 0; i < PORTS; i++) {
		struct pkt *batch[4];
		struct lab_frame *frame;

		CHECK_EQ(lab.ring->ops->rx_poll(lab.ring, batch, 4), 4);
		for (int n = 0; n < 4; n++) {
			frame = (void *)batch[n]->data;
			cnt[be16toh(frame->udp.src_port)]++;
			pkt_put(batch[n]);
		}
	}
	for (unsigned i = 0; i < PORTS; i++)
		CHECK_EQ(cnt[i], 4);
	lab_end();
}

TEST(frames_are_shown_where_they_lie)
{
	struct ring_frame frame;
	uint16_t shown[3];

	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	lab_add_rule();
	CHECK(!lab.ring->ops->rx_peek(lab.ring).data);
	for (unsigned i = 0; i < PORTS; i++)
		lab_arrive(i, (uint16_t)(100 + i));
	/* not those of the one in the middle */
	lab_use(1 << 0 | 1 << 2);
	for (int i = 0; i < 2; i++) {
		frame = lab.ring->ops->rx_peek(lab.ring);
		CHECK(frame.data && frame.has_more);
		CHECK_EQ(frame.len, sizeof(struct lab_frame));
		shown[i] = be16toh(((const struct lab_frame *)frame.data)->udp.src_port);
		/* again and again */
		CHECK(lab.ring->ops->rx_peek(lab.ring).data == frame.data);
		lab.ring->ops->rx_done(lab.ring);
	}
	CHECK_EQ(shown[0] + shown[1], 100 + 102);
	CHECK(!lab.ring->ops->rx_peek(lab.ring).data);
	CHECK_EQ(lab.ring->counts->rx_pkts, 2);
	/* a poll drops it */
	CHECK_EQ(lab_poll(16), 0);
	lab_use(1 << 1);
	CHECK(!lab.ring->ops->rx_peek(lab.ring).data);
	lab_end();
}

static unsigned port_shown(void)
{
	struct ring_frame frame = lab.ring->ops->rx_peek(lab.ring);

	CHECK(frame.data);
	return be16toh(((const struct lab_frame *)frame.data)->udp.src_port);
}

/* A socket whose frames are all taken where they lie keeps none of the others waiting. */
TEST(each_port_has_its_turn_to_show)
{
	unsigned cnt[PORTS] = { 0 }, shown;
	struct pkt *pkt;

	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	lab_add_rule();
	for (unsigned i = 0; i < PORTS; i++)
		for (unsigned n = 0; n < 8; n++)
			lab_arrive(i, (uint16_t)i);
	lab_use(ALL);
	for (int i = 0; i < 2 * PORTS; i++) {
		cnt[port_shown()]++;
		lab.ring->ops->rx_done(lab.ring);
	}
	for (unsigned i = 0; i < PORTS; i++)
		CHECK_EQ(cnt[i], 2);
	/* what is shown is what a poll would bring */
	for (int i = 0; i < 2 * PORTS; i++) {
		shown = port_shown();
		CHECK_EQ(lab.ring->ops->rx_poll(lab.ring, &pkt, 1), 1);
		CHECK_EQ(be16toh(((struct lab_frame *)pkt->data)->udp.src_port), shown);
		pkt_put(pkt);
	}
	lab_end();
}

/* Wherever the stack wants them. */
TEST(what_ports_count_is_the_rings)
{
	struct stats_ring_counters elsewhere = { 0 };

	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	lab_add_rule();
	for (unsigned i = 0; i < PORTS; i++)
		lab_arrive(i, 7);
	lab_use(ALL);
	CHECK_EQ(lab_poll(16), PORTS);
	CHECK_EQ(lab.ring->own_counts.tx_pkts, PORTS);
	CHECK_EQ(lab.ring->own_counts.tx_bytes, PORTS * sizeof(struct lab_frame));
	CHECK_EQ(lab.ring->own_counts.rx_pkts, PORTS);
	lab.ring->counts = &elsewhere;
	lab_arrive(0, 7);
	CHECK_EQ(elsewhere.tx_pkts, 1);
	lab_arrive(1, 7);
	CHECK_EQ(lab_send(7, 0), 0);
	CHECK_EQ(elsewhere.tx_pkts, 3);
	lab_use(ALL);
	CHECK_EQ(lab_poll(16), 3);
	CHECK_EQ(elsewhere.rx_pkts, 3);
	CHECK_EQ(lab.ring->own_counts.tx_pkts, PORTS);
	FOR_EACH_PORT(port)
		CHECK_EQ(port->ring->own_counts.tx_pkts, 0);
	lab_end();
}

/* What comes by one that has none could seem to have one. */
TEST(tags_are_those_of_all_ports)
{
	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	CHECK(lab.ring->has_tags);
	lab_end();
	lab_prepare();
	lab.ports[1].has_no_tags = true;
	lab_open(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	CHECK(!lab.ring->has_tags);
	lab_end();
}

TEST(a_wish_for_stamps_goes_to_all_ports)
{
	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	lab.ring->wants_stamps = true;
	CHECK_EQ(lab_poll(16), 0);
	FOR_EACH_PORT(port)
		CHECK(port->ring->wants_stamps);
	lab_end();
}

/* What one port wishes for is given to all. */
TEST(a_ring_that_runs_out_grows_by_all_ports)
{
	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	lab.ports[1].ring->wants_region = true;
	CHECK_EQ(lab_poll(16), 0);
	CHECK(lab.ring->wants_region);
	lab.ring->wants_region = false;
	lab.ring->ops->rx_grow(lab.ring);
	CHECK_EQ(lab.ring->rx_post_max, 10 * PORTS);
	FOR_EACH_PORT(port)
		CHECK_EQ(port->grown, 1);
	CHECK_EQ(lab_poll(16), 0);
	CHECK(!lab.ring->wants_region);
	lab_end();
}

/* -- sleeping -------------------------------------------------------------------------- */

static void begin_sleeping(void)
{
	lab_prepare();
	lab.sleeps = true;
	lab_open(BOND_MODE_8023AD, BOND_LAYER34, ALL);
}

TEST(all_ports_wake_a_sleeper)
{
	int fds[PORTS + 1] = { 0 };

	begin_sleeping();
	CHECK_EQ(lab.ring->ops->fds(lab.ring, NULL, 0), PORTS);
	CHECK_EQ(lab.ring->ops->fds(lab.ring, fds, PORTS - 1), PORTS);
	CHECK_EQ(fds[PORTS - 2], FIRST_FD + PORTS - 2);
	CHECK_EQ(fds[PORTS - 1], 0);
	CHECK_EQ(lab.ring->ops->fds(lab.ring, fds, PORTS + 1), PORTS);
	for (int i = 0; i < PORTS; i++)
		CHECK_EQ(fds[i], FIRST_FD + i);
	lab_end();
}

TEST(all_ports_are_armed)
{
	begin_sleeping();
	lab_add_rule();
	CHECK(lab.ring->ops->arm(lab.ring));
	for (unsigned i = 0; i < PORTS; i++) {
		lab_arrive(i, 7);
		lab_use(ALL);
		CHECK(!lab.ring->ops->arm(lab.ring));
		CHECK_EQ(lab_poll(16), 1);
	}
	FOR_EACH_PORT(port)
		CHECK_EQ(port->quiets, 1 + PORTS);
	/* of those that need it */
	CHECK(lab.ring->needs_ack);
	lab.ring->ops->acknowledge(lab.ring);
	CHECK_EQ(lab.ports[0].acks, 0);
	CHECK_EQ(lab.ports[1].acks, 1);
	CHECK_EQ(lab.ports[2].acks, 0);
	lab_end();
}

TEST(all_ports_are_kicked)
{
	static const struct {
		enum ring_kick ports[PORTS], whole;
	} cases[] = {
		{ { RING_KICKED, RING_KICKED, RING_KICKED }, RING_KICKED },
		{ { RING_KICKED, RING_KICK_MORE, RING_KICKED }, RING_KICK_MORE },
		{ { RING_KICK_LATER, RING_KICKED, RING_KICKED }, RING_KICK_LATER },
		{ { RING_KICKED, RING_KICKED, RING_KICK_LATER }, RING_KICK_LATER },
		{ { RING_KICK_MORE, RING_KICKED, RING_KICK_LATER }, RING_KICK_MORE },
		{ { RING_KICK_LATER, RING_KICKED, RING_KICK_MORE }, RING_KICK_MORE },
	};

	begin_sleeping();
	CHECK(lab.ring->needs_kick);
	CHECK_EQ(lab_send(7, 0), 0);
	CHECK(lab.ring->wants_kick);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (int n = 0; n < PORTS; n++)
			lab.ports[n].kick = cases[i].ports[n];
		CHECK_EQ(lab.ring->ops->kick(lab.ring), cases[i].whole);
	}
	FOR_EACH_PORT(port)
		CHECK_EQ(port->wakes, ARRAY_LEN(cases));
	/* a kick that was made is no wish any more */
	lab.ring->wants_kick = false;
	CHECK_EQ(lab_poll(16), 0);
	CHECK(!lab.ring->wants_kick);
	lab_end();
}

TEST(all_ports_have_sent_what_they_had)
{
	lab_begin(BOND_MODE_8023AD, BOND_LAYER34, ALL);
	CHECK(lab.ring->ops->tx_is_done(lab.ring));
	FOR_EACH_PORT(port) {
		port->is_busy = true;
		CHECK(!lab.ring->ops->tx_is_done(lab.ring));
		port->is_busy = false;
		port->device_cnt = 7;
	}
	CHECK_EQ(lab.ring->ops->device_cnt(lab.ring), 7 * PORTS);
	lab_end();
}

/* -- life ------------------------------------------------------------------------------ */

TEST(a_port_that_gives_no_ring)
{
	struct ring *other;

	lab_begin(BOND_MODE_8023AD, BOND_LAYER2, 1);
	ring_end(lab.ring);
	lab.ports[2].ring_err = -ENOBUFS;
	CHECK_EQ(lab.dev->ops->ring_create(lab.dev, &lab.pool, &other), -ENOBUFS);
	CHECK_EQ(lab.ring_cnt, 0);
	lab_all_are_back();
	lab.ports[2].ring_err = 0;
	CHECK_EQ(lab.dev->ops->ring_create(lab.dev, &lab.pool, &lab.ring), 0);
	CHECK_EQ(lab_way_of(7), 0);
	lab_end();
}
