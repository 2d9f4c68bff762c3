/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pcap capture format with nanosecond time stamps: a writer that hands its
 * bytes to a callback, and a reader over a buffer. No files here; whoever wants
 * one supplies the callback.
 */
#ifndef SUPPORT_PCAP_H
#define SUPPORT_PCAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum pcap_link_type {
	PCAP_ETHERNET = 1,
	/* begins with the IPv4 or IPv6 header */
	PCAP_RAW_IP = 101,
};

/* Takes all of the bytes or fails with a negative errno, which the writer's
 * caller then gets. */
typedef int (*pcap_write_fn)(void *ctx, const void *data, size_t len);

struct pcap_writer {
	pcap_write_fn write;
	void *ctx;
	uint32_t snap_len;
};

/* Writes the file header. Of each packet at most snap_len bytes are kept. */
int pcap_writer_init(struct pcap_writer *writer, enum pcap_link_type link_type,
		     uint32_t snap_len, pcap_write_fn write, void *ctx)
	MUST_CHECK;
/* One packet, in at most two calls of the callback: header, bytes. */
int pcap_write(struct pcap_writer *writer, uint64_t time_ns, const void *data,
	       size_t len) MUST_CHECK;

/* Reads files of either byte order, with micro- or nanoseconds. */
struct pcap_reader {
	const uint8_t *next;
	const uint8_t *end;
	uint32_t link_type;
	uint32_t ns_per_unit;
	/* the file has the other byte order */
	int is_swapped;
};

struct pcap_record {
	uint64_t time_ns;
	const uint8_t *data;
	/* bytes kept */
	uint32_t len;
	/* bytes the packet had */
	uint32_t full_len;
};

/* The buffer must outlive the reader. -EINVAL: not a pcap file. */
int pcap_reader_init(struct pcap_reader *reader, const void *data, size_t len)
	MUST_CHECK;
/* 1 and a record that points into the buffer; 0 at the end; -EINVAL if the
 * file ends within a record. */
int pcap_read(struct pcap_reader *reader, struct pcap_record *record_out)
	MUST_CHECK;

#endif
