/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Changes context often, and says how much CPU time each part took, in ns:
 *   switches processes ROUNDS      two processes hand each other a byte through pipes
 *   switches threads COUNT ROUNDS  threads take turns by a futex
 *   switches changes ROUNDS        a thread that hands over, computes alone, and hands over again
 *   switches starts COUNT          threads that do nothing, one after the other
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAXIMUM 256
#define COMPUTE_NS      1200000000

static struct {
	_Atomic int mine;
	char padding[60];
} turn[THREADS_MAXIMUM];

static int count, rounds;

static long long cpu_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void hand_over(int to)
{
	atomic_store(&turn[to].mine, 1);
	syscall(SYS_futex, &turn[to].mine, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

__attribute__((noinline)) static void take_turns(int self)
{
	for (int i = 0; i < rounds; i++) {
		while (!atomic_load(&turn[self].mine))
			syscall(SYS_futex, &turn[self].mine, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		atomic_store(&turn[self].mine, 0);
		hand_over((self + 1) % count);
	}
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void compute(long long until)
{
	volatile double sum = 0;

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
		for (int i = 0; i < 20000; i++)
			sum = sum + i;
	}
}

static void *run(void *argument)
{
	take_turns((int)(intptr_t)argument);
	return NULL;
}

static void start(pthread_t *thread, void *(*routine)(void *), int self)
{
	if (pthread_create(thread, NULL, routine, (void *)(intptr_t)self))
		abort();
}

static void threads(void)
{
	pthread_t thread[THREADS_MAXIMUM];

	for (int i = 0; i < count; i++)
		start(&thread[i], run, i);
	hand_over(0);
	for (int i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

static void changes(void)
{
	long long before, computed;
	pthread_t other;

	count = 2;
	start(&other, run, 1);
	hand_over(0);
	take_turns(0);
	pthread_join(other, NULL);
	before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	compute(before + COMPUTE_NS);
	computed = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	start(&other, run, 1);
	hand_over(0);
	take_turns(0);
	pthread_join(other, NULL);
	printf("computed %lld of %lld\n", computed, cpu_ns(CLOCK_THREAD_CPUTIME_ID));
}

static void hand_bytes(int in, int out)
{
	char byte = 0;

	for (int i = 0; i < rounds; i++) {
		if (read(in, &byte, 1) != 1 || write(out, &byte, 1) != 1)
			abort();
	}
}

static void processes(void)
{
	int there[2], back[2];
	char byte = 0;
	pid_t child;

	if (pipe(there) || pipe(back))
		abort();
	child = fork();
	if (!child) {
		close(there[1]);
		close(back[0]);
		hand_bytes(there[0], back[1]);
		exit(0);
	}
	for (int i = 0; i < rounds; i++) {
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			abort();
	}
	waitpid(child, NULL, 0);
}

static void *nothing(void *argument)
{
	return argument;
}

static void starts(void)
{
	pthread_t thread;

	for (int i = 0; i < count; i++) {
		start(&thread, nothing, 0);
		pthread_join(thread, NULL);
	}
}

static long long used_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ll +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ll;
}

int main(int argc, char **argv)
{
	const char *way = argc > 2 ? argv[1] : "";

	count = argc > 3 ? atoi(argv[2]) : 1;
	rounds = argc > 2 ? atoi(argv[argc - 1]) : 0;
	if (count < 1 || rounds < 1)
		return 2;
	if (!strcmp(way, "processes"))
		processes();
	else if (!strcmp(way, "threads") && count <= THREADS_MAXIMUM)
		threads();
	else if (!strcmp(way, "changes"))
		changes();
	else if (!strcmp(way, "starts") && (count = rounds))
		starts();
	else
		return 2;
	printf("used %lld\n", used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN));
	return 0;
}
