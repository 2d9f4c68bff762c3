/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of epoll that have something of ours in them. Such a set is the kernel's as
 * well: whatever the program adds is a member of the kernel's set, with the program's
 * events and data word. So a child, or whoever gets the set, finds it as the program
 * made it, and the kernel tells what the twins have. Beside it stands our set. It has
 * an item for each socket of ours, and for each set that has such sockets itself, and
 * it knows what our queues have. An item follows Linux's rules by its own events:
 * what is reported once, what is disarmed, who is woken.
 *
 * Locks. `changes` is held while members change, over the kernel's change too, and
 * when an item is looked up. A socket's item is on the list of the socket's endpoint,
 * under the lock of its stack; a set's item is on a list of that set, under a lock of
 * all nested sets. `lock` comes after these, and guards what an arrival changes.
 */
#ifndef IOMUX_EPOLL_SET_H
#define IOMUX_EPOLL_SET_H

#include <sys/epoll.h>

#include "base/hash_tab.h"
#include "iomux/mux_wait.h"

/* The names of EPOLLOUT. */
enum { EPOLL_OUT_NAMES = EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND };

struct epoll_call;

struct epoll_item {
	/* -- fixed -- */
	struct epoll_set *set;
	/* The member, and the number that it was added by. Without a reference,
	 * since the item dies when the member is closed. */
	struct fd_object *obj;
	int fd;
	struct endpoint *end; /* NULL: the member is a set */
	struct stack *stack;  /* of the endpoint */

	/* -- `changes` -- */
	struct hash_link by_key;
	struct hash_link by_word;
	/* It has been taken to the kernel, or is about to be. */
	bool is_leaving;

	/* -- the lock of the list that `watch` is on; changed with set->lock, too -- */
	struct watch watch;
	struct epoll_event event;
	_Atomic bool is_dead;

	/* -- set->lock -- */
	struct list in_ready;
	/* EPOLLONESHOT: nothing has been reported since the events were given; the
	 * same for what the kernel reports */
	bool is_armed;
	bool is_armed_in_kernel;
	/* EPOLLET: the kernel will say that the twin can be written to, since it was
	 * added or modified; the same, and we have said so already */
	bool is_out_due;
	bool is_out_said;
	/* where a look has reported it, and which one */
	uint64_t look;
	int at;
};

struct epoll_set {
	struct fd_object obj;
	/* the fd by which it was made known */
	int fd;
	/* the stack of all its sockets; NULL until there is one */
	_Atomic(struct stack *) stack;
	/* How many items there are by which our queues can make it ready: those of
	 * sockets, and of sets that have such items. Read without a lock. */
	_Atomic unsigned live_cnt;

	struct mutex changes;
	struct hash_tab by_key;
	struct hash_tab by_word;

	struct spinlock lock;
	struct list ready; /* items that may be, the next to report first */
	struct list dead;  /* items whose member was closed */
	_Atomic bool has_dead;
	struct list sleepers; /* calls that may be woken, who waits longest first */
	/* what has come and is left to calls that wait, but do not sleep */
	unsigned left_cnt;
	/* the sleeper that hears of the kernel's events, for all of them */
	struct epoll_call *kernels_watcher;
	/* threads that look right now; calls in `sleepers`; calls that wait, and have
	 * not been woken */
	_Atomic unsigned looking_cnt;
	_Atomic unsigned sleeper_cnt;
	_Atomic unsigned waiting_cnt;
	_Atomic uint64_t looks;

	/* the items of this set in others, and polls; the lock of nested sets */
	struct list outers;
	_Atomic bool has_outers;

	/* how many further looks do without the kernel; any thread */
	_Atomic unsigned skips_left;
	/* counts the looks with room for one event; our events and the kernel's
	 * take turns */
	_Atomic unsigned turns;
	/* epoll_wake.c */
	_Atomic int wake_fd;
	_Atomic uint64_t wake_until_ns;
	/* NULL: it has not been alive yet */
	struct stats_mux *stats;
};

/* What epoll_wait was asked. */
struct epoll_query {
	struct epoll_set *set; /* with a reference */
	struct epoll_event *events; /* the program's */
	int cnt;
	int epfd;
};

/* An epoll_wait that waits. */
struct epoll_call {
	struct mux_call call;
	struct list in_sleepers; /* set->lock */
	bool is_counted;         /* in waiting_cnt; set->lock while it sleeps */
	struct epoll_query query;
	struct pollfd fds[1 + WAIT_FDS_MAX];
};

static inline struct epoll_set *epoll_set_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct epoll_set, obj);
}

extern HIDDEN struct fd_ops epoll_set_ops;

static inline bool epoll_is_set(const struct fd_object *obj)
{
	return obj->ops == &epoll_set_ops;
}

/* A set for this epfd, with a reference, or NULL without memory. */
struct epoll_set *epoll_set_make(int epfd) MUST_CHECK;
/* The set that epfd names, with a reference. NULL: none that we know. */
struct epoll_set *epoll_set_get(int epfd) MUST_CHECK;
void epoll_sets_load(void);
void epoll_sets_forked(void);

/* -- members; with `changes`, or when nobody refers to the set any more ------------- */

/* The item of this member, or NULL. */
struct epoll_item *epoll_item_find(struct epoll_set *set,
				   const struct fd_object *obj, int fd);
/* Adds a member that the kernel's set has. -ENOMEM. A member that another thread has
 * closed meanwhile is not added: its last close has looked for items, or will. */
int epoll_item_add(struct epoll_set *set, struct fd_object *obj, int fd,
		   struct endpoint *end, struct stack *stack,
		   const struct epoll_event *event) MUST_CHECK;
/* `is_armed`: false for one that has reported what EPOLLONESHOT lets it report. Returns
 * whether it was before. */
bool epoll_item_modify(struct epoll_item *item, const struct epoll_event *event,
		       bool is_armed);
void epoll_item_remove(struct epoll_item *item);
/* The first item with this data word, or the next one, or NULL. */
struct epoll_item *epoll_item_by_word(struct epoll_set *set, uint64_t word);
struct epoll_item *epoll_item_next_by_word(struct epoll_item *item);

/* -- readiness ---------------------------------------------------------------------- */

/* Stores what our queues have, at most `cnt` events. They are at `at` and behind it in
 * what the look returns. */
int epoll_set_harvest(struct epoll_set *set, uint64_t look,
		      struct epoll_event *events, int at, int cnt);

/* The kernel has reported the item: what our queues have for it is part of that. Under
 * set->lock. */
uint32_t epoll_item_join_report(struct epoll_item *item, uint64_t look, int at);

/* Something may be ready that nobody is about to see: wakes the next sleeper. */
void epoll_set_pass_on(struct epoll_set *set);

/* Begins a look. What arrives until its end wakes nobody, since the look finds it. No
 * handler of the program may run meanwhile. */
static inline void epoll_set_begin_look(struct epoll_set *set)
{
	atomic_fetch_add(&set->looking_cnt, 1);
}

/* What is left is another sleeper's. It has counted itself before something arrived, and
 * what arrived has found us looking. */
static inline void epoll_set_end_look(struct epoll_set *set)
{
	atomic_fetch_sub(&set->looking_cnt, 1);
	if (UNLIKELY(atomic_load(&set->sleeper_cnt)))
		epoll_set_pass_on(set);
}

/* A call begins to wait, and ends that with an event or is abandoned. */
void epoll_set_begin_wait(struct epoll_set *set, struct epoll_call *call);
void epoll_set_end_wait(struct epoll_set *set, struct epoll_call *call);
/* It is about to leave with nothing. False: something has come since it looked, and
 * may have been left to it. It has to look again. */
bool epoll_set_try_end_wait(struct epoll_set *set, struct epoll_call *call);

/* A call is about to sleep. True: something may be ready. */
bool epoll_set_begin_sleep(struct epoll_set *set, struct epoll_call *call);
/* It sleeps no more, or cannot be counted on. */
void epoll_set_end_sleep(struct epoll_set *set, struct epoll_call *call);

/* Whether our queues have something that the set would report now. */
bool epoll_set_is_ready(struct epoll_set *set);
/* The same, or something has been ready: for who looks then. Any locks. */
bool epoll_set_may_be_ready(struct epoll_set *set);

/* A poll waits for the set as a whole. */
void epoll_set_watch(struct epoll_set *set, struct watch *watch);
void epoll_set_unwatch(struct watch *watch);

/* -- threads that sleep in the kernel for a set that becomes ours (epoll_wake.c) ------ */

/* The set has its first live item now. */
void epoll_wake_sleepers(struct epoll_set *set);
/* Takes the event that only woke them out of `events`. Returns how many are left. */
int epoll_take_wake(struct epoll_set *set, int epfd, struct epoll_event *events,
		    int n);
void epoll_end_wake(struct epoll_set *set);
void epoll_wake_forked(void);

#endif
