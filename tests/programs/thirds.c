/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads that measure by themselves how their real time divides: running (their CPU clock),
 * waiting for a CPU (the run queue's count), the rest blocked.
 *
 *   thirds KIND THREADS SECONDS
 *
 * KIND: compute; mixed (compute, then sleep); futex (pairs that hand a turn to each other and
 * compute a little); pool (tasks from a queue); fault (reads of a file that is dropped from
 * memory); nap (short sleeps between short computations); fork (a child of its own that computes as
 * well). Writes a line a thread: pid, tid, elapsed, running, waiting, in computes(), in rests(),
 * seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256

struct member {
	pthread_t thread;
	int index;
	double elapsed, running, waiting, computing, resting;
	long tid;
};

static struct member members[THREADS_MAX];
static const char *kind;
static int member_count;
static double seconds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn[THREADS_MAX];
static long queued_tasks;

static double clock_of(int id)
{
	struct timespec time;

	clock_gettime(id, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double run_delay(void)
{
	char text[128] = "";
	unsigned long long run = 0, delay = 0;
	int fd = open("/proc/thread-self/schedstat", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%llu %llu", &run, &delay) != 2)
		exit(77);
	close(fd);
	return (double)delay / 1e9;
}

__attribute__((noinline)) static void computes(struct member *member, double cpu_seconds)
{
	double begin = clock_of(CLOCK_MONOTONIC),
	       end = clock_of(CLOCK_THREAD_CPUTIME_ID) + cpu_seconds;
	volatile double sum = 0;

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (int i = 0; i < 20000; i++)
			sum = sum + 1.0 / (i + 1);
	}
	member->computing += clock_of(CLOCK_MONOTONIC) - begin;
}

__attribute__((noinline)) static void rests(struct member *member, double length)
{
	double begin = clock_of(CLOCK_MONOTONIC);
	struct timespec time = {0, (long)(length * 1e9)};

	nanosleep(&time, NULL);
	member->resting += clock_of(CLOCK_MONOTONIC) - begin;
}

/* Waits for the other one of the pair. */
__attribute__((noinline)) static void takes_turn(struct member *member, double until)
{
	double begin = clock_of(CLOCK_MONOTONIC);
	int pair = member->index / 2, me = member->index % 2;
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 1;
	pthread_mutex_lock(&lock);
	while (turn[pair] != me && clock_of(CLOCK_MONOTONIC) < until &&
	       pthread_cond_timedwait(&turned, &lock, &limit) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&lock);
	member->resting += clock_of(CLOCK_MONOTONIC) - begin;
}

static void gives_turn(const struct member *member)
{
	pthread_mutex_lock(&lock);
	turn[member->index / 2] = 1 - member->index % 2;
	pthread_cond_broadcast(&turned);
	pthread_mutex_unlock(&lock);
}

/* The first member makes tasks, the others work them off. */
static void pool(struct member *member, double until)
{
	double begin;

	while (clock_of(CLOCK_MONOTONIC) < until) {
		if (member->index == 0) {
			rests(member, 0.002);
			pthread_mutex_lock(&lock);
			queued_tasks += 2;
			pthread_cond_broadcast(&turned);
			pthread_mutex_unlock(&lock);
			continue;
		}
		begin = clock_of(CLOCK_MONOTONIC);
		pthread_mutex_lock(&lock);
		while (!queued_tasks && clock_of(CLOCK_MONOTONIC) < until) {
			struct timespec limit;

			clock_gettime(CLOCK_REALTIME, &limit);
			limit.tv_sec += 1;
			pthread_cond_timedwait(&turned, &lock, &limit);
		}
		queued_tasks -= queued_tasks > 0;
		pthread_mutex_unlock(&lock);
		member->resting += clock_of(CLOCK_MONOTONIC) - begin;
		computes(member, 0.003);
	}
}

__attribute__((noinline)) static void reads_dropped(struct member *member)
{
	static __thread char buffer[1 << 16];
	double begin = clock_of(CLOCK_MONOTONIC);
	int fd = open("/proc/self/exe", O_RDONLY);

	fdatasync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
	member->resting += clock_of(CLOCK_MONOTONIC) - begin;
}

static void works(struct member *member, double until)
{
	while (clock_of(CLOCK_MONOTONIC) < until) {
		if (!strcmp(kind, "mixed")) {
			computes(member, 0.03);
			rests(member, 0.03);
		} else if (!strcmp(kind, "nap")) {
			computes(member, 0.0007);
			rests(member, 0.0003);
		} else if (!strcmp(kind, "futex")) {
			takes_turn(member, until);
			computes(member, 0.001);
			gives_turn(member);
		} else if (!strcmp(kind, "fault")) {
			reads_dropped(member);
			computes(member, 0.002);
		} else if (!strcmp(kind, "pool")) {
			pool(member, until);
		} else {
			computes(member, 0.01);
		}
	}
}

static void *run(void *argument)
{
	struct member *member = argument;
	double begin = clock_of(CLOCK_MONOTONIC), cpu = clock_of(CLOCK_THREAD_CPUTIME_ID),
	       delay = run_delay();

	member->tid = syscall(SYS_gettid);
	works(member, begin + seconds);
	member->elapsed = clock_of(CLOCK_MONOTONIC) - begin;
	member->running = clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
	member->waiting = run_delay() - delay;
	return NULL;
}

static void print(const struct member *member)
{
	char line[200];
	int length = snprintf(line, sizeof(line), "%d %ld %.4f %.4f %.4f %.4f %.4f\n",
			      (int)getpid(), member->tid, member->elapsed, member->running,
			      member->waiting, member->computing, member->resting);

	if (write(1, line, (size_t)length) != length)
		exit(1);
}

int main(int argc, char **argv)
{
	pid_t child = 0;

	if (argc != 4)
		return 2;
	kind = argv[1];
	member_count = atoi(argv[2]);
	seconds = atof(argv[3]);
	if (member_count < 1 || member_count > THREADS_MAX)
		return 2;
	if (!strcmp(kind, "fork"))
		child = fork();
	for (int i = 0; i < member_count; i++) {
		members[i].index = i;
		if (pthread_create(&members[i].thread, NULL, run, &members[i]))
			return 1;
	}
	for (int i = 0; i < member_count; i++)
		pthread_join(members[i].thread, NULL);
	for (int i = 0; i < member_count; i++)
		print(&members[i]);
	if (child)
		waitpid(child, NULL, 0);
	return 0;
}
