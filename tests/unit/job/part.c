/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts that are damaged are refused: by their checksum, and without its help as well.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/checksum.h"
#include "job/part.h"
#include "unit/job/fixture.h"

static char *make_part(size_t *ret_size)
{
	struct job job, one;
	struct problem problem;
	char *bytes;

	job_init(&job);
	for (uint32_t i = 0; i < 5; i++) {
		fixture_make_rank(&one, 3, i, 6);
		assert_int_equal(job_merge(&job, &one, &problem), 0);
		job_deinit(&one);
	}
	bytes = fixture_write_part(&job, ret_size);
	job_deinit(&job);
	return bytes;
}

static int read_part(const char *bytes, size_t size)
{
	struct problem problem;
	struct job job;
	int result;

	job_init(&job);
	result = job_part_read(&job, bytes, size, "part", &problem);
	job_deinit(&job);
	return result;
}

static void set_checksum(char *bytes, size_t size)
{
	struct job_part_header header;
	struct checksum_state sum = checksum_get_initial_state();
	size_t tables = size - sizeof(header);

	memcpy(&header, bytes, sizeof(header));
	header.checksum = 0;
	if (header.string_bytes <= tables)
		tables -= header.string_bytes;
	checksum_add_bytes(&sum, &header, sizeof(header));
	checksum_add_bytes(&sum, bytes + sizeof(header), tables);
	checksum_add_bytes(&sum, bytes + sizeof(header) + tables, size - sizeof(header) - tables);
	header.checksum = checksum_compute_final_value(&sum);
	memcpy(bytes, &header, sizeof(header));
}

static void every_changed_byte_is_noticed(void **state)
{
	size_t size;
	char *bytes = make_part(&size);

	(void)state;
	assert_int_equal(read_part(bytes, size), 0);
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 0x41;
		assert_true(read_part(bytes, size) < 0);
		bytes[i] ^= 0x41;
	}
	free(bytes);
}

static void every_cut_is_noticed(void **state)
{
	size_t size;
	char *bytes = make_part(&size);

	(void)state;
	for (size_t i = 0; i < size; i++)
		assert_int_equal(read_part(bytes, i), -EBADMSG);
	free(bytes);
}

/* What is accepted with a right checksum must be safe to merge and to write: sanitizers look on. */
static void changed_bytes_with_a_right_checksum_do_no_harm(void **state)
{
	size_t size, refused = 0;
	char *bytes = make_part(&size);

	(void)state;
	for (size_t i = 0; i < size; i++) {
		char kept = bytes[i];

		bytes[i] = (char)(kept ^ 0x80);
		set_checksum(bytes, size);
		refused += read_part(bytes, size) < 0;
		bytes[i] = kept;
	}
	assert_true(refused > size / 4);
	set_checksum(bytes, size);
	assert_int_equal(read_part(bytes, size), 0);
	free(bytes);
}

static void change_first_row(char *bytes, size_t size, size_t offset, uint64_t value)
{
	struct job_part_header header;
	size_t row;

	memcpy(&header, bytes, sizeof(header));
	row = size - header.string_bytes - header.event_count * sizeof(struct job_part_event) -
	      header.row_count * sizeof(struct job_part_row);
	memcpy(bytes + row + offset, &value, sizeof(value));
	set_checksum(bytes, size);
}

static void impossible_moments_are_refused(void **state)
{
	static const struct {
		size_t offset;
		uint64_t value;
	} changes[] = {
		{offsetof(struct job_part_row, maximum), JOB_VALUE_MAX + 1},
		{offsetof(struct job_part_row, minimum), 0},
		{offsetof(struct job_part_row, minimum), JOB_VALUE_MAX},
		{offsetof(struct job_part_row, sum) + 8, 1},
		{offsetof(struct job_part_row, sum_of_squares) + 8, UINT64_MAX},
		{offsetof(struct job_part_row, minimum_rank), 5},  /* is not here */
		{offsetof(struct job_part_row, maximum_rank), 99}, /* and count 0 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		size_t size;
		char *bytes = make_part(&size);

		change_first_row(bytes, size, changes[i].offset, changes[i].value);
		if (read_part(bytes, size) != -EBADMSG)
			fail_msg("change %zu was accepted", i);
		free(bytes);
	}
}

static void other_versions_are_refused(void **state)
{
	size_t size;
	char *bytes = make_part(&size);

	(void)state;
	((struct job_part_header *)(void *)bytes)->version++;
	assert_int_equal(read_part(bytes, size), -EPROTONOSUPPORT);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_changed_byte_is_noticed),
		cmocka_unit_test(every_cut_is_noticed),
		cmocka_unit_test(changed_bytes_with_a_right_checksum_do_no_harm),
		cmocka_unit_test(impossible_moments_are_refused),
		cmocka_unit_test(other_versions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
