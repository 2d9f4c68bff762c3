/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bare AF_XDP, as udp_rates.h wants it: the least that any stack in user space can
 * reach on the interface. It attaches as the library does and uses its steering
 * program with the rule of a connected socket; headers are built and checked,
 * checksums computed and verified. Nothing else is between the caller and the
 * rings, which are libxdp's.
 */
#include "config.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <xdp/xsk.h>

/* as tests do that look inside */
#include "dev/xdp/steer.c"

#include "tests/bench/udp_rates.h"

enum {
	FRAME_SIZE = 2048,
	/* the library's: so many frames to receive into, so many to send */
	RX_SIZE = 2048,
	TX_SIZE = 1024,
	/* Done frames are taken back when there are so many. */
	REAP_BATCH = 32,
	BUSY_RETRIES = 1000,
	BUSY_NAP_US = 1000,
	HUGE_PAGE = 2 << 20,
};

struct frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct rates_payload data;
} __attribute__((packed, aligned(2)));

static struct {
	struct xsk_socket *xsk;
	int fd;
	uint8_t *mem;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons done, rx;
	/* The frames for sending follow those for receiving; they are used and
	 * come back in their order. */
	uint32_t next_tx;
	uint32_t sending;
	struct frame header;
	/* of what comes, addresses and ports as they lie in the frame */
	struct frame expected;
} raw;

/* -- checksums ------------------------------------------------------------------- */

/* The sum of an even number of bytes, as 16-bit words, not folded. */
static inline uint64_t sum_of(const void *data, size_t len)
{
	const uint8_t *at = data;
	uint64_t sum = 0;
	uint32_t word;
	uint16_t last;

	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum += word;
	}
	if (len) {
		memcpy(&last, at, sizeof(last));
		sum += last;
	}
	return sum;
}

static inline uint16_t fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Of the pseudo header, the UDP header and the payload. */
static inline uint64_t udp_sum(const struct frame *frame)
{
	return sum_of(&frame->ip.saddr, 8) + htons(IPPROTO_UDP) +
	       frame->udp.len +
	       sum_of(&frame->udp, sizeof(frame->udp) + RATES_SUMMED);
}

/* -- frames ------------------------------------------------------------------------ */

static inline void build(struct frame *frame, const struct rates_payload *data)
{
	uint16_t check;

	memcpy(frame, &raw.header, offsetof(struct frame, data));
	frame->data = *data;
	frame->ip.check = (uint16_t)~fold(sum_of(&frame->ip, sizeof(frame->ip)));
	check = (uint16_t)~fold(udp_sum(frame));
	frame->udp.check = check ? check : 0xffff;
}

static inline bool is_good(const struct frame *frame, uint32_t len)
{
	const struct frame *e = &raw.expected;

	return len == sizeof(*frame) &&
	       memcmp(&frame->eth, &e->eth, sizeof(e->eth)) == 0 &&
	       frame->ip.version == 4 && frame->ip.ihl == 5 &&
	       frame->ip.tot_len == e->ip.tot_len &&
	       frame->ip.protocol == IPPROTO_UDP &&
	       frame->ip.saddr == e->ip.saddr &&
	       frame->ip.daddr == e->ip.daddr &&
	       frame->udp.source == e->udp.source &&
	       frame->udp.dest == e->udp.dest &&
	       frame->udp.len == e->udp.len &&
	       fold(sum_of(&frame->ip, sizeof(frame->ip))) == 0xffff &&
	       fold(udp_sum(frame)) == 0xffff;
}

/* -- the data path ------------------------------------------------------------------ */

static inline uint64_t tx_offset(uint32_t at)
{
	return (uint64_t)(RX_SIZE + at % TX_SIZE) * FRAME_SIZE;
}

static void reap(void)
{
	uint32_t at, cnt = (uint32_t)xsk_ring_cons__peek(&raw.done, TX_SIZE, &at);

	xsk_ring_cons__release(&raw.done, cnt);
	raw.sending -= cnt;
}

/* A call moves 32 frames; while it moves any it is worth the next one. */
static void kick(void)
{
	uint32_t before;

	if (!xsk_ring_prod__needs_wakeup(&raw.tx))
		return;
	do
		before = __atomic_load_n(raw.tx.consumer, __ATOMIC_RELAXED);
	while (sendto(raw.fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 &&
	       before != __atomic_load_n(raw.tx.consumer, __ATOMIC_RELAXED));
}

static unsigned raw_send(struct rates_payload *batch, unsigned cnt)
{
	uint32_t at;

	if (raw.sending >= REAP_BATCH)
		reap();
	if (raw.sending + cnt > TX_SIZE ||
	    !xsk_ring_prod__reserve(&raw.tx, cnt, &at)) {
		/* what the kernel has not taken at the last one */
		kick();
		return 0;
	}
	for (unsigned i = 0; i < cnt; i++) {
		struct xdp_desc *desc = xsk_ring_prod__tx_desc(&raw.tx, at + i);

		desc->addr = tx_offset(raw.next_tx++);
		desc->len = sizeof(struct frame);
		desc->options = 0;
		build((struct frame *)(void *)(raw.mem + desc->addr), &batch[i]);
	}
	xsk_ring_prod__submit(&raw.tx, cnt);
	raw.sending += cnt;
	kick();
	return cnt;
}

static unsigned raw_receive(struct rates_payload *batch, unsigned cnt)
{
	uint32_t at = 0, to = 0;
	uint32_t got = (uint32_t)xsk_ring_cons__peek(&raw.rx, cnt, &at);
	unsigned good = 0;

	if (!got)
		return 0;
	/* as many as are taken: there is room */
	xsk_ring_prod__reserve(&raw.fill, got, &to);
	for (uint32_t i = 0; i < got; i++) {
		const struct xdp_desc *desc =
			xsk_ring_cons__rx_desc(&raw.rx, at + i);
		const struct frame *frame =
			(const void *)(raw.mem + desc->addr);

		if (is_good(frame, desc->len))
			batch[good++] = frame->data;
		*xsk_ring_prod__fill_addr(&raw.fill, to + i) =
			desc->addr & -(uint64_t)FRAME_SIZE;
	}
	xsk_ring_cons__release(&raw.rx, got);
	xsk_ring_prod__submit(&raw.fill, got);
	return good;
}

/* -- the start ---------------------------------------------------------------------- */

static void check(int err, const char *what)
{
	if (!err)
		return;
	errno = err < 0 ? -err : err;
	rates_die(what);
}

static void own_mac(uint8_t *mac)
{
	struct ifreq request = { .ifr_name = RATES_INTERFACE };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (ioctl(fd, SIOCGIFHWADDR, &request) != 0)
		rates_die("hardware address");
	memcpy(mac, request.ifr_hwaddr.sa_data, ETH_ALEN);
	close(fd);
}

/* A frame without a payload. */
static struct frame frame_of(const uint8_t *to_mac, const uint8_t *from_mac,
			     struct in_addr to, struct in_addr from)
{
	struct frame frame = {
		.eth.h_proto = htons(ETH_P_IP),
		.ip = {
			.version = 4,
			.ihl = 5,
			.tot_len = htons(sizeof(frame) - sizeof(frame.eth)),
			.frag_off = htons(0x4000),
			.ttl = 64,
			.protocol = IPPROTO_UDP,
			.saddr = from.s_addr,
			.daddr = to.s_addr,
		},
		.udp = {
			.source = htons(RATES_PORT),
			.dest = htons(RATES_PORT),
			.len = htons(sizeof(frame.udp) + RATES_LEN),
		},
	};

	memcpy(frame.eth.h_dest, to_mac, ETH_ALEN);
	memcpy(frame.eth.h_source, from_mac, ETH_ALEN);
	return frame;
}

static void make_rings(void)
{
	const struct xsk_umem_config umem_config = {
		.fill_size = RX_SIZE,
		.comp_size = TX_SIZE,
		.frame_size = FRAME_SIZE,
	};
	const struct xsk_socket_config config = {
		.rx_size = RX_SIZE,
		.tx_size = TX_SIZE,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP | XDP_USE_SG,
	};
	size_t size = (size_t)(RX_SIZE + TX_SIZE) * FRAME_SIZE;
	struct xsk_umem *umem;
	int err, retries = BUSY_RETRIES;

	/* in huge pages if there are any, as the library's */
	raw.mem = aligned_alloc(HUGE_PAGE, size);
	if (!raw.mem)
		rates_die("memory");
	madvise(raw.mem, size, MADV_HUGEPAGE);
	memset(raw.mem, 0, size);
	check(xsk_umem__create(&umem, raw.mem, size, &raw.fill, &raw.done,
			       &umem_config),
	      "registering memory");
	/* the queue is busy for a while after who had it has ended */
	do {
		err = xsk_socket__create(&raw.xsk, RATES_INTERFACE, 0, umem,
					 &raw.rx, &raw.tx, &config);
	} while (err == -EBUSY && retries-- && usleep(BUSY_NAP_US) == 0);
	check(err, "AF_XDP socket");
	raw.fd = xsk_socket__fd(raw.xsk);
}

static void post_frames(void)
{
	uint32_t at = 0, cnt = RX_SIZE;

	xsk_ring_prod__reserve(&raw.fill, cnt, &at);
	for (uint32_t i = 0; i < cnt; i++)
		*xsk_ring_prod__fill_addr(&raw.fill, at + i) =
			(uint64_t)i * FRAME_SIZE;
	xsk_ring_prod__submit(&raw.fill, cnt);
}

/* What steer.c asks of its surroundings: nobody closes our fds here. */
void services_close_fd(_Atomic int *slot)
{
	close(atomic_exchange(slot, -1));
}

int xdp_adopt_fd(int fd, _Atomic int *slot)
{
	atomic_store(slot, fd);
	return 0;
}

/* The process has the rights itself. */
int right_keeper_ask(const struct keeper_request *request, const int *fds, int *fds_out)
{
	(void)request, (void)fds, (void)fds_out;
	return -EPERM;
}

/* As the library does in the latency profile: generic, for single buffers. It lives as
 * long as the process. */
static void steer_frames(const struct rates_ends *ends, const uint8_t *mac)
{
	struct steer_params params = {
		.ifindex = (int)if_nametoindex(RATES_INTERFACE),
		.is_single = true,
		.sight = STEER_SIGHT_GSO,
	};
	struct flow_rule rule = {
		.dst = ip_addr_from_v4(ends->own.s_addr),
		.src = ip_addr_from_v4(ends->peer.s_addr),
		.dst_port = htons(RATES_PORT),
		.src_port = htons(RATES_PORT),
		.proto = IPPROTO_UDP,
	};
	struct steer *program;

	memcpy(params.mac, mac, ETH_ALEN);
	check(-steer_create(&params, &program), "steering program");
	check(-steer_set_queue(program, 0, raw.fd), "queue");
	check(-steer_add(program, &rule), "rule");
	check(-steer_attach(program), "attaching");
}

static void open_raw(const struct rates_ends *ends)
{
	uint8_t mac[ETH_ALEN];

	own_mac(mac);
	raw.header = frame_of(ends->peer_mac, mac, ends->peer, ends->own);
	raw.expected = frame_of(mac, ends->peer_mac, ends->own, ends->peer);
	make_rings();
	post_frames();
	steer_frames(ends, mac);
}

const struct rates_way rates_raw = {
	.name = "raw",
	.open = open_raw,
	.send = raw_send,
	.receive = raw_receive,
};
