/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls that causal profiling replaces give what they give without it: results, errno, bad
 * pointers, deadlines, cancellation in the midst of a wait, signals; and a function of the
 * program's own under such a name is the program's.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>

#include "check.h"

/* Nothing is there; compilers are not to know. */
static void *volatile bad = (void *)8;

/* The program's own, which knows nothing of files. */
int lockf(int fd, int operation, off_t size)
{
	return fd + operation + (int)size;
}

static void on_signal(int number)
{
	(void)number;
}

static void errors(void)
{
	struct timespec wrong = {.tv_nsec = 1000000000};
	struct sockaddr_in address = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char byte = 'x';

	CHECK(lockf(1, 2, 3) == 6);
	CHECK(read(-1, &byte, 1) == -1 && errno == EBADF);
	CHECK(write(-1, &byte, 1) == -1 && errno == EBADF);
	CHECK(close(-1) == -1 && errno == EBADF);
	CHECK(dup2(-1, 200) == -1 && errno == EBADF);
	CHECK(accept(fd, NULL, NULL) == -1 && errno == EOPNOTSUPP);
	CHECK(sendto(fd, &byte, 1, 0, bad, sizeof(address)) == -1 && errno == EFAULT);
	CHECK(connect(fd, bad, sizeof(address)) == -1 && errno == EFAULT);
	CHECK(connect(fd, (void *)&address, 1) == -1 && errno == EINVAL);
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, bad, NULL) == EFAULT);
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wrong, NULL) == EINVAL);
	CHECK(nanosleep(&wrong, NULL) == -1 && errno == EINVAL);
	CHECK(poll(bad, 1, 0) == -1 && errno == EFAULT);
	CHECK(epoll_ctl(fd, EPOLL_CTL_ADD, fd, bad) == -1);
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	CHECK(kill(getpid(), 999) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_futex, &wrong, FUTEX_WAIT, 1, NULL, NULL, 0) == -1 && errno == EAGAIN);
	CHECK(fcntl(fd, F_GETFD) == 0 && fcntl(fd, F_DUPFD, 100) >= 100 && close(fd) == 0);
}

/* Calls that go well leave errno alone. */
static void errno_is_kept(void)
{
	struct timespec time = {.tv_nsec = 1000000};
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	sem_t semaphore;
	int ends[2];
	char byte = 'x';

	CHECK(!pipe(ends) && !sem_init(&semaphore, 0, 1));
	errno = 4711;
	CHECK(write(ends[1], &byte, 1) == 1 && errno == 4711);
	CHECK(read(ends[0], &byte, 1) == 1 && errno == 4711);
	CHECK(!pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex) && errno == 4711);
	CHECK(!sem_wait(&semaphore) && !sem_post(&semaphore) && errno == 4711);
	CHECK(!nanosleep(&time, NULL) && errno == 4711);
	CHECK(!close(ends[0]) && !close(ends[1]) && errno == 4711);
}

static void locks(void)
{
	pthread_mutexattr_t attributes;
	pthread_mutex_t mutex;
	pthread_rwlock_t rw_lock = PTHREAD_RWLOCK_INITIALIZER;
	struct timespec past = {0, 0};
	mtx_t mtx;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	CHECK(!pthread_mutex_init(&mutex, &attributes) && !pthread_mutex_lock(&mutex));
	CHECK(pthread_mutex_lock(&mutex) == EDEADLK && !pthread_mutex_unlock(&mutex));
	CHECK(pthread_mutex_unlock(&mutex) == EPERM);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	CHECK(!pthread_mutex_init(&mutex, &attributes) && !pthread_mutex_lock(&mutex));
	CHECK(!pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex));
	CHECK(!pthread_mutex_timedlock(&mutex, &past) && !pthread_mutex_unlock(&mutex));
	CHECK(!pthread_rwlock_rdlock(&rw_lock) && !pthread_rwlock_rdlock(&rw_lock));
	CHECK(pthread_rwlock_timedwrlock(&rw_lock, &past) == ETIMEDOUT);
	CHECK(!pthread_rwlock_unlock(&rw_lock) && !pthread_rwlock_unlock(&rw_lock));
	CHECK(!pthread_rwlock_wrlock(&rw_lock) && pthread_rwlock_rdlock(&rw_lock) == EDEADLK);
	CHECK(mtx_init(&mtx, mtx_timed) == thrd_success && mtx_lock(&mtx) == thrd_success);
	CHECK(mtx_timedlock(&mtx, &past) == thrd_timedout && mtx_unlock(&mtx) == thrd_success);
}

static void interrupted(void)
{
	const struct timeval interval = {.tv_usec = 30000};
	struct itimerval timer = {interval, interval}, off = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_signal};
	sem_t semaphore;
	int ends[2];
	char byte;

	CHECK(!sigaction(SIGALRM, &action, NULL) && !sem_init(&semaphore, 0, 0) && !pipe(ends));
	setitimer(ITIMER_REAL, &timer, NULL);
	CHECK(sem_wait(&semaphore) == -1 && errno == EINTR);
	CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR);
	CHECK(poll(NULL, 0, -1) == -1 && errno == EINTR);
	CHECK(select(0, NULL, NULL, NULL, NULL) == -1 && errno == EINTR);
	CHECK(usleep(900000) == -1 && errno == EINTR);
	CHECK(sleep(30) > 0);
	CHECK(pause() == -1 && errno == EINTR);
	setitimer(ITIMER_REAL, &off, NULL);
}

/* No sleep ends before its time. */
static void deadlines(void)
{
	for (int i = 0; i < 20; i++) {
		uint64_t end = check_clock_ns(CLOCK_MONOTONIC) + 5 * NS_PER_MS;
		struct timespec time = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};

		CHECK(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL));
		CHECK(check_clock_ns(CLOCK_MONOTONIC) >= end);
	}
}

/* ---- cancellation ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t never;
static int silent[2], cleaned;

static void unlock(void *argument)
{
	cleaned++;
	pthread_mutex_unlock(argument);
}

static void *wait_condition(void *argument)
{
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(unlock, &mutex);
	for (;;)
		pthread_cond_wait(&condition, &mutex);
	pthread_cleanup_pop(1);
	return argument;
}

static void *wait_semaphore(void *argument)
{
	sem_wait(&never);
	return argument;
}

static void *wait_byte(void *argument)
{
	char byte;

	CHECK(read(silent[0], &byte, 1) == -2);
	return argument;
}

static void *wait_poll(void *argument)
{
	poll(&(struct pollfd){.fd = silent[0], .events = POLLIN}, 1, -1);
	return argument;
}

static void *wait_time(void *argument)
{
	for (;;)
		sleep(100);
	return argument;
}

static void *wait_child(void *argument)
{
	int child = fork();

	if (!child) {
		wait_time(NULL);
		_exit(0);
	}
	*(int *)argument = child;
	waitpid(child, NULL, 0);
	return argument;
}

static void cancelled(void)
{
	void *(*const waits[])(void *) = {wait_condition, wait_semaphore, wait_byte,
					  wait_poll,      wait_time,      wait_child};
	int child = 0;

	CHECK(!sem_init(&never, 0, 0) && !pipe(silent));
	for (size_t i = 0; i < 5 * sizeof(waits) / sizeof(waits[0]); i++) {
		pthread_t thread;
		void *result;

		CHECK(!pthread_create(&thread, NULL, waits[i / 5], &child));
		usleep(1000 * (unsigned)(i % 5));
		CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result));
		CHECK(result == PTHREAD_CANCELED);
		if (child)
			CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
		child = 0;
		CHECK(!pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex));
	}
	CHECK(cleaned > 0);
}

int main(void)
{
	errors();
	errno_is_kept();
	locks();
	interrupted();
	deadlines();
	cancelled();
	return check_passed("causal_waits");
}
