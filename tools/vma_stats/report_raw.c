/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --raw: every counter that is not zero, for programs and the curious. */
#include "config.h"

#include <inttypes.h>

#include "report.h"

static void print(struct report *report, const char *of, long number,
		  const char *name, uint64_t value)
{
	if (!value)
		return;
	fputs(of, report->out);
	if (number >= 0)
		fprintf(report->out, ".%ld", number);
	fprintf(report->out, ".%s %" PRIu64 "\n", name, value);
}

static void print_mux(struct report *report, const char *of, long fd,
		      const struct stats_mux *mux)
{
	const struct stats_mux_counters *c = &mux->counters;

	if (!atomic_load(&mux->is_used))
		return;
#define MUX_COUNTER(name, how, what) print(report, of, fd, #name, c->name);
#include "stats/counters.def"
	print(report, of, fd, "polling_percent", report_polling(mux));
}

void report_raw(struct report *report)
{
	const struct stats_region *r = report->now;
	struct report_socket socket;
	uint32_t at = 0;

	while (report_next_socket(report, &at, &socket)) {
		const struct stats_socket_counters *c = &socket.counters;
		const struct stats_tcp_gauges *g = &socket.socket->tcp;
		long fd = socket.socket->fd;

#define SOCKET_COUNTER(name, how, what) print(report, "socket", fd, #name, c->name);
#define TCP_GAUGE(name, how, what) print(report, "socket", fd, #name, g->name);
#include "stats/counters.def"
	}
	for (long i = 0; i < STATS_RINGS_MAX; i++) {
		const struct stats_ring_counters *c = &r->rings[i].counters;

		if (!r->rings[i].is_used)
			continue;
#define RING_COUNTER(name, how, what) print(report, "ring", i, #name, c->name);
#include "stats/counters.def"
	}
#define DROP_COUNTER(name, how, what) \
	print(report, "drop", -1, #name, r->drops[STATS_DROP_##name]);
#include "stats/counters.def"
#define TCP_COUNTER(name, how, what) print(report, "tcp", -1, #name, r->tcp.name);
#include "stats/counters.def"
	print_mux(report, "poll", -1, &r->poll);
	print_mux(report, "select", -1, &r->select);
	for (size_t i = 0; i < STATS_EPOLLS_MAX; i++)
		print_mux(report, "epoll", r->epolls[i].fd, &r->epolls[i]);
}
