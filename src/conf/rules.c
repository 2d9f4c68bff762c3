/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rule set as data: making, filling, printing and freeing it. */
#include "config.h"

#include "conf/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "conf/rules_priv.h"

const char *const rule_target_names[] = {
	[RULE_TO_OS] = "os",
	[RULE_TO_VMA] = "vma",
	[RULE_TO_SDP] = "sdp",
	[RULE_TO_SA] = "sa",
	[RULE_TO_ANY] = "*",
	NULL,
};

const char *const rule_role_names[] = {
	[RULE_TCP_SERVER] = "tcp_server",
	[RULE_TCP_CLIENT] = "tcp_client",
	[RULE_UDP_SENDER] = "udp_sender",
	[RULE_UDP_RECEIVER] = "udp_receiver",
	[RULE_UDP_CONNECT] = "udp_connect",
	NULL,
};

struct rules *rules_create(void)
{
	struct rules *rules = calloc(1, sizeof(*rules));

	if (!rules)
		return NULL;
	list_init(&rules->groups);
	list_init(&rules->sources);
	rules->log.min_level = RULES_LOG_LEVEL_MAX;
	return rules;
}

static void free_group(struct rule_group *group)
{
	struct rule *rule, *following;

	for (int role = 0; role < RULE_ROLE_CNT; role++)
		LIST_FOR_EACH_SAFE(rule, following, &group->rules[role], link)
			free(rule);
	free(group->program);
	free(group->id);
	free(group->title);
	free(group);
}

void rules_destroy(struct rules *rules)
{
	struct rule_group *group, *following_group;
	struct rule_source *source, *following_source;

	if (!rules)
		return;
	LIST_FOR_EACH_SAFE(group, following_group, &rules->groups, link)
		free_group(group);
	hash_tab_release(&rules->by_words);
	LIST_FOR_EACH_SAFE(source, following_source, &rules->sources, link)
		free(source);
	free(rules->log_file);
	free(rules);
}

const struct rules_log *rules_log(const struct rules *rules)
{
	return &rules->log;
}

size_t rules_group_cnt(const struct rules *rules)
{
	const struct rule_group *group;
	size_t cnt = 0;

	LIST_FOR_EACH(group, &rules->groups, link)
		cnt++;
	return cnt;
}

size_t rules_rule_cnt(const struct rules *rules)
{
	const struct rule_group *group;
	const struct rule *rule;
	size_t cnt = 0;

	LIST_FOR_EACH(group, &rules->groups, link)
		for (int role = 0; role < RULE_ROLE_CNT; role++)
			LIST_FOR_EACH(rule, &group->rules[role], link)
				cnt++;
	return cnt;
}

static void print_group(const struct rule_group *group, rules_line_fn *print,
			void *ctx)
{
	static const char head[] = "application-id ";
	size_t size = sizeof(head) + strlen(group->title);
	char *line = malloc(size), text[RULE_TEXT_SIZE];
	const struct rule *rule;

	/* Words may be of any length; without memory the group has no name. */
	if (line)
		snprintf(line, size, "%s%s", head, group->title);
	print(ctx, line ? line : head);
	free(line);
	for (int role = 0; role < RULE_ROLE_CNT; role++)
		LIST_FOR_EACH(rule, &group->rules[role], link)
			print(ctx, rule_format(rule, text));
}

void rules_print(const struct rules *rules, rules_line_fn *print, void *ctx)
{
	const struct rule_group *group;

	LIST_FOR_EACH(group, &rules->groups, link)
		print_group(group, print, ctx);
}

const char *rule_source(const struct rule *rule)
{
	return rule->source;
}

int rule_line(const struct rule *rule)
{
	return rule->line;
}

static void add_end(struct text *t, const struct rule_end *end)
{
	char addr[IP_ADDR_TEXT_SIZE];

	if (!end->has_addr)
		text_add(t, "*");
	else if (end->is_v4)
		text_add(t, "%s/%u", ip_addr_format(&end->net, addr),
			 end->prefix_len - IP_PREFIX_V4);
	else
		text_add(t, "[%s/%u]", ip_addr_format(&end->net, addr),
			 end->prefix_len);
	if (end->first_port == 0 && end->last_port == UINT16_MAX)
		text_add(t, ":*");
	else if (end->first_port == end->last_port)
		text_add(t, ":%u", end->first_port);
	else
		text_add(t, ":%u-%u", end->first_port, end->last_port);
}

const char *rule_format(const struct rule *rule, char *buf)
{
	struct text t = text_in(buf, RULE_TEXT_SIZE);

	text_add(&t, "use %s %s ", rule_target_names[rule->target],
		 rule_role_names[rule->role]);
	add_end(&t, &rule->first);
	if (rule->has_second) {
		text_add(&t, ":");
		add_end(&t, &rule->second);
	}
	return buf;
}

const char *rule_role_name(enum rule_role role)
{
	return rule_role_names[role];
}

enum rule_role rule_role_find(const char *name, size_t len)
{
	enum rule_role role = 0;

	for (; role < RULE_ROLE_CNT; role++)
		if (strncmp(name, rule_role_names[role], len) == 0 &&
		    rule_role_names[role][len] == '\0')
			break;
	return role;
}

/* ---- for the parser ---- */

static bool is_word(const char *word, const char *s, size_t len)
{
	return strlen(word) == len && memcmp(word, s, len) == 0;
}

static struct rule_group *create_group(const char *program, size_t program_len,
				       const char *id, size_t id_len)
{
	struct rule_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	for (int role = 0; role < RULE_ROLE_CNT; role++)
		list_init(&group->rules[role]);
	group->program = strndup(program, program_len);
	group->id = strndup(id, id_len);
	group->title = malloc(program_len + id_len + sizeof(" "));
	if (!group->program || !group->id || !group->title) {
		free_group(group);
		return NULL;
	}
	sprintf(group->title, "%s %s", group->program, group->id);
	return group;
}

struct rule_group *rules_open_group(struct rules *rules, const char *program,
				    size_t program_len, const char *id,
				    size_t id_len)
{
	/* an address is no worse a seed than another one */
	uint64_t hash = hash_bytes((uintptr_t)rules, program, program_len);
	struct rule_group *group;
	struct hash_link *link;

	hash = hash_bytes(hash, id, id_len);
	HASH_FOR_EACH(link, &rules->by_words, hash) {
		group = CONTAINER_OF(link, struct rule_group, by_words);
		if (is_word(group->program, program, program_len) &&
		    is_word(group->id, id, id_len))
			return rules->current = group;
	}
	group = create_group(program, program_len, id, id_len);
	if (!group)
		return NULL;
	if (hash_tab_insert(&rules->by_words, &group->by_words, hash) != 0) {
		free_group(group);
		return NULL;
	}
	list_push_back(&rules->groups, &group->link);
	return rules->current = group;
}

int rules_add(struct rules *rules, const struct rule *rule,
	      enum rules_place place)
{
	struct rule_group *group = rules->current;
	struct rule *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (!group)
		group = rules_open_group(rules, "*", 1, "*", 1);
	if (!group) {
		free(copy);
		return -ENOMEM;
	}
	*copy = *rule;
	if (place == RULES_APPEND)
		list_push_back(&group->rules[rule->role], &copy->link);
	else
		list_push_front(&group->rules[rule->role], &copy->link);
	return 0;
}

const char *rules_keep_source(struct rules *rules, const char *name)
{
	struct rule_source *source;
	size_t size = strlen(name) + 1;

	LIST_FOR_EACH(source, &rules->sources, link)
		if (strcmp(source->name, name) == 0)
			return source->name;
	source = malloc(sizeof(*source) + size);
	if (!source)
		return NULL;
	memcpy(source->name, name, size);
	list_push_back(&rules->sources, &source->link);
	return source->name;
}

int rules_set_log_file(struct rules *rules, const char *name, size_t len)
{
	char *file = strndup(name, len);

	if (!file)
		return -ENOMEM;
	free(rules->log_file);
	rules->log_file = file;
	rules->log.to = RULES_LOG_FILE;
	rules->log.file = file;
	return 0;
}
