/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Twelve million calls while two timers strike, whose handlers call functions and are interrupted
 * themselves: on the stack at hand, and on alternate stacks that are static, allocated, and an
 * array in the frame below. A second argument is the number of calls.
 */
#include "nasty.h"
#include <signal.h>
#include <sys/time.h>

#define STACK_SIZE 65536
static char stack[STACK_SIZE];
static long calls = 12000000;
static volatile sig_atomic_t nested, deepest;
static volatile long struck;

NASTY_KEEP long sig_leaf(long value)
{
	NASTY_OPAQUE();
	return value + 1;
}

NASTY_KEEP long sig_in_handler(long value)
{
	NASTY_OPAQUE();
	return value + 1;
}

NASTY_KEEP long sig_middle(long value, long times)
{
	for (long i = 0; i < times; i++)
		value = sig_leaf(value);
	return value;
}

NASTY_KEEP void sig_handler(int signal)
{
	int kept = errno;

	nested++;
	if (nested > deepest)
		deepest = nested;
	struck++;
	for (int i = 0; i < 10; i++)
		sig_in_handler(signal);
	if (nested < 3 && struck % 8 == 0)
		raise(signal);
	nested--;
	errno = kept;
}

static long with_stack(char *base, int flags)
{
	stack_t alternate = {.ss_sp = base, .ss_size = STACK_SIZE};
	struct sigaction action = {.sa_handler = sig_handler, .sa_flags = flags};
	struct itimerval often = {{0, 500}, {0, 500}};
	struct itimerval off = {{0, 0}, {0, 0}};
	stack_t none = {.ss_flags = SS_DISABLE};
	long value = 0;

	if (base)
		CHECK(sigaltstack(&alternate, NULL) == 0);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGVTALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	setitimer(ITIMER_VIRTUAL, &often, NULL);
	for (long i = 0; i < calls / 4000; i++)
		value = sig_middle(value, 1000);
	setitimer(ITIMER_REAL, &off, NULL);
	setitimer(ITIMER_VIRTUAL, &off, NULL);
	signal(SIGALRM, SIG_IGN);
	signal(SIGVTALRM, SIG_IGN);
	if (base)
		CHECK(sigaltstack(&none, NULL) == 0);
	return value;
}

static void work(void)
{
	char inside[STACK_SIZE];
	char *heap = malloc(STACK_SIZE);
	long value;

	CHECK(heap);
	struck = 0;
	value = with_stack(NULL, SA_NODEFER);
	value += with_stack(stack, SA_ONSTACK | SA_NODEFER);
	value += with_stack(heap, SA_ONSTACK | SA_NODEFER);
	value += with_stack(inside, SA_ONSTACK);
	free(heap);
	nasty_say("value %ld\n", value);
	nasty_count("sig_leaf", calls / 4000 * 4000);
	nasty_count("sig_middle", calls / 4000 * 4);
	if (nasty_round == 0)
		fprintf(stderr, "count sig_handler %ld\ncount sig_in_handler %ld\n", struck,
			10 * struck);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		calls = atol(argv[2]);
	return nasty_run(argc, argv, work);
}
