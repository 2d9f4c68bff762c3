/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The object that owns everything the library has in this process: options, rules,
 * log, and what follows from them. It starts at the first socket that could be
 * accelerated. A program without such a socket does not notice us.
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

/* Sets who makes objects for sockets instead of core/network.h, and for which types,
 * so that nothing changes for programs that have no such sockets. Call it before the
 * first socket. */
void runtime_set_sockets(runtime_socket_fn *make, bool (*may_serve)(int type));

/* Called when the library is loaded: finds libc's functions, and prepares for forks.
 * Starts at once if the log is to show details. `env` is the environment that the kernel has
 * given the program. */
void runtime_load(char *const *env);

/* The program has made a socket. errno is as before. */
void runtime_socket_made(int fd, int domain, int type, int protocol);

/* Called by the library's destructor. */
void runtime_unload(void);

/* This process image is about to end without destructors. runtime_exiting: it ends
 * at once. */
void runtime_exiting(void);
/* runtime_leaving_child: a child goes on alone, since libc ends this process without a call of
 * ours. */
void runtime_leaving_child(void);
/* runtime_executing: another program takes its place. */
void runtime_executing(void);
/* That has failed, so the image goes on. Returns `result`; errno is as before. */
int runtime_goes_on(int result);

/* A program is about to be started that inherits our fds, by a child process in
 * which none of our handlers runs. errno is as before. */
void runtime_spawning(void);

/* Another process or program is about to get what this fd names. If that is ours, it
 * goes to the kernel. errno is as before. */
void runtime_handing_on(int fd);

/* Whether the program's wish for a ring of io_uring should fail (VMA_IO_URING); and
 * what to do when the program has made one. */
bool runtime_hides_rings(void);
void runtime_ring_made(void);

/* Called around a call by which the process may lose rights, or get them back. Both leave
 * errno as it was. */
void runtime_rights_going(void);
void runtime_rights_changed(void);

/* Called before the process becomes another user's for good, and again with the user that
 * it still has if that fails. errno is as before. */
void runtime_user_going(uid_t user);

/* Called before the process gets another root directory, in which our own files are not to
 * be found. errno is as before. */
void runtime_root_changing(void);

/* The kernel is about to read from this fd by itself (AIO), so the fd goes to the
 * kernel. errno is as before. */
void runtime_reading_by_kernel(int fd);

/* Called around a fork that libc does not know of, in the forking thread. */
void runtime_before_fork(void);
void runtime_after_fork(bool is_child);

/* A filter of system calls is about to be installed. All sockets go back to the
 * kernel, and after that nothing of ours makes a system call. errno is as before. */
void runtime_filtering(void);

/* Of those who share our memory, one is about to get fds of his own; or a child with a memory of
 * its own shares our fds. As before a filter, all sockets go back to the kernel. */
void runtime_fds_parting(void);

/* The library cannot have its thread any more. The same. */
void runtime_thread_ends(void);

/* Around a call that the kernel refuses to a process with several threads, or that gives the
 * calling thread fds of its own if others have them, too: ours is none of the program's.
 * What the first returns is for the second. errno is as before. */
bool runtime_begin_alone(void);
void runtime_end_alone(bool is_alone);

/* A thread of the program is about to get another network namespace: all sockets go to the
 * kernel. The second follows each time, and says whether it has. errno is as before. */
void runtime_namespace_changing(void);
void runtime_namespace_changed(bool has_changed);

#endif
