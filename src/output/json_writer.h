/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Writes JSON as it comes, without a tree in memory: commas, indentation and escapes are its
 * business, nesting is the caller's. Text that is not UTF-8 gets U+FFFD for each bad byte.
 */
#ifndef KYMO_OUTPUT_JSON_WRITER_H
#define KYMO_OUTPUT_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/problem.h"

#define JSON_DEPTH_MAX 16 /* deepest nesting */

struct json_writer {
	FILE *stream;
	unsigned depth;
	unsigned compact_from_depth; /* containers at this depth and below stand on one line */
	bool is_filled_by_depth[JSON_DEPTH_MAX + 1];
};

void json_writer_init(struct json_writer *json, FILE *stream);
/* Ends the file with a newline. 0, or the stream's error. */
int json_writer_finish(struct json_writer *json, struct problem *problem);

/* `key` is NULL inside arrays and for the outermost value. Containers inside arrays are written on
 * one line each. */
void json_object_begin(struct json_writer *json, const char *key);
void json_object_end(struct json_writer *json);
void json_array_begin(struct json_writer *json, const char *key);
void json_array_end(struct json_writer *json);
void json_put_text(struct json_writer *json, const char *key, const char *value); /* NULL: null */
void json_put_count(struct json_writer *json, const char *key, uint64_t value);
/* A number of any length, as text. */
void json_put_digits(struct json_writer *json, const char *key, const char *digits);
void json_put_signed_integer(struct json_writer *json, const char *key, int64_t value);
void json_put_real_with_6_digits(struct json_writer *json, const char *key,
				 double value); /* 6 digits */
void json_put_real_with_12_digits(struct json_writer *json, const char *key,
				  double value); /* 12 digits */
void json_put_boolean(struct json_writer *json, const char *key, bool value);
void json_put_null(struct json_writer *json, const char *key);
void json_put_bytes_as_hexadecimal(struct json_writer *json, const char *key, const uint8_t *bytes,
				   size_t size);

#endif
