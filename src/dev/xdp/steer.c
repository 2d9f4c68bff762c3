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
#include <sys/mman.h>
#include <sys/stat.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "dev/xdp/kernel_btf.h"
#include "dev/xdp/steer_object.h"
#include "dev/xdp/xdp_priv.h"

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

/* The program for each sight. */
static const char *const programs[] = {
	[STEER_SIGHT_BYTES] = "steer_by_bytes",
	[STEER_SIGHT_GSO] = "steer_by_gso",
	[STEER_SIGHT_TAG] = "steer_by_tag",
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

static int copy_fds(struct steer *steer, const struct bpf_object *object,
		    const struct bpf_program *prog)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int err = copy_fd(bpf_program__fd(prog), &steer->prog);

	if (!err)
		err = copy_map(object, "queues", &steer->queues);
	if (!err)
		err = copy_map(object, "rules", &steer->rules);
	if (!err)
		err = copy_map(object, "config", &steer->config);
	if (!err)
		err = copy_map(object, "counts", &steer->counts);
	if (!err && bpf_obj_get_info_by_fd(steer->prog, &info, &len) != 0)
		err = -errno;
	steer->prog_id = info.id;
	return err;
}

static void close_fds(struct steer *steer)
{
	_Atomic int *slots[] = { &steer->link, &steer->prog, &steer->queues,
				 &steer->rules, &steer->config, &steer->counts };

	for (size_t i = 0; i < ARRAY_LEN(slots); i++)
		if (atomic_load(slots[i]) >= 0)
			services_close_fd(slots[i]);
}

/* -- what the program wants to know of the kernel --------------------------------- */

/* Rounds as the kernel does, whose allocations end on whole cache lines. */
static uint32_t align_to_line(uint32_t size)
{
	return (size + CACHE_LINE - 1) & ~(uint32_t)(CACHE_LINE - 1);
}

/* The value for a blank; 0: this kernel has none. */
static int32_t fill_blank(const struct kernel_btf *btf, int32_t blank)
{
	switch (blank) {
	case STEER_BLANK_KERN_CTX:
		return (int32_t)btf->cast_to_kern_ctx;
	case STEER_BLANK_RDONLY_CAST:
		return (int32_t)btf->rdonly_cast;
	case STEER_BLANK_RX_VLAN_TAG:
		return (int32_t)btf->rx_vlan_tag;
	case STEER_BLANK_SHARED_INFO:
		return btf->has_known_layout ? (int32_t)btf->shared_info : 0;
	case STEER_BLANK_SHARED_INFO_SIZE:
		return (int32_t)align_to_line(btf->shared_info_size);
	default:
		return 0;
	}
}

static bool is_blank(const struct bpf_insn *insn)
{
	return (insn->code == (BPF_JMP | BPF_CALL) ||
		insn->code == (BPF_ALU64 | BPF_MOV | BPF_K)) &&
	       insn->imm >= STEER_BLANK_KERN_CTX &&
	       insn->imm <= STEER_BLANK_SHARED_INFO_SIZE;
}

static int fill_blanks(const struct kernel_btf *btf, struct bpf_insn *insns,
		       size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (!is_blank(&insns[i]))
			continue;
		insns[i].imm = fill_blank(btf, insns[i].imm);
		if (!insns[i].imm)
			return -EOPNOTSUPP;
		if (insns[i].code == (BPF_JMP | BPF_CALL))
			insns[i].src_reg = BPF_PSEUDO_KFUNC_CALL;
	}
	return 0;
}

/* The file's bytes, as memory to be unmapped, or NULL. */
static void *map_bytes(int fd, size_t len)
{
	size_t done = 0;
	ssize_t cnt = 1;
	uint8_t *mem = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);

	if (mem != MAP_FAILED)
		return mem;
	/* Linux before 6.16 */
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	for (; done < len && cnt > 0; done += (size_t)MAX(cnt, 0))
		cnt = real.read(fd, mem + done, len - done);
	return mem;
}

/* We read this once, since the kernel does not change, and reading takes a
 * millisecond. Under the control mutex. */
static const struct kernel_btf *read_kernel(void)
{
	static struct kernel_btf found;
	static bool is_read;
	struct stat st;
	void *mem;
	int fd;

	if (is_read)
		return &found;
	is_read = true;
	fd = real.open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return &found;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		mem = map_bytes(fd, (size_t)st.st_size);
		if (mem) {
			found = kernel_btf_parse(mem, (size_t)st.st_size);
			munmap(mem, (size_t)st.st_size);
		}
	}
	real.close(fd);
	return &found;
}

static int complete(struct bpf_program *prog)
{
	size_t cnt = bpf_program__insn_cnt(prog);
	struct bpf_insn *insns = malloc(cnt * sizeof(*insns));
	int err;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(prog), cnt * sizeof(*insns));
	err = fill_blanks(read_kernel(), insns, cnt);
	if (!err)
		err = bpf_program__set_insns(prog, insns, cnt);
	free(insns);
	return err;
}

/* -- loading ----------------------------------------------------------------------- */

/* A map that another program has, too. */
struct kept_map {
	const char *name;
	int fd;
};

/* Chooses this program of the object, and sets it up as the parameters say. */
static int prepare(const struct steer_params *params,
		   const struct bpf_object *object, struct bpf_program *wanted)
{
	struct bpf_program *prog;
	uint32_t flags = params->is_single ? 0 : BPF_F_XDP_HAS_FRAGS;

	bpf_object__for_each_program(prog, object)
		bpf_program__set_autoload(prog, prog == wanted);
	if (params->sight == STEER_SIGHT_BYTES)
		return bpf_program__set_flags(wanted, flags);
	if (params->sight == STEER_SIGHT_TAG) {
		/* it asks the driver, and is for this interface alone */
		flags |= BPF_F_XDP_DEV_BOUND_ONLY;
		bpf_program__set_ifindex(wanted, (uint32_t)params->ifindex);
	}
	bpf_program__set_flags(wanted, flags);
	return complete(wanted);
}

/* Loads the program. It gets maps of its own, except for those in `kept`. What
 * libbpf needs to load the program is not needed to run it. On failure, NULL and
 * the error. */
static struct bpf_object *load(const struct steer_params *params,
			       const struct kept_map *kept, size_t kept_cnt,
			       int *err_out)
{
	struct bpf_object *object =
		bpf_object__open_mem(steer_object, steer_object_size, NULL);
	struct bpf_program *prog;
	int err = 0;

	if (!object) {
		*err_out = -errno;
		return NULL;
	}
	for (size_t i = 0; i < kept_cnt && !err; i++)
		err = bpf_map__reuse_fd(
			bpf_object__find_map_by_name(object, kept[i].name),
			kept[i].fd);
	prog = bpf_object__find_program_by_name(object,
						programs[params->sight]);
	if (!err)
		err = prepare(params, object, prog);
	if (!err)
		err = bpf_object__load(object);
	if (!err)
		return object;
	bpf_object__close(object);
	*err_out = err;
	return NULL;
}

static int load_first(struct steer *steer)
{
	int err;
	struct bpf_object *object = load(&steer->params, NULL, 0, &err);

	if (!object)
		return err;
	err = copy_fds(steer, object,
		       bpf_object__find_program_by_name(
			       object, programs[steer->params.sight]));
	bpf_object__close(object);
	return err;
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

/* Replaces the program that is attached by the same program on another table, in
 * one step. */
static int replace_program(struct steer *steer, int rules)
{
	const struct kept_map kept[] = {
		{ "rules", rules },
		{ "queues", atomic_load(&steer->queues) },
		{ "config", atomic_load(&steer->config) },
		{ "counts", atomic_load(&steer->counts) },
	};
	int link = atomic_load(&steer->link);
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int err, prog, copy;
	struct bpf_object *object =
		load(&steer->params, kept, ARRAY_LEN(kept), &err);

	if (!object)
		return err;
	err = 0;
	prog = bpf_program__fd(bpf_object__find_program_by_name(
		object, programs[steer->params.sight]));
	copy = real.fcntl(prog, F_DUPFD_CLOEXEC, (void *)0);
	if (copy < 0 || bpf_obj_get_info_by_fd(prog, &info, &len) != 0 ||
	    (link >= 0 && bpf_link_update(link, prog, NULL) != 0)) {
		err = -errno;
		if (copy >= 0)
			real.close(copy);
	} else {
		services_close_fd(&steer->prog);
		steer->prog_id = info.id;
		err = xdp_adopt_fd(copy, &steer->prog);
	}
	bpf_object__close(object);
	return err;
}

static int grow(struct steer *steer)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	uint32_t rules_max = steer->rules_max * STEER_RULES_GROWTH;
	int rules, err;

	if (rules_max > STEER_RULES_MAX)
		return -ENOSPC;
	rules = bpf_map_create(BPF_MAP_TYPE_HASH, "rules",
			       sizeof(struct steer_key), sizeof(uint32_t),
			       rules_max, &opts);
	if (rules < 0)
		return -errno;
	err = copy_rules(atomic_load(&steer->rules), rules);
	if (!err)
		err = replace_program(steer, rules);
	if (err) {
		real.close(rules);
		return err;
	}
	services_close_fd(&steer->rules);
	steer->rules_max = rules_max;
	return xdp_adopt_fd(rules, &steer->rules);
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
	steer->rules_max = STEER_RULES_FIRST;
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

/* Attaches by a link that is not pinned, so that it goes when the process ends. */
int steer_attach(struct steer *steer)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = steer->params.is_native ? XDP_FLAGS_DRV_MODE :
						       XDP_FLAGS_SKB_MODE);
	int fd = bpf_link_create(steer->prog, steer->params.ifindex, BPF_XDP,
				 &opts);

	/* EEXIST: another program is there in the other mode */
	if (fd < 0)
		return errno == EEXIST ? -EBUSY : -errno;
	return xdp_adopt_fd(fd, &steer->link);
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
		err = grow(steer);
		log_dbg("%d: a table for %u rules: %s", steer->params.ifindex,
			steer->rules_max * (err ? STEER_RULES_GROWTH : 1u),
			err ? strerror(-err) : "made");
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
