/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory regions; see mr.h. */
#include "config.h"

#include "mr.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "card.h"
#include "check.h"
#include "dma.h"

/* What may be asked for. */
static const uint32_t known_access = IBV_ACCESS_LOCAL_WRITE |
				     IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_ATOMIC |
				     IBV_ACCESS_HUGETLB |
				     IBV_ACCESS_RELAXED_ORDERING;

/* What makes the card write to the program's memory. */
static const uint32_t writing_access = IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_ATOMIC;

static int pin(struct mr *mr)
{
	mr->umem.n_pages = 0;
	if (mr->dm)
		return 0;
	return umem_pin(&mr->umem, (void *)(uintptr_t)mr->start, mr->length,
			mr->access & writing_access);
}

int mr_create(struct ctx *ctx, const struct mr *params, struct mr **mr_out)
{
	uint32_t number;
	struct mr *mr;
	int ret = -ENOMEM;

	if (params->access & ~known_access)
		return -EOPNOTSUPP;
	mr = malloc(sizeof(*mr));
	if (!mr)
		return ret;
	*mr = *params;
	mr->ctx = ctx;
	ret = pin(mr);
	if (ret)
		goto err_free;
	ret = -ENOMEM;
	if (idtab_add(&ctx->dev->mrs, mr, &number))
		goto err_unpin;
	/* The low byte is the program's to vary in a work request; ours is not
	 * zero, so that a number is not mistaken for a key. */
	mr->lkey = number << 8 | 0x5c;
	ret = obj_add(ctx, &mr->obj, OBJ_MR);
	if (ret)
		goto err_number;
	mr->pd->obj.n_users++;
	if (mr->dm)
		mr->dm->n_users++;
	*mr_out = mr;
	return 0;

err_number:
	idtab_remove(&ctx->dev->mrs, number);
err_unpin:
	umem_unpin(&mr->umem);
err_free:
	free(mr);
	return ret;
}

void mr_destroy(struct mr *mr)
{
	mr->pd->obj.n_users--;
	if (mr->dm)
		mr->dm->n_users--;
	umem_unpin(&mr->umem);
	idtab_remove(&mr->ctx->dev->mrs, mr->lkey >> 8);
	obj_remove(mr->ctx, &mr->obj);
	free(mr);
}

/* The region of a key, or NULL after a violation. */
static struct mr *find(const struct mr_use *use)
{
	const struct idtab *mrs = &use->dev->mrs;
	struct mr *mr = idtab_get(mrs, use->lkey >> 8);

	if (!mr && idtab_was_used(mrs, use->lkey >> 8)) {
		check_violation("use-after-destroy",
				"%s uses key %#x, which was deregistered",
				use->user, use->lkey);
		return NULL;
	}
	if (!mr || mr->lkey != use->lkey) {
		check_violation("bad-key", "%s uses key %#x, which is none",
				use->user, use->lkey);
		return NULL;
	}
	if (mr->pd != use->pd) {
		check_violation("bad-key",
				"%s uses key %#x of another protection domain",
				use->user, use->lkey);
		return NULL;
	}
	return mr;
}

/* The same, if the bytes are within it. */
static struct mr *find_range(const struct mr_use *use)
{
	struct mr *mr = find(use);
	uint64_t offset;

	if (!mr)
		return NULL;
	offset = use->addr - mr->iova;
	if (use->addr >= mr->iova && offset <= mr->length &&
	    use->len <= mr->length - offset)
		return mr;
	check_violation("bad-range",
			"%s: %u bytes at %#llx are not within key %#x "
			"(%llu at %#llx)",
			use->user, use->len, (unsigned long long)use->addr,
			use->lkey, (unsigned long long)mr->length,
			(unsigned long long)mr->iova);
	return NULL;
}

static void *place(const struct mr *mr, const struct mr_use *use)
{
	return (void *)(uintptr_t)(mr->start + (use->addr - mr->iova));
}

static bool check_is_there(const struct mr_use *use, bool is_there)
{
	if (!is_there)
		check_violation("memory-gone",
				"%s: the memory of key %#x (%u bytes at %#llx) "
				"was unmapped after it was registered",
				use->user, use->lkey, use->len,
				(unsigned long long)use->addr);
	return is_there;
}

bool mr_read(const struct mr_use *use, void *to)
{
	const struct mr *mr = find_range(use);

	if (!mr)
		return false;
	/* Device memory is the card's own mapping. */
	if (mr->dm) {
		dma_copy(to, place(mr, use), use->len);
		use->dev->stats.reads_of_dm++;
		return true;
	}
	return check_is_there(use, umem_read(to, place(mr, use), use->len));
}

bool mr_write(const struct mr_use *use, const void *from)
{
	const struct mr *mr = find_range(use);

	if (!mr)
		return false;
	if (!(mr->access & IBV_ACCESS_LOCAL_WRITE)) {
		check_violation("bad-access",
				"%s receives into key %#x, which is read-only",
				use->user, use->lkey);
		return false;
	}
	if (mr->dm) {
		dma_copy(place(mr, use), from, use->len);
		return true;
	}
	return check_is_there(use, umem_write(place(mr, use), from, use->len));
}
