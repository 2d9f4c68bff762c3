/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cards and their clockwork; see card.h. */
#include "config.h"

#include "card.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "check.h"
#include "ctx.h"
#include "files.h"
#include "guard.h"
#include "rdma_cm.h"
#include "steer.h"
#include "sys.h"
#include "tree.h"
#include "umem.h"

enum {
	/* Between looks for doorbells. */
	IDLE_MIN_NS = 30 * 1000,
	IDLE_MAX_NS = 300 * 1000,
	/* Nothing has happened for so long that doorbells may wake us. */
	GUARD_AFTER_NS = 1000 * 1000,
	/* QP and CQ numbers of a real card are never small. */
	FIRST_QPN = 0x40,
	FIRST_CQN = 0x400,
	FIRST_KEY = 0x10,         /* 1 would make the invalid key, 0x100 */
	PCAP_SNAP_LEN = 65535,
};

struct card *the_card;

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t card_now_ns(const struct card *card)
{
	return card->has_virtual_clock ? card->virtual_ns :
					 clock_monotonic_ns();
}

static int write_pcap(void *ctx, const void *data, size_t len)
{
	struct card *card = ctx;
	ssize_t ret = sys_write(card->pcap_fd, data, len);

	return ret == (ssize_t)len ? 0 : ret < 0 ? (int)ret : -EIO;
}

static void open_pcap(struct card *card)
{
	card->pcap_fd = -1;
	if (!card->conf.pcap)
		return;
	card->pcap_fd = sys_openat(AT_FDCWD, card->conf.pcap,
				   O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC,
				   0644);
	if (card->pcap_fd < 0)
		check_die("SOFTCX_PCAP: cannot write %s: %s", card->conf.pcap,
			  strerror(-card->pcap_fd));
	if (pcap_writer_init(&card->pcap, PCAP_ETHERNET, PCAP_SNAP_LEN,
			     write_pcap, card))
		check_die("SOFTCX_PCAP: cannot write %s", card->conf.pcap);
}

void card_capture(struct card *card, const void *frame, size_t len)
{
	if (card->pcap_fd < 0)
		return;
	if (pcap_write(&card->pcap, real_ns(), frame, len))
		check_die("SOFTCX_PCAP: cannot write %s", card->conf.pcap);
}

/* Under the lock, so that a tree is built once. */
static void show_locked(struct card *card)
{
	struct tree_dev shown[CONF_MAX_DEVS];
	int ret;

	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		struct dev *dev = &card->devs[i];

		ret = netdev_query(dev->conf->ifname, &dev->netdev);
		if (ret)
			check_say("%s: no interface %s here", dev->conf->name,
				  dev->conf->ifname);
		dev->is_port_up = dev->netdev.is_running;
		shown[i] = (struct tree_dev){ dev->conf, dev->netdev };
	}
	open_pcap(card);
	ret = tree_create(shown, card->conf.n_devs);
	if (ret)
		check_die("cannot show the devices: %s%s", strerror(-ret),
			  ret == -EPERM ? " (needs root)" : "");
	card->has_tree = true;
}

void card_show(struct card *card)
{
	card_lock(card);
	if (!card->has_tree)
		show_locked(card);
	card_unlock(card);
}

/* --- receiving --- */

struct rx {
	struct card *card;
	struct dev *dev;
};

static void steer(struct dev *dev, const uint8_t *frame, size_t len)
{
	if (!steer_frame(dev, frame, len, false))
		dev->stats.rx_no_rule++;
}

static void receive(void *ctx, uint8_t *frame, size_t len, bool is_whole)
{
	struct rx *rx = ctx;
	struct dev *dev = rx->dev;
	struct impair_bytes *copy;

	card_capture(rx->card, frame, len);
	dev->stats.rx_wire++;
	if (!is_whole) {
		dev->stats.rx_oversize++;
		return;
	}
	if (!dev->is_port_up || dev->is_removed)
		return;
	if (!dev->impair) {
		steer(dev, frame, len);
		return;
	}
	copy = impair_bytes_create(frame, len);
	if (!copy)
		check_die("out of memory");
	impair_send(dev->impair, card_now_ns(rx->card), copy, len);
}

static int receive_impaired(struct card *card, struct dev *dev)
{
	struct impair_bytes *frame;
	size_t len;
	int n = 0;

	while (dev->impair &&
	       (frame = impair_recv(dev->impair, card_now_ns(card), &len))) {
		steer(dev, frame->data, len);
		free(frame);
		n++;
	}
	return n;
}

/* --- one round --- */

void dev_flush_wire(struct card *card, struct dev *dev)
{
	struct wire_sent sent;

	if (!dev->wire.n_tx)
		return;
	for (unsigned int i = 0; card->pcap_fd >= 0 && i < dev->wire.n_tx;
	     i++) {
		size_t len;
		const uint8_t *frame = wire_tx_frame(&dev->wire, i, &len);

		card_capture(card, frame, len);
	}
	if (!dev->is_port_up || dev->is_removed) {
		dev->stats.tx_failed += dev->wire.n_tx;
		dev->wire.n_tx = 0;
		return;
	}
	sent = wire_flush(&dev->wire);
	dev->stats.tx_wire += sent.n_sent;
	dev->stats.tx_failed += sent.n_failed;
}

/* Only after something was done can completions wait. */
static void flush_cqs(struct dev *dev)
{
	struct ctx *ctx;

	LIST_FOR_EACH(ctx, &dev->ctxs, link)
		ctx_flush_cqs(ctx);
}

/* At most as much as the wire's socket holds, since more may come all the time. */
void dev_drain_wire(struct card *card, struct dev *dev)
{
	enum { ROUNDS_MAX = 4096 };
	struct rx rx = { card, dev };
	int rounds = 0;

	if (dev->is_removed)
		return;
	while (wire_receive(&dev->wire, receive, &rx) &&
	       ++rounds < ROUNDS_MAX)
		;
	if (rounds)
		flush_cqs(dev);
}

static void publish_clocks(struct dev *dev, uint64_t now_ns)
{
	struct ctx *ctx;

	hca_clock_advance_info(&dev->clock, now_ns);
	LIST_FOR_EACH(ctx, &dev->ctxs, link)
		ctx_publish_clock(ctx, now_ns);
}

static int step_dev(struct card *card, struct dev *dev) REQUIRES(card->lock)
{
	struct rx rx = { card, dev };
	struct ctx *ctx;
	int n = 0;

	publish_clocks(dev, card_now_ns(card));
	if (dev->is_removed)
		return 0;
	LIST_FOR_EACH(ctx, &dev->ctxs, link)
		n += ctx_poll(ctx, card_now_ns(card));
	dev_flush_wire(card, dev);
	n += (int)wire_receive(&dev->wire, receive, &rx);
	n += receive_impaired(card, dev);
	if (n)
		flush_cqs(dev);
	return n;
}

/* An interface that is gone keeps its number, and is down. One that cannot be asked about is as
 * it was. */
static void look_at_link(struct dev *dev)
{
	struct netdev now;
	int ret = netdev_query(dev->conf->ifname, &now);

	if (!ret)
		dev->netdev = now;
	else if (ret == -ENODEV)
		dev->netdev.is_running = false;
	else
		check_say("%s cannot be asked about: %s", dev->conf->ifname, strerror(-ret));
}

static void look_at_links(struct card *card) REQUIRES(card->lock)
{
	netdev_monitor_drain(card->monitor_fd);
	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		struct dev *dev = &card->devs[i];

		if (!dev->is_open)
			continue;
		look_at_link(dev);
		dev_update_port_locked(card, dev);
	}
}

static bool is_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct timespec zero = { 0 };

	return sys_ppoll(&pfd, 1, &zero) > 0;
}

int card_step_locked(struct card *card)
{
	int n = 0;

	if (card->monitor_fd >= 0 && is_readable(card->monitor_fd))
		look_at_links(card);
	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		if (card->devs[i].is_open)
			n += step_dev(card, &card->devs[i]);
	}
	if (card->conf.is_manual)
		n += rdma_cm_step_locked();
	return n;
}

void dev_update_port_locked(struct card *card UNUSED, struct dev *dev)
{
	bool is_up = dev->netdev.is_running && !dev->is_pulled;
	struct ctx *ctx;

	if (is_up == dev->is_port_up)
		return;
	dev->is_port_up = is_up;
	tree_set_port(dev->conf, is_up);
	LIST_FOR_EACH(ctx, &dev->ctxs, link)
		ctx_raise_async(ctx, is_up ? IBV_EVENT_PORT_ACTIVE :
					     IBV_EVENT_PORT_ERR, 1);
}

/* --- the thread --- */

static void set_guards(struct card *card, bool is_guarded)
	REQUIRES(card->lock)
{
	struct ctx *ctx;

	if (card->guard_fd < 0 || card->is_guarded == is_guarded)
		return;
	card->is_guarded = is_guarded;
	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		LIST_FOR_EACH(ctx, &card->devs[i].ctxs, link)
			ctx_set_guard(ctx, is_guarded);
	}
}

/* A doorbell woke us: it is rung as soon as the page is open. */
static bool is_woken(struct card *card) REQUIRES(card->lock)
{
	if (!card->is_guarded || !guard_drain(card->guard_fd))
		return false;
	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		if (card->devs[i].is_open)
			card->devs[i].stats.bells_waking++;
	}
	return true;
}

/*
 * Frames end the sleep; doorbells are plain stores and do so only where they are
 * guarded, which costs the program a fault. So the sleep is short while a program
 * is at it, and longer the longer nothing happened: a look costs half the
 * shortest sleep, at a priority before all programs, and a few quiet cards would
 * leave them nothing. It stays short enough for the clock page.
 */
static void sleep_idle(struct card *card, uint64_t quiet_ns)
{
	uint64_t idle_ns = MAX(quiet_ns / 8, (uint64_t)IDLE_MIN_NS);
	struct timespec idle = {
		.tv_nsec = (long)MIN(idle_ns, (uint64_t)IDLE_MAX_NS),
	};
	struct pollfd fds[CONF_MAX_DEVS + 1];
	unsigned int n = 0;

	card_lock(card);
	if (card->is_guarded)
		fds[n++] = (struct pollfd){
			.fd = card->guard_fd,
			.events = POLLIN,
		};
	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		if (card->devs[i].is_open)
			fds[n++] = (struct pollfd){
				.fd = card->devs[i].wire.fd,
				.events = POLLIN,
			};
	}
	card_unlock(card);
	sys_ppoll(fds, n, &idle);
}

static bool has_open_dev(const struct card *card)
{
	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		if (card->devs[i].is_open)
			return true;
	}
	return false;
}

static void *run(void *arg)
{
	struct card *card = arg;
	struct sched_param param = { .sched_priority = 1 };
	uint64_t active_ns = clock_monotonic_ns();
	bool is_running = true;

	/* Beside a program that spins, on few cores, the card must get its
	 * turn at once; it gives it back after each batch. */
	SYS(__NR_sched_setscheduler, 0, SCHED_RR, &param);
	prctl(PR_SET_TIMERSLACK, 1);
	prctl(PR_SET_NAME, "softcx");
	while (is_running) {
		bool was_guarded, is_quiet;
		int n;

		card_lock(card);
		was_guarded = card->is_guarded;
		n = is_woken(card);
		n += card_step_locked(card);
		/* Guarded, the card looks once more before it sleeps. */
		is_quiet = clock_monotonic_ns() - active_ns > GUARD_AFTER_NS;
		set_guards(card, !n && is_quiet);
		is_running = has_open_dev(card);
		if (!is_running) {
			set_guards(card, false);
			card->has_thread = false;
		}
		is_quiet = card->is_guarded && !was_guarded;
		card_unlock(card);
		if (n)
			active_ns = clock_monotonic_ns();
		else if (is_running && !is_quiet)
			sleep_idle(card, clock_monotonic_ns() - active_ns);
	}
	return NULL;
}

int card_run_thread(void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ret = -pthread_create(&thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static int start_thread(struct card *card)
{
	int ret;

	if (card->conf.is_manual || card->has_thread)
		return 0;
	ret = card_run_thread(run, card);
	card->has_thread = !ret;
	return ret;
}

/* --- opening and closing --- */

static struct impair *create_impair(const struct card *card,
				    const struct impair_params *params)
{
	struct impair *impair = impair_create(params, card->conf.seed,
					      &impair_bytes_ops, NULL);

	if (!impair)
		check_die("out of memory");
	return impair;
}

/* The card's time and the time of day at one moment. A thread that is put off
 * between the two looks again; the closest pair counts. */
static void start_clock(const struct card *card, struct dev *dev)
{
	enum { TRIES = 100, CLOSE_NS = 2000 };
	const struct conf *conf = &card->conf;
	uint64_t real = 0, now_ns = 0, best_ns = UINT64_MAX;

	for (int i = 0; i < TRIES && best_ns > CLOSE_NS; i++) {
		uint64_t before = real_ns(), now = card_now_ns(card);
		uint64_t took_ns = real_ns() - before;

		if (took_ns >= best_ns)
			continue;
		best_ns = took_ns;
		now_ns = now;
		real = before + took_ns / 2;
	}
	hca_clock_init(&dev->clock, conf->clock_khz, conf->clock_ppm,
		       conf->clock_offset, now_ns, real);
}

static int open_wire(struct dev *dev)
{
	int ret = filter_open(&dev->filter, dev->netdev.ifindex,
			      dev->netdev.mac);

	if (ret == -ENOTSUP)
		check_say("needs Linux 6.6, and its BTF");
	if (ret == -EPERM)
		check_say("needs root");
	if (ret)
		return ret;
	ret = wire_open(&dev->wire, dev->netdev.ifindex,
			dev->filter.wire_prog_fd);
	if (ret)
		filter_close(&dev->filter);
	return ret;
}

int card_open_dev_locked(struct card *card, struct dev *dev)
{
	const struct conf *conf = &card->conf;
	int ret;

	ret = netdev_query(dev->conf->ifname, &dev->netdev);
	if (ret)
		return ret;
	if (card->monitor_fd < 0) {
		ret = netdev_monitor_open();
		if (ret < 0)
			return ret;
		card->monitor_fd = ret;
	}
	if (card->guard_fd < 0 && !conf->is_manual)
		card->guard_fd = guard_open();
	ret = open_wire(dev);
	if (ret)
		return ret;
	dev->is_port_up = dev->netdev.is_running && !dev->is_pulled;
	/* Loading the filter took its time. */
	start_clock(card, dev);
	rand_init(&dev->late_rand, conf->seed);
	if (conf->has_impair && !dev->impair)
		dev->impair = create_impair(card, &conf->impair);
	dev->is_open = true;
	ret = start_thread(card);
	if (ret)
		card_close_dev_locked(card, dev);
	return ret;
}

void card_close_dev_locked(struct card *card UNUSED, struct dev *dev)
{
	if (!dev->is_open)
		return;
	dev->is_open = false;
	dev->stats.rx_overrun += wire_take_overruns(&dev->wire);
	wire_close(&dev->wire);
	filter_close(&dev->filter);
	impair_destroy(dev->impair);
	dev->impair = NULL;
}

struct dev *card_find_dev(struct card *card, const char *name)
{
	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		if (strcmp(card->conf.devs[i].name, name) == 0)
			return &card->devs[i];
	}
	return NULL;
}

/* --- the process --- */

static void init_dev(struct card *card, unsigned int i)
{
	struct dev *dev = &card->devs[i];

	*dev = (struct dev){ .conf = &card->conf.devs[i] };
	dev->wire.fd = -1;
	list_init(&dev->rules);
	list_init(&dev->ctxs);
	idtab_init(&dev->qps, FIRST_QPN);
	idtab_init(&dev->cqs, FIRST_CQN);
	idtab_init(&dev->mrs, FIRST_KEY);
}

static void init_state(struct card *card)
{
	mutex_init(&card->lock, LOCK_RANK_TEST);
	card->monitor_fd = -1;
	card->guard_fd = -1;
	card->is_guarded = false;
	card->has_thread = false;
	card->pcap_fd = -1;
	for (unsigned int i = 0; i < card->conf.n_devs; i++)
		init_dev(card, i);
}

/* Holds the card still, so that the child inherits it in one piece. */
static void before_fork(void) NO_LOCK_ANALYSIS
{
	card_lock(the_card);
}

static void after_fork_parent(void) NO_LOCK_ANALYSIS
{
	card_unlock(the_card);
}

/*
 * A child has no thread, and a card is no process's to share: what it inherited
 * is closed, so that the parent's filters do not outlive the parent, and it may
 * open devices of its own; the view is the same. The memory of the old objects is left alone.
 */
static void after_fork_child(void) NO_LOCK_ANALYSIS
{
	struct card *card = the_card;

	for (unsigned int i = 0; i < card->conf.n_devs; i++) {
		struct dev *dev = &card->devs[i];

		if (!dev->is_open)
			continue;
		filter_close(&dev->filter);
		sys_close(dev->wire.fd);
	}
	if (card->monitor_fd >= 0)
		sys_close(card->monitor_fd);
	if (card->guard_fd >= 0)
		sys_close(card->guard_fd);
	if (card->pcap_fd >= 0)
		sys_close(card->pcap_fd);
	card->conf.pcap = NULL;
	rdma_cm_forget_locked();
	umem_forget();
	lock_witness_forked(&card->lock.witness);
	card_unlock(card);
	init_state(card);
	files_forget();
}

static void print_stats(const struct dev *dev)
{
#define COUNTER(counter, text)                                           \
	if (dev->stats.counter)                                          \
		check_say("%s: %-20s %12llu  " text, dev->conf->name,    \
			  #counter, (unsigned long long)dev->stats.counter);
#include "counters.def"
#undef COUNTER
}

__attribute__((constructor)) static void start(void)
{
	static struct card card;

	if (!conf_read(&card.conf))
		return;
	check_set_strict(card.conf.is_strict);
	init_state(&card);
	the_card = &card;
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

__attribute__((destructor)) static void stop(void)
{
	if (!the_card || !the_card->conf.has_stats)
		return;
	card_lock(the_card);
	for (unsigned int i = 0; i < the_card->conf.n_devs; i++) {
		struct dev *dev = &the_card->devs[i];

		if (dev->is_open)
			dev->stats.rx_overrun +=
				wire_take_overruns(&dev->wire);
		print_stats(dev);
	}
	card_unlock(the_card);
}
