/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The emulated cards of this process, their contexts and the clockwork that
 * moves them. One lock guards everything reachable from here; commands take it
 * for their duration, the card's thread for each step. The thread does what
 * hardware does beside the program; in manual mode there is none, and the test
 * steps the card itself.
 */
#ifndef SOFTCX_CARD_H
#define SOFTCX_CARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev/fake/impair.h"
#include "base/list.h"
#include "base/lock.h"
#include "tests/support/pcap.h"
#include "base/rand.h"
#include "conf.h"
#include "filter.h"
#include "hca_clock.h"
#include "idtab.h"
#include "netdev.h"
#include "softcx.h"
#include "wire.h"

struct chan;

/* One card, plugged into one interface. */
struct dev {
	const struct conf_dev *conf;
	struct netdev netdev;   /* as of the last look; ifindex 0: absent */
	bool is_open;           /* wire and filter exist: a context was opened */
	bool is_pulled;         /* the test pulled the cable */
	bool is_port_up;
	bool is_removed;
	struct wire wire;
	struct filter filter;
	struct list rules;      /* struct rule, in order of precedence */
	struct list ctxs;
	struct idtab qps;       /* by QP number */
	struct idtab cqs;       /* by CQ number */
	struct idtab mrs;       /* by lkey >> 8 */
	struct hca_clock clock;
	struct impair *impair;  /* NULL: the receive path is perfect */
	struct rand late_rand;
	struct softcx_stats stats;
};

/* One opened uverbs file. */
struct ctx {
	struct list link;       /* dev->ctxs */
	struct dev *dev;
	int fd;
	struct chan *async;
	struct idtab handles;   /* struct obj */
	struct idtab uars;      /* struct uar, by page id */
	struct list uar_list;
	struct list chans;      /* completion channels */
	int uar_fd;             /* the memory behind the UAR pages */
	int clock_fd;           /* and behind the clock pages */
	void *clock_pages;      /* HCA_CLOCK_PAGES, as the card sees them */
};

struct card {
	struct mutex lock;
	struct conf conf;
	struct dev devs[CONF_MAX_DEVS];
	bool has_tree;
	bool has_thread;
	int monitor_fd;         /* readable: some link changed */
	int guard_fd;           /* readable: a doorbell waits; or -1 */
	bool is_guarded;
	bool has_virtual_clock;
	uint64_t virtual_ns;
	struct pcap_writer pcap;
	int pcap_fd;
};

/* NULL unless SOFTCX names a device. */
extern struct card *the_card;

static inline void card_lock(struct card *card) ACQUIRES(&card->lock)
	NO_LOCK_ANALYSIS
{
	mutex_acquire(&card->lock);
}

static inline void card_unlock(struct card *card) RELEASES(&card->lock)
	NO_LOCK_ANALYSIS
{
	mutex_release(&card->lock);
}

/* Builds the view of the devices if that was not done yet. */
void card_show(struct card *card);
/* Makes a device ready for its first context. */
MUST_CHECK int card_open_dev_locked(struct card *card, struct dev *dev);
/* After the last context is gone. */
void card_close_dev_locked(struct card *card, struct dev *dev);
/* A detached thread that gets none of the program's signals. */
MUST_CHECK int card_run_thread(void *(*fn)(void *), void *arg);
/* The card's time. */
uint64_t card_now_ns(const struct card *card);
/* One round of everything; returns how many things were done. */
int card_step_locked(struct card *card) REQUIRES(card->lock);
/* Keeps what crossed the wire, if that is asked for. */
void card_capture(struct card *card, const void *frame, size_t len);

/* Sends what is committed, as far as the wire takes it. */
void dev_flush_wire(struct card *card, struct dev *dev);
/* Takes the frames that are on the wire now, as a step does. */
void dev_drain_wire(struct card *card, struct dev *dev);
/* The port may have changed: raises the event and shows the state. */
void dev_update_port_locked(struct card *card, struct dev *dev)
	REQUIRES(card->lock);
struct dev *card_find_dev(struct card *card, const char *name);

#endif
