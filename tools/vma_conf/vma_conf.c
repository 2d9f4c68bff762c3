/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vma_conf: checks a rules file, explains what the rules say about a socket,
 * and lists the options. It asks the same code as the library, so its answers
 * are the library's.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/option_info.h"
#include "conf/rules.h"
#include "option_list.h"

enum exit_code { EXIT_GOOD = 0, EXIT_BAD_RULES = 1, EXIT_TROUBLE = 2 };

static const char usage[] =
	"Usage: vma_conf --check [FILE]\n"
	"       vma_conf [--file FILE] --explain PROGRAM ID ROLE LOCAL [REMOTE]\n"
	"       vma_conf --options[=man]\n"
	"       vma_conf --help | --version\n"
	"\n"
	"  -c, --check     look for errors in a rules file and print its rules\n"
	"  -e, --explain   say what the rules decide about a socket, and which\n"
	"  -f, --file      the rules file to explain from\n"
	"  -o, --options   list the environment variables libvma.so understands\n"
	"  -h, --help      print this\n"
	"  -V, --version   print the version\n"
	"\n"
	"FILE is by default what VMA_CONFIG_FILE says. ROLE is tcp_server, tcp_client,\n"
	"udp_sender, udp_receiver or udp_connect. LOCAL and REMOTE are ADDRESS:PORT,\n"
	"[IPV6]:PORT, or * where the end is not known.\n";

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "vma_conf: %s: %s\n", what, why);
	return EXIT_TROUBLE;
}

static void print_line(void *ctx, const char *line)
{
	fprintf(ctx, "%s\n", line);
}

/* ---- reading ---- */

/* The whole of a regular file; NULL after a complaint. */
static char *read_fd(int fd, const char *path, size_t *len_out)
{
	struct stat st;
	size_t len = 0;
	char *text;
	ssize_t n;

	if (fstat(fd, &st) < 0) {
		complain(path, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		complain(path, "not a regular file");
		return NULL;
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text) {
		complain(path, strerror(ENOMEM));
		return NULL;
	}
	while (len < (size_t)st.st_size) {
		n = read(fd, text + len, (size_t)st.st_size - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	*len_out = len;
	return text;
}

static char *read_file(const char *path, size_t *len_out)
{
	/* A FIFO must not keep us waiting before we know it is one. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text;

	if (fd < 0) {
		complain(path, strerror(errno));
		return NULL;
	}
	text = read_fd(fd, path, len_out);
	close(fd);
	return text;
}

/* The rules of the file, errors on stderr; NULL after a complaint. */
static struct rules *read_rules(const char *path, int *error_cnt_out)
{
	struct rules *rules = rules_create();
	size_t len;
	char *text = read_file(path, &len);

	if (rules && text) {
		*error_cnt_out = rules_parse(rules, path, text, len,
					     RULES_APPEND, print_line, stderr);
		if (*error_cnt_out >= 0) {
			free(text);
			return rules;
		}
		complain(path, strerror(-*error_cnt_out));
	}
	free(text);
	rules_destroy(rules);
	return NULL;
}

/* ---- commands ---- */

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static int check(const char *path)
{
	int error_cnt;
	struct rules *rules = read_rules(path, &error_cnt);
	size_t group_cnt, rule_cnt;

	if (!rules)
		return EXIT_TROUBLE;
	group_cnt = rules_group_cnt(rules);
	rule_cnt = rules_rule_cnt(rules);
	rules_print(rules, print_line, stdout);
	printf("%s: %zu group%s, %zu rule%s, %d error%s\n", path, group_cnt,
	       plural(group_cnt), rule_cnt, plural(rule_cnt), error_cnt,
	       plural((size_t)error_cnt));
	rules_destroy(rules);
	return error_cnt ? EXIT_BAD_RULES : EXIT_GOOD;
}

/* ADDRESS:PORT; *is_known_out is false for a lone asterisk. */
static int parse_end(const char *text, struct rules_end *end_out,
		     bool *is_known_out)
{
	const char *colon = strrchr(text, ':');
	const char *addr = text;
	size_t len;
	char *rest;
	long port;

	*is_known_out = strcmp(text, "*") != 0;
	if (!*is_known_out)
		return 0;
	if (!colon || colon[1] < '0' || colon[1] > '9')
		return -EINVAL;
	port = strtol(colon + 1, &rest, 10);
	if (*rest || port > UINT16_MAX)
		return -EINVAL;
	end_out->port = (uint16_t)port;

	len = (size_t)(colon - text);
	if (len > 2 && addr[0] == '[' && addr[len - 1] == ']') {
		addr++;
		len -= 2;
	} else if (memchr(addr, ':', len)) {
		return -EINVAL;
	}
	return ip_addr_parse(addr, len, &end_out->addr);
}

static void print_verdict(const struct rules_verdict *verdict,
			  const char *path)
{
	const char *result = verdict->is_kernel ? "kernel" : "accelerated";
	char text[RULE_TEXT_SIZE];

	if (verdict->rule)
		printf("%s: %s:%d: %s\n", result, rule_source(verdict->rule),
		       rule_line(verdict->rule),
		       rule_format(verdict->rule, text));
	else if (verdict->group)
		printf("%s: no rule of the group \"%s\" in %s matches\n",
		       result, verdict->group, path);
	else
		printf("%s: no group in %s is for this program and id\n",
		       result, path);
}

static int explain(const char *path, int argc, char **argv)
{
	struct rules_who who;
	struct rules_end local, remote;
	bool has_local, has_remote = false;
	struct rules_verdict verdict;
	enum rules_protocol protocol;
	enum rule_role role;
	struct rules *rules;
	int error_cnt;

	if (argc < 4 || argc > 5) {
		fputs(usage, stderr);
		return EXIT_TROUBLE;
	}
	who.program = argv[0];
	who.id = argv[1];
	role = rule_role_find(argv[2], strlen(argv[2]));
	if (role == RULE_ROLE_CNT)
		return complain(argv[2], "not a role");
	if (parse_end(argv[3], &local, &has_local))
		return complain(argv[3], "not ADDRESS:PORT or *");
	if (argc == 5 && parse_end(argv[4], &remote, &has_remote))
		return complain(argv[4], "not ADDRESS:PORT or *");
	rules = read_rules(path, &error_cnt);
	if (!rules)
		return EXIT_TROUBLE;

	verdict = rules_match(rules, &who, role, has_local ? &local : NULL,
			      has_remote ? &remote : NULL);
	print_verdict(&verdict, path);
	protocol = role == RULE_TCP_SERVER || role == RULE_TCP_CLIENT ?
			   RULES_TCP : RULES_UDP;
	if (rules_is_all_kernel(rules, &who, protocol))
		printf("All %s sockets of this program stay with the kernel from the start.\n",
		       protocol == RULES_TCP ? "TCP" : "UDP");
	rules_destroy(rules);
	return error_cnt ? EXIT_BAD_RULES : EXIT_GOOD;
}

static int list_options(const char *format)
{
	if (!format)
		option_list_print_plain();
	else if (strcmp(format, "man") == 0)
		option_list_print_man();
	else
		return complain(format, "not a format; the only one is man");
	return EXIT_GOOD;
}

/* What libvma.so would read. */
static const char *default_file(void)
{
	static struct options opts;
	struct options_facts facts = { .pid = getpid(),
				       .log_level_max = LOG_LEVEL_ALL };

	options_parse(&opts, environ, &facts, NULL, NULL);
	return opts.config_file;
}

static const struct option long_options[] = {
	{ "check", no_argument, NULL, 'c' },
	{ "explain", no_argument, NULL, 'e' },
	{ "file", required_argument, NULL, 'f' },
	{ "options", optional_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

int main(int argc, char **argv)
{
	const char *file = NULL, *format = NULL;
	int command = 0, c;

	while ((c = getopt_long(argc, argv, "+cef:o::hV", long_options, NULL)) !=
	       -1) {
		if (c == 'f')
			file = optarg;
		else if (c == 'o')
			format = optarg;
		if (c != 'f')
			command = command && command != c ? '?' : c;
		/* What follows belongs to the command. */
		if (command == 'e')
			break;
	}
	argc -= optind;
	argv += optind;

	switch (command) {
	case 'c':
		if (argc > 1)
			break;
		if (argc == 1)
			file = argv[0];
		return check(file ? file : default_file());
	case 'e':
		return explain(file ? file : default_file(), argc, argv);
	case 'o':
		return list_options(format);
	case 'h':
		fputs(usage, stdout);
		return EXIT_GOOD;
	case 'V':
		printf("vma_conf %d.%d.%d\n", VMA_MAJOR, VMA_MINOR,
		       VMA_REVISION);
		return EXIT_GOOD;
	default:
		break;
	}
	fputs(usage, stderr);
	return EXIT_TROUBLE;
}
