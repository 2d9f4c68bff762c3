/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A packet socket as the wire; see wire.h. */
#include "config.h"

#include "wire.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "frame.h"
#include "sys.h"

#ifndef SO_ATTACH_BPF
#define SO_ATTACH_BPF 50
#endif
#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

enum {
	/* A burst of small frames takes about 1 KB of kernel memory each. */
	RX_SOCKET_BYTES = 128 << 20,
	TX_SOCKET_BYTES = 16 << 20,
	/* Room to put the VLAN tag back. */
	HEADROOM = 64,
	CONTROL_SIZE = CMSG_SPACE(sizeof(struct tpacket_auxdata)),
};

struct wire_buffers {
	uint8_t tx[WIRE_BATCH][FRAME_MAX_LEN];
	uint8_t rx[WIRE_BATCH][HEADROOM + FRAME_MAX_LEN];
	uint8_t control[WIRE_BATCH][CONTROL_SIZE];
	struct mmsghdr msgs[WIRE_BATCH];
	struct iovec iovs[WIRE_BATCH];
};

static int set_up_socket(int fd, int ifindex, int prog_fd)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = ifindex,
	};
	int one = 1, mark = FILTER_CARD_MARK, rx_bytes = RX_SOCKET_BYTES, tx_bytes = TX_SOCKET_BYTES;
	int ret;

	/* Without CAP_NET_ADMIN the default sizes have to do. */
	sys_setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &rx_bytes,
		       sizeof(rx_bytes));
	sys_setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &tx_bytes,
		       sizeof(tx_bytes));
	ret = sys_setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one));
	if (!ret)
		ret = sys_setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING,
				     &one, sizeof(one));
	if (!ret)
		ret = sys_setsockopt(fd, SOL_SOCKET, SO_MARK, &mark,
				     sizeof(mark));
	/* The filter before the address: no frame gets in unseen. */
	if (!ret)
		ret = sys_setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &prog_fd,
				     sizeof(prog_fd));
	if (!ret)
		ret = sys_bind(fd, &addr, sizeof(addr));
	return ret;
}

int wire_open(struct wire *wire, int ifindex, int prog_fd)
{
	int fd = sys_socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), ret;

	*wire = (struct wire){ .fd = -1 };
	if (fd < 0)
		return fd;
	ret = set_up_socket(fd, ifindex, prog_fd);
	if (ret)
		goto err_close;
	ret = -ENOMEM;
	wire->buffers = calloc(1, sizeof(*wire->buffers));
	if (!wire->buffers)
		goto err_close;
	wire->fd = fd;
	return 0;

err_close:
	sys_close(fd);
	return ret;
}

void wire_close(struct wire *wire)
{
	if (wire->fd >= 0)
		sys_close(wire->fd);
	free(wire->buffers);
	*wire = (struct wire){ .fd = -1 };
}

uint8_t *wire_tx_reserve(struct wire *wire)
{
	return wire->n_tx < WIRE_BATCH ? wire->buffers->tx[wire->n_tx] : NULL;
}

void wire_tx_commit(struct wire *wire, size_t len)
{
	uint8_t *frame = wire->buffers->tx[wire->n_tx];

	if (len < FRAME_MIN_LEN) {
		memset(frame + len, 0, FRAME_MIN_LEN - len);
		len = FRAME_MIN_LEN;
	}
	wire->tx_len[wire->n_tx++] = len;
}

const uint8_t *wire_tx_frame(const struct wire *wire, unsigned int i,
			     size_t *len_out)
{
	*len_out = wire->tx_len[i];
	return wire->buffers->tx[i];
}

/* Frames [from, n_tx) move to the front. */
static void keep_rest(struct wire *wire, unsigned int from)
{
	unsigned int n = wire->n_tx - from;

	for (unsigned int i = 0; from && i < n; i++) {
		wire->tx_len[i] = wire->tx_len[from + i];
		memcpy(wire->buffers->tx[i], wire->buffers->tx[from + i],
		       wire->tx_len[i]);
	}
	wire->n_tx = n;
}

struct wire_sent wire_flush(struct wire *wire)
{
	struct wire_buffers *b = wire->buffers;
	struct wire_sent sent = { 0 };
	unsigned int done = 0;

	for (unsigned int i = 0; i < wire->n_tx; i++) {
		b->iovs[i] = (struct iovec){ b->tx[i], wire->tx_len[i] };
		b->msgs[i] = (struct mmsghdr){
			.msg_hdr = { .msg_iov = &b->iovs[i], .msg_iovlen = 1 },
		};
	}
	while (done < wire->n_tx) {
		int ret = sys_sendmmsg(wire->fd, b->msgs + done,
				       wire->n_tx - done);

		if (ret == -EINTR)
			continue;
		if (ret == -EAGAIN || ret == -ENOBUFS)
			break;
		if (ret < 0) {
			sent.n_failed++;
			done++;
			continue;
		}
		sent.n_sent += (unsigned int)ret;
		done += (unsigned int)ret;
	}
	keep_rest(wire, done);
	return sent;
}

/* The checksum a sending card would have filled in: on a virtual link the kernel
 * leaves it half done. */
static void finish_csum(uint8_t *frame, size_t len)
{
	struct frame_info info;

	frame_parse(frame, len, &info);
	frame_put_l4_csum(frame, &info);
}

/* Puts the tag that the kernel took out back in; returns the new start. */
static uint8_t *restore_tag(uint8_t *frame, const struct tpacket_auxdata *aux)
{
	uint8_t *start = frame - FRAME_VLAN_LEN;
	uint16_t type = htons(aux->tp_status & TP_STATUS_VLAN_TPID_VALID ?
				      aux->tp_vlan_tpid : ETH_P_8021Q);
	uint16_t tci = htons(aux->tp_vlan_tci);

	memmove(start, frame, 12);
	memcpy(start + 12, &type, 2);
	memcpy(start + 14, &tci, 2);
	return start;
}

static void prepare_rx(struct wire_buffers *b)
{
	for (unsigned int i = 0; i < WIRE_BATCH; i++) {
		b->iovs[i] = (struct iovec){ b->rx[i] + HEADROOM,
					     FRAME_MAX_LEN };
		b->msgs[i] = (struct mmsghdr){
			.msg_hdr = {
				.msg_iov = &b->iovs[i],
				.msg_iovlen = 1,
				.msg_control = b->control[i],
				.msg_controllen = CONTROL_SIZE,
			},
		};
	}
}

static void deliver(struct wire_buffers *b, unsigned int i, wire_rx_fn *fn,
		    void *ctx)
{
	struct msghdr *msg = &b->msgs[i].msg_hdr;
	uint8_t *frame = b->rx[i] + HEADROOM;
	size_t len = b->msgs[i].msg_len;
	bool is_whole = !(msg->msg_flags & MSG_TRUNC);
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	struct tpacket_auxdata aux;

	if (cmsg && cmsg->cmsg_type == PACKET_AUXDATA && len >= FRAME_ETH_LEN) {
		memcpy(&aux, CMSG_DATA(cmsg), sizeof(aux));
		if (aux.tp_status & TP_STATUS_CSUMNOTREADY)
			finish_csum(frame, len);
		if (aux.tp_status & TP_STATUS_VLAN_VALID) {
			frame = restore_tag(frame, &aux);
			len += FRAME_VLAN_LEN;
		}
	}
	fn(ctx, frame, len, is_whole);
}

unsigned int wire_receive(struct wire *wire, wire_rx_fn *fn, void *ctx)
{
	struct wire_buffers *b = wire->buffers;
	int n;

	prepare_rx(b);
	n = sys_recvmmsg(wire->fd, b->msgs, WIRE_BATCH);
	for (int i = 0; i < n; i++)
		deliver(b, (unsigned int)i, fn, ctx);
	return n > 0 ? (unsigned int)n : 0;
}

unsigned int wire_take_overruns(struct wire *wire)
{
	struct tpacket_stats stats = { 0 };
	socklen_t len = sizeof(stats);

	if (SYS(__NR_getsockopt, wire->fd, SOL_PACKET, PACKET_STATISTICS,
		&stats, &len) < 0)
		return 0;
	return stats.tp_drops;
}
