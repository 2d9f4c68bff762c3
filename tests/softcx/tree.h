/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The view of /sys and /dev that a process with ConnectX cards has: a tmpfs
 * which is mounted nowhere, so that only this process sees it and it vanishes
 * with it. Paths that belong to the view are translated into it.
 */
#ifndef SOFTCX_TREE_H
#define SOFTCX_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "conf.h"
#include "netdev.h"

enum { TREE_PATH_SIZE = 1024, TREE_DIR_SIZE = 256 };

/* The device number that /dev/infiniband/uverbsN and rdma_cm have: those of
 * /dev/null, whose driver then answers what the device does not. */
enum { TREE_DEV_MAJOR = 1, TREE_DEV_MINOR = 3 };

/* How one device is shown. */
struct tree_dev {
	const struct conf_dev *conf;
	struct netdev netdev;
};

/* Builds the view; negative errno. What is missing in the process's rights is
 * said by the caller. */
MUST_CHECK int tree_create(const struct tree_dev *devs, unsigned int n_devs);
/* The descriptor through which the tree is reached, or -1. */
int tree_fd(void);
/* True and the place to look at instead when the path belongs to the view. */
bool tree_translate(const char *path, const struct conf *conf,
		    char to[TREE_PATH_SIZE]);
/* As realpath() would see a translated path; false when it does not exist. */
bool tree_realpath(const char *translated, char to[TREE_PATH_SIZE]);

/* The files that follow the port. */
void tree_set_port(const struct conf_dev *dev, bool is_active);

/* The GUID and the default GID made of a MAC. */
uint64_t tree_guid(const uint8_t mac[6]);

#endif
