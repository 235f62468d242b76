/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Two threads that do their parts and meet, again and again: speeding up `slow_half` gains until
 * `fast_half` is the slower one, speeding up that one gains nothing. By every way of waiting that a
 * program has; a profiler that does not know one of them predicts something else there.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "workload.h"

WORK(slow_half)
WORK(fast_half)

static double length;
static _Atomic uint64_t last_round = UINT64_MAX; /* set by side 0 before it meets there */

/* ---- ways to meet; each is called by both sides ---- */

static pthread_barrier_t barrier;

static void meet_at_barrier(unsigned side)
{
	(void)side;
	pthread_barrier_wait(&barrier);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static unsigned arrived, round_number;

static void meet_at_condition(unsigned side)
{
	(void)side;
	CHECK(pthread_mutex_lock(&mutex) == 0);
	unsigned mine = round_number;
	if (++arrived == 2) {
		arrived = 0;
		round_number++;
		CHECK(pthread_cond_broadcast(&condition) == 0);
	}
	while (mine == round_number)
		CHECK(pthread_cond_wait(&condition, &mutex) == 0);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static sem_t semaphores[2];

static void meet_at_semaphores(unsigned side)
{
	CHECK(sem_post(&semaphores[!side]) == 0);
	while (sem_wait(&semaphores[side]) < 0)
		CHECK(errno == EINTR);
}

static _Atomic uint32_t futex_arrived, futex_round;

static void meet_at_futex(unsigned side)
{
	(void)side;
	uint32_t mine = futex_round;
	if (atomic_fetch_add(&futex_arrived, 1) == 1) {
		futex_arrived = 0;
		futex_round++;
		syscall(SYS_futex, &futex_round, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		return;
	}
	while (futex_round == mine)
		syscall(SYS_futex, &futex_round, FUTEX_WAIT_PRIVATE, mine, NULL, NULL, 0);
}

static mtx_t c11_mutex;
static cnd_t c11_condition;

static void meet_in_c11(unsigned side)
{
	(void)side;
	CHECK(mtx_lock(&c11_mutex) == thrd_success);
	unsigned mine = round_number;
	if (++arrived == 2) {
		arrived = 0;
		round_number++;
		CHECK(cnd_broadcast(&c11_condition) == thrd_success);
	}
	while (mine == round_number)
		CHECK(cnd_wait(&c11_condition, &c11_mutex) == thrd_success);
	CHECK(mtx_unlock(&c11_mutex) == thrd_success);
}

static int pipes[2][2];

static void meet_at_pipes(unsigned side)
{
	char byte = 0;
	CHECK(write(pipes[side][1], &byte, 1) == 1);
	while (read(pipes[!side][0], &byte, 1) != 1)
		CHECK(errno == EINTR);
}

static _Atomic uint32_t spinning[2];

static void meet_spinning(unsigned side)
{
	uint32_t mine = atomic_fetch_add(&spinning[side], 1) + 1;
	while (spinning[!side] < mine)
		__builtin_ia32_pause();
}

static const char *const kinds[] = {"barrier", "cond", "sem", "futex", "c11", "pipe", "spin", NULL};
static void (*const meets[])(unsigned side) = {
	meet_at_barrier, meet_at_condition, meet_at_semaphores, meet_at_futex,
	meet_in_c11,     meet_at_pipes,     meet_spinning,
};
static void (*meet)(unsigned side);

static void *run_fast_side(void *argument)
{
	for (uint64_t round = 0; round != last_round; round++) {
		fast_half(0.7 * length);
		meet(1);
	}
	return argument;
}

static int run_fast_side_c11(void *argument)
{
	run_fast_side(argument);
	return 0;
}

static void run_slow_side(void)
{
	static struct workload_point met = {.name = "met"};
	for (uint64_t round = 0; round != last_round; round++) {
		slow_half(length);
		workload_visit(&met);
		if (!workload_running())
			last_round = round + 1;
		meet(0);
	}
}

int main(int argc, char **argv)
{
	workload_start(argc, argv);
	length = workload_number("length", 2000);
	unsigned kind = workload_choice("kind", kinds);
	meet = meets[kind];
	CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
	CHECK(sem_init(&semaphores[0], 0, 0) == 0 && sem_init(&semaphores[1], 0, 0) == 0);
	CHECK(mtx_init(&c11_mutex, mtx_plain) == thrd_success);
	CHECK(cnd_init(&c11_condition) == thrd_success);
	CHECK(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0);
	if (meet == meet_in_c11) {
		thrd_t thread;
		CHECK(thrd_create(&thread, run_fast_side_c11, NULL) == thrd_success);
		run_slow_side();
		CHECK(thrd_join(thread, NULL) == thrd_success);
	} else {
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, run_fast_side, NULL) == 0);
		run_slow_side();
		CHECK(pthread_join(thread, NULL) == 0);
	}
	return workload_finish();
}
