/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames for the kernel (tcp_gift.h). */
#include "config.h"

#include "sock/tcp/tcp_gift.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "pkt/wire.h"

/* As the peer would have sent it: by the way there, the other way round. */
static size_t build_frame(const struct flow_key *key, const struct dst_header *way,
			  const uint8_t *header, size_t header_len,
			  const struct pkt *data, uint8_t *frame, size_t room)
{
	struct dst_header *h = (struct dst_header *)frame;
	struct wire_tcp *tcp = (struct wire_tcp *)(h + 1);
	size_t at = sizeof(*h) + header_len;

	memcpy(h->eth.dst, way->eth.src, sizeof(h->eth.dst));
	memcpy(h->eth.src, way->eth.dst, sizeof(h->eth.src));
	h->eth.type = htobe16(WIRE_ETH_IPV4);
	memcpy(tcp, header, header_len);
	for (; data; data = data->next_part) {
		if (at + data->len > room)
			return 0;
		memcpy(frame + at, data->data, data->len);
		at += data->len;
	}
	h->ip = (struct wire_ipv4){
		.version_ihl = 0x45,
		.total_len = htobe16((uint16_t)(at - sizeof(h->eth))),
		.frag = htobe16(WIRE_IPV4_DF),
		.ttl = 64,
		.proto = WIRE_PROTO_TCP,
		.src = ip_addr_v4(&key->remote),
		.dst = ip_addr_v4(&key->local),
	};
	h->ip.check = csum_fold(csum_words(&h->ip, sizeof(h->ip) / 4));
	tcp->check = 0;
	tcp->check = csum_fold(csum_partial(
		tcp, (uint32_t)(at - sizeof(*h)),
		wire_pseudo_sum(&key->remote, &key->local, WIRE_PROTO_TCP,
				(uint32_t)(at - sizeof(*h)))));
	return at;
}

int tcp_gift_give(struct tcp_gift *gift, const uint8_t *header, size_t header_len,
		  const struct pkt *data)
{
	size_t len;

	if (!gift->frame)
		gift->frame = pages_map(sizeof(*gift->frame));
	if (!gift->frame)
		return -ENOMEM;
	len = build_frame(gift->key, &gift->header, header, header_len, data,
			  gift->frame->bytes, sizeof(gift->frame->bytes));
	if (!len)
		return -EMSGSIZE;
	return net_give_frame(gift->net, gift->ifindex, gift->frame->bytes, (uint32_t)len);
}

void tcp_gift_end(struct tcp_gift *gift)
{
	if (gift->frame)
		munmap(gift->frame, sizeof(*gift->frame));
	gift->frame = NULL;
}
