/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a program may forbid a thread of its own, or have reported to itself: who does it in a
 * handler then ends the program.
 *
 * usage: forbidden time       reading the time stamp counter (PR_SET_TSC) is a SIGSEGV
 *        forbidden cpuid      CPUID is (ARCH_SET_CPUID), where the processor can say so
 *        forbidden unaligned  each unaligned access is a SIGBUS (AC of rflags)
 *        forbidden calls      system calls come back as SIGSYS (PR_SET_SYSCALL_USER_DISPATCH)
 *        forbidden calls-at-once   the same, as the first thing in children
 */
#include <asm/prctl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define CHILDREN               30
#define RFLAGS_ALIGNMENT_CHECK 0x40000

static unsigned long steps_of_100_ms;
static volatile char are_calls_blocked;

/* Without a look at any clock. */
static inline __attribute__((always_inline)) void count(unsigned long steps)
{
	for (volatile unsigned long step = 0; step < steps; step++)
		;
}

static void measure_steps(void)
{
	uint64_t start = check_clock_ns(CLOCK_THREAD_CPUTIME_ID), took;

	count(20000000);
	took = check_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	steps_of_100_ms = (unsigned long)(20000000.0 * 100 * NS_PER_MS / (double)took);
}

__attribute__((noinline)) static void before_forbidden(void)
{
	count(steps_of_100_ms);
	__asm__ volatile("");
}

__attribute__((noinline)) static void while_forbidden(void)
{
	count(4 * steps_of_100_ms);
	__asm__ volatile("");
}

__attribute__((noinline)) static void in_child(void)
{
	count(3 * steps_of_100_ms);
	__asm__ volatile("");
}

__attribute__((noinline)) static void after_forbidden(void)
{
	count(5 * steps_of_100_ms);
	__asm__ volatile("");
}

static void run_child(void)
{
	pid_t child = fork();
	int status = 0;

	CHECK(child >= 0);
	if (!child) {
		in_child();
		_exit(7);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void set_alignment_check(bool on)
{
	if (on)
		__asm__ volatile("pushfq\n\torl %0, (%%rsp)\n\tpopfq" ::"i"(RFLAGS_ALIGNMENT_CHECK)
				 : "memory", "cc");
	else
		__asm__ volatile(
			"pushfq\n\tandl %0, (%%rsp)\n\tpopfq" ::"i"(~RFLAGS_ALIGNMENT_CHECK)
			: "memory", "cc");
}

static void dispatch_calls(void)
{
	CHECK(prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 4096, 4096, &are_calls_blocked) == 0);
	are_calls_blocked = 1;
	while_forbidden();
	are_calls_blocked = 0;
	run_child(); /* it is without */
	CHECK(prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) == 0);
	after_forbidden();
}

static void dispatch_calls_in_children(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status = 0;

		CHECK(child >= 0);
		if (!child) {
			CHECK(prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 4096, 4096,
				    &are_calls_blocked) == 0);
			are_calls_blocked = 1;
			count(steps_of_100_ms / 5);
			are_calls_blocked = 0;
			_exit(7);
		}
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		      WEXITSTATUS(status) == 7);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	measure_steps();
	before_forbidden();
	if (!strcmp(what, "calls")) {
		dispatch_calls();
		return check_passed("forbidden");
	}
	if (!strcmp(what, "calls-at-once")) {
		dispatch_calls_in_children();
		return check_passed("forbidden");
	}
	if (!strcmp(what, "time"))
		CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
	else if (!strcmp(what, "cpuid"))
		CHECK(syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) == 0 || errno == ENODEV);
	else if (!strcmp(what, "unaligned"))
		set_alignment_check(true);
	else
		CHECK(argc < 0);
	while_forbidden();
	set_alignment_check(false);
	run_child();
	return check_passed("forbidden");
}
