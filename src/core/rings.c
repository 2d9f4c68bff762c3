/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks for rings of io_uring (rings.h). */
#include "config.h"

#include "core/rings.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "fd/fd_table.h"
#include "os/file.h"

#define FDS "/proc/self/fd"

/* One part in SHARE of the time may go into looking. A look is left out while the
 * process has as many fds as before. After LEFT_OUT_MAX of them we look all the
 * same, since a ring may have taken the place of another fd. */
enum { SHARE = 500, LEFT_OUT_MAX = 9 };

static struct {
	enum io_uring_wish wish;
	_Atomic bool is_there;
	_Atomic uint64_t next_look_ns;
	/* for the thread that looks, from here on */
	off_t fd_cnt;
	unsigned left_out;
} rings;

void rings_configure(enum io_uring_wish wish)
{
	rings.wish = wish;
}

bool rings_are_there(void)
{
	return atomic_load_explicit(&rings.is_there, memory_order_relaxed);
}

void rings_note(void)
{
	atomic_store(&rings.is_there, true);
}

static void look_at(void *ctx UNUSED, const char *name)
{
	char path[sizeof(FDS) + 16];

	/* An fd that has an object is no ring. On a server, these are most of the
	 * fds. */
	if (fd_table_has(atoi(name)))
		return;
	if (snprintf(path, sizeof(path), FDS "/%s", name) <
		    (int)sizeof(path) &&
	    file_leads_to(path, "anon_inode:[io_uring]"))
		rings_note();
}

static bool has_changed(void)
{
	off_t cnt = file_size(FDS);

	if (cnt && cnt == rings.fd_cnt && rings.left_out++ < LEFT_OUT_MAX)
		return false;
	rings.fd_cnt = cnt;
	rings.left_out = 0;
	return true;
}

bool rings_look(void)
{
	uint64_t start_ns, due_ns = atomic_load(&rings.next_look_ns), cost_ns;

	if (rings.wish == IO_URING_IGNORE)
		return false;
	if (rings_are_there())
		return true;
	start_ns = clock_monotonic_ns();
	/* Several threads may come here; the one that moves the time looks. */
	if (start_ns < due_ns ||
	    !atomic_compare_exchange_strong(&rings.next_look_ns, &due_ns,
					    start_ns + NS_PER_SEC))
		return false;
	if (has_changed())
		file_for_names(FDS, UINT_MAX, look_at, NULL);
	cost_ns = clock_monotonic_ns() - start_ns;
	/* A little less than a second, so that a caller who comes each second looks
	 * each time. */
	atomic_store(&rings.next_look_ns,
		     start_ns + MAX(NS_PER_SEC / 2, SHARE * cost_ns));
	return rings_are_there();
}
