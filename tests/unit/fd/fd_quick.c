/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "fd/fd_quick.h"

#include <pthread.h>

#include "tests/support/test.h"

static void release(struct fd_object *obj UNUSED)
{
}

static const struct fd_ops ops = {
	.name = "thing",
	.release = release,
};

/* A call that finds nothing; `is_last`: nobody else has the object any more. */
static void look_in_vain(struct fd_object *obj, bool is_last)
{
	errno = 0;
	os_enter_first();
	if (!is_last)
		fd_object_hold(obj);
	CHECK_EQ(fd_quick_end_again(obj), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK(!os_is_inside());
}

static void *look_in_another_thread(void *obj)
{
	CHECK_EQ(errno, 0);
	look_in_vain(obj, false);
	look_in_vain(obj, false);
	return NULL;
}

/* Also when the thread knows where that is, and another one has another place. */
TEST(errno_is_the_threads_own)
{
	struct fd_object obj;
	pthread_t thread;

	fd_object_init(&obj, &ops, 0);
	for (int i = 0; i < 3; i++) {
		look_in_vain(&obj, false);
		errno = EINTR;
		CHECK_EQ(pthread_create(&thread, NULL, look_in_another_thread, &obj), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK_EQ(errno, EINTR);
	}
	look_in_vain(&obj, true);
}
