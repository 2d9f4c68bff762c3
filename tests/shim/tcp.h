/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the scenarios of tcp.sh have in common. */
#ifndef SHIM_TCP_H
#define SHIM_TCP_H

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

/* Who carries a scenario's segments under the library. */
enum carrier {
	KERNEL, /* the kernel, all of them */
	OURS, /* we, but for one in twenty */
	MIXED, /* this is not looked at */
};

struct scenario {
	const char *name;
	void (*run)(void);
	enum carrier carrier;
};

#define SCENARIO(name, carrier) { #name, name, carrier }
#define SCENARIO_END { NULL, NULL, MIXED }

extern const struct scenario close_scenarios[];
extern const struct scenario connect_scenarios[];
extern const struct scenario error_queue_scenarios[];
extern const struct scenario exec_scenarios[];
extern const struct scenario fastopen_scenarios[];
extern const struct scenario file_scenarios[];
extern const struct scenario length_scenarios[];
extern const struct scenario listen_scenarios[];
extern const struct scenario option_scenarios[];
extern const struct scenario beside_scenarios[];
extern const struct scenario part_scenarios[];
extern const struct scenario port_scenarios[];
extern const struct scenario process_scenarios[];
extern const struct scenario ready_scenarios[];
extern const struct scenario receive_scenarios[];
extern const struct scenario send_scenarios[];
extern const struct scenario told_scenarios[];
extern const struct scenario urgent_scenarios[];
extern const struct scenario wait_scenarios[];
extern const struct scenario worker_scenarios[];

static inline const char *err(long result)
{
	return result < 0 ? strerrorname_np(errno) : "ok";
}

/* What lies between these two is the kernel's by right, also in a scenario of ours. */
void kernel_begins(void);
void kernel_ends(void);

/* What a socket binds itself to, and where others reach it: both are loopback's unless
 * a mirror stands somewhere. */
struct sockaddr_in owned(uint16_t port);
struct sockaddr_in heard_at(uint16_t port);
bool over_wire(void);

/* A fresh socket. */
int made(void);
/* Bound to a free port, or to that one; where it is heard in *name. */
int bound(struct sockaddr_in *name);
int bound_to(uint16_t port);
/* The same, and it listens. */
int listening(struct sockaddr_in *name, int backlog);
int connect_to(int fd, const struct sockaddr_in *name);
/* A socket that is connected there. */
int connected(const struct sockaddr_in *name);
/* It makes no calls wait. */
int made_nonblocking(void);
void set_blocking(int fd, bool is_blocking);
/* The first connects, the second is its accepted end. */
void make_pair(int pair[2]);
void make_pair_of(int listener, const struct sockaddr_in *name, int pair[2]);
void close_pair(const int pair[2]);
/* No byte that was not read, and what was sent and is under way is lost. */
void reset(int fd);

int set_option(int fd, int level, int name, int value);
int get_option(int fd, int level, int name);
/* The local port in its name, in the network's order. */
uint16_t own_port(int fd);
/* SO_ERROR, printed. */
void say_error(int fd);
/* Its names, by what they are: nothing, the owned address or the one heard at, and
 * whether the port is one of these. */
void say_names(int fd, uint16_t own_port, uint16_t peer_port);

/* Until one of the events is there: ten seconds at most. What a scenario looks at
 * without waiting, it has awaited before. Returns what is there. */
int await(int fd, int events);
/* Until so many bytes can be read, or the peer has ended. */
void await_bytes(int fd, int cnt);
/* Until the peer has acknowledged all. */
void await_acks(int fd);
/* Until the child has ended; how, printed. */
void await_child(pid_t pid);
/* Until both ends are acknowledged. */
void await_closed(int fd);
void sleep_ms(int ms);
long now_ms(void);

/* Bytes that depend on their place. */
void fill(char *buf, size_t len, unsigned seed);
unsigned sum(const char *buf, size_t len);
/* All of it, however often it takes; false when it fails. */
bool send_all(int fd, const char *buf, size_t len);
/* Until so much or the end; the number. */
size_t receive_all(int fd, char *buf, size_t len);
/* As much as goes in without waiting; the buffer has a fixed size then. */
size_t stuff(int fd);
/* Reads until the end or an error, which it leaves in errno; the number. */
size_t drain(int fd, ssize_t *last);
/* Reads so many, of which some may be under way still: ten seconds at most. */
void drain_all(int fd, size_t cnt);

/* What the calls that wait say at once, or epoll_wait within the time; printed. */
void say_poll(int fd, int events);
void say_select(int fd);
void say_wait(int set, int timeout);

/* An address at which there is nothing; the end of memory behind which there is none. */
void *nowhere(void);
char *edge(void);

/* Whether this thread is in the middle of an allocation, so that whoever allocates in it ends the
 * process by 77. Over a wire alone, since the local device allocates its frames; and not under a
 * sanitizer, which has an allocator of its own. */
void set_in_malloc(bool is_in_malloc);

/* Short text, printed. */
void say_sent(int fd, const char *text, int flags);
ssize_t receive(int fd, int flags);
/* The same, of all that comes until the end or an error. */
void receive_to_end(int fd);

struct transfer {
	int fd;
	unsigned seed;
	size_t len;
	bool is_right;
};
/* Reads so many, and whether they are those of the seed (fill); a thread. */
void *receive_much(void *transfer);

#endif
