/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Damaged files: whatever happens to the bytes, the reader goes on, and shows no more than before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/spool_reader.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

static char *spool_path(const char *directory)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/spool/100-0.spool", directory);
	return path;
}

static uint8_t *read_all(const char *path, size_t *size)
{
	FILE *file = fopen(path, "r");
	uint8_t *bytes = malloc(1 << 20);

	assert_non_null(file);
	*size = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	return bytes;
}

static void write_all(const char *path, const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

/* Reads everything there is in both passes; gives the number of samples. */
static int ignore(const struct model_sample *sample, void *context)
{
	(void)sample;
	(*(uint64_t *)context)++;
	return 0;
}

static uint64_t read_session(const char *directory, struct model_process *ret)
{
	struct session *session = test_session(directory, NULL);
	uint64_t samples = session->process_count ? session->processes[0].samples : 0, again = 0;
	struct problem problem;

	assert_int_equal(session_visit_samples(session, ignore, &again, &problem), 0);
	assert_int_equal(again, samples);
	if (ret)
		*ret = session->process_count ? session->processes[0] : (struct model_process){0};
	session_close(session);
	return samples;
}

static void cut_off_anywhere(void **state)
{
	uint64_t last = 0;
	size_t size;

	fixture_write_small(*state);
	uint8_t *bytes = read_all(spool_path(*state), &size);
	for (size_t length = 0; length <= size; length++) {
		uint64_t samples;

		/* Most of the file is room that nobody looks at. */
		if (length < size && length % SPOOL_ALIGNMENT > 400 && length % 512)
			continue;
		write_all(spool_path(*state), bytes, length);
		samples = read_session(*state, NULL);
		assert_true(samples >= last);
		last = samples;
	}
	assert_int_equal(last, 6);
	free(bytes);
}

static void any_byte_changed(void **state)
{
	size_t size;

	fixture_write_small(*state);
	uint8_t *bytes = read_all(spool_path(*state), &size);
	for (size_t at = 0; at < size; at++) {
		if (at % SPOOL_ALIGNMENT > 400)
			continue;
		bytes[at] ^= 0xff;
		write_all(spool_path(*state), bytes, size);
		assert_true(read_session(*state, NULL) <= 100);
		bytes[at] ^= 0xff;
	}
	free(bytes);
}

static void torn_header_is_skipped(void **state)
{
	struct model_process process;
	size_t size;

	fixture_write_small(*state);
	uint8_t *bytes = read_all(spool_path(*state), &size);
	memset(bytes + 2 * SPOOL_ALIGNMENT, 0x5a, 16); /* the main thread's samples */
	write_all(spool_path(*state), bytes, size);
	assert_int_equal(read_session(*state, &process), 2);
	assert_int_equal(process.torn_chunks, 1);
	assert_int_equal(process.torn_bytes, SPOOL_ALIGNMENT);
	free(bytes);
}

static void record_beyond_committed_is_torn(void **state)
{
	struct model_process process;
	struct spool_chunk_header *header;
	size_t size;

	fixture_write_small(*state);
	uint8_t *bytes = read_all(spool_path(*state), &size);
	header = (struct spool_chunk_header *)(bytes + 2 * SPOOL_ALIGNMENT);
	header->committed -= 1;
	write_all(spool_path(*state), bytes, size);
	assert_int_equal(read_session(*state, &process), 5);
	assert_int_equal(process.torn_chunks, 1);
	assert_true(process.torn_bytes > 0);

	header->committed = header->size * 2;
	write_all(spool_path(*state), bytes, size);
	assert_int_equal(read_session(*state, &process), 6);
	assert_true(process.torn_chunks >= 1);
	free(bytes);
}

static void unknown_records_are_counted(void **state)
{
	struct model_process process;
	struct spool_fixture fixture;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_record(&fixture, 100, "whatever", 8);
	fixture_record(&fixture, 101, NULL, 0);
	fixture_clock(&fixture, FIXTURE_START);
	fixture_close(&fixture);
	assert_int_equal(read_session(*state, &process), 0);
	assert_int_equal(process.unknown_records, 2);
	assert_int_equal(process.torn_bytes, 0);
}

static void damaged_sample_ends_its_span_only(void **state)
{
	static const uint64_t stack[] = {0x401000};
	struct fixture_sample sample = {
		.ticks = FIXTURE_START + 1000, .weight = 5, .stack = stack, .depth = 1};
	struct model_process process;
	struct spool_fixture fixture;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_sample(&fixture, &sample); /* in no span */
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture, &sample);
	fixture_record(&fixture, SPOOL_RECORD_SAMPLE, "\0\1\2\177\177", 5); /* shares 127 frames */
	fixture_sample(&fixture, &sample);
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture, &sample);
	fixture_repeat(&fixture, FIXTURE_START + 2000, 7); /* of nothing */
	fixture_close(&fixture);
	assert_int_equal(read_session(*state, &process), 2);
	assert_true(process.torn_bytes > 5);
}

static void unused_room_is_not_damage(void **state)
{
	struct model_process process;
	struct spool_fixture fixture;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_clock(&fixture, FIXTURE_START);
	fixture_close(&fixture);
	assert_int_equal(truncate(spool_path(*state), 64 << 20), 0);
	assert_int_equal(read_session(*state, &process), 0);
	assert_int_equal(process.torn_bytes, 0);
	assert_int_equal(process.torn_chunks, 0);
}

static void file_that_never_began_is_no_damage(void **state)
{
	struct session *session;

	fixture_write_small(*state);
	assert_int_equal(truncate(spool_path(*state), 0), 0);
	assert_int_equal(truncate(spool_path(*state), 1 << 17), 0);
	session = test_session(*state, NULL);
	assert_int_equal(session->process_count, 0);
	assert_int_equal(session->unreadable_file_count, 0);
	session_close(session);
}

static void growing_file_is_read_as_it_was(void **state)
{
	static const uint64_t stack[] = {0x401000};
	struct fixture_sample sample = {
		.ticks = FIXTURE_START, .weight = 5, .stack = stack, .depth = 1};
	struct spool_fixture fixture;
	struct problem problem;
	struct session *session;
	uint64_t count = 0;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture, &sample);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	fixture_open_in(&fixture, *state, 100, 0);
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture, &sample);
	fixture_sample(&fixture, &sample);
	fixture_close(&fixture);
	assert_int_equal(session_visit_samples(session, ignore, &count, &problem), 0);
	assert_int_equal(count, 1);
	session_close(session);
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cut_off_anywhere),
		TEST(any_byte_changed),
		TEST(torn_header_is_skipped),
		TEST(record_beyond_committed_is_torn),
		TEST(unknown_records_are_counted),
		TEST(damaged_sample_ends_its_span_only),
		TEST(unused_room_is_not_damage),
		TEST(file_that_never_began_is_no_damage),
		TEST(growing_file_is_read_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
