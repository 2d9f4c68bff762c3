/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: several listeners at a port. */
#include "config.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

static void wildcard_and_specific_listeners(void)
{
	struct sockaddr_in name, own, any = { .sin_family = AF_INET };
	int special = made(), general = made(), fd, child;

	set_option(special, SOL_SOCKET, SO_REUSEADDR, 1);
	set_option(special, SOL_SOCKET, SO_REUSEPORT, 1);
	set_option(general, SOL_SOCKET, SO_REUSEADDR, 1);
	set_option(general, SOL_SOCKET, SO_REUSEPORT, 1);
	close(bound(&name));
	own = owned(name.sin_port);
	any.sin_port = name.sin_port;
	SAY("bind %s\n",
	    err(bind(special, (struct sockaddr *)&own, sizeof(own))));
	SAY("bind %s\n",
	    err(bind(general, (struct sockaddr *)&any, sizeof(any))));
	SAY("listen %s\n", err(listen(special, 4)));
	SAY("listen %s\n", err(listen(general, 4)));
	fd = connected(&name);
	child = accept(special, NULL, NULL);
	SAY("the special one accepts %s\n", err(child));
	say_names(child, name.sin_port, 0);
	close(child);
	close(fd);
	close(special);
	fd = connected(&name);
	child = accept(general, NULL, NULL);
	SAY("the general one accepts %s\n", err(child));
	say_names(child, name.sin_port, 0);
	say_names(general, name.sin_port, 0);
	close(child);
	close(fd);
	close(general);
}

/* Each connection is one listener's; when one closes the others have the rest. */
static void shared_port(void)
{
	enum { LISTENERS = 4, CLIENTS = 60 };
	int listeners[LISTENERS], clients[CLIENTS], cnt = 0, busy = 0, child;
	struct sockaddr_in name, own;

	close(bound(&name));
	own = owned(name.sin_port);
	for (int i = 0; i < LISTENERS; i++) {
		listeners[i] = made_nonblocking();
		set_option(listeners[i], SOL_SOCKET, SO_REUSEPORT, 1);
		SAY("bind %s, ", err(bind(listeners[i], (struct sockaddr *)&own,
					  sizeof(own))));
		SAY("listen %s\n", err(listen(listeners[i], CLIENTS)));
	}
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = connected(&name);
	for (int i = 0; i < CLIENTS; i++)
		send(clients[i], "x", 1, 0);
	sleep_ms(50);
	for (int i = 0; i < LISTENERS; i++) {
		int own_cnt = 0;

		while ((child = accept(listeners[i], NULL, NULL)) >= 0) {
			own_cnt++;
			close(child);
		}
		cnt += own_cnt;
		busy += own_cnt > 0;
	}
	SAY("%d accepted, all have some: %d\n", cnt, busy == LISTENERS);
	for (int i = 0; i < CLIENTS; i++)
		close(clients[i]);
	for (int i = 1; i < LISTENERS; i++)
		close(listeners[i]);
	clients[0] = connected(&name);
	await(listeners[0], POLLIN);
	SAY("the last one accepts %s\n", err(accept(listeners[0], NULL, NULL)));
	close(clients[0]);
	close(listeners[0]);
}

/* One of several on a port, or the first one for 0, which chooses the port. */
static int sharing(struct sockaddr_in *name, uint16_t port, int backlog)
{
	struct sockaddr_in own = owned(port);
	socklen_t len = sizeof(own);
	int fd = made_nonblocking();

	set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) != 0)
		SAY("bind: %m\n");
	if (listen(fd, backlog) != 0)
		SAY("listen: %m\n");
	getsockname(fd, (struct sockaddr *)&own, &len);
	*name = heard_at(own.sin_port);
	return fd;
}

/* Which of them has a connection within that time; -1: none. */
static int who_has_one_in(const int *listeners, int cnt, int ms)
{
	struct pollfd fds[8];

	for (int i = 0; i < cnt; i++)
		fds[i] = (struct pollfd){ .fd = listeners[i], .events = POLLIN };
	if (poll(fds, (nfds_t)cnt, ms) <= 0)
		return -1;
	for (int i = 0; i < cnt; i++)
		if (fds[i].revents)
			return i;
	return -1;
}

static int who_has_one(const int *listeners, int cnt)
{
	return who_has_one_in(listeners, cnt, 10000);
}

static void share_port(int *listeners, int cnt, int backlog,
		       struct sockaddr_in *name)
{
	listeners[0] = sharing(name, 0, backlog);
	for (int i = 1; i < cnt; i++)
		listeners[i] = sharing(name, name->sin_port, backlog);
	/* from the first wait on they are ours, and so is who connects */
	who_has_one_in(listeners, cnt, 0);
}

static void close_all(const int *fds, int cnt)
{
	for (int i = 0; i < cnt; i++)
		close(fds[i]);
}

enum { SHARERS = 4, SHARED_CLIENTS = 40 };

/* As long as nobody comes or goes, the same two ends find the same listener. */
static void shared_port_is_faithful(void)
{
	int listeners[SHARERS], places[3], child, fd;
	struct sockaddr_in name, own;
	socklen_t len = sizeof(own);

	share_port(listeners, SHARERS, 8, &name);
	fd = bound(&own);
	getsockname(fd, (struct sockaddr *)&own, &len);
	for (int i = 0; i < 3; i++) {
		SAY("connect %s\n", err(connect_to(fd, &name)));
		places[i] = who_has_one(listeners, SHARERS);
		child = accept(listeners[places[i]], NULL, NULL);
		SAY("accept %s\n", err(child));
		reset(child);
		reset(fd);
		fd = made();
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
		bind(fd, (struct sockaddr *)&own, sizeof(own));
	}
	SAY("the same %d\n", places[0] == places[1] && places[1] == places[2]);
	close(fd);
	close_all(listeners, SHARERS);
}

static int count_accepted(int listener)
{
	int cnt = 0, child;

	while ((child = accept(listener, NULL, NULL)) >= 0) {
		cnt++;
		close(child);
	}
	return cnt;
}

static void connect_many(const struct sockaddr_in *name, int *clients)
{
	for (int i = 0; i < SHARED_CLIENTS; i++) {
		clients[i] = connected(name);
		send(clients[i], "x", 1, 0);
	}
	/* the last step of the handshakes */
	for (int i = 0; i < SHARED_CLIENTS; i++)
		await_acks(clients[i]);
}

/* Who comes has a share from then on, and who goes leaves his to the others. */
static void shared_port_changes_hands(void)
{
	int listeners[SHARERS], clients[SHARED_CLIENTS], cnt, sum;
	struct sockaddr_in name;

	share_port(listeners, 2, SHARED_CLIENTS, &name);
	for (int round = 2; round <= SHARERS; round++) {
		int busy = sum = 0;

		connect_many(&name, clients);
		for (int i = 0; i < round; i++) {
			cnt = count_accepted(listeners[i]);
			sum += cnt;
			busy += cnt > 0;
		}
		SAY("%d of %d are accepted by %d\n", sum, SHARED_CLIENTS, busy);
		close_all(clients, SHARED_CLIENTS);
		if (round < SHARERS)
			listeners[round] = sharing(&name, name.sin_port,
						   SHARED_CLIENTS);
	}
	/* one is closed, one is shut down */
	close(listeners[1]);
	SAY("shutdown %s\n", err(shutdown(listeners[2], SHUT_RD)));
	connect_many(&name, clients);
	SAY("accept %s\n", err(accept(listeners[2], NULL, NULL)));
	sum = count_accepted(listeners[0]) + count_accepted(listeners[3]);
	SAY("%d are accepted\n", sum);
	close_all(clients, SHARED_CLIENTS);
	SAY("listen %s\n", err(listen(listeners[2], SHARED_CLIENTS)));
	connect_many(&name, clients);
	cnt = count_accepted(listeners[2]);
	sum = count_accepted(listeners[0]) + count_accepted(listeners[3]);
	SAY("%d are accepted, some by who listens again: %d\n", sum + cnt, cnt > 0);
	close_all(clients, SHARED_CLIENTS);
	close(listeners[0]);
	close_all(listeners + 2, 2);
}

/* What becomes of those whom nobody has accepted. */
static void say_children_of_one_that_closes(void)
{
	int listeners[2], clients[SHARED_CLIENTS], first, second, lost = 0;
	struct sockaddr_in name;

	share_port(listeners, 2, SHARED_CLIENTS, &name);
	connect_many(&name, clients);
	/* one of each is known to be there, and neither has all */
	await(listeners[0], POLLIN);
	await(listeners[1], POLLIN);
	close(listeners[0]);
	second = count_accepted(listeners[1]);
	first = SHARED_CLIENTS - second;
	for (int i = 0; i < SHARED_CLIENTS; i++) {
		char byte;
		ssize_t n = recv(clients[i], &byte, 1, 0);

		lost += n < 0 && errno == ECONNRESET;
	}
	SAY("both had some %d, all are accepted %d, those of the first are reset %d\n",
	    first > 0 && second > 0, first == 0, lost >= first && first > 0);
	close_all(clients, SHARED_CLIENTS);
	close(listeners[1]);
}

static void shared_port_loses_one(void)
{
	say_children_of_one_that_closes();
}

static void set_migration(const char *value)
{
	int fd = open("/proc/sys/net/ipv4/tcp_migrate_req", O_WRONLY);

	if (fd >= 0 && write(fd, value, 1) != 1)
		SAY("tcp_migrate_req: %m\n");
	close(fd);
}

/* In a network namespace of its own. */
static void shared_port_passes_children_on(void)
{
	set_migration("1");
	say_children_of_one_that_closes();
	set_migration("0");
}

/* Linux lets those of one user share a port who all want it. */
static void shared_port_is_refused(void)
{
	struct sockaddr_in name, own;
	int first = sharing(&name, 0, 4), fd = made();
	pid_t pid;

	own = owned(name.sin_port);
	SAY("bind without %s\n", err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	SAY("bind with another option %s\n",
	    err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
	set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
	set_option(fd, SOL_SOCKET, SO_REUSEPORT, 0);
	SAY("listen without %s\n", err(listen(fd, 4)));
	close(fd);
	pid = fork();
	if (pid == 0) {
		/* the other user may not write to our log */
		close(STDERR_FILENO);
		SAY("setuid %s\n", err(setuid(65534)));
		fd = made();
		set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
		SAY("bind of another user %s\n",
		    err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	close(first);
}

enum { SHARING_THREADS = 4, OF_THREADS = 40 };

static struct sockaddr_in threads_name;
static int threads_listeners[SHARING_THREADS];

/* Echoes a byte to each, until its listener is shut down. */
static void *serve_alone(void *arg)
{
	int listener = *(int *)arg, fd;
	long cnt = 0;
	char byte;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		if (recv(fd, &byte, 1, 0) == 1 && send(fd, &byte, 1, 0) == 1)
			cnt++;
		close(fd);
	}
	return (void *)cnt;
}

/* As servers do it: each thread has a listener of its own. */
static void shared_port_of_threads(void)
{
	pthread_t threads[SHARING_THREADS];
	int served = 0, busy = 0, echoed = 0;

	share_port(threads_listeners, SHARING_THREADS, OF_THREADS, &threads_name);
	for (int i = 0; i < SHARING_THREADS; i++) {
		set_blocking(threads_listeners[i], true);
		pthread_create(&threads[i], NULL, serve_alone,
			       &threads_listeners[i]);
	}
	for (int i = 0; i < OF_THREADS; i++) {
		int fd = connected(&threads_name);
		char byte = 'a';

		send(fd, &byte, 1, 0);
		echoed += recv(fd, &byte, 1, 0) == 1 && byte == 'a';
		close(fd);
	}
	for (int i = 0; i < SHARING_THREADS; i++) {
		void *cnt;

		shutdown(threads_listeners[i], SHUT_RD);
		pthread_join(threads[i], &cnt);
		served += (int)(long)cnt;
		busy += cnt != NULL;
	}
	SAY("%d echoed, %d served by %d threads\n", echoed, served, busy);
	close_all(threads_listeners, SHARING_THREADS);
}

/* A program chooses: all go to the first one, whoever of the port has been given it. */
static void shared_port_with_a_program(void)
{
	struct sock_filter first[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog program = { ARRAY_LEN(first), first };
	int listeners[SHARERS], clients[SHARED_CLIENTS], before = 0;
	struct sockaddr_in name;

	share_port(listeners, SHARERS, SHARED_CLIENTS, &name);
	connect_many(&name, clients);
	SAY("attach %s\n",
	    err(setsockopt(listeners[2], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF,
			   &program, sizeof(program))));
	for (int i = 0; i < SHARERS; i++)
		before += count_accepted(listeners[i]);
	SAY("%d are accepted\n", before);
	close_all(clients, SHARED_CLIENTS);
	/* the local device reaches no sockets of the kernel */
	if (over_wire()) {
		connect_many(&name, clients);
		for (int i = 0; i < SHARERS; i++)
			SAY("%d: %d\n", i, count_accepted(listeners[i]));
		close_all(clients, SHARED_CLIENTS);
	}
	close_all(listeners, SHARERS);
}

/* As many servers have it: a listener for each family. That of IPv6 is the kernel's, and the
 * other one's connections are not its business. */
static void shared_port_beside_ipv6(void)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
	struct sockaddr_in name;
	int fd = sharing(&name, 0, 4), other = socket(AF_INET6, SOCK_STREAM, 0);
	int client, child;

	set_option(other, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	set_option(other, SOL_SOCKET, SO_REUSEPORT, 1);
	six.sin6_port = name.sin_port;
	SAY("bind %s, ", err(bind(other, (struct sockaddr *)&six, sizeof(six))));
	SAY("listen %s\n", err(listen(other, 4)));
	say_poll(other, POLLIN);
	client = connected(&name);
	await(fd, POLLIN);
	child = accept(fd, NULL, NULL);
	send(client, "hello", 5, 0);
	receive(child, 0);
	say_poll(other, POLLIN);
	close(client);
	close(child);
	close(fd);
	close(other);
}

const struct scenario port_scenarios[] = {
	SCENARIO(wildcard_and_specific_listeners, OURS),
	SCENARIO(shared_port, OURS),
	SCENARIO(shared_port_is_faithful, OURS),
	SCENARIO(shared_port_changes_hands, OURS),
	SCENARIO(shared_port_loses_one, OURS),
	SCENARIO(shared_port_passes_children_on, OURS),
	SCENARIO(shared_port_is_refused, MIXED),
	SCENARIO(shared_port_of_threads, OURS),
	SCENARIO(shared_port_with_a_program, MIXED),
	SCENARIO(shared_port_beside_ipv6, OURS),
	SCENARIO_END,
};
