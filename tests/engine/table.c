/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Many connections, and who is found by which four-tuple while they come and go. */
#include "tests/engine/peer.h"

#include <errno.h>

#include "base/clock.h"
#include "base/rand.h"
#include "tests/support/test.h"

enum { CONNS = 3000, FIRST_PORT = 10000 };

/* Connections by port; the peer's numbers begin at P in each. */
static struct conn {
	struct tcp_pcb *pcb;
	uint32_t iss;
	uint32_t rcvd;
} conns[CONNS];

static void use(int index)
{
	peer.key.remote_port = htobe16((uint16_t)(FIRST_PORT + index));
	peer.iss = conns[index].iss;
}

static struct tcp_pcb *listen_at(const struct ip_addr *addr)
{
	struct tcp_pcb *pcb = tcp_new(peer.table);

	CHECK(pcb != NULL);
	CHECK_EQ(tcp_bind(pcb, addr, peer.key.local_port), 0);
	CHECK_EQ(tcp_listen(pcb, 16), 0);
	return pcb;
}

/* A peer opens a connection; NULL when it got none. */
static struct tcp_pcb *opened_by_peer(struct tcp_pcb *listener)
{
	peer.iss = 0;
	peer_send_options(S, PEER_ISN, 0, 20000, 0, &peer_full_options);
	peer_send(A, P, U, 0);
	return tcp_accept(listener);
}

static void open_conn(int index)
{
	use(index);
	conns[index].pcb = opened_by_peer(peer.listener);
	conns[index].iss = peer.iss;
	conns[index].rcvd = 0;
	CHECK(conns[index].pcb != NULL);
}

/* A byte for it arrives there. */
static void check_found(int index)
{
	struct conn *conn = &conns[index];
	struct list pkts = LIST_INIT(pkts);

	use(index);
	peer_send(A, P + conn->rcvd, U, 1);
	CHECK_EQ(tcp_take(conn->pcb, UINT32_MAX, &pkts), 1);
	pkt_put_list(&pkts);
	tcp_recved(conn->pcb, 1, peer.now_ns);
	conn->rcvd++;
}

static void abort_conn(int index)
{
	struct tcp_event event;

	tcp_abort(conns[index].pcb, peer.now_ns);
	conns[index].pcb = NULL;
	while (tcp_event_next(peer.table, &event))
		;
	/* who still sends there is a stranger */
	use(index);
	peer.looked_at = peer.sent_cnt;
	peer_send(A, P + conns[index].rcvd, U, 1);
	CHECK_EQ(peer_next()->flags, R);
}

static void listening(void)
{
	peer_defaults();
	peer.params.syns_per_sec = peer.params.resets_per_sec = 0;
	peer_setup();
	peer.listener = listen_at(&peer.key.local);
}

/* While the table grows some hang in the old buckets, some in the new ones. */
TEST(each_of_many_is_found)
{
	struct rand rand;
	int cnt = 0;

	rand_init(&rand, test_seed);
	listening();
	for (; cnt < CONNS; cnt++) {
		int some = (int)rand_below(&rand, (uint64_t)cnt + 1);

		open_conn(cnt);
		if (conns[some].pcb)
			check_found(some);
		some = (int)rand_below(&rand, (uint64_t)cnt + 1);
		if (conns[some].pcb && rand_below(&rand, 4) == 0)
			abort_conn(some);
	}
	for (int i = 0; i < cnt; i++) {
		if (!conns[i].pcb)
			continue;
		check_found(i);
		abort_conn(i);
	}
	peer_teardown();
}

/* Closed by us first, with time stamps or without; then a TIME_WAIT entry. */
static void close_conn(int index)
{
	struct tcp_event event;

	use(index);
	tcp_close(conns[index].pcb, peer.now_ns);
	peer_send(F | A, P + conns[index].rcvd, U + 1, 0);
	while (tcp_event_next(peer.table, &event))
		;
}

TEST(each_of_many_in_time_wait_is_found)
{
	listening();
	for (int i = 0; i < CONNS; i++) {
		open_conn(i);
		close_conn(i);
	}
	CHECK_EQ(tcp_time_wait_cnt(peer.table), CONNS);
	CHECK_EQ(tcp_pcb_cnt(peer.table), 1);
	for (int i = 0; i < CONNS; i++) {
		use(i);
		peer.looked_at = peer.sent_cnt;
		peer_send(F | A, P, U + 1, 0);
		CHECK_EQ(peer_next()->flags, A);
		CHECK_EQ(peer.sent[(peer.sent_cnt - 1) % PEER_SENT_MAX].to_port,
			 FIRST_PORT + i);
	}
	peer_advance_ms(61 * 1000);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 0);
	peer_teardown();
}

/* For a kernel's socket that is to wait in our place: the latest first, not those that are too
 * old, and with the numbers that its answers have to have. */
TEST(who_waits_is_told)
{
	static struct tcp_waiting waiting[CONNS];
	const uint64_t second = NS_PER_SEC;
	uint8_t bytes[60];
	const struct wire_tcp *end = (const void *)bytes;

	listening();
	CHECK_EQ(tcp_get_waiting(peer.table, waiting, CONNS, second, peer.now_ns), 0);
	for (int i = 0; i < 20; i++) {
		open_conn(i);
		close_conn(i);
		if (i == 4)
			peer_advance_ms(2000);
	}
	CHECK_EQ(tcp_get_waiting(peer.table, waiting, 3, second, peer.now_ns), 3);
	CHECK_EQ(tcp_get_waiting(peer.table, waiting, CONNS, 3 * second, peer.now_ns), 20);
	CHECK_EQ(tcp_get_waiting(peer.table, waiting, CONNS, second, peer.now_ns), 15);
	for (int i = 0; i < 15; i++) {
		const struct tcp_repair *r = &waiting[i].repair;

		use(19 - i);
		CHECK(flow_key_eq(&waiting[i].key, &peer.key));
		CHECK_EQ(tcp_build_end_of_peer(&waiting[i], bytes),
			 sizeof(*end) + 12 * r->has_timestamps);
		/* as it stands in the table, the peer's end is answered by the numbers behind it */
		peer.looked_at = peer.sent_cnt;
		peer_send(F | A, P, U + 1, 0);
		CHECK_EQ(peer_next()->seq, r->snd_una + 1);
		CHECK_EQ(peer.sent[(peer.sent_cnt - 1) % PEER_SENT_MAX].ack, r->rcv_nxt + 1);
		CHECK_EQ(be32toh(end->seq), r->rcv_nxt);
		CHECK_EQ(be32toh(end->ack), r->snd_una + 1);
		CHECK_EQ(end->flags, F | A);
	}
	/* that has had them wait from now on */
	peer_advance_ms(900);
	CHECK_EQ(tcp_get_waiting(peer.table, waiting, CONNS, second, peer.now_ns), 15);
	/* one by its names, for which the kernel waits then */
	use(7);
	CHECK(tcp_find_waiting(peer.table, &peer.key, &waiting[0], peer.now_ns));
	CHECK(flow_key_eq(&waiting[0].key, &peer.key));
	CHECK_EQ(waiting[0].repair.rcv_nxt, waiting[7].repair.rcv_nxt);
	tcp_forget_waiting(peer.table, &peer.key);
	tcp_forget_waiting(peer.table, &peer.key);
	CHECK(!tcp_find_waiting(peer.table, &peer.key, &waiting[0], peer.now_ns));
	CHECK_EQ(tcp_get_waiting(peer.table, waiting, CONNS, second, peer.now_ns), 14);
	peer_teardown();
}

TEST(time_wait_is_bounded)
{
	peer_defaults();
	peer.params.syns_per_sec = 0;
	peer.params.time_wait_max = 10;
	peer_setup();
	peer.listener = listen_at(&peer.key.local);
	for (int i = 0; i < 12; i++) {
		open_conn(i);
		close_conn(i);
	}
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 10);
	CHECK_EQ(tcp_counts(peer.table)->tw_dropped, 2);
	peer_teardown();
}

TEST(listener_of_the_address_goes_before_a_wildcard)
{
	struct ip_addr any_v4 = ip_addr_from_v4(0), any = { .byte = { 0 } };
	struct tcp_pcb *exact, *child;
	struct tcp_event event;

	peer_defaults();
	peer_setup();
	peer.listener = listen_at(&any_v4);
	exact = listen_at(&peer.key.local);
	child = opened_by_peer(exact);
	CHECK(child != NULL);
	tcp_abort(child, peer.now_ns);
	tcp_close(exact, peer.now_ns);
	while (tcp_event_next(peer.table, &event))
		;
	child = opened_by_peer(peer.listener);
	CHECK(child != NULL);
	tcp_abort(child, peer.now_ns);
	/* nobody listens for IPv6 there */
	peer.key.local = (struct ip_addr){ .byte = { 0x20, 1, [15] = 1 } };
	peer.key.remote = (struct ip_addr){ .byte = { 0x20, 1, [15] = 2 } };
	peer.looked_at = peer.sent_cnt;
	peer_send(S, PEER_ISN, 0, 0);
	CHECK_EQ(peer_next()->flags, R | A);
	/* the other wildcard is of both */
	tcp_close(peer.listener, peer.now_ns);
	peer.listener = listen_at(&any);
	child = opened_by_peer(peer.listener);
	CHECK(child != NULL);
	tcp_abort(child, peer.now_ns);
	peer.key.local = ip_addr_from_v4(htobe32(0x0a000001));
	peer.key.remote = ip_addr_from_v4(htobe32(0x0a000002));
	child = opened_by_peer(peer.listener);
	CHECK(child != NULL);
	tcp_abort(child, peer.now_ns);
	peer_teardown();
}

/* -- several listeners on a port -- */

enum { SHARERS = 4, SHARED_CONNS = 800 };

static struct tcp_pcb *sharers[SHARERS + 1];

static struct tcp_pcb *share(const struct ip_addr *addr, bool yields)
{
	struct tcp_pcb *pcb = tcp_new(peer.table);

	CHECK(pcb != NULL);
	CHECK_EQ(tcp_bind(pcb, addr, peer.key.local_port), 0);
	CHECK_EQ(tcp_listen_shared(pcb, SHARED_CONNS, yields), 0);
	return pcb;
}

static void begin_to_share(void)
{
	peer_setup();
	for (int i = 0; i < SHARERS; i++) {
		sharers[i] = share(&peer.key.local, false);
		tcp_set_user(sharers[i], &sharers[i]);
	}
}

static void set_up_sharers(void)
{
	peer_defaults();
	peer.params.half_open_max = SHARED_CONNS;
	begin_to_share();
}

/* Which of them has the SYN of this port. */
static int sharer_of(int port)
{
	peer.key.remote_port = htobe16((uint16_t)(FIRST_PORT + port));
	for (int i = 0; i <= SHARERS; i++)
		if (sharers[i] && tcp_find_listener(peer.table, &peer.key) ==
					  sharers[i])
			return i;
	return -1;
}

static void close_sharers(void)
{
	for (int i = 0; i <= SHARERS; i++) {
		if (sharers[i])
			tcp_close(sharers[i], peer.now_ns);
		sharers[i] = NULL;
	}
	peer_teardown();
}

TEST(listeners_of_a_port_share_its_connections)
{
	int cnt[SHARERS] = { 0 };

	set_up_sharers();
	for (int i = 0; i < SHARED_CONNS; i++) {
		int sharer = sharer_of(i);

		CHECK(sharer >= 0);
		cnt[sharer]++;
		/* its child is its own, whoever comes meanwhile */
		peer_send_options(S, PEER_ISN, 0, 1000, 0, &peer_full_options);
		CHECK_EQ(tcp_child_cnt(sharers[sharer]), cnt[sharer]);
		CHECK_EQ(sharer_of(i), sharer);
	}
	/* a quarter each, within five standard deviations */
	for (int i = 0; i < SHARERS; i++)
		CHECK(cnt[i] > 200 - 61 && cnt[i] < 200 + 61);
	close_sharers();
}

/* A new one takes its share of each, and nothing moves between the others. */
TEST(share_of_who_joins_comes_from_all)
{
	static int before[SHARED_CONNS];
	int from[SHARERS] = { 0 }, moved = 0;

	set_up_sharers();
	for (int i = 0; i < SHARED_CONNS; i++)
		before[i] = sharer_of(i);
	sharers[SHARERS] = share(&peer.key.local, false);
	for (int i = 0; i < SHARED_CONNS; i++) {
		int now = sharer_of(i);

		if (now == before[i])
			continue;
		CHECK_EQ(now, SHARERS);
		from[before[i]]++;
		moved++;
	}
	CHECK(moved > 160 - 57 && moved < 160 + 57);
	for (int i = 0; i < SHARERS; i++)
		CHECK(from[i] > 0);
	/* it goes, and all is as it was */
	tcp_close(sharers[SHARERS], peer.now_ns);
	sharers[SHARERS] = NULL;
	for (int i = 0; i < SHARED_CONNS; i++)
		CHECK_EQ(sharer_of(i), before[i]);
	close_sharers();
}

TEST(port_is_shared_by_those_who_all_want_it)
{
	struct ip_addr any = { .word = { 0, 0, 0, 0 } };
	struct tcp_pcb *pcb;

	set_up_sharers();
	pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_listen(pcb, 1), -EADDRINUSE);
	tcp_abort(pcb, peer.now_ns);
	pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(pcb, &any, peer.key.local_port), 0);
	CHECK_EQ(tcp_listen(pcb, 1), 0);
	tcp_close(pcb, peer.now_ns);
	for (int i = 0; i < SHARERS; i++)
		tcp_close(sharers[i], peer.now_ns);
	memset(sharers, 0, sizeof(sharers));
	/* the other way round */
	pcb = listen_at(&peer.key.local);
	sharers[0] = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(sharers[0], &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_listen_shared(sharers[0], 1, false), -EADDRINUSE);
	tcp_abort(sharers[0], peer.now_ns);
	sharers[0] = NULL;
	tcp_close(pcb, peer.now_ns);
	close_sharers();
}

TEST(who_yields_gets_what_is_left)
{
	set_up_sharers();
	sharers[SHARERS] = share(&peer.key.local, true);
	for (int i = 0; i < 50; i++)
		CHECK(sharer_of(i) < SHARERS);
	for (int i = 0; i < SHARERS; i++) {
		tcp_close(sharers[i], peer.now_ns);
		sharers[i] = NULL;
	}
	for (int i = 0; i < 50; i++)
		CHECK_EQ(sharer_of(i), SHARERS);
	close_sharers();
}

/* Forty connections, every other one open; the first listener is closed then. What was
 * its is counted in *open and *half. */
static void close_the_first(int *open, int *half)
{
	*open = *half = 0;
	for (int i = 0; i < 40; i++) {
		int sharer = sharer_of(i);

		peer_send_options(S, PEER_ISN, 0, 1000, 0, &peer_full_options);
		if (i % 2)
			peer_send(A, P, U, 0);
		*open += sharer == 0 && i % 2;
		*half += sharer == 0 && !(i % 2);
	}
	CHECK(*open > 0 && *half > 0);
	peer.looked_at = peer.sent_cnt;
	tcp_close(sharers[0], peer.now_ns);
	sharers[0] = NULL;
}

TEST(children_of_who_leaves_are_reset)
{
	int open, half;

	set_up_sharers();
	close_the_first(&open, &half);
	CHECK_EQ(peer.sent_cnt - peer.looked_at, (unsigned)(open + half));
	while (peer.looked_at < peer.sent_cnt)
		CHECK(peer_next()->flags & R);
	close_sharers();
}

TEST(children_of_who_leaves_move_where_they_may)
{
	int open, half, accepted = 0, waiting = 0, left = 0;
	struct tcp_pcb *child;

	peer_defaults();
	peer.params.migrates_children = true;
	begin_to_share();
	close_the_first(&open, &half);
	peer_expect_silence();
	for (int i = 1; i < SHARERS; i++) {
		waiting += (int)tcp_accept_cnt(sharers[i]);
		left += (int)tcp_child_cnt(sharers[i]);
		while ((child = tcp_accept(sharers[i]))) {
			CHECK(tcp_user(child) == &sharers[i]);
			tcp_abort(child, peer.now_ns);
			accepted++;
		}
	}
	CHECK_EQ(waiting, 20);
	CHECK_EQ(accepted, 20);
	CHECK_EQ(left, 40);
	/* nobody is left to move to */
	for (int i = 1; i < SHARERS; i++) {
		tcp_close(sharers[i], peer.now_ns);
		sharers[i] = NULL;
	}
	CHECK_EQ(tcp_find_listener(peer.table, &peer.key), NULL);
	peer_teardown();
}

/* Whoever of them has sent it, and whether he is still there. */
TEST(cookie_is_that_of_all_who_share)
{
	struct tcp_pcb *child;
	int before, now, port = 0;

	peer_defaults();
	peer.params.half_open_max = 0;
	begin_to_share();
	do {
		before = sharer_of(++port);
		peer_send(S, PEER_ISN, 0, 0);
		tcp_close(sharers[before], peer.now_ns);
		sharers[before] = NULL;
		now = sharer_of(port);
		peer_send(A, P, U, 0);
		child = tcp_accept(sharers[now]);
		CHECK(child != NULL);
		tcp_abort(child, peer.now_ns);
	} while (port < SHARERS - 1);
	CHECK_EQ(tcp_counts(peer.table)->cookies_accepted, SHARERS - 1);
	close_sharers();
}

TEST(algorithm_changes_in_the_middle)
{
	struct tcp_pcb_info info;
	uint32_t cwnd;

	peer_connected();
	peer_write(100);
	CHECK_EQ(peer_next()->len, 100);
	peer_send(A, P, U + 100, 0);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.pacing_rate == TCP_NO_PACING);
	cwnd = info.cwnd;
	CHECK_EQ(tcp_set_cc(peer.pcb, TCP_CC_BBR), 0);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.pacing_rate != TCP_NO_PACING);
	CHECK_EQ(info.cwnd, cwnd);
	CHECK_EQ(tcp_set_cc(peer.pcb, TCP_CC_NEWRENO), 0);
	tcp_get_info(peer.pcb, &info);
	CHECK(info.pacing_rate == TCP_NO_PACING);
	peer_write(100);
	CHECK_EQ(peer_next()->len, 100);
	peer_teardown();
}

TEST(what_is_taken_is_in_use)
{
	struct ip_addr local, remote;
	struct tcp_pcb *other;
	struct pkt *pkt;

	peer_connected();
	local = peer.key.local;
	remote = peer.key.remote;
	CHECK_EQ(tcp_bind(peer.pcb, &local, htobe16(1)), -EINVAL);
	CHECK_EQ(tcp_listen(peer.pcb, 1), -EINVAL);
	CHECK_EQ(tcp_connect(peer.pcb, &remote, htobe16(1), &peer.path,
			     peer.now_ns), -EINVAL);
	CHECK_EQ(tcp_set_cc(peer.pcb, TCP_CC_CNT), -EINVAL);
	CHECK(tcp_accept(peer.pcb) == NULL);

	other = tcp_new(peer.table);
	CHECK(other != NULL);
	CHECK_EQ(tcp_listen(other, 1), -EINVAL);
	CHECK_EQ(tcp_connect(other, &remote, htobe16(1), &peer.path,
			     peer.now_ns), -EINVAL);
	CHECK_EQ(tcp_bind(other, &local, 0), -EINVAL);
	CHECK_EQ(tcp_bind(other, &local, peer.key.local_port), 0);
	CHECK_EQ(tcp_bind(other, &local, peer.key.local_port), -EINVAL);
	CHECK_EQ(tcp_connect(other, &remote, peer.key.remote_port, &peer.path,
			     peer.now_ns), -EADDRINUSE);
	CHECK_EQ(tcp_set_cc(other, TCP_CC_CNT), -EINVAL);
	CHECK_EQ(tcp_set_cc(other, TCP_CC_NEWRENO), 0);
	pkt = pkt_alloc(&peer.pool);
	pkt_append(pkt, 1);
	CHECK_EQ(tcp_write(other, pkt), -ENOTCONN);
	pkt_put(pkt);
	CHECK_EQ(tcp_shutdown(other, peer.now_ns), -ENOTCONN);
	CHECK_EQ(tcp_listen(other, 1), 0);

	peer.listener = tcp_new(peer.table);
	CHECK(peer.listener != NULL);
	CHECK_EQ(tcp_bind(peer.listener, &local, peer.key.local_port), 0);
	CHECK_EQ(tcp_listen(peer.listener, 1), -EADDRINUSE);
	tcp_close(other, peer.now_ns);
	peer_teardown();
}

/* RFC 6191 from this side: time stamps tell the new connection from the old. */
static int connect_again(const struct tcp_options *offered, uint32_t *isn_out)
{
	int rc;

	peer_defaults();
	peer_connect(offered);
	tcp_close(peer.pcb, peer.now_ns);
	peer_send(F | A, P, U + 1, 0);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 1);
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	*isn_out = peer.iss;
	rc = tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			 &peer.path, peer.now_ns);
	return rc;
}

TEST(connect_goes_on_from_time_wait)
{
	struct tcp_options offered = peer_full_options;
	uint32_t isn;

	CHECK_EQ(connect_again(&offered, &isn), -EADDRINUSE);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 1);
	peer_teardown();
	offered.has_ts = true;
	offered.ts_val = 900;
	CHECK_EQ(connect_again(&offered, &isn), 0);
	/* behind all that was sent before, FIN included */
	CHECK_EQ(peer.iss - isn, 2 + 65535 + 2);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 0);
	CHECK_EQ(tcp_counts(peer.table)->tw_reused, 1);
	peer_teardown();
}

/* Whether the port of a connection that has waited for so long may be chosen again. */
static bool may_choose(enum tcp_tw_reuse reuse, bool has_ts, bool is_loopback,
		       unsigned after_ms)
{
	struct tcp_options offered = peer_full_options;
	bool may;

	offered.has_ts = has_ts;
	offered.ts_val = has_ts ? 900 : 0;
	peer_defaults();
	peer.params.tw_reuse = reuse;
	peer.is_loopback = is_loopback;
	peer_connect(&offered);
	CHECK(!tcp_may_choose(peer.table, &peer.key, peer.now_ns));
	tcp_close(peer.pcb, peer.now_ns);
	peer_send(F | A, P, U + 1, 0);
	CHECK_EQ(tcp_time_wait_cnt(peer.table), 1);
	peer.pcb = NULL;
	peer_advance_ms(after_ms);
	may = tcp_may_choose(peer.table, &peer.key, peer.now_ns);
	peer_teardown();
	return may;
}

TEST(waiting_port_is_chosen_as_the_parameter_says)
{
	CHECK(!may_choose(TCP_TW_REUSE_NEVER, true, true, 2000));
	CHECK(may_choose(TCP_TW_REUSE_NEVER, true, true, 61000));
	CHECK(may_choose(TCP_TW_REUSE_ALWAYS, true, false, 2000));
	CHECK(!may_choose(TCP_TW_REUSE_ALWAYS, true, false, 900));
	CHECK(!may_choose(TCP_TW_REUSE_ALWAYS, false, false, 2000));
	CHECK(may_choose(TCP_TW_REUSE_LOOPBACK, true, true, 2000));
	CHECK(!may_choose(TCP_TW_REUSE_LOOPBACK, true, false, 2000));
}

/* The SYN of a connection from this port, at this time. */
static const struct peer_sent *syn_from(uint16_t port)
{
	struct tcp_pcb *pcb = tcp_new(peer.table);
	struct tcp_event event;

	CHECK_EQ(tcp_bind(pcb, &peer.key.local, htobe16(port)), 0);
	CHECK_EQ(tcp_connect(pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	tcp_abort(pcb, peer.now_ns);
	while (tcp_event_next(peer.table, &event))
		;
	return peer_next();
}

/* RFC 6528 and RFC 7323 section 7.1: a clock of its own for each four-tuple, which
 * nobody can tell who does not know the secret. */
TEST(first_numbers_are_a_keyed_clock)
{
	uint32_t seq, ts, other_seq;

	peer_defaults();
	peer_setup();
	seq = syn_from(1)->seq;
	other_seq = syn_from(2)->seq;
	peer_advance_ms(4);
	CHECK_EQ(syn_from(1)->seq, seq + 1000);
	ts = syn_from(1)->options.ts_val;
	CHECK_EQ(syn_from(2)->seq, other_seq + 1000);
	CHECK(other_seq - seq > 1u << 16 && seq - other_seq > 1u << 16);
	CHECK(ts - syn_from(2)->options.ts_val + 1000 > 2000);
	peer_advance_ms(7);
	CHECK_EQ(syn_from(1)->options.ts_val, ts + 7);
	peer_teardown();

	test_seed++;
	peer_defaults();
	peer_setup();
	CHECK(syn_from(1)->seq - seq + (1u << 16) > 1u << 17);
	test_seed--;
	peer_teardown();
}

/* Opens as many as need a larger table, and closes them into TIME_WAIT; whatever
 * cannot be had is refused. Returns how many there were. */
static int try_many(void)
{
	struct tcp_pcb *pcb = tcp_new(peer.table);
	struct tcp_event event;
	int cnt = 0;

	if (!pcb)
		return 0;
	CHECK_EQ(tcp_bind(pcb, &peer.key.local, peer.key.local_port), 0);
	if (tcp_listen(pcb, 16)) {
		tcp_close(pcb, peer.now_ns);
		while (tcp_event_next(peer.table, &event))
			;
		return 0;
	}
	peer.listener = pcb;
	for (int i = 0; i < 70; i++) {
		use(i);
		conns[i].pcb = opened_by_peer(peer.listener);
		conns[i].iss = peer.iss;
		conns[i].rcvd = 0;
		cnt += conns[i].pcb != NULL;
	}
	for (int i = 0; i < 70; i++)
		if (conns[i].pcb)
			close_conn(i);
	return cnt;
}

TEST(lack_of_memory_is_survived)
{
	unsigned failed = 0;
	bool has_failed = true;

	while (has_failed) {
		peer_defaults();
		peer.params.syns_per_sec = 0;
		peer_setup();
		peer.allocs_left = ++failed;
		CHECK(try_many() >= 69 || failed < 3);
		has_failed = !peer.allocs_left;
		peer.allocs_left = 0;
		peer_advance_ms(200 * 1000);
		peer_teardown();
	}
	/* the listener and its pcb, a pcb each, the tables */
	CHECK(failed > 74);
}
