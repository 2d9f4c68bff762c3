/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "os/log_out.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "os/file.h"
#include "tests/support/test.h"

static char path[] = "/tmp/vma_log_out_XXXXXX";

static void start(enum log_out_to to)
{
	struct log_out_params params = { .to = to, .path = path };
	static bool has_path;

	if (!has_path)
		close(mkstemp(path));
	has_path = true;
	CHECK_EQ(log_out_start(&params), 0);
}

static const char *content(void)
{
	static char text[4096];
	ssize_t len = file_peek(path, text, sizeof(text) - 1);

	CHECK(len >= 0);
	text[len] = '\0';
	return text;
}

TEST(file_gets_the_lines)
{
	start(LOG_OUT_FILE);
	log_info("one");
	log_info("two");
	CHECK_STR(content(), " VMA INFO: one\n VMA INFO: two\n");
	start(LOG_OUT_FILE);
	CHECK_STR(content(), "");
	close(atomic_exchange(log_out_fd(), -1));
	unlink(path);
}

TEST(file_is_opened_again_after_the_program_closed_it)
{
	int fd, low = open("/dev/null", O_RDONLY);

	close(low);
	start(LOG_OUT_FILE);
	log_info("one");
	/* as the library does */
	fd = file_duplicate_high(*log_out_fd());
	close(atomic_exchange(log_out_fd(), fd));
	/* A stranger under the same number. */
	CHECK_EQ(dup2(STDIN_FILENO, fd), fd);
	log_info("two");
	CHECK(*log_out_fd() != fd);
	/* the program's next one is what it would be without us */
	CHECK_EQ(open("/dev/null", O_RDONLY), low);
	close(low);
	CHECK_STR(content(), " VMA INFO: one\n VMA INFO: two\n");
	close(fd);
	close(*log_out_fd());
	unlink(path);
}

static int start_at_a_fifo(const char *fifo)
{
	struct log_out_params params = { .to = LOG_OUT_FILE, .path = fifo };
	int err;

	mkfifo(fifo, 0600);
	alarm(10);
	err = log_out_start(&params);
	alarm(0);
	unlink(fifo);
	return err;
}

TEST(fifo_without_a_reader_stops_nobody)
{
	int err = start_at_a_fifo("/tmp/vma_log_out_fifo");

	CHECK_EQ(err, -ENXIO);
}

/* Daemons change their directory, and close all. */
TEST(relative_file_stays_where_it_was)
{
	struct log_out_params params = { .to = LOG_OUT_FILE };
	char here[1024];

	start(LOG_OUT_STDERR);
	params.path = path + strlen("/tmp/");
	CHECK(getcwd(here, sizeof(here)));
	CHECK_EQ(chdir("/tmp"), 0);
	CHECK_EQ(log_out_start(&params), 0);
	log_info("one");
	CHECK_EQ(chdir("/dev"), 0);
	close(*log_out_fd());
	log_info("two");
	CHECK_EQ(chdir(here), 0);
	CHECK_STR(content(), " VMA INFO: one\n VMA INFO: two\n");
	close(atomic_exchange(log_out_fd(), -1));
	unlink(path);
}

TEST(unwritable_file_means_stderr)
{
	struct log_out_params params = { .to = LOG_OUT_FILE,
					 .path = "/no/such/dir/file" };

	CHECK_EQ(log_out_start(&params), -ENOENT);
}

static char called_with[LOG_LINE_SIZE];
static int called_level;

static void callback(int level, const char *line)
{
	called_level = level;
	snprintf(called_with, sizeof(called_with), "%s", line);
}

TEST(callback_gets_the_line_without_its_newline)
{
	struct log_out_params params = { .to = LOG_OUT_CALLBACK,
					 .callback = callback };

	CHECK_EQ(log_out_start(&params), 0);
	log_warn("w");
	CHECK_STR(called_with, " VMA WARNING: w");
	CHECK_EQ(called_level, LOG_LEVEL_WARNING);
}

TEST(code_is_told_from_other_addresses)
{
	static const char text[] = "no code";
	void *page = mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(log_out_is_code((uintptr_t)callback));
	CHECK(log_out_is_code((uintptr_t)getpid));
	CHECK(log_out_is_code((uintptr_t)page));
	CHECK(log_out_is_code((uintptr_t)page + 4095));
	CHECK(!log_out_is_code((uintptr_t)text));
	CHECK(!log_out_is_code((uintptr_t)&page));
	CHECK(!log_out_is_code(1));
	CHECK(!log_out_is_code(UINTPTR_MAX));
	munmap(page, 4096);
	CHECK(!log_out_is_code((uintptr_t)page));
}

/* In a child, whose stderr may be closed. */
TEST(connection_under_stderrs_number_gets_no_line)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char byte;
		int fds[2];

		start(LOG_OUT_STDERR);
		socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
		dup2(fds[0], STDERR_FILENO);
		log_err("secret");
		_exit(recv(fds[1], &byte, 1, MSG_DONTWAIT) != -1 ||
		      errno != EAGAIN);
	}
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	unlink(path);
}

/* Whether a child ends by itself that logs to `fd` in the place of its stderr, or to a file,
 * which may have no byte. */
static int status_of_one_who_logs(enum log_out_to to, int fd)
{
	struct rlimit none = { 0 };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		start(to);
		dup2(fd, STDERR_FILENO);
		setrlimit(RLIMIT_FSIZE, &none);
		errno = EDOM;
		log_err("a line for nobody");
		_exit(errno != EDOM);
	}
	waitpid(pid, &status, 0);
	return status;
}

TEST(line_that_cannot_be_written_ends_nobody)
{
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	close(fds[0]);
	CHECK_EQ(status_of_one_who_logs(LOG_OUT_STDERR, fds[1]), 0);
	CHECK_EQ(status_of_one_who_logs(LOG_OUT_FILE, fds[1]), 0);
	close(fds[1]);
	unlink(path);
}

/* In a child, whose stderr may be closed: daemons close all, and open their files. */
TEST(data_under_stderrs_number_stays)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char text[8] = "";
		int fd;

		start(LOG_OUT_STDERR);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		(void)!pwrite(fd, "HEADER", 6, 0);
		dup2(fd, STDERR_FILENO);
		log_err("a line");
		if (pread(fd, text, sizeof(text), 0) != 6 || strcmp(text, "HEADER") != 0)
			_exit(1);
		/* a log that the program has opened */
		dup2(open(path, O_WRONLY | O_APPEND), STDERR_FILENO);
		log_err("a line");
		_exit(pread(fd, text, sizeof(text), 0) != sizeof(text));
	}
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	unlink(path);
}

TEST(pipe_that_is_full_stops_nobody)
{
	char stuff[4096] = "";
	int fds[2];

	CHECK_EQ(pipe2(fds, O_NONBLOCK), 0);
	while (write(fds[1], stuff, sizeof(stuff)) > 0)
		;
	CHECK_EQ(fcntl(fds[1], F_SETFL, 0), 0);
	CHECK_EQ(status_of_one_who_logs(LOG_OUT_STDERR, fds[1]), 0);
	close(fds[0]);
	close(fds[1]);
	unlink(path);
}

static int callback_fds[2];

static void write_to_a_pipe(int level, const char *line)
{
	(void)level;
	(void)line;
	(void)!write(callback_fds[1], "c", 1);
}

static void *log_while_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	log_warn("w");
	return arg;
}

/* The thread may have locks of ours. */
TEST(callback_is_no_cancellation_point)
{
	struct log_out_params params = { .to = LOG_OUT_CALLBACK,
					 .callback = write_to_a_pipe };
	pthread_t thread;
	void *result;

	CHECK_EQ(pipe(callback_fds), 0);
	CHECK_EQ(log_out_start(&params), 0);
	CHECK_EQ(pthread_create(&thread, NULL, log_while_cancelled, &params), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == &params);
	close(callback_fds[0]);
	close(callback_fds[1]);
}

/* A syslog daemon at `path`. */
static int start_daemon(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	unlink(path);
	strcpy(addr.sun_path, path);
	CHECK_EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* What the daemon has received; "" if it is nothing. */
static const char *heard(int daemon)
{
	static char text[4096];
	ssize_t len = recv(daemon, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[MAX(len, 0)] = '\0';
	return text;
}

static const char *said(int priority, const char *line)
{
	static char text[4096];

	snprintf(text, sizeof(text), "<%d>%s:  VMA %s", priority,
		 program_invocation_short_name, line);
	return text;
}

TEST(syslog_daemon_gets_the_lines)
{
	int daemon;

	start(LOG_OUT_STDERR); /* there is a path */
	daemon = start_daemon();
	start(LOG_OUT_SYSLOG);
	log_info("one");
	log_err("two");
	CHECK_STR(heard(daemon), said(14, "INFO: one"));
	CHECK_STR(heard(daemon), said(11, "ERROR: two"));
	close(atomic_exchange(log_out_fd(), -1));
	close(daemon);
	unlink(path);
}

/* Daemons close all. */
TEST(connection_under_syslogs_number_gets_no_line)
{
	int daemon, low, pair[2];
	char byte;

	start(LOG_OUT_STDERR);
	daemon = start_daemon();
	low = dup(daemon);
	close(low);
	start(LOG_OUT_SYSLOG);
	CHECK_EQ(*log_out_fd(), low);
	CHECK_EQ(close_range((unsigned)low, ~0U, 0), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	CHECK_EQ(pair[0], low);
	log_info("secret");
	CHECK(recv(pair[1], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK_STR(heard(daemon), said(14, "INFO: secret"));
	/* the program's next one is what it would be without us */
	CHECK_EQ(dup(daemon), pair[1] + 1);
	close(pair[1] + 1);
	close(pair[0]);
	close(pair[1]);
	close(atomic_exchange(log_out_fd(), -1));
	close(daemon);
	unlink(path);
}

TEST(syslog_daemon_that_stands_still_stops_nobody)
{
	int daemon, cnt = 0;

	start(LOG_OUT_STDERR);
	daemon = start_daemon();
	start(LOG_OUT_SYSLOG);
	/* more than any queue takes (net.unix.max_dgram_qlen), and what it is charged for */
	for (int i = 0; i < 10000; i++)
		log_info("a line");
	while (*heard(daemon))
		cnt++;
	CHECK(cnt > 0 && cnt < 10000);
	log_info("again");
	CHECK_STR(heard(daemon), said(14, "INFO: again"));
	close(atomic_exchange(log_out_fd(), -1));
	close(daemon);
	unlink(path);
}

/* Gives what the standard error output gets instead. */
static const char *log_to_nobody(char *text)
{
	int pipe_fds[2], old = dup(STDERR_FILENO);

	CHECK_EQ(pipe(pipe_fds), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	log_info("to nobody");
	dup2(old, STDERR_FILENO);
	close(pipe_fds[1]);
	memset(text, 0, 100);
	CHECK(read(pipe_fds[0], text, 99) >= 0);
	close(pipe_fds[0]);
	close(old);
	return text;
}

/* In the order of a machine's start, too, in which the daemon comes last. */
TEST(syslog_daemon_may_come_and_go)
{
	char text[100];
	int daemon;

	start(LOG_OUT_STDERR);
	unlink(path);
	start(LOG_OUT_SYSLOG);
	CHECK_STR(log_to_nobody(text), " VMA INFO: to nobody\n");
	for (int i = 0; i < 3; i++) {
		daemon = start_daemon();
		log_info("one");
		CHECK_STR(heard(daemon), said(14, "INFO: one"));
		log_info("two");
		CHECK_STR(heard(daemon), said(14, "INFO: two"));
		close(daemon);
	}
	CHECK_STR(log_to_nobody(text), " VMA INFO: to nobody\n");
	close(atomic_exchange(log_out_fd(), -1));
	unlink(path);
}

static int count_fd(void *cnt, int fd)
{
	++*(int *)cnt;
	return fd + 1;
}

static int open_fds(void)
{
	int cnt = 0;

	file_for_fds(0, count_fd, &cnt);
	return cnt;
}

static void *log_with_another(void *barrier)
{
	pthread_barrier_wait(barrier);
	log_info("w");
	return NULL;
}

/* Both find that the program has closed it. */
TEST(two_threads_open_the_file_again_once)
{
	pthread_barrier_t barrier;
	pthread_t thread;
	int before, first;

	start(LOG_OUT_FILE);
	/* as the runtime does it */
	first = *log_out_fd();
	atomic_store(log_out_fd(), file_duplicate_high(first));
	close(first);
	pthread_barrier_init(&barrier, NULL, 2);
	before = open_fds();
	for (int i = 0; i < 2000; i++) {
		close(*log_out_fd());
		CHECK_EQ(pthread_create(&thread, NULL, log_with_another,
					&barrier),
			 0);
		log_with_another(&barrier);
		pthread_join(thread, NULL);
	}
	CHECK_EQ(open_fds(), before);
	pthread_barrier_destroy(&barrier);
	close(atomic_exchange(log_out_fd(), -1));
	unlink(path);
}
