/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks messages against forms. */
#include "config.h"

#include "nl/libnl/form.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>

/* The highest type there can be: no message has it, and no parser knows it. */
enum { HIDDEN_TYPE = 0x3fff };

void form_hide(struct nlattr *attr)
{
	if (attr)
		attr->nla_type = HIDDEN_TYPE;
}

static bool is_wanted(const struct form *form, int type)
{
	const struct nla_policy *line = &form->policy[type];

	return type <= form->type_max &&
	       (line->type || line->minlen || line->maxlen);
}

int form_check_bytes(void *bytes, int len, const struct form *form,
		     struct nlattr **attrs)
{
	int left, highest = 0;
	struct nlattr *attr;

	nla_for_each_attr(attr, (struct nlattr *)bytes, len, left) {
		int type = nla_type(attr);

		highest = MAX(highest, type);
		if (!is_wanted(form, type))
			form_hide(attr);
	}
	/* The last attribute may have no padding. */
	if (left > 0 ||
	    nla_parse(attrs, form->type_max, bytes, len, form->policy) < 0)
		return -EBADMSG;
	return highest;
}

int form_check(struct nlmsghdr *msg, const struct form *form,
	       struct nlattr **attrs)
{
	if (!nlmsg_valid_hdr(msg, form->head_size))
		return -EBADMSG;
	return form_check_bytes(nlmsg_attrdata(msg, form->head_size),
				nlmsg_attrlen(msg, form->head_size), form,
				attrs);
}

int form_check_nested(struct nlattr *nest, const struct form *form,
		      struct nlattr **attrs)
{
	return form_check_bytes(nla_data(nest), nla_len(nest), form, attrs);
}
