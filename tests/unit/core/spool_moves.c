/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Large chunks of the spool that are moved further back when they are full, so that their pages can
 * be used again: nothing is lost or seen twice, whoever reads and whenever the process is killed.
 */
#include "unit/core/core_test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/core/spool_read.h"
#include "unit/core/spool_test.h"

#define RECORD 10u /* kind, length, a number */

static struct spool_writer spool;
static uint64_t written; /* records, which are numbered */

static void start(const char *directory, uint64_t limit)
{
	written = 0;
	spool_test_start(&spool, directory, limit, false);
	spool_chunk_take(&spool,
			 SPOOL_CHUNK_CLASS_LARGE); /* a small one; and large ones are wanted */
	spool_refill_ready_chunks(&spool, spool.fd);
}

static void finish(void)
{
	close(spool.fd);
	spool_unmap_old_run(&spool);
}

static struct spool_chunk *take(void)
{
	struct spool_chunk *chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_LARGE);

	assert_non_null(chunk);
	assert_int_equal(chunk->size, SPOOL_CHUNK_LARGE_SIZE);
	return chunk;
}

static void fill(struct spool_chunk *chunk)
{
	uint8_t *at = spool_chunk_get_data(chunk), *end = at + spool_chunk_get_capacity(chunk);

	while (end - at >= RECORD) {
		*at++ = SPOOL_RECORD_STRING;
		*at++ = 8;
		at = write_fixed64_little_endian(at, written++);
	}
	chunk->header->committed = (uint32_t)(at - spool_chunk_get_data(chunk));
}

static void write_chunks(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct spool_chunk *chunk = take();

		fill(chunk);
		spool_chunk_retire(&spool, chunk);
		spool_refill_ready_chunks(&spool, spool.fd);
	}
}

static void expect_next(const struct spool_read_record *record, void *context)
{
	struct spool_fields fields = spool_fields(record);

	assert_int_equal(spool_field_fixed(&fields), (*(uint64_t *)context)++);
}

/* All of them are there, once, in order. */
static void check_records(struct spool_file *file)
{
	uint64_t next = 0;
	struct spool_read_result result = spool_read_end(file, expect_next, &next);

	assert_int_equal(next, written);
	assert_int_equal(result.torn_chunks + result.torn_bytes, 0);
}

static struct spool_file *open_file(const char *directory)
{
	return spool_read_begin(spool_test_path(directory, 0));
}

static void a_full_chunk_moves_and_is_empty(void **state)
{
	struct spool_chunk *chunk;

	start(*state, 0);
	chunk = take();
	fill(chunk);
	spool_chunk_retire(&spool, chunk);
	assert_true(spool_refill_ready_chunks(&spool, spool.fd));
	assert_ptr_equal(take(), chunk); /* what was made ready last is taken first */
	assert_int_equal(chunk->header->committed, 0);
	for (uint32_t i = 0; i < spool_chunk_get_capacity(chunk); i++)
		assert_int_equal(spool_chunk_get_data(chunk)[i], 0);
	check_records(open_file(*state));
	finish();
}

static void memory_does_not_grow_with_the_file(void **state)
{
	uint32_t segments;

	start(*state, 0);
	segments = spool.segment_count;
	write_chunks(400);
	assert_int_equal(spool.segment_count, segments);
	assert_true(spool.header->file_size >= 400ull * SPOOL_CHUNK_LARGE_SIZE);
	check_records(open_file(*state));
	finish();
}

/* More are full than will be wanted. */
static void what_is_not_wanted_again_stays_in_its_place(void **state)
{
	struct spool_chunk *chunks[128];

	start(*state, 0);
	for (size_t i = 0; i < LENGTH(chunks); i++) {
		chunks[i] = take();
		fill(chunks[i]);
		spool_refill_ready_chunks(&spool, spool.fd);
	}
	for (size_t i = 0; i < LENGTH(chunks); i++)
		spool_chunk_retire(&spool, chunks[i]);
	spool_refill_ready_chunks(&spool, spool.fd);
	assert_in_range(atomic_load(&spool.ready_chunks[SPOOL_CHUNK_CLASS_LARGE].count), 1, 64);
	check_records(open_file(*state));
	finish();
}

static void the_file_stays_below_its_limit(void **state)
{
	const uint64_t limit = 8 << 20;
	struct spool_chunk *chunk;
	struct stat status;

	start(*state, limit);
	while ((chunk = spool_chunk_take(&spool, SPOOL_CHUNK_CLASS_LARGE)) &&
	       chunk->size == SPOOL_CHUNK_LARGE_SIZE) {
		fill(chunk);
		spool_chunk_retire(&spool, chunk);
		spool_refill_ready_chunks(&spool, spool.fd);
	}
	assert_int_equal(stat(spool_test_path(*state, 0), &status), 0);
	assert_true((uint64_t)status.st_size <= limit);
	assert_in_range(written * RECORD, limit - (2 << 20), limit);
	check_records(open_file(*state));
	finish();
}

static void a_reader_follows_what_moves(void **state)
{
	struct spool_chunk *held;
	struct spool_file *file;
	uint64_t known;

	start(*state, 0);
	write_chunks(20);
	held = take();
	fill(held);
	known = written;
	file = open_file(*state);
	spool_chunk_retire(&spool, held);
	spool_refill_ready_chunks(&spool, spool.fd);
	write_chunks(40);
	written = known;
	check_records(file);
	finish();
}

/* What a process leaves that is killed while it moves a chunk: `size` bytes of it have arrived. */
static void check_killed(const char *directory, uint32_t size)
{
	struct spool_chunk *chunk;
	struct stat status;

	start(directory, 0);
	write_chunks(3);
	chunk = take();
	fill(chunk);
	assert_int_equal(stat(spool_test_path(directory, 0), &status), 0);
	assert_int_equal(pwrite(spool.fd, chunk->header, size,
				(off_t)spool.reserved[SPOOL_CHUNK_CLASS_LARGE].begin),
			 size);
	check_records(open_file(directory));
	finish();
	unlink(spool_test_path(directory, 0));
}

static void whoever_is_killed_meanwhile_leaves_it_once(void **state)
{
	check_killed(*state, SPOOL_ALIGNMENT);
	check_killed(*state, SPOOL_CHUNK_LARGE_SIZE / 2);
	check_killed(*state, SPOOL_CHUNK_LARGE_SIZE);
}

/* The reader saw it in both places; then the first one was used for something else. */
static void a_reader_knows_the_second_place(void **state)
{
	struct spool_chunk *chunk;
	struct spool_file *file;
	uint64_t known;

	start(*state, 0);
	write_chunks(3);
	chunk = take();
	fill(chunk);
	known = written;
	assert_int_equal(pwrite(spool.fd, chunk->header, SPOOL_CHUNK_LARGE_SIZE,
				(off_t)spool.reserved[SPOOL_CHUNK_CLASS_LARGE].begin),
			 SPOOL_CHUNK_LARGE_SIZE);
	file = open_file(*state);
	spool_chunk_retire(&spool, chunk);
	spool_refill_ready_chunks(&spool, spool.fd);
	write_chunks(1);
	written = known;
	check_records(file);
	finish();
}

/* A reader goes through the file once, from its start: what moves must not pass it. */
static void chunks_move_towards_the_end_only(void **state)
{
	uint64_t before;

	start(*state, 0);
	write_chunks(1);
	assert_true(spool.reserved[SPOOL_CHUNK_CLASS_LARGE].begin <
		    spool.reserved[SPOOL_CHUNK_CLASS_LARGE].end);
	before = spool.reserved[SPOOL_CHUNK_CLASS_LARGE].end;
	while (spool.header->file_size == before) {
		take();
		spool_refill_ready_chunks(&spool, spool.fd);
	}
	while (atomic_load(&spool.ready_chunks[SPOOL_CHUNK_CLASS_LARGE].count) >
	       spool.ready_chunks_low_water[SPOOL_CHUNK_CLASS_LARGE])
		take();
	write_chunks(1);
	assert_true(spool.reserved[SPOOL_CHUNK_CLASS_LARGE].begin > before);
	finish();
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_full_chunk_moves_and_is_empty),
		TEST(memory_does_not_grow_with_the_file),
		TEST(what_is_not_wanted_again_stays_in_its_place),
		TEST(the_file_stays_below_its_limit),
		TEST(a_reader_follows_what_moves),
		TEST(whoever_is_killed_meanwhile_leaves_it_once),
		TEST(a_reader_knows_the_second_place),
		TEST(chunks_move_towards_the_end_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
