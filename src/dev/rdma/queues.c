/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's objects behind a ring: completion queues, a channel for their events,
 * a queue pair of raw Ethernet frames. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "dev/rdma/rdma_priv.h"

/* The slot of an fd that libibverbs keeps in an int. */
static _Atomic int *slot_of(int *fd)
{
	_Static_assert(sizeof(_Atomic int) == sizeof(int),
		       "one is stored like the other");
	return (_Atomic int *)fd;
}

void rdma_hide_fd(int *fd)
{
	int err = services_adopt_fd(*fd, slot_of(fd));

	if (err)
		log_dbg("an fd of libibverbs is not hidden (%s)",
			strerror(-err));
}

void rdma_show_fd(int *fd)
{
	int plain;

	if (*fd < 0)
		return;
	plain = real.fcntl(*fd, F_DUPFD_CLOEXEC, (void *)3);
	/* Without another number it is closed here, since the slot is about to be freed.
	 * libibverbs has nothing to close then. */
	services_close_fd(slot_of(fd));
	*fd = plain;
}

static void make_nonblocking(int fd)
{
	long flags = real.fcntl(fd, F_GETFL, NULL);

	if (flags >= 0)
		(void)!real.fcntl(fd, F_SETFL,
				  (void *)(flags | O_NONBLOCK));
}

static int open_channel(struct rdma_dev *dev, struct rdma_queues *queues)
{
	queues->chan = ibv_create_comp_channel(dev->ctx);
	if (!queues->chan)
		return -errno;
	make_nonblocking(queues->chan->fd);
	rdma_hide_fd(&queues->chan->fd);
	queues->chan_fd = slot_of(&queues->chan->fd);
	return 0;
}

/* What the kernel has taken away it says EIO to, which changes nothing. */
static bool note_end(int err, const char *what)
{
	if (err)
		log_dbg("%s is not destroyed (%s)", what, strerror(err));
	return !err;
}

static bool end_cq(struct ibv_cq *cq)
{
	return note_end(ibv_destroy_cq(cq), "a completion queue");
}

/* While a queue is there, of which the kernel says that it is not destroyed, libibverbs keeps
 * the channel. Its fd would stay with the program. */
static void close_channel(struct rdma_queues *queues, bool is_unused)
{
	if (!is_unused) {
		services_close_fd(queues->chan_fd);
		return;
	}
	rdma_show_fd(&queues->chan->fd);
	(void)!ibv_destroy_comp_channel(queues->chan);
}

static void moderate(const char *name, struct ibv_cq *cq,
		     const struct aim_choice *choice)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { choice->cnt, choice->us },
	};
	int err = ibv_modify_cq(cq, &attr);

	log_dbg("%s: an interrupt waits for %u packets, %u us at most%s%s", name,
		choice->cnt, choice->us, err ? ": " : "",
		err ? strerror(err) : "");
}

static int to_state(struct rdma_dev *dev, struct ibv_qp *qp,
		    enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.port_num = (uint8_t)dev->port,
	};

	return -ibv_modify_qp(qp, &attr,
			      state == IBV_QPS_INIT ?
				      IBV_QP_STATE | IBV_QP_PORT :
				      IBV_QP_STATE);
}

static int start(struct rdma_dev *dev, struct ibv_qp *qp)
{
	int err = to_state(dev, qp, IBV_QPS_INIT);

	if (!err)
		err = to_state(dev, qp, IBV_QPS_RTR);
	if (!err)
		err = to_state(dev, qp, IBV_QPS_RTS);
	return err;
}

/* A pair whose sends can be written part by part, or NULL. */
static struct ibv_qp *create_parts_pair(struct rdma_dev *dev,
					struct rdma_queues *queues,
					struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex parts = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dev->ctx, &parts);

	if (!qp) {
		log_dbg("%s: sends are posted as a whole (%s)", dev->dev.name,
			strerror(errno));
		return NULL;
	}
	attr->cap = parts.cap;
	queues->tx_parts = ibv_qp_to_qp_ex(qp);
	return qp;
}

/* libmlx5 has registers for 16 queues, and the further ones share those. What belongs to a
 * thread domain has one of its own. */
static int open_domain(struct rdma_dev *dev, struct rdma_queues *queues)
{
	struct ibv_td_init_attr td = { 0 };
	struct ibv_parent_domain_init_attr domain = { .pd = dev->pd };
	int err;

	queues->td = ibv_alloc_td(dev->ctx, &td);
	if (!queues->td)
		return -errno;
	domain.td = queues->td;
	queues->domain = ibv_alloc_parent_domain(dev->ctx, &domain);
	if (queues->domain)
		return 0;
	err = -errno;
	(void)!ibv_dealloc_td(queues->td);
	queues->td = NULL;
	return err;
}

static void close_domain(struct rdma_queues *queues)
{
	if (!queues->domain)
		return;
	(void)!ibv_dealloc_pd(queues->domain);
	(void)!ibv_dealloc_td(queues->td);
	queues->domain = NULL;
	queues->td = NULL;
}

/* A pair that has a doorbell register of its own, or NULL. */
static struct ibv_qp *create_alone(struct rdma_dev *dev, struct rdma_queues *queues,
				   struct ibv_qp_init_attr *attr)
{
	int err = open_domain(dev, queues);
	struct ibv_qp *qp = err ? NULL : ibv_create_qp(queues->domain, attr);

	if (qp)
		return qp;
	log_dbg("%s: no doorbell register for one queue pair alone (%s)",
		dev->dev.name, strerror(err ? -err : errno));
	close_domain(queues);
	return NULL;
}

static struct ibv_qp *create_pair(struct rdma_dev *dev, struct rdma_queues *queues,
				  struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = NULL;

	if (dev->kind->wants_parts)
		qp = create_parts_pair(dev, queues, attr);
	else if (dev->kind->rings_bells)
		qp = create_alone(dev, queues, attr);
	return qp ? qp : ibv_create_qp(dev->pd, attr);
}

static void end_pair(struct rdma_queues *queues)
{
	(void)note_end(ibv_destroy_qp(queues->qp), "a queue pair");
	close_domain(queues);
}

static int open_pair(struct rdma_dev *dev, struct rdma_queues *queues)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = queues->tx_cq,
		.recv_cq = queues->rx_cq ? queues->rx_cq : queues->tx_cq,
		.cap = {
			.max_send_wr = queues->tx_size,
			.max_recv_wr = queues->rx_size,
			.max_send_sge = 1,
			.max_recv_sge = queues->rx_size ? 1 : 0,
			.max_inline_data = queues->inline_max,
		},
		.qp_type = IBV_QPT_RAW_PACKET,
	};
	int err;

	queues->qp = create_pair(dev, queues, &attr);
	if (!queues->qp)
		return -errno;
	/* it may give more than was asked for, and says so here */
	queues->inline_max = MIN(attr.cap.max_inline_data, queues->inline_max);
	err = start(dev, queues->qp);
	if (err)
		end_pair(queues);
	return err;
}

static uint32_t power_of_two_within(uint32_t wanted, uint32_t limit)
{
	uint32_t size = 1;

	while (size < wanted && size * 2 <= limit)
		size *= 2;
	return size;
}

/* A queue whose completions are read part by part: the length, and what is asked for.
 * It is polled under the stack's lock alone, so libibverbs need not lock. */
static struct ibv_cq_ex *open_parts_cq(struct rdma_dev *dev, uint32_t size,
				       struct ibv_comp_channel *chan,
				       uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = size,
		.channel = chan,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(dev->ctx, &attr);

	if (cq)
		return cq;
	/* not all drivers know the flag */
	attr.comp_mask = 0;
	attr.flags = 0;
	return ibv_create_cq_ex(dev->ctx, &attr);
}

/* A queue whose stamps are by the counter that we read, which is not a matter of course:
 * some cards can give the time of day instead. */
static struct ibv_cq_ex *open_stamped_cq(struct rdma_dev *dev, uint32_t size,
					 struct ibv_comp_channel *chan)
{
	struct ibv_cq_ex *cq;

	if (dev->stamps.kind == RDMA_STAMPS_OFF)
		return NULL;
	cq = open_parts_cq(dev, size, chan, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	if (!cq)
		log_dbg("%s: no completions with time stamps (%s)", dev->dev.name,
			strerror(errno));
	return cq;
}

/* `parts` is the queue if it is there already. */
static int open_cq(struct rdma_dev *dev, uint32_t size,
		   struct ibv_comp_channel *chan, struct ibv_cq_ex *parts,
		   struct ibv_cq **cq_out)
{
	*cq_out = parts ? ibv_cq_ex_to_cq(parts) :
			  ibv_create_cq(dev->ctx, (int)size, NULL, chan, 0);
	return *cq_out ? 0 : -errno;
}

static int open_rx_cq(struct rdma_dev *dev, struct rdma_queues *queues)
{
	uint32_t size = queues->rx_size - 1;

	queues->rx_stamped = open_stamped_cq(dev, size, queues->chan);
	queues->rx_parts = queues->rx_stamped;
	if (!queues->rx_parts && dev->kind->wants_parts)
		queues->rx_parts = open_parts_cq(dev, size, queues->chan, 0);
	return open_cq(dev, size, queues->chan, queues->rx_parts, &queues->rx_cq);
}

static int open_tx_cq(struct rdma_dev *dev, struct rdma_queues *queues)
{
	uint32_t size = queues->tx_size - 1;

	queues->tx_stamped = open_stamped_cq(dev, size, queues->chan);
	return open_cq(dev, size, queues->chan, queues->tx_stamped,
		       &queues->tx_cq);
}

int rdma_queues_open(struct rdma_dev *dev, struct rdma_queues *queues)
{
	uint32_t limit = MIN(dev->max_wr, dev->max_cqe);
	bool is_unused = true;
	int err;

	memset(queues, 0, sizeof(*queues));
	dev->kind->size_queues(dev->params, queues);
	queues->rx_size = power_of_two_within(queues->rx_size, limit);
	queues->tx_size = power_of_two_within(queues->tx_size, limit);
	err = open_channel(dev, queues);
	if (err)
		return err;
	err = open_rx_cq(dev, queues);
	if (err)
		goto err_channel;
	if (dev->params->moderation.cnt)
		moderate(dev->dev.name, queues->rx_cq, &dev->params->moderation);
	err = open_tx_cq(dev, queues);
	if (err)
		goto err_rx_cq;
	err = open_pair(dev, queues);
	if (err)
		goto err_tx_cq;
	log_dbg("%s: queues: %u entries to receive, %u to send", dev->dev.name,
		queues->rx_size, queues->tx_size);
	return 0;
err_tx_cq:
	is_unused = end_cq(queues->tx_cq);
err_rx_cq:
	is_unused &= end_cq(queues->rx_cq);
err_channel:
	close_channel(queues, is_unused);
	return err;
}

static int pace_pair(struct ibv_qp *qp, const struct ring_pace *pace)
{
	struct ibv_qp_rate_limit_attr attr = {
		.rate_limit = pace->kbps,
		.max_burst_sz = pace->burst,
		.typical_pkt_sz = pace->frame_len,
	};

	return -ibv_modify_qp_rate_limit(qp, &attr);
}

int rdma_set_pace(struct ring *ring, const struct ring_pace *pace)
{
	return pace_pair(rdma_ring_qp(ring), pace);
}

/* What waits in a paced queue waits long. The kernel's own, fq, has 100 packets of a flow. */
enum { PACED_ENTRIES = 512 };

/* Its completions raise no events: who waits for room looks for them. */
static int open_to_send(struct rdma_dev *dev, struct rdma_queues *queues)
{
	int err;

	dev->kind->size_queues(dev->params, queues);
	queues->rx_size = 0;
	queues->tx_size = power_of_two_within(MIN(queues->tx_size,
						  (uint32_t)PACED_ENTRIES),
					      MIN(dev->max_wr, dev->max_cqe));
	queues->tx_cq = ibv_create_cq(dev->ctx, (int)queues->tx_size - 1, NULL,
				      NULL, 0);
	if (!queues->tx_cq)
		return -errno;
	err = open_pair(dev, queues);
	if (err)
		(void)!ibv_destroy_cq(queues->tx_cq);
	return err;
}

int rdma_queues_open_paced(struct rdma_dev *dev, const struct ring_pace *pace,
			   struct rdma_queues *queues)
{
	int err;

	memset(queues, 0, sizeof(*queues));
	err = open_to_send(dev, queues);
	if (err)
		return err;
	err = pace_pair(queues->qp, pace);
	if (err)
		rdma_queues_close(queues);
	return err;
}

void rdma_queues_close(struct rdma_queues *queues)
{
	bool is_unused;

	end_pair(queues);
	is_unused = end_cq(queues->tx_cq);
	if (!queues->rx_cq)
		return;
	is_unused &= end_cq(queues->rx_cq);
	close_channel(queues, is_unused);
}

/* Each of the two queues on the channel raises an event for each time that it was armed.
 * A second one may come while the first is read. */
enum { EVENTS_MAX = 16 };

static struct rdma_events read_events(struct rdma_queues *queues)
{
	struct rdma_events events = { 0 };
	struct ibv_cq *cq;
	void *context;

	while (events.rx_cnt + events.tx_cnt < EVENTS_MAX &&
	       ibv_get_cq_event(queues->chan, &cq, &context) == 0) {
		if (cq == queues->tx_cq)
			events.tx_cnt++;
		else
			events.rx_cnt++;
	}
	if (events.rx_cnt)
		ibv_ack_cq_events(queues->rx_cq, events.rx_cnt);
	if (events.tx_cnt)
		ibv_ack_cq_events(queues->tx_cq, events.tx_cnt);
	return events;
}

/* Who is not interrupted does not come here, and needs no moderation. */
static void adapt(struct rdma_ring *own)
{
	const struct rdma_dev *dev = own->dev;

	if (aim_adapt(&own->aim, &dev->params->aim, clock_monotonic_ns(),
		      atomic_load_explicit(&own->armed_pkts,
					   memory_order_relaxed),
		      atomic_load_explicit(&own->armed_bytes,
					   memory_order_relaxed)))
		moderate(dev->dev.name, own->queues.rx_cq, &own->aim.now);
}

struct rdma_events rdma_queues_acknowledge(struct rdma_ring *own)
{
	struct rdma_events events;
	int state;

	/* libibverbs reads, and writes, by calls at which a cancelled thread would
	 * end */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	events = read_events(&own->queues);
	if (events.rx_cnt)
		adapt(own);
	pthread_setcancelstate(state, NULL);
	return events;
}

/* A clock that is corrected may go back a little. The order of packets is certain, so
 * the later one gets the time of the one before. 0: nobody knows. */
static uint64_t next_stamp(const struct rdma_ring *own, uint64_t ticks,
			   uint64_t *last)
{
	uint64_t ns = stamps_ns(&own->dev->stamps, ticks);

	if (!ns)
		return 0;
	if (ns < *last && *last - ns < NS_PER_MS)
		ns = *last;
	*last = ns;
	return ns;
}

static void stamp(struct pkt *pkt, uint64_t ns)
{
	if (!ns)
		return;
	pkt->card_ns = ns;
	pkt->flags |= PKT_CARD_STAMPED;
}

COLD void rdma_stamp(struct rdma_ring *own, struct pkt *pkt, uint64_t ticks)
{
	if (own->queues.rx_stamped)
		stamp(pkt, next_stamp(own, ticks, &own->stamped_ns));
}

COLD void rdma_stamp_left(struct rdma_ring *own, struct pkt *record, uint64_t ticks)
{
	stamp(record, next_stamp(own, ticks, &own->left_ns));
}
