/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory regions; see mr.h. */
#include "config.h"

#include "mr.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "card.h"
#include "check.h"

/* What may be asked for. */
static const uint32_t known_access = IBV_ACCESS_LOCAL_WRITE |
				     IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_ATOMIC |
				     IBV_ACCESS_HUGETLB |
				     IBV_ACCESS_RELAXED_ORDERING;

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
	if (idtab_add(&ctx->dev->mrs, mr, &number))
		goto err_free;
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
err_free:
	free(mr);
	return ret;
}

void mr_destroy(struct mr *mr)
{
	mr->pd->obj.n_users--;
	if (mr->dm)
		mr->dm->n_users--;
	idtab_remove(&mr->ctx->dev->mrs, mr->lkey >> 8);
	obj_remove(mr->ctx, &mr->obj);
	free(mr);
}

/* The region of a key, or NULL after a violation. */
static struct mr *find(struct dev *dev, const struct pd *pd, uint32_t lkey,
		       const char *user)
{
	struct mr *mr = idtab_get(&dev->mrs, lkey >> 8);

	if (!mr && idtab_was_used(&dev->mrs, lkey >> 8)) {
		check_violation("use-after-destroy",
				"%s uses key %#x, which was deregistered", user,
				lkey);
		return NULL;
	}
	if (!mr || mr->lkey != lkey) {
		check_violation("bad-key", "%s uses key %#x, which is none",
				user, lkey);
		return NULL;
	}
	if (mr->pd != pd) {
		check_violation("bad-key",
				"%s uses key %#x of another protection domain",
				user, lkey);
		return NULL;
	}
	return mr;
}

void *mr_map(struct dev *dev, const struct pd *pd, uint32_t lkey, uint64_t addr,
	     uint64_t len, bool is_write, const char *user)
{
	struct mr *mr = find(dev, pd, lkey, user);
	uint64_t offset;

	if (!mr)
		return NULL;
	offset = addr - mr->iova;
	if (addr < mr->iova || offset > mr->length ||
	    len > mr->length - offset) {
		check_violation("bad-range",
				"%s: %llu bytes at %#llx are not within key "
				"%#x (%llu at %#llx)",
				user, (unsigned long long)len,
				(unsigned long long)addr, lkey,
				(unsigned long long)mr->length,
				(unsigned long long)mr->iova);
		return NULL;
	}
	if (is_write && !(mr->access & IBV_ACCESS_LOCAL_WRITE)) {
		check_violation("bad-access",
				"%s receives into key %#x, which is read-only",
				user, lkey);
		return NULL;
	}
	return (void *)(uintptr_t)(mr->start + offset);
}
