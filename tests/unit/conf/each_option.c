/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One case for each option of VMA, named after its member of struct options: its
 * name, default and limits as VMA documents them, written down a second time so that
 * a wrong line in options.def shows; then what is accepted and what is not. All
 * options are tried by what their lines say, so one of our own needs a case only for
 * what is special about it.
 */
#include <limits.h>

#include "tests/unit/conf/env.h"

/* Every option that has been through a case below. */
static bool is_covered[OPTION_CNT];

static enum option_id covered(const char *name, size_t offset)
{
	enum option_id id = option_find(name, strlen(name));

	if (id == OPTION_CNT)
		FAIL("%s is not an option", name);
	CHECK_EQ(option_infos[id].offset, offset);
	CHECK(strlen(option_infos[id].doc) > 20);
	is_covered[id] = true;
	return id;
}

static void set(const char *name, const char *value)
{
	static char assignment[2 * OPTION_TEXT_MAX];

	snprintf(assignment, sizeof(assignment), "%s=%s", name, value);
	parse(assignment);
}

/* The value is taken without a word. */
static void accepts(enum option_id id, const char *value, long long want)
{
	set(option_infos[id].name, value);
	if (report_cnt)
		FAIL("%s", reports[0]);
	CHECK_EQ(option_number(&opts, id), want);
	CHECK(opts.is_set[id]);
}

/* The value is reported by name, as it was found, and the default stays. */
static void refuses(enum option_id id, const char *value, long long def)
{
	char want[OPTION_TEXT_MAX];

	set(option_infos[id].name, value);
	snprintf(want, sizeof(want), "%s=\"%s\": must be ",
		 option_infos[id].name, value);
	if (strncmp(only_report(), want, strlen(want)) != 0)
		FAIL("%s does not begin with %s", reports[0], want);
	CHECK(strstr(reports[0], "; using "));
	CHECK_EQ(option_number(&opts, id), def);
	CHECK(!opts.is_set[id]);
}

static void refuses_junk(enum option_id id, long long def)
{
	static const char *const junk[] = {
		"", " ", "junk", "1x", "0x10", "1 1", "1.5", "--1", "-", "99999999999999999999",
	};

	parse_quietly("PATH=/bin");
	CHECK_EQ(option_number(&opts, id), def);
	for (size_t i = 0; i < ARRAY_LEN(junk); i++)
		refuses(id, junk[i], def);
}

static const char *as_text(long long n)
{
	static char text[32];

	snprintf(text, sizeof(text), "%lld", n);
	return text;
}

static void check_number(enum option_id id, long long def, long long min,
			 long long max)
{
	char text[32];

	refuses_junk(id, def);
	accepts(id, as_text(min), min);
	accepts(id, as_text(max), max);
	refuses(id, as_text(min - 1), def);
	refuses(id, as_text(max + 1), def);
	snprintf(text, sizeof(text), " +%lld ", max);
	accepts(id, text, max);
}

static void check_no_units(enum option_id id, long long def)
{
	refuses(id, "1k", def);
	refuses(id, "1G", def);
}

static void check_units(enum option_id id, long long def, long long min,
			long long max)
{
	long long most = max / 1024 < 1000 ? max / 1024 : 1000;
	char text[32];

	snprintf(text, sizeof(text), "%lldk", most);
	if (most * 1024 >= min)
		accepts(id, text, most * 1024);
	else
		refuses(id, text, def);
	refuses(id, "1kk", def);
	refuses(id, "k", def);
	refuses(id, "9999999G", def);
	if (max == INT_MAX) {
		accepts(id, "3M", 3 << 20);
		accepts(id, "1g", 1 << 30);
		refuses(id, "2G", def);
	}
}

static void check_bound(enum option_id id, long long def, long long min)
{
	refuses_junk(id, def);
	check_no_units(id, def);
	refuses(id, as_text(min - 1), def);
	refuses(id, as_text(INT_MAX + 1LL), def);
	accepts(id, as_text(def), def);
}

static void check_flag(enum option_id id, bool def)
{
	static const char *const on[] = { "1", "yes", "TRUE", "on", "2", "-1",
					  " 1 " };
	static const char *const off[] = { "0", "No", "false", "OFF", "00" };
	static const char *const junk[] = { "", "enabled", "y", "1x", "yes!",
					    "o n" };

	parse_quietly("PATH=/bin");
	CHECK_EQ(option_number(&opts, id), def);
	for (size_t i = 0; i < ARRAY_LEN(on); i++)
		accepts(id, on[i], true);
	for (size_t i = 0; i < ARRAY_LEN(off); i++)
		accepts(id, off[i], false);
	for (size_t i = 0; i < ARRAY_LEN(junk); i++)
		refuses(id, junk[i], def);
}

/* Only these numbers, of all from -5 to 50. */
static void check_choice(enum option_id id, int def, const int *values,
			 size_t cnt)
{
	refuses_junk(id, def);
	for (int n = -5; n <= 50; n++) {
		bool is_value = false;

		for (size_t i = 0; i < cnt; i++)
			is_value |= values[i] == n;
		if (is_value)
			accepts(id, as_text(n), n);
		else
			refuses(id, as_text(n), def);
	}
}

static void check_text(enum option_id id, const char *def, bool may_be_empty,
		       bool has_pid)
{
	static char text[OPTION_TEXT_MAX + 2];
	const char *name = option_infos[id].name;

	parse_quietly("PATH=/bin");
	CHECK_STR(option_text(&opts, id), def);
	set(name, "");
	CHECK_EQ(report_cnt, may_be_empty ? 0 : 1);
	CHECK_STR(option_text(&opts, id), may_be_empty ? "" : def);
	set(name, "a%d.%d");
	CHECK_EQ(report_cnt, 0);
	CHECK_STR(option_text(&opts, id), has_pid ? "a4711.%d" : "a%d.%d");
	memset(text, 'x', OPTION_TEXT_MAX);
	set(name, text);
	CHECK_EQ(report_cnt, 0);
	CHECK_STR(option_text(&opts, id), text);
	text[OPTION_TEXT_MAX] = 'x';
	set(name, text);
	CHECK_EQ(report_cnt, 1);
	CHECK_STR(option_text(&opts, id), def);
	memset(text, 0, sizeof(text));
}

#define ID(member, name) covered(name, offsetof(struct options, member))
#define NUM(member, name, def, min, max)                  \
	check_number(ID(member, name), def, min, max);    \
	check_no_units(ID(member, name), def)
#define SIZE(member, name, def, min, max)                 \
	check_number(ID(member, name), def, min, max);    \
	check_units(ID(member, name), def, min, max)
#define SIZE0(member, name, def, min, max)                \
	SIZE(member, name, def, min, max);                \
	accepts(ID(member, name), "0", 0)
/* A number whose limits depend on other options. */
#define BOUND(member, name, def, min) check_bound(ID(member, name), def, min)
#define FLAG(member, name, def) check_flag(ID(member, name), def)
#define CHOICE_OF(member, name, def, ...)                              \
	check_choice(ID(member, name), def, (const int[]){ __VA_ARGS__ }, \
		     ARRAY_LEN(((const int[]){ __VA_ARGS__ })))
#define TEXT(member, name, def, may_be_empty, has_pid) \
	check_text(ID(member, name), def, may_be_empty, has_pid)

/* Words that mean a value, and one that means none. */
static void check_word(enum option_id id, const char *word, int want)
{
	set(option_infos[id].name, word);
	CHECK_EQ(report_cnt, 0);
	CHECK_EQ(option_number(&opts, id), want);
}

TEST(log_level)
{
	static const struct {
		const char *word;
		int level;
	} words[] = {
		{ "none", -1 },	  { "0", 0 },	    { "panic", 0 },
		{ "1", 1 },	  { "error", 1 },   { "2", 2 },
		{ "warn", 2 },	  { "warning", 2 }, { "3", 3 },
		{ "info", 3 },	  { "INFO", 3 },    { "information", 3 },
		{ "details", 4 }, { "4", 5 },	    { "debug", 5 },
		{ "5", 6 },	  { "fine", 6 },    { "func", 6 },
		{ "6", 7 },	  { "finer", 7 },   { "func+", 7 },
		{ "funcall", 7 }, { "func_all", 7 }, { "func-all", 7 },
		{ "All", 8 },
	};
	enum option_id id = ID(log_level, "VMA_TRACELEVEL");

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		check_word(id, words[i].word, words[i].level);
	refuses(id, "", 3);
	refuses(id, "7", 3);
	refuses(id, "debug ", 3);
	refuses(id, "verbose", 3);
	CHECK_STR(reports[0],
		  "VMA_TRACELEVEL=\"verbose\": must be one of none, panic, error, warn, info, details, debug, fine, finer, all; using info");
}

TEST(spec)
{
	enum option_id id = ID(spec, "VMA_SPEC");

	parse_quietly("PATH=/bin");
	CHECK_EQ(opts.spec, SPEC_NONE);
	check_word(id, "none", SPEC_NONE);
	check_word(id, "0", SPEC_NONE);
	refuses(id, "", SPEC_NONE);
	refuses(id, "latancy", SPEC_NONE);
	CHECK_STR(reports[0],
		  "VMA_SPEC=\"latancy\": must be one of none, ultra-latency, latency, 29west, wombat_fh, mcd, mcd-irq, rti, 7750, multi_ring_latency; using none");
}

TEST(io_uring)
{
	enum option_id id = ID(io_uring, "VMA_IO_URING");

	parse_quietly("PATH=/bin");
	CHECK_EQ(opts.io_uring, IO_URING_AUTO);
	check_word(id, "auto", IO_URING_AUTO);
	check_word(id, "Kernel", IO_URING_KERNEL);
	check_word(id, "IGNORE", IO_URING_IGNORE);
	refuses(id, "", IO_URING_AUTO);
	refuses(id, "1", IO_URING_AUTO);
	refuses(id, "hide", IO_URING_AUTO);
}

TEST(xdp_mode)
{
	enum option_id id = ID(xdp_mode, "VMA_XDP_MODE");

	parse_quietly("PATH=/bin");
	CHECK_EQ(opts.xdp_mode, XDP_MODE_AUTO);
	check_word(id, "auto", XDP_MODE_AUTO);
	check_word(id, "zc", XDP_MODE_ZC);
	check_word(id, "Native", XDP_MODE_NATIVE);
	check_word(id, "GENERIC", XDP_MODE_GENERIC);
	refuses(id, "", XDP_MODE_AUTO);
	refuses(id, "1", XDP_MODE_AUTO);
	refuses(id, "skb", XDP_MODE_AUTO);
}

TEST(ring)
{
	enum option_id id = ID(ring, "VMA_RING");

	parse_quietly("PATH=/bin");
	CHECK_EQ(opts.ring, RING_AUTO);
	check_word(id, "auto", RING_AUTO);
	check_word(id, "MLX5", RING_MLX5);
	check_word(id, "verbs", RING_VERBS);
	check_word(id, "Xdp", RING_XDP);
	refuses(id, "", RING_AUTO);
	refuses(id, "0", RING_AUTO);
	refuses(id, "rdma", RING_AUTO);
}

TEST(log_cb)
{
	enum option_id id = ID(log_cb, "VMA_LOG_CB_FUNC_PTR");
	static const char *const bad[] = { "",	 "0x",	 "0x0",	  "1234",
					   "0x1g", "(nil)", "0x12345678123456781" };
	char text[64];

	parse_quietly("PATH=/bin");
	CHECK_EQ(opts.log_cb, 0);
	snprintf(text, sizeof(text), "VMA_LOG_CB_FUNC_PTR=%p", (void *)&opts);
	parse_quietly(text);
	CHECK_EQ(opts.log_cb, (uintptr_t)&opts);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		set(option_infos[id].name, bad[i]);
		only_report();
		CHECK_EQ(opts.log_cb, 0);
	}
}

TEST(thread_affinity)
{
	enum option_id id = ID(thread_affinity, "VMA_INTERNAL_THREAD_AFFINITY");

	parse_quietly("PATH=/bin");
	CHECK_STR(opts.thread_affinity, "-1");
	set(option_infos[id].name, "0,2,4-6");
	CHECK_EQ(report_cnt, 0);
	CHECK_STR(opts.thread_affinity, "0,2,4-6");
	set(option_infos[id].name, "6-4");
	CHECK_STR(only_report(),
		  "VMA_INTERNAL_THREAD_AFFINITY=\"6-4\": must be -1, a mask (0x3) or a list (0,2,4-6) of CPUs; using -1");
	CHECK_STR(opts.thread_affinity, "-1");
	set(option_infos[id].name, "");
	only_report();
}

TEST(ring_migration_tx)
{
	NUM(ring_migration_tx, "VMA_RING_MIGRATION_RATIO_TX", 100, -1, INT_MAX);
}

TEST(ring_migration_rx)
{
	NUM(ring_migration_rx, "VMA_RING_MIGRATION_RATIO_RX", 100, -1, INT_MAX);
}

TEST(ring_limit)
{
	NUM(ring_limit, "VMA_RING_LIMIT_PER_INTERFACE", 0, 0, INT_MAX);
}

TEST(ring_dev_mem_tx)
{
	SIZE(ring_dev_mem_tx, "VMA_RING_DEV_MEM_TX", 0, 0, INT_MAX);
}

TEST(tcp_max_syn_rate)
{
	NUM(tcp_max_syn_rate, "VMA_TCP_MAX_SYN_RATE", 0, 0, 100000);
}

TEST(tx_segs_tcp)
{
	NUM(tx_segs_tcp, "VMA_TX_SEGS_TCP", 1000000, 1, INT_MAX);
}

TEST(tx_bufs)
{
	NUM(tx_bufs, "VMA_TX_BUFS", 200000, 1, INT_MAX);
}

TEST(tx_wre_batching)
{
	NUM(tx_wre_batching, "VMA_TX_WRE_BATCHING", 64, 1, 64);
}

TEST(tx_max_inline)
{
	SIZE(tx_max_inline, "VMA_TX_MAX_INLINE", 204, 0, 884);
}

TEST(tx_prefetch_bytes)
{
	SIZE(tx_prefetch_bytes, "VMA_TX_PREFETCH_BYTES", 256, 0, INT_MAX);
}

TEST(rx_bufs)
{
	NUM(rx_bufs, "VMA_RX_BUFS", 200000, 1, INT_MAX);
}

TEST(rx_wre_batching)
{
	NUM(rx_wre_batching, "VMA_RX_WRE_BATCHING", 64, 1, 1024);
}

TEST(rx_bytes_min)
{
	SIZE(rx_bytes_min, "VMA_RX_BYTES_MIN", 65536, 0, INT_MAX);
}

TEST(rx_poll)
{
	NUM(rx_poll, "VMA_RX_POLL", 100000, -1, 100000000);
}

TEST(rx_poll_init)
{
	NUM(rx_poll_init, "VMA_RX_POLL_INIT", 0, -1, 100000000);
}

TEST(rx_poll_os_ratio)
{
	NUM(rx_poll_os_ratio, "VMA_RX_UDP_POLL_OS_RATIO", 100, 0, INT_MAX);
}

TEST(rx_prefetch_bytes)
{
	SIZE(rx_prefetch_bytes, "VMA_RX_PREFETCH_BYTES", 256, 32, 2044);
}

TEST(rx_prefetch_bytes_before_poll)
{
	SIZE0(rx_prefetch_bytes_before_poll, "VMA_RX_PREFETCH_BYTES_BEFORE_POLL", 0, 32, 2044);
}

TEST(rx_cq_drain_rate)
{
	NUM(rx_cq_drain_rate, "VMA_RX_CQ_DRAIN_RATE_NSEC", 0, 0, INT_MAX);
}

TEST(gro_streams_max)
{
	NUM(gro_streams_max, "VMA_GRO_STREAMS_MAX", 32, 0, INT_MAX);
}

TEST(select_poll)
{
	NUM(select_poll, "VMA_SELECT_POLL", 100000, -1, 100000000);
}

TEST(select_poll_os_ratio)
{
	NUM(select_poll_os_ratio, "VMA_SELECT_POLL_OS_RATIO", 10, 0, INT_MAX);
}

TEST(select_skip_os)
{
	NUM(select_skip_os, "VMA_SELECT_SKIP_OS", 4, 0, 10000);
}

TEST(progress_interval)
{
	NUM(progress_interval, "VMA_PROGRESS_ENGINE_INTERVAL", 10, 0, INT_MAX);
}

TEST(progress_wce_max)
{
	NUM(progress_wce_max, "VMA_PROGRESS_ENGINE_WCE_MAX", 10000, 0, INT_MAX);
}

TEST(cq_moderation_period)
{
	NUM(cq_moderation_period, "VMA_CQ_MODERATION_PERIOD_USEC", 50, 0, INT_MAX);
}

TEST(cq_aim_max_period)
{
	NUM(cq_aim_max_period, "VMA_CQ_AIM_MAX_PERIOD_USEC", 250, 0, INT_MAX);
}

TEST(cq_aim_interval)
{
	NUM(cq_aim_interval, "VMA_CQ_AIM_INTERVAL_MSEC", 250, 0, INT_MAX);
}

TEST(cq_aim_rate)
{
	NUM(cq_aim_rate, "VMA_CQ_AIM_INTERRUPTS_RATE_PER_SEC", 5000, 0, INT_MAX);
}

TEST(cq_poll_batch_max)
{
	NUM(cq_poll_batch_max, "VMA_CQ_POLL_BATCH_MAX", 16, 1, 128);
}

TEST(wait_after_join)
{
	NUM(wait_after_join, "VMA_WAIT_AFTER_JOIN_MSEC", 0, 0, INT_MAX);
}

TEST(neigh_uc_arp_quota)
{
	NUM(neigh_uc_arp_quota, "VMA_NEIGH_UC_ARP_QUATA", 3, 0, INT_MAX);
}

TEST(neigh_uc_arp_delay)
{
	NUM(neigh_uc_arp_delay, "VMA_NEIGH_UC_ARP_DELAY_MSEC", 10000, 0, INT_MAX);
}

TEST(neigh_err_retries)
{
	NUM(neigh_err_retries, "VMA_NEIGH_NUM_ERR_RETRIES", 1, 0, INT_MAX);
}

TEST(netlink_timer)
{
	NUM(netlink_timer, "VMA_NETLINK_TIMER", 10000, 0, INT_MAX);
}

TEST(mtu)
{
	SIZE0(mtu, "VMA_MTU", 0, 68, 65535);
}

TEST(mss)
{
	SIZE0(mss, "VMA_MSS", 0, 88, 65495);
}

TEST(spec_param1)
{
	NUM(spec_param1, "VMA_SPEC_PARAM1", 1, 0, INT_MAX);
}

TEST(spec_param2)
{
	NUM(spec_param2, "VMA_SPEC_PARAM2", 1, 0, INT_MAX);
}

TEST(stats_fd_num)
{
	NUM(stats_fd_num, "VMA_STATS_FD_NUM", 100, 0, 1024);
}

TEST(time_measure_samples)
{
	NUM(time_measure_samples, "VMA_TIME_MEASURE_NUM_SAMPLES", 10000, 1, INT_MAX);
}

TEST(xdp_multi_buffer)
{
	FLAG(xdp_multi_buffer, "VMA_XDP_MULTI_BUFFER", true);
}

TEST(xdp_frames)
{
	NUM(xdp_frames, "VMA_XDP_FRAMES", 4096, 128, 1048576);
}

TEST(tx_wre)
{
	BOUND(tx_wre, "VMA_TX_WRE", 2048, 1);
}

TEST(rx_wre)
{
	BOUND(rx_wre, "VMA_RX_WRE", 16000, 1);
}

TEST(cq_moderation_count)
{
	BOUND(cq_moderation_count, "VMA_CQ_MODERATION_COUNT", 48, 0);
}

TEST(cq_aim_max_count)
{
	BOUND(cq_aim_max_count, "VMA_CQ_AIM_MAX_COUNT", 560, 0);
}

TEST(qp_compensation)
{
	BOUND(qp_compensation, "VMA_QP_COMPENSATION_LEVEL", 256, 1);
}

TEST(timer_resolution)
{
	BOUND(timer_resolution, "VMA_TIMER_RESOLUTION_MSEC", 10, 1);
}

TEST(tcp_timer_resolution)
{
	BOUND(tcp_timer_resolution, "VMA_TCP_TIMER_RESOLUTION_MSEC", 100, 1);
}

TEST(log_colors)
{
	FLAG(log_colors, "VMA_LOG_COLORS", true);
}

TEST(cpu_usage_stats)
{
	FLAG(cpu_usage_stats, "VMA_CPU_USAGE_STATS", false);
}

TEST(handle_sigintr)
{
	FLAG(handle_sigintr, "VMA_HANDLE_SIGINTR", false);
}

TEST(handle_sigsegv)
{
	FLAG(handle_sigsegv, "VMA_HANDLE_SIGSEGV", false);
}

TEST(tx_mc_loopback)
{
	FLAG(tx_mc_loopback, "VMA_TX_MC_LOOPBACK", true);
}

TEST(tx_nonblocked_eagains)
{
	FLAG(tx_nonblocked_eagains, "VMA_TX_NONBLOCKED_EAGAINS", false);
}

TEST(rx_poll_yield)
{
	FLAG(rx_poll_yield, "VMA_RX_POLL_YIELD", false);
}

TEST(tcp_3t_rules)
{
	FLAG(tcp_3t_rules, "VMA_TCP_3T_RULES", false);
}

TEST(udp_3t_rules)
{
	FLAG(udp_3t_rules, "VMA_UDP_3T_RULES", true);
}

TEST(eth_mc_l2_only_rules)
{
	FLAG(eth_mc_l2_only_rules, "VMA_ETH_MC_L2_ONLY_RULES", false);
}

TEST(mc_force_flowtag)
{
	FLAG(mc_force_flowtag, "VMA_MC_FORCE_FLOWTAG", false);
}

TEST(select_poll_os_force)
{
	FLAG(select_poll_os_force, "VMA_SELECT_POLL_OS_FORCE", false);
}

TEST(cq_moderation)
{
	FLAG(cq_moderation, "VMA_CQ_MODERATION_ENABLE", true);
}

TEST(cq_keep_qp_full)
{
	FLAG(cq_keep_qp_full, "VMA_CQ_KEEP_QP_FULL", true);
}

TEST(offloaded_sockets)
{
	FLAG(offloaded_sockets, "VMA_OFFLOADED_SOCKETS", true);
}

TEST(tcp_nodelay)
{
	FLAG(tcp_nodelay, "VMA_TCP_NODELAY", false);
}

TEST(tcp_quickack)
{
	FLAG(tcp_quickack, "VMA_TCP_QUICKACK", false);
}

TEST(avoid_sys_calls)
{
	FLAG(avoid_sys_calls, "VMA_AVOID_SYS_CALLS_ON_TCP_FD", false);
}

TEST(allow_privileged_sock_opt)
{
	FLAG(allow_privileged_sock_opt, "VMA_ALLOW_PRIVILEGED_SOCK_OPT", true);
}

TEST(thread_arm_cq)
{
	FLAG(thread_arm_cq, "VMA_INTERNAL_THREAD_ARM_CQ", false);
}

TEST(socketxtreme)
{
	FLAG(socketxtreme, "VMA_SOCKETXTREME", false);
}

TEST(blue_flame)
{
	FLAG(blue_flame, "VMA_BF", true);
}

TEST(fork_support)
{
	FLAG(fork_support, "VMA_FORK", true);
}

TEST(close_on_dup2)
{
	FLAG(close_on_dup2, "VMA_CLOSE_ON_DUP2", true);
}

TEST(deferred_close)
{
	FLAG(deferred_close, "VMA_DEFERRED_CLOSE", false);
}

TEST(rx_poll_on_tx_tcp)
{
	FLAG(rx_poll_on_tx_tcp, "VMA_RX_POLL_ON_TX_TCP", false);
}

TEST(dummy_send_getsockname)
{
	FLAG(dummy_send_getsockname, "VMA_TRIGGER_DUMMY_SEND_GETSOCKNAME", false);
}

TEST(respect_firewall)
{
	FLAG(respect_firewall, "VMA_RESPECT_FIREWALL", false);
}

TEST(test_local)
{
	FLAG(test_local, "VMA_TEST_LOCAL", false);
}

TEST(log_details)
{
	CHOICE_OF(log_details, "VMA_LOG_DETAILS", 0, 0, 1, 2, 3);
}

TEST(ring_alloc_tx)
{
	CHOICE_OF(ring_alloc_tx, "VMA_RING_ALLOCATION_LOGIC_TX", 0, 0, 1, 10, 20, 30, 31);
}

TEST(ring_alloc_rx)
{
	CHOICE_OF(ring_alloc_rx, "VMA_RING_ALLOCATION_LOGIC_RX", 0, 0, 1, 10, 20, 30, 31);
}

TEST(hw_ts_conversion)
{
	CHOICE_OF(hw_ts_conversion, "VMA_HW_TS_CONVERSION", 3, 0, 1, 2, 3, 4);
}

TEST(tcp_ctl_thread)
{
	CHOICE_OF(tcp_ctl_thread, "VMA_TCP_CTL_THREAD", 0, 0, 1, 2);
}

TEST(tcp_timestamps)
{
	CHOICE_OF(tcp_timestamps, "VMA_TCP_TIMESTAMP_OPTION", 0, 0, 1, 2);
}

TEST(tcp_cc_algo)
{
	CHOICE_OF(tcp_cc_algo, "VMA_TCP_CC_ALGO", 0, 0, 1, 2);
}

TEST(exception_handling)
{
	CHOICE_OF(exception_handling, "VMA_EXCEPTION_HANDLING", -1, -2, -1, 0, 1, 2, 3);
}

TEST(thread_mode)
{
	CHOICE_OF(thread_mode, "VMA_THREAD_MODE", 1, 0, 1, 2, 3);
}

TEST(buffer_batching)
{
	CHOICE_OF(buffer_batching, "VMA_BUFFER_BATCHING_MODE", 1, 0, 1, 2);
}

TEST(mem_alloc_type)
{
	CHOICE_OF(mem_alloc_type, "VMA_MEM_ALLOC_TYPE", 1, 0, 1, 2);
}

TEST(log_file)
{
	TEXT(log_file, "VMA_LOG_FILE", "", true, true);
}

TEST(stats_file)
{
	TEXT(stats_file, "VMA_STATS_FILE", "", true, true);
}

TEST(stats_shmem_dir)
{
	TEXT(stats_shmem_dir, "VMA_STATS_SHMEM_DIR", "/tmp/", true, true);
}

TEST(vmad_notify_dir)
{
	TEXT(vmad_notify_dir, "VMA_VMAD_NOTIFY_DIR", "/tmp/vma", false, true);
}

TEST(config_file)
{
	TEXT(config_file, "VMA_CONFIG_FILE", "/etc/libvma.conf", true, true);
}

TEST(application_id)
{
	TEXT(application_id, "VMA_APPLICATION_ID", "VMA_DEFAULT_APPLICATION_ID", false, true);
}

TEST(thread_cpuset)
{
	TEXT(thread_cpuset, "VMA_INTERNAL_THREAD_CPUSET", "", true, false);
}

TEST(time_measure_file)
{
	TEXT(time_measure_file, "VMA_TIME_MEASURE_DUMP_FILE", "/tmp/VMA_inst.dump", false, true);
}

TEST(xdp_interfaces)
{
	TEXT(xdp_interfaces, "VMA_XDP_INTERFACES", "all", false, false);
}

/* Limits may depend on other options: what lies between them is not tried. */
static void check_limits(enum option_id id)
{
	const struct option_info *info = &option_infos[id];
	bool has_zero = info->kind == OPTION_KIND_num0 ||
			info->kind == OPTION_KIND_size0;

	refuses_junk(id, info->def_number);
	accepts(id, as_text(info->def_number), info->def_number);
	if (!has_zero || info->min != 1)
		refuses(id, as_text(info->min - 1LL), info->def_number);
	refuses(id, as_text(info->max + 1LL), info->def_number);
	if (has_zero)
		accepts(id, "0", 0);
}

static void check_words(enum option_id id)
{
	const struct option_info *info = &option_infos[id];
	const struct option_choice *c = NULL;

	while ((c = option_next_choice(id, c)))
		check_word(id, info->kind == OPTION_KIND_word ? c->word :
								as_text(c->value),
			   c->value);
	refuses(id, "", info->def_number);
	refuses(id, "no such word", info->def_number);
}

/* Made from options.def alone: an option without a case of its own is tried, too. */
TEST(every_option_by_its_line)
{
	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		const struct option_info *info = &option_infos[id];

		CHECK(strlen(info->doc) > 20);
		switch (info->kind) {
		case OPTION_KIND_flag:
			check_flag(id, info->def_number);
			break;
		case OPTION_KIND_choice:
		case OPTION_KIND_word:
			check_words(id);
			break;
		case OPTION_KIND_text:
		case OPTION_KIND_path:
			check_text(id, info->def_text, info->min == 0,
				   info->kind == OPTION_KIND_path);
			break;
		case OPTION_KIND_cpus:
		case OPTION_KIND_pointer:
			set(info->name, "x");
			only_report();
			break;
		default:
			check_limits(id);
		}
	}
}

/* What VMA documents stands here a second time; options of our own follow them. */
TEST(no_option_of_vma_is_without_a_case)
{
	for (enum option_id id = 0; id < OPTION_ring; id++)
		if (!is_covered[id])
			FAIL("%s has no case here", option_infos[id].name);
}
