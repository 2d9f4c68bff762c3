/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Linux's AIO by the numbers of its calls (syscall_call.c). */
#ifndef SOCK_REDIRECT_AIO_CALLS_H
#define SOCK_REDIRECT_AIO_CALLS_H

#include <linux/aio_abi.h>

/* io_setup, io_destroy. Their results and errno are those of syscall(). */
long aio_setup(unsigned cnt, aio_context_t *context);
long aio_destroy(aio_context_t context);

/* io_submit is about to be called for these. */
void aio_submitting(long cnt, struct iocb *const *iocbs);

#endif
