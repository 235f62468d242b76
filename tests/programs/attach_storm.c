/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A process that is hardly ever at a good place to attach to: all its threads allocate, free, open
 * and close libraries without a pause. Prints a line when it has gone round often enough and after
 * SIGTERM "ok"; a thread that does not get on any more shows as a missing round.
 *
 * usage: attach_storm THREADS
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS_MAX 64

static _Atomic unsigned long rounds[THREADS_MAX];
static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static void *storm(void *argument)
{
	unsigned long number = (unsigned long)argument;
	void *blocks[64] = {NULL};

	for (unsigned long i = 0; !ended; i++) {
		free(blocks[i % 64]);
		blocks[i % 64] = malloc(16 + i * 37 % 5000);
		memset(blocks[i % 64], (int)i, 16);
		if (i % 256 == number % 256) {
			void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);

			if (!library || !dlsym(library, "cos"))
				abort();
			dlclose(library);
		}
		atomic_fetch_add(&rounds[number], 1);
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	return NULL;
}

/* Does every thread get on? */
static void watch(unsigned long count)
{
	static const struct timespec second = {.tv_sec = 5};
	unsigned long before[THREADS_MAX];

	for (unsigned long i = 0; i < count; i++)
		before[i] = atomic_load(&rounds[i]);
	nanosleep(&second, NULL);
	for (unsigned long i = 0; i < count && !ended; i++) {
		if (atomic_load(&rounds[i]) == before[i]) {
			printf("thread %lu stands still\n", i);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
	pthread_t threads[THREADS_MAX];

	if (count < 1 || count > THREADS_MAX)
		return 2;
	signal(SIGTERM, end);
	for (unsigned long i = 0; i + 1 < count; i++)
		pthread_create(&threads[i], NULL, storm, (void *)i);
	if (argc > 2) /* the main thread as well */
		storm((void *)(count - 1));
	while (!ended)
		watch(count - 1);
	for (unsigned long i = 0; i + 1 < count; i++)
		pthread_join(threads[i], NULL);
	puts("ok");
	return 0;
}
