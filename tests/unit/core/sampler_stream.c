/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Streams of samples into the spool: spans, chunks that follow each other, and many threads at
 * once, read back as a session.
 */
#include "unit/core/core_test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/ticks.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "unit/core/spool_read.h"
#include "unit/core/spool_test.h"

#define DEPTH 4096
#define CODE  UINT64_C(0x400000)

static struct spool_writer file, *const spool = &file;
static struct sampler sampler = {.spool = &file};
static struct threads registry = {.sampler = &sampler}, *const threads = &registry;

static int set_up(void **state)
{
	if (test_directory_create(state))
		return -1;
	spool_test_start(spool, *state, 0, false);
	sampler.large_chunk_fill_ticks = 0;
	if (threads->slabs)
		threads_reset_in_child(threads);
	else if (threads_init(threads, DEPTH))
		return -1;
	return 0;
}

static int tear_down(void **state)
{
	close(spool->fd);
	spool_unmap_old_run(spool);
	return test_directory_remove(state);
}

static struct thread *stream(uint32_t tid)
{
	struct thread *thread =
		threads_allocate_block(threads, THREAD_ORIGIN_CREATED, THREADS_NO_PARENT);

	assert_non_null(thread);
	assert_ptr_equal(threads_bind_own_tid(threads, thread, tid), thread);
	return thread;
}

/* A stack of `depth` frames, all different from those of another `seed`. */
static struct sampled_stack stack_of(struct thread *thread, uint32_t depth, uint64_t seed)
{
	for (uint32_t i = 0; i < depth; i++)
		thread->current_frames[i] = CODE + (seed * 7919 + i * 104729) % 1000000;
	return (struct sampled_stack){
		.frames = thread->current_frames, .count = depth, .end = SPOOL_STACK_COMPLETE};
}

static bool write_one(struct thread *thread, uint32_t depth, uint64_t seed, uint64_t weight)
{
	struct sampled_stack stack = stack_of(thread, depth, seed);

	return sampler_write_sample(thread, &stack, SPOOL_SOURCE_CPU, ticks_now(), weight, false,
				    NULL);
}

struct sums {
	const struct session *session;
	struct {
		uint64_t samples, weight;
	} of[64]; /* by tid less 1000 */
};

static int sum(const struct model_sample *sample, void *context)
{
	struct sums *sums = context;
	uint32_t tid = sums->session->threads[sample->thread].tid;

	assert_in_range(tid, 1000, 1000 + LENGTH(sums->of) - 1);
	sums->of[tid - 1000].samples++;
	sums->of[tid - 1000].weight += sample->weight;
	return 0;
}

static struct sums read_back(const char *directory)
{
	struct problem problem;
	struct sums sums = {.session = NULL};

	spool_test_path(directory, 0); /* writes out what is in memory */
	sums.session = test_session(directory, NULL);
	assert_int_equal(sums.session->processes[0].torn_bytes, 0);
	assert_int_equal(sums.session->processes[0].unknown_records, 0);
	assert_int_equal(
		session_visit_samples((struct session *)sums.session, sum, &sums, &problem), 0);
	session_close((struct session *)sums.session);
	return sums;
}

static void samples_go_on_over_many_chunks(void **state)
{
	struct thread *thread = stream(1000);
	struct sums sums;

	for (uint32_t i = 0; i < 20000; i++) {
		assert_true(write_one(thread, 1 + i % 60, i % 40, i));
		if (i % 16 == 0)
			spool_refill_ready_chunks(spool, spool->fd);
	}
	sampler_close_stream(thread);
	sums = read_back(*state);
	assert_int_equal(sums.of[0].samples, 20000);
	assert_int_equal(sums.of[0].weight, 20000ull * 19999 / 2);
	assert_int_equal(thread->sample_count, 20000);
}

/* The chunk is not closed and the file not finished: as after SIGKILL. */
static void what_was_written_can_be_read_at_any_time(void **state)
{
	struct thread *thread = stream(1000);

	for (uint64_t i = 1; i <= 10; i++) {
		assert_true(write_one(thread, 3, i, 1));
		assert_int_equal(read_back(*state).of[0].samples, i);
	}
}

static void a_chunk_left_by_one_thread_serves_the_next(void **state)
{
	struct thread *first = stream(1000), *second = stream(1001);
	struct sums sums;

	write_one(first, 5, 1, 10);
	sampler_close_stream(first);
	write_one(second, 5, 2, 20);
	write_one(second, 5, 3, 20);
	sampler_close_stream(second);
	sums = read_back(*state);
	assert_int_equal(sums.of[0].weight, 10);
	assert_int_equal(sums.of[1].weight, 40);
	assert_int_equal(spool_read(spool_test_path(*state, 0), NULL, NULL).chunks, 1);
}

static void one_stream_carries_samples_of_several_threads(void **state)
{
	struct thread *watcher = stream(1000);
	struct sums sums;

	for (uint32_t i = 0; i < 3000; i++) {
		watcher->internal_id = 10 + i % 3;
		watcher->tid = 1000 + i % 3;
		sampler_stream_begin_identity_span(watcher, ticks_now());
		assert_true(write_one(watcher, 20, i / 3 % 40, 7));
		spool_refill_ready_chunks(spool, spool->fd);
	}
	sampler_close_stream(watcher);
	sums = read_back(*state);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sums.of[i].samples, 1000);
		assert_int_equal(sums.of[i].weight, 7000);
	}
}

static void a_sample_without_a_chunk_is_counted_and_the_next_one_is_whole(void **state)
{
	struct thread *thread = stream(1000);
	uint64_t written = 0, lost = 0;
	struct sums sums;

	for (uint64_t i = 0; i < 3000; i++) { /* no refill: the first segment is used up */
		if (write_one(thread, 40, i, 1))
			written++;
		else
			lost++;
	}
	assert_true(written > 100 && lost > 100);
	assert_int_equal(spool->header->losses[SPOOL_LOSS_NO_CHUNK], lost);
	spool_refill_ready_chunks(spool, spool->fd);
	assert_true(write_one(thread, 40, 1, 1));
	sums = read_back(*state);
	assert_int_equal(sums.of[0].samples, written + 1);
	assert_int_equal(sums.of[0].weight, written + 1);
}

static void the_deepest_stack_fits_a_large_chunk(void **state)
{
	struct thread *thread = stream(1000);

	spool_chunk_retire(
		spool, spool_chunk_take(spool, SPOOL_CHUNK_CLASS_LARGE)); /* has large ones made */
	spool_refill_ready_chunks(spool, spool->fd);
	for (uint64_t i = 0; i < 20; i++) {
		assert_true(write_one(thread, DEPTH, i, 1));
		spool_refill_ready_chunks(spool, spool->fd);
	}
	sampler_close_stream(thread);
	assert_int_equal(read_back(*state).of[0].samples, 20);
	assert_int_equal(spool->header->losses[SPOOL_LOSS_OVERSIZED], 0);
}

static void a_stack_that_fits_no_chunk_is_counted(void **state)
{
	struct thread *thread = stream(1000);

	assert_false(write_one(thread, DEPTH, 1, 1)); /* there are small chunks only */
	assert_int_equal(spool->header->losses[SPOOL_LOSS_OVERSIZED], 1);
	assert_true(write_one(thread, 10, 2, 1));
	assert_int_equal(read_back(*state).of[0].samples, 1);
}

static void a_thread_that_writes_much_gets_large_chunks(void **state)
{
	struct thread *thread = stream(1000);

	sampler.large_chunk_fill_ticks = UINT64_MAX;
	for (uint64_t i = 0; i < 5000; i++) {
		assert_true(write_one(thread, 40, i % 40, 1));
		spool_refill_ready_chunks(spool, spool->fd);
	}
	assert_int_equal(thread->chunk->size, SPOOL_CHUNK_LARGE_SIZE);
	assert_int_equal(read_back(*state).of[0].samples, 5000);
}

/* ---- many at once ---- */

enum { WRITERS = 10, SAMPLES = 4000 };

static _Atomic bool stop;

static void *refiller(void *argument)
{
	(void)argument;
	while (!atomic_load(&stop)) {
		if (!spool_refill_ready_chunks(spool, spool->fd))
			sched_yield();
	}
	return NULL;
}

static void *writer(void *argument)
{
	struct thread *thread = argument;

	for (uint64_t i = 0; i < SAMPLES;) {
		if (write_one(thread, 1 + (uint32_t)(i * thread->tid) % 80, i / 3 % 40, i))
			i++;
		else
			sched_yield();
		if (i % 1000 == 999)
			sampler_close_stream(thread);
	}
	sampler_close_stream(thread);
	return NULL;
}

static void samples_of_many_threads_are_all_there(void **state)
{
	pthread_t writers[WRITERS], background;
	struct thread *streams[WRITERS];
	struct sums sums;

	atomic_store(&stop, false);
	for (uint32_t i = 0; i < WRITERS; i++)
		streams[i] = stream(1000 + i);
	assert_int_equal(pthread_create(&background, NULL, refiller, NULL), 0);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, writer, streams[i]), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	atomic_store(&stop, true);
	pthread_join(background, NULL);
	sums = read_back(*state);
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(sums.of[i].samples, SAMPLES);
		assert_int_equal(sums.of[i].weight, SAMPLES * (SAMPLES - 1ull) / 2);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(samples_go_on_over_many_chunks),
		TEST(what_was_written_can_be_read_at_any_time),
		TEST(a_chunk_left_by_one_thread_serves_the_next),
		TEST(one_stream_carries_samples_of_several_threads),
		TEST(a_sample_without_a_chunk_is_counted_and_the_next_one_is_whole),
		TEST(the_deepest_stack_fits_a_large_chunk),
		TEST(a_stack_that_fits_no_chunk_is_counted),
		TEST(a_thread_that_writes_much_gets_large_chunks),
		TEST(samples_of_many_threads_are_all_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
