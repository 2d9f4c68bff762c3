/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who drives an interface, as others ask. */
#include "config.h"

#include "dev/xdp/owner.c"

#include <unistd.h>

#include "tests/support/test.h"

/* more than wait to be accepted */
enum { ASKERS = 40 };

int xdp_adopt_fd(int fd, _Atomic int *slot)
{
	atomic_store(slot, fd);
	return 0;
}

void services_close_fd(_Atomic int *slot)
{
	real.close(atomic_exchange(slot, -1));
}

static struct owner owner;

/* An interface of nobody else's cases. */
static int begin(void)
{
	real_resolve();
	owner_init(&owner);
	return 0x40000000 + getpid();
}

TEST(the_owner_is_named)
{
	int ifindex = begin();

	CHECK_EQ(owner_ask(ifindex), 0);
	owner_claim(&owner, ifindex);
	CHECK_EQ(owner_ask(ifindex), getpid());
	owner_release(&owner);
	CHECK_EQ(owner_ask(ifindex), 0);
}

TEST(many_may_ask)
{
	int ifindex = begin();

	for (int i = 0; i < ASKERS; i++) {
		owner_claim(&owner, ifindex);
		CHECK_EQ(owner_ask(ifindex), getpid());
	}
	owner_release(&owner);
}

TEST(at_once_they_hear_that_there_is_one)
{
	int ifindex = begin(), pid = 0;

	owner_claim(&owner, ifindex);
	for (int i = 0; i < ASKERS; i++) {
		pid = owner_ask(ifindex);
		CHECK(pid == getpid() || (i > 8 && pid == -1));
	}
	CHECK_EQ(pid, -1);
	owner_claim(&owner, ifindex);
	CHECK_EQ(owner_ask(ifindex), getpid());
	owner_release(&owner);
}
