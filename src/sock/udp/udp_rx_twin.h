/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A receive call, and the twin's part of it. */
#ifndef SOCK_UDP_UDP_RX_TWIN_H
#define SOCK_UDP_UDP_RX_TWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct udp;

/* Whichever it was. */
struct rx_call {
	const struct iovec *iov;
	size_t iov_cnt;
	size_t len;
	int flags;
	/* NULL: not wanted */
	struct sockaddr *name;
	socklen_t *name_len;
	/* NULL unless it was recvmsg */
	struct msghdr *msg;
	/* its batch has others already, so each handler ends it, with SA_RESTART, too */
	bool is_behind;
	bool has_waited;
};

/* A batch has met an error behind its first message. As in Linux, the next call says
 * so. */
void udp_keep_error(struct udp *u, long err);
/* Receives from the twin. -EAGAIN: it has nothing. */
long udp_read_twin(struct udp *u, int fd, const struct rx_call *call);
/* Whether the twin may have something, which is_twin_ready says from then on. */
bool udp_ask_twin(struct udp *u, int fd);

#endif
