/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Views 1 and 2: two lines for each socket, one for each way of multiplexing. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "report.h"
#include "stats/stats_text.h"

/* Lines between two headers. */
enum { LINES_PER_HEADER = 24 };

/* -- numbers ---------------------------------------------------------------- */

uint64_t report_rate(const struct report *report, uint64_t value)
{
	return report->before && report->args->interval > 1 ?
		       value / report->args->interval :
		       value;
}

/* By how a counter is kept. */
#define RATE_LOCKED(name) c->name = report_rate(report, c->name);
#define RATE_SHARED(name) RATE_LOCKED(name)
#define RATE_HIGHEST(name)

static void to_socket_rates(const struct report *report,
			    struct stats_socket_counters *c)
{
#define SOCKET_COUNTER(name, how, what) RATE_##how(name)
#include "stats/counters.def"
}

static void to_mux_rates(const struct report *report,
			 struct stats_mux_counters *c)
{
#define MUX_COUNTER(name, how, what) RATE_##how(name)
#include "stats/counters.def"
}

bool report_next_socket(const struct report *report, uint32_t *at,
			struct report_socket *out)
{
	for (; *at < report->now->socket_max; ++*at) {
		const struct stats_socket *s = &report->now->sockets[*at];

		if (!stats_socket_is_used(s) ||
		    !args_wants(report->args, s->fd))
			continue;
		out->socket = s;
		stats_snapshot_socket_diff(
			report->before ? &report->before->sockets[*at] : NULL,
			s, &out->counters);
		to_socket_rates(report, &out->counters);
		++*at;
		return true;
	}
	return false;
}

bool report_mux(const struct report *report, const struct stats_mux *now,
		const struct stats_mux *before, struct stats_mux_counters *out)
{
	static const struct stats_mux_counters nothing;

	if (!atomic_load(&now->is_used))
		return false;
	stats_snapshot_mux_diff(before, now, out);
	to_mux_rates(report, out);
	return memcmp(out, &nothing, sizeof(nothing)) != 0;
}

unsigned report_polling(const struct stats_mux *mux)
{
	return MIN(atomic_load(&mux->polling_percent), 100u);
}

/* -- headers ------------------------------------------------------------------ */

static void print_header_basic(FILE *out, bool is_rate)
{
	fprintf(out, " %-7s %42s %31s\n", "fd",
		is_rate ? "--------------- offloaded ----------------" :
			  "------------ total offloaded -------------",
		is_rate ? "---------- os ---------" :
			  "--------- total os ----------");
	if (is_rate)
		fprintf(out, " %-7s %10s %7s %8s %7s %6s %7s %7s %7s %7s\n", "",
			"pkt/s", "Kbyte/s", "eagain/s", "error/s", "poll%",
			"pkt/s", "Kbyte/s", "eagain/s", "error/s");
	else
		fprintf(out, " %-7s %10s %7s %8s %7s %6s %7s %7s %7s %7s\n", "",
			"pkt", "Kbyte", "eagain", "error", "poll%", "pkt",
			"Kbyte", "eagain", "error");
}

static void print_header_medium(FILE *out, bool is_rate)
{
	fprintf(out, " %-7s %65s %31s\n", "fd",
		is_rate ?
			"---------------------------- offloaded --------------------------" :
			"----------------------- total offloaded -------------------------",
		is_rate ? "---------- os ---------" :
			  "--------- total os ----------");
	fprintf(out, " %-7s %10s %7s %8s %7s %6s%23s %7s %7s %7s %7s\n", "",
		is_rate ? "pkt/s" : "pkt", is_rate ? "Kbyte/s" : "Kbyte",
		is_rate ? "eagain/s" : "eagain", is_rate ? "error/s" : "error",
		"poll%",
		is_rate ? "----- queue pkt ------" : "---- queue pkt -----",
		is_rate ? "pkt/s" : "pkt", is_rate ? "Kbyte/s" : "Kbyte",
		is_rate ? "eagain/s" : "eagain",
		is_rate ? "error/s" : "error");
	fprintf(out, " %50s %6s  %6s  %6s \n", "", "cur", "max",
		is_rate ? "drop/s" : "drop");
}

/* Before a line, if it is time again. */
static void count_line(struct report *report)
{
	bool is_rate = report->before != NULL;

	if (report->line_cnt++ % LINES_PER_HEADER != 0)
		return;
	if (report->args->view == VIEW_MEDIUM)
		print_header_medium(report->out, is_rate);
	else
		print_header_basic(report->out, is_rate);
}

/* -- lines -------------------------------------------------------------------- */

#define N PRIu64

static void print_rx(struct report *report, const struct report_socket *s)
{
	const struct stats_socket_counters *c = &s->counters;

	count_line(report);
	fprintf(report->out,
		" %-3d %-3s %10" N " %7" N " %8" N " %7" N " %6.1f",
		s->socket->fd, "Rx:", c->rx_packets, c->rx_bytes / 1024,
		c->rx_eagain, c->rx_errors,
		stats_text_percent(c->rx_poll_hit, c->rx_poll_miss));
	if (report->args->view == VIEW_MEDIUM)
		fprintf(report->out, " %6" N "  %6" N "  %6" N,
			stats_socket_ready_pkts(s->socket), c->rx_ready_pkt_max,
			c->rx_ready_pkt_drop);
	fprintf(report->out, " %7" N " %7" N " %7" N " %7" N "\n",
		c->rx_os_packets, c->rx_os_bytes / 1024, c->rx_os_eagain,
		c->rx_os_errors);
}

static void print_tx(struct report *report, const struct report_socket *s)
{
	const struct stats_socket_counters *c = &s->counters;

	count_line(report);
	fprintf(report->out, " %-3s %-3s %10" N " %7" N " %8" N " %7" N " %-*s",
		"", "Tx:", c->tx_packets, c->tx_bytes / 1024, c->tx_eagain,
		c->tx_errors + c->tx_drops,
		report->args->view == VIEW_MEDIUM ? 29 : 6, "");
	fprintf(report->out, " %7" N " %7" N " %7" N " %7" N "\n",
		c->tx_os_packets, c->tx_os_bytes / 1024, c->tx_os_eagain,
		c->tx_os_errors);
}

static void print_mux(struct report *report, const char *name,
		      const struct stats_mux *now,
		      const struct stats_mux *before)
{
	struct stats_mux_counters c;

	if (!report_mux(report, now, before, &c))
		return;
	fprintf(report->out,
		"%-8s%-2s %-9s%" N "%-1s%" N " %-12s %-9s%-5" N " %-7s%-4" N
		" %-5s%-2.2f%-3s %-5s%u%-1s\n",
		name, report->before ? "/s" : "", "Rx Ready:", c.os_rx_ready,
		"/", c.rx_ready, "[os/offload]", "Timeouts:", c.timeouts,
		"Errors:", c.errors, "Poll:",
		stats_text_percent(c.poll_hit, c.poll_miss), "%",
		"Polling CPU:", report_polling(now), "%");
}

static void print_all_mux(struct report *report)
{
	const struct stats_region *now = report->now, *before = report->before;
	char name[32];

	print_mux(report, "poll", &now->poll, before ? &before->poll : NULL);
	print_mux(report, "select", &now->select,
		  before ? &before->select : NULL);
	for (size_t i = 0; i < STATS_EPOLLS_MAX; i++) {
		snprintf(name, sizeof(name), "epoll[%d]", now->epolls[i].fd);
		print_mux(report, name, &now->epolls[i],
			  before ? &before->epolls[i] : NULL);
	}
}

void report_basic(struct report *report)
{
	struct report_socket socket;
	bool has_socket = false;
	uint32_t at = 0;

	while (report_next_socket(report, &at, &socket)) {
		print_rx(report, &socket);
		print_tx(report, &socket);
		has_socket = true;
	}
	print_all_mux(report);
	if (has_socket)
		fprintf(report->out, "%.79s\n",
			"--------------------------------------------------"
			"--------------------------------------------------");
	fflush(report->out);
}
