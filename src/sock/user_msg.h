/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program's side of a send or receive call: its buffers, names and control data,
 * in whatever form the call passes them. This is pure memory work. Pointers that
 * cannot be right give EFAULT before anything has happened. Other wrong pointers are
 * the program's risk, as with memcpy.
 */
#ifndef SOCK_USER_MSG_H
#define SOCK_USER_MSG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

/* Where the memory of a process ends at the latest. To have memory beyond this, a
 * process must ask for it by address, which nobody does for a message. */
#if defined(__x86_64__)
#define USER_MEMORY_END (UINT64_C(1) << 47)
#else
#define USER_MEMORY_END (UINT64_C(1) << 52)
#endif

#define USER_MEMORY_START UINT64_C(0x10000)
#define USER_MEMORY_SIZE (USER_MEMORY_END - USER_MEMORY_START)

/* Whether `len` bytes at `ptr` may belong to the program: they are not near 0, and
 * not beyond what a process can have. If `len` is 0, `ptr` may be anything. */
static inline bool user_is_plausible(const void *ptr, size_t len)
{
	/* what lies before the beginning is beyond the end as well */
	uintptr_t from_start = (uintptr_t)ptr - USER_MEMORY_START;

	return len == 0 || (len <= USER_MEMORY_SIZE &&
			    from_start <= USER_MEMORY_SIZE - len);
}

/* The same for `cnt` elements of `size` bytes. `cnt` may be any number. */
static inline bool user_is_array_plausible(const void *ptr, size_t cnt,
					   size_t size)
{
	return cnt < USER_MEMORY_END / size &&
	       user_is_plausible(ptr, cnt * size);
}

/* Whether a name can be put there. Programs that have not set the length may say any: there is
 * no name that long. */
static inline bool user_is_place_for_name(const void *ptr, socklen_t len)
{
	return user_is_plausible(ptr, MIN((size_t)len, sizeof(struct sockaddr_storage)));
}

/* Whether it is a timeout that the kernel would take; NULL is one, too. */
static inline bool user_is_timeout(const struct timespec *ts)
{
	return !ts || (user_is_plausible(ts, sizeof(*ts)) && ts->tv_sec >= 0 &&
		       ts->tv_nsec >= 0 && ts->tv_nsec < 1000000000L);
}

/* The time that is left of what was wished for at the start, which may be more than fits
 * into nanoseconds; or false. */
bool user_count_down(struct timespec *left, const struct timespec *wished,
		     uint64_t start_ns);

/* As many bytes as Linux takes in one call, however many the program names. What lies behind
 * them may be where no memory is. */
enum { USER_LEN_MAX = 0x7ffff000 };

/* The buffer of a call that has one. */
static inline struct iovec user_buffer(const void *buf, size_t len)
{
	return (struct iovec){ (void *)(uintptr_t)buf,
			       MIN(len, (size_t)USER_LEN_MAX) };
}

/* The sum of the lengths, or USER_LEN_MAX. -EFAULT. -EINVAL: one is more than ssize_t can
 * hold. -EMSGSIZE: there are too many elements. All as in Linux. */
ssize_t user_iov_len(const struct iovec *iov, size_t cnt) MUST_CHECK;

/* The same for who is to write there. An element where nobody can write, near 0, matters only
 * when it is its turn: user_iov_is_writable(). */
ssize_t user_iov_room(const struct iovec *iov, size_t cnt) MUST_CHECK;
/* Whether the first `len` bytes, or all, may belong to the program. */
bool user_iov_is_writable(const struct iovec *iov, size_t cnt, size_t len);

/* Copies `len` bytes from the iovec, or to it, behind its first `skip` bytes. The
 * iovec is long enough. */
void user_iov_read(const struct iovec *iov, size_t cnt, size_t skip,
		   void *to, size_t len);
void user_iov_write(const struct iovec *iov, size_t cnt, size_t skip,
		    const void *from, size_t len);

/* What lies behind the first `skip` bytes, in up to `max` elements of `out`. Returns how
 * many there are. */
size_t user_iov_rest(const struct iovec *iov, size_t cnt, size_t skip,
		     struct iovec *out, size_t max);

/* An address of the program for a socket of that domain: AF_INET, or on AF_INET6
 * either. -EFAULT, -EINVAL: too short or too long, -EAFNOSUPPORT. */
struct user_name {
	struct ip_addr addr;
	__be16 port;
};
int user_name_read(int domain, const struct sockaddr *addr, socklen_t len,
		   struct user_name *name_out) MUST_CHECK;
/* Stores the name in the form of this family, as much of it as there is room for.
 * *len becomes the length that the whole name has. */
void user_name_write(const struct user_name *name, int family, void *addr,
		     socklen_t *len);

/* The control messages of a receiver. They are appended in order. The room may be where no
 * memory can be: then there is none. */
struct user_control {
	uint8_t *at;
	size_t room;
	/* msg_flags to be returned: MSG_CTRUNC */
	int flags;
};
void user_control_put(struct user_control *control, int level, int type,
		      const void *data, size_t len);

/* The time stamps of what was received that a receiver wishes for: SO_TIMESTAMP,
 * SO_TIMESTAMPNS, and of SO_TIMESTAMPING the software's and the card's, and by which
 * interface what the card has stamped came (SOF_TIMESTAMPING_OPT_PKTINFO). */
enum user_stamp {
	USER_STAMP = 1 << 3,
	USER_STAMP_NS = 1 << 4,
	USER_STAMPING = 1 << 5,
	USER_CARD_STAMP = 1 << 7,
	USER_CARD_INFO = 1 << 8,
};
/* What is wished for by these flags of SO_TIMESTAMPING. */
uint32_t user_stamping_of(uint32_t flags);

struct user_stamps {
	/* real time */
	uint64_t time_ns;
	/* 0: the card has none */
	uint64_t card_ns;
	/* for USER_CARD_INFO alone: the interface, and how long the frame was */
	uint32_t ifindex;
	uint32_t frame_len;
};
/* Puts them, in the order in which Linux has them. */
void user_control_put_stamps(struct user_control *control, uint32_t wishes,
			     const struct user_stamps *stamps);

#endif
