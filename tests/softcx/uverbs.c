/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The uverbs file; see uverbs.h. */
#include "config.h"

#include "uverbs.h"

#include <errno.h>
#include <stdlib.h>

#include "card.h"
#include "cmd.h"
#include "ctx.h"
#include "files.h"

/* A context's own file, and the files of its channels: they hold it, for a
 * program may close them in any order. */
struct uverbs_file {
	struct file file;
	struct ctx *ctx;  /* NULL once the context is closed */
	int chan_fd;      /* of a channel: its number in the context */
	struct list link;  /* of a context's files */
};

static struct list all_files = LIST_INIT(all_files);

static ssize_t uverbs_write(struct file *file, const void *buf, size_t len)
{
	struct uverbs_file *uf = CONTAINER_OF(file, struct uverbs_file, file);
	ssize_t ret;

	card_lock(the_card);
	ret = cmd_write(uf->ctx, buf, len);
	card_unlock(the_card);
	return ret;
}

static int uverbs_ioctl(struct file *file, unsigned long request, void *arg)
{
	struct uverbs_file *uf = CONTAINER_OF(file, struct uverbs_file, file);
	int ret;

	card_lock(the_card);
	ret = cmd_ioctl(uf->ctx, request, arg);
	card_unlock(the_card);
	return ret;
}

static void *uverbs_mmap(struct file *file, void *addr, size_t len, int prot,
			 int flags, off_t offset)
{
	struct uverbs_file *uf = CONTAINER_OF(file, struct uverbs_file, file);
	void *at;

	card_lock(the_card);
	at = ctx_mmap(uf->ctx, addr, len, prot, flags, offset);
	card_unlock(the_card);
	return at;
}

static void uverbs_close(struct file *file)
{
	struct uverbs_file *uf = CONTAINER_OF(file, struct uverbs_file, file);
	struct uverbs_file *other;

	card_lock(the_card);
	LIST_FOR_EACH(other, &all_files, link) {
		if (other != uf && other->ctx == uf->ctx)
			other->ctx = NULL;
	}
	list_remove(&uf->link);
	ctx_destroy(the_card, uf->ctx);
	card_unlock(the_card);
	free(uf);
}

static void chan_close(struct file *file)
{
	struct uverbs_file *uf = CONTAINER_OF(file, struct uverbs_file, file);

	card_lock(the_card);
	if (uf->ctx)
		ctx_close_chan(uf->ctx, uf->chan_fd);
	list_remove(&uf->link);
	card_unlock(the_card);
	free(uf);
}

static const struct file_ops uverbs_ops = {
	.write = uverbs_write,
	.ioctl = uverbs_ioctl,
	.mmap = uverbs_mmap,
	.close = uverbs_close,
};

static const struct file_ops chan_ops = {
	.close = chan_close,
};

static int add(struct ctx *ctx, int fd, const struct file_ops *ops)
{
	struct uverbs_file *uf = calloc(1, sizeof(*uf));
	int ret;

	if (!uf)
		return -ENOMEM;
	uf->file.ops = ops;
	uf->ctx = ctx;
	uf->chan_fd = fd;
	ret = files_add(fd, &uf->file);
	if (ret) {
		free(uf);
		return ret;
	}
	list_push_back(&all_files, &uf->link);
	return 0;
}

static int open_locked(struct card *card, unsigned int index, int fd)
{
	struct dev *dev = &card->devs[index];
	struct ctx *ctx;
	int ret;

	if (dev->is_removed)
		return -ENXIO;
	ret = ctx_create(card, dev, fd, &ctx);
	if (ret)
		return ret;
	ret = add(ctx, fd, &uverbs_ops);
	if (ret)
		ctx_destroy(card, ctx);
	return ret;
}

int uverbs_open(struct card *card, unsigned int index, int fd)
{
	int ret;

	if (index >= card->conf.n_devs)
		return -ENXIO;
	card_lock(card);
	ret = open_locked(card, index, fd);
	card_unlock(card);
	return ret;
}

int uverbs_add_chan(struct ctx *ctx, int fd)
{
	return add(ctx, fd, &chan_ops);
}

struct chan *uverbs_find_chan(struct ctx *ctx, int fd)
{
	struct file *file = files_get(fd);

	if (!file || file->ops != &chan_ops)
		return NULL;
	return ctx_find_chan(ctx, CONTAINER_OF(file, struct uverbs_file,
					       file)->chan_fd);
}
