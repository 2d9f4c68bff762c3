/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The demultiplexer (demux.h). */
#include "config.h"

#include "net/demux.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "net/rpf.h"
#include "pkt/wire.h"

enum {
	/* a page of lists */
	CONNECTED_BITS_MIN = 8,
	/* a page of tags */
	TAGS_MIN = 64,
};

static size_t size_of_lists(unsigned bits)
{
	return sizeof(struct list) << bits;
}

static int alloc_connected(struct list **lists_out, unsigned bits)
{
	struct list *lists = pages_map_not_inherited(size_of_lists(bits));

	if (!lists)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)1 << bits; i++)
		list_init(&lists[i]);
	*lists_out = lists;
	return 0;
}

int demux_init(struct demux *demux, uint64_t seed)
{
	memset(demux, 0, sizeof(*demux));
	demux->seed = seed;
	demux->drops = demux->own_drops;
	demux->connected_bits = CONNECTED_BITS_MIN;
	for (int i = 0; i < DEMUX_BUCKETS; i++)
		list_init(&demux->ports[i].ends);
	return alloc_connected(&demux->connected, demux->connected_bits);
}

void demux_destroy(struct demux *demux)
{
	if (demux->connected)
		munmap(demux->connected, size_of_lists(demux->connected_bits));
	demux->connected = NULL;
	if (demux->tags)
		munmap(demux->tags, sizeof(*demux->tags) * demux->tag_room);
	demux->tags = NULL;
}

static struct demux_bucket *port_bucket(struct demux *demux, __be16 port)
{
	return &demux->ports[be16toh(port) % DEMUX_BUCKETS];
}

static bool is_connected(const struct endpoint *end)
{
	return end->key.remote_port != 0;
}

static struct list *connected_bucket(struct demux *demux,
				     const struct flow_key *key)
{
	uint64_t hash = flow_key_hash(key, demux->seed);

	return &demux->connected[hash >> (64 - demux->connected_bits)];
}

/* Doubles the number of lists when there are as many endpoints as lists. */
static int make_room(struct demux *demux)
{
	size_t old_cnt = (size_t)1 << demux->connected_bits;
	struct list *old = demux->connected, *link;
	int err;

	if (demux->connected_cnt < old_cnt)
		return 0;
	err = alloc_connected(&demux->connected, demux->connected_bits + 1);
	if (err)
		return err;
	demux->connected_bits++;
	for (size_t i = 0; i < old_cnt; i++) {
		while ((link = list_pop_front(&old[i]))) {
			struct endpoint *end =
				LIST_ENTRY(link, struct endpoint, by_key);

			list_push_back(connected_bucket(demux, &end->key),
				       link);
		}
	}
	munmap(old, size_of_lists(demux->connected_bits - 1));
	return 0;
}

/* Whatever was known of the bucket's ports is not any more. */
static void has_changed(struct demux *demux, struct demux_bucket *bucket)
{
	bucket->changes++;
	demux->last.end = NULL;
}

/* Whether Linux looks at `a` before `b` if both match. An endpoint that names an
 * address comes before one that names none; then an IPv4 socket comes before an IPv6
 * one; then the newest comes first. */
static bool is_before(const struct endpoint *a, const struct endpoint *b)
{
	bool a_is_any = ip_addr_is_any(&a->key.local);
	bool b_is_any = ip_addr_is_any(&b->key.local);

	if (a_is_any != b_is_any)
		return b_is_any;
	if (a->is_ipv6 != b->is_ipv6)
		return b->is_ipv6;
	return a->named_ns >= b->named_ns;
}

static void insert(struct list *ends, struct endpoint *end)
{
	struct list *at = ends;

	while (at->next != ends &&
	       !is_before(end, LIST_ENTRY(at->next, struct endpoint, by_key)))
		at = at->next;
	list_insert_after(at, &end->by_key);
}

int demux_add(struct demux *demux, struct endpoint *end)
{
	struct demux_bucket *bucket = port_bucket(demux, end->key.local_port);
	int err;

	if (is_connected(end)) {
		err = make_room(demux);
		if (err)
			return err;
		/* Of several sockets with the same peer, the newest one receives. */
		list_push_front(connected_bucket(demux, &end->key),
				&end->by_key);
		demux->connected_cnt++;
		bucket->connected_cnt++;
	} else {
		insert(&bucket->ends, end);
	}
	end->is_reachable = true;
	has_changed(demux, bucket);
	return 0;
}

void demux_remove(struct demux *demux, struct endpoint *end)
{
	struct demux_bucket *bucket = port_bucket(demux, end->key.local_port);

	if (!end->is_reachable)
		return;
	list_remove(&end->by_key);
	if (is_connected(end)) {
		demux->connected_cnt--;
		bucket->connected_cnt--;
	}
	end->is_reachable = false;
	has_changed(demux, bucket);
}

/* -- tags ------------------------------------------------------------------ */

/* Doubles the number of tags. */
static int make_more_tags(struct demux *demux)
{
	uint32_t old_cnt = demux->tag_room;
	uint32_t cnt = old_cnt ? 2 * old_cnt : TAGS_MIN;
	struct demux_tag *tags;

	if (cnt > FLOW_TAG_MAX)
		return -ENOSPC;
	/* neither touches the pages, for which packets would wait */
	tags = old_cnt ? mremap(demux->tags, sizeof(*tags) * old_cnt,
				sizeof(*tags) * cnt, MREMAP_MAYMOVE) :
			 pages_map_not_inherited(sizeof(*tags) * cnt);
	if (!tags || tags == MAP_FAILED)
		return -ENOMEM;
	demux->tags = tags;
	demux->tag_room = cnt;
	return 0;
}

uint32_t demux_tag_add(struct demux *demux)
{
	uint32_t tag = demux->free_tag;

	if (tag) {
		demux->free_tag = demux->tags[tag - 1].next_free;
		return tag;
	}
	if (demux->tag_cnt == demux->tag_room && make_more_tags(demux))
		return 0;
	return ++demux->tag_cnt;
}

void demux_tag_remove(struct demux *demux, uint32_t tag)
{
	struct demux_tag *at = &demux->tags[tag - 1];

	at->route.end = NULL;
	at->next_free = demux->free_tag;
	demux->free_tag = tag;
}

/* -- endpoints ------------------------------------------------------------- */

static bool is_for_interface(const struct endpoint *end, uint32_t ifindex)
{
	return !end->ifindex || end->ifindex == ifindex;
}

static bool is_for_local(const struct endpoint *end, const struct flow_key *key,
			 uint8_t proto)
{
	return end->key.local_port == key->local_port && end->proto == proto &&
	       (ip_addr_is_any(&end->key.local) ||
		ip_addr_eq(&end->key.local, &key->local));
}

/* Several sockets with SO_REUSEPORT have the same key: chooses the one that gets
 * this flow. */
static struct endpoint *choose_shared(struct demux *demux,
				      struct endpoint *first,
				      struct list *head,
				      const struct flow_key *key,
				      uint32_t ifindex)
{
	struct endpoint *end = first, *chosen = first;
	uint64_t hash = flow_key_hash(key, ~demux->seed);
	unsigned cnt = 0;

	/* Each of n candidates is the last one chosen with a probability of 1/n. */
	for (struct list *link = &first->by_key; link != head;
	     link = link->next) {
		end = LIST_ENTRY(link, struct endpoint, by_key);
		if (!flow_key_eq(&end->key, &first->key) ||
		    end->proto != first->proto ||
		    !is_for_interface(end, ifindex) || !end->is_shared ||
		    end->is_ipv6 != first->is_ipv6)
			continue;
		cnt++;
		hash = hash_u64(hash, cnt);
		if (((hash >> 32) * cnt) >> 32 == 0)
			chosen = end;
	}
	return chosen;
}

bool demux_has_others(struct demux *demux, const struct endpoint *end)
{
	const struct list *head = &port_bucket(demux, end->key.local_port)->ends;
	const struct endpoint *other;

	if (!end->is_shared || is_connected(end))
		return false;
	LIST_FOR_EACH(other, head, by_key)
		if (other != end && other->is_shared && other->proto == end->proto &&
		    flow_key_eq(&other->key, &end->key))
			return true;
	return false;
}

static struct endpoint *find_unconnected(struct demux *demux,
					 struct demux_bucket *bucket,
					 const struct flow_key *key,
					 uint8_t proto, uint32_t ifindex)
{
	struct endpoint *end, *best = NULL;

	LIST_FOR_EACH(end, &bucket->ends, by_key) {
		if (!is_for_local(end, key, proto) || !is_for_interface(end, ifindex))
			continue;
		/* A socket that is bound to an address comes first, then one that is
		 * bound to an interface. */
		if (!best)
			best = end;
		else if (ip_addr_is_any(&end->key.local) ==
				 ip_addr_is_any(&best->key.local) &&
			 end->ifindex && !best->ifindex)
			best = end;
	}
	if (best && best->is_shared)
		best = choose_shared(demux, best, &bucket->ends, key, ifindex);
	return best;
}

static struct endpoint *find_connected(struct demux *demux,
				       const struct flow_key *key,
				       uint8_t proto, uint32_t ifindex)
{
	struct list *bucket = connected_bucket(demux, key);
	struct endpoint *end;

	LIST_FOR_EACH(end, bucket, by_key) {
		if (flow_key_eq(&end->key, key) && end->proto == proto &&
		    is_for_interface(end, ifindex))
			return end;
	}
	return NULL;
}

struct endpoint *demux_find(struct demux *demux, const struct flow_key *key,
			    uint8_t proto, uint32_t ifindex)
{
	struct demux_bucket *bucket = port_bucket(demux, key->local_port);
	struct endpoint *end = NULL;

	if (bucket->connected_cnt)
		end = find_connected(demux, key, proto, ifindex);
	return end ? end : find_unconnected(demux, bucket, key, proto,
					   ifindex);
}

/* -- frames --------------------------------------------------------------- */

static void drop(struct demux *demux, struct pkt *pkt, enum demux_drop why)
{
	demux->drops[why]++;
	pkt_put(pkt);
}

/* Checks the length and the sum of the IP header. DEMUX_DROP_CNT: nothing is wrong. */
static inline enum demux_drop check_ip(const struct demux_frame *frame,
				       uint32_t len)
{
	uint32_t total_len = be16toh(frame->ip.total_len);

	if (UNLIKELY(total_len + sizeof(frame->eth) > len ||
		     total_len < sizeof(*frame) - sizeof(frame->eth) ||
		     csum_fold(csum_words(&frame->ip, sizeof(frame->ip) / 4))))
		return DEMUX_IP_HEADER;
	return DEMUX_DROP_CNT;
}

/* Checks all headers. DEMUX_DROP_CNT: nothing is wrong. */
static enum demux_drop check_headers(const struct demux_frame *frame,
				     uint32_t len)
{
	if (UNLIKELY(len < sizeof(*frame) ||
		     frame->eth.type != htobe16(WIRE_ETH_IPV4)))
		return DEMUX_NOT_IP;
	if (UNLIKELY(frame->ip.version_ihl != 0x45))
		return frame->ip.version_ihl >> 4 == 4 ? DEMUX_FRAGMENT :
							 DEMUX_IP_HEADER;
	if (UNLIKELY(frame->ip.frag & htobe16(WIRE_IPV4_MF | WIRE_IPV4_OFFSET)))
		return DEMUX_FRAGMENT;
	if (UNLIKELY(frame->ip.proto != WIRE_PROTO_UDP &&
		     frame->ip.proto != WIRE_PROTO_TCP))
		return DEMUX_PROTO;
	return check_ip(frame, len);
}

void demux_set_own(struct demux *demux, const __be32 *own, unsigned cnt)
{
	demux->own = own;
	demux->own_cnt = cnt;
	demux->changes++;
	demux->last.end = NULL;
}

void demux_set_rpf(struct demux *demux, const struct rpf *rpf)
{
	demux->rpf = rpf;
	demux->changes++;
	demux->last.end = NULL;
}

static bool is_own(const struct demux *demux, uint32_t addr)
{
	unsigned from = 0, to = demux->own_cnt;

	while (from < to) {
		unsigned at = (from + to) / 2;
		uint32_t own = be32toh(demux->own[at]);

		if (own == addr)
			return true;
		if (own < addr)
			from = at + 1;
		else
			to = at;
	}
	return false;
}

/* Nobody can send from these addresses. From outside, nobody can send from our own
 * ones either. */
static bool is_source_impossible(const struct demux *demux,
				 const struct wire_ipv4 *ip,
				 const struct demux_from *from)
{
	uint32_t addr = be32toh(ip->src);

	return addr == INADDR_ANY || addr == INADDR_BROADCAST ||
	       IN_MULTICAST(addr) ||
	       (!from->is_local && (addr >> 24 == IN_LOOPBACKNET ||
				    is_own(demux, addr)));
}

/* The length of all parts together; 0 for a chain whose first part is shorter than
 * the headers. */
static uint32_t frame_len(const struct pkt *pkt)
{
	if (LIKELY(!pkt->next_part))
		return pkt->len;
	/* The code that reads the headers expects them in one buffer. */
	return pkt->len < sizeof(struct demux_frame) ? 0 : pkt_total_len(pkt);
}

/* Cuts a chain to its first `len` bytes. */
static void trim_chain(struct pkt *pkt, uint32_t len)
{
	while (pkt->len < len && pkt->next_part) {
		len -= pkt->len;
		pkt = pkt->next_part;
	}
	pkt_trim(pkt, MIN(len, pkt->len));
	pkt_put(pkt->next_part);
	pkt->next_part = NULL;
}

/* Remembers what all packets of this flow have in common. */
static void remember(struct demux *demux, const struct demux_frame *frame,
		     const struct demux_from *from, struct endpoint *end)
{
	uint64_t addrs = (uint64_t)frame->ip.src + frame->ip.dst;
	uint16_t version_tos;

	memcpy(&version_tos, &frame->ip, sizeof(version_tos));
	demux->last.end = end;
	demux->last.flow = demux_flow_of(frame, from);
	demux->last.ip_sum = addrs + version_tos + demux->last.flow.transport;
	demux->last.pseudo_sum = addrs + htobe16(frame->ip.proto);
}

/* NULL: the packet has none. A device may say whatever it wants. */
static inline struct demux_tag *tag_of(const struct demux *demux, const struct pkt *pkt,
				       const struct demux_from *from)
{
	return from->has_tags && pkt->flow_tag - 1 < demux->tag_room ?
		       &demux->tags[pkt->flow_tag - 1] : NULL;
}

/* What has changed for packets to this port, as a number that never comes back soon. */
static inline uint32_t changes_of(struct demux *demux, __be16 port)
{
	return demux->changes + port_bucket(demux, port)->changes;
}

/* The route that the packet's tag has led to before, if the packet is of that flow and the
 * route still leads to the same endpoint; else NULL. */
static const struct demux_route *route_by_tag(struct demux *demux, const struct pkt *pkt,
					      uint32_t len,
					      const struct demux_from *from)
{
	const struct demux_frame *frame = (const void *)pkt->data;
	const struct demux_tag *tag = tag_of(demux, pkt, from);

	if (!tag || !tag->route.end ||
	    !demux_is_like(&tag->route.flow, frame, len, from) ||
	    tag->changes != changes_of(demux, frame->dst_port))
		return NULL;
	return &tag->route;
}

/* Checks whether a frame of a new sender may go to an endpoint at all.
 * DEMUX_DROP_CNT: it may. */
static enum demux_drop check_source(const struct demux *demux,
				    const struct wire_ipv4 *ip,
				    const struct demux_from *from)
{
	if (is_source_impossible(demux, ip, from))
		return DEMUX_SPOOFED;
	if (!rpf_admits(demux->rpf, from->ifindex, ip->src, ip->dst))
		return DEMUX_RP_FILTER;
	return DEMUX_DROP_CNT;
}

/* Finds the endpoint of the frame, and remembers it. NULL: there is none, and
 * *why_out says why. */
static NOINLINE struct endpoint *look_up(struct demux *demux, const struct pkt *pkt,
					 const struct demux_from *from,
					 enum demux_drop *why_out)
{
	const struct demux_frame *frame = (const void *)pkt->data;
	struct demux_tag *tag = tag_of(demux, pkt, from);
	struct flow_key key = {
		.local = ip_addr_from_v4(frame->ip.dst),
		.remote = ip_addr_from_v4(frame->ip.src),
		.local_port = frame->dst_port,
		.remote_port = frame->src_port,
	};

	*why_out = check_source(demux, &frame->ip, from);
	if (*why_out != DEMUX_DROP_CNT)
		return NULL;
	*why_out = DEMUX_NO_ENDPOINT;
	remember(demux, frame, from,
		 demux_find(demux, &key, frame->ip.proto, from->ifindex));
	if (tag) {
		tag->route = demux->last;
		tag->changes = changes_of(demux, frame->dst_port);
	}
	return demux->last.end;
}

/* A frame that is no packet for an endpoint. */
static COLD void reject(struct demux *demux, struct pkt *pkt,
			const struct demux_from *from, enum demux_drop why)
{
	const struct demux_frame *frame = (const void *)pkt->data;

	if (why != DEMUX_NOT_IP || !demux->take_tagged || from->is_local ||
	    pkt->next_part || pkt->len < sizeof(*frame) ||
	    !wire_is_tag(be16toh(frame->eth.type))) {
		drop(demux, pkt, why);
		return;
	}
	PKT_CB(pkt, struct rx_info)->ifindex = from->ifindex;
	demux->take_tagged(demux, pkt);
}

void demux_input(struct demux *demux, struct pkt *pkt,
		 const struct demux_from *from)
{
	const struct demux_frame *frame = (const void *)pkt->data;
	uint32_t len = frame_len(pkt);
	bool is_like_last = demux->last.end &&
			    demux_is_like(&demux->last.flow, frame, len, from);
	const struct demux_route *route =
		LIKELY(is_like_last) ? NULL : route_by_tag(demux, pkt, len, from);
	bool is_known = is_like_last || route;
	enum demux_drop why = LIKELY(is_known) ? check_ip(frame, len) :
						 check_headers(frame, len);
	struct endpoint *end;
	struct rx_info *info;

	if (UNLIKELY(why != DEMUX_DROP_CNT)) {
		reject(demux, pkt, from, why);
		return;
	}
	/* not before: (demux_forget_last) */
	if (route)
		demux->last = *route;
	end = LIKELY(is_known) ? demux->last.end : look_up(demux, pkt, from, &why);
	if (UNLIKELY(!end)) {
		drop(demux, pkt, why);
		return;
	}
	info = PKT_CB(pkt, struct rx_info);
	info->ip_at = (uint16_t)(pkt_headroom(pkt) + sizeof(frame->eth));
	info->transport_at = (uint16_t)(info->ip_at + sizeof(frame->ip));
	info->ifindex = from->ifindex;
	info->len = be16toh(frame->ip.total_len) - (uint32_t)sizeof(frame->ip);
	info->may_be_partial = from->rx_partial_csum;
	pkt_pull(pkt, sizeof(frame->eth) + sizeof(frame->ip));
	end->input(end, pkt);
}

void demux_drop(struct demux *demux, struct pkt *pkt, enum demux_drop why)
{
	drop(demux, pkt, why);
}

void demux_trim(struct pkt *pkt, uint32_t len)
{
	if (LIKELY(!pkt->next_part))
		pkt_trim(pkt, len);
	else
		trim_chain(pkt, len);
}
