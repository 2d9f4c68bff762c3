/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions of a program that have names of libbpf's, as dnsdist exports some. Preloaded: no
 * one but the program may call them. */
#include "config.h"

#include <stdlib.h>

#include "base/compiler.h"

EXPORT void bpf_prog_load(void);
void bpf_prog_load(void)
{
	abort();
}
