/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of udp.sh: the arguments of select, poll and epoll, and handlers that run while
 * a thread waits in them. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/udp.h"
#include "tests/support/sleeper.h"
#include "tests/support/unseen.h"

enum call { POLL, PPOLL, SELECT, PSELECT, WAIT, PWAIT, PWAIT2, CALLS };

/* One socket, by itself and in a set. */
struct place {
	int fd, set;
};

/* Waits for the socket to be readable by one of the calls, for so many nanoseconds (at
 * most milliseconds for those that know no less). Negative: for ever. */
static int wait_by(enum call call, const struct place *place, long long ns,
		   const sigset_t *mask)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };
	struct timeval tv = { ts.tv_sec, ts.tv_nsec / 1000 };
	struct pollfd asked = { .fd = place->fd, .events = POLLIN };
	struct epoll_event event;
	int ms = ns < 0 ? -1 : (int)(ns / 1000000);
	fd_set in;

	FD_ZERO(&in);
	FD_SET(place->fd, &in);
	switch (call) {
	case POLL:
		return poll(&asked, 1, ms);
	case PPOLL:
		return ppoll(&asked, 1, ns < 0 ? NULL : &ts, mask);
	case SELECT:
		return select(place->fd + 1, &in, NULL, NULL,
			      ns < 0 ? NULL : &tv);
	case PSELECT:
		return pselect(place->fd + 1, &in, NULL, NULL,
			       ns < 0 ? NULL : &ts, mask);
	case WAIT:
		return epoll_wait(place->set, &event, 1, ms);
	case PWAIT:
		return epoll_pwait(place->set, &event, 1, ms, mask);
	default:
		return epoll_pwait2(place->set, &event, 1, ns < 0 ? NULL : &ts,
				    mask);
	}
}

static bool has_mask(enum call call)
{
	return call != POLL && call != SELECT && call != WAIT;
}

static void add(const struct place *place)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(place->set, EPOLL_CTL_ADD, place->fd, &event) != 0)
		SAY("add: %m\n");
}

static struct place make_place(int pair[2])
{
	struct place place;

	make_pair(pair);
	place = (struct place){ .fd = pair[1], .set = epoll_create1(0) };
	add(&place);
	return place;
}

static void end_place(const struct place *place, const int pair[2])
{
	close(place->set);
	close_pair(pair);
}

/* -- times ---------------------------------------------------------------------------- */

/* Never too early, not by a microsecond; too late is what a loaded machine is. */
static void timeouts_of_every_kind(void)
{
	static const long long times[] = { 0, 300000, 2500000, 30000000 };
	int pair[2];
	struct place place = make_place(pair);

	for (enum call call = 0; call < CALLS; call++)
		for (size_t i = 0; i < ARRAY_LEN(times); i++) {
			bool is_whole = call == POLL || call == WAIT ||
					call == PWAIT;
			long long ns = is_whole ?
					       times[i] / 1000000 * 1000000 :
					       times[i];
			long long from = now_ns();
			int n = wait_by(call, &place, ns, NULL);
			long long took = now_ns() - from;

			SAY("call %d, %lld: %d %s\n", call, ns, n,
			    took < ns		     ? "too early" :
			    took > ns + 5000000000LL ? "too late" :
						       "in time");
		}
	end_place(&place, pair);
}

/* As long as a number can say. */
static void timeouts_without_an_end(void)
{
	static const struct timespec huge = { INT64_MAX, 999999999 };
	int pair[2];
	struct place place = make_place(pair);
	struct pollfd asked = { .fd = place.fd, .events = POLLIN };
	struct timeval tv = { INT32_MAX, 999999 };
	struct epoll_event event;
	fd_set in;

	send(pair[0], "x", 1, 0);
	settle();
	FD_ZERO(&in);
	FD_SET(place.fd, &in);
	SAY("poll %d\n", poll(&asked, 1, INT_MAX));
	SAY("ppoll %d\n", ppoll(&asked, 1, &huge, NULL));
	SAY("select %d\n", select(place.fd + 1, &in, NULL, NULL, &tv));
	SAY("left %s\n", tv.tv_sec >= INT32_MAX - 10 ? "most" : "little");
	SAY("pselect %d\n", pselect(place.fd + 1, &in, NULL, NULL, &huge, NULL));
	SAY("wait %d\n", epoll_wait(place.set, &event, 1, INT_MAX));
	SAY("pwait2 %d\n", epoll_pwait2(place.set, &event, 1, &huge, NULL));
	receive(place.fd, 0);
	end_place(&place, pair);
}

struct later {
	int fd, ms;
};

static void *send_later(void *arg)
{
	const struct later *me = arg;

	usleep((useconds_t)me->ms * 1000);
	send(me->fd, "x", 1, 0);
	return NULL;
}

/* Select counts it down: nothing of it is left, or what was not used. */
static void time_left_of_select(void)
{
	int pair[2];
	struct place place = make_place(pair);
	struct later later = { pair[0], 40 };
	struct timeval tv = { 0, 20500 };
	pthread_t sender;
	fd_set in;

	FD_ZERO(&in);
	FD_SET(place.fd, &in);
	SAY("select %d", select(place.fd + 1, &in, NULL, NULL, &tv));
	SAY(", left %ld.%06ld\n", (long)tv.tv_sec, (long)tv.tv_usec);
	FD_SET(place.fd, &in);
	tv = (struct timeval){ 0, 0 };
	SAY("select %d", select(place.fd + 1, &in, NULL, NULL, &tv));
	SAY(", left %ld.%06ld\n", (long)tv.tv_sec, (long)tv.tv_usec);
	pthread_create(&sender, NULL, send_later, &later);
	FD_SET(place.fd, &in);
	/* more microseconds than a second has are as good */
	tv = (struct timeval){ 100, 5000000 };
	SAY("select %d", select(place.fd + 1, &in, NULL, NULL, &tv));
	SAY(", left %s\n", tv.tv_sec > 60 && tv.tv_sec <= 104 &&
					   tv.tv_usec < 1000000 ?
				   "most" :
				   "else");
	pthread_join(sender, NULL);
	receive(place.fd, 0);
	end_place(&place, pair);
}

/* -- masks ---------------------------------------------------------------------------- */

static _Atomic unsigned handled;

static void count_signal(int sig)
{
	(void)sig;
	handled++;
}

static void catch(void (*fn)(int))
{
	struct sigaction act = { .sa_handler = fn, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &act, NULL);
}

static bool is_blocked(int sig)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, sig);
}

/* A pending signal that the call lets in ends it where there is nothing to read, even if the
 * call only looks (but epoll). Else it stays pending. One that the call keeps out does not
 * end it. */
static void masks_of_waits(void)
{
	int pair[2], n;
	struct place place = make_place(pair);
	sigset_t one, none, before;

	sigemptyset(&none);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	catch(count_signal);
	for (enum call call = 0; call < CALLS; call++) {
		if (!has_mask(call))
			continue;
		pthread_sigmask(SIG_BLOCK, &one, &before);
		handled = 0;
		pthread_kill(pthread_self(), SIGUSR1);
		SAY("call %d: %s", call,
		    err(wait_by(call, &place, 10000000, &one)));
		SAY(", %u handled\n", handled);
		SAY("let in: %s", err(wait_by(call, &place, -1, &none)));
		SAY(", %u handled, %s\n", handled,
		    is_blocked(SIGUSR1) ? "blocked again" : "open");
		SAY("no more: %d\n", wait_by(call, &place, 1000000, &none));
		handled = 0;
		pthread_kill(pthread_self(), SIGUSR1);
		n = wait_by(call, &place, 0, &none);
		SAY("a look: %s, %u handled\n", err(n), handled);
		send(pair[0], "x", 1, 0);
		settle();
		SAY("kept out: %d\n", wait_by(call, &place, -1, &one));
		handled = 0;
		pthread_kill(pthread_self(), SIGUSR1);
		n = wait_by(call, &place, -1, &none);
		SAY("let in beside data: %d, %u handled\n", n, handled);
		n = wait_by(call, &place, 0, &none);
		SAY("a look at data: %d, %u handled\n", n, handled);
		receive(place.fd, 0);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	end_place(&place, pair);
}

/* Each is due when the one before has run, however long that takes on a busy machine. */
static void send_another(timer_t timer, unsigned *sent)
{
	static const struct itimerspec soon = { .it_value = { 0, 50000 } };

	if (*sent > handled)
		return;
	*sent = handled + 1;
	timer_settime(timer, 0, &soon, NULL);
}

/* A handler that has run before a call does not end it. None ends a call where something is
 * ready, or one of epoll that only looks. So whenever they run, that is so for all. */
static void handlers_around_looks(void)
{
	enum { HANDLERS = 3000 };
	struct sigevent by = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	unsigned sent = 0, ended = 0, empty = 0;
	int pair[2];
	struct place place = make_place(pair);
	sigset_t none;
	timer_t timer;

	sigemptyset(&none);
	catch(count_signal);
	if (timer_create(CLOCK_MONOTONIC, &by, &timer) != 0)
		SAY("timer: %m\n");
	for (handled = 0; handled < HANDLERS; send_another(timer, &sent))
		for (enum call call = WAIT; call < CALLS; call++)
			ended += wait_by(call, &place, 0, NULL) != 0;
	while (handled < sent)
		;
	send(pair[0], "x", 1, 0);
	settle();
	sent = 0;
	for (handled = 0; handled < HANDLERS; send_another(timer, &sent))
		for (enum call call = 0; call < CALLS; call++)
			empty += wait_by(call, &place, -1,
					 has_mask(call) ? &none : NULL) != 1;
	timer_delete(timer);
	SAY("%u were ended, %u found nothing\n", ended, empty);
	receive(place.fd, 0);
	end_place(&place, pair);
}

/* -- what is said of the descriptors ---------------------------------------------------- */

static _Atomic bool is_interrupted;

/* Again and again, since the first ones may come before the wait has begun. */
static void *interrupt_until_heard(void *arg)
{
	while (!is_interrupted) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		usleep(5000);
	}
	return NULL;
}

/* The events of a poll are those of this one, also if it is interrupted. */
static void events_of_interrupted_polls(void)
{
	pthread_t self = pthread_self(), thread;
	struct timespec ts = { 10, 0 };
	int pair[2];
	struct place place = make_place(pair);
	struct pollfd asked[2] = { { .fd = place.fd, .events = POLLIN },
				   { .fd = -1, .events = POLLIN } };

	catch(count_signal);
	for (int with_time = 0; with_time < 2; with_time++) {
		const char *said;

		asked[0].revents = asked[1].revents = POLLIN;
		is_interrupted = false;
		pthread_create(&thread, NULL, interrupt_until_heard, &self);
		said = with_time ? err(ppoll(asked, 2, &ts, NULL)) :
				   err(poll(asked, 2, 10000));
		is_interrupted = true;
		pthread_join(thread, NULL);
		SAY("%s %s: %#x %#x\n", with_time ? "ppoll" : "poll", said,
		    (unsigned)asked[0].revents, (unsigned)asked[1].revents);
	}
	end_place(&place, pair);
}

/* Beside a socket that has nothing to read. */
static void select_for(const char *what, const struct place *place, int fd,
		       bool is_out)
{
	struct timeval tv = { 0, 50000 };
	long long from = now_ns();
	fd_set in, set;
	int n;

	FD_ZERO(&in);
	FD_SET(place->fd, &in);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	n = select((place->fd > fd ? place->fd : fd) + 1, &in, is_out ? &set : NULL,
		   is_out ? NULL : &set, &tv);
	/* with a result it may be late */
	SAY("%s, %s: %d %s\n", what, is_out ? "out" : "except", n,
	    !n && now_ns() - from < 50000000 ? "at once" : "in time");
}

/* A select counts an end of file or an error in some of its sets alone, and waits in the
 * others. It goes on to hear of the rest. */
static void ends_that_select_does_not_count(void)
{
	int pair[2], ended[2], pipe_fds[2], fresh = socket(AF_INET, SOCK_STREAM, 0);
	struct place place = make_place(pair);
	struct later later = { pair[0], 40 };
	pthread_t sender;
	fd_set in, except;

	make_pair(ended);
	shutdown(ended[0], SHUT_RDWR);
	if (pipe(pipe_fds) != 0)
		return;
	close(pipe_fds[1]);
	for (int is_out = 0; is_out < 2; is_out++) {
		select_for("ended pipe", &place, pipe_fds[0], is_out);
		select_for("ended socket", &place, ended[0], is_out);
		select_for("fresh socket", &place, fresh, is_out);
	}
	FD_ZERO(&in);
	FD_SET(place.fd, &in);
	FD_ZERO(&except);
	FD_SET(pipe_fds[0], &except);
	FD_SET(ended[0], &except);
	FD_SET(fresh, &except);
	pthread_create(&sender, NULL, send_later, &later);
	SAY("select %d", select(FD_SETSIZE, &in, NULL, &except, NULL));
	SAY(", in %d\n", FD_ISSET(place.fd, &in));
	pthread_join(sender, NULL);
	receive(place.fd, 0);
	close(pipe_fds[0]);
	close(fresh);
	close_pair(ended);
	end_place(&place, pair);
}

/* -- odd arguments -------------------------------------------------------------------- */

/* Through pointers, so that no compiler knows better. */
static void odd_arguments_of_waits(void)
{
	int (*wait)(int, struct epoll_event *, int, int) = UNSEEN(epoll_wait);
	int (*poll_them)(struct pollfd *, nfds_t, int) = UNSEEN(poll);
	int (*choose)(int, fd_set *, fd_set *, fd_set *, struct timeval *) =
		UNSEEN(select);
	int pair[2], closed;
	struct place place = make_place(pair);
	static struct epoll_event many[1000];
	struct timeval negative = { -1, 0 };
	struct pollfd fds[5];
	fd_set in;

	send(pair[0], "x", 1, 0);
	settle();
	SAY("many %d\n", wait(place.set, many, 1000, 0));
	SAY("none %s\n", err(wait(place.set, many, 0, 0)));
	SAY("less %s\n", err(wait(place.set, many, -1, 0)));
	SAY("too many %s\n", err(wait(place.set, many, INT_MAX, 0)));
	SAY("nowhere %s\n", err(wait(place.set, NULL, 1, 0)));
	SAY("no set %s\n", err(wait(place.fd, many, 1, 0)));
	closed = dup(place.fd);
	close(closed);
	fds[0] = (struct pollfd){ .fd = place.fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = -1, .events = POLLIN, .revents = -1 };
	fds[2] = fds[0];
	fds[3] = (struct pollfd){ .fd = closed, .events = POLLIN };
	fds[4] = (struct pollfd){ .fd = -place.fd - 1, .revents = -1 };
	SAY("poll %d:", poll_them(fds, 5, -1));
	for (int i = 0; i < 5; i++)
		SAY(" %#x", (unsigned)fds[i].revents);
	SAY("\nnowhere %s\n", err(poll_them((void *)1, 2, 0)));
	SAY("too many %s\n", err(poll_them(fds, UINT_MAX, 0)));
	FD_ZERO(&in);
	FD_SET(place.fd, &in);
	SAY("select %s\n", err(choose(-1, &in, NULL, NULL, NULL)));
	SAY("negative %s\n", err(choose(place.fd + 1, &in, NULL, NULL,
					&negative)));
	SAY("nowhere %s\n", err(choose(place.fd + 1, &in, (void *)8, NULL, NULL)));
	FD_SET(closed, &in);
	SAY("closed %s\n", err(choose(closed + 1, &in, NULL, NULL, NULL)));
	receive(place.fd, 0);
	end_place(&place, pair);
}

/* -- handlers ------------------------------------------------------------------------- */

enum deed { READS, LEAVES_SET, ADDS, CLOSES, JUMPS, DEEDS };

static struct {
	enum deed deed;
	struct place place;
	int sender, more;
	char got[8];
} in_handler;
static sigjmp_buf back;

static void act(int sig)
{
	struct epoll_event event = { .events = EPOLLIN };

	(void)sig;
	send(in_handler.sender, "seen", 4, 0);
	handled++;
	switch (in_handler.deed) {
	case READS:
		(void)!recv(in_handler.place.fd, in_handler.got, 4, 0);
		return;
	case LEAVES_SET:
		epoll_ctl(in_handler.place.set, EPOLL_CTL_DEL,
			  in_handler.place.fd, NULL);
		return;
	case ADDS:
		epoll_ctl(in_handler.place.set, EPOLL_CTL_ADD, in_handler.more,
			  &event);
		return;
	case CLOSES:
		close(in_handler.more);
		return;
	default:
		siglongjmp(back, 1);
	}
}

struct interrupter {
	pthread_t victim;
	pid_t tid;
};

static void *interrupt(void *arg)
{
	struct interrupter *me = arg;

	sleeper_await(me->tid);
	pthread_kill(me->victim, SIGUSR1);
	return NULL;
}

/* A handler interrupts the wait and does that to the set; then everything works. */
static void wait_with(enum call call, enum deed deed)
{
	struct interrupter interrupter = { pthread_self(), gettid() };
	int pair[2], pair2[2];
	struct place place = make_place(pair);
	pthread_t thread;

	make_pair(pair2);
	in_handler.deed = deed;
	in_handler.place = place;
	in_handler.sender = pair[0];
	in_handler.more = pair2[1];
	handled = 0;
	pthread_create(&thread, NULL, interrupt, &interrupter);
	if (sigsetjmp(back, 1) == 0)
		SAY("call %d, deed %d: %s\n", call, deed,
		    err(wait_by(call, &place, -1, NULL)));
	else
		SAY("call %d, deed %d: out of it\n", call, deed);
	pthread_join(thread, NULL);
	SAY("%u handled", handled);
	SAY(", then %d\n", wait_by(call, &place, deed == READS ||
			   (deed == LEAVES_SET && call >= WAIT) ? 0 :
							  2000000000, NULL));
	if (deed != READS)
		receive(place.fd, 0);
	else
		received_cnt++;
	if (deed == ADDS) {
		send(pair2[0], "x", 1, 0);
		settle();
		SAY("added: %d\n", epoll_wait(place.set,
					      &(struct epoll_event){ 0 }, 1, 0));
		receive(pair2[1], 0);
	}
	if (deed != CLOSES)
		close(pair2[1]);
	close(pair2[0]);
	end_place(&place, pair);
}

static void handlers_in_waits(void)
{
	catch(act);
	for (enum call call = 0; call < CALLS; call++)
		for (enum deed deed = 0; deed < DEEDS; deed++)
			wait_with(call, deed);
}

/* -- threads that end in waits -------------------------------------------------------- */

/* How a waiting thread comes to its end. */
enum end { CANCELLED, EXITS };

struct ending {
	pthread_t thread;
	enum call call;
	struct place place;
	long long ns;
	/* it goes on with waits that find something */
	bool goes_on;
	_Atomic pid_t tid;
	_Atomic bool has_cleaned_up;
};

static pthread_key_t ending_key;

/* At the end of the thread. Clean-up handlers would run on top of frames that the address
 * sanitizer takes for alive. */
static void clean_up(void *arg)
{
	struct ending *me = arg;

	me->has_cleaned_up = true;
}

static void make_key(void)
{
	pthread_key_create(&ending_key, clean_up);
}

static void begin_to_end(struct ending *me)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_key);
	pthread_setspecific(ending_key, me);
	me->tid = gettid();
}

static void *wait_until_ended(void *arg)
{
	struct ending *me = arg;

	begin_to_end(me);
	while (wait_by(me->call, &me->place, me->ns, NULL) >= 0 && me->goes_on)
		;
	pthread_setspecific(ending_key, NULL);
	return NULL;
}

static void leave_by_exit(int sig)
{
	(void)sig;
	pthread_exit(PTHREAD_CANCELED);
}

/* On memory of its own, which nobody uses afterwards: the address sanitizer does not hear
 * that frames are left by an end. */
static void start_on_own_stack(struct ending *ending, void *(*run)(void *))
{
	enum { STACK_LEN = 1 << 20 };
	void *stack = mmap(NULL, STACK_LEN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (stack == MAP_FAILED || pthread_attr_setstack(&attr, stack, STACK_LEN))
		SAY("no stack\n");
	pthread_create(&ending->thread, &attr, run, ending);
	pthread_attr_destroy(&attr);
	while (!ending->tid)
		sched_yield();
}

static void end_thread(struct ending *ending, enum end how)
{
	if (how == CANCELLED)
		pthread_cancel(ending->thread);
	else
		pthread_kill(ending->thread, SIGUSR1);
}

static void join(struct ending *ending)
{
	void *result;

	pthread_join(ending->thread, &result);
	SAY("%s, %s\n", result == PTHREAD_CANCELED ? "ended" : "returned",
	    ending->has_cleaned_up ? "cleaned up" : "not cleaned up");
}

/* Of two that sleep in one place one ends. It may be the one that the library has woken
 * for both, and the other must hear all the same. */
static void end_asleep(enum call call, enum end how)
{
	struct ending ends = { .call = call, .ns = -1 };
	struct ending stays = { .call = call, .ns = -1 };
	int pair[2];

	ends.place = stays.place = make_place(pair);
	start_on_own_stack(&ends, wait_until_ended);
	sleeper_await(ends.tid);
	start_on_own_stack(&stays, wait_until_ended);
	sleeper_await(stays.tid);
	end_thread(&ends, how);
	join(&ends);
	send(pair[0], "one", 3, 0);
	join(&stays);
	SAY("then %d\n", wait_by(call, &ends.place, 1000000000, NULL));
	receive(pair[1], 0);
	SAY("then %d\n", wait_by(call, &ends.place, 0, NULL));
	end_place(&ends.place, pair);
}

static void cancelled_in_each_sleep(void)
{
	for (enum call call = 0; call < CALLS; call++)
		end_asleep(call, CANCELLED);
}

static void exits_in_each_sleep(void)
{
	catch(leave_by_exit);
	for (enum call call = 0; call < CALLS; call++)
		end_asleep(call, EXITS);
}

/* A wait is a cancellation point also where it does not sleep, as something is there or
 * as it only looks. */
static void cancelled_in_each_look(void)
{
	int pair[2];

	for (enum call call = 0; call < CALLS; call++) {
		struct ending full = { .call = call,
				       .ns = -1,
				       .goes_on = true };
		struct ending empty = { .call = call, .goes_on = true };

		full.place = empty.place = make_place(pair);
		start_on_own_stack(&empty, wait_until_ended);
		end_thread(&empty, CANCELLED);
		join(&empty);
		send(pair[0], "one", 3, 0);
		start_on_own_stack(&full, wait_until_ended);
		end_thread(&full, CANCELLED);
		join(&full);
		receive(pair[1], 0);
		end_place(&full.place, pair);
	}
}

static void *receive_in_vain(void *arg)
{
	struct ending *me = arg;
	char byte;

	begin_to_end(me);
	recv(me->place.fd, &byte, 1, 0);
	pthread_setspecific(ending_key, NULL);
	return NULL;
}

/* Also one that may never sleep (udp.sh). */
static void cancelled_in_each_spin(void)
{
	int pair[2];

	for (enum call call = 0; call <= CALLS; call++) {
		struct ending spins = { .call = call, .ns = -1 };

		spins.place = make_place(pair);
		start_on_own_stack(&spins, call < CALLS ? wait_until_ended :
							  receive_in_vain);
		/* it is most likely waiting by then; else it ends as it begins */
		usleep(5000);
		end_thread(&spins, CANCELLED);
		join(&spins);
		send(pair[0], "one", 3, 0);
		receive(pair[1], 0);
		end_place(&spins.place, pair);
	}
}

const struct scenario mux_scenarios[] = {
	SCENARIO(timeouts_of_every_kind, 0),
	SCENARIO(timeouts_without_an_end, 0),
	SCENARIO(time_left_of_select, 0),
	SCENARIO(masks_of_waits, 0),
	SCENARIO(handlers_around_looks, 0),
	SCENARIO(events_of_interrupted_polls, 0),
	SCENARIO(ends_that_select_does_not_count, 0),
	SCENARIO(odd_arguments_of_waits, 0),
	SCENARIO(handlers_in_waits, 0),
	SCENARIO(cancelled_in_each_sleep, 0),
	SCENARIO(exits_in_each_sleep, 0),
	SCENARIO(cancelled_in_each_look, 0),
	SCENARIO(cancelled_in_each_spin, 0),
	SCENARIO_END,
};
