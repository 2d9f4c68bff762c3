/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loading, attaching and filling the steering program (steer.h). */
#include "config.h"

#include "dev/xdp/steer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "dev/xdp/steer_object.h"
#include "dev/xdp/xdp_priv.h"

struct steer {
	/* Copies of libbpf's, among the library's own fds: a program that closes
	 * all it has must not make us write to another file. */
	_Atomic int prog, queues, rules, config;
	_Atomic int link;
	/* lets everything through; for steer_pass */
	_Atomic int pass;
	uint32_t prog_id;
	int ifindex;
	struct steer_config now;
};

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

static int copy_fd(int fd, _Atomic int *slot)
{
	int copy = fd < 0 ? -1 : real.fcntl(fd, F_DUPFD_CLOEXEC, (void *)0);

	return copy < 0 ? -errno : xdp_adopt_fd(copy, slot);
}

static int copy_map(const struct bpf_object *object, const char *name,
		    _Atomic int *slot)
{
	return copy_fd(bpf_object__find_map_fd_by_name(object, name), slot);
}

static int copy_fds(struct steer *steer, const struct bpf_object *object)
{
	struct bpf_program *prog =
		bpf_object__find_program_by_name(object, "steer");
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int err = copy_fd(bpf_program__fd(prog), &steer->prog);

	if (!err)
		err = copy_map(object, "queues", &steer->queues);
	if (!err)
		err = copy_map(object, "rules", &steer->rules);
	if (!err)
		err = copy_map(object, "config", &steer->config);
	if (!err && bpf_obj_get_info_by_fd(steer->prog, &info, &len) != 0)
		err = -errno;
	steer->prog_id = info.id;
	return err;
}

static void close_fds(struct steer *steer)
{
	_Atomic int *slots[] = { &steer->prog, &steer->queues, &steer->rules,
				 &steer->config, &steer->pass };

	for (size_t i = 0; i < ARRAY_LEN(slots); i++)
		if (atomic_load(slots[i]) >= 0)
			services_close_fd(slots[i]);
}

static void take_several(const struct bpf_object *object)
{
	bpf_program__set_flags(bpf_object__find_program_by_name(object, "steer"),
			       BPF_F_XDP_HAS_FRAGS);
}

/* What libbpf needs to load a program is not needed to run it. */
static int load(struct steer *steer, bool is_single)
{
	struct bpf_object *object =
		bpf_object__open_mem(steer_object, steer_object_size, NULL);
	int err;

	if (!object)
		return -errno;
	if (!is_single)
		take_several(object);
	err = bpf_object__load(object);
	if (!err)
		err = copy_fds(steer, object);
	bpf_object__close(object);
	return err;
}

/* Now, since the right to may be gone later. */
static int load_pass(struct steer *steer)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "vma_pass", "Dual BSD/GPL",
			       insns, ARRAY_LEN(insns), NULL);

	return fd < 0 ? -errno : xdp_adopt_fd(fd, &steer->pass);
}

int steer_create(const uint8_t *mac, bool is_single, struct steer **steer_out)
{
	struct steer *steer = calloc(1, sizeof(*steer));
	int err;

	if (!steer)
		return -ENOMEM;
	atomic_init(&steer->prog, -1);
	atomic_init(&steer->queues, -1);
	atomic_init(&steer->rules, -1);
	atomic_init(&steer->config, -1);
	atomic_init(&steer->link, -1);
	atomic_init(&steer->pass, -1);
	memcpy(steer->now.mac, mac, sizeof(steer->now.mac));
	libbpf_set_print(say);
	err = load(steer, is_single);
	if (!err)
		err = load_pass(steer);
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
	steer_detach(steer);
	close_fds(steer);
	free(steer);
}

int steer_set_queue(struct steer *steer, uint32_t queue, int xsk_fd)
{
	return bpf_map_update_elem(steer->queues, &queue, &xsk_fd, BPF_ANY) ?
		       -errno :
		       0;
}

/* By a link that nobody pins: it dies with us. */
int steer_attach(struct steer *steer, int ifindex, bool is_native)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = is_native ? XDP_FLAGS_DRV_MODE :
					 XDP_FLAGS_SKB_MODE);
	int fd = bpf_link_create(steer->prog, ifindex, BPF_XDP, &opts);

	if (fd < 0)
		return -errno;
	steer->ifindex = ifindex;
	return xdp_adopt_fd(fd, &steer->link);
}

void steer_detach(struct steer *steer)
{
	if (atomic_load(&steer->link) >= 0)
		services_close_fd(&steer->link);
}

int steer_check(const struct steer *steer)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(atomic_load(&steer->link), &info, &len) != 0)
		return -errno;
	if (info.xdp.ifindex != (uint32_t)steer->ifindex)
		return -ENODEV;
	return info.prog_id == steer->prog_id ? 0 : -EBUSY;
}

int steer_pass(struct steer *steer, const void *frame, uint32_t len)
{
	struct xdp_md where = {
		.data_end = len,
		.ingress_ifindex = (uint32_t)steer->ifindex,
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .data_size_in = len, .ctx_in = &where,
		    .ctx_size_in = sizeof(where), .repeat = 1,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	return bpf_prog_test_run_opts(atomic_load(&steer->pass), &opts) ?
		       -errno :
		       0;
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

int steer_add(struct steer *steer, const struct flow_rule *rule)
{
	struct steer_key key = key_of(rule);
	uint32_t value = 1;

	if (bpf_map_update_elem(steer->rules, &key, &value, BPF_NOEXIST) != 0)
		return errno == E2BIG ? -ENOSPC : -errno;
	if (!is_connected(rule))
		return 0;
	steer->now.connected_cnt++;
	return write_config(steer);
}

void steer_remove(struct steer *steer, const struct flow_rule *rule)
{
	struct steer_key key = key_of(rule);

	if (bpf_map_delete_elem(steer->rules, &key) != 0 || !is_connected(rule))
		return;
	steer->now.connected_cnt--;
	if (write_config(steer) != 0)
		log_dbg("%d: the steering program keeps looking for connected sockets",
			steer->ifindex);
}
