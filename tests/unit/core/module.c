/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Modules that are there, missing, or something else. They lie beside this program. */
#define _GNU_SOURCE
#include "config.h"

#include "core/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "os/services.h"
#include "tests/support/test.h"
#include "tests/unit/core/fake_module.h"

static char said[4096], dir[PATH_MAX], path[PATH_MAX + 64];

static void keep(void *ctx UNUSED, enum log_level level UNUSED, const char *line,
		 size_t len)
{
	size_t at = strlen(said);

	if (at + len < sizeof(said)) {
		memcpy(said + at, line, len);
		said[at + len] = '\0';
	}
}

static void find_dir(void)
{
	ssize_t len = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	CHECK(len > 0);
	dir[len] = '\0';
	*strrchr(dir, '/') = '\0';
}

static void copy(FILE *from, FILE *to)
{
	char buf[4096];
	size_t n;

	while ((n = fread(buf, 1, sizeof(buf), from)) > 0)
		CHECK_EQ(fwrite(buf, 1, n, to), n);
}

/* Puts a copy of that file of the build, or this text, to where libvma-NAME.so is looked
 * for; a copy, since the loader knows files. */
static void put(const char *name, const char *file, const char *text)
{
	char source[PATH_MAX + 64];
	FILE *from, *to;

	find_dir();
	snprintf(path, sizeof(path), "%s/libvma-%s-debug.so", dir, name);
	to = fopen(path, "we");
	CHECK(to);
	if (file) {
		snprintf(source, sizeof(source), "%s/.libs/%s", dir, file);
		from = fopen(source, "re");
		CHECK(from);
		copy(from, to);
		fclose(from);
	} else {
		fputs(text, to);
	}
	CHECK_EQ(fclose(to), 0);
	said[0] = '\0';
	log_set_sink(keep, NULL);
}

static void end(void)
{
	unlink(path);
	log_set_sink(NULL, NULL);
	unsetenv("FAKE_MODULE");
}

/* What the module has seen. */
static struct fake_module *fake(void)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	struct fake_module *(*get)(void);

	CHECK(handle);
	get = (struct fake_module *(*)(void))dlsym(handle, "fake_module");
	CHECK(get);
	return get();
}

TEST(a_module_is_started_and_opened)
{
	struct backend *backend = NULL;
	int options;

	put("first", "fake_module.so", NULL);
	CHECK_EQ(module_open_backend("first", &options, &backend), 0);
	CHECK_EQ(fake()->start_cnt, 1);
	CHECK(fake()->options == &options);
	CHECK(backend == &fake()->backend);
	/* what it may call is there */
	CHECK(fake()->services->real == &real);
	CHECK(fake()->services->adopt_fd && fake()->services->dev);
	/* and its symbols are its own */
	CHECK(!dlsym(RTLD_DEFAULT, "fake_module"));
	CHECK_STR(said, "");
	end();
}

TEST(its_error_is_handed_on)
{
	struct backend *backend = NULL;
	const void *exports;

	put("refusing", "fake_module.so", NULL);
	CHECK_EQ(module_open(MODULE_BACKEND, "refusing", &exports), 0);
	fake()->err = -EPERM;
	CHECK_EQ(module_open_backend("refusing", NULL, &backend), -EPERM);
	end();
}

/* An installation may leave modules out; the caller says what follows from that. */
TEST(a_missing_one_is_no_warning)
{
	const void *exports = NULL;
	struct backend *backend = NULL;

	said[0] = '\0';
	log_set_sink(keep, NULL);
	CHECK_EQ(module_open(MODULE_NETLINK, "nowhere", &exports), -ENOENT);
	CHECK_EQ(module_open_backend("nowhere", NULL, &backend), -ENOENT);
	CHECK(!exports && !backend);
	CHECK_STR(said, "");
	log_set_sink(NULL, NULL);
}

TEST(a_name_that_is_too_long_is_missing)
{
	char name[2 * PATH_MAX];
	const void *exports;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	CHECK_EQ(module_open(MODULE_BACKEND, name, &exports), -ENOENT);
}

static void expect_refused(const char *name, enum module_kind kind, int err,
			   const char *why)
{
	const void *exports = NULL;

	CHECK_EQ(module_open(kind, name, &exports), err);
	CHECK(!exports);
	CHECK(strstr(said, "WARNING") && strstr(said, strrchr(path, '/')));
	CHECK(strstr(said, why));
	end();
}

/* A file that is no library, or one whose own libraries are missing. */
TEST(one_that_cannot_be_loaded)
{
	put("text", NULL, "no library\n");
	expect_refused("text", MODULE_BACKEND, -ELIBACC, "cannot open");
}

TEST(a_library_that_is_no_module)
{
	put("stranger", "no_module.so", NULL);
	expect_refused("stranger", MODULE_BACKEND, -EPROTO,
		       "belongs to another libvma");
}

/* It is not even started, since all but its number may have another meaning. */
TEST(one_of_another_build)
{
	put("older", "fake_module.so", NULL);
	setenv("FAKE_MODULE", "older", 1);
	expect_refused("older", MODULE_BACKEND, -EPROTO,
		       "belongs to another libvma");
}

TEST(one_of_another_kind)
{
	put("other", "fake_module.so", NULL);
	expect_refused("other", MODULE_NETLINK, -EPROTO,
		       "belongs to another libvma");
}
