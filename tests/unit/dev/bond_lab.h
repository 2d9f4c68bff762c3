/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bond of devices in memory. Each has a cable of its own, by which it hears what it
 * sends, and does what a case says.
 */
#ifndef UNIT_DEV_BOND_LAB_H
#define UNIT_DEV_BOND_LAB_H

#include <linux/if_bonding.h>

#include "dev/bond/bond.h"
#include "dev/bond/bond_hash.h"
#include "dev/fake/fake.h"
#include "pkt/wire.h"

enum { PORTS = 3, FRAMES = 100, FIRST_IFINDEX = 5, FIRST_FD = 20 };
enum { ALL = (1 << PORTS) - 1 };

/* One of them, whose device and ring say what a case wants and keep count. */
struct lab_port {
	struct fake_cable *cable;
	struct dev *dev;
	struct dev_ops dev_ops;
	const struct dev_ops *fake;
	struct ring *ring;
	struct ring_ops ring_ops;
	const struct ring_ops *fake_ring;

	/* what it was asked to drive */
	struct backend_request request;
	char name[16], lower_name[16];
	/* what it was told */
	uint32_t mtu;
	unsigned rights_gone;
	bool is_ending;
	unsigned rules, wakes, quiets, acks, grown;
	struct region *shared;
	/* what has left by it, and what the last one was */
	unsigned sent;
	uint8_t frame[128];
	size_t len;

	/* what it says that it can do; NULL: the fake's */
	const struct dev_caps *caps;
	/* errors that it gives, or 0 */
	int open_err, rule_err, ring_err, region_err, health;
	enum ring_kick kick;
	uint32_t device_cnt;
	bool is_busy;
	/* it does not say which rule has brought what */
	bool has_no_tags;
};

extern struct lab {
	struct lab_port ports[PORTS];
	/* how many were asked for; devices and rings that there are */
	unsigned asked, open_cnt, ring_cnt;
	/* of the fakes: how much is on its way when the queue is full, and whether they have
	 * fds and need kicks */
	uint32_t tx_max;
	bool sleeps;
	struct dev *dev;
	struct pkt_pool pool;
	struct ring *ring;
} lab;

#define FOR_EACH_PORT(port) \
	for (struct lab_port *port = lab.ports; port < lab.ports + PORTS; port++)

/* -- a case -------------------------------------------------------------------------- */

/* Makes the ports by request. */
extern struct backend lab_backend;

struct backend_bond lab_bond(uint8_t mode, uint8_t policy, uint32_t active);
struct backend_request lab_request(const struct backend_bond *bond);

/* The cables; then the bond and its ring; and both in one. */
void lab_prepare(void);
void lab_open(uint8_t mode, uint8_t policy, uint32_t active);
void lab_begin(uint8_t mode, uint8_t policy, uint32_t active);
/* Of a bond that was opened, and of one that was closed, or never opened. */
void lab_end(void);
void lab_end_cables(void);

/* Nobody holds a frame. */
void lab_all_are_back(void);

/* These ports are active from now on. */
void lab_use(uint32_t active);

/* -- frames -------------------------------------------------------------------------- */

struct lab_frame {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
} WIRE_PACKED;

extern const uint8_t lab_mac[6], lab_peer_mac[6];

/* From port `src_port` of the bond's host, 10.1.2.3, to 0x5678 of 192.168.7.9. */
struct lab_frame lab_make_frame(uint16_t src_port);
/* The rule for what is sent, which comes back. */
struct flow_rule lab_rule(enum flow_verdict verdict);
void lab_add_rule(void);

/* Sends one by ring.tx_frame; or by tx, its first bytes as a header, the others as a
 * payload. */
void lab_commit(uint16_t src_port);
int lab_send(uint16_t src_port, size_t header_len);
/* How many frames have left by this one since the last question. */
unsigned lab_sent_by(unsigned port);
/* The number of the port by which this one has just left. */
unsigned lab_left_by(uint16_t src_port);
/* By which all the ways of sending send it. */
unsigned lab_way_of(uint16_t src_port);

/* A frame comes by this port, which is the only active one from then on. */
void lab_arrive(unsigned port, uint16_t src_port);
/* How many packets a poll brings, all of which are put back. */
unsigned lab_poll(unsigned max);

#endif
