/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own description of its types and functions, BTF, as bytes. This reader does
 * no I/O. libbpf's reader takes ten times as long, since it makes tables of all hundred
 * thousand types.
 */
#ifndef BASE_BTF_H
#define BASE_BTF_H

#include <linux/btf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checked parts of the bytes. */
struct btf {
	const uint8_t *types;
	uint32_t types_len;
	const char *strings;
	uint32_t strings_len;
};

/* False when the bytes are no BTF, or end too early. */
bool btf_open(const void *bytes, size_t len, struct btf *btf_out);
/* Returns the type at *at, and moves on. NULL at the end, which is `types_len`, and for bytes
 * that are no type. Types are numbered from 1 on. */
const struct btf_type *btf_next(const struct btf *btf, uint32_t *at);
const char *btf_name(const struct btf *btf, const struct btf_type *type);
const char *btf_string(const struct btf *btf, uint32_t offset);
/* The number of a function, or 0: there is none of that name. */
uint32_t btf_function(const void *bytes, size_t len, const char *name);

#endif
