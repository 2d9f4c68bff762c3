/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads and writes buffers, names and control data of the program (user_msg.h). */
#include "config.h"

#include "sock/user_msg.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"

ssize_t user_iov_len(const struct iovec *iov, size_t cnt)
{
	size_t sum = 0;

	if (cnt > IOV_MAX)
		return -EMSGSIZE;
	if (!user_is_plausible(iov, cnt * sizeof(*iov)))
		return -EFAULT;
	for (size_t i = 0; i < cnt; i++) {
		if ((ssize_t)iov[i].iov_len < 0)
			return -EINVAL;
		if (!user_is_plausible(iov[i].iov_base, iov[i].iov_len))
			return -EFAULT;
		sum += iov[i].iov_len;
	}
	return (ssize_t)sum < 0 ? -EINVAL : (ssize_t)sum;
}

/* The part of the element that lies behind the first *skip bytes of what is left, at
 * most `len` long. Its length is 0 while there is more to skip. */
static struct iovec next_piece(const struct iovec *element, size_t *skip,
			       size_t len)
{
	size_t passed = MIN(*skip, element->iov_len);

	*skip -= passed;
	return (struct iovec){
		/* NULL where there are no bytes, which C lets nobody add to */
		.iov_base = (void *)((uintptr_t)element->iov_base + passed),
		.iov_len = MIN(element->iov_len - passed, len),
	};
}

void user_iov_read(const struct iovec *iov, size_t cnt, size_t skip, void *to,
		   size_t len)
{
	uint8_t *at = to;

	for (size_t i = 0; i < cnt && len; i++) {
		struct iovec piece = next_piece(&iov[i], &skip, len);

		if (piece.iov_len)
			memcpy(at, piece.iov_base, piece.iov_len);
		at += piece.iov_len;
		len -= piece.iov_len;
	}
}

void user_iov_write(const struct iovec *iov, size_t cnt, size_t skip,
		    const void *from, size_t len)
{
	const uint8_t *at = from;

	for (size_t i = 0; i < cnt && len; i++) {
		struct iovec piece = next_piece(&iov[i], &skip, len);

		if (piece.iov_len)
			memcpy(piece.iov_base, at, piece.iov_len);
		at += piece.iov_len;
		len -= piece.iov_len;
	}
}

size_t user_iov_rest(const struct iovec *iov, size_t cnt, size_t skip,
		     struct iovec *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < cnt && n < max; i++) {
		struct iovec piece = next_piece(&iov[i], &skip,
						iov[i].iov_len);

		if (piece.iov_len)
			out[n++] = piece;
	}
	return n;
}

int user_name_read(int domain, const struct sockaddr *addr, socklen_t len,
		   struct user_name *name_out)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name;

	if (!user_is_plausible(addr, len))
		return -EFAULT;
	if (len < sizeof(sa_family_t))
		return -EINVAL;
	memset(&name, 0, sizeof(name));
	memcpy(&name, addr, MIN((size_t)len, sizeof(name)));
	if (name.v4.sin_family == AF_INET) {
		if (len < sizeof(name.v4))
			return -EINVAL;
		name_out->addr = ip_addr_from_v4(name.v4.sin_addr.s_addr);
		name_out->port = name.v4.sin_port;
		return 0;
	}
	if (name.v6.sin6_family != AF_INET6 || domain == AF_INET)
		return -EAFNOSUPPORT;
	/* We take the shorter form of RFC 2133, too, as Linux does. */
	if (len < offsetof(struct sockaddr_in6, sin6_scope_id))
		return -EINVAL;
	name_out->addr = ip_addr_from_v6(&name.v6.sin6_addr);
	name_out->port = name.v6.sin6_port;
	return 0;
}

void user_name_write(const struct user_name *name, int family, void *addr,
		     socklen_t *len)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} full;
	socklen_t size;

	memset(&full, 0, sizeof(full));
	if (family == AF_INET) {
		full.v4.sin_family = AF_INET;
		full.v4.sin_port = name->port;
		full.v4.sin_addr.s_addr = ip_addr_v4(&name->addr);
		size = sizeof(full.v4);
	} else {
		full.v6.sin6_family = AF_INET6;
		full.v6.sin6_port = name->port;
		memcpy(&full.v6.sin6_addr, &name->addr, 16);
		size = sizeof(full.v6);
	}
	memcpy(addr, &full, MIN(*len, size));
	*len = size;
}

void user_control_put(struct user_control *control, int level, int type,
		      const void *data, size_t len)
{
	struct cmsghdr header = {
		.cmsg_len = CMSG_LEN(len),
		.cmsg_level = level,
		.cmsg_type = type,
	};
	size_t used;

	if (control->room < sizeof(header)) {
		control->flags |= MSG_CTRUNC;
		return;
	}
	if (control->room < header.cmsg_len) {
		control->flags |= MSG_CTRUNC;
		header.cmsg_len = control->room;
	}
	memcpy(control->at, &header, sizeof(header));
	memcpy(control->at + CMSG_LEN(0), data,
	       header.cmsg_len - CMSG_LEN(0));
	used = MIN((size_t)CMSG_SPACE(len), control->room);
	control->at += used;
	control->room -= used;
}

void user_control_put_stamps(struct user_control *control, uint32_t wishes,
			     uint64_t time_ns)
{
	struct timespec ts[3] = { { 0 } };
	struct timeval tv;

	ts[0].tv_sec = (time_t)(time_ns / NS_PER_SEC);
	ts[0].tv_nsec = (long)(time_ns % NS_PER_SEC);
	tv.tv_sec = ts[0].tv_sec;
	tv.tv_usec = ts[0].tv_nsec / 1000;
	if (wishes & USER_STAMP_NS)
		user_control_put(control, SOL_SOCKET, SO_TIMESTAMPNS, &ts[0],
				 sizeof(ts[0]));
	else if (wishes & USER_STAMP)
		user_control_put(control, SOL_SOCKET, SO_TIMESTAMP, &tv,
				 sizeof(tv));
	if (wishes & USER_STAMPING)
		user_control_put(control, SOL_SOCKET, SO_TIMESTAMPING, ts,
				 sizeof(ts));
}
