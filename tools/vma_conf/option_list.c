/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of options as text: plain, and as the part of libvma(7) that must
 * agree with it.
 */
#include "config.h"

#include "option_list.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conf/option_info.h"

enum { VALUE_SIZE = 256 };

static struct options opts;

static const char *default_of(enum option_id id, char *buf)
{
	options_init_defaults(&opts);
	return option_value(&opts, id, buf, VALUE_SIZE);
}

/* Whether users are to know of it; builds for tests have more options. */
static bool is_public(enum option_id id)
{
	return strncmp(option_infos[id].name, "VMA_TEST_", 9) != 0;
}

/* What stands after the description: nothing if the option is effective. */
static const char *effect_note(enum option_id id)
{
	switch (option_infos[id].effect) {
	case OPTION_EFFECT_NOW:
		break;
	case OPTION_EFFECT_LATER:
		return "Not effective yet.";
	case OPTION_EFFECT_NEVER:
		return "Without effect.";
	}
	return "";
}

/* A choice of numbers whose meanings are worth a list. */
static bool has_meanings(enum option_id id)
{
	const struct option_choice *c = option_next_choice(id, NULL);

	return c && *c->meaning;
}

/* ---- plain ---- */

/* Breaks the text at blanks, `indent` columns from the left. */
static void print_wrapped(const char *text, int indent)
{
	const int width = 78;
	int column = 0;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column && column + 1 + len > width) {
			printf("\n");
			column = 0;
		}
		if (column == 0)
			column = printf("%*s%.*s", indent, "", len, text);
		else
			column += printf(" %.*s", len, text);
		text += len;
		text += strspn(text, " ");
	}
	printf("\n");
}

static void print_meanings(enum option_id id)
{
	const struct option_choice *c = NULL;

	while ((c = option_next_choice(id, c))) {
		if (!*c->meaning)
			continue;
		if (option_infos[id].kind == OPTION_KIND_word)
			printf("        %s: %s\n", c->word, c->meaning);
		else
			printf("        %d: %s\n", c->value, c->meaning);
	}
}

static void print_plain(enum option_id id)
{
	const struct option_info *info = &option_infos[id];
	char value[VALUE_SIZE], allowed[VALUE_SIZE];

	default_of(id, value);
	printf("%s=%s", info->name, value);
	if (*info->unit)
		printf(" (%s)", info->unit);
	printf("\n");
	print_wrapped(info->doc, 4);
	option_allowed(id, allowed, sizeof(allowed));
	printf("    Must be %s.\n", allowed);
	print_meanings(id);
	if (*effect_note(id))
		printf("    %s\n", effect_note(id));
	printf("\n");
}

void option_list_print_plain(void)
{
	for (enum option_id id = 0; id < OPTION_CNT; id++)
		if (is_public(id))
			print_plain(id);
}

/* ---- manual ---- */

/* As roff wants it: a hyphen that is one, no request at the start of a line. */
static void print_roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		printf("\\&");
	for (; *text; text++) {
		if (*text == '-')
			printf("\\-");
		else if (*text == '\\')
			printf("\\e");
		else
			putchar(*text);
	}
	printf("\n");
}

static void print_man_meanings(enum option_id id)
{
	const struct option_choice *c = NULL;

	if (!has_meanings(id))
		return;
	printf(".RS\n");
	while ((c = option_next_choice(id, c))) {
		char value[32];

		if (!*c->meaning)
			continue;
		snprintf(value, sizeof(value), "%d", c->value);
		printf(".TP 12\n.B ");
		print_roff(*c->word ? c->word : value);
		print_roff(c->meaning);
	}
	printf(".RE\n");
}

static void print_man(enum option_id id)
{
	const struct option_info *info = &option_infos[id];
	char value[VALUE_SIZE], allowed[VALUE_SIZE], line[4 * VALUE_SIZE];

	default_of(id, value);
	printf(".TP\n.B %s\n", info->name);
	print_roff(info->doc);
	if (*effect_note(id))
		printf(".I %s\n", effect_note(id));
	printf(".br\n");
	snprintf(line, sizeof(line), "Must be %s%s%s%s; default %s.",
		 option_allowed(id, allowed, sizeof(allowed)),
		 *info->unit ? " (" : "", info->unit, *info->unit ? ")" : "",
		 *value ? value : "empty");
	print_roff(line);
	print_man_meanings(id);
}

/* What differs from the default under the profile, derived values included. */
static void print_profile(const struct option_choice *profile)
{
	static const struct options_facts facts = {
		.log_level_max = LOG_LEVEL_ALL,
	};
	char assignment[64], value[VALUE_SIZE], line[2 * VALUE_SIZE];
	char *env[] = { assignment, NULL };

	snprintf(assignment, sizeof(assignment), "VMA_SPEC=%s", profile->word);
	options_parse(&opts, env, &facts, NULL, NULL);
	for (enum option_id id = 0; id < OPTION_CNT; id++) {
		if (id == OPTION_spec || option_is_default(&opts, id))
			continue;
		option_value(&opts, id, value, sizeof(value));
		snprintf(line, sizeof(line), "%s=%s", option_infos[id].name,
			 value);
		printf(".br\n");
		print_roff(line);
	}
}

static void print_profiles(void)
{
	const struct option_choice *c = NULL;
	int last = -1;

	while ((c = option_next_choice(OPTION_spec, c))) {
		if (c->value == SPEC_NONE || c->value == last)
			continue;
		last = c->value;
		printf(".TP\n.B ");
		print_roff(c->word);
		if (c[1].id == OPTION_spec && c[1].value == c->value)
			printf("(or %s) ", c[1].word);
		printf("%s.\n", c->text);
		print_profile(c);
	}
}

void option_list_print_man(void)
{
	printf(".SH VARIABLES\n");
	for (enum option_id id = 0; id < OPTION_CNT; id++)
		if (is_public(id))
			print_man(id);
	printf(".SH PROFILES\n");
	print_profiles();
}
