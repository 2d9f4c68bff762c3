/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the kernel's BTF; see sight.h. */
#include "config.h"

#include "sight.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/btf.h"
#include "sys.h"

/* Several times what kernels have. */
enum { BTF_MAX = 64 << 20 };

/* The bytes, to be freed; NULL: there are none. */
static void *read_btf(size_t *len_out)
{
	int fd = sys_openat(AT_FDCWD, "/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC, 0);
	size_t len = 0;
	ssize_t n = 1;
	uint8_t *bytes;

	if (fd < 0)
		return NULL;
	bytes = malloc(BTF_MAX);
	while (bytes && len < BTF_MAX && n > 0) {
		n = sys_read(fd, bytes + len, BTF_MAX - len);
		len += n > 0 ? (size_t)n : 0;
		if (n == -EINTR)
			n = 1;
	}
	sys_close(fd);
	*len_out = len;
	return bytes;
}

/* In bytes; -1: it has no such member. */
static int32_t member_at(const struct btf *btf, const struct btf_type *type, const char *name)
{
	const struct btf_member *members = (const void *)(type + 1);
	uint32_t cnt = BTF_INFO_VLEN(type->info);

	for (uint32_t i = 0; i < cnt; i++)
		if (strcmp(btf_string(btf, members[i].name_off), name) == 0)
			return (int32_t)(BTF_MEMBER_BIT_OFFSET(members[i].offset) / 8);
	return -1;
}

static void look_at(const struct btf *btf, const struct btf_type *type, uint32_t id,
		    struct sight *sight)
{
	const char *name = btf_name(btf, type);
	uint32_t kind = BTF_INFO_KIND(type->info);

	if (kind == BTF_KIND_FUNC && strcmp(name, "bpf_cast_to_kern_ctx") == 0) {
		sight->cast = (int32_t)id;
	} else if (kind == BTF_KIND_STRUCT && strcmp(name, "sk_buff") == 0) {
		sight->head = (int16_t)member_at(btf, type, "head");
		sight->end = (int16_t)member_at(btf, type, "end");
	} else if (kind == BTF_KIND_STRUCT && strcmp(name, "skb_shared_info") == 0) {
		sight->meta_len = member_at(btf, type, "meta_len");
	}
}

int sight_find(struct sight *sight)
{
	const struct btf_type *type;
	uint32_t at = 0;
	size_t len = 0;
	void *bytes = read_btf(&len);
	struct btf btf;

	*sight = (struct sight){ 0, -1, -1, -1 };
	if (bytes && btf_open(bytes, len, &btf))
		for (uint32_t id = 1; (type = btf_next(&btf, &at)); id++)
			look_at(&btf, type, id, sight);
	free(bytes);
	return sight->cast && sight->head >= 0 && sight->end >= 0 && sight->meta_len >= 0 ?
		       0 :
		       -ENOTSUP;
}
