/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random programs of socket calls, one for each seed, for comparing the library with the
 * kernel (sequences.sh).
 *
 *   sequences batch FIRST CNT LEN    plays the seeds, and prints a hash for each
 *   sequences play SEED LEN [OUT]    plays one, and prints what came of each call. OUT
 *                                    has a 1 for each operation that is left out
 *   sequences shrink SEED LEN        plays it here and with $SEQUENCES_PRELOAD preloaded,
 *                                    and leaves out what makes no difference. Prints the
 *                                    shortest program that differs, with both results, or
 *                                    after a minute the shortest it has found
 *
 * With SEQUENCES_OWNED, an address of this host, and SEQUENCES_HEARD_AT, one from which a
 * mirror sends back what it gets, they go over the wire (tests/system/ready_sequences.sh).
 * With SEQUENCES_TCP in the environment their sockets are of TCP, with SEQUENCES_PROCESSES
 * they fork, go on in another program, and send fds; each has a process of its own then.
 * With SEQUENCES_TAME in the environment, without what is known to differ (sequences.sh).
 */
#define _GNU_SOURCE
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/sequences/sequence.h"

enum { OUT_SIZE = 1 << 16, SHRINK_S = 60 };

static struct sequence sequence;
static struct sequence_kind kind;
static struct record *record;

static uint64_t hash(const char *bytes, size_t len)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
	return sum;
}

static void play_it(void)
{
	alarm(30);
	record_clear(record);
	if (kind.has_processes)
		sequence_play_apart(&sequence, record);
	else
		sequence_play(&sequence, record);
}

static void play_batch(uint64_t first, unsigned cnt, unsigned len)
{
	for (uint64_t seed = first; seed < first + cnt; seed++) {
		const char *text;
		unsigned size;

		sequence_draw(&sequence, seed, len, &kind);
		play_it();
		text = record_text(record, &size);
		printf("%llu %016llx\n", (unsigned long long)seed,
		       (unsigned long long)hash(text, size));
	}
	fprintf(stderr, "# received %lu, carried by the library %lu\n",
		record_received(record), record_carried(record));
}

static void play_one(uint64_t seed, unsigned len, const char *out)
{
	const char *text;
	unsigned size;

	sequence_draw(&sequence, seed, len, &kind);
	for (unsigned i = 0; out[i] && i < sequence.cnt; i++)
		sequence.is_out[i] = out[i] == '1';
	play_it();
	text = record_text(record, &size);
	fwrite(text, 1, size, stdout);
}

/* -- shrinking ------------------------------------------------------------------------ */

struct result {
	char text[OUT_SIZE];
	size_t len;
};

static struct result plain, preloaded;
static char **words;

/* Has a process of its own play it, with the library or without. */
static void play_there(const char *out, const char *preload,
		       struct result *result)
{
	char *args[] = { words[0], "play", words[2], words[3], (char *)out,
			 NULL };
	int fds[2];
	ssize_t n;
	pid_t pid;

	result->len = 0;
	if (pipe(fds) != 0 || (pid = fork()) < 0)
		exit(1);
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		alarm(10);
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		execv("/proc/self/exe", args);
		_exit(1);
	}
	close(fds[1]);
	while ((n = read(fds[0], result->text + result->len,
			 OUT_SIZE - 1 - result->len)) > 0)
		result->len += (size_t)n;
	result->text[result->len] = '\0';
	close(fds[0]);
	waitpid(pid, NULL, 0);
}

/* What differs by chance has to do so again and again. */
static bool differs(const char *out)
{
	for (int i = 0; i < 2; i++) {
		play_there(out, NULL, &plain);
		play_there(out, getenv("SEQUENCES_PRELOAD"), &preloaded);
		if (strcmp(plain.text, preloaded.text) == 0)
			return false;
	}
	return true;
}

static bool is_late(time_t since)
{
	return time(NULL) - since > SHRINK_S;
}

static void leave_out(char *out, unsigned len, time_t since)
{
	char tried[OPS_MAX + 1];

	for (unsigned part = len; part; part /= 2)
		for (unsigned at = 0; at < len && !is_late(since); at += part) {
			memcpy(tried, out, len + 1);
			for (unsigned i = at; i < MIN(at + part, len); i++)
				tried[i] = '1';
			if (strcmp(tried, out) != 0 && differs(tried))
				memcpy(out, tried, len + 1);
		}
}

static void say_both(void)
{
	char *a = plain.text, *b = preloaded.text;

	while (*a || *b) {
		size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

		if (n == m && memcmp(a, b, n) == 0)
			printf("  %.*s\n", (int)n, a);
		else
			printf("- %.*s\n+ %.*s\n", (int)n, a, (int)m, b);
		a += n + (a[n] == '\n');
		b += m + (b[m] == '\n');
	}
}

static int shrink(unsigned len)
{
	char out[OPS_MAX + 1] = "", before[OPS_MAX + 1];
	time_t since = time(NULL);

	memset(out, '0', MIN(len, (unsigned)OPS_MAX));
	if (!differs(out)) {
		printf("seed %s does not differ by itself\n", words[2]);
		return 1;
	}
	do {
		memcpy(before, out, sizeof(out));
		leave_out(out, (unsigned)strlen(out), since);
	} while (strcmp(before, out) != 0 && !is_late(since));
	/* an interrupt of the kernel's can be late for seconds */
	if (!differs(out)) {
		printf("seed %s differed for a while only\n", words[2]);
		return 1;
	}
	printf("seed %s length %s without %s\n", words[2], words[3], out);
	say_both();
	return 0;
}

static uint64_t number(const char *word)
{
	return strtoull(word, NULL, 0);
}

int main(int argc, char **argv)
{
	words = argv;
	kind = (struct sequence_kind){
		.is_tame = getenv("SEQUENCES_TAME"),
		.is_tcp = getenv("SEQUENCES_TCP"),
		.has_processes = getenv("SEQUENCES_PROCESSES"),
	};
	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "go-on") == 0) {
		sequence_go_on(record_open(atoi(argv[2])));
		return 0;
	}
	record = record_create();
	if (argc == 5 && strcmp(argv[1], "batch") == 0) {
		play_batch(number(argv[2]), (unsigned)number(argv[3]),
			   (unsigned)number(argv[4]));
	} else if (argc >= 4 && strcmp(argv[1], "play") == 0) {
		play_one(number(argv[2]), (unsigned)number(argv[3]),
			 argc > 4 ? argv[4] : "");
	} else if (argc == 4 && strcmp(argv[1], "shrink") == 0) {
		return shrink((unsigned)number(argv[3]));
	} else {
		fprintf(stderr, "usage: sequences batch FIRST CNT LEN | play SEED LEN [OUT] | shrink SEED LEN\n");
		return 2;
	}
	return 0;
}
