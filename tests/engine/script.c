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
	/* what the peer sends and acknowledges if nothing is said */
	uint32_t seq, ack;
};

#define BAD(run, ...)                                                      \
	do {                                                               \
		test_note(__VA_ARGS__);                                    \
		FAIL("%s:%d", (run)->path, (run)->line);                   \
	} while (0)

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
	uint8_t flag;
} letters[] = {
	{ 'S', WIRE_TCP_SYN }, { 'A', WIRE_TCP_ACK }, { 'F', WIRE_TCP_FIN },
	{ 'R', WIRE_TCP_RST }, { 'P', WIRE_TCP_PSH }, { 'E', WIRE_TCP_ECE },
	{ 'W', WIRE_TCP_CWR },
};

static uint8_t flags_of(struct run *run, const char *text)
{
	uint8_t flags = 0;

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
	char *text = word(run);

	s->has_sack = true;
	if (!text)
		BAD(run, "blocks are missing");
	for (; *text && s->sack_cnt < TCP_SACK_BLOCKS_MAX; text++) {
		struct tcp_sack_block *block = &s->sack[s->sack_cnt++];

		block->start = (uint32_t)strtol(text, &text, 0);
		if (*text++ != '-')
			BAD(run, "not a block");
		block->end = (uint32_t)strtol(text, &text, 0);
		if (*text != ',')
			return;
	}
}

static void read_fields(struct run *run, struct script_segment *s)
{
	char *name;

	while ((name = word(run))) {
		if (strcmp(name, "seq") == 0) {
			s->has_seq = true;
			s->seq = number(run);
		} else if (strcmp(name, "ack") == 0) {
			s->has_ack = true;
			s->ack = number(run);
		} else if (strcmp(name, "len") == 0) {
			s->has_len = true;
			s->len = number(run);
		} else if (strcmp(name, "win") == 0) {
			s->has_win = true;
			s->win = number(run);
		} else if (strcmp(name, "sack") == 0) {
			read_sack(run, s);
		} else {
			BAD(run, "no field: %s", name);
		}
	}
}

/* ---- commands ---- */

static void do_options(struct run *run)
{
	char *name;

	memset(&run->offered, 0, sizeof(run->offered));
	while ((name = word(run))) {
		if (strcmp(name, "mss") == 0) {
			run->offered.mss = (uint16_t)number(run);
		} else if (strcmp(name, "scale") == 0) {
			run->offered.has_scale = true;
			run->offered.scale = (uint8_t)number(run);
		} else if (strcmp(name, "sack") == 0) {
			run->offered.has_sack_ok = true;
		} else {
			BAD(run, "no option: %s", name);
		}
	}
}

static void do_in(struct run *run)
{
	struct script_segment s = { .seq = run->seq, .ack = run->ack,
				    .win = 10000 };

	s.flags = flags_of(run, word(run));
	read_fields(run, &s);
	run->target->send(&s);
	if (s.seq == run->seq && !(s.flags & WIRE_TCP_RST))
		run->seq += s.len + !!(s.flags & WIRE_TCP_FIN);
	run->ack = s.ack;
}

static void check_number(struct run *run, const char *name, bool is_asked,
			 uint32_t got, uint32_t want)
{
	if (is_asked && got != want)
		BAD(run, "%s is %d, expected %d", name, (int)got, (int)want);
}

static void compare(struct run *run, const struct script_segment *got,
		    const struct script_segment *want)
{
	uint8_t looked_at = want->flags | (uint8_t)~WIRE_TCP_PSH;

	if ((got->flags ^ want->flags) & looked_at)
		BAD(run, "flags are %#x, expected %#x", got->flags, want->flags);
	check_number(run, "seq", want->has_seq, got->seq, want->seq);
	check_number(run, "ack", want->has_ack, got->ack, want->ack);
	check_number(run, "len", want->has_len, got->len, want->len);
	check_number(run, "win", want->has_win, got->win, want->win);
	if (!want->has_sack)
		return;
	check_number(run, "number of blocks", true, got->sack_cnt,
		     want->sack_cnt);
	for (uint8_t i = 0; i < want->sack_cnt; i++) {
		check_number(run, "start of block", true, got->sack[i].start,
			     want->sack[i].start);
		check_number(run, "end of block", true, got->sack[i].end,
			     want->sack[i].end);
	}
}

static void do_out(struct run *run)
{
	struct script_segment want = { .flags = 0 }, got;
	uint32_t from_ms = 0, to_ms = 0, after_ms;
	char *text = word(run);

	if (text && text[0] >= '0' && text[0] <= '9') {
		if (sscanf(text, "%u..%u", &from_ms, &to_ms) != 2)
			BAD(run, "not a time: %s", text);
		text = word(run);
	}
	want.flags = flags_of(run, text);
	read_fields(run, &want);
	memset(&got, 0, sizeof(got));
	if (!run->target->next(to_ms + run->target->slack_ms, &got, &after_ms))
		BAD(run, "nothing was sent");
	if (after_ms + run->target->slack_ms < from_ms)
		BAD(run, "sent after %u ms", after_ms);
	compare(run, &got, &want);
}

static void do_quiet(struct run *run)
{
	struct script_segment got = { .flags = 0 };
	uint32_t after_ms, for_ms = number(run);

	if (run->target->next(for_ms, &got, &after_ms))
		BAD(run, "flags %#x, len %u were sent after %u ms", got.flags,
		    got.len, after_ms);
}

static void do_error(struct run *run)
{
	static const struct {
		const char *name;
		int error;
	} names[] = {
		{ "0", 0 },
		{ "ECONNRESET", -ECONNRESET },
		{ "EPIPE", -EPIPE },
		{ "ETIMEDOUT", -ETIMEDOUT },
	};
	char *name = word(run);
	int got = run->target->error();

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

	return text && strcmp(text, "on") == 0;
}

static void do_command(struct run *run, const char *command)
{
	const struct script_target *t = run->target;

	if (strcmp(command, "options") == 0)
		do_options(run);
	else if (strcmp(command, "connect") == 0)
		t->open(false, &run->offered);
	else if (strcmp(command, "accept") == 0)
		t->open(true, &run->offered);
	else if (strcmp(command, "in") == 0)
		do_in(run);
	else if (strcmp(command, "out") == 0)
		do_out(run);
	else if (strcmp(command, "quiet") == 0)
		do_quiet(run);
	else if (strcmp(command, "write") == 0)
		t->act(SCRIPT_WRITE, number(run));
	else if (strcmp(command, "read") == 0)
		t->act(SCRIPT_READ, number(run));
	else if (strcmp(command, "shutdown") == 0)
		t->act(SCRIPT_SHUTDOWN, 0);
	else if (strcmp(command, "close") == 0)
		t->act(SCRIPT_CLOSE, 0);
	else if (strcmp(command, "nodelay") == 0)
		t->act(SCRIPT_NODELAY, on_or_off(run));
	else if (strcmp(command, "cork") == 0)
		t->act(SCRIPT_CORK, on_or_off(run));
	else if (strcmp(command, "error") == 0)
		do_error(run);
	else if (strcmp(command, "differs") != 0)
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
