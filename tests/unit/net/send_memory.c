/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stack's memory to send: it grows, goes, and may be refused. */
#include "net/stack.h"

#include <sys/resource.h>

#include "tests/support/test.h"

enum { SEND_MAX = 1000 };

static struct stack *stack;
static struct list taken;

static void begin(void)
{
	static const struct stack_params params = {
		.lock_kind = STACK_LOCK_SPIN,
		.poll_batch = STACK_BATCH,
		.send_max = SEND_MAX,
	};

	CHECK_EQ(stack_create(&params, &stack), 0);
	list_init(&taken);
}

static void put_all(void)
{
	stack_lock(stack);
	pkt_put_list(&taken);
	stack_unlock(stack);
}

static bool take(void)
{
	struct pkt *pkt;

	stack_lock(stack);
	pkt = stack_send_alloc_locked(stack);
	stack_unlock(stack);
	if (pkt)
		list_push_back(&taken, &pkt->link);
	return pkt != NULL;
}

static bool is_used_up(void)
{
	bool result;

	stack_lock(stack);
	result = stack_send_is_used_up_locked(stack);
	stack_unlock(stack);
	return result;
}

static void end(void)
{
	put_all();
	stack_destroy(stack);
}

TEST(it_grows_and_goes)
{
	unsigned cnt = 0;

	begin();
	CHECK_EQ(stack->send.pool.total_cnt, 0);
	for (int i = 0; i < 2 * SEND_MAX; i++)
		cnt += take();
	/* as many whole slabs as there may be packets */
	CHECK_EQ(cnt, SEND_MAX / 128 * 128);
	CHECK(is_used_up());
	stack_check(stack);
	CHECK_EQ(stack->send.pool.total_cnt, cnt);
	put_all();
	CHECK(!is_used_up());
	stack_check(stack);
	CHECK_EQ(stack->send.pool.total_cnt, 0);
	end();
}

/* -- no memory --------------------------------------------------------------------- */

static struct rlimit before;

static void refuse_memory(void)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	limit = before;
	limit.rlim_cur = 1;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static void allow_memory(void)
{
	CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

/* Whoever was refused tells the next, until a check finds memory. */
TEST(it_is_refused)
{
	begin();
	refuse_memory();
	CHECK(!is_used_up());
	CHECK(!take());
	CHECK(is_used_up());
	CHECK(!take());
	CHECK(is_used_up());
	allow_memory();
	stack_check(stack);
	CHECK(!is_used_up());
	CHECK(!take());
	CHECK(take());
	end();
}

/* What is there is given out, and what is given back. */
TEST(what_is_there_is_not_used_up)
{
	unsigned cnt = 0;

	begin();
	CHECK(!take());
	refuse_memory();
	while (take())
		cnt++;
	CHECK_EQ(cnt, 128);
	CHECK(is_used_up());
	put_all();
	CHECK(!is_used_up());
	CHECK(take());
	allow_memory();
	end();
}

static unsigned run_cnt;

static void note_run(struct stack_engine *engine UNUSED, struct stack *which)
	REQUIRES(which->lock)
{
	CHECK(!stack_send_is_used_up_locked(which));
	run_cnt++;
}

/* TCP's engine has sockets that wait, and no packet of theirs may ever come back. */
TEST(the_check_lets_the_engine_ask_again)
{
	struct stack_engine engine = { 0 };

	begin();
	stack_engine_init(&engine, note_run);
	atomic_store(&stack->tcp, &engine);
	stack_check(stack);
	CHECK_EQ(run_cnt, 0);
	refuse_memory();
	CHECK(!take());
	allow_memory();
	CHECK_EQ(run_cnt, 0);
	stack_check(stack);
	CHECK_EQ(run_cnt, 1);
	stack_check(stack);
	CHECK_EQ(run_cnt, 1);
	atomic_store(&stack->tcp, NULL);
	end();
}
