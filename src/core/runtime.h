/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one object that owns everything the library has in this process: options,
 * rules, log, and what they lead to. It starts at the first socket that could be
 * accelerated; a program without one never notices us.
 */
#ifndef CORE_RUNTIME_H
#define CORE_RUNTIME_H

#include "fd/fd_ops.h"

/*
 * Offers a new kernel socket. Returns the object that is to serve it, with a
 * reference, or NULL and the reason in *reason_out (enum reason). Called inside
 * the bracket.
 */
typedef struct fd_object *runtime_socket_fn(int fd, int domain, int type,
					    int protocol, int *reason_out);

/* Who makes objects for sockets instead of core/network.h, and of which types, so
 * that nothing happens to programs that have no others. Before the first
 * socket. */
void runtime_set_sockets(runtime_socket_fn *make, bool (*may_serve)(int type));

/* At load: finds libc's functions, prepares for forks, and starts at once if the
 * log is to show details. */
void runtime_load(void);

/* The program has made a socket. errno is as before. */
void runtime_socket_made(int fd, int domain, int type, int protocol);

/* The library's destructor. */
void runtime_unload(void);

/* This process image is about to end without destructors: at once, */
void runtime_exiting(void);
/* or by becoming another program's; */
void runtime_executing(void);
/* which has failed. Returns `result`, errno as it was. */
int runtime_goes_on(int result);

/* A program is about to be started that inherits our fds, by a child in which none of
 * our handlers runs. errno is as before. */
void runtime_spawning(void);

/* Another process or program is about to get what this fd names, if that is ours. errno
 * is as before. */
void runtime_handing_on(int fd);

/* Whether a ring of io_uring that the program wants is better not made (VMA_IO_URING),
 * and what it means when one has been. */
bool runtime_hides_rings(void);
void runtime_ring_made(void);

/* The kernel is about to read from this fd by itself (AIO). errno is as before. */
void runtime_reading_by_kernel(int fd);

/* Around a fork that libc does not know of, in the forking thread. */
void runtime_before_fork(void);
void runtime_after_fork(bool is_child);

/* A filter of system calls is about to be installed: all sockets go back to the kernel,
 * and nothing of ours makes a call any more. errno is as before. */
void runtime_filtering(void);

/* The program has moved to another network namespace. */
void runtime_namespace_changed(void);

#endif
