/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that processes share since a fork. The parent goes on with them as if
 * nothing had happened. Its child has heirs in their place: objects that know whose they
 * are. The first call of the child that needs the socket asks the parent to give it to
 * the kernel, and from then on both use the twin, one file of the kernel's, as they would
 * without us. A child that never looks at them costs nothing.
 *
 * Each fork makes a channel, a pair of sockets, of which the child has one end, and so have
 * the child's children. Who asks sends his own way for the answer along. The end of all
 * the childs' ends is the end of the sharing. The parent's thread never waits for a child.
 */
#ifndef SOCK_KIN_H
#define SOCK_KIN_H

#include "fd/fd_ops.h"

/* What makes an heir ask. Where it is not any use, the child may receive and send by the twin
 * as it is, but what it changes of the file that both have, the parent would not hear of. */
enum kin_use {
	KIN_ANY_USE,
	/* a change, or that its descriptor goes to somebody else */
	KIN_HANDING_ON,
	/* a change */
	KIN_CHANGES,
};

/* -- the parent; all inside the bracket -- */

/* Before a fork, where no other thread can fork until kin_after_fork(). False: nothing can
 * be shared, and what the child might use has to be the kernel's before. `sets`: what makes
 * the heirs of sets of epoll ask. */
bool kin_before_fork(enum kin_use sets) MUST_CHECK;
/* Behind it, whether there is a child or not. */
void kin_after_fork(void);
/* Our thread has ended, and all that was shared is the kernel's. */
void kin_stop(void);

/* Counts forks. An object that was there at this count is shared by each later one. */
uint64_t kin_fork_cnt(void);
/* Whether somebody who was forked after that may have it, too. */
bool kin_is_shared_since(uint64_t fork_cnt);
/* Whether anything is shared. */
bool kin_is_shared(void);
/* Whether anybody may still have what the first fork after the count `first` has shared, and
 * the one after the count `last` as the last one, which may be under way. Who has it on behind
 * the end of a channel has said so before: a program that was started with it, or somebody
 * to whom it was sent. From these nothing is heard again, so this stays true. */
bool kin_may_be_shared(uint64_t first, uint64_t last);

/* -- the child -- */

/* Before a program is started beside this one: what it inherits is the kernel's. */
void kin_before_spawn(void);

/* Before the internal fds are closed, and after that. */
void kin_forked_first(void);
void kin_forked(void);
/* What kin_before_fork was told. */
enum kin_use kin_use_of_sets(void);
/* The heir of an object of the parent's, which was named by `fd`: with a reference, or
 * NULL. `*place` belongs to the object, and is NULL at first. */
struct fd_object *kin_make_heir(struct fd_object *obj, struct fd_object **place,
				int fd, enum kin_use use) MUST_CHECK;
bool kin_is_heir(const struct fd_object *obj);
/* Before a call that its object does not see: the parent is asked, if it has to be. */
void kin_ask(struct fd_object *heir, bool is_change);
void kin_start(void);

#endif
