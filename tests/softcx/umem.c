/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program's memory; see umem.h. */
#include "config.h"

#include "umem.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "dma.h"
#include "sys.h"

enum {
	PAGE = 4096,
	/* Newer than the distribution's headers may be. */
	POPULATE_READ = 22,
	POPULATE_WRITE = 23,
};

/* Of the process, under the card's lock. */
static uint64_t n_pinned;

static bool may_lock_all(void)
{
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = { 0 };

	return SYS(__NR_capget, &hdr, data) == 0 &&
	       data[0].effective & 1u << CAP_IPC_LOCK;
}

static bool is_within_limit(uint64_t n_pages)
{
	struct rlimit limit = { 0 };

	SYS(__NR_getrlimit, RLIMIT_MEMLOCK, &limit);
	return n_pinned + n_pages <= limit.rlim_cur / PAGE || may_lock_all();
}

int umem_pin(struct umem *umem, const volatile void *at, uint64_t len,
	     bool is_written)
{
	uint64_t start = (uintptr_t)at & ~(uint64_t)(PAGE - 1);
	uint64_t end = (uintptr_t)at + len;
	uint64_t n_pages = (end - start + PAGE - 1) / PAGE;
	long ret;

	umem->n_pages = 0;
	if (end < (uintptr_t)at)
		return -EFAULT;
	if (!is_within_limit(n_pages))
		return -ENOMEM;
	do {
		ret = SYS(__NR_madvise, start, n_pages * PAGE,
			  is_written ? POPULATE_WRITE : POPULATE_READ);
	} while (ret == -EINTR);
	/* The reasons are several; a pinning kernel knows this one. */
	if (ret)
		return -EFAULT;
	umem->n_pages = n_pages;
	n_pinned += n_pages;
	return 0;
}

void umem_unpin(struct umem *umem)
{
	n_pinned -= umem->n_pages;
	umem->n_pages = 0;
}

void umem_forget(void)
{
	n_pinned = 0;
}

/* The kernel copies, since it can say that memory is not there. By the thread's
 * number: that of the process has no memory once its first thread has ended. */
static bool copy(long nr, const void *ours, const void *theirs, size_t len)
{
	struct iovec local = { (void *)(uintptr_t)ours, len };
	struct iovec remote = { (void *)(uintptr_t)theirs, len };

	if (!len)
		return true;
	return SYS6(nr, SYS(__NR_gettid), &local, 1, &remote, 1, 0, ) ==
	       (long)len;
}

bool umem_read(void *to, const void *from, size_t len)
{
	return copy(__NR_process_vm_readv, to, from, len);
}

bool umem_write(void *to, const void *from, size_t len)
{
	return copy(__NR_process_vm_writev, from, to, len);
}
