/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scripts of segments: what a peer sends, what a TCP must answer, and when. One
 * command a line, `#` begins a comment. Numbers count from the first byte of each
 * stream; what a line does not name is not looked at.
 *
 *   options mss 1460 scale 2 sack ts 900   what the peer offers in its SYN
 *   ecn | ecn accepted | ecn accurate the TCP may use ECN, or only where it is asked for,
 *                                     or the accurate one
 *   ipv6                              the connection is over IPv6
 *   set NAME N                        one of the TCP's parameters, see below
 *   connect | accept                  who opens; the handshake is done
 *   syn | listen                      the same, and the script does it
 *   fast N [port N]                   opens with Fast Open (MSG_FASTOPEN) and so many
 *                                     bytes, to one of the peer's ports; another one
 *                                     when the first is closed
 *   accepted                          the program takes what was opened; the
 *                                     listener stays
 *   in FLAGS [FIELD...]               the peer sends; not named: the next numbers
 *   together N                        the next N of these arrive in one poll
 *   icmp too_big|unreachable seq N [mtu N] [len N]
 *                                     somebody on the way has dropped the packet
 *                                     of so many bytes that began there
 *   out [FROM..TO] FLAGS [FIELD...]   the TCP must have sent this, or sends it
 *                                     FROM to TO milliseconds after the last event
 *   quiet MS                          for so long it sends nothing
 *   write N | read N | shutdown | close | nodelay on|off | cork on|off
 *   urgent N                          writes N bytes, of which the last is urgent
 *   more N | eor N                    writes N bytes with MSG_MORE or MSG_EOR
 *   inline on|off | oob NAME          urgent bytes stay in the stream; what reading
 *                                     the urgent byte returns: 0, EINVAL or EAGAIN
 *   mark yes|no                       whether the reader stands at the mark
 *   quickack on|off
 *   user_timeout MS | keepalive S     probes after S seconds, then each second, thrice
 *   move                              the connection goes on in another place
 *   error NAME                        what the program is told, as ECONNRESET
 *   row ID                            of tests/contract/tcp.tsv that this shows
 *   differs REASON                    Linux does not pass, and why
 *
 * FLAGS are letters of SAFRPEWU and N (AE), or -; a FIELD is seq N, ack N, len N, win N, urg N, or
 * sack A-B[,C-D...]. P is not looked at unless named, as P or, that it is not there, -.
 * A SYN has number -1. times N
 * is so many of them, one behind the other. port N is that of the peer's ports, of
 * which 0 is the usual one. raw HEX are bytes in place of the options.
 *
 * With time stamps the peer sends its latest one and echoes the last it saw: ts N
 * is a new one, nots none, ecr kept the one of the `out` that said keep. `out ecr
 * N` is what the TCP must echo. In the IP header, ce is congestion experienced, ect,
 * ect1 and noect say what the TCP must have set. acc A,B,C are the counters of accurate ECN
 * for ECT(0), CE and ECT(1); noacc: no such option. In a SYN, mss, hasscale, sackok and hasts
 * are the options it must have; nosack: no blocks. fo is the option of Fast Open: ask
 * without a cookie, kept with the one that the TCP last sent, any (out) with one, or its
 * bytes in HEX; nofo: it is not there.
 *
 * Parameters, of which 0 is the TCP's own: retries, orphan_retries, syn_retries and
 * synack_retries until it gives up, fin_wait_2 for so many seconds, quick_acks at the
 * start, backlog of a listener, cookies 1 for every SYN, syns, challenges and resets
 * in a second, rcv_buf, split, the size of a segment that the device cuts into
 * those that fit, keep_interval, the seconds between two probes, and the socket options
 * maxseg, syncnt, linger2, defer (TCP_DEFER_ACCEPT), clamp, thin and pace (SO_MAX_PACING_RATE).
 * fastopen is a set of bits as net.ipv4.tcp_fastopen, fastopen_max what TCP_FASTOPEN says,
 * fastopen_pause tcp_fastopen_blackhole_timeout_sec.
 * Set to 1, fastopen_no_cookie, rfc1337 and mtu_probing switch on what their names say,
 * no_idle_restart, no_tlp, no_frto, no_dsack, no_linear_syns and no_metrics switch off what their
 * names say, and overflow_resets makes a full accept queue reset.
 */
#ifndef ENGINE_SCRIPT_H
#define ENGINE_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp/tcp_options.h"

/* The ninth flag, above those of a byte. */
enum { SCRIPT_AE = 1 << 8 };

/* A segment as a script sees it: numbers are offsets. */
struct script_segment {
	uint16_t flags;
	bool has_seq, has_ack, has_len, has_win, has_sack, has_ecr, has_ecn;
	bool has_port, has_urg;
	/* must not have counters */
	bool has_no_counters;
	/* no PSH */
	bool is_unpushed;
	uint32_t seq, ack, len, win, port;
	/* the urgent pointer */
	uint32_t urg;
	/* how many, one behind the other */
	uint32_t times;
	/* SACK blocks are offsets, too */
	struct tcp_options options;
	/* the two bits of the IP header */
	uint8_t ecn;
	/* its time stamp is to be kept */
	bool is_kept;
	/* must not have the option of Fast Open; must have one with any cookie */
	bool has_no_cookie, has_any_cookie;
	/* in place of the options */
	uint8_t raw[TCP_OPTIONS_MAX];
	uint8_t raw_len;
};

/* An error message about the segment that began at `seq`, of a packet of `len`
 * bytes. */
struct script_icmp {
	bool is_too_big;
	uint32_t seq;
	uint16_t mtu, len;
};

enum script_param {
	SCRIPT_RETRIES,
	SCRIPT_ORPHAN_RETRIES,
	SCRIPT_SYN_RETRIES,
	SCRIPT_SYNACK_RETRIES,
	SCRIPT_FIN_WAIT_2,
	SCRIPT_QUICK_ACKS,
	SCRIPT_BACKLOG,
	SCRIPT_COOKIES,
	SCRIPT_SYNS,
	SCRIPT_CHALLENGES,
	SCRIPT_RESETS,
	SCRIPT_RCV_BUF,
	SCRIPT_SPLIT,
	SCRIPT_KEEP_INTERVAL,
	SCRIPT_MAXSEG,
	SCRIPT_SYNCNT,
	SCRIPT_LINGER2,
	SCRIPT_DEFER,
	SCRIPT_CLAMP,
	SCRIPT_THIN,
	SCRIPT_PACE,
	SCRIPT_RFC1337,
	SCRIPT_NO_IDLE_RESTART,
	SCRIPT_NO_TLP,
	SCRIPT_NO_FRTO,
	SCRIPT_MTU_PROBING,
	SCRIPT_NO_DSACK,
	SCRIPT_OVERFLOW_RESETS,
	SCRIPT_NO_LINEAR_SYNS,
	SCRIPT_NO_METRICS,
	SCRIPT_FASTOPEN,
	SCRIPT_FASTOPEN_MAX,
	SCRIPT_FASTOPEN_PAUSE,
	SCRIPT_FASTOPEN_NO_COOKIE,
	SCRIPT_PARAMS,
};

/* What is said before the connection begins. */
struct script_setup {
	bool is_passive, with_ecn, accepts_ecn, with_accurate_ecn, is_ipv6;
	/* with Fast Open, so many bytes to that port */
	bool is_fast;
	uint32_t fast_len, fast_port;
	/* by enum script_param; 0: as it is */
	uint32_t param[SCRIPT_PARAMS];
};

enum script_act {
	SCRIPT_WRITE,
	SCRIPT_READ,
	SCRIPT_SHUTDOWN,
	SCRIPT_CLOSE,
	SCRIPT_NODELAY,
	SCRIPT_CORK,
	SCRIPT_ACCEPT,
	SCRIPT_USER_TIMEOUT,
	SCRIPT_KEEPALIVE,
	SCRIPT_MOVE,
	SCRIPT_URGENT,
	SCRIPT_MORE,
	SCRIPT_EOR,
	SCRIPT_INLINE,
	SCRIPT_MARK,
	SCRIPT_QUICKACK,
	/* so many segments come in one poll */
	SCRIPT_TOGETHER,
};

/* Who plays the TCP. */
struct script_target {
	/* sends a SYN, or listens for one */
	void (*open)(const struct script_setup *setup);
	/* one more connection with Fast Open */
	void (*open_again)(const struct script_setup *setup);
	/* a segment of the peer; all fields are set */
	void (*send)(const struct script_segment *segment);
	void (*icmp)(const struct script_icmp *icmp);
	/* the next segment of the TCP within so long, and after how long it
	 * came; false when there was none */
	bool (*next)(uint32_t within_ms, struct script_segment *segment_out,
		     uint32_t *after_ms_out);
	void (*act)(enum script_act act, uint32_t value);
	/* of the connection, 0 or a negative errno */
	int (*error)(void);
	/* the same of reading an urgent byte */
	int (*oob)(void);
	/* how much later than it should something may happen */
	uint32_t slack_ms;
};

/* Runs a script; a line that fails ends the test case. True if it says that Linux
 * differs: `why_out` is the reason then. */
bool script_run(const char *path, const struct script_target *target,
		char why_out[128]);

#endif
