/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ways for threads to come and go, one a run.
 *
 * usage: thread_ends main_exit|detached|c11|exit_process|cancel|keys
 *   main_exit     pthread_exit() from main; the last thread ends the process with status 0
 *   detached      detached threads that outlive their creator, process ends while they run
 *   c11           thrd_create() and thrd_exit()
 *   exit_process  exit(7) from a thread other than main
 *   cancel        pthread_cancel(), deferred and asynchronous
 *   keys          key destructors that burn CPU and re-arm themselves to the last round
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <threads.h>

#include "check.h"

#define DESTRUCTOR_ROUNDS 4 /* PTHREAD_DESTRUCTOR_ITERATIONS of glibc */

static atomic_int counter;
static pthread_key_t key;

static void *burn_main(void *argument)
{
	check_burn_ms(30);
	atomic_fetch_add(&counter, 1);
	return argument;
}

static void *after_main(void *argument)
{
	pthread_join(*(pthread_t *)argument, NULL);
	check_burn_ms(50);
	check_passed("main_exit");
	return NULL;
}

static void main_exit(void)
{
	static pthread_t self;
	pthread_t thread;

	self = pthread_self();
	CHECK(pthread_create(&thread, NULL, after_main, &self) == 0);
	check_burn_ms(20);
	pthread_exit(NULL);
}

static void *forever_main(void *argument)
{
	for (;;)
		check_burn_ms(1);
	return argument;
}

static int detached(void)
{
	pthread_t thread;

	for (int i = 0; i < 10; i++) {
		CHECK(pthread_create(&thread, NULL, i < 8 ? burn_main : forever_main, NULL) == 0);
		CHECK(pthread_detach(thread) == 0);
	}
	while (atomic_load(&counter) < 8)
		usleep(1000);
	return check_passed("detached");
}

static int c11_main(void *argument)
{
	check_burn_ms(30);
	if (argument)
		thrd_exit(5);
	return 3;
}

static int c11(void)
{
	thrd_t threads[4];
	int result;

	for (int i = 0; i < 4; i++)
		CHECK(thrd_create(&threads[i], c11_main, i % 2 ? &threads : NULL) == thrd_success);
	for (int i = 0; i < 4; i++) {
		CHECK(thrd_join(threads[i], &result) == thrd_success);
		CHECK(result == (i % 2 ? 5 : 3));
	}
	return check_passed("c11");
}

static void *exiting_main(void *argument)
{
	(void)argument;
	check_burn_ms(30);
	check_passed("exit_process");
	exit(7);
}

static int exit_process(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, exiting_main, NULL) == 0);
	for (;;)
		check_burn_ms(5);
}

static void *asynchronous_main(void *argument)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		atomic_fetch_add(&counter, 1);
	return argument;
}

static void *deferred_main(void *argument)
{
	for (;;) {
		check_burn_ms(1);
		usleep(100);
	}
	return argument;
}

static int cancel(void)
{
	for (int i = 0; i < 40; i++) {
		pthread_t thread;
		void *result;

		CHECK(pthread_create(&thread, NULL, i % 2 ? asynchronous_main : deferred_main,
				     NULL) == 0);
		check_burn_ms(2);
		CHECK(pthread_cancel(thread) == 0);
		CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	}
	return check_passed("cancel");
}

static void on_thread_end(void *value)
{
	uintptr_t round = (uintptr_t)value;

	check_burn_ms(3);
	atomic_fetch_add(&counter, 1);
	if (round < DESTRUCTOR_ROUNDS)
		pthread_setspecific(key, (void *)(round + 1));
}

static void *keyed_main(void *argument)
{
	pthread_setspecific(key, (void *)(uintptr_t)1);
	check_burn_ms(3);
	return argument;
}

static int keys(void)
{
	CHECK(pthread_key_create(&key, on_thread_end) == 0);
	for (int i = 0; i < 10; i++) {
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, keyed_main, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	CHECK(atomic_load(&counter) == 10 * DESTRUCTOR_ROUNDS);
	return check_passed("keys");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "main_exit") == 0)
		main_exit();
	if (strcmp(mode, "detached") == 0)
		return detached();
	if (strcmp(mode, "c11") == 0)
		return c11();
	if (strcmp(mode, "exit_process") == 0)
		return exit_process();
	if (strcmp(mode, "cancel") == 0)
		return cancel();
	if (strcmp(mode, "keys") == 0)
		return keys();
	return 2;
}
