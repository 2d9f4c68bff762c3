/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A system call without libc. It is no cancellation point and leaves errno alone.
 * It is for the data path, and for waits under a lock.
 */
#ifndef BASE_SYSCALL_RAW_H
#define BASE_SYSCALL_RAW_H

#include <sys/syscall.h>

/* The kernel's answer: a negative errno when it fails. */
static inline long syscall_raw(long number, long a, long b, long c, long d,
			       long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#elif defined(__powerpc64__)
	register long r0 __asm__("r0") = number;
	register long r3 __asm__("r3") = a;
	register long r4 __asm__("r4") = b;
	register long r5 __asm__("r5") = c;
	register long r6 __asm__("r6") = d;
	register long r7 __asm__("r7") = e;
	register long r8 __asm__("r8") = f;

	/* failure is the summary overflow bit, and a positive errno */
	__asm__ volatile("sc\n\tbns+ 1f\n\tneg %1, %1\n1:"
			 : "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6),
			   "+r"(r7), "+r"(r8)
			 :
			 : "memory", "cr0", "ctr", "xer", "r9", "r10", "r11",
			   "r12");
	return r3;
#else
#error "this machine's system call is missing"
#endif
}

#endif
