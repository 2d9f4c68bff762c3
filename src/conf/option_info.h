/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options as a table: what the parser, the banner, the manual and vma_conf
 * know about each. One entry for each line of options.def.
 */
#ifndef CONF_OPTION_INFO_H
#define CONF_OPTION_INFO_H

#include "conf/options.h"

enum option_kind {
	OPTION_KIND_flag,
	OPTION_KIND_num,
	OPTION_KIND_num0,
	OPTION_KIND_size,
	OPTION_KIND_size0,
	OPTION_KIND_choice,
	OPTION_KIND_word,
	OPTION_KIND_text,
	OPTION_KIND_path,
	OPTION_KIND_cpus,
	OPTION_KIND_pointer,
};

enum option_effect {
	OPTION_EFFECT_NOW,
	OPTION_EFFECT_LATER,
	OPTION_EFFECT_NEVER,
};

enum option_show {
	OPTION_SHOW_HIDDEN,
	OPTION_SHOW_NUMBER,
	OPTION_SHOW_TEXT,
	OPTION_SHOW_BOTH,
};

struct option_info {
	const char *name; /* of the variable */
	const char *unit; /* of the number, or "" */
	const char *label; /* in the banner */
	const char *doc; /* what it is for, whole sentences */
	size_t offset; /* of the member in struct options */
	int min, max; /* of the number, or of the length of the text */
	int def_number; /* the default, unless it is a text */
	const char *def_text;
	enum option_kind kind;
	enum option_effect effect;
	enum option_show show;
};

/* A line of choices.def. */
struct option_choice {
	enum option_id id;
	int value;
	const char *word;
	const char *text;
	const char *meaning;
};

/* The value that stands for all without a line of their own. */
enum { CHOICE_OTHER = INT_MIN };

/* By enum option_id. */
extern const struct option_info option_infos[OPTION_CNT];

/* All choices, those of an option together; ends with id OPTION_CNT. */
extern const struct option_choice option_choices[];

/* The next choice of the option after `prev` (NULL: the first), or NULL. */
const struct option_choice *option_next_choice(enum option_id id,
					       const struct option_choice *prev);

/* The first line choices.def has for the value, or NULL. */
const struct option_choice *option_choice_of(enum option_id id, int value);

/* The option of that name, or OPTION_CNT. */
enum option_id option_find(const char *name, size_t len);

static inline bool option_is_text(enum option_id id)
{
	enum option_kind kind = option_infos[id].kind;

	return kind == OPTION_KIND_text || kind == OPTION_KIND_path ||
	       kind == OPTION_KIND_cpus;
}

/* The value of an option that is no text and no pointer. */
int option_number(const struct options *opts, enum option_id id);
const char *option_text(const struct options *opts, enum option_id id);
bool option_is_default(const struct options *opts, enum option_id id);

/* The value as one would set it, cut to `size` bytes; returns `buf`. */
const char *option_value(const struct options *opts, enum option_id id,
			 char *buf, size_t size);

/* What may be assigned, as the end of a sentence that begins with "must be". */
const char *option_allowed(enum option_id id, char *buf, size_t size);

#endif
