/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps one right for a program that is about to give up its own: to switch TCP_REPAIR,
 * without which no accelerated connection can become the kernel's. libvma starts it
 * (sock/tcp/tcp_right.h) with a socket as its standard input. Each message there is a
 * value and a descriptor; the answer is 0 or a negative errno. It can do nothing else: it
 * has no other descriptor, no other right, and a filter of its system calls. It ends with
 * the last process that has the other end.
 */
#include "config.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHANNEL = STDIN_FILENO };

/* -- nothing but what it takes ------------------------------------------------------- */

static int keep_one_right(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{ .effective = CAP_TO_MASK(CAP_NET_ADMIN),
		  .permitted = CAP_TO_MASK(CAP_NET_ADMIN) },
	};

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

/* The numbers that the filter looks at are small, and on machines of either order of bytes
 * the lower halves of arguments are compared. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOAD_ARGUMENT(n) LOAD(args[n])
#else
#define LOAD_ARGUMENT(n)                                        \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                      \
		 offsetof(struct seccomp_data, args[n]) + 4)
#endif

static int filter_calls(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		UNLESS(MACHINE, 1),
		BPF_STMT(BPF_JMP | BPF_JA, 1),
		KILL,
		LOAD(nr),
		UNLESS(SYS_recvmsg, 1),
		ALLOW,
		UNLESS(SYS_sendto, 1),
		ALLOW,
		UNLESS(SYS_close, 1),
		ALLOW,
		UNLESS(SYS_exit_group, 1),
		ALLOW,
		UNLESS(SYS_setsockopt, 5),
		LOAD_ARGUMENT(1),
		UNLESS(IPPROTO_TCP, 3),
		LOAD_ARGUMENT(2),
		UNLESS(TCP_REPAIR, 1),
		ALLOW,
		KILL,
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

struct message {
	struct msghdr head;
	struct iovec iov;
	int32_t value;
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
};

/* Closes all but the first descriptor; -1: there is none. */
static int fd_of(struct message *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(&m->head);
	int fds[sizeof(m->control) / sizeof(int)];
	size_t cnt;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -1;
	cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(*fds);
	memcpy(fds, CMSG_DATA(c), cnt * sizeof(*fds));
	for (size_t i = 1; i < cnt; i++)
		close(fds[i]);
	return cnt ? fds[0] : -1;
}

static int32_t switch_repair(int fd, int32_t value)
{
	int as_int = value;

	if (value < -1 || value > 1)
		return -EINVAL;
	return setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &as_int,
			  sizeof(as_int)) ?
		       -errno :
		       0;
}

/* False: the other end is closed. */
static int serve(void)
{
	struct message m = { .value = 0 };
	int32_t answer = -EBADF;
	ssize_t n;
	int fd;

	m.iov = (struct iovec){ &m.value, sizeof(m.value) };
	m.head = (struct msghdr){ .msg_iov = &m.iov,
				  .msg_iovlen = 1,
				  .msg_control = &m.control,
				  .msg_controllen = sizeof(m.control) };
	n = recvmsg(CHANNEL, &m.head, MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EINTR)
		return 1;
	if (n <= 0)
		return 0;
	fd = fd_of(&m);
	if (n == sizeof(m.value) && fd >= 0)
		answer = switch_repair(fd, m.value);
	if (fd >= 0)
		close(fd);
	return sendto(CHANNEL, &answer, sizeof(answer), MSG_NOSIGNAL, NULL, 0) >
	       0;
}

int main(void)
{
	int32_t ready = 0;
	int type;
	socklen_t len = sizeof(type);
	sigset_t all;

	if (getsockopt(CHANNEL, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
	    type != SOCK_SEQPACKET) {
		fputs("vma_way_back: libvma starts this program, for processes that give up their rights\n",
		      stderr);
		return 2;
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	(void)setsid();
	if (keep_one_right() != 0 || filter_calls() != 0)
		return 1;
	if (sendto(CHANNEL, &ready, sizeof(ready), MSG_NOSIGNAL, NULL, 0) < 0)
		_exit(1);
	while (serve())
		;
	_exit(0);
}
