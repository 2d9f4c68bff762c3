/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of TCP sockets. The twin has them all, with the kernel's limits and defaults.
 * The engine gets what the twin says when a connection or listener of ours begins, and
 * again after each change. What the kernel alone can do (sock_options.def) sends the
 * connection back to it first.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "sock/sock_options.h"
#include "sock/sock_pace.h"
#include "sock/tcp/tsock_info.h"
#include "sock/tcp/tsock_priv.h"
#include "sock/tcp/tsock_share.h"

/* Buffers that the program has fixed (SO_BUF_LOCK). */
enum { SND_LOCKED = 1, RCV_LOCKED = 2 };
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif

/* What TCP_MAXSEG says when nobody has set it. */
enum { MAXSEG_UNSET = 536 };

static int of_socket(int fd, int name)
{
	return sock_twin_option(fd, SOL_SOCKET, name);
}

static int of_tcp(int fd, int name)
{
	return sock_twin_option(fd, IPPROTO_TCP, name);
}

static uint64_t seconds(int fd, int name)
{
	return (uint64_t)of_tcp(fd, name) * NS_PER_SEC;
}

/* -- from the twin to the engine ------------------------------------------------------ */

static void load_cc(int fd, struct tsock_settings *s)
{
	char name[16] = "";
	socklen_t len = sizeof(name);

	s->cc = TCP_CC_CUBIC;
	if (real.getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) != 0)
		return;
	if (strcmp(name, "reno") == 0)
		s->cc = TCP_CC_NEWRENO;
	s->is_bbr = strcmp(name, "bbr") == 0;
	/* what the system has for all, and we have not, is CUBIC here */
	s->is_cc_kernels = strcmp(name, "reno") != 0 &&
			   strcmp(name, "cubic") != 0 && !s->is_bbr;
}

/* Linux counts its own memory in these sizes, and takes half of them for data. */
static void load_buffers(int fd, struct tsock_settings *s)
{
	int locks = of_socket(fd, SO_BUF_LOCK);

	if (locks & RCV_LOCKED)
		s->rcv_buf = (uint32_t)of_socket(fd, SO_RCVBUF) / 2;
	if (locks & SND_LOCKED)
		s->snd_buf = (uint32_t)of_socket(fd, SO_SNDBUF) / 2;
}

static uint64_t load_pacing(int fd)
{
	uint64_t rate = UINT64_MAX;
	socklen_t len = sizeof(rate);

	if (real.getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &len) != 0)
		return TCP_NO_PACING;
	if (len == sizeof(uint32_t))
		rate = (uint32_t)rate;
	return rate == UINT32_MAX ? TCP_NO_PACING : rate;
}

/* What TCP_SAVE_SYN wants in front of TCP's header. Frames with IP options are none of
 * ours. */
static uint8_t load_saved_front(int fd)
{
	static const uint8_t of[] = {
		0,
		sizeof(struct wire_ipv4),
		sizeof(struct wire_eth) + sizeof(struct wire_ipv4),
	};
	unsigned wanted = (unsigned)of_tcp(fd, TCP_SAVE_SYN);

	return wanted < ARRAY_LEN(of) ? of[wanted] : 0;
}

static void load_settings(int fd, struct tsock_settings *s)
{
	int maxseg = of_tcp(fd, TCP_MAXSEG), linger2 = of_tcp(fd, TCP_LINGER2);
	struct tcp_settings *tcp = &s->tcp;

	memset(s, 0, sizeof(*s));
	s->nodelay = of_tcp(fd, TCP_NODELAY);
	s->cork = of_tcp(fd, TCP_CORK);
	s->keepalive = of_socket(fd, SO_KEEPALIVE);
	s->oob_inline = of_socket(fd, SO_OOBINLINE);
	s->rcv_lowat = of_socket(fd, SO_RCVLOWAT);
	load_buffers(fd, s);
	load_cc(fd, s);
	tcp->keep_idle_ns = seconds(fd, TCP_KEEPIDLE);
	tcp->keep_interval_ns = seconds(fd, TCP_KEEPINTVL);
	tcp->keep_probes = (uint8_t)of_tcp(fd, TCP_KEEPCNT);
	tcp->user_timeout_ns =
		(uint64_t)(unsigned)of_tcp(fd, TCP_USER_TIMEOUT) * NS_PER_MS;
	tcp->fin_wait_2_ns = linger2 < 0 ? TCP_NO_FIN_WAIT_2 :
					   (uint64_t)linger2 * NS_PER_SEC;
	tcp->max_pacing_rate = load_pacing(fd);
	tcp->mss_max = maxseg == MAXSEG_UNSET ? sock_params.tcp.mss :
						(uint16_t)maxseg;
	tcp->syn_retries = (uint8_t)of_tcp(fd, TCP_SYNCNT);
	tcp->window_clamp = (uint32_t)of_tcp(fd, TCP_WINDOW_CLAMP);
	tcp->notsent_lowat = (uint32_t)of_tcp(fd, TCP_NOTSENT_LOWAT);
	tcp->thin_linear_timeouts = of_tcp(fd, TCP_THIN_LINEAR_TIMEOUTS);
	s->defer_accept_ns = seconds(fd, TCP_DEFER_ACCEPT);
	tcp->saved_syn_front = load_saved_front(fd);
	tcp->fastopen_no_cookie = of_tcp(fd, TCP_FASTOPEN_NO_COOKIE);
}

/* Those that the program has set, or the kernel's, where we may read them: a cookie is good
 * for us and for the twin then. */
static void load_fast_keys(int fd, struct tsock_settings *s)
{
	uint8_t bytes[TCP_FASTOPEN_KEYS * sizeof(struct hash_key)];
	socklen_t len = sizeof(bytes);

	if (real.getsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_KEY, bytes, &len) != 0)
		return;
	if (!len) {
		s->fast_key_cnt = tcp_sysctl_fastopen_keys(s->fast_keys);
		return;
	}
	s->fast_key_cnt = len / sizeof(struct hash_key);
	for (unsigned i = 0; i < s->fast_key_cnt; i++)
		for (unsigned j = 0; j < 2; j++) {
			uint64_t word;

			memcpy(&word, bytes + 8 * (2 * i + j), sizeof(word));
			s->fast_keys[i].word[j] = le64toh(word);
		}
}

/* Listen() may set it, too, when the system wants that for all listeners. */
static void load_listener(int fd, struct tsock_settings *s)
{
	s->tcp.fastopen_max = (uint32_t)of_tcp(fd, TCP_FASTOPEN);
	s->fast_key_cnt = 0;
	if (s->tcp.fastopen_max)
		load_fast_keys(fd, s);
}

/* A socket whose options nobody has set has those of each fresh one, which are asked for
 * once. */
struct fresh {
	_Atomic int state;
	union {
		struct tsock_settings settings;
		struct dst_query query;
	};
};

enum { FRESH_UNKNOWN, FRESH_BEING_WRITTEN, FRESH_KNOWN };

static struct fresh fresh_settings, fresh_query[2];

static bool is_fresh_known(const struct tsock *t, struct fresh *fresh)
{
	/* acquire pairs with the release below */
	return !t->has_options && atomic_load_explicit(&fresh->state,
						       memory_order_acquire) ==
					  FRESH_KNOWN;
}

/* False: another thread is about to write it, or it is not fresh. */
static bool may_write_fresh(const struct tsock *t, struct fresh *fresh)
{
	int unknown = FRESH_UNKNOWN;

	return !t->has_options &&
	       atomic_compare_exchange_strong(&fresh->state, &unknown,
					      FRESH_BEING_WRITTEN);
}

static void fresh_is_known(struct fresh *fresh)
{
	atomic_store_explicit(&fresh->state, FRESH_KNOWN, memory_order_release);
}

static void load_usual(const struct tsock *t, int fd, struct tsock_settings *s)
{
	if (is_fresh_known(t, &fresh_settings)) {
		*s = fresh_settings.settings;
		return;
	}
	load_settings(fd, s);
	s->keepalive |= atomic_load(&t->hides_keepalive);
	if (may_write_fresh(t, &fresh_settings)) {
		fresh_settings.settings = *s;
		fresh_is_known(&fresh_settings);
	}
}

void tsock_load_settings(const struct tsock *t, int fd, struct tsock_settings *s)
{
	load_usual(t, fd, s);
	if (tsock_phase(t) == TSOCK_LISTENING || tsock_phase(t) == TSOCK_LISTENER)
		load_listener(fd, s);
}

static int apply_tcp(struct tcp_pcb *pcb, const struct tsock_settings *s,
		     uint64_t now)
{
	const struct tcp_params *params = tcp_params_of(pcb);
	struct tcp_settings was, is;

	tcp_get_settings(pcb, &was);
	is = was;
	is.keep_idle_ns = s->tcp.keep_idle_ns;
	is.keep_interval_ns = s->tcp.keep_interval_ns;
	is.keep_probes = s->tcp.keep_probes;
	is.user_timeout_ns = s->tcp.user_timeout_ns;
	is.fin_wait_2_ns = s->tcp.fin_wait_2_ns;
	is.max_pacing_rate = s->tcp.max_pacing_rate;
	is.mss_max = s->tcp.mss_max;
	/* the system's, which the twin says, too, is not that of a listener's answers */
	is.syn_retries = s->tcp.syn_retries == params->syn_retries ?
				 0 :
				 s->tcp.syn_retries;
	is.window_clamp = s->tcp.window_clamp;
	/* 0 is the system's */
	is.notsent_lowat = s->tcp.notsent_lowat ? s->tcp.notsent_lowat :
						  params->notsent_lowat;
	is.thin_linear_timeouts = s->tcp.thin_linear_timeouts;
	is.defer_accept = tcp_defer_accept_timeouts(params, s->defer_accept_ns);
	is.saved_syn_front = s->tcp.saved_syn_front;
	is.fastopen_max = s->tcp.fastopen_max;
	is.fastopen_no_cookie = s->tcp.fastopen_no_cookie;
	return memcmp(&was, &is, sizeof(is)) ? tcp_set_settings(pcb, &is, now) :
					       0;
}

/* The program's choice, or the user's for all. */
static enum tcp_cc_algorithm cc_of(const struct tsock *t,
				   const struct tsock_settings *s)
{
	static const enum tcp_cc_algorithm of_user[] = {
		TCP_CC_NEWRENO,
		TCP_CC_CUBIC,
		TCP_CC_NONE,
	};

	if (t->has_chosen_cc)
		return s->is_bbr ? TCP_CC_BBR : s->cc;
	return sock_params.tcp.cc < 0 ? TCP_CC_CUBIC :
					of_user[sock_params.tcp.cc];
}

/* The program sees them, and the kernel follows them where it has the socket. */
void tsock_first_options(int fd)
{
	static const char *const names[] = { "reno", "cubic" };
	int on = 1, cc = sock_params.tcp.cc;

	if (sock_params.tcp.nodelay)
		(void)!real.setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
				       sizeof(on));
	if (cc >= 0 && cc < (int)ARRAY_LEN(names))
		(void)!real.setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, names[cc],
				       (socklen_t)strlen(names[cc]));
}

int tsock_apply_settings(struct tsock *t, struct tcp_pcb *pcb,
			 const struct tsock_settings *s)
{
	uint64_t now = tcp_engine_now(t->engine);
	int err = apply_tcp(pcb, s, now);

	if (err)
		return err;
	atomic_store(&t->rcv_lowat, MAX(s->rcv_lowat, 1));
	t->has_lowat = s->rcv_lowat > 1;
	/* set once more, they would send what is held back, which is for the program's call */
	if (s->nodelay != tcp_has_nodelay(pcb))
		tcp_set_nodelay(pcb, s->nodelay, now);
	if (s->cork != tcp_has_cork(pcb))
		tcp_set_cork(pcb, s->cork, now);
	tcp_set_oob_inline(pcb, s->oob_inline);
	err = tcp_set_keepalive(pcb, s->keepalive, 0, 0, 0, now);
	if (s->rcv_lowat > 1)
		tcp_set_rcv_lowat(pcb, (uint32_t)s->rcv_lowat, now);
	if (s->rcv_buf)
		tcp_set_rcv_buf(pcb, s->rcv_buf, now);
	if (s->snd_buf)
		tcp_set_snd_buf(pcb, s->snd_buf);
	(void)!tcp_set_cc(pcb, cc_of(t, s));
	if (s->fast_key_cnt && tcp_state(pcb) == TCPS_LISTEN)
		tcp_set_listener_keys(pcb, s->fast_keys, s->fast_key_cnt);
	return err;
}

static void read_query(int fd, struct dst_query *out)
{
	*out = (struct dst_query){
		.proto = IPPROTO_TCP,
		.ifindex = sock_twin_device(fd),
		.mark = (uint32_t)of_socket(fd, SO_MARK),
		.priority = (uint32_t)of_socket(fd, SO_PRIORITY),
		.tos = (uint8_t)sock_twin_option(fd, IPPROTO_IP, IP_TOS),
		.is_on_link_only = of_socket(fd, SO_DONTROUTE),
		.df = DST_DF_USUAL,
	};
	/* The ECN bits are TCP's own. */
	out->tos &= (uint8_t)~3;
	out->ttl = (uint8_t)sock_twin_option(fd, IPPROTO_IP, IP_TTL);
	if (sock_twin_option(fd, IPPROTO_IP, IP_MTU_DISCOVER) == IP_PMTUDISC_DONT)
		out->df = DST_DF_NEVER;
}

void tsock_read_query(const struct tsock *t, int fd, struct dst_query *out)
{
	struct fresh *fresh = &fresh_query[t->sock.domain == AF_INET6];

	if (is_fresh_known(t, fresh)) {
		*out = fresh->query;
	} else {
		read_query(fd, out);
		if (may_write_fresh(t, fresh)) {
			fresh->query = *out;
			fresh_is_known(fresh);
		}
	}
	out->uid = t->sock.uid;
	out->has_own_ttl = atomic_load(&t->sock.has_own_ttl);
}

void tsock_read_settings(struct sock *s UNUSED, int fd UNUSED)
{
}

/* -- setsockopt ------------------------------------------------------------------------ */

/* The way of a connection of ours depends on another setting now. */
static void follow_way(struct tsock *t, int fd)
{
	struct dst_query query;
	struct tcp_way *way;

	tsock_read_query(t, fd, &query);
	tsock_lock(t);
	query.local = t->key.local;
	query.remote = t->key.remote;
	query.stack = t->engine->stack;
	way = t->pcb ? tcp_way_get(t->engine, &query) : NULL;
	if (way && way != t->way) {
		if (!way->is_known) {
			struct dst_query wanted = way->dst.query;

			/* until it has been looked up, by the old one */
			way->dst = t->way->dst;
			way->dst.query = wanted;
			way->dst.view_gen = 0;
			way->ip_sum = t->way->ip_sum;
			tcp_way_ask(way);
		}
		tsock_set_way(t, way);
	} else if (way) {
		tcp_way_put(way);
	}
	tsock_unlock(t);
}

/* The connections that a listener of ours has from now on leave by this setting. It goes on
 * listening where it was bound to. */
static void follow_port(struct tsock *t, int fd)
{
	struct dst_query query;

	tsock_read_query(t, fd, &query);
	tsock_lock(t);
	if (t->port) {
		query.ifindex = t->port->query.ifindex;
		t->port->query = query;
	}
	tsock_unlock(t);
}

static bool is_of_way(int level, int name)
{
	if (level == SOL_SOCKET)
		return name == SO_MARK || name == SO_BINDTODEVICE ||
		       name == SO_BINDTOIFINDEX || name == SO_DONTROUTE ||
		       name == SO_PRIORITY;
	return level == IPPROTO_IP &&
	       (name == IP_TOS || name == IP_TTL || name == IP_MTU_DISCOVER);
}

static struct tcp_pcb *pcb_of(struct tsock *t)
{
	return tsock_phase(t) == TSOCK_LISTENER ? t->port->pcb : t->pcb;
}

/* Those that programs set on each connection need not ask for all others. */
static bool follow_common(struct tsock *t, int level, int name, int value)
	REQUIRES(t->engine->stack->lock)
{
	if (level != IPPROTO_TCP || !pcb_of(t))
		return false;
	if (name == TCP_NODELAY)
		tcp_set_nodelay(pcb_of(t), value, tsock_now(t));
	else if (name == TCP_CORK)
		tcp_set_cork(pcb_of(t), value, tsock_now(t));
	else if (name == TCP_QUICKACK)
		tcp_set_quick_ack(pcb_of(t), value, tsock_now(t));
	else
		return false;
	return true;
}

static bool is_stamps(int level, int name)
{
	return level == SOL_SOCKET &&
	       (name == SO_TIMESTAMP || name == SO_TIMESTAMPNS ||
		name == SO_TIMESTAMPING);
}

/* SO_TIMESTAMP and SO_TIMESTAMPNS exclude each other. By which interface bytes of a
 * stream came Linux does not tell. */
static void follow_stamps(struct tsock *t, int fd)
{
	uint32_t flags = (uint32_t)sock_twin_option(fd, SOL_SOCKET,
						    SO_TIMESTAMPING);
	uint32_t stamps = user_stamping_of(flags) & ~(uint32_t)USER_CARD_INFO;

	if (sock_twin_option(fd, SOL_SOCKET, SO_TIMESTAMP))
		stamps |= USER_STAMP;
	if (sock_twin_option(fd, SOL_SOCKET, SO_TIMESTAMPNS))
		stamps |= USER_STAMP_NS;
	atomic_store(&t->stamps_in, stamps);
	if (tsock_phase(t) != TSOCK_OURS)
		atomic_store(&t->stamps.own.flags, flags);
	if (t->engine)
		tsock_take_stamps(t);
}

/* Linux has taken the option; so do we. With `config`. */
static void follow(struct tsock *t, int fd, const struct sock_option *option, int level,
		   int name, const void *value, socklen_t len)
{
	struct tsock_settings settings;
	int number = 0;

	t->has_options = true;
	if (level == SOL_SOCKET && name == SO_REUSEADDR)
		t->reuse_addr = -1;
	t->may_keep_alive |= level == SOL_SOCKET && name == SO_KEEPALIVE;
	t->may_linger |= level == SOL_SOCKET && name == SO_LINGER;
	t->knows_heritage = false;
	sock_follow_timeout(&t->sock, fd, level, name, value);
	sock_follow_ttl(&t->sock, level, name, value, len);
	if (level == SOL_SOCKET && name == SO_KEEPALIVE && t->is_guarded)
		tsock_hide_keepalive(t, fd);
	t->has_chosen_cc |= level == IPPROTO_TCP && name == TCP_CONGESTION;
	if (level == IPPROTO_TCP && name == TCP_FASTOPEN_CONNECT)
		atomic_store(&t->opens_fast, of_tcp(fd, TCP_FASTOPEN_CONNECT));
	if (level == IPPROTO_TCP && name == TCP_INQ)
		atomic_store(&t->tells_inq, of_tcp(fd, TCP_INQ));
	if (is_stamps(level, name))
		follow_stamps(t, fd);
	/* another one may listen on its port from now on */
	if (level == SOL_SOCKET && name == SO_REUSEPORT &&
	    (tsock_phase(t) == TSOCK_LISTENING || tsock_phase(t) == TSOCK_LISTENER))
		tsock_share(t, fd);
	if (tsock_phase(t) != TSOCK_OURS && tsock_phase(t) != TSOCK_LISTENER)
		return;
	if (option && option->class <= SOCK_OPTION_AT_CALL)
		return;
	memcpy(&number, value, MIN(len, sizeof(number)));
	if (is_of_way(level, name) && tsock_phase(t) == TSOCK_OURS)
		follow_way(t, fd);
	else if (is_of_way(level, name))
		follow_port(t, fd);
	tsock_lock(t);
	if (!follow_common(t, level, name, number)) {
		tsock_unlock(t);
		tsock_load_settings(t, fd, &settings);
		tsock_lock(t);
		if (pcb_of(t))
			(void)!tsock_apply_settings(t, pcb_of(t), &settings);
	}
	if (tsock_is_ours(t))
		tsock_update(t, 0);
	tcp_engine_due_locked(t->engine);
	tsock_unlock(t);
}

/* The program wants an algorithm that only the kernel has. */
static bool is_foreign_cc(const struct tsock *t, int level, int name, int fd)
{
	struct tsock_settings settings = { .is_cc_kernels = false };

	if (level != IPPROTO_TCP || name != TCP_CONGESTION ||
	    tsock_phase(t) == TSOCK_KERNELS)
		return false;
	load_cc(fd, &settings);
	return settings.is_cc_kernels;
}

/* A listener for which somebody waits here leaves later, and does not tell the option. */
static void tell_option(struct tsock *t, const struct sock_option *option,
			int level, int name)
{
	char detail[STATS_DETAIL_SIZE];

	sock_option_describe(option, level, name, detail);
	mutex_acquire(&t->sock.config);
	if (tsock_phase(t) == TSOCK_KERNELS && t->sock.reason == REASON_OPTION) {
		stats_set_rx(&t->sock.stats, REASON_OPTION, STATS_BY_OPTION, 0,
			     detail);
		stats_set_tx(&t->sock.stats, REASON_OPTION, STATS_BY_OPTION, 0,
			     detail);
	}
	mutex_release(&t->sock.config);
}

static int leave_for(struct tsock *t, int fd, const struct sock_option *option,
		     int level, int name)
{
	int err = tsock_leave_for(t, fd, REASON_OPTION, STATS_BY_OPTION,
				  "a socket option", name);

	if (!err)
		tell_option(t, option, level, name);
	return err;
}

/* As in Linux, whoever sets the mark makes an edge of what is there by it. */
static void tell_anew(struct tsock *t)
{
	if (!tsock_lock_ours(t))
		return;
	tsock_update(t, 0);
	tsock_update(t, atomic_load(&t->sock.end.ready) & READY_IN);
	tsock_unlock(t);
}

/* Linux takes those of Fast Open before there is a connection, and the twin does not always
 * know that there is one. 0: the twin may be asked. */
static int refuse_fast_option(struct tsock *t, int fd, int level, int name)
{
	bool is_over;

	if (LIKELY(level != IPPROTO_TCP || (name != TCP_FASTOPEN &&
					    name != TCP_FASTOPEN_CONNECT &&
					    name != TCP_FASTOPEN_NO_COOKIE)) ||
	    !tsock_lock_ours(t))
		return 0;
	is_over = !t->pcb || tcp_state(t->pcb) == TCPS_CLOSED;
	tsock_unlock(t);
	if (is_over)
		return 0;
	return name == TCP_FASTOPEN_CONNECT &&
			       tsock_set_twin_fast(fd, false) == -EOPNOTSUPP ?
		       -EOPNOTSUPP :
		       -EINVAL;
}

/* Whether the value makes it the kernel's. */
static bool is_kernels(struct tsock *t, const struct sock_option *option, int level,
		       int name, const void *value, socklen_t len)
{
	uint32_t flags = 0;

	if (sock_option_is_kernels(option, value, len))
		return true;
	/* the send that asks for it could not go back */
	if (level == SOL_SOCKET && name == SO_ZEROCOPY && tsocks_shall_stay()) {
		memcpy(&flags, value, MIN(len, sizeof(flags)));
		return flags;
	}
	if (level != SOL_SOCKET || name != SO_TIMESTAMPING)
		return false;
	memcpy(&flags, value, MIN(len, sizeof(flags)));
	return tsock_stamps_are_kernels(t, flags);
}

/* By the kernel's own rules. With `config`. */
static int set_twin(struct tsock *t, int fd, int level, int name,
		    const void *value, socklen_t len)
{
	if (UNLIKELY(level == SOL_SOCKET && name == SO_TIMESTAMPING &&
		     tsock_phase(t) == TSOCK_OURS))
		return tsock_stamps_set(t, fd, value, len);
	return real.setsockopt(fd, level, name, value, len) ? -errno : 0;
}

/* One that has gone back numbers anew, like any of the kernel's. */
static COLD long restamp_kernels(struct tsock *t, int fd, const void *value,
				 socklen_t len)
{
	uint32_t flags;
	long result;

	mutex_acquire(&t->sock.config);
	result = real.setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, value, len) ?
			 -errno :
			 0;
	flags = (uint32_t)sock_twin_option(fd, SOL_SOCKET, SO_TIMESTAMPING);
	if (flags & ~tx_stamps_flags(&t->stamps.own) & SOF_TIMESTAMPING_OPT_ID)
		t->stamps.by_us = 0;
	atomic_store(&t->stamps.own.flags, flags);
	mutex_release(&t->sock.config);
	return result;
}

/* SO_MAX_PACING_RATE in VMA's form: the engine, or the kernel, keeps the rate; bursts are
 * its own business. */
static COLD long set_vma_pace(struct tsock *t, int fd, const void *value, socklen_t len)
{
	struct sock_pace wish;
	long result;

	if (!sock_pace_read(value, len, &wish))
		return -EFAULT;
	result = tsock_setsockopt(&t->sock.obj, fd, SOL_SOCKET, SO_MAX_PACING_RATE,
				  &wish.linux_rate, sizeof(wish.linux_rate));
	if (result == FD_PASS)
		result = real.setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE,
					 &wish.linux_rate, sizeof(wish.linux_rate)) ?
				 -errno :
				 0;
	if (result != 0)
		return result;
	mutex_acquire(&t->sock.config);
	t->sock.pace = wish.pace;
	mutex_release(&t->sock.config);
	return 0;
}

long tsock_setsockopt(struct fd_object *obj, int fd, int level, int name,
		      const void *value, socklen_t len)
{
	struct tsock *t = tsock_of(obj);
	const struct sock_option *option =
		sock_option_find(IPPROTO_TCP, level, name);
	long result;

	if (UNLIKELY(sock_pace_is_vma(level, name, len)))
		return set_vma_pace(t, fd, value, len);
	if (tsock_phase(t) == TSOCK_KERNELS)
		return level == SOL_SOCKET && name == SO_TIMESTAMPING ?
			       restamp_kernels(t, fd, value, len) :
			       FD_PASS;
	if (tsock_phase(t) != TSOCK_FRESH &&
	    user_is_plausible(value, len) && option &&
	    is_kernels(t, option, level, name, value, len)) {
		/* the kernel can do it to a connection of its own alone */
		result = leave_for(t, fd, option, level, name);
		return result ? result : FD_PASS;
	}
	mutex_acquire(&t->sock.config);
	result = refuse_fast_option(t, fd, level, name);
	if (result == 0)
		result = set_twin(t, fd, level, name, value, len);
	if (result == 0)
		follow(t, fd, option, level, name, value, len);
	mutex_release(&t->sock.config);
	if (result == 0 && level == SOL_SOCKET && name == SO_RCVLOWAT)
		tell_anew(t);
	if (result == 0 && (!option ||
			    is_kernels(t, option, level, name, value, len) ||
			    is_foreign_cc(t, level, name, fd)))
		result = leave_for(t, fd, option, level, name);
	return result;
}

/* -- getsockopt ------------------------------------------------------------------------- */

static long give(void *value, socklen_t *len, const void *what, size_t size)
{
	if (!user_is_plausible(len, sizeof(*len)))
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	*len = (socklen_t)MIN((size_t)*len, size);
	if (!user_is_plausible(value, *len))
		return -EFAULT;
	memcpy(value, what, *len);
	return 0;
}

static long give_number(void *value, socklen_t *len, int number)
{
	return give(value, len, &number, sizeof(number));
}

/* Linux refuses a place that is longer than the name. */
static long get_peer(struct tsock *t, void *value, socklen_t *len)
{
	struct user_name peer = { t->key.remote, t->key.remote_port };
	struct sockaddr_storage name;
	socklen_t name_len = sizeof(name);

	if (!user_is_plausible(len, sizeof(*len)))
		return -EFAULT;
	user_name_write(&peer, t->sock.domain, &name, &name_len);
	if ((int)*len < 0 || name_len < *len)
		return -EINVAL;
	return give(value, len, &name, name_len);
}

/* FD_PASS: none of ours was saved, or it has been told. */
static long tell_saved_syn(struct tsock *t, void *value, socklen_t *len)
{
	struct tsock_saved_syn *syn = t->saved_syn;
	bool fits;

	if (!syn)
		return FD_PASS;
	if (!user_is_plausible(len, sizeof(*len)))
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	fits = *len >= syn->len;
	*len = syn->len;
	if (!fits)
		return -EINVAL;
	if (!user_is_plausible(value, syn->len))
		return -EFAULT;
	memcpy(value, syn->bytes, syn->len);
	/* whoever is forked in between has none */
	tsock_forget_saved_syn(t);
	return 0;
}

static long get_saved_syn(struct tsock *t, void *value, socklen_t *len)
{
	long result;

	mutex_acquire(&t->sock.config);
	result = tell_saved_syn(t, value, len);
	mutex_release(&t->sock.config);
	return result;
}

long tsock_heir_option(struct fd_object *obj, int level, int name, void *value,
		       socklen_t *len)
{
	return level == IPPROTO_TCP && name == TCP_SAVED_SYN ?
		       tell_saved_syn(tsock_of(obj), value, len) :
		       FD_PASS;
}

/* TCP_ZEROCOPY_RECEIVE, which takes from the stream: the pages of a connection are mapped by
 * the kernel alone. One that is too short takes nothing, and the kernel refuses it. */
static COLD long receive_pages(struct tsock *t, int fd, const socklen_t *len)
{
	bool takes = user_is_plausible(len, sizeof(*len)) &&
		     (int)*len >= (int)offsetof(struct tcp_zerocopy_receive, recv_skip_hint);
	int err = takes ? tsock_leave_for(t, fd, REASON_OPTION, STATS_BY_OPTION,
					  "pages to be received",
					  TCP_ZEROCOPY_RECEIVE) :
			  0;

	return err ? err : FD_PASS;
}

static long get_ours(struct tsock *t, int fd, int level, int name, void *value,
		     socklen_t *len)
{
	struct tsock_info info;
	int number;

	if (level == SOL_SOCKET && name == SO_ERROR) {
		if (!tsock_lock_ours(t))
			return FD_PASS;
		number = -tsock_take_error(t);
		tsock_unlock(t);
		return give_number(value, len, number);
	}
	if (level == SOL_SOCKET && name == SO_INCOMING_CPU)
		return give_number(value, len, sched_getcpu());
	if (level == SOL_SOCKET && name == SO_PEERNAME)
		return get_peer(t, value, len);
	if (level != IPPROTO_TCP)
		return FD_PASS;
	if (name == TCP_ZEROCOPY_RECEIVE)
		return receive_pages(t, fd, len);
	if (name == TCP_INFO) {
		if (!tsock_lock_ours(t))
			return FD_PASS;
		tsock_fill_info(t, &info);
		tsock_unlock(t);
		return give(value, len, &info, sizeof(info));
	}
	if (name == TCP_MAXSEG) {
		if (!tsock_lock_ours(t))
			return FD_PASS;
		number = t->pcb ? (int)tcp_mss(t->pcb) : MAXSEG_UNSET;
		tsock_unlock(t);
		return give_number(value, len, number);
	}
	return FD_PASS;
}

/* Those who wait, of how many: ours, and the kernel's. */
static long get_listener(struct tsock *t, int fd, int level, int name,
			 void *value, socklen_t *len)
{
	struct tsock_info info = { .accecn = { 0 } };
	socklen_t size = sizeof(info);

	if (level != IPPROTO_TCP || name != TCP_INFO ||
	    real.getsockopt(fd, level, name, &info, &size) != 0)
		return FD_PASS;
	tsock_lock(t);
	if (t->port)
		info.base.tcpi_unacked += tcp_accept_cnt(t->port->pcb);
	tsock_unlock(t);
	return give(value, len, &info, size);
}

long tsock_getsockopt(struct fd_object *obj, int fd, int level, int name,
		      void *value, socklen_t *len)
{
	struct tsock *t = tsock_of(obj);

	if (tsock_phase(t) == TSOCK_FRESH && level == SOL_SOCKET &&
	    name == SO_ERROR) {
		int err = tsock_fresh_error(t);

		return err ? give_number(value, len, -err) : FD_PASS;
	}
	if (name == SO_MAX_PACING_RATE && user_is_plausible(len, sizeof(*len)) &&
	    sock_pace_is_vma(level, name, *len))
		return sock_pace_get(&t->sock, fd, value);
	if (level == SOL_SOCKET && name == SO_KEEPALIVE &&
	    atomic_load(&t->hides_keepalive))
		return give_number(value, len, 1);
	if (level == IPPROTO_TCP && name == TCP_FASTOPEN_CONNECT &&
	    atomic_load(&t->opens_fast))
		return give_number(value, len, 1);
	if (level == SOL_SOCKET && name == SO_TIMESTAMPING && tsock_is_ours(t))
		return tsock_stamps_get(t, fd, value, len);
	if (level == IPPROTO_TCP && name == TCP_SAVED_SYN)
		return get_saved_syn(t, value, len);
	if (tsock_phase(t) == TSOCK_LISTENER)
		return get_listener(t, fd, level, name, value, len);
	return tsock_is_ours(t) ? get_ours(t, fd, level, name, value, len) :
				  FD_PASS;
}

/* -- ioctl and fcntl ---------------------------------------------------------------------- */

static long tell_number(void *arg, int number)
{
	if (!user_is_plausible(arg, sizeof(number)))
		return -EFAULT;
	memcpy(arg, &number, sizeof(number));
	return 0;
}

/* FD_PASS: it is not ours. */
static long ask_ours(struct tsock *t, unsigned long request, void *arg)
{
	struct tcp_pcb_info info = { .snd_queued = 0 };
	bool is_at_mark = false;
	int readable = 0;

	if (!tsock_lock_ours(t))
		return FD_PASS;
	tsock_poll_locked(t);
	if (t->pcb) {
		tcp_get_info(t->pcb, &info);
		readable = (int)tcp_readable(t->pcb);
		is_at_mark = tcp_at_mark(t->pcb);
	}
	tsock_unlock(t);
	switch (request) {
	case FIONREAD:
		return tell_number(arg, readable);
	case SIOCOUTQ:
		return tell_number(arg, (int)info.snd_queued);
	case SIOCOUTQNSD:
		return tell_number(arg, (int)info.unsent);
	default:
		return tell_number(arg, is_at_mark);
	}
}

long tsock_ioctl(struct fd_object *obj, int fd, unsigned long request, void *arg)
{
	struct tsock *t = tsock_of(obj);
	int result;

	switch (request) {
	case FIONBIO:
		mutex_acquire(&t->sock.config);
		result = real.ioctl(fd, request, arg) < 0 ? -errno : 0;
		if (!result)
			sock_set_nonblocking(&t->sock, *(int *)arg != 0);
		mutex_release(&t->sock.config);
		return result;
	case FIONREAD:
	case SIOCOUTQ:
	case SIOCOUTQNSD:
	case SIOCATMARK:
		return ask_ours(t, request, arg);
	case FIOASYNC:
		result = user_is_plausible(arg, sizeof(int)) && *(int *)arg ?
				 tsock_leave_for(t, fd, REASON_OPTION,
						 STATS_BY_OPTION, "an ioctl",
						 FIOASYNC) :
				 0;
		return result ? result : FD_PASS;
	default:
		return FD_PASS;
	}
}

long tsock_sockatmark(struct fd_object *obj, int fd UNUSED)
{
	struct tsock *t = tsock_of(obj);
	int is_at_mark = 0;
	long err = ask_ours(t, SIOCATMARK, &is_at_mark);

	return err ? err : is_at_mark;
}

long tsock_fcntl(struct fd_object *obj, int fd, int cmd, void *arg)
{
	struct tsock *t = tsock_of(obj);
	int flags = (int)(intptr_t)arg, result;

	if (cmd != F_SETFL)
		return FD_PASS;
	if (flags & O_ASYNC) {
		result = tsock_leave_for(t, fd, REASON_OPTION,
					 STATS_BY_OPTION, "O_ASYNC", F_SETFL);
		return result ? result : FD_PASS;
	}
	mutex_acquire(&t->sock.config);
	result = real.fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
	if (!result)
		sock_set_nonblocking(&t->sock, flags & O_NONBLOCK);
	mutex_release(&t->sock.config);
	return result;
}
