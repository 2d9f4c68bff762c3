/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library's side of the connection, with a module made up here. */
#include "nl/netlink.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/nl/build.h"

/* What poll returns, in order; the last one again and again. */
static const int *poll_results;
static unsigned poll_cnt;
static bool is_synced_after_polls;
/* poll stands still between these */
static sem_t has_entered, may_leave;
static bool stands_still;
static unsigned sleep_in_poll_ms;

static int fake_open(const struct netlink_params *params UNUSED,
		     const struct net_sink *sink UNUSED, void *ctx UNUSED,
		     struct netlink_conn **conn_out)
{
	static int conn;

	*conn_out = (struct netlink_conn *)&conn;
	return 0;
}

static void fake_close(struct netlink_conn *conn UNUSED)
{
}

static int fake_event_fd(const struct netlink_conn *conn UNUSED)
{
	/* of which poll() says nothing */
	return -1;
}

static int fake_poll(struct netlink_conn *conn UNUSED)
{
	if (stands_still) {
		sem_post(&has_entered);
		sem_wait(&may_leave);
		return 0;
	}
	poll_cnt++;
	usleep(sleep_in_poll_ms * 1000);
	return *poll_results ? *poll_results++ : 0;
}

static bool fake_is_synced(const struct netlink_conn *conn UNUSED)
{
	return is_synced_after_polls && !*poll_results;
}

static struct path_mtu_info asked_about;

static int fake_read_path(struct netlink_conn *conn UNUSED,
			  const struct path_mtu_info *about)
{
	asked_about = *about;
	return -ENETUNREACH;
}

static const struct netlink_ops ops = {
	.open = fake_open,
	.close = fake_close,
	.event_fd = fake_event_fd,
	.poll = fake_poll,
	.is_synced = fake_is_synced,
	.read_path = fake_read_path,
};

static struct net_view view;
static struct netlink nl;

static void set_up(const int *results)
{
	static const struct netlink_params params = { 0 };

	poll_results = results;
	poll_cnt = 0;
	is_synced_after_polls = true;
	net_view_init(&view, 0);
	CHECK_EQ(netlink_open(&nl, &ops, &view, &params), 0);
}

static void tear_down(void)
{
	netlink_close(&nl);
	/* it is closed */
	netlink_close(&nl);
	net_view_destroy(&view);
}

TEST(waiting_polls_until_all_is_read)
{
	static const int three_and_none[] = { 1, 1, 1, 0 };
	static const int broken[] = { 1, -EBADF, 0 };
	static const int none[] = { 0 };

	set_up(three_and_none);
	CHECK_EQ(netlink_wait_synced(&nl, 1000), 0);
	CHECK_EQ(poll_cnt, 3);
	tear_down();

	set_up(broken);
	CHECK_EQ(netlink_wait_synced(&nl, 1000), -EBADF);
	tear_down();

	set_up(none);
	is_synced_after_polls = false;
	CHECK_EQ(netlink_wait_synced(&nl, 1), -ETIMEDOUT);
	tear_down();
}

/* What came while it stood still, or the kernel did, is read all the same. */
TEST(who_is_late_reads_what_is_there)
{
	static const int two_and_none[] = { 1, 1, 0 };

	set_up(two_and_none);
	sleep_in_poll_ms = 310;
	CHECK_EQ(netlink_wait_synced(&nl, 300), 0);
	sleep_in_poll_ms = 0;
	tear_down();
}

TEST(a_path_is_asked_for_until_nobody_knows_it)
{
	static const int none[] = { 0 };
	struct path_mtu_info info = { addr("10.0.0.2"), 3, addr("10.0.0.1"),
				      1000, false };
	uint64_t gen;

	set_up(none);
	netlink_check_path(&nl);
	CHECK_EQ(asked_about.ifindex, 0);
	CHECK_EQ(path_mtu_tab_set(&view.path_mtus, &info), 1);
	gen = net_view_gen(&view);
	netlink_check_path(&nl);
	CHECK(ip_addr_eq(&asked_about.dst, &info.dst));
	CHECK_EQ(view.path_mtus.cnt, 0);
	CHECK(net_view_gen(&view) != gen);
	tear_down();
}

static void *poll_once(void *arg UNUSED)
{
	CHECK_EQ(netlink_poll(&nl), 0);
	return NULL;
}

static _Atomic bool is_forking;

static void *fork_once(void *arg UNUSED)
{
	netlink_before_fork();
	atomic_store(&is_forking, true);
	netlink_after_fork();
	return NULL;
}

/* Who would fork while libnl has a lock would leave the child with a lock that
 * nobody gives back. */
TEST(a_fork_waits_for_the_call_that_is_under_way)
{
	static const int none[] = { 0 };
	struct timespec while_it_may_go_wrong = { 0, 20 * NS_PER_MS };
	pthread_t poller, forker;

	set_up(none);
	CHECK_EQ(sem_init(&has_entered, 0, 0), 0);
	CHECK_EQ(sem_init(&may_leave, 0, 0), 0);
	stands_still = true;
	CHECK_EQ(pthread_create(&poller, NULL, poll_once, NULL), 0);
	sem_wait(&has_entered);
	CHECK_EQ(pthread_create(&forker, NULL, fork_once, NULL), 0);
	nanosleep(&while_it_may_go_wrong, NULL);
	CHECK(!atomic_load(&is_forking));
	sem_post(&may_leave);
	pthread_join(poller, NULL);
	pthread_join(forker, NULL);
	CHECK(atomic_load(&is_forking));
	stands_still = false;
	tear_down();
}

TEST(a_child_may_call_again)
{
	static const int none[] = { 0 };
	int status;
	pid_t pid;

	set_up(none);
	netlink_before_fork();
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		netlink_forked();
		alarm(10);
		_exit(netlink_poll(&nl) == 0 ? 0 : 1);
	}
	netlink_after_fork();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(netlink_poll(&nl), 0);
	tear_down();
}
