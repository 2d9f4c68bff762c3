/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The module's one symbol. */
#include "config.h"

#include "dev/xdp/xdp_priv.h"

extern const struct module vma_module;

static int start(const struct services *services, const void *options,
		 struct backend **backend_out)
{
	services_set(services);
	*backend_out = xdp_backend(options);
	return 0;
}

EXPORT const struct module vma_module = {
	.abi = MODULE_ABI,
	.name = "xdp",
	.start = start,
};
