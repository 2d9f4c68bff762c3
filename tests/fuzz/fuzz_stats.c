/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as the file of a process that vma_stats looks at. What passes the
 * check can be shown by every report, and nothing of it reaches a terminal but
 * plain text.
 *
 * The first byte chooses. Bit 0: the rest is the file. Otherwise it is patches of a
 * sound one, each an offset of two bytes in units of four, a length, and bytes.
 * Bit 1: totals, else differences to the sound one. Bit 2: the head is sound
 * whatever the patches say.
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stats/stats_snapshot.h"
#include "tests/support/fuzz.h"
#include "tools/vma_stats/report.h"

enum { SOCKETS = 2, IS_WHOLE = 1, IS_TOTAL = 2, HAS_HEAD = 4 };

/* The sound file, and a copy of it to be spoilt. */
static struct stats_region *sound, *region;
static size_t size;
static FILE *out;

static ssize_t look(void *cookie, const char *text, size_t len)
{
	(void)cookie;
	for (size_t i = 0; i < len; i++)
		FUZZ_CHECK((text[i] >= ' ' && text[i] <= '~') ||
			   text[i] == '\n' || text[i] == '\t');
	return (ssize_t)len;
}

static void prepare(void)
{
	static const cookie_io_functions_t sink = { .write = look };

	size = stats_region_size(SOCKETS);
	sound = aligned_alloc(CACHE_LINE, size);
	region = aligned_alloc(CACHE_LINE, size);
	out = fopencookie(NULL, "w", sink);
	FUZZ_CHECK(sound && region && out);
	memset(sound, 0, size);
	memcpy(sound->magic, STATS_MAGIC, sizeof(sound->magic));
	sound->abi = STATS_ABI;
	sound->layout = stats_layout();
	sound->size = size;
	sound->socket_max = SOCKETS;
	for (unsigned i = 0; i < SOCKETS; i++) {
		atomic_store(&sound->sockets[i].id, i + 1);
		sound->sockets[i].inode = i + 1;
		sound->sockets[i].local_port = 53;
	}
	atomic_store(&sound->poll.is_used, 1);
	sound->rings[0].is_used = 1;
}

static void patch(const uint8_t *data, size_t len)
{
	uint8_t *bytes = (uint8_t *)region;

	while (len > 3) {
		size_t at = (data[0] | (size_t)data[1] << 8) * 4;
		size_t n = data[2];

		data += 3;
		len -= 3;
		if (n > len)
			n = len;
		if (at >= size)
			at = at % size;
		if (n > size - at)
			n = size - at;
		memcpy(bytes + at, data, n);
		data += n;
		len -= n;
	}
}

static void mend_head(void)
{
	memcpy(region, sound, offsetof(struct stats_region, pid));
}

static void show_all(struct stats_region *before)
{
	static struct args args = { .view = VIEW_BASIC, .interval = 1,
				    .cycles = 1 };
	struct report report = {
		.out = out,
		.args = &args,
		.now = region,
		.before = before,
	};

	args.view = VIEW_BASIC;
	report_basic(&report);
	args.view = VIEW_MEDIUM;
	report.line_cnt = 0;
	report_basic(&report);
	report_full(&report);
	report_groups(&report);
	report_list_header(out);
	report_list(&report, region->program);
	report_why(&report);
	report_raw(&report);
	FUZZ_CHECK(fflush(out) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t whole = size;
	int choice;

	if (!sound)
		prepare();
	if (!len)
		return 0;
	choice = *data++;
	len--;
	memcpy(region, sound, size);
	if (choice & IS_WHOLE) {
		whole = len < size ? len : size;
		memcpy(region, data, whole);
	} else {
		whole = size;
		patch(data, len);
	}
	if (choice & HAS_HEAD)
		mend_head();
	if (stats_snapshot_check(region, whole) != 0)
		return 0;
	show_all(choice & IS_TOTAL ? NULL : sound);
	return 0;
}
