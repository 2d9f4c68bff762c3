/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Modules (os/module.h): found beside libvma.so and opened when the first socket
 * needs one, with their symbols local.
 */
#ifndef CORE_MODULE_H
#define CORE_MODULE_H

#include "base/compiler.h"
#include "dev/backend.h"
#include "os/module.h"

/*
 * Opens libvma-NAME.so, which must be of this kind, starts it, and shows its
 * exports. 0, -ENOENT: there is no such module, -ELIBACC: it or a library that it
 * needs cannot be loaded, -EPROTO: it belongs to another libvma; the two are said
 * in a warning. In the bracket.
 */
int module_open(enum module_kind kind, const char *name,
		const void **exports_out) MUST_CHECK;

/* The same for a back end, which is opened too; `options` is its parameter struct.
 * Also what the back end says. */
int module_open_backend(const char *name, const void *options,
			struct backend **backend_out) MUST_CHECK;

#endif
