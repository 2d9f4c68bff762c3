/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The back end's side of dev_services.h. It does for back ends what os/services.c
 * does for all modules. */
#include "config.h"

#include "dev/dev_services.h"

static const struct dev_services *services;

void dev_services_set(const struct services *given)
{
	services_set(given);
	services = given->dev;
}

#define SERVICE(ret, name, params, args) \
	ret name params                  \
	{                                \
		return services->name args; \
	}
#include "dev/dev_services.def"
