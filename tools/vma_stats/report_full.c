/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* View 3: a block for everything that counts. View 4: multicast groups. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>

#include "report.h"
#include "stats/stats_text.h"

#define N PRIu64

static void separate(struct report *report)
{
	fputs(STATS_TEXT_SEPARATOR, report->out);
}

/* "Master:             0x..." */
static void label(struct report *report, const char *name)
{
	fprintf(report->out, "%-20s", name);
}

static const char *per(const struct report *report)
{
	return report->before ? "/s" : "";
}

static void print_sockets(struct report *report)
{
	struct report_socket socket;
	char buf[STATS_TEXT_SIZE];
	bool has_socket = false;
	uint32_t at = 0;

	while (report_next_socket(report, &at, &socket)) {
		struct text t = text_in(buf, sizeof(buf));

		stats_text_socket(&t, socket.socket, &socket.counters,
				  report->before != NULL);
		fputs(buf, report->out);
		has_socket = true;
	}
	if (has_socket)
		separate(report);
}

static void print_mux(struct report *report, const char *name, int fd,
		      const struct stats_mux *now,
		      const struct stats_mux *before)
{
	struct stats_mux_counters c;

	if (!report_mux(report, now, before, &c))
		return;
	separate(report);
	fprintf(report->out, "\t%s", name);
	if (fd >= 0)
		fprintf(report->out, "[%d]", fd);
	fprintf(report->out, "\nPolling CPU%s:%u%%\n", per(report),
		report_polling(now));
	fprintf(report->out, "Rx fds ready: %" N " / %" N " [os/offload]%s\n",
		c.os_rx_ready, c.rx_ready, per(report));
	fprintf(report->out,
		"Polls [miss/hit]%s: %" N " / %" N " (%2.2f%%)\n", per(report),
		c.poll_miss, c.poll_hit,
		stats_text_percent(c.poll_hit, c.poll_miss));
	fprintf(report->out, "Timeouts%s: %" N "\nErrors%s: %" N "\n",
		per(report), c.timeouts, per(report), c.errors);
	separate(report);
}

static void print_all_mux(struct report *report)
{
	const struct stats_region *now = report->now, *before = report->before;

	print_mux(report, "poll", -1, &now->poll,
		  before ? &before->poll : NULL);
	print_mux(report, "select", -1, &now->select,
		  before ? &before->select : NULL);
	for (size_t i = 0; i < STATS_EPOLLS_MAX; i++)
		print_mux(report, "epoll", now->epolls[i].fd, &now->epolls[i],
			  before ? &before->epolls[i] : NULL);
}

static void print_ring(struct report *report, size_t i)
{
	const struct stats_ring *ring = &report->now->rings[i];
	struct stats_ring_counters c;

	stats_snapshot_ring_diff(report->before ? &report->before->rings[i] :
						  NULL,
				 ring, &c);
	separate(report);
	fprintf(report->out, "\tRING_ETH=[%zu]\n", i);
	label(report, "Interface:");
	fprintf(report->out, "%s (%s: %s)\n", ring->interface, ring->back_end,
		ring->mode);
	label(report, "Tx Offload:");
	fprintf(report->out, "%" N " / %" N " [kilobytes/packets]%s\n",
		report_rate(report, c.tx_bytes) / 1024,
		report_rate(report, c.tx_pkts), per(report));
	label(report, "Rx Offload:");
	fprintf(report->out, "%" N " / %" N " [kilobytes/packets]%s\n",
		report_rate(report, c.rx_bytes) / 1024,
		report_rate(report, c.rx_pkts), per(report));
	label(report, "Tx ring full:");
	fprintf(report->out, "%" N "%s\n", report_rate(report, c.tx_full),
		per(report));
	label(report, "Rx without frame:");
	fprintf(report->out, "%" N "%s\n", report_rate(report, c.rx_no_frame),
		per(report));
	label(report, "Rx copied/dropped:");
	fprintf(report->out, "%" N " / %" N "%s\n",
		report_rate(report, c.rx_spilled),
		report_rate(report, c.rx_spill_drops), per(report));
	label(report, "Kicks:");
	fprintf(report->out, "%" N "%s\n", report_rate(report, c.kicks),
		per(report));
	label(report, "Dev Mem Alloc:");
	fprintf(report->out, "%u\n", ring->dev_mem);
	label(report, "Dev Mem Stats:");
	fprintf(report->out, "%" N " / %" N " / %" N " [kilobytes/packets/oob]%s\n",
		report_rate(report, c.dev_mem_bytes) / 1024,
		report_rate(report, c.dev_mem_pkts),
		report_rate(report, c.dev_mem_full), per(report));
}

static void print_rings(struct report *report)
{
	bool has_ring = false;

	for (size_t i = 0; i < STATS_RINGS_MAX; i++) {
		if (!report->now->rings[i].is_used)
			continue;
		print_ring(report, i);
		has_ring = true;
	}
	if (has_ring)
		separate(report);
}

static void print_pools(struct report *report)
{
	bool has_pool = false;

	for (size_t i = 0; i < STATS_POOLS_MAX; i++) {
		const struct stats_pool *pool = &report->now->pools[i];

		if (!pool->is_used)
			continue;
		separate(report);
		fprintf(report->out, "\tBUFFER_POOL=[%zu]\n", i);
		label(report, "Interface:");
		fprintf(report->out, "%s\n", pool->interface);
		label(report, "Size:");
		fprintf(report->out, "%u of %u\n", pool->free_cnt,
			pool->total_cnt);
		label(report, "No buffers error:");
		fprintf(report->out, "%" N "\n", pool->empty_cnt);
		has_pool = true;
	}
	if (has_pool)
		separate(report);
}

/* Those that are not 0, below a title. */
static void print_counts(struct report *report, const char *title,
			 const char *const *names, const uint64_t *now,
			 size_t cnt)
{
	bool has_some = false;

	for (size_t i = 0; i < cnt; i++) {
		if (!now[i])
			continue;
		if (!has_some)
			fprintf(report->out, STATS_TEXT_SEPARATOR "\t%s\n",
				title);
		fprintf(report->out, "%-24s%" N "\n", names[i], now[i]);
		has_some = true;
	}
	if (has_some)
		separate(report);
}

static void print_drops(struct report *report)
{
	static const char *const names[STATS_DROP_COUNT] = {
#define DROP_COUNTER(name, how, what) #name,
#include "stats/counters.def"
	};

	print_counts(report, "FRAMES DROPPED", names, report->now->drops,
		     STATS_DROP_COUNT);
}

static void print_tcp(struct report *report)
{
	static const char *const names[] = {
#define TCP_COUNTER(name, how, what) #name,
#include "stats/counters.def"
	};

	print_counts(report, "TCP", names,
		     (const uint64_t *)&report->now->tcp, ARRAY_LEN(names));
}

void report_full(struct report *report)
{
	/* as `clear` does, and only where somebody looks */
	if (report->args->cycles != 1)
		fputs("\033[H\033[2J", report->out);
	print_sockets(report);
	print_all_mux(report);
	print_rings(report);
	print_pools(report);
	print_drops(report);
	print_tcp(report);
	fflush(report->out);
}

void report_groups(struct report *report)
{
	fputs("\nVMA Group Memberships Information\n"
	      "Group                fd number\n"
	      "------------------------------\n"
	      "(this version leaves multicast to the kernel: ip maddress shows the groups)\n",
	      report->out);
	fprintf(report->out, "%.79s\n",
		"--------------------------------------------------"
		"--------------------------------------------------");
}
