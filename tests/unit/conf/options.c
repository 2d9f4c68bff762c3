/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parser does with the environment as a whole; each_option.c has the
 * single options. */
#include "conf/options.h"

#include "tests/unit/conf/env.h"

TEST(empty_environment_gives_defaults)
{
	parse_env((const char *const[]){ NULL });
	CHECK_EQ(report_cnt, 0);
	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		if (!option_is_default(&opts, id))
			FAIL("%s differs", option_infos[id].name);
		CHECK(!opts.is_set[id]);
	}
	CHECK_EQ(opts.tx_batch_udp, 8);
	CHECK_EQ(opts.tx_batch_tcp, 16);
	CHECK_EQ(opts.rx_batch, 64);
}

TEST(init_defaults_is_parsing_nothing)
{
	static struct options fresh;

	options_init_defaults(&fresh);
	CHECK_EQ(fresh.rx_poll, 100000);
	CHECK_STR(fresh.config_file, "/etc/libvma.conf");
	CHECK(fresh.log_colors);
}

TEST(parsing_again_starts_over)
{
	parse_quietly("VMA_RX_POLL=5", "VMA_LOG_FILE=/tmp/x");
	parse_quietly("VMA_MTU=1400");
	CHECK_EQ(opts.rx_poll, 100000);
	CHECK_STR(opts.log_file, "");
	CHECK(!opts.is_set[OPTION_rx_poll]);
	CHECK(opts.is_set[OPTION_mtu]);
}

TEST(report_may_be_absent)
{
	const char *const env[] = { "VMA_RX_POLL=junk", "VMA_XYZZY=1", NULL };

	CHECK_EQ(options_parse(&opts, (char *const *)env, &facts, NULL, NULL),
		 2);
}

TEST(other_variables_do_not_matter)
{
	parse_quietly("PATH=/bin", "VMA", "=x", "", "VMAX=1", "vma_mtu=9",
		      "VMA_RX_POLL", "XVMA_RX_POLL=1");
	CHECK_EQ(opts.rx_poll, 100000);
}

TEST(first_of_equal_names_wins)
{
	parse_quietly("VMA_RX_POLL=5", "VMA_RX_POLL=6");
	CHECK_EQ(opts.rx_poll, 5);
}

TEST(unknown_name_gets_suggestion)
{
	parse("VMA_RX_POL=1");
	CHECK_STR(only_report(),
		  "\"VMA_RX_POL\" is not an option; did you mean VMA_RX_POLL?");
	parse("VMA_Spec=latency");
	CHECK_STR(only_report(),
		  "\"VMA_Spec\" is not an option; did you mean VMA_SPEC?");
	parse("VMA_HOME=/root");
	CHECK_STR(only_report(), "\"VMA_HOME\" is not an option");
	parse("VMA_=1");
	CHECK_STR(only_report(), "\"VMA_\" is not an option");
}

TEST(unknown_names_do_not_flood)
{
	static char names[100][16];
	const char *env[101];

	for (int i = 0; i < 100; i++) {
		snprintf(names[i], sizeof(names[i]), "VMA_%04d=1", i * 97);
		env[i] = names[i];
	}
	env[100] = NULL;
	parse_env(env);
	CHECK_EQ(report_cnt, 9);
	CHECK_STR(reports[8], "92 more VMA_ variables are not options");
}

TEST(misprints_of_the_manual_are_named)
{
	static const char *const pairs[][2] = {
		{ "VMA_TRACE_LEVEL", "VMA_TRACELEVEL" },
		{ "VMA_HANDLER_SIGINTR", "VMA_HANDLE_SIGINTR" },
		{ "VMA_HANDLER_SIGSEGV", "VMA_HANDLE_SIGSEGV" },
		{ "VMA_TX_WORK", "VMA_TX_WRE" },
		{ "VMA_TX_WORK_BATCHING", "VMA_TX_WRE_BATCHING" },
		{ "VMA_TX_MULTICAST_LOOPBACK", "VMA_TX_MC_LOOPBACK" },
		{ "VMA_RX_BUFFS", "VMA_RX_BUFS" },
		{ "VMA_RX_WORK_ELEMENTS", "VMA_RX_WRE" },
		{ "VMA_RX_WORK_ELEMENTS_BATCHING", "VMA_RX_WRE_BATCHING" },
		{ "VMA_ETH_MC_L2_ON_LY_RULES", "VMA_ETH_MC_L2_ONLY_RULES" },
		{ "VMA_TCP_C_C_ALGO", "VMA_TCP_CC_ALGO" },
		{ "VMA_ALLOW_PRIVILEGED_SOCKET_OPT",
		  "VMA_ALLOW_PRIVILEGED_SOCK_OPT" },
		{ "VMA_MEMORY_ALLOCATION_TYPE", "VMA_MEM_ALLOC_TYPE" },
		{ "VMA_MAX_INLINE", "VMA_TX_MAX_INLINE" },
		{ "VMA_CQ_DRAIN_INTERVAL", "VMA_PROGRESS_ENGINE_INTERVAL" },
		{ "VMA_CQ_DRAIN_WCE_MAX", "VMA_PROGRESS_ENGINE_WCE_MAX" },
	};
	char assignment[64], want[160];

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		snprintf(assignment, sizeof(assignment), "%s=1", pairs[i][0]);
		snprintf(want, sizeof(want),
			 "%s is not an option; some manuals call %s so",
			 pairs[i][0], pairs[i][1]);
		parse(assignment);
		CHECK_STR(only_report(), want);
		CHECK(option_find(pairs[i][1], strlen(pairs[i][1])) !=
		      OPTION_CNT);
	}
}

TEST(names_of_other_versions_are_explained)
{
	static const char *const names[] = {
		"VMA_HUGETBL", "VMA_IPOIB",
		"VMA_INTERNAL_THREAD_TCP_TIMER_HANDLING", "VMA_QP_LOGIC",
		"VMA_DBG_SEND_MCPKT_COUNTER", "VMA_DBG_SEND_MCPKT_MCGROUP",
	};
	char assignment[64], want[128];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(assignment, sizeof(assignment), "%s=1", names[i]);
		snprintf(want, sizeof(want),
			 "%s is not an option of this version: ", names[i]);
		parse(assignment);
		CHECK(strncmp(only_report(), want, strlen(want)) == 0);
	}
}

TEST(xlio_names_are_mentioned_once)
{
	parse("XLIO_SPEC=latency", "XLIO_TSO=1", "XLIO_LRO=1");
	CHECK_STR(only_report(),
		  "3 variables begin with XLIO_, which is another product; the options of this library begin with VMA_");
}

TEST(deprecated_names_work_and_win)
{
	parse("VMA_RX_POLL_OS_RATIO=7", "VMA_RX_UDP_POLL_OS_RATIO=3");
	CHECK_STR(only_report(),
		  "VMA_RX_POLL_OS_RATIO is deprecated; use VMA_RX_UDP_POLL_OS_RATIO");
	CHECK_EQ(opts.rx_poll_os_ratio, 7);
	CHECK(opts.is_set[OPTION_rx_poll_os_ratio]);
	parse("VMA_RX_SKIP_OS=9", "VMA_RX_POLL_OS_RATIO=7");
	CHECK_EQ(report_cnt, 2);
	CHECK_EQ(opts.rx_poll_os_ratio, 9);
	parse("VMA_RX_SKIP_OS=many");
	CHECK_STR(only_report(),
		  "VMA_RX_SKIP_OS=\"many\": must be a whole number from 0 to 2147483647; using 100");
}

TEST(bad_value_keeps_what_the_profile_gave)
{
	parse("VMA_SPEC=latency", "VMA_RX_WRE=many");
	CHECK_STR(only_report(),
		  "VMA_RX_WRE=\"many\": must be a whole number from 1 to 2147483647; using 256");
	CHECK_EQ(opts.rx_wre, 256);
}

TEST(explicit_value_beats_the_profile)
{
	parse_quietly("VMA_RX_WRE=512", "VMA_SPEC=latency",
		      "VMA_INTERNAL_THREAD_AFFINITY=2", "VMA_TCP_NODELAY=0");
	CHECK_EQ(opts.rx_wre, 512);
	CHECK_STR(opts.thread_affinity, "2");
	CHECK(!opts.tcp_nodelay);
	CHECK_EQ(opts.tx_wre, 256);
}

TEST(long_and_odd_values_are_shown_safely)
{
	static char long_value[100000] = "VMA_RX_POLL=";

	memset(long_value + strlen(long_value), 'a', sizeof(long_value) - 13);
	parse(long_value);
	CHECK(strlen(only_report()) < 256);
	CHECK(strstr(reports[0], "aaa...\""));
	parse("VMA_RX_POLL=\x1b[31m\n\xff");
	CHECK_STR(only_report(),
		  "VMA_RX_POLL=\"?[31m??\": must be a whole number from -1 to 100000000; using 100000");
	parse("VMA_\x1b[31m=1");
	CHECK_STR(only_report(), "\"VMA_?[31m\" is not an option");
}

TEST(socketxtreme_presets)
{
	parse_quietly("VMA_SOCKETXTREME=1");
	CHECK_EQ(opts.rx_wre, 1024);
	CHECK_EQ(opts.gro_streams_max, 0);
	CHECK_EQ(opts.progress_interval, 0);
	/* Explicit values win, but for the progress engine. */
	parse("VMA_SOCKETXTREME=1", "VMA_RX_WRE=2000",
	      "VMA_PROGRESS_ENGINE_INTERVAL=5");
	CHECK_STR(only_report(),
		  "VMA_PROGRESS_ENGINE_INTERVAL=5: the program polls under VMA_SOCKETXTREME; using 0");
	CHECK_EQ(opts.rx_wre, 2000);
	/* The profile comes after it. */
	parse_quietly("VMA_SOCKETXTREME=1", "VMA_SPEC=latency");
	CHECK_EQ(opts.rx_wre, 256);
	CHECK_EQ(opts.progress_interval, 0);
}

TEST(select_poll_os_force_presets)
{
	parse_quietly("VMA_SELECT_POLL_OS_FORCE=1");
	CHECK_EQ(opts.select_poll_os_ratio, 1);
	CHECK_EQ(opts.select_skip_os, 1);
	parse_quietly("VMA_SELECT_POLL_OS_FORCE=1", "VMA_SELECT_SKIP_OS=20");
	CHECK_EQ(opts.select_poll_os_ratio, 1);
	CHECK_EQ(opts.select_skip_os, 20);
}

TEST(log_details_follow_the_level)
{
	parse_quietly("VMA_TRACELEVEL=details");
	CHECK_EQ(opts.log_details, 0);
	parse_quietly("VMA_TRACELEVEL=debug");
	CHECK_EQ(opts.log_details, 2);
	parse_quietly("VMA_TRACELEVEL=debug", "VMA_LOG_DETAILS=0");
	CHECK_EQ(opts.log_details, 0);
}

TEST(level_the_build_lacks_is_clamped)
{
	facts.log_level_max = LOG_LEVEL_DEBUG;
	parse("VMA_TRACELEVEL=finer");
	facts.log_level_max = LOG_LEVEL_ALL;
	CHECK_STR(only_report(),
		  "VMA_TRACELEVEL=finer: more than this build can log; using debug");
	CHECK_EQ(opts.log_level, LOG_LEVEL_DEBUG);
	CHECK_EQ(opts.log_details, 2);
}

TEST(queue_depths_follow_the_batches)
{
	parse("VMA_TX_WRE=100");
	CHECK_STR(only_report(),
		  "VMA_TX_WRE=100: less than twice VMA_TX_WRE_BATCHING; using 128");
	CHECK_EQ(opts.tx_wre, 128);
	parse_quietly("VMA_TX_WRE=128");
	parse("VMA_RX_WRE=100", "VMA_RX_WRE_BATCHING=60");
	CHECK_STR(only_report(),
		  "VMA_RX_WRE=100: less than twice VMA_RX_WRE_BATCHING; using 120");
	parse("VMA_RX_WRE=2", "VMA_RX_WRE_BATCHING=1");
	CHECK_STR(only_report(),
		  "VMA_RX_WRE=2: too few to receive while others are given back; using 4");
	CHECK_EQ(opts.rx_wre, 4);
	parse_quietly("VMA_RX_WRE=4", "VMA_RX_WRE_BATCHING=1");
	parse("VMA_RX_WRE=3", "VMA_RX_WRE_BATCHING=2");
	CHECK_STR(only_report(),
		  "VMA_RX_WRE=3: less than twice VMA_RX_WRE_BATCHING; using 4");
	parse("VMA_QP_COMPENSATION_LEVEL=3");
	CHECK_STR(only_report(),
		  "VMA_QP_COMPENSATION_LEVEL=3: less than VMA_RX_WRE_BATCHING; using 64");
	/* Nobody is told about a value nobody gave. */
	parse_quietly("VMA_RX_WRE_BATCHING=1024");
	CHECK_EQ(opts.qp_compensation, 1024);
}

TEST(send_queue_is_bounded_by_its_memory)
{
	/* Entries of 192 + 12 bytes take 256: 2 MiB hold 8192. */
	parse("VMA_TX_WRE=8193");
	CHECK_STR(only_report(),
		  "VMA_TX_WRE=8193: too many for this VMA_TX_MAX_INLINE; using 8192");
	parse_quietly("VMA_TX_WRE=8192");
	/* 872 bytes round to 896; with the header, to 960. */
	parse("VMA_TX_WRE=100000", "VMA_TX_MAX_INLINE=884");
	CHECK_EQ(opts.tx_wre, 2184);
	parse("VMA_TX_WRE=100000", "VMA_TX_MAX_INLINE=0");
	CHECK_EQ(opts.tx_wre, 32768);
}

TEST(rx_poll_of_zero_polls_once)
{
	parse_quietly("VMA_RX_POLL=0", "VMA_RX_POLL_INIT=0");
	CHECK_EQ(opts.rx_poll, 1);
	CHECK_EQ(opts.rx_poll_init, 0);
}

TEST(polling_for_ever_ends_moderation)
{
	parse_quietly("VMA_RX_POLL=-1");
	CHECK(!opts.cq_moderation);
	CHECK_EQ(opts.cq_aim_interval, 0);
	parse_quietly("VMA_SELECT_POLL=-1");
	CHECK(!opts.cq_moderation);
	parse_quietly("VMA_SELECT_POLL=-1", "VMA_CQ_MODERATION_ENABLE=1");
	CHECK(opts.cq_moderation);
	CHECK_EQ(opts.cq_aim_interval, 250);
	parse("VMA_CQ_MODERATION_ENABLE=0", "VMA_CQ_AIM_INTERVAL_MSEC=100");
	CHECK_STR(only_report(),
		  "VMA_CQ_AIM_INTERVAL_MSEC=100: moderation is off; using 0");
}

TEST(moderation_is_within_half_the_queue)
{
	parse("VMA_RX_WRE=160", "VMA_CQ_AIM_MAX_COUNT=81",
	      "VMA_CQ_MODERATION_COUNT=80");
	CHECK_STR(only_report(),
		  "VMA_CQ_AIM_MAX_COUNT=81: more than half of VMA_RX_WRE; using 80");
	CHECK_EQ(opts.cq_moderation_count, 80);
	CHECK_EQ(opts.cq_aim_max_count, 80);
}

TEST(tcp_timer_is_no_finer_than_the_tick)
{
	parse("VMA_TCP_TIMER_RESOLUTION_MSEC=5");
	CHECK_STR(only_report(),
		  "VMA_TCP_TIMER_RESOLUTION_MSEC=5: less than VMA_TIMER_RESOLUTION_MSEC; using 10");
	parse_quietly("VMA_TIMER_RESOLUTION_MSEC=200");
	CHECK_EQ(opts.tcp_timer_resolution, 200);
}

TEST(no_batching_means_batches_of_one)
{
	parse_quietly("VMA_BUFFER_BATCHING_MODE=0");
	CHECK_EQ(opts.tx_batch_udp, 1);
	CHECK_EQ(opts.tx_batch_tcp, 1);
	CHECK_EQ(opts.rx_batch, 1);
}

TEST(hypervisors_change_memory_and_blue_flame)
{
	facts.hypervisor = HYPERVISOR_MICROSOFT;
	parse("VMA_BF=1");
	CHECK_STR(only_report(),
		  "VMA_BF=1: not available under a hypervisor; using 0");
	CHECK(!opts.blue_flame);
	CHECK_EQ(opts.mem_alloc_type, 2);
	parse_quietly("VMA_MEM_ALLOC_TYPE=0");
	CHECK_EQ(opts.mem_alloc_type, 0);
	facts.hypervisor = HYPERVISOR_OTHER;
	parse_quietly("PATH=/bin");
	CHECK(!opts.blue_flame);
	CHECK_EQ(opts.mem_alloc_type, 1);
	facts.hypervisor = HYPERVISOR_NONE;
}

TEST(all_texts_fit_at_once)
{
	static char env_text[OPTION_CNT][OPTION_TEXT_MAX + 64];
	const char *env[OPTION_CNT + 1];
	size_t cnt = 0, name_len;

	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		if (!option_is_text(id) || id == OPTION_thread_affinity)
			continue;
		name_len = strlen(option_infos[id].name);
		memset(env_text[cnt], 'y', name_len + 1 + OPTION_TEXT_MAX);
		memcpy(env_text[cnt], option_infos[id].name, name_len);
		env_text[cnt][name_len] = '=';
		env[cnt] = env_text[cnt];
		cnt++;
	}
	env[cnt] = NULL;
	parse_env(env);
	CHECK_EQ(report_cnt, 0);
	CHECK_EQ(strlen(opts.log_file), OPTION_TEXT_MAX);
	CHECK_EQ(strlen(opts.xdp_interfaces), OPTION_TEXT_MAX);
	CHECK(opts.log_file != opts.xdp_interfaces);
}

TEST(pipes_are_wrapped_by_two_profiles)
{
	parse_quietly("VMA_SPEC=29west");
	CHECK(options_wrap_pipes(&opts));
	parse_quietly("VMA_SPEC=wombat_fh");
	CHECK(options_wrap_pipes(&opts));
	parse_quietly("VMA_SPEC=latency");
	CHECK(!options_wrap_pipes(&opts));
}
