/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes complaints of routers (path_news.h). */
#include "config.h"

#include "net/path_news.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include "fd/right_keeper.h"
#include "ip/ip_icmp.h"
#include "net/net.h"
#include "os/real.h"
#include "os/rights.h"
#include "pkt/wire.h"

enum {
	/* the message's header, the packet that it quotes, and the options of both */
	MESSAGE_MAX = 576,
	/* How many messages we read at a time, and how many of them we ask about.
	 * Somebody who forges messages shall not keep us busy. If we pass over a
	 * genuine one, the router sends it again with the next packet. */
	READ_MAX = 256,
	ASK_MAX = 16,
	/* how many known paths we ask for again in a second */
	CHECK_MAX = 16,
};

/* An option of raw sockets: the types of ICMP that are not wanted. Its header cannot
 * be included together with those of libc. */
enum { SOL_RAW_ = 255, ICMP_FILTER_ = 1 };

/* Lets errors about TCP in, and "fragmentation needed" about anything; no other message
 * of ICMP. */
static int let_in(int fd)
{
	uint32_t types = ~(1u << ICMP_DEST_UNREACH | 1u << ICMP_TIME_EXCEEDED |
			   1u << ICMP_PARAMETERPROB);
	struct sock_filter code[] = {
		/* Behind the IP header there are the type, the code, and after eight
		 * bytes the header of the packet that is quoted, with its protocol. */
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 8 + 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 4, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_DEST_UNREACH, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 1),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_FRAG_NEEDED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, MESSAGE_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { ARRAY_LEN(code), code };

	if (real.setsockopt(fd, SOL_RAW_, ICMP_FILTER_, &types,
			    sizeof(types)) != 0 ||
	    real.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
			    sizeof(filter)) != 0)
		return -errno;
	return 0;
}

/* By whoever has the right. */
static int make_socket(void)
{
	const struct keeper_request request = { .op = KEEPER_ICMP };
	int fd;

	if (!rights_is_net_admin())
		return right_keeper_ask_one(&request, NULL);
	fd = real.socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			 IPPROTO_ICMP);
	return fd < 0 ? -errno : fd;
}

int path_news_open(void)
{
	int fd = make_socket();
	int err;

	if (fd < 0)
		return fd;
	err = let_in(fd);
	if (err) {
		real.close(fd);
		return err;
	}
	return fd;
}

/* False: the message of `len` bytes is damaged, or says nothing. */
static bool read_complaint(const uint8_t *msg, size_t len, struct ip_icmp *out)
{
	const struct wire_ipv4 *ip = (const void *)msg;
	size_t head_len = len ? (msg[0] & 0xfu) * 4 : 0;

	return len >= sizeof(*ip) && len >= head_len &&
	       ip_icmp_parse(msg + head_len, len - head_len, out) == 0;
}

static void tell_engines(struct net *net, const struct ip_icmp *icmp)
{
	for (unsigned i = 0; i < net_stack_cnt(net); i++)
		stack_take_icmp(net->stacks[i], icmp);
}

/* The destinations that we ask about, each one once. */
struct question_list {
	struct path_mtu_info about[ASK_MAX];
	unsigned cnt;
};

static void note(struct question_list *list, const struct ip_icmp *icmp)
{
	for (unsigned i = 0; i < list->cnt; i++)
		if (ip_addr_eq(&list->about[i].dst, &icmp->key.remote))
			return;
	if (list->cnt < ASK_MAX)
		list->about[list->cnt++] = (struct path_mtu_info){
			.dst = icmp->key.remote,
			.src = icmp->key.local,
		};
}

void path_news_take(struct net *net)
{
	int fd = atomic_load(&net->icmp_fd);
	uint8_t msg[MESSAGE_MAX];
	struct question_list list = { .cnt = 0 };
	struct ip_icmp icmp;

	for (int i = 0; i < READ_MAX; i++) {
		ssize_t len = real.recv(fd, msg, sizeof(msg), 0);

		if (len < 0 && errno != EINTR)
			break;
		if (len <= 0 || !read_complaint(msg, (size_t)len, &icmp))
			continue;
		if (icmp.proto == WIRE_PROTO_TCP)
			tell_engines(net, &icmp);
		if (icmp.error == -EMSGSIZE)
			note(&list, &icmp);
	}
	for (unsigned i = 0; i < list.cnt; i++)
		/* An error: no route leads there any more. */
		(void)!netlink_read_path(&net->netlink, &list.about[i]);
}

bool path_news_check(struct net *net)
{
	unsigned known = net->view.path_mtus.cnt;

	for (unsigned i = MIN(known, (unsigned)CHECK_MAX); i; i--)
		netlink_check_path(&net->netlink);
	return known;
}
