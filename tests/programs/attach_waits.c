/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One thread that waits all its life, in one kind of system call, always for 150 ms: no call may
 * end early or with EINTR because a profiler came or went. Ends well after SIGTERM, or by a timer
 * of its own after five minutes, and says how long the longest wait was.
 *
 * usage: attach_waits KIND     nanosleep absolute poll select pselect epoll semop sigtimedwait
 *                              condition receive read work
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "check.h"

#define WAIT_MS 150
#define WAIT_NS (WAIT_MS * NS_PER_MS)

static volatile sig_atomic_t ended;
static const struct timespec pause_time = {0, WAIT_NS};

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* 0 or 1: timed out, as it should; the end may cut the last call short. */
static void check_result(long result, long timed_out, int error)
{
	CHECK(ended || (result == timed_out && (!error || errno == error)));
}

static void wait_nanosleep(void)
{
	check_result(nanosleep(&pause_time, NULL), 0, 0);
}

static void wait_absolute(void)
{
	uint64_t when = check_clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
	struct timespec time = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)};

	CHECK(ended || clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == 0 || ended);
}

static void wait_poll(void)
{
	check_result(poll(NULL, 0, WAIT_MS), 0, 0);
}

static void wait_select(void)
{
	struct timeval time = {0, WAIT_MS * 1000};

	check_result(select(0, NULL, NULL, NULL, &time), 0, 0);
}

static void wait_pselect(void)
{
	sigset_t none;

	sigemptyset(&none);
	check_result(pselect(0, NULL, NULL, NULL, &pause_time, &none), 0, 0);
}

static void wait_epoll(void)
{
	static int epoll;
	struct epoll_event event;

	if (!epoll)
		epoll = epoll_create1(EPOLL_CLOEXEC);
	check_result(epoll_wait(epoll, &event, 1, WAIT_MS), 0, 0);
}

static void wait_semop(void)
{
	static int id = -1;
	struct sembuf wait = {0, -1, 0};

	if (id < 0) {
		id = semget(IPC_PRIVATE, 1, 0600);
		CHECK(id >= 0);
	}
	check_result(semtimedop(id, &wait, 1, &pause_time), -1, EAGAIN);
	if (ended)
		semctl(id, 0, IPC_RMID);
}

static void wait_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	check_result(sigtimedwait(&set, NULL, &pause_time), -1, EAGAIN);
}

static void wait_condition(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	uint64_t when = check_clock_ns(CLOCK_REALTIME) + WAIT_NS;
	struct timespec time = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)};

	pthread_mutex_lock(&mutex);
	CHECK(pthread_cond_timedwait(&condition, &mutex, &time) == ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
}

static void wait_receive(void)
{
	static int pair[2];
	/* The kernel counts this one in its ticks, the one under way included. */
	struct timeval time = {0, (WAIT_MS + 10) * 1000};
	char byte;

	if (!pair[0]) {
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		CHECK(!setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	}
	check_result(recv(pair[0], &byte, 1, 0), -1, EAGAIN);
}

static int read_end;

static void *write_now_and_then(void *argument)
{
	int write_end = *(int *)argument;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (;;) {
		nanosleep(&pause_time, NULL);
		if (write(write_end, "x", 1) != 1)
			return NULL;
	}
}

static void wait_read(void)
{
	static int pipe_ends[2];
	pthread_t thread;
	char byte;

	if (!read_end) {
		CHECK(!pipe(pipe_ends));
		read_end = pipe_ends[0];
		CHECK(!pthread_create(&thread, NULL, write_now_and_then, &pipe_ends[1]));
	}
	check_result(read(read_end, &byte, 1), 1, 0);
}

static void work(void)
{
	check_burn_ms(WAIT_MS);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool exact; /* the time that it waits is not more for being interrupted */
} kinds[] = {
	{"nanosleep", wait_nanosleep, true}, {"absolute", wait_absolute, true},
	{"poll", wait_poll, true},           {"select", wait_select, true},
	{"pselect", wait_pselect, true},     {"epoll", wait_epoll, false},
	{"semop", wait_semop, false},        {"sigtimedwait", wait_sigtimedwait, false},
	{"condition", wait_condition, true}, {"receive", wait_receive, false},
	{"read", wait_read, false},          {"work", work, false},
};

int main(int argc, char **argv)
{
	uint64_t longest = 0;
	unsigned kind = 0;
	struct sigaction action = {.sa_handler = end};

	while (kind < sizeof(kinds) / sizeof(kinds[0]) &&
	       (argc < 2 || strcmp(argv[1], kinds[kind].name)))
		kind++;
	if (kind == sizeof(kinds) / sizeof(kinds[0]))
		return 2;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	alarm(300);
	while (!ended) {
		uint64_t begin = check_clock_ns(CLOCK_MONOTONIC), took;

		errno = 0;
		kinds[kind].run();
		took = check_clock_ns(CLOCK_MONOTONIC) - begin;
		CHECK(ended || kinds[kind].run == wait_read || took >= WAIT_NS - 2 * NS_PER_MS);
		if (kinds[kind].exact && took > longest)
			longest = took;
	}
	printf("longest wait: %llu ms\n", (unsigned long long)(longest / NS_PER_MS));
	return check_passed(argv[1]);
}
