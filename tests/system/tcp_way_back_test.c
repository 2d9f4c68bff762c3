/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of the engine become the kernel's, seen by a peer on another kernel
 * stack (tcp_wire.h). Both streams are checked byte by byte.
 */
#define _GNU_SOURCE
#include "config.h"

#include "sock/tcp/tcp_way_back.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sock/tcp/tcp_twin.h"
#include "tests/system/netns.h"
#include "tests/system/tcp_wire.h"

/* -- the way back ------------------------------------------------------------------ */

/* what the case makes fail, an errno */
static int open_err, give_err;
/* frames that the kernel got beside what was held */
static unsigned give_cnt;
/* the peer sends by another interface before the rules are made, or cannot be */
static bool comes_another_way;
/* nothing comes another way */
static bool is_only_way;
/* the twin, if the case takes its room away once it has been built; -1 */
static int narrow_fd = -1;

static int give(void *ctx UNUSED, const uint8_t *header, size_t header_len,
		const struct pkt *data)
{
	give_cnt++;
	return give_err ? give_err : wire_give(header, header_len, data);
}

static void hear_another_way(void)
{
	wire.is_holding = false;
	wire.is_open = true;
	write_from_peer(5000);
	pump_for(5);
	wire.is_open = false;
	wire_hold();
}

static int open_gate(void *ctx UNUSED)
{
	if (comes_another_way)
		hear_another_way();
	if (open_err)
		return open_err;
	if (narrow_fd >= 0)
		CHECK_EQ(setsockopt(narrow_fd, SOL_SOCKET, SO_SNDBUF, &(int){ 1 },
				    sizeof(int)),
			 0);
	wire_to_kernel();
	return 0;
}

/* The test is another way, too. */
static bool keeps_all(void *ctx UNUSED)
{
	return is_only_way;
}

static void give_held(void *ctx UNUSED)
{
	wire_held_to_kernel();
}

static void close_gate(void *ctx UNUSED)
{
	wire.is_open = false;
}

static const struct tcp_way_back_ops ops = { give, keeps_all, open_gate, give_held,
					     close_gate };

/* the last guard that was made, while it is one */
static struct tcp_twin_socket guard = { .fd = -1 };

static void is_the_kernels(int fd)
{
	tcp_drop(pcb);
	pcb = NULL;
	own_fd = fd;
	guard.fd = -1;
}

static void make_guard(int fd, const struct flow_key *key)
{
	guard = (struct tcp_twin_socket){ .fd = fd, .domain = AF_INET };
	CHECK_EQ(tcp_twin_guard(&guard, key, false), 0);
	CHECK(guard.is_guard && guard.is_bound);
}

static int way_back(int fd, uint64_t now_ns)
{
	struct tcp_twin_socket twin = { .fd = fd, .domain = AF_INET, .reuse_addr = -1 };

	return tcp_way_back(fd == guard.fd ? &guard : &twin, pcb, &ops, NULL, now_ns);
}

/* Into this socket. The engine goes on with it after an error. */
static int go_back_into(int fd)
{
	uint64_t now_ns = clock_monotonic_ns();
	int err;

	CHECK_EQ(tcp_freeze(pcb, now_ns, now_ns), 0);
	wire_hold();
	err = way_back(fd, now_ns);
	if (err) {
		tcp_thaw(pcb, clock_monotonic_ns());
		wire_to_engine();
		return err;
	}
	is_the_kernels(fd);
	return 0;
}

static void go_back(void)
{
	CHECK_EQ(go_back_into(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
		 0);
}

/* What was held while it stood still counts too. */
static void go_back_while_frames_come(void)
{
	uint64_t now_ns = clock_monotonic_ns();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(tcp_freeze(pcb, now_ns, now_ns), 0);
	wire_hold();
	write_from_peer(20000);
	wire_take();
	CHECK(wire.held_cnt > 0);
	CHECK_EQ(way_back(fd, now_ns), 0);
	is_the_kernels(fd);
}

/* Both ends have closed in order. */
static void part(void)
{
	if (!to_peer.is_at_end)
		close_stream_to_peer();
	PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
	if (!from_peer.is_at_end)
		CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
	PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	CHECK_EQ(to_peer.read, to_peer.written);
	CHECK_EQ(from_peer.read, from_peer.written);
}

TEST(an_idle_connection)
{
	connect_as_usual();
	exchange(50000);
	give_cnt = 0;
	go_back();
	CHECK_EQ(give_cnt, 0);
	CHECK_EQ(kernel_info(own_fd).tcpi_state, TCP_ESTABLISHED);
	exchange(200000);
	part();
	/* segments are as long as the peer takes them */
	CHECK(kernel_info(own_fd).tcpi_snd_mss >= 1400);
	end();
}

TEST(a_connection_that_the_peer_has_opened)
{
	accept_one();
	exchange(50000);
	go_back();
	exchange(200000);
	part();
	end();
}

/* As a socket is whose program has called bind(). */
TEST(into_a_socket_that_is_bound)
{
	connect_as_usual();
	exchange(1000);
	CHECK_EQ(go_back_into(bound_socket(&own_addr, OWN_PORT)), 0);
	exchange(50000);
	part();
	end();
}

/* The listener of the port is the kernel's, too, and goes on. */
TEST(beside_a_listener_of_the_kernel)
{
	int other;

	accept_one();
	other = bound_socket(&own_addr, OWN_PORT);
	CHECK_EQ(listen(other, 1), 0);
	exchange(1000);
	go_back();
	exchange(50000);
	part();
	close(other);
	end();
}

TEST(what_was_not_read)
{
	connect_as_usual();
	exchange(1000);
	write_from_peer(40000);
	pump_for(50);
	CHECK_EQ(from_peer.read, 1000);
	go_back();
	deliver_all();
	exchange(50000);
	part();
	end();
}

TEST(what_was_not_acknowledged)
{
	connect_as_usual();
	exchange(1000);
	wire.is_cut = true;
	write_to_peer(10000);
	pump_for(20);
	go_back();
	wire.is_cut = false;
	deliver_all();
	exchange(50000);
	part();
	end();
}

/* The peer's window is closed. */
TEST(what_was_not_sent)
{
	connect_as_usual();
	exchange(1000);
	for (int i = 0; i < 200; i++) {
		write_to_peer(100000);
		pump();
	}
	CHECK(to_peer.written > 200000);
	go_back();
	deliver_all();
	exchange(50000);
	part();
	end();
}

TEST(what_came_out_of_order)
{
	connect_as_usual();
	exchange(1000);
	wire.loses_one = true;
	write_from_peer(10000);
	pump_for(5);
	go_back();
	deliver_all();
	exchange(50000);
	part();
	end();
}

TEST(what_comes_meanwhile)
{
	connect_as_usual();
	exchange(1000);
	go_back_while_frames_come();
	deliver_all();
	exchange(50000);
	part();
	end();
}

/* The kernel hears the last of them, which says that everything has arrived. */
TEST(acknowledgments_that_come_meanwhile)
{
	uint64_t now_ns;
	int fd;

	connect_as_usual();
	exchange(1000);
	now_ns = clock_monotonic_ns();
	tcp_set_nodelay(pcb, true, now_ns);
	write_to_peer(14000);
	CHECK_EQ(tcp_freeze(pcb, now_ns, now_ns), 0);
	wire_hold();
	PUMP_UNTIL((read_to_peer(), to_peer.read == to_peer.written));
	pump_for(50);
	CHECK(wire.held_cnt > 2);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(way_back(fd, now_ns), 0);
	CHECK_EQ(wire.given_cnt, 1);
	is_the_kernels(fd);
	CHECK_EQ(kernel_info(own_fd).tcpi_unacked, 0);
	exchange(50000);
	part();
	end();
}

TEST(the_peer_has_closed)
{
	connect_as_usual();
	exchange(1000);
	write_from_peer(10000);
	CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
	pump_for(50);
	go_back();
	PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	CHECK_EQ(from_peer.read, from_peer.written);
	CHECK_EQ(kernel_info(own_fd).tcpi_state, TCP_CLOSE_WAIT);
	write_to_peer(50000);
	deliver_all();
	part();
	end();
}

TEST(we_have_closed)
{
	connect_as_usual();
	exchange(1000);
	close_stream_to_peer();
	PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
	pump_for(50);
	go_back();
	PUMP_UNTIL(kernel_info(own_fd).tcpi_state == TCP_FIN_WAIT2);
	write_from_peer(50000);
	deliver_all();
	part();
	end();
}

TEST(our_end_was_not_acknowledged)
{
	connect_as_usual();
	exchange(1000);
	wire.is_cut = true;
	write_to_peer(5000);
	close_stream_to_peer();
	pump_for(20);
	go_back();
	wire.is_cut = false;
	PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
	CHECK_EQ(to_peer.read, to_peer.written);
	write_from_peer(20000);
	deliver_all();
	part();
	end();
}

TEST(both_have_closed)
{
	connect_as_usual();
	exchange(1000);
	write_from_peer(5000);
	CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
	pump_for(50);
	wire.is_cut = true;
	write_to_peer(5000);
	close_stream_to_peer();
	pump_for(20);
	go_back();
	wire.is_cut = false;
	PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
	CHECK_EQ(to_peer.read, to_peer.written);
	PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	CHECK_EQ(from_peer.read, from_peer.written);
	PUMP_UNTIL(kernel_info(own_fd).tcpi_state == TCP_CLOSE);
	end();
}

TEST(without_time_stamps_sack_and_scaling)
{
	struct tcp_params params;

	tcp_params_init(&params);
	params.with_timestamps = params.with_sack = false;
	params.with_window_scale = false;
	connect_with(&params);
	exchange(50000);
	write_from_peer(20000);
	pump_for(20);
	go_back();
	deliver_all();
	exchange(100000);
	part();
	end();
}

/* -- what fails: it goes on with us ------------------------------------------------- */

TEST(with_ecn_it_stays)
{
	struct tcp_params params;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	tcp_params_init(&params);
	params.ecn = TCP_ECN_ON;
	connect_with(&params);
	exchange(1000);
	CHECK_EQ(go_back_into(fd), -EOPNOTSUPP);
	exchange(50000);
	part();
	close(fd);
	end();
}

/* The same socket serves at the next attempt. */
static void fail_then_succeed(int fd, int err)
{
	CHECK_EQ(go_back_into(fd), err);
	exchange(5000);
	open_err = give_err = 0;
	CHECK_EQ(go_back_into(fd), 0);
	exchange(50000);
	part();
	end();
}

TEST(rules_that_cannot_be_made)
{
	connect_as_usual();
	exchange(1000);
	write_from_peer(20000);
	pump_for(20);
	open_err = -ENOSPC;
	fail_then_succeed(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			  -ENOSPC);
}

/* What the twin had acknowledged would be nowhere. */
TEST(rules_that_cannot_be_made_while_the_peer_sends)
{
	connect_as_usual();
	exchange(1000);
	open_err = -ENOSPC;
	comes_another_way = true;
	CHECK_EQ(go_back_into(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
		 -ENOSPC);
	open_err = 0;
	comes_another_way = false;
	exchange(5000);
	part();
	end();
}

TEST(a_socket_of_another_port)
{
	int fd;

	connect_as_usual();
	exchange(1000);
	fd = bound_socket(&own_addr, OWN_PORT + 1);
	CHECK_EQ(go_back_into(fd), -EINVAL);
	close(fd);
	exchange(5000);
	go_back();
	exchange(5000);
	part();
	end();
}

/* The peer would not repeat it. */
TEST(an_end_that_cannot_be_given)
{
	int fd = -1;

	connect_as_usual();
	exchange(1000);
	CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
	pump_for(20);
	give_err = -EPERM;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(go_back_into(fd), -EPERM);
	write_to_peer(5000);
	deliver_all();
	give_err = 0;
	CHECK_EQ(go_back_into(fd), 0);
	PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	part();
	end();
}

TEST(without_the_right)
{
	int fd;

	connect_as_usual();
	exchange(1000);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(seteuid(65534), 0);
	CHECK_EQ(go_back_into(fd), -EPERM);
	CHECK_EQ(seteuid(0), 0);
	exchange(5000);
	CHECK_EQ(go_back_into(fd), 0);
	exchange(5000);
	part();
	end();
}

/* Too late to go on with us: the twin is the connection already. Its room is what
 * another thread of the program can take away. The peer must not read what comes behind
 * a gap. */
TEST(no_room_for_what_was_not_sent)
{
	uint8_t bytes[65536];
	ssize_t n;

	connect_as_usual();
	exchange(1000);
	for (int i = 0; i < 200; i++) {
		write_to_peer(100000);
		pump();
	}
	narrow_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(go_back_into(narrow_fd), 0);
	narrow_fd = -1;
	CHECK_EQ(send(own_fd, "x", 1, MSG_NOSIGNAL), -1);
	do {
		pump();
		n = recv(peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n > 0) {
			check_bytes(to_peer.read, bytes, (size_t)n);
			to_peer.read += (uint64_t)n;
		}
	} while (n > 0 || (n < 0 && errno == EAGAIN));
	CHECK_EQ(n, -1);
	CHECK_EQ(errno, ECONNRESET);
	CHECK(to_peer.read > 1000 && to_peer.read < to_peer.written);
	end();
}

/* -- guards --------------------------------------------------------------------------- */

static atomic_bool has_poured;
static uint8_t poured[60];
static size_t poured_len;

/* As by another interface. */
static void *pour(void *arg UNUSED)
{
	while (!atomic_load(&has_poured))
		CHECK_EQ(wire_give(poured, poured_len, NULL), 0);
	return NULL;
}

static void go_back_under_segments(int fd)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct tcp_repair state;
	pthread_t thread;

	make_guard(fd, tcp_key(pcb));
	CHECK_EQ(tcp_freeze(pcb, now_ns, now_ns), 0);
	wire_hold();
	CHECK_EQ(tcp_get_repair(pcb, &state, now_ns), 0);
	poured_len = tcp_build_of_peer(pcb, poured, state.rcv_nxt, false,
				       now_ns);
	atomic_store(&has_poured, false);
	CHECK_EQ(pthread_create(&thread, NULL, pour, NULL), 0);
	pump_for(2);
	CHECK_EQ(way_back(fd, now_ns), 0);
	pump_for(2);
	atomic_store(&has_poured, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	is_the_kernels(fd);
}

/* The kernel would answer one that it knows nothing of with a reset. */
TEST(segments_while_a_guard_becomes_it)
{
	for (int i = 0; i < 20; i++) {
		connect_as_usual();
		exchange(1000);
		go_back_under_segments(
			socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
		exchange(1000);
		part();
		end();
	}
}

/* Then it needs no help by a listener; nobody sends to the kernel beside the wire. */
TEST(a_guard_becomes_it_where_nothing_comes_another_way)
{
	int fd;

	is_only_way = true;
	connect_as_usual();
	exchange(1000);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	make_guard(fd, tcp_key(pcb));
	write_from_peer(20000);
	CHECK_EQ(go_back_into(fd), 0);
	is_only_way = false;
	deliver_all();
	exchange(50000);
	part();
	end();
}

/* The peer's last segment once more, to the kernel. */
static void give_again(void)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint8_t header[60];
	struct tcp_repair state;
	size_t len;

	CHECK_EQ(tcp_freeze(pcb, now_ns, now_ns), 0);
	CHECK_EQ(tcp_get_repair(pcb, &state, now_ns), 0);
	len = tcp_build_of_peer(pcb, header, state.rcv_nxt, false, now_ns);
	tcp_thaw(pcb, now_ns);
	CHECK_EQ(wire_give(header, len, NULL), 0);
	pump_for(5);
}

/* It could be none again when address and route come back, as those of an interface do that
 * was gone for a moment, and the kernel would reset the peer. */
TEST(a_guard_without_address_or_route)
{
	int fd;

	connect_as_usual();
	exchange(1000);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	make_guard(fd, tcp_key(pcb));
	netns_run("ip address del 10.79.0.1/24 dev way0");
	CHECK_EQ(go_back_into(fd), -EADDRNOTAVAIL);
	CHECK(tcp_twin_is_guard(fd));
	netns_run("ip link set way0 down; ip address add 10.79.0.1/24 dev way0");
	CHECK_EQ(go_back_into(fd), -ENETUNREACH);
	CHECK(tcp_twin_is_guard(fd));
	netns_run("ip link set way0 up");
	give_again();
	exchange(1000);
	CHECK_EQ(go_back_into(fd), 0);
	exchange(50000);
	part();
	end();
}

/* The number after the one that the kernel begins a connection with where a guard was. */
static uint32_t number_after_a_guard(void)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), value;
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = sizeof(name);
	struct flow_key key = { 0 };

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(listener, (struct sockaddr *)&name, len), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&name, &len), 0);
	key.local = key.remote = ip_addr_from_v4(name.sin_addr.s_addr);
	key.local_port = htons(7);
	key.remote_port = name.sin_port;
	make_guard(fd, &key);
	tcp_twin_unguard(fd, &key);
	guard.fd = -1;
	CHECK_EQ(connect(fd, (struct sockaddr *)&name, len), 0);
	value = 1;
	len = sizeof(value);
	CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &value, len), 0);
	value = TCP_SEND_QUEUE;
	CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &value, len), 0);
	CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &value, &len), 0);
	close(fd);
	close(listener);
	return (uint32_t)value;
}

/* Nobody can foresee it, as of any connection of the kernel's. */
TEST(number_of_a_connection_begun_anew)
{
	uint32_t first = number_after_a_guard(), second = number_after_a_guard();

	CHECK(first > 1000 || second > 1000);
}

/* -- any moment ----------------------------------------------------------------------- */

/* A connection whose end in each direction may have come. */
struct walk {
	struct rand rand;
	bool have_we_closed, has_peer_closed;
};

static void close_one_way(struct walk *w)
{
	if (rand_below(&w->rand, 2)) {
		if (!w->have_we_closed)
			close_stream_to_peer();
		w->have_we_closed = true;
	} else {
		if (!w->has_peer_closed)
			CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
		w->has_peer_closed = true;
	}
}

static void take_a_step(struct walk *w)
{
	if (rand_below(&w->rand, 2) && !w->have_we_closed)
		write_to_peer((uint32_t)rand_below(&w->rand, 60000));
	if (rand_below(&w->rand, 2) && !w->has_peer_closed)
		write_from_peer((uint32_t)rand_below(&w->rand, 60000));
	if (rand_below(&w->rand, 60) == 0)
		close_one_way(w);
	for (uint64_t n = rand_below(&w->rand, 8); n; n--)
		pump();
	if (rand_below(&w->rand, 2))
		read_to_peer();
	if (rand_below(&w->rand, 2))
		read_from_peer();
}

static bool is_reset(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET;
}

static void reset(int *fd)
{
	struct linger now = { .l_onoff = 1 };

	CHECK_EQ(setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(*fd);
	*fd = -1;
}

/* All that was written has been read. In order, or by a reset of either end. */
static void part_somehow(struct walk *w)
{
	bool is_open = !w->have_we_closed && !w->has_peer_closed;

	switch (is_open ? rand_below(&w->rand, 4) : 2) {
	case 0:
		wire_spoil(0, 0);
		reset(&peer_fd);
		PUMP_UNTIL(is_reset(own_fd));
		break;
	case 1:
		wire_spoil(0, 0);
		reset(&own_fd);
		PUMP_UNTIL(is_reset(peer_fd));
		break;
	default:
		if (!w->have_we_closed)
			close_stream_to_peer();
		PUMP_UNTIL((read_to_peer(), to_peer.is_at_end));
		if (!w->has_peer_closed)
			CHECK_EQ(shutdown(peer_fd, SHUT_WR), 0);
		PUMP_UNTIL((read_from_peer(), from_peer.is_at_end));
	}
	CHECK_EQ(to_peer.read, to_peer.written);
	CHECK_EQ(from_peer.read, from_peer.written);
}

/* Both ends have come and are acknowledged: nothing is left to go back. */
static bool is_over(void)
{
	return tcp_state(pcb) == TCPS_CLOSED || tcp_state(pcb) == TCPS_TIME_WAIT;
}

/* Writes and reads of any size, over a wire that loses, doubles and reorders; at any moment
 * the kernel takes over. */
static void one_way(uint64_t seed)
{
	struct walk w = { .have_we_closed = false };
	unsigned steps, back_at;

	rand_init(&w.rand, seed);
	if (rand_below(&w.rand, 2))
		connect_as_usual();
	else
		accept_one();
	wire_spoil((uint32_t)rand_below(&w.rand, 3) * 15000, seed);
	steps = 5 + (unsigned)rand_below(&w.rand, 40);
	back_at = (unsigned)rand_below(&w.rand, steps);
	for (unsigned i = 0; i < steps; i++) {
		take_a_step(&w);
		if (i == back_at && !is_over())
			go_back();
	}
	if (rand_below(&w.rand, 2))
		wire_spoil(0, 0);
	deliver_all();
	part_somehow(&w);
	end();
}

/* WAYS: how many connections. */
TEST(at_any_moment)
{
	const char *text = getenv("WAYS");
	unsigned cnt = text ? (unsigned)atoi(text) : 50;

	for (unsigned i = 0; i < cnt; i++) {
		printf("# seed %llu\n", (unsigned long long)(test_seed + i));
		one_way(test_seed + i);
	}
}
