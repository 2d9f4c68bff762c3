/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of CPUs from their two spellings. */
#include "config.h"

#include "conf/cpus.h"

#include <errno.h>
#include <string.h>

static void add(struct cpus *cpus, unsigned cpu)
{
	cpus->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The last digit holds CPUs 0 to 3. */
static int parse_mask(const char *digits, struct cpus *cpus)
{
	size_t len = strlen(digits);

	for (size_t i = 0; i < len; i++) {
		int digit = hex_digit(digits[len - 1 - i]);

		if (digit < 0)
			return -EINVAL;
		for (unsigned bit = 0; bit < 4; bit++) {
			if (!(digit >> bit & 1))
				continue;
			if (4 * i + bit >= CPUS_MAX)
				return -ERANGE;
			add(cpus, (unsigned)(4 * i + bit));
		}
	}
	return 0;
}

static int parse_cpu(const char **pos, unsigned *cpu_out)
{
	const char *p = *pos;
	unsigned cpu = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		cpu = cpu * 10 + (unsigned)(*p - '0');
		if (cpu >= CPUS_MAX)
			return -ERANGE;
	}
	*pos = p;
	*cpu_out = cpu;
	return 0;
}

/* N or N-M */
static int parse_range(const char **pos, struct cpus *cpus)
{
	unsigned first, last;
	int err = parse_cpu(pos, &first);

	if (err)
		return err;
	last = first;
	if (**pos == '-') {
		++*pos;
		err = parse_cpu(pos, &last);
		if (err)
			return err;
	}
	if (last < first)
		return -EINVAL;
	for (unsigned cpu = first; cpu <= last; cpu++)
		add(cpus, cpu);
	return 0;
}

static int parse_list(const char *p, struct cpus *cpus)
{
	for (;;) {
		int err = parse_range(&p, cpus);

		if (err)
			return err;
		if (*p == '\0')
			return 0;
		if (*p++ != ',')
			return -EINVAL;
	}
}

static bool is_empty(const struct cpus *cpus)
{
	for (size_t i = 0; i < ARRAY_LEN(cpus->bits); i++)
		if (cpus->bits[i])
			return false;
	return true;
}

int cpus_parse(const char *text, struct cpus *cpus_out)
{
	bool is_mask = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	int err;

	memset(cpus_out, 0, sizeof(*cpus_out));
	if (strcmp(text, "-1") == 0)
		return 0;
	cpus_out->is_chosen = true;
	err = is_mask ? parse_mask(text + 2, cpus_out) :
			parse_list(text, cpus_out);
	if (err)
		return err;
	return is_empty(cpus_out) ? -EINVAL : 0;
}
