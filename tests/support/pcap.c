/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writer and reader of the pcap capture format (pcap.h). */
#include "tests/support/pcap.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define MAGIC_US UINT32_C(0xa1b2c3d4)
#define MAGIC_NS UINT32_C(0xa1b23c4d)

/* Fields are in the byte order of the machine that wrote the file; the magic
 * number tells which that was. */
struct file_header {
	uint32_t magic;
	uint16_t version_major;
	uint16_t version_minor;
	uint32_t zone;
	uint32_t accuracy;
	uint32_t snap_len;
	uint32_t link_type;
};

struct record_header {
	uint32_t seconds;
	uint32_t fraction;
	uint32_t kept_len;
	uint32_t full_len;
};

int pcap_writer_init(struct pcap_writer *writer, enum pcap_link_type link_type,
		     uint32_t snap_len, pcap_write_fn write, void *ctx)
{
	struct file_header header = {
		.magic = MAGIC_NS,
		.version_major = 2,
		.version_minor = 4,
		.snap_len = snap_len,
		.link_type = link_type,
	};

	writer->write = write;
	writer->ctx = ctx;
	writer->snap_len = snap_len;
	return write(ctx, &header, sizeof(header));
}

int pcap_write(struct pcap_writer *writer, uint64_t time_ns, const void *data,
	       size_t len)
{
	uint32_t kept_len = (uint32_t)MIN(len, (size_t)writer->snap_len);
	struct record_header header = {
		.seconds = (uint32_t)(time_ns / NS_PER_SEC),
		.fraction = (uint32_t)(time_ns % NS_PER_SEC),
		.kept_len = kept_len,
		.full_len = (uint32_t)len,
	};
	int rc = writer->write(writer->ctx, &header, sizeof(header));

	if (rc || !kept_len)
		return rc;
	return writer->write(writer->ctx, data, kept_len);
}

static uint32_t read_u32(const struct pcap_reader *reader, uint32_t value)
{
	return reader->is_swapped ? __builtin_bswap32(value) : value;
}

/* Whether `magic` is ours in this byte order; sets the unit of time. */
static int knows_magic(struct pcap_reader *reader, uint32_t magic)
{
	reader->ns_per_unit = magic == MAGIC_NS ? 1 : (uint32_t)NS_PER_US;
	return magic == MAGIC_NS || magic == MAGIC_US;
}

int pcap_reader_init(struct pcap_reader *reader, const void *data, size_t len)
{
	struct file_header header;

	if (len < sizeof(header))
		return -EINVAL;
	memcpy(&header, data, sizeof(header));
	reader->is_swapped = 0;
	if (!knows_magic(reader, header.magic)) {
		reader->is_swapped = 1;
		if (!knows_magic(reader, __builtin_bswap32(header.magic)))
			return -EINVAL;
	}
	reader->link_type = read_u32(reader, header.link_type);
	reader->next = (const uint8_t *)data + sizeof(header);
	reader->end = (const uint8_t *)data + len;
	return 0;
}

int pcap_read(struct pcap_reader *reader, struct pcap_record *record_out)
{
	size_t left = (size_t)(reader->end - reader->next);
	struct record_header header;

	if (left == 0)
		return 0;
	if (left < sizeof(header))
		return -EINVAL;
	memcpy(&header, reader->next, sizeof(header));
	record_out->len = read_u32(reader, header.kept_len);
	record_out->full_len = read_u32(reader, header.full_len);
	if (record_out->len > left - sizeof(header))
		return -EINVAL;
	record_out->time_ns =
		read_u32(reader, header.seconds) * NS_PER_SEC +
		(uint64_t)read_u32(reader, header.fraction) *
			reader->ns_per_unit;
	record_out->data = reader->next + sizeof(header);
	reader->next = record_out->data + record_out->len;
	return 1;
}
