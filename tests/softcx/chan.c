/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Event channels as pipes; see chan.h. */
#include "config.h"

#include "chan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys.h"

enum { EVENT_MAX_SIZE = 16, PIPE_BYTES = 64 << 10 };

/* A second description of the pipe's read end, so that its O_NONBLOCK is not the
 * program's. */
static int reopen(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return sys_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
}

static int open_pipe(struct chan *chan)
{
	int fds[2];
	int ret = (int)SYS(__NR_pipe2, fds, O_CLOEXEC);

	if (ret)
		return ret;
	chan->user_fd = fds[0];
	chan->write_fd = fds[1];
	sys_fcntl(chan->write_fd, F_SETFL, O_WRONLY | O_NONBLOCK);
	chan->read_fd = reopen(chan->user_fd);
	if (chan->read_fd >= 0)
		return 0;
	sys_close(chan->user_fd);
	sys_close(chan->write_fd);
	return chan->read_fd;
}

int chan_create(size_t event_size, struct chan **chan_out)
{
	struct chan *chan = calloc(1, sizeof(*chan));
	int ret;

	INVARIANT(event_size <= EVENT_MAX_SIZE, "of the uverbs interface");
	if (!chan)
		return -ENOMEM;
	chan->event_size = event_size;
	list_init(&chan->link);
	ret = open_pipe(chan);
	if (ret) {
		free(chan);
		return ret;
	}
	*chan_out = chan;
	return 0;
}

void chan_destroy(struct chan *chan)
{
	if (!chan)
		return;
	list_remove(&chan->link);
	sys_close(chan->read_fd);
	sys_close(chan->write_fd);
	free(chan);
}

bool chan_raise(struct chan *chan, const void *event)
{
	return sys_write(chan->write_fd, event, chan->event_size) ==
	       (ssize_t)chan->event_size;
}

unsigned int chan_withdraw(struct chan *chan, uint64_t element)
{
	static uint8_t kept[PIPE_BYTES];
	uint8_t event[EVENT_MAX_SIZE];
	size_t size = chan->event_size, n_kept = 0;
	unsigned int n = 0;

	while (n_kept + size <= sizeof(kept) &&
	       sys_read(chan->read_fd, event, size) == (ssize_t)size) {
		if (memcmp(event, &element, sizeof(element)) == 0) {
			n++;
			continue;
		}
		memcpy(kept + n_kept, event, size);
		n_kept += size;
	}
	if (n_kept)
		sys_write(chan->write_fd, kept, n_kept);
	return n;
}
