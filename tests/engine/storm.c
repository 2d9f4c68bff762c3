/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two engines that somebody between them has made disagree: each has bytes that the other
 * one never sent, so neither takes what the other one acknowledges. Nothing that one of
 * them says may have more than one answer, and their argument must die down.
 */
#include "tests/engine/sim.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "tests/support/test.h"

enum { FORGED_LEN = 100, BEFORE_LEN = 1000 };

static struct sim sim;
/* the last segment without SYN that each host has sent */
static uint8_t last[2][128];
static size_t last_len[2];
/* what each has sent since the last look */
static unsigned sent[2], with_data[2];

static uint32_t header_len(const uint8_t *packet)
{
	return 20 + 4u * (packet[20 + 12] >> 4);
}

static void see(struct sim_host *host, const uint8_t *packet, size_t len,
		void *ctx UNUSED)
{
	const struct wire_tcp *tcp = (const void *)(packet + 20);
	unsigned i = host == &sim.host[1];

	if (tcp->flags & WIRE_TCP_SYN)
		return;
	sent[i]++;
	with_data[i] += len > header_len(packet) || tcp->flags & WIRE_TCP_FIN;
	last_len[i] = header_len(packet);
	memcpy(last[i], packet, last_len[i]);
}

static void begin(struct sim_conn *ends[2])
{
	struct impair_params link = sim_link(100000000, NS_PER_MS);
	struct impair_params links[2] = { link, link };
	struct sim_app app = { .to_send = BEFORE_LEN, .stays_open = true };
	struct tcp_params params;

	tcp_params_init(&params);
	sim_init(&sim, test_seed, &params, links);
	for (int i = 0; i < 2; i++)
		sim.host[i].sees = see;
	sim_listen(&sim, &app);
	ends[0] = sim_connect(&sim, &app);
	sim_run(&sim, sim.now_ns + NS_PER_SEC);
	ends[1] = sim_other_end(ends[0]);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(ends[i]->received, BEFORE_LEN);
}

static uint16_t checksum(const uint8_t *packet, uint32_t len)
{
	struct wire_ip ip;

	CHECK_EQ(wire_parse_ip(packet, len, &ip), 0);
	return csum_fold(csum_partial(packet + 20, len - 20,
				      wire_pseudo_sum(&ip.src, &ip.dst,
						      WIRE_PROTO_TCP, len - 20)));
}

/* As if this end had sent what it has not: bytes that come next in its stream, or none, so
 * far behind what it has sent. */
static void forge(const struct sim_conn *from, uint32_t ahead, uint32_t len)
{
	unsigned i = from->host == &sim.host[1];
	struct wire_ipv4 *ip = (void *)last[i];
	struct wire_tcp *tcp = (void *)(last[i] + 20);
	uint8_t packet[sizeof(last[i]) + FORGED_LEN];
	struct tcp_pcb_info info;
	size_t at = last_len[i];

	tcp_get_info(from->pcb, &info);
	ip->total_len = htobe16((uint16_t)(at + len));
	ip->check = 0;
	ip->check = csum_fold(csum_words(ip, sizeof(*ip) / 4));
	tcp->seq = htobe32(info.snd_nxt + ahead);
	tcp->ack = htobe32(info.rcv_nxt);
	tcp->flags = WIRE_TCP_ACK;
	tcp->check = 0;
	memcpy(packet, last[i], at);
	for (uint32_t k = 0; k < len; k++)
		packet[at + k] = sim_stream_byte(from->out_mark, from->sent + k);
	tcp = (void *)(packet + 20);
	tcp->check = checksum(packet, (uint32_t)(at + len));
	sim_send_packet(from->host, packet, at + len);
	/* the attacker's are not ours */
	sent[i]--;
	with_data[i] -= len != 0;
}

static void look_away(void)
{
	memset(sent, 0, sizeof(sent));
	memset(with_data, 0, sizeof(with_data));
}

/* Both ends have what the other one did not send. */
static void part_them(struct sim_conn *ends[2])
{
	begin(ends);
	look_away();
	forge(ends[0], 0, FORGED_LEN);
	forge(ends[1], 0, FORGED_LEN);
	sim_run(&sim, sim.now_ns + 5 * NS_PER_SEC);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(ends[i]->received, BEFORE_LEN + FORGED_LEN);
}

static void end(struct sim_conn *ends[2])
{
	for (int i = 0; i < 2; i++) {
		tcp_abort(ends[i]->pcb, sim.now_ns);
		ends[i]->pcb = NULL;
	}
	sim_run(&sim, sim.now_ns + NS_PER_SEC);
	sim_finish(&sim, true);
}

TEST(acks_of_two_who_disagree_die_down)
{
	struct sim_conn *ends[2];

	part_them(ends);
	/* of the forged segment, of the other one's acknowledgment, and of its answer */
	CHECK(sent[0] && sent[0] <= 3 && sent[1] && sent[1] <= 3);
	CHECK(tcp_counts(sim.host[0].table)->out_of_window);
	CHECK(tcp_counts(sim.host[1].table)->out_of_window);
	look_away();
	sim_run(&sim, sim.now_ns + 600 * NS_PER_SEC);
	CHECK_EQ(sent[0] + sent[1], 0);
	end(ends);
}

/* Its repetitions have one answer each, and those one in half a second. */
TEST(data_between_two_who_disagree_has_one_answer_each)
{
	struct sim_conn *ends[2];

	part_them(ends);
	look_away();
	for (int i = 0; i < 2; i++) {
		ends[i]->app.to_send += FORGED_LEN / 2;
		sim_more(ends[i]);
	}
	sim_run(&sim, sim.now_ns + 60 * NS_PER_SEC);
	CHECK(with_data[0] > 3 && with_data[1] > 3);
	/* to the other one's data, and to what that says of ours */
	CHECK(sent[0] <= 2 * with_data[0] + with_data[1]);
	CHECK(sent[1] <= 2 * with_data[1] + with_data[0]);
	end(ends);
}

/* Ends that can never be acknowledged. */
TEST(two_who_disagree_part_at_last)
{
	struct sim_conn *ends[2];

	part_them(ends);
	look_away();
	for (int i = 0; i < 2; i++) {
		ends[i]->app.stays_open = false;
		sim_more(ends[i]);
	}
	sim_run(&sim, sim.now_ns + 4000 * NS_PER_SEC);
	CHECK(sent[0] <= 2 * with_data[0] + with_data[1]);
	CHECK(sent[1] <= 2 * with_data[1] + with_data[0]);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(ends[i]->error, -ETIMEDOUT);
	sim_finish(&sim, true);
}

/* Whoever keeps them at it has an answer in half a second, and not more from the two than
 * from one of them. */
TEST(fuel_for_an_argument_does_not_make_it_a_storm)
{
	enum { FORGED = 2000, EVERY_MS = 5 };
	unsigned most = FORGED * EVERY_MS / 500 + 4;
	struct sim_conn *ends[2];

	part_them(ends);
	look_away();
	for (int i = 0; i < FORGED; i++) {
		forge(ends[i % 2], i % 3 ? 1 << 30 : 1u << 31, 0);
		sim_run(&sim, sim.now_ns + EVERY_MS * NS_PER_MS);
	}
	CHECK(sent[0] > 2 && sent[0] <= most);
	CHECK(sent[1] > 2 && sent[1] <= most);
	look_away();
	sim_run(&sim, sim.now_ns + 5 * NS_PER_SEC);
	CHECK(sent[0] + sent[1] <= 2);
	end(ends);
}
