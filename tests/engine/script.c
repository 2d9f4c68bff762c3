/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads and runs the scripts of script.h. */
#include "tests/engine/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkt/wire.h"
#include "tests/support/test.h"

/* The script that runs, and what its numbers are relative to. */
struct run {
	const struct script_target *target;
	const char *path;
	int line;
	char *rest; /* of the line */
	struct tcp_options offered;
	struct script_setup setup;
	/* what the peer sends and acknowledges if nothing is said */
	uint32_t seq, ack;
	/* the latest segment of the TCP */
	struct script_segment heard;
	/* time stamps: its own, the last one it saw, one that it kept */
	uint32_t ts, heard_ts, kept_ts;
	/* the last one of the TCP */
	uint8_t cookie[TCP_FO_COOKIE_MAX], cookie_len;
	bool is_open;
};

#define BAD(run, ...)                                                      \
	do {                                                               \
		test_note(__VA_ARGS__);                                    \
		note_heard(run);                                           \
		FAIL("%s:%d", (run)->path, (run)->line);                   \
	} while (0)

static void note_heard(const struct run *run)
{
	const struct script_segment *s = &run->heard;

	test_note("latest: flags %#x, seq %d, ack %d, len %u, win %u", s->flags,
		  (int)s->seq, (int)s->ack, s->len, s->win);
}

/* The next word of the line, or NULL. */
static char *word(struct run *run)
{
	return strtok_r(NULL, " \t\n", &run->rest);
}

static uint32_t number(struct run *run)
{
	char *text = word(run), *end;
	uint32_t value;

	if (!text)
		BAD(run, "a number is missing");
	value = (uint32_t)strtol(text, &end, 0);
	if (*end)
		BAD(run, "not a number: %s", text);
	return value;
}

static const struct {
	char letter;
	uint16_t flag;
} letters[] = {
	{ 'S', WIRE_TCP_SYN }, { 'A', WIRE_TCP_ACK }, { 'F', WIRE_TCP_FIN },
	{ 'R', WIRE_TCP_RST }, { 'P', WIRE_TCP_PSH }, { 'E', WIRE_TCP_ECE },
	{ 'W', WIRE_TCP_CWR }, { 'U', WIRE_TCP_URG },
	{ 'N', SCRIPT_AE },
};

static uint16_t flags_of(struct run *run, const char *text)
{
	uint16_t flags = 0;

	if (!text)
		BAD(run, "flags are missing");
	for (; *text && *text != '-'; text++) {
		size_t i = 0;

		while (i < ARRAY_LEN(letters) && letters[i].letter != *text)
			i++;
		if (i == ARRAY_LEN(letters))
			BAD(run, "no flag: %c", *text);
		flags |= letters[i].flag;
	}
	return flags;
}

static void read_sack(struct run *run, struct script_segment *s)
{
	struct tcp_options *options = &s->options;
	char *text = word(run);

	s->has_sack = true;
	if (!text)
		BAD(run, "blocks are missing");
	for (; *text && options->sack_cnt < TCP_SACK_BLOCKS_MAX; text++) {
		struct tcp_sack_block *block =
			&options->sack[options->sack_cnt++];

		block->start = (uint32_t)strtol(text, &text, 0);
		if (*text++ != '-')
			BAD(run, "not a block");
		block->end = (uint32_t)strtol(text, &text, 0);
		if (*text != ',')
			return;
	}
}

static void read_ecr(struct run *run, struct script_segment *s)
{
	char *text = word(run);

	s->has_ecr = true;
	if (text && strcmp(text, "kept") == 0)
		s->options.ts_ecr = run->kept_ts;
	else if (text)
		s->options.ts_ecr = (uint32_t)strtol(text, NULL, 0);
	else
		BAD(run, "an echo is missing");
}

/* Returns how many bytes; a word that is none of that is an error. */
static uint8_t read_hex(struct run *run, const char *text, uint8_t *to,
			size_t room)
{
	uint8_t len = 0;
	unsigned value;

	for (; text && sscanf(text, "%2x", &value) == 1; text += 2) {
		if (len == room || !text[1])
			BAD(run, "not up to %zu whole bytes", room);
		to[len++] = (uint8_t)value;
	}
	if (!text || *text)
		BAD(run, "not bytes");
	return len;
}

static void read_cookie(struct run *run, struct script_segment *s)
{
	char *text = word(run);

	s->options.has_cookie = true;
	if (text && strcmp(text, "any") == 0) {
		s->has_any_cookie = true;
	} else if (text && strcmp(text, "kept") == 0) {
		s->options.cookie_len = run->cookie_len;
		memcpy(s->options.cookie, run->cookie, run->cookie_len);
	} else if (!text || strcmp(text, "ask") != 0) {
		s->options.cookie_len = read_hex(run, text, s->options.cookie,
						 TCP_FO_COOKIE_MAX);
	}
}

static void read_counters(struct run *run, struct script_segment *s)
{
	struct tcp_options *o = &s->options;
	char *text = word(run);

	if (!text || sscanf(text, "%u,%u,%u", &o->ect0_bytes, &o->ce_bytes,
			    &o->ect1_bytes) != 3)
		BAD(run, "not three counters");
	o->counter_cnt = 3;
}

static void read_raw(struct run *run, struct script_segment *s)
{
	s->raw_len = read_hex(run, word(run), s->raw, sizeof(s->raw));
	if (s->raw_len % 4)
		BAD(run, "not a multiple of four bytes");
}

static bool read_number_field(struct run *run, const char *name,
			      struct script_segment *s)
{
	bool has_times;
	const struct {
		const char *name;
		bool *has;
		uint32_t *value;
	} fields[] = {
		{ "seq", &s->has_seq, &s->seq },
		{ "ack", &s->has_ack, &s->ack },
		{ "len", &s->has_len, &s->len },
		{ "win", &s->has_win, &s->win },
		{ "port", &s->has_port, &s->port },
		{ "urg", &s->has_urg, &s->urg },
		{ "times", &has_times, &s->times },
	};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (strcmp(name, fields[i].name))
			continue;
		*fields[i].has = true;
		*fields[i].value = number(run);
		return true;
	}
	return false;
}

/* The options by which connections begin. */
static bool read_option(struct run *run, const char *name,
			struct tcp_options *options)
{
	if (strcmp(name, "mss") == 0) {
		options->mss = (uint16_t)number(run);
	} else if (strcmp(name, "scale") == 0) {
		options->has_scale = true;
		options->scale = (uint8_t)number(run);
	} else if (strcmp(name, "hasscale") == 0) {
		options->has_scale = true;
	} else if (strcmp(name, "sackok") == 0 || strcmp(name, "sack") == 0) {
		options->has_sack_ok = true;
	} else if (strcmp(name, "hasts") == 0) {
		options->has_ts = true;
	} else if (strcmp(name, "ts") == 0) {
		options->has_ts = true;
		run->ts = options->ts_val = number(run);
	} else {
		return false;
	}
	return true;
}

static bool read_ecn_field(const char *name, struct script_segment *s)
{
	static const struct {
		const char *name;
		uint8_t ecn;
	} names[] = { { "noect", 0 }, { "ect1", 1 }, { "ect", 2 },
		     { "ce", 3 } };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i].name))
			continue;
		s->has_ecn = true;
		s->ecn = names[i].ecn;
		return true;
	}
	return false;
}

static void read_fields(struct run *run, struct script_segment *s)
{
	char *name;

	while ((name = word(run))) {
		if (read_number_field(run, name, s) || read_ecn_field(name, s))
			continue;
		if (strcmp(name, "sack") == 0)
			read_sack(run, s);
		else if (strcmp(name, "ecr") == 0)
			read_ecr(run, s);
		else if (strcmp(name, "nosack") == 0)
			s->has_sack = true;
		else if (strcmp(name, "nots") == 0)
			s->options.has_ts = false;
		else if (strcmp(name, "keep") == 0)
			s->is_kept = true;
		else if (strcmp(name, "raw") == 0)
			read_raw(run, s);
		else if (strcmp(name, "fo") == 0)
			read_cookie(run, s);
		else if (strcmp(name, "acc") == 0)
			read_counters(run, s);
		else if (strcmp(name, "noacc") == 0)
			s->has_no_counters = true;
		else if (strcmp(name, "nofo") == 0)
			s->has_no_cookie = true;
		else if (!read_option(run, name, &s->options))
			BAD(run, "no field: %s", name);
	}
}

/* ---- commands ---- */

static void do_options(struct run *run)
{
	char *name;

	memset(&run->offered, 0, sizeof(run->offered));
	while ((name = word(run)))
		if (!read_option(run, name, &run->offered))
			BAD(run, "no option: %s", name);
}

static void do_ecn(struct run *run)
{
	char *name = word(run);

	run->setup.accepts_ecn = name && strcmp(name, "accepted") == 0;
	run->setup.with_accurate_ecn = name && strcmp(name, "accurate") == 0;
	run->setup.with_ecn = !name;
}

static void do_set(struct run *run)
{
	static const char *const names[SCRIPT_PARAMS] = {
		[SCRIPT_RETRIES] = "retries",
		[SCRIPT_ORPHAN_RETRIES] = "orphan_retries",
		[SCRIPT_SYN_RETRIES] = "syn_retries",
		[SCRIPT_SYNACK_RETRIES] = "synack_retries",
		[SCRIPT_FIN_WAIT_2] = "fin_wait_2",
		[SCRIPT_QUICK_ACKS] = "quick_acks",
		[SCRIPT_BACKLOG] = "backlog",
		[SCRIPT_COOKIES] = "cookies",
		[SCRIPT_SYNS] = "syns",
		[SCRIPT_CHALLENGES] = "challenges",
		[SCRIPT_RESETS] = "resets",
		[SCRIPT_RCV_BUF] = "rcv_buf",
		[SCRIPT_SPLIT] = "split",
		[SCRIPT_KEEP_INTERVAL] = "keep_interval",
		[SCRIPT_MAXSEG] = "maxseg",
		[SCRIPT_SYNCNT] = "syncnt",
		[SCRIPT_LINGER2] = "linger2",
		[SCRIPT_DEFER] = "defer",
		[SCRIPT_CLAMP] = "clamp",
		[SCRIPT_THIN] = "thin",
		[SCRIPT_PACE] = "pace",
		[SCRIPT_RFC1337] = "rfc1337",
		[SCRIPT_NO_IDLE_RESTART] = "no_idle_restart",
		[SCRIPT_NO_TLP] = "no_tlp",
		[SCRIPT_NO_FRTO] = "no_frto",
		[SCRIPT_MTU_PROBING] = "mtu_probing",
		[SCRIPT_NO_DSACK] = "no_dsack",
		[SCRIPT_OVERFLOW_RESETS] = "overflow_resets",
		[SCRIPT_NO_LINEAR_SYNS] = "no_linear_syns",
		[SCRIPT_NO_METRICS] = "no_metrics",
		[SCRIPT_FASTOPEN] = "fastopen",
		[SCRIPT_FASTOPEN_MAX] = "fastopen_max",
		[SCRIPT_FASTOPEN_PAUSE] = "fastopen_pause",
		[SCRIPT_FASTOPEN_NO_COOKIE] = "fastopen_no_cookie",
	};
	char *name = word(run);

	for (size_t i = 0; name && i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i], name))
			continue;
		run->setup.param[i] = number(run);
		return;
	}
	BAD(run, "no parameter: %s", name ? name : "");
}

/* Fills in what was not said, and sends. */
static void send_segment(struct run *run, struct script_segment *s)
{
	bool is_syn = s->flags & WIRE_TCP_SYN;

	if (!s->has_seq)
		s->seq = is_syn ? UINT32_MAX : run->seq;
	if (!s->has_ack)
		s->ack = run->ack;
	run->target->send(s);
	if (s->seq == run->seq && !(s->flags & WIRE_TCP_RST))
		run->seq += s->len + !!(s->flags & WIRE_TCP_FIN);
	run->ack = s->ack;
}

static void do_in(struct run *run)
{
	struct script_segment s = { .win = 10000, .times = 1 };

	s.flags = flags_of(run, word(run));
	if (s.flags & WIRE_TCP_SYN)
		s.options = run->offered;
	s.options.has_ts = run->offered.has_ts;
	s.options.ts_ecr = s.flags & WIRE_TCP_ACK ? run->heard_ts : 0;
	read_fields(run, &s);
	s.options.ts_val = run->ts;
	for (uint32_t i = 0; i < s.times; i++) {
		send_segment(run, &s);
		s.seq += s.len;
		s.has_seq = true;
	}
}

static void do_icmp(struct run *run)
{
	struct script_icmp icmp = { .len = 1500 };
	char *name = word(run);

	icmp.is_too_big = name && strcmp(name, "too_big") == 0;
	if (!name || (!icmp.is_too_big && strcmp(name, "unreachable") != 0))
		BAD(run, "no message: %s", name ? name : "");
	while ((name = word(run))) {
		uint32_t value = number(run);

		if (strcmp(name, "seq") == 0)
			icmp.seq = value;
		else if (strcmp(name, "mtu") == 0)
			icmp.mtu = (uint16_t)value;
		else if (strcmp(name, "len") == 0)
			icmp.len = (uint16_t)value;
		else
			BAD(run, "no field: %s", name);
	}
	run->target->icmp(&icmp);
}

/* What the TCP sends within so long; false if nothing. */
static bool hear(struct run *run, uint32_t within_ms,
		 struct script_segment *got, uint32_t *after_ms_out)
{
	memset(got, 0, sizeof(*got));
	if (!run->target->next(within_ms, got, after_ms_out))
		return false;
	run->heard = *got;
	if (got->options.has_ts)
		run->heard_ts = got->options.ts_val;
	if (got->options.has_cookie) {
		run->cookie_len = got->options.cookie_len;
		memcpy(run->cookie, got->options.cookie, run->cookie_len);
	}
	return true;
}

static void do_fast(struct run *run)
{
	char *name;

	run->setup.is_fast = true;
	run->setup.fast_len = number(run);
	run->setup.fast_port = 0;
	name = word(run);
	if (name && strcmp(name, "port") != 0)
		BAD(run, "no field: %s", name);
	if (name)
		run->setup.fast_port = number(run);
	if (run->is_open)
		run->target->open_again(&run->setup);
	else
		run->target->open(&run->setup);
	run->is_open = true;
}

static void do_begin(struct run *run, bool is_passive)
{
	run->setup.is_passive = is_passive;
	run->target->open(&run->setup);
}

/* The handshake with flags S, SA and A; a round trip takes ten milliseconds. */
static void do_open(struct run *run, bool is_passive)
{
	struct script_segment got, syn = { .win = 20000 }, ack = { .win = 10000 };
	uint32_t after_ms;
	bool is_answered;

	do_begin(run, is_passive);
	syn.flags = WIRE_TCP_SYN;
	if (!is_passive) {
		is_answered = hear(run, run->target->slack_ms, &got, &after_ms);
		CHECK(is_answered && got.flags & WIRE_TCP_SYN);
		CHECK(!run->target->next(10, &got, &after_ms));
		syn.flags |= WIRE_TCP_ACK;
	}
	syn.options = run->offered;
	syn.options.ts_ecr = is_passive ? 0 : run->heard_ts;
	send_segment(run, &syn);
	is_answered = hear(run, run->target->slack_ms, &got, &after_ms);
	CHECK(is_answered && got.flags & WIRE_TCP_ACK);
	if (!is_passive)
		return;
	ack.flags = WIRE_TCP_ACK;
	ack.options = (struct tcp_options){ .has_ts = run->offered.has_ts,
					    .ts_val = run->ts,
					    .ts_ecr = run->heard_ts };
	send_segment(run, &ack);
	run->target->act(SCRIPT_ACCEPT, 0);
}

static void check_number(struct run *run, const char *name, bool is_asked,
			 uint32_t got, uint32_t want)
{
	if (is_asked && got != want)
		BAD(run, "%s is %d, expected %d", name, (int)got, (int)want);
}

static void compare_sack(struct run *run, const struct tcp_options *got,
			 const struct tcp_options *want)
{
	check_number(run, "number of blocks", true, got->sack_cnt,
		     want->sack_cnt);
	for (uint8_t i = 0; i < want->sack_cnt; i++) {
		check_number(run, "start of block", true, got->sack[i].start,
			     want->sack[i].start);
		check_number(run, "end of block", true, got->sack[i].end,
			     want->sack[i].end);
	}
}

static void compare_cookie(struct run *run, const struct tcp_options *got,
			   const struct script_segment *want)
{
	const struct tcp_options *o = &want->options;

	check_number(run, "option of Fast Open", true, got->has_cookie,
		     !want->has_no_cookie);
	if (want->has_no_cookie)
		return;
	if (want->has_any_cookie) {
		check_number(run, "has a cookie", true, got->cookie_len > 0, 1);
		return;
	}
	check_number(run, "length of cookie", true, got->cookie_len,
		     o->cookie_len);
	if (memcmp(got->cookie, o->cookie, o->cookie_len) != 0)
		BAD(run, "another cookie");
}

static void compare(struct run *run, const struct script_segment *got,
		    const struct script_segment *want)
{
	uint16_t looked_at = want->is_unpushed ? UINT16_MAX
			     : want->flags | (uint16_t)~WIRE_TCP_PSH;
	const struct tcp_options *o = &want->options;

	if ((got->flags ^ want->flags) & looked_at)
		BAD(run, "flags are %#x, expected %#x", got->flags, want->flags);
	check_number(run, "seq", want->has_seq, got->seq, want->seq);
	check_number(run, "ack", want->has_ack, got->ack, want->ack);
	check_number(run, "len", want->has_len, got->len, want->len);
	check_number(run, "win", want->has_win, got->win, want->win);
	check_number(run, "port", want->has_port, got->port, want->port);
	check_number(run, "urg", want->has_urg, got->urg, want->urg);
	check_number(run, "ecn", want->has_ecn, got->ecn, want->ecn);
	check_number(run, "echo", want->has_ecr, got->options.ts_ecr,
		     o->ts_ecr);
	check_number(run, "mss", o->mss, got->options.mss, o->mss);
	check_number(run, "hasscale", o->has_scale, got->options.has_scale, 1);
	check_number(run, "sackok", o->has_sack_ok, got->options.has_sack_ok, 1);
	check_number(run, "hasts", o->has_ts, got->options.has_ts, 1);
	if (want->has_sack)
		compare_sack(run, &got->options, o);
	check_number(run, "counters", o->counter_cnt || want->has_no_counters,
		     got->options.counter_cnt, o->counter_cnt);
	check_number(run, "bytes with ECT(0)", o->counter_cnt,
		     got->options.ect0_bytes, o->ect0_bytes);
	check_number(run, "bytes with CE", o->counter_cnt,
		     got->options.ce_bytes, o->ce_bytes);
	check_number(run, "bytes with ECT(1)", o->counter_cnt,
		     got->options.ect1_bytes, o->ect1_bytes);
	if (o->has_cookie || want->has_no_cookie)
		compare_cookie(run, &got->options, want);
}

static void expect(struct run *run, const struct script_segment *want,
		   uint32_t from_ms, uint32_t to_ms)
{
	struct script_segment got;
	uint32_t after_ms;

	if (!hear(run, to_ms + run->target->slack_ms, &got, &after_ms))
		BAD(run, "nothing was sent");
	if (after_ms + run->target->slack_ms < from_ms)
		BAD(run, "sent after %u ms", after_ms);
	if (want->is_kept)
		run->kept_ts = run->heard_ts;
	compare(run, &got, want);
}

static void do_out(struct run *run)
{
	struct script_segment want = { .times = 1 };
	uint32_t from_ms = 0, to_ms = 0;
	char *text = word(run);

	if (text && text[0] >= '0' && text[0] <= '9') {
		if (sscanf(text, "%u..%u", &from_ms, &to_ms) != 2)
			BAD(run, "not a time: %s", text);
		text = word(run);
	}
	want.flags = flags_of(run, text);
	want.is_unpushed = strchr(text, '-') && text[1];
	read_fields(run, &want);
	for (uint32_t i = 0; i < want.times; i++) {
		expect(run, &want, from_ms, to_ms);
		want.seq += want.len;
	}
}

static void do_quiet(struct run *run)
{
	struct script_segment got = { .flags = 0 };
	uint32_t after_ms, for_ms = number(run);

	if (run->target->next(for_ms, &got, &after_ms))
		BAD(run, "flags %#x, len %u were sent after %u ms", got.flags,
		    got.len, after_ms);
}

static void compare_error(struct run *run, int got)
{
	static const struct {
		const char *name;
		int error;
	} names[] = {
		{ "0", 0 },
		{ "ECONNRESET", -ECONNRESET },
		{ "ECONNREFUSED", -ECONNREFUSED },
		{ "EPIPE", -EPIPE },
		{ "ETIMEDOUT", -ETIMEDOUT },
		{ "EHOSTUNREACH", -EHOSTUNREACH },
		{ "EINVAL", -EINVAL },
		{ "EAGAIN", -EAGAIN },
	};
	char *name = word(run);

	for (size_t i = 0; name && i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i].name, name))
			continue;
		if (got != names[i].error)
			BAD(run, "the error is %s", strerror(-got));
		return;
	}
	BAD(run, "no error: %s", name ? name : "");
}

static uint32_t on_or_off(struct run *run)
{
	char *text = word(run);

	return text && (strcmp(text, "on") == 0 || strcmp(text, "yes") == 0);
}

/* What the program does, and whether it says how much. */
static bool do_act(struct run *run, const char *command)
{
	static const struct {
		const char *name;
		enum script_act act;
		enum { NOTHING, NUMBER, ON_OR_OFF } takes;
	} acts[] = {
		{ "write", SCRIPT_WRITE, NUMBER },
		{ "read", SCRIPT_READ, NUMBER },
		{ "shutdown", SCRIPT_SHUTDOWN, NOTHING },
		{ "close", SCRIPT_CLOSE, NOTHING },
		{ "accepted", SCRIPT_ACCEPT, NOTHING },
		{ "nodelay", SCRIPT_NODELAY, ON_OR_OFF },
		{ "cork", SCRIPT_CORK, ON_OR_OFF },
		{ "user_timeout", SCRIPT_USER_TIMEOUT, NUMBER },
		{ "keepalive", SCRIPT_KEEPALIVE, NUMBER },
		{ "together", SCRIPT_TOGETHER, NUMBER },
		{ "move", SCRIPT_MOVE, NOTHING },
		{ "quickack", SCRIPT_QUICKACK, ON_OR_OFF },
		{ "urgent", SCRIPT_URGENT, NUMBER },
		{ "more", SCRIPT_MORE, NUMBER },
		{ "eor", SCRIPT_EOR, NUMBER },
		{ "inline", SCRIPT_INLINE, ON_OR_OFF },
		{ "mark", SCRIPT_MARK, ON_OR_OFF },
	};
	uint32_t value = 0;

	for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
		if (strcmp(command, acts[i].name))
			continue;
		if (acts[i].takes == NUMBER)
			value = number(run);
		else if (acts[i].takes == ON_OR_OFF)
			value = on_or_off(run);
		run->target->act(acts[i].act, value);
		return true;
	}
	return false;
}

static void do_command(struct run *run, const char *command)
{
	if (strcmp(command, "options") == 0)
		do_options(run);
	else if (strcmp(command, "ecn") == 0)
		do_ecn(run);
	else if (strcmp(command, "ipv6") == 0)
		run->setup.is_ipv6 = true;
	else if (strcmp(command, "set") == 0)
		do_set(run);
	else if (strcmp(command, "connect") == 0)
		do_open(run, false);
	else if (strcmp(command, "accept") == 0)
		do_open(run, true);
	else if (strcmp(command, "fast") == 0)
		do_fast(run);
	else if (strcmp(command, "syn") == 0)
		do_begin(run, false);
	else if (strcmp(command, "listen") == 0)
		do_begin(run, true);
	else if (strcmp(command, "in") == 0)
		do_in(run);
	else if (strcmp(command, "icmp") == 0)
		do_icmp(run);
	else if (strcmp(command, "out") == 0)
		do_out(run);
	else if (strcmp(command, "quiet") == 0)
		do_quiet(run);
	else if (strcmp(command, "error") == 0)
		compare_error(run, run->target->error());
	else if (strcmp(command, "oob") == 0)
		compare_error(run, run->target->oob());
	else if (strcmp(command, "differs") != 0 &&
		 strcmp(command, "row") != 0 && !do_act(run, command))
		BAD(run, "no command: %s", command);
}

bool script_run(const char *path, const struct script_target *target,
		char why_out[128])
{
	struct run run = { .target = target, .path = path };
	bool differs = false;
	char text[256];
	FILE *file = fopen(path, "r");

	if (!file)
		FAIL("%s: %s", path, strerror(errno));
	run.offered = (struct tcp_options){ .mss = 1460, .has_sack_ok = true };
	while (fgets(text, sizeof(text), file)) {
		char *command;

		run.line++;
		text[strcspn(text, "#\n")] = 0;
		if (sscanf(text, "differs %127[^\n]", why_out) == 1)
			differs = true;
		command = strtok_r(text, " \t", &run.rest);
		if (command)
			do_command(&run, command);
	}
	fclose(file);
	return differs;
}
