/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Making AF_XDP sockets (xsk.h). */
#include "config.h"

#include "dev/xdp/xsk.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "dev/xdp/xdp_priv.h"
#include "os/rights.h"

static int set_option(int fd, int name, const void *value, socklen_t len)
{
	return real.setsockopt(fd, SOL_XDP, name, value, len) ? -errno : 0;
}

static int set_size(int fd, int name, uint32_t size)
{
	return set_option(fd, name, &size, sizeof(size));
}

static int register_memory(int fd, const struct xsk_params *params)
{
	struct xdp_umem_reg reg = {
		.addr = (uint64_t)(uintptr_t)params->mem,
		.len = params->mem_size,
		.chunk_size = params->frame_size,
	};

	return set_option(fd, XDP_UMEM_REG, &reg, sizeof(reg));
}

static int size_rings(int fd, const struct xsk_params *params)
{
	int err = set_size(fd, XDP_UMEM_FILL_RING, params->fill_size);

	if (!err)
		err = set_size(fd, XDP_UMEM_COMPLETION_RING, params->done_size);
	if (!err)
		err = set_size(fd, XDP_RX_RING, params->rx_size);
	if (!err)
		err = set_size(fd, XDP_TX_RING, params->tx_size);
	return err;
}

/* Where the kernel copies frames it has room for the whole ring, as far as we have the right:
 * what it does not take lies here until we ask once more. A frame counts with its skb. */
static void widen(int fd, const struct xsk_params *params)
{
	int bytes = (int)params->tx_size * 4096;

	if (real.setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
		(void)!real.setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static int map_ring(struct xsk_ring *ring, int fd, uint64_t page_offset,
		    const struct xdp_ring_offset *at, uint32_t size,
		    size_t entry_size)
{
	uint8_t *mem;

	ring->mem_size = at->desc + size * entry_size;
	mem = mmap(NULL, ring->mem_size, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_POPULATE, fd, (off_t)page_offset);
	if (mem == MAP_FAILED)
		return -errno;
	ring->mem = mem;
	/* only the parent may have this */
	madvise(mem, ring->mem_size, MADV_DONTFORK);
	ring->producer = (_Atomic uint32_t *)(void *)(mem + at->producer);
	ring->consumer = (_Atomic uint32_t *)(void *)(mem + at->consumer);
	ring->flags = (_Atomic uint32_t *)(void *)(mem + at->flags);
	ring->entries = mem + at->desc;
	ring->size = size;
	ring->mask = size - 1;
	return 0;
}

static int map_rings(struct xsk *xsk, int fd, const struct xsk_params *params)
{
	struct xdp_mmap_offsets at;
	socklen_t len = sizeof(at);
	int err;

	if (real.getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &len) != 0)
		return -errno;
	err = map_ring(&xsk->fill, fd, XDP_UMEM_PGOFF_FILL_RING, &at.fr,
		       params->fill_size, sizeof(uint64_t));
	if (!err)
		err = map_ring(&xsk->done, fd, XDP_UMEM_PGOFF_COMPLETION_RING,
			       &at.cr, params->done_size, sizeof(uint64_t));
	if (!err)
		err = map_ring(&xsk->rx, fd, XDP_PGOFF_RX_RING, &at.rx,
			       params->rx_size, sizeof(struct xdp_desc));
	if (!err)
		err = map_ring(&xsk->tx, fd, XDP_PGOFF_TX_RING, &at.tx,
			       params->tx_size, sizeof(struct xdp_desc));
	return err;
}

static int bind_queue(int fd, const struct xsk_params *params)
{
	struct sockaddr_xdp addr = {
		.sxdp_family = AF_XDP,
		.sxdp_ifindex = (uint32_t)params->ifindex,
		.sxdp_queue_id = params->queue,
		.sxdp_flags = params->bind_flags,
	};

	if (params->shared_fd >= 0) {
		/* the socket takes over the first one's flags */
		addr.sxdp_flags = XDP_SHARED_UMEM;
		addr.sxdp_shared_umem_fd = (uint32_t)params->shared_fd;
	}
	return real.bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno :
								       0;
}

/* By whoever has the right. */
static int make_socket(void)
{
	const struct keeper_request request = { .op = KEEPER_XSK };
	int fd;

	if (!rights_is_net_admin())
		return right_keeper_ask_one(&request, NULL);
	fd = real.socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int xsk_create(struct xsk *xsk, const struct xsk_params *params)
{
	int fd = make_socket();
	int err = 0;

	memset(xsk, 0, sizeof(*xsk));
	atomic_init(&xsk->fd, -1);
	if (fd < 0)
		return fd;
	err = xdp_adopt_fd(fd, &xsk->fd);
	if (err)
		return err;
	fd = atomic_load(&xsk->fd);
	if (params->shared_fd < 0)
		err = register_memory(fd, params);
	if (!err)
		err = size_rings(fd, params);
	if (!err)
		err = map_rings(xsk, fd, params);
	widen(fd, params);
	if (!err)
		err = bind_queue(fd, params);
	if (err)
		xsk_destroy(xsk);
	return err;
}

static void unmap_ring(struct xsk_ring *ring)
{
	if (ring->mem)
		munmap(ring->mem, ring->mem_size);
	ring->mem = NULL;
}

uint64_t xsk_drops(const struct xsk *xsk)
{
	struct xdp_statistics now = { .rx_dropped = 0 };
	socklen_t len = sizeof(now);

	if (real.getsockopt(atomic_load(&xsk->fd), SOL_XDP, XDP_STATISTICS,
			    &now, &len) != 0)
		return 0;
	return now.rx_dropped + now.rx_ring_full;
}

bool xsk_was_unbound(const struct xsk *xsk)
{
	socklen_t len = sizeof(int);
	int err = 0;

	return real.getsockopt(atomic_load(&xsk->fd), SOL_SOCKET, SO_ERROR, &err, &len) == 0 &&
	       err == ENETDOWN;
}

/* The rings are unmapped first, since a mapped ring keeps the queue busy after the
 * close. */
void xsk_destroy(struct xsk *xsk)
{
	unmap_ring(&xsk->rx);
	unmap_ring(&xsk->tx);
	unmap_ring(&xsk->fill);
	unmap_ring(&xsk->done);
	if (atomic_load(&xsk->fd) >= 0)
		services_close_fd(&xsk->fd);
}
