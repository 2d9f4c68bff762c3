/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells the banner what process and machine this is. */
#ifndef CORE_ABOUT_H
#define CORE_ABOUT_H

struct options;

/* Collects the facts, without starting a program, and prints the banner. In the
 * bracket. */
void about_print(const struct options *opts);

#endif
