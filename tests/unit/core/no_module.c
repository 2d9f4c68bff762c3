/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A library that somebody has put where a module is looked for. */
int no_module(void);

int no_module(void)
{
	return 0;
}
