/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Records of the process track, read back.
 */
#include "unit/core/core_test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/ticks.h"
#include "core/spool/process_records.h"
#include "unit/core/spool_read.h"
#include "unit/core/spool_test.h"

static struct spool_writer spool;
static struct process_records track;

static int set_up(void **state)
{
	if (test_directory_create(state))
		return -1;
	spool_test_start(&spool, *state, 0, false);
	return process_records_init(&track, &spool);
}

static int tear_down(void **state)
{
	close(spool.fd);
	spool_unmap_old_run(&spool);
	return test_directory_remove(state);
}

struct kept {
	struct spool_read_record records[4];
	size_t count;
};

/* Keeps copies, because the reader's buffer is used again. */
static void keep(const struct spool_read_record *record, void *context)
{
	struct kept *kept = context;
	uint8_t *copy = test_malloc(record->size + 1);

	assert_true(kept->count < LENGTH(kept->records));
	memcpy(copy, record->payload, record->size);
	kept->records[kept->count++] = (struct spool_read_record){record->kind, copy, record->size};
}

static void forget(struct kept *kept)
{
	while (kept->count)
		test_free((void *)kept->records[--kept->count].payload);
}

static void fields_come_back_in_order(void **state)
{
	struct kept kept = {.count = 0};
	struct spool_fields fields;
	size_t size;

	process_record_begin(&track, SPOOL_RECORD_STRING);
	process_record_append_unsigned(&track, 0);
	process_record_append_unsigned(&track, UINT64_MAX);
	process_record_append_fixed64(&track, 0x0123456789abcdef);
	process_record_append_bytes(&track, "a\0b", 3);
	process_record_append_string(&track, "text");
	process_record_append_string(&track, NULL);
	process_record_end_and_commit(&track);
	spool_read(spool_test_path(*state, 0), keep, &kept);
	assert_int_equal(kept.count, 1);
	assert_int_equal(kept.records[0].kind, SPOOL_RECORD_STRING);
	fields = spool_fields(&kept.records[0]);
	assert_int_equal(spool_field_unsigned(&fields), 0);
	assert_int_equal(spool_field_unsigned(&fields), UINT64_MAX);
	assert_int_equal(spool_field_fixed(&fields), 0x0123456789abcdef);
	assert_memory_equal(spool_field_string(&fields, &size), "a\0b", 3);
	assert_int_equal(size, 3);
	assert_string_equal(spool_field_string(&fields, NULL), "text");
	assert_string_equal(spool_field_string(&fields, NULL), "");
	assert_ptr_equal(fields.at, fields.end);
	forget(&kept);
}

static void a_clock_record_is_one_moment_on_four_clocks(void **state)
{
	struct kept kept = {.count = 0};
	uint64_t before = ticks_now(), boottime = read_posix_clock_ns(CLOCK_BOOTTIME);
	uint64_t realtime = read_posix_clock_ns(CLOCK_REALTIME);
	struct spool_fields fields;

	process_record_write_clock(&track);
	spool_read(spool_test_path(*state, 0), keep, &kept);
	assert_int_equal(kept.count, 1);
	assert_int_equal(kept.records[0].kind, SPOOL_RECORD_CLOCK);
	fields = spool_fields(&kept.records[0]);
	assert_in_range(spool_field_fixed(&fields), before, ticks_now());
	assert_in_range(spool_field_fixed(&fields), before, read_posix_clock_ns(CLOCK_MONOTONIC));
	assert_in_range(spool_field_fixed(&fields), boottime, read_posix_clock_ns(CLOCK_BOOTTIME));
	assert_in_range(spool_field_fixed(&fields), realtime, read_posix_clock_ns(CLOCK_REALTIME));
	forget(&kept);
}

static void a_notice_has_kind_argument_and_text(void **state)
{
	struct kept kept = {.count = 0};
	struct spool_fields fields;

	process_record_write_notice(&track, SPOOL_NOTICE_THROTTLE, 2000000, "slower");
	spool_read(spool_test_path(*state, 0), keep, &kept);
	assert_int_equal(kept.count, 1);
	fields = spool_fields(&kept.records[0]);
	assert_in_range(spool_field_fixed(&fields), spool.header->start_ticks, ticks_now());
	assert_int_equal(spool_field_unsigned(&fields), SPOOL_NOTICE_THROTTLE);
	assert_int_equal(spool_field_unsigned(&fields), 2000000);
	assert_string_equal(spool_field_string(&fields, NULL), "slower");
	forget(&kept);
}

static void write_text(size_t size, char c)
{
	char *text = test_malloc(size + 1);

	memset(text, c, size);
	text[size] = 0;
	process_record_write_notice(&track, SPOOL_NOTICE_DISABLED, size, text);
	test_free(text);
}

/* Text of the first notice whose argument is `size`. */
struct wanted {
	uint64_t size, length, found;
};

static void find(const struct spool_read_record *record, void *context)
{
	struct wanted *wanted = context;
	struct spool_fields fields = spool_fields(record);

	spool_field_fixed(&fields);
	spool_field_unsigned(&fields);
	if (spool_field_unsigned(&fields) != wanted->size)
		return;
	wanted->found++;
	spool_field_string(&fields, &wanted->length);
	assert_ptr_equal(fields.at, fields.end);
}

/* A command line of 20 kB is the first record of some processes. */
static void a_record_larger_than_a_small_chunk_is_kept_at_once(void **state)
{
	static const size_t sizes[] = {20000, 8100, 8128, 60000, 8000};

	for (size_t i = 0; i < LENGTH(sizes); i++) {
		struct wanted wanted = {.size = sizes[i]};
		write_text(sizes[i], 'x');
		spool_read(spool_test_path(*state, 0), find, &wanted);
		assert_int_equal(wanted.found, 1);
		assert_int_equal(wanted.length, sizes[i]);
	}
	assert_int_equal(spool.header->losses[SPOOL_LOSS_NO_CHUNK], 0);
}

static void text_beyond_the_largest_record_is_cut(void **state)
{
	struct wanted wanted = {.size = 200000};

	write_text(200000, 'x');
	spool_read(spool_test_path(*state, 0), find, &wanted);
	assert_int_equal(wanted.found, 1);
	assert_in_range(wanted.length, PROCESS_RECORD_SIZE_MAX - 100, PROCESS_RECORD_SIZE_MAX);
}

static void fields_beyond_the_largest_record_do_no_harm(void **state)
{
	struct spool_read_result result;

	process_record_begin(&track, SPOOL_RECORD_STRING);
	for (size_t i = 0; i < PROCESS_RECORD_SIZE_MAX; i++) {
		process_record_append_unsigned(&track, UINT64_MAX);
		process_record_append_fixed64(&track, i);
		process_record_append_string(&track, "text");
	}
	process_record_end_and_commit(&track);
	result = spool_read(spool_test_path(*state, 0), NULL, NULL);
	assert_int_equal(result.records, 1);
	assert_int_equal(result.torn_bytes, 0);
}

static void a_hundred_thousand_records_fill_chunk_after_chunk(void **state)
{
	struct spool_read_result result;

	for (int i = 0; i < 100000; i++) {
		process_record_write_notice(&track, SPOOL_NOTICE_SOURCE, 1, "a text");
		if (i % 64 == 0)
			spool_refill_ready_chunks(&spool, spool.fd);
	}
	result = spool_read(spool_test_path(*state, 0), NULL, NULL);
	assert_int_equal(result.records, 100000);
	assert_true(result.chunks > 100);
}

static void records_are_counted_when_there_is_no_room_for_them(void **state)
{
	uint64_t written = 0;
	struct spool_read_result result;

	spool.limit = spool.file_size; /* no growth */
	for (int i = 0; i < 20000; i++)
		process_record_write_notice(&track, SPOOL_NOTICE_SOURCE, 1,
					    "a text of some length");
	result = spool_read(spool_test_path(*state, 0), NULL, NULL);
	written = result.records;
	assert_in_range(written, 500, 10000);
	assert_int_equal(result.header.losses[SPOOL_LOSS_MEMORY_LIMIT], 20000 - written);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(fields_come_back_in_order),
		TEST(a_clock_record_is_one_moment_on_four_clocks),
		TEST(a_notice_has_kind_argument_and_text),
		TEST(a_record_larger_than_a_small_chunk_is_kept_at_once),
		TEST(text_beyond_the_largest_record_is_cut),
		TEST(fields_beyond_the_largest_record_do_no_harm),
		TEST(a_hundred_thousand_records_fill_chunk_after_chunk),
		TEST(records_are_counted_when_there_is_no_room_for_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
