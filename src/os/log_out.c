/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The log's way out of the process. */
#include "config.h"

#include "os/log_out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "os/file.h"
#include "os/inside.h"
#include "os/real.h"
#include "os/signals.h"
#include "os/thread.h"

static struct log_out_params params;
/* a log file's, which may have been named from a directory that the program has left since */
static char absolute[PATH_MAX];
/* the log file, or the socket to the syslog daemon */
static _Atomic int file_fd = -1;
static struct file_id file;

/* What the standard error output was when the library was loaded. */
static struct {
	struct file_id id;
	/* nothing, or a connection, whose peer would get our lines */
	bool is_barred;
} initial_stderr;

/* A pipe that is full, or a terminal that is stopped, does not. The program, which may have
 * nothing to say there, is not to stand still for that, with its signals held; the line is
 * lost. */
static bool takes_a_line(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return inside_poll(&pfd, 1) != 0;
}

static void write_all(int fd, const char *text, size_t len)
{
	struct signals_quiet quiet;

	signals_quiet_begin(&quiet);
	while (len > 0 && takes_a_line(fd)) {
		ssize_t n = inside_write(fd, text, len);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		text += n;
		len -= (size_t)n;
	}
	signals_quiet_end(&quiet);
}

static bool is_connection(int fd)
{
	int domain;
	socklen_t len = sizeof(domain);

	return real.getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	       domain != AF_UNIX;
}

void log_out_load(void)
{
	struct file_id id = file_identify(STDERR_FILENO);

	initial_stderr.id = id;
	initial_stderr.is_barred = !id.mode || (S_ISSOCK(id.mode) &&
						is_connection(STDERR_FILENO));
}

/* What a program opens in order to read it, too. */
static bool is_data(const struct file_id *id)
{
	return (S_ISREG(id->mode) || S_ISBLK(id->mode)) &&
	       (syscall_raw(SYS_fcntl, STDERR_FILENO, F_GETFL, 0, 0, 0, 0) & O_ACCMODE) !=
		       O_WRONLY;
}

/* A program that was started without it, as inetd starts its servers or behind "2>&-", may
 * have its data at that number, and one that has closed it a connection or its data. If it
 * has put something else there on purpose, such as a log file, we write to that. */
static void write_stderr(const char *line, size_t len)
{
	struct file_id now = file_identify(STDERR_FILENO);

	if (initial_stderr.is_barred ||
	    (!file_is_same(&now, &initial_stderr.id) &&
	     (S_ISSOCK(now.mode) || is_data(&now))))
		return;
	write_all(STDERR_FILENO, line, len);
}

void log_out_bare(const char *line)
{
	mode_t mode = initial_stderr.id.mode;
	long len = (long)strlen(line);

	if (initial_stderr.is_barred || S_ISFIFO(mode))
		return;
	if (S_ISSOCK(mode))
		(void)!syscall_raw(SYS_sendto, STDERR_FILENO, (long)line, len,
				   MSG_NOSIGNAL, 0, 0);
	else
		(void)!syscall_raw(SYS_write, STDERR_FILENO, (long)line, len, 0, 0, 0);
}

struct code {
	uintptr_t address;
	bool is_known, is_found;
};

/* "BEGIN-END rwxp ..." */
static void look_at_mapping(void *ctx, const char *line)
{
	struct code *code = ctx;
	char *rest;
	uintptr_t begin = strtoul(line, &rest, 16), end = 0;

	if (*rest == '-')
		end = strtoul(rest + 1, &rest, 16);
	if (strlen(rest) < strlen(" rwx"))
		return;
	code->is_known = true;
	code->is_found |= code->address >= begin && code->address < end &&
			  rest[3] == 'x';
}

bool log_out_is_code(uintptr_t address)
{
	struct code code = { .address = address };

	file_for_lines("/proc/self/maps", look_at_mapping, &code);
	return code.is_found || !code.is_known;
}

static void make_absolute(void)
{
	char here[PATH_MAX];

	if (params.path[0] != '/' && getcwd(here, sizeof(here)) &&
	    (size_t)snprintf(absolute, sizeof(absolute), "%s/%s", here, params.path) <
		    sizeof(absolute))
		params.path = absolute;
}

/* A FIFO without a reader must not stop the program, nor a terminal become its own. */
static int open_file(int flags)
{
	return inside_open(params.path,
			   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK |
				   O_NOCTTY | flags,
			   0644);
}

static void write_by(int fd)
{
	struct file_id opened = file_identify(fd);

	if (!file_is_same(&opened, &file))
		file = opened;
	atomic_store(&file_fd, fd);
}

static bool is_intact(void)
{
	struct file_id now = file_identify(atomic_load(&file_fd));

	return file_is_same(&now, &file);
}

/* The file has been opened again: later lines find it, not at the number that the program's
 * next file would get, nor at one that a thread in the same place may get for a moment, and
 * would take for the one that is kept. Without such a number, and in a child that was forked
 * just here, each line opens the file for itself. (Who starts the log sees to that himself.)
 * Of several threads that have opened it, one is enough. */
static void keep(int fd)
{
	static _Atomic bool is_being_kept;
	int high;

	if (!atomic_exchange(&is_being_kept, true)) {
		high = is_intact() ? -1 : file_duplicate_high(fd);
		if (high >= 0)
			write_by(high);
		atomic_store(&is_being_kept, false);
	}
	inside_close(fd);
}

static int syslog_priority(int level)
{
	switch (level) {
	case LOG_LEVEL_PANIC:
		return LOG_CRIT;
	case LOG_LEVEL_ERROR:
		return LOG_ERR;
	case LOG_LEVEL_WARNING:
		return LOG_WARNING;
	case LOG_LEVEL_INFO:
	case LOG_LEVEL_DETAILS:
		return LOG_INFO;
	default:
		return LOG_DEBUG;
	}
}

static int connect_syslog(int fd)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(params.path);

	if (len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, params.path, len);
	return (int)syscall_raw(SYS_connect, fd, (long)&addr, sizeof(addr), 0, 0, 0);
}

/* libc's syslog() has a socket of its own, with the program's next number. It takes the
 * number for its own when the program has closed it and used it again, waits for a daemon
 * that stands still, and has a lock, which a child may find taken for good. Without a
 * daemon the socket is there all the same, and is connected later. */
static int open_syslog(void)
{
	int fd = (int)syscall_raw(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC,
				  0, 0, 0, 0);

	if (fd >= 0)
		(void)connect_syslog(fd);
	return fd;
}

/* As syslog(3) writes it, but for the date, which daemons then add: the local time would have
 * to be asked of libc, which reads TZ and its file once, maybe before the program sets it. */
static void send_to_syslog(int fd, enum log_level level, const char *line, size_t len)
{
	char head[64];
	int head_len = snprintf(head, sizeof(head), "<%d>%.40s: ",
				LOG_USER | syslog_priority(level),
				program_invocation_short_name);
	struct iovec iov[] = {
		{ .iov_base = head, .iov_len = (size_t)head_len },
		{ .iov_base = (void *)line, .iov_len = len - 1 }, /* the newline */
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = ARRAY_LEN(iov) };
	long n = inside_sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

	/* the daemon has been started, maybe anew */
	if ((n == -ECONNREFUSED || n == -ENOTCONN) && connect_syslog(fd) == 0)
		n = inside_sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* The line is lost on a daemon that stands still: its queue is full. */
	if (n < 0 && n != -EAGAIN)
		write_stderr(line, len);
}

static int open_again(void)
{
	return params.to == LOG_OUT_SYSLOG ? open_syslog() : open_file(0);
}

static void write_to(int fd, enum log_level level, const char *line, size_t len)
{
	if (params.to == LOG_OUT_SYSLOG)
		send_to_syslog(fd, level, line, len);
	else
		write_all(fd, line, len);
}

/* The program may close fds that it does not know (daemons close all), and the
 * child of a fork starts without our fd. So we open the file again if it is gone. */
static void write_kept(enum log_level level, const char *line, size_t len)
{
	int fd;

	if (is_intact()) {
		write_to(atomic_load(&file_fd), level, line, len);
		return;
	}
	fd = open_again();
	if (fd < 0) {
		write_stderr(line, len);
		return;
	}
	write_to(fd, level, line, len);
	keep(fd);
}

static void sink(void *ctx UNUSED, enum log_level level, const char *line,
		 size_t len)
{
	char text[LOG_LINE_SIZE];

	os_enter();
	switch (params.to) {
	case LOG_OUT_STDERR:
		write_stderr(line, len);
		break;
	case LOG_OUT_FILE:
	case LOG_OUT_SYSLOG:
		write_kept(level, line, len);
		break;
	case LOG_OUT_CALLBACK:
		memcpy(text, line, len);
		text[len - 1] = '\0'; /* in place of the newline */
		/* the program may have a cancellation point there */
		lock_bar_cancellation();
		params.callback(level, text);
		lock_unbar_cancellation();
		break;
	}
	os_leave();
}

int log_out_start(const struct log_out_params *new_params)
{
	int err = 0;

	params = *new_params;
	if (params.to == LOG_OUT_FILE)
		make_absolute();
	if (params.to == LOG_OUT_FILE || params.to == LOG_OUT_SYSLOG) {
		int fd = params.to == LOG_OUT_SYSLOG ? open_syslog() :
						       open_file(O_TRUNC);

		if (fd >= 0) {
			write_by(fd);
		} else {
			err = fd;
			params.to = LOG_OUT_STDERR;
		}
	}
	log_config.has_colors = params.want_colors &&
				params.to == LOG_OUT_STDERR &&
				isatty(STDERR_FILENO);
	log_set_sink(sink, NULL);
	return err;
}

_Atomic int *log_out_fd(void)
{
	return &file_fd;
}
