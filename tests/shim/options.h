/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs of options.sh. */
#ifndef SHIM_OPTIONS_H
#define SHIM_OPTIONS_H

struct program {
	const char *name; /* NULL: no more */
	void (*run)(void);
};

extern const struct program tcp_programs[];

/* What becomes of dummy sends, and of a real one behind them that the peer takes. */
void say_dummies(const char *what, int fd, int peer);

#endif
