/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library comes into a process. */
#include "config.h"

#include "core/runtime.h"
#include "sock-redirect/call.h"

/* Before the constructors of the program and of most libraries; those that run
 * earlier, or call us from theirs, find wrappers that work without it. */
__attribute__((constructor(101))) static void load(void)
{
	fd_calls_load();
	process_calls_load();
	runtime_load();
}

/* After the destructors of the program and of the libraries that came later. */
__attribute__((destructor(101))) static void unload(void)
{
	runtime_unload();
}
