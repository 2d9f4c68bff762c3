/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes struct options from the environment: one pass finds our variables, then
 * follow the steps of options_parse() in their order.
 */
#include "config.h"

#include "conf/options.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "conf/cpus.h"
#include "conf/option_info.h"
#include "conf/suggest.h"

enum {
	LINE_SIZE = 512,
	VALUE_SHOWN = 64,  /* bytes of a value a message repeats */
	UNKNOWN_SHOWN = 8, /* unknown names that get a line each */
};

/* Deprecated names, in the order in which they take effect. */
static const struct alias {
	const char *name;
	enum option_id id;
} aliases[] = {
#define ALIAS(name, member) { name, OPTION_##member },
#define MISPRINT(name, right)
#define GONE(name, why)
#include "conf/names.def"
};

static const struct misprint {
	const char *name;
	const char *right;
} misprints[] = {
#define ALIAS(name, member)
#define MISPRINT(name, right) { name, right },
#define GONE(name, why)
#include "conf/names.def"
};

static const struct gone {
	const char *name;
	const char *why;
} gone_names[] = {
#define ALIAS(name, member)
#define MISPRINT(name, right)
#define GONE(name, why) { name, why },
#include "conf/names.def"
};

struct parse {
	struct options *opts;
	const struct options_facts *facts;
	options_report_fn *report; /* may be NULL */
	void *ctx;
	int report_cnt;
	int unknown_cnt;
	int xlio_cnt; /* names of the sister product */
	/* What the environment says, NULL where nothing. */
	const char *values[OPTION_CNT];
	const char *alias_values[ARRAY_LEN(aliases)];
};

static void PRINTF_LIKE(2, 3) say(struct parse *p, const char *fmt, ...)
{
	char line[LINE_SIZE];
	struct text t = text_in(line, sizeof(line));
	va_list args;

	p->report_cnt++;
	if (!p->report)
		return;
	va_start(args, fmt);
	text_vadd(&t, fmt, args);
	va_end(args);
	p->report(p->ctx, line);
}

static void *member(struct options *opts, enum option_id id)
{
	return (char *)opts + option_infos[id].offset;
}

/* ---- finding our variables ---- */

static bool is_name(const char *name, size_t len, const char *known)
{
	return strncmp(name, known, len) == 0 && known[len] == '\0';
}

static bool say_known_mistake(struct parse *p, const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(misprints); i++) {
		if (!is_name(name, len, misprints[i].name))
			continue;
		say(p, "%s is not an option; some manuals call %s so",
		    misprints[i].name, misprints[i].right);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(gone_names); i++) {
		if (!is_name(name, len, gone_names[i].name))
			continue;
		say(p, "%s is not an option of this version: %s",
		    gone_names[i].name, gone_names[i].why);
		return true;
	}
	return false;
}

static void say_unknown(struct parse *p, const char *name, size_t len)
{
	static const char prefix[] = "VMA_";
	struct suggest s = { .word = name + strlen(prefix),
			     .len = len - strlen(prefix) };
	char quoted[VALUE_SHOWN + sizeof("...\"\"")];
	struct text t = text_in(quoted, sizeof(quoted));

	if (say_known_mistake(p, name, len) ||
	    p->unknown_cnt++ >= UNKNOWN_SHOWN)
		return;
	for (enum option_id id = 0; id < OPTION_CNT; id++)
		suggest_try(&s, option_infos[id].name + strlen(prefix));
	text_add_quoted(&t, name, len, VALUE_SHOWN);
	if (s.best)
		say(p, "%s is not an option; did you mean VMA_%s?", quoted,
		    s.best);
	else
		say(p, "%s is not an option", quoted);
}

/* As getenv() does, the first of several settings counts. */
static void find_variable(struct parse *p, const char *name, size_t len)
{
	const char *value = name + len + 1;
	enum option_id id = option_find(name, len);

	if (id != OPTION_CNT) {
		if (!p->values[id])
			p->values[id] = value;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
		if (!is_name(name, len, aliases[i].name))
			continue;
		if (!p->alias_values[i])
			p->alias_values[i] = value;
		return;
	}
	say_unknown(p, name, len);
}

static void find_variables(struct parse *p, char *const *env)
{
	for (; *env; env++) {
		const char *end = strchr(*env, '=');

		if (!end)
			continue;
		if (strncmp(*env, "XLIO_", 5) == 0)
			p->xlio_cnt++;
		if (strncmp(*env, "VMA_", 4) == 0)
			find_variable(p, *env, (size_t)(end - *env));
	}
	if (p->unknown_cnt > UNKNOWN_SHOWN)
		say(p, "%d more VMA_ variables are not options",
		    p->unknown_cnt - UNKNOWN_SHOWN);
	if (p->xlio_cnt > 0)
		say(p, "%d variables begin with XLIO_, which is another product; the options of this library begin with VMA_",
		    p->xlio_cnt);
}

/* ---- values ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *s)
{
	while (is_blank(*s))
		s++;
	return s;
}

/* A decimal number with an optional sign at *pos; saturates far outside of what
 * an int holds. */
static bool scan_number(const char **pos, int64_t *n_out)
{
	const int64_t cap = INT64_C(1) << 48;
	const char *s = *pos;
	bool is_negative = *s == '-';
	int64_t n = 0;

	if (*s == '-' || *s == '+')
		s++;
	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		n = MIN(n * 10 + (*s - '0'), cap);
	*pos = s;
	*n_out = is_negative ? -n : n;
	return true;
}

/* k, M or G at *pos, as a factor. */
static int64_t scan_factor(const char **pos)
{
	static const char letters[] = "kKmMgG";
	const char *found = **pos ? strchr(letters, **pos) : NULL;

	if (!found)
		return 1;
	++*pos;
	return INT64_C(1) << ((found - letters) / 2 + 1) * 10;
}

static bool parse_number(const struct option_info *info, const char *text,
			 int *value_out)
{
	bool is_size = info->kind == OPTION_KIND_size ||
		       info->kind == OPTION_KIND_size0;
	bool may_be_0 = info->kind == OPTION_KIND_num0 ||
			info->kind == OPTION_KIND_size0;
	const char *pos = skip_blanks(text);
	int64_t n;

	if (!scan_number(&pos, &n))
		return false;
	if (is_size && __builtin_mul_overflow(n, scan_factor(&pos), &n))
		return false;
	if (*skip_blanks(pos) != '\0')
		return false;
	if ((n < info->min || n > info->max) && !(may_be_0 && n == 0))
		return false;
	*value_out = (int)n;
	return true;
}

static bool parse_flag(const char *text, bool *value_out)
{
	static const char *const words[][2] = {
		{ "no", "yes" }, { "false", "true" }, { "off", "on" },
	};
	const char *pos = skip_blanks(text);
	int64_t n;

	if (scan_number(&pos, &n)) {
		if (*skip_blanks(pos) != '\0')
			return false;
		*value_out = n != 0;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		for (int on = 0; on < 2; on++) {
			if (strcasecmp(text, words[i][on]) != 0)
				continue;
			*value_out = on;
			return true;
		}
	}
	return false;
}

static bool parse_choice(enum option_id id, const char *text, int *value_out)
{
	const char *pos = skip_blanks(text);
	const struct option_choice *c = NULL;
	int64_t n;

	if (!scan_number(&pos, &n) || *skip_blanks(pos) != '\0')
		return false;
	while ((c = option_next_choice(id, c))) {
		if (c->value != n)
			continue;
		*value_out = c->value;
		return true;
	}
	return false;
}

static bool parse_word(enum option_id id, const char *text, int *value_out)
{
	const struct option_choice *c = NULL;

	while ((c = option_next_choice(id, c))) {
		if (strcasecmp(text, c->word) != 0)
			continue;
		*value_out = c->value;
		return true;
	}
	return false;
}

static bool parse_pointer(const char *text, uintptr_t *value_out)
{
	uintptr_t value = 0;

	if (strncmp(text, "0x", 2) != 0 || text[2] == '\0')
		return false;
	for (const char *s = text + 2; *s; s++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = strchr(digits, *s);

		if (!digit || value >> (sizeof(value) * 8 - 4))
			return false;
		value = value << 4 | (uintptr_t)(digit - digits);
	}
	*value_out = value;
	return value != 0;
}

/* Keeps the text in opts, its first %d replaced if `pid` is not 0. */
static bool parse_text(struct options *opts, const struct option_info *info,
		       const char *text, pid_t pid, const char **value_out)
{
	char *kept = opts->text + opts->text_len;
	const char *mark = pid ? strstr(text, "%d") : NULL;
	struct text t = text_in(kept, OPTION_TEXT_MAX + 1);

	if (mark)
		text_add(&t, "%.*s%d%s", (int)(mark - text), text, (int)pid,
			 mark + 2);
	else
		text_add(&t, "%s", text);
	if (t.is_cut || t.len < (size_t)info->min || t.len > (size_t)info->max)
		return false;
	opts->text_len += t.len + 1;
	*value_out = kept;
	return true;
}

static bool parse_cpus(struct options *opts, const struct option_info *info,
		       const char *text, const char **value_out)
{
	struct cpus cpus;

	return cpus_parse(text, &cpus) == 0 &&
	       parse_text(opts, info, text, 0, value_out);
}

/* Leaves the option alone if the text is not allowed. */
static bool parse_value(struct parse *p, enum option_id id, const char *text)
{
	const struct option_info *info = &option_infos[id];
	void *value = member(p->opts, id);

	switch (info->kind) {
	case OPTION_KIND_flag:
		return parse_flag(text, value);
	case OPTION_KIND_num:
	case OPTION_KIND_num0:
	case OPTION_KIND_size:
	case OPTION_KIND_size0:
		return parse_number(info, text, value);
	case OPTION_KIND_choice:
		return parse_choice(id, text, value);
	case OPTION_KIND_word:
		return parse_word(id, text, value);
	case OPTION_KIND_text:
		return parse_text(p->opts, info, text, 0, value);
	case OPTION_KIND_path:
		return parse_text(p->opts, info, text, p->facts->pid, value);
	case OPTION_KIND_cpus:
		return parse_cpus(p->opts, info, text, value);
	case OPTION_KIND_pointer:
		return parse_pointer(text, value);
	}
	return false;
}

static void say_bad_value(struct parse *p, enum option_id id, const char *name,
			  const char *text)
{
	char quoted[VALUE_SHOWN + sizeof("...\"\"")], allowed[256];
	char used[VALUE_SHOWN];
	struct text t = text_in(quoted, sizeof(quoted));

	text_add_quoted(&t, text, strlen(text), VALUE_SHOWN);
	option_value(p->opts, id, used, sizeof(used));
	say(p, "%s=%s: must be %s; using %s", name, quoted,
	    option_allowed(id, allowed, sizeof(allowed)),
	    *used ? used : "none");
}

static void apply(struct parse *p, enum option_id id, const char *name,
		  const char *text)
{
	if (parse_value(p, id, text))
		p->opts->is_set[id] = true;
	else
		say_bad_value(p, id, name, text);
}

/* Applies the variable if it is there, and not again. */
static void take(struct parse *p, enum option_id id)
{
	const char *text = p->values[id];

	p->values[id] = NULL;
	if (text)
		apply(p, id, option_infos[id].name, text);
}

/* ---- the steps ---- */

static void apply_presets(struct options *opts)
{
	if (opts->socketxtreme) {
		opts->rx_wre = 1024;
		opts->gro_streams_max = 0;
		opts->progress_interval = 0;
	}
#define PRESET(profile, member, value)    \
	if (opts->spec == SPEC_##profile) \
		opts->member = value;
#include "conf/spec.def"
	if (opts->select_poll_os_force) {
		opts->select_poll_os_ratio = 1;
		opts->select_skip_os = 1;
	}
}

static void take_aliases(struct parse *p)
{
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
		const struct alias *alias = &aliases[i];
		const char *text = p->alias_values[i];

		if (!text)
			continue;
		if (!parse_value(p, alias->id, text)) {
			say_bad_value(p, alias->id, alias->name, text);
			continue;
		}
		p->opts->is_set[alias->id] = true;
		say(p, "%s is deprecated; use %s", alias->name,
		    option_infos[alias->id].name);
	}
}

/*
 * Sets an option to what another option, the machine or the build forces on it.
 * Only a user who set something else is told.
 */
static void force(struct parse *p, enum option_id id, int value,
		  const char *why)
{
	char was[VALUE_SHOWN], is[VALUE_SHOWN];

	if (option_number(p->opts, id) == value)
		return;
	option_value(p->opts, id, was, sizeof(was));
	if (option_infos[id].kind == OPTION_KIND_flag)
		*(bool *)member(p->opts, id) = value;
	else
		*(int *)member(p->opts, id) = value;
	if (p->opts->is_set[id])
		say(p, "%s=%s: %s; using %s", option_infos[id].name, was, why,
		    option_value(p->opts, id, is, sizeof(is)));
}

static void force_least(struct parse *p, enum option_id id, int least,
			const char *why)
{
	if (option_number(p->opts, id) < least)
		force(p, id, least, why);
}

static void force_most(struct parse *p, enum option_id id, int most,
		       const char *why)
{
	if (option_number(p->opts, id) > most)
		force(p, id, most, why);
}

static int round_up_64(int n)
{
	return (n + 63) / 64 * 64;
}

/* How deep a send queue the device's memory for one allows: an entry holds a
 * header of 12 bytes and the inlined ones, in units of 64. */
static int tx_wre_most(int max_inline)
{
	const int queue_bytes = 2097152, header = 12;
	int inlined = max_inline > header ? max_inline - header : 0;

	return queue_bytes / round_up_64(round_up_64(inlined) + header);
}

static void fix_log(struct parse *p)
{
	struct options *o = p->opts;

	force_most(p, OPTION_log_level, p->facts->log_level_max,
		   "more than this build can log");
	if (o->log_level >= LOG_LEVEL_DEBUG && !o->is_set[OPTION_log_details])
		o->log_details = LOG_DETAILS_PID;
}

/* Of a queue of two or three too few are left while one is read: streams lose so much that they
 * nearly stand still. */
enum { RX_WRE_LEAST = 4 };

static void fix_queues(struct parse *p)
{
	struct options *o = p->opts;

	force_least(p, OPTION_tx_wre, 2 * o->tx_wre_batching,
		    "less than twice VMA_TX_WRE_BATCHING");
	force_most(p, OPTION_tx_wre, tx_wre_most(o->tx_max_inline),
		   "too many for this VMA_TX_MAX_INLINE");
	if (o->rx_wre_batching < RX_WRE_LEAST / 2)
		force_least(p, OPTION_rx_wre, RX_WRE_LEAST,
			    "too few to receive while others are given back");
	force_least(p, OPTION_rx_wre, 2 * o->rx_wre_batching,
		    "less than twice VMA_RX_WRE_BATCHING");
	force_least(p, OPTION_qp_compensation, o->rx_wre_batching,
		    "less than VMA_RX_WRE_BATCHING");
	if (o->rx_poll == 0)
		o->rx_poll = 1;
	if (o->buffer_batching == 0)
		o->tx_batch_udp = o->tx_batch_tcp = o->rx_batch = 1;
}

/* A program that polls for ever wants no interrupts, so moderation is off for it,
 * unless it asks for moderation. */
static void fix_moderation(struct parse *p)
{
	struct options *o = p->opts;
	bool polls_for_ever = o->rx_poll < 0 || o->select_poll < 0;

	if (polls_for_ever && !o->is_set[OPTION_cq_moderation])
		o->cq_moderation = false;
	if (!o->cq_moderation)
		force(p, OPTION_cq_aim_interval, 0, "moderation is off");
	force_most(p, OPTION_cq_moderation_count, o->rx_wre / 2,
		   "more than half of VMA_RX_WRE");
	force_most(p, OPTION_cq_aim_max_count, o->rx_wre / 2,
		   "more than half of VMA_RX_WRE");
}

static void fix_machine(struct parse *p)
{
	enum hypervisor hypervisor = p->facts->hypervisor;

	if (hypervisor == HYPERVISOR_MICROSOFT && p->opts->mem_alloc_type == 1)
		force(p, OPTION_mem_alloc_type, 2,
		      "there are no contiguous pages under this hypervisor");
	if (hypervisor != HYPERVISOR_NONE)
		force(p, OPTION_blue_flame, false,
		      "not available under a hypervisor");
}

int options_parse(struct options *opts, char *const *env,
		  const struct options_facts *facts, options_report_fn *report,
		  void *ctx)
{
	struct parse p = {
		.opts = opts,
		.facts = facts,
		.report = report,
		.ctx = ctx,
	};

	options_init_defaults(opts);
	find_variables(&p, env);

	/* First come the options whose presets the other ones start from. */
	take(&p, OPTION_socketxtreme);
	take(&p, OPTION_spec);
	take(&p, OPTION_select_poll_os_force);
	apply_presets(opts);

	for (enum option_id id = 0; id < OPTION_CNT; id++)
		take(&p, id);
	take_aliases(&p);

	fix_log(&p);
	fix_queues(&p);
	fix_moderation(&p);
	fix_machine(&p);
	if (opts->socketxtreme)
		force(&p, OPTION_progress_interval, 0,
		      "the program polls under VMA_SOCKETXTREME");
	force_least(&p, OPTION_tcp_timer_resolution, opts->timer_resolution,
		    "less than VMA_TIMER_RESOLUTION_MSEC");
	return p.report_cnt;
}
