/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Settings that a program may set, though few change them. All connections of a table
 * share one set until somebody changes theirs. The children of a listener share its
 * set.
 */
#include "tcp/tcp_priv.h"

#include <errno.h>

/* A set that is not the table's. */
struct own {
	struct tcp_settings settings;
	/* pcbs that have it */
	uint32_t refs;
};

static struct own *own_of(struct tcp_pcb *pcb)
{
	return CONTAINER_OF(pcb->settings, struct own, settings);
}

static bool has_own(const struct tcp_pcb *pcb)
{
	return pcb->settings != &pcb->table->settings;
}

void tcp_settings_init(struct tcp_table *table)
{
	const struct tcp_params *params = &table->params;
	struct tcp_settings *s = &table->settings;

	s->keep_idle_ns = params->keepalive_idle_ns;
	s->keep_interval_ns = params->keepalive_interval_ns;
	s->keep_probes = params->keepalive_probes;
	s->fin_wait_2_ns = params->fin_wait_2_ns;
	s->max_pacing_rate = TCP_NO_PACING;
	s->notsent_lowat = params->notsent_lowat;
	s->thin_linear_timeouts = params->thin_linear_timeouts;
}

void tcp_settings_put(struct tcp_pcb *pcb)
{
	struct tcp_table *table = pcb->table;
	struct own *own;

	if (!has_own(pcb))
		return;
	own = own_of(pcb);
	pcb->settings = &table->settings;
	if (--own->refs == 0)
		table->ops->release(table->ctx, own, sizeof(*own));
}

void tcp_settings_share(struct tcp_pcb *pcb, struct tcp_pcb *with)
{
	tcp_settings_put(pcb);
	pcb->settings = with->settings;
	if (has_own(with))
		own_of(with)->refs++;
	tcp_pace_update(pcb);
}

int tcp_settings_own(struct tcp_pcb *pcb)
{
	struct tcp_table *table = pcb->table;
	struct own *own;

	if (has_own(pcb) && own_of(pcb)->refs == 1)
		return 0;
	own = table->ops->alloc(table->ctx, sizeof(*own));
	if (!own)
		return -ENOMEM;
	own->settings = *pcb->settings;
	own->refs = 1;
	tcp_settings_put(pcb);
	pcb->settings = &own->settings;
	return 0;
}

void tcp_settings_drop_usual(struct tcp_pcb *pcb)
{
	if (memcmp(pcb->settings, &pcb->table->settings,
		   sizeof(*pcb->settings)) == 0)
		tcp_settings_put(pcb);
}

const struct tcp_params *tcp_params_of(const struct tcp_pcb *pcb)
{
	return &pcb->table->params;
}

void tcp_get_settings(const struct tcp_pcb *pcb,
		      struct tcp_settings *settings_out)
{
	*settings_out = *pcb->settings;
}

/* What a window of so few steps of the scale loses by rounding would be all that is left of
 * it, for ever. */
enum { SCALE_STEPS_LEAST = 4 };

uint32_t tcp_rcv_buf_within(const struct tcp_pcb *pcb, uint64_t bytes)
{
	uint32_t clamp = pcb->settings->window_clamp;
	uint32_t least = pcb->rcv_scale ? (uint32_t)SCALE_STEPS_LEAST << pcb->rcv_scale : 0;

	bytes = MIN(bytes, (uint64_t)UINT32_MAX);
	if (clamp)
		bytes = MIN(bytes, (uint64_t)clamp);
	return MAX((uint32_t)bytes, least);
}

/* Room that was granted stays; the window only shrinks as data arrives. */
static void apply_clamp(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint32_t usual = pcb->table->params.rcv_buf;

	if (!(pcb->flags & TF_RCV_BUF_FIXED))
		pcb->rcv_buf = MAX(pcb->rcv_buf, usual);
	pcb->rcv_buf = tcp_rcv_buf_within(pcb, pcb->rcv_buf);
	pcb->is_header_stale = true;
	tcp_recved(pcb, 0, now_ns);
}

int tcp_set_settings(struct tcp_pcb *pcb, const struct tcp_settings *settings,
		     uint64_t now_ns)
{
	bool clamps = settings->window_clamp != pcb->settings->window_clamp;
	bool is_idle_new = settings->keep_idle_ns != pcb->settings->keep_idle_ns;
	int rc;

	if ((settings->mss_max && settings->mss_max < TCP_MSS_LEAST) ||
	    settings->saved_syn_front > TCP_SAVED_FRONT_MAX)
		return -EINVAL;
	rc = tcp_settings_own(pcb);
	if (rc)
		return rc;
	*pcb->settings = *settings;
	if (is_idle_new)
		tcp_timer_move_keepalive(pcb, now_ns);
	if (clamps)
		apply_clamp(pcb, now_ns);
	tcp_pace_update(pcb);
	return 0;
}

int tcp_set_keepalive(struct tcp_pcb *pcb, bool on, uint64_t idle_ns,
		      uint64_t interval_ns, uint8_t probes, uint64_t now_ns)
{
	bool has_times = idle_ns || interval_ns || probes;
	bool was_on = pcb->flags & TF_KEEPALIVE;
	int rc = has_times ? tcp_settings_own(pcb) : 0;

	if (rc)
		return rc;
	/* probes that are under way go on */
	if (!has_times && on == was_on)
		return 0;
	pcb->flags = on ? pcb->flags | TF_KEEPALIVE
			: pcb->flags & ~TF_KEEPALIVE;
	if (idle_ns)
		pcb->settings->keep_idle_ns = idle_ns;
	if (interval_ns)
		pcb->settings->keep_interval_ns = interval_ns;
	if (probes)
		pcb->settings->keep_probes = probes;
	if (on && was_on)
		tcp_timer_move_keepalive(pcb, now_ns);
	else
		tcp_timer_restart_keepalive(pcb, now_ns);
	return 0;
}

int tcp_set_user_timeout(struct tcp_pcb *pcb, uint64_t timeout_ns)
{
	int rc = tcp_settings_own(pcb);

	if (!rc)
		pcb->settings->user_timeout_ns = timeout_ns;
	return rc;
}

uint8_t tcp_defer_accept_timeouts(const struct tcp_params *params,
				  uint64_t time_ns)
{
	uint64_t timeout_ns = params->rto_initial_ns, sum_ns = timeout_ns;
	uint8_t cnt = time_ns > 0;

	while (time_ns > sum_ns && cnt < UINT8_MAX) {
		timeout_ns = MIN(2 * timeout_ns, params->rto_max_ns);
		sum_ns += timeout_ns;
		cnt++;
	}
	return cnt;
}
