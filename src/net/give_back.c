/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames back to the kernel (give_back.h). */
#include "config.h"

#include "net/give_back.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdatomic.h>
#include <string.h>

#include "base/syscall_raw.h"
#include "dev/pass_program.h"
#include "fd/fd_internal.h"
#include "fd/right_keeper.h"
#include "os/real.h"
#include "os/rights.h"

/* -- pieces ------------------------------------------------------------------ */

/* A frame, and where its parts are. */
struct parsed {
	uint8_t *frame;
	struct wire_ipv4 *ip;
	uint8_t *transport;
	/* all headers up to IP's; for TCP its header, too */
	uint32_t header_len;
	/* of the frame without padding */
	uint32_t len;
	uint32_t transport_len;
};

static int parse(uint8_t *frame, uint32_t len, struct parsed *out)
{
	struct wire_ipv4 *ip = (void *)(frame + sizeof(struct wire_eth));
	uint32_t ip_len, total_len, own_len;

	if (len < sizeof(struct wire_eth) + sizeof(*ip))
		return -EBADMSG;
	ip_len = (ip->version_ihl & 0xfu) * 4;
	total_len = be16toh(ip->total_len);
	own_len = ip->proto == WIRE_PROTO_TCP ? sizeof(struct wire_tcp) :
						sizeof(struct wire_udp);
	if (ip->version_ihl >> 4 != 4 || ip_len < sizeof(*ip) ||
	    total_len < ip_len + own_len ||
	    total_len + sizeof(struct wire_eth) > len)
		return -EBADMSG;
	*out = (struct parsed){
		.frame = frame,
		.ip = ip,
		.transport = (uint8_t *)ip + ip_len,
		.header_len = (uint32_t)sizeof(struct wire_eth) + ip_len,
		.len = (uint32_t)sizeof(struct wire_eth) + total_len,
		.transport_len = total_len - ip_len,
	};
	if (ip->proto == WIRE_PROTO_TCP) {
		const struct wire_tcp *tcp = (const void *)out->transport;
		uint32_t tcp_len = (tcp->offset_ae >> 4) * 4u;

		if (tcp_len < sizeof(*tcp) || tcp_len > out->transport_len)
			return -EBADMSG;
		out->header_len += tcp_len;
	}
	return 0;
}

static void set_ip_check(struct wire_ipv4 *ip)
{
	ip->check = 0;
	ip->check = csum_fold(
		csum_partial(ip, (ip->version_ihl & 0xfu) * 4, 0));
}

static uint32_t pseudo_sum(const struct wire_ipv4 *ip, uint32_t len)
{
	uint32_t sum = csum_words(&ip->src, 2);

	sum = csum_add(sum, htobe16(ip->proto));
	return csum_add(sum, htobe16((uint16_t)len));
}

static uint8_t *check_of(const struct wire_ipv4 *ip, uint8_t *transport)
{
	return transport + (ip->proto == WIRE_PROTO_TCP ?
				    offsetof(struct wire_tcp, check) :
				    offsetof(struct wire_udp, check));
}

static void set_check(const struct wire_ipv4 *ip, uint8_t *transport,
		      uint32_t len)
{
	uint8_t *at = check_of(ip, transport);
	uint16_t check = 0;
	uint32_t sum;

	memcpy(at, &check, sizeof(check));
	sum = csum_partial(transport, len, pseudo_sum(ip, len));
	check = ip->proto == WIRE_PROTO_TCP ? csum_fold(sum) :
					      csum_fold_not_zero(sum);
	memcpy(at, &check, sizeof(check));
}

/* Whether the checksum covers the pseudo header alone. */
static bool is_partial(const struct parsed *p)
{
	uint16_t pseudo = (uint16_t)~csum_fold(
		pseudo_sum(p->ip, p->transport_len));

	return memcmp(check_of(p->ip, p->transport), &pseudo,
		      sizeof(pseudo)) == 0;
}

static bool is_good(const struct parsed *p)
{
	return csum_fold(csum_partial(p->transport, p->transport_len,
				      pseudo_sum(p->ip, p->transport_len))) ==
	       0;
}

typedef int (*emit_fn)(void *ctx, const uint8_t *piece, uint32_t len);

/* One piece. It lies on the stack of the function that cuts. */
struct piece {
	uint8_t bytes[GIVE_BACK_LEN_MAX];
};

/* Fills the piece with the headers, and with the `len` bytes that are `at` bytes
 * behind them. */
static struct wire_ipv4 *fill_piece(struct piece *piece, const struct parsed *p,
				    uint32_t at, uint32_t len)
{
	struct wire_ipv4 *ip =
		(void *)(piece->bytes + sizeof(struct wire_eth));

	memcpy(piece->bytes, p->frame, p->header_len);
	memcpy(piece->bytes + p->header_len, p->frame + p->header_len + at, len);
	ip->total_len = htobe16((uint16_t)(p->header_len + len -
					   sizeof(struct wire_eth)));
	return ip;
}

/* Cuts into fragments. The kernel joins them, so the checksum stays that of the
 * whole datagram. */
static int cut_udp(const struct parsed *p, emit_fn emit, void *ctx)
{
	uint32_t room = (GIVE_BACK_LEN_MAX - p->header_len) & ~7u;
	struct piece piece;
	uint32_t len;
	int err = 0;

	for (uint32_t at = 0; at < p->transport_len && !err; at += len) {
		struct wire_ipv4 *ip;
		bool is_last;

		len = MIN(room, p->transport_len - at);
		is_last = at + len == p->transport_len;
		ip = fill_piece(&piece, p, at, len);
		ip->frag = htobe16((uint16_t)(at / 8 |
					      (is_last ? 0 : WIRE_IPV4_MF)));
		set_ip_check(ip);
		err = emit(ctx, piece.bytes, p->header_len + len);
	}
	return err;
}

/* Flags that belong to the beginning go with the first piece, flags that belong to
 * the end go with the last one. */
static uint8_t flags_of_piece(uint8_t flags, bool is_first, bool is_last)
{
	if (!is_first)
		flags &= (uint8_t)~WIRE_TCP_CWR;
	if (!is_last)
		flags &= (uint8_t)~(WIRE_TCP_FIN | WIRE_TCP_PSH);
	return flags;
}

/* The pointer counts from where the segment begins, and the byte before it is marked (as by
 * most, 0 marks the first one, too). What begins behind that has none. */
static void move_urgent(struct wire_tcp *tcp, uint32_t at)
{
	uint16_t pointer = be16toh(tcp->urgent);

	if (!(tcp->flags & WIRE_TCP_URG) || !at)
		return;
	if (pointer <= at)
		tcp->flags &= (uint8_t)~WIRE_TCP_URG;
	tcp->urgent = htobe16((uint16_t)(pointer > at ? pointer - at : 0));
}

static int cut_tcp(const struct parsed *p, emit_fn emit, void *ctx)
{
	const struct wire_tcp *whole = (const void *)p->transport;
	uint32_t room = GIVE_BACK_LEN_MAX - p->header_len;
	uint32_t payload_len = p->len - p->header_len;
	uint16_t id = be16toh(p->ip->id);
	struct piece piece;
	uint32_t len;
	int err = 0;

	for (uint32_t at = 0; at < payload_len && !err; at += len) {
		struct wire_tcp *tcp;
		struct wire_ipv4 *ip;

		len = MIN(room, payload_len - at);
		ip = fill_piece(&piece, p, at, len);
		ip->id = htobe16(id++);
		set_ip_check(ip);
		tcp = (void *)(piece.bytes + (p->transport - p->frame));
		tcp->seq = htobe32(be32toh(whole->seq) + at);
		tcp->flags = flags_of_piece(whole->flags, at == 0,
					    at + len == payload_len);
		move_urgent(tcp, at);
		set_check(ip, (uint8_t *)tcp,
			  p->header_len + len -
				  (uint32_t)(p->transport - p->frame));
		err = emit(ctx, piece.bytes, p->header_len + len);
	}
	return err;
}

int give_back_cut(uint8_t *frame, uint32_t len, bool may_be_partial,
		  emit_fn emit, void *ctx)
{
	struct parsed p;
	int err = parse(frame, len, &p);

	if (err)
		return err;
	if (may_be_partial && is_partial(&p))
		set_check(p.ip, p.transport, p.transport_len);
	if (p.len <= GIVE_BACK_LEN_MAX)
		return emit(ctx, frame, p.len);
	if (p.ip->proto != WIRE_PROTO_TCP)
		return cut_udp(&p, emit, ctx);
	/* A damaged segment must not be cut: the pieces get new checksums, which
	 * would hide the damage. */
	return is_good(&p) ? cut_tcp(&p, emit, ctx) : -EBADMSG;
}

/* -- tags -------------------------------------------------------------------- */

enum { ADDRS_LEN = offsetof(struct wire_eth, type) };

struct give_back_tags give_back_tag_of(uint16_t tci)
{
	struct give_back_tags tags = { .len = sizeof(struct wire_vlan) };

	wire_put_u16(tags.bytes, WIRE_ETH_VLAN);
	wire_put_u16(tags.bytes + sizeof(tci), tci);
	return tags;
}

uint8_t *give_back_untag(uint8_t *frame, uint32_t len, struct give_back_tags *tags)
{
	tags->len = 0;
	while (tags->len < sizeof(tags->bytes) &&
	       ADDRS_LEN + tags->len + sizeof(struct wire_vlan) <= len &&
	       wire_is_tag(wire_get_u16(frame + ADDRS_LEN + tags->len)))
		tags->len += (uint32_t)sizeof(struct wire_vlan);
	if (!tags->len)
		return frame;
	memcpy(tags->bytes, frame + ADDRS_LEN, tags->len);
	memmove(frame + tags->len, frame, ADDRS_LEN);
	return frame + tags->len;
}

uint32_t give_back_tag(uint8_t to[GIVE_BACK_TAGGED_MAX], const uint8_t *piece,
		       uint32_t len, const struct give_back_tags *tags)
{
	memcpy(to, piece, ADDRS_LEN);
	memcpy(to + ADDRS_LEN, tags->bytes, tags->len);
	memcpy(to + ADDRS_LEN + tags->len, piece + ADDRS_LEN, len - ADDRS_LEN);
	return len + tags->len;
}

/* -- the door ---------------------------------------------------------------- */

static long bpf(int command, union bpf_attr *attr)
{
	return syscall_raw(SYS_bpf, command, (long)(uintptr_t)attr,
			   sizeof(*attr), 0, 0, 0);
}

/* By whoever has the rights. */
static int load_program(void)
{
	const struct keeper_request request = { .op = KEEPER_PASS };

	return rights_is_net_admin() ? pass_program_load() :
				       right_keeper_ask_one(&request, NULL);
}

void give_back_open(struct give_back *door)
{
	int fd = load_program();

	atomic_init(&door->prog, MAX(fd, -1));
	if (fd >= 0)
		(void)!fd_internal_adopt(fd, &door->prog);
}

void give_back_close(struct give_back *door)
{
	fd_internal_close(&door->prog);
}

struct to_kernel {
	int prog;
	int ifindex;
	const struct give_back_tags *tags;
};

static int inject(void *ctx, const uint8_t *piece, uint32_t len)
{
	const struct to_kernel *to = ctx;
	struct xdp_md where = {
		.data_end = len,
		.ingress_ifindex = (uint32_t)to->ifindex,
	};
	union bpf_attr attr = {
		.test = {
			.prog_fd = (uint32_t)to->prog,
			.data_in = (uintptr_t)piece,
			.data_size_in = len,
			.ctx_in = (uintptr_t)&where,
			.ctx_size_in = sizeof(where),
			.repeat = 1,
			.flags = BPF_F_TEST_XDP_LIVE_FRAMES,
		},
	};

	return (int)MIN(bpf(BPF_PROG_TEST_RUN, &attr), 0L);
}

static int inject_tagged(void *ctx, const uint8_t *piece, uint32_t len)
{
	const struct to_kernel *to = ctx;
	uint8_t tagged[GIVE_BACK_TAGGED_MAX];

	return inject(ctx, tagged, give_back_tag(tagged, piece, len, to->tags));
}

int give_back_frame(const struct give_back *door, int ifindex,
		    const struct give_back_tags *tags, uint8_t *frame,
		    uint32_t len, bool may_be_partial)
{
	struct to_kernel to = { atomic_load(&door->prog), ifindex, tags };

	if (to.prog < 0)
		return -EPERM;
	return give_back_cut(frame, len, may_be_partial,
			     tags->len ? inject_tagged : inject, &to);
}
