/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The runtime: starts the library in order, decides what becomes of new sockets, and
 * follows forks. */
#include "config.h"

#include "core/runtime.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "conf/options.h"
#include "conf/rules.h"
#include "core/about.h"
#include "core/module.h"
#include "core/network.h"
#include "core/origin.h"
#include "core/rings.h"
#include "core/rules_file.h"
#include "fd/fd_change.h"
#include "fd/fd_flight.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "fd/fd_visit.h"
#include "fd/fd_wait.h"
#include "iomux/mux.h"
#include "nl/netlink.h"
#include "os/file.h"
#include "os/filter.h"
#include "os/log_out.h"
#include "os/own_thread.h"
#include "os/real.h"
#include "os/rights.h"
#include "os/signals.h"
#include "os/thread.h"
#include "stats/reasons.h"
#include "stats/stats_publish.h"

extern char **environ;

enum runtime_state {
	NOT_STARTED,
	/* Has done what is not seen (startup.def). */
	PREPARED,
	STARTED,
	FAILED,
	/* The parent has started. What each process has of its own is still to be
	 * made. */
	FORKED,
};

static struct {
	/* Moves on under `lock`. A fork turns STARTED into FORKED. */
	_Atomic enum runtime_state state;
	struct mutex lock;
	_Atomic bool has_left_namespace;
	/* threads that are about to */
	_Atomic unsigned leaving_cnt;
	/* A filter of system calls is about to be installed, or is; or something else has
	 * happened after which the kernel has all sockets. */
	_Atomic bool is_filtered;
	_Atomic enum reason why_filtered;
	/* what the process was started under is known */
	_Atomic bool knows_filter;
	runtime_socket_fn *make_socket;
	bool (*may_serve)(int type);

	/* `lock`: of the fork that has it */
	struct signals_hold fork_hold;

	/* Fixed after the start. */
	bool has_complaints; /* about the environment */
	struct rules *rules;
} runtime = {
	.lock = MUTEX_INIT(LOCK_RANK_START),
	.make_socket = network_make_socket,
	.may_serve = network_may_serve,
};

/* They are large, and are not touched before the start. */
static struct options options;

static struct options_facts option_facts(void)
{
	return (struct options_facts){
		.pid = getpid(),
		.hypervisor = HYPERVISOR_NONE,
		.log_level_max = LOG_LEVEL_COMPILED,
	};
}

static void warn(void *ctx UNUSED, const char *line)
{
	log_warn("%s", line);
}

/* Says nothing yet, since the options decide where complaints go. */
static int start_options(void)
{
	struct options_facts facts = option_facts();

	runtime.has_complaints = options_parse(&options, origin_environment(),
					       &facts, NULL, NULL) > 0;
	return 0;
}

static struct log_out_params log_destination(void)
{
	struct log_out_params params = {
		.to = LOG_OUT_STDERR,
		.want_colors = options.log_colors,
	};

	if (options.log_cb && log_out_is_code(options.log_cb)) {
		params.to = LOG_OUT_CALLBACK;
		memcpy(&params.callback, &options.log_cb,
		       sizeof(params.callback));
	} else if (options.log_file[0]) {
		params.to = LOG_OUT_FILE;
		params.path = options.log_file;
	}
	return params;
}

/* Opens the log, and hides its fd from the program. */
static void open_log(const struct log_out_params *params)
{
	int err = log_out_start(params);
	int fd = atomic_load(log_out_fd());

	if (err)
		log_warn("cannot write the log to %s (%s); using the standard error output",
			 params->path, strerror(-err));
	else if (fd >= 0 && fd_internal_adopt(fd, log_out_fd()) != 0)
		log_dbg("the log's file stays at fd %d", fd);
}

static int start_log(void)
{
	struct log_out_params params = log_destination();
	struct options_facts facts = option_facts();

	atomic_store(&log_config.level, options.log_level);
	atomic_store(&log_config.details, options.log_details);
	open_log(&params);
	if (options.log_cb && params.to != LOG_OUT_CALLBACK)
		log_warn("VMA_LOG_CB_FUNC_PTR=%#" PRIxPTR ": must be the address of a function of this process; using none",
			 options.log_cb);
	if (runtime.has_complaints)
		(void)options_parse(&options, origin_environment(), &facts,
				    warn, NULL);
	return 0;
}

static int start_rules(void)
{
	runtime.rules = rules_create();
	if (!runtime.rules)
		return -ENOMEM;
	return rules_file_read(runtime.rules, options.config_file,
			       options.is_set[OPTION_config_file]);
}

/* A log statement of the rules file is used if the environment says nothing. */
static int start_log_of_rules(void)
{
	const struct rules_log *said = rules_log(runtime.rules);
	struct log_out_params params = log_destination();

	rules_file_echo(runtime.rules);
	if (params.to != LOG_OUT_STDERR || said->to == RULES_LOG_UNSAID ||
	    said->to == RULES_LOG_STDERR)
		return 0;
	if (said->to == RULES_LOG_SYSLOG) {
		params.to = LOG_OUT_SYSLOG;
		params.path = _PATH_LOG;
	} else {
		params.to = LOG_OUT_FILE;
		params.path = said->file;
	}
	open_log(&params);
	return 0;
}

static int start_stats(void)
{
	static char version[16];
	struct stats_params params = {
		.dir = options.is_set[OPTION_stats_shmem_dir] ? options.stats_shmem_dir :
								NULL,
		.file = options.stats_file,
		.socket_max = (uint32_t)options.stats_fd_num,
		.program = origin_program(),
		.version = version,
	};

	snprintf(version, sizeof(version), "%d.%d.%d-%d", VMA_MAJOR, VMA_MINOR,
		 VMA_REVISION, VMA_RELEASE);
	stats_start(&params);
	return 0;
}

static int start_network(void)
{
	network_configure(&options, runtime.rules, origin_program());
	return 0;
}

static int start_banner(void)
{
	about_print(&options);
	return 0;
}

#define RUN_STEP(step, needs)          \
	do {                           \
		int err_ = step();     \
		if (err_)              \
			return err_;   \
	} while (0);

static int run_steps(void)
{
#define STARTUP RUN_STEP
#include "core/startup.def"
	return 0;
}

static int run_seen_steps(void)
{
#define STARTUP_SEEN RUN_STEP
#include "core/startup.def"
	return 0;
}

/* The next state, for who wants that one. */
static int next_state(enum runtime_state wanted, enum runtime_state *state)
{
	int err = 0;

	if (*state == NOT_STARTED) {
		err = run_steps();
		*state = PREPARED;
	}
	if (!err && *state == PREPARED && wanted == STARTED) {
		err = run_seen_steps();
		*state = STARTED;
	}
	if (*state == FORKED && wanted == STARTED) {
		stats_start_again();
		*state = STARTED;
	}
	return err;
}

/* Starts the library, unless that has been done. In the bracket. */
static void start_once(enum runtime_state wanted)
{
	enum runtime_state state;
	int err;

	mutex_acquire(&runtime.lock);
	state = atomic_load(&runtime.state);
	err = next_state(wanted, &state);
	if (err) {
		log_err("cannot start (%s); all sockets stay with the kernel",
			strerror(-err));
		state = FAILED;
	}
	atomic_store_explicit(&runtime.state, state, memory_order_release);
	mutex_release(&runtime.lock);
}

static void look_for_filter(void)
{
	mutex_acquire(&runtime.lock);
	if (!atomic_load(&runtime.knows_filter)) {
		if (atomic_load(&runtime.state) == NOT_STARTED)
			(void)start_options();
		/* who wants nothing of us gets nothing, and no child tries */
		if (options.offloaded_sockets ? filter_is_deadly() : filter_is_there()) {
			atomic_store(&runtime.why_filtered, REASON_SECCOMP);
			atomic_store(&runtime.is_filtered, true);
		}
		atomic_store(&runtime.knows_filter, true);
	}
	mutex_release(&runtime.lock);
}

/* Nothing starts under such a filter, not even the log. */
static COLD void tell_of_filter(void)
{
	static _Atomic bool is_told;
	char line[LOG_LINE_SIZE];

	if (atomic_exchange(&is_told, true) ||
	    atomic_load(&runtime.state) != NOT_STARTED ||
	    options.log_level < LOG_LEVEL_INFO)
		return;
	snprintf(line, sizeof(line), " VMA INFO: Sockets stay with the kernel: %s\n",
		 reason_why(REASON_SECCOMP));
	log_out_bare(line);
}

/* Starts the library if this is the first time. While we hold the lock, no handler
 * of the program may fork or jump out; the bracket does not keep handlers out before
 * there is a trampoline, so we hold signals. Outside the bracket. */
static COLD void start_holding_signals(enum runtime_state wanted)
{
	struct signals_hold hold;

	signals_hold(&hold);
	os_enter();
	start_once(wanted);
	os_leave();
	signals_unhold(&hold);
}

/* Whether we must make no system call that the program has not made itself. */
static bool is_filtered(void)
{
	struct signals_hold hold;

	/* one of the program's own may have come first */
	if (UNLIKELY(!atomic_load(&runtime.knows_filter) &&
		     !atomic_load(&runtime.is_filtered))) {
		signals_hold(&hold);
		os_enter();
		look_for_filter();
		os_leave();
		signals_unhold(&hold);
	}
	return atomic_load(&runtime.is_filtered);
}

static void ensure_started(void)
{
	enum runtime_state state =
		atomic_load_explicit(&runtime.state, memory_order_acquire);

	if (UNLIKELY(state != STARTED && state != FAILED))
		start_holding_signals(STARTED);
}

static enum reason reason_by_kind(int domain, int type)
{
	type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (domain != AF_INET && domain != AF_INET6)
		return REASON_FAMILY;
	if (type != SOCK_STREAM && type != SOCK_DGRAM)
		return REASON_TYPE;
	return REASON_NONE;
}

static enum reason reason_by_policy(int type)
{
	struct rules_who who = { origin_program(),
				 options.application_id };
	bool is_tcp = (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM;

	if (!options.offloaded_sockets)
		return REASON_SWITCHED_OFF;
	if (atomic_load(&runtime.has_left_namespace) || atomic_load(&runtime.leaving_cnt))
		return REASON_NAMESPACE;
	if (rings_are_there())
		return REASON_IO_URING;
	if (rules_is_all_kernel(runtime.rules, &who,
				is_tcp ? RULES_TCP : RULES_UDP))
		return REASON_RULE;
	return REASON_NONE;
}

/* Makes the object for a new socket, with a reference. NULL: there is none, for
 * *reason_out. */
static struct fd_object *make_object(int fd, int domain, int type,
				     int protocol, enum reason *reason_out)
{
	int reason;
	struct fd_object *obj;

	*reason_out = reason_by_policy(type);
	if (*reason_out != REASON_NONE)
		return NULL;
	reason = REASON_NO_BACK_END;
	obj = runtime.make_socket(fd, domain, type, protocol, &reason);
	*reason_out = obj ? REASON_NONE : (enum reason)reason;
	return obj;
}

/* The log says once what a user has to know. The reason of each socket is counted,
 * and shown at debug level. */
static void tell(int fd, enum reason reason)
{
	if (reason == REASON_TCP)
		LOG_ONCE(LOG_LEVEL_INFO, "TCP sockets stay with the kernel: %s",
			 reason_why(reason));
	stats_count_unserved(reason);
	log_dbg("fd %d stays with the kernel: %s", fd, reason_why(reason));
}

static void serve_socket(int fd, int domain, int type, int protocol)
{
	enum reason reason;
	struct fd_object *obj;

	if (atomic_load(&runtime.state) == FAILED)
		return;
	obj = make_object(fd, domain, type, protocol, &reason);
	if (!obj) {
		tell(fd, reason);
		return;
	}
	if (fd_table_install(fd, obj) != 0)
		log_dbg("fd %d stays with the kernel: no memory", fd);
	fd_object_put(obj);
}

/* No kind of socket serves this type. Another reason may stand in its way as well,
 * and is named first. */
static void tell_of_unserved(int fd, int type)
{
	enum reason reason;

	if (atomic_load(&runtime.state) == FAILED)
		return;
	reason = reason_by_policy(type);
	tell(fd, reason == REASON_NONE ? REASON_TCP : reason);
}

void runtime_set_sockets(runtime_socket_fn *make, bool (*may_serve)(int type))
{
	runtime.make_socket = make;
	runtime.may_serve = may_serve;
}

void runtime_socket_made(int fd, int domain, int type, int protocol)
{
	int saved_errno = errno;

	if (reason_by_kind(domain, type) != REASON_NONE)
		return;
	/* We make no system call that the program did not make itself. */
	if (UNLIKELY(is_filtered())) {
		tell_of_filter();
		stats_count_unserved(atomic_load(&runtime.why_filtered));
		return;
	}
	ensure_started();
	if (!runtime.may_serve(type)) {
		tell_of_unserved(fd, type);
		errno = saved_errno;
		return;
	}
	/* This comes before the first bracket in which a handler could interrupt us. */
	signals_activate();
	os_enter();
	serve_socket(fd, domain, type, protocol);
	os_leave();
	errno = saved_errno;
}

/* When a handler of the program ends the process after a fault in memory that we
 * were copying, we are still inside the bracket. Then this thread may hold any lock,
 * and what the lock guards may be half done. So nothing is done. */
static void end_network(void)
{
	if (os_is_inside() || atomic_load(&runtime.is_filtered))
		return;
	os_enter();
	network_before_exit();
	os_leave();
}

/* Under a filter of system calls the file stays. The next start removes it. */
static void end_stats(void)
{
	if (!atomic_load(&runtime.is_filtered))
		stats_end();
}

void runtime_unload(void)
{
	end_network();
	end_stats();
}

void runtime_exiting(void)
{
	if (!os_is_inside() && !atomic_load(&runtime.is_filtered))
		log_dbg("this process image ends without destructors");
	end_network();
	end_stats();
}

void runtime_leaving_child(void)
{
	int saved_errno = errno;

	end_network();
	errno = saved_errno;
}

static bool leave_by_filter(struct fd_object *obj, int fd)
{
	obj->ops->leave(obj, fd, REASON_SECCOMP, STATS_BY_SECCOMP);
	return false;
}

static bool leave_by_parting(struct fd_object *obj, int fd)
{
	obj->ops->leave(obj, fd, REASON_OWN_FDS, STATS_BY_FDS);
	return false;
}

static bool leave_by_thread(struct fd_object *obj, int fd)
{
	obj->ops->leave(obj, fd, REASON_NO_THREAD, STATS_BY_THREAD);
	return false;
}

static bool leave_by_namespace(struct fd_object *obj, int fd)
{
	obj->ops->leave(obj, fd, REASON_NAMESPACE, STATS_BY_NAMESPACE);
	return false;
}

/* For good. */
static void leave_all(enum reason reason, bool (*leave)(struct fd_object *obj, int fd))
{
	struct fd_lingering lingering = { 0 };
	int saved_errno = errno;

	if (os_is_inside())
		return;
	os_enter();
	if (atomic_exchange(&runtime.is_filtered, true)) {
		os_leave();
		return;
	}
	atomic_store(&runtime.why_filtered, reason);
	if (fd_visit(NULL, leave) || network_is_made())
		log_info("Sockets go back to the kernel: %s", reason_why(reason));
	network_end_what_stays();
	fd_table_remove_range(0, ~0u, &lingering);
	fd_table_end_lingering(&lingering);
	fd_table_close();
	network_stop();
	signals_deactivate();
	os_leave();
	errno = saved_errno;
}

/*
 * The filter knows which system calls the program makes, and kills it for others,
 * which ours are. So all that we have goes back to the kernel first, and is
 * forgotten; from then on each call of the program is libc's alone. Our thread ends
 * as well, since a filter may be for all threads. A thread of the program that waits
 * in a call of ours at this time may still make a call of ours.
 */
void runtime_filtering(void)
{
	leave_all(REASON_SECCOMP, leave_by_filter);
}

/* Our table is that of one of them, and says nothing of the others' numbers. */
void runtime_fds_parting(void)
{
	leave_all(REASON_OWN_FDS, leave_by_parting);
}

/* Nobody would look at what waits while the program does something else. */
void runtime_thread_ends(void)
{
	leave_all(REASON_NO_THREAD, leave_by_thread);
}

/* Sockets of one kind, at least, may be ours. */
static bool may_accelerate(void)
{
	return atomic_load(&runtime.state) != FAILED &&
	       (reason_by_policy(SOCK_STREAM) == REASON_NONE ||
		reason_by_policy(SOCK_DGRAM) == REASON_NONE);
}

/* Many programs give up their rights, or the directories that they can see, before their
 * first socket. What only sockets would have made is made then. */
static void before_loss(void (*prepare)(void))
{
	int saved_errno = errno;

	if (os_is_inside() || is_filtered() || !rights_is_net_admin())
		return;
	if (atomic_load_explicit(&runtime.state, memory_order_acquire) == NOT_STARTED)
		start_holding_signals(PREPARED);
	os_enter();
	if (network_is_made() || may_accelerate())
		prepare();
	os_leave();
	errno = saved_errno;
}

void runtime_rights_going(void)
{
	before_loss(network_before_rights_go);
}

void runtime_user_going(uid_t user)
{
	int saved_errno = errno;

	if (os_is_inside() || is_filtered())
		return;
	os_enter();
	stats_give_to(user);
	os_leave();
	errno = saved_errno;
}

void runtime_root_changing(void)
{
	before_loss(network_before_root_changes);
}

void runtime_rights_changed(void)
{
	if (!os_is_inside() && !is_filtered())
		network_rights_changed(rights_is_net_admin());
}

static bool hand_on_if_inherited(struct fd_object *obj, int fd)
{
	if (file_is_inherited(fd))
		obj->ops->leave(obj, fd, REASON_HANDED_ON, STATS_BY_HAND);
	return false;
}

static bool hand_on_standard(struct fd_object *obj, int fd)
{
	return fd <= STDERR_FILENO && hand_on_if_inherited(obj, fd);
}

static void leave_one(int fd, enum reason reason, enum stats_decider decider)
{
	int saved_errno = errno;
	struct fd_object *obj;

	if (os_is_inside() || !fd_table_has(fd))
		return;
	os_enter();
	obj = fd_table_get(fd);
	if (obj && !obj->ops->is_internal)
		obj->ops->leave(obj, fd, reason, decider);
	fd_object_put(obj);
	os_leave();
	errno = saved_errno;
}

void runtime_handing_on(int fd)
{
	leave_one(fd, REASON_HANDED_ON, STATS_BY_HAND);
}

void runtime_reading_by_kernel(int fd)
{
	leave_one(fd, REASON_IO_URING, STATS_BY_RING);
}

/* Programs often make their ring before their first socket, when we have not
 * started. Then the options are read just for the question. */
static struct options early_options;

static void read_early_options(void)
{
	struct options_facts facts = option_facts();

	(void)options_parse(&early_options, origin_environment(), &facts, NULL,
			    NULL);
}

/* A child of a fork in the middle of it begins anew: that is pthread_once()'s. */
static const struct options *options_so_far(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (atomic_load(&runtime.state) != NOT_STARTED)
		return &options;
	pthread_once(&once, read_early_options);
	return &early_options;
}

bool runtime_hides_rings(void)
{
	const struct options *o = options_so_far();

	return o->offloaded_sockets && o->io_uring == IO_URING_AUTO &&
	       !atomic_load(&runtime.is_filtered);
}

void runtime_ring_made(void)
{
	int saved_errno = errno;

	if (options_so_far()->io_uring == IO_URING_IGNORE)
		return;
	rings_note();
	os_enter();
	network_leave_to_rings();
	os_leave();
	errno = saved_errno;
}

/* Under a filter of system calls nobody asks whose process this is. */
static void note_end(bool is_ended)
{
	if (!atomic_load(&runtime.is_filtered))
		stats_set_ended(is_ended);
}

/* Everything that the new image inherits goes to the kernel first, together with
 * what is queued. */
void runtime_executing(void)
{
	int saved_errno = errno;

	if (!atomic_load(&runtime.is_filtered))
		log_dbg("this process image ends without destructors");
	if (!os_is_inside()) {
		os_enter();
		fd_visit(NULL, hand_on_if_inherited);
		network_before_exec();
		os_leave();
	}
	note_end(true);
	errno = saved_errno;
}

/* Does what is done before a fork. Many programs start others, which inherit all fds
 * that are not closed at exec and never look at them. Only the standard ones are
 * meant for them, so these go to the kernel. */
void runtime_spawning(void)
{
	int saved_errno = errno;

	if (os_is_inside())
		return;
	os_enter();
	fd_visit(NULL, hand_on_standard);
	network_before_spawn();
	os_leave();
	errno = saved_errno;
}

int runtime_goes_on(int result)
{
	int saved_errno = errno;

	note_end(false);
	if (!os_is_inside()) {
		os_enter();
		network_goes_on();
		os_leave();
	}
	errno = saved_errno;
	return result;
}

bool runtime_begin_alone(void)
{
	int saved_errno = errno;
	bool result;

	if (os_is_inside() || atomic_load(&runtime.is_filtered))
		return false;
	os_enter();
	result = network_begin_alone();
	os_leave();
	errno = saved_errno;
	return result;
}

void runtime_end_alone(bool is_alone)
{
	bool goes_on;
	int saved_errno = errno;

	if (!is_alone)
		return;
	os_enter();
	goes_on = network_end_alone();
	os_leave();
	errno = saved_errno;
	if (!goes_on)
		runtime_thread_ends();
}

/* What we would make for a socket in such a thread, and ask of its interface, would be of the
 * wrong network. */
void runtime_namespace_changing(void)
{
	int saved_errno = errno;

	atomic_fetch_add(&runtime.leaving_cnt, 1);
	if (!os_is_inside() && !is_filtered() &&
	    atomic_load(&runtime.state) != NOT_STARTED) {
		os_enter();
		fd_visit(NULL, leave_by_namespace);
		os_leave();
	}
	errno = saved_errno;
}

void runtime_namespace_changed(bool has_changed)
{
	if (has_changed && !atomic_exchange(&runtime.has_left_namespace, true) &&
	    atomic_load(&runtime.state) != NOT_STARTED)
		log_dbg("the network namespace has changed: new sockets stay with the kernel");
	/* in the child of a handler it is not counted any more */
	if (atomic_load(&runtime.leaving_cnt))
		atomic_fetch_sub(&runtime.leaving_cnt, 1);
}

/* How many forks this thread is within: a handler may fork in the middle of one. */
static _Thread_local unsigned fork_depth;

/* Behind a filter no signal is held, which would be a system call. A handler that forks then
 * has what its thread has taken already. */
static bool is_fork_within_another(void)
{
	return fork_depth > 1 && atomic_load(&runtime.is_filtered);
}

/* The lock is held across the fork, so that the child never inherits a start that is
 * half done. The lock analysis wants each function to release what it takes. These
 * three functions balance as a set, in the way that pthread_atfork calls them. */
NO_LOCK_ANALYSIS static void before_fork(void)
{
	struct signals_hold hold = { 0 };

	fork_depth++;
	if (is_fork_within_another())
		return;
	if (!atomic_load(&runtime.is_filtered))
		signals_hold_until_active(&hold);
	os_enter();
	fd_change_before_fork();
	network_before_fork();
	mutex_acquire(&runtime.lock);
	runtime.fork_hold = hold;
	network_share();
	netlink_before_fork();
	signals_before_fork();
}

/* In both processes. */
NO_LOCK_ANALYSIS static void end_fork(void)
{
	struct signals_hold hold = runtime.fork_hold;

	mutex_release(&runtime.lock);
	os_leave();
	fork_depth--;
	signals_unhold(&hold);
}

static void after_fork_in_parent(void)
{
	if (is_fork_within_another()) {
		fork_depth--;
		return;
	}
	signals_after_fork();
	netlink_after_fork();
	network_after_fork();
	fd_change_after_fork();
	end_fork();
}

/* Whether nothing of ours was ever used. Then there is nothing to do, and a program
 * without sockets forks as fast as on libc. */
static bool has_nothing_to_forget(void)
{
	return atomic_load(&runtime.state) == NOT_STARTED &&
	       !atomic_load(&fd_table_root);
}

/* The child keeps options, rules and log. It gives up our fds, and all its sockets
 * go to the kernel. */
static void forget(void)
{
	bool is_filtered = atomic_load(&runtime.is_filtered);

	signals_forked(is_filtered);
	/* The child has the parent's filter, which may forbid our system calls. So
	 * our fds stay open, and nobody uses them. */
	if (is_filtered)
		return;
	/* another thread's, which the child has not, or this one's by a handler */
	atomic_store(&runtime.leaving_cnt, 0);
	stats_forked();
	if (atomic_load(&runtime.state) == STARTED)
		atomic_store(&runtime.state, FORKED);
	network_forked_first();
	fd_internal_forked();
	fd_flight_forked();
	fd_wait_forked();
	fd_table_forked();
	fd_visit_forked();
	network_forked();
}

/* The third of these functions. The child has no other thread. */
static void after_fork_in_child(void)
{
	int saved_errno = errno;

	if (is_fork_within_another()) {
		fork_depth--;
		return;
	}
	lock_witness_forked(&runtime.lock.witness);
	/* This was taken before the fork, also if the program has no socket. */
	netlink_forked();
	fd_change_forked();
	if (!has_nothing_to_forget())
		forget();
	end_fork();
	errno = saved_errno;
}

void runtime_before_fork(void)
{
	before_fork();
}

void runtime_after_fork(bool is_child)
{
	int saved_errno = errno;

	if (is_child)
		after_fork_in_child();
	else
		after_fork_in_parent();
	errno = saved_errno;
}

/* Whether the environment asks for a log level above INFO, so that the log shows
 * details. */
static bool wants_details(void)
{
	struct options_facts facts = option_facts();

	for (char *const *env = origin_environment(); *env; env++) {
		if (strncmp(*env, "VMA_TRACELEVEL=", 15) != 0)
			continue;
		(void)options_parse(&options, origin_environment(), &facts,
				    NULL, NULL);
		return options.log_level >= LOG_LEVEL_DETAILS;
	}
	return false;
}

void runtime_load(char *const *env)
{
	origin_keep(env);
	real_resolve();
	log_out_load();
	own_thread_load();
	module_load();
	mux_load();
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	if (wants_details() && !is_filtered())
		ensure_started();
}
