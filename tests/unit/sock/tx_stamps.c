/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "sock/tx_stamps.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "pkt/pkt_stock.h"
#include "tests/support/test.h"

static struct pkt_stock stock;
static struct tx_stamps stamps;

static void begin(void)
{
	pkt_stock_init(&stock, 2048, 1024);
	CHECK(!pkt_stock_add(&stock, pkt_stock_make(&stock)));
	tx_stamps_init(&stamps);
	stamps.taken = 0;
}

/* Everything has been given back. */
static void end(void)
{
	CHECK_EQ(pkt_stock_destroy(&stock), 0);
}

static struct pkt *make(uint32_t len)
{
	struct pkt *pkt = pkt_stock_take(&stock);

	memset(pkt_append(pkt, len), 'x', len);
	return pkt;
}

static bool put(uint32_t number, uint32_t len, uint32_t room)
{
	struct tx_stamp what = { .station = SCM_TSTAMP_ACK, .number = number };

	return tx_stamps_put(&stamps, make(len), &what, number + 1, room);
}

TEST(oldest_first)
{
	struct pkt *record;

	begin();
	CHECK(!tx_stamps_take(&stamps));
	for (uint32_t i = 0; i < 3; i++)
		CHECK(put(i, 0, 10000));
	CHECK(stamps.taken > 0);
	for (uint32_t i = 0; i < 3; i++) {
		record = tx_stamps_take(&stamps);
		CHECK(record != NULL);
		CHECK_EQ(tx_stamp_of(record)->number, i);
		CHECK_EQ(record->time_ns, i + 1);
		pkt_put(record);
	}
	CHECK(!tx_stamps_take(&stamps));
	CHECK_EQ(stamps.taken, 0);
	end();
}

TEST(without_room_it_is_dropped)
{
	begin();
	CHECK(put(0, 1000, 10000));
	CHECK(!put(1, 1000, 1000));
	CHECK(!put(1, 0, 0));
	tx_stamps_purge(&stamps);
	CHECK_EQ(stamps.taken, 0);
	end();
}

/* Each byte room that there is for control messages. */
TEST(control_messages_of_all_lengths)
{
	struct wire_ipv4 ip = { .src = htobe32(0x0a000001) };
	struct pkt *record;

	begin();
	CHECK(put(7, 0, 10000));
	record = tx_stamps_take(&stamps);
	for (size_t room = 0; room <= 128; room++)
		for (int domain = AF_INET; domain <= AF_INET6;
		     domain += AF_INET6 - AF_INET) {
			uint8_t *bytes = malloc(room + 1);
			struct user_control control = { bytes, room, 0 };

			bytes[room] = 0x5a;
			tx_stamp_put_time(&control, SOF_TIMESTAMPING_SOFTWARE, 0,
					  record);
			tx_stamp_put_record(&control, domain, record, &ip);
			CHECK(control.at + control.room == bytes + room);
			CHECK_EQ(bytes[room], 0x5a);
			CHECK_EQ(!(control.flags & MSG_CTRUNC),
				 room >= CMSG_SPACE(sizeof(struct timespec[3])) +
						 CMSG_LEN(sizeof(struct sock_extended_err) +
							  (domain == AF_INET ? sizeof(struct sockaddr_in) :
									       sizeof(struct sockaddr_in6))));
			free(bytes);
		}
	pkt_put(record);
	end();
}

/* A record of the kernel's is found among others, wherever it lies. */
TEST(numbers_of_the_kernel)
{
	uint8_t bytes[256];
	struct user_control control;
	struct msghdr msg = { .msg_control = bytes + 1 };
	struct sock_extended_err other = { .ee_errno = ECONNREFUSED,
					   .ee_origin = SO_EE_ORIGIN_ICMP };
	struct pkt *record;
	uint32_t number;
	uint8_t *at;

	begin();
	CHECK(put(0x01020304, 0, 10000));
	record = tx_stamps_take(&stamps);
	msg.msg_controllen = 0;
	CHECK(!tx_stamp_number_in(&msg));
	control = (struct user_control){ bytes + 1, 255, 0 };
	tx_stamp_put_time(&control, SOF_TIMESTAMPING_SOFTWARE, 0, record);
	user_control_put(&control, IPPROTO_IP, IP_RECVERR, &other, sizeof(other));
	msg.msg_controllen = 255 - control.room;
	CHECK(!tx_stamp_number_in(&msg));
	tx_stamp_put_record(&control, AF_INET, record, NULL);
	for (size_t len = 0; len < 255 - control.room - 16; len++) {
		msg.msg_controllen = len;
		(void)tx_stamp_number_in(&msg);
	}
	msg.msg_controllen = 255 - control.room;
	at = tx_stamp_number_in(&msg);
	CHECK(at != NULL);
	memcpy(&number, at, sizeof(number));
	CHECK_EQ(number, 0x01020304);
	/* a length that lies ends the search */
	memset(bytes + 1, 0, sizeof(size_t));
	CHECK(!tx_stamp_number_in(&msg));
	pkt_put(record);
	end();
}
