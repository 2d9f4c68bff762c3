/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "net/demux.h"

#include <stdlib.h>

#include "base/rand.h"
#include "ip/ip_udp.h"
#include "pkt/pkt_pool.h"
#include "pkt/wire.h"
#include "tests/support/inherited.h"
#include "tests/support/test.h"

#define ME_1 0x0a000001 /* 10.0.0.1 */
#define ME_2 0x0a000002
#define PEER 0x0a0000fe

struct sink {
	struct endpoint end;
	unsigned cnt;
	struct rx_info info;
	char text[64];
};

struct frame {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
	char payload[32];
} WIRE_PACKED;

static struct demux demux;
static struct pkt_pool pool;
static const struct demux_from wire = { .ifindex = 7 };

/* As a UDP socket does it. */
static bool unwrap(struct pkt *pkt)
{
	struct rx_info *info = PKT_CB(pkt, struct rx_info);
	const struct wire_udp *udp = (const void *)pkt->data;

	switch (ip_udp_judge((const void *)(pkt->buf + info->ip_at), pkt,
			     info->len, info->may_be_partial)) {
	case IP_UDP_GOOD:
		break;
	case IP_UDP_HEADER:
		demux_drop(&demux, pkt, DEMUX_UDP_HEADER);
		return false;
	default:
		demux_drop(&demux, pkt, DEMUX_CSUM);
		return false;
	}
	info->len = be16toh(udp->len) - (uint32_t)sizeof(*udp);
	pkt_pull(pkt, sizeof(*udp));
	demux_trim(pkt, info->len);
	return true;
}

static void input(struct endpoint *end, struct pkt *pkt)
{
	struct sink *sink = CONTAINER_OF(end, struct sink, end);

	if (!unwrap(pkt))
		return;
	sink->cnt++;
	sink->info = *PKT_CB(pkt, struct rx_info);
	memcpy(sink->text, pkt->data, MIN(pkt->len, sizeof(sink->text) - 1));
	sink->text[MIN(pkt->len, sizeof(sink->text) - 1)] = 0;
	pkt_put(pkt);
}

static void begin(void)
{
	CHECK_EQ(demux_init(&demux, 1), 0);
	pkt_pool_init(&pool, 64);
	CHECK_EQ(pkt_pool_grow(&pool, 8, 2048), 0);
}

static void end(void)
{
	CHECK(pkt_pool_is_full(&pool));
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
	demux_destroy(&demux);
}

static struct ip_addr v4(uint32_t addr)
{
	return ip_addr_from_v4(htobe32(addr));
}

/* Port 0 and address 0 stand for any. */
static void add(struct sink *sink, uint32_t local, uint16_t port,
		uint32_t remote, uint16_t remote_port)
{
	memset(sink, 0, sizeof(*sink));
	endpoint_init(&sink->end, input);
	sink->end.proto = WIRE_PROTO_UDP;
	sink->end.key.local = v4(local);
	sink->end.key.local_port = htobe16(port);
	if (remote_port)
		sink->end.key.remote = v4(remote);
	sink->end.key.remote_port = htobe16(remote_port);
	CHECK_EQ(demux_add(&demux, &sink->end), 0);
}

static struct frame make(uint32_t src, uint16_t sport, uint32_t dst,
			 uint16_t dport, const char *text)
{
	struct frame f = {
		.eth.type = htobe16(WIRE_ETH_IPV4),
		.ip.version_ihl = 0x45,
		.ip.ttl = 64,
		.ip.proto = WIRE_PROTO_UDP,
		.ip.src = htobe32(src),
		.ip.dst = htobe32(dst),
		.udp.src_port = htobe16(sport),
		.udp.dst_port = htobe16(dport),
	};
	uint16_t len = (uint16_t)(sizeof(f.udp) + strlen(text));

	strncpy(f.payload, text, sizeof(f.payload));
	f.udp.len = htobe16(len);
	f.ip.total_len = htobe16((uint16_t)(len + sizeof(f.ip)));
	f.ip.check = csum_fold(csum_partial(&f.ip, sizeof(f.ip), 0));
	f.udp.check = csum_fold(csum_partial(
		&f.udp, len,
		csum_partial(&f.ip.src, 8,
			     csum_add(htobe16(WIRE_PROTO_UDP), f.udp.len))));
	return f;
}

static void fix_ip_sum(struct frame *f)
{
	f->ip.check = 0;
	f->ip.check = csum_fold(csum_partial(&f->ip, sizeof(f->ip), 0));
}

/* With padding behind the packet, as short Ethernet frames have it. */
static void deliver_from(const struct frame *f, size_t len,
			 const struct demux_from *from)
{
	struct pkt *pkt = pkt_alloc(&pool);

	memcpy(pkt_append(pkt, (uint32_t)len), f, len);
	demux_input(&demux, pkt, from);
}

static void deliver(const struct frame *f)
{
	deliver_from(f, sizeof(*f), &wire);
}

/* By a device that says which rule has brought it. */
static void deliver_tagged(const struct frame *f, uint32_t tag)
{
	static const struct demux_from card = { .ifindex = 7, .has_tags = true };
	struct pkt *pkt = pkt_alloc(&pool);

	memcpy(pkt_append(pkt, sizeof(*f)), f, sizeof(*f));
	pkt->flow_tag = tag;
	demux_input(&demux, pkt, &card);
}

TEST(payload_arrives_without_padding)
{
	struct frame f = make(PEER, 9, ME_1, 5, "hello");
	struct sink sink;

	begin();
	add(&sink, ME_1, 5, 0, 0);
	deliver(&f);
	CHECK_EQ(sink.cnt, 1);
	CHECK_STR(sink.text, "hello");
	CHECK_EQ(sink.info.len, 5);
	CHECK_EQ(sink.info.ifindex, 7);
	CHECK_EQ(sink.info.ip_at, 64 + 14);
	CHECK_EQ(sink.info.transport_at, 64 + 34);
	demux_remove(&demux, &sink.end);
	deliver(&f);
	CHECK_EQ(sink.cnt, 1);
	CHECK_EQ(demux.drops[DEMUX_NO_ENDPOINT], 1);
	end();
}

TEST(the_more_specific_endpoint_wins)
{
	struct sink any, addr, conn, device;
	struct frame f = make(PEER, 9, ME_1, 5, "x");
	struct frame other_peer = make(PEER, 10, ME_1, 5, "x");
	struct frame other_addr = make(PEER, 9, ME_2, 5, "x");

	begin();
	add(&any, 0, 5, 0, 0);
	add(&conn, ME_1, 5, PEER, 9);
	add(&addr, ME_1, 5, 0, 0);
	deliver(&f);
	CHECK_EQ(conn.cnt, 1);
	deliver(&other_peer);
	CHECK_EQ(addr.cnt, 1);
	deliver(&other_addr);
	CHECK_EQ(any.cnt, 1);
	demux_remove(&demux, &conn.end);
	deliver(&f);
	CHECK_EQ(addr.cnt, 2);
	/* bound to the interface the frame came by, and to another one */
	add(&device, 0, 5, 0, 0);
	device.end.ifindex = 7;
	deliver(&other_addr);
	CHECK_EQ(device.cnt, 1);
	demux_remove(&demux, &device.end);
	device.end.ifindex = 8;
	CHECK_EQ(demux_add(&demux, &device.end), 0);
	deliver(&other_addr);
	CHECK_EQ(any.cnt, 2);
	end();
}

TEST(sockets_that_share_a_port_share_the_flows)
{
	struct sink sinks[4];
	unsigned served = 0;

	begin();
	for (int i = 0; i < 4; i++) {
		add(&sinks[i], 0, 5, 0, 0);
		sinks[i].end.is_shared = true;
	}
	for (uint16_t port = 1; port <= 400; port++) {
		struct frame f = make(PEER, port, ME_1, 5, "x");
		unsigned before[4], changed = 0;

		for (int i = 0; i < 4; i++)
			before[i] = sinks[i].cnt;
		deliver(&f);
		deliver(&f);
		/* one flow stays with one socket */
		for (int i = 0; i < 4; i++) {
			unsigned got = sinks[i].cnt - before[i];

			CHECK(got == 0 || got == 2);
			changed += got;
		}
		CHECK_EQ(changed, 2);
	}
	for (int i = 0; i < 4; i++)
		served += sinks[i].cnt > 100;
	CHECK_EQ(served, 4);
	end();
}

TEST(thousands_of_connections_on_a_port)
{
	enum { CNT = 5000 };
	struct sink *sinks = calloc(CNT, sizeof(*sinks));

	begin();
	for (uint16_t i = 0; i < CNT; i++)
		add(&sinks[i], ME_1, 5, PEER, (uint16_t)(1000 + i));
	for (uint16_t i = 0; i < CNT; i++) {
		struct frame f = make(PEER, (uint16_t)(1000 + i), ME_1, 5, "x");

		deliver(&f);
		CHECK_EQ(sinks[i].cnt, 1);
	}
	for (uint16_t i = 0; i < CNT; i += 2)
		demux_remove(&demux, &sinks[i].end);
	for (uint16_t i = 0; i < CNT; i++) {
		struct frame f = make(PEER, (uint16_t)(1000 + i), ME_1, 5, "x");

		deliver(&f);
		CHECK_EQ(sinks[i].cnt, 1 + i % 2);
	}
	end();
	free(sinks);
}

static struct pkt *tagged;

static void take_tagged(struct demux *of, struct pkt *pkt)
{
	CHECK(of == &demux && !tagged);
	tagged = pkt;
}

/* From outside. */
TEST(tagged_frames_are_handed_over_as_they_are)
{
	static const struct demux_from local = { .ifindex = 9, .is_local = true };
	struct frame f = make(PEER, 9, ME_1, 5, "hello");

	begin();
	f.eth.type = htobe16(WIRE_ETH_VLAN);
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_NOT_IP], 1);
	demux.take_tagged = take_tagged;
	deliver_from(&f, sizeof(f), &local);
	CHECK_EQ(demux.drops[DEMUX_NOT_IP], 2);
	deliver_from(&f, 17, &wire);
	CHECK_EQ(demux.drops[DEMUX_NOT_IP], 3);
	deliver(&f);
	CHECK(tagged);
	CHECK_EQ(PKT_CB(tagged, struct rx_info)->ifindex, wire.ifindex);
	CHECK_MEM(tagged->data, &f, sizeof(f));
	pkt_put(tagged);
	tagged = NULL;
	f.eth.type = htobe16(WIRE_ETH_ARP);
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_NOT_IP], 4);
	end();
}

TEST(lies_are_dropped_and_counted)
{
	struct frame good = make(PEER, 9, ME_1, 5, "hello"), f;
	struct sink sink;

	begin();
	add(&sink, 0, 5, 0, 0);
	f = good;
	f.eth.type = htobe16(WIRE_ETH_ARP);
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_NOT_IP], 1);
	deliver_from(&good, 37, &wire);
	CHECK_EQ(demux.drops[DEMUX_NOT_IP], 2);
	f = good;
	f.ip.version_ihl = 0x46;
	deliver(&f);
	f = good;
	f.ip.frag = htobe16(WIRE_IPV4_MF);
	fix_ip_sum(&f);
	deliver(&f);
	f = good;
	f.ip.frag = htobe16(3);
	fix_ip_sum(&f);
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_FRAGMENT], 3);
	f = good;
	f.ip.version_ihl = 0x65;
	deliver(&f);
	f = good;
	f.ip.check ^= 1;
	deliver(&f);
	f = good;
	f.ip.total_len = htobe16(sizeof(f) - sizeof(f.eth) + 1);
	fix_ip_sum(&f);
	deliver(&f);
	/* shorter than its own header: nothing may be left of the payload */
	f.ip.total_len = htobe16(1);
	fix_ip_sum(&f);
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_IP_HEADER], 4);
	f = good;
	f.ip.proto = WIRE_PROTO_ICMP;
	fix_ip_sum(&f);
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_PROTO], 1);
	/* a protocol that nobody here has this port of */
	f.ip.proto = WIRE_PROTO_TCP;
	fix_ip_sum(&f);
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_NO_ENDPOINT], 1);
	/* IP's payload is shorter than a UDP header */
	f = good;
	f.ip.total_len = htobe16(27);
	fix_ip_sum(&f);
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_UDP_HEADER], 1);
	f = good;
	f.udp.len = htobe16(7);
	deliver(&f);
	f = good;
	f.udp.len = htobe16(14);
	deliver(&f);
	f = good;
	f.udp.dst_port = 0;
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_UDP_HEADER], 3);
	CHECK_EQ(demux.drops[DEMUX_NO_ENDPOINT], 2);
	f = good;
	f.payload[0] ^= 1;
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_CSUM], 1);
	CHECK_EQ(sink.cnt, 0);
	deliver(&good);
	CHECK_EQ(sink.cnt, 1);
	end();
}

TEST(impossible_sources_are_dropped)
{
	static const uint32_t sources[] = {
		0,	    0x7f000001, 0xe0000001, 0xefffffff,
		0xffffffff, ME_1,	ME_2,
	};
	static const struct demux_from local = { .is_local = true };
	const __be32 own[] = { htobe32(ME_1), htobe32(ME_2) };
	struct frame reserved = make(0xf0000001, 9, ME_1, 5, "x");
	struct frame peer = make(PEER, 9, ME_1, 5, "x");
	struct sink sink;

	begin();
	demux_set_own(&demux, own, 2);
	add(&sink, 0, 5, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		struct frame f = make(sources[i], 9, ME_1, 5, "x");

		deliver(&f);
	}
	CHECK_EQ(demux.drops[DEMUX_SPOOFED], ARRAY_LEN(sources));
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		struct frame f = make(sources[i], 9, ME_1, 5, "x");

		deliver_from(&f, sizeof(f), &local);
	}
	/* loopback and ourselves, within this machine */
	CHECK_EQ(sink.cnt, 3);
	/* as Linux: nobody has 240/4, but it is no lie */
	deliver(&reserved);
	deliver(&peer);
	CHECK_EQ(sink.cnt, 5);
	end();
}

TEST(an_address_becomes_our_own)
{
	const __be32 own[] = { htobe32(ME_1), htobe32(PEER) };
	struct frame f = make(PEER, 9, ME_1, 5, "x");
	struct sink sink;

	begin();
	add(&sink, 0, 5, 0, 0);
	demux_set_own(&demux, own, 1);
	deliver(&f);
	demux_set_own(&demux, own, 2);
	deliver(&f);
	CHECK_EQ(sink.cnt, 1);
	CHECK_EQ(demux.drops[DEMUX_SPOOFED], 1);
	end();
}

TEST(checksums_zero_partial_and_given)
{
	static const struct demux_from veth = { .rx_partial_csum = true };
	struct frame f = make(PEER, 9, ME_1, 5, "hello");
	struct pkt *pkt;
	struct sink sink;

	begin();
	add(&sink, 0, 5, 0, 0);
	f.udp.check = 0;
	deliver(&f);
	CHECK_EQ(sink.cnt, 1);
	/* what a sender leaves to its card: the pseudo header's sum */
	f.udp.check = (uint16_t)~csum_fold(csum_partial(
		&f.ip.src, 8, csum_add(htobe16(WIRE_PROTO_UDP), f.udp.len)));
	deliver(&f);
	CHECK_EQ(demux.drops[DEMUX_CSUM], 1);
	deliver_from(&f, sizeof(f), &veth);
	CHECK_EQ(sink.cnt, 2);
	for (int verdict = PKT_CSUM_GOOD; verdict <= PKT_CSUM_BAD; verdict++) {
		pkt = pkt_alloc(&pool);
		memcpy(pkt_append(pkt, sizeof(f)), &f, sizeof(f));
		pkt->csum_verdict = (uint8_t)verdict;
		demux_input(&demux, pkt, &wire);
	}
	CHECK_EQ(sink.cnt, 3);
	CHECK_EQ(demux.drops[DEMUX_CSUM], 2);
	end();
}

/* A packet in several buffers, cut at every place behind the headers. */
TEST(chains_are_delivered_whole)
{
	struct frame f = make(PEER, 9, ME_1, 5, "a longer payload");
	struct sink sink;

	begin();
	add(&sink, 0, 5, 0, 0);
	for (uint32_t cut = 42; cut < sizeof(f); cut++) {
		struct pkt *first = pkt_alloc(&pool), *second = pkt_alloc(&pool);

		memcpy(pkt_append(first, cut), &f, cut);
		memcpy(pkt_append(second, (uint32_t)sizeof(f) - cut),
		       (uint8_t *)&f + cut, sizeof(f) - cut);
		first->next_part = second;
		demux_input(&demux, first, &wire);
		CHECK_EQ(sink.info.len, 16);
		CHECK_EQ(strlen(sink.text), MIN(cut - 42, 16u));
	}
	CHECK_EQ(sink.cnt, sizeof(f) - 42);
	end();
}

static struct ring_frame peek(const struct frame *f, size_t len,
			      const struct demux_from *from)
{
	struct ring_frame frame = { (const uint8_t *)f, (uint32_t)len,
				    PKT_CSUM_UNKNOWN, false };
	struct ring_frame segment = demux_peek(&demux, frame, from);
	const struct wire_udp *udp = (const void *)segment.data;

	if (!udp || !ip_udp_is_good(udp, segment.len, demux.last.pseudo_sum,
				    from->rx_partial_csum))
		return RING_NO_FRAME;
	return (struct ring_frame){ (const uint8_t *)(udp + 1),
				    segment.len - (uint32_t)sizeof(*udp),
				    PKT_CSUM_UNKNOWN, false };
}

TEST(the_next_frame_of_a_flow_is_known)
{
	static const struct demux_from veth = { .ifindex = 7,
						.rx_partial_csum = true };
	static const struct demux_from other = { .ifindex = 8 };
	struct frame f = make(PEER, 9, ME_1, 5, "hello");
	struct ring_frame payload;
	struct sink sink;

	begin();
	add(&sink, ME_1, 5, 0, 0);
	deliver(&f);
	CHECK(demux.last.end == &sink.end);
	/* with padding, another length, another identification */
	f = make(PEER, 9, ME_1, 5, "good morning");
	f.ip.id = htobe16(0x1234);
	fix_ip_sum(&f);
	payload = peek(&f, sizeof(f), &wire);
	CHECK_EQ(payload.len, 12);
	CHECK(payload.data == (const uint8_t *)f.payload);
	CHECK(!peek(&f, sizeof(f), &other).data);
	CHECK(!peek(NULL, 0, &wire).data);
	/* just long enough */
	CHECK(peek(&f, 42 + 12, &wire).data);
	CHECK(!peek(&f, 42 + 11, &wire).data);
	/* no checksum, one that a card was to complete, and a wrong one */
	f.udp.check = 0;
	CHECK(peek(&f, sizeof(f), &wire).data);
	f.udp.check = (uint16_t)~csum_fold(csum_partial(
		&f.ip.src, 8, csum_add(htobe16(WIRE_PROTO_UDP), f.udp.len)));
	CHECK(!peek(&f, sizeof(f), &wire).data);
	CHECK(peek(&f, sizeof(f), &veth).data);
	f.udp.check++;
	CHECK(!peek(&f, sizeof(f), &veth).data);
	/* an empty datagram */
	f = make(PEER, 9, ME_1, 5, "");
	payload = peek(&f, sizeof(f), &wire);
	CHECK(payload.data);
	CHECK_EQ(payload.len, 0);
	/* other flows */
	f = make(PEER, 10, ME_1, 5, "hello");
	CHECK(!peek(&f, sizeof(f), &wire).data);
	f = make(PEER, 9, ME_2, 5, "hello");
	CHECK(!peek(&f, sizeof(f), &wire).data);
	end();
}

/* Flows that come in turns, each by a rule of its own. With another seed no look-up finds a
 * connected endpoint. */
TEST(a_tag_spares_the_look_up)
{
	struct frame one = make(PEER, 8, ME_1, 5, "one");
	struct frame two = make(PEER, 9, ME_1, 5, "two");
	struct sink first, second;
	uint32_t tags[2];

	begin();
	add(&first, ME_1, 5, PEER, 8);
	add(&second, ME_1, 5, PEER, 9);
	tags[0] = demux_tag_add(&demux);
	tags[1] = demux_tag_add(&demux);
	CHECK(tags[0] && tags[1] && tags[0] != tags[1]);
	deliver_tagged(&one, tags[0]);
	deliver_tagged(&two, tags[1]);
	demux.seed++;
	for (int i = 0; i < 3; i++) {
		deliver_tagged(&one, tags[0]);
		CHECK(demux.last.end == &first.end);
		deliver_tagged(&two, tags[1]);
		CHECK(demux.last.end == &second.end);
	}
	CHECK_EQ(first.cnt, 4);
	CHECK_EQ(second.cnt, 4);
	CHECK_STR(first.text, "one");
	CHECK_STR(second.text, "two");
	/* a broken frame leads nowhere: who has had the last one forgotten waits for one
	 * that comes to its endpoint */
	demux_forget_last(&demux);
	one.ip.check++;
	deliver_tagged(&one, tags[0]);
	CHECK_EQ(demux.drops[DEMUX_IP_HEADER], 1);
	CHECK(!demux.last.end);
	/* without its tag it is looked up */
	one.ip.check--;
	deliver_tagged(&two, tags[1]);
	deliver_tagged(&one, 0);
	CHECK_EQ(demux.drops[DEMUX_NO_ENDPOINT], 1);
	demux.seed--;
	deliver_tagged(&one, 0);
	CHECK_EQ(first.cnt, 5);
	/* as it is when something else is admitted */
	demux.seed++;
	demux_set_rpf(&demux, NULL);
	deliver_tagged(&two, tags[1]);
	CHECK_EQ(second.cnt, 5);
	CHECK_EQ(demux.drops[DEMUX_NO_ENDPOINT], 2);
	demux.seed--;
	demux_remove(&demux, &first.end);
	demux_remove(&demux, &second.end);
	end();
}

/* Sockets come and go, addresses become our own, and a card is late, or lies. */
TEST(a_tag_leads_where_a_look_up_would)
{
	const __be32 own = htobe32(PEER);
	struct frame f = make(PEER, 8, ME_1, 5, "one");
	struct frame other = make(PEER, 9, ME_1, 5, "other");
	struct sink any, connected, newest;
	uint32_t tag;

	begin();
	add(&any, ME_1, 5, 0, 0);
	tag = demux_tag_add(&demux);
	deliver_tagged(&f, tag);
	deliver_tagged(&other, 0);
	deliver_tagged(&f, tag);
	CHECK_EQ(any.cnt, 3);
	add(&connected, ME_1, 5, PEER, 8);
	deliver_tagged(&f, tag);
	CHECK_EQ(connected.cnt, 1);
	add(&newest, ME_1, 5, PEER, 8);
	deliver_tagged(&f, tag);
	CHECK_EQ(newest.cnt, 1);
	demux_remove(&demux, &newest.end);
	deliver_tagged(&f, tag);
	CHECK_EQ(connected.cnt, 2);
	demux_remove(&demux, &connected.end);
	deliver_tagged(&f, tag);
	CHECK_EQ(any.cnt, 4);
	/* another flow with its tag, with no tag of ours, and after the tag has ended */
	deliver_tagged(&other, tag);
	deliver_tagged(&other, tag + 1);
	deliver_tagged(&f, UINT32_MAX);
	demux_tag_remove(&demux, tag);
	deliver_tagged(&f, tag);
	CHECK_EQ(any.cnt, 8);
	CHECK_EQ(demux_tag_add(&demux), tag);
	demux_set_own(&demux, &own, 1);
	deliver_tagged(&f, tag);
	CHECK_EQ(any.cnt, 8);
	CHECK_EQ(demux.drops[DEMUX_SPOOFED], 1);
	demux_set_own(&demux, NULL, 0);
	demux_remove(&demux, &any.end);
	deliver_tagged(&f, tag);
	CHECK_EQ(any.cnt, 8);
	end();
}

/* Each rule of a thousand has one of its own, and what has ended is there for others. */
TEST(there_are_tags_for_many_rules)
{
	enum { CNT = 1000 };
	static bool is_used[2 * CNT];
	uint32_t tags[CNT];

	begin();
	for (int round = 0; round < 2; round++) {
		memset(is_used, 0, sizeof(is_used));
		for (int i = 0; i < CNT; i++) {
			tags[i] = demux_tag_add(&demux);
			CHECK(tags[i] && tags[i] < 2 * CNT && !is_used[tags[i]]);
			is_used[tags[i]] = true;
		}
		CHECK(!is_inherited(demux.tags));
		for (int i = 0; i < CNT; i++)
			demux_tag_remove(&demux, tags[i]);
	}
	CHECK(demux.tag_room < 2 * CNT);
	end();
}

/* What demux_peek takes demux_input delivers, with the same bytes. */
TEST(noise_never_hurts)
{
	struct frame good = make(PEER, 9, ME_1, 5, "hello");
	unsigned cnt, peeked = 0;
	struct sink sink;
	struct rand r;

	rand_init(&r, test_seed);
	begin();
	add(&sink, 0, 5, 0, 0);
	for (int i = 0; i < 200000; i++) {
		size_t len = rand_below(&r, sizeof(good) + 1);
		unsigned flips = 1 + rand_below(&r, 4);
		struct frame f = good;
		struct ring_frame payload;

		deliver(&good);
		while (flips--)
			((uint8_t *)&f)[rand_below(&r, sizeof(f))] ^=
				(uint8_t)(1 << rand_below(&r, 8));
		payload = peek(&f, len, &wire);
		cnt = sink.cnt;
		deliver_from(&f, len, &wire);
		if (!payload.data)
			continue;
		peeked++;
		CHECK_EQ(sink.cnt, cnt + 1);
		CHECK_EQ(sink.info.len, payload.len);
		CHECK(!memcmp(sink.text, payload.data, payload.len));
	}
	CHECK(peeked > 1000);
	end();
}

/* The connected ones, of which there may be many; also after their lists have grown. */
TEST(children_have_nothing_of_the_lists)
{
	enum { CNT = 1000 };
	static struct sink sinks[CNT];

	begin();
	CHECK(!is_inherited(demux.connected));
	for (unsigned i = 0; i < CNT; i++)
		add(&sinks[i], 1, 5, 2, (uint16_t)(1 + i));
	CHECK(!is_inherited(demux.connected));
	for (unsigned i = 0; i < CNT; i++)
		demux_remove(&demux, &sinks[i].end);
	end();
}
