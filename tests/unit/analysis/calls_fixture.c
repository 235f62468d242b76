/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "unit/analysis/calls_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	uint8_t at[1 << 16];
	size_t size;
};

static void put_unsigned(struct bytes *bytes, uint64_t value)
{
	do {
		uint8_t low = value & 0x7f;

		value >>= 7;
		bytes->at[bytes->size++] = value ? low | 0x80 : low;
	} while (value);
}

static void put_fixed(struct bytes *bytes, uint64_t value)
{
	memcpy(bytes->at + bytes->size, &value, sizeof(value));
	bytes->size += sizeof(value);
}

static void put_bytes(struct bytes *bytes, const void *from, size_t size)
{
	put_unsigned(bytes, size);
	memcpy(bytes->at + bytes->size, from, size);
	bytes->size += size;
}

void calls_fixture_plan(const char *path, const struct plan_function *functions, uint32_t count)
{
	struct plan_header header = {.magic = PLAN_MAGIC,
				     .version = PLAN_VERSION,
				     .header_size = sizeof(header),
				     .low = 0x1000,
				     .high = 0x100000,
				     .functions = {.offset = sizeof(header), .count = count}};
	FILE *file = fopen(path, "w");

	header.plan_size = sizeof(header) + count * sizeof(*functions);
	if (!file || fwrite(&header, sizeof(header), 1, file) != 1 ||
	    fwrite(functions, sizeof(*functions), count, file) != count || fclose(file) != 0)
		abort();
}

void calls_fixture_instrumented(struct spool_fixture *fixture, uint64_t ticks, uint64_t first,
				uint64_t count, uint64_t bias, const char *plan, const char *module)
{
	struct bytes bytes;

	bytes.size = 0;
	put_fixed(&bytes, ticks);
	put_unsigned(&bytes, first);
	put_unsigned(&bytes, count);
	put_fixed(&bytes, bias);
	put_fixed(&bytes, bias + 0x10000000);
	put_fixed(&bytes, 0x10000);
	put_bytes(&bytes, plan, strlen(plan));
	put_bytes(&bytes, module, strlen(module));
	fixture_record(fixture, SPOOL_RECORD_INSTRUMENTED, bytes.at, bytes.size);
}

void calls_fixture_begin(struct calls_fixture *calls, uint32_t internal_id, uint64_t ticks,
			 const uint32_t *open, uint32_t open_count)
{
	calls->head = (struct spool_calls){.internal_id = internal_id,
					   .tid = 100 + internal_id,
					   .ticks = ticks,
					   .open_count = open_count};
	memset(calls->open, 0, sizeof(calls->open));
	if (open_count)
		memcpy(calls->open, open, open_count * sizeof(*open));
	calls->count = 0;
}

void calls_fixture_raw(struct calls_fixture *calls, uint64_t word)
{
	if (calls->count == calls->capacity) {
		calls->capacity = calls->capacity ? calls->capacity * 2 : 1024;
		calls->words = realloc(calls->words, calls->capacity * sizeof(*calls->words));
		if (!calls->words)
			abort();
	}
	calls->words[calls->count++] = word;
}

void calls_fixture_word(struct calls_fixture *calls, uint64_t ticks, uint32_t function,
			unsigned exit)
{
	calls_fixture_raw(calls, ticks << SPOOL_CALL_TICK_SHIFT |
					 (uint64_t)function << SPOOL_CALL_ID_SHIFT | exit);
}

void calls_fixture_end(struct calls_fixture *calls, struct spool_fixture *fixture)
{
	size_t list = ((size_t)calls->head.open_count * 4 + 7) / 8 * 8;
	size_t size = sizeof(calls->head) + list + calls->count * sizeof(*calls->words);
	uint8_t *record = malloc(size);

	if (!record)
		abort();
	memcpy(record, &calls->head, sizeof(calls->head));
	memcpy(record + sizeof(calls->head), calls->open, list);
	if (calls->count)
		memcpy(record + sizeof(calls->head) + list, calls->words,
		       calls->count * sizeof(*calls->words));
	fixture_end_chunk(fixture);
	fixture_record(fixture, SPOOL_RECORD_STRING, "\0\3abc", 5);
	fixture_record(fixture, SPOOL_RECORD_CALLS, record, size);
	fixture_end_chunk(fixture);
	free(record);
	free(calls->words);
	*calls = (struct calls_fixture){.words = NULL};
}

void calls_fixture_counts(struct spool_fixture *fixture, uint64_t internal_id,
			  const uint64_t *pairs, size_t count)
{
	struct bytes bytes;

	bytes.size = 0;
	put_unsigned(&bytes, internal_id);
	put_unsigned(&bytes, count);
	for (size_t i = 0; i < 2 * count; i++)
		put_unsigned(&bytes, pairs[i]);
	fixture_record(fixture, SPOOL_RECORD_CALL_COUNTS, bytes.at, bytes.size);
}

void calls_fixture_demoted(struct spool_fixture *fixture, uint64_t ticks, uint64_t id,
			   uint64_t mode)
{
	struct bytes bytes;

	bytes.size = 0;
	put_unsigned(&bytes, id);
	put_unsigned(&bytes, mode);
	put_fixed(&bytes, ticks);
	fixture_record(fixture, SPOOL_RECORD_CALL_DEMOTED, bytes.at, bytes.size);
}
