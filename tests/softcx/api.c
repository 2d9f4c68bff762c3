/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests ask of the card; see softcx.h. */
#include "config.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "base/compiler.h"
#include "card.h"
#include "check.h"
#include "cq.h"
#include "ctx.h"
#include "qp.h"
#include "softcx.h"
#include "steer.h"

/* The device under its lock, or NULL and no lock, which is more than the
 * analysis can follow. */
static struct dev *acquire(const char *name) NO_LOCK_ANALYSIS
{
	struct dev *dev;

	if (!the_card)
		return NULL;
	card_lock(the_card);
	dev = card_find_dev(the_card, name);
	if (dev && dev->is_open)
		return dev;
	card_unlock(the_card);
	return NULL;
}

static int release(int ret) NO_LOCK_ANALYSIS
{
	card_unlock(the_card);
	return ret;
}

EXPORT int softcx_step(void)
{
	int n;

	if (!the_card)
		return -ENODEV;
	card_lock(the_card);
	n = card_step_locked(the_card);
	card_unlock(the_card);
	return n;
}

EXPORT int softcx_clock_set(uint64_t ns)
{
	int ret = -EINVAL;

	if (!the_card)
		return -ENODEV;
	card_lock(the_card);
	if (!the_card->has_virtual_clock || ns >= the_card->virtual_ns) {
		the_card->has_virtual_clock = true;
		the_card->virtual_ns = ns;
		ret = 0;
	}
	card_unlock(the_card);
	return ret;
}

EXPORT int softcx_strict_set(int is_strict)
{
	if (!the_card)
		return -ENODEV;
	check_set_strict(is_strict);
	return 0;
}

EXPORT int softcx_stats(const char *name, struct softcx_stats *stats_out)
{
	struct dev *dev = acquire(name);

	if (!dev)
		return -ENODEV;
	dev->stats.rx_overrun += wire_take_overruns(&dev->wire);
	*stats_out = dev->stats;
	return release(0);
}

EXPORT int softcx_impair(const char *name, const struct impair_params *params)
{
	struct dev *dev = acquire(name);

	if (!dev)
		return -ENODEV;
	if (dev->impair)
		impair_set_params(dev->impair, params);
	else
		dev->impair = impair_create(params, the_card->conf.seed,
					    &impair_bytes_ops, NULL);
	return release(dev->impair ? 0 : -ENOMEM);
}

EXPORT int softcx_impair_counts(const char *name,
				struct impair_counts *counts_out)
{
	struct dev *dev = acquire(name);

	if (!dev)
		return -ENODEV;
	*counts_out = dev->impair ? *impair_counts(dev->impair) :
				    (struct impair_counts){ 0 };
	return release(0);
}

EXPORT int softcx_port_set(const char *name, int is_up) NO_LOCK_ANALYSIS
{
	struct dev *dev = acquire(name);

	if (!dev)
		return -ENODEV;
	dev->is_pulled = !is_up;
	dev_update_port_locked(the_card, dev);
	return release(0);
}

EXPORT int softcx_remove(const char *name)
{
	struct dev *dev = acquire(name);
	struct ctx *ctx;

	if (!dev)
		return -ENODEV;
	dev->is_removed = true;
	/* Nobody is left to take frames: they are the kernel's again. */
	filter_close(&dev->filter);
	LIST_FOR_EACH(ctx, &dev->ctxs, link)
		ctx_raise_async(ctx, IBV_EVENT_DEVICE_FATAL, 1);
	return release(0);
}

EXPORT int softcx_fail_qp(const char *name, uint32_t qpn)
{
	struct dev *dev = acquire(name);
	struct qp *qp;

	if (!dev)
		return -ENODEV;
	qp = idtab_get(&dev->qps, qpn);
	if (!qp)
		return release(-EINVAL);
	qp_fail(qp);
	return release(0);
}

EXPORT int softcx_fail_cq(const char *name, uint32_t cqn)
{
	struct dev *dev = acquire(name);
	struct cq *cq;

	if (!dev)
		return -ENODEV;
	cq = idtab_get(&dev->cqs, cqn);
	if (!cq)
		return release(-EINVAL);
	cq_fail(cq);
	return release(0);
}

EXPORT int softcx_try_frame(const char *name, const void *frame, uint64_t len)
{
	struct dev *dev = acquire(name);

	if (!dev)
		return -ENODEV;
	return release(filter_try(&dev->filter, frame, len));
}

EXPORT int softcx_steer_frame(const char *name, const void *frame, uint64_t len)
{
	struct dev *dev = acquire(name);

	if (!dev)
		return -ENODEV;
	return release((int)steer_frame(dev, frame, len, true));
}
