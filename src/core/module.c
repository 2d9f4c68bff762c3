/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens modules (module.h), and gives them the services that they may call. */
#include "config.h"

#include "core/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/log.h"
#include "dev/dev_services.h"
#include "fd/fd_internal.h"
#include "os/file.h"
#include "os/services.h"

static const struct dev_services dev_services = {
#define SERVICE(ret, name, params, args) .name = name,
#include "dev/dev_services.def"
};

static const struct services services = {
	.real = &real,
	.log_config = &log_config,
	.log_vwrite = log_vwrite,
	.adopt_fd = fd_internal_adopt,
	.copy_fd = fd_internal_copy,
	.close_fd = fd_internal_close,
#define SERVICE(ret, name, params, args) .name = name,
#include "os/services.def"
	.dev = &dev_services,
};

/* Where the build makes modules of a kind, below src. %s is the name of the module. */
static const char *const folders[] = {
	[MODULE_BACKEND] = "dev/%s",
	[MODULE_NETLINK] = "nl/libnl",
};

#ifdef VMA_DEBUG
#define MODULE_FILE "libvma-%s-debug.so"
#else
#define MODULE_FILE "libvma-%s.so"
#endif

/* The ways from the folder of the library to src of the build: NULL for an installed
 * library, then the way from src/.libs, then the way from a test's .libs. */
static const char *const ways[] = {
	NULL,
	"..",
#ifdef VMA_DEBUG
	"../../../src",
#endif
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
/* Writes the path of a module. The path is "" if it does not fit. */
static void write_path(char *path, size_t size, const char *dir, int dir_len,
		       const char *way, enum module_kind kind, const char *name)
{
	char folder[64] = "";
	int n;

	if (way) {
		n = snprintf(folder, sizeof(folder), folders[kind], name);
		if (n < 0 || (size_t)n >= sizeof(folder))
			goto too_long;
		n = snprintf(path, size, "%.*s%s/%s/.libs/" MODULE_FILE,
			     dir_len, dir, way, folder, name);
	} else {
		n = snprintf(path, size, "%.*s" MODULE_FILE, dir_len, dir, name);
	}
	if (n >= 0 && (size_t)n < size)
		return;
too_long:
	*path = '\0';
}
#pragma GCC diagnostic pop

/* The library's own path if it does not begin at the root, which it does not where
 * LD_PRELOAD had it so. Else "". */
static char path_from_here[PATH_MAX];

/* The linker's word for where the library is, or "". */
static const char *linkers_path(void)
{
	Dl_info info;

	return dladdr(&services, &info) && info.dli_fname ? info.dli_fname : "";
}

void module_load(void)
{
	const char *path = linkers_path();
	char here[PATH_MAX];
	int n;

	if (path[0] == '/' || !strchr(path, '/') || !getcwd(here, sizeof(here)))
		return;
	n = snprintf(path_from_here, sizeof(path_from_here), "%s/%s", here, path);
	if (n < 0 || (size_t)n >= sizeof(path_from_here))
		path_from_here[0] = '\0';
}

/* The library's own path, of which `*len_out` bytes are its folder. "": it has none. */
static const char *own_folder(int *len_out)
{
	const char *path = path_from_here[0] ? path_from_here : linkers_path();
	const char *slash = strrchr(path, '/');

	*len_out = slash ? (int)(slash + 1 - path) : 0;
	return path;
}

bool module_find_program(const char *name, char *path, size_t size)
{
	int dir_len, n;
	const char *dir = own_folder(&dir_len);

	for (size_t i = 0; *dir && i < ARRAY_LEN(ways); i++) {
		if (ways[i])
			n = snprintf(path, size, "%.*s%s/../tools/%s/%s", dir_len,
				     dir, ways[i], name, name);
		else
			n = snprintf(path, size, "%.*s%s", dir_len, dir, name);
		if (n > 0 && (size_t)n < size && file_is_there(path))
			return true;
	}
	return false;
}

/* Finds the module beside the library, whatever the library's own name is. A debug
 * library takes debug modules. A library that lies in its build tree finds its
 * modules there. */
static int find_path(enum module_kind kind, const char *name, char *path,
		     size_t size)
{
	int dir_len;
	const char *dir = own_folder(&dir_len);

	for (size_t i = 0; *dir && i < ARRAY_LEN(ways); i++) {
		write_path(path, size, dir, dir_len, ways[i], kind, name);
		if (*path && file_is_there(path))
			return 0;
	}
	return -ENOENT;
}

int module_open(enum module_kind kind, const char *name,
		const void **exports_out)
{
	const struct module *module;
	char path[PATH_MAX];
	void *handle;
	int err;

	err = find_path(kind, name, path, sizeof(path));
	if (err)
		return err;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle) {
		log_warn("cannot open %s (%s); going on without it", path,
			 dlerror());
		return -ELIBACC;
	}
	module = dlsym(handle, "vma_module");
	if (!module || module->abi != MODULE_ABI || module->kind != kind) {
		log_warn("%s belongs to another libvma; going on without it",
			 path);
		return -EPROTO;
	}
	module->start(&services);
	log_dbg("module %s: started", path);
	*exports_out = module->exports;
	return 0;
}

int module_open_backend(const char *name, const void *options,
			struct backend **backend_out)
{
	const struct backend_module *exports;
	const void *found;
	int err = module_open(MODULE_BACKEND, name, &found);

	if (err)
		return err;
	exports = found;
	return exports->open(options, backend_out);
}
