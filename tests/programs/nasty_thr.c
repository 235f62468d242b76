/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Short threads whose destructors of thread-specific data and of thread-local objects call
 * functions.
 */
#include "nasty.h"
#include <pthread.h>

#define THREADS  2400
#define TOGETHER 8
static pthread_key_t key;
static long sum;
static _Thread_local long own;
extern void *__dso_handle;
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso);

NASTY_KEEP long thr_leaf(long value)
{
	NASTY_OPAQUE();
	return value + 1;
}

NASTY_KEEP void thr_key_ends(void *value)
{
	for (int i = 0; i < 3; i++)
		own += thr_leaf((long)value);
}

NASTY_KEEP void thr_object_ends(void *object)
{
	own = thr_leaf(*(long *)object);
	__atomic_fetch_add(&sum, own, __ATOMIC_RELAXED);
}

NASTY_KEEP void *thr_main(void *number)
{
	CHECK(__cxa_thread_atexit_impl(thr_object_ends, &own, &__dso_handle) == 0);
	pthread_setspecific(key, (void *)((long)number + 1));
	own = thr_leaf((long)number);
	if ((long)number % 3 == 0)
		pthread_exit(NULL);
	return NULL;
}

static void work(void)
{
	pthread_t threads[TOGETHER];

	sum = 0;
	CHECK(pthread_key_create(&key, thr_key_ends) == 0);
	for (long i = 0; i < THREADS; i += TOGETHER) {
		for (long j = 0; j < TOGETHER; j++)
			CHECK(pthread_create(&threads[j], NULL, thr_main, (void *)(i + j)) == 0);
		for (long j = 0; j < TOGETHER; j++)
			pthread_join(threads[j], NULL);
	}
	pthread_key_delete(key);
	nasty_say("sum %ld\n", sum);
	nasty_count("thr_main", THREADS);
	nasty_count("thr_leaf", 5 * THREADS);
	nasty_count("thr_key_ends", THREADS);
	nasty_count("thr_object_ends", THREADS);
}

int main(int argc, char **argv)
{
	return nasty_run(argc, argv, work);
}
