/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * syscall(): a program that makes a call by its number means the same call. Only
 * calls that can concern an fd of ours are looked at.
 */
#include "config.h"

#include <linux/sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/runtime.h"
#include "sock-redirect/aio_calls.h"
#include "sock-redirect/bpf_call.h"
#include "sock-redirect/call.h"
#include "sock-redirect/syscall_mux.h"
#include "sock/user_msg.h"

#define FD_FROM(x) ((int)(x))
#define PTR(x) ((void *)(x))

/* Whether a child gets a copy of everything and goes on where its parent is. */
static bool is_fork(uint64_t flags, uint64_t stack)
{
	return !(flags & (CLONE_VM | CLONE_FILES)) && !stack;
}

static long clone_by_number(long number, long a, long b, long c, long d, long e, long f)
{
	struct numbered_call call = { number, { a, b, c, d, e, f } };
	uint64_t flags = (uint64_t)a, stack = (uint64_t)b;

	if (!stack && process_is_awaited(flags)) {
		call.args[0] &= ~(long)(CLONE_VM | CLONE_VFORK);
		return process_vfork_by_number(&call);
	}
	if (is_fork(flags, stack))
		return process_fork_by_number(&call);
	if (process_parts_fds(flags))
		runtime_fds_parting();
	return real.syscall(number, a, b, c, d, e, f);
}

/* What the kernel knows beyond what we know of the arguments is the program's own. */
static long clone3_by_number(const struct clone_args *args, size_t size)
{
	struct numbered_call call = { SYS_clone3, { (long)args, (long)size } };
	struct clone_args copy;

	if (size < CLONE_ARGS_SIZE_VER0 || !user_is_plausible(args, size))
		return real.syscall(SYS_clone3, args, size);
	if (!args->stack && process_is_awaited(args->flags) && size <= sizeof(copy)) {
		memcpy(&copy, args, size);
		copy.flags &= ~(uint64_t)(CLONE_VM | CLONE_VFORK);
		call.args[0] = (long)&copy;
		return process_vfork_by_number(&call);
	}
	if (is_fork(args->flags, args->stack))
		return process_fork_by_number(&call);
	if (process_parts_fds(args->flags))
		runtime_fds_parting();
	return real.syscall(SYS_clone3, args, size);
}

static long make_ring(long number, long a, long b, long c, long d, long e,
		      long f)
{
	long result;

	if (runtime_hides_rings()) {
		errno = ENOSYS;
		return -1;
	}
	result = real.syscall(number, a, b, c, d, e, f);
	if (result >= 0)
		runtime_ring_made();
	return result;
}

/* Those that change the rights of this thread alone. */
static long call_on_rights(long number, long a, long b, long c, long d, long e,
			   long f)
{
	long result;

	switch (number) {
	case SYS_setuid:
		process_becomes((uid_t)a);
		break;
	case SYS_setreuid:
	case SYS_setresuid:
		process_becomes((uid_t)b);
		break;
	case SYS_capset:
		process_gets(PTR(a), PTR(b));
		break;
	default:
		break;
	}
	result = real.syscall(number, a, b, c, d, e, f);
	runtime_rights_changed();
	return result;
}

/* Calls about processes, and calls of io_uring, AIO and BPF, which read fds by
 * themselves. */
static long call_on_process(long number, long a, long b, long c, long d, long e,
			    long f)
{
	switch (number) {
	case SYS_clone:
		return clone_by_number(number, a, b, c, d, e, f);
	case SYS_clone3:
		return clone3_by_number(PTR(a), (size_t)b);
#ifdef SYS_fork
	case SYS_fork:
		return process_fork_by_number(&(struct numbered_call){ SYS_fork, { 0 } });
	case SYS_vfork:
		return process_vfork_by_number(&(struct numbered_call){ SYS_fork, { 0 } });
#endif
	case SYS_io_uring_setup:
		return make_ring(number, a, b, c, d, e, f);
	case SYS_io_setup:
		return aio_setup((unsigned)a, PTR(b));
	case SYS_io_destroy:
		return aio_destroy((aio_context_t)a);
	case SYS_io_submit:
		aio_submitting(b, PTR(c));
		break;
	case SYS_bpf:
		bpf_calling(a, PTR(b), (size_t)(unsigned)c);
		break;
	case SYS_prctl:
		return shim_prctl((int)a, (unsigned long)b, (unsigned long)c,
				  (unsigned long)d, (unsigned long)e);
	case SYS_seccomp:
		/* the numbers of its operations are one less than those of the
		 * modes */
		if (process_is_filter((unsigned long)a + 1, PTR(c)))
			runtime_filtering();
		break;
	case SYS_setns:
		return shim_setns((int)a, (int)b);
	case SYS_unshare:
		return shim_unshare((int)a);
	case SYS_chroot:
		runtime_root_changing();
		break;
	case SYS_setuid:
	case SYS_setreuid:
	case SYS_setresuid:
	case SYS_capset:
		return call_on_rights(number, a, b, c, d, e, f);
	case SYS_exit_group:
		runtime_exiting();
		break;
	case SYS_execve:
	case SYS_execveat:
		runtime_executing();
		return runtime_goes_on(
			(int)real.syscall(number, a, b, c, d, e, f));
	default:
		break;
	}
	return real.syscall(number, a, b, c, d, e, f);
}

/* Of fcntl, only what makes an fd is looked at, since libc's means something else by a few of
 * the others. */
static long control(long number, long a, long b, long c, long d, long e, long f)
{
	if (b == F_DUPFD || b == F_DUPFD_CLOEXEC)
		return fd_call_duplicate(FD_FROM(a), (int)b, PTR(c));
	return real.syscall(number, a, b, c, d, e, f);
}

/* Calls that make fds or close many. A program without objects gets exactly the
 * call it asked for, but for the bookkeeping. */
static long call_on_table(long number, long a, long b, long c, long d, long e,
			  long f)
{
	switch (number) {
	case SYS_socket:
		return shim_socket((int)a, (int)b, (int)c);
	case SYS_socketpair:
		return shim_socketpair((int)a, (int)b, (int)c, PTR(d));
	case SYS_close_range:
		return shim_close_range((unsigned)a, (unsigned)b, (int)c);
	case SYS_pipe2:
		return shim_pipe2(PTR(a), (int)b);
	case SYS_epoll_create1:
		return shim_epoll_create1((int)a);
#ifdef SYS_epoll_create
	case SYS_epoll_create:
		return shim_epoll_create((int)a);
#endif
	case SYS_dup:
		return shim_dup(FD_FROM(a));
	case SYS_dup3:
		return shim_dup3(FD_FROM(a), FD_FROM(b), (int)c);
#ifdef SYS_dup2
	case SYS_dup2:
		return shim_dup2(FD_FROM(a), FD_FROM(b));
#endif
	case SYS_fcntl:
		return control(number, a, b, c, d, e, f);
	case SYS_pidfd_getfd:
		return shim_pidfd_getfd((int)a, FD_FROM(b), (unsigned)c);
	case SYS_openat:
	case SYS_openat2:
	case SYS_accept4:
	case SYS_eventfd2:
	case SYS_timerfd_create:
	case SYS_signalfd4:
	case SYS_inotify_init1:
	case SYS_memfd_create:
	case SYS_pidfd_open:
#ifdef SYS_open
	case SYS_open:
	case SYS_creat:
	case SYS_accept:
	case SYS_eventfd:
	case SYS_signalfd:
	case SYS_inotify_init:
#endif
		return fd_table_forget(
			(int)real.syscall(number, a, b, c, d, e, f));
#ifdef SYS_pipe
	case SYS_pipe:
		return shim_pipe(PTR(a));
#endif
	case SYS_recvmsg:
		return shim_recvmsg(FD_FROM(a), PTR(b), (int)c);
	case SYS_recvmmsg:
		return shim_recvmmsg(FD_FROM(a), PTR(b), (unsigned)c, (int)d,
				     PTR(e));
	case SYS_sendmsg:
		return shim_sendmsg(FD_FROM(a), PTR(b), (int)c);
	case SYS_sendmmsg:
		return shim_sendmmsg(FD_FROM(a), PTR(b), (unsigned)c, (int)d);
	default:
		return call_on_process(number, a, b, c, d, e, f);
	}
}

/* The first argument has the number of an fd that names an object, or the second
 * fd does; the call may still be one that takes no fd there. */
static long call_on_fd(long number, long a, long b, long c, long d, long e,
		       long f)
{
	int fd = FD_FROM(a);

	switch (number) {
	case SYS_read:
		return shim_read(fd, PTR(b), (size_t)c);
	case SYS_write:
		return shim_write(fd, PTR(b), (size_t)c);
	case SYS_readv:
		return shim_readv(fd, PTR(b), (int)c);
	case SYS_writev:
		return shim_writev(fd, PTR(b), (int)c);
	case SYS_preadv2:
		return shim_preadv2(fd, PTR(b), (int)c, d, (int)f);
	case SYS_pwritev2:
		return shim_pwritev2(fd, PTR(b), (int)c, d, (int)f);
	case SYS_recvfrom:
		return shim_recvfrom(fd, PTR(b), (size_t)c, (int)d, PTR(e),
				     PTR(f));
	case SYS_sendto:
		return shim_sendto(fd, PTR(b), (size_t)c, (int)d, PTR(e),
				   (socklen_t)f);
	case SYS_recvmsg:
		return shim_recvmsg(fd, PTR(b), (int)c);
	case SYS_sendmsg:
		return shim_sendmsg(fd, PTR(b), (int)c);
	case SYS_recvmmsg:
		return shim_recvmmsg(fd, PTR(b), (unsigned)c, (int)d, PTR(e));
	case SYS_sendmmsg:
		return shim_sendmmsg(fd, PTR(b), (unsigned)c, (int)d);
	case SYS_bind:
		return shim_bind(fd, PTR(b), (socklen_t)c);
	case SYS_connect:
		return shim_connect(fd, PTR(b), (socklen_t)c);
	case SYS_listen:
		return shim_listen(fd, (int)b);
	case SYS_shutdown:
		return shim_shutdown(fd, (int)b);
	case SYS_accept4:
		return shim_accept4(fd, PTR(b), PTR(c), (int)d);
	case SYS_getsockname:
		return shim_getsockname(fd, PTR(b), PTR(c));
	case SYS_getpeername:
		return shim_getpeername(fd, PTR(b), PTR(c));
	case SYS_setsockopt:
		return shim_setsockopt(fd, (int)b, (int)c, PTR(d),
				       (socklen_t)e);
	case SYS_getsockopt:
		return shim_getsockopt(fd, (int)b, (int)c, PTR(d), PTR(e));
	case SYS_fcntl:
		return shim_fcntl(fd, (int)b, PTR(c));
	case SYS_ioctl:
		return shim_ioctl(fd, (unsigned long)b, PTR(c));
	case SYS_dup:
		return shim_dup(fd);
	case SYS_dup3:
		return shim_dup3(fd, (int)b, (int)c);
	case SYS_close:
		return table_close(fd);
	case SYS_tee:
		return shim_tee(fd, FD_FROM(b), (size_t)c, (unsigned)d);
	case SYS_splice:
		return shim_splice(fd, PTR(b), FD_FROM(c), PTR(d), (size_t)e,
				   (unsigned)f);
	case SYS_sendfile:
		return shim_sendfile(fd, FD_FROM(b), PTR(c), (size_t)d);
#ifdef SYS_accept
	case SYS_accept:
		return shim_accept(fd, PTR(b), PTR(c));
#endif
#ifdef SYS_dup2
	case SYS_dup2:
		return shim_dup2(fd, FD_FROM(b));
#endif
	default:
		return call_on_table(number, a, b, c, d, e, f);
	}
}

/* The second fd of a call that has two. */
static int second_fd(long number, long b, long c)
{
	switch (number) {
	case SYS_dup3:
	case SYS_tee:
	case SYS_sendfile:
#ifdef SYS_dup2
	case SYS_dup2:
#endif
		return FD_FROM(b);
	case SYS_splice:
		return FD_FROM(c);
	default:
		return -1;
	}
}

long shim_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long result;

	CALL_ENTERED(syscall);
	if (os_is_inside())
		return real.syscall(number, a, b, c, d, e, f);
	if (UNLIKELY(atomic_load_explicit(&fd_table_root, memory_order_relaxed)) &&
	    syscall_on_set(number, a, b, c, d, e, f, &result))
		return result;
	if (UNLIKELY(fd_table_has(FD_FROM(a)) ||
		     fd_table_has(second_fd(number, b, c))))
		return call_on_fd(number, a, b, c, d, e, f);
	return call_on_table(number, a, b, c, d, e, f);
}
