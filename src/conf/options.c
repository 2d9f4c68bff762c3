/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of options, their defaults, and their values as text. */
#include "config.h"

#include "conf/options.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "conf/option_info.h"

#define DEFAULT_flag(value) .def_number = (value)
#define DEFAULT_num(value) .def_number = (value)
#define DEFAULT_num0(value) .def_number = (value)
#define DEFAULT_size(value) .def_number = (value)
#define DEFAULT_size0(value) .def_number = (value)
#define DEFAULT_choice(value) .def_number = (value)
#define DEFAULT_word(value) .def_number = (value)
#define DEFAULT_text(value) .def_text = (value)
#define DEFAULT_path(value) .def_text = (value)
#define DEFAULT_cpus(value) .def_text = (value)
#define DEFAULT_pointer(value) .def_number = (value)

const struct option_info option_infos[OPTION_CNT] = {
#define OPTION(kind_, member, name_, effect_, value, min_, max_, unit_, show_, \
	       label_, doc_)                                                 \
	[OPTION_##member] = {                                                \
		.name = name_,                                               \
		.unit = unit_,                                               \
		.label = label_,                                             \
		.doc = doc_,                                                 \
		.offset = offsetof(struct options, member),                  \
		.min = min_,                                                 \
		.max = max_,                                                 \
		.kind = OPTION_KIND_##kind_,                                 \
		.effect = OPTION_EFFECT_##effect_,                           \
		.show = OPTION_SHOW_##show_,                                 \
		DEFAULT_##kind_(value),                                      \
	},
#include "conf/options.def"
};

const struct option_choice option_choices[] = {
#define CHOICE(member, value_, word_, text_, meaning_) \
	{                                              \
		.id = OPTION_##member,                 \
		.value = value_,                       \
		.word = word_,                         \
		.text = text_,                         \
		.meaning = meaning_,                   \
	},
#include "conf/choices.def"
	{ .id = OPTION_CNT },
};

void options_init_defaults(struct options *opts)
{
#define OPTION(kind, member, name, effect, value, ...) opts->member = value;
#define INTERNAL(member, value) opts->member = value;
#include "conf/options.def"
	memset(opts->is_set, 0, sizeof(opts->is_set));
	opts->text_len = 0;
}

const struct option_choice *option_next_choice(enum option_id id,
					       const struct option_choice *prev)
{
	const struct option_choice *c = prev ? prev + 1 : option_choices;

	while (c->id != id && c->id != OPTION_CNT)
		c++;
	return c->id == id ? c : NULL;
}

const struct option_choice *option_choice_of(enum option_id id, int value)
{
	const struct option_choice *c = NULL;

	while ((c = option_next_choice(id, c)))
		if (c->value == value || c->value == CHOICE_OTHER)
			return c;
	return NULL;
}

enum option_id option_find(const char *name, size_t len)
{
	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		const char *known = option_infos[id].name;

		if (strncmp(known, name, len) == 0 && known[len] == '\0')
			return id;
	}
	return OPTION_CNT;
}

static const void *member(const struct options *opts, enum option_id id)
{
	return (const char *)opts + option_infos[id].offset;
}

int option_number(const struct options *opts, enum option_id id)
{
	INVARIANT(!option_is_text(id), "texts are read by option_text()");
	if (option_infos[id].kind == OPTION_KIND_flag)
		return *(const bool *)member(opts, id);
	return *(const int *)member(opts, id);
}

const char *option_text(const struct options *opts, enum option_id id)
{
	INVARIANT(option_is_text(id), "numbers are read by option_number()");
	return *(const char *const *)member(opts, id);
}

static uintptr_t option_pointer(const struct options *opts, enum option_id id)
{
	return *(const uintptr_t *)member(opts, id);
}

bool option_is_default(const struct options *opts, enum option_id id)
{
	const struct option_info *info = &option_infos[id];

	if (option_is_text(id))
		return strcmp(option_text(opts, id), info->def_text) == 0;
	if (info->kind == OPTION_KIND_pointer)
		return option_pointer(opts, id) == 0;
	return option_number(opts, id) == info->def_number;
}

const char *option_value(const struct options *opts, enum option_id id,
			 char *buf, size_t size)
{
	struct text t = text_in(buf, size);

	if (option_is_text(id))
		text_add(&t, "%s", option_text(opts, id));
	else if (option_infos[id].kind == OPTION_KIND_pointer)
		text_add(&t, "%#" PRIxPTR, option_pointer(opts, id));
	else if (option_infos[id].kind == OPTION_KIND_word)
		text_add(&t, "%s",
			 option_choice_of(id, option_number(opts, id))->word);
	else
		text_add(&t, "%d", option_number(opts, id));
	return buf;
}

/* Each value once, by its first word or as a number. */
static void add_choices(struct text *t, enum option_id id)
{
	const struct option_choice *c = NULL;
	const char *separator = "one of ";

	while ((c = option_next_choice(id, c))) {
		if (option_choice_of(id, c->value) != c)
			continue;
		text_add(t, "%s", separator);
		if (option_infos[id].kind == OPTION_KIND_word)
			text_add(t, "%s", c->word);
		else
			text_add(t, "%d", c->value);
		separator = ", ";
	}
}

static void add_range(struct text *t, const struct option_info *info)
{
	switch (info->kind) {
	case OPTION_KIND_num0:
		text_add(t, "0 or a whole number from %d to %d", info->min,
			 info->max);
		break;
	case OPTION_KIND_size:
		text_add(t, "a number of bytes from %d to %d", info->min,
			 info->max);
		break;
	case OPTION_KIND_size0:
		text_add(t, "0 or a number of bytes from %d to %d", info->min,
			 info->max);
		break;
	default:
		text_add(t, "a whole number from %d to %d", info->min,
			 info->max);
	}
}

const char *option_allowed(enum option_id id, char *buf, size_t size)
{
	const struct option_info *info = &option_infos[id];
	struct text t = text_in(buf, size);

	switch (info->kind) {
	case OPTION_KIND_flag:
		text_add(&t, "0 or 1 (no, yes, false, true, off, on)");
		break;
	case OPTION_KIND_choice:
	case OPTION_KIND_word:
		add_choices(&t, id);
		break;
	case OPTION_KIND_text:
	case OPTION_KIND_path:
		text_add(&t, "a text of %d to %d bytes", info->min, info->max);
		break;
	case OPTION_KIND_cpus:
		text_add(&t, "-1, a mask (0x3) or a list (0,2,4-6) of CPUs");
		break;
	case OPTION_KIND_pointer:
		text_add(&t, "the address of a function (0x...)");
		break;
	default:
		add_range(&t, info);
	}
	return buf;
}
