/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the steering program does with a frame: the kernel runs it, in a namespace of
 * its own, with a real AF_XDP socket to redirect to. */
#include "config.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev/xdp/steer.c"

#include "net/give_back.h"
#include "pkt/wire.h"
#include "tests/support/test.h"

enum { LO = 1, QUEUE = 0 };

/* -- what steer.c and xsk.c ask of others: there is nothing to adopt ------------- */

void services_close_fd(_Atomic int *slot)
{
	close(atomic_exchange(slot, -1));
}

int xdp_adopt_fd(int fd, _Atomic int *slot)
{
	atomic_store(slot, fd);
	return 0;
}

/* -- the program ------------------------------------------------------------------ */

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };

static struct {
	struct steer *steer;
	struct xsk xsk;
	void *mem;
} world;

static void enter_namespace(void)
{
	static bool is_inside;
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (is_inside)
		return;
	if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0)
		test_skip("needs root");
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_EQ(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	is_inside = true;
}

static void open_xsk(int ifindex)
{
	struct xsk_params params = {
		.ifindex = ifindex,
		.queue = QUEUE,
		.mem_size = 64 * 2048,
		.frame_size = 2048,
		.shared_fd = -1,
		.bind_flags = XDP_COPY,
		.rx_size = 32,
		.tx_size = 32,
		.fill_size = 32,
		.done_size = 32,
	};
	int err = -EBUSY;

	world.mem = mmap(NULL, params.mem_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	params.mem = world.mem;
	/* the one of the case before may not be gone yet */
	for (int i = 0; i < 1000 && err == -EBUSY; i++) {
		err = xsk_create(&world.xsk, &params);
		usleep(err ? 1000 : 0);
	}
	CHECK_EQ(err, 0);
	CHECK_EQ(steer_set_queue(world.steer, QUEUE, world.xsk.fd), 0);
}

static void begin(enum steer_sight sight)
{
	struct steer_params params = {
		.ifindex = LO,
		.sight = sight,
		.is_single = true,
	};

	enter_namespace();
	memcpy(params.mac, mac, sizeof(mac));
	CHECK_EQ(steer_create(&params, &world.steer), 0);
	open_xsk(LO);
}

static void end(void)
{
	xsk_destroy(&world.xsk);
	munmap(world.mem, 64 * 2048);
	steer_destroy(world.steer);
}

/* -- frames ------------------------------------------------------------------------ */

enum { MORE = 0x2000, FRAGMENT_2 = 185 };

struct frame {
	struct wire_eth eth;
	/* with room for options */
	uint8_t ip[60];
	uint8_t rest[100];
} WIRE_PACKED;

struct wants {
	uint8_t proto;
	unsigned options_len;
	/* as in the header */
	uint16_t frag;
	uint16_t port;
	uint32_t len;
};

/* From 10.0.0.2:7 to 10.0.0.1 and the port. */
static uint32_t run(const struct wants *wants)
{
	struct frame frame = { .eth.type = htobe16(WIRE_ETH_IPV4) };
	struct wire_ipv4 ip = {
		.version_ihl = (uint8_t)(0x40 + 5 + wants->options_len / 4),
		.frag = htobe16(wants->frag),
		.ttl = 1,
		.proto = wants->proto,
		.src = inet_addr("10.0.0.2"),
		.dst = inet_addr("10.0.0.1"),
	};
	uint16_t ports[2] = { htobe16(7), htobe16(wants->port) };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = &frame,
		    .data_size_in = wants->len ? wants->len : sizeof(frame),
		    .repeat = 1);

	memcpy(frame.eth.dst, mac, sizeof(mac));
	memcpy(frame.ip, &ip, sizeof(ip));
	memcpy(frame.ip + sizeof(ip) + wants->options_len, ports,
	       sizeof(ports));
	CHECK_EQ(bpf_prog_test_run_opts(world.steer->prog, &opts), 0);
	return opts.retval;
}

static uint32_t run_udp(uint16_t port)
{
	return run(&(struct wants){ .proto = IPPROTO_UDP, .port = port });
}

static uint32_t run_tcp(uint16_t port)
{
	return run(&(struct wants){ .proto = IPPROTO_TCP, .port = port });
}

static struct flow_rule rule(uint8_t proto, uint16_t port, bool is_connected)
{
	struct flow_rule rule = {
		.dst = ip_addr_from_v4(inet_addr("10.0.0.1")),
		.dst_port = htobe16(port),
		.proto = proto,
	};

	if (is_connected) {
		rule.src = ip_addr_from_v4(inet_addr("10.0.0.2"));
		rule.src_port = htobe16(7);
	}
	return rule;
}

static void add(const struct flow_rule *rule)
{
	CHECK_EQ(steer_add(world.steer, rule), 0);
}

static void add_plain(uint8_t proto, uint16_t port)
{
	struct flow_rule plain = rule(proto, port, false);

	add(&plain);
}

/* -- both sights ------------------------------------------------------------------- */

static void check_rules(enum steer_sight sight)
{
	struct flow_rule connected;

	begin(sight);
	connected = rule(IPPROTO_UDP, 53, true);
	add_plain(IPPROTO_UDP, 80);
	add(&connected);
	CHECK_EQ(run_udp(80), XDP_REDIRECT);
	CHECK_EQ(run_udp(53), XDP_REDIRECT);
	CHECK_EQ(run_udp(81), XDP_PASS);
	/* a rule is for one protocol */
	CHECK_EQ(run_tcp(80), XDP_PASS);
	steer_remove(world.steer, &connected);
	CHECK_EQ(run_udp(53), XDP_PASS);
	end();
}

TEST(frames_that_a_rule_names_go_to_the_ring)
{
	check_rules(STEER_SIGHT_BYTES);
}

/* Until the last of them is gone. */
TEST(rules_that_name_a_peer_end_one_by_one)
{
	struct flow_rule one, two;

	begin(STEER_SIGHT_BYTES);
	one = rule(IPPROTO_UDP, 53, true);
	two = rule(IPPROTO_UDP, 54, true);
	for (int i = 0; i < 2; i++) {
		add(&one);
		add(&two);
		CHECK(world.steer->now.has_connected);
		steer_remove(world.steer, &one);
		CHECK_EQ(run_udp(53), XDP_PASS);
		CHECK_EQ(run_udp(54), XDP_REDIRECT);
		steer_remove(world.steer, &one);
		CHECK_EQ(run_udp(54), XDP_REDIRECT);
		steer_remove(world.steer, &two);
		CHECK_EQ(run_udp(54), XDP_PASS);
		CHECK(!world.steer->now.has_connected);
	}
	end();
}

TEST(also_where_the_program_looks_behind_the_frame)
{
	check_rules(STEER_SIGHT_GSO);
}

TEST(what_udp_does_not_take_is_the_kernels)
{
	begin(STEER_SIGHT_BYTES);
	add_plain(IPPROTO_UDP, 80);
	CHECK_EQ(run(&(struct wants){ IPPROTO_UDP, .port = 80, .frag = MORE }),
		 XDP_PASS);
	CHECK_EQ(run(&(struct wants){ IPPROTO_UDP, .port = 80,
				      .frag = FRAGMENT_2 }),
		 XDP_PASS);
	CHECK_EQ(run(&(struct wants){ IPPROTO_UDP, .port = 80,
				      .options_len = 4 }),
		 XDP_PASS);
	end();
}

/* -- no TCP that a rule names reaches the kernel ------------------------------------ */

TEST(tcp_with_ip_options_is_taken)
{
	begin(STEER_SIGHT_GSO);
	add_plain(IPPROTO_TCP, 80);
	for (unsigned len = 0; len <= 40; len += 4) {
		struct wants wants = { IPPROTO_TCP, len, .port = 80 };

		CHECK_EQ(run(&wants), XDP_REDIRECT);
		wants.port = 81;
		CHECK_EQ(run(&wants), XDP_PASS);
	}
	end();
}

TEST(first_fragments_of_tcp_are_dropped_and_counted)
{
	struct wants wants = { IPPROTO_TCP, .port = 80, .frag = MORE };

	begin(STEER_SIGHT_BYTES);
	add_plain(IPPROTO_TCP, 80);
	CHECK_EQ(run(&wants), XDP_DROP);
	wants.options_len = 8;
	CHECK_EQ(run(&wants), XDP_DROP);
	CHECK_EQ(steer_fragments(world.steer), 2);
	/* without a rule it is the kernel's */
	wants.port = 81;
	CHECK_EQ(run(&wants), XDP_PASS);
	/* and what follows comes to nothing there */
	wants.port = 80;
	wants.frag = FRAGMENT_2;
	CHECK_EQ(run(&wants), XDP_PASS);
	CHECK_EQ(steer_fragments(world.steer), 2);
	end();
}

TEST(tcp_on_a_queue_without_a_socket_is_dropped)
{
	begin(STEER_SIGHT_BYTES);
	add_plain(IPPROTO_TCP, 80);
	add_plain(IPPROTO_UDP, 80);
	CHECK_EQ(run_tcp(80), XDP_REDIRECT);
	xsk_destroy(&world.xsk);
	/* it leaves the map when it is gone, which takes a moment */
	for (int i = 0; i < 1000 && run_tcp(80) == XDP_REDIRECT; i++)
		usleep(1000);
	CHECK_EQ(run_tcp(80), XDP_DROP);
	CHECK_EQ(run_udp(80), XDP_PASS);
	open_xsk(LO);
	end();
}

TEST(frames_that_end_early_are_the_kernels)
{
	begin(STEER_SIGHT_BYTES);
	add_plain(IPPROTO_TCP, 80);
	for (uint32_t len = 14; len < 14 + 20 + 4; len++)
		CHECK_EQ(run(&(struct wants){ IPPROTO_TCP, .port = 80,
					      .len = len }),
			 XDP_PASS);
	for (uint32_t len = 14 + 20 + 4; len < 14 + 60 + 4; len++)
		CHECK_EQ(run(&(struct wants){ IPPROTO_TCP, 40, .port = 80,
					      .len = len }),
			 XDP_PASS);
	end();
}

/* -- frames that go back ------------------------------------------------------------ */

enum { PORT = 80 };

/* A link of two ends: v0 has 10.0.0.1, and our program in generic mode. */
static int open_link(void)
{
	enter_namespace();
	if (system("ip link add v0 address 02:00:00:00:00:01 type veth peer name v1 &&"
		   "ip address add 10.0.0.1/24 dev v0 &&"
		   "ip link set v0 up && ip link set v1 up") != 0)
		test_skip("needs root");
	return (int)if_nametoindex("v0");
}

static int open_receiver(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htobe16(PORT) };
	struct timeval second = { .tv_sec = 1 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK_EQ(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	return fd;
}

/* A datagram of `len` zeros from 10.0.0.2, whose sum a card should complete. */
static int give_back(const struct give_back *door, int ifindex, uint32_t len)
{
	uint8_t bytes[10000] = { 0 };
	struct give_back_tags none = { .len = 0 };
	struct wire_eth *eth = (void *)bytes;
	struct wire_ipv4 *ip = (void *)(eth + 1);
	struct wire_udp *udp = (void *)(ip + 1);
	uint32_t sum;

	memcpy(eth->dst, mac, sizeof(mac));
	eth->type = htobe16(WIRE_ETH_IPV4);
	*udp = (struct wire_udp){ htobe16(7), htobe16(PORT),
				  htobe16((uint16_t)(sizeof(*udp) + len)), 0 };
	*ip = (struct wire_ipv4){
		.version_ihl = 0x45,
		.total_len = htobe16((uint16_t)(sizeof(*ip) + sizeof(*udp) +
						len)),
		.ttl = 1,
		.proto = IPPROTO_UDP,
		.src = inet_addr("10.0.0.2"),
		.dst = inet_addr("10.0.0.1"),
	};
	ip->check = csum_fold(csum_words(ip, 5));
	sum = csum_add(csum_words(&ip->src, 2), htobe16(IPPROTO_UDP));
	udp->check = (uint16_t)~csum_fold(csum_add(sum, udp->len));
	return give_back_frame(door, ifindex, &none, bytes,
			       (uint32_t)(sizeof(*eth) + sizeof(*ip) +
					  sizeof(*udp) + len),
			       true);
}

/* With a rule that takes all that comes by the link itself. */
TEST(a_frame_that_goes_back_does_not_come_to_us_again)
{
	struct steer_params params = { .sight = STEER_SIGHT_GSO };
	struct give_back door;
	uint8_t answer[10000];
	int fd;

	params.ifindex = open_link();
	memcpy(params.mac, mac, sizeof(mac));
	fd = open_receiver();
	CHECK_EQ(steer_create(&params, &world.steer), 0);
	CHECK_EQ(steer_attach(world.steer), 0);
	open_xsk(params.ifindex);
	add_plain(IPPROTO_UDP, PORT);
	give_back_open(&door);
	for (uint32_t len = 1; len < 9000; len += 1777) {
		CHECK_EQ(give_back(&door, params.ifindex, len), 0);
		CHECK_EQ(recv(fd, answer, sizeof(answer), 0), len);
	}
	close(fd);
	give_back_close(&door);
	end();
	CHECK_EQ(system("ip link del v0"), 0);
}

/* -- verdicts ---------------------------------------------------------------------- */

TEST(the_more_specific_rule_wins)
{
	struct flow_rule wide, narrow;

	begin(STEER_SIGHT_BYTES);
	wide = rule(IPPROTO_TCP, 80, false);
	narrow = rule(IPPROTO_TCP, 80, true);
	narrow.verdict = FLOW_TO_KERNEL;
	add(&wide);
	add(&narrow);
	CHECK_EQ(run_tcp(80), XDP_PASS);
	steer_remove(world.steer, &narrow);
	CHECK_EQ(run_tcp(80), XDP_REDIRECT);
	steer_remove(world.steer, &wide);
	/* and the other way round */
	wide.verdict = FLOW_TO_KERNEL;
	narrow.verdict = FLOW_TO_RING;
	add(&wide);
	add(&narrow);
	CHECK_EQ(run_tcp(80), XDP_REDIRECT);
	steer_remove(world.steer, &narrow);
	CHECK_EQ(run_tcp(80), XDP_PASS);
	end();
}

TEST(a_rule_is_there_once_whatever_its_verdict)
{
	struct flow_rule one;

	begin(STEER_SIGHT_BYTES);
	one = rule(IPPROTO_TCP, 80, true);
	add(&one);
	CHECK_EQ(steer_add(world.steer, &one), -EEXIST);
	one.verdict = FLOW_TO_KERNEL;
	CHECK_EQ(steer_add(world.steer, &one), -EEXIST);
	end();
}

/* -- many rules ---------------------------------------------------------------------- */

/* All of them still decide, by the program that is attached. */
TEST(the_table_of_rules_grows)
{
	enum { RULES = 40000, BEFORE = STEER_RULES_FIRST };
	struct flow_rule one;
	uint32_t first_id;

	begin(STEER_SIGHT_BYTES);
	CHECK_EQ(steer_attach(world.steer), 0);
	first_id = world.steer->prog_id;
	for (uint16_t port = 1; port <= RULES; port++)
		add_plain(IPPROTO_UDP, port);
	CHECK(world.steer->rules_max > RULES);
	CHECK(world.steer->prog_id != first_id);
	/* what is attached is what we know of */
	CHECK_EQ(steer_check(world.steer), 0);
	for (uint16_t port = 1; port <= RULES; port += 97)
		CHECK_EQ(run_udp(port), XDP_REDIRECT);
	for (uint16_t port = BEFORE - 5; port < BEFORE + 5; port++)
		CHECK_EQ(run_udp(port), XDP_REDIRECT);
	CHECK_EQ(run_udp(RULES + 1), XDP_PASS);
	one = rule(IPPROTO_UDP, 17, false);
	CHECK_EQ(steer_add(world.steer, &one), -EEXIST);
	steer_remove(world.steer, &one);
	CHECK_EQ(run_udp(17), XDP_PASS);
	end();
}
