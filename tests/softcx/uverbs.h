/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* /dev/infiniband/uverbsN as a file: its descriptors and theirs of its channels. */
#ifndef SOFTCX_UVERBS_H
#define SOFTCX_UVERBS_H

#include "base/compiler.h"

struct card;
struct chan;
struct ctx;

/* `fd`, just opened, is uverbs number `index` from now on. */
MUST_CHECK int uverbs_open(struct card *card, unsigned int index, int fd);
/* The program's end of a channel: its close is to be noticed. */
MUST_CHECK int uverbs_add_chan(struct ctx *ctx, int fd);
/* The channel that any of the program's descriptors names, or NULL. */
struct chan *uverbs_find_chan(struct ctx *ctx, int fd);

#endif
