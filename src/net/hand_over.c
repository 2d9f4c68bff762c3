/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections for a listener of the kernel's (hand_over.h). */
#include "config.h"

#include "net/hand_over.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdatomic.h>

#include "base/syscall_raw.h"
#include "dev/hand_over_load.h"
#include "fd/fd_internal.h"
#include "fd/right_keeper.h"
#include "os/inside.h"
#include "os/rights.h"

static long bpf(int command, union bpf_attr *attr)
{
	return syscall_raw(SYS_bpf, command, (long)(uintptr_t)attr, sizeof(*attr), 0, 0,
			   0);
}

/* By whoever can. The process itself may lack a right, or the files of the kernel's, in a
 * root directory of its own. */
static int load(int ifindex, int *fds)
{
	const struct keeper_request request = {
		.op = KEEPER_HAND_OVER,
		.ifindex = ifindex,
	};
	int err = rights_is_net_admin() ? hand_over_load(ifindex, fds) : -EPERM, answer;

	if (err != -EPERM && err != -EOPNOTSUPP)
		return err;
	answer = right_keeper_ask(&request, NULL, fds);
	/* there is none */
	return answer == -EPERM ? err : answer;
}

/* They get numbers out of the program's way, or are closed. */
static int keep(const int *fds, struct hand_over *door)
{
	int err = fd_internal_adopt(fds[HAND_OVER_FD_MAP], &door->map);

	if (err)
		inside_close(fds[HAND_OVER_FD_MAP]);
	else
		err = fd_internal_adopt(fds[HAND_OVER_FD_LINK], &door->link);
	if (err)
		inside_close(fds[HAND_OVER_FD_LINK]);
	return err;
}

int hand_over_open(struct hand_over *door, int ifindex)
{
	int fds[HAND_OVER_FD_CNT], err;

	atomic_init(&door->map, -1);
	atomic_init(&door->link, -1);
	err = load(ifindex, fds);
	if (!err)
		err = keep(fds, door);
	if (err)
		hand_over_close(door);
	return err;
}

void hand_over_close(struct hand_over *door)
{
	fd_internal_close(&door->link);
	fd_internal_close(&door->map);
}

static struct offer_key key_of(const struct flow_key *key)
{
	return (struct offer_key){
		.src = ip_addr_v4(&key->remote),
		.dst = ip_addr_v4(&key->local),
		.src_port = key->remote_port,
		.dst_port = key->local_port,
	};
}

static long on_map(struct hand_over *door, int command, const struct offer_key *key,
		   void *value, uint64_t flags)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)atomic_load(&door->map),
		.key = (uintptr_t)key,
	};

	if (command == BPF_MAP_GET_NEXT_KEY)
		attr.next_key = (uintptr_t)value;
	else
		attr.value = (uintptr_t)value;
	attr.flags = flags;
	return bpf(command, &attr);
}

/* The map has room for one. */
static void withdraw(struct hand_over *door)
{
	struct offer_key key;

	if (on_map(door, BPF_MAP_GET_NEXT_KEY, NULL, &key, 0) == 0)
		(void)on_map(door, BPF_MAP_DELETE_ELEM, &key, NULL, 0);
}

int hand_over_offer(struct hand_over *door, const struct flow_key *key,
		    const struct hand_over_options *o)
{
	struct offer_key at = key_of(key);
	struct offer offer = {
		.options = {
			.rcv_tsval = o->ts_recent,
			.rcv_tsecr = o->ts_next,
			.mss = o->mss_peer,
			.rcv_wscale = o->rcv_scale,
			.snd_wscale = o->snd_scale,
			.ecn_ok = o->has_ecn,
			.wscale_ok = o->has_scale,
			.sack_ok = o->has_sack,
			.tstamp_ok = o->has_timestamps,
		},
		.state = OFFER_NEW,
	};

	withdraw(door);
	return (int)on_map(door, BPF_MAP_UPDATE_ELEM, &at, &offer, BPF_ANY);
}

bool hand_over_is_taken(struct hand_over *door, const struct flow_key *key,
			uint32_t *rcv_nxt_out)
{
	struct offer_key at = key_of(key);
	struct offer offer;

	if (on_map(door, BPF_MAP_LOOKUP_ELEM, &at, &offer, 0) != 0 ||
	    offer.state != OFFER_TAKEN)
		return false;
	*rcv_nxt_out = offer.rcv_nxt;
	return true;
}
