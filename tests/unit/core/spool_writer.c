/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The spool file: life of a chunk, limits, full disks, and many writers at once.
 */
#include "unit/core/core_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/ticks.h"
#include "core/spool/places.h"
#include "unit/core/spool_read.h"
#include "unit/core/spool_test.h"

static struct spool_writer spool;

/* Appends a record whose payload is one number; false when the chunk is full. */
static bool put(struct spool_chunk *chunk, uint64_t value)
{
	uint32_t used = chunk->header->committed;
	uint8_t *at = spool_chunk_get_data(chunk) + used;

	if (spool_chunk_get_capacity(chunk) - used < 2 + 8)
		return false;
	*at++ = SPOOL_RECORD_STRING;
	*at++ = 8;
	at = write_fixed64_little_endian(at, value);
	atomic_store_explicit((_Atomic uint32_t *)&chunk->header->committed,
			      (uint32_t)(at - spool_chunk_get_data(chunk)), memory_order_release);
	return true;
}

static void fill(struct spool_chunk *chunk, uint64_t value)
{
	while (put(chunk, value))
		;
}

static uint64_t file_size(const char *directory)
{
	struct stat status;

	assert_int_equal(stat(spool_test_path(directory, 0), &status), 0);
	return (uint64_t)status.st_size;
}

static uint64_t losses(enum spool_loss loss)
{
	return spool.header->losses[loss];
}

static void finish(void)
{
	close(spool.fd);
	spool_unmap_old_run(&spool);
}

/* ---- opening ---- */

static void each_image_of_a_process_has_its_file(void **state)
{
	struct spool_writer second;

	spool_test_start(&spool, *state, 0, false);
	assert_int_equal(spool_test_open(&second, *state, 0, false), 0);
	assert_int_equal(spool.header->image, 0);
	assert_int_equal(second.header->image, 1);
	assert_int_equal(access(spool_test_path(*state, 0), R_OK), 0);
	assert_int_equal(access(spool_test_path(*state, 1), R_OK), 0);
	close(second.fd);
	spool_unmap_old_run(&second);
	finish();
}

static void only_the_owner_may_read_the_file(void **state)
{
	struct stat status;

	spool_test_start(&spool, *state, 0, false);
	assert_int_equal(stat(spool_test_path(*state, 0), &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	finish();
}

static void a_directory_that_is_not_there_is_an_error(void **state)
{
	struct options *options = test_calloc(1, sizeof(*options));

	snprintf(options->spool_directory, sizeof(options->spool_directory), "%s/missing",
		 (char *)*state);
	memset(&spool, 0, sizeof(spool));
	assert_int_equal(spool_open(&spool, options, (uint32_t)getpid()), -ENOENT);
	spool_count_loss(&spool, SPOOL_LOSS_NO_CHUNK); /* counts nothing, harms nothing */
	test_free(options);
}

static void an_empty_spool_can_be_read(void **state)
{
	struct spool_read_result result;

	spool_test_start(&spool, *state, 0, false);
	result = spool_read(spool_test_path(*state, 0), NULL, NULL);
	assert_int_equal(result.records, 0);
	assert_int_equal(result.torn_bytes, 0);
	assert_int_equal(result.header.file_size, SPOOL_ALIGNMENT + spool.segments[0].size);
	finish();
}

/* ---- chunks ---- */

static void chunks_are_numbered_in_the_order_of_taking(void **state)
{
	spool_test_start(&spool, *state, 0, false);
	for (uint64_t i = 1; i <= spool.segments[0].chunk_count; i++) {
		struct spool_chunk *chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL);
		assert_int_equal(chunk->header->sequence, i);
		assert_int_equal(chunk->header->state, 1);
		assert_int_equal(chunk->header->committed, 0);
		assert_int_equal(spool_chunk_get_capacity(chunk),
				 SPOOL_CHUNK_SMALL_SIZE - SPOOL_CHUNK_HEADER_SIZE);
		spool_chunk_retire(&spool, chunk);
		assert_int_equal(chunk->header->state, 2);
	}
	finish();
}

static void without_refill_the_chunks_end(void **state)
{
	spool_test_start(&spool, *state, 0, false);
	for (unsigned i = 0; i < spool.segments[0].chunk_count; i++)
		assert_non_null(spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL));
	assert_null(spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL));
	assert_null(spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_LARGE));
	assert_true(spool_refill_ready_chunks(&spool, spool.fd));
	assert_non_null(spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL));
	finish();
}

static void a_chunk_of_the_other_class_is_better_than_none(void **state)
{
	struct spool_chunk *chunk;

	spool_test_start(&spool, *state, 0, false);
	chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_LARGE);
	assert_int_equal(chunk->size, SPOOL_CHUNK_SMALL_SIZE);
	spool_refill_ready_chunks(&spool, spool.fd); /* the demand has been noted */
	chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_LARGE);
	assert_int_equal(chunk->size, SPOOL_CHUNK_LARGE_SIZE);
	finish();
}

static void demand_raises_the_number_kept_ready(void **state)
{
	uint32_t before;

	spool_test_start(&spool, *state, 0, false);
	before = spool.ready_chunks_low_water[SPOOL_CHUNK_CLASS_SMALL];
	for (int round = 0; round < 4; round++) {
		while (spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL))
			;
		spool_refill_ready_chunks(&spool, spool.fd);
	}
	assert_true(spool.ready_chunks_low_water[SPOOL_CHUNK_CLASS_SMALL] > before);
	assert_true(atomic_load(&spool.ready_chunks[SPOOL_CHUNK_CLASS_SMALL].count) >=
		    spool.ready_chunks_low_water[SPOOL_CHUNK_CLASS_SMALL]);
	finish();
}

static void a_partial_chunk_goes_to_the_next_thread(void **state)
{
	struct spool_chunk *chunk;
	uint32_t used;

	spool_test_start(&spool, *state, 0, false);
	assert_null(spool_chunk_take_partial(&spool));
	chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL);
	put(chunk, 1);
	used = chunk->header->committed;
	spool_chunk_pass_on_or_retire(&spool, chunk);
	assert_ptr_equal(spool_chunk_take_partial(&spool), chunk);
	assert_int_equal(chunk->header->committed, used);
	assert_int_equal(chunk->header->sequence, 1);
	assert_null(spool_chunk_take_partial(&spool));
	fill(chunk, 2);
	spool_chunk_pass_on_or_retire(&spool, chunk); /* no room left that is worth it */
	assert_null(spool_chunk_take_partial(&spool));
	assert_int_equal(chunk->header->state, 2);
	finish();
}

static bool is_mapped(void *address)
{
	return msync(address, 4096, MS_ASYNC) == 0;
}

static void a_segment_is_unmapped_when_all_its_chunks_are_full(void **state)
{
	struct spool_chunk *chunks[64];
	uint32_t count;
	void *address;

	spool_test_start(&spool, *state, 0, false);
	address = spool.segments[0].address;
	count = spool.segments[0].chunk_count;
	assert_in_range(count, 1, LENGTH(chunks));
	for (uint32_t i = 0; i < count; i++) {
		chunks[i] = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL);
		fill(chunks[i], i);
	}
	spool.ready_chunks_low_water[SPOOL_CHUNK_CLASS_SMALL] = spool.wanted =
		0; /* no more are wanted */
	for (uint32_t i = 0; i < count; i++) {
		assert_true(is_mapped(address));
		spool_chunk_retire(&spool, chunks[i]);
		spool_refill_ready_chunks(&spool, spool.fd);
	}
	assert_false(is_mapped(address));
	assert_int_equal(spool_read(spool_test_path(*state, 0), NULL, NULL).chunks,
			 count); /* the file keeps what memory gave up */
	finish();
}

/* ---- the end of the program ---- */

#define SLOW_HOLDER_US 600000

static _Atomic uint64_t released_ns;

/* As an allocator of the helper whose disk is slow. */
static void *hold_refill_lock(void *held)
{
	assert_true(spool_try_refill_lock(&spool));
	atomic_store((_Atomic bool *)held, true);
	usleep(SLOW_HOLDER_US);
	atomic_store(&released_ns, read_posix_clock_ns(CLOCK_MONOTONIC));
	atomic_store(&spool.refill_lock, 0);
	return NULL;
}

/* Both at once would take each other's extensions of the file for a cut, and undo them. */
static void the_last_write_waits_for_a_slow_allocator(void **state)
{
	_Atomic bool held = false;
	struct spool_chunk *chunk;
	pthread_t thread;

	spool_test_start(&spool, *state, 0, false);
	chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL);
	fill(chunk, 1);
	assert_int_equal(pthread_create(&thread, NULL, hold_refill_lock, (void *)&held), 0);
	while (!atomic_load(&held))
		usleep(1000);
	spool_write_after_program_end(&spool, spool.fd);
	assert_true(atomic_load(&released_ns) != 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(chunk->written, chunk->header->committed);
	assert_false(spool_try_refill_lock(&spool)); /* nobody writes behind the last one */
	finish();
}

/* Who ended with the program does not give the lock back. */
static void the_last_write_does_not_wait_for_the_dead(void **state)
{
	struct spool_chunk *chunk;

	spool_test_start(&spool, *state, 0, false);
	chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL);
	fill(chunk, 1);
	atomic_store(&spool.refill_lock, 1); /* of another process */
	spool_write_after_program_end(&spool, spool.fd);
	assert_int_equal(chunk->written, chunk->header->committed);
	finish();
}

/* ---- limits ---- */

/* Writes `count` full chunks, refilling between them; returns how many could be had. */
static uint64_t write_chunks(uint64_t count)
{
	uint64_t written = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct spool_chunk *chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_SMALL);
		if (chunk) {
			fill(chunk, i);
			spool_chunk_retire(&spool, chunk);
			written++;
		} else {
			spool_count_missing_chunk_loss(&spool);
		}
		spool_refill_ready_chunks(&spool, spool.fd);
	}
	return written;
}

static void the_file_stays_below_its_limit(void **state)
{
	const uint64_t limit = 1 << 20;
	uint64_t written;

	spool_test_start(&spool, *state, limit, false);
	written = write_chunks(300);
	assert_in_range(written, 60, limit / SPOOL_CHUNK_SMALL_SIZE);
	assert_true(file_size(*state) <= limit);
	assert_int_equal(losses(SPOOL_LOSS_MEMORY_LIMIT), 300 - written);
	assert_int_equal(losses(SPOOL_LOSS_DISK_FULL), 0);
	assert_int_equal(spool_read(spool_test_path(*state, 0), NULL, NULL).chunks, written);
	finish();
}

struct newest {
	uint64_t lowest, highest;
};

static void find_range(const struct spool_read_record *record, void *context)
{
	struct spool_fields fields = spool_fields(record);
	uint64_t value = spool_field_fixed(&fields);
	struct newest *newest = context;

	if (value < newest->lowest)
		newest->lowest = value;
	if (value > newest->highest)
		newest->highest = value;
}

static void a_ring_keeps_the_newest_data(void **state)
{
	const uint64_t limit = 1 << 20;
	struct newest newest = {UINT64_MAX, 0};
	struct spool_read_result result;

	spool_test_start(&spool, *state, limit, true);
	assert_int_equal(write_chunks(1000), 1000); /* nothing is refused */
	assert_true(file_size(*state) <= limit);
	result = spool_read(spool_test_path(*state, 0), find_range, &newest);
	assert_int_equal(result.torn_bytes, 0);
	assert_int_equal(newest.highest, 999);
	assert_true(result.chunks >= 60);
	assert_int_equal(newest.lowest, 1000 - result.chunks); /* no holes */
	assert_int_equal(losses(SPOOL_LOSS_RING_OVERWRITE), 1000 - result.chunks);
	assert_int_equal(losses(SPOOL_LOSS_MEMORY_LIMIT), 0);
	assert_true(spool.header->overwritten_bytes >=
		    (1000 - result.chunks) * SPOOL_CHUNK_SMALL_SIZE / 2);
	finish();
}

static uint64_t count_mapped_bytes(void)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < spool.segment_count; i++)
		bytes += spool.segments[i].address ? spool.segments[i].size : 0;
	return bytes;
}

/* Bursts want more chunks than between them are kept: their memory and its numbers come back. */
static void a_ring_does_not_run_out_of_memory_or_numbers(void **state)
{
	enum { BURSTS = 3000, CHUNKS = 40 };
	const uint64_t limit = 2 << 20;
	struct spool_chunk *chunks[CHUNKS];
	uint32_t segments = 0;

	spool_test_start(&spool, *state, limit, true);
	for (uint32_t burst = 0; burst < BURSTS; burst++) {
		enum spool_chunk_class chunk_class =
			burst % 3 ? SPOOL_CHUNK_CLASS_SMALL : SPOOL_CHUNK_CLASS_LARGE;
		uint32_t count = chunk_class == SPOOL_CHUNK_CLASS_SMALL ? CHUNKS : CHUNKS / 10;

		for (uint32_t i = 0; i < count; i++) {
			spool_refill_ready_chunks(&spool, spool.fd);
			chunks[i] = spool_chunk_take(&spool, chunk_class);
			assert_non_null(chunks[i]);
			fill(chunks[i], burst);
		}
		for (uint32_t i = 0; i < count; i++)
			spool_chunk_retire(&spool, chunks[i]);
		for (uint32_t i = 0; i < 3; i++)
			spool_refill_ready_chunks(&spool, spool.fd);
		if (burst == BURSTS / 10)
			segments = spool.segment_count;
	}
	assert_true(file_size(*state) <= limit);
	assert_true(count_mapped_bytes() <= limit);
	assert_in_range(spool.segment_count, 1, segments + segments / 2);
	assert_int_equal(losses(SPOOL_LOSS_MEMORY_LIMIT), 0);
	finish();
}

/* A ring of small chunks in which a large one is wanted must not be given up to the last. */
static void a_ring_gives_up_no_more_than_is_wanted(void **state)
{
	struct spool_chunk *chunk;

	spool_test_start(&spool, *state, 1 << 20, true);
	write_chunks(200);
	chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_LARGE);
	assert_non_null(chunk);
	spool_chunk_retire(&spool, chunk);
	spool_refill_ready_chunks(&spool, spool.fd);
	assert_true(spool_read(spool_test_path(*state, 0), NULL, NULL).chunks > 40);
	finish();
}

/* Runs a test in a child, where it may set limits of the process. */
static void in_child(void (*function)(const char *directory), const char *directory)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		function(directory);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* In children: cmocka's own would go on in the child with the rest of the tests. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%d: %s\n", __LINE__, #condition);                         \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void limit_file_size(uint64_t size)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = size;
	REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void fill_disk(const char *directory)
{
	uint64_t written;

	spool_test_start(&spool, directory, 0, false);
	limit_file_size(SPOOL_ALIGNMENT + spool.segments[0].size + 300000);
	written = write_chunks(100);
	REQUIRE(written > 0 && written < 60);
	REQUIRE(spool.growth_errno == EFBIG);
	REQUIRE(losses(SPOOL_LOSS_DISK_FULL) == 100 - written);
	REQUIRE(losses(SPOOL_LOSS_MEMORY_LIMIT) == 0);
	limit_file_size(1 << 24); /* somebody made room */
	spool_refill_ready_chunks(&spool, spool.fd);
	REQUIRE(spool.growth_errno == 0);
	REQUIRE(write_chunks(100) == 100);
	REQUIRE(spool_read(spool_test_path(directory, 0), NULL, NULL).chunks == written + 100);
}

static void a_full_disk_costs_data_and_nothing_else(void **state)
{
	in_child(fill_disk, *state);
}

static void open_on_full_disk(const char *directory)
{
	limit_file_size(1000);
	REQUIRE(spool_test_open(&spool, directory, 0, false) == -EFBIG);
	limit_file_size(SPOOL_ALIGNMENT + 1000);
	REQUIRE(spool_test_open(&spool, directory, 0, false) == -EFBIG);
}

static void a_disk_full_from_the_beginning_is_an_error(void **state)
{
	in_child(open_on_full_disk, *state);
}

/* ---- fork ---- */

static void continue_in_child(const char *directory)
{
	int descriptor = spool.fd;

	spool_unmap_old_run(&spool);
	close(descriptor);
	spool_test_start(&spool, directory, 0, false);
	REQUIRE(write_chunks(3) == 3);
	REQUIRE(spool.last_chunk_sequence == 3);
	REQUIRE(spool_read(spool_test_path(directory, 0), NULL, NULL).chunks == 3);
}

static void a_forked_child_writes_a_file_of_its_own(void **state)
{
	spool_test_start(&spool, *state, 0, false);
	write_chunks(2);
	in_child(continue_in_child, *state);
	write_chunks(2);
	assert_int_equal(spool_read(spool_test_path(*state, 0), NULL, NULL).chunks, 4);
	finish();
}

/* ---- many at once ---- */

enum { WRITERS = 8, LIVES = 12, RECORDS = 2500 };

static _Atomic uint64_t retries;

/* Several lives of a thread: each ends with a chunk that is partly used. */
static void *writer(void *argument)
{
	uint64_t number = (uint64_t)(uintptr_t)argument << 32;

	for (int life = 0; life < LIVES; life++) {
		struct spool_chunk *chunk = spool_chunk_take_partial(&spool);
		for (int i = 0; i < RECORDS;) {
			if (chunk && put(chunk, number)) {
				number++;
				i++;
				continue;
			}
			if (chunk)
				spool_chunk_retire(&spool, chunk);
			chunk = spool_chunk_take(&spool, i & 1 ? SPOOL_CHUNK_CLASS_LARGE
							       : SPOOL_CHUNK_CLASS_SMALL);
			if (!chunk) {
				atomic_fetch_add(&retries, 1);
				sched_yield();
			}
		}
		spool_chunk_pass_on_or_retire(&spool, chunk);
	}
	return NULL;
}

static _Atomic bool stop;

static void *refiller(void *argument)
{
	(void)argument;
	while (!atomic_load(&stop)) {
		if (!spool_refill_ready_chunks(&spool, spool.fd))
			sched_yield();
	}
	return NULL;
}

static void mark_seen(const struct spool_read_record *record, void *context)
{
	struct spool_fields fields = spool_fields(record);
	uint64_t value = spool_field_fixed(&fields);
	uint8_t(*seen)[LIVES * RECORDS] = context;

	assert_true(value >> 32 < WRITERS && (uint32_t)value < LIVES * RECORDS);
	assert_false(seen[value >> 32][(uint32_t)value]);
	seen[value >> 32][(uint32_t)value] = 1;
}

static void every_record_of_many_writers_is_there_once(void **state)
{
	static uint8_t seen[WRITERS][LIVES * RECORDS];
	pthread_t writers[WRITERS], background;
	struct spool_read_result result;

	spool_test_start(&spool, *state, 0, false);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&background, NULL, refiller, NULL), 0);
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, writer, (void *)i), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	atomic_store(&stop, true);
	pthread_join(background, NULL);
	result = spool_read(spool_test_path(*state, 0), mark_seen, seen);
	assert_int_equal(result.records, WRITERS * LIVES * RECORDS);
	assert_int_equal(result.torn_chunks + result.torn_bytes, 0);
	assert_int_equal(result.chunks, atomic_load(&spool.last_chunk_sequence));
	finish();
}

static void many_writers_in_a_ring_leave_a_file_that_can_be_read(void **state)
{
	pthread_t writers[WRITERS], background;
	struct spool_read_result result;

	spool_test_start(&spool, *state, 2 << 20, true);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&background, NULL, refiller, NULL), 0);
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, writer, (void *)i), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	atomic_store(&stop, true);
	pthread_join(background, NULL);
	result = spool_read(spool_test_path(*state, 0), NULL, NULL);
	assert_int_equal(result.torn_chunks + result.torn_bytes, 0);
	assert_true(result.records > 0);
	assert_true(file_size(*state) <= 2 << 20);
	finish();
}

static void *count_many(void *argument)
{
	(void)argument;
	for (int i = 0; i < 10000; i++)
		spool_count_loss(&spool, SPOOL_LOSS_REENTRY);
	return NULL;
}

static void losses_are_counted_exactly_and_in_the_file(void **state)
{
	pthread_t threads[4];

	spool_test_start(&spool, *state, 0, false);
	for (size_t i = 0; i < LENGTH(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_many, NULL), 0);
	for (size_t i = 0; i < LENGTH(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(spool_read(spool_test_path(*state, 0), NULL, NULL)
				 .header.losses[SPOOL_LOSS_REENTRY],
			 40000);
	finish();
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(each_image_of_a_process_has_its_file),
		TEST(only_the_owner_may_read_the_file),
		TEST(a_directory_that_is_not_there_is_an_error),
		TEST(an_empty_spool_can_be_read),
		TEST(chunks_are_numbered_in_the_order_of_taking),
		TEST(without_refill_the_chunks_end),
		TEST(a_chunk_of_the_other_class_is_better_than_none),
		TEST(demand_raises_the_number_kept_ready),
		TEST(a_partial_chunk_goes_to_the_next_thread),
		TEST(a_segment_is_unmapped_when_all_its_chunks_are_full),
		TEST(the_file_stays_below_its_limit),
		TEST(the_last_write_waits_for_a_slow_allocator),
		TEST(the_last_write_does_not_wait_for_the_dead),
		TEST(a_ring_keeps_the_newest_data),
		TEST(a_ring_does_not_run_out_of_memory_or_numbers),
		TEST(a_ring_gives_up_no_more_than_is_wanted),
		TEST(a_full_disk_costs_data_and_nothing_else),
		TEST(a_disk_full_from_the_beginning_is_an_error),
		TEST(a_forked_child_writes_a_file_of_its_own),
		TEST(every_record_of_many_writers_is_there_once),
		TEST(many_writers_in_a_ring_leave_a_file_that_can_be_read),
		TEST(losses_are_counted_exactly_and_in_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
