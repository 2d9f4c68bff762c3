/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A simulated network of two hosts, each with an engine, joined by two bad links
 * (dev/fake/impair.h) on a virtual clock. Applications write and read streams whose
 * bytes follow from their position, so that every byte received is checked. After
 * each event the invariants of the engine are checked too; a breach ends the test
 * case with the seed.
 */
#ifndef ENGINE_SIM_H
#define ENGINE_SIM_H

#include <stdio.h>

#include "dev/fake/impair.h"
#include "base/list.h"
#include "tests/support/pcap.h"
#include "base/rand.h"
#include "tcp/tcp.h"

struct reference;
struct sim;
struct sim_host;

/* What an application does with its end of a connection. */
struct sim_app {
	/* bytes to send, then FIN unless stays_open */
	uint64_t to_send;
	/* at most so many bytes in a write; 0: a full segment */
	uint32_t write_size;
	/* 0: reads at once; else so many bytes each read_every_ns */
	uint32_t read_size;
	uint64_t read_every_ns;
	/* gives the pcb back with tcp_abort when so much was sent; 0: never */
	uint64_t abort_after;
	bool stays_open;
	/* gives the pcb back with its FIN, and does not wait for the peer's */
	bool leaves;
	/* FIN only when the peer's has been read */
	bool closes_last;
	bool nodelay;
	/* each write is urgent; the other end keeps the bytes in its stream */
	bool is_urgent;
	/* the last byte of each write is followed */
	bool is_stamped;
	/* of the settings; 0: none */
	uint64_t max_pacing_rate;
	/* probes a silent peer after this long; 0: never */
	uint64_t keepalive_ns;
};

/* One end of a connection. */
struct sim_conn {
	struct list link;
	struct sim_host *host;
	struct tcp_pcb *pcb; /* NULL: given back */
	struct sim_app app;
	uint64_t sent;
	uint64_t received;
	uint64_t next_read_ns;
	/* packets taken and not read, when reading is slow */
	struct list unread;
	uint32_t unread_len;
	/* bytes that were to be followed, and what became of them */
	uint32_t stamps, stamps_acked;
	uint32_t stamp_sent_end, stamp_acked_end;
	/* stream of this end and of the other one */
	uint8_t out_mark;
	uint8_t in_mark;
	bool is_client;
	bool is_connected;
	bool has_end;
	bool is_shut;
	bool is_gone;
	bool was_aborted;
	int error;
	uint64_t connected_ns;
	/* what it last sent and had acknowledged, the timeout of late, and the longest
	 * since then */
	uint64_t last_sent_ns, rto_ns, still_max_ns;
	uint32_t snd_una;
	/* when the last byte expected came */
	uint64_t done_ns;
};

struct sim_host {
	struct sim *sim;
	struct sim_host *peer;
	struct ip_addr addr;
	struct timer_wheel wheel;
	struct tcp_table *table;
	struct pkt_pool rx_pool;
	struct pkt_pool tx_pool;
	struct pkt_pool borrowers;
	struct tcp_path path;
	/* frames to the peer */
	struct impair *out;
	/* a message from the router that is on its way here */
	struct tcp_icmp icmp;
	uint64_t icmp_at_ns;
	struct list conns;
	/* what accepted connections do */
	struct sim_app accept_app;
	struct tcp_pcb *listener;
	/* bytes the engine has allocated */
	size_t memory;
	/* who plays this host instead of an engine, or NULL */
	struct reference *reference;
	uint16_t ip_id;
	/* of the segment being sent: the checksum is the device's to make */
	bool with_pseudo_sum;
	/* when its device has become full, and until when it is */
	uint64_t jam_since_ns, jam_until_ns;
	uint64_t segments;
	uint64_t retransmissions;
	/* asked for each segment that leaves: true loses it */
	bool (*loses)(struct sim_host *host, const uint8_t *packet, size_t len,
		      void *ctx);
	void *loses_ctx;
	/* told of each segment that leaves and is not lost */
	void (*sees)(struct sim_host *host, const uint8_t *packet, size_t len,
		     void *ctx);
	void *sees_ctx;
};

/* What surrounds the engines besides the links; all zero is the plainest. */
struct sim_setup {
	/* hosts look for frames no more often than this, and take what has
	 * come as batches; 0: each as it comes */
	uint64_t poll_every_ns;
	bool is_ipv6;
	/* the devices complete checksums, and split segments of so many bytes */
	bool with_checksum;
	uint32_t segment_max;
	/* received segments come in buffers of so many bytes; 0: in one */
	uint32_t rx_part;
	/* in so many events each connection moves: it becomes bytes, and these
	 * a connection again; 0: it stays */
	unsigned move_every;
	/* at this time after the start the path narrows to so many bytes, with
	 * or without ICMP messages; 0: it does not */
	uint64_t mtu_change_ns;
	uint32_t mtu;
	bool is_black_hole;
	/* in so many polls somebody who sees the segments sends one of his own: it lies in
	 * the window, acknowledges what was never sent, and is of the future; 0: nobody */
	unsigned forge_every;
	/* a set of enum tcp_fastopen: connections open with what they have to send */
	uint32_t fastopen;
	/* at one in so many segments a device is full for a while; 0: it never is */
	unsigned jam_every;
};

struct sim {
	struct sim_host host[2];
	struct sim_setup setup;
	uint64_t mtu_change_at_ns;
	struct rand rand;
	uint64_t now_ns;
	uint64_t seed;
	uint64_t steps;
	/* set by SIM_PCAP=FILE in the environment, for debugging */
	FILE *capture;
	struct pcap_writer pcap;
};

/* Both hosts have the same parameters and MTU unless changed before the first
 * connection; link[0] carries from host 0 to host 1. */
void sim_init(struct sim *sim, uint64_t seed, const struct tcp_params *params,
	      const struct impair_params link[2]);
void sim_init_with(struct sim *sim, uint64_t seed,
		   const struct tcp_params *params,
		   const struct impair_params link[2],
		   const struct sim_setup *setup);
/* Checks that everything was given back, and frees it. Connections that are
 * still there are a failure unless `may_be_open`. */
void sim_finish(struct sim *sim, bool may_be_open);

/* A listener on host 1, port 80. */
void sim_listen(struct sim *sim, const struct sim_app *app);
/* A connection from host 0 to it. */
struct sim_conn *sim_connect(struct sim *sim, const struct sim_app *app);
/* The end of host 1 that belongs to it, or NULL. */
struct sim_conn *sim_other_end(const struct sim_conn *conn);

/* Lets the next thing happen; false when nothing will before until_ns, which is
 * then the time. */
bool sim_step(struct sim *sim, uint64_t until_ns);
void sim_run(struct sim *sim, uint64_t until_ns);
/* Runs until every connection is gone or dead; false if until_ns comes first. */
bool sim_run_to_end(struct sim *sim, uint64_t until_ns);

/* The application has more to send (sim_app.to_send). */
void sim_more(struct sim_conn *conn);
/* Gives back what an ended application still holds. */
void sim_close(struct sim_conn *conn);

/* The perfect link of a delay and a rate; queue of one round trip and 30 packets
 * at least. */
struct impair_params sim_link(uint64_t rate_bps, uint64_t delay_ns);

/* For who plays a host: the byte of a stream, and a packet to the other host. */
uint8_t sim_stream_byte(uint8_t mark, uint64_t offset);
void sim_send_packet(struct sim_host *host, const uint8_t *packet, size_t len);

#endif
