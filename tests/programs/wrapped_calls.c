/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Known numbers of calls that kymo wraps, with all their odd results: the wrong owner of a lock, a
 * dead owner, descriptors that are none, cancellation in the middle, children made in every way.
 * tests/e2e/wrappers.py counts them.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

#define THREADS 4
#define LOCKS   1000

extern char **environ;

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t shared_spin;
static pthread_barrier_t barrier;
static unsigned long guarded;

static void *lock_all(void *argument)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < LOCKS; i++) {
		CHECK(pthread_mutex_lock(&shared) == 0);
		guarded++;
		CHECK(pthread_mutex_unlock(&shared) == 0);
		CHECK(pthread_rwlock_wrlock(&shared_rw) == 0);
		CHECK(pthread_rwlock_unlock(&shared_rw) == 0);
		CHECK(pthread_rwlock_rdlock(&shared_rw) == 0);
		CHECK(pthread_rwlock_unlock(&shared_rw) == 0);
		CHECK(pthread_spin_lock(&shared_spin) == 0);
		CHECK(pthread_spin_unlock(&shared_spin) == 0);
	}
	return argument;
}

static void contended_locks(void)
{
	pthread_t threads[THREADS];

	CHECK(pthread_spin_init(&shared_spin, PTHREAD_PROCESS_PRIVATE) == 0);
	CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, lock_all, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(guarded == THREADS * LOCKS);
}

static void make_mutex(pthread_mutex_t *mutex, int type, int robust)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type);
	pthread_mutexattr_setrobust(&attributes, robust);
	CHECK(pthread_mutex_init(mutex, &attributes) == 0);
}

static void *die_with_lock(void *mutex)
{
	CHECK(pthread_mutex_lock(mutex) == 0);
	return NULL;
}

static void odd_locks(void)
{
	struct timespec past = {0, 0};
	pthread_mutex_t mutex;
	pthread_t thread;

	make_mutex(&mutex, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
	CHECK(pthread_mutex_unlock(&mutex) == EPERM);
	CHECK(pthread_mutex_lock(&mutex) == 0);
	CHECK(pthread_mutex_lock(&mutex) == EDEADLK);
	CHECK(pthread_mutex_trylock(&mutex) == EBUSY);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	make_mutex(&mutex, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
	CHECK(pthread_mutex_lock(&mutex) == 0);
	CHECK(pthread_mutex_lock(&mutex) == 0);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	CHECK(pthread_mutex_unlock(&mutex) == EPERM);
	make_mutex(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
	CHECK(pthread_create(&thread, NULL, die_with_lock, &mutex) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(pthread_mutex_lock(&mutex) == EOWNERDEAD);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	CHECK(pthread_mutex_lock(&mutex) == ENOTRECOVERABLE);
	make_mutex(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
	CHECK(pthread_mutex_timedlock(&mutex, &past) == 0);
	CHECK(pthread_mutex_timedlock(&mutex, &past) == ETIMEDOUT);
}

static void semaphores(void)
{
	struct timespec past = {0, 0};
	sem_t semaphore;

	CHECK(sem_init(&semaphore, 0, 1) == 0);
	CHECK(sem_wait(&semaphore) == 0);
	errno = 0;
	CHECK(sem_trywait(&semaphore) == -1 && errno == EAGAIN);
	CHECK(sem_timedwait(&semaphore, &past) == -1 && errno == ETIMEDOUT);
	CHECK(sem_post(&semaphore) == 0);
	CHECK(sem_wait(&semaphore) == 0);
}

static void input_and_output(void)
{
	struct pollfd waiting = {.events = POLLIN};
	char data[100] = "";
	int ends[2], fd;

	CHECK(pipe(ends) == 0);
	waiting.fd = ends[0];
	for (int i = 0; i < 10; i++) {
		CHECK(write(ends[1], data, sizeof(data)) == sizeof(data));
		CHECK(poll(&waiting, 1, -1) == 1);
		CHECK(read(ends[0], data, sizeof(data)) == sizeof(data));
	}
	CHECK(poll(&waiting, 1, 0) == 0);
	errno = 0;
	CHECK(read(-1, data, 1) == -1 && errno == EBADF);
	errno = EDOM; /* calls that succeed leave errno alone */
	CHECK(write(ends[1], data, 1) == 1 && errno == EDOM);
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && errno == EDOM);
	CHECK(open((const char *)16, O_RDONLY) == -1 && errno == EFAULT);
	CHECK(open("/nonexistent", O_RDONLY) == -1 && errno == ENOENT);
	fd = open("/dev/null", O_RDWR);
	CHECK(fd >= 0);
	CHECK(pwrite(fd, data, 5, 0) == 5);
	CHECK(pread(fd, data, 5, 0) == 0);
	CHECK(close(fd) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(usleep(1000) == 0);
	CHECK(sleep(0) == 0);
}

static int blocked_in[2];
static atomic_int cleaned;

static void clean(void *argument)
{
	(void)argument;
	CHECK(pthread_mutex_lock(&shared) == 0);
	cleaned++;
	CHECK(pthread_mutex_unlock(&shared) == 0);
}

static void *block_in_read(void *argument)
{
	char data;

	pthread_cleanup_push(clean, NULL);
	CHECK(read(blocked_in[0], &data, 1) == 12345);
	pthread_cleanup_pop(0);
	return argument;
}

static void cancellation(void)
{
	CHECK(pipe(blocked_in) == 0);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *result;
		CHECK(pthread_create(&thread, NULL, block_in_read, NULL) == 0);
		if (i % 2)
			usleep(2000);
		CHECK(pthread_cancel(thread) == 0);
		CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	}
	CHECK(close(blocked_in[0]) == 0 && close(blocked_in[1]) == 0);
}

static void expect_status(pid_t child, int wanted)
{
	int status;

	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == wanted);
}

static void children(void)
{
	char *arguments[] = {"sh", "-c", "exit 9", NULL};
	pid_t child;

	for (int i = 0; i < 3; i++) {
		child = fork();
		if (!child)
			_exit(7);
		expect_status(child, 7);
	}
	child = vfork();
	if (!child) {
		execl("/nonexistent", "nonexistent", NULL);
		execl("/bin/sh", "sh", "-c", "exit 8", NULL);
		_exit(99);
	}
	expect_status(child, 8);
	child = vfork();
	if (!child)
		_exit(6);
	expect_status(child, 6);
	CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
	expect_status(child, 9);
	CHECK(posix_spawn(&child, "/nonexistent", NULL, NULL, arguments, environ) == ENOENT);
	CHECK(system("exit 5") == 5 << 8);
	errno = 0;
	CHECK(wait(NULL) == -1 && errno == ECHILD);
}

int main(void)
{
	contended_locks();
	odd_locks();
	semaphores();
	input_and_output();
	cancellation();
	children();
	return check_passed("wrapped_calls");
}
