/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a process gets its network, on modules that do what a case says. A network is
 * made once and stays, so each case has a process of its own.
 */
#include "config.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <linux/netfilter.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
/* of the default build; the debug library has all levels */
#undef LOG_LEVEL_COMPILED
#define LOG_LEVEL_COMPILED LOG_LEVEL_DEBUG

#include "core/network.c"
#include "core/rules_file.h"
#include "dev/fake/fake.h"
#include "os/file.h"
#include "os/thread.h"
#include "tests/support/test.h"

/* -- modules ------------------------------------------------------------------------ */

static struct {
	/* 0, or why it cannot be opened */
	int backend_err, netlink_err, conn_err;
	/* who makes the network is held up here */
	unsigned slow_us;
	/* a filter of packets */
	_Atomic bool has_chain;
	/* what was asked for, and what there is */
	_Atomic unsigned backend_cnt, netlink_cnt, conn_cnt;
	int conns, event_fd;
	char names[64];
	struct xdp_params params;
} module;

static char said[4096];

static void keep(void *ctx UNUSED, enum log_level level UNUSED, const char *line,
		 size_t len)
{
	size_t at = strlen(said);

	if (at + len < sizeof(said)) {
		memcpy(said + at, line, len);
		said[at + len] = '\0';
	}
}

static int open_conn(const struct netlink_params *params UNUSED,
		     const struct net_sink *sink UNUSED, void *ctx UNUSED,
		     struct netlink_conn **conn_out)
{
	module.conn_cnt++;
	if (module.conn_err)
		return module.conn_err;
	module.conns++;
	*conn_out = (void *)&module;
	return 0;
}

static void close_conn(struct netlink_conn *conn UNUSED)
{
	module.conns--;
}

static int event_fd(const struct netlink_conn *conn UNUSED)
{
	return module.event_fd;
}

static int poll_nothing(struct netlink_conn *conn UNUSED)
{
	return 0;
}

static bool is_synced(const struct netlink_conn *conn UNUSED)
{
	return true;
}

static int read_nothing(firewall_take_fn *take UNUSED, void *ctx UNUSED)
{
	return 0;
}

static int read_chains(firewall_take_fn *take, void *ctx)
{
	static const struct firewall_row chain = {
		.kind = FIREWALL_CHAIN,
		.family = NFPROTO_IPV4,
		.has_hook = true,
		.hook = NF_INET_LOCAL_IN,
		.table = "guard",
		.chain = "in",
	};

	if (!module.has_chain)
		return 0;
	take(ctx, &chain);
	/* stays open, where it is seen */
	(void)!real.open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

static const struct netlink_ops netlink = {
	.open = open_conn,
	.close = close_conn,
	.event_fd = event_fd,
	.poll = poll_nothing,
	.is_synced = is_synced,
	.read_chains = read_chains,
	.read_policies = read_nothing,
	.read_filters = read_nothing,
};

static struct backend backend = { .name = "script" };

int module_open(enum module_kind kind, const char *name, const void **exports_out)
{
	CHECK_EQ(kind, MODULE_NETLINK);
	CHECK_STR(name, "nl");
	module.netlink_cnt++;
	*exports_out = &netlink;
	return module.netlink_err;
}

bool module_find_program(const char *name UNUSED, char *path UNUSED,
			 size_t size UNUSED)
{
	return false;
}

int module_open_backend(const char *name, const void *options,
			struct backend **backend_out)
{
	module.backend_cnt++;
	strcat(strcat(module.names, name), ";");
	module.params = *(const struct xdp_params *)options;
	usleep(module.slow_us);
	*backend_out = &backend;
	return module.backend_err;
}

/* -- a case ------------------------------------------------------------------------- */

static struct options options;
static struct rules *rules;

/* The case goes on in a process of its own. */
static void begin(void)
{
	struct options_facts facts = { .pid = getpid() };

	/* it starts threads in processes that were forked */
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	test_apart();
	real_resolve();
	log_set_sink(keep, NULL);
	atomic_store(&log_config.level, LOG_LEVEL_INFO);
	CHECK_EQ(options_parse(&options, (char *[]){ NULL }, &facts, NULL, NULL),
		 0);
	options.io_uring = IO_URING_IGNORE;
	module.event_fd = eventfd(0, EFD_CLOEXEC);
	CHECK(module.event_fd >= 0);
	rules = rules_create();
	CHECK(rules);
}

static void configure(void)
{
	network_configure(&options, rules, "program");
}

/* What a child ends with, or the status that `run` gives it. */
static int status_of(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run());
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static struct net *get(enum reason *reason_out)
{
	struct net *net;

	os_enter();
	net = network_get(reason_out);
	os_leave();
	return net;
}

static unsigned thread_cnt(void)
{
	char text[4096];
	ssize_t n = file_peek("/proc/self/status", text, sizeof(text) - 1);
	const char *at;

	text[MAX(n, 0)] = '\0';
	at = strstr(text, "\nThreads:");
	return at ? (unsigned)atoi(at + 9) : 0;
}

static unsigned fd_cnt(void)
{
	unsigned cnt = 0;

	for (int fd = 0; fd < 8192; fd++) {
		cnt += real.fcntl(fd, F_GETFD) >= 0;
		/* a number that looks closed to the program, and is */
		CHECK(!fd_table_has(fd) || real.fcntl(fd, F_GETFD) >= 0);
	}
	return cnt;
}

/* Why a socket would stay with the kernel. */
static enum reason reason_of_socket(void)
{
	int reason = REASON_MEMORY, fd = real.socket(AF_INET, SOCK_DGRAM, 0);
	struct fd_object *obj;

	os_enter();
	obj = network_make_socket(fd, AF_INET, SOCK_DGRAM, 0, &reason);
	if (obj)
		reason = REASON_NONE;
	fd_object_put(obj);
	os_leave();
	real.close(fd);
	return (enum reason)reason;
}

/* There is none, for this reason, and nobody tries again. */
static void expect_none(enum reason expected)
{
	unsigned backends, conns;
	enum reason reason = REASON_NONE;

	CHECK(!get(&reason));
	CHECK_EQ(reason, expected);
	backends = module.backend_cnt;
	conns = module.conn_cnt;
	CHECK(!get(&reason));
	CHECK_EQ(reason, expected);
	CHECK_EQ(module.backend_cnt, backends);
	CHECK_EQ(module.conn_cnt, conns);
	CHECK_EQ(reason_of_socket(), expected);
	CHECK(!network_is_made());
	CHECK_EQ(module.conns, 0);
	CHECK_EQ(thread_cnt(), 1);
}

/* -- making it ---------------------------------------------------------------------- */

TEST(it_is_made_when_it_is_wanted)
{
	enum reason reason;
	struct net *net;

	begin();
	options.rx_wre = 123;
	configure();
	CHECK_EQ(module.backend_cnt + module.netlink_cnt + module.conn_cnt, 0);
	CHECK_EQ(reason_of_socket(), REASON_NONE);
	CHECK(!network_is_made());
	net = get(&reason);
	CHECK(net && network_is_made());
	CHECK_EQ(reason, REASON_NONE);
	CHECK_STR(module.names, "xdp;");
	CHECK_EQ(module.params.rx_post_first, 123);
	CHECK_EQ(thread_cnt(), 2);
	/* and only once */
	CHECK(get(&reason) == net);
	CHECK_EQ(module.backend_cnt, 1);
	CHECK_EQ(module.netlink_cnt, 1);
	CHECK_EQ(module.conn_cnt, 1);
}

TEST(without_a_back_end)
{
	begin();
	configure();
	module.backend_err = -ENOENT;
	expect_none(REASON_NO_BACK_END);
	CHECK(strstr(said, reason_why(REASON_NO_BACK_END)));
	/* what it would need next is left alone */
	CHECK_EQ(module.netlink_cnt, 0);
}

TEST(without_the_netlink_module)
{
	begin();
	configure();
	module.netlink_err = -ENOENT;
	expect_none(REASON_NO_NETLINK);
	CHECK(strstr(said, reason_why(REASON_NO_NETLINK)));
	CHECK(strstr(said, reason_remedy(REASON_NO_NETLINK)));
	CHECK_EQ(module.conn_cnt, 0);
}

TEST(without_the_kernels_tables)
{
	begin();
	configure();
	module.conn_err = -EPERM;
	expect_none(REASON_NETLINK);
	CHECK(strstr(said, "cannot follow the kernel's network (Operation not permitted)"));
}

static int lowest_free(void)
{
	int fd = real.open("/dev/null", O_RDONLY | O_CLOEXEC);

	real.close(fd);
	return fd;
}

/* Those that are there go back, and there are no others from then on. To look takes no number
 * that the program may count on. */
TEST(a_filter_that_comes_later)
{
	/* which our own thread does not meet */
	const uint64_t later_ns = UINT64_MAX / 4;
	int fd, lowest, reason = REASON_NONE;
	enum reason why = REASON_NONE;
	struct fd_object *obj;
	char text[64];

	begin();
	configure();
	CHECK(get(&why));
	if (firewall_read(&netlink, true, text, sizeof(text)) > 0)
		test_skip("this machine has filters of its own");
	/* our thread looks as well */
	network.firewall_due_ns = later_ns;
	options.respect_firewall = true;
	os_enter();
	fd = real.socket(AF_INET, SOCK_DGRAM, 0);
	obj = network_make_socket(fd, AF_INET, SOCK_DGRAM, 0, &reason);
	CHECK(obj);
	CHECK_EQ(fd_table_install(fd, obj), 0);
	heed_firewall(later_ns);
	os_leave();
	CHECK(get(&why));
	module.has_chain = true;
	lowest = lowest_free();
	os_enter();
	heed_firewall(2 * later_ns);
	os_leave();
	CHECK_EQ(lowest_free(), lowest);
	CHECK(!get(&why));
	CHECK_EQ(why, REASON_FIREWALL);
	CHECK_EQ(reason_of_socket(), REASON_FIREWALL);
	CHECK_EQ(sock_of(obj)->reason, REASON_FIREWALL);
	CHECK(strstr(said, "not seen by: nftables ip guard in; sockets go back"));
}

/* -- a step fails ------------------------------------------------------------------- */

/* So many fds more may be opened. */
static void allow_fds(unsigned cnt)
{
	struct rlimit limit;
	unsigned free_cnt = 0;
	int fd = 0;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* low numbers come first */
	for (; free_cnt < cnt || real.fcntl(fd, F_GETFD) >= 0; fd++)
		free_cnt += real.fcntl(fd, F_GETFD) < 0;
	limit.rlim_cur = (rlim_t)fd;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static unsigned allowed;

/* 0: it was made; 2: it was not, and nothing stayed behind */
static int make_with_few_fds(void)
{
	unsigned before;
	enum reason reason;

	configure();
	before = fd_cnt();
	allow_fds(allowed);
	if (get(&reason))
		return 0;
	allow_fds(100);
	expect_none(REASON_NETLINK);
	CHECK_EQ(fd_cnt(), before);
	return 2;
}

/* Wherever it fails for lack of an fd: in the network, its stack, or our thread. */
TEST(what_fails_half_way_leaves_nothing_behind)
{
	int status = 2;

	begin();
	for (allowed = 0; status == 2; allowed++) {
		CHECK(allowed < 64);
		status = status_of(make_with_few_fds);
	}
	CHECK_EQ(status, 0);
	/* it did fail at several places */
	CHECK(allowed > 3);
}

static int fail_for_good(void)
{
	enum reason reason;

	options.exception_handling = -2;
	module.backend_err = -ENOENT;
	configure();
	(void)get(&reason);
	return 0;
}

/* VMA_EXCEPTION_HANDLING=-2 */
TEST(the_process_ends_if_that_is_wished)
{
	begin();
	CHECK_EQ(status_of(fail_for_good), EXIT_FAILURE);
}

/* -- threads, forks, the end ---------------------------------------------------------- */

static void *get_it(void *arg)
{
	enum reason reason;

	*(struct net **)arg = get(&reason);
	return NULL;
}

TEST(threads_that_want_it_at_once)
{
	enum { THREADS = 8 };
	struct net *nets[THREADS] = { NULL };
	pthread_t threads[THREADS];

	begin();
	module.slow_us = 20000;
	configure();
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, get_it, &nets[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
		CHECK(nets[i] && nets[i] == nets[0]);
	}
	CHECK_EQ(module.backend_cnt, 1);
	CHECK_EQ(module.conn_cnt, 1);
	CHECK_EQ(thread_cnt(), 2);
}

/* The child has the modules, and makes a network of its own when it wants one. */
static void be_child(struct net *of_parent)
{
	enum reason reason;

	network_forked();
	CHECK(!network_is_made());
	CHECK_EQ(thread_cnt(), 1);
	CHECK_EQ(reason_of_socket(), REASON_NONE);
	CHECK(get(&reason) && get(&reason) != of_parent);
	CHECK_EQ(module.backend_cnt, 1);
	CHECK_EQ(module.netlink_cnt, 1);
	CHECK_EQ(module.conn_cnt, 2);
	CHECK_EQ(thread_cnt(), 2);
	_exit(0);
}

TEST(a_child_makes_its_own)
{
	enum reason reason;
	struct net *net;
	int status;
	pid_t pid;

	begin();
	configure();
	net = get(&reason);
	CHECK(net);
	os_enter();
	network_before_fork();
	pid = fork();
	os_leave();
	if (pid == 0)
		be_child(net);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK(get(&reason) == net);
	CHECK_EQ(module.conn_cnt, 1);
}

static void be_child_of_failure(void)
{
	enum reason reason;

	network_forked();
	module.conn_err = 0;
	CHECK(get(&reason));
	_exit(0);
}

/* What failed in the parent may succeed in the child. */
TEST(a_child_tries_again)
{
	int status;
	pid_t pid;

	begin();
	configure();
	module.conn_err = -EPERM;
	expect_none(REASON_NETLINK);
	pid = fork();
	if (pid == 0)
		be_child_of_failure();
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

TEST(nothing_runs_after_the_stop)
{
	enum reason reason;

	begin();
	configure();
	CHECK(get(&reason));
	CHECK_EQ(thread_cnt(), 2);
	os_enter();
	network_stop();
	CHECK_EQ(thread_cnt(), 1);
	/* neither waits for a lock nor looks for sockets */
	network_before_fork();
	network_before_exit();
	os_leave();
}

/* What the device was told of the end of the process. */
static enum { TOLD_NOTHING, TOLD_IT_IS_LEFT, TOLD_ENDS, TOLD_GOES_ON } told, was_told;

static void hear(struct dev *dev UNUSED, enum dev_end how_far)
{
	was_told = told;
	told = how_far == DEV_GOES_ON ? TOLD_GOES_ON :
	       how_far == DEV_ENDS    ? TOLD_ENDS :
					TOLD_IT_IS_LEFT;
}

static unsigned rights_gone;

static void hear_of_rights(struct dev *dev UNUSED)
{
	rights_gone++;
}

/* A network with a device in memory. */
static void begin_with_device(void)
{
	static const struct fake_cable_params cable = { .seed = 1 };
	static const struct fake_params params = {
		.ifindex = 7, .mtu = 1500, .frame_cnt = 100, .frame_size = 2048, .fd = -1,
	};
	const struct flow_key key = { .local_port = htobe16(7) };
	static struct dev_ops ops;
	enum reason reason;
	struct dev *dev;

	begin();
	CHECK_EQ(fake_dev_create_loop(fake_cable_create(&cable), &params, &dev), 0);
	ops = *dev->ops;
	ops.ending = hear;
	ops.rights_go = hear_of_rights;
	dev->ops = &ops;
	network_set_local_dev(dev);
	configure();
	CHECK(get(&reason));
	os_enter();
	net_control_acquire(network_get_made());
	CHECK(!net_is_local_locked(network_get_made(), &key, IPPROTO_TCP));
	net_control_release(network_get_made());
	CHECK_EQ(told, TOLD_NOTHING);
}

TEST(devices_hear_that_rights_go)
{
	begin_with_device();
	network_before_rights_go();
	CHECK_EQ(rights_gone, 1);
	network_stop();
	network_before_rights_go();
	CHECK_EQ(rights_gone, 1);
	os_leave();
}

TEST(devices_hear_of_the_end_of_the_process)
{
	begin_with_device();
	network_before_exit();
	CHECK_EQ(was_told, TOLD_IT_IS_LEFT);
	CHECK_EQ(told, TOLD_ENDS);
	os_leave();
}

TEST(devices_hear_of_an_exec_and_that_it_failed)
{
	begin_with_device();
	network_before_exec();
	CHECK_EQ(was_told, TOLD_IT_IS_LEFT);
	CHECK_EQ(told, TOLD_ENDS);
	network_goes_on();
	CHECK_EQ(told, TOLD_GOES_ON);
	os_leave();
}

TEST(devices_hear_of_the_stop)
{
	begin_with_device();
	network_stop();
	CHECK_EQ(told, TOLD_ENDS);
	/* the filter of the process may forbid everything */
	told = TOLD_NOTHING;
	network_before_exit();
	network_before_exec();
	network_goes_on();
	CHECK_EQ(told, TOLD_NOTHING);
	os_leave();
}

TEST(the_end_of_a_child_is_its_own)
{
	begin_with_device();
	network_forked();
	network_before_exit();
	network_before_exec();
	CHECK_EQ(told, TOLD_NOTHING);
	os_leave();
}

/* -- what sockets are told ------------------------------------------------------------ */

TEST(rings_keep_sockets_with_the_kernel)
{
	enum reason reason;

	begin();
	options.io_uring = IO_URING_AUTO;
	configure();
	CHECK(get(&reason));
	rings_note();
	CHECK(!get(&reason));
	CHECK_EQ(reason, REASON_IO_URING);
}

TEST(rules_are_asked_by_role)
{
	static const char text[] = "use os udp_connect 10.0.0.0/8:53\n";
	char path[] = "/tmp/vma-network-XXXXXX", detail[STATS_DETAIL_SIZE] = "";
	struct sock_end dns = { .addr = ip_addr_from_v4(htobe32(0x0a010203)),
				.port = htobe16(53) };
	struct sock_end other = { .addr = dns.addr, .port = htobe16(54) };
	int fd = mkstemp(path);

	begin();
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	real.close(fd);
	CHECK_EQ(rules_file_read(rules, path, true), 0);
	unlink(path);
	configure();
	CHECK(is_kernel_by_rule(SOCK_UDP_CONNECT, NULL, &dns, detail));
	CHECK(strstr(detail, ":1: use os udp_connect"));
	CHECK(!is_kernel_by_rule(SOCK_UDP_CONNECT, NULL, &other, detail));
	CHECK(!is_kernel_by_rule(SOCK_UDP_RECEIVER, &dns, NULL, detail));
}

TEST(log_level_of_another_build_is_refused)
{
	struct stats_order order = { .wish = STATS_WISH_LOG_LEVEL,
				     .value = LOG_LEVEL_FINE };

	begin();
	CHECK_EQ(obey(&order), -ERANGE);
	CHECK_EQ(log_config.level, LOG_LEVEL_INFO);
	order.value = LOG_LEVEL_DEBUG;
	CHECK_EQ(obey(&order), 0);
	CHECK_EQ(log_config.level, LOG_LEVEL_DEBUG);
	order.value = LOG_LEVEL_ALL + 1;
	CHECK_EQ(obey(&order), -EINVAL);
}

TEST(libibverbs_is_readied_for_forks_by_wish)
{
	begin();
	CHECK(rdma_params_of(&options).may_fork);
	options.fork_support = false;
	CHECK(!rdma_params_of(&options).may_fork);
}
