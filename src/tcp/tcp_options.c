/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The option codec of tcp_options.h. */
#include "tcp/tcp_options.h"

#include <string.h>

#include "pkt/wire.h"

enum option_kind {
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_MSS = 2,
	OPTION_SCALE = 3,
	OPTION_SACK_OK = 4,
	OPTION_SACK = 5,
	OPTION_TS = 8,
	OPTION_FAST_OPEN = 34,
	/* RFC 9768 section 3.2.3: ECT(0), CE, ECT(1), or the other way round */
	OPTION_ACCECN_0 = 172,
	OPTION_ACCECN_1 = 174,
};

static void read_sack(const uint8_t *body, size_t len, struct tcp_options *o)
{
	o->sack_cnt = 0;
	for (; len >= 8 && o->sack_cnt < TCP_SACK_BLOCKS_MAX; len -= 8) {
		struct tcp_sack_block *block = &o->sack[o->sack_cnt++];

		block->start = wire_get_u32(body);
		block->end = wire_get_u32(body + 4);
		body += 8;
	}
}

/* RFC 7413 section 4.1.1: other lengths are no cookies. */
static void read_cookie(const uint8_t *body, size_t len, struct tcp_options *o)
{
	if (len && (len % 2 || len < TCP_FO_COOKIE_MIN || len > TCP_FO_COOKIE_MAX))
		return;
	o->has_cookie = true;
	o->cookie_len = (uint8_t)len;
	memcpy(o->cookie, body, len);
}

static uint32_t get_u24(const uint8_t *from)
{
	return (uint32_t)from[0] << 16 | wire_get_u16(from + 1);
}

static void put_u24(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 16);
	wire_put_u16(to + 1, (uint16_t)value);
}

/* It may end after each counter. */
static void read_counters(uint8_t kind, const uint8_t *body, size_t len,
			  struct tcp_options *o)
{
	uint32_t *first = kind == OPTION_ACCECN_0 ? &o->ect0_bytes
						  : &o->ect1_bytes;
	uint32_t *last = kind == OPTION_ACCECN_0 ? &o->ect1_bytes
						 : &o->ect0_bytes;

	if (len % 3 || len > 9)
		return;
	o->counter_cnt = (uint8_t)(len / 3);
	if (len >= 3)
		*first = get_u24(body);
	if (len >= 6)
		o->ce_bytes = get_u24(body + 3);
	if (len >= 9)
		*last = get_u24(body + 6);
}

/* One option of known length; a wrong length for its kind makes it unknown. */
static void read_option(uint8_t kind, const uint8_t *body, size_t len,
			bool is_syn, struct tcp_options *o)
{
	switch (kind) {
	case OPTION_MSS:
		if (is_syn && len == 2)
			o->mss = wire_get_u16(body);
		break;
	case OPTION_SCALE:
		if (is_syn && len == 1) {
			o->has_scale = true;
			o->scale = MIN(body[0], (uint8_t)TCP_SCALE_MAX);
		}
		break;
	case OPTION_SACK_OK:
		if (is_syn && len == 0)
			o->has_sack_ok = true;
		break;
	case OPTION_SACK:
		if (!is_syn && len % 8 == 0)
			read_sack(body, len, o);
		break;
	case OPTION_TS:
		if (len == 8) {
			o->has_ts = true;
			o->ts_val = wire_get_u32(body);
			o->ts_ecr = wire_get_u32(body + 4);
		}
		break;
	case OPTION_ACCECN_0:
	case OPTION_ACCECN_1:
		read_counters(kind, body, len, o);
		break;
	case OPTION_FAST_OPEN:
		if (is_syn)
			read_cookie(body, len, o);
		break;
	}
}

void tcp_options_parse(const uint8_t *data, size_t len, bool is_syn,
		       struct tcp_options *options_out)
{
	const uint8_t *end = data + len;

	/* blocks, cookie and counters are not read without their number */
	memset(options_out, 0, offsetof(struct tcp_options, sack));
	while (data < end && *data != OPTION_END) {
		size_t option_len;

		if (*data == OPTION_NOP) {
			data++;
			continue;
		}
		if (end - data < 2)
			return;
		option_len = data[1];
		if (option_len < 2 || option_len > (size_t)(end - data))
			return;
		read_option(data[0], data + 2, option_len - 2, is_syn,
			    options_out);
		data += option_len;
	}
}

/* NOPs in front, so that the bodies of 32-bit numbers lie aligned. */
static size_t build_ts(uint8_t *data, const struct tcp_options *o)
{
	wire_put_u32(data, TCP_OPTION_TS_PLAIN);
	wire_put_u32(data + 4, o->ts_val);
	wire_put_u32(data + 8, o->ts_ecr);
	return 12;
}

static size_t build_sack(uint8_t *data, size_t room,
			 const struct tcp_options *o)
{
	size_t cnt = MIN((size_t)o->sack_cnt, (room - 4) / 8);
	size_t len = 4;

	data[0] = data[1] = OPTION_NOP;
	data[2] = OPTION_SACK;
	data[3] = (uint8_t)(2 + 8 * cnt);
	for (size_t i = 0; i < cnt; i++, len += 8) {
		wire_put_u32(data + len, o->sack[i].start);
		wire_put_u32(data + len + 4, o->sack[i].end);
	}
	return len;
}

static size_t build_counters(uint8_t *data, const struct tcp_options *o)
{
	data[0] = OPTION_ACCECN_0;
	data[1] = 11;
	put_u24(data + 2, o->ect0_bytes);
	put_u24(data + 5, o->ce_bytes);
	put_u24(data + 8, o->ect1_bytes);
	data[11] = OPTION_NOP;
	return 12;
}

static size_t build_cookie(uint8_t *data, const struct tcp_options *o)
{
	size_t len = 2u + o->cookie_len;

	data[0] = OPTION_FAST_OPEN;
	data[1] = (uint8_t)len;
	memcpy(data + 2, o->cookie, o->cookie_len);
	while (len % 4)
		data[len++] = OPTION_NOP;
	return len;
}

/* In the order of Linux: 20 bytes with all but a cookie, which always fits. */
static size_t build_syn(uint8_t *data, const struct tcp_options *o)
{
	size_t len = 0;

	if (o->mss) {
		data[0] = OPTION_MSS;
		data[1] = 4;
		wire_put_u16(data + 2, o->mss);
		len = 4;
	}
	if (o->has_ts) {
		build_ts(data + len, o);
		/* in the place of what fills the word */
		if (o->has_sack_ok) {
			data[len] = OPTION_SACK_OK;
			data[len + 1] = 2;
		}
		len += 12;
	} else if (o->has_sack_ok) {
		data[len] = data[len + 1] = OPTION_NOP;
		data[len + 2] = OPTION_SACK_OK;
		data[len + 3] = 2;
		len += 4;
	}
	if (o->has_scale) {
		data[len] = OPTION_NOP;
		data[len + 1] = OPTION_SCALE;
		data[len + 2] = 3;
		data[len + 3] = o->scale;
		len += 4;
	}
	if (o->has_cookie)
		len += build_cookie(data + len, o);
	return len;
}

size_t tcp_options_build(uint8_t *data, const struct tcp_options *options)
{
	bool is_syn = options->mss || options->has_scale ||
		      options->has_sack_ok || options->has_cookie;
	size_t len = 0;

	if (is_syn)
		len = build_syn(data, options);
	else if (options->has_ts)
		len = build_ts(data, options);
	if (options->counter_cnt && len + 12 <= TCP_OPTIONS_MAX)
		len += build_counters(data + len, options);
	if (options->sack_cnt && len + 12 <= TCP_OPTIONS_MAX)
		len += build_sack(data + len, TCP_OPTIONS_MAX - len, options);
	return len;
}
