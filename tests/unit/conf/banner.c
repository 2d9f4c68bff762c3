/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The banner as VMA prints it: every line, its level, its place. */
#include "conf/banner.h"

#include "base/log.h"
#include "tests/unit/conf/env.h"

#define DASHES "---------------------------------------------------------------------------"

static char seen[32768];

static void keep(void *ctx, enum log_level level, const char *line, size_t len)
{
	(void)ctx;
	(void)level;
	CHECK(strlen(seen) + len < sizeof(seen));
	strcat(seen, line);
}

static const struct banner_facts plain_facts = {
	.version = "10.0.0-0",
	.built = "Nov 21 2026 03:00:00",
	.pid = 42,
	.memlock_limit = 65536,
};

static const char *print_with(const struct banner_facts *with)
{
	seen[0] = '\0';
	log_set_sink(keep, NULL);
	log_config.level = opts.log_level;
	log_config.details = 0;
	banner_print(&opts, with);
	log_set_sink(NULL, NULL);
	log_config.level = LOG_LEVEL_INFO;
	return seen;
}

static const char *print(void)
{
	return print_with(&plain_facts);
}

/* The line is in the banner just so. */
static void has_line(const char *line)
{
	char whole[1100];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(seen, whole))
		FAIL("no line \"%s\" in\n%s", line, seen);
}

static void lacks(const char *text)
{
	if (strstr(seen, text))
		FAIL("\"%s\" should not be in\n%s", text, seen);
}

TEST(default_banner_is_short)
{
	parse_quietly("PATH=/bin");
	CHECK_STR(print(),
		  " VMA INFO: " DASHES "\n"
		  " VMA INFO: VMA_VERSION: 10.0.0-0 Development Snapshot built on Nov 21 2026 03:00:00\n"
		  " VMA INFO: Pid:    42\n"
		  " VMA INFO: " DASHES "\n"
		  " VMA INFO: Log Level                      INFO                       [VMA_TRACELEVEL]\n"
		  " VMA INFO: " DASHES "\n");
}

TEST(release_tells_less_about_the_process)
{
	struct banner_facts with = plain_facts;

	with.is_release = true;
	with.version = "10.0.0-3";
	with.time = "Sat Nov 21 03:00:00 2026";
	with.arch = "x86_64";
	with.node = "host";
	parse_quietly("PATH=/bin");
	print_with(&with);
	has_line(" VMA INFO: VMA_VERSION: 10.0.0-3 Release built on Nov 21 2026 03:00:00");
	lacks("Pid:");
	lacks("Current Time");
	parse_quietly("VMA_TRACELEVEL=debug");
	print_with(&with);
	has_line(" VMA DEBUG: Pid:    42");
	has_line(" VMA DEBUG: Current Time: Sat Nov 21 03:00:00 2026");
}

TEST(facts_in_their_order)
{
	struct banner_facts with = plain_facts;

	with.commit = "0123456789ab";
	with.cmdline = "sockperf sr";
	with.time = "Sat Nov 21 03:00:00 2026";
	with.arch = "x86_64";
	with.node = "host";
	with.system = "6.1.0";
	with.ofed = "rdma-core 44";
	parse_quietly("VMA_TRACELEVEL=debug");
	print_with(&with);
	*strstr(seen, " VMA INFO: Log Level") = '\0';
	CHECK_STR(seen,
		  " VMA INFO: " DASHES "\n"
		  " VMA INFO: VMA_VERSION: 10.0.0-0 Development Snapshot built on Nov 21 2026 03:00:00\n"
		  " VMA INFO: Git: 0123456789ab\n"
		  " VMA INFO: Cmd Line: sockperf sr\n"
		  " VMA INFO: Current Time: Sat Nov 21 03:00:00 2026\n"
		  " VMA INFO: Pid:    42\n"
		  " VMA INFO: Architecture: x86_64\n"
		  " VMA INFO: Node: host\n"
		  " VMA INFO: OFED Version: rdma-core 44\n"
		  " VMA DEBUG: System: 6.1.0\n"
		  " VMA INFO: " DASHES "\n");
}

TEST(changed_values_are_info)
{
	parse_quietly("VMA_RX_POLL=-1", "VMA_LOG_FILE=/tmp/x",
		      "VMA_RING_ALLOCATION_LOGIC_TX=31");
	print();
	has_line(" VMA INFO: Log File                       /tmp/x                     [VMA_LOG_FILE]");
	has_line(" VMA INFO: Ring allocation logic TX       31(Ring per core - attach threads) [VMA_RING_ALLOCATION_LOGIC_TX]");
	has_line(" VMA INFO: Rx Poll Loops                  -1                         [VMA_RX_POLL]");
	has_line(" VMA INFO: CQ Interrupts Moderation       Disabled                   [VMA_CQ_MODERATION_ENABLE]");
	has_line(" VMA INFO: CQ Adaptive Moderation         Disabled                   [VMA_CQ_AIM_INTERVAL_MSEC]");
	lacks("CQ AIM Interval");
	lacks("Tx Mem Bufs");
}

TEST(value_set_to_its_default_is_not_changed)
{
	parse_quietly("VMA_RX_BUFS=200000");
	print();
	lacks("Rx Mem Bufs");
}

/* Every parameter at its default, in VMA's order and columns. */
/* Where the line after the one of this variable begins. */
static char *line_after(const char *name)
{
	char *line = strstr(seen, name);

	return line ? strchr(line, '\n') + 1 : seen;
}

/* VMA's; our own come behind them. */
TEST(details_show_all_values)
{
	parse_quietly("VMA_TRACELEVEL=details");
	print();
	*line_after("[VMA_TRIGGER_DUMMY_SEND_GETSOCKNAME]") = '\0';
	CHECK_STR(strstr(seen, " VMA INFO: Log Level"),
		  " VMA INFO: Log Level                      DETAILS                    [VMA_TRACELEVEL]\n"
		  " VMA DETAILS: Log Details                    0                          [VMA_LOG_DETAILS]\n"
		  " VMA DETAILS: Log Colors                     Enabled                    [VMA_LOG_COLORS]\n"
		  " VMA DETAILS: Log File                                                  [VMA_LOG_FILE]\n"
		  " VMA DETAILS: Stats File                                                [VMA_STATS_FILE]\n"
		  " VMA DETAILS: Stats shared memory directory  /tmp/                      [VMA_STATS_SHMEM_DIR]\n"
		  " VMA DETAILS: SERVICE output directory       /tmp/vma                   [VMA_VMAD_NOTIFY_DIR]\n"
		  " VMA DETAILS: Stats FD Num (max)             100                        [VMA_STATS_FD_NUM]\n"
		  " VMA DETAILS: Conf File                      /etc/libvma.conf           [VMA_CONFIG_FILE]\n"
		  " VMA DETAILS: Application ID                 VMA_DEFAULT_APPLICATION_ID [VMA_APPLICATION_ID]\n"
		  " VMA DETAILS: Polling CPU idle usage         Disabled                   [VMA_CPU_USAGE_STATS]\n"
		  " VMA DETAILS: SigIntr Ctrl-C Handle          Disabled                   [VMA_HANDLE_SIGINTR]\n"
		  " VMA DETAILS: SegFault Backtrace             Disabled                   [VMA_HANDLE_SIGSEGV]\n"
		  " VMA DETAILS: Ring allocation logic TX       0 (Ring per interface)     [VMA_RING_ALLOCATION_LOGIC_TX]\n"
		  " VMA DETAILS: Ring allocation logic RX       0 (Ring per interface)     [VMA_RING_ALLOCATION_LOGIC_RX]\n"
		  " VMA DETAILS: Ring migration ratio TX        100                        [VMA_RING_MIGRATION_RATIO_TX]\n"
		  " VMA DETAILS: Ring migration ratio RX        100                        [VMA_RING_MIGRATION_RATIO_RX]\n"
		  " VMA DETAILS: Ring limit per interface       0 (no limit)               [VMA_RING_LIMIT_PER_INTERFACE]\n"
		  " VMA DETAILS: Ring On Device Memory TX       0                          [VMA_RING_DEV_MEM_TX]\n"
		  " VMA DETAILS: TCP max syn rate               0 (no limit)               [VMA_TCP_MAX_SYN_RATE]\n"
		  " VMA DETAILS: Tx Mem Segs TCP                1000000                    [VMA_TX_SEGS_TCP]\n"
		  " VMA DETAILS: Tx Mem Bufs                    200000                     [VMA_TX_BUFS]\n"
		  " VMA DETAILS: Tx QP WRE                      2048                       [VMA_TX_WRE]\n"
		  " VMA DETAILS: Tx QP WRE Batching             64                         [VMA_TX_WRE_BATCHING]\n"
		  " VMA DETAILS: Tx Max QP INLINE               204                        [VMA_TX_MAX_INLINE]\n"
		  " VMA DETAILS: Tx MC Loopback                 Enabled                    [VMA_TX_MC_LOOPBACK]\n"
		  " VMA DETAILS: Tx non-blocked eagains         Disabled                   [VMA_TX_NONBLOCKED_EAGAINS]\n"
		  " VMA DETAILS: Tx Prefetch Bytes              256                        [VMA_TX_PREFETCH_BYTES]\n"
		  " VMA DETAILS: Rx Mem Bufs                    200000                     [VMA_RX_BUFS]\n"
		  " VMA DETAILS: Rx QP WRE                      16000                      [VMA_RX_WRE]\n"
		  " VMA DETAILS: Rx QP WRE Batching             64                         [VMA_RX_WRE_BATCHING]\n"
		  " VMA DETAILS: Rx Byte Min Limit              65536                      [VMA_RX_BYTES_MIN]\n"
		  " VMA DETAILS: Rx Poll Loops                  100000                     [VMA_RX_POLL]\n"
		  " VMA DETAILS: Rx Poll Init Loops             0                          [VMA_RX_POLL_INIT]\n"
		  " VMA DETAILS: Rx UDP Poll OS Ratio           100                        [VMA_RX_UDP_POLL_OS_RATIO]\n"
		  " VMA DETAILS: HW TS Conversion               3                          [VMA_HW_TS_CONVERSION]\n"
		  " VMA DETAILS: Rx Poll Yield                  Disabled                   [VMA_RX_POLL_YIELD]\n"
		  " VMA DETAILS: Rx Prefetch Bytes              256                        [VMA_RX_PREFETCH_BYTES]\n"
		  " VMA DETAILS: Rx Prefetch Bytes Before Poll  0                          [VMA_RX_PREFETCH_BYTES_BEFORE_POLL]\n"
		  " VMA DETAILS: Rx CQ Drain Rate               Disabled                   [VMA_RX_CQ_DRAIN_RATE_NSEC]\n"
		  " VMA DETAILS: GRO max streams                32                         [VMA_GRO_STREAMS_MAX]\n"
		  " VMA DETAILS: TCP 3T rules                   Disabled                   [VMA_TCP_3T_RULES]\n"
		  " VMA DETAILS: UDP 3T rules                   Enabled                    [VMA_UDP_3T_RULES]\n"
		  " VMA DETAILS: ETH MC L2 only rules           Disabled                   [VMA_ETH_MC_L2_ONLY_RULES]\n"
		  " VMA DETAILS: Force Flowtag for MC           Disabled                   [VMA_MC_FORCE_FLOWTAG]\n"
		  " VMA DETAILS: Select Poll (usec)             100000                     [VMA_SELECT_POLL]\n"
		  " VMA DETAILS: Select Poll OS Ratio           10                         [VMA_SELECT_POLL_OS_RATIO]\n"
		  " VMA DETAILS: Select Skip OS                 4                          [VMA_SELECT_SKIP_OS]\n"
		  " VMA DETAILS: CQ Drain Interval (msec)       10                         [VMA_PROGRESS_ENGINE_INTERVAL]\n"
		  " VMA DETAILS: CQ Drain WCE (max)             10000                      [VMA_PROGRESS_ENGINE_WCE_MAX]\n"
		  " VMA DETAILS: CQ Interrupts Moderation       Enabled                    [VMA_CQ_MODERATION_ENABLE]\n"
		  " VMA DETAILS: CQ Moderation Count            48                         [VMA_CQ_MODERATION_COUNT]\n"
		  " VMA DETAILS: CQ Moderation Period (usec)    50                         [VMA_CQ_MODERATION_PERIOD_USEC]\n"
		  " VMA DETAILS: CQ AIM Max Count               560                        [VMA_CQ_AIM_MAX_COUNT]\n"
		  " VMA DETAILS: CQ AIM Max Period (usec)       250                        [VMA_CQ_AIM_MAX_PERIOD_USEC]\n"
		  " VMA DETAILS: CQ AIM Interval (msec)         250                        [VMA_CQ_AIM_INTERVAL_MSEC]\n"
		  " VMA DETAILS: CQ AIM Interrupts Rate (per sec) 5000                       [VMA_CQ_AIM_INTERRUPTS_RATE_PER_SEC]\n"
		  " VMA DETAILS: CQ Poll Batch (max)            16                         [VMA_CQ_POLL_BATCH_MAX]\n"
		  " VMA DETAILS: CQ Keeps QP Full               Enabled                    [VMA_CQ_KEEP_QP_FULL]\n"
		  " VMA DETAILS: QP Compensation Level          256                        [VMA_QP_COMPENSATION_LEVEL]\n"
		  " VMA DETAILS: Offloaded Sockets              Enabled                    [VMA_OFFLOADED_SOCKETS]\n"
		  " VMA DETAILS: Timer Resolution (msec)        10                         [VMA_TIMER_RESOLUTION_MSEC]\n"
		  " VMA DETAILS: TCP Timer Resolution (msec)    100                        [VMA_TCP_TIMER_RESOLUTION_MSEC]\n"
		  " VMA DETAILS: TCP control thread             0 (Disabled)               [VMA_TCP_CTL_THREAD]\n"
		  " VMA DETAILS: TCP timestamp option           0                          [VMA_TCP_TIMESTAMP_OPTION]\n"
		  " VMA DETAILS: TCP nodelay                    0                          [VMA_TCP_NODELAY]\n"
		  " VMA DETAILS: TCP quickack                   0                          [VMA_TCP_QUICKACK]\n"
		  " VMA DETAILS: Exception handling mode        -1(just log debug message) [VMA_EXCEPTION_HANDLING]\n"
		  " VMA DETAILS: Avoid sys-calls on tcp fd      Disabled                   [VMA_AVOID_SYS_CALLS_ON_TCP_FD]\n"
		  " VMA DETAILS: Allow privileged sock opt      Enabled                    [VMA_ALLOW_PRIVILEGED_SOCK_OPT]\n"
		  " VMA DETAILS: Delay after join (msec)        0                          [VMA_WAIT_AFTER_JOIN_MSEC]\n"
		  " VMA DETAILS: Internal Thread Affinity       -1                         [VMA_INTERNAL_THREAD_AFFINITY]\n"
		  " VMA DETAILS: Internal Thread Cpuset                                    [VMA_INTERNAL_THREAD_CPUSET]\n"
		  " VMA DETAILS: Internal Thread Arm CQ         Disabled                   [VMA_INTERNAL_THREAD_ARM_CQ]\n"
		  " VMA DETAILS: Thread mode                    Multi spin lock            [VMA_THREAD_MODE]\n"
		  " VMA DETAILS: Buffer batching mode           1 (Batch and reclaim buffers) [VMA_BUFFER_BATCHING_MODE]\n"
		  " VMA DETAILS: Mem Allocate type              1 (Contig Pages)           [VMA_MEM_ALLOC_TYPE]\n"
		  " VMA DETAILS: Num of UC ARPs                 3                          [VMA_NEIGH_UC_ARP_QUATA]\n"
		  " VMA DETAILS: UC ARP delay (msec)            10000                      [VMA_NEIGH_UC_ARP_DELAY_MSEC]\n"
		  " VMA DETAILS: Num of neigh restart retries   1                          [VMA_NEIGH_NUM_ERR_RETRIES]\n"
		  " VMA DETAILS: SocketXtreme mode              Disabled                   [VMA_SOCKETXTREME]\n"
		  " VMA DETAILS: BF (Blue Flame)                Enabled                    [VMA_BF]\n"
		  " VMA DETAILS: fork() support                 Enabled                    [VMA_FORK]\n"
		  " VMA DETAILS: close on dup2()                Enabled                    [VMA_CLOSE_ON_DUP2]\n"
		  " VMA DETAILS: MTU                            0 (follow actual MTU)      [VMA_MTU]\n"
		  " VMA DETAILS: MSS                            0 (follow VMA_MTU)         [VMA_MSS]\n"
		  " VMA DETAILS: TCP CC Algorithm               0 (LWIP)                   [VMA_TCP_CC_ALGO]\n"
		  " VMA DETAILS: Deferred close                 Disabled                   [VMA_DEFERRED_CLOSE]\n"
		  " VMA DETAILS: Polling Rx on Tx TCP           Disabled                   [VMA_RX_POLL_ON_TX_TCP]\n"
		  " VMA DETAILS: Trig dummy send getsockname()  Disabled                   [VMA_TRIGGER_DUMMY_SEND_GETSOCKNAME]\n");
}

TEST(details_show_each_option_by_its_line)
{
	char name[128], line[256];

	parse_quietly("VMA_TRACELEVEL=details");
	print();
	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		const struct option_info *info = &option_infos[id];

		if (info->show == OPTION_SHOW_HIDDEN)
			continue;
		snprintf(name, sizeof(name), "[%s]", info->name);
		snprintf(line, sizeof(line), ": %-30s ", info->label);
		if (!strstr(seen, name) || !strstr(seen, line))
			FAIL("no line of %s", info->name);
	}
}

TEST(drain_lines_change_when_off)
{
	parse_quietly("VMA_PROGRESS_ENGINE_WCE_MAX=0");
	print();
	has_line(" VMA INFO: CQ Drain Thread                Disabled                   [VMA_PROGRESS_ENGINE_INTERVAL]");
	lacks("CQ Drain Interval");
	lacks("CQ Drain WCE");
	parse_quietly("VMA_PROGRESS_ENGINE_INTERVAL=0");
	print();
	has_line(" VMA INFO: CQ Drain Thread                Disabled                   [VMA_PROGRESS_ENGINE_INTERVAL]");
	lacks("CQ Drain WCE");
	parse_quietly("VMA_RX_CQ_DRAIN_RATE_NSEC=500");
	print();
	has_line(" VMA INFO: Rx CQ Drain Rate (nsec)        500                        [VMA_RX_CQ_DRAIN_RATE_NSEC]");
}

TEST(limits_are_put_in_words)
{
	parse_quietly("VMA_TCP_MAX_SYN_RATE=10", "VMA_RING_LIMIT_PER_INTERFACE=4",
		      "VMA_MTU=1400", "VMA_EXCEPTION_HANDLING=3",
		      "VMA_MEM_ALLOC_TYPE=2");
	print();
	has_line(" VMA INFO: Ring limit per interface       4                          [VMA_RING_LIMIT_PER_INTERFACE]");
	has_line(" VMA INFO: TCP max syn rate               10(per sec)                [VMA_TCP_MAX_SYN_RATE]");
	has_line(" VMA INFO: MTU                            1400                       [VMA_MTU]");
	has_line(" VMA INFO: Exception handling mode        3 (Log error and Abort!)   [VMA_EXCEPTION_HANDLING]");
	has_line(" VMA INFO: Mem Allocate type              2 (Huge Pages)             [VMA_MEM_ALLOC_TYPE]");
}

TEST(profile_is_the_first_line)
{
	parse_quietly("VMA_SPEC=latency");
	print();
	CHECK(strstr(seen, DASHES "\n VMA INFO: VMA Spec                       Latency                    [VMA_SPEC]\n"
			   " VMA INFO: Log Level                      INFO "));
	lacks("Param 1:");
	parse_quietly("VMA_SPEC=29west", "VMA_SPEC_PARAM1=1");
	print();
	has_line(" VMA INFO: VMA Spec                       29West LBM Logic           [VMA_SPEC]");
	has_line(" VMA INFO: Param 2:                       50                         [VMA_SPEC_PARAM2]");
}

TEST(what_is_not_effective_is_said_once)
{
	parse_quietly("VMA_CONFIG_FILE=/tmp/c", "VMA_LOG_COLORS=0");
	print();
	lacks("Not effective yet");
	parse_quietly("VMA_NETLINK_TIMER=10000", "VMA_HANDLE_SIGSEGV=1",
		      "VMA_WAIT_AFTER_JOIN_MSEC=5");
	print();
	has_line(" VMA INFO: Not effective yet: VMA_HANDLE_SIGSEGV, VMA_NETLINK_TIMER");
	has_line(" VMA INFO: Without effect: VMA_WAIT_AFTER_JOIN_MSEC");
}

/* A line of the log has its limits; no name is lost at them. */
TEST(long_lists_go_on_in_another_line)
{
	char names[OPTION_CNT][64], *s;
	const char *env[OPTION_CNT + 1];
	int cnt = 0, named = 0;

	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		if (option_infos[id].effect != OPTION_EFFECT_LATER ||
		    option_infos[id].kind != OPTION_KIND_flag)
			continue;
		snprintf(names[cnt], sizeof(names[0]), "%s=1",
			 option_infos[id].name);
		env[cnt] = names[cnt];
		cnt++;
	}
	env[cnt] = NULL;
	parse_env(env);
	print();
	for (s = seen; (s = strstr(s, "Not effective yet: ")); s++) {
		size_t len = strcspn(s, "\n");

		CHECK(len < LOG_LINE_SIZE);
		for (const char *c = s; c < s + len; c++)
			named += strncmp(c, "VMA_", 4) == 0;
	}
	CHECK(named >= cnt);
}

TEST(high_level_is_warned_about)
{
	parse_quietly("VMA_TRACELEVEL=details");
	print();
	lacks("WARNING");
	parse_quietly("VMA_TRACELEVEL=debug");
	print();
	has_line(" VMA WARNING: * The log level is DEBUG, which is for debugging: the program runs slower.");
}

TEST(memlock_is_warned_about_if_memory_is_locked)
{
	struct banner_facts with = plain_facts;

	parse_quietly("PATH=/bin");
	print();
	lacks("WARNING");
	with.will_lock_memory = true;
	print_with(&with);
	has_line(" VMA WARNING: * This process may lock 65536 bytes of memory; packet buffers need more.");
	with.memlock_limit = MEMLOCK_UNLIMITED;
	print_with(&with);
	lacks("WARNING");
}

TEST(what_is_not_effective_is_not_announced)
{
	parse_quietly("VMA_HANDLE_SIGSEGV=1");
	print();
	has_line(" VMA INFO: Not effective yet: VMA_HANDLE_SIGSEGV");
	lacks("WARNING");
}

static bool has_advice(const char *cmdline)
{
	struct banner_facts with = plain_facts;

	with.cmdline = cmdline;
	parse_quietly("PATH=/bin");
	return strstr(print_with(&with), "netserver forks") != NULL;
}

TEST(netserver_gets_advice)
{
	CHECK(has_advice("netserver"));
	CHECK(has_advice("/usr/bin/netserver -p 1"));
	CHECK(!has_advice("netserver -D"));
	CHECK(!has_advice("netserver -f -p 1"));
	CHECK(!has_advice("netserverx"));
	CHECK(!has_advice("./x/netserver/other"));
	CHECK(!has_advice(""));
}

TEST(level_below_info_is_silent)
{
	parse_quietly("VMA_TRACELEVEL=warn");
	CHECK_STR(print(), "");
}
