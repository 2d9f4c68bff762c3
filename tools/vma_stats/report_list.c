/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* View 5: the sockets of all processes, as netstat has them. */
#include "config.h"

#include <netinet/in.h>

#include "report.h"
#include "stats/reasons.h"
#include "stats/stats_text.h"

void report_list_header(FILE *out)
{
	fprintf(out, "%-5s %-9s %-20s %-20s %-22s %-21s %-11s %-10s %s\n",
		"Proto", "Offloaded", "Recv-Q", "Send-Q", "Local Address",
		"Foreign Address", "State", "Inode", "PID/Program name");
}

static const char *protocol(const struct stats_socket *s)
{
	switch (s->protocol) {
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_RAW:
		return "raw";
	default:
		return "???";
	}
}

/* "10.0.0.1:53   " with the port padded to five columns. */
static void format_end(char *text, size_t size, const struct ip_addr *addr,
		       uint16_t port)
{
	char ip[IP_ADDR_TEXT_SIZE];

	if (port)
		snprintf(text, size, "%s:%-5u", ip_addr_format(addr, ip), port);
	else
		snprintf(text, size, "0.0.0.0:*");
}

static void print_row(FILE *out, const struct stats_socket *s, int pid,
		      const char *program)
{
	char local[64], remote[64];

	format_end(local, sizeof(local), &s->local, s->local_port);
	format_end(remote, sizeof(remote), &s->remote, s->remote_port);
	fprintf(out,
		"%-5s %-9s %-20lu %-20lu %-22s %-21s %-11s %-10lu %d/%s\n",
		protocol(s), s->rx.reason == REASON_NONE ? "Yes" : "No",
		(unsigned long)stats_socket_ready_bytes(s),
		(unsigned long)s->tcp.send_queue, local, remote,
		stats_text_state(s->tcp_state), (unsigned long)s->inode, pid, program);
}

void report_list(struct report *report, const char *program)
{
	struct report_socket socket;
	uint32_t at = 0;

	while (report_next_socket(report, &at, &socket))
		if (socket.socket->inode)
			print_row(report->out, socket.socket, report->now->pid,
				  program[0] ? program : "-");
}
