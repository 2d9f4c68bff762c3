/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scripts of segments: what a peer sends, what a TCP must answer, and when. One
 * command a line, `#` begins a comment. Numbers count from the first byte of each
 * stream; what a line does not name is not looked at.
 *
 *   options mss 1460 scale 2 sack ts 900   what the peer offers in its SYN
 *   ecn                               the TCP may use ECN
 *   connect | accept                  who opens; the handshake is done
 *   syn | listen                      the same, and the script does it
 *   accepted                          the program takes what was opened
 *   in FLAGS [FIELD...]               the peer sends; not named: the next numbers
 *   out [FROM..TO] FLAGS [FIELD...]   the TCP must have sent this, or sends it
 *                                     FROM to TO milliseconds after the last event
 *   quiet MS                          for so long it sends nothing
 *   write N | read N | shutdown | close | nodelay on|off | cork on|off
 *   user_timeout MS | keepalive S     probes after S seconds, each second, thrice
 *   error NAME                        what the program is told, as ECONNRESET
 *   row ID                            of tests/contract/tcp.tsv that this shows
 *   differs REASON                    Linux does not pass, and why
 *
 * FLAGS are letters of SAFRPEW, or -; a FIELD is seq N, ack N, len N, win N, or
 * sack A-B[,C-D...]. P is not looked at unless named. A SYN has number -1.
 *
 * With time stamps the peer sends its latest one and echoes the last it saw: ts N
 * is a new one, nots none, ecr kept the one of the `out` that said keep. `out ecr
 * N` is what the TCP must echo. In the IP header, ce is congestion experienced, ect
 * and noect say what the TCP must have set. In a SYN, mss, hasscale, sackok and hasts
 * are the options it must have; nosack: no blocks.
 */
#ifndef ENGINE_SCRIPT_H
#define ENGINE_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "tcp/tcp_options.h"

/* A segment as a script sees it: numbers are offsets. */
struct script_segment {
	uint8_t flags;
	bool has_seq, has_ack, has_len, has_win, has_sack, has_ecr, has_ecn;
	uint32_t seq, ack, len, win;
	/* SACK blocks are offsets, too */
	struct tcp_options options;
	/* the two bits of the IP header */
	uint8_t ecn;
	/* its time stamp is to be kept */
	bool is_kept;
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
};

/* Who plays the TCP. */
struct script_target {
	/* sends a SYN, or listens for one */
	void (*open)(bool is_passive, bool with_ecn);
	/* a segment of the peer; all fields are set */
	void (*send)(const struct script_segment *segment);
	/* the next segment of the TCP within so long, and after how long it
	 * came; false when there was none */
	bool (*next)(uint32_t within_ms, struct script_segment *segment_out,
		     uint32_t *after_ms_out);
	void (*act)(enum script_act act, uint32_t value);
	/* of the connection, 0 or a negative errno */
	int (*error)(void);
	/* how much later than it should something may happen */
	uint32_t slack_ms;
};

/* Runs a script; a line that fails ends the test case. True if it says that Linux
 * differs: `why_out` is the reason then. */
bool script_run(const char *path, const struct script_target *target,
		char why_out[128]);

#endif
