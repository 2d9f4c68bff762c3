/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that a sanitizer does not see, for cases that are about what it would report:
 * one thread does something to an fd, which the thread sanitizer takes for memory, while
 * another one is in a call on it, or arguments are what they must not be, which the
 * address sanitizer looks at. UNSEEN(close)(fd) goes around the sanitizer's own close()
 * and straight to the one behind it. What the library does there is seen as ever.
 */
#ifndef SUPPORT_UNSEEN_H
#define SUPPORT_UNSEEN_H

#include <dlfcn.h>

#include "base/compiler.h"

#define UNSEEN(fn) \
	(HAS_THREAD_SANITIZER || HAS_ADDRESS_SANITIZER ? \
		 (__typeof__(&(fn)))unseen_find(#fn) : \
		 &(fn))

/* The test library's if it is preloaded, or libc's. */
static inline void *unseen_find(const char *name)
{
	void *library = dlopen("libvma-test.so", RTLD_LAZY | RTLD_NOLOAD);

	return dlsym(library ? library :
			       dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD),
		     name);
}

#endif
