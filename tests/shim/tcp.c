/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What programs do with TCP sockets, over loopback. Each scenario prints what it
 * saw; tcp.sh runs it on libc and under the test library, where loopback is an
 * accelerated device (VMA_TEST_LOCAL), and the outputs must be the same. Each says who
 * has to have carried its segments there, which is checked in a network namespace of
 * its own (TCP_ALONE); TCP_CARRIER=kernel, ours or mixed says it for all.
 *
 * With TCP_OWNED, an address of this host, and TCP_HEARD_AT, one from which a mirror
 * sends back whatever is sent there, the same goes over a wire
 * (tests/system/tcp_mirror.sh). TCP_WIRE is the device then, where frames are counted.
 *
 * The scenarios are in tcp_*.c.
 *
 *   tcp NAME     tcp --list     tcp --carriers
 */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/shim/tcp.h"

/* -- names -------------------------------------------------------------------------- */

static struct sockaddr_in name_of(const char *variable, uint16_t port)
{
	const char *address = getenv(variable);
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = port,
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };

	if (address)
		inet_pton(AF_INET, address, &name.sin_addr);
	return name;
}

struct sockaddr_in owned(uint16_t port)
{
	return name_of("TCP_OWNED", port);
}

struct sockaddr_in heard_at(uint16_t port)
{
	return name_of("TCP_HEARD_AT", port);
}

bool over_wire(void)
{
	return getenv("TCP_HEARD_AT");
}

static const char *address_text(const struct sockaddr_in *name)
{
	if (!name->sin_addr.s_addr)
		return "any";
	if (name->sin_addr.s_addr == owned(0).sin_addr.s_addr ||
	    name->sin_addr.s_addr == heard_at(0).sin_addr.s_addr)
		return "here";
	return "elsewhere";
}

static void say_name(const char *whose, int result,
		     const struct sockaddr_in *name, uint16_t port)
{
	if (result < 0)
		SAY(" %s %s", whose, err(result));
	else
		SAY(" %s %s port %s", whose, address_text(name),
		    !name->sin_port	   ? "none" :
		    name->sin_port == port ? "as expected" :
					     "other");
}

void say_names(int fd, uint16_t own_port, uint16_t peer_port)
{
	struct sockaddr_in name = { 0 };
	socklen_t len = sizeof(name);
	int n = getsockname(fd, (struct sockaddr *)&name, &len);

	say_name("own", n, &name, own_port);
	len = sizeof(name);
	n = getpeername(fd, (struct sockaddr *)&name, &len);
	say_name("peer", n, &name, peer_port);
	SAY("\n");
}

/* -- sockets ------------------------------------------------------------------------ */

int made(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		SAY("socket: %m\n");
	return fd;
}

int made_nonblocking(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
}

void set_blocking(int fd, bool is_blocking)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL,
	      is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

int bound_to(uint16_t port)
{
	struct sockaddr_in own = owned(port);
	int fd = made();

	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) != 0)
		SAY("bind: %m\n");
	return fd;
}

int bound(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);
	int fd = bound_to(0);

	if (getsockname(fd, (struct sockaddr *)name, &len) != 0)
		SAY("getsockname: %m\n");
	*name = heard_at(name->sin_port);
	return fd;
}

int listening(struct sockaddr_in *name, int backlog)
{
	int fd = bound(name);

	if (listen(fd, backlog) != 0)
		SAY("listen: %m\n");
	return fd;
}

int connect_to(int fd, const struct sockaddr_in *name)
{
	return connect(fd, (const struct sockaddr *)name, sizeof(*name));
}

int connected(const struct sockaddr_in *name)
{
	int fd = made();

	if (connect_to(fd, name) != 0)
		SAY("connect: %m\n");
	return fd;
}

void make_pair_of(int listener, const struct sockaddr_in *name, int pair[2])
{
	pair[0] = made();
	pair[1] = -1;
	if (connect_to(pair[0], name) != 0)
		SAY("connect: %m\n");
	else if ((pair[1] = accept(listener, NULL, NULL)) < 0)
		SAY("accept: %m\n");
}

void make_pair(int pair[2])
{
	struct sockaddr_in name;
	int listener = listening(&name, 1);

	make_pair_of(listener, &name, pair);
	close(listener);
}

void close_pair(const int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

void reset(int fd)
{
	struct linger linger = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

int get_option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, level, name, &value, &len) != 0)
		SAY("getsockopt %d/%d: %m\n", level, name);
	return value;
}

uint16_t own_port(int fd)
{
	struct sockaddr_in name = { 0 };
	socklen_t len = sizeof(name);

	getsockname(fd, (struct sockaddr *)&name, &len);
	return name.sin_port;
}

void say_error(int fd)
{
	int error = get_option(fd, SOL_SOCKET, SO_ERROR);

	SAY("SO_ERROR %s\n", error ? strerrorname_np(error) : "none");
}

/* -- time --------------------------------------------------------------------------- */

void await_closed(int fd)
{
	long end = now_ms() + 10000;
	struct tcp_info info;
	socklen_t len;

	do {
		len = sizeof(info);
		memset(&info, 0, sizeof(info));
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
		if (info.tcpi_state == TCP_CLOSE)
			return;
		sleep_ms(1);
	} while (now_ms() < end);
	SAY("state %d for long\n", info.tcpi_state);
}

void sleep_ms(int ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&left, &left) != 0)
		;
}

long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The kernel notes what a reset means one thing after the other, and another processor may
 * see it half-way: what is there for good has to be there in two looks. */
static short settled(struct pollfd *pfd)
{
	short before;

	do {
		before = pfd->revents;
		sleep_ms(2);
		poll(pfd, 1, 0);
	} while (pfd->revents != before);
	return before;
}

int await(int fd, int events)
{
	struct pollfd pfd = { .fd = fd, .events = (short)events };

	if (poll(&pfd, 1, 10000) == 0)
		SAY("awaited %#x in vain\n", (unsigned)events);
	return pfd.revents & (POLLERR | POLLHUP) ? settled(&pfd) : pfd.revents;
}

void await_bytes(int fd, int cnt)
{
	long end = now_ms() + 10000;
	int n = 0;

	while (ioctl(fd, FIONREAD, &n) == 0 && n < cnt && now_ms() < end)
		sleep_ms(1);
	if (n < cnt)
		SAY("%d bytes instead of %d\n", n, cnt);
}

void await_acks(int fd)
{
	long end = now_ms() + 10000;
	int n = 0;

	while (ioctl(fd, SIOCOUTQ, &n) == 0 && n && now_ms() < end)
		sleep_ms(1);
	if (n)
		SAY("%d bytes are not acknowledged\n", n);
}

/* -- bytes -------------------------------------------------------------------------- */

void fill(char *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		buf[i] = (char)('a' + (seed >> 16) % 26);
	}
}

unsigned sum(const char *buf, size_t len)
{
	unsigned sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + (unsigned char)buf[i];
	return sum;
}

bool send_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			await(fd, POLLOUT);
		else if (n < 0)
			return false;
		else
			buf += n, len -= (size_t)n;
	}
	return true;
}

size_t receive_all(int fd, char *buf, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(fd, buf + got, len - got, 0);

		if (n < 0 && errno == EAGAIN)
			await(fd, POLLIN);
		else if (n <= 0)
			break;
		else
			got += (size_t)n;
	}
	return got;
}

static size_t stuff_once(int fd)
{
	static const char buf[65536];
	size_t total = 0;
	ssize_t n;

	while ((n = send(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
		total += (size_t)n;
	while ((n = send(fd, buf, 1, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
		total += (size_t)n;
	return total;
}

/* Until it stays full: acknowledgments make room, as long as the peer has some; and the
 * buffer shall not grow by itself. */
size_t stuff(int fd)
{
	size_t total = 0, n;

	set_option(fd, SOL_SOCKET, SO_SNDBUF, 100000);
	for (int quiet = 0; quiet < 3; quiet++) {
		n = stuff_once(fd);
		total += n;
		if (n)
			quiet = 0;
		sleep_ms(50);
	}
	return total;
}

size_t drain(int fd, ssize_t *last)
{
	static __thread char buf[65536];
	size_t total = 0;

	while ((*last = recv(fd, buf, sizeof(buf), 0)) > 0)
		total += (size_t)*last;
	return total;
}

void drain_all(int fd, size_t cnt)
{
	long end = now_ms() + 10000;
	ssize_t last = -1;
	size_t n = 0;

	set_blocking(fd, false);
	while (n < cnt && last && now_ms() < end) {
		n += drain(fd, &last);
		sleep_ms(1);
	}
	if (n < cnt)
		SAY("drained %zu of %zu\n", n, cnt);
}

void *nowhere(void)
{
	static void *volatile address = (void *)8;

	return address;
}

char *edge(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + size, size);
	return pages + size;
}

void say_sent(int fd, const char *text, int flags)
{
	ssize_t n = send(fd, text, strlen(text), flags);

	SAY("send %s: %zd %s\n", text, n, err(n));
}

ssize_t receive(int fd, int flags)
{
	char buf[256] = "";
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, flags);

	SAY("recv: %zd %s %s\n", n, err(n), n > 0 ? buf : "");
	return n;
}

void receive_to_end(int fd)
{
	char buf[256] = "";
	size_t got = receive_all(fd, buf, sizeof(buf) - 1);

	errno = 0;
	SAY("recv: \"%s\", %zu, then", buf, got);
	SAY(" %s\n", recv(fd, buf, sizeof(buf), 0) < 0 ? strerrorname_np(errno) : "the end");
}

void await_child(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid && pid != -1)
		SAY("waitpid: %m\n");
	else if (WIFSIGNALED(status))
		SAY("child: signal %d\n", WTERMSIG(status));
	else
		SAY("child: exit %d\n", WEXITSTATUS(status));
}

/* -- the runner --------------------------------------------------------------------- */

static _Thread_local bool is_in_malloc;

void set_in_malloc(bool is)
{
	is_in_malloc = is && over_wire();
}

#if !HAS_ADDRESS_SANITIZER && !HAS_THREAD_SANITIZER
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t cnt, size_t size);
extern void __libc_free(void *mem);

static void check_allocation(const char *what)
{
	if (!is_in_malloc)
		return;
	(void)!write(STDOUT_FILENO, what, strlen(what));
	syscall(SYS_exit_group, 77);
}

EXPORT void *malloc(size_t size)
{
	check_allocation("malloc in the middle of malloc\n");
	return __libc_malloc(size);
}

EXPORT void *calloc(size_t cnt, size_t size)
{
	check_allocation("calloc in the middle of malloc\n");
	return __libc_calloc(cnt, size);
}

EXPORT void free(void *mem)
{
	check_allocation("free in the middle of malloc\n");
	__libc_free(mem);
}
#endif

static const struct scenario *const lists[] = {
	connect_scenarios, fastopen_scenarios, listen_scenarios, port_scenarios,
	send_scenarios,	   urgent_scenarios,   error_queue_scenarios,
	receive_scenarios, length_scenarios,   part_scenarios, beside_scenarios,	 close_scenarios,
	file_scenarios,
	option_scenarios,  ready_scenarios,    told_scenarios,	 wait_scenarios,
	process_scenarios, exec_scenarios,     worker_scenarios,
};

/* Segments that the kernel has received in this namespace. */
static unsigned long kernel_cnt(void)
{
	FILE *file = fopen("/proc/net/snmp", "re");
	unsigned long cnt = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Tcp: %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu",
			   &cnt) == 1)
			break;
	if (file)
		fclose(file);
	return cnt;
}

/* Of the kernel's segments, those that are so by right. */
static unsigned long by_right_cnt, begun_at;

void kernel_begins(void)
{
	begun_at = kernel_cnt();
}

void kernel_ends(void)
{
	by_right_cnt += kernel_cnt() - begun_at;
}

static enum carrier wished_carrier(enum carrier listed)
{
	const char *value = getenv("TCP_CARRIER");

	if (!value || !*value)
		return listed;
	return strcmp(value, "kernel") == 0 ? KERNEL :
	       strcmp(value, "ours") == 0   ? OURS :
					      MIXED;
}

/* What the kernel has done in this namespace: who fails here has to know what it was. */
static void say_kernels_tcp(void)
{
	FILE *file = fopen("/proc/net/snmp", "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "Tcp:", 4) == 0)
			SAY("%s", line);
	if (file)
		fclose(file);
}

static void say_carrier(enum carrier carrier, unsigned long ours,
			unsigned long theirs)
{
	if (carrier == KERNEL && ours)
		SAY("%lu segments were accelerated, which is better than listed\n",
		    ours);
	theirs -= theirs < by_right_cnt ? theirs : by_right_cnt;
	if (carrier == OURS && theirs * 20 > ours + theirs) {
		SAY("only %lu of %lu segments were accelerated\n", ours,
		    ours + theirs);
		say_kernels_tcp();
	}
}

/* Frames that came by the wire of this namespace. */
static unsigned long wire_cnt(void)
{
	unsigned long cnt = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_packets",
		 getenv("TCP_WIRE") ?: "lo");
	file = fopen(path, "re");
	if (file && fscanf(file, "%lu", &cnt) != 1)
		cnt = 0;
	if (file)
		fclose(file);
	return cnt;
}

/* The kernel joins segments that come together, and there are a few frames that are
 * none. */
static unsigned long ours_of_wire(unsigned long frames, unsigned long theirs)
{
	return frames > theirs * 20 + 4 ? frames - theirs : 0;
}

/* What the test library has counted of loopback; 0 on libc. */
static unsigned long counted(const char *name)
{
	unsigned long (*fn)(void) = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, name);

	return fn ? fn() : 0;
}

/* Segments that came by the accelerated device, and those of the kernel. What the device has
 * given to the kernel is so by right, with one answer to each. */
static void check_carrier(enum carrier carrier, unsigned long kernel_before,
			  unsigned long wire_before)
{
	unsigned long theirs = kernel_cnt() - kernel_before;

	if (getenv("TCP_WIRE")) {
		say_carrier(carrier,
			    ours_of_wire(wire_cnt() - wire_before, theirs),
			    theirs);
	} else if (getenv("VMA_TEST_LOCAL") && getenv("TCP_ALONE")) {
		by_right_cnt += 2 * counted("vma_test_local_given_cnt");
		say_carrier(carrier, counted("vma_test_local_rx_cnt"), theirs);
	}
}

/* The first of that name; NULL names all, which are printed, with who carries them if
 * that is wanted. */
static const struct scenario *find(const char *name, bool with_carrier)
{
	static const char *const carriers[] = {
		[KERNEL] = " kernel",
		[OURS] = " ours",
		[MIXED] = " mixed",
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (const struct scenario *s = lists[i]; s->name; s++)
			if (!name)
				printf("%s%s\n", s->name,
				       with_carrier ? carriers[s->carrier] : "");
			else if (strcmp(s->name, name) == 0)
				return s;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct scenario *scenario;
	unsigned long kernel_before, wire_before;

	if (argc == 2 && (strcmp(argv[1], "--list") == 0 ||
			  strcmp(argv[1], "--carriers") == 0)) {
		find(NULL, strcmp(argv[1], "--carriers") == 0);
		return 0;
	}
	scenario = argc == 2 ? find(argv[1], false) : NULL;
	if (!scenario) {
		fprintf(stderr, "usage: tcp NAME | --list | --carriers\n");
		return 2;
	}
	kernel_before = kernel_cnt();
	wire_before = wire_cnt();
	scenario->run();
	check_carrier(wished_carrier(scenario->carrier), kernel_before,
		      wire_before);
	return 0;
}
