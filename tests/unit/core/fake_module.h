/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What fake_module.c has seen, and what it shall return. */
#ifndef UNIT_CORE_FAKE_MODULE_H
#define UNIT_CORE_FAKE_MODULE_H

#include "dev/backend.h"

struct fake_module {
	unsigned start_cnt;
	const struct services *services;
	const void *options;
	int err;
	struct backend backend;
};

#endif
