/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading BTF (btf.h). */
#include "config.h"

#include "base/btf.h"

#include <string.h>

#include "base/compiler.h"

static bool is_within(uint64_t offset, uint64_t len, size_t size)
{
	return offset + len <= size;
}

bool btf_open(const void *bytes, size_t len, struct btf *btf)
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
	btf->types = (const uint8_t *)bytes + header.hdr_len + header.type_off;
	btf->types_len = header.type_len;
	btf->strings = (const char *)bytes + header.hdr_len + header.str_off;
	btf->strings_len = header.str_len;
	/* this ends comparisons of strings */
	return btf->strings[btf->strings_len - 1] == '\0';
}

const char *btf_string(const struct btf *btf, uint32_t offset)
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

const struct btf_type *btf_next(const struct btf *btf, uint32_t *at)
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

const char *btf_name(const struct btf *btf, const struct btf_type *type)
{
	return btf_string(btf, type->name_off);
}

uint32_t btf_function(const void *bytes, size_t len, const char *name)
{
	const struct btf_type *type;
	struct btf btf;
	uint32_t at = 0;

	if (!btf_open(bytes, len, &btf))
		return 0;
	for (uint32_t id = 1; (type = btf_next(&btf, &at)); id++)
		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    strcmp(btf_name(&btf, type), name) == 0)
			return id;
	return 0;
}
