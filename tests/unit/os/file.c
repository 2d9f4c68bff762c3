/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

TEST(identity_tells_files_apart)
{
	int fds[2];
	struct file_id a, b, none = file_identify(-1);

	CHECK_EQ(pipe(fds), 0);
	a = file_identify(fds[0]);
	b = file_identify(STDIN_FILENO);
	CHECK(file_is_same(&a, &a));
	CHECK(!file_is_same(&a, &b));
	CHECK(!file_is_same(&none, &none));
	close(fds[0]);
	close(fds[1]);
}

TEST(read_returns_the_whole_file)
{
	char path[] = "/tmp/vma_file_XXXXXX", *text;
	int fd = mkstemp(path);
	size_t len;

	CHECK_EQ(write(fd, "abc", 3), 3);
	close(fd);
	CHECK_EQ(file_read(path, 3, &text, &len), 0);
	CHECK_EQ(len, 3);
	CHECK_STR(text, "abc");
	free(text);
	CHECK_EQ(file_read(path, 2, &text, &len), -EFBIG);
	unlink(path);
	CHECK_EQ(file_read(path, 3, &text, &len), -ENOENT);
	CHECK_EQ(file_read("/", 3, &text, &len), -EINVAL);
}

TEST(fifo_without_writer_does_not_hold_up)
{
	char dir[] = "/tmp/vma_file_XXXXXX", path[64], *text;
	size_t len;

	CHECK(mkdtemp(dir));
	strcat(strcpy(path, dir), "/fifo");
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK_EQ(file_read(path, 100, &text, &len), -EINVAL);
	unlink(path);
	rmdir(dir);
}

TEST(peek_reads_files_without_size)
{
	char text[16];

	CHECK(file_peek("/proc/self/comm", text, sizeof(text)) > 0);
	CHECK_EQ(file_peek("/no/such/file", text, sizeof(text)), -ENOENT);
}
