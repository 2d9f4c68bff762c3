/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory on the card as a ring of payloads (dev_mem.h). */
#include "config.h"

#include "dev/rdma/dev_mem.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "base/log.h"
#include "dev/rdma/mmio.h"
#include "dev/rdma/rdma_priv.h"

/* -- the ring ---------------------------------------------------------------------- */

uint32_t dev_mem_take(struct dev_mem *mem, uint32_t len, uint32_t *at_out)
{
	uint32_t need = (len + DEV_MEM_LINE - 1) & ~(uint32_t)(DEV_MEM_LINE - 1);
	uint32_t at, left_out = 0;

	/* an empty one has its longest piece at the beginning */
	if (!mem->used)
		mem->head = 0;
	at = mem->head;
	if (need > mem->size - at) {
		left_out = mem->size - at;
		at = 0;
	}
	if (need + left_out > mem->size - mem->used)
		return 0;
	*at_out = at;
	mem->head = at + need;
	mem->used += need + left_out;
	return need + left_out;
}

/* The bytes are aligned there, but not here. */
static uint8_t *write_words(uint8_t *to, const uint8_t *from, uint32_t len)
{
	for (; len; len -= sizeof(uint64_t)) {
		mmio_write64(to, from);
		to += sizeof(uint64_t);
		from += sizeof(uint64_t);
	}
	return to;
}

/* The card takes whole words alone (of four bytes; we write eight). So the end of one part
 * and the beginning of the next may be in one of them. */
void dev_mem_write(struct dev_mem *mem, uint32_t at, const struct pkt *pkt,
		   uint32_t skip)
{
	uint8_t word[sizeof(uint64_t)] = { 0 }, *to = mem->at + at;
	uint32_t in_word = 0;

	for (; pkt; pkt = pkt->next_part, skip = 0) {
		const uint8_t *from = pkt->data + skip;
		uint32_t len = pkt->len - skip, n = 0;

		if (in_word) {
			n = MIN((uint32_t)sizeof(word) - in_word, len);
			memcpy(word + in_word, from, n);
			in_word += n;
			if (in_word < sizeof(word))
				continue;
			to = write_words(to, word, sizeof(word));
		}
		from += n;
		in_word = (len - n) % (uint32_t)sizeof(word);
		len = len - n - in_word;
		to = write_words(to, from, len);
		memcpy(word, from + len, in_word);
	}
	if (in_word)
		write_words(to, word, sizeof(word));
	/* Another thread may ring the doorbell, whose flush is not for our stores. */
	mmio_flush();
}

/* -- life -------------------------------------------------------------------------- */

/* How much to ask for; 0: nothing. What is written to a card without BlueFlame would take
 * longer than to have it fetched. */
static uint32_t size_of(const struct rdma_dev *dev, bool has_blue_flame)
{
	const uint64_t wanted = dev->params->dev_mem;
	uint64_t size = (wanted + DEV_MEM_LINE - 1) & ~(uint64_t)(DEV_MEM_LINE - 1);

	if (!wanted)
		return 0;
	if (!has_blue_flame || dev->dev_mem_max < DEV_MEM_LINE) {
		log_warn("%s: %s, so VMA_RING_DEV_MEM_TX=%lu has no effect",
			 dev->dev.name,
			 has_blue_flame ? "its card has no memory to send from" :
					  "there is no BlueFlame (VMA_BF)",
			 (unsigned long)wanted);
		return 0;
	}
	if (size <= dev->dev_mem_max)
		return (uint32_t)size;
	size = dev->dev_mem_max & ~(uint64_t)(DEV_MEM_LINE - 1);
	log_warn("%s: its card has less memory than VMA_RING_DEV_MEM_TX=%lu: a ring gets %lu bytes",
		 dev->dev.name, (unsigned long)wanted, (unsigned long)size);
	return (uint32_t)size;
}

static int map(struct dev_mem *mem)
{
	struct mlx5dv_dm dm = { 0 };
	struct mlx5dv_obj obj = { .dm = { mem->dm, &dm } };
	int err = mlx5dv_init_obj(&obj, MLX5DV_OBJ_DM);

	if (err)
		return -err;
	mem->at = dm.buf;
	return 0;
}

static int allocate(struct dev_mem *mem, struct rdma_dev *dev, uint32_t size)
{
	struct ibv_alloc_dm_attr attr = { .length = size };
	int err;

	mem->dm = ibv_alloc_dm(dev->ctx, &attr);
	if (!mem->dm)
		return -errno;
	err = map(mem);
	if (err)
		goto err_dm;
	mem->mr = ibv_reg_dm_mr(dev->pd, mem->dm, 0, size,
				IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	if (!mem->mr) {
		err = -errno;
		goto err_dm;
	}
	mem->lkey = mem->mr->lkey;
	mem->size = size;
	return 0;
err_dm:
	(void)!ibv_free_dm(mem->dm);
	return err;
}

void dev_mem_open(struct dev_mem *mem, struct rdma_dev *dev, bool has_blue_flame)
{
	uint32_t size = size_of(dev, has_blue_flame);
	int err;

	*mem = (struct dev_mem){ .size = 0 };
	if (!size)
		return;
	err = allocate(mem, dev, size);
	if (err)
		log_warn("%s: its card does not give %u bytes of its memory (%s), so they are taken from the host's in spite of VMA_RING_DEV_MEM_TX",
			 dev->dev.name, size, strerror(-err));
}

/* A card that is lost has taken it along. */
void dev_mem_close(struct dev_mem *mem, const struct rdma_dev *dev)
{
	int err;

	if (!mem->size)
		return;
	err = ibv_dereg_mr(mem->mr);
	if (!err)
		err = ibv_free_dm(mem->dm);
	if (err)
		log_dbg("%s: memory of the card is not given back (%s)",
			dev->dev.name, strerror(err));
	mem->size = 0;
}
