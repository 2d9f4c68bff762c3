/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that make, replace and end processes. */
#include "config.h"

#include <limits.h>
#include <linux/filter.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/runtime.h"
#include "fd/fd_internal.h"
#include "os/file.h"
#include "os/own_thread.h"
#include "os/rights.h"
#include "os/signals.h"
#include "sock-redirect/call.h"
#include "sock/user_msg.h"

extern char **environ;

/* Core registers handlers for forks, which do all that we have to do, since forkpty() forks
 * inside libc. */
pid_t shim_fork(void)
{
	CALL_ENTERED(fork);
	return real.fork();
}

int shim_daemon(int keep_dir, int keep_stdio)
{
	CALL_ENTERED(daemon);
	runtime_leaving_child();
	return real.daemon(keep_dir, keep_stdio);
}

/* The child's end of the pipe that its parent waits on. An exec or the end of
 * the child closes it. */
static _Atomic int vfork_end = -1;

/* The pipe of this thread's vfork; NULL: it does none. */
static _Thread_local struct vfork_pipe {
	int fds[2];
	bool is_made;
} *vforking;

/*
 * The writing end exists only while no other thread can fork, since a copy in another
 * child would keep the parent waiting. These run inside those handlers of core that
 * let one fork happen at a time.
 */
static void make_pipe(void)
{
	int high;

	if (!vforking || real.pipe2(vforking->fds, O_CLOEXEC) != 0)
		return;
	vforking->is_made = true;
	/* another child that gets a copy of this one does not meet it */
	high = file_duplicate_high(vforking->fds[0]);
	if (high < 0)
		return;
	real.close(vforking->fds[0]);
	vforking->fds[0] = high;
}

static void close_childs_end(void)
{
	if (vforking && vforking->is_made)
		real.close(vforking->fds[1]);
}

void process_calls_load(void)
{
	pthread_atfork(make_pipe, close_childs_end, NULL);
}

/* vfork() is no cancellation point. */
static void wait_for_end_of_file(_Atomic int *fd)
{
	char byte;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (real.read(atomic_load(fd), &byte, 1) < 0 && errno == EINTR)
		;
	pthread_setcancelstate(state, NULL);
}

/* What others close or fork meanwhile does not concern our end. (A program without objects
 * gets no table for it.) */
static void await_end(const struct vfork_pipe *own)
{
	_Atomic int fd = own->fds[0];
	bool is_hidden = atomic_load(&fd_table_root) &&
			 fd_internal_adopt(own->fds[0], &fd) == 0;

	wait_for_end_of_file(&fd);
	if (is_hidden)
		fd_internal_close(&fd);
	else
		real.close(own->fds[0]);
}

static void begin_as_vforked(struct vfork_pipe *own)
{
	vforking = NULL;
	if (!own->is_made)
		return;
	real.close(own->fds[0]);
	if (fd_internal_adopt(own->fds[1], &vfork_end) != 0)
		real.close(own->fds[1]);
}

/* The parent's part, when there is a child, or none. */
static void await_vforked(pid_t pid, const struct vfork_pipe *own,
			  const struct signals_hold *hold, int saved_errno)
{
	vforking = NULL;
	if (pid < 0)
		saved_errno = errno;
	if (pid > 0 && own->is_made)
		await_end(own);
	else if (own->is_made)
		real.close(own->fds[0]);
	signals_unhold(hold);
	errno = saved_errno;
}

/*
 * A child that shares our memory would destroy the parent's objects when it closes
 * and dups fds before exec. So it gets a copy. The parent waits for the exec or the
 * exit, as after a true vfork, and its signals are held back meanwhile, as they
 * would be.
 */
static pid_t fork_and_wait(pid_t (*make)(const struct numbered_call *call),
			   const struct numbered_call *call)
{
	struct vfork_pipe own = { .is_made = false };
	int saved_errno = errno;
	struct signals_hold hold;
	pid_t pid;

	signals_hold(&hold);
	vforking = &own;
	pid = make(call);
	if (pid == 0) {
		begin_as_vforked(&own);
		signals_unhold(&hold);
		errno = saved_errno;
		return 0;
	}
	await_vforked(pid, &own, &hold, saved_errno);
	return pid;
}

static pid_t make_by_fork(const struct numbered_call *call UNUSED)
{
	return real.fork();
}

EXPORT pid_t shim_vfork(void) __asm__("vfork");

pid_t shim_vfork(void)
{
	CALL_ENTERED(vfork);
	return fork_and_wait(make_by_fork, NULL);
}

pid_t process_fork_by_number(const struct numbered_call *call)
{
	const long *args = call->args;
	pid_t pid;

	runtime_before_fork();
	make_pipe();
	pid = (pid_t)real.syscall(call->number, args[0], args[1], args[2], args[3],
				  args[4], args[5]);
	if (pid != 0)
		close_childs_end();
	runtime_after_fork(pid == 0);
	return pid;
}

pid_t process_vfork_by_number(const struct numbered_call *call)
{
	return fork_and_wait(process_fork_by_number, call);
}

void shim__exit(int status)
{
	CALL_ENTERED(_exit);
	runtime_exiting();
	real._exit(status);
	__builtin_unreachable();
}

void shim__Exit(int status)
{
	CALL_ENTERED(_Exit);
	runtime_exiting();
	real._Exit(status);
	__builtin_unreachable();
}

void shim_quick_exit(int status)
{
	CALL_ENTERED(quick_exit);
	runtime_exiting();
	real.quick_exit(status);
	__builtin_unreachable();
}

int shim_execve(const char *path, char *const argv[], char *const envp[])
{
	CALL_ENTERED(execve);
	runtime_executing();
	return runtime_goes_on(real.execve(path, argv, envp));
}

int shim_execv(const char *path, char *const argv[])
{
	CALL_ENTERED(execv);
	runtime_executing();
	return runtime_goes_on(real.execv(path, argv));
}

int shim_execvp(const char *file, char *const argv[])
{
	CALL_ENTERED(execvp);
	runtime_executing();
	return runtime_goes_on(real.execvp(file, argv));
}

int shim_execvpe(const char *file, char *const argv[], char *const envp[])
{
	CALL_ENTERED(execvpe);
	runtime_executing();
	return runtime_goes_on(real.execvpe(file, argv, envp));
}

int shim_fexecve(int fd, char *const argv[], char *const envp[])
{
	CALL_ENTERED(fexecve);
	runtime_executing();
	return runtime_goes_on(real.fexecve(fd, argv, envp));
}

int shim_execveat(int dir, const char *path, char *const argv[],
		  char *const envp[], int flags)
{
	CALL_ENTERED(execveat);
	runtime_executing();
	return runtime_goes_on(real.execveat(dir, path, argv, envp, flags));
}

/*
 * The variants with arguments in a list. The array is on the stack, as libc's is,
 * because these calls are allowed between vfork and exec. For execle, `envp_out`
 * gets the pointer behind the terminating NULL.
 */
static size_t count_args(va_list list)
{
	size_t cnt = 1;

	while (va_arg(list, char *))
		cnt++;
	return cnt;
}

static void fill_args(char **argv, const char *first, va_list list)
{
	*argv = (char *)first;
	while (*argv++)
		*argv = va_arg(list, char *);
}

#define ARGS_OF_LIST(argv, first)                                           \
	char **argv;                                                        \
	va_list list;                                                       \
	va_start(list, first);                                              \
	argv = __builtin_alloca((count_args(list) + 1) * sizeof(*argv));    \
	va_end(list);                                                       \
	va_start(list, first);                                              \
	fill_args(argv, first, list)

EXPORT int shim_execl(const char *path, const char *arg, ...) __asm__("execl");
EXPORT int shim_execlp(const char *file, const char *arg,
		       ...) __asm__("execlp");
EXPORT int shim_execle(const char *path, const char *arg,
		       ...) __asm__("execle");

int shim_execl(const char *path, const char *arg, ...)
{
	ARGS_OF_LIST(argv, arg);
	va_end(list);
	CALL_ENTERED(execl);
	runtime_executing();
	return runtime_goes_on(real.execve(path, argv, environ));
}

int shim_execlp(const char *file, const char *arg, ...)
{
	ARGS_OF_LIST(argv, arg);
	va_end(list);
	CALL_ENTERED(execlp);
	runtime_executing();
	return runtime_goes_on(real.execvp(file, argv));
}

int shim_execle(const char *path, const char *arg, ...)
{
	char **envp;

	ARGS_OF_LIST(argv, arg);
	envp = va_arg(list, char **);
	va_end(list);
	CALL_ENTERED(execle);
	runtime_executing();
	return runtime_goes_on(real.execve(path, argv, envp));
}

int shim_posix_spawn(pid_t *pid, const char *path,
		     const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attr, char *const argv[],
		     char *const envp[])
{
	CALL_ENTERED(posix_spawn);
	runtime_spawning();
	return real.posix_spawn(pid, path, actions, attr, argv, envp);
}

int shim_posix_spawnp(pid_t *pid, const char *file,
		      const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attr, char *const argv[],
		      char *const envp[])
{
	CALL_ENTERED(posix_spawnp);
	runtime_spawning();
	return real.posix_spawnp(pid, file, actions, attr, argv, envp);
}

int shim_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions,
					  int fd, int new_fd)
{
	CALL_ENTERED(posix_spawn_file_actions_adddup2);
	runtime_handing_on(fd);
	return real.posix_spawn_file_actions_adddup2(actions, fd, new_fd);
}

/* libc makes a child inside these two calls. */
int shim_system(const char *command)
{
	CALL_ENTERED(system);
	if (command)
		runtime_spawning();
	return real.system(command);
}

FILE *shim_popen(const char *command, const char *mode)
{
	CALL_ENTERED(popen);
	runtime_spawning();
	return real.popen(command, mode);
}

/* A fork without libc's handlers. */
pid_t shim__Fork(void)
{
	pid_t pid;

	CALL_ENTERED(_Fork);
	runtime_before_fork();
	pid = real._Fork();
	runtime_after_fork(pid == 0);
	return pid;
}

struct clone_start {
	int (*fn)(void *arg);
	void *arg;
	/* of one that is waited for as after vfork(), else NULL */
	struct vfork_pipe *own;
	const struct signals_hold *hold;
};

static int begin_as_clone(void *arg)
{
	struct clone_start *start = arg;

	runtime_after_fork(true);
	if (start->own) {
		begin_as_vforked(start->own);
		signals_unhold(start->hold);
	}
	return start->fn(start->arg);
}

static int clone_copy(struct clone_start *start, void *stack, int flags,
		      pid_t *parent_tid, void *tls, pid_t *child_tid)
{
	int result;

	runtime_before_fork();
	make_pipe();
	result = real.clone(begin_as_clone, stack, flags, start, parent_tid,
			    tls, child_tid);
	close_childs_end();
	runtime_after_fork(false);
	return result;
}

/* The kernel must not do the waiting, since forks hold locks that others want. */
static int clone_and_wait(struct clone_start *start, void *stack, int flags,
			  pid_t *parent_tid, void *tls, pid_t *child_tid)
{
	struct vfork_pipe own = { .is_made = false };
	int saved_errno = errno, result;
	struct signals_hold hold;

	signals_hold(&hold);
	vforking = &own;
	start->own = &own;
	start->hold = &hold;
	result = clone_copy(start, stack, flags & ~(CLONE_VM | CLONE_VFORK),
			    parent_tid, tls, child_tid);
	await_vforked(result, &own, &hold, saved_errno);
	return result;
}

/* A program's own vfork(): the child borrows our memory until it runs another program or
 * ends, but has fds of its own. */
static bool is_borrower(int flags)
{
	const int common = CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_VFORK;

	return (flags & common) == (CLONE_VM | CLONE_VFORK);
}

/* A child with a copy of everything, for whose exec or end the parent waits. */
static bool is_awaited_copy(int flags)
{
	return (flags & (CLONE_VM | CLONE_FILES | CLONE_VFORK)) == CLONE_VFORK;
}

bool process_is_awaited(uint64_t flags)
{
	return is_borrower((int)(flags & INT_MAX)) || is_awaited_copy((int)(flags & INT_MAX));
}

bool process_parts_fds(uint64_t flags)
{
	return !(flags & CLONE_VM) != !(flags & CLONE_FILES) &&
	       !is_borrower((int)(flags & INT_MAX));
}

/* A child that gets a copy of everything is like one of fork(), and a borrower like one of
 * vfork() while there are objects that it could destroy. Others share our memory and our fds
 * as threads do, or only one of the two, which is too much for us. */
int shim_clone(int (*fn)(void *arg), void *stack, int flags, void *arg,
	       pid_t *parent_tid, void *tls, pid_t *child_tid)
{
	struct clone_start start = { .fn = fn, .arg = arg };

	CALL_ENTERED(clone);
	if (fn && stack &&
	    ((is_borrower(flags) &&
	      atomic_load_explicit(&fd_table_root, memory_order_relaxed)) ||
	     is_awaited_copy(flags)))
		return clone_and_wait(&start, stack, flags, parent_tid, tls,
				      child_tid);
	if (fn && stack && process_parts_fds((uint64_t)flags))
		runtime_fds_parting();
	if (flags & (CLONE_VM | CLONE_FILES) || !fn || !stack)
		return real.clone(fn, stack, flags, arg, parent_tid, tls,
				  child_tid);
	return clone_copy(&start, stack, flags, parent_tid, tls, child_tid);
}

/* A call that only asks whether the kernel knows it does not count. */
bool process_is_filter(unsigned long mode, const void *program)
{
	return mode == SECCOMP_MODE_STRICT ||
	       (mode == SECCOMP_MODE_FILTER &&
		user_is_plausible(program, sizeof(struct sock_fprog)));
}

int shim_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	       unsigned long d)
{
	CALL_ENTERED(prctl);
	if (option == PR_SET_SECCOMP && process_is_filter(a, (void *)b))
		runtime_filtering();
	return real.prctl(option, a, b, c, d);
}

int shim_chroot(const char *path)
{
	CALL_ENTERED(chroot);
	runtime_root_changing();
	return real.chroot(path);
}

/* What the namespaces of setns() are; 0: nobody knows. The fd is one of a namespace, or of
 * a process, whose namespaces are named by the call. */
static int kinds_of_namespaces(int fd, int type)
{
	int saved_errno = errno;
	int kind = real.ioctl(fd, NS_GET_NSTYPE, NULL);

	errno = saved_errno;
	return kind > 0 ? kind : type;
}

/* Linux enters such ones with the only thread of a process alone. */
static bool wants_single_thread(int kinds)
{
	return kinds & (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWTIME);
}

/* Whose children get another namespace of processes can have no new thread. Where the
 * network and the rights over it stay, it is time enough to see that afterwards. */
static bool begin_alone(int kinds)
{
	if (!(kinds & CLONE_NEWPID) || !(kinds & (CLONE_NEWUSER | CLONE_NEWNET)))
		return runtime_begin_alone();
	runtime_thread_ends();
	return false;
}

/* Linux lets only those have another network who have the right, or get it by the call, with
 * another user namespace. 0: nobody knows the kinds. */
static bool may_leave_network(int kinds)
{
	return !kinds || (kinds & CLONE_NEWNET &&
			  (kinds & CLONE_NEWUSER || rights_has(CAP_SYS_ADMIN)));
}

/* In another user namespace, the rights over this network are gone. */
int shim_setns(int fd, int type)
{
	bool is_alone, leaves;
	int result, kinds;

	CALL_ENTERED(setns);
	kinds = kinds_of_namespaces(fd, type);
	if (!kinds || kinds & CLONE_NEWUSER)
		runtime_rights_going();
	leaves = may_leave_network(kinds);
	if (leaves)
		runtime_namespace_changing();
	is_alone = wants_single_thread(kinds) && begin_alone(kinds);
	result = real.setns(fd, type);
	runtime_end_alone(is_alone);
	if (leaves)
		runtime_namespace_changed(result == 0);
	runtime_rights_changed();
	return result;
}

/* What threads share by nature is not to be parted, so Linux refuses it to those that are
 * several. */
static bool parts_threads(int flags)
{
	return flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM);
}

static bool is_unshare_refused(int flags)
{
	return parts_threads(flags) && !own_thread_is_program_single() &&
	       !own_thread_has_to_look();
}

void process_gets_own_fds(void)
{
	if (!own_thread_is_program_single())
		runtime_fds_parting();
}

int shim_unshare(int flags)
{
	bool is_alone, leaves;
	int result;

	CALL_ENTERED(unshare);
	if (is_unshare_refused(flags))
		return real.unshare(flags);
	if (flags & CLONE_NEWUSER)
		runtime_rights_going();
	/* of these one of several threads gets a copy of its own */
	if (flags & CLONE_FILES)
		process_gets_own_fds();
	leaves = flags && may_leave_network(flags);
	if (leaves)
		runtime_namespace_changing();
	is_alone = (parts_threads(flags) || flags & CLONE_FILES) && begin_alone(flags);
	result = real.unshare(flags);
	runtime_end_alone(is_alone);
	if (leaves)
		runtime_namespace_changed(result == 0);
	runtime_rights_changed();
	return result;
}

/* Rights go with the effective user, unless it stays root. */
void process_becomes(uid_t euid)
{
	if (euid != 0 && euid != (uid_t)-1)
		runtime_rights_going();
}

/* A process that is this user alone, and cannot become another one again, gives it what
 * it has in the file system. */
static void process_is_going_to_be(uid_t user)
{
	if (user != (uid_t)-1)
		runtime_user_going(user);
}

static int process_user_changed(int result)
{
	if (result != 0)
		runtime_user_going(geteuid());
	runtime_rights_changed();
	return result;
}

/* Called by root, it changes all three users; others have nothing to give. */
int shim_setuid(uid_t uid)
{
	CALL_ENTERED(setuid);
	process_becomes(uid);
	process_is_going_to_be(uid);
	return process_user_changed(real.setuid(uid));
}

int shim_seteuid(uid_t uid)
{
	int result;

	CALL_ENTERED(seteuid);
	process_becomes(uid);
	result = real.seteuid(uid);
	runtime_rights_changed();
	return result;
}

int shim_setreuid(uid_t uid, uid_t euid)
{
	CALL_ENTERED(setreuid);
	process_becomes(euid);
	if (uid == euid)
		process_is_going_to_be(euid);
	return process_user_changed(real.setreuid(uid, euid));
}

int shim_setresuid(uid_t uid, uid_t euid, uid_t suid)
{
	CALL_ENTERED(setresuid);
	process_becomes(euid);
	if (uid == euid && euid == suid)
		process_is_going_to_be(euid);
	return process_user_changed(real.setresuid(uid, euid, suid));
}

/* What is not readable is no loss: the call fails. */
void process_gets(const void *header, const void *data)
{
	if (user_is_plausible(header, sizeof(struct __user_cap_header_struct)) &&
	    user_is_plausible(data, sizeof(struct __user_cap_data_struct)) &&
	    !rights_have_net_admin(data))
		runtime_rights_going();
}

int shim_capset(cap_user_header_t header, const cap_user_data_t data)
{
	int result;

	CALL_ENTERED(capset);
	process_gets(header, data);
	result = real.capset(header, data);
	runtime_rights_changed();
	return result;
}
