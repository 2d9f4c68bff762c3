/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Collects the facts for the banner. */
#include "config.h"

#include "core/about.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "conf/banner.h"
#include "os/file.h"

enum { CMDLINE_SIZE = 512 };

/* Reads the arguments of this process, with blanks between them, as one line. It is
 * cut when it is long. */
static void read_cmdline(char *text, size_t size)
{
	ssize_t len = file_peek("/proc/self/cmdline", text, size - 1);

	len = MAX(len, 0);
	while (len > 0 && text[len - 1] == '\0')
		len--;
	text[len] = '\0';
	for (ssize_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ')
			text[i] = ' ';
}

static void format_time(char *text, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	if (!localtime_r(&now, &tm) ||
	    !strftime(text, size, "%a %b %e %H:%M:%S %Y", &tm))
		text[0] = '\0';
}

static int64_t memlock_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return MEMLOCK_UNLIMITED;
	return (int64_t)limit.rlim_cur;
}

void about_print(const struct options *opts)
{
	char version[32], cmdline[CMDLINE_SIZE], now[64];
	struct utsname machine = { 0 };
	struct banner_facts facts = {
		.version = version,
		.is_release = VMA_RELEASE > 0,
		.built = VMA_BUILT,
		.commit = VMA_COMMIT,
		.cmdline = cmdline,
		.time = now,
		.pid = getpid(),
		.arch = machine.machine,
		.node = machine.nodename,
		.system = machine.release,
		.will_lock_memory = false,
		.memlock_limit = memlock_limit(),
	};

	uname(&machine);
	snprintf(version, sizeof(version), "%d.%d.%d-%d", VMA_MAJOR, VMA_MINOR,
		 VMA_REVISION, VMA_RELEASE);
	read_cmdline(cmdline, sizeof(cmdline));
	format_time(now, sizeof(now));
	banner_print(opts, &facts);
}
