/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the environment asks of the device. A value that cannot be understood
 * ends the process with one line: a test must not run with other conditions than
 * it was given.
 */
#ifndef SOFTCX_CONF_H
#define SOFTCX_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/fake/impair.h"
#include "base/compiler.h"

/* What a card needs inline that has to know where a frame goes: Ethernet header
 * and VLAN tag. */
enum { CONF_INLINE_L2 = 18 };

enum { CONF_MAX_DEVS = 8, CONF_NAME_SIZE = 64, CONF_IF_SIZE = 16 };

struct conf_dev {
	char name[CONF_NAME_SIZE];  /* mlx5_0 */
	char ifname[CONF_IF_SIZE];  /* eth0 */
};

struct conf {
	struct conf_dev devs[CONF_MAX_DEVS]; /* SOFTCX */
	unsigned int n_devs;
	bool is_strict;      /* SOFTCX_STRICT, default 1 */
	bool is_manual;      /* SOFTCX_MANUAL, default 0 */
	bool is_traced;      /* SOFTCX_TRACE: commands on stderr */
	bool has_stats;      /* SOFTCX_STATS: counters on stderr at exit */
	const char *pcap;    /* SOFTCX_PCAP: path, or NULL */
	uint64_t seed;       /* SOFTCX_SEED */
	struct impair_params impair; /* SOFTCX_IMPAIR */
	bool has_impair;
	uint32_t min_inline; /* SOFTCX_MIN_INLINE: bytes, 0 or 18 */
	bool has_tso;        /* SOFTCX_TSO, default 1 */
	uint32_t rules_max;  /* SOFTCX_RULES: flow rules of a device and process */
	uint64_t late_ns;    /* SOFTCX_LATE_US: completions are late by up to */
	uint64_t clock_khz;  /* SOFTCX_CLOCK=khz=N,ppm=N,offset=N */
	int64_t clock_ppm;   /* the card's clock runs fast by this */
	uint64_t clock_offset; /* its count when the process starts */
};

/* False when SOFTCX is not set: the device is then not there. */
bool conf_read(struct conf *conf) MUST_CHECK;

#endif
