/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each profile by every spelling: what it sets, as documented, and that it sets
 * nothing else. */
#include "tests/unit/conf/env.h"

struct value {
	const char *name;
	const char *value;
};

static bool has_name(const struct value *values, const char *name)
{
	for (; values->name; values++)
		if (strcmp(values->name, name) == 0)
			return true;
	return false;
}

static void check_profile(const char *spelling, enum spec spec,
			  const struct value *values)
{
	char assignment[64], text[64];

	snprintf(assignment, sizeof(assignment), "VMA_SPEC=%s", spelling);
	parse_quietly(assignment);
	CHECK_EQ(opts.spec, spec);
	for (const struct value *v = values; v->name; v++) {
		enum option_id id = option_find(v->name, strlen(v->name));

		CHECK(id != OPTION_CNT);
		option_value(&opts, id, text, sizeof(text));
		if (strcmp(text, v->value) != 0)
			FAIL("%s is %s, expected %s", v->name, text, v->value);
	}
	for (enum option_id id = 0; id < OPTION_CNT; id++)
		if (id != OPTION_spec && !option_is_default(&opts, id) &&
		    !has_name(values, option_infos[id].name))
			FAIL("%s is changed, too", option_infos[id].name);
}

#define PROFILE(spec, values, ...)                                        \
	do {                                                              \
		static const char *const names_[] = { __VA_ARGS__ };      \
		for (size_t i_ = 0; i_ < ARRAY_LEN(names_); i_++)         \
			check_profile(names_[i_], spec, values);          \
	} while (0)

static void check_batches(int udp, int tcp, int rx)
{
	CHECK_EQ(opts.tx_batch_udp, udp);
	CHECK_EQ(opts.tx_batch_tcp, tcp);
	CHECK_EQ(opts.rx_batch, rx);
}

TEST(none)
{
	static const struct value values[] = { { 0 } };

	PROFILE(SPEC_NONE, values, "none", "NONE", "0");
	check_batches(8, 16, 64);
}

/* The derived values come last: moderation and its adaptation are off because
 * the profile polls for ever. */
TEST(ultra_latency)
{
	static const struct value values[] = {
		{ "VMA_TX_SEGS_TCP", "512" },
		{ "VMA_TX_BUFS", "512" },
		{ "VMA_TX_WRE", "256" },
		{ "VMA_TX_WRE_BATCHING", "4" },
		{ "VMA_TX_PREFETCH_BYTES", "256" },
		{ "VMA_RX_BUFS", "1024" },
		{ "VMA_RX_WRE", "256" },
		{ "VMA_RX_WRE_BATCHING", "4" },
		{ "VMA_RX_POLL", "-1" },
		{ "VMA_RX_UDP_POLL_OS_RATIO", "0" },
		{ "VMA_RX_PREFETCH_BYTES", "256" },
		{ "VMA_RX_PREFETCH_BYTES_BEFORE_POLL", "256" },
		{ "VMA_SELECT_POLL", "-1" },
		{ "VMA_SELECT_POLL_OS_RATIO", "0" },
		{ "VMA_SELECT_SKIP_OS", "0" },
		{ "VMA_AVOID_SYS_CALLS_ON_TCP_FD", "1" },
		{ "VMA_GRO_STREAMS_MAX", "0" },
		{ "VMA_PROGRESS_ENGINE_INTERVAL", "0" },
		{ "VMA_CQ_KEEP_QP_FULL", "0" },
		{ "VMA_THREAD_MODE", "0" },
		{ "VMA_MEM_ALLOC_TYPE", "2" },
		{ "VMA_TCP_NODELAY", "1" },
		{ "VMA_RING_DEV_MEM_TX", "16384" },
		{ "VMA_INTERNAL_THREAD_AFFINITY", "0" },
		{ "VMA_XDP_MULTI_BUFFER", "0" },
		{ "VMA_CQ_MODERATION_ENABLE", "0" },
		{ "VMA_CQ_AIM_INTERVAL_MSEC", "0" },
		{ "VMA_CQ_AIM_MAX_COUNT", "128" },
		{ 0 },
	};

	PROFILE(SPEC_ULTRA_LATENCY, values, "ultra-latency", "Ultra-Latency",
		"10");
	check_batches(1, 1, 4);
}

TEST(latency)
{
	static const struct value values[] = {
		{ "VMA_TX_WRE", "256" },
		{ "VMA_TX_WRE_BATCHING", "4" },
		{ "VMA_RX_WRE", "256" },
		{ "VMA_RX_WRE_BATCHING", "4" },
		{ "VMA_RX_POLL", "-1" },
		{ "VMA_RX_PREFETCH_BYTES_BEFORE_POLL", "256" },
		{ "VMA_SELECT_POLL", "-1" },
		{ "VMA_SELECT_POLL_OS_RATIO", "1" },
		{ "VMA_SELECT_SKIP_OS", "1" },
		{ "VMA_AVOID_SYS_CALLS_ON_TCP_FD", "1" },
		{ "VMA_GRO_STREAMS_MAX", "0" },
		{ "VMA_PROGRESS_ENGINE_INTERVAL", "100" },
		{ "VMA_CQ_KEEP_QP_FULL", "0" },
		{ "VMA_THREAD_MODE", "0" },
		{ "VMA_MEM_ALLOC_TYPE", "2" },
		{ "VMA_TCP_NODELAY", "1" },
		{ "VMA_RING_DEV_MEM_TX", "16384" },
		{ "VMA_INTERNAL_THREAD_AFFINITY", "0" },
		{ "VMA_XDP_MULTI_BUFFER", "0" },
		{ "VMA_CQ_MODERATION_ENABLE", "0" },
		{ "VMA_CQ_AIM_INTERVAL_MSEC", "0" },
		{ "VMA_CQ_AIM_MAX_COUNT", "128" },
		{ 0 },
	};

	PROFILE(SPEC_LATENCY, values, "latency", "LATENCY", "15");
	check_batches(1, 1, 4);
}

/* VMA_RX_POLL of 0 means a single poll, and is stored as 1. */
TEST(spec_29west)
{
	static const struct value values[] = {
		{ "VMA_SPEC_PARAM1", "5000" },
		{ "VMA_SPEC_PARAM2", "50" },
		{ "VMA_RX_POLL", "1" },
		{ "VMA_RX_UDP_POLL_OS_RATIO", "100" },
		{ "VMA_SELECT_POLL", "100000" },
		{ "VMA_SELECT_POLL_OS_RATIO", "100" },
		{ "VMA_SELECT_SKIP_OS", "50" },
		{ 0 },
	};

	PROFILE(SPEC_29WEST, values, "29west", "29West", "29");
	check_batches(8, 16, 64);
	parse_quietly("VMA_SPEC=29west", "VMA_SPEC_PARAM2=7");
	CHECK_EQ(opts.spec_param1, 5000);
	CHECK_EQ(opts.spec_param2, 7);
}

TEST(wombat_fh)
{
	static const struct value values[] = {
		{ "VMA_SPEC_PARAM1", "5000" },
		{ "VMA_SPEC_PARAM2", "50" },
		{ "VMA_RX_POLL", "1" },
		{ "VMA_RX_UDP_POLL_OS_RATIO", "100" },
		{ "VMA_SELECT_POLL", "0" },
		{ "VMA_SELECT_SKIP_OS", "20" },
		{ 0 },
	};

	PROFILE(SPEC_WOMBAT_FH, values, "wombat_fh", "WOMBAT_FH", "554");
}

TEST(mcd)
{
	static const struct value values[] = {
		{ "VMA_RING_ALLOCATION_LOGIC_TX", "31" },
		{ "VMA_RING_ALLOCATION_LOGIC_RX", "31" },
		{ 0 },
	};

	PROFILE(SPEC_MCD, values, "mcd", "623");
}

TEST(mcd_irq)
{
	static const struct value values[] = {
		{ "VMA_RING_ALLOCATION_LOGIC_TX", "31" },
		{ "VMA_RING_ALLOCATION_LOGIC_RX", "31" },
		{ "VMA_SELECT_POLL", "0" },
		{ "VMA_RX_POLL", "1" },
		{ "VMA_CQ_MODERATION_ENABLE", "0" },
		{ "VMA_CQ_AIM_INTERVAL_MSEC", "0" },
		{ 0 },
	};

	PROFILE(SPEC_MCD_IRQ, values, "mcd-irq", "624");
}

TEST(rti)
{
	static const struct value values[] = {
		{ "VMA_RX_POLL", "-1" },
		{ "VMA_CQ_MODERATION_ENABLE", "0" },
		{ "VMA_CQ_AIM_INTERVAL_MSEC", "0" },
		{ 0 },
	};

	PROFILE(SPEC_RTI, values, "rti", "784");
}

TEST(spec_7750)
{
	static const struct value values[] = {
		{ "VMA_TX_BUFS", "8192" },
		{ "VMA_RX_BUFS", "204800" },
		{ "VMA_TRACELEVEL", "warn" },
		{ "VMA_STATS_FD_NUM", "1024" },
		{ "VMA_INTERNAL_THREAD_AFFINITY", "0x3" },
		{ "VMA_RX_POLL", "-1" },
		{ "VMA_SELECT_POLL", "-1" },
		{ "VMA_SELECT_POLL_OS_RATIO", "0" },
		{ "VMA_TCP_3T_RULES", "1" },
		{ "VMA_AVOID_SYS_CALLS_ON_TCP_FD", "1" },
		{ "VMA_BUFFER_BATCHING_MODE", "0" },
		{ "VMA_TCP_CTL_THREAD", "2" },
		{ "VMA_CQ_MODERATION_ENABLE", "0" },
		{ "VMA_CQ_AIM_INTERVAL_MSEC", "0" },
		{ 0 },
	};

	PROFILE(SPEC_7750, values, "7750");
	check_batches(1, 1, 1);
}

TEST(multi_ring_latency)
{
	static const struct value values[] = {
		{ "VMA_MEM_ALLOC_TYPE", "2" },
		{ "VMA_SELECT_POLL", "-1" },
		{ "VMA_RX_POLL", "-1" },
		{ "VMA_RING_ALLOCATION_LOGIC_TX", "20" },
		{ "VMA_RING_ALLOCATION_LOGIC_RX", "20" },
		{ "VMA_SELECT_POLL_OS_RATIO", "0" },
		{ "VMA_SELECT_SKIP_OS", "0" },
		{ "VMA_RX_POLL_ON_TX_TCP", "1" },
		{ "VMA_TRIGGER_DUMMY_SEND_GETSOCKNAME", "1" },
		{ "VMA_CQ_MODERATION_ENABLE", "0" },
		{ "VMA_CQ_AIM_INTERVAL_MSEC", "0" },
		{ 0 },
	};

	PROFILE(SPEC_MULTI_RING_LATENCY, values, "multi_ring_latency",
		"Multi_Ring_Latency");
}
