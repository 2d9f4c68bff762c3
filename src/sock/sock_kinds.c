/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls the kinds of sockets by name (sock_kinds.h). */
#include "config.h"

#include "sock/sock_kinds.h"

#include "fd/fd_visit.h"
#include "sock/kin.h"
#include "sock/sock_crowd.h"
#include "sock/tcp/tsock.h"
#include "sock/udp/udp.h"

void sock_kinds_start(const struct sock_params *params)
{
	sock_params = *params;
	kin_start();
	udp_start();
	tsocks_start();
}

static int plain_type(int type)
{
	return type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
}

bool sock_kinds_may_serve(int type)
{
	return plain_type(type) == SOCK_DGRAM ||
	       (sock_params.with_tcp && plain_type(type) == SOCK_STREAM);
}

struct fd_object *sock_kinds_create(int fd, int domain, int type, int protocol,
				    enum reason *reason_out)
{
	struct fd_object *obj = NULL;

	*reason_out = REASON_TYPE;
	if (plain_type(type) == SOCK_DGRAM &&
	    (protocol == 0 || protocol == IPPROTO_UDP)) {
		*reason_out = REASON_MEMORY;
		obj = udp_create(fd, domain, type);
	}
	if (sock_params.with_tcp && plain_type(type) == SOCK_STREAM &&
	    (protocol == 0 || protocol == IPPROTO_TCP)) {
		*reason_out = REASON_MEMORY;
		obj = tsock_create(fd, domain, type);
	}
	return obj;
}

static bool follow_news(struct fd_object *obj, int fd)
{
	obj->ops->follow_news(obj, fd);
	return false;
}

void sock_kinds_follow_news(void)
{
	fd_visit(NULL, follow_news);
}

void sock_kinds_each_second(void)
{
	udp_look_at_ports();
	if (!sock_params.with_tcp)
		return;
	tsocks_publish();
	tsocks_ask_guards();
	tsocks_look_at_ports();
}

bool sock_kinds_want_seconds(void)
{
	return udp_has_heirs() || udp_looks_at_ports() || tsocks_share_ports();
}

void sock_kinds_before_fork(void)
{
	udp_before_fork();
}

void sock_kinds_share(void)
{
	bool has_tcp = tsocks_exist();

	/* the kernel's set of epoll may lack connections that are ours */
	tsocks_before_fork((has_tcp || udp_has_heirs()) &&
			   kin_before_fork(has_tcp ? KIN_ANY_USE : KIN_CHANGES));
}

void sock_kinds_after_fork(void)
{
	kin_after_fork();
}

void sock_kinds_before_spawn(void)
{
	udp_before_spawn();
	tsocks_before_spawn();
	kin_before_spawn();
}

void sock_kinds_stop(void)
{
	kin_stop();
}

void sock_kinds_before_exit(void)
{
	udp_before_exit();
	tsocks_before_exit();
}

void sock_kinds_before_exec(void)
{
	tsocks_before_exit();
}

void sock_kinds_end_what_stays(void)
{
	tsocks_end_what_stays();
}

void sock_kinds_before_rights_go(void)
{
	tsocks_before_rights_go();
}

void sock_kinds_before_root_changes(void)
{
	tsocks_before_root_changes();
}

void sock_kinds_rights_changed(bool may_go_back)
{
	tsocks_rights_changed(may_go_back);
}

void sock_kinds_forked_first(void)
{
	kin_forked_first();
}

void sock_kinds_forked(void)
{
	udp_forked();
	tsocks_forked();
	sock_crowd_forked();
	kin_forked();
}

bool sock_kinds_have_heirs(void)
{
	return udp_has_heirs();
}

bool sock_kinds_look_after_heirs(void)
{
	return udp_look_after_heirs();
}
