/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Work while all signals are blocked behind libc's back, as run times without libc block them. What
 * lets them in again is another function than the one that worked.
 *
 * usage: masked raw | syscall | ppoll | handler | never | kernel
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"

static const unsigned long long all = ~0ull, none;

static long raw(long number, long first, long second, long third, long fourth)
{
	register long fourth_register __asm__("r10") = fourth;
	register long fifth __asm__("r8") = 8;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(first), "S"(second), "d"(third), "r"(fourth_register),
			   "r"(fifth)
			 : "rcx", "r11", "memory");
	return result;
}

__attribute__((noinline)) static void masked_work(void)
{
	check_burn_ms(60);
}

__attribute__((noinline)) static void open_work(void)
{
	check_burn_ms(1);
}

/* The kernel's, in one call. */
__attribute__((noinline)) static void kernel_work(void)
{
	void *memory = mmap(NULL, 256 << 20, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	CHECK(memory != MAP_FAILED);
	munmap(memory, 256 << 20);
}

static void handle(int number)
{
	(void)number;
	masked_work();
}

static void once(const char *way)
{
	struct timespec short_time = {0, 1000};

	if (!strcmp(way, "handler")) {
		raise(SIGUSR1);
	} else if (!strcmp(way, "kernel")) {
		kernel_work();
	} else if (!strcmp(way, "syscall")) {
		unsigned long long before = 1;

		CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8) == 0);
		CHECK(before == 0);
		masked_work();
		CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, &before, 8) == 0);
		CHECK(before == (all & ~(1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1))));
		CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, (void *)8, NULL, 8) == -1);
		CHECK(errno == EFAULT);
	} else {
		raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8);
		masked_work();
		if (!strcmp(way, "ppoll"))
			raw(SYS_ppoll, 0, 0, (long)&short_time, (long)&none);
		if (strcmp(way, "never") != 0)
			raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8);
	}
	open_work();
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handle};

	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	for (int round = 0; argc == 2 && round < 10; round++)
		once(argv[1]);
	return check_passed("masked");
}
