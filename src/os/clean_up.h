/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is to be done if a call of libc's does not return: the thread is cancelled in it, or
 * a handler of the program calls pthread_exit() or jumps out of it. The latter is why this is
 * not pthread_cleanup_push(): libc does not see that such a frame is jumped over, and the end
 * of the thread returns into it later. Of these older calls it sees that, and does then what
 * is to be done. They are not in its headers any more.
 */
#ifndef OS_CLEAN_UP_H
#define OS_CLEAN_UP_H

#include <pthread.h>

void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*fn)(void *), void *arg);
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int does_run);

struct clean_up {
	struct _pthread_cleanup_buffer buffer;
};

/* In one function with clean_up_end(), around the call. */
static inline void clean_up_begin(struct clean_up *clean_up, void (*fn)(void *), void *arg)
{
	_pthread_cleanup_push(&clean_up->buffer, fn, arg);
}

/* The call has returned. `fn` is not called. */
static inline void clean_up_end(struct clean_up *clean_up)
{
	_pthread_cleanup_pop(&clean_up->buffer, 0);
}

#endif
