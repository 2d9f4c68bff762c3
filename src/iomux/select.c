/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* select (mux.h): its sets become fds to poll, and what that says sets again. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "fd/fd_table.h"
#include "iomux/poll.h"
#include "os/file.h"
#include "sock/user_msg.h"

/* Sets may be larger than FD_SETSIZE, but FD_ISSET of a fortified build would abort
 * then. */
enum { WORD_BITS = 8 * sizeof(unsigned long) };

static bool is_in(int fd, const fd_set *set)
{
	const unsigned long *words = (const void *)set;

	return set && words[fd / WORD_BITS] >> fd % WORD_BITS & 1;
}

static void put_in(int fd, fd_set *set)
{
	unsigned long *words = (void *)set;

	words[fd / WORD_BITS] |= 1ul << fd % WORD_BITS;
}

static size_t set_size(int cnt)
{
	return ((size_t)cnt + WORD_BITS - 1) / WORD_BITS *
	       sizeof(unsigned long);
}

static bool is_set_plausible(const fd_set *set, int cnt)
{
	return !set || user_is_plausible(set, set_size(cnt));
}

/* How far the kernel looks at sets. A program may give a larger number than its
 * sets have. The kernel's table of fds never shrinks, so it still has the size that
 * it once had. */
static int kernel_limit(int cnt)
{
	static _Atomic int known = FD_SETSIZE;
	char text[4096];
	const char *line;
	ssize_t len;

	if (cnt <= atomic_load_explicit(&known, memory_order_relaxed))
		return cnt;
	len = file_peek("/proc/thread-self/status", text, sizeof(text) - 1);
	text[MAX(len, 0)] = '\0';
	line = strstr(text, "\nFDSize:");
	if (line)
		atomic_store(&known, MAX(atoi(line + strlen("\nFDSize:")),
					 FD_SETSIZE));
	return MIN(cnt, atomic_load(&known));
}

static bool is_select_ours(int cnt, const fd_set *in, const fd_set *out,
			   const fd_set *except, bool with_sets)
{
	int saved_errno = errno;

	if (fd_table_is_closed())
		return false;
	cnt = kernel_limit(cnt);
	errno = saved_errno;
	if (!is_set_plausible(in, cnt) || !is_set_plausible(out, cnt) ||
	    !is_set_plausible(except, cnt))
		return false;
	for (int fd = 0; fd < cnt; fd++)
		if (poll_is_heeded(fd, with_sets) &&
		    (is_in(fd, in) || is_in(fd, out) || is_in(fd, except)))
			return true;
	return false;
}

bool mux_select_is_ours(int cnt, const fd_set *in, const fd_set *out,
			const fd_set *except, bool does_wait)
{
	bool with_sets = poll_asks_for_sets(does_wait);

	return UNLIKELY(atomic_load_explicit(&fd_table_root,
					     memory_order_relaxed) ||
			with_sets) &&
	       cnt > 0 && is_select_ours(cnt, in, out, except, with_sets);
}

static nfds_t to_pollfds(int cnt, const fd_set *in, const fd_set *out,
			 const fd_set *except, struct pollfd *fds)
{
	nfds_t n = 0;

	for (int fd = 0; fd < cnt; fd++) {
		short events = (short)((is_in(fd, in) ? POLLIN : 0) |
				       (is_in(fd, out) ? POLLOUT : 0) |
				       (is_in(fd, except) ? POLLPRI : 0));

		if (events)
			fds[n++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return n;
}

/* Marks the fd in a set that asked for it. */
static int mark(const struct pollfd *fd, int asked, int means, fd_set *set)
{
	if (!set || !(fd->events & asked) || !(fd->revents & means))
		return 0;
	put_in(fd->fd, set);
	return 1;
}

static void clear(fd_set *set, int cnt)
{
	if (set)
		memset((void *)set, 0, set_size(cnt));
}

/* What is no file when the call begins is an error. One that is closed meanwhile counts
 * for all sets that it is in. */
static bool has_no_file(const struct pollfd *fds, nfds_t cnt)
{
	for (nfds_t i = 0; i < cnt; i++)
		if (fds[i].revents & POLLNVAL)
			return true;
	return false;
}

static long select_by_poll(int cnt, fd_set *in, fd_set *out, fd_set *except,
			   struct pollfd *fds, const struct timespec *timeout,
			   const struct signals_mark *sig_mark)
{
	nfds_t n = to_pollfds(cnt, in, out, except, fds);
	bool has_waited = false;
	long result = poll_select(fds, n, timeout, sig_mark, &has_waited);

	if (result < 0 || (!result && timeout == &mux_first_look))
		return result;
	if (UNLIKELY(!has_waited && has_no_file(fds, n)))
		return -EBADF;
	clear(in, cnt);
	clear(out, cnt);
	clear(except, cnt);
	result = 0;
	for (nfds_t i = 0; i < n; i++)
		result += mark(&fds[i], POLLIN, SELECT_IN, in) +
			  mark(&fds[i], POLLOUT, SELECT_OUT, out) +
			  mark(&fds[i], POLLPRI, SELECT_EXCEPT, except);
	return result;
}

/* A handler that jumps out of the call leaves this memory behind. */
static long select_large(int cnt, fd_set *in, fd_set *out, fd_set *except,
			 const struct timespec *timeout,
			 const struct signals_mark *sig_mark)
{
	size_t size = (size_t)cnt * sizeof(struct pollfd);
	struct pollfd *fds = pages_map(size);
	long result;

	if (!fds)
		return -ENOMEM;
	result = select_by_poll(cnt, in, out, except, fds, timeout, sig_mark);
	munmap(fds, size);
	return result;
}

long mux_select(int cnt, fd_set *in, fd_set *out, fd_set *except,
		const struct timespec *timeout,
		const struct signals_mark *sig_mark)
{
	struct pollfd fds[FD_SETSIZE];

	cnt = kernel_limit(cnt);
	return cnt <= FD_SETSIZE ?
		       select_by_poll(cnt, in, out, except, fds, timeout,
				      sig_mark) :
		       select_large(cnt, in, out, except, timeout, sig_mark);
}
