/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the analysis room's reader finds in a spool file, for tests of what the collector wrote. A
 * unit of its own, because both rooms have a struct spool_chunk.
 */
#ifndef KYMO_TESTS_SPOOL_READ_H
#define KYMO_TESTS_SPOOL_READ_H

#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

struct spool_read_record {
	uint8_t kind;
	const uint8_t *payload;
	size_t size;
};

struct spool_read_result {
	uint64_t chunks, records, torn_chunks, torn_bytes;
	struct spool_file_header header;
};

/* Calls `each` (may be NULL) for every record in order of the chunks; fails the test when the file
 * cannot be read. */
struct spool_read_result
spool_read(const char *path, void (*each)(const struct spool_read_record *record, void *context),
	   void *context);

/* The same in two steps: the file is looked through, and the records are read some time later. */
struct spool_file;
struct spool_file *spool_read_begin(const char *path);
struct spool_read_result
spool_read_end(struct spool_file *file,
	       void (*each)(const struct spool_read_record *record, void *context), void *context);

/* Fields of a payload, one after the other; the test fails where there is none. */
struct spool_fields {
	const uint8_t *at, *end;
};

struct spool_fields spool_fields(const struct spool_read_record *record);
uint64_t spool_field_unsigned(struct spool_fields *fields);
int64_t spool_field_signed(struct spool_fields *fields);
uint64_t spool_field_fixed(struct spool_fields *fields);
/* The bytes, terminated, in a static buffer that the fourth call after this one uses again. */
const char *spool_field_string(struct spool_fields *fields, size_t *ret_size);

#endif
