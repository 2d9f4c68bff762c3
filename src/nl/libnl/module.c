/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The module's one symbol. */
#include "config.h"

#include "nl/libnl/conn.h"
#include "os/module.h"
#include "os/services.h"

extern const struct module vma_module;

EXPORT const struct module vma_module = {
	.abi = MODULE_ABI,
	.kind = MODULE_NETLINK,
	.name = "nl",
	.start = services_set,
	.exports = &libnl_ops,
};
