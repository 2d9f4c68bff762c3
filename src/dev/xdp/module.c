/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The module's one symbol. */
#include "config.h"

#include "dev/dev_services.h"
#include "dev/xdp/xdp_priv.h"

extern const struct module vma_module;

static int open_backend(const void *options, struct backend **backend_out)
{
	*backend_out = xdp_backend(options);
	return 0;
}

static const struct backend_module exports = { .open = open_backend };

EXPORT const struct module vma_module = {
	.abi = MODULE_ABI,
	.kind = MODULE_BACKEND,
	.name = "xdp",
	.start = dev_services_set,
	.exports = &exports,
};
