/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Three stages between bounded queues: the first one holds all others up, until it is as fast as
 * the second.
 */
#include <pthread.h>

#include "workload.h"

#define QUEUE_SIZE 8

WORK(stage_read)
WORK(stage_convert)
WORK(stage_write)

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	unsigned count;
	bool closed;
};

static struct queue queues[2] = {
	{.lock = PTHREAD_MUTEX_INITIALIZER,
	 .not_empty = PTHREAD_COND_INITIALIZER,
	 .not_full = PTHREAD_COND_INITIALIZER},
	{.lock = PTHREAD_MUTEX_INITIALIZER,
	 .not_empty = PTHREAD_COND_INITIALIZER,
	 .not_full = PTHREAD_COND_INITIALIZER},
};
static double length;

static void put(struct queue *queue, bool close)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->count == QUEUE_SIZE)
		pthread_cond_wait(&queue->not_full, &queue->lock);
	queue->count += !close;
	queue->closed = close;
	pthread_cond_signal(&queue->not_empty);
	pthread_mutex_unlock(&queue->lock);
}

static bool take(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (!queue->count && !queue->closed)
		pthread_cond_wait(&queue->not_empty, &queue->lock);
	bool some = queue->count > 0;
	queue->count -= some;
	pthread_cond_signal(&queue->not_full);
	pthread_mutex_unlock(&queue->lock);
	return some;
}

static void *run_convert(void *argument)
{
	while (take(&queues[0])) {
		stage_convert(0.5 * length);
		put(&queues[1], false);
	}
	put(&queues[1], true);
	return argument;
}

static void *run_write(void *argument)
{
	static struct workload_point written = {.name = "written"};
	while (take(&queues[1])) {
		stage_write(0.25 * length);
		workload_visit(&written);
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	workload_start(argc, argv);
	length = workload_number("length", 1000);
	CHECK(pthread_create(&threads[0], NULL, run_convert, NULL) == 0);
	CHECK(pthread_create(&threads[1], NULL, run_write, NULL) == 0);
	while (workload_running()) {
		stage_read(length);
		put(&queues[0], false);
	}
	put(&queues[0], true);
	CHECK(pthread_join(threads[0], NULL) == 0);
	CHECK(pthread_join(threads[1], NULL) == 0);
	return workload_finish();
}
