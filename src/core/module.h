/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Back ends in shared objects of their own, found beside libvma.so and opened
 * when the first socket needs one, with their symbols local.
 */
#ifndef CORE_MODULE_H
#define CORE_MODULE_H

#include "dev/backend.h"

/*
 * Opens libvma-NAME.so and starts it; `options` is the back end's parameter
 * struct. 0, -ENOENT: there is no such module, -EPROTO: it belongs to another
 * libvma, or what the module's start says. In the bracket.
 */
int module_open(const char *name, const void *options,
		struct backend **backend_out) MUST_CHECK;

#endif
