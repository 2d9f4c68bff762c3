/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Modules (os/module.h). They are found beside libvma.so, and opened when the first
 * socket needs them. Their symbols stay local.
 */
#ifndef CORE_MODULE_H
#define CORE_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "dev/backend.h"
#include "os/module.h"

/* Called when the library is loaded: remembers where that was. Daemons go to another
 * directory before their first socket, and LD_PRELOAD may name the library from the one in
 * which they were started. */
void module_load(void);

/*
 * Opens libvma-NAME.so, which must be of this kind, starts it, and returns its
 * exports. 0. -ENOENT: there is no such module. -ELIBACC: the module, or a library
 * that it needs, cannot be loaded. -EPROTO: it belongs to another libvma. In the
 * last two cases we log a warning. In the bracket.
 */
int module_open(enum module_kind kind, const char *name,
		const void **exports_out) MUST_CHECK;

/* The same for a back end, which is opened, too. `options` is its parameter struct.
 * Also returns the errors of the back end. */
int module_open_backend(const char *name, const void *options,
			struct backend **backend_out) MUST_CHECK;

/* The path of a program that is installed beside the library, or lies in its build tree. */
bool module_find_program(const char *name, char *path, size_t size) MUST_CHECK;

#endif
