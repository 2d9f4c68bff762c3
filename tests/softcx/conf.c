/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The environment of the device; see conf.h. */
#include "config.h"

#include "conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* The words of "word=number,word=number". */
struct word {
	const char *name;
	int64_t min, max;
	int64_t *value;
};

static int64_t number(const char *variable, const char *text, int64_t min,
		      int64_t max)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 0);
	if (errno || end == text || *end || value < min || value > max)
		check_die("%s: \"%s\" is not a number from %lld to %lld",
			  variable, text, (long long)min, (long long)max);
	return value;
}

static int64_t env_number(const char *variable, int64_t min, int64_t max,
			  int64_t value)
{
	const char *text = getenv(variable);

	return text && *text ? number(variable, text, min, max) : value;
}

static void one_word(const char *variable, char *text, const struct word *words)
{
	char *value = strchr(text, '=');

	if (!value)
		check_die("%s: \"%s\" has no =", variable, text);
	*value++ = '\0';
	for (; words->name; words++) {
		if (strcmp(words->name, text) == 0) {
			*words->value =
				number(variable, value, words->min, words->max);
			return;
		}
	}
	check_die("%s: there is no \"%s\"", variable, text);
}

/* False when the variable is not set. */
static bool env_words(const char *variable, const struct word *words)
{
	const char *text = getenv(variable);
	char *copy, *rest, *item;

	if (!text || !*text)
		return false;
	copy = rest = strdup(text);
	if (!copy)
		check_die("out of memory");
	while ((item = strsep(&rest, ",")))
		one_word(variable, item, words);
	free(copy);
	return true;
}

static void read_impair(struct conf *conf)
{
	int64_t loss = 0, dup = 0, corrupt = 0, reorder = 0, reorder_cnt = 3;
	int64_t delay_us = 0;
	const struct word words[] = {
		{ "loss", 0, 1000000, &loss },
		{ "dup", 0, 1000000, &dup },
		{ "corrupt", 0, 1000000, &corrupt },
		{ "reorder", 0, 1000000, &reorder },
		{ "reorder_cnt", 1, 64, &reorder_cnt },
		{ "delay_us", 0, 1000000, &delay_us },
		{ 0 },
	};

	conf->has_impair = env_words("SOFTCX_IMPAIR", words);
	conf->impair = (struct impair_params){
		.loss_ppm = (uint32_t)loss,
		.dup_ppm = (uint32_t)dup,
		.corrupt_ppm = (uint32_t)corrupt,
		.reorder_ppm = (uint32_t)reorder,
		.reorder_cnt = (uint32_t)reorder_cnt,
		.delay_ns = (uint64_t)delay_us * 1000,
	};
}

static void read_clock(struct conf *conf)
{
	/* A ConnectX-5 counts at 78.125 MHz. */
	int64_t khz = 78125, ppm = 0, offset = 0;
	const struct word words[] = {
		{ "khz", 1000, 10000000, &khz },
		{ "ppm", -1000000 + 1, 1000000, &ppm },
		{ "offset", 0, INT64_MAX, &offset },
		{ 0 },
	};

	(void)env_words("SOFTCX_CLOCK", words);
	conf->clock_khz = (uint64_t)khz;
	conf->clock_ppm = ppm;
	conf->clock_offset = (uint64_t)offset;
}

static void copy_name(char *dst, size_t size, const char *src, size_t len)
{
	if (!len || len >= size || memchr(src, '/', len) || *src == '.')
		check_die("SOFTCX: \"%.*s\" is no name", (int)len, src);
	memcpy(dst, src, len);
	dst[len] = '\0';
}

static void read_dev(struct conf *conf, const char *item)
{
	const char *colon = strchr(item, ':');
	struct conf_dev *dev;

	if (conf->n_devs == CONF_MAX_DEVS)
		check_die("SOFTCX: more than %d devices", CONF_MAX_DEVS);
	if (!colon)
		check_die("SOFTCX: \"%s\" is not DEVICE:INTERFACE", item);
	dev = &conf->devs[conf->n_devs++];
	copy_name(dev->name, sizeof(dev->name), item, (size_t)(colon - item));
	copy_name(dev->ifname, sizeof(dev->ifname), colon + 1,
		  strlen(colon + 1));
}

static void read_devs(struct conf *conf, const char *text)
{
	char *copy = strdup(text), *rest = copy, *item;

	if (!copy)
		check_die("out of memory");
	while ((item = strsep(&rest, ",")))
		read_dev(conf, item);
	free(copy);
}

/* A variable that is misspelled would change nothing, and nobody would know. */
static void check_names(void)
{
	static const char *const names[] = {
		"STRICT", "MANUAL", "TRACE", "STATS", "SEED",
		"LATE_US", "PCAP",   "IMPAIR", "CLOCK", "MIN_INLINE",
		"RULES", "TSO",
	};
	static const char prefix[] = "SOFTCX_";

	for (char **env = environ; *env; env++) {
		const char *name = *env + sizeof(prefix) - 1;
		bool is_known = false;

		if (strncmp(*env, prefix, sizeof(prefix) - 1) != 0)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			is_known |= strcspn(name, "=") == strlen(names[i]) &&
				    strncmp(name, names[i],
					    strlen(names[i])) == 0;
		if (!is_known)
			check_die("%.*s: there is no such variable",
				  (int)strcspn(*env, "="), *env);
	}
}

bool conf_read(struct conf *conf)
{
	const char *devs = getenv("SOFTCX");
	const char *pcap = getenv("SOFTCX_PCAP");

	if (!devs || !*devs)
		return false;
	memset(conf, 0, sizeof(*conf));
	check_names();
	read_devs(conf, devs);
	conf->is_strict = env_number("SOFTCX_STRICT", 0, 1, 1);
	conf->is_manual = env_number("SOFTCX_MANUAL", 0, 1, 0);
	conf->is_traced = env_number("SOFTCX_TRACE", 0, 1, 0);
	conf->has_stats = env_number("SOFTCX_STATS", 0, 1, 0);
	conf->has_tso = env_number("SOFTCX_TSO", 0, 1, 1);
	conf->seed = (uint64_t)env_number("SOFTCX_SEED", 0, INT64_MAX, 1);
	conf->late_ns =
		(uint64_t)env_number("SOFTCX_LATE_US", 0, 1000000, 0) * 1000;
	conf->rules_max = (uint32_t)env_number("SOFTCX_RULES", 0, UINT32_MAX,
					       UINT32_MAX);
	conf->min_inline = (uint32_t)env_number("SOFTCX_MIN_INLINE", 0,
						CONF_INLINE_L2, CONF_INLINE_L2);
	if (conf->min_inline && conf->min_inline != CONF_INLINE_L2)
		check_die("SOFTCX_MIN_INLINE: %u is neither 0 nor %d",
			  conf->min_inline, CONF_INLINE_L2);
	conf->pcap = pcap && *pcap ? pcap : NULL;
	read_impair(conf);
	read_clock(conf);
	return true;
}
