/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf(), for which libc has no name. */
#ifndef SOCK_REDIRECT_BPF_CALL_H
#define SOCK_REDIRECT_BPF_CALL_H

#include <stddef.h>

/* Before the program calls it: a socket that it puts into a map is used by the kernel's
 * programs. */
void bpf_calling(long command, const void *attr, size_t size);

#endif
