/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Receiving: when it is the twin's turn. */
#include "config.h"

#include "sock/udp/udp_rx.c"

#include <pthread.h>

#include "tests/support/test.h"

enum { RATIO = 2, THREADS = 4, LOOKS = 10000000 };

static struct udp u;
static _Atomic unsigned started_cnt, strange_cnt;

static void *count_down(void *arg UNUSED)
{
	atomic_fetch_add(&started_cnt, 1);
	while (atomic_load(&started_cnt) < THREADS)
		sched_yield();
	for (unsigned i = 0; i < LOOKS; i++) {
		(void)is_twin_due(&u);
		if (atomic_load(&u.os_countdown) - 1 >= RATIO)
			atomic_fetch_add(&strange_cnt, 1);
	}
	return NULL;
}

/* A count of 0 would be followed by all that there are. */
TEST(threads_count_to_the_twins_turn)
{
	pthread_t threads[THREADS];

	sock_params.os_ratio = RATIO;
	atomic_init(&u.os_countdown, udp_twin_interval());
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, count_down, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(atomic_load(&strange_cnt), 0);
}

TEST(every_look_of_so_many_is_the_twins)
{
	unsigned cnt = 0;

	sock_params.os_ratio = RATIO;
	atomic_store(&u.os_countdown, udp_twin_interval());
	for (unsigned i = 0; i < 10 * RATIO; i++)
		cnt += is_twin_due(&u);
	CHECK_EQ(cnt, 10);
}
