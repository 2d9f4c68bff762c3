/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The language of libvma.conf: what is understood, and what is said about the
 * rest. */
#include "conf/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/conf/rules_text.h"

/* The text has this one error and gives these rules. */
static void wrong(const char *text, const char *error, const char *rest)
{
	int cnt = read_text(text);

	if (cnt != 1)
		FAIL("%d errors in \"%s\"", cnt, text);
	CHECK_EQ(error_cnt, 1);
	CHECK_STR(errors[0], error);
	CHECK_STR(print(), rest);
	done();
}

static void right(const char *text, const char *want)
{
	read_good(text);
	CHECK_STR(print(), want);
	done();
}

#define ANY_GROUP "application-id * *\n"
#define LEFT_OUT "; the rules up to the next application-id are left out"

TEST(nothing_but_comments_and_blank_lines)
{
	right("", "");
	right("\n\n\n", "");
	right("# one\n\t # two\n   \n#", "");
	CHECK_EQ(read_text("#\n"), 0);
	CHECK_EQ(rules_group_cnt(rules), 0);
	CHECK_EQ(rules_rule_cnt(rules), 0);
	done();
}

TEST(final_newline_is_optional)
{
	right("application-id a b", "application-id a b\n");
	right("use os tcp_server *:1",
	      ANY_GROUP "use os tcp_server *:1\n");
}

TEST(crlf_line_ends)
{
	right("application-id a b\r\nuse os tcp_server *:*\r\n\r\n# x\r\n",
	      "application-id a b\nuse os tcp_server *:*\n");
	right("log destination file /x\r", "");
	wrong("use os\rtcp_server *:*\n",
	      "x.conf:1:7: expected a role (tcp_server, tcp_client, udp_sender, udp_receiver or udp_connect), found \"?tcp_server\"",
	      "");
}

TEST(byte_order_mark_is_skipped)
{
	right("\xEF\xBB\xBF" "application-id a b\nuse os tcp_server *:*\n",
	      "application-id a b\nuse os tcp_server *:*\n");
	right("\xEF\xBB\xBF", "");
	wrong("\xEF\xBB\xBF" "use os x\n",
	      "x.conf:1:8: expected a role (tcp_server, tcp_client, udp_sender, udp_receiver or udp_connect), found \"x\"",
	      "");
	/* of another encoding: nobody's rules */
	CHECK_EQ(read_text("\xFF\xFE" "application-id a b\nuse os tcp_server *:*\n"), 1);
	CHECK(strstr(errors[0], LEFT_OUT));
	CHECK_STR(print(), "");
	done();
}

TEST(rule_before_any_group)
{
	right("use os udp_connect *:53\napplication-id a b\n",
	      ANY_GROUP "use os udp_connect *:53\napplication-id a b\n");
}

TEST(group_opened_again_goes_on)
{
	right("application-id a b\nuse os tcp_server *:1\n"
	      "application-id c d\nuse os tcp_server *:2\n"
	      "application-id a b\nuse vma tcp_server *:3\n",
	      "application-id a b\nuse os tcp_server *:1\nuse vma tcp_server *:3\n"
	      "application-id c d\nuse os tcp_server *:2\n");
}

/* To find one among them takes no longer than among few. The alarm ends who walks them all, which
 * takes minutes. */
TEST(many_groups)
{
	enum { CNT = 200000, LINE_SIZE = 40 };
	char *text = malloc((size_t)CNT * LINE_SIZE), *end = text;

	for (int i = 0; i < CNT; i++)
		end += sprintf(end, "application-id program%d id\n", i);
	sprintf(end, "application-id program0 id\n");
	alarm(30);
	read_good(text);
	alarm(0);
	CHECK_EQ(rules_group_cnt(rules), CNT);
	done();
	free(text);
}

TEST(ids_that_look_like_numbers_are_text)
{
	right("application-id a 7\napplication-id a 007\napplication-id a 7\n",
	      "application-id a 7\napplication-id a 007\n");
}

TEST(names_are_any_text)
{
	right("application-id use application-id\n"
	      "application-id db[0-9]*?x #id\n"
	      "application-id a#b \xc3\xa9\n",
	      "application-id use application-id\n"
	      "application-id db[0-9]*?x #id\n"
	      "application-id a#b \xc3\xa9\n");
}

TEST(all_parts_of_a_rule)
{
	right("use vma tcp_client 10.0.0.0/8:80-90:*:*",
	      ANY_GROUP "use vma tcp_client 10.0.0.0/8:80-90:*:*\n");
	right("use * udp_sender *:*", ANY_GROUP "use * udp_sender *:*\n");
	right("use sdp tcp_server 1.2.3.4:0-65535",
	      ANY_GROUP "use sdp tcp_server 1.2.3.4/32:*\n");
	right("use sa udp_receiver 255.255.255.255/0:65535",
	      ANY_GROUP "use sa udp_receiver 255.255.255.255/0:65535\n");
	right("use os udp_connect *:53:127.0.0.1:0",
	      ANY_GROUP "use os udp_connect *:53:127.0.0.1/32:0\n");
}

TEST(ipv6_addresses_in_brackets)
{
	right("use os tcp_server [2001:db8::/32]:80",
	      ANY_GROUP "use os tcp_server [2001:db8::/32]:80\n");
	right("use os tcp_client [::1]:*:[fe80::1/64]:1-2",
	      ANY_GROUP "use os tcp_client [::1/128]:*:[fe80::1/64]:1-2\n");
	right("use os tcp_server [::ffff:10.0.0.0/104]:80",
	      ANY_GROUP "use os tcp_server 10.0.0.0/8:80\n");
	wrong("use os tcp_server [10.0.0.1]:80",
	      "x.conf:1:20: expected an IPv6 address, found \"10.0.0.1]:80\"",
	      "");
	wrong("use os tcp_server [::1/129]:80",
	      "x.conf:1:24: a prefix length must be from 0 to 128", "");
	wrong("use os tcp_server [::1:80",
	      "x.conf:1:26: expected \"]\", found the end of the line", "");
	wrong("use os tcp_server [x::1]:80",
	      "x.conf:1:20: expected an IPv6 address, found \"x::1]:80\"", "");
	wrong("use os tcp_server [", "x.conf:1:20: expected an IPv6 address, found the end of the line",
	      "");
}

TEST(blanks_and_tabs_around_anything)
{
	right("\t use\tos  tcp_server\t10 . 0 . 0 . 0 / 8 : 80 - 90 # x\n",
	      ANY_GROUP "use os tcp_server 10.0.0.0/8:80-90\n");
}

TEST(several_statements_on_a_line)
{
	right("application-id a b use os tcp_server *:1 use os tcp_server *:2",
	      "application-id a b\nuse os tcp_server *:1\nuse os tcp_server *:2\n");
	wrong("use os tcp_server *:1 junk use os tcp_server *:2",
	      "x.conf:1:23: expected application-id, use, log or a # comment, found \"junk\"",
	      ANY_GROUP "use os tcp_server *:1\n");
}

TEST(comment_after_a_rule_keeps_line_numbers)
{
	wrong("use os tcp_server *:1 # one\n#two\nuse os tcp_server *:2# x\nuse oss\n",
	      "x.conf:4:5: expected a target (vma, os, sdp, sa or *), found \"oss\"",
	      ANY_GROUP "use os tcp_server *:1\nuse os tcp_server *:2\n");
}

TEST(only_the_wrong_line_is_skipped)
{
	CHECK_EQ(read_text("use os tcp_server *:1\nbad\nuse os tcp_server *:2\n"
			   "use nix udp_sender *:*\nuse os tcp_server *:3\n"),
		 2);
	CHECK_STR(errors[0],
		  "x.conf:2:1: expected application-id, use, log or a # comment, found \"bad\"");
	CHECK_STR(errors[1],
		  "x.conf:4:5: expected a target (vma, os, sdp, sa or *), found \"nix\"");
	CHECK_STR(print(), ANY_GROUP "use os tcp_server *:1\nuse os tcp_server *:2\nuse os tcp_server *:3\n");
	done();
}

/* Whose they would be, nobody knows. */
TEST(rules_behind_a_wrong_group_are_left_out)
{
	static const char *const bad[] = {
		"application-id redis", "application-id", "Application-Id redis *",
		"aplication-id redis *", "application-id a\x01z b",
		/* a byte order mark within, of a file that was appended, and a blank */
		"\xEF\xBB\xBF" "application-id redis *", "\xC2\xA0" "application-id redis *",
	};
	char text[300];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(text, sizeof(text),
			 "application-id nginx *\nuse os udp_sender *:1\n%s\n"
			 "use os tcp_server *:2\nuse os tcp_server *:3\n"
			 "application-id x *\nuse os tcp_server *:4\n",
			 bad[i]);
		CHECK_EQ(read_text(text), 1);
		CHECK(strstr(errors[0], LEFT_OUT));
		CHECK_STR(print(), "application-id nginx *\nuse os udp_sender *:1\n"
				   "application-id x *\nuse os tcp_server *:4\n");
		done();
	}
	/* nor are they everybody's */
	CHECK_EQ(read_text("application-id redis\nuse os tcp_server *:*\n"), 1);
	CHECK_STR(print(), "");
	done();
	/* an error there is one still */
	CHECK_EQ(read_text("application-id redis\nuse os tcp_server *\n"), 2);
	done();
}

TEST(missing_parts)
{
	wrong("use",
	      "x.conf:1:4: expected a target (vma, os, sdp, sa or *), found the end of the line",
	      "");
	wrong("use os tcp_server",
	      "x.conf:1:18: expected an address (10.0.0.0/8, [2001:db8::/32] or *), found the end of the line",
	      "");
	wrong("use os tcp_server *",
	      "x.conf:1:20: expected \":\" and ports after the address, found the end of the line",
	      "");
	wrong("use os tcp_server *:",
	      "x.conf:1:21: expected a port, found the end of the line", "");
	wrong("use os tcp_client *:1:",
	      "x.conf:1:23: expected an address (10.0.0.0/8, [2001:db8::/32] or *), found the end of the line",
	      "");
	wrong("application-id",
	      "x.conf:1:15: expected the name of a program, or *, found the end of the line" LEFT_OUT,
	      "");
	wrong("application-id a",
	      "x.conf:1:17: expected an id, or *, found the end of the line" LEFT_OUT, "");
}

TEST(keywords_are_lower_case)
{
	CHECK_EQ(read_text("USE os tcp_server *:*"), 1);
	CHECK_EQ(read_text("use OS tcp_server *:*"), 1);
	CHECK_EQ(read_text("use os TCP_SERVER *:*"), 1);
	CHECK_STR(errors[0],
		  "x.conf:1:8: expected a role (tcp_server, tcp_client, udp_sender, udp_receiver or udp_connect), found \"TCP_SERVER\"");
	done();
}

TEST(octets_beyond_255)
{
	wrong("use os tcp_server 10.0.0.256:1",
	      "x.conf:1:26: a part of an IPv4 address must be from 0 to 255",
	      "");
	wrong("use os tcp_server 4294967297.0.0.1:1",
	      "x.conf:1:19: a part of an IPv4 address must be from 0 to 255",
	      "");
}

TEST(address_of_three_parts)
{
	wrong("use os tcp_server 10.0.0:1",
	      "x.conf:1:25: expected \".\" and the rest of an IPv4 address, found \":1\"",
	      "");
	wrong("use os tcp_server 10.0.0.0.0:1",
	      "x.conf:1:27: expected \":\" and ports after the address, found \".0:1\"",
	      "");
}

/* The genuine parser takes 33 for 32, 256 for 0 and 300 for 32. */
TEST(prefixes_beyond_32)
{
	right("use os tcp_server 10.0.0.0/32:1",
	      ANY_GROUP "use os tcp_server 10.0.0.0/32:1\n");
	wrong("use os tcp_server 10.0.0.0/33:1",
	      "x.conf:1:28: a prefix length must be from 0 to 32", "");
	wrong("use os tcp_server 10.0.0.0/256:1",
	      "x.conf:1:28: a prefix length must be from 0 to 32", "");
	wrong("use os tcp_server 10.0.0.0/300:1",
	      "x.conf:1:28: a prefix length must be from 0 to 32", "");
}

/* The genuine parser wraps at 65536. */
TEST(ports_beyond_65535)
{
	wrong("use os tcp_server *:65536",
	      "x.conf:1:21: a port must be from 0 to 65535", "");
	wrong("use os tcp_server *:1-65536",
	      "x.conf:1:23: a port must be from 0 to 65535", "");
	wrong("use os tcp_server *:18446744073709551617",
	      "x.conf:1:21: a port must be from 0 to 65535", "");
}

TEST(reversed_port_range)
{
	wrong("use os tcp_server *:9-5",
	      "x.conf:1:21: the range of ports 9-5 ends before it begins", "");
	wrong("use os tcp_server *:6-5",
	      "x.conf:1:21: the range of ports 6-5 ends before it begins", "");
	right("use os tcp_server *:5-5",
	      ANY_GROUP "use os tcp_server *:5\n");
}

TEST(leading_zeros)
{
	wrong("use os tcp_server *:010",
	      "x.conf:1:21: a port cannot begin with 0", "");
	wrong("use os tcp_server 10.0.0.01:1",
	      "x.conf:1:26: a part of an IPv4 address cannot begin with 0", "");
}

TEST(very_long_words)
{
	enum { LEN = 100000 };
	static char text[2 * LEN + 64];
	char *s = text + sprintf(text, "application-id ");

	memset(s, 'a', LEN);
	s[LEN] = ' ';
	memset(s + LEN + 1, 'b', LEN);
	strcpy(s + 2 * LEN + 1, "\nuse os tcp_server *:1\n");
	read_good(text);
	CHECK_EQ(rules_group_cnt(rules), 1);
	CHECK_EQ(rules_rule_cnt(rules), 1);
	memset(text, 'x', 1000);
	CHECK_EQ(read_text(text), 1);
	CHECK(strlen(errors[0]) < 200);
	done();
}

TEST(control_characters)
{
	wrong("application-id a\x01z b\n",
	      "x.conf:1:17: a word cannot hold the byte 0x01" LEFT_OUT, "");
	CHECK_EQ(read_len("use os tcp_server *:1\n\0\nuse os tcp_server *:2\n",
			  46), 1);
	CHECK_EQ(rules_rule_cnt(rules), 2);
	CHECK_STR(errors[0],
		  "x.conf:2:1: expected application-id, use, log or a # comment, found \"?\"");
	CHECK_EQ(read_len("application-id a\0b c\n", 21), 1);
	done();
}

TEST(length_bounds_the_text)
{
	CHECK_EQ(read_len("use os tcp_server *:1234", 22), 0);
	CHECK_STR(print(), ANY_GROUP "use os tcp_server *:12\n");
	done();
}

TEST(errors_do_not_flood)
{
	static char text[4 * 1000 + 1];

	for (int i = 0; i < 1000; i++)
		strcpy(text + 4 * i, "bad\n");
	CHECK_EQ(read_text(text), 1000);
	CHECK_EQ(error_cnt, 21);
	CHECK_STR(errors[20], "x.conf: 980 more errors");
	done();
}

TEST(report_may_be_absent)
{
	done();
	rules = rules_create();
	CHECK_EQ(rules_parse(rules, "n", "bad", 3, RULES_APPEND, NULL, NULL), 1);
	done();
}

TEST(log_destinations_in_both_spellings)
{
	read_good("use os tcp_server *:*");
	CHECK_EQ(rules_log(rules)->to, RULES_LOG_UNSAID);
	CHECK_EQ(rules_log(rules)->min_level, 9);
	read_good("log destination ystderr");
	CHECK_EQ(rules_log(rules)->to, RULES_LOG_STDERR);
	read_good("log destination stderr");
	CHECK_EQ(rules_log(rules)->to, RULES_LOG_STDERR);
	read_good("log destination syslog\n");
	CHECK_EQ(rules_log(rules)->to, RULES_LOG_SYSLOG);
	read_good("log destination yfile /tmp/a#b # comment");
	CHECK_EQ(rules_log(rules)->to, RULES_LOG_FILE);
	CHECK_STR(rules_log(rules)->file, "/tmp/a#b");
	read_good("log destination stderr\nlog destination file /tmp/c");
	CHECK_EQ(rules_log(rules)->to, RULES_LOG_FILE);
	CHECK_STR(rules_log(rules)->file, "/tmp/c");
	done();
}

TEST(log_min_level)
{
	read_good("log min-level 1");
	CHECK_EQ(rules_log(rules)->min_level, 1);
	read_good("log min-level 0 destination file f min-level 3\n");
	CHECK_EQ(rules_log(rules)->min_level, 3);
	CHECK_STR(rules_log(rules)->file, "f");
	CHECK_EQ(read_text("log min-level 10\n"), 1);
	CHECK_STR(errors[0], "x.conf:1:15: a level must be from 0 to 9");
	CHECK_EQ(rules_log(rules)->min_level, 9);
	done();
}

TEST(log_errors)
{
	wrong("log",
	      "x.conf:1:4: expected destination or min-level, found the end of the line",
	      "");
	wrong("log destination tty",
	      "x.conf:1:17: expected stderr, syslog or file NAME, found \"tty\"",
	      "");
	wrong("log destination file",
	      "x.conf:1:21: expected the name of a file, found the end of the line",
	      "");
	wrong("log min-level",
	      "x.conf:1:14: expected a level, found the end of the line", "");
}

TEST(added_rules_go_to_the_front)
{
	read_good("application-id a b\nuse os tcp_server *:1\n"
		  "application-id c d\nuse os tcp_server *:2\nuse os tcp_server *:3\n");
	CHECK_EQ(add("use vma tcp_server *:4\nuse vma tcp_server *:5"), 0);
	CHECK_STR(print(),
		  "application-id a b\nuse os tcp_server *:1\n"
		  "application-id c d\nuse vma tcp_server *:5\nuse vma tcp_server *:4\n"
		  "use os tcp_server *:2\nuse os tcp_server *:3\n");
	done();
}

TEST(added_text_may_change_the_group)
{
	read_good("application-id a b\napplication-id c d\n");
	CHECK_EQ(add("application-id a b\nuse os tcp_server *:1"), 0);
	CHECK_EQ(add("use os tcp_server *:2"), 0);
	CHECK_EQ(add("application-id e f use os udp_sender *:3"), 0);
	CHECK_STR(print(),
		  "application-id a b\nuse os tcp_server *:2\nuse os tcp_server *:1\n"
		  "application-id c d\n"
		  "application-id e f\nuse os udp_sender *:3\n");
	done();
}

TEST(added_without_any_group)
{
	read_good("");
	CHECK_EQ(add("use os tcp_server *:1"), 0);
	CHECK_STR(print(), ANY_GROUP "use os tcp_server *:1\n");
	done();
}

TEST(bad_text_added_keeps_the_good_lines)
{
	read_good("use os tcp_server *:1\n");
	CHECK_EQ(add("use os tcp_server *:2\nuse os\nuse os tcp_server *:3\n"),
		 1);
	CHECK_STR(errors[0],
		  "add_conf_rule:2:7: expected a role (tcp_server, tcp_client, udp_sender, udp_receiver or udp_connect), found the end of the line");
	CHECK_STR(print(), ANY_GROUP "use os tcp_server *:3\nuse os tcp_server *:2\nuse os tcp_server *:1\n");
	done();
}

TEST(each_text_counts_its_own_lines)
{
	read_good("\n\n\n\nuse os tcp_server *:1\n");
	CHECK_EQ(add("bad"), 1);
	CHECK(strncmp(errors[0], "add_conf_rule:1:1: ", 19) == 0);
	done();
}

TEST(printed_rules_parse_to_the_same)
{
	static char first[sizeof(printed)];

	read_good("use os tcp_server 1.2.3.4:5\nuse vma udp_connect [::1]:1-9:*:*\n"
		  "application-id x* y\nuse * tcp_client 10.0.0.0/8:*\n"
		  "use sa tcp_client *:80\nlog min-level 2\n");
	strcpy(first, print());
	read_good(first);
	CHECK_STR(print(), first);
	done();
}

TEST(names_of_roles)
{
	for (enum rule_role role = 0; role < RULE_ROLE_CNT; role++) {
		const char *name = rule_role_name(role);

		CHECK_EQ(rule_role_find(name, strlen(name)), role);
	}
	CHECK_EQ(rule_role_find("tcp_server", 9), RULE_ROLE_CNT);
	CHECK_EQ(rule_role_find("", 0), RULE_ROLE_CNT);
}
