/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's description of its types (base/btf.h), as a file. */
#ifndef OS_KERNEL_TYPES_H
#define OS_KERNEL_TYPES_H

#include <stddef.h>

/* Opens the file, for a process that can open none later. */
void kernel_types_prepare(void);
/* The file's bytes, as memory to be unmapped, or NULL. No cancellation point, as all that the
 * library reads. */
void *kernel_types_map(size_t *len_out);

#endif
