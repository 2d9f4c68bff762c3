/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loading and attaching the steering program (steer_load.h). */
#include "config.h"

#include "dev/xdp/steer_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/linux_compat.h"
#include "dev/xdp/kernel_btf.h"
#include "dev/xdp/steer.h"
#include "dev/xdp/steer_object.h"
#include "os/inside.h"
#include "os/kernel_types.h"
#include "os/real.h"

/* The program for each sight. */
static const char *const programs[] = {
	[STEER_SIGHT_BYTES] = "steer_by_bytes",
	[STEER_SIGHT_GSO] = "steer_by_gso",
	[STEER_SIGHT_TAG] = "steer_by_tag",
};

/* -- whose functions they are -------------------------------------------------------- */

/* What is called here and in dev/xdp, and what libbpf calls of itself when it loads. */
static const void *const functions[] = {
	bpf_btf_load,
	bpf_link_create,
	bpf_link_update,
	bpf_map__fd,
	bpf_map__reuse_fd,
	bpf_map__set_max_entries,
	bpf_map_create,
	bpf_map_delete_elem,
	bpf_map_freeze,
	bpf_map_lookup_batch,
	bpf_map_lookup_elem,
	bpf_map_update_batch,
	bpf_map_update_elem,
	bpf_obj_get_info_by_fd,
	bpf_object__close,
	bpf_object__find_map_by_name,
	bpf_object__find_program_by_name,
	bpf_object__load,
	bpf_object__next_program,
	bpf_object__open_mem,
	bpf_prog_load,
	bpf_program__fd,
	bpf_program__insn_cnt,
	bpf_program__insns,
	bpf_program__set_autoload,
	bpf_program__set_flags,
	bpf_program__set_ifindex,
	bpf_program__set_insns,
	btf__fd,
	btf__find_by_name_kind,
	btf__free,
	btf__load_vmlinux_btf,
	btf__name_by_offset,
	btf__type_by_id,
};

/* The linker finds the same function for libbpf as for us. One whose object is not known
 * counts as libbpf's. */
bool steer_load_is_possible(void)
{
	Dl_info libbpf, found;

	if (!dladdr(libbpf_set_print, &libbpf))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		if (dladdr(functions[i], &found) && found.dli_fbase != libbpf.dli_fbase)
			return false;
	return true;
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

/* We read this once, since the kernel does not change, and reading takes a
 * millisecond. Under the control mutex. */
static const struct kernel_btf *read_kernel(void)
{
	static struct kernel_btf found;
	static bool is_read;
	size_t len;
	void *mem;

	if (is_read)
		return &found;
	is_read = true;
	mem = kernel_types_map(&len);
	if (mem) {
		found = kernel_btf_parse(mem, len);
		munmap(mem, len);
	}
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

/* Chooses this program of the object, and sets it up as the parameters say. */
static int prepare(const struct keeper_request *request,
		   const struct bpf_object *object, struct bpf_program *wanted)
{
	struct bpf_program *prog;
	uint32_t flags = request->flags & KEEPER_SINGLE ? 0 : BPF_F_XDP_HAS_FRAGS;

	bpf_object__for_each_program(prog, object)
		bpf_program__set_autoload(prog, prog == wanted);
	if (request->sight == STEER_SIGHT_BYTES)
		return bpf_program__set_flags(wanted, flags);
	if (request->sight == STEER_SIGHT_TAG) {
		/* it asks the driver, and is for this interface alone */
		flags |= BPF_F_XDP_DEV_BOUND_ONLY;
		bpf_program__set_ifindex(wanted, (uint32_t)request->ifindex);
	}
	bpf_program__set_flags(wanted, flags);
	return complete(wanted);
}

/* The maps' names in the object. */
static const char *const maps[] = {
	[STEER_FD_RULES] = "rules",
	[STEER_FD_QUEUES] = "queues",
	[STEER_FD_CONFIG] = "config",
	[STEER_FD_COUNTS] = "counts",
};

static struct bpf_map *map_of(const struct bpf_object *object, enum steer_fd which)
{
	return bpf_object__find_map_by_name(object, maps[which]);
}

static int set_up(const struct keeper_request *request, const int *kept,
		  const struct bpf_object *object)
{
	int err = bpf_map__set_max_entries(map_of(object, STEER_FD_RULES),
					   request->rules_max);

	for (int i = 0; i < STEER_KEPT_CNT && kept && !err; i++)
		err = bpf_map__reuse_fd(map_of(object, STEER_FD_QUEUES + i), kept[i]);
	return err ? err :
		     prepare(request, object,
			     bpf_object__find_program_by_name(
				     object, programs[request->sight]));
}

/* What libbpf needs to load the program is not needed to run it, so these are copies. */
static int copy_fds(const struct keeper_request *request, const struct bpf_object *object,
		    int cnt, int *fds)
{
	const struct bpf_program *prog = bpf_object__find_program_by_name(
		object, programs[request->sight]);
	int err;

	for (int i = 0; i < cnt; i++) {
		int fd = i == STEER_FD_PROG ?
				 bpf_program__fd(prog) :
				 bpf_map__fd(map_of(object, (enum steer_fd)i));

		fds[i] = real.fcntl(fd, F_DUPFD_CLOEXEC, (void *)0);
		if (fds[i] >= 0)
			continue;
		err = -errno;
		while (i--)
			inside_close(fds[i]);
		return err;
	}
	return 0;
}

int steer_load(const struct keeper_request *request, const int *kept, int *fds)
{
	struct bpf_object *object;
	int err;

	if (request->sight >= ARRAY_LEN(programs) ||
	    request->rules_max < STEER_RULES_FIRST ||
	    request->rules_max > STEER_RULES_MAX)
		return -EINVAL;
	object = bpf_object__open_mem(steer_object, steer_object_size, NULL);
	if (!object)
		return -errno;
	err = set_up(request, kept, object);
	if (!err)
		err = bpf_object__load(object);
	if (!err)
		err = copy_fds(request, object, kept ? STEER_FD_QUEUES : STEER_FD_CNT,
			       fds);
	bpf_object__close(object);
	return err;
}

int steer_load_id(int prog, uint32_t *id_out)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(prog, &info, &len) != 0)
		return -errno;
	*id_out = info.id;
	return info.type == BPF_PROG_TYPE_XDP ? 0 : -EINVAL;
}

/* By a link that is not pinned, so that it goes when the process ends. */
int steer_load_attach(const struct keeper_request *request, int prog)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = request->flags & KEEPER_NATIVE ? XDP_FLAGS_DRV_MODE :
							      XDP_FLAGS_SKB_MODE);
	int fd = bpf_link_create(prog, request->ifindex, BPF_XDP, &opts);

	/* EEXIST: another program is there in the other mode */
	if (fd < 0)
		return errno == EEXIST ? -EBUSY : -errno;
	return fd;
}
