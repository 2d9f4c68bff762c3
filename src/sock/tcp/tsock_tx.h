/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A send call on a connection, whichever it was: the calls that programs make (tsock_msgs.c)
 * become one, and it goes as far as it can (tsock_send.c).
 */
#ifndef SOCK_TCP_TSOCK_TX_H
#define SOCK_TCP_TSOCK_TX_H

#include "sock/tcp/tsock_priv.h"

struct tx_call {
	const struct iovec *iov;
	size_t iov_cnt;
	/* what it has, and what of it was taken */
	size_t len, done;
	int flags;
	/* whom MSG_FASTOPEN connects to */
	const struct sockaddr *name;
	socklen_t name_len;
	/* sendfile: the file, and where in it; -1: from memory */
	int file;
	off64_t offset;
	/* the file has ended before */
	bool is_at_end;
	/* a control message says where this one is stamped */
	bool has_stations;
	uint32_t stations;
	/* its last byte is followed, so that nothing more may be written */
	bool is_stamped;
	/* when it ends, once it has waited */
	bool has_waited;
	uint64_t deadline_ns;
};

/* The whole call. */
long tsock_send_call(struct tsock *t, int fd, struct tx_call *call) MUST_CHECK;
/* Only the kernel sends so: FD_PASS when it has the connection. */
COLD long tsock_send_leaves(struct tsock *t, int fd, int flags, const char *what) MUST_CHECK;

#endif
