/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "unit/core/spool_read.h"

#include <string.h>

#include "analysis/spool_reader.h"
#include "unit/core/core_test.h"

struct spool_file *spool_read_begin(const char *path)
{
	struct spool_file *file = test_malloc(sizeof(*file));
	struct problem problem;

	if (spool_file_open(path, file, &problem))
		fail_msg("%s", problem.text);
	return file;
}

struct spool_read_result
spool_read_end(struct spool_file *file,
	       void (*each)(const struct spool_read_record *record, void *context), void *context)
{
	struct spool_read_result result = {0};
	struct spool_record_payload_cursor payload;
	struct spool_chunk_record_cursor cursor;

	for (size_t i = 0; i < file->chunk_count; i++) {
		assert_int_equal(spool_file_read_chunk(file, i, &cursor), 0);
		while (spool_read_next_record(&cursor, &payload)) {
			const struct spool_read_record record = {
				payload.kind, payload.at, (size_t)(payload.end - payload.at)};
			result.records++;
			if (each)
				each(&record, context);
		}
		assert_ptr_equal(cursor.at, cursor.end);
	}
	result.chunks = file->chunk_count;
	result.torn_chunks = file->torn_chunks;
	result.torn_bytes = file->torn_bytes;
	result.header = file->header;
	spool_file_close(file);
	test_free(file);
	return result;
}

struct spool_read_result
spool_read(const char *path, void (*each)(const struct spool_read_record *record, void *context),
	   void *context)
{
	return spool_read_end(spool_read_begin(path), each, context);
}

struct spool_fields spool_fields(const struct spool_read_record *record)
{
	return (struct spool_fields){record->payload, record->payload + record->size};
}

uint64_t spool_field_unsigned(struct spool_fields *fields)
{
	uint64_t value = 0;

	assert_true(leb128_read(&fields->at, fields->end, &value));
	return value;
}

int64_t spool_field_signed(struct spool_fields *fields)
{
	return zigzag_decode(spool_field_unsigned(fields));
}

uint64_t spool_field_fixed(struct spool_fields *fields)
{
	uint64_t value = 0;

	assert_true(fields->end - fields->at >= 8);
	memcpy(&value, fields->at, sizeof(value));
	fields->at += sizeof(value);
	return value;
}

const char *spool_field_string(struct spool_fields *fields, size_t *ret_size)
{
	static char buffers[4][SPOOL_CHUNK_SIZE_MAX / 64];
	static unsigned next;
	uint64_t size = spool_field_unsigned(fields);
	char *buffer = buffers[next++ % 4];

	assert_true(size < sizeof(buffers[0]));
	assert_true(size <= (uint64_t)(fields->end - fields->at));
	memcpy(buffer, fields->at, size);
	buffer[size] = 0;
	fields->at += size;
	if (ret_size)
		*ret_size = size;
	return buffer;
}
