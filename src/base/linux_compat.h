/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Constants that the kernel headers of the distribution do not have yet. */
#ifndef BASE_LINUX_COMPAT_H
#define BASE_LINUX_COMPAT_H

#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4) /* Linux 6.6 */
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif
#ifndef BPF_F_XDP_DEV_BOUND_ONLY
#define BPF_F_XDP_DEV_BOUND_ONLY (1U << 6) /* Linux 6.3 */
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

/* Linux 6.6. The kernel's names are enumerators, which the preprocessor cannot ask
 * for, so these have names of their own. */
enum { COMPAT_BPF_TCX_INGRESS = 46, COMPAT_BPF_TCX_EGRESS = 47 };

#endif
