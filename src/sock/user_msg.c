/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads and writes buffers, names and control data of the program (user_msg.h). */
#include "config.h"

#include "sock/user_msg.h"

#include <errno.h>
#include <limits.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"

/* Elements lie from there on. */
static ssize_t sum_of(const struct iovec *iov, size_t cnt, uintptr_t start)
{
	size_t sum = 0, len;

	if (cnt > IOV_MAX)
		return -EMSGSIZE;
	if (!user_is_plausible(iov, cnt * sizeof(*iov)))
		return -EFAULT;
	for (size_t i = 0; i < cnt; i++) {
		if ((ssize_t)iov[i].iov_len < 0)
			return -EINVAL;
		len = MIN(iov[i].iov_len, USER_LEN_MAX - sum);
		if (len && ((uintptr_t)iov[i].iov_base < start ||
			    (uintptr_t)iov[i].iov_base > USER_MEMORY_END - len))
			return -EFAULT;
		sum += len;
	}
	return (ssize_t)sum;
}

ssize_t user_iov_len(const struct iovec *iov, size_t cnt)
{
	return sum_of(iov, cnt, USER_MEMORY_START);
}

ssize_t user_iov_room(const struct iovec *iov, size_t cnt)
{
	return sum_of(iov, cnt, 0);
}

bool user_iov_is_writable(const struct iovec *iov, size_t cnt, size_t len)
{
	for (size_t i = 0; i < cnt && len; i++) {
		size_t part = MIN(iov[i].iov_len, len);

		if (!user_is_plausible(iov[i].iov_base, part))
			return false;
		len -= part;
	}
	return true;
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

	/* the length is a signed number in Linux */
	if (len < sizeof(sa_family_t) || len > sizeof(struct sockaddr_storage))
		return -EINVAL;
	if (!user_is_plausible(addr, len))
		return -EFAULT;
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

	if (control->room < header.cmsg_len) {
		control->flags |= MSG_CTRUNC;
		header.cmsg_len = control->room;
	}
	/* Linux has given the bytes by now, and says no more than that there was no room. */
	if (header.cmsg_len < sizeof(header) ||
	    !user_is_plausible(control->at, header.cmsg_len)) {
		control->flags |= MSG_CTRUNC;
		return;
	}
	memcpy(control->at, &header, sizeof(header));
	memcpy(control->at + CMSG_LEN(0), data,
	       header.cmsg_len - CMSG_LEN(0));
	used = MIN((size_t)CMSG_SPACE(len), control->room);
	control->at += used;
	control->room -= used;
}

uint32_t user_stamping_of(uint32_t flags)
{
	const uint32_t soft = SOF_TIMESTAMPING_RX_SOFTWARE |
			      SOF_TIMESTAMPING_SOFTWARE;
	const uint32_t card = SOF_TIMESTAMPING_RX_HARDWARE |
			      SOF_TIMESTAMPING_RAW_HARDWARE;
	uint32_t wishes = 0;

	if ((flags & soft) == soft)
		wishes |= USER_STAMPING;
	if ((flags & card) == card)
		wishes |= USER_CARD_STAMP;
	if (wishes & USER_CARD_STAMP && flags & SOF_TIMESTAMPING_OPT_PKTINFO)
		wishes |= USER_CARD_INFO;
	return wishes;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_SEC),
				  .tv_nsec = (long)(ns % NS_PER_SEC) };
}

void user_control_put_stamps(struct user_control *control, uint32_t wishes,
			     const struct user_stamps *stamps)
{
	uint64_t card_ns = wishes & USER_CARD_STAMP ? stamps->card_ns : 0;
	struct timespec now = timespec_of(stamps->time_ns);
	struct timeval tv = { .tv_sec = now.tv_sec,
			      .tv_usec = now.tv_nsec / 1000 };
	struct scm_ts_pktinfo info = { .if_index = stamps->ifindex,
				       .pkt_length = stamps->frame_len };
	/* the second place is one of older kernels */
	struct timespec ts[3] = { [2] = timespec_of(card_ns) };

	if (wishes & USER_STAMP_NS)
		user_control_put(control, SOL_SOCKET, SO_TIMESTAMPNS, &now,
				 sizeof(now));
	else if (wishes & USER_STAMP)
		user_control_put(control, SOL_SOCKET, SO_TIMESTAMP, &tv,
				 sizeof(tv));
	if (card_ns && wishes & USER_CARD_INFO)
		user_control_put(control, SOL_SOCKET, SCM_TIMESTAMPING_PKTINFO,
				 &info, sizeof(info));
	if (wishes & USER_STAMPING)
		ts[0] = now;
	if (wishes & USER_STAMPING || card_ns)
		user_control_put(control, SOL_SOCKET, SO_TIMESTAMPING, ts,
				 sizeof(ts));
}

bool user_count_down(struct timespec *left, const struct timespec *wished,
		     uint64_t start_ns)
{
	uint64_t passed = clock_monotonic_ns() - start_ns;

	*left = *wished;
	left->tv_sec -= (time_t)(passed / NS_PER_SEC);
	left->tv_nsec -= (long)(passed % NS_PER_SEC);
	if (left->tv_nsec < 0) {
		left->tv_nsec += (long)NS_PER_SEC;
		left->tv_sec--;
	}
	if (left->tv_sec < 0)
		*left = (struct timespec){ 0 };
	return left->tv_sec || left->tv_nsec;
}
