/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PID namespaces. */
#ifndef OS_PIDNS_H
#define OS_PIDNS_H

#include <stdbool.h>

/* Whether a child of this thread would be of another namespace than this process (unshare and
 * setns with CLONE_NEWPID). It may be the first one there: then the namespace ends with it, and
 * the program can have no child any more. Where there is no /proc, nobody knows. */
bool pidns_of_children_is_another(void);

#endif
