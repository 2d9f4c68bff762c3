/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all kinds of sockets do, with a kind that only keeps count, a network over one
 * interface, and a twin whose names are what a case says.
 */
#include "config.h"

#include "sock/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "os/real.h"
#include "os/thread.h"
#include "tests/support/test.h"
#include "tests/unit/net/nic.h"

enum { PORT = 7000, OTHER_PORT = 7001 };

/* -- the kind --------------------------------------------------------------------- */

static struct {
	unsigned settings, ways, handed_back, left, watched;
	/* of what it was told last */
	struct user_name peer;
	bool has_peer;
	/* what it says */
	bool is_port_elsewhere, may_share, is_empty;
} kind;

static void read_settings(struct sock *s, int fd UNUSED)
{
	kind.settings++;
	s->set.may_share = kind.may_share;
}

static void forget_ways(struct sock *s, const struct user_name *peer)
{
	CHECK(stack_lock_is_mine(&sock_stack(s)->lock));
	kind.ways++;
	kind.has_peer = peer && peer->port;
	if (peer)
		kind.peer = *peer;
}

static bool is_port_elsewhere(const struct sock *s UNUSED,
			      const struct flow_key *key)
{
	CHECK_EQ(key->local_port, htons(PORT));
	return kind.is_port_elsewhere;
}

static void hand_back(struct sock *s, int fd UNUSED)
{
	sock_detach(s);
	kind.handed_back++;
}

static void left(struct sock *s)
{
	/* who sends sees that it is over */
	CHECK(s->has_left && sock_tx_holds(s) & SOCK_TX_OVER);
	kind.left++;
}

static bool is_empty(const struct sock *s UNUSED)
{
	return kind.is_empty;
}

static const struct sock_kind script_kind = {
	.proto = IPPROTO_UDP,
	.receiver = SOCK_UDP_RECEIVER,
	.connect = SOCK_UDP_CONNECT,
	.read_settings = read_settings,
	.forget_ways = forget_ways,
	.is_port_elsewhere = is_port_elsewhere,
	.hand_back = hand_back,
	.is_empty = is_empty,
	.left = left,
};

static void release(struct fd_object *obj UNUSED)
{
}

static struct fd_ops ops = { .name = "script", .release = release };

static void input(struct endpoint *end UNUSED, struct pkt *pkt)
{
	pkt_put(pkt);
}

/* -- the twin --------------------------------------------------------------------- */

static struct {
	struct sockaddr_in own, peer;
	int bind_errno;
} twin;

static struct sockaddr_in name(const char *addr, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port) };

	CHECK_EQ(inet_pton(AF_INET, addr, &in.sin_addr), 1);
	return in;
}

static int fake_getsockname(int fd UNUSED, struct sockaddr *addr, socklen_t *len)
{
	memcpy(addr, &twin.own, sizeof(twin.own));
	*len = sizeof(twin.own);
	return 0;
}

static int fake_getpeername(int fd UNUSED, struct sockaddr *addr, socklen_t *len)
{
	if (!twin.peer.sin_port) {
		errno = ENOTCONN;
		return -1;
	}
	memcpy(addr, &twin.peer, sizeof(twin.peer));
	*len = sizeof(twin.peer);
	return 0;
}

static int fake_bind(int fd UNUSED, const struct sockaddr *addr, socklen_t len)
{
	if (twin.bind_errno) {
		errno = twin.bind_errno;
		return -1;
	}
	CHECK_EQ(len, sizeof(twin.own));
	memcpy(&twin.own, addr, sizeof(twin.own));
	if (!twin.own.sin_port)
		twin.own.sin_port = htons(PORT);
	return 0;
}

/* -- a case ------------------------------------------------------------------------ */

static struct sock sock;
static bool has_network, has_rule;
static struct sock_end rule_local, rule_remote;

static struct net *get_net(enum reason *reason_out)
{
	*reason_out = has_network ? REASON_NONE : REASON_NO_BACK_END;
	return has_network ? net : NULL;
}

static struct net *get_net_if_made(void)
{
	return has_network ? net : NULL;
}

static bool is_kernel_by_rule(enum sock_role role, const struct sock_end *local,
			      const struct sock_end *remote,
			      char detail[STATS_DETAIL_SIZE] UNUSED)
{
	CHECK_EQ(role, remote ? SOCK_UDP_CONNECT : SOCK_UDP_RECEIVER);
	rule_local = *local;
	if (remote)
		rule_remote = *remote;
	return has_rule;
}

static void watch_twin(int fd UNUSED, struct fd_object *obj)
{
	CHECK(obj == &sock.obj);
	kind.watched++;
}

static void begin(void)
{
	sock_params = (struct sock_params){
		.net = get_net,
		.net_if_made = get_net_if_made,
		.is_kernel_by_rule = is_kernel_by_rule,
		.watch_twin = watch_twin,
	};
	real.getsockname = fake_getsockname;
	real.getpeername = fake_getpeername;
	real.bind = fake_bind;
	memset(&kind, 0, sizeof(kind));
	memset(&twin, 0, sizeof(twin));
	memset(&sock, 0, sizeof(sock));
	has_network = true;
	has_rule = false;
	nic_begin("all");
	fd_ops_fill(&ops);
	sock_init(&sock, &script_kind, &ops, input, -1, AF_INET, SOCK_DGRAM);
	os_enter();
}

static void end(void)
{
	sock_detach(&sock);
	os_leave();
	sock_destroy(&sock);
	nic_end();
}

static long bind_to(const char *addr, uint16_t port)
{
	struct sockaddr_in to = name(addr, port);

	return sock_bind(&sock.obj, 3, (struct sockaddr *)&to, sizeof(to));
}

static void rename_twin(struct sockaddr_in own, struct sockaddr_in peer)
{
	twin.own = own;
	twin.peer = peer;
	mutex_acquire(&sock.config);
	sock_renamed(&sock, 3);
	mutex_release(&sock.config);
}

/* -- attaching ----------------------------------------------------------------------- */

TEST(bind_attaches)
{
	struct ip_addr own = nic_addr();

	begin();
	CHECK(!sock_stack(&sock));
	CHECK_EQ(sock_rx_holds(&sock), SOCK_RX_UNATTACHED);
	CHECK_EQ(sock_tx_holds(&sock), SOCK_TX_UNNAMED);
	CHECK_EQ(bind_to("10.0.0.1", PORT), 0);
	CHECK(sock_is_attached(&sock) && sock.end.is_reachable);
	CHECK_EQ(sock.reason, REASON_NONE);
	CHECK_EQ(nic.added, 1);
	CHECK(ip_addr_eq(&sock.local, &own));
	CHECK_EQ(sock.local_port, htons(PORT));
	CHECK(!kind.has_peer);
	CHECK_EQ(sock_rx_holds(&sock), 0);
	CHECK_EQ(sock_tx_holds(&sock), 0);
	/* what came to the twin before */
	CHECK(atomic_load(&sock.is_twin_ready));
	CHECK_EQ(kind.watched, 1);
	end();
}

TEST(a_bind_that_the_kernel_refuses_changes_nothing)
{
	begin();
	twin.bind_errno = EADDRINUSE;
	CHECK_EQ(bind_to("10.0.0.1", PORT), -EADDRINUSE);
	CHECK(!sock_is_attached(&sock));
	CHECK_EQ(sock.reason, REASON_NOT_USED);
	CHECK_EQ(kind.settings, 0);
	end();
}

TEST(another_name_is_attached_in_place_of_the_last)
{
	uint64_t named_ns;

	begin();
	CHECK_EQ(bind_to("10.0.0.1", PORT), 0);
	named_ns = sock.named_ns;
	CHECK(named_ns);
	rename_twin(twin.own, name("10.0.0.2", OTHER_PORT));
	CHECK(sock_is_attached(&sock) && sock.is_connected);
	CHECK_EQ(nic.added, 2);
	CHECK_EQ(nic.removed, 1);
	CHECK(kind.has_peer);
	CHECK_EQ(kind.peer.port, htons(OTHER_PORT));
	/* it has the local name since bind() */
	CHECK_EQ(sock.named_ns, named_ns);
	CHECK_EQ(kind.watched, 1);
	end();
}

TEST(without_names_it_is_as_before_its_first_use)
{
	struct sockaddr_in none = { .sin_family = AF_INET };

	begin();
	CHECK_EQ(bind_to("10.0.0.1", PORT), 0);
	rename_twin(none, none);
	CHECK(!sock_is_attached(&sock));
	CHECK_EQ(nic.removed, 1);
	CHECK_EQ(sock_rx_holds(&sock), SOCK_RX_UNATTACHED);
	CHECK_EQ(sock_tx_holds(&sock), SOCK_TX_UNNAMED);
	CHECK_EQ(sock.reason, REASON_NOT_USED);
	CHECK_EQ(sock.local_port, 0);
	end();
}

TEST(reasons_to_stay)
{
	begin();
	CHECK_EQ(bind_to("224.0.0.1", PORT), 0);
	CHECK_EQ(sock.reason, REASON_MULTICAST);
	rename_twin(name("10.0.0.1", PORT), name("224.0.0.1", PORT));
	CHECK_EQ(sock.reason, REASON_MULTICAST);
	has_rule = true;
	CHECK_EQ(bind_to("10.0.0.1", PORT), 0);
	CHECK_EQ(sock.reason, REASON_MULTICAST);
	rename_twin(name("10.0.0.1", PORT), name("10.0.0.2", OTHER_PORT));
	CHECK_EQ(sock.reason, REASON_RULE);
	/* for whom others of its port have to be looked at (sock/udp/udp_ports.c) */
	CHECK_EQ(sock_rx_holds(&sock), SOCK_RX_UNATTACHED | SOCK_RX_REFUSED);
	CHECK_EQ(rule_local.port, htons(PORT));
	CHECK_EQ(rule_remote.port, htons(OTHER_PORT));
	has_rule = false;
	has_network = false;
	rename_twin(name("10.0.0.1", PORT), (struct sockaddr_in){ 0 });
	CHECK_EQ(sock.reason, REASON_NO_BACK_END);
	has_network = true;
	kind.may_share = kind.is_port_elsewhere = true;
	rename_twin(name("10.0.0.1", PORT), (struct sockaddr_in){ 0 });
	CHECK_EQ(sock.reason, REASON_PORT_SHARED);
	CHECK(!sock_is_attached(&sock));
	CHECK_EQ(sock_rx_holds(&sock), SOCK_RX_UNATTACHED);
	/* nobody is asked who alone may have it */
	kind.may_share = false;
	rename_twin(name("10.0.0.1", PORT), (struct sockaddr_in){ 0 });
	CHECK(sock_is_attached(&sock));
	CHECK_EQ(sock_rx_holds(&sock), 0);
	end();
}

TEST(a_first_send_gives_it_a_port)
{
	begin();
	twin.own.sin_family = AF_INET;
	twin.own.sin_addr.s_addr = htonl(0x0a000001);
	CHECK(sock_prepare_send(&sock, 3));
	CHECK(sock_is_attached(&sock));
	CHECK_EQ(sock.local_port, htons(PORT));
	/* once */
	CHECK(sock_prepare_send(&sock, 3));
	CHECK_EQ(kind.settings, 1);
	end();

	begin();
	twin.own.sin_family = AF_INET;
	twin.bind_errno = EADDRNOTAVAIL;
	CHECK(!sock_prepare_send(&sock, 3));
	CHECK(!sock_is_attached(&sock));
	end();
}

/* An interface that was somebody else's is free now; a rule of the user's stays. */
TEST(news_are_tried_where_they_may_help)
{
	begin();
	nic.health = -EBUSY;
	nic.verdict.refusal = DEV_REFUSED_IN_USE;
	CHECK_EQ(bind_to("10.0.0.1", PORT), 0);
	CHECK_EQ(sock.reason, REASON_INTERFACE_IN_USE);
	nic.health = 0;
	net_view_routes_changed(&net->view);
	sock_follow_news(&sock.obj, 3);
	CHECK_EQ(sock.reason, REASON_NONE);
	CHECK_EQ(sock_rx_holds(&sock), 0);
	has_rule = true;
	rename_twin(twin.own, twin.peer);
	CHECK_EQ(sock.reason, REASON_RULE);
	has_rule = false;
	sock_follow_news(&sock.obj, 3);
	CHECK_EQ(sock.reason, REASON_RULE);
	end();
}

/* -- leaving ------------------------------------------------------------------------- */

TEST(who_leaves_does_so_for_good)
{
	struct stack *stack;
	struct endpoint *endpoint;

	begin();
	CHECK_EQ(bind_to("10.0.0.1", PORT), 0);
	sock_leave(&sock.obj, 3, REASON_HANDED_ON, STATS_BY_SEND);
	CHECK(!sock_is_attached(&sock));
	CHECK_EQ(nic.removed, 1);
	CHECK_EQ(kind.handed_back, 1);
	CHECK_EQ(kind.left, 1);
	CHECK_EQ(sock.reason, REASON_HANDED_ON);
	CHECK(sock_rx_holds(&sock) & SOCK_RX_LEFT);
	CHECK(sock_tx_holds(&sock) & SOCK_TX_OVER);
	/* the first reason counts, and nothing brings it back */
	sock_leave(&sock.obj, 3, REASON_RULE, STATS_BY_SEND);
	CHECK_EQ(bind_to("10.0.0.1", PORT), 0);
	sock_follow_news(&sock.obj, 3);
	CHECK(!sock_prepare_send(&sock, 3));
	CHECK_EQ(kind.handed_back, 1);
	CHECK_EQ(kind.left, 1);
	CHECK_EQ(sock.reason, REASON_HANDED_ON);
	CHECK_EQ(nic.added, 1);
	/* what is queued is still read here */
	CHECK_EQ(sock_await(&sock.obj, &endpoint, &stack), FD_AWAIT_STACK);
	CHECK(sock_follow(&sock.obj, &stack) == &sock.end);
	kind.is_empty = true;
	CHECK_EQ(sock_await(&sock.obj, &endpoint, &stack), FD_AWAIT_KERNEL);
	CHECK(!sock_follow(&sock.obj, &stack));
	end();
}

/* -- waiting, and the stack ------------------------------------------------------------ */

TEST(who_waits_needs_a_stack)
{
	struct endpoint *endpoint;
	struct stack *stack;

	begin();
	has_network = false;
	CHECK_EQ(sock_await(&sock.obj, &endpoint, &stack), FD_AWAIT_EARLY);
	CHECK(!sock_follow(&sock.obj, &stack));
	CHECK(!sock_try_lock(&sock, &stack));
	has_network = true;
	CHECK_EQ(sock_await(&sock.obj, &endpoint, &stack), FD_AWAIT_STACK);
	CHECK(endpoint == &sock.end);
	CHECK(stack && stack == sock_stack(&sock));
	CHECK(sock_try_lock(&sock, &stack));
	stack_unlock(stack);
	end();
}

static unsigned closed_cnt;

static void watch_closed(struct watch *watch)
{
	CHECK(stack_lock_is_mine(&sock_stack(&sock)->lock));
	list_remove(&watch->link);
	closed_cnt++;
}

TEST(the_last_close_is_told_to_who_follows)
{
	struct watch watch = { .closed = watch_closed }, brief = { 0 };

	begin();
	/* of no stack: nobody can follow it */
	sock_last_close(&sock.obj, -1);
	CHECK_EQ(bind_to("10.0.0.1", PORT), 0);
	list_push_back(&sock.end.watches, &watch.link);
	list_push_back(&sock.end.watches, &brief.link);
	closed_cnt = 0;
	sock_last_close(&sock.obj, -1);
	CHECK_EQ(closed_cnt, 1);
	list_remove(&brief.link);
	end();
}

/* -- a socket that changes its stack ---------------------------------------------------- */

/* One that waits for the lock, and what it got. */
struct locker {
	bool may_fail;
	bool has_lock;
	struct stack *stack;
	bool is_of_its_stack;
};

static NO_LOCK_ANALYSIS void *wait_for_lock(void *arg)
{
	struct locker *waiter = arg;

	os_enter();
	waiter->has_lock = true;
	if (waiter->may_fail)
		waiter->has_lock = sock_try_lock(&sock, &waiter->stack);
	else
		sock_lock(&sock, &waiter->stack);
	if (waiter->has_lock) {
		waiter->is_of_its_stack =
			sock_is_in(&sock, waiter->stack) &&
			stack_lock_is_mine(&waiter->stack->lock);
		stack_unlock(waiter->stack);
	}
	os_leave();
	return NULL;
}

static struct stack *make_stack(void)
{
	/* whose lock says when somebody sleeps on it */
	const struct stack_params params = { .lock_kind = STACK_LOCK_SLEEP,
					     .poll_batch = 16 };
	struct stack *stack;

	CHECK_EQ(stack_create(&params, &stack), 0);
	return stack;
}

/* Moves the socket from the first stack to the second, which may be NULL, while a
 * thread waits for the first one's lock. */
static void move(struct stack *from, struct stack *to, struct locker *waiter)
{
	pthread_t thread;

	atomic_store(&sock.stack, from);
	stack_lock(from);
	CHECK_EQ(pthread_create(&thread, NULL, wait_for_lock, waiter), 0);
	while (atomic_load(&from->lock.word) != 2)
		sched_yield();
	atomic_store(&sock.stack, to);
	stack_unlock(from);
	pthread_join(thread, NULL);
	/* nothing is left locked */
	CHECK_EQ(atomic_load(&from->lock.word), 0);
	CHECK(!to || atomic_load(&to->lock.word) == 0);
}

/* Who has waited has the lock of a stack that the socket is in no more, and lets go of
 * that one. */
TEST(a_waiter_gets_the_lock_of_the_stack_that_it_is_in_now)
{
	struct stack *one = make_stack(), *two = make_stack();
	struct locker waiter = { .may_fail = false };

	begin();
	move(one, two, &waiter);
	CHECK(waiter.stack == two);
	CHECK(waiter.is_of_its_stack);
	waiter = (struct locker){ .may_fail = true };
	move(two, one, &waiter);
	CHECK(waiter.has_lock && waiter.stack == one);
	CHECK(waiter.is_of_its_stack);
	atomic_store(&sock.stack, NULL);
	end();
	stack_destroy(one);
	stack_destroy(two);
}

TEST(a_waiter_learns_that_it_is_in_no_stack_any_more)
{
	struct stack *one = make_stack();
	struct locker waiter = { .may_fail = true };

	begin();
	move(one, NULL, &waiter);
	CHECK(!waiter.has_lock && !waiter.stack);
	end();
	stack_destroy(one);
}
