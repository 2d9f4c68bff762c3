/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The AF_XDP back end drives any Linux interface, through queues of its driver or
 * of the kernel's generic code. It is a module; core gives it these parameters at
 * the start.
 */
#ifndef DEV_XDP_XDP_H
#define DEV_XDP_XDP_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of VMA_XDP_MODE's values. */
enum xdp_wish {
	XDP_WISH_AUTO,
	XDP_WISH_ZC,
	XDP_WISH_NATIVE,
	XDP_WISH_GENERIC,
};

struct xdp_params {
	enum xdp_wish mode;
	/* generic XDP may get packets of several buffers */
	bool has_multi_buffer;
	/* Frames that each queue has to receive into at first, if it could have
	 * more. */
	uint32_t rx_post_first;
};

#endif
