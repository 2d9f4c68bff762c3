/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fast Open, where segments/fastopen_*.tcp do not reach: keys, what fits into a SYN, both
 * sides at once, want of memory. */
#include "tests/engine/peer.h"

#include <errno.h>

#include "base/clock.h"
#include "tests/support/test.h"

static const struct hash_key keys[3] = {
	{ { UINT64_C(0x0000000200000001), UINT64_C(0x0000000400000003) } },
	{ { 5, 6 } },
	{ { 7, 8 } },
};

static const struct tcp_options none;

static void begin(uint32_t switches)
{
	peer_defaults();
	peer.params.fastopen = switches;
	peer_setup();
}

static void listen_with(uint32_t max)
{
	struct tcp_settings settings;

	peer.listener = tcp_new(peer.table);
	tcp_get_settings(peer.listener, &settings);
	settings.fastopen_max = max;
	CHECK_EQ(tcp_set_settings(peer.listener, &settings, peer.now_ns), 0);
	CHECK_EQ(tcp_bind(peer.listener, &peer.key.local,
			  peer.key.local_port), 0);
	CHECK_EQ(tcp_listen(peer.listener, 8), 0);
}

static struct tcp_options asking(void)
{
	return (struct tcp_options){ .mss = 1460, .has_cookie = true };
}

static const struct peer_sent *answer_to(const struct tcp_options *options,
					 uint32_t len)
{
	peer_send_options(S, PEER_ISN, 0, 1000, len, options);
	return peer_next();
}

static struct tcp_options cookie_by(const struct hash_key *key)
{
	struct tcp_options options = asking();

	tcp_set_fastopen_keys(peer.table, key, 1);
	options = answer_to(&options, 0)->options;
	peer_send_options(R, PEER_ISN + 1, 0, 0, 0, &none);
	CHECK(options.has_cookie && options.cookie_len == 8);
	return options;
}

/* What Linux 6.18 has sent with this key from 127.0.0.1 to itself. */
TEST(cookie_is_the_one_of_linux)
{
	static const uint8_t linux_cookie[] = { 0x43, 0xc4, 0x13, 0xee,
						0xf9, 0xc8, 0xcf, 0x43 };
	struct tcp_options options;

	begin(TCP_FASTOPEN_SERVER);
	peer.key.local = peer.key.remote =
		ip_addr_from_v4(htobe32(0x7f000001));
	listen_with(4);
	options = cookie_by(&keys[0]);
	CHECK_MEM(options.cookie, linux_cookie, sizeof(linux_cookie));
	peer_teardown();
}

/* The old key still opens, and a cookie of the new one comes back; one that was replaced
 * twice opens nothing. */
TEST(keys_rotate)
{
	struct tcp_options first, second;
	const struct peer_sent *sent;

	begin(TCP_FASTOPEN_SERVER);
	listen_with(4);
	first = cookie_by(&keys[0]);
	second = cookie_by(&keys[1]);
	CHECK(memcmp(first.cookie, second.cookie, 8) != 0);
	tcp_set_fastopen_keys(peer.table, (struct hash_key[]){ keys[1], keys[0] },
			      2);
	sent = answer_to(&first, 100);
	CHECK_EQ(sent->ack, P + 100);
	CHECK(sent->options.has_cookie);
	CHECK_MEM(sent->options.cookie, second.cookie, 8);
	peer_send_options(R, P + 100, 0, 0, 0, &none);
	tcp_set_fastopen_keys(peer.table, (struct hash_key[]){ keys[2], keys[1] },
			      2);
	sent = answer_to(&first, 100);
	CHECK_EQ(sent->ack, P);
	peer_send_options(R, P, 0, 0, 0, &none);
	sent = answer_to(&second, 100);
	CHECK_EQ(sent->ack, P + 100);
	peer_teardown();
}

/* TCP_FASTOPEN_KEY: those of one listener are no others'. */
TEST(listener_has_keys_of_its_own)
{
	struct tcp_options of_table, of_listener;
	const struct peer_sent *sent;

	begin(TCP_FASTOPEN_SERVER);
	listen_with(4);
	of_table = cookie_by(&keys[0]);
	tcp_set_listener_keys(peer.listener, &keys[1], 1);
	sent = answer_to(&of_table, 100);
	CHECK_EQ(sent->ack, P);
	of_listener = sent->options;
	CHECK(of_listener.has_cookie);
	CHECK(memcmp(of_table.cookie, of_listener.cookie, 8) != 0);
	peer_send_options(R, P, 0, 0, 0, &none);
	of_table.cookie_len = 8;
	memcpy(of_table.cookie, of_listener.cookie, 8);
	sent = answer_to(&of_table, 100);
	CHECK_EQ(sent->ack, P + 100);
	peer_teardown();
}

/* One that came from another address is none. */
TEST(cookie_is_of_one_address)
{
	struct tcp_options cookie;
	const struct peer_sent *sent;

	begin(TCP_FASTOPEN_SERVER);
	listen_with(4);
	cookie = cookie_by(&keys[0]);
	peer.key.remote.byte[15]++;
	sent = answer_to(&cookie, 100);
	CHECK_EQ(sent->ack, P);
	peer_teardown();
}

/* Whoever listens and has no memory for one more opens as usual. */
TEST(without_memory_the_handshake_is_the_usual_one)
{
	struct tcp_options options = { .mss = 1460 };

	begin(TCP_FASTOPEN_SERVER | TCP_FASTOPEN_SERVER_NO_COOKIE);
	listen_with(4);
	/* the table of connections grows with the first one */
	CHECK_EQ(answer_to(&options, 10)->ack, P + 10);
	peer_send_options(R, P + 10, 0, 0, 0, &none);
	while ((peer.pcb = tcp_accept(peer.listener)))
		tcp_abort(peer.pcb, peer.now_ns);
	/* the next one is the pcb */
	peer.allocs_left = 2;
	CHECK_EQ(answer_to(&options, 100)->ack, P);
	CHECK_EQ(tcp_accept_cnt(peer.listener), 0);
	peer_send_options(A, P, U, 1000, 100, &none);
	CHECK_EQ(tcp_accept_cnt(peer.listener), 1);
	peer_teardown();
}

/* A reset counts for a minute, and no longer. */
TEST(reset_is_forgotten_after_a_minute)
{
	struct tcp_options options = { .mss = 1460 };

	begin(TCP_FASTOPEN_SERVER | TCP_FASTOPEN_SERVER_NO_COOKIE);
	listen_with(1);
	CHECK_EQ(answer_to(&options, 10)->ack, P + 10);
	peer.pcb = tcp_accept(peer.listener);
	peer_send_options(R, P + 10, 0, 0, 0, &none);
	tcp_close(peer.pcb, peer.now_ns);
	peer.pcb = NULL;
	CHECK_EQ(answer_to(&options, 10)->ack, P);
	peer_send_options(R, P, 0, 0, 0, &none);
	peer_advance_ms(60001);
	CHECK_EQ(answer_to(&options, 10)->ack, P + 10);
	peer_teardown();
}

/* The listener may go while a child that was accepted waits for its last ACK. */
TEST(child_outlives_its_listener)
{
	struct tcp_options options = { .mss = 1460 };
	struct tcp_pcb_info info;

	begin(TCP_FASTOPEN_SERVER | TCP_FASTOPEN_SERVER_NO_COOKIE |
	      TCP_FASTOPEN_LISTENERS);
	listen_with(0);
	CHECK_EQ(answer_to(&options, 100)->ack, P + 100);
	peer.pcb = tcp_accept(peer.listener);
	CHECK(peer.pcb != NULL);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.is_opened_early && info.has_syn_data);
	CHECK_EQ(tcp_export_size(peer.pcb), 0);
	CHECK_EQ(tcp_freeze(peer.pcb, peer.now_ns, peer.now_ns), -ENOTCONN);
	tcp_close(peer.listener, peer.now_ns);
	peer.listener = NULL;
	CHECK_EQ(peer_take_all(), 100);
	tcp_recved(peer.pcb, 100, peer.now_ns);
	peer_send_options(A, P + 100, U, 1000, 0, &none);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.state, TCPS_ESTABLISHED);
	CHECK(!info.is_opened_early);
	peer_teardown();
}

/* Our SYN is no byte of the stream. */
TEST(early_child_counts_its_bytes)
{
	struct tcp_options options = { .mss = 1460 };
	struct tcp_pcb_stats stats;

	begin(TCP_FASTOPEN_SERVER | TCP_FASTOPEN_SERVER_NO_COOKIE);
	listen_with(1);
	CHECK_EQ(answer_to(&options, 10)->ack, P + 10);
	peer.pcb = tcp_accept(peer.listener);
	tcp_get_stats(peer.pcb, &stats, peer.now_ns);
	CHECK_EQ(stats.bytes_acked, 0);
	CHECK_EQ(stats.bytes_received, 10);
	peer_write(100);
	peer_next();
	peer_advance_ms(10);
	peer_send_options(A, P + 10, U + 100, 1000, 0, &none);
	tcp_get_stats(peer.pcb, &stats, peer.now_ns);
	CHECK_EQ(stats.bytes_acked, 100);
	CHECK_EQ(stats.bytes_received, 10);
	peer_teardown();
}

/* An acknowledgment of what was never sent ends nothing, and opens nothing. */
TEST(early_child_believes_no_wrong_number)
{
	struct tcp_options options = { .mss = 1460 };
	struct tcp_pcb_info info;

	begin(TCP_FASTOPEN_SERVER | TCP_FASTOPEN_SERVER_NO_COOKIE);
	listen_with(1);
	CHECK_EQ(answer_to(&options, 10)->ack, P + 10);
	peer.pcb = tcp_accept(peer.listener);
	peer_send_options(A, P + 10, U + 1, 1000, 0, &none);
	CHECK_EQ(peer_next()->flags, R);
	peer_send_options(A, P + 10, U - 1, 1000, 0, &none);
	CHECK_EQ(peer_next()->flags, R);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.is_opened_early);
	peer_teardown();
}

/* It is given up like any that does not answer. */
TEST(early_child_is_given_up)
{
	struct tcp_options options = { .mss = 1460 };

	begin(TCP_FASTOPEN_SERVER | TCP_FASTOPEN_SERVER_NO_COOKIE);
	listen_with(1);
	CHECK_EQ(answer_to(&options, 10)->ack, P + 10);
	peer.pcb = tcp_accept(peer.listener);
	peer_advance_ms(120000);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	CHECK_EQ(peer.sent_cnt, 1 + peer.params.synack_retries);
	peer_teardown();
}

/* ---- who connects ---- */

static void connect_with(uint32_t len)
{
	struct pkt *pkt = len ? pkt_alloc(&peer.pool) : NULL;

	if (pkt)
		memset(pkt_append(pkt, len), 'f', len);
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect_fast(peer.pcb, &peer.key.remote,
				  peer.key.remote_port, &peer.path, pkt,
				  peer.now_ns), 0);
}

static bool knows_cookie(void)
{
	return tcp_knows_cookie(peer.table, &peer.key.local, &peer.key.remote,
				peer.now_ns);
}

/* A connection that leaves the peer's cookie behind. */
static void learn_cookie(uint16_t mss)
{
	struct tcp_options options = { .mss = mss, .has_cookie = true,
				       .cookie_len = 4 };

	connect_with(0);
	peer_next();
	CHECK(!knows_cookie());
	peer_send_options(S | A, PEER_ISN, U, 1000, 0, &options);
	peer_next();
	CHECK(knows_cookie());
	tcp_abort(peer.pcb, peer.now_ns);
	peer_next();
	peer.key.local_port = htobe16(1001);
}

TEST(it_is_refused_where_it_is_off)
{
	struct tcp_pcb *pcb;

	begin(TCP_FASTOPEN_SERVER);
	pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect_fast(pcb, &peer.key.remote, peer.key.remote_port,
				  &peer.path, NULL, peer.now_ns), -EOPNOTSUPP);
	tcp_abort(pcb, peer.now_ns);
	peer_teardown();
}

/* As much as the peer's MSS allows beside the options; what is left follows. */
TEST(syn_carries_what_fits)
{
	const struct peer_sent *sent;

	begin(TCP_FASTOPEN_CLIENT);
	learn_cookie(1000);
	connect_with(1400);
	sent = peer_next();
	CHECK_EQ(sent->len, 960);
	peer_send_options(S | A, PEER_ISN, U + 960, 1000, 0,
			  &(struct tcp_options){ .mss = 1000 });
	sent = peer_next();
	CHECK_EQ(sent->seq, U + 960);
	CHECK_EQ(sent->len, 440);
	peer_send(A, P, U + 1400, 0);
	peer_teardown();
}

static void hold(void)
{
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect_held(peer.pcb, &peer.key.remote,
				  peer.key.remote_port, &peer.path,
				  peer.now_ns), 0);
	peer_expect_silence();
}

static struct pkt *bytes_of(uint32_t len)
{
	struct pkt *pkt = pkt_alloc(&peer.pool);

	memset(pkt_append(pkt, len), 'h', len);
	return pkt;
}

/* The SYN waits for its bytes, and for nothing else. */
TEST(held_syn_takes_what_is_written_later)
{
	const struct peer_sent *sent;

	begin(TCP_FASTOPEN_CLIENT);
	learn_cookie(1000);
	hold();
	CHECK_EQ(tcp_fast_room(peer.pcb, peer.now_ns), 960);
	CHECK_EQ(tcp_export_size(peer.pcb), 0);
	CHECK(!tcp_is_early(peer.pcb));
	peer_advance_ms(10000);
	peer_expect_silence();
	tcp_open_held(peer.pcb, bytes_of(100), peer.now_ns);
	sent = peer_next();
	CHECK_EQ(sent->flags & S, S);
	CHECK_EQ(sent->len, 100);
	CHECK(tcp_is_early(peer.pcb));
	peer_send_options(S | A, PEER_ISN, U + 100, 1000, 0,
			  &(struct tcp_options){ .mss = 1000 });
	CHECK(!tcp_is_early(peer.pcb));
	peer_teardown();
}

/* The peer has connected to us before the SYN left: the bytes go their usual way. */
TEST(held_one_is_opened_by_the_peer)
{
	const struct peer_sent *sent;

	begin(TCP_FASTOPEN_CLIENT);
	hold();
	CHECK_EQ(tcp_fast_room(peer.pcb, peer.now_ns), 0);
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &none);
	CHECK_EQ(peer_next()->flags, S | A);
	tcp_open_held(peer.pcb, bytes_of(100), peer.now_ns);
	peer_send_options(A, P, U, 1000, 0, &none);
	sent = peer_next();
	CHECK_EQ(sent->seq, U);
	CHECK_EQ(sent->len, 100);
	peer_teardown();
}

static enum tcp_fastopen_failure failure(void)
{
	struct tcp_pcb_info info;

	tcp_get_info(peer.pcb, &info);
	return info.fastopen_failure;
}

/* A SYN with 100 bytes is answered by somebody who takes so many of them. */
static enum tcp_fastopen_failure open_and_answer(uint32_t taken)
{
	enum tcp_fastopen_failure why;

	connect_with(100);
	CHECK_EQ(failure(), TCP_FASTOPEN_FAIL_NONE);
	peer_send_options(S | A, PEER_ISN, U + taken, 1000, 0, &none);
	why = failure();
	tcp_abort(peer.pcb, peer.now_ns);
	peer.key.local_port = htobe16(be16toh(peer.key.local_port) + 1);
	return why;
}

/* Why the data went another way is told as Linux numbers it. */
TEST(failures_are_told)
{
	begin(TCP_FASTOPEN_CLIENT);
	learn_cookie(1460);
	CHECK_EQ(open_and_answer(100), TCP_FASTOPEN_FAIL_NONE);
	CHECK_EQ(open_and_answer(0), TCP_FASTOPEN_FAIL_DATA);
	connect_with(100);
	peer_advance_ms(1100);
	peer_send_options(S | A, PEER_ISN, U, 1000, 0, &none);
	CHECK_EQ(failure(), TCP_FASTOPEN_FAIL_SYN);
	peer_teardown();
}

TEST(unknown_cookie_is_told)
{
	begin(TCP_FASTOPEN_CLIENT);
	connect_with(100);
	CHECK_EQ(failure(), TCP_FASTOPEN_FAIL_COOKIE);
	peer_send_options(S | A, PEER_ISN, U, 1000, 0, &none);
	CHECK_EQ(failure(), TCP_FASTOPEN_FAIL_COOKIE);
	peer_teardown();
}

/* A server may take a part of it. */
TEST(part_is_taken)
{
	const struct peer_sent *sent;
	struct tcp_pcb_info info;

	begin(TCP_FASTOPEN_CLIENT);
	learn_cookie(1460);
	connect_with(1000);
	CHECK_EQ(peer_next()->len, 1000);
	peer_send_options(S | A, PEER_ISN, U + 300, 1000, 0, &none);
	sent = peer_next();
	CHECK_EQ(sent->seq, U + 300);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.snd_una, U + 300);
	CHECK_EQ(info.snd_end, U + 1000);
	peer_teardown();
}

/* More than was sent is acknowledged: RFC 9293 section 3.10.7.3. */
TEST(more_than_was_sent_is_refused)
{
	struct tcp_pcb_info info;

	begin(TCP_FASTOPEN_CLIENT);
	learn_cookie(1460);
	connect_with(100);
	CHECK_EQ(peer_next()->len, 100);
	peer_send_options(S | A, PEER_ISN, U + 101, 1000, 0, &none);
	CHECK_EQ(peer_next()->flags, R);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.state, TCPS_SYN_SENT);
	peer_teardown();
}

/* Both sides open at once: the SYN of the peer knows nothing of our data, its next
 * segment may acknowledge it. */
TEST(both_open_at_once)
{
	struct tcp_pcb_info info;

	begin(TCP_FASTOPEN_CLIENT);
	learn_cookie(1460);
	connect_with(100);
	CHECK_EQ(peer_next()->len, 100);
	peer_send_options(S, PEER_ISN, 0, 1000, 0, &none);
	CHECK_EQ(peer_next()->flags, S | A);
	peer_send_options(A, P, U + 100, 1000, 0, &none);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.state, TCPS_ESTABLISHED);
	CHECK_EQ(info.snd_una, U + 100);
	CHECK_EQ(info.snd_end, U + 100);
	CHECK(info.has_syn_data);
	peer_teardown();
}

/* One that waits for its answer moves with the data that the SYN carried. */
TEST(open_one_moves)
{
	struct tcp_pcb_info info;
	uint8_t bytes[4096];
	size_t size;

	begin(TCP_FASTOPEN_CLIENT);
	learn_cookie(1460);
	connect_with(100);
	CHECK_EQ(peer_next()->len, 100);
	size = tcp_export_size(peer.pcb);
	CHECK(size && size <= sizeof(bytes));
	CHECK_EQ(tcp_export(peer.pcb, bytes, size, peer.now_ns), 0);
	tcp_drop(peer.pcb);
	CHECK_EQ(tcp_import(peer.table, bytes, size, &peer.pool, peer.now_ns,
			    &peer.pcb), 0);
	peer_send_options(S | A, PEER_ISN, U + 100, 1000, 0, &none);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.state, TCPS_ESTABLISHED);
	CHECK_EQ(info.snd_end, U + 100);
	peer_teardown();
}

static void lose_a_syn(void)
{
	connect_with(100);
	CHECK_EQ(peer_next()->len, 100);
	peer_advance_ms(1100);
	CHECK_EQ(peer_next()->len, 0);
	peer_send_options(S | A, PEER_ISN, U, 1000, 0,
			  &(struct tcp_options){ .mss = 1460 });
	CHECK_EQ(peer_next()->len, 100);
	tcp_abort(peer.pcb, peer.now_ns);
	peer_next();
	peer.key.local_port = htobe16((uint16_t)(be16toh(peer.key.local_port) + 1));
}

/* A path that has lost two SYNs with data one after the other gets none for four
 * minutes (RFC 7413 section 4.1.3.1). */
TEST(path_that_loses_syns_is_left_alone)
{
	begin(TCP_FASTOPEN_CLIENT);
	learn_cookie(1460);
	lose_a_syn();
	CHECK(knows_cookie());
	lose_a_syn();
	CHECK(!knows_cookie());
	connect_with(100);
	CHECK_EQ(peer_next()->len, 0);
	tcp_abort(peer.pcb, peer.now_ns);
	peer.pcb = NULL;
	peer_advance_ms(239 * 1000);
	CHECK(!knows_cookie());
	peer_advance_ms(2 * 1000);
	CHECK(knows_cookie());
	peer_teardown();
}

/* Each further black hole doubles the pause. */
TEST(pauses_double_until_one_succeeds)
{
	static const uint64_t pause_s[] = { 10, 20 };

	peer_defaults();
	peer.params.fastopen = TCP_FASTOPEN_CLIENT;
	peer.params.fastopen_pause_ns = 10 * NS_PER_SEC;
	peer_setup();
	learn_cookie(1460);
	for (int i = 0; i < 2; i++) {
		connect_with(100);
		peer_advance_ms(3050);
		CHECK(!knows_cookie());
		peer_advance_ms(1000 * pause_s[i] - 200);
		CHECK(!knows_cookie());
		tcp_abort(peer.pcb, peer.now_ns);
		peer_advance_ms(200);
		CHECK(knows_cookie());
		peer.looked_at = peer.sent_cnt;
	}
	connect_with(100);
	CHECK_EQ(peer_next()->len, 100);
	peer_send_options(S | A, PEER_ISN, U + 100, 1000, 0, &none);
	peer_next();
	tcp_abort(peer.pcb, peer.now_ns);
	connect_with(100);
	peer_advance_ms(3050);
	tcp_abort(peer.pcb, peer.now_ns);
	peer.pcb = NULL;
	peer.looked_at = peer.sent_cnt;
	peer_advance_ms(10000);
	CHECK(knows_cookie());
	peer_teardown();
}
