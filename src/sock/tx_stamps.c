/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of what was sent (tx_stamps.h). */
#include "config.h"

#include "sock/tx_stamps.h"

#include <errno.h>
#include <netinet/in.h>

#include "base/clock.h"

/* What a record takes of the receive buffer besides its bytes: as much as Linux's. */
enum { RECORD_OVERHEAD = 768 };

static uint32_t cost_of(const struct pkt *record)
{
	return RECORD_OVERHEAD + pkt_total_len(record);
}

bool tx_stamps_put(struct tx_stamps *stamps, struct pkt *record,
		   const struct tx_stamp *what, uint64_t time_ns, uint32_t room)
{
	uint32_t cost = cost_of(record);

	if (cost >= room) {
		pkt_put(record);
		return false;
	}
	*PKT_CB(record, struct tx_stamp) = *what;
	record->time_ns = time_ns;
	list_push_back(&stamps->records, &record->link);
	stamps->taken += cost;
	return true;
}

struct pkt *tx_stamps_take(struct tx_stamps *stamps)
{
	struct list *first = list_pop_front(&stamps->records);

	if (!first)
		return NULL;
	stamps->taken -= cost_of(pkt_from_link(first));
	return pkt_from_link(first);
}

void tx_stamps_purge(struct tx_stamps *stamps)
{
	struct pkt *record;

	while ((record = tx_stamps_take(stamps)))
		pkt_put(record);
}

void tx_stamp_put_time(struct user_control *control, uint32_t flags,
		       uint32_t wishes, const struct pkt *record)
{
	struct user_stamps stamps = { .time_ns = record->time_ns,
				      .card_ns = pkt_card_ns(record) };

	wishes &= (uint32_t)(USER_STAMP | USER_STAMP_NS);
	/* A card's record has no other time, but where Linux needs one, it takes that of the
	 * reading. */
	if (!stamps.time_ns && wishes)
		stamps.time_ns = clock_realtime_ns();
	if (flags & SOF_TIMESTAMPING_SOFTWARE && stamps.time_ns)
		wishes |= USER_STAMPING;
	if (flags & SOF_TIMESTAMPING_RAW_HARDWARE)
		wishes |= USER_CARD_STAMP;
	user_control_put_stamps(control, wishes, &stamps);
}

void tx_stamp_put_record(struct user_control *control, int domain,
			 const struct pkt *record, const struct wire_ipv4 *ip)
{
	struct sock_extended_err error = {
		.ee_errno = ENOMSG,
		.ee_origin = SO_EE_ORIGIN_TIMESTAMPING,
		.ee_info = tx_stamp_of(record)->station,
		.ee_data = tx_stamp_of(record)->number,
	};
	struct {
		struct sock_extended_err error;
		struct sockaddr_in from;
	} v4 = { .error = error };
	struct {
		struct sock_extended_err error;
		struct sockaddr_in6 from;
	} v6 = { .error = error };
	struct ip_addr from;

	if (domain == AF_INET6) {
		if (ip) {
			from = ip_addr_from_v4(ip->src);
			v6.from.sin6_family = AF_INET6;
			memcpy(&v6.from.sin6_addr, &from, sizeof(v6.from.sin6_addr));
		}
		user_control_put(control, IPPROTO_IPV6, IPV6_RECVERR, &v6,
				 sizeof(v6));
		return;
	}
	if (ip) {
		v4.from.sin_family = AF_INET;
		v4.from.sin_addr.s_addr = ip->src;
	}
	user_control_put(control, IPPROTO_IP, IP_RECVERR, &v4, sizeof(v4));
}

size_t tx_stamp_copy(const struct pkt *record, const struct iovec *iov,
		     size_t iov_cnt, size_t len)
{
	size_t done = 0;

	for (; record && done < len; record = record->next_part) {
		size_t n = MIN((size_t)record->len, len - done);

		user_iov_write(iov, iov_cnt, done, record->data, n);
		done += n;
	}
	return done;
}

/* Whether the control message is a record of the kernel's. */
static bool is_record(const struct cmsghdr *head, const uint8_t *body)
{
	struct sock_extended_err error;
	bool is_error = (head->cmsg_level == IPPROTO_IP &&
			 head->cmsg_type == IP_RECVERR) ||
			(head->cmsg_level == IPPROTO_IPV6 &&
			 head->cmsg_type == IPV6_RECVERR);

	if (!is_error || head->cmsg_len < CMSG_LEN(sizeof(error)))
		return false;
	memcpy(&error, body, sizeof(error));
	return error.ee_errno == ENOMSG &&
	       error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING;
}

uint8_t *tx_stamp_number_in(const struct msghdr *msg)
{
	uint8_t *at = msg->msg_control;
	size_t left = at ? msg->msg_controllen : 0;
	struct cmsghdr head;

	while (left >= sizeof(head)) {
		size_t step;

		memcpy(&head, at, sizeof(head));
		if (head.cmsg_len < sizeof(head) || head.cmsg_len > left)
			break;
		if (is_record(&head, at + CMSG_LEN(0)))
			return at + CMSG_LEN(0) +
			       offsetof(struct sock_extended_err, ee_data);
		step = MIN(CMSG_ALIGN(head.cmsg_len), left);
		at += step;
		left -= step;
	}
	return NULL;
}
