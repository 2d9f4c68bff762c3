/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What process and machine this is, for the banner. */
#ifndef CORE_ABOUT_H
#define CORE_ABOUT_H

struct options;

/* Finds out, without starting a program, and prints the banner. In the
 * bracket. */
void about_print(const struct options *opts);

#endif
