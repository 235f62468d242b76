/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocates a known number of blocks at known places and frees a known part of them, in the main
 * thread, in other threads, and in a forked child; each function that allocates is a site.
 *
 * Arguments: scenario (plain, threads, fork, resize, family, libc, next, peak, steady,
 * signal NUMBER); it prints "ok".
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 1000, THREADS = 4 };

/* A function that stays what it is; clang makes no clones. */
#ifdef __clang__
#define SITE __attribute__((noinline))
#else
#define SITE __attribute__((noinline, noclone))
#endif

static void *volatile kept;

/* 1000 of 100 bytes, all freed. */
SITE static void site_freed(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *block = malloc(100);

		kept = block;
		free(block);
	}
}

/* 1000 of 24 bytes, every tenth is lost. */
SITE static void site_leaks(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *block = calloc(3, 8);

		kept = block;
		if (i % 10)
			free(block);
	}
}

/* 100 of 1 MiB at once: a peak of 100 MiB. */
SITE static void site_peak(void)
{
	static void *blocks[100];

	for (int i = 0; i < 100; i++)
		blocks[i] = malloc(1 << 20);
	for (int i = 0; i < 100; i++)
		free(blocks[i]);
}

/* A block grows from 1 to 128 bytes in 8 steps, 1000 times. */
SITE static void site_grows(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		char *block = NULL;

		for (size_t size = 1; size <= 128; size *= 2) {
			block = realloc(block, size);
			memset(block, 1, size);
		}
		kept = block;
		free(block);
	}
}

SITE static void site_family(void)
{
	void *aligned = NULL;

	for (int i = 0; i < BLOCKS; i++) {
		void *blocks[] = {
			aligned_alloc(64, 128),
			memalign(32, 64),
			valloc(10),
			pvalloc(10),
			reallocarray(NULL, 3, 5),
			strdup("twelve chars"),
			strndup("twelve chars", 6),
		};

		if (posix_memalign(&aligned, 256, 100))
			abort();
		free(aligned);
		for (unsigned j = 0; j < sizeof(blocks) / sizeof(blocks[0]); j++) {
			if (!blocks[j])
				abort();
			kept = blocks[j];
			free(blocks[j]);
		}
	}
}

/* What libc allocates for its caller: a line of 120 bytes, which the program frees. */
SITE static void site_libc(void)
{
	for (int i = 0; i < 10; i++) {
		char *line = NULL;
		size_t size = 0;
		FILE *file = fmemopen((char[]){"one line\n"}, 9, "r");

		if (getline(&line, &size, file) != 9)
			abort();
		fclose(file);
		free(line);
	}
}

/* 10 of 202 bytes by a pointer that the next object after this one defines. */
SITE static void site_next(void)
{
	void *(*next)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");

	for (int i = 0; i < 10; i++)
		kept = next(202);
}

SITE static void *site_first(size_t size)
{
	void *block = malloc(size);

	kept = block;
	return block;
}

SITE static void *site_second(size_t size)
{
	void *block = calloc(size, 1);

	kept = block;
	return block;
}

/* 60 MB, then 50 and 30 MB at once: the process's peak is not the sum of its sites' peaks. */
static void peak(void)
{
	void *one, *other;

	free(site_first(60000000));
	one = site_second(50000000);
	other = site_first(30000000);
	free(one);
	free(other);
}

/* 100 blocks every 50 ms for 1.5 s. */
static void steady(void)
{
	for (int i = 0; i < 30; i++) {
		for (int j = 0; j < 100; j++)
			site_first(50);
		usleep(50000);
	}
}

static void *thread(void *argument)
{
	site_freed();
	site_leaks();
	return argument;
}

static void threads(void)
{
	pthread_t ids[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, thread, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
}

static void *busy(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		site_freed();
	return NULL;
}

/* Children of a process whose other threads are in the midst of allocating. */
static void forks(void)
{
	pthread_t id;
	int stop = 0;

	pthread_create(&id, NULL, busy, &stop);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status = 1;

		if (!child) {
			site_leaks();
			exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			abort();
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(id, NULL);
}

int main(int count, char **arguments)
{
	const char *scenario = count > 1 ? arguments[1] : "plain";

	if (!strcmp(scenario, "plain")) {
		site_freed();
		site_leaks();
		site_peak();
	} else if (!strcmp(scenario, "threads")) {
		threads();
	} else if (!strcmp(scenario, "fork")) {
		forks();
	} else if (!strcmp(scenario, "resize")) {
		site_grows();
	} else if (!strcmp(scenario, "family")) {
		site_family();
	} else if (!strcmp(scenario, "libc")) {
		site_libc();
	} else if (!strcmp(scenario, "next")) {
		site_next();
	} else if (!strcmp(scenario, "peak")) {
		peak();
	} else if (!strcmp(scenario, "steady")) {
		steady();
	} else if (!strcmp(scenario, "signal") && count > 2) {
		site_leaks();
		raise(atoi(arguments[2]));
	} else {
		return 2;
	}
	if (write(1, "ok\n", 3) != 3)
		return 1;
	return 0;
}
