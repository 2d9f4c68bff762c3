/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one address type: sixteen bytes in network order, IPv4 as v4-mapped
 * (::ffff:a.b.c.d). Tables, rules and engines know no other, so that IPv6 needs
 * no second version of any of them.
 */
#ifndef BASE_IPADDR_H
#define BASE_IPADDR_H

#include <endian.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

struct ip_addr {
	union {
		uint8_t byte[16];
		__be32 word[4];
		uint64_t half[2]; /* for comparison only */
	};
};

/* Longest text of an address with its NUL: "ffff:" times seven, "ffff", or a
 * v4-mapped address, whose text is the IPv4 one. */
enum { IP_ADDR_TEXT_SIZE = 46 };

/* A prefix length that counts all bits, and where the IPv4 bits begin. */
enum { IP_PREFIX_MAX = 128, IP_PREFIX_V4 = 96 };

/* 0x0000ffff as it lies in memory, the third word of a v4-mapped address. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define IP_V4_MARK ((__be32)0xffff0000)
#else
#define IP_V4_MARK ((__be32)0x0000ffff)
#endif

static inline struct ip_addr ip_addr_from_v4(__be32 addr)
{
	return (struct ip_addr){ .word = { 0, 0, IP_V4_MARK, addr } };
}

/* `addr` is a struct in6_addr or any other sixteen bytes, aligned or not. */
static inline struct ip_addr ip_addr_from_v6(const void *addr)
{
	struct ip_addr a;

	memcpy(a.byte, addr, sizeof(a.byte));
	return a;
}

static inline bool ip_addr_is_v4(const struct ip_addr *a)
{
	return a->half[0] == 0 && a->word[2] == IP_V4_MARK;
}

/* The address in network order; only for one that is IPv4. */
static inline __be32 ip_addr_v4(const struct ip_addr *a)
{
	return a->word[3];
}

static inline bool ip_addr_eq(const struct ip_addr *a, const struct ip_addr *b)
{
	return a->half[0] == b->half[0] && a->half[1] == b->half[1];
}

/* 0.0.0.0 or :: */
static inline bool ip_addr_is_any(const struct ip_addr *a)
{
	return a->half[0] == 0 && a->word[3] == 0 &&
	       (a->word[2] == 0 || a->word[2] == IP_V4_MARK);
}

static inline bool ip_addr_is_multicast(const struct ip_addr *a)
{
	return ip_addr_is_v4(a) ? (a->byte[12] & 0xf0) == 0xe0 :
				  a->byte[0] == 0xff;
}

/* 127.0.0.0/8 or ::1 */
static inline bool ip_addr_is_loopback(const struct ip_addr *a)
{
	static const struct ip_addr one = { .byte = { [15] = 1 } };

	return ip_addr_is_v4(a) ? a->byte[12] == 127 : ip_addr_eq(a, &one);
}

/* Whether the first `len` bits (0..128) of both are the same. A prefix of IPv4
 * addresses has IP_PREFIX_V4 added to its length. */
bool ip_addr_in_prefix(const struct ip_addr *a, const struct ip_addr *net,
		       unsigned len);

/* The first `len` bits (0..128) of the address, the others zero. */
static inline struct ip_addr ip_addr_masked(const struct ip_addr *a,
					    unsigned len)
{
	struct ip_addr masked = { .half = { 0, 0 } };

	if (len >= 64) {
		masked.half[0] = a->half[0];
		len -= 64;
		if (len)
			masked.half[1] = a->half[1] &
					 htobe64(~UINT64_C(0) << (64 - len));
	} else if (len) {
		masked.half[0] = a->half[0] &
				 htobe64(~UINT64_C(0) << (64 - len));
	}
	return masked;
}

/* The usual spellings: 10.0.0.1, 2001:db8::1, ::ffff:10.0.0.1. `text` needs no
 * NUL; all of its `len` bytes must belong to the address. -EINVAL otherwise. */
int ip_addr_parse(const char *text, size_t len, struct ip_addr *addr_out)
	MUST_CHECK;

/* Writes at most IP_ADDR_TEXT_SIZE bytes and returns `text`. */
const char *ip_addr_format(const struct ip_addr *a, char *text);

#endif
