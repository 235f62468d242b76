/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Coroutines: ucontext stacks from malloc and in main's frame, which run in turns and move between
 * threads, and a context switch written by hand. All yield in the midst of calls.
 */
#include "nasty.h"
#include <pthread.h>
#include <ucontext.h>

#define STACKS     50
#define STACK_SIZE 32768
#define STEPS      40
#define MOVES      200
#define MANY       30
#define TURNS      3000

static ucontext_t home[2];
static ucontext_t coroutines[STACKS];
static int current;
static long sum;
static void *resumer, *suspended;

void nasty_switch(void **save, void *load);
void nasty_begin(void);

NASTY_KEEP long co_leaf(long value)
{
	NASTY_OPAQUE();
	return value + 1;
}

NASTY_KEEP long co_step(int depth, int self, void (*yield)(int))
{
	long value = co_leaf(self);

	if (depth == 0)
		yield(self);
	else
		value += co_step(depth - 1, self, yield);
	value += co_leaf(depth);
	return value;
}

NASTY_KEEP void co_yield (int self)
{
	swapcontext(&coroutines[self], &home[0]);
}

static void coroutine(int self)
{
	for (int i = 0; i < STEPS; i++)
		sum += co_step((self + i) % 5, self, co_yield );
}

static void in_turns(char *stacks)
{
	for (int i = 0; i < STACKS; i++) {
		getcontext(&coroutines[i]);
		coroutines[i].uc_stack.ss_sp = stacks + (size_t)i * STACK_SIZE;
		coroutines[i].uc_stack.ss_size = STACK_SIZE;
		coroutines[i].uc_link = &home[0];
		makecontext(&coroutines[i], (void (*)(void))coroutine, 1, i);
	}
	for (int step = 0; step <= STEPS; step++)
		for (int i = 0; i < STACKS; i++)
			swapcontext(&home[0], &coroutines[i]);
}

/* Two threads take turns in resuming one coroutine. */
static pthread_barrier_t turn;
static ucontext_t wanderer;

NASTY_KEEP void co_wander(int self)
{
	(void)self;
	swapcontext(&wanderer, &home[__atomic_load_n(&current, __ATOMIC_SEQ_CST)]);
}

static void wander(void)
{
	for (int i = 0; i < MOVES; i++)
		sum += co_step(i % 4, 1, co_wander);
}

static void *mover(void *which)
{
	long self = (long)which;

	for (int i = 0; i <= MOVES; i++) {
		if (i % 2 == self) {
			__atomic_store_n(&current, (int)self, __ATOMIC_SEQ_CST);
			swapcontext(&home[self], &wanderer);
		}
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

static void between_threads(char *stack)
{
	pthread_t threads[2];

	pthread_barrier_init(&turn, NULL, 2);
	getcontext(&wanderer);
	wanderer.uc_stack.ss_sp = stack;
	wanderer.uc_stack.ss_size = STACK_SIZE;
	wanderer.uc_link = &home[0];
	makecontext(&wanderer, wander, 0);
	for (long i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, mover, (void *)i) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&turn);
}

NASTY_KEEP void co_by_hand(int self)
{
	(void)self;
	nasty_switch(&suspended, resumer);
}

static void by_hand(void *steps)
{
	for (long i = 0; i < (long)steps; i++)
		sum += co_step((int)i % 3, 2, co_by_hand);
	for (;;)
		co_by_hand(0);
}

static void *made_by_hand(char *stack, void (*function)(void *), void *argument)
{
	void **top = (void **)(((uintptr_t)stack + STACK_SIZE) & ~(uintptr_t)15);

	*--top = NULL;
	*--top = (void *)nasty_begin;
	*--top = NULL;             /* rbp */
	*--top = (void *)function; /* rbx */
	*--top = argument;         /* r12 */
	return top - 3;
}

static void written_by_hand(char *stack)
{
	suspended = made_by_hand(stack, by_hand, (void *)(long)STEPS);
	for (int i = 0; i <= STEPS; i++)
		nasty_switch(&resumer, suspended);
}

/* More changes between stacks than calls can be open at a time; none is on its stack alone. */
static void *passing[MANY], *passed_from;

NASTY_KEEP void co_pass(int self)
{
	nasty_switch(&passing[self], passed_from);
}

static void pass_on(void *self)
{
	for (;;)
		sum += co_step(1, (int)(long)self, co_pass);
}

static void many_in_turns(char *stacks)
{
	for (long i = 0; i < MANY; i++)
		passing[i] = made_by_hand(stacks + i * STACK_SIZE, pass_on, (void *)i);
	for (int round = 0; round < TURNS; round++)
		for (int i = 0; i < MANY; i++)
			nasty_switch(&passed_from, passing[i]);
}

static long steps_taken(int coroutines_run, int rounds, int depths, int first)
{
	long steps = 0;

	for (int i = 0; i < coroutines_run; i++)
		for (int j = 0; j < rounds; j++)
			steps += (i * first + j) % depths + 1;
	return steps;
}

static void work(void)
{
	char inside[STACKS * STACK_SIZE];
	char *heap = malloc(sizeof(inside));
	long steps = 2 * steps_taken(STACKS, STEPS, 5, 1) + 2 * steps_taken(1, MOVES, 4, 0) +
		     2 * steps_taken(1, STEPS, 3, 0);
	long passes = (long)MANY * TURNS;

	CHECK(heap);
	sum = 0;
	in_turns(heap);
	in_turns(inside);
	between_threads(heap);
	between_threads(inside);
	written_by_hand(heap);
	written_by_hand(inside);
	many_in_turns(heap);
	free(heap);
	nasty_say("sum %ld\n", sum);
	nasty_count("co_step", steps + 2 * passes);
	nasty_count("co_leaf", 2 * steps + 4 * passes - 2 * MANY);
	nasty_count("co_yield", 2 * STACKS * STEPS);
	nasty_count("co_wander", 2 * MOVES);
	nasty_count("co_pass", passes);
	nasty_count("co_by_hand", 2 * (STEPS + 1));
}

int main(int argc, char **argv)
{
	return nasty_run(argc, argv, work);
}
