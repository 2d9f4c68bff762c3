/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The card's memory as a ring of payloads (src/dev/rdma/dev_mem.c), on a device that the
 * test is. */
#include "config.h"

#include "base/rand.h"
#include "dev/rdma/dev_mem.c"
#include "tests/support/test.h"

enum { SIZE = 4096, LINE = DEV_MEM_LINE };

/* -- the device -------------------------------------------------------------------- */

static _Alignas(LINE) uint8_t bytes[SIZE];
static struct ibv_dm the_dm;
static struct ibv_mr the_mr;
static uint64_t asked;
static int refusal, registers_not;
static unsigned dm_cnt, mr_cnt;

static struct ibv_dm *alloc_dm(struct ibv_context *ctx UNUSED,
			       struct ibv_alloc_dm_attr *attr)
{
	asked = attr->length;
	errno = refusal;
	if (refusal)
		return NULL;
	dm_cnt++;
	return &the_dm;
}

static int free_dm(struct ibv_dm *dm)
{
	CHECK(dm == &the_dm);
	dm_cnt--;
	return 0;
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd UNUSED, struct ibv_dm *dm UNUSED,
				uint64_t offset, size_t len,
				unsigned int access UNUSED)
{
	CHECK_EQ(offset, 0);
	CHECK_EQ(len, asked);
	errno = registers_not;
	if (registers_not)
		return NULL;
	mr_cnt++;
	return &the_mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	CHECK(mr == &the_mr);
	mr_cnt--;
	return 0;
}

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
	CHECK_EQ(type, MLX5DV_OBJ_DM);
	obj->dm.out->buf = bytes;
	return 0;
}

static struct verbs_context verbs = {
	.sz = sizeof(verbs),
	.alloc_dm = alloc_dm,
	.free_dm = free_dm,
	.reg_dm_mr = reg_dm_mr,
	.context = { .abi_compat = __VERBS_ABI_IS_EXTENDED },
};
static struct ibv_pd pd = { .context = &verbs.context };
static struct rdma_params params;
static struct rdma_dev dev;
static struct dev_mem mem;

static void set_up(uint32_t wanted, uint64_t max)
{
	refusal = 0;
	registers_not = 0;
	asked = 0;
	the_dm.context = &verbs.context;
	the_mr.lkey = 0x77;
	params.dev_mem = wanted;
	dev = (struct rdma_dev){
		.params = &params, .ctx = &verbs.context, .pd = &pd,
		.dev_mem_max = max,
	};
}

static uint32_t opened_size(uint32_t wanted, uint64_t max)
{
	uint32_t size;

	set_up(wanted, max);
	dev_mem_open(&mem, &dev, true);
	size = mem.size;
	CHECK_EQ(dm_cnt, size != 0);
	CHECK_EQ(mr_cnt, size != 0);
	dev_mem_close(&mem, &dev);
	CHECK_EQ(dm_cnt + mr_cnt, 0);
	CHECK_EQ(mem.size, 0);
	return size;
}

TEST(device_gives_what_it_has)
{
	CHECK_EQ(opened_size(0, SIZE), 0);
	CHECK_EQ(asked, 0);
	CHECK_EQ(opened_size(SIZE, SIZE), SIZE);
	CHECK_EQ(opened_size(1, SIZE), LINE);
	CHECK_EQ(opened_size(SIZE + 1, SIZE), SIZE);
	CHECK_EQ(opened_size(INT32_MAX, 1000), 15 * LINE);
	CHECK_EQ(opened_size(SIZE, 0), 0);
	CHECK_EQ(opened_size(SIZE, LINE - 1), 0);
	CHECK_EQ(asked, 0);
}

TEST(device_that_refuses)
{
	set_up(SIZE, SIZE);
	refusal = ENOMEM;
	dev_mem_open(&mem, &dev, true);
	CHECK_EQ(mem.size, 0);
	set_up(SIZE, SIZE);
	registers_not = ENOMEM;
	dev_mem_open(&mem, &dev, true);
	CHECK_EQ(mem.size, 0);
	CHECK_EQ(dm_cnt, 0);
	set_up(SIZE, SIZE);
	dev_mem_open(&mem, &dev, false);
	CHECK_EQ(asked, 0);
	CHECK_EQ(mem.size, 0);
}

/* -- the ring ---------------------------------------------------------------------- */

static struct rand rand_of_test;

static uint32_t draw(uint32_t limit)
{
	return (uint32_t)rand_below(&rand_of_test, limit);
}

static uint32_t take(uint32_t len)
{
	uint32_t at = UINT32_MAX, taken = dev_mem_take(&mem, len, &at);

	CHECK_EQ(at == UINT32_MAX, !taken);
	CHECK(!taken || at % LINE == 0);
	CHECK(!taken || at + len <= mem.size);
	return taken;
}

TEST(pieces_are_whole_and_come_back_in_order)
{
	uint32_t at = UINT32_MAX, first, second;

	mem = (struct dev_mem){ .size = 10 * LINE };
	CHECK_EQ(take(10 * LINE + 1), 0);
	first = take(6 * LINE);
	CHECK_EQ(first, 6 * LINE);
	CHECK_EQ(take(5 * LINE), 0);
	second = take(2 * LINE + 1);
	CHECK_EQ(second, 3 * LINE);
	/* five do not fit behind those, so one is left out */
	dev_mem_give(&mem, first);
	first = dev_mem_take(&mem, 5 * LINE, &at);
	CHECK_EQ(at, 0);
	CHECK_EQ(first, 6 * LINE);
	CHECK_EQ(take(2 * LINE), 0);
	CHECK_EQ(take(LINE), LINE);
	dev_mem_give(&mem, second);
	dev_mem_give(&mem, first);
	dev_mem_give(&mem, LINE);
	/* all of it again, wherever it had come to */
	CHECK_EQ(take(10 * LINE), 10 * LINE);
	CHECK_EQ(take(1), 0);
}

/* Lengths drawn at random against a model, which knows each line's owner. */
TEST(pieces_never_meet)
{
	enum { LINES = 64, QUEUE = 64 };
	struct { uint32_t at, cnt, taken; } queue[QUEUE];
	bool is_taken[LINES] = { false };
	uint32_t head = 0, tail = 0, sum = 0;

	rand_init(&rand_of_test, test_seed);
	mem = (struct dev_mem){ .size = LINES * LINE };
	for (int i = 0; i < 100000; i++) {
		uint32_t len = draw(1500) + 1, at = 0;
		uint32_t cnt = (len + LINE - 1) / LINE;
		uint32_t taken = draw(3) && head - tail < QUEUE ?
					 dev_mem_take(&mem, len, &at) :
					 0;

		if (taken) {
			for (uint32_t j = at / LINE; j < at / LINE + cnt; j++) {
				CHECK(!is_taken[j]);
				is_taken[j] = true;
			}
			queue[head % QUEUE].at = at / LINE;
			queue[head % QUEUE].cnt = cnt;
			queue[head++ % QUEUE].taken = taken;
			sum++;
		} else if (head != tail) {
			typeof(queue[0]) *old = &queue[tail++ % QUEUE];

			for (uint32_t j = old->at; j < old->at + old->cnt; j++)
				is_taken[j] = false;
			dev_mem_give(&mem, old->taken);
		}
	}
	CHECK(sum > 10000);
}

/* Parts of all lengths join without a gap, and nothing beyond the last word is touched. */
TEST(parts_are_joined)
{
	uint8_t source[200], expected[200];
	struct pkt parts[4];

	rand_init(&rand_of_test, test_seed);
	for (unsigned i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(i * 7 + 1);
	mem = (struct dev_mem){ .at = bytes, .size = SIZE };
	for (int round = 0; round < 5000; round++) {
		uint32_t skip = draw(9), len = 0, end;

		memset(parts, 0, sizeof(parts));
		for (int i = 0; i < 4; i++) {
			uint32_t at = draw(100);

			parts[i].data = source + at;
			parts[i].len = draw(40);
			if (!i)
				parts[i].len += skip;
			parts[i].next_part = i < 3 ? &parts[i + 1] : NULL;
			memcpy(expected + len, source + at + (i ? 0 : skip),
			       parts[i].len - (i ? 0 : skip));
			len += parts[i].len - (i ? 0 : skip);
		}
		memset(bytes, 0xee, sizeof(bytes));
		dev_mem_write(&mem, LINE, parts, skip);
		CHECK_MEM(bytes + LINE, expected, len);
		end = LINE + (len + 7) / 8 * 8;
		CHECK_EQ(bytes[LINE - 1], 0xee);
		CHECK_EQ(bytes[end], 0xee);
	}
}
