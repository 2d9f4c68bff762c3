/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The banner's lines, in VMA's words and order where programs read them. */
#include "config.h"

#include "conf/banner.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "conf/option_info.h"

#define NUMBER_FMT "%-30s %-26d [%s]"
#define TEXT_FMT "%-30s %-26s [%s]"
#define BOTH_FMT "%-30s %-2d%-24s [%s]"

/* 75 dashes. */
static const char rule[] = "-------------------------"
			   "-------------------------"
			   "-------------------------";

static bool is_said(const char *text)
{
	return text && *text;
}

static void print_process(const struct banner_facts *facts)
{
	/* A finished release shows only the essential facts by default. */
	enum log_level level = facts->is_release ? LOG_LEVEL_DEBUG :
						   LOG_LEVEL_INFO;

	log_info("VMA_VERSION: %s %s built on %s", facts->version,
		 facts->is_release ? "Release" : "Development Snapshot",
		 facts->built);
	if (is_said(facts->commit))
		log_info("Git: %s", facts->commit);
	if (is_said(facts->cmdline))
		log_info("Cmd Line: %s", facts->cmdline);
	if (is_said(facts->time))
		LOG_AT(level, "Current Time: %s", facts->time);
	LOG_AT(level, "Pid: %5u", (unsigned)facts->pid);
	if (is_said(facts->arch))
		LOG_AT(level, "Architecture: %s", facts->arch);
	if (is_said(facts->node))
		LOG_AT(level, "Node: %s", facts->node);
	if (is_said(facts->ofed))
		log_info("OFED Version: %s", facts->ofed);
	if (is_said(facts->system))
		log_dbg("System: %s", facts->system);
}

static enum log_level level_of(const struct options *opts, enum option_id id)
{
	bool is_quiet = option_is_default(opts, id) && id != OPTION_log_level;

	return is_quiet ? LOG_LEVEL_DETAILS : LOG_LEVEL_INFO;
}

static const char *text_of(const struct options *opts, enum option_id id)
{
	const struct option_choice *choice;

	if (option_is_text(id))
		return option_text(opts, id);
	if (option_infos[id].kind == OPTION_KIND_flag)
		return option_number(opts, id) ? "Enabled " : "Disabled";
	choice = option_choice_of(id, option_number(opts, id));
	return choice ? choice->text : "";
}

static void print_option(const struct options *opts, enum option_id id)
{
	const struct option_info *info = &option_infos[id];
	enum log_level level = level_of(opts, id);
	const char *text;

	switch (info->show) {
	case OPTION_SHOW_HIDDEN:
		break;
	case OPTION_SHOW_TEXT:
		LOG_AT(level, TEXT_FMT, info->label, text_of(opts, id),
		       info->name);
		break;
	case OPTION_SHOW_BOTH:
		text = text_of(opts, id);
		if (*text) {
			LOG_AT(level, BOTH_FMT, info->label,
			       option_number(opts, id), text, info->name);
			break;
		}
		/* fall through */
	case OPTION_SHOW_NUMBER:
		LOG_AT(level, NUMBER_FMT, info->label, option_number(opts, id),
		       info->name);
		break;
	}
}

static void print_number(const struct options *opts, enum option_id id)
{
	LOG_AT(level_of(opts, id), NUMBER_FMT, option_infos[id].label,
	       option_number(opts, id), option_infos[id].name);
}

/* Options whose line has another label, or none, when they are off. */
static void print_special(const struct options *opts, enum option_id id)
{
	bool is_draining = opts->progress_interval && opts->progress_wce_max;
	const char *name = option_infos[id].name;

	switch (id) {
	case OPTION_spec_param1:
	case OPTION_spec_param2:
		if (options_wrap_pipes(opts))
			print_number(opts, id);
		break;
	case OPTION_spec:
		if (opts->spec != SPEC_NONE)
			log_info(TEXT_FMT, option_infos[id].label,
				 text_of(opts, id), name);
		break;
	case OPTION_rx_cq_drain_rate:
		if (opts->rx_cq_drain_rate)
			LOG_AT(level_of(opts, id), NUMBER_FMT,
			       "Rx CQ Drain Rate (nsec)",
			       opts->rx_cq_drain_rate, name);
		else
			log_details(TEXT_FMT, option_infos[id].label,
				    "Disabled", name);
		break;
	case OPTION_progress_interval:
		if (is_draining)
			print_number(opts, id);
		else
			log_info(TEXT_FMT, "CQ Drain Thread", "Disabled", name);
		break;
	case OPTION_progress_wce_max:
		if (is_draining)
			print_number(opts, id);
		break;
	case OPTION_cq_aim_interval:
		if (opts->cq_aim_interval)
			print_number(opts, id);
		else
			log_info(TEXT_FMT, "CQ Adaptive Moderation", "Disabled",
				 name);
		break;
	default:
		break;
	}
}

/* Names the options of that effect whose value was set or differs from the default,
 * on as few lines as possible. */
static void print_without_effect(const struct options *opts,
				 enum option_effect effect, const char *what)
{
	char names[LOG_LINE_SIZE - 128] = "";
	struct text t = text_in(names, sizeof(names));

	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		const struct option_info *info = &option_infos[id];
		bool is_changed = opts->is_set[id] ||
				  !option_is_default(opts, id);

		if (info->effect != effect || !is_changed)
			continue;
		if (t.len + strlen(info->name) + 3 > t.size) {
			log_info("%s: %s", what, names);
			t = text_in(names, sizeof(names));
		}
		text_add(&t, "%s%s", t.len ? ", " : "", info->name);
	}
	if (t.len)
		log_info("%s: %s", what, names);
}

static void print_box_edge(void)
{
	log_warn("***************************************************************************");
}

static void warn_log_level(const struct options *opts)
{
	if (opts->log_level < LOG_LEVEL_DEBUG)
		return;
	print_box_edge();
	log_warn("* The log level is %s, which is for debugging: the program runs slower.",
		 log_level_name(opts->log_level));
	log_warn("* Unset VMA_TRACELEVEL for production and for measurements.");
	print_box_edge();
}

static void warn_memlock(const struct banner_facts *facts)
{
	if (!facts->will_lock_memory ||
	    facts->memlock_limit == MEMLOCK_UNLIMITED)
		return;
	print_box_edge();
	log_warn("* This process may lock %" PRId64 " bytes of memory; packet buffers need more.",
		 facts->memlock_limit);
	log_warn("* Lift the limit, for instance by `ulimit -l unlimited` in the shell before.");
	log_warn("* Sockets for which there is no memory stay with the kernel.");
	print_box_edge();
}

/* netserver makes a child for each test unless it is told otherwise, and a child
 * does not keep what was accelerated for its parent. */
static void warn_netserver(const struct banner_facts *facts)
{
	const char *program = facts->cmdline ? facts->cmdline : "";
	size_t len = strcspn(program, " ");
	const char *slash = memrchr(program, '/', len);

	if (slash) {
		len -= (size_t)(slash + 1 - program);
		program = slash + 1;
	}
	if (len != strlen("netserver") || memcmp(program, "netserver", len) != 0)
		return;
	if (!strstr(program, " -D") && !strstr(program, " -f"))
		log_warn("netserver forks for each test; start it with -D or -f to have its sockets accelerated");
}

void banner_print(const struct options *opts, const struct banner_facts *facts)
{
	log_info("%s", rule);
	print_process(facts);
	log_info("%s", rule);
	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		print_special(opts, id);
		print_option(opts, id);
	}
	print_without_effect(opts, OPTION_EFFECT_LATER, "Not effective yet");
	print_without_effect(opts, OPTION_EFFECT_NEVER, "Without effect");
	log_info("%s", rule);
	warn_log_level(opts);
	warn_memlock(facts);
	warn_netserver(facts);
}
