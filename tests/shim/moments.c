/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unusual moments of a process: what a program without sockets sees, calls
 * before and after main, in threads that begin and end, and through dlopen. Run
 * by moments.sh.
 *
 *   moments idle                no socket at all
 *   moments threads             sockets in new threads and in key destructors
 *   moments dlopen LIBRARY      as the manual shows, without preloading
 *   moments sockets N           opens and closes N sockets
 *   moments daemon              becomes a daemon, closes everything, goes on
 *   moments take FD             what the program can do to an fd it never opened
 *   moments namespace           a socket before and after a new namespace
 *   moments exec ARGUMENT...    a socket, then exec
 *   moments mute                nobody reads its stderr, and it may write no file
 *   moments callback            forks in a signal handler, from the log callback
 *   moments cleared             clears its environment, and makes sockets
 *   moments no_environment      does it by hand
 *   moments forks               forks in a signal handler and beside it, without a socket
 *   moments filtered CALL       starts itself under a filter that ends who makes the call: bpf()
 *                               or rt_sigpending()
 *   moments filtered_forks      forks as above, with a filter
 *   moments cancelled           threads of a child that are cancelled
 *   moments no_stderr           starts itself without a standard error output
 *   moments inetd               starts itself with a connection in place of it
 */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Entries of a directory of /proc/self, without those of looking. */
static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

static int idle(void)
{
	char *text = strdup("some memory");

	printf("%d fds, %d threads, %s\n", count_entries("/proc/self/fd"),
	       count_entries("/proc/self/task"), text);
	free(text);
	return 0;
}

static void use_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		printf("socket: %m\n");
	close(fd);
}

static void at_thread_end(void *arg)
{
	(void)arg;
	use_socket();
	printf("socket in a destructor of a thread\n");
}

static void *in_thread(void *arg)
{
	pthread_setspecific(*(pthread_key_t *)arg, arg);
	use_socket();
	return NULL;
}

static int threads(void)
{
	pthread_key_t key;
	pthread_t thread;

	pthread_key_create(&key, at_thread_end);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, in_thread, &key);
		pthread_join(thread, NULL);
	}
	return 0;
}

static int by_dlopen(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY);
	int (*vma_socket)(int, int, int), (*vma_close)(int);
	int (*vma_bind)(int, const struct sockaddr *, socklen_t);
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd, result;

	if (!library) {
		printf("dlopen: %s\n", dlerror());
		return 1;
	}
	vma_socket = (int (*)(int, int, int))dlsym(library, "socket");
	vma_bind = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(
		library, "bind");
	vma_close = (int (*)(int))dlsym(library, "close");
	printf("ours is %s\n", vma_socket == socket ? "libc's" : "another");
	fd = vma_socket(AF_INET, SOCK_STREAM, 0);
	result = vma_bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	printf("bind %d\n", result);
	printf("close %d\n", vma_close(fd));
	return 0;
}

static int sockets(int cnt)
{
	for (int i = 0; i < cnt; i++)
		use_socket();
	printf("%d sockets\n", cnt);
	return 0;
}

static int become_daemon(void)
{
	use_socket();
	if (daemon(1, 1) != 0)
		return 1;
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
	closefrom(3);
	use_socket();
	printf("a daemon\n");
	return 0;
}

static void say(const char *what, long result)
{
	printf("%s: %ld %s\n", what, result, strerrorname_np(errno));
}

static int take(int fd)
{
	struct stat before, after;

	use_socket();
	printf("before: %d\n", fstat(fd, &before));
	say("close", close(fd));
	say("write", write(fd, "x", 1));
	say("dup", dup(fd));
	say("fdopen", fdopen(fd, "w") ? 0 : -1);
	printf("dup2: %d\n", dup2(STDOUT_FILENO, fd) == fd);
	printf("now mine: %d\n",
	       fstat(fd, &after) == 0 && after.st_ino != before.st_ino);
	printf("close: %d\n", close(fd));
	return 0;
}

static volatile int lines, handlers;

static void fork_in_handler(int sig)
{
	pid_t pid = fork();
	int status = -1;

	(void)sig;
	if (pid == 0)
		_exit(3);
	waitpid(pid, &status, 0);
	handlers++;
}

static void on_line(int level, const char *line)
{
	(void)level;
	(void)line;
	lines++;
	raise(SIGUSR1);
}

/* A signal in the midst of the library's start. */
static int log_callback(void)
{
	char pointer[32];

	snprintf(pointer, sizeof(pointer), "%p", (void *)on_line);
	setenv("VMA_LOG_CB_FUNC_PTR", pointer, 1);
	signal(SIGUSR1, fork_in_handler);
	use_socket();
	printf("lines %s, handlers %s\n", lines ? "came" : "did not come",
	       handlers ? "ran" : "did not run");
	return 0;
}

/* As daemons do, so that nothing of the caller's is left to those that they start. */
static int without_environment(bool is_by_hand)
{
	if (is_by_hand)
		environ = NULL;
	else
		clearenv();
	use_socket();
	setenv("PATH", "/usr/bin:/bin", 1);
	use_socket();
	printf("still here\n");
	return 0;
}

/* A program that is silent, whose reader has gone. */
static int mute(void)
{
	struct rlimit none = { 0 };
	int fds[2];

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (pipe(fds) != 0 || dup2(fds[1], STDERR_FILENO) < 0 ||
	    setrlimit(RLIMIT_FSIZE, &none) != 0)
		return 1;
	close(fds[0]);
	close(fds[1]);
	use_socket();
	printf("still here\n");
	return 0;
}

static _Atomic int forked_cnt;

static void fork_once(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	forked_cnt++;
}

static void fork_beside(int sig)
{
	(void)sig;
	fork_once();
}

/*
 * A signal in the middle of each fork, at another place each time. A clock that goes on by
 * itself could interrupt every fork before its end where a fork takes longer than its period.
 */
static int fork_beside_a_handler(void)
{
	enum { FORKS = 300 };
	struct timespec before, after;
	long us;

	signal(SIGALRM, fork_beside);
	clock_gettime(CLOCK_MONOTONIC, &before);
	fork_once();
	clock_gettime(CLOCK_MONOTONIC, &after);
	us = (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
	us = us < 1000000 ? us : 999999;
	for (int i = 1; i <= FORKS; i++) {
		setitimer(ITIMER_REAL, &(struct itimerval){ { 0 }, { 0, 1 + us * i / FORKS } },
			  NULL);
		fork_once();
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	printf("forked: %d\n", forked_cnt > FORKS);
	return 0;
}

static int start_itself(const char *what)
{
	return execl("/proc/self/exe", "moments", what, NULL);
}

static void filter_out(int call)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	printf("filter %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static int start_filtered(int call)
{
	filter_out(call);
	return start_itself("bind");
}

static int fork_filtered(void)
{
	use_socket();
	filter_out(SYS_bpf);
	return fork_beside_a_handler();
}

static int cancel_in_a_child(void)
{
	int state = -1;

	if (fork() == 0) {
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
		printf("child enabled %d\n", state == PTHREAD_CANCEL_ENABLE);
		if (fork() == 0)
			_exit(0);
		wait(NULL);
		_exit(0);
	}
	wait(&state);
	printf("status %d\n", state);
	return 0;
}

static int bind_socket(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	printf("bind: %d\n", bind(fd, (struct sockaddr *)&name, sizeof(name)));
	return 0;
}

/* Its data has the number. */
static int write_data(void)
{
	char path[] = "/tmp/vma_moments_XXXXXX";
	int fd = mkstemp(path);
	struct stat stat;

	unlink(path);
	printf("number %d\n", fd);
	use_socket();
	if (write(fd, "data", 4) != 4 || fstat(fd, &stat) != 0)
		return 1;
	printf("size %d\n", (int)stat.st_size);
	return 0;
}

static int speak(void)
{
	use_socket();
	return write(STDERR_FILENO, "HELLO", 5) != 5;
}

static int serve_by_inetd(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0);
	char text[4096];
	ssize_t n;

	if (bind(fd, (struct sockaddr *)&name, len) != 0 ||
	    getsockname(fd, (struct sockaddr *)&name, &len) != 0 ||
	    connect(client, (struct sockaddr *)&name, len) != 0)
		return 1;
	if (fork() == 0) {
		dup2(client, STDERR_FILENO);
		_exit(start_itself("speak"));
	}
	n = recv(fd, text, sizeof(text), 0);
	printf("%.*s\n", (int)n, text);
	wait(NULL);
	printf("more: %zd\n", recv(fd, text, sizeof(text), MSG_DONTWAIT));
	return 0;
}

static int change_namespace(void)
{
	use_socket();
	printf("unshare: %d\n", unshare(CLONE_NEWNET));
	use_socket();
	return 0;
}

static int change_namespace_by_number(void)
{
	use_socket();
	printf("unshare: %ld\n", syscall(SYS_unshare, CLONE_NEWNET));
	use_socket();
	return 0;
}

/* Its own one again is as good as another's. */
static int change_other_namespace(void)
{
	int fd = open("/proc/self/ns/uts", O_RDONLY);

	use_socket();
	printf("setns: %d\n", setns(fd, 0));
	printf("setns: %d\n", setns(fd, CLONE_NEWUTS));
	printf("unshare: %d\n", unshare(CLONE_NEWUTS));
	use_socket();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(what, "idle") == 0)
		return idle();
	if (strcmp(what, "threads") == 0)
		return threads();
	if (strcmp(what, "dlopen") == 0)
		return by_dlopen(argv[2]);
	if (strcmp(what, "sockets") == 0)
		return sockets(atoi(argv[2]));
	if (strcmp(what, "daemon") == 0)
		return become_daemon();
	if (strcmp(what, "take") == 0)
		return take(atoi(argv[2]));
	if (strcmp(what, "mute") == 0)
		return mute();
	if (strcmp(what, "callback") == 0)
		return log_callback();
	if (strcmp(what, "cleared") == 0)
		return without_environment(false);
	if (strcmp(what, "no_environment") == 0)
		return without_environment(true);
	if (strcmp(what, "forks") == 0)
		return fork_beside_a_handler();
	if (strcmp(what, "filtered") == 0)
		return start_filtered(strcmp(argv[2], "bpf") == 0 ? SYS_bpf :
								    SYS_rt_sigpending);
	if (strcmp(what, "filtered_forks") == 0)
		return fork_filtered();
	if (strcmp(what, "cancelled") == 0)
		return cancel_in_a_child();
	if (strcmp(what, "bind") == 0)
		return bind_socket();
	if (strcmp(what, "no_stderr") == 0) {
		close(STDERR_FILENO);
		return start_itself("data");
	}
	if (strcmp(what, "data") == 0)
		return write_data();
	if (strcmp(what, "inetd") == 0)
		return serve_by_inetd();
	if (strcmp(what, "speak") == 0)
		return speak();
	if (strcmp(what, "namespace") == 0)
		return change_namespace();
	if (strcmp(what, "namespace_by_number") == 0)
		return change_namespace_by_number();
	if (strcmp(what, "other_namespace") == 0)
		return change_other_namespace();
	if (strcmp(what, "exec") == 0) {
		use_socket();
		return execv(argv[2], argv + 2);
	}
	return 2;
}
