/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's routing against the kernel's: in namespaces of random routes and
 * rules, which the view has learned from events alone, both are asked for the way
 * of thousands of random flows, and must agree in everything.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rand.h"
#include "nl/net_view.h"
#include "nl/libnl/conn.h"
#include "nl/libnl/rows.h"
#include "nl/netlink.h"
#include "tests/support/test.h"
#include "tests/system/netns.h"

enum { SYNC_MS = 20000, FLOWS = 10000 };

static struct rand dice;
static struct net_view view;
static struct netlink nl;
static int kernel_fd = -1;

/* What both answer. */
struct answer {
	int error;
	uint8_t type;
	int ifindex;
	struct ip_addr gateway;
	struct ip_addr src;
	uint32_t mtu;
	uint32_t table;
};

/* Asking the kernel. */

struct request {
	struct nlmsghdr head;
	struct rtmsg body;
	uint8_t attrs[256];
};

static void add_attr(struct request *r, uint16_t type, const void *data,
		     uint16_t len)
{
	struct nlattr head = { (uint16_t)(NLA_HDRLEN + len), type };
	uint8_t *at = (uint8_t *)r + NLMSG_ALIGN(r->head.nlmsg_len);

	memcpy(at, &head, sizeof(head));
	memcpy(at + NLA_HDRLEN, data, len);
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) +
			    (uint32_t)NLA_ALIGN(head.nla_len);
}

static void add_addr(struct request *r, uint16_t type,
		     const struct ip_addr *addr)
{
	if (!ip_addr_is_any(addr))
		add_attr(r, type, &addr->byte[12], 4);
}

static void build_request(struct request *r, const struct net_flow *flow)
{
	__be16 sport = htons(flow->sport), dport = htons(flow->dport);

	*r = (struct request){
		.head = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			.nlmsg_type = RTM_GETROUTE,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.body = {
			.rtm_family = AF_INET,
			.rtm_dst_len = 32,
			.rtm_tos = flow->tos,
			.rtm_flags = RTM_F_LOOKUP_TABLE,
		},
	};
	add_addr(r, RTA_DST, &flow->dst);
	add_addr(r, RTA_SRC, &flow->src);
	if (flow->oif)
		add_attr(r, RTA_OIF, &flow->oif, 4);
	add_attr(r, RTA_MARK, &flow->mark, 4);
	add_attr(r, RTA_UID, &flow->uid, 4);
	add_attr(r, RTA_IP_PROTO, &flow->proto, 1);
	if (!flow->sport)
		return;
	add_attr(r, RTA_SPORT, &sport, 2);
	add_attr(r, RTA_DPORT, &dport, 2);
}

static uint32_t get_u32(const struct nlattr *attr, uint32_t otherwise)
{
	return attr ? nla_get_u32(attr) : otherwise;
}

/* A gateway of IPv6 is a struct rtvia. */
static void read_via(const struct nlattr *via, struct ip_addr *out)
{
	if (!via)
		return;
	CHECK_EQ(nla_len(via), 2 + 16);
	*out = ip_addr_from_v6((const uint8_t *)nla_data(via) + 2);
}

static void read_answer(struct nlmsghdr *msg, struct answer *out)
{
	struct nlattr *attrs[RTA_VIA + 1], *metrics[RTAX_MTU + 1] = { NULL };
	const struct rtmsg *head = NLMSG_DATA(msg);

	if (msg->nlmsg_type == NLMSG_ERROR) {
		memcpy(&out->error, NLMSG_DATA(msg), sizeof(out->error));
		return;
	}
	CHECK_EQ(msg->nlmsg_type, RTM_NEWROUTE);
	CHECK(nlmsg_parse(msg, sizeof(*head), attrs, RTA_VIA, NULL) >= 0);
	if (attrs[RTA_METRICS])
		CHECK(nla_parse_nested(metrics, RTAX_MTU, attrs[RTA_METRICS],
				       NULL) >= 0);
	out->type = head->rtm_type;
	out->table = get_u32(attrs[RTA_TABLE], head->rtm_table);
	out->ifindex = (int)get_u32(attrs[RTA_OIF], 0);
	CHECK(rows_get_addr_attr(attrs[RTA_GATEWAY], AF_INET, &out->gateway));
	CHECK(rows_get_addr_attr(attrs[RTA_PREFSRC], AF_INET, &out->src));
	out->mtu = get_u32(metrics[RTAX_MTU], 0);
	read_via(attrs[RTA_VIA], &out->gateway);
}

static struct answer ask_kernel(const struct net_flow *flow)
{
	uint8_t buf[4096] __attribute__((aligned(4)));
	struct answer answer = { 0 };
	struct request request;
	ssize_t len;

	build_request(&request, flow);
	CHECK(send(kernel_fd, &request, request.head.nlmsg_len, 0) > 0);
	len = recv(kernel_fd, buf, sizeof(buf), 0);
	CHECK(len >= (ssize_t)sizeof(struct nlmsghdr));
	read_answer((struct nlmsghdr *)buf, &answer);
	return answer;
}

/* Asking ourselves, put as the kernel puts it: the source given is not shown, and
 * an MTU only when a route says so. */
static struct answer ask_view(const struct net_flow *flow)
{
	struct answer answer = { 0 };
	struct net_path path;

	answer.error = net_view_route(&view, flow, &path);
	if (answer.error)
		return answer;
	answer.type = path.type;
	answer.ifindex = path.ifindex;
	if (ip_addr_is_any(&flow->src))
		answer.src = path.src;
	answer.table = path.table;
	answer.mtu = path.mtu;
	if (path.has_gateway)
		answer.gateway = path.next_hop;
	return answer;
}

static bool is_same_addr(const struct ip_addr *a, const struct ip_addr *b)
{
	return ip_addr_eq(a, b) || (ip_addr_is_any(a) && ip_addr_is_any(b));
}

static uint32_t link_mtu(int ifindex)
{
	const struct link *link = link_tab_find(&view.links, ifindex);

	CHECK(link);
	return MIN(link->info.mtu, 65535u);
}

/* While local and main are one, the kernel has main's name for both. */
static bool is_same_table(uint32_t kernel, uint32_t ours)
{
	return kernel == ours ||
	       (kernel == RT_TABLE_MAIN && ours == RT_TABLE_LOCAL);
}

/* The kernel keeps an answer with the next hop. One about another destination may have the
 * type of that destination: routes of the same words share their next hops. */
static bool is_same_type(uint8_t kernel, uint8_t ours)
{
	return kernel == ours ||
	       (kernel == RTN_UNICAST && ours == RTN_MULTICAST) ||
	       (kernel == RTN_MULTICAST && ours == RTN_UNICAST);
}

static bool agree(const struct answer *kernel, const struct answer *ours)
{
	uint32_t mtu;

	if (kernel->error || ours->error)
		return kernel->error == ours->error;
	mtu = link_mtu(ours->ifindex);
	if (kernel->mtu)
		mtu = MIN(mtu, kernel->mtu);
	return is_same_type(kernel->type, ours->type) &&
	       kernel->ifindex == ours->ifindex &&
	       is_same_table(kernel->table, ours->table) && mtu == ours->mtu &&
	       is_same_addr(&kernel->gateway, &ours->gateway) &&
	       is_same_addr(&kernel->src, &ours->src);
}

static void print_flow(const char *what, const struct net_flow *flow)
{
	char dst[IP_ADDR_TEXT_SIZE], src[IP_ADDR_TEXT_SIZE];

	test_note("%s: to %s from %s oif %d tos %#x mark %u uid %u proto %u "
		  "ports %u %u", what, ip_addr_format(&flow->dst, dst),
		  ip_addr_format(&flow->src, src), flow->oif, flow->tos,
		  flow->mark, flow->uid, flow->proto, flow->sport, flow->dport);
}

static void print_answer(const char *who, const struct answer *a)
{
	char gateway[IP_ADDR_TEXT_SIZE], src[IP_ADDR_TEXT_SIZE];

	test_note("%s: error %d type %u dev %d via %s src %s mtu %u table %u",
		  who, a->error, a->type, a->ifindex,
		  ip_addr_format(&a->gateway, gateway),
		  ip_addr_format(&a->src, src), a->mtu, a->table);
}

/* Which of several next hops is a matter of a seed; the kernel's choice must be one
 * of those we might have made. */
static bool might_agree(const struct net_flow *flow,
			const struct answer *kernel)
{
	bool do_agree = false;

	for (unsigned seed = 0; seed < 4096 && !do_agree; seed++) {
		struct answer ours;

		view.hash_seed = seed * UINT64_C(0x9e3779b97f4a7c15);
		ours = ask_view(flow);
		do_agree = agree(kernel, &ours);
	}
	view.hash_seed = 0;
	return do_agree;
}

/* Where a rule looks at ports a flow of TCP is the kernel's. */
static bool is_left_open(const struct net_flow *flow, const struct answer *ours)
{
	const struct policy_entry *entry;

	if (flow->proto != IPPROTO_TCP || ours->error != -EOPNOTSUPP)
		return false;
	LIST_FOR_EACH(entry, &view.policies.policies, in_tab)
		if (entry->policy.sport.last || entry->policy.dport.last)
			return true;
	return false;
}

static void compare(const struct net_flow *flow)
{
	struct answer kernel = ask_kernel(flow);
	struct answer ours = ask_view(flow);

	if (is_left_open(flow, &ours))
		return;
	if (agree(&kernel, &ours) || might_agree(flow, &kernel))
		return;
	print_flow("flow", flow);
	print_answer("kernel", &kernel);
	print_answer("library", &ours);
	netns_run("(ip rule; ip route show table all; ip addr) | sed 's/^/# /'");
	FAIL("different ways");
}

/* A namespace to get lost in: addresses come from few bits, so that prefixes,
 * rules and flows meet. */

static unsigned below(unsigned limit)
{
	return (unsigned)rand_below(&dice, limit);
}

static bool one_in(unsigned n)
{
	return below(n) == 0;
}

static const char *one_of(const char *const *words, unsigned cnt)
{
	return words[below(cnt)];
}
#define ONE_OF(...)                                                    \
	({                                                             \
		static const char *const words_[] = { __VA_ARGS__ };   \
		one_of(words_, ARRAY_LEN(words_));                     \
	})

static const uint8_t interesting[] = { 0, 1, 2, 3, 7, 15, 16, 128, 254, 255 };

static __be32 draw_addr(void)
{
	uint32_t addr = 10;

	if (one_in(30))
		return htonl(INADDR_LOOPBACK + below(2));
	if (one_in(30))
		return htonl(0xe0000001 + (below(2) << 24));
	if (one_in(60))
		return htonl(one_in(2) ? INADDR_BROADCAST : 5);
	for (int i = 0; i < 3; i++)
		addr = addr << 8 | interesting[below(ARRAY_LEN(interesting))];
	return htonl(addr);
}

static void put_addr(FILE *f, __be32 addr)
{
	const uint8_t *b = (const uint8_t *)&addr;

	fprintf(f, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
}

static void put_prefix(FILE *f)
{
	static const uint8_t lens[] = { 0, 1, 4, 8, 9, 12, 16, 16, 20, 24,
					24, 25, 28, 30, 31, 32, 32 };
	unsigned len = lens[below(ARRAY_LEN(lens))];
	struct ip_addr addr = ip_addr_from_v4(draw_addr());

	addr = ip_addr_masked(&addr, IP_PREFIX_V4 + len);
	put_addr(f, ip_addr_v4(&addr));
	fprintf(f, "/%u", len);
}

#define TABLES "main", "main", "default", "100", "101", "102", "70000"
#define LINKS "a0", "b0", "c0", "d0"

static void put_hop(FILE *f)
{
	switch (below(4)) {
	case 0:
		fprintf(f, " dev %s", ONE_OF(LINKS));
		return;
	case 1:
		fprintf(f, " via inet6 fe80::%x dev %s", 1 + below(9),
			ONE_OF(LINKS));
		return;
	default:
		fprintf(f, " via ");
		put_addr(f, draw_addr());
		fprintf(f, " dev %s onlink", ONE_OF(LINKS));
	}
}

static const char *const own_addrs[] = {
	"10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.1.1", "10.3.0.1", "10.0.0.1",
	"10.15.15.15",
};

static void put_route(FILE *f)
{
	const char *type = one_in(3) ? ONE_OF("blackhole", "unreachable",
					      "prohibit", "throw", "local",
					      "broadcast")
				     : "unicast";
	bool has_hop = strchr("ulb", type[0]) && strcmp(type, "blackhole") &&
		       strcmp(type, "unreachable");

	fprintf(f, "route %s %s ", ONE_OF("append", "prepend", "replace"), type);
	put_prefix(f);
	fprintf(f, " table %s metric %u", ONE_OF(TABLES),
		one_in(2) ? 0 : 1 + below(3));
	if (one_in(4))
		fprintf(f, " tos %s",
			ONE_OF("0x04", "0x08", "0x10", "0x1c", "0x40"));
	if (has_hop && one_in(4))
		fprintf(f, " src %s",
			one_of(own_addrs, ARRAY_LEN(own_addrs)));
	if (has_hop && one_in(4))
		fprintf(f, " mtu %s%u", one_in(3) ? "lock " : "",
			600 + below(2000));
	if (has_hop && type[0] == 'u' && one_in(5)) {
		for (unsigned i = 2 + below(3); i; i--) {
			fprintf(f, " nexthop");
			put_hop(f);
			fprintf(f, " weight %u", 1 + below(4));
		}
	} else if (has_hop && type[0] == 'u') {
		put_hop(f);
	} else if (has_hop) {
		fprintf(f, " dev %s", ONE_OF(LINKS));
	}
	fprintf(f, "\n");
}

static void put_selectors(FILE *f)
{
	if (one_in(2)) {
		fprintf(f, " from ");
		put_prefix(f);
	}
	if (one_in(2)) {
		fprintf(f, " to ");
		put_prefix(f);
	}
	if (one_in(4))
		fprintf(f, " fwmark %u/%s", below(4), ONE_OF("0x1", "0x3"));
	if (one_in(5))
		fprintf(f, " tos %s", ONE_OF("0x04", "0x08", "0x10"));
	if (one_in(6))
		fprintf(f, " oif %s", ONE_OF(LINKS));
	if (one_in(6))
		fprintf(f, " iif %s", ONE_OF("lo", "lo", "a0"));
	if (one_in(5))
		fprintf(f, " uidrange %u-%u", below(5), 5 + below(5));
	if (one_in(5))
		fprintf(f, " ipproto %s", ONE_OF("tcp", "udp"));
	if (one_in(6))
		fprintf(f, " sport %u-%u", 1 + below(3), 4 + below(3));
	if (one_in(6))
		fprintf(f, " dport %u", 1 + below(6));
}

static void put_rule(FILE *f)
{
	fprintf(f, "rule add %s pref %u", one_in(6) ? "not" : "",
		1 + below(30000));
	put_selectors(f);
	switch (below(12)) {
	case 0:
		fprintf(f, " %s", ONE_OF("blackhole", "unreachable", "prohibit"));
		break;
	case 1:
		fprintf(f, " nop");
		break;
	case 2:
		fprintf(f, " goto 32766");
		break;
	case 3:
		fprintf(f, " table main suppress_prefixlength %u", below(25));
		break;
	default:
		fprintf(f, " table %s", ONE_OF(TABLES));
	}
	fprintf(f, "\n");
}

/* What takes routes away, most of it without a message about them. */
static void put_upheaval(FILE *f)
{
	const char *link = ONE_OF(LINKS);

	switch (below(6)) {
	case 0:
		fprintf(f, "link set %s down\n", link);
		break;
	case 1:
	case 2:
		fprintf(f, "link set %s up\n", link);
		break;
	case 3:
		fprintf(f, "addr del 10.1.0.1/16 dev a0\n");
		fprintf(f, "addr add 10.1.0.1/16 dev a0\n");
		break;
	case 4:
		fprintf(f, "route flush table %s\n", ONE_OF("100", "101"));
		break;
	default:
		fprintf(f, "rule del table %s\n", ONE_OF(TABLES));
	}
}

/* A batch of commands for ip(8), some of which the kernel may refuse. One that ip itself
 * refuses would end the batch. */
static void run_batch(unsigned cnt, void (*put)(FILE *f))
{
	FILE *f = popen("ip -force -batch - >/dev/null 2>&1", "w");
	int status;

	CHECK(f);
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < cnt; i++)
		put(f);
	status = pclose(f);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
}

static void follow(void)
{
	int rc;

	while ((rc = netlink_poll(&nl)) > 0)
		;
	CHECK_EQ(rc, 0);
	CHECK_EQ(netlink_wait_synced(&nl, SYNC_MS), 0);
}

static void make_links(void)
{
	static const char *const names = "abcd";

	for (const char *name = names; *name; name++) {
		netns_run("ip link add %c0 type veth peer name %c1", *name,
			  *name);
		netns_run("ip link set %c0 up", *name);
		netns_run("ip link set %c1 up", *name);
	}
	netns_run("ip link set b0 mtu 1400");
	netns_run("ip addr add 10.1.0.1/16 dev a0");
	netns_run("ip addr add 10.1.0.2/16 dev a0");
	netns_run("ip addr add 10.2.0.1/24 dev b0");
	netns_run("ip addr add 10.2.1.1/24 dev b0");
	netns_run("ip addr add 10.3.0.1 peer 10.3.0.2 dev c0");
	netns_run("ip addr add 10.0.0.1/32 dev lo");
	netns_run("ip addr add 10.15.15.15/28 dev b0 scope link");
}

static void enter(void)
{
	static const struct netlink_params params = { 0 };

	netns_enter();
	rand_init(&dice, test_seed);
	net_view_init(&view, 0);
	CHECK_EQ(netlink_open(&nl, &libnl_ops, &view, &params), 0);
	follow();
	make_links();
	kernel_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	CHECK(kernel_fd >= 0);
}

static void leave(void)
{
	close(kernel_fd);
	netlink_close(&nl);
	net_view_destroy(&view);
}

static int draw_oif(void)
{
	static const char *const links[] = { LINKS, "lo", "a1" };

	if (!one_in(4))
		return 0;
	return one_in(20) ? 99 : netns_index(one_of(links, ARRAY_LEN(links)));
}

static struct ip_addr draw_src(void)
{
	const char *own = one_of(own_addrs, ARRAY_LEN(own_addrs));
	struct ip_addr addr = { 0 };

	if (one_in(10))
		return ip_addr_from_v4(draw_addr());
	if (one_in(2))
		CHECK_EQ(ip_addr_parse(own, strlen(own), &addr), 0);
	return addr;
}

static struct net_flow draw_flow(void)
{
	struct net_flow flow = {
		.dst = ip_addr_from_v4(draw_addr()),
		.src = draw_src(),
		.oif = draw_oif(),
		.mark = below(4),
		.uid = below(10),
		.tos = (uint8_t)(below(64) << 2),
	};

	/* The kernel takes a question without a protocol for one about UDP. */
	flow.proto = one_in(2) ? IPPROTO_TCP : IPPROTO_UDP;
	if (one_in(2)) {
		flow.sport = (uint16_t)(1 + below(7));
		flow.dport = (uint16_t)(1 + below(7));
	}
	return flow;
}

static void compare_many(void)
{
	follow();
	for (unsigned i = 0; i < FLOWS; i++) {
		struct net_flow flow = draw_flow();

		compare(&flow);
	}
}

/* Without rules of its own the namespace has local and main in one. */
TEST(random_routes_lead_where_the_kernels_do)
{
	enter();
	for (int round = 0; round < 4; round++) {
		run_batch(60, put_route);
		compare_many();
	}
	leave();
}

TEST(random_rules_lead_where_the_kernels_do)
{
	enter();
	for (int round = 0; round < 6; round++) {
		run_batch(60, put_route);
		run_batch(8, put_rule);
		compare_many();
	}
	leave();
}

TEST(changes_lead_astray_nowhere)
{
	enter();
	run_batch(100, put_route);
	run_batch(20, put_rule);
	for (int round = 0; round < 20; round++) {
		run_batch(1 + below(3), put_upheaval);
		run_batch(below(20), put_route);
		run_batch(below(4), put_rule);
		compare_many();
	}
	leave();
}
