/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The trampoline before the program's signal handlers; see signals.h. */
#include "config.h"

#include "os/signals.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/syscall_raw.h"
#include "os/clean_up.h"
#include "os/thread.h"

_Thread_local struct os_thread os_thread;

/* The program's handler for a signal for which the kernel has our trampoline. The
 * trampoline may read it at any moment, and needs both members as they were together. What it
 * does not know is which mask the kernel has set for it: between that and the trampoline's
 * look another thread may install a handler with another one. */
struct handler {
	_Atomic unsigned gen; /* odd while the others change */
	_Atomic(void *) fn; /* called with three arguments in any case */
	_Atomic int flags;  /* SA_SIGINFO, SA_RESETHAND, SA_RESTART of it */
};

/* The same as it was at some moment. */
struct seen_handler {
	void *fn;
	int flags;
};

/* What a signal had before another thread changed it while this process was being copied. */
struct kept_handler {
	struct seen_handler seen;
	struct sigaction act; /* the kernel's */
};

static struct {
	_Atomic bool is_active;
	struct spinlock lock; /* orders changes; all signals are blocked then */
	/* The thread that forks, and its process until the child has begun. Handlers of the
	 * fork that are not ours may change signals in between, in either process. */
	const struct os_thread *_Atomic forker;
	_Atomic int forking_pid;
	/* `lock`: what the child of this fork goes back to, and for which signals */
	struct kept_handler kept[_NSIG];
	_Atomic uint64_t kept_bits;
	struct handler handlers[_NSIG];
	/* Signals that siginterrupt() made interrupting, for signal(). */
	_Atomic(unsigned long) interrupting;
	_Atomic(void (*)(void)) before_handler;
	/* and of which process */
	_Atomic(void (*)(void)) before_end;
	_Atomic int pid;
} signals = {
	.lock = SPINLOCK_INIT(LOCK_RANK_SIGNALS),
};

/* Flags that the kernel does not get as the program sets them: the trampoline
 * always wants the siginfo, and the kernel must not remove the handler when the
 * signal was only deferred. */
enum { OWN_FLAGS = SA_SIGINFO | SA_RESETHAND };
/* Flags that we report to the program as we have them. Among them is the one that
 * our own waits follow, and which siginterrupt() changes without a call of
 * sigaction(). */
enum { TOLD_FLAGS = OWN_FLAGS | SA_RESTART };

/* The kernel's signal set: 64 bits on every machine. */
enum { KERNEL_SIGSET_SIZE = 8 };

/* A raw system call, because our callers are wrappers of the libc functions around
 * it, and because libc hides the signals of its own thread library. */
static long raw_sigprocmask(int how, const void *set, void *old)
{
	return real.syscall(SYS_rt_sigprocmask, how, set, old,
			    (long)KERNEL_SIGSET_SIZE);
}

/* All but those by which libc cancels threads, and has all of them change their user.
 * Whoever is cancelled in a wait does not leave it before the signal has come, so it
 * must not be kept out. It ends a thread in calls that are cancellation points alone,
 * as it does on libc, where nobody can block it. */
static void block_all(sigset_t *old)
{
	unsigned long libcs = 0, all;

	for (int sig = __SIGRTMIN; sig < SIGRTMIN; sig++)
		libcs |= 1UL << (sig - 1);
	all = ~libcs;
	memset(old, 0, sizeof(*old));
	raw_sigprocmask(SIG_SETMASK, &all, old);
}

static void restore_mask(const sigset_t *mask)
{
	raw_sigprocmask(SIG_SETMASK, mask, NULL);
}

static bool is_forking(void)
{
	return atomic_load(&signals.forker) == &os_thread;
}

static void begin_in_child(bool is_filtered);

/* A handler of the fork that is not ours may come before ours in the child. */
static void look_for_child(void)
{
	if (UNLIKELY(is_forking()) && getpid() != atomic_load(&signals.forking_pid))
		begin_in_child(false);
}

static void signals_lock(sigset_t *mask) ACQUIRES(signals.lock)
{
	block_all(mask);
	look_for_child();
	spinlock_acquire(&signals.lock);
}

static void signals_unlock(const sigset_t *mask) RELEASES(signals.lock)
{
	spinlock_release(&signals.lock);
	restore_mask(mask);
}

/*
 * The lock is not held over the fork. libc takes the locks of malloc() there, which another
 * thread may have while a handler interrupts it, and the handler may call sigaction(). So
 * from here on a change keeps what was before it, and the child goes back to that: the kernel
 * copies its part long before it copies ours, and the child needs both as they belong together.
 */
void signals_before_fork(void)
{
	if (!atomic_load(&signals.is_active))
		return;
	spinlock_acquire(&signals.lock);
	atomic_store(&signals.kept_bits, 0);
	atomic_store(&signals.forking_pid, getpid());
	atomic_store(&signals.forker, &os_thread);
	spinlock_release(&signals.lock);
}

void signals_after_fork(void)
{
	if (is_forking())
		atomic_store(&signals.forker, NULL);
}

void signals_hold(struct signals_hold *hold)
{
	hold->is_held = true;
	block_all(&hold->mask);
}

void signals_hold_until_active(struct signals_hold *hold)
{
	if (atomic_load(&signals.is_active))
		hold->is_held = false;
	else
		signals_hold(hold);
}

void signals_unhold(const struct signals_hold *hold)
{
	if (hold->is_held)
		restore_mask(&hold->mask);
}

static bool is_synchronous(int sig)
{
	switch (sig) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGSYS:
		return true;
	default:
		return false;
	}
}

/* Those that end a process which has no handler, and that others may send. */
static bool is_deadly(int sig)
{
	switch (sig) {
	case SIGHUP:
	case SIGINT:
	case SIGQUIT:
	case SIGPIPE:
	case SIGALRM:
	case SIGTERM:
	case SIGUSR1:
	case SIGUSR2:
	case SIGSTKFLT:
	case SIGPOLL:
	case SIGPWR:
	case SIGVTALRM:
	case SIGPROF:
	case SIGXCPU:
	case SIGXFSZ:
		return true;
	default:
		return sig >= SIGRTMIN;
	}
}

static bool is_valid(int sig)
{
	return sig > 0 && sig < _NSIG;
}

static void *action_fn(const struct sigaction *act)
{
	return (act->sa_flags & SA_SIGINFO) ? (void *)act->sa_sigaction :
					      (void *)act->sa_handler;
}

static bool is_caught(const struct sigaction *act)
{
	void *fn = action_fn(act);

	return fn != (void *)SIG_DFL && fn != (void *)SIG_IGN;
}

/* Whether we want to hear of it although the program does not. */
static bool is_awaited_end(int sig, const struct sigaction *act)
{
	return is_deadly(sig) && action_fn(act) == (void *)SIG_DFL &&
	       atomic_load_explicit(&signals.before_end, memory_order_relaxed);
}

/* The kernel's bits of a set. */
static uint64_t bits_of(const sigset_t *set)
{
	uint64_t bits;

	_Static_assert(sizeof(bits) == KERNEL_SIGSET_SIZE, "all of them");
	memcpy(&bits, set, sizeof(bits));
	return bits;
}

/* Those that a failed write brings to the thread that writes, and with what stops it. */
static const uint64_t failed_bits = UINT64_C(1) << (SIGPIPE - 1) |
				    UINT64_C(1) << (SIGXFSZ - 1);
static const uint64_t writers_bits = UINT64_C(1) << (SIGPIPE - 1) |
				     UINT64_C(1) << (SIGXFSZ - 1) |
				     UINT64_C(1) << (SIGTTOU - 1);

static uint64_t waiting_bits(void)
{
	uint64_t bits = 0;

	syscall_raw(SYS_rt_sigpending, (long)&bits, KERNEL_SIGSET_SIZE, 0, 0, 0,
		    0);
	return bits;
}

void signals_quiet_begin(struct signals_quiet *quiet)
{
	memset(&quiet->mask, 0, sizeof(quiet->mask));
	raw_sigprocmask(SIG_BLOCK, &writers_bits, &quiet->mask);
	quiet->had = waiting_bits();
}

/* What waited for the program before still does. */
static void take_failed(uint64_t had)
{
	uint64_t ours = waiting_bits() & failed_bits & ~had;
	struct timespec none = { 0 };

	while (ours && syscall_raw(SYS_rt_sigtimedwait, (long)&ours, 0,
				   (long)&none, KERNEL_SIGSET_SIZE, 0, 0) > 0)
		;
}

void signals_quiet_end(const struct signals_quiet *quiet)
{
	struct os_thread *self = &os_thread;
	uint64_t mask, added = writers_bits & ~bits_of(&quiet->mask);
	sigset_t now;

	/* so that none is deferred from here on */
	block_all(&now);
	take_failed(quiet->had);
	if (!self->has_deferred) {
		restore_mask(&quiet->mask);
		return;
	}
	/* One was deferred meanwhile, and all are blocked until it is delivered. Then what we
	 * have blocked must not stay so. */
	mask = bits_of(&self->deferred_mask) & ~added;
	memcpy(&self->deferred_mask, &mask, sizeof(mask));
	restore_mask(&now);
}

static uint64_t synchronous_bits(void)
{
	uint64_t bits = 0;

	for (int sig = 1; sig < 32; sig++)
		if (is_synchronous(sig))
			bits |= UINT64_C(1) << (sig - 1);
	return bits;
}

/* Sends it to this thread, where it is blocked. */
static void send_again(const siginfo_t *info)
{
	siginfo_t copy;

	memcpy(&copy, info, sizeof(copy));
	if (real.syscall(SYS_rt_tgsigqueueinfo, (long)getpid(), (long)gettid(),
			 (long)copy.si_signo, &copy) != 0)
		/* The queue of real-time signals is full. The signal comes without
		 * its data at least. */
		real.syscall(SYS_tgkill, (long)getpid(), (long)gettid(),
			     (long)copy.si_signo);
}

/*
 * Remembers the signal, and blocks all others until os_leave(). Faults are not blocked:
 * the memory that we copy may be the program's, and a fault that is blocked ends the
 * process without calling its handler.
 *
 * Of several signals that come at the same moment each interrupts the trampoline of the
 * one before. The last one is here first and is remembered. The others wait in the kernel
 * for the same delivery. The mask to go back to is that of the one that has interrupted
 * the bracket. It is here last.
 */
static void defer(const siginfo_t *info, ucontext_t *context)
{
	struct os_thread *self = &os_thread;
	sigset_t now;
	uint64_t mask;

	block_all(&now);
	if (UNLIKELY(self->has_deferred))
		send_again(info);
	else
		memcpy(&self->deferred, info, sizeof(self->deferred));
	self->deferred_mask = context->uc_sigmask;
	mask = ~synchronous_bits() | bits_of(&context->uc_sigmask);
	/* The kernel restores this mask when the trampoline returns. */
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	self->has_deferred = true;
}

static void trampoline(int sig, siginfo_t *info, void *context);

/* Whoever changes it has all signals blocked, and is soon done. */
static struct seen_handler handler_read(const struct handler *h)
{
	struct seen_handler seen;
	unsigned gen, spins = 0;

	for (;;) {
		gen = atomic_load_explicit(&h->gen, memory_order_acquire);
		/* acquire: the second look at gen comes after them; they pair with
		 * the release stores in handler_write_locked */
		seen.fn = atomic_load_explicit(&h->fn, memory_order_acquire);
		seen.flags = atomic_load_explicit(&h->flags, memory_order_acquire);
		if (LIKELY(!(gen & 1) &&
			   atomic_load_explicit(&h->gen, memory_order_relaxed) == gen))
			return seen;
		lock_spin(&spins, LOCK_SPINS);
	}
}

static void handler_write_locked(struct handler *h, void *fn, int flags)
	REQUIRES(signals.lock)
{
	INVARIANT(lock_witness_is_mine(&signals.lock.witness),
		  "a handler changed without the lock");
	atomic_fetch_add(&h->gen, 1);
	atomic_store_explicit(&h->fn, fn, memory_order_release);
	atomic_store_explicit(&h->flags, flags, memory_order_release);
	atomic_fetch_add(&h->gen, 1);
}

/* Before each change. What the forking thread changes itself the child shall have. */
static void keep_for_child_locked(int sig) REQUIRES(signals.lock)
{
	struct kept_handler *kept = &signals.kept[sig];
	uint64_t bit = UINT64_C(1) << (sig - 1);

	INVARIANT(lock_witness_is_mine(&signals.lock.witness), "kept without the lock");
	if (LIKELY(!atomic_load(&signals.forker)))
		return;
	if (is_forking()) {
		atomic_fetch_and(&signals.kept_bits, ~bit);
		return;
	}
	if (atomic_load(&signals.kept_bits) & bit ||
	    real.sigaction(sig, NULL, &kept->act) != 0)
		return;
	kept->seen = handler_read(&signals.handlers[sig]);
	atomic_fetch_or(&signals.kept_bits, bit);
}

static bool has_trampoline(int sig)
{
	struct sigaction act;

	return real.sigaction(sig, NULL, &act) == 0 && act.sa_flags & SA_SIGINFO &&
	       act.sa_sigaction == trampoline;
}

/* One with SA_RESETHAND: one thread alone gets it, and resets it. While the lock is held,
 * nobody installs another one, which the kernel would forget by the reset. It may not be the
 * one that was there a moment ago. What the kernel has without us, SIG_IGN perhaps, stays. */
static COLD struct seen_handler handler_take(struct handler *h, int sig)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct seen_handler seen;
	sigset_t mask;

	signals_lock(&mask);
	seen = handler_read(h);
	if (seen.flags & SA_RESETHAND && seen.fn != (void *)SIG_DFL) {
		keep_for_child_locked(sig);
		handler_write_locked(h, (void *)SIG_DFL, seen.flags);
		if (!is_awaited_end(sig, &dfl) && has_trampoline(sig))
			real.sigaction(sig, &dfl, NULL);
	}
	signals_unlock(&mask);
	return seen;
}

/* A child of vfork() has our memory, but nothing of ours to bring to an end. */
static COLD void end_by(int sig)
{
	void (*before)(void) = atomic_load(&signals.before_end);
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	unsigned long bit = 1UL << (sig - 1);

	if (atomic_load(&signals.pid) == getpid())
		before();
	real.sigaction(sig, &dfl, NULL);
	real.syscall(SYS_tgkill, (long)getpid(), (long)gettid(), (long)sig);
	raw_sigprocmask(SIG_UNBLOCK, &bit, NULL);
}

/* What no descriptor can be: the kernel's own limit is below it. */
enum { NO_FD = INT_MAX };

/* A handler is about to run in the sleep of this thread, or just before it. The sleep ends
 * at once then: its first descriptor is one that is not open. */
static void disturb_sleep(void)
{
	volatile int *fd = os_thread.sleep_fd;

	if (!fd)
		return;
	os_thread.sleep_fd = NULL;
	*fd = NO_FD;
}

static void trampoline(int sig, siginfo_t *info, void *context)
{
	struct handler *h = &signals.handlers[sig];
	int saved_errno = errno;
	void (*run)(int, siginfo_t *, void *);
	struct seen_handler seen;
	void (*before)(void);

	if (os_is_inside()) {
		defer(info, context);
		errno = saved_errno;
		return;
	}
	seen = handler_read(h);
	if (seen.flags & SA_RESETHAND)
		seen = handler_take(h, sig);
	if (seen.fn == (void *)SIG_DFL && is_deadly(sig) &&
	    atomic_load_explicit(&signals.before_end, memory_order_relaxed)) {
		end_by(sig);
		return;
	}
	/* Another thread may just have removed the handler. */
	if (seen.fn == (void *)SIG_DFL || seen.fn == (void *)SIG_IGN)
		return;
	disturb_sleep();
	os_thread.handler_cnt++;
	if (!(seen.flags & SA_RESTART))
		os_thread.interrupt_cnt++;
	before = atomic_load_explicit(&signals.before_handler,
				      memory_order_relaxed);
	if (before)
		before();
	memcpy(&run, &seen.fn, sizeof(run));
	errno = saved_errno;
	run(sig, info, context);
}

/*
 * Sends the signal to this thread again while it is blocked, and then restores the
 * mask. The kernel delivers it, and what waited behind it, as if it had come just
 * now.
 */
void os_deliver_deferred(void)
{
	struct os_thread *self = &os_thread;
	sigset_t mask = self->deferred_mask;
	int saved_errno = errno;

	self->has_deferred = false;
	send_again(&self->deferred);
	errno = saved_errno;
	restore_mask(&mask);
}

/* The program's view of what the kernel has: its own handler where that is the
 * trampoline. */
static void translate_old(int sig, const struct handler *h,
			  struct sigaction *old)
{
	struct seen_handler seen;

	if (is_synchronous(sig) || !(old->sa_flags & SA_SIGINFO) ||
	    old->sa_sigaction != trampoline)
		return;
	seen = handler_read(h);
	old->sa_flags = (old->sa_flags & ~TOLD_FLAGS) | (seen.flags & TOLD_FLAGS);
	if (seen.fn == (void *)SIG_DFL) {
		old->sa_flags = seen.flags;
		old->sa_handler = SIG_DFL;
	} else if (seen.flags & SA_SIGINFO)
		old->sa_sigaction = (void (*)(int, siginfo_t *, void *))seen.fn;
	else
		old->sa_handler = (sighandler_t)seen.fn;
}

/* Installs `act` with the trampoline before it. */
static int install_locked(int sig, const struct sigaction *act,
			  struct sigaction *old) REQUIRES(signals.lock)
{
	struct handler *h = &signals.handlers[sig];
	struct sigaction kernel_act = *act, kernel_old;
	struct seen_handler before = handler_read(h);

	INVARIANT(lock_witness_is_mine(&signals.lock.witness),
		  "installed without the lock");
	if (real.sigaction(sig, NULL, &kernel_old) != 0)
		return -1;
	translate_old(sig, h, &kernel_old);
	keep_for_child_locked(sig);
	if ((is_caught(act) && !is_synchronous(sig)) ||
	    is_awaited_end(sig, act)) {
		/* The trampoline must find the handler before the kernel can
		 * deliver the signal. */
		handler_write_locked(h, action_fn(act), act->sa_flags);
		kernel_act.sa_sigaction = trampoline;
		kernel_act.sa_flags &= ~OWN_FLAGS;
		kernel_act.sa_flags |= SA_SIGINFO;
		/* it may be short of memory for its own stacks */
		if (!is_caught(act))
			kernel_act.sa_flags |= SA_ONSTACK;
	}
	if (real.sigaction(sig, &kernel_act, NULL) != 0) {
		handler_write_locked(h, before.fn, before.flags);
		return -1;
	}
	if (old)
		*old = kernel_old;
	return 0;
}

/* One that the trampoline has already it gets once more. */
static void take_over_one_locked(int sig) REQUIRES(signals.lock)
{
	struct sigaction act;

	INVARIANT(lock_witness_is_mine(&signals.lock.witness),
		  "taken over without the lock");
	if (is_synchronous(sig) || real.sigaction(sig, NULL, &act) != 0)
		return;
	translate_old(sig, &signals.handlers[sig], &act);
	if (is_caught(&act) || is_awaited_end(sig, &act))
		(void)install_locked(sig, &act, NULL);
}

static void take_over_locked(void) REQUIRES(signals.lock)
{
	for (int sig = 1; sig < _NSIG; sig++)
		take_over_one_locked(sig);
}

/* A call of libc's may have changed a handler, and another thread may have activated us since
 * we looked. errno is as before. */
static void take_over_late(int sig)
{
	sigset_t mask;
	int saved_errno = errno;

	if (LIKELY(!atomic_load(&signals.is_active)) || !is_valid(sig))
		return;
	signals_lock(&mask);
	take_over_one_locked(sig);
	signals_unlock(&mask);
	errno = saved_errno;
}

/* libc's signal() and its like have returned this. */
static sighandler_t changed_by_libc(int sig, sighandler_t before)
{
	take_over_late(sig);
	return before;
}

int signals_sigaction(int sig, const struct sigaction *act,
		      struct sigaction *old)
{
	struct sigaction new_act;
	sigset_t mask;
	int result;

	if (!atomic_load(&signals.is_active) || !is_valid(sig)) {
		result = real.sigaction(sig, act, old);
		if (act)
			take_over_late(sig);
		return result;
	}
	if (!act) {
		look_for_child();
		result = real.sigaction(sig, NULL, old);
		if (result == 0 && old)
			translate_old(sig, &signals.handlers[sig], old);
		return result;
	}
	new_act = *act; /* a bad pointer faults here, outside the lock */
	signals_lock(&mask);
	result = install_locked(sig, &new_act, old ? &new_act : NULL);
	signals_unlock(&mask);
	if (result == 0 && old)
		*old = new_act;
	return result;
}

static void give_back_locked(int sig) REQUIRES(signals.lock)
{
	struct sigaction act;

	if (is_synchronous(sig) || real.sigaction(sig, NULL, &act) != 0 ||
	    !(act.sa_flags & SA_SIGINFO) || act.sa_sigaction != trampoline)
		return;
	translate_old(sig, &signals.handlers[sig], &act);
	keep_for_child_locked(sig);
	(void)!real.sigaction(sig, &act, NULL);
}

void signals_deactivate(void)
{
	sigset_t mask;

	signals_lock(&mask);
	if (atomic_exchange(&signals.is_active, false))
		for (int sig = 1; sig < _NSIG; sig++)
			give_back_locked(sig);
	signals_unlock(&mask);
}

void signals_activate(void)
{
	sigset_t mask;
	int saved_errno = errno;

	if (atomic_load(&signals.is_active))
		return;
	signals_lock(&mask);
	if (!atomic_exchange(&signals.is_active, true))
		take_over_locked();
	signals_unlock(&mask);
	errno = saved_errno;
}

void signals_before_end(void (*fn)(void))
{
	sigset_t mask;
	int saved_errno = errno;

	/* Linux keeps such signals from the first process of a namespace. */
	if (getpid() == 1 || atomic_load(&signals.before_end))
		return;
	signals_lock(&mask);
	atomic_store(&signals.pid, getpid());
	if (!atomic_exchange(&signals.before_end, fn) &&
	    atomic_load(&signals.is_active))
		take_over_locked();
	signals_unlock(&mask);
	errno = saved_errno;
}

void signals_set_before_handler(void (*fn)(void))
{
	atomic_store_explicit(&signals.before_handler, fn,
			      memory_order_relaxed);
}

/* What another thread was about to change at the moment of the copy, too. */
static void go_back_locked(int sig, bool is_filtered) REQUIRES(signals.lock)
{
	struct handler *h = &signals.handlers[sig];
	const struct kept_handler *kept = &signals.kept[sig];

	INVARIANT(lock_witness_is_mine(&signals.lock.witness),
		  "gone back without the lock");
	if (atomic_load(&h->gen) & 1)
		atomic_fetch_add(&h->gen, 1);
	handler_write_locked(h, kept->seen.fn, kept->seen.flags);
	if (is_filtered)
		return;
	real.sigaction(sig, &kept->act, NULL);
	if (atomic_load(&signals.is_active))
		take_over_one_locked(sig);
}

/* Whoever has held the lock in the parent is not there any more. */
static COLD void begin_in_child(bool is_filtered)
{
	uint64_t bits = atomic_exchange(&signals.kept_bits, 0);

	atomic_store(&signals.forker, NULL);
	spinlock_init(&signals.lock, LOCK_RANK_SIGNALS);
	spinlock_acquire(&signals.lock);
	for (int sig = 1; sig < _NSIG; sig++)
		if (bits >> (sig - 1) & 1)
			go_back_locked(sig, is_filtered);
	spinlock_release(&signals.lock);
}

void signals_forked(bool is_filtered)
{
	if (is_forking())
		begin_in_child(is_filtered);
	if (is_filtered)
		return;
	atomic_store(&signals.pid, getpid());
	/* One that waits is the parent's. What was blocked for it the child would keep
	 * blocked for ever, and the programs that it starts would, too. */
	if (os_thread.has_deferred) {
		os_thread.has_deferred = false;
		restore_mask(&os_thread.deferred_mask);
	}
}

static bool is_marked_interrupting(int sig)
{
	return atomic_load(&signals.interrupting) >> (sig - 1) & 1;
}

/* signal() in its variants: a handler, flags, and no signal blocked but,
 * perhaps, itself. */
static sighandler_t set_handler(int sig, sighandler_t handler, int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags };
	struct sigaction old;

	if (handler == SIG_ERR || !is_valid(sig)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER))
		sigaddset(&act.sa_mask, sig);
	return signals_sigaction(sig, &act, &old) == 0 ? old.sa_handler :
							 SIG_ERR;
}

sighandler_t signals_signal(int sig, sighandler_t handler)
{
	if (!atomic_load(&signals.is_active) || !is_valid(sig))
		return changed_by_libc(sig, real.signal(sig, handler));
	return set_handler(sig, handler,
			   is_marked_interrupting(sig) ? 0 : SA_RESTART);
}

sighandler_t signals_sysv_signal(int sig, sighandler_t handler)
{
	if (!atomic_load(&signals.is_active) || !is_valid(sig))
		return changed_by_libc(sig, real.sysv_signal(sig, handler));
	return set_handler(sig, handler,
			   (int)(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT));
}

sighandler_t signals_sigset(int sig, sighandler_t disposition)
{
	struct sigaction act = { .sa_handler = disposition }, old;
	sigset_t set, old_set;

	if (!atomic_load(&signals.is_active) || !is_valid(sig) ||
	    disposition == SIG_ERR)
		return changed_by_libc(sig, real.sigset(sig, disposition));
	sigemptyset(&set);
	sigaddset(&set, sig);
	if (disposition == SIG_HOLD) {
		if (sigprocmask(SIG_BLOCK, &set, &old_set) != 0 ||
		    signals_sigaction(sig, NULL, &old) != 0)
			return SIG_ERR;
	} else if (signals_sigaction(sig, &act, &old) != 0 ||
		   sigprocmask(SIG_UNBLOCK, &set, &old_set) != 0) {
		return SIG_ERR;
	}
	return sigismember(&old_set, sig) ? SIG_HOLD : old.sa_handler;
}

int signals_siginterrupt(int sig, int is_interrupting)
{
	/* libc changes the kernel's SA_RESTART whatever the handler is, and also
	 * what its own signal() will do. We do the same. */
	int result = real.siginterrupt(sig, is_interrupting);
	struct handler *h;

	if (result != 0 || !is_valid(sig))
		return result;
	h = &signals.handlers[sig];
	if (is_interrupting) {
		atomic_fetch_or(&signals.interrupting, 1UL << (sig - 1));
		atomic_fetch_and(&h->flags, ~SA_RESTART);
	} else {
		atomic_fetch_and(&signals.interrupting, ~(1UL << (sig - 1)));
		atomic_fetch_or(&h->flags, SA_RESTART);
	}
	return 0;
}

/* Flags of sigvec. */
enum { SV_ON_STACK = 1, SV_INTERRUPTS = 2, SV_ONCE = 4 };

static void sigvec_to_action(const struct sigvec_compat *vec,
			     struct sigaction *act)
{
	memset(act, 0, sizeof(*act));
	act->sa_handler = vec->handler;
	for (int sig = 1; sig <= 32; sig++)
		if ((unsigned)vec->mask >> (sig - 1) & 1)
			sigaddset(&act->sa_mask, sig);
	if (vec->flags & SV_ON_STACK)
		act->sa_flags |= SA_ONSTACK;
	if (!(vec->flags & SV_INTERRUPTS))
		act->sa_flags |= SA_RESTART;
	if (vec->flags & SV_ONCE)
		act->sa_flags |= (int)SA_RESETHAND;
}

static void action_to_sigvec(const struct sigaction *act,
			     struct sigvec_compat *vec)
{
	memset(vec, 0, sizeof(*vec));
	vec->handler = act->sa_handler;
	for (int sig = 1; sig <= 32; sig++)
		if (sigismember(&act->sa_mask, sig) == 1)
			vec->mask |= (int)(1u << (sig - 1));
	if (act->sa_flags & SA_ONSTACK)
		vec->flags |= SV_ON_STACK;
	if (!(act->sa_flags & SA_RESTART))
		vec->flags |= SV_INTERRUPTS;
	if (act->sa_flags & (int)SA_RESETHAND)
		vec->flags |= SV_ONCE;
}

int signals_sigvec(int sig, const struct sigvec_compat *vec,
		   struct sigvec_compat *old)
{
	struct sigaction act, old_act;
	int result;

	if (!atomic_load(&signals.is_active) || !is_valid(sig))
		return real.sigvec(sig, vec, old);
	if (vec)
		sigvec_to_action(vec, &act);
	result = signals_sigaction(sig, vec ? &act : NULL, &old_act);
	if (result == 0 && old)
		action_to_sigvec(&old_act, old);
	return result;
}

struct signals_mark signals_mark(void)
{
	return (struct signals_mark){ os_thread.handler_cnt,
				      os_thread.interrupt_cnt };
}

bool signals_is_interrupted(const struct signals_mark *mark, bool may_restart)
{
	return may_restart ? os_thread.interrupt_cnt != mark->interrupt_cnt :
			     os_thread.handler_cnt != mark->handler_cnt;
}

/*
 * What a thread sleeps on if it is little, and mostly on the stack of the caller: there a
 * jump out of a handler that is not ours (of a fault that somebody sent) would leave
 * sleep_fd behind. The memory of larger calls outlives such a jump, until the thread's next
 * call collects the wait, and forgets sleep_fd before (fd_wait_collect). A handler may sleep
 * as well: whatever it leaves here, the first descriptor is NO_FD, for it has disturbed the
 * sleep below it.
 */
enum { NAP_MAX = 16 };
static _Thread_local struct pollfd nap[NAP_MAX];

static void nap_begin(const struct pollfd *fds, nfds_t cnt)
{
	nap[0].fd = -1;
	if (cnt)
		memcpy(nap, fds, cnt * sizeof(*fds));
}

static void nap_end(struct pollfd *fds, nfds_t cnt)
{
	for (nfds_t i = 0; i < cnt; i++)
		fds[i].revents = nap[i].revents;
	nap[0].fd = NO_FD;
}

static void sleep_is_cancelled(void *arg UNUSED)
{
	os_thread.sleep_fd = NULL;
}

/* A cancellation point: cleanup handlers run as they would in libc's call. */
static int sleep_in_kernel(struct pollfd *fds, nfds_t cnt,
			   const struct timespec *timeout)
{
	struct clean_up clean_up;
	int result;

	clean_up_begin(&clean_up, sleep_is_cancelled, NULL);
	result = real.ppoll(fds, cnt, timeout, NULL);
	clean_up_end(&clean_up);
	return result < 0 ? -errno : result;
}

/* -EINTR: a handler has disturbed the sleep. No signal is blocked here, or the kernel
 * would give those for the process to another thread: the one that sleeps, mostly the
 * first one, would not be interrupted. */
static int sleep_outside(struct pollfd *fds, nfds_t cnt,
			 const struct timespec *timeout,
			 const struct signals_mark *mark, bool may_restart)
{
	struct pollfd *on = cnt > NAP_MAX ? fds : nap;
	int first = cnt ? fds[0].fd : -1, result = -EINTR;

	os_thread.sleep_fd = &on[0].fd;
	atomic_signal_fence(memory_order_seq_cst);
	if (on == nap)
		nap_begin(fds, cnt);
	atomic_signal_fence(memory_order_seq_cst);
	/* A handler either ran before this line, or disturbs the sleep. */
	if (os_thread.sleep_fd && !signals_is_interrupted(mark, may_restart))
		result = sleep_in_kernel(on, MAX(cnt, (nfds_t)1), timeout);
	if (on == nap)
		nap_end(fds, cnt);
	atomic_signal_fence(memory_order_seq_cst);
	if (!os_thread.sleep_fd)
		result = -EINTR;
	os_thread.sleep_fd = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	if (cnt)
		fds[0].fd = first;
	return result;
}

int signals_sleep(struct pollfd *fds, nfds_t cnt,
		  const struct timespec *timeout,
		  const struct signals_mark *mark, bool may_restart)
{
	int result;

	do {
		os_leave();
		INVARIANT(!os_is_inside(), "a wait is in a single bracket");
		result = sleep_outside(fds, cnt, timeout, mark, may_restart);
		os_enter();
		/* What a handler did must not be among what the caller finds, also
		 * if the sleep was over already. */
		if (signals_is_interrupted(mark, may_restart))
			return -EINTR;
	} while (result == -EINTR);
	return result;
}
