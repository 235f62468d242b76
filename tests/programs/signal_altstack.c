/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Handlers on an alternate stack: the stack is the program's own as installed, SS_ONSTACK tells the
 * truth, a handler that runs long enough to be sampled returns unharmed, and a stack overflow is
 * caught on it and left by siglongjmp(). A program that works on the last bytes of its stack gets
 * by with them: whether or not a signal's frame finds room there, a handler of another's does not.
 */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "check.h"

static char stack[256 << 10];
static sigjmp_buf escape;
static int handled;

static int on_alternate(const void *address)
{
	return (const char *)address >= stack && (const char *)address < stack + sizeof(stack);
}

static void on_usr1(int number)
{
	stack_t now;
	int local;

	(void)number;
	CHECK(on_alternate(&local));
	CHECK(sigaltstack(NULL, &now) == 0);
	CHECK(now.ss_flags == SS_ONSTACK && now.ss_sp == stack);
	check_burn_ms(10);
	handled++;
}

static void on_overflow(int number, siginfo_t *info, void *context)
{
	int local;

	(void)number;
	(void)info;
	(void)context;
	CHECK(on_alternate(&local));
	siglongjmp(escape, 1);
}

__attribute__((noinline)) static int recurse(int depth)
{
	volatile char frame[512];

	frame[0] = (char)depth;
	if (depth < 0)
		return 0;
	return recurse(depth + 1) + frame[0];
}

/* As far down as the kernel lets the main stack grow (setrlimit(2)); 0: no limit. */
static uintptr_t stack_floor(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t end = 0;
	struct rlimit limit;
	char line[512];

	CHECK(maps && getrlimit(RLIMIT_STACK, &limit) == 0);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "[stack]"))
			end = strtoull(strchr(line, '-') + 1, NULL, 16);
	}
	fclose(maps);
	return limit.rlim_cur < end ? end - limit.rlim_cur : 0;
}

/* Works with that many bytes of the stack left. */
__attribute__((noinline)) static void work_at_end(uintptr_t floor, size_t left)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	volatile char *block = alloca(here - floor - left);

	block[0] = 1;
	check_burn_ms(8);
}

static void work_near_end(void)
{
	uintptr_t floor = stack_floor();
	size_t most = getauxval(AT_MINSIGSTKSZ) + 3072;

	/* What burning itself needs is less than 512 bytes. */
	for (volatile size_t left = 768; floor && left < most; left += 256) {
		if (sigsetjmp(escape, 1) == 0)
			work_at_end(floor, left);
	}
}

int main(void)
{
	stack_t ours = {.ss_sp = stack, .ss_size = sizeof(stack)}, seen;
	struct sigaction usr1 = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
	struct sigaction overflow = {.sa_sigaction = on_overflow,
				     .sa_flags = SA_ONSTACK | SA_SIGINFO};

	CHECK(sigaltstack(NULL, &seen) == 0 && (seen.ss_flags & SS_DISABLE));
	CHECK(sigaltstack(&ours, NULL) == 0);
	CHECK(sigaltstack(NULL, &seen) == 0);
	CHECK(seen.ss_sp == stack && seen.ss_size == sizeof(stack) && seen.ss_flags == 0);
	CHECK(sigaction(SIGUSR1, &usr1, NULL) == 0);
	CHECK(sigaction(SIGSEGV, &overflow, NULL) == 0);
	for (int round = 0; round < 20; round++) {
		CHECK(raise(SIGUSR1) == 0);
		check_burn_ms(1);
	}
	CHECK(handled == 20);
	for (volatile int round = 0; round < 5; round++) {
		if (sigsetjmp(escape, 1) == 0)
			recurse(0);
		check_burn_ms(5);
	}
	work_near_end();
	return check_passed("signal_altstack");
}
