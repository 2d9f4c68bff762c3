/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets, as udp_rates.h wants them; whose they are is a matter of LD_PRELOAD. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/bench/udp_rates.h"

static int fd = -1;

static struct sockaddr_in name_of(struct in_addr addr)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr = addr,
		.sin_port = htons(RATES_PORT),
	};
}

static void open_socket(const struct rates_ends *ends)
{
	struct sockaddr_in own = name_of(ends->own), peer = name_of(ends->peer);

	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) != 0 ||
	    connect(fd, (struct sockaddr *)&peer, sizeof(peer)) != 0)
		rates_die("socket");
}

static void describe(struct mmsghdr *msgs, struct iovec *iov,
		     struct rates_payload *batch, unsigned cnt)
{
	memset(msgs, 0, cnt * sizeof(*msgs));
	for (unsigned i = 0; i < cnt; i++) {
		iov[i] = (struct iovec){ &batch[i], sizeof(batch[i]) };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
}

/* The peer may not be there yet, or not any more. */
static unsigned done(ssize_t n)
{
	if (n < 0 && errno != EAGAIN && errno != ECONNREFUSED && errno != EINTR)
		rates_die("socket call");
	return n < 0 ? 0 : (unsigned)n;
}

static unsigned send_batch(struct rates_payload *batch, unsigned cnt)
{
	struct mmsghdr msgs[RATES_BATCH_MAX];
	struct iovec iov[RATES_BATCH_MAX];

	if (cnt == 1)
		return done(send(fd, batch, sizeof(*batch), 0)) != 0;
	describe(msgs, iov, batch, cnt);
	return done(sendmmsg(fd, msgs, cnt, 0));
}

static inline unsigned receive(struct rates_payload *batch, unsigned cnt,
			       int flags)
{
	struct mmsghdr msgs[RATES_BATCH_MAX];
	struct iovec iov[RATES_BATCH_MAX];

	if (cnt == 1)
		return done(recv(fd, batch, sizeof(*batch), flags)) != 0;
	describe(msgs, iov, batch, cnt);
	return done(recvmmsg(fd, msgs, cnt, flags | MSG_WAITFORONE, NULL));
}

static unsigned receive_now(struct rates_payload *batch, unsigned cnt)
{
	return receive(batch, cnt, MSG_DONTWAIT);
}

static unsigned receive_later(struct rates_payload *batch, unsigned cnt)
{
	return receive(batch, cnt, 0);
}

const struct rates_way rates_spin = {
	.name = "spin",
	.open = open_socket,
	.send = send_batch,
	.receive = receive_now,
};

const struct rates_way rates_block = {
	.name = "block",
	.open = open_socket,
	.send = send_batch,
	.receive = receive_later,
};
