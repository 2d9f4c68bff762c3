/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network view in namespaces that change under it: it must follow, and after
 * whatever happened be what a new view would be.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bpf_program.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/linux_compat.h"
#include "nl/firewall.h"
#include "nl/net_view.h"
#include "nl/libnl/conn.h"
#include "nl/netlink.h"
#include "tests/support/test.h"
#include "tests/system/netns.h"

enum { SYNC_MS = 20000, PATIENCE_MS = 10000 };

static struct net_view view;
static struct netlink nl;

static void open_view(int rx_size)
{
	struct netlink_params params = { .rx_size = rx_size };
	uint64_t start_ns = clock_monotonic_ns();

	net_view_init(&view, 0);
	CHECK_EQ(netlink_open(&nl, &libnl_ops, &view, &params), 0);
	CHECK_EQ(netlink_wait_synced(&nl, SYNC_MS), 0);
	/* It did not wait for what need not come. */
	CHECK(clock_monotonic_ns() - start_ns < SYNC_MS / 2 * NS_PER_MS);
}

static void close_view(void)
{
	netlink_close(&nl);
	net_view_destroy(&view);
}

static void follow(void)
{
	int rc;

	while ((rc = netlink_poll(&nl)) > 0)
		;
	CHECK_EQ(rc, 0);
}

/* Follows until the condition holds. */
#define EVENTUALLY(cond)                                               \
	do {                                                           \
		uint64_t end_ = clock_monotonic_ns() +                 \
				PATIENCE_MS * NS_PER_MS;               \
		for (follow(); !(cond); follow()) {                    \
			if (clock_monotonic_ns() > end_)               \
				FAIL("never: %s", #cond);              \
			nap();                                         \
		}                                                      \
	} while (0)

static void nap(void)
{
	struct timespec ms = { .tv_nsec = (long)NS_PER_MS };

	nanosleep(&ms, NULL);
}

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	CHECK_EQ(ip_addr_parse(text, strlen(text), &a), 0);
	return a;
}

static const struct link *link_named(const char *name)
{
	return link_tab_find_name(&view.links, name);
}

static struct net_path path;

/* The errno of the way to an address, which is in `path`. */
static int way_to(const char *dst)
{
	struct net_flow flow = { .dst = addr(dst) };

	return net_view_route(&view, &flow, &path);
}

/* Two ends of a cable, v0 here and v1 in a namespace beside it. */
static void lay_cable(void)
{
	netns_enter();
	netns_run("ip link add v0 type veth peer name v1 netns %d",
		  (int)netns_make_peer());
	netns_run("ip addr add 10.0.0.1/24 dev v0 && ip link set v0 up");
	netns_run_in_peer("ip addr add 10.0.0.2/24 dev v1");
	netns_run_in_peer("ip link set v1 up");
}

/* Sums over a view, the same whatever the order within. */

static uint64_t sum_bytes(uint64_t sum, const void *data, size_t len)
{
	return sum + hash_bytes(1, data, len);
}

static void sum_route(void *ctx, const struct route *route)
{
	struct route copy = *route;
	uint64_t *sum = ctx, hops = 0;

	for (unsigned i = 0; i < route->hop_cnt; i++) {
		struct route_hop *hop = &route->hops[i];

		hops = hash_u64x2(hops, (uint64_t)hop->ifindex << 8 | hop->flags,
				  hop->gateway.half[1] ^ hop->weight);
	}
	copy.hops = NULL;
	*sum += hash_bytes(hops, &copy, offsetof(struct route, hop_cnt));
}

static bool sum_addr(void *ctx, const struct addr_info *info)
{
	uint64_t *sum = ctx;

	*sum = sum_bytes(*sum, info, sizeof(*info));
	return true;
}

static uint64_t sum_view(const struct net_view *v)
{
	const struct policy_entry *policy;
	const struct link *link;
	const struct neigh *neigh;
	uint64_t sum = 0;

	LIST_FOR_EACH(link, &v->links.links, in_tab) {
		sum = sum_bytes(sum, &link->info, sizeof(link->info));
		addr_tab_visit(&v->addrs, link->info.ifindex, sum_addr, &sum);
	}
	LIST_FOR_EACH(policy, &v->policies.policies, in_tab)
		sum = sum_bytes(sum, &policy->policy, sizeof(policy->policy));
	/* Those that need no resolution come and go unannounced. */
	LIST_FOR_EACH(neigh, &v->neighs.known, in_tab) {
		if (neigh->info.state != NUD_NOARP)
			sum = sum_bytes(sum, &neigh->info,
					offsetof(struct neigh_info, state));
	}
	route_tab_visit(&v->routes, sum_route, &sum);
	return sum;
}

/* Whether the view is what a new one would be at this moment. */
static bool is_like_new(void)
{
	struct netlink_params params = { 0 };
	struct netlink fresh_nl;
	struct net_view fresh;
	bool is_same;

	net_view_init(&fresh, 0);
	CHECK_EQ(netlink_open(&fresh_nl, &libnl_ops, &fresh, &params), 0);
	CHECK_EQ(netlink_wait_synced(&fresh_nl, SYNC_MS), 0);
	is_same = sum_view(&view) == sum_view(&fresh);
	netlink_close(&fresh_nl);
	net_view_destroy(&fresh);
	return is_same;
}

TEST(shows_links_and_addresses)
{
	const struct link *link;
	struct ip_addr own = addr("10.0.0.1"), other = addr("10.0.0.2");

	lay_cable();
	netns_run("ip link add name br type bridge && ip link add m0 type "
		  "veth peer name m1 && ip link set m0 master br");
	netns_run("ip link add mv link m1 type macvlan");
	open_view(0);
	link = link_named("v0");
	CHECK(link);
	CHECK_EQ(link->info.ifindex, netns_index("v0"));
	CHECK_EQ(link->info.kind, LINK_VETH);
	CHECK_EQ(link->info.mtu, 1500);
	CHECK_EQ(link->info.addr_len, 6);
	CHECK_EQ(link->info.lower, 0);
	CHECK(link_is_up(link) && !link_is_port(link));
	CHECK(!link_tab_has_upper(&view.links, link->info.ifindex));
	CHECK_EQ(link_named("lo")->info.kind, LINK_LOOPBACK);
	CHECK(link_is_port(link_named("m0")));
	CHECK_EQ(link_named("m0")->info.master_kind, LINK_BRIDGE);
	CHECK_EQ(link_named("m0")->info.lower, netns_index("m1"));
	CHECK(link_tab_has_upper(&view.links, netns_index("m1")));
	CHECK(net_view_is_ours(&view, &own));
	CHECK(!net_view_is_ours(&view, &other));
	EVENTUALLY(is_like_new());
	close_view();
}

TEST(follows_addresses)
{
	struct ip_addr own = addr("10.0.7.1");
	uint64_t gen;

	lay_cable();
	open_view(0);
	gen = net_view_route_gen(&view);
	netns_run("ip addr add 10.0.7.1/24 dev v0");
	EVENTUALLY(net_view_is_ours(&view, &own));
	CHECK(net_view_route_gen(&view) != gen);
	CHECK_EQ(way_to("10.0.7.9"), 0);
	CHECK(ip_addr_eq(&path.src, &own));
	gen = net_view_route_gen(&view);
	netns_run("ip addr del 10.0.7.1/24 dev v0");
	EVENTUALLY(!net_view_is_ours(&view, &own));
	CHECK(net_view_route_gen(&view) != gen);
	CHECK_EQ(way_to("10.0.7.9"), -ENETUNREACH);
	EVENTUALLY(is_like_new());
	close_view();
}

/* The kernel takes them with the address, and says nothing before Linux 6.7. */
TEST(routes_go_with_the_source_they_prefer)
{
	lay_cable();
	netns_run("ip addr add 10.0.0.9/32 dev v0");
	netns_run("ip route add 10.5.0.0/16 via 10.0.0.2 src 10.0.0.9");
	open_view(0);
	CHECK_EQ(way_to("10.5.0.1"), 0);
	netns_run("ip addr del 10.0.0.9/32 dev v0");
	EVENTUALLY(way_to("10.5.0.1") == -ENETUNREACH);
	close_view();
}

TEST(follows_a_link_down_and_up)
{
	lay_cable();
	netns_run("ip route add 10.5.0.0/16 via 10.0.0.2");
	open_view(0);
	CHECK_EQ(way_to("10.5.0.1"), 0);
	CHECK(path.has_gateway);
	netns_run("ip link set v0 down");
	EVENTUALLY(way_to("10.5.0.1") == -ENETUNREACH);
	EVENTUALLY(netlink_is_synced(&nl));
	EVENTUALLY(is_like_new());
	netns_run("ip link set v0 up");
	EVENTUALLY(way_to("10.0.0.7") == 0);
	CHECK_EQ(path.ifindex, netns_index("v0"));
	/* Linux does not bring it back. */
	CHECK_EQ(way_to("10.5.0.1"), -ENETUNREACH);
	close_view();
}

TEST(multipath_passes_over_a_dead_link)
{
	int v0, m0;

	lay_cable();
	netns_run("ip link add m0 type veth peer name m1");
	netns_run("ip link set m1 up && ip link set m0 up && "
		  "ip addr add 10.1.0.1/24 dev m0");
	netns_run("ip route add 10.5.0.0/16 nexthop via 10.0.0.2 "
		  "nexthop via 10.1.0.2");
	v0 = netns_index("v0");
	m0 = netns_index("m0");
	open_view(0);
	netns_run("ip link set m0 down");
	EVENTUALLY(!link_is_up(link_named("m0")));
	for (view.hash_seed = 0; view.hash_seed < 100; view.hash_seed++) {
		CHECK_EQ(way_to("10.5.0.1"), 0);
		CHECK_EQ(path.ifindex, v0);
	}
	netns_run("ip link set m0 up");
	for (view.hash_seed = 0;; view.hash_seed++) {
		follow();
		CHECK_EQ(way_to("10.5.0.1"), 0);
		if (path.ifindex == m0)
			break;
		CHECK(view.hash_seed < 100000);
	}
	EVENTUALLY(is_like_new());
	close_view();
}

TEST(forgets_a_deleted_link)
{
	struct ip_addr own = addr("10.0.0.1");

	lay_cable();
	open_view(0);
	CHECK_EQ(way_to("10.0.0.7"), 0);
	netns_run("ip link del v0");
	EVENTUALLY(!link_named("v0"));
	CHECK_EQ(way_to("10.0.0.7"), -ENETUNREACH);
	CHECK(!net_view_is_ours(&view, &own));
	EVENTUALLY(is_like_new());
	close_view();
}

TEST(follows_mtu_mac_and_name)
{
	static const uint8_t mac[] = { 2, 0, 0, 0, 0, 0x77 };
	uint64_t gen;

	lay_cable();
	netns_run("ip route add 10.5.0.0/16 via 10.0.0.2 mtu 1300");
	open_view(0);
	gen = net_view_route_gen(&view);
	netns_run("ip link set v0 mtu 1400 address 02:00:00:00:00:77");
	EVENTUALLY(link_named("v0")->info.mtu == 1400);
	CHECK(net_view_route_gen(&view) != gen);
	CHECK_MEM(link_named("v0")->info.addr, mac, sizeof(mac));
	CHECK_EQ(way_to("10.0.0.2"), 0);
	CHECK_EQ(path.mtu, 1400);
	CHECK_EQ(way_to("10.5.0.2"), 0);
	CHECK_EQ(path.mtu, 1300);
	netns_run("ip link set v0 name cable");
	EVENTUALLY(link_named("cable"));
	CHECK(!link_named("v0"));
	close_view();
}

TEST(tables_rules_and_refusals)
{
	struct net_flow flow = { .dst = addr("10.9.0.1"), .mark = 7 };

	lay_cable();
	open_view(0);
	netns_run("ip route add 10.9.0.0/16 via 10.0.0.2 table 100");
	netns_run("ip rule add fwmark 7 table 100");
	netns_run("ip route add blackhole 10.6.0.0/16");
	netns_run("ip route add prohibit 10.7.0.0/16");
	EVENTUALLY(way_to("10.7.0.1") == -EACCES);
	CHECK_EQ(way_to("10.6.0.1"), -EINVAL);
	CHECK_EQ(way_to("10.9.0.1"), -ENETUNREACH);
	EVENTUALLY(net_view_route(&view, &flow, &path) == 0);
	CHECK_EQ(path.table, 100);
	netns_run("ip rule del fwmark 7 table 100");
	EVENTUALLY(net_view_route(&view, &flow, &path) == -ENETUNREACH);
	close_view();
}

/* As `ip rule add fwmark 7 pref 50 table 100`, which would refuse a second one. */
static void add_rule_without_looking(void)
{
	static const uint32_t mark = 7, priority = 50;
	struct {
		struct nlmsghdr head;
		struct fib_rule_hdr body;
		struct nlattr mark_head;
		uint32_t mark;
		struct nlattr priority_head;
		uint32_t priority;
		struct nlmsghdr ack_room;
		int error;
	} msg = {
		.head = {
			.nlmsg_len = offsetof(__typeof__(msg), ack_room),
			.nlmsg_type = RTM_NEWRULE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK,
		},
		.body = { .family = AF_INET, .table = 100,
			  .action = FR_ACT_TO_TBL },
		.mark_head = { 8, FRA_FWMARK },
		.mark = mark,
		.priority_head = { 8, FRA_PRIORITY },
		.priority = priority,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	CHECK(send(fd, &msg, msg.head.nlmsg_len, 0) > 0);
	CHECK(recv(fd, &msg, sizeof(msg), 0) > 0);
	CHECK_EQ(*(int *)NLMSG_DATA(&msg.head), 0);
	close(fd);
}

/* The kernel allows a rule twice. */
TEST(a_rule_twice_is_two_rules)
{
	struct net_flow flow = { .dst = addr("10.9.0.1"), .mark = 7 };

	lay_cable();
	netns_run("ip route add 10.9.0.0/16 via 10.0.0.2 table 100");
	open_view(0);
	add_rule_without_looking();
	add_rule_without_looking();
	EVENTUALLY(view.policies.policy_cnt == 5);
	EVENTUALLY(is_like_new());
	netns_run("ip rule del fwmark 7 pref 50 table 100");
	EVENTUALLY(view.policies.policy_cnt == 4);
	CHECK_EQ(net_view_route(&view, &flow, &path), 0);
	close_view();
}

static const struct neigh *neigh_of(const char *dst)
{
	struct ip_addr a = addr(dst);

	return neigh_tab_find(&view.neighs, netns_index("v0"), &a);
}

static enum neigh_advice advice_for(const char *dst)
{
	return neigh_advice(neigh_of(dst));
}

static int resolve(const char *dst)
{
	struct ip_addr a = addr(dst);

	return netlink_resolve(&nl, netns_index("v0"), &a);
}

TEST(resolves_a_neighbour)
{
	static const uint8_t mac[] = { 2, 0, 0, 0, 0, 0x22 };
	uint64_t gen;

	lay_cable();
	netns_run_in_peer("ip link set v1 address 02:00:00:00:00:22");
	open_view(0);
	CHECK_EQ(advice_for("10.0.0.2"), NEIGH_RESOLVE);
	gen = net_view_gen(&view);
	CHECK_EQ(resolve("10.0.0.2"), 0);
	EVENTUALLY(advice_for("10.0.0.2") == NEIGH_USABLE);
	CHECK(net_view_gen(&view) != gen);
	CHECK_EQ(neigh_of("10.0.0.2")->info.hw_len, 6);
	CHECK_MEM(neigh_of("10.0.0.2")->info.hw_addr, mac, 6);
	close_view();
}

TEST(a_stale_neighbour_is_confirmed)
{
	lay_cable();
	open_view(0);
	CHECK_EQ(resolve("10.0.0.2"), 0);
	EVENTUALLY(advice_for("10.0.0.2") == NEIGH_USABLE);
	netns_run("ip neigh change 10.0.0.2 dev v0 nud stale");
	EVENTUALLY(advice_for("10.0.0.2") == NEIGH_CONFIRM);
	CHECK_EQ(resolve("10.0.0.2"), 0);
	EVENTUALLY(advice_for("10.0.0.2") == NEIGH_USABLE);
	close_view();
}

TEST(a_neighbour_that_moved_has_its_new_address)
{
	lay_cable();
	open_view(0);
	CHECK_EQ(resolve("10.0.0.2"), 0);
	EVENTUALLY(advice_for("10.0.0.2") == NEIGH_USABLE);
	netns_run_in_peer("ip link set v1 address 02:00:00:00:00:99");
	netns_run("ip neigh flush dev v0");
	EVENTUALLY(advice_for("10.0.0.2") == NEIGH_CONFIRM);
	CHECK(neigh_of("10.0.0.2")->info.hw_addr[5] != 0x99);
	CHECK_EQ(resolve("10.0.0.2"), 0);
	EVENTUALLY(neigh_of("10.0.0.2")->info.hw_addr[5] == 0x99);
	close_view();
}

TEST(a_dropped_neighbour_keeps_its_address)
{
	uint8_t mac[6];

	lay_cable();
	open_view(0);
	CHECK_EQ(resolve("10.0.0.2"), 0);
	EVENTUALLY(advice_for("10.0.0.2") == NEIGH_USABLE);
	memcpy(mac, neigh_of("10.0.0.2")->info.hw_addr, 6);
	netns_run("ip neigh del 10.0.0.2 dev v0");
	EVENTUALLY(advice_for("10.0.0.2") == NEIGH_CONFIRM);
	CHECK_MEM(neigh_of("10.0.0.2")->info.hw_addr, mac, 6);
	close_view();
}

TEST(nobody_there_is_an_answer)
{
	lay_cable();
	netns_run("sysctl -qw net.ipv4.neigh.v0.mcast_solicit=1 "
		  "net.ipv4.neigh.v0.retrans_time_ms=50");
	open_view(0);
	CHECK_EQ(resolve("10.0.0.200"), 0);
	EVENTUALLY(advice_for("10.0.0.200") == NEIGH_FAILED);
	close_view();
}

TEST(resolves_over_ipv6)
{
	/* A solicitation's source is the link's own address. The kernel's is
	 * tentative for up to three seconds, and it asks three times only. */
	lay_cable();
	netns_run("ip addr add fe80::1/64 dev v0 nodad");
	netns_run("ip addr add fd00::1/64 dev v0 nodad");
	netns_run_in_peer("ip addr add fd00::2/64 dev v1 nodad");
	open_view(0);
	CHECK_EQ(resolve("fd00::2"), 0);
	EVENTUALLY(advice_for("fd00::2") == NEIGH_USABLE);
	close_view();
}

TEST(resolving_on_no_link_is_refused)
{
	struct ip_addr a = addr("10.0.0.2");

	lay_cable();
	open_view(0);
	CHECK(netlink_resolve(&nl, 999, &a) < 0);
	CHECK_EQ(netlink_read_link(&nl, 999), -ENODEV);
	close_view();
}

/* Runs in a child without privileges; its errno is the exit status. */
static int without_privileges(int (*call)(void))
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(setgid(65534) || setuid(65534) ? 255 : -call());
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static int resolve_peer(void)
{
	return resolve("10.0.0.2");
}

TEST(without_privilege_the_kernel_does_not_resolve_for_us)
{
	lay_cable();
	open_view(0);
	CHECK_EQ(without_privileges(resolve_peer), -EPERM);
	close_view();
}

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* A program that passes everything. */
static int load_program(enum bpf_prog_type type, uint32_t attach_type,
			const char *name)
{
	bool is_xdp = type == BPF_PROG_TYPE_XDP;
	const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0,
		  .imm = is_xdp ? XDP_PASS : 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load = {
		.prog_type = type,
		.insns = (uintptr_t)pass,
		.insn_cnt = ARRAY_LEN(pass),
		.license = (uintptr_t)"Dual BSD/GPL",
	};
	int fd;

	load.expected_attach_type = attach_type;
	strncpy(load.prog_name, name, sizeof(load.prog_name) - 1);
	fd = bpf(BPF_PROG_LOAD, &load);
	CHECK(fd >= 0);
	return fd;
}

/* Attaches one to an interface, or to what `target` is an fd of, until the fd that it
 * returns is closed. -1: the kernel does not know how. */
static int attach(enum bpf_prog_type type, uint32_t attach_type,
		  const char *name, int target)
{
	bool is_tcx = type == BPF_PROG_TYPE_SCHED_CLS;
	int prog_fd = load_program(type, is_tcx ? 0 : attach_type, name);
	union bpf_attr link = { 0 };
	int link_fd;

	link.link_create.prog_fd = (uint32_t)prog_fd;
	link.link_create.target_fd = (uint32_t)target;
	link.link_create.attach_type = attach_type;
	link_fd = bpf(BPF_LINK_CREATE, &link);
	close(prog_fd);
	return link_fd;
}

static int attach_xdp(int ifindex)
{
	int link_fd = attach(BPF_PROG_TYPE_XDP, BPF_XDP, "", ifindex);

	CHECK(link_fd >= 0);
	return link_fd;
}

TEST(reading_a_link_shows_its_xdp_program)
{
	int ifindex, link_fd;

	lay_cable();
	open_view(0);
	ifindex = netns_index("v0");
	CHECK_EQ(link_named("v0")->info.xdp_mode, LINK_XDP_NONE);
	link_fd = attach_xdp(ifindex);
	CHECK_EQ(netlink_read_link(&nl, ifindex), 0);
	CHECK_EQ(link_named("v0")->info.xdp_mode, LINK_XDP_NATIVE);
	CHECK(link_named("v0")->info.xdp_prog_id != 0);
	close(link_fd);
	CHECK_EQ(netlink_read_link(&nl, ifindex), 0);
	CHECK_EQ(link_named("v0")->info.xdp_mode, LINK_XDP_NONE);
	close_view();
}

/* To 172.16.0.0 and up, by next hops 10.0.0.2 and up. */
static void add_routes(unsigned cnt, unsigned hop_cnt)
{
	FILE *f = popen("ip -batch -", "w");

	CHECK(f);
	for (unsigned i = 0; i < cnt; i++)
		fprintf(f, "route add 172.%u.%u.%u via 10.0.0.%u\n",
			16 + i / 65536, i / 256 % 256, i % 256,
			2 + i % hop_cnt);
	CHECK(pclose(f) == 0);
}

static void add_many_routes(unsigned cnt)
{
	add_routes(cnt, 1);
}

TEST(after_an_overrun_everything_is_read_again)
{
	lay_cable();
	open_view(4096);
	CHECK_EQ(netlink_counts(&nl)->overruns, 0);
	add_many_routes(20000);
	EVENTUALLY(netlink_is_synced(&nl));
	CHECK(netlink_counts(&nl)->overruns > 0);
	CHECK(netlink_counts(&nl)->syncs > 1);
	CHECK(view.routes.route_cnt > 20000);
	EVENTUALLY(is_like_new());
	netns_run("ip route flush root 172.16.0.0/12");
	EVENTUALLY(netlink_is_synced(&nl) &&
		   view.routes.route_cnt < 100);
	EVENTUALLY(is_like_new());
	close_view();
}

TEST(a_flood_without_overrun_needs_no_second_reading)
{
	lay_cable();
	open_view(64 << 20);
	add_many_routes(20000);
	EVENTUALLY(view.routes.route_cnt > 20000);
	CHECK_EQ(netlink_counts(&nl)->overruns, 0);
	CHECK_EQ(netlink_counts(&nl)->syncs, 1);
	EVENTUALLY(is_like_new());
	close_view();
}

/* Sanitizers have a heap of their own, of which this knows nothing. */
static size_t heap_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* User's and system's together: what others do on the machine is not in it. */
static uint64_t cpu_ms(void)
{
	struct timespec ts;

	CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) == 0);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / NS_PER_MS;
}

/* What all routes cost somebody who asks for them and looks at none. */
static uint64_t dump_ms(void)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg body;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask),
			  .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .rtm_family = AF_INET },
	};
	static _Alignas(struct nlmsghdr) char buf[32768];
	const struct nlmsghdr *first = (const struct nlmsghdr *)buf;
	uint64_t start_ms = cpu_ms();
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	CHECK(send(fd, &ask, sizeof(ask), 0) == sizeof(ask));
	do
		CHECK(recv(fd, buf, sizeof(buf), 0) > 0);
	while (first->nlmsg_type == RTM_NEWROUTE);
	CHECK_EQ(first->nlmsg_type, NLMSG_DONE);
	close(fd);
	return cpu_ms() - start_ms;
}

/* What the library reads at its start on a router of the Internet. libnl allocates
 * for each of them, and keeps nothing. On a machine that is slow, as the kernel's own part
 * of it says, it may take longer; and one that stands still does not do so each time. */
TEST(half_a_million_routes_are_read_in_two_seconds)
{
	enum { ROUTES = 500000, HOPS = 50, BYTES_MAX = 100, DUMPS_MAX = 8 };
	const uint64_t ms_max = 2000;
	uint64_t took_ms = 0, most_ms = 0;
	size_t before, bytes;

	lay_cable();
	add_routes(ROUTES, HOPS);
	for (int i = 0; i < 3 && took_ms >= most_ms; i++) {
		uint64_t start_ms;

		if (i)
			close_view();
		most_ms = MAX(ms_max, DUMPS_MAX * dump_ms());
		before = heap_in_use();
		start_ms = cpu_ms();
		open_view(0);
		took_ms = cpu_ms() - start_ms;
		bytes = (heap_in_use() - before) / ROUTES;
		CHECK(view.routes.route_cnt >= ROUTES);
		CHECK_EQ(netlink_counts(&nl)->overruns, 0);
		CHECK(bytes <= BYTES_MAX);
		test_note("%u routes in %u ms of %u, %zu bytes each", ROUTES,
			  (unsigned)took_ms, (unsigned)most_ms, bytes);
	}
	CHECK(took_ms < most_ms);
	close_view();
}

TEST(only_the_kernel_is_heard)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg body;
	} lie = {
		.head = { .nlmsg_len = sizeof(lie), .nlmsg_type = RTM_DELLINK },
		.body = { .ifi_index = 1 },
	};
	struct sockaddr_nl to;
	socklen_t len = sizeof(to);
	int fd;

	lay_cable();
	open_view(0);
	CHECK_EQ(getsockname(netlink_event_fd(&nl), (struct sockaddr *)&to,
			     &len), 0);
	to.nl_groups = 0;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	CHECK(sendto(fd, &lie, sizeof(lie), 0, (struct sockaddr *)&to,
		     sizeof(to)) == sizeof(lie));
	EVENTUALLY(netlink_counts(&nl)->rejects == 1);
	CHECK(link_named("lo"));
	close(fd);
	close_view();
}

static char names[FIREWALL_TEXT_SIZE];

static int read_firewall(void)
{
	return firewall_read(&libnl_ops, false, names, sizeof(names));
}

TEST(an_empty_namespace_has_no_firewall)
{
	netns_enter();
	CHECK_EQ(read_firewall(), 0);
	CHECK_STR(names, "");
}

TEST(names_netfilter_and_xfrm)
{
	netns_enter();
	netns_run("nft 'add table inet guard; add chain inet guard in "
		  "{ type filter hook input priority 0; }; add chain inet "
		  "guard through { type filter hook forward priority 0; }; "
		  "add chain inet guard aside'");
	CHECK_EQ(read_firewall(), 1);
	CHECK_STR(names, "nftables inet guard in");
	netns_run("iptables-legacy -t mangle -A OUTPUT -j ACCEPT");
	CHECK_EQ(read_firewall(), 2);
	CHECK_STR(names, "nftables inet guard in, iptables mangle");
	netns_run("ip xfrm policy add src 10.0.0.0/24 dst 10.1.0.0/24 dir out");
	CHECK_EQ(read_firewall(), 3);
	CHECK_STR(names, "nftables inet guard in, iptables mangle, "
			 "1 xfrm policy");
}

/* A filter, in the language of old packet filters. */
#define PASS_ALL "bpf bytecode '1,6 0 0 0'"

TEST(names_filters_of_tc)
{
	netns_enter();
	netns_run("ip link add v0 type veth peer name v1");
	netns_run("ip link set v0 up; ip link set v1 up");
	/* a place for filters is no filter, and who looks at lo does not see what we
	 * would send */
	netns_run("tc qdisc add dev v0 clsact; tc qdisc add dev v1 ingress; "
		  "tc qdisc add dev lo clsact");
	netns_run("tc filter add dev lo ingress " PASS_ALL);
	CHECK_EQ(read_firewall(), 0);
	netns_run("tc filter add dev v0 egress " PASS_ALL);
	CHECK_EQ(read_firewall(), 1);
	CHECK_STR(names, "tc egress v0");
	netns_run("tc filter add dev v0 egress " PASS_ALL);
	netns_run("tc filter add dev v1 ingress " PASS_ALL);
	CHECK_EQ(read_firewall(), 2);
	CHECK(strstr(names, "tc egress v0"));
	CHECK(strstr(names, "tc ingress v1"));
}

TEST(names_programs_of_tcx)
{
	int ifindex, link_fd;

	netns_enter();
	netns_run("ip link add v0 type veth peer name v1");
	ifindex = netns_index("v0");
	link_fd = attach(BPF_PROG_TYPE_SCHED_CLS, COMPAT_BPF_TCX_INGRESS,
			 "look", ifindex);
	if (link_fd < 0)
		test_skip("needs Linux 6.6");
	CHECK_EQ(read_firewall(), 1);
	CHECK_STR(names, "tcx ingress v0 look");
	CHECK(attach(BPF_PROG_TYPE_SCHED_CLS, COMPAT_BPF_TCX_EGRESS, "",
		     ifindex) >= 0);
	close(link_fd);
	CHECK_EQ(read_firewall(), 1);
	CHECK(strstr(names, "tcx egress v0 program "));
}

/* It is there for a moment, while another process's listener becomes the kernel's. */
TEST(our_own_program_of_tcx_is_no_filter)
{
	int ifindex, link_fd;

	netns_enter();
	netns_run("ip link add v0 type veth peer name v1");
	ifindex = netns_index("v0");
	link_fd = attach(BPF_PROG_TYPE_SCHED_CLS, COMPAT_BPF_TCX_INGRESS,
			 BPF_PROGRAM_HAND_OVER, ifindex);
	if (link_fd < 0)
		test_skip("needs Linux 6.6");
	CHECK_EQ(read_firewall(), 0);
	CHECK(attach(BPF_PROG_TYPE_SCHED_CLS, COMPAT_BPF_TCX_INGRESS, "look",
		     ifindex) >= 0);
	CHECK_EQ(read_firewall(), 1);
	CHECK_STR(names, "tcx ingress v0 look");
}

TEST(names_who_chooses_sockets)
{
	int fd, link_fd;

	netns_enter();
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	link_fd = attach(BPF_PROG_TYPE_SK_LOOKUP, BPF_SK_LOOKUP, "chooser", fd);
	CHECK(link_fd >= 0);
	CHECK_EQ(read_firewall(), 1);
	CHECK_STR(names, "sk_lookup chooser");
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char file[192];
	int fd;

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* In a cgroup two levels below, where it may stay. */
static void read_firewall_in_cgroup(const char *parent, const char *own)
{
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int before;

	write_file(own, "cgroup.procs", "0");
	before = read_firewall();
	CHECK(attach(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_INGRESS,
		     "deny_in", fd) >= 0);
	CHECK_EQ(read_firewall(), before + 1);
	CHECK(strstr(names, "cgroup ingress deny_in"));
	CHECK(attach(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS,
		     "deny_out", fd) >= 0);
	CHECK(attach(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP4_SENDMSG,
		     "change", fd) >= 0);
	CHECK_EQ(read_firewall(), before + 3);
	CHECK(strstr(names, "cgroup egress deny_out"));
	CHECK(strstr(names, "cgroup sendmsg4 change"));
	/* those meet the twin */
	CHECK(attach(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET4_CONNECT,
		     "connect", fd) >= 0);
	CHECK_EQ(read_firewall(), before + 3);
}

/* Mounts the cgroups in `where` of a namespace of its own, and has all that it made
 * removed again, whatever comes of it. */
static void in_cgroups(const char *where)
{
	char own[128], parent[96];
	int status;
	pid_t pid;

	netns_mount_alone();
	CHECK(mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) == 0);
	mkdir(where, 0755);
	if (mount("none", where, "cgroup2", 0, NULL) != 0)
		FAIL("cgroup2: %s", strerror(errno));
	snprintf(parent, sizeof(parent), "%s/vma-test.%d", where, (int)getpid());
	snprintf(own, sizeof(own), "%s/own", parent);
	CHECK(mkdir(parent, 0755) == 0 && mkdir(own, 0755) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		read_firewall_in_cgroup(parent, own);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(rmdir(own) == 0 && rmdir(parent) == 0);
	CHECK_EQ(status, 0);
	CHECK(umount2("/sys/fs/cgroup", MNT_DETACH) == 0);
}

TEST(names_programs_of_the_cgroup)
{
	netns_enter();
	in_cgroups("/sys/fs/cgroup");
	in_cgroups("/sys/fs/cgroup/unified");
}

TEST(without_privilege_the_firewall_is_unknown)
{
	netns_enter();
	CHECK_EQ(without_privileges(read_firewall), -EPERM);
}
