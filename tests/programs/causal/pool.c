/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A pool of threads that takes tasks from a queue; the one that gave them waits for all of a batch
 * and merges. One task of a batch is large: all others wait for it.
 */
#include <pthread.h>

#include "workload.h"

#define WORKERS 2
#define TASKS   5

WORK(large_task)
WORK(small_task)
WORK(merge)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_task = PTHREAD_COND_INITIALIZER, all_done = PTHREAD_COND_INITIALIZER;
static unsigned next_task = TASKS, running;
static bool over;
static double length;

static void *run_worker(void *argument)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (next_task == TASKS && !over)
			pthread_cond_wait(&some_task, &lock);
		if (over)
			break;
		bool large = next_task++ == 0;
		running++;
		pthread_mutex_unlock(&lock);
		if (large)
			large_task(0.8 * length);
		else
			small_task(0.1 * length);
		pthread_mutex_lock(&lock);
		running--;
		if (next_task == TASKS && !running)
			pthread_cond_signal(&all_done);
	}
	pthread_mutex_unlock(&lock);
	return argument;
}

static void run_batch(void)
{
	pthread_mutex_lock(&lock);
	next_task = 0;
	pthread_cond_broadcast(&some_task);
	while (next_task < TASKS || running)
		pthread_cond_wait(&all_done, &lock);
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	static struct workload_point batch = {.name = "batch"};
	pthread_t workers[WORKERS];
	workload_start(argc, argv);
	length = workload_number("length", 1500);
	for (unsigned i = 0; i < WORKERS; i++)
		CHECK(pthread_create(&workers[i], NULL, run_worker, NULL) == 0);
	while (workload_running()) {
		run_batch();
		merge(0.2 * length);
		workload_visit(&batch);
	}
	pthread_mutex_lock(&lock);
	over = true;
	pthread_cond_broadcast(&some_task);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < WORKERS; i++)
		CHECK(pthread_join(workers[i], NULL) == 0);
	return workload_finish();
}
