/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program was started with: its name, and our variables. It may write over both
 * later. */
#ifndef CORE_ORIGIN_H
#define CORE_ORIGIN_H

/* When the library is loaded. `env` is the environment that the kernel has given the
 * program. */
void origin_keep(char *const *env);

/* The environment that counts. */
char *const *origin_environment(void);

/* The name by which rules know the program: programs write titles over it. */
const char *origin_program(void);

#endif
