/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which rule decides, for every role, address form and kind of group. */
#include "conf/rules.h"

#include "tests/unit/conf/rules_text.h"

static struct rules_who who = { "prog", "VMA_DEFAULT_APPLICATION_ID" };

static struct rules_end end(const char *addr, int port)
{
	struct rules_end e = { .port = (uint16_t)port };

	if (ip_addr_parse(addr, strlen(addr), &e.addr))
		FAIL("%s does not parse", addr);
	return e;
}

/* What the current rules say: the number of the deciding line, 0 if none does;
 * negative if it keeps the socket with the kernel. */
static int decide(enum rule_role role, const struct rules_end *local,
		  const struct rules_end *remote)
{
	struct rules_verdict v = rules_match(rules, &who, role, local, remote);
	int line = v.rule ? rule_line(v.rule) : 0;

	CHECK(v.is_kernel ? line > 0 : true);
	CHECK(v.rule ? v.group != NULL : true);
	return v.is_kernel ? -line : line;
}

static int local(enum rule_role role, const char *addr, int port)
{
	struct rules_end e = end(addr, port);

	return decide(role, &e, NULL);
}

static int server(const char *addr, int port)
{
	return local(RULE_TCP_SERVER, addr, port);
}

static int sender(const char *addr, int port)
{
	struct rules_end e = end(addr, port);

	return decide(RULE_UDP_SENDER, NULL, &e);
}

static int client(const char *from, int from_port, const char *to, int to_port)
{
	struct rules_end l = end(from, from_port), r = end(to, to_port);

	return decide(RULE_TCP_CLIENT, &l, &r);
}

TEST(empty_configuration_accelerates)
{
	struct rules_verdict v;
	struct rules_end e = end("10.0.0.1", 80);

	read_good("");
	v = rules_match(rules, &who, RULE_TCP_SERVER, &e, NULL);
	CHECK(!v.is_kernel);
	CHECK(!v.group);
	CHECK(!v.rule);
	CHECK(!rules_has_group(rules, &who));
	done();
}

TEST(verdict_names_its_source)
{
	struct rules_end e = end("10.0.0.1", 53);
	struct rules_verdict v;
	char text[RULE_TEXT_SIZE];

	read_good("\napplication-id pr* *\n\nuse os udp_sender *:53\n");
	v = rules_match(rules, &who, RULE_UDP_SENDER, NULL, &e);
	CHECK(v.is_kernel);
	CHECK_STR(v.group, "pr* *");
	CHECK_STR(rule_source(v.rule), "x.conf");
	CHECK_EQ(rule_line(v.rule), 4);
	CHECK_STR(rule_format(v.rule, text), "use os udp_sender *:53");
	add("use vma udp_sender *:53");
	v = rules_match(rules, &who, RULE_UDP_SENDER, NULL, &e);
	CHECK(!v.is_kernel);
	CHECK_STR(rule_source(v.rule), "add_conf_rule");
	CHECK_EQ(rule_line(v.rule), 1);
	done();
}

TEST(first_match_decides)
{
	read_good("use vma tcp_server *:80\nuse os tcp_server *:80-90\nuse vma tcp_server *:85\n");
	CHECK_EQ(server("10.0.0.1", 80), 1);
	CHECK_EQ(server("10.0.0.1", 85), -2);
	CHECK_EQ(server("10.0.0.1", 91), 0);
	done();
}

TEST(roles_have_lists_of_their_own)
{
	read_good("use os tcp_server *:*\nuse os udp_receiver *:*\n");
	CHECK_EQ(server("10.0.0.1", 1), -1);
	CHECK_EQ(local(RULE_UDP_RECEIVER, "10.0.0.1", 1), -2);
	CHECK_EQ(sender("10.0.0.1", 1), 0);
	CHECK_EQ(client("10.0.0.1", 1, "10.0.0.2", 2), 0);
	done();
}

TEST(clients_name_the_remote_end_first)
{
	read_good("use os tcp_client 10.0.0.0/8:80:192.168.0.1:*\n"
		  "use os udp_connect 10.0.0.0/8:53\n");
	CHECK_EQ(client("192.168.0.1", 5, "10.1.1.1", 80), -1);
	CHECK_EQ(client("192.168.0.2", 5, "10.1.1.1", 80), 0);
	CHECK_EQ(client("10.1.1.1", 80, "192.168.0.1", 5), 0);
	done();
}

TEST(missing_second_address_is_unconstrained)
{
	struct rules_end r = end("10.1.1.1", 80);

	read_good("use os tcp_client *:80\n");
	CHECK_EQ(client("192.168.0.1", 5, "10.1.1.1", 80), -1);
	CHECK_EQ(decide(RULE_TCP_CLIENT, NULL, &r), -1);
	done();
}

TEST(unknown_local_end_matches_no_constraint)
{
	struct rules_end r = end("10.1.1.1", 80);

	read_good("use os tcp_client *:80:10.0.0.1:*\nuse os tcp_client *:80:*:7\n"
		  "use os tcp_client *:80:*:*\n");
	CHECK_EQ(decide(RULE_TCP_CLIENT, NULL, &r), -3);
	done();
}

TEST(second_address_of_other_roles_is_ignored)
{
	read_good("use os tcp_server *:80:1.1.1.1:1\nuse os udp_sender *:80:1.1.1.1:1\n");
	CHECK_EQ(server("10.0.0.1", 80), -1);
	CHECK_EQ(sender("10.0.0.1", 80), -2);
	done();
}

TEST(host_bits_do_not_count)
{
	read_good("use os tcp_server 1.1.1.7/24:*\nuse os tcp_server 2.2.2.2/31:*\n");
	CHECK_EQ(server("1.1.1.200", 1), -1);
	CHECK_EQ(server("1.1.2.7", 1), 0);
	CHECK_EQ(server("2.2.2.3", 1), -2);
	CHECK_EQ(server("2.2.2.4", 1), 0);
	done();
}

TEST(prefix_of_zero_is_every_ipv4_address)
{
	read_good("use os tcp_server 9.9.9.9/0:80\n");
	CHECK_EQ(server("1.2.3.4", 80), -1);
	CHECK_EQ(server("0.0.0.0", 80), -1);
	CHECK_EQ(server("2001:db8::1", 80), 0);
	done();
}

TEST(port_zero_is_only_zero)
{
	read_good("use os tcp_server *:0\n");
	CHECK_EQ(server("1.2.3.4", 0), -1);
	CHECK_EQ(server("1.2.3.4", 1), 0);
	done();
}

TEST(ipv6_prefixes)
{
	read_good("use os tcp_server [2001:db8::/32]:80\nuse os tcp_server [::/0]:81\n");
	CHECK_EQ(server("2001:db8:5::1", 80), -1);
	CHECK_EQ(server("2001:db9::1", 80), 0);
	CHECK_EQ(server("2001:db9::1", 81), -2);
	CHECK_EQ(server("::1", 81), -2);
	CHECK_EQ(server("10.0.0.1", 81), 0);
	done();
}

TEST(ipv6_never_matches_an_ipv4_rule)
{
	read_good("use os tcp_server 10.0.0.0/8:80\nuse os tcp_server *:81\n");
	CHECK_EQ(server("2001:db8::1", 80), 0);
	/* But a rule about ports alone. */
	CHECK_EQ(server("2001:db8::1", 81), -2);
	done();
}

TEST(mapped_and_compatible_addresses_are_ipv4)
{
	read_good("use os tcp_server 10.0.0.0/8:80\n");
	CHECK_EQ(server("::ffff:10.1.1.1", 80), -1);
	CHECK_EQ(server("::10.1.1.1", 80), -1);
	read_good("use os tcp_server 0.0.0.0/8:80\n");
	CHECK_EQ(server("::1", 80), 0);
	CHECK_EQ(server("::", 80), 0);
	CHECK_EQ(server("0.0.0.0", 80), -1);
	done();
}

TEST(old_transports_never_match)
{
	read_good("use sdp tcp_server *:*\nuse sa tcp_server *:*\nuse os tcp_server *:80\nuse vma tcp_server *:*\n");
	CHECK_EQ(server("10.0.0.1", 80), -3);
	CHECK_EQ(server("10.0.0.1", 81), 4);
	done();
}

TEST(star_transport_accelerates)
{
	read_good("use * udp_sender *:*\nuse os udp_sender *:*\n");
	CHECK_EQ(sender("10.0.0.1", 80), 1);
	done();
}

TEST(program_is_a_glob)
{
	read_good("application-id p[a-z]?g *\nuse os tcp_server *:*\n");
	CHECK_EQ(server("10.0.0.1", 1), -2);
	who.program = "p1og";
	CHECK_EQ(server("10.0.0.1", 1), 0);
	who.program = "a-program-with-a-name-beyond-15-characters";
	read_good("application-id *-name-beyond-15-* *\nuse os tcp_server *:*\n");
	CHECK_EQ(server("10.0.0.1", 1), -2);
	who.program = "prog";
	done();
}

TEST(ids_are_plain_text)
{
	read_good("application-id prog B1\nuse os tcp_server *:*\n");
	CHECK_EQ(server("10.0.0.1", 1), 0);
	who.id = "B1";
	CHECK_EQ(server("10.0.0.1", 1), -2);
	who.id = "b1";
	CHECK_EQ(server("10.0.0.1", 1), 0);
	read_good("application-id prog 007\nuse os tcp_server *:*\n");
	who.id = "7";
	CHECK_EQ(server("10.0.0.1", 1), 0);
	who.id = "007";
	CHECK_EQ(server("10.0.0.1", 1), -2);
	who.id = "VMA_DEFAULT_APPLICATION_ID";
	done();
}

TEST(star_id_on_either_side)
{
	read_good("application-id prog B1\nuse os tcp_server *:*\n");
	who.id = "*";
	CHECK_EQ(server("10.0.0.1", 1), -2);
	who.id = "VMA_DEFAULT_APPLICATION_ID";
	read_good("application-id prog *\nuse os tcp_server *:*\n");
	CHECK_EQ(server("10.0.0.1", 1), -2);
	done();
}

TEST(only_the_first_group_is_asked)
{
	read_good("application-id pr* *\nuse os tcp_server *:1\n"
		  "application-id * *\nuse os tcp_server *:*\n");
	CHECK_EQ(server("10.0.0.1", 1), -2);
	CHECK_EQ(server("10.0.0.1", 2), 0);
	done();
}

TEST(group_without_a_rule_of_the_role)
{
	struct rules_end e = end("10.0.0.1", 1);
	struct rules_verdict v;

	read_good("application-id prog *\nuse os tcp_server *:*\n"
		  "application-id * *\nuse os udp_sender *:*\n");
	v = rules_match(rules, &who, RULE_UDP_SENDER, NULL, &e);
	CHECK(!v.is_kernel);
	CHECK_STR(v.group, "prog *");
	CHECK(!v.rule);
	done();
}

TEST(roles_without_any_rule_are_known)
{
	read_good("application-id other *\nuse os udp_connect *:53\n");
	CHECK(rules_has_role(rules, RULE_UDP_CONNECT));
	CHECK(!rules_has_role(rules, RULE_UDP_SENDER));
	read_good("application-id prog *\nuse vma udp_sender *:53\n");
	CHECK(rules_has_role(rules, RULE_UDP_SENDER));
	done();
}

TEST(missing_group_can_be_noticed)
{
	read_good("application-id other *\nuse os tcp_server *:*\n");
	CHECK(!rules_has_group(rules, &who));
	CHECK_EQ(server("10.0.0.1", 1), 0);
	read_good("application-id prog *\n");
	CHECK(rules_has_group(rules, &who));
	done();
}

TEST(added_rules_match_first)
{
	read_good("use os tcp_server *:80\n");
	CHECK_EQ(add("use vma tcp_server *:*"), 0);
	CHECK_EQ(server("10.0.0.1", 80), 1);
	done();
}

static bool all_kernel(const char *text, enum rules_protocol protocol)
{
	bool answer;

	read_good(text);
	answer = rules_is_all_kernel(rules, &who, protocol);
	done();
	return answer;
}

TEST(shortcut_needs_both_lists)
{
	CHECK(!all_kernel("", RULES_TCP));
	CHECK(!all_kernel("use os tcp_server *:*", RULES_TCP));
	CHECK(!all_kernel("use os tcp_client *:*", RULES_TCP));
	CHECK(all_kernel("use os tcp_server *:*\nuse os tcp_client *:*",
			 RULES_TCP));
	CHECK(!all_kernel("use os tcp_server *:*\nuse os tcp_client *:*",
			  RULES_UDP));
	CHECK(all_kernel("use os udp_receiver *:*\nuse os udp_sender *:*",
			 RULES_UDP));
}

TEST(shortcut_leaves_udp_connect_out)
{
	CHECK(all_kernel("use os udp_receiver *:*\nuse os udp_sender *:*\n"
			 "use vma udp_connect *:*", RULES_UDP));
	CHECK(!all_kernel("use os udp_connect *:*", RULES_UDP));
}

TEST(shortcut_needs_rules_without_conditions)
{
	CHECK(!all_kernel("use os tcp_server *:1-65535\nuse os tcp_client *:*",
			  RULES_TCP));
	CHECK(!all_kernel("use os tcp_server 0.0.0.0/0:*\nuse os tcp_client *:*",
			  RULES_TCP));
	CHECK(!all_kernel("use os tcp_server *:*\nuse os tcp_client *:*:1.1.1.1:*",
			  RULES_TCP));
	CHECK(all_kernel("use os tcp_server *:*\nuse os tcp_client *:*:*:*",
			 RULES_TCP));
	/* A condition before it does not matter if it leads to the same. */
	CHECK(all_kernel("use os tcp_server *:80\nuse os tcp_server *:*\nuse os tcp_client *:*",
			 RULES_TCP));
}

TEST(shortcut_stops_at_another_target)
{
	CHECK(!all_kernel("use vma tcp_server *:80\nuse os tcp_server *:*\nuse os tcp_client *:*",
			  RULES_TCP));
	CHECK(!all_kernel("use * tcp_server *:80\nuse os tcp_server *:*\nuse os tcp_client *:*",
			  RULES_TCP));
	CHECK(!all_kernel("use vma tcp_server *:*\nuse os tcp_server *:*\nuse os tcp_client *:*",
			  RULES_TCP));
	/* Rules that never match do not stand in the way. */
	CHECK(all_kernel("use sdp tcp_server *:*\nuse os tcp_server *:*\nuse os tcp_client *:*",
			 RULES_TCP));
}

TEST(shortcut_goes_on_after_a_contradiction)
{
	static const char *const os_group =
		"application-id prog *\nuse os tcp_server *:*\nuse os tcp_client *:*\n";
	char text[512];

	snprintf(text, sizeof(text),
		 "application-id * *\nuse os tcp_server *:*\nuse vma tcp_client *:*\n%s",
		 os_group);
	CHECK(all_kernel(text, RULES_TCP));
	/* Lists that say nothing, or the same, close the question. */
	snprintf(text, sizeof(text), "application-id * *\n%s", os_group);
	CHECK(!all_kernel(text, RULES_TCP));
	snprintf(text, sizeof(text),
		 "application-id * *\nuse vma tcp_server *:*\nuse vma tcp_client *:*\n%s",
		 os_group);
	CHECK(!all_kernel(text, RULES_TCP));
	/* Groups that are not meant do not count. */
	snprintf(text, sizeof(text),
		 "application-id other *\nuse vma tcp_server *:*\n%s", os_group);
	CHECK(all_kernel(text, RULES_TCP));
}

TEST(shipped_file_leaves_dns_to_the_kernel)
{
	static const char file[] = "application-id * *\nuse os udp_connect *:53\n";
	struct rules_end dns = end("9.9.9.9", 53), other = end("9.9.9.9", 54);

	read_good(file);
	CHECK_EQ(decide(RULE_UDP_CONNECT, NULL, &dns), -2);
	CHECK_EQ(decide(RULE_UDP_CONNECT, NULL, &other), 0);
	CHECK_EQ(sender("9.9.9.9", 53), 0);
	done();
}
