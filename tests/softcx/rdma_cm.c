/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connection manager's file; see rdma_cm.h. */
#include "config.h"

#include "rdma_cm.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <rdma/rdma_user_cm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/list.h"
#include "card.h"
#include "check.h"
#include "files.h"
#include "idtab.h"
#include "neigh.h"
#include "sys.h"
#include "tree.h"

/* The kernel's numbers for its events. */
enum {
	EVENT_ADDR_RESOLVED = 0,
	EVENT_ADDR_ERROR = 1,
	EVENT_ROUTE_RESOLVED = 2,
};

struct cm_event {
	struct list link;
	struct rdma_ucm_event_resp resp;
};

/* How far an identifier has come. */
enum cm_state { CM_IDLE, CM_RESOLVING, CM_RESOLVED, CM_ROUTED };

struct cm_id {
	struct list link;            /* resolver.ids while resolving */
	struct cm *cm;
	enum cm_state state;
	uint32_t id;
	uint64_t uid;
	struct dev *dev;             /* NULL: of no device yet */
	struct sockaddr_in6 src;     /* holds either family */
	struct sockaddr_in6 dst;
	struct neigh_way way;        /* while resolving */
	uint64_t deadline_ns;        /* of the kernel's time, not the card's */
	uint32_t n_reported;         /* events the program has got */
};

/*
 * What is being resolved. A thread of its own waits for the kernel's answers: a
 * program may poll for the event, and no card need be open. Without threads
 * (SOFTCX_MANUAL) the test's steps and who waits for an event look instead.
 */
static struct {
	struct list ids;
	bool has_thread;
	int monitor_fd;              /* of the thread */
} resolver = { .ids = LIST_INIT(resolver.ids), .monitor_fd = -1 };

/* Between looks of the resolver that no news causes. */
static const uint64_t look_ns = 20 * NS_PER_MS;

struct cm {
	struct file file;
	struct idtab ids;
	struct list events;
};

/* One command: its structure and where the answer goes. */
struct cm_cmd {
	struct cm *cm;
	const void *in;
	uint16_t out_len;
};

typedef int cm_fn(const struct cm_cmd *cmd);

static void answer(uint64_t response, uint16_t room, const void *from,
		   size_t len)
{
	if (response)
		memcpy((void *)(uintptr_t)response, from, MIN(len, room));
}

static void raise_event(struct cm *cm, const struct cm_id *id, uint32_t type,
			int status)
{
	struct cm_event *event = calloc(1, sizeof(*event));
	uint64_t one = 1;

	if (!event)
		check_die("out of memory");
	event->resp.uid = id->uid;
	event->resp.id = id->id;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	list_push_back(&cm->events, &event->link);
	sys_write(cm->file.fd, &one, sizeof(one));
}

static void unpoll(struct cm *cm)
{
	uint64_t one;

	/* The event that goes is no longer to be polled for. */
	sys_read(cm->file.fd, &one, sizeof(one));
}

static int cm_create_id(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_create_id *req = cmd->in;
	struct rdma_ucm_create_id_resp resp;
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return -ENOMEM;
	id->uid = req->uid;
	id->cm = cmd->cm;
	list_init(&id->link);
	if (idtab_add(&cmd->cm->ids, id, &id->id)) {
		free(id);
		return -ENOMEM;
	}
	resp.id = id->id;
	answer(req->response, cmd->out_len, &resp, sizeof(resp));
	return 0;
}

static void drop_events(struct cm *cm, const struct cm_id *id)
{
	struct cm_event *event, *next;

	LIST_FOR_EACH_SAFE(event, next, &cm->events, link) {
		if (event->resp.id != id->id)
			continue;
		list_remove(&event->link);
		unpoll(cm);
		free(event);
	}
}

static int cm_destroy_id(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_destroy_id *req = cmd->in;
	struct cm_id *id = idtab_get(&cmd->cm->ids, req->id);
	struct rdma_ucm_destroy_id_resp resp;

	if (!id)
		return -ENOENT;
	list_remove(&id->link);
	drop_events(cmd->cm, id);
	resp.events_reported = id->n_reported;
	answer(req->response, cmd->out_len, &resp, sizeof(resp));
	idtab_remove(&cmd->cm->ids, req->id);
	free(id);
	return 0;
}

/* The device whose interface has this address; NULL: none. IPv4 only, as the
 * emulated interface is asked for its first address. */
static struct dev *find_dev(const struct sockaddr_in6 *addr)
{
	const struct sockaddr_in *in = (const void *)addr;

	if (addr->sin6_family != AF_INET)
		return NULL;
	for (unsigned int i = 0; i < the_card->conf.n_devs; i++) {
		struct dev *dev = &the_card->devs[i];
		struct netdev netdev;

		if (netdev_query(dev->conf->ifname, &netdev) == 0 &&
		    netdev.ipv4_be == in->sin_addr.s_addr) {
			dev->netdev = netdev;
			return dev;
		}
	}
	return NULL;
}

static bool is_any(const struct sockaddr_in6 *addr)
{
	const struct sockaddr_in *in = (const void *)addr;

	return addr->sin6_family == AF_INET ?
		       in->sin_addr.s_addr == 0 :
		       IN6_IS_ADDR_UNSPECIFIED(&addr->sin6_addr);
}

static int bind_to(struct cm_id *id, const void *addr, size_t size)
{
	struct sockaddr_in6 src = { 0 };

	memcpy(&src, addr, MIN(size, sizeof(src)));
	if (src.sin6_family != AF_INET && src.sin6_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (!is_any(&src)) {
		id->dev = find_dev(&src);
		if (!id->dev)
			return -ENODEV;
	}
	id->src = src;
	return 0;
}

static int cm_bind_ip(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_bind_ip *req = cmd->in;
	struct cm_id *id = idtab_get(&cmd->cm->ids, req->id);

	return id ? bind_to(id, &req->addr, sizeof(req->addr)) : -ENOENT;
}

static int cm_bind(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_bind *req = cmd->in;
	struct cm_id *id = idtab_get(&cmd->cm->ids, req->id);

	return id ? bind_to(id, &req->addr, req->addr_size) : -ENOENT;
}

/* --- address resolution --- */

static struct dev *find_dev_by_index(int ifindex)
{
	for (unsigned int i = 0; i < the_card->conf.n_devs; i++) {
		struct dev *dev = &the_card->devs[i];
		struct netdev netdev;

		if (netdev_query(dev->conf->ifname, &netdev) == 0 &&
		    netdev.ifindex == ifindex) {
			dev->netdev = netdev;
			return dev;
		}
	}
	return NULL;
}

static void finish(struct cm_id *id, int status)
{
	list_remove(&id->link);
	if (!status) {
		id->src = id->way.src;
		if (!id->dev)
			id->dev = find_dev_by_index(id->way.ifindex);
		if (!id->dev)
			id->dev = find_dev(&id->src);
		if (!id->dev)
			status = -ENODEV;
	}
	id->state = status ? CM_IDLE : CM_RESOLVED;
	raise_event(id->cm, id, status ? EVENT_ADDR_ERROR : EVENT_ADDR_RESOLVED,
		    status);
}

int rdma_cm_step_locked(void)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct cm_id *id, *next;
	int n = 0;

	LIST_FOR_EACH_SAFE(id, next, &resolver.ids, link) {
		if (!id->way.has_neighbour || neigh_is_valid(&id->way))
			finish(id, 0);
		else if (now_ns >= id->deadline_ns)
			finish(id, -ETIMEDOUT);
		else
			continue;
		n++;
	}
	return n;
}

/* The end of the thread: nothing is left to resolve. */
static bool is_done_locked(void)
{
	if (!list_is_empty(&resolver.ids))
		return false;
	sys_close(resolver.monitor_fd);
	resolver.monitor_fd = -1;
	resolver.has_thread = false;
	return true;
}

static struct timespec time_to_look_locked(void)
{
	uint64_t now_ns = clock_monotonic_ns(), wait_ns = look_ns;
	struct cm_id *id;

	LIST_FOR_EACH(id, &resolver.ids, link)
		wait_ns = MIN(wait_ns, id->deadline_ns > now_ns ?
					       id->deadline_ns - now_ns : 0);
	return (struct timespec){ .tv_nsec = (long)wait_ns };
}

static void *resolve_all(void *arg)
{
	struct card *card = arg;
	struct pollfd pfd = { .events = POLLIN };
	struct timespec wait;
	bool is_done;

	do {
		card_lock(card);
		/* News that come during the look end the next wait. */
		netdev_monitor_drain(resolver.monitor_fd);
		rdma_cm_step_locked();
		is_done = is_done_locked();
		pfd.fd = resolver.monitor_fd;
		wait = time_to_look_locked();
		card_unlock(card);
		if (!is_done)
			sys_ppoll(&pfd, 1, &wait);
	} while (!is_done);
	return NULL;
}

static int start_thread_locked(void)
{
	int ret;

	if (the_card->conf.is_manual || resolver.has_thread)
		return 0;
	ret = neigh_monitor_open();
	if (ret < 0)
		return ret;
	resolver.monitor_fd = ret;
	ret = card_run_thread(resolve_all, the_card);
	if (!ret) {
		resolver.has_thread = true;
		return 0;
	}
	sys_close(resolver.monitor_fd);
	resolver.monitor_fd = -1;
	return ret;
}

void rdma_cm_forget_locked(void)
{
	if (resolver.monitor_fd >= 0)
		sys_close(resolver.monitor_fd);
	resolver.monitor_fd = -1;
	resolver.has_thread = false;
	list_init(&resolver.ids);
}

/* As the kernel does it: no route is an error at once, everything else comes as
 * an event. */
static int resolve(struct cm_id *id, const void *src, size_t src_size,
		   const void *dst, size_t dst_size, uint32_t timeout_ms)
{
	const struct sockaddr *given = src;
	int ret = 0;

	if (id->state != CM_IDLE)
		return -EINVAL;
	memset(&id->dst, 0, sizeof(id->dst));
	memcpy(&id->dst, dst, MIN(dst_size, sizeof(id->dst)));
	if (!id->dev && src_size && given->sa_family)
		ret = bind_to(id, src, src_size);
	if (!ret)
		ret = neigh_route(&id->dst, is_any(&id->src) ?
				  &(struct sockaddr_in6){ 0 } : &id->src,
				  &id->way);
	if (!ret)
		ret = start_thread_locked();
	if (ret)
		return ret;
	id->state = CM_RESOLVING;
	id->deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
	list_push_back(&resolver.ids, &id->link);
	rdma_cm_step_locked();
	return 0;
}

static int cm_resolve_ip(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_resolve_ip *req = cmd->in;
	struct cm_id *id = idtab_get(&cmd->cm->ids, req->id);

	if (!id)
		return -ENOENT;
	return resolve(id, &req->src_addr, sizeof(req->src_addr),
		       &req->dst_addr, sizeof(req->dst_addr), req->timeout_ms);
}

static int cm_resolve_addr(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_resolve_addr *req = cmd->in;
	struct cm_id *id = idtab_get(&cmd->cm->ids, req->id);

	if (!id)
		return -ENOENT;
	return resolve(id, &req->src_addr, req->src_size, &req->dst_addr,
		       req->dst_size, req->timeout_ms);
}

static int cm_resolve_route(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_resolve_route *req = cmd->in;
	struct cm_id *id = idtab_get(&cmd->cm->ids, req->id);

	if (!id)
		return -ENOENT;
	if (id->state != CM_RESOLVED)
		return -EINVAL;
	id->state = CM_ROUTED;
	raise_event(cmd->cm, id, EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

static uint64_t guid_of(const struct cm_id *id)
{
	return id->dev ? htobe64(tree_guid(id->dev->netdev.mac)) : 0;
}

static uint32_t index_of(const struct cm_id *id)
{
	return id->dev ? (uint32_t)(id->dev - the_card->devs) : 0;
}

static int cm_query_route(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_query *req = cmd->in;
	struct cm_id *id = idtab_get(&cmd->cm->ids, req->id);
	struct rdma_ucm_query_route_resp resp = { 0 };

	if (!id)
		return -ENOENT;
	resp.node_guid = guid_of(id);
	resp.port_num = id->dev ? 1 : 0;
	resp.ibdev_index = index_of(id);
	memcpy(&resp.src_addr, &id->src, sizeof(resp.src_addr));
	memcpy(&resp.dst_addr, &id->dst, sizeof(resp.dst_addr));
	answer(req->response, cmd->out_len, &resp, sizeof(resp));
	return 0;
}

static int query_addr(const struct cm_cmd *cmd, const struct cm_id *id)
{
	const struct rdma_ucm_query *req = cmd->in;
	struct rdma_ucm_query_addr_resp resp = { 0 };

	resp.node_guid = guid_of(id);
	resp.port_num = id->dev ? 1 : 0;
	resp.ibdev_index = index_of(id);
	resp.pkey = 0xffff;
	resp.src_size = id->src.sin6_family ? sizeof(id->src) : 0;
	resp.dst_size = id->dst.sin6_family ? sizeof(id->dst) : 0;
	memcpy(&resp.src_addr, &id->src, sizeof(id->src));
	memcpy(&resp.dst_addr, &id->dst, sizeof(id->dst));
	answer(req->response, cmd->out_len, &resp, sizeof(resp));
	return 0;
}

/* Paths and GIDs are for InfiniBand; here there are none. */
static int cm_query(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_query *req = cmd->in;
	struct rdma_ucm_query_path_resp path = { 0 };
	struct cm_id *id = idtab_get(&cmd->cm->ids, req->id);

	if (!id)
		return -ENOENT;
	switch (req->option) {
	case RDMA_USER_CM_QUERY_ADDR:
	case RDMA_USER_CM_QUERY_GID:
		return query_addr(cmd, id);
	case RDMA_USER_CM_QUERY_PATH:
		answer(req->response, cmd->out_len, &path, sizeof(path));
		return 0;
	default:
		return -ENOSYS;
	}
}

static int cm_get_event(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_get_event *req = cmd->in;
	struct list *link = list_pop_front(&cmd->cm->events);
	struct cm_event *event;
	struct cm_id *id;

	if (!link)
		return -EAGAIN;
	event = LIST_ENTRY(link, struct cm_event, link);
	id = idtab_get(&cmd->cm->ids, event->resp.id);
	if (id)
		id->n_reported++;
	unpoll(cmd->cm);
	answer(req->response, cmd->out_len, &event->resp, sizeof(event->resp));
	free(event);
	return 0;
}

/* Nobody ever connects to a listener. */
static int cm_listen(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_listen *req = cmd->in;

	return idtab_get(&cmd->cm->ids, req->id) ? 0 : -ENOENT;
}

/* Options about packets that are never sent. */
static int cm_set_option(const struct cm_cmd *cmd)
{
	const struct rdma_ucm_set_option *req = cmd->in;

	if (!idtab_get(&cmd->cm->ids, req->id))
		return -ENOENT;
	return req->level == RDMA_OPTION_ID ? 0 : -ENOSYS;
}

static const struct {
	const char *name;
	cm_fn *fn;
	size_t in_size;
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { "create_id", cm_create_id,
					 sizeof(struct rdma_ucm_create_id) },
	[RDMA_USER_CM_CMD_DESTROY_ID] = { "destroy_id", cm_destroy_id,
					  sizeof(struct rdma_ucm_destroy_id) },
	[RDMA_USER_CM_CMD_BIND_IP] = { "bind_ip", cm_bind_ip,
				       sizeof(struct rdma_ucm_bind_ip) },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { "resolve_ip", cm_resolve_ip,
					  sizeof(struct rdma_ucm_resolve_ip) },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {
		"resolve_route", cm_resolve_route,
		sizeof(struct rdma_ucm_resolve_route) },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = { "query_route", cm_query_route,
					   sizeof(struct rdma_ucm_query) },
	[RDMA_USER_CM_CMD_LISTEN] = { "listen", cm_listen,
				      sizeof(struct rdma_ucm_listen) },
	[RDMA_USER_CM_CMD_GET_EVENT] = { "get_event", cm_get_event,
					 sizeof(struct rdma_ucm_get_event) },
	[RDMA_USER_CM_CMD_SET_OPTION] = { "set_option", cm_set_option,
					  sizeof(struct rdma_ucm_set_option) },
	[RDMA_USER_CM_CMD_QUERY] = { "query", cm_query,
				     sizeof(struct rdma_ucm_query) },
	[RDMA_USER_CM_CMD_BIND] = { "bind", cm_bind,
				    sizeof(struct rdma_ucm_bind) },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {
		"resolve_addr", cm_resolve_addr,
		sizeof(struct rdma_ucm_resolve_addr) },
};

static int run_locked(struct cm *cm, const void *buf, size_t len)
{
	struct rdma_ucm_cmd_hdr hdr;
	struct cm_cmd cmd = { .cm = cm };
	int ret;

	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.cmd >= ARRAY_LEN(commands) || !commands[hdr.cmd].fn)
		ret = -ENOSYS;
	else if (hdr.in + sizeof(hdr) > len ||
		 hdr.in < commands[hdr.cmd].in_size)
		ret = -EINVAL;
	else {
		cmd.in = (const uint8_t *)buf + sizeof(hdr);
		cmd.out_len = hdr.out;
		ret = commands[hdr.cmd].fn(&cmd);
	}
	if (the_card->conf.is_traced)
		check_say("rdma_cm %u %s: %s", hdr.cmd,
			  ret == -ENOSYS ? "" : commands[hdr.cmd].name,
			  ret ? strerror(-ret) : "ok");
	return ret;
}

static bool is_get_event(const void *buf)
{
	struct rdma_ucm_cmd_hdr hdr;

	memcpy(&hdr, buf, sizeof(hdr));
	return hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT;
}

/* Getting an event waits for one, without the lock. Where there is no thread it
 * looks itself how the resolutions go on. */
static ssize_t cm_write(struct file *file, const void *buf, size_t len)
{
	struct cm *cm = CONTAINER_OF(file, struct cm, file);
	struct pollfd pfd = { .fd = file->fd, .events = POLLIN };
	struct timespec look = { .tv_nsec = (long)look_ns };
	bool is_manual = the_card->conf.is_manual;
	int ret;

	if (len < sizeof(struct rdma_ucm_cmd_hdr))
		return -EINVAL;
	for (;;) {
		card_lock(the_card);
		if (is_manual)
			rdma_cm_step_locked();
		ret = run_locked(cm, buf, len);
		card_unlock(the_card);
		if (ret != -EAGAIN || !is_get_event(buf) ||
		    sys_fcntl(file->fd, F_GETFL, 0) & O_NONBLOCK)
			return ret ? ret : (ssize_t)len;
		ret = sys_ppoll(&pfd, 1, is_manual ? &look : NULL);
		if (ret < 0)
			return ret;
	}
}

static void cm_close(struct file *file)
{
	struct cm *cm = CONTAINER_OF(file, struct cm, file);
	struct cm_event *event, *next;
	struct cm_id *id;
	uint32_t number = 0;

	card_lock(the_card);
	LIST_FOR_EACH_SAFE(event, next, &cm->events, link) {
		list_remove(&event->link);
		free(event);
	}
	for (; (id = idtab_next(&cm->ids, &number)); number++) {
		list_remove(&id->link);
		free(id);
	}
	card_unlock(the_card);
	idtab_free(&cm->ids);
	free(cm);
}

static const struct file_ops cm_ops = {
	.write = cm_write,
	.close = cm_close,
	.is_shown_as_device = true,
};

int rdma_cm_open(int fd)
{
	struct cm *cm = calloc(1, sizeof(*cm));
	int event_fd, ret;

	if (!cm)
		return -ENOMEM;
	cm->file.ops = &cm_ops;
	idtab_init(&cm->ids, 1);
	list_init(&cm->events);
	/* A descriptor that can be polled takes the place of the device's. */
	event_fd = (int)SYS(__NR_eventfd2, 0, EFD_SEMAPHORE | EFD_CLOEXEC);
	ret = event_fd;
	if (event_fd >= 0) {
		ret = (int)SYS(__NR_dup3, event_fd, fd, O_CLOEXEC);
		sys_close(event_fd);
	}
	if (ret >= 0)
		ret = files_add(fd, &cm->file);
	if (ret < 0) {
		idtab_free(&cm->ids);
		free(cm);
	}
	return ret < 0 ? ret : 0;
}
