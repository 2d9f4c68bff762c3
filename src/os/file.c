/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading and recognising files. */
#include "config.h"

#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/real.h"

struct file_id file_identify(int fd)
{
	struct file_id id = { 0 };
	int saved_errno = errno;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		id = (struct file_id){ st.st_dev, st.st_ino, st.st_mode };
	errno = saved_errno;
	return id;
}

/* Up to `size` bytes, or negative errno. */
static ssize_t read_all(int fd, char *buf, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = real.read(fd, buf + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static int read_regular(int fd, size_t max, char **text_out, size_t *len_out)
{
	struct stat st;
	ssize_t len;
	char *text;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((size_t)st.st_size > max)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	len = read_all(fd, text, (size_t)st.st_size);
	if (len < 0) {
		free(text);
		return (int)len;
	}
	text[len] = '\0';
	*text_out = text;
	*len_out = (size_t)len;
	return 0;
}

int file_read(const char *path, size_t max, char **text_out, size_t *len_out)
{
	/* O_NONBLOCK: a FIFO without a writer must not hold the program up. */
	int fd = real.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int err;

	if (fd < 0)
		return -errno;
	err = read_regular(fd, max, text_out, len_out);
	real.close(fd);
	return err;
}

ssize_t file_peek(const char *path, char *buf, size_t size)
{
	int fd = real.open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read_all(fd, buf, size);
	real.close(fd);
	return len;
}

bool file_is_there(const char *path)
{
	return access(path, R_OK) == 0;
}

int file_event_fd(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
