/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks for rings of io_uring and contexts of AIO (rings.h). */
#include "config.h"

#include "core/rings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "os/file.h"
#include "os/inside.h"

#define FDS "/proc/self/fd"
#define MAPPINGS "/proc/self/maps"
/* how many events the contexts of all processes have room for */
#define CONTEXTS "/proc/sys/fs/aio-nr"

/*
 * One part in SHARE of the time may go into looking. A look is left out while the
 * process has as many fds, or the machine as many contexts, as before. After
 * LEFT_OUT_MAX of them we look all the same, since one may have taken the place of
 * another.
 */
enum { SHARE = 500, LEFT_OUT_MAX = 9 };

/* Of contexts that we have seen being made. A program that has more of them at once
 * has its sockets with the kernel. */
enum { KNOWN_MAX = 64 };

/* What shows at little cost that a look would find what the last one found. */
struct sign {
	/* 0: it shows nothing */
	uint64_t value;
	unsigned left_out;
};

static struct {
	enum io_uring_wish wish;
	_Atomic bool is_there;
	_Atomic uint64_t next_look_ns;
	/* for the thread that looks */
	struct sign fds, contexts;

	/* The addresses of contexts that need no look, 0: a free place. An address
	 * may be here twice, when a context was made where another one has just been
	 * destroyed. */
	_Atomic uintptr_t known[KNOWN_MAX];
	/* how many contexts are or were being made; while they differ, one may be
	 * there that is not in `known` yet */
	_Atomic unsigned begun, ended;

	/* CONTEXTS, which is read each second: whoever opens a file for a moment has a
	 * number meanwhile that the program may count on. -1: not open. */
	_Atomic int contexts_fd;
} rings = { .contexts_fd = -1 };

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

/* False: no place has `from`. */
static bool change_known(uintptr_t from, uintptr_t to)
{
	for (size_t i = 0; i < KNOWN_MAX; i++) {
		uintptr_t now = from;

		if (atomic_compare_exchange_strong(&rings.known[i], &now, to))
			return true;
	}
	return false;
}

void rings_context_begin(void)
{
	atomic_fetch_add(&rings.begun, 1);
}

void rings_context_end(uintptr_t context)
{
	if (context)
		(void)change_known(0, context);
	atomic_fetch_add(&rings.ended, 1);
}

void rings_context_gone(uintptr_t context)
{
	if (context)
		(void)change_known(context, 0);
}

void rings_forked(void)
{
	/* of threads that the child does not have */
	atomic_store(&rings.ended, atomic_load(&rings.begun));
}

static bool is_known(uintptr_t context)
{
	for (size_t i = 0; i < KNOWN_MAX; i++)
		if (atomic_load(&rings.known[i]) == context)
			return true;
	return false;
}

/* An fd that has an object is no ring. On a server, these are most of the fds. */
static int next_without_object(int fd)
{
	while (fd_table_has(fd))
		fd++;
	return fd;
}

static int look_at_fd(void *ctx UNUSED, int fd)
{
	char path[sizeof(FDS) + 16];

	if (fd_table_has(fd))
		return next_without_object(fd);
	snprintf(path, sizeof(path), FDS "/%d", fd);
	if (file_leads_to(path, "anon_inode:[io_uring]"))
		rings_note();
	return next_without_object(fd + 1);
}

/* The kernel maps each context into the process. */
static void look_at_mapping(void *found, const char *line)
{
	uintptr_t context;
	const char *name = strstr(line, " /[aio]");

	if (name && sscanf(line, "%" SCNxPTR, &context) == 1 &&
	    !is_known(context))
		*(bool *)found = true;
}

static bool has_changed(struct sign *sign, uint64_t value)
{
	if (value && value == sign->value && sign->left_out++ < LEFT_OUT_MAX)
		return false;
	sign->value = value;
	sign->left_out = 0;
	return true;
}

static void look_for_rings(void)
{
	if (has_changed(&rings.fds, (uint64_t)file_size(FDS)))
		file_for_fds(next_without_object(0), look_at_fd, NULL);
}

/* What CONTEXTS says; false: nothing. */
static bool read_contexts(char *text, size_t size)
{
	int fd = atomic_load(&rings.contexts_fd), err = 0;
	long len;

	if (fd < 0) {
		fd = inside_open(CONTEXTS, O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0)
			return false;
		err = fd_internal_adopt(fd, &rings.contexts_fd);
		if (!err)
			fd = atomic_load(&rings.contexts_fd);
	}
	len = inside_pread(fd, text, size, 0);
	if (err)
		inside_close(fd);
	return len > 0;
}

/* Most machines have none. */
static void look_for_contexts(void)
{
	unsigned begun = atomic_load(&rings.begun);
	bool is_settled = atomic_load(&rings.ended) == begun;
	char text[24] = "";
	bool is_found = false;
	unsigned long room;

	if (read_contexts(text, sizeof(text) - 1)) {
		room = strtoul(text, NULL, 10);
		if (!room || !has_changed(&rings.contexts, room))
			return;
	}
	if (is_settled)
		file_for_lines(MAPPINGS, look_at_mapping, &is_found);
	/* what was found may be one that was made meanwhile, by a call that we see */
	is_settled = is_settled && atomic_load(&rings.begun) == begun;
	if (!is_settled)
		rings.contexts.value = 0;
	else if (is_found)
		rings_note();
}

bool rings_look(void)
{
	uint64_t start_ns, began_ns, due_ns = atomic_load(&rings.next_look_ns), cost_ns;

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
	began_ns = clock_thread_ns();
	look_for_rings();
	look_for_contexts();
	cost_ns = clock_thread_ns() - began_ns;
	/* A little less than a second, so that a caller who comes each second looks
	 * each time. */
	atomic_store(&rings.next_look_ns,
		     start_ns + MAX(NS_PER_SEC / 2, SHARE * cost_ns));
	return rings_are_there();
}
