/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The device of a bond (bond.h). */
#include "config.h"

#include "dev/bond/bond.h"

#include <errno.h>
#include <linux/if_bonding.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev/bond/bond_priv.h"

/* -- rules ------------------------------------------------------------------------- */

static void remove_from(struct bond_dev *own, const struct flow_rule *rule, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		own->ports[i]->ops->flow_remove(own->ports[i], rule);
}

/* Each port has all rules, since nobody knows by which one a frame comes. */
static int bond_flow_add(struct dev *dev, const struct flow_rule *rule,
			 struct ring *ring, uint32_t tag)
{
	struct bond_dev *own = bond_of(dev);

	for (unsigned i = 0; i < own->port_cnt; i++) {
		struct dev *port = own->ports[i];
		int err = port->ops->flow_add(port, rule, bond_ring_port(ring, i), tag);

		if (err) {
			remove_from(own, rule, i);
			return err;
		}
	}
	return 0;
}

static void bond_flow_remove(struct dev *dev, const struct flow_rule *rule)
{
	remove_from(bond_of(dev), rule, bond_of(dev)->port_cnt);
}

/* -- regions ----------------------------------------------------------------------- */

/* All ports know the region before any of its frames is used: those of one are sent by
 * another. */
static int share(struct bond_dev *own, struct region *region, uint32_t id)
{
	int err = 0;

	for (unsigned i = 0; i < own->port_cnt && !err; i++)
		err = own->ports[i]->ops->region_share(own->ports[i], region, id);
	for (unsigned i = 0; i < own->port_cnt && err; i++)
		(void)!own->ports[i]->ops->region_share(own->ports[i], NULL, id);
	return err;
}

static int bond_region_add(struct dev *dev, uint32_t frame_cnt)
{
	struct bond_dev *own = bond_of(dev);
	uint32_t id = atomic_load(&dev->regions.cnt);
	struct region *region;
	int err;

	if (id == REGION_SET_MAX)
		return -ENOSPC;
	err = region_create(frame_cnt, dev->region->frame_size, dev->region->pages,
			    &region);
	if (err)
		return err;
	err = share(own, region, id);
	if (!err)
		err = region_set_add(&dev->regions, region);
	if (err) {
		region_put(region);
		return err;
	}
	/* from the first of these on, frames of it may be on their way */
	for (unsigned i = 0; i < own->port_cnt; i++)
		region_set_share(&own->ports[i]->regions, region);
	return 0;
}

/* -- the device -------------------------------------------------------------------- */

static int bond_check(struct dev *dev)
{
	struct bond_dev *own = bond_of(dev);
	int err = 0;

	for (unsigned i = 0; i < own->port_cnt && !err; i++)
		err = own->ports[i]->ops->check(own->ports[i]);
	return err;
}

static int bond_link_changed(struct dev *dev)
{
	struct bond_dev *own = bond_of(dev);
	int err = 0;

	dev->caps.tx_len_max = UINT32_MAX;
	for (unsigned i = 0; i < own->port_cnt && !err; i++) {
		struct dev *port = own->ports[i];

		memcpy(port->mac, dev->mac, sizeof(port->mac));
		port->mtu = dev->mtu;
		port->rx_mtu = dev->rx_mtu;
		err = port->ops->link_changed(port);
		dev->caps.tx_len_max = MIN(dev->caps.tx_len_max, port->caps.tx_len_max);
	}
	return err;
}

static void bond_ports_changed(struct dev *dev, uint32_t active)
{
	if (active)
		atomic_store_explicit(&bond_of(dev)->active, active,
				      memory_order_relaxed);
}

static void bond_rights_go(struct dev *dev)
{
	struct bond_dev *own = bond_of(dev);

	for (unsigned i = 0; i < own->port_cnt; i++)
		own->ports[i]->ops->rights_go(own->ports[i]);
}

static void bond_ending(struct dev *dev, enum dev_end how_far)
{
	struct bond_dev *own = bond_of(dev);

	for (unsigned i = 0; i < own->port_cnt; i++)
		own->ports[i]->ops->ending(own->ports[i], how_far);
}

static void bond_close(struct dev *dev)
{
	struct bond_dev *own = bond_of(dev);

	for (unsigned i = 0; i < own->port_cnt; i++)
		own->ports[i]->ops->close(own->ports[i]);
	region_set_put(&dev->regions);
	free(own);
}

static const struct dev_ops ops = {
	.ring_create = bond_ring_create,
	.flow_add = bond_flow_add,
	.flow_remove = bond_flow_remove,
	.region_add = bond_region_add,
	.check = bond_check,
	.link_changed = bond_link_changed,
	.ports_changed = bond_ports_changed,
	.rights_go = bond_rights_go,
	.ending = bond_ending,
	.close = bond_close,
};

/* -- opening ----------------------------------------------------------------------- */

static int refuse(struct dev_verdict *why, int err, enum dev_refusal refusal)
{
	why->err = err;
	why->refusal = refusal;
	return err;
}

static int open_port(struct bond_dev *own, struct backend *backend,
		     const struct backend_request *whole, struct dev_verdict *why)
{
	const struct backend_port *port = &whole->bond->ports[own->port_cnt];
	struct backend_request request = *whole;
	char text[sizeof(why->text)];
	int err;

	if (request.vlan_id) {
		request.lower = port->ifindex;
		request.lower_name = port->name;
	} else {
		request.ifindex = port->ifindex;
		request.name = port->name;
	}
	if (own->port_cnt)
		request.regions = &own->dev.regions;
	err = backend->open(backend, &request, &own->ports[own->port_cnt], why);
	if (!err) {
		own->port_cnt++;
		return 0;
	}
	memcpy(text, why->text, sizeof(text));
	snprintf(why->text, sizeof(why->text), "its port %s: %.96s", port->name, text);
	return err;
}

/* What all ports can do. */
static void weaken(struct dev_caps *caps, const struct dev_caps *port)
{
	caps->rx_partial_csum |= port->rx_partial_csum;
	caps->kernel_verdicts &= port->kernel_verdicts;
	caps->rules_outlast_failure |= port->rules_outlast_failure;
	caps->takes_given |= port->takes_given;
	caps->bears_vlans &= port->bears_vlans;
	caps->needs_kick |= port->needs_kick;
	caps->tx_len_max = MIN(caps->tx_len_max, port->tx_len_max);
	caps->tso_max = MIN(caps->tso_max, port->tso_max);
}

static void take_over(struct bond_dev *own, const struct backend_request *request)
{
	struct dev *dev = &own->dev;

	own->ops = ops;
	own->ops.name = own->ports[0]->ops->name;
	dev_ops_fill(&own->ops);
	dev->ops = &own->ops;
	dev->ifindex = request->ifindex;
	snprintf(dev->name, sizeof(dev->name), "%s", request->name);
	memcpy(dev->mac, request->mac, sizeof(dev->mac));
	dev->vlan_id = request->vlan_id;
	dev->mtu = request->mtu;
	dev->rx_mtu = request->rx_mtu;
	dev->caps = own->ports[0]->caps;
	dev->caps.pace_min = dev->caps.pace_max = 0;
	for (unsigned i = 0; i < own->port_cnt; i++) {
		size_t len = strlen(dev->mode);

		weaken(&dev->caps, &own->ports[i]->caps);
		snprintf(dev->mode + len, sizeof(dev->mode) - len, "%s%s",
			 i ? " + " : "", own->ports[i]->mode);
	}
}

static int open_ports(struct bond_dev *own, struct backend *backend,
		      const struct backend_request *request, struct dev_verdict *why)
{
	while (own->port_cnt < request->bond->port_cnt) {
		int err = open_port(own, backend, request, why);

		if (err)
			return err;
		if (own->port_cnt > 1)
			continue;
		region_set_get(&own->dev.regions, &own->ports[0]->regions);
		own->dev.region = own->ports[0]->region;
	}
	return 0;
}

int bond_open(struct backend *backend, const struct backend_request *request,
	      struct dev **dev_out, struct dev_verdict *why_out)
{
	const struct backend_bond *bond = request->bond;
	struct bond_dev *own;
	int err;

	if (bond->mode != BOND_MODE_ACTIVEBACKUP && bond->mode != BOND_MODE_8023AD) {
		snprintf(why_out->text, sizeof(why_out->text),
			 "a bond of mode %u, and only 1 (active-backup) and 4 (802.3ad) are driven",
			 bond->mode);
		return refuse(why_out, -EOPNOTSUPP, DEV_REFUSED_KIND);
	}
	if (!bond->port_cnt || bond->port_cnt > BACKEND_PORTS_MAX) {
		snprintf(why_out->text, sizeof(why_out->text),
			 "a bond with %u ports, and 1 to %d are driven", bond->port_cnt,
			 BACKEND_PORTS_MAX);
		return refuse(why_out, -EOPNOTSUPP, DEV_REFUSED_KIND);
	}
	own = calloc(1, sizeof(*own));
	if (!own)
		return refuse(why_out, -ENOMEM, DEV_REFUSED_MEMORY);
	own->policy = bond->policy;
	atomic_init(&own->active, bond->active);
	err = open_ports(own, backend, request, why_out);
	if (err) {
		bond_close(&own->dev);
		return err;
	}
	take_over(own, request);
	*dev_out = &own->dev;
	return 0;
}
