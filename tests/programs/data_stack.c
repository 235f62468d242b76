/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A stack in the midst of data, as run-time systems of languages have (Erlang, Go): all signals
 * with handlers are on an alternate stack, because a signal's frame would lie on what is below.
 *
 * usage: data_stack WORD   the handlers are set by sigaction, or by __sigaction, libc's other name
 */
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#include "check.h"

#define DATA_BYTES  65536
#define STACK_BYTES 1024
#define ROUNDS      20

extern int __sigaction(int number, const struct sigaction *fresh, struct sigaction *previous);

static ucontext_t outside, inside;
static char alternate[65536];
static unsigned char *data;
static volatile int handled;

static void on_signal(int number)
{
	(void)number;
	handled++;
}

/* Without a call: there is no room for one. */
static void count_on_data_stack(void)
{
	for (volatile unsigned long step = 0; step < 10000000; step++)
		;
}

static void run_on_data_stack(void)
{
	memset(data, 0x5a, DATA_BYTES);
	CHECK(getcontext(&inside) == 0);
	inside.uc_stack.ss_sp = data + DATA_BYTES;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, count_on_data_stack, 0);
	CHECK(swapcontext(&outside, &inside) == 0);
	for (size_t i = 0; i < DATA_BYTES; i++)
		CHECK(data[i] == 0x5a);
}

int main(int argc, char **argv)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
	static const int numbers[] = {SIGUSR1, SIGTERM, SIGCHLD};

	data = malloc(DATA_BYTES + STACK_BYTES);
	CHECK(data && sigaltstack(&stack, NULL) == 0);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (argc > 1 && !strcmp(argv[1], "__sigaction"))
			CHECK(__sigaction(numbers[i], &action, NULL) == 0);
		else
			CHECK(sigaction(numbers[i], &action, NULL) == 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		run_on_data_stack();
		CHECK(raise(SIGUSR1) == 0);
	}
	CHECK(handled == ROUNDS);
	return check_passed("data_stack");
}
