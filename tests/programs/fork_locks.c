/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * fork() from several threads while others hold locks, allocate, wait for conditions and open and
 * close libraries. Each child locks, allocates and starts a thread; a lock that a profiler took in
 * the parent and left locked in the child stops it for ever.
 *
 * usage: fork_locks [ROUNDS]
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

#define FORKERS 3

static atomic_int stop, rounds;
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long guarded;

static void *locking_main(void *argument)
{
	while (!atomic_load(&stop)) {
		CHECK(pthread_mutex_lock(&shared) == 0);
		guarded++;
		CHECK(pthread_cond_broadcast(&changed) == 0);
		CHECK(pthread_mutex_unlock(&shared) == 0);
		CHECK(pthread_rwlock_wrlock(&shared_rw) == 0);
		guarded++;
		CHECK(pthread_rwlock_unlock(&shared_rw) == 0);
	}
	return argument;
}

static void *waiting_main(void *argument)
{
	while (!atomic_load(&stop)) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec = (until.tv_nsec + 1000000) % 1000000000;
		CHECK(pthread_mutex_lock(&shared) == 0);
		pthread_cond_timedwait(&changed, &shared, &until);
		CHECK(pthread_mutex_unlock(&shared) == 0);
	}
	return argument;
}

static void *allocating_main(void *argument)
{
	while (!atomic_load(&stop)) {
		void *blocks[32];

		for (size_t i = 0; i < 32; i++)
			CHECK((blocks[i] = malloc(100 * (i + 1) * (i + 1))));
		for (size_t i = 0; i < 32; i++)
			free(blocks[i]);
	}
	return argument;
}

static void *loading_main(void *argument)
{
	while (!atomic_load(&stop)) {
		void *library = dlopen("libutil.so.1", RTLD_NOW);

		CHECK(library && dlsym(library, "forkpty"));
		CHECK(dlclose(library) == 0);
	}
	return argument;
}

static void *child_thread_main(void *argument)
{
	free(malloc(5000));
	return argument;
}

static void child_main(void)
{
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		CHECK(pthread_mutex_lock(&own) == 0);
		free(malloc(1000));
		CHECK(pthread_mutex_unlock(&own) == 0);
	}
	CHECK(pthread_create(&thread, NULL, child_thread_main, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	_exit(7);
}

static void *forking_main(void *argument)
{
	while (atomic_fetch_sub(&rounds, 1) > 0) {
		int status;
		pid_t child = fork();

		if (child == 0)
			child_main();
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
			fprintf(stderr, "fork_locks: wait status %#x\n", (unsigned)status);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	}
	return argument;
}

int main(int argc, char **argv)
{
	void *(*const busy_mains[])(void *) = {locking_main, locking_main, waiting_main,
					       allocating_main, loading_main};
	pthread_t busy[5], forking[FORKERS];

	atomic_store(&rounds, argc > 1 ? atoi(argv[1]) : 100);
	for (int i = 0; i < 5; i++)
		CHECK(pthread_create(&busy[i], NULL, busy_mains[i], NULL) == 0);
	for (int i = 0; i < FORKERS; i++)
		CHECK(pthread_create(&forking[i], NULL, forking_main, NULL) == 0);
	for (int i = 0; i < FORKERS; i++)
		CHECK(pthread_join(forking[i], NULL) == 0);
	atomic_store(&stop, 1);
	for (int i = 0; i < 5; i++)
		CHECK(pthread_join(busy[i], NULL) == 0);
	return check_passed("fork_locks");
}
