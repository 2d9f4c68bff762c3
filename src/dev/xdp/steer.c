/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The steering program that is loaded, and its maps (steer.h). */
#include "config.h"

#include "dev/xdp/steer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "dev/xdp/steer_load.h"
#include "dev/xdp/xdp_priv.h"
#include "os/rights.h"

struct steer {
	struct steer_params params;
	/* Copies of libbpf's, among the library's own fds: a program that closes
	 * all it has must not make us write to another file. */
	_Atomic int prog, queues, rules, config, counts;
	_Atomic int link;
	uint32_t prog_id;
	/* room of the table of rules */
	uint32_t rules_max;
	struct steer_config now;
	/* rules that name a peer */
	unsigned connected_cnt;
};

_Static_assert((int)STEER_GIVEN_BACK_META == RING_GIVEN_BACK_META, "one mark");

static int say(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char line[256];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, args);
	log_dbg("%s", line);
	return 0;
}

static int write_config(struct steer *steer)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(steer->config, &zero, &steer->now, BPF_ANY) ?
		       -errno :
		       0;
}

static void close_fds(struct steer *steer)
{
	_Atomic int *slots[] = { &steer->link, &steer->prog, &steer->queues,
				 &steer->rules, &steer->config, &steer->counts };

	for (size_t i = 0; i < ARRAY_LEN(slots); i++)
		if (atomic_load(slots[i]) >= 0)
			services_close_fd(slots[i]);
}

/* -- loading ----------------------------------------------------------------------- */

static struct keeper_request request_of(const struct steer *steer, enum keeper_op op)
{
	return (struct keeper_request){
		.op = op,
		.flags = steer->params.is_native ? KEEPER_NATIVE : 0,
		.ifindex = steer->params.ifindex,
	};
}

static struct keeper_request request_of_load(const struct steer *steer, uint32_t rules_max)
{
	struct keeper_request request = request_of(steer, KEEPER_STEER);

	request.flags |= steer->params.is_single ? KEEPER_SINGLE : 0;
	request.sight = steer->params.sight;
	request.rules_max = rules_max;
	return request;
}

/* By whoever has the rights. Without them the table cannot grow. */
static int load_first(struct steer *steer)
{
	_Atomic int *const slots[] = {
		[STEER_FD_PROG] = &steer->prog,
		[STEER_FD_RULES] = &steer->rules,
		[STEER_FD_QUEUES] = &steer->queues,
		[STEER_FD_CONFIG] = &steer->config,
		[STEER_FD_COUNTS] = &steer->counts,
	};
	bool is_ours = rights_is_net_admin();
	struct keeper_request request = request_of_load(
		steer, is_ours ? STEER_RULES_FIRST : STEER_RULES_FIXED);
	int fds[STEER_FD_CNT];
	int err = is_ours ? steer_load(&request, NULL, fds) :
			    right_keeper_ask(&request, NULL, fds);

	if (err)
		return err;
	steer->rules_max = request.rules_max;
	for (int i = 0; i < STEER_FD_CNT; i++)
		(void)!xdp_adopt_fd(fds[i], slots[i]);
	return steer_load_id(atomic_load(&steer->prog), &steer->prog_id);
}

/* -- a larger table ------------------------------------------------------------------ */

enum { COPY_BATCH = 4096 };

static int copy_rules(int from, int to)
{
	struct steer_key *keys = malloc(COPY_BATCH * sizeof(*keys));
	uint32_t *values = malloc(COPY_BATCH * sizeof(*values));
	uint32_t place, cnt, done;
	bool is_first = true;
	int err = 0, last = 0;

	if (!keys || !values)
		err = -ENOMEM;
	while (!err && !last) {
		cnt = COPY_BATCH;
		/* ENOENT: these are the last ones */
		last = bpf_map_lookup_batch(from, is_first ? NULL : &place,
					    &place, keys, values, &cnt, NULL);
		if (last && errno != ENOENT)
			err = -errno;
		is_first = false;
		done = cnt;
		if (!err && cnt &&
		    bpf_map_update_batch(to, keys, values, &done, NULL) != 0)
			err = -errno;
	}
	free(keys);
	free(values);
	return err;
}

/* Replaces the program that is attached by the same program on another table, in one
 * step. */
static int replace(struct steer *steer, const int *fds)
{
	int link = atomic_load(&steer->link);
	int err = copy_rules(atomic_load(&steer->rules), fds[STEER_FD_RULES]);
	uint32_t id = 0;

	if (!err)
		err = steer_load_id(fds[STEER_FD_PROG], &id);
	if (!err && link >= 0 &&
	    bpf_link_update(link, fds[STEER_FD_PROG], NULL) != 0)
		err = -errno;
	if (!err)
		steer->prog_id = id;
	return err;
}

static int grow(struct steer *steer, uint32_t rules_max)
{
	const int kept[STEER_KEPT_CNT] = {
		atomic_load(&steer->queues),
		atomic_load(&steer->config),
		atomic_load(&steer->counts),
	};
	const struct keeper_request request =
		request_of_load(steer, rules_max);
	int fds[STEER_FD_CNT], err;

	err = rules_max > STEER_RULES_MAX ? -ENOSPC :
					    steer_load(&request, kept, fds);
	log_dbg("%d: a table for %u rules: %s", steer->params.ifindex, rules_max,
		err ? strerror(-err) : "made");
	if (err)
		return err;
	err = replace(steer, fds);
	if (err) {
		real.close(fds[STEER_FD_PROG]);
		real.close(fds[STEER_FD_RULES]);
		return err;
	}
	services_close_fd(&steer->prog);
	services_close_fd(&steer->rules);
	steer->rules_max = request.rules_max;
	err = xdp_adopt_fd(fds[STEER_FD_PROG], &steer->prog);
	return err ? err : xdp_adopt_fd(fds[STEER_FD_RULES], &steer->rules);
}

/* -- for dev.c ------------------------------------------------------------------------ */

int steer_create(const struct steer_params *params, struct steer **steer_out)
{
	struct steer *steer = calloc(1, sizeof(*steer));
	int err;

	if (!steer)
		return -ENOMEM;
	steer->params = *params;
	atomic_init(&steer->prog, -1);
	atomic_init(&steer->queues, -1);
	atomic_init(&steer->rules, -1);
	atomic_init(&steer->config, -1);
	atomic_init(&steer->counts, -1);
	atomic_init(&steer->link, -1);
	memcpy(steer->now.mac, params->mac, sizeof(steer->now.mac));
	libbpf_set_print(say);
	err = load_first(steer);
	if (!err)
		err = write_config(steer);
	if (err)
		steer_destroy(steer);
	else
		*steer_out = steer;
	return err;
}

void steer_destroy(struct steer *steer)
{
	if (!steer)
		return;
	close_fds(steer);
	free(steer);
}

int steer_set_queue(struct steer *steer, uint32_t queue, int xsk_fd)
{
	return bpf_map_update_elem(steer->queues, &queue, &xsk_fd, BPF_ANY) ?
		       -errno :
		       0;
}

int steer_attach(struct steer *steer)
{
	struct keeper_request request = request_of(steer, KEEPER_ATTACH);
	int prog = atomic_load(&steer->prog);
	int fd = rights_is_net_admin() ? steer_load_attach(&request, prog) :
					 right_keeper_ask_one(&request, &prog);

	return fd < 0 ? fd : xdp_adopt_fd(fd, &steer->link);
}

/* All zero when they cannot be read. */
static struct steer_counts read_counts(const struct steer *steer)
{
	struct steer_counts counts = { 0 };
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(atomic_load(&steer->counts), &zero, &counts))
		log_dbg("%d: what was dropped cannot be read",
			steer->params.ifindex);
	return counts;
}

int steer_check(const struct steer *steer)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(atomic_load(&steer->link), &info, &len) != 0)
		return -errno;
	if (info.xdp.ifindex != (uint32_t)steer->params.ifindex)
		return -ENODEV;
	if (steer->params.sight == STEER_SIGHT_TAG &&
	    read_counts(steer).untold)
		return -EOPNOTSUPP;
	return info.prog_id == steer->prog_id ? 0 : -EBUSY;
}

uint64_t steer_fragments(const struct steer *steer)
{
	return read_counts(steer).tcp_fragments;
}

int steer_set_mac(struct steer *steer, const uint8_t *mac)
{
	memcpy(steer->now.mac, mac, sizeof(steer->now.mac));
	return write_config(steer);
}

static bool is_connected(const struct flow_rule *rule)
{
	return rule->src_port != 0;
}

static struct steer_key key_of(const struct flow_rule *rule)
{
	return (struct steer_key){
		.dst = ip_addr_v4(&rule->dst),
		.src = is_connected(rule) ? ip_addr_v4(&rule->src) : 0,
		.dport = rule->dst_port,
		.sport = rule->src_port,
		.proto = rule->proto,
	};
}

static int insert(struct steer *steer, const struct steer_key *key,
		  uint32_t value)
{
	return bpf_map_update_elem(atomic_load(&steer->rules), key, &value,
				   BPF_NOEXIST) ?
		       -errno :
		       0;
}

/* The program hears of the first such rule, and of the end of the last. */
static int note_connected(struct steer *steer, bool has_connected)
{
	if (steer->now.has_connected == has_connected)
		return 0;
	steer->now.has_connected = has_connected;
	return write_config(steer);
}

int steer_add(struct steer *steer, const struct flow_rule *rule)
{
	struct steer_key key = key_of(rule);
	uint32_t value = rule->verdict == FLOW_TO_RING ? STEER_TO_RING :
							 STEER_TO_KERNEL;

	int err = insert(steer, &key, value);

	if (err == -E2BIG) {
		err = grow(steer, steer->rules_max * STEER_RULES_GROWTH);
		err = err ? -ENOSPC : insert(steer, &key, value);
	}
	if (err || !is_connected(rule))
		return err;
	err = note_connected(steer, true);
	if (!err) {
		steer->connected_cnt++;
		return 0;
	}
	steer->now.has_connected = false;
	(void)!bpf_map_delete_elem(steer->rules, &key);
	return err;
}

void steer_rights_go(struct steer *steer)
{
	if (steer->rules_max < STEER_RULES_FIXED && rights_is_net_admin())
		(void)!grow(steer, STEER_RULES_FIXED);
}

void steer_remove(struct steer *steer, const struct flow_rule *rule)
{
	struct steer_key key = key_of(rule);

	if (bpf_map_delete_elem(steer->rules, &key) != 0 || !is_connected(rule))
		return;
	steer->connected_cnt--;
	if (note_connected(steer, steer->connected_cnt > 0) != 0)
		log_dbg("%d: the steering program keeps looking for connected sockets",
			steer->params.ifindex);
}
