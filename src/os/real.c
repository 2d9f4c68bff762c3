/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finding libc's own functions behind the names that we export. */
#include "config.h"

#include "os/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "base/compiler.h"

enum real_id {
#define CALL_REAL(ret, name, params, args) REAL_##name,
#define CALL_REAL_VA(ret, name, va_params, params, args) REAL_##name,
#include "os/calls.def"
};

static void resolve(enum real_id id);

/*
 * There are two functions for each call. The member first holds first_<name>, which
 * finds the function for this one call and continues with it. It does not look for
 * all functions, because the caller may be an allocator that is just starting, and
 * a search for a name that does not exist allocates. If the C library has no such
 * function, missing_<name> takes the place for good.
 */
#define CALL_REAL(ret, name, params, args)        \
	static ret first_##name params            \
	{                                         \
		resolve(REAL_##name);             \
		return real.name args;            \
	}                                         \
	static ret missing_##name params          \
	{                                         \
		errno = ENOSYS;                   \
		return (ret)(long)-1;             \
	}
#define CALL_REAL_VA(ret, name, va_params, params, args) \
	CALL_REAL(ret, name, params, args)

/* A missing function ignores its parameters. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "os/calls.def"
#pragma GCC diagnostic pop

struct real_calls real = {
#define CALL_REAL(ret, name, params, args) .name = first_##name,
#define CALL_REAL_VA(ret, name, va_params, params, args) \
	.name = (ret(*) va_params)first_##name,
#include "os/calls.def"
};

struct resolution {
	const char *name;
	size_t offset; /* of the member in struct real_calls */
	void *missing;
};

static const struct resolution resolutions[] = {
#define CALL_REAL(ret, name, params, args) \
	{ #name, offsetof(struct real_calls, name), (void *)missing_##name },
#define CALL_REAL_VA(ret, name, va_params, params, args) \
	CALL_REAL(ret, name, params, args)
#include "os/calls.def"
};

/* sigvec() has no default version any more, and an unversioned look-up passes
 * over such a symbol. */
static void *find_old_version(const char *name)
{
	static const char *const versions[] = { "GLIBC_2.2.5", "GLIBC_2.17" };

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		void *fn = dlvsym(RTLD_NEXT, name, versions[i]);

		if (fn)
			return fn;
	}
	return NULL;
}

/* Readers load the member by a plain access, at each call of the program. Whatever
 * they get is a function that may be called, since an aligned pointer is loaded as
 * a whole on every machine there is. An atomic load would cost nothing either, but
 * then a call could not be written as real.read(). So the sanitizer must not look
 * at this store. */
__attribute__((no_sanitize("thread"))) static void resolve(enum real_id id)
{
	const struct resolution *r = &resolutions[id];
	void **slot = (void **)((char *)&real + r->offset);
	int saved_errno = errno;
	void *fn = dlsym(RTLD_NEXT, r->name);

	if (!fn)
		fn = find_old_version(r->name);
	/* Several threads may be here; they all store the same value. */
	__atomic_store_n(slot, fn ? fn : r->missing, __ATOMIC_RELAXED);
	errno = saved_errno;
}

void real_resolve(void)
{
	for (size_t i = 0; i < ARRAY_LEN(resolutions); i++)
		resolve((enum real_id)i);
}
