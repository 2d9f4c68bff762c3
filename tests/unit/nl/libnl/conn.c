/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connection against a kernel made up here, which can do what the real one does
 * rarely: be interrupted, run out of room, refuse. The real one is in
 * system/net_view_test.
 */
#include "config.h"

#include "nl/libnl/conn.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <stdlib.h>

#include "nl/netlink.h"
#include "os/real.h"
#include "os/services.h"
#include "tests/unit/nl/build.h"

/* libnl makes true sockets, since that needs no right; all I/O on them is ours. */
enum { EVENT_FD = 1000, REQUEST_FD = 1001, DATAGRAMS = 32 };

/* What will be read from the event socket, in order. */
struct datagram {
	int error; /* instead of a message */
	bool is_cut;
	unsigned rest; /* bytes behind the message */
	uint32_t from;
	struct message m;
};

static struct datagram queue[DATAGRAMS];
static unsigned queued_cnt, read_cnt;
static struct nlmsghdr last_request, answer;
static int answer_error;
/* Types of the dumps asked for, in order. */
static uint16_t asked[DATAGRAMS];
static unsigned asked_cnt;
/* What to do at the dump of this type, once. */
static uint16_t special_type;
static void (*special)(void);
static unsigned open_cnt;
/* since the last dump that was asked for */
static bool has_waited;
static size_t last_buf_size;

static struct datagram *queue_one(uint16_t type, uint16_t flags, bool is_mine,
				  const void *body, size_t len)
{
	struct datagram *d = &queue[queued_cnt++];

	CHECK(queued_cnt < DATAGRAMS);
	*d = (struct datagram){ 0 };
	msg_begin(&d->m, type, body, len);
	d->m.head.nlmsg_flags = flags;
	if (is_mine) {
		d->m.head.nlmsg_seq = last_request.nlmsg_seq;
		d->m.head.nlmsg_pid = last_request.nlmsg_pid;
	}
	return d;
}

static void queue_done(int error)
{
	queue_one(NLMSG_DONE, NLM_F_MULTI, true, &error, sizeof(error));
}

static void queue_error(int error)
{
	struct nlmsgerr body = { .error = error };

	queue_one(NLMSG_ERROR, 0, true, &body, sizeof(body));
}

/* A rule, of a dump or as an event. */
static void queue_rule(bool is_mine, uint16_t flags)
{
	struct fib_rule_hdr head = { .family = AF_INET, .table = 7,
				     .action = FR_ACT_TO_TBL };

	queue_one(RTM_NEWRULE, flags, is_mine, &head, sizeof(head));
}

enum { MOVED_BY = 100 };

static _Atomic int *slots[2];
static int moved_by;

int services_copy_fd(int fd UNUSED, _Atomic int *slot)
{
	slots[open_cnt] = slot;
	atomic_store(slot, EVENT_FD + (int)open_cnt++);
	return 0;
}

/* As the library does when the program wants their numbers. */
static void move_fds(void)
{
	moved_by = MOVED_BY;
	for (int i = 0; i < 2; i++)
		atomic_fetch_add(slots[i], MOVED_BY);
}

void services_close_fd(_Atomic int *slot)
{
	if (atomic_exchange(slot, -1) >= 0)
		open_cnt--;
}

static ssize_t fake_send(int fd, const void *buf, size_t len, int flags UNUSED)
{
	memcpy(&last_request, buf, sizeof(last_request));
	fd -= moved_by;
	CHECK(fd == EVENT_FD || fd == REQUEST_FD);
	if (fd == REQUEST_FD) {
		has_waited |= last_request.nlmsg_type == RTM_GETLINK;
		answer = last_request;
		return (ssize_t)len;
	}
	asked[asked_cnt++] = last_request.nlmsg_type;
	/* until what the kernel changes at a link is complete */
	if (last_request.nlmsg_type == RTM_GETROUTE)
		CHECK(has_waited);
	has_waited = false;
	if (special && last_request.nlmsg_type == special_type) {
		void (*once)(void) = special;

		special = NULL;
		once();
	} else {
		queue_done(0);
	}
	return (ssize_t)len;
}

static ssize_t put(struct msghdr *msg, const void *data, size_t len,
		   uint32_t from)
{
	struct sockaddr_nl *addr = msg->msg_name;

	last_buf_size = msg->msg_iov->iov_len;
	CHECK(len <= last_buf_size);
	memcpy(msg->msg_iov->iov_base, data, len);
	*addr = (struct sockaddr_nl){ .nl_pid = from };
	msg->msg_namelen = sizeof(*addr);
	msg->msg_flags = 0;
	return (ssize_t)len;
}

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags UNUSED)
{
	struct datagram *d = &queue[read_cnt];
	struct nlmsgerr body = { .error = answer_error };
	struct message m;

	fd -= moved_by;
	CHECK(fd == EVENT_FD || fd == REQUEST_FD);
	if (fd == REQUEST_FD && answer.nlmsg_type) {
		msg_begin(&m, NLMSG_ERROR, &body, sizeof(body));
		m.head.nlmsg_seq = answer.nlmsg_seq;
		answer.nlmsg_type = 0;
		return put(msg, &m, m.head.nlmsg_len, 0);
	}
	if (fd == REQUEST_FD || read_cnt == queued_cnt) {
		errno = EAGAIN;
		return -1;
	}
	read_cnt++;
	if (d->error) {
		errno = d->error;
		return -1;
	}
	if (d->is_cut) {
		put(msg, &d->m, d->m.head.nlmsg_len, 0);
		msg->msg_flags = MSG_TRUNC;
		return (ssize_t)msg->msg_iov->iov_len;
	}
	return put(msg, &d->m, d->m.head.nlmsg_len + d->rest, d->from);
}

static struct net_view view;
static struct netlink nl;
static struct real_calls genuine;

static void set_up(void)
{
	static const struct netlink_params params = { 0 };

	genuine = real;
	real.send = fake_send;
	real.recvmsg = fake_recvmsg;
	queued_cnt = read_cnt = asked_cnt = open_cnt = 0;
	special = NULL;
	net_view_init(&view, 0);
	CHECK_EQ(netlink_open(&nl, &libnl_ops, &view, &params), 0);
	CHECK_EQ(open_cnt, 2);
}

static void tear_down(void)
{
	netlink_close(&nl);
	CHECK_EQ(open_cnt, 0);
	net_view_destroy(&view);
	real = genuine;
}

/* Reads until nothing is left; what the last call said. */
static int poll_all(void)
{
	int rc, cnt = 0;

	while ((rc = netlink_poll(&nl)) > 0)
		CHECK(++cnt < 100);
	return rc;
}

static unsigned times_asked(uint16_t type)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < asked_cnt; i++)
		cnt += asked[i] == type;
	return cnt;
}

static void at(uint16_t type, void (*what)(void))
{
	special_type = type;
	special = what;
}

TEST(reads_all_tables_once_and_in_order)
{
	static const uint16_t order[] = { RTM_GETLINK, RTM_GETADDR,
					  RTM_GETROUTE, RTM_GETRULE,
					  RTM_GETNEIGH, RTM_GETNETCONF };

	set_up();
	CHECK(!netlink_is_synced(&nl));
	CHECK_EQ(poll_all(), 0);
	CHECK(netlink_is_synced(&nl));
	CHECK_EQ(asked_cnt, ARRAY_LEN(order));
	for (unsigned i = 0; i < asked_cnt; i++)
		CHECK_EQ(asked[i], order[i]);
	CHECK_EQ(netlink_counts(&nl)->syncs, 1);
	CHECK_EQ(netlink_counts(&nl)->repeats, 0);
	tear_down();
}

static void interrupt(void)
{
	queue_rule(true, NLM_F_MULTI | NLM_F_DUMP_INTR);
	queue_done(0);
}

TEST(an_interrupted_reading_is_repeated)
{
	set_up();
	at(RTM_GETRULE, interrupt);
	CHECK_EQ(poll_all(), 0);
	CHECK(netlink_is_synced(&nl));
	CHECK_EQ(times_asked(RTM_GETRULE), 2);
	CHECK_EQ(times_asked(RTM_GETLINK), 1);
	CHECK_EQ(netlink_counts(&nl)->repeats, 1);
	/* The second time it was not there. */
	CHECK_EQ(view.policies.policy_cnt, 0);
	tear_down();
}

static void event_within(void)
{
	queue_rule(false, NLM_F_CREATE);
	queue_rule(true, NLM_F_MULTI);
	queue_done(0);
}

static void one_rule(void)
{
	queue_rule(true, NLM_F_MULTI);
	queue_done(0);
}

static void event_within_then_one(void)
{
	event_within();
	at(RTM_GETRULE, one_rule);
}

TEST(a_rule_told_while_rules_are_read_is_not_two)
{
	set_up();
	at(RTM_GETRULE, event_within_then_one);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(times_asked(RTM_GETRULE), 2);
	CHECK_EQ(view.policies.policy_cnt, 1);
	tear_down();
}

/* An event about a neighbour. */
static void queue_neigh(uint16_t type)
{
	struct {
		struct ndmsg head;
		struct nlattr dst;
		uint8_t addr[4];
	} body = { .head = { .ndm_family = AF_INET, .ndm_ifindex = 3, .ndm_state = NUD_STALE },
		   .dst = { .nla_len = sizeof(body.dst) + 4, .nla_type = NDA_DST },
		   .addr = { 10, 0, 0, 2 } };

	queue_one(type, 0, false, &body, sizeof(body));
}

static void neighbour_goes(void)
{
	queue_neigh(RTM_DELNEIGH);
	queue_done(0);
	special_type = 0;
}

static void neighbour_comes(void)
{
	queue_neigh(RTM_NEWNEIGH);
	queue_done(0);
}

/* What is yet to be shown may be older. What comes is remembered (nl/net_feed.c). */
TEST(a_reading_from_which_something_goes_is_repeated)
{
	set_up();
	at(RTM_GETNEIGH, neighbour_goes);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(times_asked(RTM_GETNEIGH), 2);
	tear_down();
	set_up();
	at(RTM_GETNEIGH, neighbour_comes);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(times_asked(RTM_GETNEIGH), 1);
	CHECK_EQ(view.neighs.by_addr.cnt, 1);
	tear_down();
	/* of another table */
	set_up();
	at(RTM_GETROUTE, neighbour_goes);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(times_asked(RTM_GETROUTE), 1);
	CHECK_EQ(times_asked(RTM_GETNEIGH), 1);
	tear_down();
}

static void long_table(void)
{
	for (int i = 0; i < 8; i++)
		queue_one(NLMSG_NOOP, NLM_F_MULTI, true, NULL, 0)->rest = 20000;
	queue_done(0);
}

/* The caller gives its lock away in between. */
TEST(a_long_table_takes_several_calls)
{
	unsigned before, most = 0;
	int rc;

	set_up();
	at(RTM_GETRULE, long_table);
	do {
		before = read_cnt;
		rc = netlink_poll(&nl);
		most = MAX(most, read_cnt - before);
	} while (rc > 0);
	CHECK_EQ(rc, 0);
	CHECK(netlink_is_synced(&nl));
	CHECK_EQ(most, 2);
	tear_down();
}

static int loss;

static void loss_within(void)
{
	queue[queued_cnt++] = (struct datagram){ .error = loss };
	queue_done(0);
}

static void starts_over(int error)
{
	set_up();
	loss = error;
	at(RTM_GETROUTE, loss_within);
	CHECK_EQ(poll_all(), 0);
	CHECK(netlink_is_synced(&nl));
	CHECK_EQ(times_asked(RTM_GETLINK), 2);
	CHECK_EQ(times_asked(RTM_GETROUTE), 2);
	CHECK_EQ(times_asked(RTM_GETRULE), 1);
	CHECK_EQ(netlink_counts(&nl)->overruns, 1);
	CHECK_EQ(netlink_counts(&nl)->syncs, 1);
	tear_down();
}

/* The kernel had no room for a message, or no memory. */
TEST(an_overrun_within_a_reading_starts_over)
{
	starts_over(ENOBUFS);
	starts_over(ENOMEM);
}

TEST(a_message_too_large_is_lost_and_makes_room)
{
	struct datagram *d;
	size_t first_size;

	set_up();
	CHECK_EQ(poll_all(), 0);
	first_size = last_buf_size;
	d = queue_one(RTM_NEWLINK, 0, false, "", 0);
	d->is_cut = true;
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(times_asked(RTM_GETLINK), 2);
	CHECK_EQ(last_buf_size, 2 * first_size);
	tear_down();
}

TEST(others_are_not_heard)
{
	set_up();
	CHECK_EQ(poll_all(), 0);
	queue_rule(false, 0);
	queue[queued_cnt - 1].from = 77;
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(view.policies.policy_cnt, 0);
	CHECK_EQ(netlink_counts(&nl)->rejects, 1);
	queue_rule(false, 0);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(view.policies.policy_cnt, 1);
	tear_down();
}

static void missing_table(void)
{
	queue_error(-EOPNOTSUPP);
}

static void busy(void)
{
	queue_error(-EBUSY);
}

static void refuse(void)
{
	queue_error(-EPERM);
}

static void give_up(void)
{
	queue_done(-EINVAL);
}

TEST(refusals)
{
	set_up();
	at(RTM_GETRULE, missing_table);
	CHECK_EQ(poll_all(), 0);
	CHECK(netlink_is_synced(&nl));
	CHECK_EQ(times_asked(RTM_GETRULE), 1);
	tear_down();

	set_up();
	at(RTM_GETRULE, busy);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(times_asked(RTM_GETRULE), 2);
	tear_down();

	set_up();
	at(RTM_GETRULE, refuse);
	CHECK_EQ(poll_all(), -EPERM);
	tear_down();

	set_up();
	at(RTM_GETRULE, give_up);
	CHECK_EQ(poll_all(), -EINVAL);
	tear_down();
}

TEST(what_several_events_ask_for_is_read_once)
{
	struct ifinfomsg head = { .ifi_index = 3 };

	set_up();
	CHECK_EQ(poll_all(), 0);
	for (int i = 0; i < 5; i++)
		queue_one(RTM_DELLINK, 0, false, &head, sizeof(head));
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(times_asked(RTM_GETROUTE), 2);
	CHECK_EQ(times_asked(RTM_GETLINK), 1);
	CHECK_EQ(netlink_counts(&nl)->syncs, 1);
	tear_down();
}

TEST(a_dead_socket_is_an_error)
{
	set_up();
	CHECK_EQ(poll_all(), 0);
	queue[queued_cnt++] = (struct datagram){ .error = EBADF };
	CHECK_EQ(poll_all(), -EBADF);
	tear_down();
}

TEST(answers_to_requests)
{
	struct ip_addr a = addr("10.0.0.2");

	set_up();
	answer_error = -EPERM;
	CHECK_EQ(netlink_resolve(&nl, 3, &a), -EPERM);
	CHECK_EQ(last_request.nlmsg_type, RTM_NEWNEIGH);
	answer_error = 0;
	CHECK_EQ(netlink_resolve(&nl, 3, &a), 0);
	CHECK_EQ(netlink_counts(&nl)->resolves, 2);
	answer_error = -ENODEV;
	CHECK_EQ(netlink_read_link(&nl, 3), -ENODEV);
	tear_down();
}

TEST(a_path_that_the_kernel_does_not_confirm_is_forgotten)
{
	struct path_mtu_info info = { addr("10.0.0.2"), 3, addr("10.0.0.1"),
				      1000, false };
	uint64_t gen;

	set_up();
	netlink_check_path(&nl);
	CHECK(last_request.nlmsg_type != RTM_GETROUTE);
	CHECK_EQ(path_mtu_tab_set(&view.path_mtus, &info), 1);
	gen = net_view_gen(&view);
	answer_error = -ENETUNREACH;
	netlink_check_path(&nl);
	CHECK_EQ(last_request.nlmsg_type, RTM_GETROUTE);
	CHECK_EQ(last_request.nlmsg_len,
		 NLMSG_LENGTH(sizeof(struct rtmsg)) + 3 * 8);
	CHECK_EQ(view.path_mtus.cnt, 0);
	CHECK(net_view_gen(&view) != gen);
	tear_down();
}

/* What a message says that is cut, or that lies, is not believed; the rest is. */
TEST(nonsense_is_skipped_and_counted)
{
	struct datagram *d;

	set_up();
	CHECK_EQ(poll_all(), 0);
	/* a link's event without a link */
	queue_one(RTM_NEWLINK, 0, false, "abc", 3);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(netlink_counts(&nl)->rejects, 1);
	/* bytes behind the last message */
	queue_rule(false, NLM_F_CREATE);
	d = &queue[queued_cnt - 1];
	d->rest = 10;
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(netlink_counts(&nl)->rejects, 2);
	CHECK_EQ(view.policies.policy_cnt, 1);
	/* an error that is none, for nobody */
	queue_one(NLMSG_ERROR, 0, false, "", 0);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(netlink_counts(&nl)->rejects, 3);
	CHECK(netlink_is_synced(&nl));
	CHECK_EQ(netlink_counts(&nl)->syncs, 1);
	tear_down();
}

static void cut_error(void)
{
	int error = -EPERM;

	queue_one(NLMSG_ERROR, 0, true, &error, sizeof(error));
}

static void positive_error(void)
{
	queue_error(EPERM);
}

static void positive_done(void)
{
	queue_done(EPERM);
}

TEST(a_reading_that_ends_in_nonsense_is_repeated)
{
	static void (*const ends[])(void) = { cut_error, positive_error,
					      positive_done };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		set_up();
		at(RTM_GETRULE, ends[i]);
		CHECK_EQ(poll_all(), 0);
		CHECK_EQ(times_asked(RTM_GETRULE), 2);
		CHECK_EQ(netlink_counts(&nl)->rejects, 1);
		CHECK(netlink_is_synced(&nl));
		tear_down();
	}
}

/* The fd may be moved at any time: what counts is where it is at the call. */
TEST(the_fd_is_taken_from_its_place_at_each_call)
{
	answer_error = 0;
	set_up();
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(netlink_event_fd(&nl), EVENT_FD);
	move_fds();
	CHECK_EQ(netlink_event_fd(&nl), EVENT_FD + MOVED_BY);
	queue_rule(false, NLM_F_CREATE);
	CHECK_EQ(poll_all(), 0);
	CHECK_EQ(view.policies.policy_cnt, 1);
	CHECK_EQ(netlink_read_link(&nl, 3), 0);
	tear_down();
	moved_by = 0;
}
