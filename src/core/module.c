/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening modules (module.h), and what they get of us. */
#include "config.h"

#include "core/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/log.h"
#include "fd/fd_internal.h"
#include "os/file.h"

static const struct services services = {
	.real = &real,
	.log_config = &log_config,
	.log_vwrite = log_vwrite,
	.adopt_fd = fd_internal_adopt,
	.close_fd = fd_internal_close,
#define SERVICE(ret, name, params, args) .name = name,
#include "dev/services.def"
};

/* Beside the library, whatever its own name is; a debug library takes debug
 * modules, and one that lies in its build tree finds them there. */
static int find_path(const char *name, char *path, size_t size)
{
#ifdef VMA_DEBUG
	static const char *const forms[] = {
		"libvma-%s-debug.so", "../../../src/dev/%s/.libs/libvma-%s-debug.so",
		"../dev/%s/.libs/libvma-%s-debug.so",
	};
#else
	static const char *const forms[] = {
		"libvma-%s.so", "../dev/%s/.libs/libvma-%s.so",
	};
#endif
	Dl_info info;
	const char *slash;
	int dir_len;

	if (!dladdr(&services, &info) || !info.dli_fname)
		return -ENOENT;
	slash = strrchr(info.dli_fname, '/');
	dir_len = slash ? (int)(slash + 1 - info.dli_fname) : 0;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		int n = snprintf(path, size, "%.*s", dir_len, info.dli_fname);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
		n += snprintf(path + n, size - (size_t)n, forms[i], name, name);
#pragma GCC diagnostic pop
		if ((size_t)n < size && file_is_there(path))
			return 0;
	}
	return -ENOENT;
}

int module_open(const char *name, const void *options,
		struct backend **backend_out)
{
	const struct module *module;
	char path[PATH_MAX];
	void *handle;
	int err;

	err = find_path(name, path, sizeof(path));
	if (err)
		return err;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle) {
		log_warn("cannot open %s (%s); going on without it", path,
			 dlerror());
		return -ENOENT;
	}
	module = dlsym(handle, "vma_module");
	if (!module || module->abi != MODULE_ABI) {
		log_warn("%s belongs to another libvma; going on without it",
			 path);
		return -EPROTO;
	}
	err = module->start(&services, options, backend_out);
	log_dbg("module %s: %s", path, err ? strerror(-err) : "started");
	return err;
}
