/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --why: what becomes of each socket's datagrams, what decided it, and what the
 * user could change. */
#include "config.h"

#include "report.h"
#include "stats/reasons.h"
#include "stats/stats_text.h"

static const char *decided(const struct stats_way *way)
{
	static const char *const texts[] = {
#define DECIDER(name, text) text,
#include "stats/deciders.def"
	};

	return texts[way->decider];
}

static void print_rings(const struct report *report, uint32_t rings)
{
	const char *before = " by";

	for (size_t i = 0; i < STATS_RINGS_MAX; i++) {
		const struct stats_ring *ring = &report->now->rings[i];

		if (!(rings >> i & 1))
			continue;
		fprintf(report->out, "%s ring %zu on %s (%s: %s)", before, i,
			ring->interface, ring->back_end, ring->mode);
		before = ",";
	}
}

/* The reason with what exactly and the remedy, which goes on a line of its own. */
static void print_reason(const struct report *report,
			 const struct stats_way *way)
{
	enum reason reason = (enum reason)way->reason;

	fprintf(report->out, "by the kernel: %s [%s]\n", reason_why(reason),
		reason_name(reason));
	fprintf(report->out, "            decided %s%s%s\n", decided(way),
		way->detail[0] ? ": " : "", way->detail);
	if (reason_remedy(reason)[0])
		fprintf(report->out, "            to change that: %s\n",
			reason_remedy(reason));
}

static void print_way(const struct report *report, const char *what,
		      const struct stats_way *way)
{
	fprintf(report->out, "  %-9s ", what);
	if (way->reason == REASON_NOT_USED) {
		fprintf(report->out, "not yet: %s\n",
			reason_why(REASON_NOT_USED));
	} else if (way->reason == REASON_NONE) {
		fprintf(report->out, "accelerated");
		print_rings(report, way->rings);
		fputc('\n', report->out);
	} else {
		print_reason(report, way);
	}
}

static void print_socket(const struct report *report,
			 const struct stats_socket *s)
{
	char buf[512];
	struct text t = text_in(buf, sizeof(buf));

	text_add(&t, "fd %d: %s ", s->fd, stats_text_protocol(s->protocol));
	if (s->local_port)
		stats_text_end(&t, &s->local, s->local_port);
	else
		text_add(&t, "not bound");
	if (s->remote_port) {
		text_add(&t, " to ");
		stats_text_end(&t, &s->remote, s->remote_port);
	}
	fprintf(report->out, "%s\n", buf);
	print_way(report, "receives", &s->rx);
	if (s->tx.reason == REASON_NOT_USED)
		return;
	t = text_in(buf, sizeof(buf));
	text_add(&t, "sends");
	if (!s->remote_port && s->tx_port) {
		text_add(&t, " to ");
		stats_text_end(&t, &s->tx_addr, s->tx_port);
	}
	print_way(report, buf, &s->tx);
}

/* One line for each reason that some sockets have. */
static void print_sums(const struct report *report, const char *title,
		       const _Atomic uint32_t *counts)
{
	bool has_title = false;

	for (int i = 0; i < REASON_COUNT; i++) {
		uint32_t cnt = atomic_load(&counts[i]);

		if (!cnt)
			continue;
		if (!has_title)
			fprintf(report->out, "%s\n", title);
		has_title = true;
		if (i == REASON_NONE)
			fprintf(report->out, "  %6u accelerated\n", cnt);
		else
			fprintf(report->out, "  %6u by the kernel: %s [%s]\n",
				cnt, reason_why((enum reason)i),
				reason_name((enum reason)i));
		if (reason_remedy((enum reason)i)[0])
			fprintf(report->out, "         to change that: %s\n",
				reason_remedy((enum reason)i));
	}
}

void report_why(struct report *report)
{
	const struct stats_region *now = report->now;
	struct report_socket socket;
	uint32_t at = 0;

	while (report_next_socket(report, &at, &socket))
		print_socket(report, socket.socket);
	print_sums(report,
		   "Other sockets (VMA_STATS_FD_NUM is how many are shown one by one):",
		   now->unslotted);
	print_sums(report, "Sockets that were the kernel's from the start, so far:",
		   now->unserved);
	fflush(report->out);
}
