/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Many threads, many communicators, many records, and processes that end in the midst of it:
 * nothing is lost without being counted.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drive.h"

#define GPU     1756135989724672000u
#define THREADS 8

static const struct drive_identity identity = {"many", 0x99, 1, 2, 0};

/* ---- one communicator, several threads: the application's and the proxy's ---- */

#define HANDLES 512

static struct driver shared;
static void *shared_context;
static _Atomic(void *) queue[HANDLES];
static _Atomic unsigned produced, consumed;
static _Atomic int producers_done;

static void *produce(void *argument)
{
	uint64_t first = (uint64_t)(uintptr_t)argument * 1000;

	for (uint64_t i = 0; i < 400; i++) {
		void *operation =
			drive_collective(&shared, shared_context, NULL, "AllReduce", first + i, 2);
		unsigned at = atomic_fetch_add(&produced, 1);

		while (at - atomic_load(&consumed) >= HANDLES - THREADS)
			usleep(100);
		atomic_store(&queue[at % HANDLES], operation);
		drive_stop(&shared, operation);
	}
	return NULL;
}

/* Channels begin while the operation is still being put into its stream. */
static void *progress(void *argument)
{
	uint64_t time = GPU;

	(void)argument;
	for (;;) {
		unsigned at = atomic_load(&consumed);
		void *operation = atomic_exchange(&queue[at % HANDLES], NULL), *channels[2];

		if (!operation) {
			if (atomic_load(&producers_done) && at == atomic_load(&produced))
				return NULL;
			usleep(50);
			continue;
		}
		for (unsigned i = 0; i < 2; i++)
			channels[i] =
				drive_channel(&shared, shared_context, operation, i, time += 10);
		for (unsigned i = 0; i < 2; i++)
			drive_channel_stop(&shared, channels[i], time += 10);
		atomic_fetch_add(&consumed, 1);
	}
}

static void threads(void)
{
	pthread_t ids[THREADS], proxy;

	shared = drive_open(5);
	shared_context = drive_init(&shared, &identity);
	pthread_create(&proxy, NULL, progress, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, produce, (void *)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	atomic_store(&producers_done, 1);
	pthread_join(proxy, NULL);
	drive_wait_finished(THREADS * 400);
}

static void test_threads(void **state)
{
	const struct recording *recording;

	(void)state;
	drive_directory();
	assert_child(threads);
	recording = drive_read();
	assert_int_equal(recording->operations + recording->header->losses[NCCL_LOSS_OPERATIONS],
			 THREADS * 400);
	assert_int_equal(recording->communicator[0]->operations, THREADS * 400);
	for (size_t i = 0; i < recording->operations; i++) {
		const struct nccl_operation *operation = recording->operation[i];

		if (operation->flags & NCCL_OPERATION_LOST_CHILD)
			continue;
		assert_int_equal(operation->state, NCCL_OPERATION_DONE);
		assert_int_equal(operation->channels_started, 3);
		assert_int_equal(operation->gpu_stop - operation->gpu_start, 30);
	}
}

/* ---- communicators come and go on all threads at once ---- */

static void *churn(void *argument)
{
	struct driver driver = drive_open(1 + (unsigned)(uintptr_t)argument % VERSIONS);

	for (int i = 0; i < 25; i++) {
		struct drive_identity of = {"churn", 0x1000 + (uint64_t)(uintptr_t)argument, 1, 2,
					    i % 2};
		void *context = drive_init(&driver, &of), *operation;

		operation = drive_collective(&driver, context, NULL, "Reduce", (uint64_t)i, 1);
		drive_finalize(&driver, context);
		drive_stop(&driver, operation); /* after finalize */
		drive_stop(&driver, drive_simple(&driver, context, NULL, NCCL_KIND_PROXY_CONTROL));
		drive_finalize(&driver, context);
	}
	return NULL;
}

static void races(void)
{
	pthread_t ids[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, churn, (void *)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
}

static void test_races(void **state)
{
	const struct recording *recording;

	(void)state;
	drive_directory();
	assert_child(races);
	recording = drive_read();
	assert_int_equal(recording->communicators +
				 recording->header->losses[NCCL_LOSS_COMMUNICATORS],
			 THREADS * 25);
	assert_int_equal(recording->operations + recording->header->losses[NCCL_LOSS_OPERATIONS],
			 THREADS * 25);
	for (size_t i = 0; i < recording->communicators; i++)
		assert_true(recording->communicator[i]->flags & NCCL_COMMUNICATOR_FINALIZED);
}

/* ---- 2,000 communicators, two ranks of each in the process ---- */

static void communicators(void)
{
	struct driver driver = drive_open(5);
	void *contexts[2000];

	for (unsigned i = 0; i < 2000; i++) {
		struct drive_identity of = {"pair", i / 2, 1, 2, (int)(i % 2)};

		contexts[i] = drive_init(&driver, &of);
		for (unsigned j = 0; i && j < 3; j++)
			require(contexts[i] != contexts[(i - 1) / (j + 1)]);
	}
	for (unsigned i = 0; i < 2000; i++)
		drive_stop(&driver,
			   drive_collective(&driver, contexts[i], NULL, "AllReduce", i / 2, 1));
	for (unsigned i = 0; i < 2000; i++)
		drive_finalize(&driver, contexts[i]);
}

static void test_communicators(void **state)
{
	const struct recording *recording;
	const struct nccl_file_header *header;

	(void)state;
	drive_directory();
	assert_child(communicators);
	recording = drive_read();
	header = recording->header;
	assert_int_equal(recording->communicators, 2000);
	assert_int_equal(recording->operations + header->losses[NCCL_LOSS_OPERATIONS], 2000);
	for (size_t i = 0; i < recording->communicators; i++) {
		assert_int_equal(recording->communicator[i]->creation, i + 1);
		assert_int_equal(recording->communicator[i]->rank, i % 2);
	}
	for (size_t i = 0; i < recording->operations; i++) {
		const struct nccl_operation *operation = recording->operation[i];

		assert_int_equal((operation->communicator - 1) / 2, operation->sequence);
	}
	/* Chunks, not a fixed part for each. */
	assert_true(recording->size < 80u << 20);
}

/* ---- more records than there is room for ---- */

#define LONG_RUN 40000

static bool all_but_one(const struct recording *recording)
{
	return recording->communicator[0]->finished +
		       recording->header->losses[NCCL_LOSS_OPERATIONS] >=
	       LONG_RUN;
}

static void overrun(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *first;

	/* One that never ends stays, however often the ring turns. */
	first = drive_collective(&driver, context, NULL, "Reduce", 0, 2);
	drive_stop(&driver, first);
	require(drive_channel(&driver, context, first, 9, GPU));
	for (uint64_t i = 0; i < LONG_RUN; i++) {
		void *operation = drive_collective(&driver, context, NULL, "AllReduce", i, 1);

		drive_stop(&driver, operation);
		drive_channel_stop(&driver,
				   drive_channel(&driver, context, operation, 0, GPU + i * 10),
				   GPU + i * 10 + 5);
		if (i % 2000 == 1999)
			usleep(80000);
	}
	/* Where nothing more is recorded, the last one may lack its channels. */
	drive_wait(all_but_one, 10);
	drive_stop(&driver, first); /* its id is alive */
}

static void test_ring(void **state)
{
	const struct recording *recording;
	const struct nccl_file_header *header;
	const struct nccl_operation *first;

	(void)state;
	drive_directory();
	drive_setenv("KYMO_NCCL_SIZE", "5M");
	assert_child(overrun);
	recording = drive_read();
	header = recording->header;
	assert_true(recording->size <= 5u << 20);
	assert_true(header->losses[NCCL_LOSS_RING_OPERATIONS] > LONG_RUN / 2);
	assert_int_equal(recording->operations + header->losses[NCCL_LOSS_OPERATIONS] +
				 header->losses[NCCL_LOSS_RING_OPERATIONS],
			 LONG_RUN + 1);
	assert_int_equal(recording->communicator[0]->operations, LONG_RUN + 1);
	first = drive_find(recording, "Reduce", 0);
	assert_int_equal(first->channels_started, 1 << 9);
	assert_int_equal(first->state, NCCL_OPERATION_RUNNING);
	assert_int_equal(header->losses[NCCL_LOSS_DOUBLE_STOP], 1);
	/* Sums know what the ring forgot. */
	for (size_t i = 0; i < recording->totals; i++) {
		if (!strcmp(drive_name(recording, recording->total[i]->function), "AllReduce"))
			assert_int_equal(recording->total[i]->operations +
						 header->losses[NCCL_LOSS_OPERATIONS],
					 LONG_RUN);
	}
}

/* ---- one communicator after the other ---- */

#define COMMUNICATORS_IN_A_ROW 3000

/* The first one stays open; an event of one that is long gone is nobody's. */
static void communicators_in_a_row(void)
{
	struct driver driver = drive_open(5);
	struct drive_identity of = {"many", 1, 1, 2, 0};
	void *first = drive_init(&driver, &of), *early = NULL;

	drive_stop(&driver, drive_collective(&driver, first, NULL, "Broadcast", 0, 1));
	for (unsigned i = 0; i < COMMUNICATORS_IN_A_ROW; i++) {
		void *context, *operation;

		of.hash = 1000 + i;
		context = drive_init(&driver, &of);
		operation = drive_collective(&driver, context, NULL, "AllReduce", 0, 1);
		drive_stop(&driver, operation);
		drive_channel_stop(&driver, drive_channel(&driver, context, operation, 0, 1000 + i),
				   2000 + i);
		drive_finalize(&driver, context);
		early = i == 100 ? context : early;
	}
	require(!drive_simple(&driver, early, NULL, NCCL_KIND_PROXY_CONTROL));
	require(drive_collective(&driver, first, NULL, "Reduce", 0, 1));
}

static void test_communicators_in_a_row(void **state)
{
	const struct recording *recording;
	bool has_first = false, has_last = false;

	(void)state;
	drive_directory();
	drive_setenv("KYMO_NCCL_SIZE", "4M");
	drive_setenv("KYMO_NCCL_EVENTS", "default,proxy-ctrl");
	assert_child(communicators_in_a_row);
	recording = drive_read();
	for (size_t i = 0; i < recording->communicators; i++) {
		has_first |= recording->communicator[i]->creation == 1;
		has_last |= recording->communicator[i]->creation == 1 + COMMUNICATORS_IN_A_ROW;
	}
	assert_true(has_first);
	assert_true(has_last);
	assert_non_null(drive_find(recording, "Reduce", 0));
	assert_non_null(drive_find(recording, "AllReduce", 0));
	assert_true(recording->header->losses[NCCL_LOSS_RING_COMMUNICATORS] > 1000);
	assert_int_equal(recording->header->losses[NCCL_LOSS_COMMUNICATORS], 0);
	assert_int_equal(recording->header->losses[NCCL_LOSS_OPERATIONS], 0);
}

static void test_stop_when_full(void **state)
{
	const struct recording *recording;
	const struct nccl_file_header *header;

	(void)state;
	drive_directory();
	drive_setenv("KYMO_NCCL_SIZE", "5M");
	drive_setenv("KYMO_NCCL_FULL", "stop");
	assert_child(overrun);
	recording = drive_read();
	header = recording->header;
	assert_int_equal(header->losses[NCCL_LOSS_RING_OPERATIONS], 0);
	assert_true(header->losses[NCCL_LOSS_OPERATIONS] > LONG_RUN / 2);
	assert_non_null(strstr(header->problem, "nothing more is recorded"));
	assert_non_null(strstr(drive_error_output(), "nothing more is recorded"));
	assert_int_equal(header->losses[NCCL_LOSS_LIMIT], 1);
}

/* The file system, or a limit, has no room: what is there is used again, and one line says so. */
static void limited(void)
{
	struct rlimit limit = {6u << 20, 6u << 20};

	require(!setrlimit(RLIMIT_FSIZE, &limit));
	overrun();
}

static void test_no_room(void **state)
{
	const struct recording *recording;

	(void)state;
	drive_directory();
	assert_child(limited);
	recording = drive_read();
	assert_true(recording->header->losses[NCCL_LOSS_DISK_FULL] >= 1);
	assert_int_equal(recording->operations + recording->header->losses[NCCL_LOSS_OPERATIONS] +
				 recording->header->losses[NCCL_LOSS_RING_OPERATIONS],
			 LONG_RUN + 1);
	assert_non_null(strstr(drive_error_output(), "the oldest records are overwritten"));
}

/* Whose lines are many: those that would end the program (SIGXFSZ) are left out. */
static void test_no_room_for_calls(void **state)
{
	char path[4200];
	struct stat status;

	(void)state;
	drive_directory();
	snprintf(path, sizeof(path), "%s/calls", drive_path());
	drive_setenv("KYMO_NCCL_CALL_TRACE", path);
	assert_child(limited);
	assert_true(drive_read()->header->losses[NCCL_LOSS_CALL_TRACE] > 0);
	assert_non_null(strstr(drive_error_output(), "cannot be written: File too large"));
	assert_int_equal(stat(path, &status), 0);
	assert_in_range(status.st_size, 5u << 20, 6u << 20);
}

/* ---- fork ---- */

static void forked(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *operation, *handle = (void *)0xdead;
	struct plugin_event_start_arguments event = {.kind = NCCL_KIND_P2P, .function = "Send"};
	int status;
	pid_t child;

	operation = drive_collective(&driver, context, NULL, "AllReduce", 0, 1);
	/* The plugin's thread is being made and allocates: ASan's allocator (clang 14) keeps locks
	 * in the child that were held at a fork. */
	usleep(50000);
	child = fork();
	if (!child) {
		/* A worker of a data loader that destroys what it inherited. */
		drive_start(&driver, context, &handle, &event);
		require(handle == NULL);
		drive_stop(&driver, operation);
		drive_finalize(&driver, context);
		require(drive_init(&driver, &identity));
		exit(0);
	}
	require(waitpid(child, &status, 0) == child && status == 0);
	drive_stop(&driver, operation);
	drive_channel_stop(&driver, drive_channel(&driver, context, operation, 0, GPU), GPU + 1);
	drive_wait_finished(1);
}

static void test_fork(void **state)
{
	const struct recording *recording;

	(void)state;
	drive_directory();
	assert_child(forked);
	recording = drive_read();
	assert_int_equal(recording->files, 1);
	assert_int_equal(recording->operations, 1);
	assert_int_equal(recording->communicators, 1);
	assert_int_equal(recording->communicator[0]->flags, 0);
	assert_int_equal(drive_find(recording, "AllReduce", 0)->state, NCCL_OPERATION_DONE);
	assert_int_equal(recording->header->losses[NCCL_LOSS_DOUBLE_STOP], 0);
}

/* ---- SIGKILL ---- */

/* The task that writes what a killed process left has none of the sanitizer's state: there, what
 * was written before is looked at. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_THREAD_SANITIZED true
#endif
#endif
#ifndef IS_THREAD_SANITIZED
#define IS_THREAD_SANITIZED false
#endif

static void killed(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *operation;

	drive_stop(&driver, drive_collective(&driver, context, NULL, "AllReduce", 0, 1));
	operation = drive_collective(&driver, context, NULL, "AllReduce", 1, 2);
	drive_stop(&driver, operation);
	drive_channel_stop(&driver, drive_channel(&driver, context, operation, 0, GPU), GPU + 9);
	drive_channel(&driver, context, operation, 1, GPU);
	if (IS_THREAD_SANITIZED)
		usleep(300000);
	kill(getpid(), SIGKILL);
}

static void test_killed(void **state)
{
	const struct recording *recording;
	const struct nccl_operation *operation;

	(void)state;
	drive_directory();
	assert_int_equal(drive_child(killed), SIGKILL);
	recording = drive_read();
	assert_int_equal(recording->header->state, NCCL_FILE_OPEN);
	operation = drive_find(recording, "AllReduce", 1);
	assert_int_equal(operation->state, NCCL_OPERATION_RUNNING);
	assert_int_equal(operation->channels_started & ~operation->channels_stopped, 2);
	assert_int_equal(recording->communicator[0]->operations, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_races),
		cmocka_unit_test(test_communicators),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_communicators_in_a_row),
		cmocka_unit_test(test_stop_when_full),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_no_room_for_calls),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
