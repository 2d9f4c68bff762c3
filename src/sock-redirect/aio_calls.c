/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading and writing by AIO. libc's has helper threads and Linux's has the kernel do
 * it, both on the twin and without a call that we could see. So a socket that is named
 * for it goes to the kernel first.
 */
#include "config.h"

#include "sock-redirect/aio_calls.h"

#include <aio.h>
#include <sys/syscall.h>

#include "core/rings.h"
#include "core/runtime.h"
#include "sock-redirect/call.h"
#include "sock/user_msg.h"

/* -- libc's ------------------------------------------------------------------------ */

_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64) &&
		       offsetof(struct aiocb, aio_lio_opcode) ==
			       offsetof(struct aiocb64, aio_lio_opcode),
	       "the forms for large files take the same blocks");

static void note_block(const struct aiocb *block)
{
	if (UNLIKELY(atomic_load_explicit(&fd_table_root,
					  memory_order_relaxed)) &&
	    user_is_plausible(block, sizeof(*block)))
		runtime_reading_by_kernel(block->aio_fildes);
}

/* Blocks that are NULL or that do nothing are left out, as libc does. */
static void note_list(struct aiocb *const list[], int cnt)
{
	if (cnt <= 0 || !user_is_array_plausible(list, (size_t)cnt,
						 sizeof(*list)))
		return;
	for (int i = 0; i < cnt; i++)
		if (user_is_plausible(list[i], sizeof(*list[i])) &&
		    list[i]->aio_lio_opcode != LIO_NOP)
			note_block(list[i]);
}

int shim_aio_read(struct aiocb *block)
{
	CALL_ENTERED(aio_read);
	note_block(block);
	return real.aio_read(block);
}

int shim_aio_read64(struct aiocb64 *block)
{
	CALL_ENTERED(aio_read64);
	note_block((void *)block);
	return real.aio_read64(block);
}

int shim_aio_write(struct aiocb *block)
{
	CALL_ENTERED(aio_write);
	note_block(block);
	return real.aio_write(block);
}

int shim_aio_write64(struct aiocb64 *block)
{
	CALL_ENTERED(aio_write64);
	note_block((void *)block);
	return real.aio_write64(block);
}

int shim_lio_listio(int mode, struct aiocb *const list[], int cnt,
		    struct sigevent *event)
{
	CALL_ENTERED(lio_listio);
	note_list(list, cnt);
	return real.lio_listio(mode, list, cnt, event);
}

int shim_lio_listio64(int mode, struct aiocb64 *const list[], int cnt,
		      struct sigevent *event)
{
	CALL_ENTERED(lio_listio64);
	note_list((void *)list, cnt);
	return real.lio_listio64(mode, list, cnt, event);
}

/* -- Linux's ------------------------------------------------------------------------- */

/* The kernel takes as many at once as the context has room for. All contexts together have
 * room for so many, unless somebody has changed that (fs.aio-max-nr). */
enum { IOCBS_MAX = 65536 };

void aio_submitting(long cnt, struct iocb *const *iocbs)
{
	cnt = MIN(cnt, (long)IOCBS_MAX);
	if (cnt <= 0 ||
	    !user_is_array_plausible(iocbs, (size_t)cnt, sizeof(*iocbs)))
		return;
	for (long i = 0; i < cnt; i++)
		if (user_is_plausible(iocbs[i], sizeof(*iocbs[i])))
			runtime_reading_by_kernel((int)iocbs[i]->aio_fildes);
}

long aio_setup(unsigned cnt, aio_context_t *context)
{
	long result;

	rings_context_begin();
	result = real.syscall(SYS_io_setup, cnt, context);
	rings_context_end(result == 0 ? *context : 0);
	return result;
}

long aio_destroy(aio_context_t context)
{
	long result = real.syscall(SYS_io_destroy, context);

	if (result == 0)
		rings_context_gone(context);
	return result;
}
