/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A back end's one symbol. Compiled into each of them. */
#include "config.h"

#include "dev/backend.h"
#include "dev/dev_services.h"

extern const struct module vma_module;

static int open_backend(const void *options, struct backend **backend_out)
{
	*backend_out = backend_make(options);
	return 0;
}

static const struct backend_module exports = { .open = open_backend };

EXPORT const struct module vma_module = {
	.abi = MODULE_ABI,
	.kind = MODULE_BACKEND,
	.name = BACKEND_NAME,
	.start = dev_services_set,
	.exports = &exports,
};
