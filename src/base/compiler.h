/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attributes, branch hints, lock annotations, and the few macros for which C has no
 * better way.
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <assert.h>
#include <stddef.h>

/* The result must be looked at. */
#define MUST_CHECK __attribute__((warn_unused_result))
#define NO_RETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
/* For bodies that callers specialise with constant arguments. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
/* Keeps a slow path out of its hot caller. */
#define COLD __attribute__((cold, noinline))
/* For variables: code reaches them without a table. */
#define HIDDEN __attribute__((visibility("hidden")))
/* Part of the interface of libvma.so; everything else is hidden. */
#define EXPORT __attribute__((visibility("default")))

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define CACHE_LINE 64
#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Hides from the compiler what it knows about a value. Meant for the length of a
 * copy: if the compiler knows that it is short, it makes code that is slower than
 * memcpy. */
#define OPAQUE(value)                               \
	({                                          \
		__typeof__(value) value_ = (value); \
		__asm__("" : "+r"(value_));         \
		value_;                             \
	})

/* The struct that holds `member` at the address `ptr`. */
#define CONTAINER_OF(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/* <sys/param.h> has its own, which evaluate their arguments twice. */
#undef MIN
#undef MAX
#define MIN(a, b)                        \
	({                               \
		__typeof__(a) a_ = (a);  \
		__typeof__(b) b_ = (b);  \
		a_ < b_ ? a_ : b_;       \
	})
#define MAX(a, b)                        \
	({                               \
		__typeof__(a) a_ = (a);  \
		__typeof__(b) b_ = (b);  \
		a_ > b_ ? a_ : b_;       \
	})

/* An invariant of our own code, with the argument in the text. Debug builds
 * only; what comes from outside is checked with ordinary code. */
#ifdef VMA_DEBUG
#define INVARIANT(cond, why) assert((cond) && why)
#else
#define INVARIANT(cond, why) ((void)sizeof(cond))
#endif

#if defined(__SANITIZE_THREAD__)
#define HAS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define HAS_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define HAS_THREAD_SANITIZER 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define HAS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define HAS_ADDRESS_SANITIZER 0
#endif

/* Tells the thread sanitizer of a lock, or of a count of references that orders what
 * two threads do. It takes no notice of atomic operations and mutexes while a thread is
 * inside a call that it knows to block (poll, epoll_wait), but of all other accesses;
 * and in a preloaded library such a call is all ours. */
#if HAS_THREAD_SANITIZER
void __tsan_acquire(void *lock);
void __tsan_release(void *lock);
#define TSAN_ACQUIRED(lock) __tsan_acquire(lock)
#define TSAN_RELEASED(lock) __tsan_release(lock)
#else
#define TSAN_ACQUIRED(lock) ((void)(lock))
#define TSAN_RELEASED(lock) ((void)(lock))
#endif

/* Lock annotations, checked by clang's thread-safety analysis. */
#ifdef __clang__
#define TSA(x) __attribute__((x))
#else
#define TSA(x)
#endif
#define CAPABILITY(name) TSA(capability(name))
#define GUARDED_BY(lock) TSA(guarded_by(lock))
#define PT_GUARDED_BY(lock) TSA(pt_guarded_by(lock))
#define REQUIRES(...) TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) TSA(locks_excluded(__VA_ARGS__))
#define ACQUIRES(...) TSA(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRES(...) TSA(try_acquire_capability(__VA_ARGS__))
#define RELEASES(...) TSA(release_capability(__VA_ARGS__))
/* With the reason beside it, unless it is one of the next two. */
#define NO_LOCK_ANALYSIS TSA(no_thread_safety_analysis)
/* The function is part of the lock: what takes and releases it has no lock inside. */
#define PART_OF_LOCK NO_LOCK_ANALYSIS
/* The child of a fork has this thread alone, and locks that others may have held. */
#define ALONE_AFTER_FORK NO_LOCK_ANALYSIS

#endif
