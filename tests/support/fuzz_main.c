/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replays the corpus of the fuzz target this is linked to: every file of
 * tests/fuzz/corpus/<program>. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "tests/support/fuzz.h"
#include "tests/support/test.h"

/* Replays one file. What fails aborts the program; the name is there before. */
static void replay(const char *dir, const char *name)
{
	char path[1024 + sizeof("/") + NAME_MAX];
	uint8_t *data;
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "rb");
	if (!file)
		FAIL("%s: %s", path, strerror(errno));
	fseek(file, 0, SEEK_END);
	size = (size_t)ftell(file);
	rewind(file);
	/* Of just this size, so that a sanitizer sees every step too far. */
	data = malloc(size + !size);
	CHECK(data);
	CHECK_EQ(fread(data, 1, size, file), size);
	fclose(file);
	test_note("%s", name);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

TEST(corpus_is_replayed)
{
	const char *srcdir = getenv("srcdir");
	struct dirent *entry;
	char path[1024];
	int cnt = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s",
		 srcdir ? srcdir : ".", program_invocation_short_name);
	dir = opendir(path);
	if (!dir)
		FAIL("%s: %s", path, strerror(errno));
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		replay(path, entry->d_name);
		cnt++;
	}
	closedir(dir);
	CHECK(cnt > 0);
}
