/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inside of a rule set: groups of rules, which the parser fills and the matcher
 * reads. */
#ifndef CONF_RULES_PRIV_H
#define CONF_RULES_PRIV_H

#include "base/hash_tab.h"
#include "base/list.h"
#include "conf/rules.h"

enum rule_target {
	RULE_TO_OS,
	RULE_TO_VMA,
	RULE_TO_SDP, /* a transport of the past: such rules never match */
	RULE_TO_SA,  /* likewise */
	RULE_TO_ANY, /* "*": whatever can be had, so acceleration */
};

/* What one end of a socket must be like. */
struct rule_end {
	bool has_addr; /* else any address of either family */
	bool is_v4;    /* only IPv4 addresses; else only IPv6 ones */
	unsigned prefix_len; /* of 128 bits */
	struct ip_addr net;
	uint16_t first_port, last_port; /* inclusive */
};

struct rule {
	struct list link; /* in rule_group.rules */
	enum rule_role role;
	enum rule_target target;
	/* As written: which end `first` is depends on the role. */
	struct rule_end first;
	struct rule_end second; /* only if has_second */
	bool has_second;
	int line;
	const char *source; /* belongs to rules.sources */
};

struct rule_group {
	struct list link; /* in rules.groups */
	struct hash_link by_words; /* in rules.by_words */
	struct list rules[RULE_ROLE_CNT]; /* in order of matching */
	char *program; /* a glob */
	char *id;
	char *title; /* "program id" */
};

/* A name given to rules_parse(); verdicts point to it. */
struct rule_source {
	struct list link; /* in rules.sources */
	char name[];
};

struct rules {
	struct list groups;
	struct hash_tab by_words; /* the same, by program and id */
	struct list sources;
	struct rule_group *current; /* where new rules go; NULL at first */
	struct rules_log log;
	char *log_file; /* owned; log.file points to it */
};

/* Finds the group of these two words, or makes it. NULL: there is no memory. */
struct rule_group *rules_open_group(struct rules *rules, const char *program,
				    size_t program_len, const char *id,
				    size_t id_len);

/* Adds a copy of `rule` to the current group, or to the group "* *" if there is
 * none. -ENOMEM */
int rules_add(struct rules *rules, const struct rule *rule,
	      enum rules_place place) MUST_CHECK;

/* A lasting copy of the name, shared with equal ones. NULL: no memory. */
const char *rules_keep_source(struct rules *rules, const char *name);

/* The log file of that name. -ENOMEM */
int rules_set_log_file(struct rules *rules, const char *name, size_t len)
	MUST_CHECK;

/* Words of the language, by enum value. */
extern const char *const rule_target_names[];
extern const char *const rule_role_names[];

#endif
