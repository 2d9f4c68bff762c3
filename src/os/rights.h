/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel lets this thread do. */
#ifndef OS_RIGHTS_H
#define OS_RIGHTS_H

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "base/syscall_raw.h"

/* Whether a set of capset() has CAP_NET_ADMIN, which is among the first 32 in every
 * version. */
static inline bool rights_have_net_admin(const struct __user_cap_data_struct *data)
{
	return data->effective & CAP_TO_MASK(CAP_NET_ADMIN);
}

/* One of the first 32. */
static inline bool rights_has(int capability)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall_raw(SYS_capget, (long)&header, (long)data, 0, 0, 0, 0) ==
		       0 &&
	       data->effective & CAP_TO_MASK(capability);
}

/* Without it, no connection can become the kernel's (TCP_REPAIR). */
static inline bool rights_is_net_admin(void)
{
	return rights_has(CAP_NET_ADMIN);
}

#endif
