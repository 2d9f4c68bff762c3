/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attributes of netlink messages, from bytes nobody vouches for. Attributes are
 * sorted into a table by type; getters leave their output alone when an attribute
 * is absent and fail when it is too short, so that a message can be read as a list
 * of getters joined by &&.
 */
#ifndef NL_NETLINK_ATTR_H
#define NL_NETLINK_ATTR_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

struct attr {
	/* NULL: absent */
	const uint8_t *data;
	size_t len;
};

/* Attributes one after the other. */
struct attr_walk {
	const uint8_t *at;
	size_t left;
	uint16_t type; /* of the one just taken, without the flags */
	struct attr attr;
	bool is_bad; /* what is left makes no sense */
};

static inline struct attr_walk attr_walk_in(const uint8_t *data, size_t len)
{
	return (struct attr_walk){ .at = data, .left = len };
}

/* Takes the next attribute. False at the end, and when it is bad. */
bool attr_walk_next(struct attr_walk *walk);

/* Sorts attributes into attrs[0..max] by type, the last of a type wins. Returns
 * the highest type met, or -EBADMSG. */
int attr_sort(const uint8_t *data, size_t len, struct attr *attrs,
	      unsigned max) MUST_CHECK;
/* The same for the attributes inside another; nothing when that is absent. */
int attr_sort_nested(const struct attr *nest, struct attr *attrs, unsigned max)
	MUST_CHECK;

/* Both parts of a message whose length is sound: copies the `head_size` bytes
 * behind its header and sorts the attributes behind those. As attr_sort. */
int attr_sort_message(const struct nlmsghdr *msg, void *head_out,
		      size_t head_size, struct attr *attrs, unsigned max)
	MUST_CHECK;

static inline bool attr_is_present(const struct attr *attr)
{
	return attr->data;
}

bool attr_get_u8(const struct attr *attr, uint8_t *out) MUST_CHECK;
bool attr_get_u16(const struct attr *attr, uint16_t *out) MUST_CHECK;
bool attr_get_u32(const struct attr *attr, uint32_t *out) MUST_CHECK;
/* A positive number, as indices of interfaces are; 0 is allowed. */
bool attr_get_index(const struct attr *attr, int *out) MUST_CHECK;
/* An address of the family, whose length must be exact. */
bool attr_get_addr(const struct attr *attr, int family, struct ip_addr *out)
	MUST_CHECK;
/* A string of at least one byte that fits with its NUL; the rest of `out` is
 * filled with zeros. */
bool attr_get_name(const struct attr *attr, char *out, size_t size) MUST_CHECK;
/* At most `size` bytes. */
bool attr_get_bytes(const struct attr *attr, void *out, size_t size,
		    size_t *len_out) MUST_CHECK;

#endif
