/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Work at the far end of a small thread stack, down to 16 KB before the guard page: a signal frame
 * and a handler must fit into what is left, and the walk must not read past either end.
 */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

#define STACK_SIZE (256 << 10)
#define LEFT       (16 << 10)

static char *stack_low;

__attribute__((noinline)) static uint64_t descend(uint64_t depth)
{
	volatile char frame[64];
	uint64_t result;

	frame[0] = (char)depth;
	if ((char *)frame - stack_low < LEFT) {
		check_burn_ms(150);
		return depth;
	}
	result = descend(depth + 1);
	frame[1] = (char)result;
	return result + (frame[0] != (char)depth);
}

static void *thread_main(void *argument)
{
	pthread_attr_t attributes;
	void *address;
	size_t size;

	(void)argument;
	CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
	CHECK(pthread_attr_getstack(&attributes, &address, &size) == 0);
	pthread_attr_destroy(&attributes);
	stack_low = address;
	CHECK(descend(0) > 100);
	return NULL;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	CHECK(pthread_attr_init(&attributes) == 0);
	CHECK(pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0);
	CHECK(pthread_create(&thread, &attributes, thread_main, NULL) == 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	return check_passed("deep_recursion");
}
