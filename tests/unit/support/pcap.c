/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/support/pcap.h"

#include <errno.h>

#include "tests/support/test.h"

struct sink {
	uint8_t bytes[512];
	size_t len;
	int error;
};

static int sink_write(void *ctx, const void *data, size_t len)
{
	struct sink *sink = ctx;

	if (sink->error)
		return sink->error;
	CHECK(len <= sizeof(sink->bytes) - sink->len);
	memcpy(sink->bytes + sink->len, data, len);
	sink->len += len;
	return 0;
}

#define LE32(a) (a) & 0xff, (a) >> 8 & 0xff, (a) >> 16 & 0xff, (a) >> 24

TEST(writes_the_format_byte_by_byte)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	static const uint8_t want[] = {
		0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, LE32(0), LE32(0),
		LE32(4), LE32(1),
		LE32(7), LE32(5), LE32(4), LE32(6), 'a', 'b', 'c', 'd',
	};
	struct sink sink = { .len = 0 };
	struct pcap_writer writer;

	CHECK_EQ(pcap_writer_init(&writer, PCAP_ETHERNET, 4, sink_write, &sink),
		 0);
	CHECK_EQ(pcap_write(&writer, UINT64_C(7000000005), "abcdef", 6), 0);
	CHECK_EQ(sink.len, sizeof(want));
	CHECK_MEM(sink.bytes, want, sizeof(want));
#endif
}

TEST(reads_what_it_wrote)
{
	struct sink sink = { .len = 0 };
	struct pcap_writer writer;
	struct pcap_reader reader;
	struct pcap_record record;

	CHECK_EQ(pcap_writer_init(&writer, PCAP_RAW_IP, 1500, sink_write,
				  &sink), 0);
	CHECK_EQ(pcap_write(&writer, 1, "x", 1), 0);
	CHECK_EQ(pcap_write(&writer, UINT64_C(4000000001) * 1000, "", 0), 0);

	CHECK_EQ(pcap_reader_init(&reader, sink.bytes, sink.len), 0);
	CHECK_EQ(reader.link_type, PCAP_RAW_IP);
	CHECK_EQ(pcap_read(&reader, &record), 1);
	CHECK_EQ(record.time_ns, 1);
	CHECK_EQ(record.len, 1);
	CHECK_EQ(*record.data, 'x');
	CHECK_EQ(pcap_read(&reader, &record), 1);
	CHECK_EQ(record.time_ns, UINT64_C(4000000001) * 1000);
	CHECK_EQ(record.full_len, 0);
	CHECK_EQ(pcap_read(&reader, &record), 0);
}

TEST(reads_the_other_byte_order_in_microseconds)
{
	static const uint8_t file[] = {
		0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 5, 0xdc, 0, 0, 0, 1,
		0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 9, 'z',
	};
	static uint8_t copy[sizeof(file)];
	struct pcap_reader reader;
	struct pcap_record record;

	memcpy(copy, file, sizeof(file));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return;
#endif
	CHECK_EQ(pcap_reader_init(&reader, copy, sizeof(copy)), 0);
	CHECK_EQ(reader.link_type, PCAP_ETHERNET);
	CHECK_EQ(pcap_read(&reader, &record), 1);
	CHECK_EQ(record.time_ns, UINT64_C(2000003000));
	CHECK_EQ(record.full_len, 9);
	CHECK_EQ(*record.data, 'z');
	/* the record ends one byte later than the file */
	CHECK_EQ(pcap_reader_init(&reader, copy, sizeof(copy) - 1), 0);
	CHECK_EQ(pcap_read(&reader, &record), -EINVAL);
	CHECK_EQ(pcap_reader_init(&reader, copy, 30), 0);
	CHECK_EQ(pcap_read(&reader, &record), -EINVAL);
}

TEST(refuses_what_is_no_capture)
{
	struct pcap_reader reader;
	char text[] = "this is plain text, and long enough";

	CHECK_EQ(pcap_reader_init(&reader, text, sizeof(text)), -EINVAL);
	CHECK_EQ(pcap_reader_init(&reader, text, 3), -EINVAL);
}

TEST(passes_on_the_error_of_the_callback)
{
	struct sink sink = { .error = -ENOSPC };
	struct pcap_writer writer;

	CHECK_EQ(pcap_writer_init(&writer, PCAP_ETHERNET, 64, sink_write,
				  &sink), -ENOSPC);
	CHECK_EQ(pcap_write(&writer, 0, "a", 1), -ENOSPC);
}
