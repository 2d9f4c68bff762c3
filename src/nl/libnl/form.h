/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard in front of libnl's parsers. They trust the kernel: bytes that do not
 * make an attribute are passed over, a list of next hops that lies about a length is
 * read beyond its end, and a link whose kind has nothing but statistics is a null
 * pointer. So a message is held against a form first: all of it must be attributes,
 * those that the form names must have the right size, and all others are hidden from
 * whoever parses next. That also keeps a link from being refused for an attribute of
 * a later kernel that nobody here asks for.
 */
#ifndef NL_LIBNL_FORM_H
#define NL_LIBNL_FORM_H

#include <netlink/attr.h>
#include <netlink/msg.h>

#include "base/compiler.h"

struct form {
	/* of what stands between the message's header and the attributes */
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
 * Sorts a message's attributes into attrs[0..type_max]; the last of a type counts.
 * The highest type that is there, or -EBADMSG: something does not fit the form, and
 * nothing of the message is to be believed.
 */
int form_check(struct nlmsghdr *msg, const struct form *form,
	       struct nlattr **attrs) MUST_CHECK;
/* The same for the attributes inside another. */
int form_check_nested(struct nlattr *nest, const struct form *form,
		      struct nlattr **attrs) MUST_CHECK;
/* The same for any memory. */
int form_check_bytes(void *bytes, int len, const struct form *form,
		     struct nlattr **attrs) MUST_CHECK;

/* Nobody who parses after us sees the attribute; NULL is allowed. */
void form_hide(struct nlattr *attr);

#endif
