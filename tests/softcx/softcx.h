/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a test may ask of the card beside what a program may. A test finds these
 * functions with dlsym(RTLD_DEFAULT, "softcx_..."); without libsoftcx they are
 * not there. Devices are named as in SOFTCX. All return 0 or a negative errno
 * unless said otherwise; -ENODEV: no such device, or not opened yet.
 */
#ifndef SOFTCX_H
#define SOFTCX_H

#include <stdint.h>

#include "dev/fake/impair.h"

/* Counters of one device in this process. */
struct softcx_stats {
#define COUNTER(counter, text) uint64_t counter;
#include "counters.def"
#undef COUNTER
};

/* SOFTCX_MANUAL=1: the card does something only in here. Returns how many
 * things it did: frames, entries, completions, events. */
typedef int softcx_step_fn(void);
/* Sets the card's clock, which stands still between calls in manual mode; the
 * first call leaves real time. Never goes back. */
typedef int softcx_clock_set_fn(uint64_t ns);

/* As SOFTCX_STRICT. */
typedef int softcx_strict_set_fn(int is_strict);
typedef int softcx_stats_fn(const char *dev, struct softcx_stats *stats_out);
/* From now on; what is in flight keeps its fate. */
typedef int softcx_impair_fn(const char *dev,
			     const struct impair_params *params);
/* What the impaired receive path did so far. */
typedef int softcx_impair_counts_fn(const char *dev,
				    struct impair_counts *counts_out);
/* Plugs and pulls the cable: IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE. */
typedef int softcx_port_set_fn(const char *dev, int is_up);
/* The device falls off its bus: IBV_EVENT_DEVICE_FATAL, then EIO. */
typedef int softcx_remove_fn(const char *dev);
/* A queue fails by itself: IBV_EVENT_QP_FATAL, IBV_EVENT_CQ_ERR. */
typedef int softcx_fail_qp_fn(const char *dev, uint32_t qpn);
typedef int softcx_fail_cq_fn(const char *dev, uint32_t cqn);
/* 1: the kernel will not see this frame; 0: it will. */
typedef int softcx_try_frame_fn(const char *dev, const void *frame,
				uint64_t len);
/* The same by the card's own steering: how many queues would get a copy. */
typedef int softcx_steer_frame_fn(const char *dev, const void *frame,
				  uint64_t len);

softcx_step_fn softcx_step;
softcx_clock_set_fn softcx_clock_set;
softcx_strict_set_fn softcx_strict_set;
softcx_stats_fn softcx_stats;
softcx_impair_fn softcx_impair;
softcx_impair_counts_fn softcx_impair_counts;
softcx_port_set_fn softcx_port_set;
softcx_remove_fn softcx_remove;
softcx_fail_qp_fn softcx_fail_qp;
softcx_fail_cq_fn softcx_fail_cq;
softcx_try_frame_fn softcx_try_frame;
softcx_steer_frame_fn softcx_steer_frame;

#endif
