/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two hashes of hash.h over byte strings. */
#include "base/hash.h"

#include <string.h>

#include "base/compiler.h"

static uint64_t rotl(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

/* Up to eight bytes, lowest first whatever the machine. */
static uint64_t load_le(const uint8_t *from, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, from, len);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

static ALWAYS_INLINE void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] = rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] = rotl(v[2], 32);
}

static ALWAYS_INLINE void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

uint64_t hash_sip(const struct hash_key *key, const void *data, size_t len)
{
	const uint8_t *from = data;
	uint64_t last = (uint64_t)len << 56;
	uint64_t v[4] = {
		key->word[0] ^ UINT64_C(0x736f6d6570736575),
		key->word[1] ^ UINT64_C(0x646f72616e646f6d),
		key->word[0] ^ UINT64_C(0x6c7967656e657261),
		key->word[1] ^ UINT64_C(0x7465646279746573),
	};

	for (; len >= 8; len -= 8, from += 8)
		sip_word(v, load_le(from, 8));
	sip_word(v, last | load_le(from, len));
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *from = data;
	uint64_t hash = hash_u64(seed, len);

	for (; len >= 16; len -= 16, from += 16)
		hash = hash_u64x2(hash, load_le(from, 8), load_le(from + 8, 8));
	if (len >= 8) {
		hash = hash_u64(hash, load_le(from, 8));
		from += 8;
		len -= 8;
	}
	return len ? hash_u64(hash, load_le(from, len)) : hash;
}
