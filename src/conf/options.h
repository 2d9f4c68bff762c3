/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options: what the environment says, as numbers and text. All lists are
 * made from the .def files of this folder; nothing here reads the environment, a
 * clock or a file by itself.
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"

/* The longest text of an option, without its NUL. */
enum { OPTION_TEXT_MAX = PATH_MAX - 1 };

enum spec {
	SPEC_NONE,
	SPEC_ULTRA_LATENCY,
	SPEC_LATENCY,
	SPEC_29WEST,
	SPEC_WOMBAT_FH,
	SPEC_MCD,
	SPEC_MCD_IRQ,
	SPEC_RTI,
	SPEC_7750,
	SPEC_MULTI_RING_LATENCY,
	SPEC_CNT,
};

enum way_back_wish { WAY_BACK_AUTO, WAY_BACK_HELPER, WAY_BACK_SELF, WAY_BACK_OFF };
enum io_uring_wish { IO_URING_AUTO, IO_URING_KERNEL, IO_URING_IGNORE };

enum ring_wish { RING_AUTO, RING_MLX5, RING_VERBS, RING_XDP };

enum tso { TSO_AUTO, TSO_ON, TSO_OFF };
enum xdp_mode { XDP_MODE_AUTO, XDP_MODE_ZC, XDP_MODE_NATIVE, XDP_MODE_GENERIC };

enum option_id {
#define OPTION(kind, member, ...) OPTION_##member,
#include "conf/options.def"
	OPTION_CNT,
};

/* The C types of the kinds of options that options.def explains. */
#define OPTION_MEMBER_flag bool
#define OPTION_MEMBER_num int
#define OPTION_MEMBER_num0 int
#define OPTION_MEMBER_size int
#define OPTION_MEMBER_size0 int
#define OPTION_MEMBER_choice int
#define OPTION_MEMBER_word int
#define OPTION_MEMBER_text const char *
#define OPTION_MEMBER_path const char *
#define OPTION_MEMBER_cpus const char *
#define OPTION_MEMBER_pointer uintptr_t

/* How many options have text. */
enum {
#define OPTION_HAS_TEXT_flag 0
#define OPTION_HAS_TEXT_num 0
#define OPTION_HAS_TEXT_num0 0
#define OPTION_HAS_TEXT_size 0
#define OPTION_HAS_TEXT_size0 0
#define OPTION_HAS_TEXT_choice 0
#define OPTION_HAS_TEXT_word 0
#define OPTION_HAS_TEXT_text 1
#define OPTION_HAS_TEXT_path 1
#define OPTION_HAS_TEXT_cpus 1
#define OPTION_HAS_TEXT_pointer 0
	OPTION_TEXT_CNT = 0
#define OPTION(kind, ...) +OPTION_HAS_TEXT_##kind
#include "conf/options.def"
};

/* Text members point to constants or into `text`, so the struct must not be copied
 * or moved. It is fixed after options_parse(). It is large, but meant for static
 * memory: pages of `text` that are not used are never touched. */
struct options {
#define OPTION(kind, member, ...) OPTION_MEMBER_##kind member;
#define INTERNAL(member, value) int member;
#include "conf/options.def"
	/* By enum option_id: whether the environment sets it to something valid. */
	bool is_set[OPTION_CNT];
	size_t text_len; /* bytes of `text` in use */
	char text[OPTION_TEXT_CNT * (OPTION_TEXT_MAX + 1)];
};

enum hypervisor { HYPERVISOR_NONE, HYPERVISOR_MICROSOFT, HYPERVISOR_OTHER };

/* What the machine and the build say. */
struct options_facts {
	pid_t pid; /* for %d in texts */
	enum hypervisor hypervisor;
	int log_level_max; /* LOG_LEVEL_COMPILED of the caller */
};

/* Takes one complaint: a line without a newline, to be logged as a warning. */
typedef void options_report_fn(void *ctx, const char *line);

void options_init_defaults(struct options *opts);

/*
 * Fills `opts`, whatever was in it, from an array of "NAME=value" that ends in
 * NULL, in VMA's order: defaults, hypervisor, SocketXtreme, profile,
 * explicit values, then what options force on each other. A value that is not
 * allowed leaves the option as the steps before made it, and is reported in one
 * line; so is each unknown VMA_ name.
 *
 * Returns how many lines were reported. It has no other effect than on `opts`: a
 * caller whose log depends on the options parses once without `report` (NULL),
 * sets the log up, and, if anything was to report, parses again with it.
 */
int options_parse(struct options *opts, char *const *env,
		  const struct options_facts *facts, options_report_fn *report,
		  void *ctx);

/* Whether VMA_SPEC is a profile whose event pipes get an object (29west and
 * wombat_fh). */
static inline bool options_wrap_pipes(const struct options *opts)
{
	return opts->spec == SPEC_29WEST || opts->spec == SPEC_WOMBAT_FH;
}

#endif
