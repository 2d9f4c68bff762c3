/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The language of libvma.conf. Statements lie on lines, blanks separate words,
 * `#` begins a comment where a word could begin:
 *
 *     application-id PROGRAM ID
 *     use TARGET ROLE ADDRESS:PORTS[:ADDRESS:PORTS]
 *     log destination stderr | syslog | file NAME
 *     log min-level N
 *
 * Several statements may share a line, and the first may stand behind a byte order
 * mark. Every function below either consumes what it is named after and returns true,
 * or reports once what it expected where, and returns false, upon which the rest of the
 * line is skipped.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "conf/rules_priv.h"

enum {
	LINE_SIZE = 512,
	FOUND_SHOWN = 40,  /* bytes of the text a message repeats */
	ERRORS_SHOWN = 20, /* errors that get a line each */
};

struct parser {
	struct rules *rules;
	enum rules_place place;
	const char *source; /* kept by rules */
	rules_line_fn *report;
	void *ctx;
	int error_cnt;
	bool has_no_memory;
	/* Whose group it would be that the next rules are in, is not known. */
	bool is_without_group;
	/* what follows from an error in this statement */
	const char *consequence;

	const char *pos;
	const char *end;
	const char *line_start;
	int line;
};

/* ---- characters ---- */

static bool at_newline(const struct parser *p)
{
	if (p->pos == p->end || *p->pos == '\n')
		return true;
	/* A carriage return belongs to the end of the line, and only there. */
	return *p->pos == '\r' && (p->pos + 1 == p->end || p->pos[1] == '\n');
}

static bool at_blank(const struct parser *p)
{
	return p->pos < p->end && (*p->pos == ' ' || *p->pos == '\t');
}

static void skip_blanks(struct parser *p)
{
	while (at_blank(p))
		p->pos++;
}

static bool at_char(const struct parser *p, char c)
{
	return p->pos < p->end && *p->pos == c;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_keyword_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       is_digit(c) || c == '_' || c == '-';
}

static bool is_control_char(char c)
{
	return (unsigned char)c < ' ' || c == 127;
}

/* Skips blanks, and says whether the line can end here. */
static bool at_line_end(struct parser *p)
{
	skip_blanks(p);
	return at_newline(p) || *p->pos == '#';
}

/* Some editors begin a file with it. */
static void skip_byte_order_mark(struct parser *p)
{
	static const char mark[] = "\xEF\xBB\xBF";
	size_t len = strlen(mark);

	if ((size_t)(p->end - p->pos) >= len && memcmp(p->pos, mark, len) == 0)
		p->line_start = p->pos += len;
}

static void next_line(struct parser *p)
{
	while (p->pos < p->end && *p->pos != '\n')
		p->pos++;
	if (p->pos < p->end)
		p->pos++;
	p->line++;
	p->line_start = p->pos;
}

/* ---- errors ---- */

/* `at` is where on the current line. */
static bool PRINTF_LIKE(3, 4) fail(struct parser *p, const char *at,
				   const char *fmt, ...)
{
	char line[LINE_SIZE];
	struct text t = text_in(line, sizeof(line));
	va_list args;

	if (p->error_cnt++ >= ERRORS_SHOWN || !p->report)
		return false;
	text_add(&t, "%s:%d:%td: ", p->source, p->line, at - p->line_start + 1);
	va_start(args, fmt);
	text_vadd(&t, fmt, args);
	va_end(args);
	text_add(&t, "%s", p->consequence);
	p->report(p->ctx, line);
	return false;
}

/* Reports that the next word or character is none of those that could stand here. */
static bool fail_expecting(struct parser *p, const char *what)
{
	char found[FOUND_SHOWN + sizeof("...\"\"")] = "the end of the line";
	struct text t;
	const char *at;

	skip_blanks(p);
	at = p->pos;
	if (!at_newline(p)) {
		while (!at_newline(p) && !at_blank(p))
			p->pos++;
		t = text_in(found, sizeof(found));
		text_add_quoted(&t, at, (size_t)(p->pos - at), FOUND_SHOWN);
	}
	return fail(p, at, "expected %s, found %s", what, found);
}

static bool fail_no_memory(struct parser *p)
{
	p->has_no_memory = true;
	return false;
}

/* ---- tokens ---- */

static bool parse_char(struct parser *p, char c, const char *what)
{
	skip_blanks(p);
	if (!at_char(p, c))
		return fail_expecting(p, what);
	p->pos++;
	return true;
}

/* Moves on if it is there. */
static bool accept_char(struct parser *p, char c)
{
	skip_blanks(p);
	if (!at_char(p, c))
		return false;
	p->pos++;
	return true;
}

/* A word of the language, or `*`. Does not move on by itself. */
static size_t peek_keyword(struct parser *p)
{
	const char *s;

	skip_blanks(p);
	if (at_char(p, '*'))
		return 1;
	for (s = p->pos; s < p->end && is_keyword_char(*s); s++)
		;
	return (size_t)(s - p->pos);
}

static bool accept_keyword(struct parser *p, const char *keyword)
{
	size_t len = peek_keyword(p);

	if (len != strlen(keyword) || memcmp(p->pos, keyword, len) != 0)
		return false;
	p->pos += len;
	return true;
}

/* One of a NULL-terminated list, as its index; -1 on failure. */
static int parse_keyword(struct parser *p, const char *const *keywords,
			 const char *what)
{
	for (int i = 0; keywords[i]; i++)
		if (accept_keyword(p, keywords[i]))
			return i;
	fail_expecting(p, what);
	return -1;
}

/* Any run of characters but blanks. */
static bool parse_word(struct parser *p, const char *what,
		       const char **word_out, size_t *len_out)
{
	const char *start;

	skip_blanks(p);
	start = p->pos;
	while (!at_newline(p) && !at_blank(p)) {
		if (is_control_char(*p->pos))
			return fail(p, p->pos,
				    "a word cannot hold the byte %#04x",
				    (unsigned)*p->pos);
		p->pos++;
	}
	*word_out = start;
	*len_out = (size_t)(p->pos - start);
	return *len_out > 0 || fail_expecting(p, what);
}

/* A decimal number from 0 to max, without leading zeros. */
static bool parse_number(struct parser *p, const char *what, unsigned max,
			 unsigned *n_out)
{
	const char *start;
	unsigned n = 0;

	skip_blanks(p);
	start = p->pos;
	if (p->pos == p->end || !is_digit(*p->pos))
		return fail_expecting(p, what);
	for (; p->pos < p->end && is_digit(*p->pos); p->pos++)
		if (n <= max)
			n = n * 10 + (unsigned)(*p->pos - '0');
	if (*start == '0' && p->pos - start > 1)
		return fail(p, start, "%s cannot begin with 0", what);
	if (n > max)
		return fail(p, start, "%s must be from 0 to %u", what, max);
	*n_out = n;
	return true;
}

/* ---- addresses and ports ---- */

static bool parse_prefix_len(struct parser *p, unsigned max, unsigned *len_out)
{
	*len_out = max;
	return !accept_char(p, '/') ||
	       parse_number(p, "a prefix length", max, len_out);
}

static bool parse_v4(struct parser *p, struct rule_end *end)
{
	struct ip_addr *net = &end->net;
	unsigned octet, len;

	*net = ip_addr_from_v4(0);
	for (int i = 0; i < 4; i++) {
		if (i > 0 && !parse_char(p, '.', "\".\" and the rest of an IPv4 address"))
			return false;
		if (!parse_number(p, "a part of an IPv4 address", 255, &octet))
			return false;
		net->byte[12 + i] = (uint8_t)octet;
	}
	if (!parse_prefix_len(p, 32, &len))
		return false;
	end->has_addr = end->is_v4 = true;
	end->prefix_len = IP_PREFIX_V4 + len;
	return true;
}

/* [2001:db8::/32]; the bracket keeps the colons apart from the port's. */
static bool parse_v6(struct parser *p, struct rule_end *end)
{
	const char *start;

	if (!parse_char(p, '[', "\"[\""))
		return false;
	start = p->pos;
	while (!at_newline(p) && *p->pos != ']' && *p->pos != '/')
		p->pos++;
	if (!memchr(start, ':', (size_t)(p->pos - start)) ||
	    ip_addr_parse(start, (size_t)(p->pos - start), &end->net)) {
		p->pos = start;
		return fail_expecting(p, "an IPv6 address");
	}
	if (!parse_prefix_len(p, IP_PREFIX_MAX, &end->prefix_len) ||
	    !parse_char(p, ']', "\"]\""))
		return false;
	end->has_addr = true;
	end->is_v4 = end->prefix_len >= IP_PREFIX_V4 &&
		     ip_addr_is_v4(&end->net);
	return true;
}

static bool parse_addr(struct parser *p, struct rule_end *end)
{
	end->has_addr = false;
	if (accept_char(p, '*'))
		return true;
	if (at_char(p, '['))
		return parse_v6(p, end);
	if (p->pos < p->end && is_digit(*p->pos))
		return parse_v4(p, end);
	return fail_expecting(p, "an address (10.0.0.0/8, [2001:db8::/32] or *)");
}

static bool parse_ports(struct parser *p, struct rule_end *end)
{
	unsigned first, last;
	const char *start;

	end->first_port = 0;
	end->last_port = UINT16_MAX;
	if (accept_char(p, '*'))
		return true;
	start = p->pos;
	if (!parse_number(p, "a port", UINT16_MAX, &first))
		return false;
	last = first;
	if (accept_char(p, '-') &&
	    !parse_number(p, "a port", UINT16_MAX, &last))
		return false;
	if (last < first)
		return fail(p, start,
			    "the range of ports %u-%u ends before it begins",
			    first, last);
	end->first_port = (uint16_t)first;
	end->last_port = (uint16_t)last;
	return true;
}

static bool parse_end(struct parser *p, struct rule_end *end)
{
	return parse_addr(p, end) &&
	       parse_char(p, ':', "\":\" and ports after the address") &&
	       parse_ports(p, end);
}

/* ---- statements ---- */

static bool parse_group(struct parser *p)
{
	const char *program, *id;
	size_t program_len, id_len;

	if (!parse_word(p, "the name of a program, or *", &program,
			&program_len) ||
	    !parse_word(p, "an id, or *", &id, &id_len))
		return false;
	if (!rules_open_group(p->rules, program, program_len, id, id_len))
		return fail_no_memory(p);
	return true;
}

static bool parse_use(struct parser *p)
{
	struct rule rule = { .line = p->line, .source = p->source };
	int target, role;

	target = parse_keyword(p, rule_target_names,
			       "a target (vma, os, sdp, sa or *)");
	if (target < 0)
		return false;
	role = parse_keyword(p, rule_role_names,
			     "a role (tcp_server, tcp_client, udp_sender, udp_receiver or udp_connect)");
	if (role < 0 || !parse_end(p, &rule.first))
		return false;
	rule.target = (enum rule_target)target;
	rule.role = (enum rule_role)role;
	if (accept_char(p, ':')) {
		rule.has_second = true;
		if (!parse_end(p, &rule.second))
			return false;
	}
	if (p->is_without_group)
		return true;
	return rules_add(p->rules, &rule, p->place) == 0 || fail_no_memory(p);
}

/* The genuine parser has the spellings with a y, its manual the others. */
static bool parse_destination(struct parser *p)
{
	static const char *const names[] = {
		"stderr", "ystderr", "syslog", "file", "yfile", NULL,
	};
	static const enum rules_log_to values[] = {
		RULES_LOG_STDERR, RULES_LOG_STDERR, RULES_LOG_SYSLOG,
		RULES_LOG_FILE,	  RULES_LOG_FILE,
	};
	int chosen = parse_keyword(p, names, "stderr, syslog or file NAME");
	const char *name;
	size_t len;

	if (chosen < 0)
		return false;
	if (values[chosen] == RULES_LOG_FILE) {
		if (!parse_word(p, "the name of a file", &name, &len))
			return false;
		return rules_set_log_file(p->rules, name, len) == 0 ||
		       fail_no_memory(p);
	}
	p->rules->log.to = values[chosen];
	return true;
}

static bool parse_min_level(struct parser *p)
{
	unsigned level;

	if (!parse_number(p, "a level", RULES_LOG_LEVEL_MAX, &level))
		return false;
	p->rules->log.min_level = (int)level;
	return true;
}

static bool parse_log(struct parser *p)
{
	bool is_first = true;

	for (;; is_first = false) {
		bool is_good;

		if (accept_keyword(p, "destination"))
			is_good = parse_destination(p);
		else if (accept_keyword(p, "min-level"))
			is_good = parse_min_level(p);
		else
			return !is_first ||
			       fail_expecting(p, "destination or min-level");
		if (!is_good)
			return false;
	}
}

#define STATEMENTS "application-id, use, log or a # comment"

/* A statement by which the next rules get their group, or may have been meant to. Rules for
 * another program than was meant do more harm than none. */
static bool begin_group(struct parser *p, bool is_known)
{
	bool is_good;

	p->is_without_group = true;
	p->consequence = "; the rules up to the next application-id are left out";
	is_good = is_known ?
			  parse_group(p) :
			  fail_expecting(p, STATEMENTS);
	p->consequence = "";
	if (is_good)
		p->is_without_group = false;
	return is_good;
}

static bool parse_statement(struct parser *p)
{
	if (accept_keyword(p, "application-id"))
		return begin_group(p, true);
	if (accept_keyword(p, "use"))
		return parse_use(p);
	if (accept_keyword(p, "log"))
		return parse_log(p);
	/* No other statement begins so. What is not ASCII may be a mark or a blank that nobody
	 * sees, in front of one. */
	if (at_char(p, 'a') || at_char(p, 'A') || *p->pos & 0x80)
		return begin_group(p, false);
	return fail_expecting(p, STATEMENTS);
}

int rules_parse(struct rules *rules, const char *name, const char *text,
		size_t len, enum rules_place place, rules_line_fn *report,
		void *ctx)
{
	struct parser p = {
		.rules = rules,
		.place = place,
		.source = rules_keep_source(rules, name),
		.report = report,
		.ctx = ctx,
		.pos = text,
		.end = text + len,
		.line_start = text,
		.line = 1,
		.consequence = "",
	};

	if (!p.source)
		return -ENOMEM;
	if (place == RULES_APPEND)
		rules->current = NULL;
	skip_byte_order_mark(&p);
	while (p.pos < p.end) {
		while (!at_line_end(&p))
			if (!parse_statement(&p))
				break;
		if (p.has_no_memory)
			return -ENOMEM;
		next_line(&p);
	}
	if (p.error_cnt > ERRORS_SHOWN && report) {
		char line[LINE_SIZE];
		struct text t = text_in(line, sizeof(line));

		text_add(&t, "%s: %d more errors", p.source,
			 p.error_cnt - ERRORS_SHOWN);
		report(ctx, line);
	}
	return p.error_cnt;
}
