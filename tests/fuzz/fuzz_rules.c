/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as libvma.conf. Whatever was understood, printed and parsed again,
 * must give the same rules without an error; and every question has an answer.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "conf/rules.h"
#include "tests/support/fuzz.h"

/* The lines rules_print() gives, one after the other. */
struct listing {
	char *text;
	size_t len;
};

static void add_line(void *ctx, const char *line)
{
	struct listing *l = ctx;
	size_t len = strlen(line);

	l->text = realloc(l->text, l->len + len + 2);
	FUZZ_CHECK(l->text);
	memcpy(l->text + l->len, line, len);
	memcpy(l->text + l->len + len, "\n", 2);
	l->len += len + 1;
}

static void see_error(void *ctx, const char *line)
{
	int *cnt = ctx;

	FUZZ_CHECK(strlen(line) < 512);
	FUZZ_CHECK(!strchr(line, '\n'));
	++*cnt;
}

static struct rules *parse(const char *text, size_t len, int *error_cnt_out)
{
	struct rules *rules = rules_create();
	int line_cnt = 0;

	FUZZ_CHECK(rules);
	*error_cnt_out = rules_parse(rules, "fuzz", text, len, RULES_APPEND,
				     see_error, &line_cnt);
	FUZZ_CHECK(*error_cnt_out >= line_cnt);
	FUZZ_CHECK((*error_cnt_out == 0) == (line_cnt == 0));
	return rules;
}

static void check_round_trip(const struct rules *rules)
{
	struct listing first = { 0 }, second = { 0 };
	struct rules *again;
	int error_cnt;

	rules_print(rules, add_line, &first);
	again = parse(first.text ? first.text : "", first.len, &error_cnt);
	FUZZ_CHECK(error_cnt == 0);
	FUZZ_CHECK(rules_rule_cnt(again) == rules_rule_cnt(rules));
	FUZZ_CHECK(rules_group_cnt(again) == rules_group_cnt(rules));
	rules_print(again, add_line, &second);
	FUZZ_CHECK(first.len == second.len);
	FUZZ_CHECK(first.len == 0 ||
		   memcmp(first.text, second.text, first.len) == 0);
	rules_destroy(again);
	free(first.text);
	free(second.text);
}

static void ask(const struct rules *rules, const struct rules_who *who,
		enum rule_role role)
{
	static const char *const addrs[] = { "10.0.0.1", "0.0.0.0",
					     "2001:db8::1", "::1.2.3.4" };
	static const uint16_t ports[] = { 0, 53, 65535 };
	struct rules_end end;

	for (size_t i = 0; i < ARRAY_LEN(addrs) * ARRAY_LEN(ports); i++) {
		const char *addr = addrs[i % ARRAY_LEN(addrs)];
		struct rules_verdict v;

		FUZZ_CHECK(ip_addr_parse(addr, strlen(addr), &end.addr) == 0);
		end.port = ports[i / ARRAY_LEN(addrs)];
		v = rules_match(rules, who, role, i & 1 ? &end : NULL, &end);
		FUZZ_CHECK(!v.is_kernel || v.rule);
		FUZZ_CHECK(!v.rule || v.group);
		FUZZ_CHECK(!v.group || rules_has_group(rules, who));
	}
}

static void ask_everything(const struct rules *rules)
{
	static const struct rules_who whos[] = {
		{ "prog", "VMA_DEFAULT_APPLICATION_ID" },
		{ "x", "*" },
	};

	for (size_t i = 0; i < ARRAY_LEN(whos); i++) {
		for (enum rule_role role = 0; role < RULE_ROLE_CNT; role++)
			ask(rules, &whos[i], role);
		/* Sockets that cannot be accelerated have rules that say so. */
		FUZZ_CHECK(!rules_is_all_kernel(rules, &whos[i], RULES_TCP) ||
			   rules_rule_cnt(rules) >= 2);
		FUZZ_CHECK(!rules_is_all_kernel(rules, &whos[i], RULES_UDP) ||
			   rules_rule_cnt(rules) >= 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct rules *rules;
	size_t rule_cnt;
	int error_cnt, added;

	rules = parse(text, size, &error_cnt);
	check_round_trip(rules);
	ask_everything(rules);

	/* The same once more at run time: as many errors, twice the rules. */
	rule_cnt = rules_rule_cnt(rules);
	added = rules_parse(rules, "again", text, size, RULES_PREPEND, NULL,
			    NULL);
	FUZZ_CHECK(added == error_cnt);
	FUZZ_CHECK(rules_rule_cnt(rules) == 2 * rule_cnt);
	check_round_trip(rules);
	rules_destroy(rules);
	return 0;
}
