/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a module may use of libvma.so, apart from inline functions: services.def,
 * and the members here.
 */
#ifndef OS_SERVICES_H
#define OS_SERVICES_H

#include <stdarg.h>

#include "base/lock.h"
#include "base/log.h"
#include "os/real.h"

struct dev_services;

struct services {
	const struct real_calls *real;
	const struct log_config *log_config;
	void (*log_vwrite)(enum log_level level, const char *fmt, va_list args);
	/* fd_internal_adopt, fd_internal_copy and fd_internal_close */
	int (*adopt_fd)(int fd, _Atomic int *slot);
	int (*copy_fd)(int fd, _Atomic int *slot);
	void (*close_fd)(_Atomic int *slot);
#define SERVICE(ret, name, params, args) ret (*name) params;
#include "os/services.def"
	/* for back ends (dev/dev_services.h) */
	const struct dev_services *dev;
};

/* Within a module: from now on its functions lead to these. */
void services_set(const struct services *services);

/* Within a module. */
int services_adopt_fd(int fd, _Atomic int *slot) MUST_CHECK;
int services_copy_fd(int fd, _Atomic int *slot) MUST_CHECK;
void services_close_fd(_Atomic int *slot);

#endif
