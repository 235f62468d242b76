/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Traps that come without an instruction that traps, as those of breakpoints whose kernel does not
 * know them for breakpoints (SIGTRAP, TRAP_BRKPT and TRAP_HWBKPT): a program that never had a
 * breakpoint gets none. With `int3` or `icebp` it has such an instruction, and ends by it.
 *
 * usage: causal_traps sent|int3|icebp
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEPS 400

__attribute__((noinline)) static void step(const struct timespec *length)
{
	nanosleep(length, NULL);
}

static void send(int code)
{
	siginfo_t information = {.si_signo = SIGTRAP, .si_code = code};

	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGTRAP, &information);
}

int main(int count, char **arguments)
{
	static const struct timespec length = {.tv_nsec = 5000000};
	const char *what = count > 1 ? arguments[1] : "sent";

	for (int i = 0; i < STEPS; i++) {
		step(&length);
		/* not before breakpoints are there */
		if (i < STEPS / 2)
			continue;
		if (!strcmp(what, "sent"))
			send(i % 2 ? TRAP_BRKPT : TRAP_HWBKPT);
		else if (!strcmp(what, "int3"))
			__asm__ volatile("int3");
		else
			__asm__ volatile(".byte 0xf1");
	}
	puts("done");
	return 5;
}
