/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the matrix makes the calls that begin and end processes, run programs, and install
 * handlers of signals. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/matrix_calls.h"

/* libc has these two without a header. */
int capset(cap_user_header_t header, const cap_user_data_t data);
int capget(cap_user_header_t header, cap_user_data_t data);

/* Some of the calls are deprecated; programs use them all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* What became of a child. */
static long ended(struct cell *c, pid_t pid)
{
	int status = 0;

	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	cell_show(c, WIFEXITED(status) ? "exit %d" : "signal %d",
		  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	errno = ENOTRECOVERABLE;
	return 0;
}

/* The child of each kind of fork still has the connection. */
long do_fork(struct cell *c)
{
	pid_t pid = fork();

	if (pid == 0)
		syscall(SYS_exit_group,
			read(c->fd, c->buf, 5) == 5 ? c->buf[1] : 1);
	return ended(c, pid);
}

long do_vfork(struct cell *c)
{
	pid_t pid = vfork();
	long n;

	if (pid == 0) {
		close(c->fd);
		execl("/bin/sh", "sh", "-c", "exit 12", (char *)NULL);
		_exit(13);
	}
	n = ended(c, pid);
	cell_show(c, " parent has %d", fcntl(c->fd, F_GETFD));
	return n;
}

long do_daemon(struct cell *c)
{
	int fds[2];
	pid_t pid;
	char byte = '-';

	if (pipe(fds) != 0)
		return -2;
	pid = fork();
	if (pid == 0) {
		bool ok = daemon(0, 0) == 0;

		if (write(fds[1], ok ? "y" : "n", 1) != 1)
			real_exit(1);
		real_exit(0);
	}
	close(fds[1]);
	ended(c, pid);
	if (read(fds[0], &byte, 1) == 1)
		cell_show(c, " daemon %c", byte);
	errno = ENOTRECOVERABLE;
	return 0;
}

#define IN_CHILD(statement)           \
	({                            \
		pid_t pid_ = fork();  \
		if (pid_ == 0) {      \
			statement;    \
			real_exit(1); \
		}                     \
		ended(c, pid_);       \
	})

long do__exit(struct cell *c)
{
	return IN_CHILD(_exit(3));
}

long do__Exit(struct cell *c)
{
	return IN_CHILD(_Exit(4));
}

long do_quick_exit(struct cell *c)
{
	return IN_CHILD(quick_exit(5));
}

static char *shell_args[] = { "sh", "-c", "exit ${CODE:-21}", NULL };
static char *shell_env[] = { "CODE=22", NULL };

static const char *shell(struct cell *c)
{
	return c->condition == COND_WRONG_TYPE ? "/no/such/program" : "/bin/sh";
}

/* UBSan would end the child. */
#define PASSES_NULL __attribute__((no_sanitize("nonnull-attribute")))

/* A failed exec tells its errno by the exit code. */
#define EXEC(call)                                      \
	IN_CHILD({                                      \
		call;                                   \
		syscall(SYS_exit_group, 100 + errno);   \
	})

PASSES_NULL long do_execve(struct cell *c)
{
	return EXEC(execve(P(shell(c)), shell_args, shell_env));
}

PASSES_NULL long do_execv(struct cell *c)
{
	return EXEC(execv(P(shell(c)), shell_args));
}

long do_execvp(struct cell *c)
{
	return EXEC(execvp(c->condition == COND_WRONG_TYPE ? "no-such" : "sh",
			   shell_args));
}

long do_execvpe(struct cell *c)
{
	return EXEC(execvpe(c->condition == COND_WRONG_TYPE ? "no-such" : "sh",
			    shell_args, shell_env));
}

long do_fexecve(struct cell *c)
{
	int fd = c->condition == COND_VALID ? open("/bin/sh", O_RDONLY) : c->fd;

	return EXEC(fexecve(fd, shell_args, shell_env));
}

PASSES_NULL long do_execveat(struct cell *c)
{
	int dir = c->condition == COND_VALID ? open("/bin", O_RDONLY) : c->fd;

	return EXEC(execveat(dir, P("sh"), shell_args, shell_env, 0));
}

long do_execl(struct cell *c)
{
	return EXEC(execl(shell(c), "sh", "-c", "exit $1", "sh", "23",
			  (char *)NULL));
}

long do_execlp(struct cell *c)
{
	return EXEC(execlp(c->condition == COND_WRONG_TYPE ? "no-such" : "sh",
			   "sh", "-c", "exit 24", (char *)NULL));
}

long do_execle(struct cell *c)
{
	return EXEC(execle(shell(c), "sh", "-c", "exit ${CODE:-21}",
			   (char *)NULL, shell_env));
}

long do__Fork(struct cell *c)
{
	pid_t pid = _Fork();

	if (pid == 0)
		syscall(SYS_exit_group,
			read(c->fd, c->buf, 5) == 5 ? c->buf[1] : 1);
	return ended(c, pid);
}

static int read_in_clone(void *arg)
{
	struct cell *c = arg;

	syscall(SYS_exit_group, read(c->fd, c->buf, 5) == 5 ? c->buf[1] : 1);
	return 1;
}

long do_clone(struct cell *c)
{
	static char stack[256 << 10] __attribute__((aligned(16)));

	return ended(c, clone(read_in_clone, stack + sizeof(stack), SIGCHLD, c));
}

/* These two return their errors. */
static long spawned(struct cell *c, int result, pid_t pid)
{
	if (result == 0)
		return ended(c, pid);
	cell_show(c, "error %d", result);
	errno = ENOTRECOVERABLE;
	return 0;
}

long do_posix_spawn(struct cell *c)
{
	pid_t pid = -1;
	int result = posix_spawn(&pid, shell(c), NULL, NULL, shell_args,
				 shell_env);

	return spawned(c, result, pid);
}

long do_posix_spawnp(struct cell *c)
{
	pid_t pid = -1;
	int result = posix_spawnp(
		&pid, c->condition == COND_WRONG_TYPE ? "no-such" : "sh", NULL,
		NULL, shell_args, shell_env);

	return spawned(c, result, pid);
}

/* The child reads what waits in the connection, by its standard input. */
long do_posix_spawn_file_actions_adddup2(struct cell *c)
{
	char *args[] = { "sh", "-c", "read -n 5 x || test -n \"$x\"", NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int result;

	posix_spawn_file_actions_init(&actions);
	result = posix_spawn_file_actions_adddup2(&actions, c->fd, 0);
	cell_show(c, "added %d ", result);
	if (result == 0)
		result = posix_spawn(&pid, "/bin/bash", &actions, NULL, args,
				     shell_env);
	posix_spawn_file_actions_destroy(&actions);
	return spawned(c, result, pid);
}

long do_system(struct cell *c)
{
	int status = system(P("exit 25"));

	cell_show(c, "status %#x", (unsigned)status);
	errno = ENOTRECOVERABLE;
	return 0;
}

long do_popen(struct cell *c)
{
	FILE *file = popen("echo said; exit 26",
			   c->condition == COND_WRONG_TYPE ? "x" : "re");
	char line[16] = "";

	if (!file)
		return -1;
	if (fgets(line, sizeof(line), file))
		cell_show(c, "%.4s ", line);
	cell_show(c, "status %#x", (unsigned)pclose(file));
	errno = ENOTRECOVERABLE;
	return 0;
}

long do_prctl(struct cell *c)
{
	char name[16] = "", *at = P(name);
	int n = c->condition == COND_WRONG_TYPE ?
			prctl(-1, 0, 0, 0, 0) :
			prctl(PR_GET_NAME, at, 0, 0, 0);

	cell_show(c, "%.6s %d", name, prctl(PR_GET_SECCOMP));
	return n;
}

enum { NOBODY = 65534 };

/* Nobody is -1. */
static uid_t somebody(const struct cell *c)
{
	return c->condition == COND_BAD_FD ? (uid_t)-1 : NOBODY;
}

static long now_is(struct cell *c, int result)
{
	int err = errno;
	uid_t uid, euid, suid;

	getresuid(&uid, &euid, &suid);
	cell_show(c, "%u %u %u", uid, euid, suid);
	errno = err;
	return result;
}

long do_setuid(struct cell *c)
{
	return now_is(c, setuid(somebody(c)));
}

long do_seteuid(struct cell *c)
{
	return now_is(c, seteuid(somebody(c)));
}

/* -1 leaves it as it is; but what is not root's cannot be got back. */
long do_setreuid(struct cell *c)
{
	if (c->condition == COND_BAD_FD && setuid(NOBODY) == 0)
		return now_is(c, setreuid((uid_t)-1, 0));
	return now_is(c, setreuid((uid_t)-1, NOBODY));
}

long do_setresuid(struct cell *c)
{
	if (c->condition == COND_BAD_FD && setuid(NOBODY) == 0)
		return now_is(c, setresuid((uid_t)-1, 0, (uid_t)-1));
	return now_is(c, setresuid((uid_t)-1, NOBODY, (uid_t)-1));
}

/* Gives all up but one; or in a version that there is not, or of another process. */
long do_capset(struct cell *c)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
		.pid = c->condition == COND_BAD_FD ? 1 : 0,
	};
	struct __user_cap_data_struct data[2] = { { 1, 1, 0 }, { 0, 0, 0 } };
	int n, err;

	if (c->condition == COND_WRONG_TYPE)
		header.version = 1;
	n = capset(P(&header), data);
	err = errno;
	header.version = _LINUX_CAPABILITY_VERSION_3;
	header.pid = 0;
	capget(&header, data);
	cell_show(c, "%#x %#x", data[0].effective, data[0].permitted);
	errno = err;
	return n;
}

long do_chroot(struct cell *c)
{
	switch (c->condition) {
	case COND_BAD_FD:
		return chroot("/nowhere");
	case COND_WRONG_TYPE:
		return chroot("/dev/null");
	default:
		return chroot(P("/"));
	}
}

long do_setns(struct cell *c)
{
	int fd = c->condition == COND_VALID ?
			 open("/proc/self/ns/uts", O_RDONLY) :
			 c->fd;

	errno = ENOTRECOVERABLE;
	return setns(fd, CLONE_NEWUTS);
}

long do_unshare(struct cell *c)
{
	return unshare(c->condition == COND_BAD_FD ? -1 : CLONE_FILES);
}

static volatile int handled;

static void handle(int sig)
{
	handled += sig;
}

/* Installs, raises, asks what is there. */
static void try_handler(struct cell *c)
{
	struct sigaction now;
	int saved_errno = errno;

	raise(SIGUSR2);
	sigaction(SIGUSR2, NULL, &now);
	cell_show(c, "handled %d, %s, flags %#x", handled,
		  now.sa_handler == handle  ? "own" :
		  now.sa_handler == SIG_DFL ? "default" :
					      "other",
		  (unsigned)now.sa_flags);
	errno = saved_errno;
}

static int signal_for(const struct cell *c)
{
	return c->condition == COND_BAD_FD     ? 99 :
	       c->condition == COND_WRONG_TYPE ? SIGKILL :
						 SIGUSR2;
}

long do_sigaction(struct cell *c)
{
	struct sigaction act = { .sa_handler = handle,
				 .sa_flags = SA_NODEFER };
	long n = sigaction(signal_for(c), P(&act), NULL);

	if (n == 0 && c->condition == COND_VALID)
		try_handler(c);
	return n;
}

static long by_signal(struct cell *c, sighandler_t (*set)(int, sighandler_t))
{
	sighandler_t old = set(signal_for(c), c->is_null ? NULL : handle);

	if (old == SIG_ERR)
		return -1;
	if (c->condition == COND_VALID)
		try_handler(c);
	return old == SIG_DFL ? 0 : 1;
}

long do_signal(struct cell *c)
{
	return by_signal(c, signal);
}

long do_bsd_signal(struct cell *c)
{
	extern sighandler_t bsd_signal(int sig, sighandler_t handler);

	return by_signal(c, bsd_signal);
}

long do_sysv_signal(struct cell *c)
{
	return by_signal(c, sysv_signal);
}

long do___sysv_signal(struct cell *c)
{
	return by_signal(c, __sysv_signal);
}

long do_sigset(struct cell *c)
{
	extern sighandler_t sigset(int sig, sighandler_t disposition);

	return by_signal(c, sigset);
}

long do_siginterrupt(struct cell *c)
{
	extern int siginterrupt(int sig, int flag);
	long n;

	signal(SIGUSR2, handle);
	n = siginterrupt(signal_for(c), 1);
	if (c->condition == COND_VALID)
		try_handler(c);
	return n;
}

struct sigvec_args {
	void (*handler)(int);
	int mask, flags;
};

/* Only old programs have it, by its old version. */
long do_sigvec(struct cell *c)
{
	extern int old_sigvec(int sig, const struct sigvec_args *vec,
			      struct sigvec_args *old);
	struct sigvec_args vec = { handle, 0, 2 };
	long n = old_sigvec(signal_for(c), P(&vec), NULL);

	if (n == 0 && c->condition == COND_VALID)
		try_handler(c);
	return n;
}

__asm__(".symver old_sigvec, sigvec@GLIBC_2.2.5");

