/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libvma.conf says which sockets of which programs are accelerated. A rule set is
 * plain data made from text; nothing here opens a file. There is no locking: the
 * owner must not call rules_parse() while others use the set, but any number of
 * threads may ask it at the same time.
 */
#ifndef CONF_RULES_H
#define CONF_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

struct rule;
struct rules;

enum rule_role {
	RULE_TCP_SERVER,
	RULE_TCP_CLIENT,
	RULE_UDP_SENDER,
	RULE_UDP_RECEIVER,
	RULE_UDP_CONNECT,
	RULE_ROLE_CNT,
};

enum rules_log_to {
	RULES_LOG_UNSAID,
	RULES_LOG_STDERR,
	RULES_LOG_SYSLOG,
	RULES_LOG_FILE,
};

/* The min-level that logs least. It is also the default. */
enum { RULES_LOG_LEVEL_MAX = 9 };

/* The log statements of a rule set; the last of each wins. */
struct rules_log {
	enum rules_log_to to;
	const char *file; /* of the last statement that named one */
	/* 0 to RULES_LOG_LEVEL_MAX. At 1 and below the owner logs each rule it
	 * has read (rules_print). */
	int min_level;
};

/* Where new rules go in the list of their role. */
enum rules_place {
	RULES_APPEND, /* a file: first come, first matched */
	RULES_PREPEND, /* rules added at run time: the latest first */
};

/* Takes one line without a newline. */
typedef void rules_line_fn(void *ctx, const char *line);

/* NULL only without memory. */
struct rules *rules_create(void) MUST_CHECK;
void rules_destroy(struct rules *rules);

/*
 * Adds the statements of `text` (len bytes, no NUL needed) to the set. `name` is
 * what messages call the text: a path, or "add_conf_rule". A statement that is
 * wrong is reported as name:line:column and what was expected, and the rest of
 * its line is skipped; everything else counts. Each text starts outside any
 * group if it appends, and goes on in the last group if it prepends.
 *
 * Returns the number of errors reported, or -ENOMEM, when statements up to the
 * one there was no memory for have been added.
 */
int rules_parse(struct rules *rules, const char *name, const char *text,
		size_t len, enum rules_place place, rules_line_fn *report,
		void *ctx) MUST_CHECK;

const struct rules_log *rules_log(const struct rules *rules);

/* How many groups and rules there are. */
size_t rules_group_cnt(const struct rules *rules);
size_t rules_rule_cnt(const struct rules *rules);

/* Prints each group and rule as a line that would parse to the same, in the order
 * of matching. */
void rules_print(const struct rules *rules, rules_line_fn *print, void *ctx);

/* Who asks: the program's file name without its path, as in argv[0], and
 * VMA_APPLICATION_ID. */
struct rules_who {
	const char *program;
	const char *id;
};

/* One end of a socket; the wildcard address and port 0 stand for themselves. */
struct rules_end {
	struct ip_addr addr;
	uint16_t port; /* host byte order */
};

struct rules_verdict {
	bool is_kernel; /* leave the socket to the kernel */
	/* What decided; NULL: no group is meant, or it has no such rule.
	 * Borrowed from the rule set. */
	const char *group; /* as it was written: "program id" */
	const struct rule *rule;
};

/* Where a rule was read: the name given to rules_parse(), and the line. */
const char *rule_source(const struct rule *rule);
int rule_line(const struct rule *rule);

/* The rule as it could have been written, at most RULE_TEXT_SIZE bytes; returns
 * `buf`. */
enum { RULE_TEXT_SIZE = 256 };
const char *rule_format(const struct rule *rule, char *buf);

/*
 * What the rules say about a socket in a role. The role decides which end counts:
 * the local one for servers and receivers, the remote one for senders, both for
 * clients and connected UDP. An end that does not count may be NULL. So may the
 * local end of a client that has none yet; it then only matches rules that have no
 * condition for it.
 */
struct rules_verdict rules_match(const struct rules *rules,
				 const struct rules_who *who,
				 enum rule_role role,
				 const struct rules_end *local,
				 const struct rules_end *remote);

enum rules_protocol { RULES_TCP, RULES_UDP };

/* Whether no socket of this protocol can be accelerated, so that socket() need
 * not even make an object for it. Rules for udp_connect do not take part. */
bool rules_is_all_kernel(const struct rules *rules, const struct rules_who *who,
			 enum rules_protocol protocol);

/* Whether some group is meant for this program and id. */
bool rules_has_group(const struct rules *rules, const struct rules_who *who);

/* Whether any program has rules of this role. */
bool rules_has_role(const struct rules *rules, enum rule_role role);

/* "tcp_server" and so on. */
const char *rule_role_name(enum rule_role role);
/* The role of that name, or RULE_ROLE_CNT. */
enum rule_role rule_role_find(const char *name, size_t len);

#endif
