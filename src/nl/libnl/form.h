/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard in front of libnl's parsers, which trust the kernel: they ignore bytes
 * that make no attribute, they read beyond the end of a list of next hops if it
 * lies about a length, and they follow a null pointer when a link's kind has
 * nothing but statistics. So we check each message against a form first. All of it
 * must be attributes, and those that the form names must have the right size. All
 * other attributes are hidden from the parsers. So an attribute of a later kernel,
 * which nobody here asks for, does not make libnl refuse a link.
 */
#ifndef NL_LIBNL_FORM_H
#define NL_LIBNL_FORM_H

#include <netlink/attr.h>
#include <netlink/msg.h>

#include "base/compiler.h"

struct form {
	/* the size of what stands between the message's header and the attributes */
	int head_size;
	/* types that have a line in `policy`; those of empty lines are hidden */
	int type_max;
	const struct nla_policy *policy;
};

/* Lines of a policy. */
#define FORM_SIZE(size) { .minlen = (size), .maxlen = (size) }
#define FORM_BYTES(max) { .type = NLA_UNSPEC, .maxlen = (max) }
#define FORM_NAME { .type = NLA_STRING, .maxlen = IFNAMSIZ }
#define FORM_U8 { .type = NLA_U8 }
#define FORM_U16 { .type = NLA_U16 }
#define FORM_U32 { .type = NLA_U32 }
#define FORM_NEST { .type = NLA_NESTED }

/*
 * Sorts a message's attributes into attrs[0..type_max]; of several of one type, the
 * last one counts. Returns the highest type that is there, or -EBADMSG: something
 * does not fit the form, and nothing in the message can be trusted.
 */
int form_check(struct nlmsghdr *msg, const struct form *form,
	       struct nlattr **attrs) MUST_CHECK;
/* Does the same for the attributes inside another one. */
int form_check_nested(struct nlattr *nest, const struct form *form,
		      struct nlattr **attrs) MUST_CHECK;
/* Does the same for attributes in any memory. */
int form_check_bytes(void *bytes, int len, const struct form *form,
		     struct nlattr **attrs) MUST_CHECK;

/* Hides the attribute from everybody who parses the message afterwards. NULL is
 * allowed. */
void form_hide(struct nlattr *attr);

#endif
