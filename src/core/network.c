/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes the network of the process when it is needed (network.h). */
#include "config.h"

#include "core/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/tick_clock.h"
#include "conf/cpus.h"
#include "core/module.h"
#include "core/progress.h"
#include "core/rings.h"
#include "dev/rdma/rdma.h"
#include "dev/xdp/xdp.h"
#include "fd/fd_internal.h"
#include "fd/fd_visit.h"
#include "fd/right_keeper.h"
#include "iomux/mux.h"
#include "net/net.h"
#include "net/wait.h"
#include "nl/firewall.h"
#include "os/file.h"
#include "os/own_thread.h"
#include "os/real.h"
#include "os/signals.h"
#include "sock/sock_kinds.h"
#include "stats/stats_publish.h"

static struct {
	const struct options *options;
	const struct rules *rules;
	/* its name, for the rules */
	const char *program;
	struct dev *local_dev;

	struct mutex lock;
	/* NULL until it is made, then fixed */
	_Atomic(struct net *) net;
	/* Why there will be no network. Changes under the lock, but whoever makes a
	 * socket reads it without the lock. */
	_Atomic enum reason failure;
	/* the back ends; in the child of a fork they live on, while the network does
	 * not */
	struct backend *backends[NET_BACKENDS_MAX];
	unsigned backend_cnt;
	bool has_backends;
	/* NULL: not opened; it lives on in the same way */
	const struct netlink_ops *netlink;
	/* The network has been stopped, and nothing of it may run any more. */
	_Atomic bool is_over;
	_Atomic bool has_left_to_rings;
	/* whose `net` is */
	_Atomic pid_t pid;
	/* VMA_RESPECT_FIREWALL, for our thread: when it looks for filters next, and how often
	 * sockets have gone back because of one */
	uint64_t firewall_due_ns;
	unsigned firewall_cnt;
} network = { .lock = MUTEX_INIT(LOCK_RANK_NETWORK) };

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* -- rules ----------------------------------------------------------------------- */

static struct rules_end rules_end_of(const struct sock_end *end)
{
	return (struct rules_end){ end->addr, be16toh(end->port) };
}

static bool is_kernel_by_rule(enum sock_role role, const struct sock_end *local,
			      const struct sock_end *remote,
			      char detail[STATS_DETAIL_SIZE])
{
	static const enum rule_role roles[] = {
		[SOCK_UDP_RECEIVER] = RULE_UDP_RECEIVER,
		[SOCK_UDP_SENDER] = RULE_UDP_SENDER,
		[SOCK_UDP_CONNECT] = RULE_UDP_CONNECT,
		[SOCK_TCP_SERVER] = RULE_TCP_SERVER,
		[SOCK_TCP_CLIENT] = RULE_TCP_CLIENT,
	};
	struct rules_who who = { network.program,
				 network.options->application_id };
	struct rules_end local_end, remote_end;
	struct rules_verdict verdict;
	char text[RULE_TEXT_SIZE];

	if (local)
		local_end = rules_end_of(local);
	if (remote)
		remote_end = rules_end_of(remote);
	verdict = rules_match(network.rules, &who, roles[role],
			      local ? &local_end : NULL,
			      remote ? &remote_end : NULL);
	if (verdict.is_kernel)
		snprintf(detail, STATS_DETAIL_SIZE, "%s:%d: %s",
			 rule_source(verdict.rule), rule_line(verdict.rule),
			 rule_format(verdict.rule, text));
	return verdict.is_kernel;
}

/* -- making it --------------------------------------------------------------------- */

static uint16_t clamp_u16(int value)
{
	return (uint16_t)MIN(value, UINT16_MAX);
}

static struct rdma_params rdma_params_of(const struct options *o)
{
	return (struct rdma_params){
		.wish = o->ring == RING_MLX5  ? RDMA_WISH_MLX5 :
			o->ring == RING_VERBS ? RDMA_WISH_VERBS :
						RDMA_WISH_BEST,
		.rx_max = (uint32_t)o->rx_wre,
		.rx_batch = (uint32_t)o->rx_wre_batching,
		.is_kept_full = o->cq_keep_qp_full,
		.tx_max = (uint32_t)o->tx_wre,
		.tx_batch = (uint32_t)o->tx_wre_batching,
		.inline_max = (uint32_t)o->tx_max_inline,
		.dev_mem = (uint32_t)o->ring_dev_mem_tx,
		.has_tso = o->tso != TSO_OFF,
		.has_blue_flame = o->blue_flame,
		.moderation = {
			.cnt = o->cq_moderation ?
				       clamp_u16(o->cq_moderation_count) :
				       0,
			.us = o->cq_moderation ?
				      clamp_u16(o->cq_moderation_period) :
				      0,
		},
		.aim = {
			.interval_ns = (uint64_t)o->cq_aim_interval * NS_PER_MS,
			.max_cnt = clamp_u16(o->cq_aim_max_count),
			.max_us = clamp_u16(o->cq_aim_max_period),
			.rate = (uint32_t)o->cq_aim_rate,
		},
		.stamps = (enum rdma_stamps)o->hw_ts_conversion,
		.may_fork = o->fork_support,
	};
}

/* Without devices of that kind, their module and its libraries need not be opened. */
static bool may_be_rdma(const struct options *o)
{
	return o->ring == RING_MLX5 || o->ring == RING_VERBS ||
	       (o->ring == RING_AUTO && file_is_there("/sys/class/infiniband"));
}

static bool may_be_xdp(const struct options *o)
{
	return o->ring == RING_AUTO || o->ring == RING_XDP;
}

/* Opens each back end that is wanted and whose module is there. On each interface
 * they are tried in this order. */
static void open_backends(void)
{
	const struct options *o = network.options;
	const struct rdma_params rdma = rdma_params_of(o);
	const struct xdp_params xdp = {
		.mode = (enum xdp_wish)o->xdp_mode,
		.has_multi_buffer = o->xdp_multi_buffer,
		.rx_post_first = (uint32_t)o->rx_wre,
	};
	const struct {
		const char *name;
		const void *params;
		bool is_wanted;
	} list[] = {
		{ "rdma", &rdma, may_be_rdma(o) },
		{ "xdp", &xdp, may_be_xdp(o) },
	};

	_Static_assert(ARRAY_LEN(list) <= NET_BACKENDS_MAX, "room for all");
	if (network.has_backends)
		return;
	network.has_backends = true;
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (list[i].is_wanted &&
		    module_open_backend(
			    list[i].name, list[i].params,
			    &network.backends[network.backend_cnt]) == 0)
			network.backend_cnt++;
}

/* Opens the netlink module. False: there is none. */
static bool open_netlink(void)
{
	const void *exports;

	if (!network.netlink &&
	    module_open(MODULE_NETLINK, "nl", &exports) == 0)
		network.netlink = exports;
	return network.netlink;
}

static enum stack_lock_kind lock_kind(int thread_mode)
{
	switch (thread_mode) {
	case 0:
		return STACK_LOCK_BIASED;
	case 2:
		return STACK_LOCK_SLEEP;
	case 3:
		return STACK_LOCK_YIELD;
	default:
		return STACK_LOCK_SPIN;
	}
}

static bool leave_for_operator(struct fd_object *obj, int fd)
{
	obj->ops->leave(obj, fd, REASON_OPERATOR, STATS_BY_OPERATOR);
	return true;
}

static bool stays(struct fd_object *obj, int fd UNUSED)
{
	return obj->ops->stays(obj);
}

/* One, or all of them. What is opened later is accelerated as before. */
static int send_back(int fd)
{
	bool was_one, has_stayed;

	if (fd < 0) {
		log_info("Sockets go back to the kernel: %s",
			 reason_why(REASON_OPERATOR));
		(void)fd_visit(NULL, leave_for_operator);
		return fd_visit(NULL, stays) ? -EOPNOTSUPP : 0;
	}
	was_one = fd_visit_at(fd, NULL, leave_for_operator);
	has_stayed = fd_visit_at(fd, NULL, stays);
	if (has_stayed)
		return -EOPNOTSUPP;
	return was_one ? 0 : -EBADF;
}

/* Does what a reader of the statistics asks for. 0 or a negative errno. */
static int obey(const struct stats_order *order)
{
	switch (order->wish) {
	case STATS_WISH_ZERO:
		net_zero_stats(atomic_load(&network.net), order);
		return 0;
	case STATS_WISH_LOG_LEVEL:
		if (order->value < LOG_LEVEL_NONE ||
		    order->value > LOG_LEVEL_ALL)
			return -EINVAL;
		/* such lines are not in this build */
		if (order->value > LOG_LEVEL_COMPILED)
			return -ERANGE;
		atomic_store(&log_config.level, order->value);
		return 0;
	case STATS_WISH_LOG_DETAILS:
		if (order->value < 0 || order->value > LOG_DETAILS_TIME)
			return -EINVAL;
		atomic_store(&log_config.details, order->value);
		return 0;
	case STATS_WISH_KERNEL:
		return send_back(order->value);
	default:
		return -EINVAL;
	}
}

static bool leave_to_ring(struct fd_object *obj, int fd)
{
	obj->ops->leave(obj, fd, REASON_IO_URING, STATS_BY_RING);
	return false;
}

void network_leave_to_rings(void)
{
	if (!network.options || atomic_exchange(&network.has_left_to_rings, true))
		return;
	log_info("Sockets go back to the kernel: %s",
		 reason_why(REASON_IO_URING));
	fd_visit(NULL, leave_to_ring);
}

static bool leave_to_firewall(struct fd_object *obj, int fd)
{
	obj->ops->leave(obj, fd, REASON_FIREWALL, STATS_BY_NEWS);
	return false;
}

struct filters {
	int cnt;
	char text[FIREWALL_TEXT_SIZE];
};

static void read_later(void *arg)
{
	struct filters *filters = arg;

	filters->cnt = firewall_read(network.netlink, true, filters->text,
				     sizeof(filters->text));
}

/* It opens files, and the program may count on their numbers. */
static void read_later_apart(struct filters *filters)
{
	if (own_thread_run_apart(read_later, filters) != 0)
		read_later(filters);
}

/* There is no message for most of what it looks for. */
#define FIREWALL_NS (5 * NS_PER_SEC)

/* A filter of packets that has come later than the first socket. From then on the process is
 * the kernel's. Those sockets that were on their way at that moment go back the next time. */
static void heed_firewall(uint64_t now_ns)
{
	enum { TIMES = 2 };
	struct filters filters = { .cnt = 0 };

	if (!network.options->respect_firewall || network.firewall_cnt == TIMES ||
	    now_ns < network.firewall_due_ns)
		return;
	network.firewall_due_ns = now_ns + FIREWALL_NS;
	if (!network.firewall_cnt) {
		read_later_apart(&filters);
		if (filters.cnt <= 0)
			return;
	}
	if (!network.firewall_cnt++) {
		log_info("Packets of accelerated sockets are not seen by: %s; sockets go back to the kernel (VMA_RESPECT_FIREWALL)",
			 filters.text);
		mutex_acquire(&network.lock);
		network.failure = REASON_FIREWALL;
		mutex_release(&network.lock);
	}
	fd_visit(NULL, leave_to_firewall);
}

static void each_second(void)
{
	struct stats_order order;

	if (rings_look())
		network_leave_to_rings();
	heed_firewall(clock_coarse_ns());
	if (stats_take_order(&order))
		stats_answer_order(obey(&order));
}

/* The CPUs of VMA_INTERNAL_THREAD_AFFINITY. NULL: it chooses none. */
static const cpu_set_t *chosen_cpus(void)
{
	static cpu_set_t set;
	struct cpus cpus;

	if (cpus_parse(network.options->thread_affinity, &cpus) != 0 ||
	    !cpus.is_chosen)
		return NULL;
	_Static_assert((int)CPUS_MAX <= CPU_SETSIZE, "all of them fit");
	CPU_ZERO(&set);
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++)
		if (cpus_has(&cpus, cpu))
			CPU_SET(cpu, &set);
	return &set;
}

/* The system itself tells the time by the processor's counter, which it watches. */
static bool is_counter_trusted(void)
{
	static const char *const names[] = { "tsc\n", "kvm-clock\n",
					     "hyperv_clocksource_tsc_page\n" };
	char name[64];
	ssize_t len = file_peek(CLOCK_SOURCE, name, sizeof(name) - 1);

	if (len < 0 || !tick_clock_has_steady())
		return false;
	name[len] = '\0';
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static int start(struct net **net_out)
{
	const struct options *o = network.options;
	struct net_params params = {
		.stack = {
			.lock_kind = lock_kind(o->thread_mode),
			.poll_batch = (unsigned)o->cq_poll_batch_max,
			.drain_ns = (uint64_t)o->rx_cq_drain_rate,
			.seed = hash_u64((uint64_t)getpid(),
					 clock_realtime_ns()),
			.send_max = (uint32_t)MIN(o->tx_bufs,
						  o->tx_segs_tcp),
			.sooner = progress_timer_is_sooner,
			.has_ticks = is_counter_trusted(),
		},
		.netlink = network.netlink,
		.backend_cnt = network.backend_cnt,
		.interfaces = o->xdp_interfaces,
		.frame_cnt = (uint32_t)o->xdp_frames,
		.frame_max = (uint32_t)o->rx_bufs,
		.mtu_max = (uint32_t)o->mtu,
		.pages = o->mem_alloc_type == 2 ? REGION_HUGE_PAGES :
						  REGION_SMALL_PAGES,
		.wants_tso = o->tso == TSO_ON,
		.local_dev = network.local_dev,
	};
	struct progress_params progress = {
		/* a thread that may take no packets need not look for them */
		.interval_ms = o->progress_wce_max ?
				       (unsigned)o->progress_interval :
				       0,
		.is_woken = o->thread_arm_cq && o->progress_wce_max,
		.batch_max = (unsigned)o->progress_wce_max,
		.cpus = chosen_cpus(),
		.each_second = each_second,
		.before_end = network_before_exit,
	};
	int err;

	memcpy(params.backends, network.backends, sizeof(params.backends));
	err = net_create(&params, net_out);
	if (err)
		return err;
	progress.net = *net_out;
	err = progress_start(&progress);
	if (err)
		net_destroy(*net_out);
	return err;
}

/* Filters that the user has set up never see the packets of accelerated sockets. We
 * say so once, or leave sockets to the kernel if that is wanted. A process that has
 * given up its rights may not see them. */
static bool is_kept_by_firewall(void)
{
	char text[FIREWALL_TEXT_SIZE];

	int cnt = firewall_read(network.netlink, false, text, sizeof(text));

	if (cnt == -EPERM && network.options->respect_firewall) {
		log_info("This process has no right to see filters of packets; sockets stay with the kernel (VMA_RESPECT_FIREWALL)");
		return true;
	}
	if (cnt <= 0)
		return false;
	log_info("Packets of accelerated sockets are not seen by: %s%s", text,
		 network.options->respect_firewall ?
			 "; sockets stay with the kernel (VMA_RESPECT_FIREWALL)" :
			 "; VMA_RESPECT_FIREWALL=1 keeps sockets with the kernel");
	return network.options->respect_firewall;
}

/* VMA_EXCEPTION_HANDLING=-2: the user wants the program to end rather than to run
 * without acceleration. */
static void exit_if_wished(void)
{
	bool is_failed = network.failure != REASON_NONE &&
			 network.failure != REASON_FIREWALL;

	if (!is_failed || network.options->exception_handling != -2)
		return;
	log_panic("the process ends: VMA_EXCEPTION_HANDLING=-2");
	real._exit(EXIT_FAILURE);
}

/* Opens the modules. Returns what this installation lacks, or REASON_NONE. */
static enum reason open_modules(void)
{
	open_backends();
	if (!network.backend_cnt && !network.local_dev)
		return REASON_NO_BACK_END;
	return open_netlink() ? REASON_NONE : REASON_NO_NETLINK;
}

static void say_why(void)
{
	const char *remedy = reason_remedy(network.failure);

	log_info("Sockets stay with the kernel: %s%s%s",
		 reason_why(network.failure),
		 *remedy ? "; to change that: " : "", remedy);
}

static void make_locked(void) REQUIRES(network.lock)
{
	struct net *net;
	int err;

	INVARIANT(lock_witness_is_mine(&network.lock.witness), "made without the lock");
	network.failure = open_modules();
	if (network.failure != REASON_NONE) {
		say_why();
		return;
	}
	if (is_kept_by_firewall()) {
		network.failure = REASON_FIREWALL;
		return;
	}
	err = start(&net);
	if (err) {
		network.failure = REASON_NETLINK;
		log_err("cannot follow the kernel's network (%s); sockets stay with the kernel",
			strerror(-err));
		return;
	}
	atomic_store(&network.pid, getpid());
	/* release pairs with the acquire in network_get */
	atomic_store_explicit(&network.net, net, memory_order_release);
	wait_early_over();
}

static struct net *network_get(enum reason *reason_out)
{
	struct net *net =
		atomic_load_explicit(&network.net, memory_order_acquire);

	/* The progress thread hands the existing sockets to the kernel within a
	 * second. */
	if (UNLIKELY(rings_look())) {
		*reason_out = REASON_IO_URING;
		return NULL;
	}
	if (LIKELY(net && network.failure == REASON_NONE))
		return net;
	mutex_acquire(&network.lock);
	if (!atomic_load(&network.net) && network.failure == REASON_NONE)
		make_locked();
	exit_if_wished();
	*reason_out = network.failure;
	net = network.failure == REASON_NONE ? atomic_load(&network.net) : NULL;
	mutex_release(&network.lock);
	return net;
}

static struct net *network_get_made(void)
{
	return atomic_load_explicit(&network.net, memory_order_acquire);
}

bool network_is_made(void)
{
	return network_get_made();
}

/* -- for the runtime ----------------------------------------------------------------- */

/* How long a signal that ends the process is held up by what is under way. */
enum { END_PATIENCE_MS = 2000 };

static void before_end(void)
{
	progress_before_end(END_PATIENCE_MS * NS_PER_MS);
}

static void hold_conversations(void)
{
	signals_before_end(before_end);
}

/* What is not set follows Linux, where VMA's own default would do worse. */
static struct sock_tcp_params tcp_params(const struct options *o)
{
	return (struct sock_tcp_params){
		.nodelay = o->tcp_nodelay,
		.quickack = o->tcp_quickack,
		.cc = o->is_set[OPTION_tcp_cc_algo] ? (int)o->tcp_cc_algo : -1,
		.timestamps = o->is_set[OPTION_tcp_timestamps] ?
				      (int)o->tcp_timestamps :
				      2,
		.mss = (uint16_t)o->mss,
		.syn_rate = (uint32_t)o->tcp_max_syn_rate,
		.polls_on_send = o->rx_poll_on_tx_tcp,
		.merges_max = (uint32_t)o->gro_streams_max,
	};
}

static enum sock_right_keeper right_keeper_of(uint64_t wish)
{
	switch ((enum way_back_wish)wish) {
	case WAY_BACK_HELPER:
		return SOCK_RIGHT_HELPER_ALWAYS;
	case WAY_BACK_SELF:
		return SOCK_RIGHT_SELF;
	case WAY_BACK_OFF:
		return SOCK_RIGHT_UNUSED;
	case WAY_BACK_AUTO:
		break;
	}
	return SOCK_RIGHT_HELPER_IN_NEED;
}

void network_configure(const struct options *options, const struct rules *rules,
		       const char *program)
{
	struct sock_params params = {
		.net = network_get,
		.net_if_made = network_get_made,
		.is_kernel_by_rule = is_kernel_by_rule,
		.has_sender_rules = rules_has_role(rules, RULE_UDP_SENDER),
		.watch_twin = progress_watch_twin,
		.forget_twin = progress_forget_twin,
		.rx_polls = options->rx_poll,
		.os_ratio = (unsigned)options->rx_poll_os_ratio,
		.does_yield = options->rx_poll_yield,
		/* a user who has set VMA_RX_POLL gets what he has set */
		.makes_room = options->spec == SPEC_NONE &&
			      !options->is_set[OPTION_rx_poll],
		.rx_bytes_min = (uint32_t)options->rx_bytes_min,
		.tx_eagain = options->tx_nonblocked_eagains,
		.find_program = module_find_program,
		.right_keeper = right_keeper_of(options->way_back),
		.exit_linger_ms = options->exit_linger,
		.with_tcp = options->tcp,
		.tcp = tcp_params(options),
		.hold_conversations = hold_conversations,
		.listens_early = network.local_dev,
		.exception_mode = (enum sock_exception_mode)MAX(
			options->exception_handling, SOCK_EXCEPTION_PASS),
	};

	struct mux_params mux = {
		.poll_us = options->select_poll,
		/* a user who has set VMA_SELECT_POLL gets what he has set */
		.does_ease = options->spec == SPEC_NONE &&
			     !options->is_set[OPTION_select_poll],
		.os_ratio = (unsigned)options->select_poll_os_ratio,
		.skip_os = (unsigned)options->select_skip_os,
		.measures = options->cpu_usage_stats,
	};

	network.options = options;
	network.program = program;
	network.rules = rules;
	rings_configure((enum io_uring_wish)options->io_uring);
	sock_kinds_start(&params);
	mux_start(&mux);
}

bool network_may_serve(int type)
{
	return sock_kinds_may_serve(type);
}

struct fd_object *network_make_socket(int fd, int domain, int type, int protocol,
				      int *reason_out)
{
	enum reason reason = network.failure;
	struct fd_object *obj = NULL;

	/* While a reason keeps the whole process with the kernel, sockets need no
	 * object. */
	if (reason == REASON_NONE)
		obj = sock_kinds_create(fd, domain, type, protocol, &reason);
	*reason_out = (int)reason;
	return obj;
}

void network_set_local_dev(struct dev *dev)
{
	network.local_dev = dev;
	sock_params.listens_early = dev;
}

void network_stop(void)
{
	struct net *net = network_get_made();

	atomic_store(&network.is_over, true);
	progress_stop();
	sock_kinds_stop();
	/* nothing can be done at the end any more */
	if (net)
		net_ending(net, DEV_ENDS);
}

bool network_begin_alone(void)
{
	return progress_pause();
}

bool network_end_alone(void)
{
	return atomic_load(&network.is_over) || progress_resume();
}

static bool is_at_work(void)
{
	return network.options && !atomic_load(&network.is_over);
}

void network_before_fork(void)
{
	if (is_at_work())
		sock_kinds_before_fork();
}

void network_share(void)
{
	if (!is_at_work())
		return;
	sock_kinds_share();
	mux_before_fork();
}

void network_after_fork(void)
{
	sock_kinds_after_fork();
}

void network_before_spawn(void)
{
	if (!is_at_work())
		return;
	sock_kinds_before_spawn();
	mux_before_fork();
}

/* A thread that has faulted under the lock may stay in a handler of the program for
 * ever. The process shall end all the same. */
enum { EXIT_PATIENCE_MS = 1000 };

/* How long the queues of a card, which end with the process, may take to send what
 * they have. */
enum { EXIT_FLUSH_MS = 100 };

/* A child by clone() may share our memory, but what it ends or replaces is itself alone. */
static struct net *get_ending(void)
{
	struct net *net = network_get_made();

	if (!net || atomic_load(&network.is_over) || atomic_load(&network.pid) != getpid())
		return NULL;
	return net;
}

void network_before_exit(void)
{
	struct net *net = get_ending();

	if (!net || !net_is_free_within(net, EXIT_PATIENCE_MS * NS_PER_MS))
		return;
	net_ending(net, DEV_IS_LEFT);
	sock_kinds_before_exit();
	mux_before_exit();
	net_flush(net, EXIT_FLUSH_MS * NS_PER_MS);
	net_ending(net, DEV_ENDS);
}

void network_end_what_stays(void)
{
	if (get_ending())
		sock_kinds_end_what_stays();
}

void network_before_exec(void)
{
	struct net *net = get_ending();

	if (!net || !net_is_free_within(net, EXIT_PATIENCE_MS * NS_PER_MS))
		return;
	net_ending(net, DEV_IS_LEFT);
	sock_kinds_before_exec();
	mux_before_exit();
	net_flush(net, EXIT_FLUSH_MS * NS_PER_MS);
	net_ending(net, DEV_ENDS);
}

void network_goes_on(void)
{
	struct net *net = get_ending();

	if (net)
		net_ending(net, DEV_GOES_ON);
}

/* Of the devices that may still be opened, only AF_XDP's without rights. */
static bool may_need_rights(void)
{
	return !atomic_load(&network.is_over) &&
	       (network_get_made() ||
		(network.failure == REASON_NONE && may_be_xdp(network.options)));
}

void network_before_rights_go(void)
{
	struct net *net = network_get_made();

	if (!may_need_rights())
		return;
	sock_kinds_before_rights_go();
	if (net)
		net_rights_go(net);
}

void network_before_root_changes(void)
{
	if (!may_need_rights())
		return;
	mutex_acquire(&network.lock);
	(void)open_modules();
	mutex_release(&network.lock);
	sock_kinds_before_root_changes();
}

void network_rights_changed(bool may_go_back)
{
	sock_kinds_rights_changed(may_go_back);
}

void network_forked_first(void)
{
	right_keeper_forked_first();
	sock_kinds_forked_first();
}

void network_forked(void)
{
	mutex_init(&network.lock, LOCK_RANK_NETWORK);
	/* The network is in the parent's memory, and the device's part of that is
	 * not even mapped here. So we leave it alone. */
	atomic_store(&network.net, NULL);
	/* The local device of tests belongs to the parent as well. */
	network.local_dev = NULL;
	network.failure = REASON_NONE;
	network.firewall_cnt = 0;
	network.firewall_due_ns = 0;
	right_keeper_forked();
	rings_forked();
	sock_kinds_forked();
	waiters_forked();
	mux_forked();
	progress_forked();
}
