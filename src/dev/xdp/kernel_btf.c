/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's description of its types (kernel_btf.h). */
#include "config.h"

#include "dev/xdp/kernel_btf.h"

#include <string.h>

#include "base/btf.h"
#include "base/compiler.h"
#include "dev/xdp/steer.h"

struct member_place {
	const char *name;
	uint32_t offset;
};

static const struct btf_type *type_of(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = NULL;
	uint32_t at = 0;

	do
		type = btf_next(btf, &at);
	while (type && --id);
	return type;
}

/* Whether the member lies there in the struct or union, or in a nameless one
 * inside it. */
static bool has_member(const struct btf *btf, const struct btf_type *type,
		       const struct member_place *place, uint32_t from,
		       int depth)
{
	const struct btf_member *members = (const void *)(type + 1);
	uint32_t cnt = BTF_INFO_VLEN(type->info);

	for (uint32_t i = 0; i < cnt; i++) {
		const char *name = btf_string(btf, members[i].name_off);
		uint32_t offset = from + BTF_MEMBER_BIT_OFFSET(members[i].offset);
		const struct btf_type *inner;

		if (*name) {
			if (strcmp(name, place->name) == 0)
				return offset == place->offset * 8;
			continue;
		}
		inner = depth ? type_of(btf, members[i].type) : NULL;
		if (inner &&
		    (BTF_INFO_KIND(inner->info) == BTF_KIND_STRUCT ||
		     BTF_INFO_KIND(inner->info) == BTF_KIND_UNION) &&
		    has_member(btf, inner, place, offset, depth - 1))
			return true;
	}
	return false;
}

static bool has_members(const struct btf *btf, const struct btf_type *type,
			const struct member_place *places, size_t cnt)
{
	enum { DEPTH = 3 };

	for (size_t i = 0; i < cnt; i++)
		if (!type || !has_member(btf, type, &places[i], 0, DEPTH))
			return false;
	return true;
}

static const struct member_place xdp_buff_places[] = {
	{ "data_hard_start", offsetof(struct steer_xdp_buff, data_hard_start) },
	{ "frame_sz", offsetof(struct steer_xdp_buff, frame_sz) },
};

static const struct member_place shared_info_places[] = {
	{ "meta_len", offsetof(struct steer_shared_info, meta_len) },
	{ "gso_size", offsetof(struct steer_shared_info, gso_size) },
};

struct kernel_btf kernel_btf_parse(const void *bytes, size_t len)
{
	const struct btf_type *type, *xdp_buff = NULL, *shared_info = NULL;
	struct kernel_btf found = { 0 };
	struct btf btf;
	uint32_t at = 0;

	if (!btf_open(bytes, len, &btf))
		return found;
	for (uint32_t id = 1; (type = btf_next(&btf, &at)); id++) {
		uint32_t kind = BTF_INFO_KIND(type->info);
		const char *name;

		if (kind != BTF_KIND_FUNC && kind != BTF_KIND_STRUCT)
			continue;
		name = btf_name(&btf, type);
		if (kind == BTF_KIND_FUNC && *name != 'b')
			continue;
		if (kind == BTF_KIND_FUNC) {
			if (strcmp(name, "bpf_cast_to_kern_ctx") == 0)
				found.cast_to_kern_ctx = id;
			else if (strcmp(name, "bpf_rdonly_cast") == 0)
				found.rdonly_cast = id;
			else if (strcmp(name, "bpf_xdp_metadata_rx_vlan_tag") ==
				 0)
				found.rx_vlan_tag = id;
		} else if (strcmp(name, "xdp_buff") == 0) {
			xdp_buff = type;
		} else if (strcmp(name, "skb_shared_info") == 0) {
			shared_info = type;
			found.shared_info = id;
			found.shared_info_size = type->size;
		}
	}
	if (at != btf.types_len)
		return (struct kernel_btf){ 0 };
	found.has_known_layout =
		has_members(&btf, xdp_buff, xdp_buff_places,
			    ARRAY_LEN(xdp_buff_places)) &&
		has_members(&btf, shared_info, shared_info_places,
			    ARRAY_LEN(shared_info_places));
	return found;
}
