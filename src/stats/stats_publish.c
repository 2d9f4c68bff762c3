/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes the shared region, and gives out places in it (stats_publish.h). */
#include "config.h"

#include "stats/stats_publish.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "os/file.h"
#include "stats/stats_clean.h"
#include "stats/stats_file.h"
#include "stats/stats_process.h"

enum { WORD_BITS = 64 };

static struct {
	struct stats_params params;
	/* fixed between a start and the next fork; NULL: all is private */
	/* read by anybody, also before there is one */
	struct stats_region *_Atomic region;
	size_t region_size;
	pid_t owner;

	struct spinlock lock;
	/* Under the lock. Which places are taken is known from here, whatever the
	 * region says. */
	uint32_t last_id;
	uint64_t sockets_taken[STATS_SOCKETS_MAX / WORD_BITS];
	uint64_t rings_taken[1];
	uint64_t pools_taken[1];
	uint64_t epolls_taken[1];
	struct list handles; /* all that are open */

	/* who takes orders */
	uint32_t seen_request;

	/* fixed as the region is; last, so that a fork writes to one page only */
	struct file_id file;
	char path[PATH_MAX];
} stats = {
	.lock = SPINLOCK_INIT(LOCK_RANK_STATS),
	.handles = LIST_INIT(stats.handles),
};
_Static_assert(STATS_RINGS_MAX <= 64 && STATS_POOLS_MAX <= 64 &&
		       STATS_EPOLLS_MAX <= 64,
	       "a bit for each place");

/* Those without a place count here, where nobody will look. */
static struct stats_mux nowhere;

/* -- the region ------------------------------------------------------------ */

/* Made absolute, since the program may change its directory before it ends. */
static int make_path(const char *dir, char *path, size_t size)
{
	char here[PATH_MAX] = "";
	size_t len = strlen(dir);
	int n;

	if (dir[0] != '/' && !getcwd(here, sizeof(here)))
		return -errno;
	n = snprintf(path, size, "%s%s%s%s" STATS_FILE_PREFIX "%d", here,
		     here[0] ? "/" : "", dir, dir[len - 1] == '/' ? "" : "/",
		     getpid());
	return (size_t)n < size ? 0 : -ENAMETOOLONG;
}

static void copy_text(char *to, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memcpy(to, text, len);
	to[len] = '\0';
}

static uint64_t own_start(void)
{
	char text[1024];
	ssize_t len = file_peek("/proc/self/stat", text, sizeof(text) - 1);

	text[MAX(len, 0)] = '\0';
	return stats_process_start_in(text);
}

static void fill_region(struct stats_region *r)
{
	uint64_t magic;

	r->abi = STATS_ABI;
	r->socket_max = stats.params.socket_max;
	r->size = stats.region_size;
	r->layout = stats_layout();
	r->pid = getpid();
	r->start_time = own_start();
	r->pid_namespace = file_inode("/proc/self/ns/pid");
	copy_text(r->program, sizeof(r->program), stats.params.program);
	copy_text(r->version, sizeof(r->version), stats.params.version);
	r->poll.is_used = r->select.is_used = 1;
	/* release: a reader that sees the magic sees all of the above */
	memcpy(&magic, STATS_MAGIC, sizeof(magic));
	__atomic_store_n((uint64_t *)(void *)r->magic, magic,
			 __ATOMIC_RELEASE);
}

static int make_file(void **mem_out)
{
	int err = make_path(stats.params.dir, stats.path, sizeof(stats.path));

	return err ? err :
		     file_map_new(stats.path, stats.region_size, mem_out, &stats.file);
}

void stats_start_again(void)
{
	void *mem;
	int err;

	if (!stats.params.dir[0])
		return;
	stats.region_size = stats_region_size(stats.params.socket_max);
	err = make_file(&mem);
	/* there may be no room in memory */
	if (err && stats.params.dir == stats_default_dirs[1]) {
		stats.params.dir = stats_default_dirs[0];
		err = make_file(&mem);
	}
	if (err) {
		log_warn("cannot make %s%s%d (%s); vma_stats will see nothing of this process (VMA_STATS_SHMEM_DIR)",
			 stats.params.dir, "/" STATS_FILE_PREFIX, getpid(),
			 strerror(-err));
		return;
	}
	fill_region(mem);
	stats.region = mem;
	stats.owner = getpid();
}

static void clean(const char *dir)
{
	if (dir && dir[0])
		stats_clean_dead(dir);
	for (size_t i = 0; !dir && stats_default_dirs[i]; i++)
		stats_clean_dead(stats_default_dirs[i]);
}

void stats_start(const struct stats_params *params)
{
	stats.params = *params;
	if (!params->dir)
		stats.params.dir = stats_default_dir();
	stats_file_start(params->file);
	clean(params->dir);
	stats_start_again();
	if (stats.region && !file_is_in_memory(stats.params.dir))
		log_dbg("the counters are in %s, which is no tmpfs: while they are written to the disk, who counts may wait for that (VMA_STATS_SHMEM_DIR)",
			stats.params.dir);
}

/* Memory that is not reserved is only missed where the fork itself would have failed. */
static bool replace_region(int kind)
{
	return mmap(stats.region, stats.region_size, PROT_READ | PROT_WRITE,
		    kind | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		    0) != MAP_FAILED;
}

void stats_forked(void)
{
	/* The child may return into a call of the parent that still counts. It does
	 * so in pages of its own at the same place. A limit for private memory
	 * (RLIMIT_DATA) does not matter for shared one. */
	if (stats.region && !replace_region(MAP_PRIVATE))
		(void)replace_region(MAP_SHARED);
	stats.region = NULL;
	/* the number may be the parent's in another namespace */
	stats.owner = 0;
	spinlock_init(&stats.lock, LOCK_RANK_STATS);
	for (size_t i = 0; i < ARRAY_LEN(stats.sockets_taken); i++)
		if (stats.sockets_taken[i]) /* or its page stays the parent's */
			stats.sockets_taken[i] = 0;
	stats.rings_taken[0] = 0;
	stats.pools_taken[0] = 0;
	stats.epolls_taken[0] = 0;
	stats.seen_request = 0;
	list_init(&stats.handles);
}

/* This takes no lock: the thread that ends the process may already have it. */
void stats_end(void)
{
	struct stats_handle *h;

	if (stats.owner != getpid())
		return;
	if (stats_file_is_wanted() && spinlock_try_acquire(&stats.lock)) {
		LIST_FOR_EACH(h, &stats.handles, link)
			stats_file_add_socket(h->at);
		stats_file_end();
		spinlock_release(&stats.lock);
	}
	(void)!file_remove_same(stats.path, &stats.file);
}

void stats_give_to(uid_t user)
{
	if (stats.region && stats.owner == getpid())
		file_give(stats.path, &stats.file, user);
}

void stats_set_ended(bool is_ended)
{
	if (stats.region && stats.owner == getpid())
		stats.region->has_ended = is_ended;
}

/* -- places ---------------------------------------------------------------- */

/* Sets the first of `cnt` bits that is not set, and returns its number, or -1. */
static int take_bit(uint64_t *bits, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		uint64_t bit = UINT64_C(1) << i % WORD_BITS;

		if (bits[i / WORD_BITS] & bit)
			continue;
		bits[i / WORD_BITS] |= bit;
		return (int)i;
	}
	return -1;
}

static int take_place(uint64_t *bits, unsigned cnt)
{
	int place = -1;

	if (!stats.region)
		return -1;
	spinlock_acquire(&stats.lock);
	place = take_bit(bits, cnt);
	spinlock_release(&stats.lock);
	return place;
}

/* The number of the place `at` among `cnt` places that begin `start` bytes into the
 * region. -1: it is none of them, or one of the parent's region. */
static int place_of(const void *at, size_t start, size_t size, unsigned cnt)
{
	uintptr_t offset = (uintptr_t)at - (uintptr_t)stats.region - start;

	return stats.region && offset < cnt * size ? (int)(offset / size) : -1;
}

static void leave_place(uint64_t *bits, int place)
{
	if (place < 0)
		return;
	spinlock_acquire(&stats.lock);
	bits[place / WORD_BITS] &= ~(UINT64_C(1) << place % WORD_BITS);
	spinlock_release(&stats.lock);
}

/* The same for a member of the region that is an array. */
#define PLACE_OF(at, places, cnt) \
	place_of(at, offsetof(struct stats_region, places), sizeof(*(at)), cnt)

/* -- sockets --------------------------------------------------------------- */

/* Changes how many sockets without a slot there are of this reason. What is not open is no
 * socket, but a port, say; and what the parent has opened is in its sums. */
static void count_unslotted(const struct stats_handle *h, uint32_t change)
{
	if (stats.region && h->owner == stats.owner && !stats_is_shown(h))
		atomic_fetch_add_explicit(
			&stats.region->unslotted[h->own.rx.reason], change,
			memory_order_relaxed);
}

static void say_full(void)
{
	LOG_ONCE(LOG_LEVEL_INFO,
		 "more than %u sockets: vma_stats shows the others as sums only (VMA_STATS_FD_NUM)",
		 stats.params.socket_max);
}

void stats_socket_open(struct stats_handle *h, int fd, ino_t inode,
		       uint8_t protocol)
{
	int place = take_place(stats.sockets_taken, stats.params.socket_max);
	struct stats_socket *s = &h->own;
	uint32_t id;

	if (place >= 0)
		s = &stats.region->sockets[place];
	else if (stats.region && stats.params.socket_max)
		say_full();
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->inode = inode;
	s->protocol = protocol;
	s->is_blocking = true;
	s->rx.reason = s->tx.reason = REASON_NOT_USED;
	h->at = s;
	h->owner = stats.owner;
	count_unslotted(h, 1);
	spinlock_acquire(&stats.lock);
	id = ++stats.last_id;
	list_push_back(&stats.handles, &h->link);
	spinlock_release(&stats.lock);
	/* release: a reader that sees the id sees all of the above */
	atomic_store_explicit(&s->id, id, memory_order_release);
}

void stats_socket_close(struct stats_handle *h)
{
	spinlock_acquire(&stats.lock);
	list_remove(&h->link);
	spinlock_release(&stats.lock);
	stats_file_add_socket(h->at);
	count_unslotted(h, -1u);
	h->owner = 0;
	atomic_store_explicit(&h->at->id, 0, memory_order_release);
	leave_place(stats.sockets_taken,
		    PLACE_OF(h->at, sockets, stats.params.socket_max));
}

static void set_way(struct stats_way *way, enum reason reason,
		    enum stats_decider decider, uint32_t rings,
		    const char *detail)
{
	way->decider = (uint16_t)decider;
	way->rings = rings;
	copy_text(way->detail, sizeof(way->detail), detail);
	way->reason = (uint16_t)reason;
}

void stats_set_rx(struct stats_handle *h, enum reason reason,
		  enum stats_decider decider, uint32_t rings,
		  const char *detail)
{
	count_unslotted(h, -1u);
	set_way(&h->at->rx, reason, decider, rings, detail);
	count_unslotted(h, 1);
}

void stats_set_tx(struct stats_handle *h, enum reason reason,
		  enum stats_decider decider, uint32_t rings,
		  const char *detail)
{
	set_way(&h->at->tx, reason, decider, rings, detail);
}

void stats_count_unserved(enum reason reason)
{
	if (stats.region)
		atomic_fetch_add_explicit(&stats.region->unserved[reason], 1,
					  memory_order_relaxed);
}

void stats_count_os_rx(struct stats_handle *h, long result)
{
	struct stats_socket_counters *c = &h->at->counters;

	if (result >= 0) {
		stats_add(&c->rx_os_packets, 1);
		stats_add(&c->rx_os_bytes, (uint64_t)result);
	} else if (result == -EAGAIN) {
		stats_add(&c->rx_os_eagain, 1);
	} else {
		stats_add(&c->rx_os_errors, 1);
	}
}

void stats_count_os_tx(struct stats_handle *h, long result)
{
	struct stats_socket_counters *c = &h->at->counters;

	if (result >= 0) {
		stats_add(&c->tx_os_packets, 1);
		stats_add(&c->tx_os_bytes, (uint64_t)result);
	} else if (result == -EAGAIN) {
		stats_add(&c->tx_os_eagain, 1);
	} else {
		stats_add(&c->tx_os_errors, 1);
	}
}

/* -- rings, pools, sets ---------------------------------------------------- */

struct stats_ring *stats_ring_open(const char *interface, const char *back_end,
				   const char *mode)
{
	int place = take_place(stats.rings_taken, STATS_RINGS_MAX);
	struct stats_ring *ring;

	if (place < 0)
		return NULL;
	ring = &stats.region->rings[place];
	memset(ring, 0, sizeof(*ring));
	copy_text(ring->interface, sizeof(ring->interface), interface);
	copy_text(ring->back_end, sizeof(ring->back_end), back_end);
	copy_text(ring->mode, sizeof(ring->mode), mode);
	ring->is_used = 1;
	return ring;
}

void stats_ring_close(struct stats_ring *ring)
{
	if (!ring)
		return;
	ring->is_used = 0;
	leave_place(stats.rings_taken,
		    PLACE_OF(ring, rings, STATS_RINGS_MAX));
}

uint32_t stats_ring_bit(const struct stats_ring *ring)
{
	return ring ? UINT32_C(1) << PLACE_OF(ring, rings, STATS_RINGS_MAX) :
		      0;
}

struct stats_pool *stats_pool_open(const char *interface, uint32_t total_cnt)
{
	int place = take_place(stats.pools_taken, STATS_POOLS_MAX);
	struct stats_pool *pool;

	if (place < 0)
		return NULL;
	pool = &stats.region->pools[place];
	memset(pool, 0, sizeof(*pool));
	copy_text(pool->interface, sizeof(pool->interface), interface);
	pool->total_cnt = total_cnt;
	pool->free_cnt = total_cnt;
	pool->is_used = 1;
	return pool;
}

void stats_pool_close(struct stats_pool *pool)
{
	if (!pool)
		return;
	pool->is_used = 0;
	leave_place(stats.pools_taken,
		    PLACE_OF(pool, pools, STATS_POOLS_MAX));
}

uint64_t *stats_drops(void)
{
	return stats.region ? stats.region->drops : NULL;
}

struct stats_tcp_counters *stats_tcp(void)
{
	return stats.region ? &stats.region->tcp : NULL;
}

struct stats_mux *stats_mux_poll(void)
{
	return stats.region ? &stats.region->poll : &nowhere;
}

struct stats_mux *stats_mux_select(void)
{
	return stats.region ? &stats.region->select : &nowhere;
}

struct stats_mux *stats_mux_open(int epfd)
{
	int place = take_place(stats.epolls_taken, STATS_EPOLLS_MAX);
	struct stats_mux *mux;

	if (place < 0)
		return &nowhere;
	mux = &stats.region->epolls[place];
	memset(mux, 0, sizeof(*mux));
	mux->fd = epfd;
	atomic_store_explicit(&mux->is_used, 1, memory_order_release);
	return mux;
}

void stats_mux_close(struct stats_mux *mux)
{
	if (mux == &nowhere)
		return;
	atomic_store(&mux->is_used, 0);
	leave_place(stats.epolls_taken,
		    PLACE_OF(mux, epolls, STATS_EPOLLS_MAX));
}

/* Threads that poll at the same time are more than one processor's work, and no more
 * than all of the time. */
void stats_mux_add_polling(struct stats_mux *mux, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t since = atomic_load(&mux->polling_from_ns), sum;

	if (!since && atomic_compare_exchange_strong(&mux->polling_from_ns,
						     &since, from_ns))
		since = from_ns;
	sum = atomic_fetch_add(&mux->polling_ns, to_ns - from_ns) + to_ns -
	      from_ns;
	if (to_ns < since + NS_PER_SEC ||
	    !atomic_compare_exchange_strong(&mux->polling_from_ns, &since,
					    to_ns))
		return;
	atomic_fetch_sub(&mux->polling_ns, sum);
	atomic_store(&mux->polling_percent,
		     (uint32_t)MIN(sum * 100 / (to_ns - since), UINT64_C(100)));
}

/* -- requests -------------------------------------------------------------- */

bool stats_take_order(struct stats_order *order_out)
{
	struct stats_request *request;
	uint64_t until_ns;
	uint32_t asked;

	if (!stats.region)
		return false;
	request = &stats.region->request;
	/* acquire pairs with the order of the reader's writes */
	asked = atomic_load_explicit(&request->asked, memory_order_acquire);
	if (asked == stats.seen_request)
		return false;
	stats.seen_request = asked;
	/* We read it once, since it may change at any moment. */
	order_out->wish = *(volatile uint32_t *)&request->wish;
	order_out->value = *(volatile int32_t *)&request->value;
	for (size_t i = 0; i < ARRAY_LEN(order_out->sockets); i++)
		order_out->sockets[i] =
			*(volatile uint64_t *)&request->sockets[i];
	until_ns = *(volatile uint64_t *)&request->until_ns;
	if (!until_ns || clock_monotonic_ns() <= until_ns)
		return true;
	stats_answer_order(-ETIMEDOUT);
	return false;
}

void stats_answer_order(int result)
{
	struct stats_request *request = &stats.region->request;

	atomic_store_explicit(&request->result, result, memory_order_relaxed);
	atomic_store_explicit(&request->answered, stats.seen_request,
			      memory_order_release);
}

/* Sets the counters of any struct to zero. Other threads may add to them meanwhile. */
static void zero_counters(void *counters, size_t size)
{
	uint64_t *counter = counters;

	for (size_t i = 0; i < size / sizeof(*counter); i++)
		__atomic_store_n(&counter[i], 0, __ATOMIC_RELAXED);
}

static void zero_mux(struct stats_mux *mux)
{
	zero_counters(&mux->counters, sizeof(mux->counters));
}

/* The counters of what waits keep their values. */
static void zero_socket(struct stats_socket_counters *c)
{
	/* a stream is counted in bytes alone */
	uint64_t pkts = c->rx_queued_packets > c->rx_packets ?
				c->rx_queued_packets - c->rx_packets : 0;
	uint64_t bytes = c->rx_queued_bytes - c->rx_bytes;

	zero_counters(c, sizeof(*c));
	c->rx_queued_packets = pkts;
	c->rx_queued_bytes = bytes;
}

static void zero_sockets(struct stats_region *r, const uint64_t *wanted)
{
	for (uint32_t i = 0; i < stats.params.socket_max; i++) {
		uint64_t bit = UINT64_C(1) << i % WORD_BITS;
		struct stats_socket *s = &r->sockets[i];

		if (wanted[i / WORD_BITS] & bit)
			zero_socket(&s->counters);
	}
}

void stats_zero(const struct stats_order *order)
{
	struct stats_region *r = stats.region;

	zero_sockets(r, order->sockets);
	zero_mux(&r->poll);
	zero_mux(&r->select);
	for (size_t i = 0; i < STATS_EPOLLS_MAX; i++)
		zero_mux(&r->epolls[i]);
	for (size_t i = 0; i < STATS_RINGS_MAX; i++)
		zero_counters(&r->rings[i].counters,
			      sizeof(r->rings[i].counters));
	for (size_t i = 0; i < STATS_POOLS_MAX; i++)
		__atomic_store_n(&r->pools[i].empty_cnt, 0, __ATOMIC_RELAXED);
	zero_counters(r->drops, sizeof(r->drops));
	zero_counters(&r->tcp, sizeof(r->tcp));
}
