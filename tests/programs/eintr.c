/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * System calls that fail with EINTR, sleep too short or write too little when a signal handler runs
 * while they block, SA_RESTART or not. A program that installed no handler is entitled to none of
 * it. Every blocking call here follows a burst of CPU time, so that a CPU-time timer is likely to
 * be due when the call begins.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "check.h"

#define PIPE_BYTES (1u << 20)

static uint64_t started_ns;

/* Spends a random bit of CPU time and notes when the blocking call begins. */
static void before_blocking(void)
{
	check_burn_ms(1 + (uint64_t)rand() % 4);
	started_ns = check_clock_ns(CLOCK_MONOTONIC);
}

/* The call has waited its whole time. */
static void after_blocking(uint64_t ms)
{
	CHECK(check_clock_ns(CLOCK_MONOTONIC) - started_ns >= ms * NS_PER_MS);
}

static struct timespec deadline(clockid_t clock, uint64_t ms)
{
	uint64_t at = check_clock_ns(clock) + ms * NS_PER_MS;

	return (struct timespec){(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
}

static void sleeps(void)
{
	struct timespec wait = {0, 15000000}, at;

	before_blocking();
	CHECK(nanosleep(&wait, NULL) == 0);
	after_blocking(15);
	before_blocking();
	CHECK(usleep(15000) == 0);
	after_blocking(15);
	before_blocking();
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL) == 0);
	after_blocking(15);
	before_blocking();
	at = deadline(CLOCK_MONOTONIC, 15);
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == 0);
	after_blocking(15);
}

static void polls(int quiet)
{
	struct pollfd entry = {.fd = quiet, .events = POLLIN};
	struct timespec wait = {0, 15000000};
	struct timeval timeout = {0, 15000};
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	fd_set set;

	before_blocking();
	CHECK(poll(&entry, 1, 15) == 0);
	after_blocking(15);
	before_blocking();
	CHECK(ppoll(&entry, 1, &wait, NULL) == 0);
	after_blocking(15);
	FD_ZERO(&set);
	FD_SET(quiet, &set);
	before_blocking();
	CHECK(select(quiet + 1, &set, NULL, NULL, &timeout) == 0);
	after_blocking(15);
	FD_SET(quiet, &set);
	before_blocking();
	CHECK(pselect(quiet + 1, &set, NULL, NULL, &wait, NULL) == 0);
	after_blocking(15);
	CHECK(epoll >= 0);
	before_blocking();
	CHECK(epoll_wait(epoll, &event, 1, 15) == 0);
	after_blocking(15);
	before_blocking();
	CHECK(epoll_pwait(epoll, &event, 1, 15, NULL) == 0);
	after_blocking(15);
	close(epoll);
}

static void locks(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	struct timespec at, wait = {0, 15000000};
	uint32_t word = 0;
	sem_t semaphore;

	CHECK(sem_init(&semaphore, 0, 0) == 0);
	before_blocking();
	at = deadline(CLOCK_REALTIME, 15);
	CHECK(sem_timedwait(&semaphore, &at) == -1 && errno == ETIMEDOUT);
	before_blocking();
	at = deadline(CLOCK_REALTIME, 15);
	pthread_mutex_lock(&mutex);
	CHECK(pthread_cond_timedwait(&condition, &mutex, &at) == ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	before_blocking();
	CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait, NULL, 0) == -1 &&
	      errno == ETIMEDOUT);
	after_blocking(15);
	sem_destroy(&semaphore);
}

static void signals(void)
{
	struct timespec wait = {0, 15000000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	before_blocking();
	CHECK(sigtimedwait(&set, NULL, &wait) == -1 && errno == EAGAIN);
	after_blocking(15);
	CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
}

static void receives(void)
{
	struct timeval timeout = {0, 20000};
	int pair[2];
	char byte;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0);
	before_blocking();
	CHECK(recv(pair[0], &byte, 1, 0) == -1 && errno == EAGAIN);
	close(pair[0]);
	close(pair[1]);
}

/* Wakes a blocked System V call after a while, by a thread of its own. */
struct waker {
	pthread_t thread;
	int queue, semaphores;
};

static void *waker_main(void *argument)
{
	struct waker *waker = argument;
	struct {
		long type;
		char text[1];
	} message = {1, {'x'}};
	struct sembuf up = {0, 1, 0};

	usleep(20000);
	CHECK(msgsnd(waker->queue, &message, 1, 0) == 0);
	usleep(20000);
	CHECK(semop(waker->semaphores, &up, 1) == 0);
	return NULL;
}

static void system_v(void)
{
	struct waker waker = {.queue = msgget(IPC_PRIVATE, 0600),
			      .semaphores = semget(IPC_PRIVATE, 1, 0600)};
	struct sembuf down = {0, -1, 0};
	struct {
		long type;
		char text[1];
	} message;

	CHECK(waker.queue >= 0 && waker.semaphores >= 0);
	CHECK(pthread_create(&waker.thread, NULL, waker_main, &waker) == 0);
	before_blocking();
	CHECK(msgrcv(waker.queue, &message, 1, 0, 0) == 1);
	CHECK(semop(waker.semaphores, &down, 1) == 0);
	pthread_join(waker.thread, NULL);
	msgctl(waker.queue, IPC_RMID, NULL);
	semctl(waker.semaphores, 0, IPC_RMID);
}

static void *drain_main(void *argument)
{
	char buffer[4096];
	size_t total = 0;

	while (total < PIPE_BYTES) {
		ssize_t got = read(*(int *)argument, buffer, sizeof(buffer));

		CHECK(got > 0);
		total += (size_t)got;
		check_burn_ms(1);
	}
	return NULL;
}

/* A blocking write() to a pipe returns short only when a handler ran in between. */
static void pipe_write(void)
{
	char *data = calloc(1, PIPE_BYTES);
	int ends[2];
	pthread_t reader;

	CHECK(data && pipe(ends) == 0);
	CHECK(pthread_create(&reader, NULL, drain_main, &ends[0]) == 0);
	before_blocking();
	CHECK(write(ends[1], data, PIPE_BYTES) == PIPE_BYTES);
	pthread_join(reader, NULL);
	close(ends[0]);
	close(ends[1]);
	free(data);
}

/* Keeps a second thread busy, so that process-directed signals have somewhere else to go. */
static void *busy_main(void *argument)
{
	check_burn_ms(400);
	return argument;
}

int main(void)
{
	int ends[2];
	pthread_t busy;

	srand(1);
	CHECK(pipe(ends) == 0);
	CHECK(pthread_create(&busy, NULL, busy_main, NULL) == 0);
	for (int round = 0; round < 8; round++) {
		sleeps();
		polls(ends[0]);
		locks();
		signals();
		receives();
		system_v();
	}
	pipe_write();
	before_blocking();
	CHECK(sleep(1) == 0);
	after_blocking(1000);
	pthread_join(busy, NULL);
	return check_passed("eintr");
}
