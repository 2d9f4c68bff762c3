/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading attributes, length first. */
#include "config.h"

#include "nl/netlink_attr.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

bool attr_walk_next(struct attr_walk *walk)
{
	struct nlattr head;
	size_t step;

	if (!walk->left)
		return false;
	walk->is_bad = true;
	if (walk->left < sizeof(head))
		return false;
	memcpy(&head, walk->at, sizeof(head));
	if (head.nla_len < sizeof(head) || head.nla_len > walk->left)
		return false;
	walk->is_bad = false;
	walk->type = head.nla_type & NLA_TYPE_MASK;
	walk->attr.data = walk->at + sizeof(head);
	walk->attr.len = head.nla_len - sizeof(head);
	/* The last one may lack its padding. */
	step = MIN((size_t)NLA_ALIGN(head.nla_len), walk->left);
	walk->at += step;
	walk->left -= step;
	return true;
}

int attr_sort(const uint8_t *data, size_t len, struct attr *attrs, unsigned max)
{
	struct attr_walk walk = attr_walk_in(data, len);
	int highest = 0;

	memset(attrs, 0, (max + 1) * sizeof(*attrs));
	while (attr_walk_next(&walk)) {
		highest = MAX(highest, (int)walk.type);
		if (walk.type <= max)
			attrs[walk.type] = walk.attr;
	}
	return walk.is_bad ? -EBADMSG : highest;
}

int attr_sort_nested(const struct attr *nest, struct attr *attrs, unsigned max)
{
	return attr_sort(nest->data, nest->len, attrs, max);
}

int attr_sort_message(const struct nlmsghdr *msg, void *head_out,
		      size_t head_size, struct attr *attrs, unsigned max)
{
	const uint8_t *body = (const uint8_t *)msg + NLMSG_HDRLEN;
	size_t len = msg->nlmsg_len - NLMSG_HDRLEN;
	size_t skip = MIN((size_t)NLMSG_ALIGN(head_size), len);

	if (len < head_size)
		return -EBADMSG;
	memcpy(head_out, body, head_size);
	return attr_sort(body + skip, len - skip, attrs, max);
}

static bool get_number(const struct attr *attr, void *out, size_t size)
{
	if (!attr->data)
		return true;
	if (attr->len < size)
		return false;
	memcpy(out, attr->data, size);
	return true;
}

bool attr_get_u8(const struct attr *attr, uint8_t *out)
{
	return get_number(attr, out, sizeof(*out));
}

bool attr_get_u16(const struct attr *attr, uint16_t *out)
{
	return get_number(attr, out, sizeof(*out));
}

bool attr_get_u32(const struct attr *attr, uint32_t *out)
{
	return get_number(attr, out, sizeof(*out));
}

bool attr_get_index(const struct attr *attr, int *out)
{
	uint32_t value = (uint32_t)*out;

	if (!attr_get_u32(attr, &value) || value > INT_MAX)
		return false;
	*out = (int)value;
	return true;
}

bool attr_get_addr(const struct attr *attr, int family, struct ip_addr *out)
{
	__be32 v4;

	if (!attr->data)
		return true;
	if (family == AF_INET && attr->len == sizeof(v4)) {
		memcpy(&v4, attr->data, sizeof(v4));
		*out = ip_addr_from_v4(v4);
		return true;
	}
	if (family == AF_INET6 && attr->len == sizeof(out->byte)) {
		*out = ip_addr_from_v6(attr->data);
		return true;
	}
	return false;
}

bool attr_get_name(const struct attr *attr, char *out, size_t size)
{
	size_t len;

	if (!attr->data)
		return true;
	len = strnlen((const char *)attr->data, attr->len);
	if (len == 0 || len >= size)
		return false;
	memset(out, 0, size);
	memcpy(out, attr->data, len);
	return true;
}

bool attr_get_bytes(const struct attr *attr, void *out, size_t size,
		    size_t *len_out)
{
	if (!attr->data)
		return true;
	if (attr->len > size)
		return false;
	memcpy(out, attr->data, attr->len);
	*len_out = attr->len;
	return true;
}
