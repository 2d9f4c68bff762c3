/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A filter of system calls that the process was started under (systemd's SystemCallFilter,
 * containers). One that answers with an error is a kernel without that call to us. One that
 * ends the process may know the program's calls and not ours.
 */
#ifndef OS_FILTER_H
#define OS_FILTER_H

#include <stdbool.h>

bool filter_is_there(void);

/* Whether there is one that ends the process for a call that we make: a child tries. In the
 * bracket, with signals held. */
bool filter_is_deadly(void);

#endif
