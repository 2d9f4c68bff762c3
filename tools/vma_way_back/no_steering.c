/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A build without AF_XDP drives no interface that way (steering.h). */
#include "config.h"

#include "tools/vma_way_back/steering.h"

#include "base/compiler.h"

void steering_prepare(void)
{
}

int steering_load(const struct keeper_request *request UNUSED, int *fds UNUSED)
{
	return -EOPNOTSUPP;
}

int steering_attach(const struct keeper_request *request UNUSED, int prog UNUSED)
{
	return -EOPNOTSUPP;
}
