/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What happens when the library is loaded into a process. */
#include "config.h"

#include "core/runtime.h"
#include "sock-redirect/call.h"

/* Runs before the constructors of the program and of most libraries. Those that run
 * earlier, or that call us from their constructors, find wrappers that work without
 * it. libc gives constructors the arguments of main(). */
__attribute__((constructor(101))) static void load(int argc, char **argv)
{
	fd_calls_load();
	mux_calls_load();
	process_calls_load();
	/* Behind the arguments. What `environ` names may be another by now, which setenv() or
	 * clearenv() frees. */
	runtime_load(argv + argc + 1);
}

/* Runs after the destructors of the program and of the libraries that were loaded
 * later. */
__attribute__((destructor(101))) static void unload(void)
{
	runtime_unload();
}
