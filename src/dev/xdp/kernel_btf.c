/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's description of its types (kernel_btf.h). */
#include "config.h"

#include "dev/xdp/kernel_btf.h"

#include <linux/btf.h>
#include <string.h>

#include "base/compiler.h"
#include "dev/xdp/steer.h"

/* Checked parts of the bytes. */
struct btf {
	const uint8_t *types;
	uint32_t types_len;
	const char *strings;
	uint32_t strings_len;
};

struct member_place {
	const char *name;
	uint32_t offset;
};

static bool is_within(uint64_t offset, uint64_t len, size_t size)
{
	return offset + len <= size;
}

static bool open_btf(const uint8_t *bytes, size_t len, struct btf *btf)
{
	struct btf_header header;

	if (len < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.magic != BTF_MAGIC || header.hdr_len < sizeof(header) ||
	    header.hdr_len % 4 || header.type_off % 4 ||
	    !is_within((uint64_t)header.hdr_len + header.type_off,
		       header.type_len, len) ||
	    !is_within((uint64_t)header.hdr_len + header.str_off,
		       header.str_len, len) ||
	    !header.str_len)
		return false;
	btf->types = bytes + header.hdr_len + header.type_off;
	btf->types_len = header.type_len;
	btf->strings = (const char *)bytes + header.hdr_len + header.str_off;
	btf->strings_len = header.str_len;
	/* this ends comparisons of strings */
	return btf->strings[btf->strings_len - 1] == '\0';
}

static const char *name_at(const struct btf *btf, uint32_t offset)
{
	return btf->strings + MIN(offset, btf->strings_len - 1);
}

/* The number of bytes that follow a type's first part; UINT32_MAX for an unknown
 * kind. */
static uint32_t extra_len(const struct btf_type *type)
{
	uint32_t cnt = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return cnt * 8;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return cnt * 12;
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return UINT32_MAX;
	}
}

/* Returns the type at *at, and moves on. NULL at the end, and for bytes that are no
 * type. */
static inline const struct btf_type *next_type(const struct btf *btf,
					       uint32_t *at)
{
	const struct btf_type *type = (const void *)(btf->types + *at);
	uint32_t left = btf->types_len - *at, extra;

	if (left < sizeof(*type))
		return NULL;
	extra = extra_len(type);
	if (extra > left - sizeof(*type))
		return NULL;
	*at += (uint32_t)sizeof(*type) + extra;
	return type;
}

static const struct btf_type *type_of(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = NULL;
	uint32_t at = 0;

	do
		type = next_type(btf, &at);
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
		const char *name = name_at(btf, members[i].name_off);
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

	if (!open_btf(bytes, len, &btf))
		return found;
	for (uint32_t id = 1; (type = next_type(&btf, &at)); id++) {
		uint32_t kind = BTF_INFO_KIND(type->info);
		const char *name;

		if (kind != BTF_KIND_FUNC && kind != BTF_KIND_STRUCT)
			continue;
		name = name_at(&btf, type->name_off);
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
