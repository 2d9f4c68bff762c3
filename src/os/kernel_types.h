/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's description of its types (base/btf.h), as a file. */
#ifndef OS_KERNEL_TYPES_H
#define OS_KERNEL_TYPES_H

#include <stddef.h>

/* The fd, or a negative errno. No cancellation point, as all that the library reads. */
int kernel_types_open(void);
/* The file's bytes, as memory to be unmapped, or NULL. */
void *kernel_types_map(int fd, size_t *len_out);

#endif
