/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A module for module.c that says of itself what FAKE_MODULE asks for. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "dev/backend.h"
#include "os/module.h"
#include "tests/unit/core/fake_module.h"

static struct fake_module state;

static void start(const struct services *services)
{
	state.services = services;
	state.start_cnt++;
}

static int open_backend(const void *options, struct backend **backend_out)
{
	state.options = options;
	*backend_out = &state.backend;
	return state.err;
}

static const struct backend_module exports = { .open = open_backend };

EXPORT struct module vma_module;
struct module vma_module = {
	.abi = MODULE_ABI,
	.kind = MODULE_BACKEND,
	.name = "fake",
	.start = start,
	.exports = &exports,
};

/* The test looks here. */
EXPORT struct fake_module *fake_module(void);
struct fake_module *fake_module(void)
{
	return &state;
}

__attribute__((constructor)) static void obey(void)
{
	const char *wish = getenv("FAKE_MODULE");

	if (wish && strcmp(wish, "older") == 0)
		vma_module.abi--;
}
