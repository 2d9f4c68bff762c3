/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What back ends may use of libvma.so besides what every module may
 * (os/services.h): files, packets, regions, and the process that keeps rights. */
#ifndef DEV_DEV_SERVICES_H
#define DEV_DEV_SERVICES_H

#include "fd/right_keeper.h"
#include "os/file.h"
#include "os/services.h"
#include "pkt/region.h"

struct dev_services {
#define SERVICE(ret, name, params, args) ret (*name) params;
#include "dev/dev_services.def"
};

/* Within a back end: services_set(), and the same for these. */
void dev_services_set(const struct services *services);

#endif
