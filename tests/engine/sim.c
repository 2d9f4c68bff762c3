/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The simulated network of sim.h. */
#include "tests/engine/sim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pkt/wire.h"
#include "tcp/tcp_seq.h"
#include "tests/engine/reference.h"
#include "tests/engine/sim_inside.h"
#include "tests/support/test.h"

enum {
	RX_HEADROOM = 64,
	MTU = 1500,
	SERVER_PORT = 80,
	FIRST_CLIENT_PORT = 10000,
	POLL_MAX = 16,
};

/* How a time stamp begins, behind two NOPs. */
#define TCP_TS_HEAD UINT32_C(0x0101080a)

uint8_t sim_stream_byte(uint8_t mark, uint64_t offset)
{
	return (uint8_t)(offset * 7 + (offset >> 8) * 13 + (offset >> 16) +
			 mark);
}

/* ---- frames: IP packets in counted bytes ---- */

static bool frame_mark(void *ctx UNUSED, void *frame)
{
	struct impair_bytes *bytes = frame;

	return impair_mark_ip(bytes->data, bytes->len);
}

static void capture(struct sim *sim, const uint8_t *data, size_t len)
{
	if (sim->capture)
		SIM_CHECK(sim, pcap_write(&sim->pcap, sim->now_ns, data,
					  len) == 0);
}

static int capture_write(void *ctx, const void *data, size_t len)
{
	/* at once: a breach ends the process, and its last packets tell why */
	return fwrite(data, 1, len, ctx) == len && !fflush(ctx) ? 0 : -1;
}

/* The router of a narrow link tells the sender of what it drops; one message at
 * a time is on its way. */
static void frame_report(void *ctx, const void *frame, size_t len UNUSED,
			 unsigned fate)
{
	const struct impair_bytes *bytes = frame;
	struct sim_host *host = ctx;
	const struct wire_tcp *tcp;
	struct wire_ip ip;

	if (!(fate & IMPAIR_DROPPED_MTU) || host->sim->setup.is_black_hole ||
	    host->icmp_at_ns ||
	    wire_parse_quoted_ip(bytes->data, bytes->len, &ip))
		return;
	tcp = (const void *)(bytes->data + ip.header_len);
	host->icmp = (struct tcp_icmp){
		.key = { .local = ip.src, .remote = ip.dst,
			 .local_port = tcp->src_port,
			 .remote_port = tcp->dst_port },
		.seq = be32toh(tcp->seq),
		.quoted_len = (uint32_t)bytes->len,
		.error = -EMSGSIZE,
		/* some routers are old */
		.mtu = rand_below(&host->sim->rand, 4)
			       ? (uint16_t)host->sim->setup.mtu
			       : 0,
	};
	host->icmp_at_ns = host->sim->now_ns +
			   impair_params(host->out)->delay_ns / 2;
}

static struct impair_ops frame_ops;

/* ---- the engine's ops ---- */

static struct pkt *take_pkt(struct pkt_pool *pool, uint32_t buf_size)
{
	if (!pool->free)
		CHECK(pkt_pool_grow(pool, 64, buf_size) == 0);
	return pkt_alloc(pool);
}

/* Never beyond what the peer has granted. */
static void check_window(struct sim_host *host, const struct tcp_out *out)
{
	const struct wire_tcp *header = (const void *)out->header;
	uint32_t end = be32toh(header->seq) + out->data_len;
	struct sim_conn *conn;
	struct tcp_pcb_info info;

	if (!out->data_len)
		return;
	LIST_FOR_EACH(conn, &host->peer->conns, link) {
		const struct flow_key *key;

		if (!conn->pcb)
			continue;
		key = tcp_key(conn->pcb);
		if (key->local_port != out->key->remote_port ||
		    key->remote_port != out->key->local_port)
			continue;
		tcp_get_info(conn->pcb, &info);
		if (info.state >= TCPS_ESTABLISHED)
			SIM_CHECK(host->sim, seq_at_most(end, info.rcv_edge));
	}
}

static size_t put_payload(uint8_t *to, const struct tcp_out *out)
{
	struct pkt *pkt = out->data;
	size_t len = 0;

	for (uint32_t i = 0; i < out->data_cnt; i++) {
		memcpy(to + len, pkt->data, pkt->len);
		len += pkt->len;
		pkt = pkt_from_link(pkt->link.next);
	}
	CHECK_EQ(len, out->data_len);
	return len;
}

void sim_send_packet(struct sim_host *host, const uint8_t *packet, size_t len)
{
	struct sim *sim = host->sim;

	host->segments++;
	capture(sim, packet, len);
	if (host->loses && host->loses(host, packet, len, host->loses_ctx))
		return;
	if (host->sees)
		host->sees(host, packet, len, host->sees_ctx);
	impair_send(host->out, sim->now_ns, impair_bytes_create(packet, len),
		    len);
}

/* One frame, `len` bytes of payload from `offset` on, with the header that a
 * device makes of it. */
static void emit_piece(struct sim_host *host, const struct tcp_out *out,
		       const uint8_t *payload, uint32_t offset, uint32_t len)
{
	bool is_first = offset == 0, is_last = offset + len == out->data_len;
	struct wire_ip ip = {
		.src = out->key->local,
		.dst = out->key->remote,
		.proto = WIRE_PROTO_TCP,
		.tos = out->ecn,
		.ttl = 64,
		.payload_len = (uint16_t)(out->header_len + len),
	};
	uint8_t packet[2048];
	size_t ip_len = wire_build_ip(packet, &ip, host->ip_id++);
	struct wire_tcp *header = (void *)(packet + ip_len);
	size_t total_len = ip_len + ip.payload_len;
	uint32_t sum;

	SIM_CHECK(host->sim, total_len <= host->path.mtu);
	memcpy(header, out->header, out->header_len);
	memcpy(packet + ip_len + out->header_len, payload + offset, len);
	header->seq = htobe32(be32toh(header->seq) + offset);
	if (!is_last)
		header->flags &= (uint8_t)~(WIRE_TCP_PSH | WIRE_TCP_FIN);
	if (!is_first)
		header->flags &= (uint8_t)~WIRE_TCP_CWR;
	if (host->path.with_checksum && host->with_pseudo_sum) {
		header->check = 0;
		sum = wire_pseudo_sum(&ip.src, &ip.dst, WIRE_PROTO_TCP,
				      ip.payload_len);
		header->check = csum_fold(csum_partial(header, ip.payload_len,
						       sum));
	}
	sim_send_packet(host, packet, total_len);
}

/* What the engine leaves to the device is the sum of the pseudo header. */
static void check_pseudo_sum(struct sim_host *host, const struct tcp_out *out)
{
	const struct wire_tcp *header = (const void *)out->header;
	uint32_t sum = wire_pseudo_sum(&out->key->local, &out->key->remote,
				       WIRE_PROTO_TCP,
				       out->header_len + out->data_len);
	uint16_t expected = (uint16_t)~csum_fold(sum);

	SIM_CHECK(host->sim, header->check == expected);
}

/* So long a full device is waited for; it may be full for longer. */
#define JAM_WAIT_NS (200 * NS_PER_MS)
#define JAM_MOST_NS (300 * NS_PER_MS)

static bool is_jammed(struct sim_host *host)
{
	return host->sim->now_ns < host->jam_until_ns;
}

static uint64_t sim_no_room_ns(void *ctx, const struct tcp_pcb *pcb UNUSED, uint64_t now_ns)
{
	struct sim_host *host = ctx;

	SIM_CHECK(host->sim, now_ns == host->sim->now_ns);
	return is_jammed(host) && now_ns - host->jam_since_ns < JAM_WAIT_NS ? NS_PER_MS / 4 : 0;
}

static void jam_at_times(struct sim_host *host)
{
	struct sim *sim = host->sim;

	if (!sim->setup.jam_every || is_jammed(host) ||
	    rand_below(&sim->rand, sim->setup.jam_every))
		return;
	host->jam_since_ns = sim->now_ns;
	host->jam_until_ns = sim->now_ns + rand_between(&sim->rand, 1, JAM_MOST_NS);
}

static void sim_emit(void *ctx, struct tcp_pcb *pcb, const struct tcp_out *out)
{
	struct sim_host *host = ctx;
	static uint8_t payload[65536];
	uint32_t size = out->segment_size ? out->segment_size : out->data_len;
	uint32_t offset = 0;

	jam_at_times(host);
	if (is_jammed(host)) {
		tcp_emit_failed(host->table, pcb, out->header, out->data_len,
				host->sim->now_ns);
		return;
	}
	SIM_CHECK(host->sim, out->data_len <=
				     MAX((uint32_t)host->path.segment_max, 2000u));
	check_window(host, out);
	host->retransmissions += out->is_retransmission;
	put_payload(payload, out);
	/* answers of no connection have whole checksums */
	host->with_pseudo_sum = pcb != NULL;
	if (host->path.with_checksum && pcb)
		check_pseudo_sum(host, out);
	do {
		uint32_t len = MIN(size, out->data_len - offset);

		emit_piece(host, out, payload, offset, len);
		offset += len;
	} while (offset < out->data_len);
}

static void *sim_alloc(void *ctx, size_t size)
{
	struct sim_host *host = ctx;

	host->memory += size;
	return calloc(1, size);
}

static void sim_release(void *ctx, void *mem, size_t size)
{
	struct sim_host *host = ctx;

	host->memory -= size;
	free(mem);
}

static bool sim_path(void *ctx, const struct flow_key *key UNUSED,
		     struct tcp_path *path_out)
{
	struct sim_host *host = ctx;

	*path_out = host->path;
	return true;
}

/* Each byte that is followed arrives once, in order, after it was sent. */
static void sim_stamped(void *ctx, struct tcp_pcb *pcb, enum tcp_stamp what,
			uint32_t byte, uint64_t now_ns)
{
	struct sim_host *host = ctx;
	struct sim_conn *conn = tcp_user(pcb);

	SIM_CHECK(host->sim, now_ns == host->sim->now_ns);
	if (what == TCP_STAMP_SENT)
		conn->stamp_sent_end = MAX(conn->stamp_sent_end, byte + 1);
	if (what != TCP_STAMP_ACKED)
		return;
	SIM_CHECK(host->sim, byte < conn->stamp_sent_end);
	SIM_CHECK(host->sim, byte >= conn->stamp_acked_end);
	conn->stamp_acked_end = byte + 1;
	conn->stamps_acked++;
}

static const struct tcp_ops sim_ops = {
	.emit = sim_emit,
	.alloc = sim_alloc,
	.release = sim_release,
	.path = sim_path,
	.stamped = sim_stamped,
	.stray = tcp_stray_refuse,
	.no_room_ns = sim_no_room_ns,
};

/* ---- applications ---- */

static void pace(struct sim *sim, struct tcp_pcb *pcb, uint64_t rate)
{
	struct tcp_settings settings;

	tcp_get_settings(pcb, &settings);
	settings.max_pacing_rate = rate;
	CHECK_EQ(tcp_set_settings(pcb, &settings, sim->now_ns), 0);
}

static struct sim_conn *conn_create(struct sim_host *host, struct tcp_pcb *pcb,
				    const struct sim_app *app, bool is_client)
{
	struct sim_conn *conn = calloc(1, sizeof(*conn));
	const struct flow_key *key = tcp_key(pcb);
	__be16 client_port = is_client ? key->local_port : key->remote_port;

	CHECK(conn != NULL);
	conn->host = host;
	conn->pcb = pcb;
	conn->app = *app;
	conn->is_client = is_client;
	conn->out_mark = (uint8_t)(2 * be16toh(client_port) + is_client);
	conn->in_mark = (uint8_t)(2 * be16toh(client_port) + !is_client);
	list_init(&conn->unread);
	list_push_back(&host->conns, &conn->link);
	tcp_set_user(pcb, conn);
	tcp_set_oob_inline(pcb, true);
	if (app->max_pacing_rate)
		pace(host->sim, pcb, app->max_pacing_rate);
	if (app->nodelay)
		tcp_set_nodelay(pcb, true, host->sim->now_ns);
	if (app->keepalive_ns)
		CHECK_EQ(tcp_set_keepalive(pcb, true, app->keepalive_ns,
					   NS_PER_SEC, 9, host->sim->now_ns),
			 0);
	return conn;
}

static void check_bytes(struct sim_conn *conn, const struct pkt *pkt)
{
	for (uint32_t i = 0; i < pkt->len; i++)
		SIM_CHECK(conn->host->sim,
			  pkt->data[i] == sim_stream_byte(conn->in_mark,
						      conn->received + i));
	conn->received += pkt->len;
}

/* Up to `limit` bytes of what was taken. */
static void read_some(struct sim_conn *conn, uint32_t limit)
{
	uint32_t done = 0;

	while (!list_is_empty(&conn->unread) && done < limit) {
		struct pkt *pkt = pkt_from_link(conn->unread.next);

		list_remove(&pkt->link);
		check_bytes(conn, pkt);
		done += pkt->len;
		pkt_put(pkt);
	}
	conn->unread_len -= done;
	conn->done_ns = conn->host->sim->now_ns;
	if (conn->pcb)
		tcp_recved(conn->pcb, done, conn->host->sim->now_ns);
}

static void app_read(struct sim_conn *conn)
{
	struct sim *sim = conn->host->sim;
	uint32_t len;

	if (!conn->pcb || conn->is_gone)
		return;
	if (conn->app.read_size) {
		if (!conn->next_read_ns)
			conn->next_read_ns = sim->now_ns;
		if (sim->now_ns < conn->next_read_ns)
			return;
		conn->next_read_ns = sim->now_ns + conn->app.read_every_ns;
	}
	/* a mark ends it before the end */
	while ((len = tcp_take(conn->pcb, UINT32_MAX, &conn->unread)))
		conn->unread_len += len;
	if (conn->unread_len)
		read_some(conn, conn->app.read_size ? conn->app.read_size
						    : UINT32_MAX);
	if (tcp_at_end(conn->pcb) && !conn->unread_len)
		conn->has_end = true;
}

static bool write_one(struct sim_conn *conn)
{
	struct sim_host *host = conn->host;
	uint32_t len = tcp_sndbuf(conn->pcb);
	struct pkt *pkt;

	len = MIN(len, conn->app.write_size ? conn->app.write_size
					    : tcp_mss(conn->pcb));
	len = (uint32_t)MIN((uint64_t)len, conn->app.to_send - conn->sent);
	if (!len)
		return false;
	pkt = take_pkt(&host->tx_pool, SIM_BUF_SIZE);
	len = MIN(len, pkt_tailroom(pkt));
	pkt_append(pkt, len);
	for (uint32_t i = 0; i < len; i++)
		pkt->data[i] = sim_stream_byte(conn->out_mark, conn->sent + i);
	SIM_CHECK(host->sim,
		  tcp_write_with(conn->pcb, pkt,
				 (conn->app.is_urgent ? TCP_WRITE_URGENT : 0) |
				 (conn->app.is_stamped ? TCP_WRITE_STAMP : 0)) ==
			  0);
	conn->stamps += conn->app.is_stamped;
	conn->sent += len;
	return true;
}

void sim_close(struct sim_conn *conn)
{
	pkt_put_list(&conn->unread);
	conn->unread_len = 0;
	if (!conn->pcb)
		return;
	tcp_close(conn->pcb, conn->host->sim->now_ns);
	conn->pcb = NULL;
}

static void app_write(struct sim_conn *conn)
{
	uint64_t now_ns = conn->host->sim->now_ns;

	/* it may have died while it waited to be accepted; an event says so */
	if (!conn->pcb || !conn->is_connected || tcp_error(conn->pcb))
		return;
	while (write_one(conn))
		;
	tcp_output(conn->pcb, now_ns);
	if (conn->app.abort_after && conn->sent >= conn->app.abort_after) {
		pkt_put_list(&conn->unread);
		tcp_abort(conn->pcb, now_ns);
		conn->pcb = NULL;
		conn->was_aborted = true;
		return;
	}
	if (conn->sent == conn->app.to_send && !conn->app.stays_open &&
	    !conn->is_shut && (!conn->app.closes_last || conn->has_end)) {
		conn->is_shut = true;
		SIM_CHECK(conn->host->sim, tcp_shutdown(conn->pcb, now_ns) == 0);
	}
	if (conn->is_shut && (conn->has_end || conn->app.leaves))
		sim_close(conn);
}

static void accept_all(struct sim_host *host)
{
	struct tcp_pcb *pcb;

	while ((pcb = tcp_accept(host->listener))) {
		struct sim_conn *conn = conn_create(host, pcb,
						    &host->accept_app, false);

		conn->is_connected = true;
		conn->connected_ns = host->sim->now_ns;
		app_read(conn);
		app_write(conn);
	}
}

static void on_event(struct sim_host *host, const struct tcp_event *event)
{
	struct sim_conn *conn = event->user;

	if (event->pcb == host->listener) {
		if (event->what & TCP_EV_ACCEPT)
			accept_all(host);
		return;
	}
	if (event->what & TCP_EV_GONE) {
		conn->is_gone = true;
		return;
	}
	SIM_CHECK(host->sim, conn->pcb == event->pcb);
	if (event->what & TCP_EV_CONNECTED) {
		conn->is_connected = true;
		conn->connected_ns = host->sim->now_ns;
	}
	if (event->what & TCP_EV_READABLE)
		app_read(conn);
	if (event->what & TCP_EV_ERROR) {
		conn->error = tcp_error(conn->pcb);
		sim_close(conn);
		return;
	}
	app_write(conn);
}

static void drain_events(struct sim_host *host)
{
	struct tcp_event event;

	while (tcp_event_next(host->table, &event))
		on_event(host, &event);
}

/* Slow readers whose time has come; when the next one's comes. */
static uint64_t run_readers(struct sim_host *host)
{
	uint64_t next_ns = UINT64_MAX, now_ns = host->sim->now_ns;
	struct sim_conn *conn;

	LIST_FOR_EACH(conn, &host->conns, link) {
		if (!conn->pcb || !conn->app.read_size || !conn->next_read_ns)
			continue;
		if (now_ns >= conn->next_read_ns) {
			app_read(conn);
			app_write(conn);
		}
		if (conn->pcb && !conn->has_end)
			next_ns = MIN(next_ns, conn->next_read_ns);
	}
	return next_ns;
}

/* ---- the world ---- */

static void host_init(struct sim *sim, int index,
		      const struct tcp_params *params,
		      const struct impair_params *link)
{
	struct sim_host *host = &sim->host[index];
	struct ip_addr v6 = { .byte = { 0x20, 1, 0xd, 0xb8,
					[15] = (uint8_t)(index + 1) } };
	struct tcp_params own = *params;

	host->sim = sim;
	host->peer = &sim->host[!index];
	host->addr = sim->setup.is_ipv6
			     ? v6
			     : ip_addr_from_v4(htobe32(0x0a000001u +
						       (uint32_t)index));
	host->path.mtu = MTU;
	host->path.with_checksum = sim->setup.with_checksum;
	host->path.segment_max = sim->setup.segment_max;
	own.fastopen = sim->setup.fastopen;
	own.secret.word[0] = rand_u64(&sim->rand);
	own.secret.word[1] = rand_u64(&sim->rand);
	list_init(&host->conns);
	pkt_pool_init(&host->rx_pool, RX_HEADROOM);
	pkt_pool_init(&host->tx_pool, 0);
	pkt_pool_init(&host->borrowers, 0);
	CHECK(pkt_pool_grow(&host->borrowers, 4096, 0) == 0);
	timer_wheel_init(&host->wheel, sim->now_ns);
	host->table = tcp_table_create(&own, &sim_ops, host, &host->wheel,
				       &host->borrowers);
	CHECK(host->table != NULL);
	host->out = impair_create(link, rand_u64(&sim->rand), &frame_ops, host);
	CHECK(host->out != NULL);
}

void sim_init(struct sim *sim, uint64_t seed, const struct tcp_params *params,
	      const struct impair_params link[2])
{
	struct sim_setup plain = { .poll_every_ns = 0 };

	sim_init_with(sim, seed, params, link, &plain);
}

void sim_init_with(struct sim *sim, uint64_t seed,
		   const struct tcp_params *params,
		   const struct impair_params link[2],
		   const struct sim_setup *setup)
{
	const char *file = getenv("SIM_PCAP");

	memset(sim, 0, sizeof(*sim));
	sim->seed = seed;
	sim->setup = *setup;
	rand_init(&sim->rand, seed);
	/* a virtual clock that begins anywhere, so that wrapping is seen */
	sim->now_ns = NS_PER_SEC +
		      rand_below(&sim->rand, UINT64_C(1) << 53);
	if (setup->mtu_change_ns)
		sim->mtu_change_at_ns = sim->now_ns + setup->mtu_change_ns;
	frame_ops = impair_bytes_ops;
	frame_ops.report = frame_report;
	frame_ops.mark = frame_mark;
	if (file && (sim->capture = fopen(file, "w")))
		CHECK(pcap_writer_init(&sim->pcap, PCAP_RAW_IP, 65536,
				       capture_write, sim->capture) == 0);
	for (int i = 0; i < 2; i++)
		host_init(sim, i, params, &link[i]);
}

static void host_finish(struct sim_host *host, bool may_be_open)
{
	struct sim *sim = host->sim;
	struct sim_conn *conn, *following;

	LIST_FOR_EACH_SAFE(conn, following, &host->conns, link) {
		SIM_CHECK(sim, may_be_open || !conn->pcb);
		sim_close(conn);
	}
	if (host->listener)
		tcp_close(host->listener, sim->now_ns);
	drain_events(host);
	SIM_CHECK(sim, tcp_counts(host->table)->rto_avoidable == 0);
	if (!may_be_open)
		SIM_CHECK(sim, tcp_pcb_cnt(host->table) == 0);
	tcp_table_destroy(host->table);
	SIM_CHECK(sim, host->memory == 0);
	SIM_CHECK(sim, timer_wheel_pending_cnt(&host->wheel) == 0);
	LIST_FOR_EACH_SAFE(conn, following, &host->conns, link)
		free(conn);
	impair_destroy(host->out);
	SIM_CHECK(sim, pkt_pool_destroy(&host->rx_pool) == 0);
	SIM_CHECK(sim, pkt_pool_destroy(&host->tx_pool) == 0);
	SIM_CHECK(sim, pkt_pool_destroy(&host->borrowers) == 0);
}

void sim_finish(struct sim *sim, bool may_be_open)
{
	if (!may_be_open) {
		/* whatever still travels, and TIME_WAIT */
		sim_run(sim, sim->now_ns + 400 * NS_PER_SEC);
		for (int i = 0; i < 2; i++)
			SIM_CHECK(sim, tcp_time_wait_cnt(sim->host[i].table) ==
					       0);
	}
	for (int i = 0; i < 2; i++)
		host_finish(&sim->host[i], may_be_open);
	if (sim->capture)
		fclose(sim->capture);
}

/* Not all of those that open at once are early. */
static void limit_early(struct sim_host *host)
{
	struct tcp_settings settings;

	tcp_get_settings(host->listener, &settings);
	settings.fastopen_max = 4;
	CHECK_EQ(tcp_set_settings(host->listener, &settings, host->sim->now_ns),
		 0);
}

void sim_listen(struct sim *sim, const struct sim_app *app)
{
	struct sim_host *host = &sim->host[1];

	host->accept_app = *app;
	host->listener = tcp_new(host->table);
	CHECK(host->listener != NULL);
	CHECK_EQ(tcp_bind(host->listener, &host->addr, htobe16(SERVER_PORT)),
		 0);
	if (sim->setup.fastopen)
		limit_early(host);
	CHECK_EQ(tcp_listen(host->listener, 1024), 0);
}

/* What a SYN shall carry; NULL: nothing is to be sent. */
static struct pkt *first_packet(struct sim_conn *conn)
{
	struct pkt *pkt;
	uint32_t len = 1400;

	len = (uint32_t)MIN((uint64_t)len, conn->app.to_send);
	if (!len || conn->app.is_urgent || conn->app.is_stamped)
		return NULL;
	pkt = take_pkt(&conn->host->tx_pool, SIM_BUF_SIZE);
	pkt_append(pkt, len);
	for (uint32_t i = 0; i < len; i++)
		pkt->data[i] = sim_stream_byte(conn->out_mark, i);
	conn->sent = len;
	return pkt;
}

struct sim_conn *sim_connect(struct sim *sim, const struct sim_app *app)
{
	struct sim_host *host = &sim->host[0];
	struct tcp_pcb *pcb = tcp_new(host->table);
	struct sim_conn *conn, *other;
	uint16_t port = FIRST_CLIENT_PORT;

	CHECK(pcb != NULL);
	LIST_FOR_EACH(other, &host->conns, link)
		port++;
	CHECK_EQ(tcp_bind(pcb, &host->addr, htobe16(port)), 0);
	conn = conn_create(host, pcb, app, true);
	if (sim->setup.fastopen & TCP_FASTOPEN_CLIENT)
		CHECK_EQ(tcp_connect_fast(pcb, &host->peer->addr,
					  htobe16(SERVER_PORT), &host->path,
					  first_packet(conn), sim->now_ns), 0);
	else
		CHECK_EQ(tcp_connect(pcb, &host->peer->addr,
				     htobe16(SERVER_PORT), &host->path,
				     sim->now_ns), 0);
	return conn;
}

struct sim_conn *sim_other_end(const struct sim_conn *conn)
{
	struct sim_conn *other;

	LIST_FOR_EACH(other, &conn->host->peer->conns, link)
		if (other->out_mark == conn->in_mark)
			return other;
	return NULL;
}

/* A chain of buffers of `part` bytes; the first one has the whole header. */
static struct pkt *put_in_parts(struct sim_host *to, const uint8_t *data,
				uint32_t len, uint32_t part)
{
	struct pkt *first = take_pkt(&to->rx_pool, SIM_BUF_SIZE), *last = first;
	/* the longest header */
	uint32_t here = MAX(part, 60u);

	here = MIN(len, here);
	memcpy(pkt_append(first, here), data, here);
	for (uint32_t done = here; done < len; done += here) {
		here = MIN(len - done, part);
		last->next_part = take_pkt(&to->rx_pool, SIM_BUF_SIZE);
		last = last->next_part;
		memcpy(pkt_append(last, here), data + done, here);
	}
	return first;
}

/* Makes a segment of a frame; false if it is not one for us. */
static bool unwrap(struct sim_host *to, struct impair_bytes *frame,
		   struct tcp_in *in)
{
	uint32_t part = to->sim->setup.rx_part;
	struct wire_ip ip;
	bool is_ours = wire_parse_ip(frame->data, frame->len, &ip) == 0 &&
		       ip.proto == WIRE_PROTO_TCP &&
		       ip_addr_eq(&ip.dst, &to->addr) &&
		       ip.payload_len <= SIM_BUF_SIZE - RX_HEADROOM;

	if (is_ours) {
		memset(in, 0, sizeof(*in));
		in->pkt = put_in_parts(to, frame->data + ip.header_len,
				       ip.payload_len,
				       part ? part : ip.payload_len);
		in->key.local = ip.dst;
		in->key.remote = ip.src;
		in->ecn = ip.tos & 3;
	}
	free(frame);
	return is_ours;
}

/* Up to a batch of what has come; false when there was nothing. */
static bool poll_reference(struct sim_host *host)
{
	struct impair_bytes *frame;
	size_t len;

	frame = impair_recv(host->peer->out, host->sim->now_ns, &len);
	if (!frame)
		return false;
	reference_input(host->reference, frame->data, frame->len);
	free(frame);
	return true;
}

enum { FORGED_ACK = 1 << 30, FORGED_TS = 1000000 };

/* The frame with another acknowledgment and time stamp, and without its payload. False if
 * it is no segment of an open connection. */
static bool forge(struct sim_host *to, const struct impair_bytes *frame,
		  struct tcp_in *in)
{
	struct wire_tcp *header;
	struct wire_ip ip;
	uint32_t len, sum;

	if (wire_parse_ip(frame->data, frame->len, &ip) ||
	    ip.proto != WIRE_PROTO_TCP || !ip_addr_eq(&ip.dst, &to->addr))
		return false;
	header = (void *)(uintptr_t)(frame->data + ip.header_len);
	len = 4u * (header->offset_ae >> 4);
	if (header->flags & WIRE_TCP_SYN || len < sizeof(*header) ||
	    len > ip.payload_len)
		return false;
	memset(in, 0, sizeof(*in));
	in->pkt = put_in_parts(to, (const uint8_t *)header, len, len);
	in->key.local = ip.dst;
	in->key.remote = ip.src;
	header = (void *)in->pkt->data;
	header->flags = WIRE_TCP_ACK;
	header->ack = htobe32(be32toh(header->ack) + FORGED_ACK);
	if (len >= 32 && wire_get_u32(in->pkt->data + 20) == TCP_TS_HEAD)
		wire_put_u32(in->pkt->data + 24,
			     wire_get_u32(in->pkt->data + 24) + FORGED_TS);
	header->check = 0;
	sum = wire_pseudo_sum(&ip.src, &ip.dst, WIRE_PROTO_TCP, len);
	header->check = csum_fold(csum_partial(header, len, sum));
	return true;
}

static bool poll_host(struct sim_host *host)
{
	struct sim *sim = host->sim;
	unsigned cnt = 0, most = sim->setup.poll_every_ns ? POLL_MAX : 1;
	struct tcp_in in[POLL_MAX];
	struct impair_bytes *frame = NULL;
	struct tcp_in forged;
	bool is_forged = false;
	size_t len;

	if (host->reference)
		return poll_reference(host);
	while (cnt < most &&
	       (frame = impair_recv(host->peer->out, sim->now_ns, &len))) {
		if (sim->setup.forge_every && !is_forged &&
		    rand_below(&sim->rand, sim->setup.forge_every) == 0)
			is_forged = forge(host, frame, &forged);
		cnt += unwrap(host, frame, &in[cnt]);
	}
	if (is_forged)
		tcp_input(host->table, &forged, sim->now_ns);
	if (cnt)
		tcp_input_batch(host->table, in, cnt, sim->now_ns);
	drain_events(host);
	return frame != NULL;
}

/* When the host would look for the next frame. */
static uint64_t next_poll_ns(const struct sim *sim, const struct sim_host *host)
{
	uint64_t next_ns = impair_next_ns(host->out), every = sim->setup.poll_every_ns;

	if (!every || next_ns == IMPAIR_NEVER)
		return next_ns;
	return (next_ns + every - 1) / every * every;
}

static void narrow_path(struct sim *sim)
{
	for (int i = 0; i < 2; i++) {
		struct impair_params link = *impair_params(sim->host[i].out);

		link.mtu_bytes = sim->setup.mtu;
		impair_set_params(sim->host[i].out, &link);
	}
	sim->mtu_change_at_ns = 0;
}

static void take_icmp(struct sim_host *host)
{
	if (!host->icmp_at_ns || host->icmp_at_ns > host->sim->now_ns)
		return;
	host->icmp_at_ns = 0;
	tcp_icmp_in(host->table, &host->icmp, host->sim->now_ns);
}

static uint64_t next_event_ns(struct sim *sim)
{
	uint64_t next_ns = UINT64_MAX;

	if (sim->mtu_change_at_ns)
		next_ns = sim->mtu_change_at_ns;
	/* readers first: what they do may send and set timers */
	for (int i = 0; i < 2; i++)
		next_ns = MIN(next_ns, run_readers(&sim->host[i]));
	for (int i = 0; i < 2; i++) {
		struct sim_host *host = &sim->host[i];

		next_ns = MIN(next_ns, next_poll_ns(sim, host));
		if (host->reference)
			next_ns = MIN(next_ns,
				      reference_next_ns(host->reference));
		if (host->icmp_at_ns)
			next_ns = MIN(next_ns, host->icmp_at_ns);
		next_ns = MIN(next_ns, timer_wheel_next_ns(&host->wheel));
	}
	return next_ns;
}

void sim_more(struct sim_conn *conn)
{
	app_write(conn);
}

bool sim_step(struct sim *sim, uint64_t until_ns)
{
	uint64_t next_ns;

	for (int i = 0; i < 2; i++)
		drain_events(&sim->host[i]);
	next_ns = next_event_ns(sim);
	if (next_ns > until_ns) {
		sim->now_ns = MAX(sim->now_ns, until_ns);
		return false;
	}
	sim->now_ns = MAX(sim->now_ns, next_ns);
	sim->steps++;
	if (sim->mtu_change_at_ns && sim->now_ns >= sim->mtu_change_at_ns)
		narrow_path(sim);
	for (int i = 0; i < 2; i++) {
		struct sim_host *host = &sim->host[i];

		if (host->reference)
			reference_tick(host->reference);
		take_icmp(host);
		timer_wheel_advance(&host->wheel, sim->now_ns);
		drain_events(host);
		while (next_poll_ns(sim, host->peer) <= sim->now_ns &&
		       poll_host(host))
			;
		sim_check_invariants(host);
		if (sim->setup.move_every &&
		    sim->steps % sim->setup.move_every == 0)
			sim_move_all(host);
	}
	return true;
}

void sim_run(struct sim *sim, uint64_t until_ns)
{
	while (sim_step(sim, until_ns))
		;
}

static bool has_ended(const struct sim_host *host)
{
	struct sim_conn *conn;

	LIST_FOR_EACH(conn, &host->conns, link)
		if (!conn->is_gone)
			return false;
	return true;
}

bool sim_run_to_end(struct sim *sim, uint64_t until_ns)
{
	while (sim_step(sim, until_ns))
		if (has_ended(&sim->host[0]) && has_ended(&sim->host[1]) &&
		    !list_is_empty(&sim->host[0].conns))
			return true;
	return has_ended(&sim->host[0]) && has_ended(&sim->host[1]);
}

struct impair_params sim_link(uint64_t rate_bps, uint64_t delay_ns)
{
	uint64_t queue = rate_bps * delay_ns / (4 * NS_PER_SEC);

	return (struct impair_params){
		.rate_bps = rate_bps,
		.delay_ns = delay_ns,
		.queue_bytes = MAX(queue, UINT64_C(30) * MTU),
	};
}
