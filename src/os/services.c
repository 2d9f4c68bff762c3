/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The module's side of services.h: functions that have the names of libvma.so's
 * functions and call these. Compiled into each module, and into nothing else.
 */
#include "config.h"

#include "os/services.h"

static const struct services *services;

/* A copy, so that code in the module can say real.close() like all other code. */
struct real_calls real;

/* Lets every line through to log_write, which looks at the library's level. */
struct log_config log_config = { .level = LOG_LEVEL_ALL };

void services_set(const struct services *given)
{
	services = given;
	real = *given->real;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	va_list args;

	if ((int)level > atomic_load_explicit(&services->log_config->level,
					      memory_order_relaxed))
		return;
	va_start(args, fmt);
	services->log_vwrite(level, fmt, args);
	va_end(args);
}

int services_adopt_fd(int fd, _Atomic int *slot)
{
	return services->adopt_fd(fd, slot);
}

int services_copy_fd(int fd, _Atomic int *slot)
{
	return services->copy_fd(fd, slot);
}

void services_close_fd(_Atomic int *slot)
{
	services->close_fd(slot);
}

#define SERVICE(ret, name, params, args) \
	ret name params                  \
	{                                \
		return services->name args; \
	}
#include "os/services.def"
