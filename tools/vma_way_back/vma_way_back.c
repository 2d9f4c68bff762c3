/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps rights for a program that is about to give up its own: to switch TCP_REPAIR, without
 * which no accelerated connection can become the kernel's, and to drive interfaces. libvma
 * starts it (fd/right_keeper.h) with a channel as its standard input and the entry for those of
 * other processes as its output, over which it does what os/keeper_abi.h says and nothing else:
 * it has no other right, runs in the network namespace in which it was started, loads only what
 * is compiled into it, and has a filter of its system calls. It ends with the last process that
 * has one of the other ends.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/linux_compat.h"
#include "dev/hand_over_load.h"
#include "dev/pass_program.h"
#include "os/drop_program.h"
#include "os/keeper_abi.h"
#include "os/kernel_types.h"
#include "os/real.h"
#include "tools/vma_way_back/neighbour.h"
#include "tools/vma_way_back/steering.h"

/* -- nothing but what it takes ------------------------------------------------------- */

static int keep_rights(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct had[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, had) != 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(keeper_rights); i++) {
		size_t at = CAP_TO_INDEX(keeper_rights[i]);

		data[at].permitted |= had[at].permitted & CAP_TO_MASK(keeper_rights[i]);
		data[at].effective = data[at].permitted;
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return (int)syscall(SYS_capset, &header, data);
}

#if defined(__x86_64__)
enum { MACHINE = (int)AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = (int)AUDIT_ARCH_AARCH64 };
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { MACHINE = (int)AUDIT_ARCH_PPC64LE };
#else
#error "which machine is this to seccomp?"
#endif

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
/* Goes on behind the next `skip` if it is not that. */
#define UNLESS(value, skip) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, skip)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* The numbers that the filter looks at are small, and on machines of either order of bytes
 * the lower halves of arguments are compared. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOAD_ARGUMENT(n) LOAD(args[n])
#else
#define LOAD_ARGUMENT(n)                                        \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                      \
		 offsetof(struct seccomp_data, args[n]) + 4)
#endif

/* Allows a call. */
#define CALL(number) UNLESS(number, 1), ALLOW

static int filter_calls(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		UNLESS(MACHINE, 1),
		BPF_STMT(BPF_JMP | BPF_JA, 1),
		KILL,
		LOAD(nr),
		CALL(SYS_recvmsg),
		CALL(SYS_sendmsg),
		CALL(SYS_close),
		CALL(SYS_epoll_ctl),
		CALL(SYS_epoll_pwait),
		CALL(SYS_exit_group),
		UNLESS(SYS_getsockopt, 4),
		LOAD_ARGUMENT(1),
		UNLESS(SOL_SOCKET, 1),
		ALLOW,
		REFUSE,
		UNLESS(SYS_setsockopt, 6),
		LOAD_ARGUMENT(1),
		UNLESS(IPPROTO_TCP, 3),
		LOAD_ARGUMENT(2),
		UNLESS(TCP_REPAIR, 1),
		ALLOW,
		REFUSE,
		/* sockets of AF_XDP, and of ICMP */
		UNLESS(SYS_socket, 8),
		LOAD_ARGUMENT(0),
		UNLESS(AF_XDP, 1),
		ALLOW,
		UNLESS(AF_INET, 3),
		LOAD_ARGUMENT(2),
		UNLESS(IPPROTO_ICMP, 1),
		ALLOW,
		REFUSE,
		/* what loads programs: bpf(), memory, and copies of descriptors */
		UNLESS(SYS_bpf, 16),
		LOAD_ARGUMENT(0),
		UNLESS(BPF_MAP_CREATE, 1),
		ALLOW,
		UNLESS(BPF_MAP_UPDATE_ELEM, 1),
		ALLOW,
		UNLESS(BPF_MAP_FREEZE, 1),
		ALLOW,
		UNLESS(BPF_PROG_LOAD, 1),
		ALLOW,
		UNLESS(BPF_BTF_LOAD, 1),
		ALLOW,
		UNLESS(BPF_OBJ_GET_INFO_BY_FD, 1),
		ALLOW,
		UNLESS(BPF_LINK_CREATE, 1),
		ALLOW,
		REFUSE,
		CALL(SYS_brk),
		CALL(SYS_mmap),
		CALL(SYS_munmap),
		CALL(SYS_mremap),
		CALL(SYS_madvise),
		CALL(SYS_fcntl),
		CALL(SYS_dup3),
		CALL(SYS_memfd_create),
		/* the kernel's types, and whether it makes cookies, of files that are open */
		CALL(SYS_pread64),
		CALL(SYS_fstat),
		CALL(SYS_newfstatat),
		CALL(SYS_uname),
		CALL(SYS_getrandom),
		/* libbpf tries others, and goes on without */
		REFUSE,
	};
	struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* -- what it is for ------------------------------------------------------------------ */

/* What the code that it shares with the library calls by this table. */
struct real_calls real;

static void fill_table(void)
{
	real.open = open;
	real.read = read;
	real.close = close;
	real.fcntl = fcntl;
}

static int or_errno(int result)
{
	return result < 0 ? -errno : result;
}

static int switch_repair(int fd, int value)
{
	return or_errno(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &value, sizeof(value)));
}

/* 0, or a negative errno, for what is a descriptor or a negative errno. */
static int give(int result, int *fd_out)
{
	*fd_out = result;
	return result < 0 ? result : 0;
}

static int obey(const struct keeper_request *r, const int *fds, int *fds_out)
{
	switch (r->op) {
	case KEEPER_REPAIR:
		return switch_repair(fds[0], r->value);
	case KEEPER_XSK:
		return give(or_errno(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)),
			    fds_out);
	case KEEPER_ICMP:
		return give(or_errno(socket(AF_INET,
					    SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
					    IPPROTO_ICMP)),
			    fds_out);
	case KEEPER_PASS:
		return give(pass_program_load(), fds_out);
	case KEEPER_STEER:
		return steering_load(r, fds_out);
	case KEEPER_ATTACH:
		return give(steering_attach(r, fds[0]), fds_out);
	case KEEPER_HAND_OVER:
		return hand_over_load(r->ifindex, fds_out);
	case KEEPER_DROP:
		return give(drop_program_load(), fds_out);
	default:
		return -EINVAL;
	}
}

/* A message, with room for more than any that is right. */
struct message {
	struct msghdr head;
	struct iovec iov;
	uint8_t bytes[sizeof(struct keeper_request) + 1];
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(KEEPER_FDS_MAX * sizeof(int))];
	} control;
};

static void init_message(struct message *m)
{
	m->iov = (struct iovec){ m->bytes, sizeof(m->bytes) };
	m->head = (struct msghdr){ .msg_iov = &m->iov,
				   .msg_iovlen = 1,
				   .msg_control = &m->control,
				   /* without its padding, in which one more would fit */
				   .msg_controllen = CMSG_LEN(
					   KEEPER_FDS_MAX * sizeof(int)) };
}

/* The descriptors that came with it. The kernel has closed those for which there is no room,
 * and there are then more than any request has. */
static unsigned fds_of(struct message *m, int *fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(&m->head);
	unsigned cnt;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	cnt = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(*fds));
	memcpy(fds, CMSG_DATA(c), cnt * sizeof(*fds));
	return cnt;
}

static void close_all(const int *fds, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		close(fds[i]);
}

/* Who does not read answers shall not keep it from the others. */
static bool answer(int channel, int32_t word, const int *fds, unsigned cnt)
{
	struct message m;

	init_message(&m);
	memcpy(m.bytes, &word, sizeof(word));
	m.iov.iov_len = sizeof(word);
	m.control.first = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS,
					    .cmsg_len = CMSG_LEN(cnt * sizeof(*fds)) };
	memcpy(CMSG_DATA(&m.control.first), fds, cnt * sizeof(*fds));
	m.head.msg_controllen = cnt ? CMSG_SPACE(cnt * sizeof(*fds)) : 0;
	return sendmsg(channel, &m.head, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* -- those that it serves ------------------------------------------------------------ */

/* The entry is one of them. */
static struct {
	int epoll;
	unsigned cnt;
	unsigned max;
} channels;

static int socket_option(int fd, int name)
{
	int value;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

static bool may_be_channel(int fd)
{
	return socket_option(fd, SO_DOMAIN) == AF_UNIX &&
	       socket_option(fd, SO_TYPE) == SOCK_SEQPACKET;
}

static int add_channel(int fd)
{
	struct epoll_event wish = { .events = EPOLLIN, .data.fd = fd };

	if (channels.cnt >= channels.max)
		return -EMFILE;
	if (epoll_ctl(channels.epoll, EPOLL_CTL_ADD, fd, &wish) != 0)
		return -errno;
	channels.cnt++;
	return 0;
}

static void end_channel(int fd)
{
	(void)!epoll_ctl(channels.epoll, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
	channels.cnt--;
}

/* The socket is the keeper's now. Who joins hears of a failure by the end of it. */
static void join(int fd)
{
	if (!may_be_channel(fd) || add_channel(fd) != 0)
		close(fd);
	else if (!answer(fd, KEEPER_ABI, NULL, 0))
		end_channel(fd);
}

/* What has come by the entry is answered there to nobody. */
static void serve_entry(const struct keeper_request *request, const int *fds, unsigned cnt)
{
	if (request && request->op == KEEPER_JOIN)
		join(fds[0]);
	else if (request && request->op == KEEPER_NEIGHBOUR)
		neighbour_confirm(request);
	else
		close_all(fds, cnt);
}

/* False: who has asked is gone. */
static bool serve_channel(int channel, const struct keeper_request *request, const int *fds,
			  unsigned cnt)
{
	int made[KEEPER_FDS_MAX], err = request ? obey(request, fds, made) : -EINVAL;
	unsigned made_cnt = err ? 0 : keeper_fds_of_answer(request);
	bool is_told;

	close_all(fds, cnt);
	is_told = answer(channel, err, made, made_cnt);
	close_all(made, made_cnt);
	return is_told;
}

/* False: the other end is closed. Of what several processes have each may find it read. */
static bool serve(int channel)
{
	int fds[KEEPER_FDS_MAX];
	struct keeper_request request;
	struct message m;
	bool is_right;
	unsigned cnt;
	ssize_t n;

	init_message(&m);
	n = recvmsg(channel, &m.head, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	/* a message of no bytes is no end if it brings descriptors */
	cnt = fds_of(&m, fds);
	if (n == 0 && !cnt)
		return false;
	is_right = !(m.head.msg_flags & MSG_CTRUNC) &&
		   keeper_request_parse(m.bytes, (size_t)n, cnt, &request) == 0;
	if (channel != KEEPER_ENTRY)
		return serve_channel(channel, is_right ? &request : NULL, fds, cnt);
	serve_entry(is_right ? &request : NULL, fds, cnt);
	return true;
}

static void serve_all(void)
{
	struct epoll_event event;

	/* one at a time: the kernel lets them take turns */
	while (channels.cnt)
		if (epoll_pwait(channels.epoll, &event, 1, -1, NULL) == 1 &&
		    !serve(event.data.fd))
			end_channel(event.data.fd);
}

/* Half of the descriptors are for what requests bring. */
static int open_channels(void)
{
	struct rlimit limit;
	int err;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -errno;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -errno;
	channels.max = (unsigned)MIN(limit.rlim_cur / 2, (rlim_t)INT_MAX);
	channels.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (channels.epoll < 0)
		return -errno;
	err = add_channel(KEEPER_CHANNEL);
	return err ? err : add_channel(KEEPER_ENTRY);
}

int main(void)
{
	sigset_t all;

	if (!may_be_channel(KEEPER_CHANNEL) || !may_be_channel(KEEPER_ENTRY)) {
		fputs("vma_way_back: libvma starts this program, for processes that give up their rights\n",
		      stderr);
		return 2;
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	(void)setsid();
	/* a daemon goes there as well, so that file systems can be unmounted */
	(void)!chdir("/");
	fill_table();
	kernel_types_prepare();
	steering_prepare();
	hand_over_load_prepare();
	neighbour_prepare();
	if (open_channels() != 0 || keep_rights() != 0 || filter_calls() != 0)
		return 1;
	if (!answer(KEEPER_CHANNEL, KEEPER_ABI, NULL, 0))
		_exit(1);
	serve_all();
	_exit(0);
}
