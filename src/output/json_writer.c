/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Streaming JSON; see json_writer.h.
 */
#include "output/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/utf8.h"
#include "files/stream.h"

void json_writer_init(struct json_writer *json, FILE *stream)
{
	*json = (struct json_writer){.stream = stream, .compact_from_depth = UINT32_MAX};
}

int json_writer_finish(struct json_writer *json, struct problem *problem)
{
	fputc('\n', json->stream);
	return stream_flush_or_set_problem(json->stream, "JSON", problem);
}

/* Characters that stand for themselves; names have hardly any others. */
static size_t count_plain_characters(const char *text, size_t size)
{
	size_t count = 0;

	while (count < size && text[count] >= ' ' && text[count] < 0x7f && text[count] != '"' &&
	       text[count] != '\\')
		count++;
	return count;
}

static void write_quoted_text(FILE *stream, const char *text)
{
	size_t left = strlen(text);

	fputc('"', stream);
	while (left > 0) {
		size_t plain = count_plain_characters(text, left), size;

		if (plain > 0) {
			fwrite(text, 1, plain, stream);
			text += plain;
			left -= plain;
			continue;
		}
		size = utf8_character_size(text, left);
		unsigned char c = (unsigned char)*text;

		if (size == 0) {
			fputs(UTF8_REPLACEMENT, stream);
			size = 1;
		} else if (c == '"' || c == '\\') {
			fprintf(stream, "\\%c", c);
		} else if (c == '\n') {
			fputs("\\n", stream);
		} else if (c == '\t') {
			fputs("\\t", stream);
		} else if (c < 0x20 || c == 0x7f) {
			fprintf(stream, "\\u%04x", c);
		} else {
			fwrite(text, 1, size, stream);
		}
		text += size;
		left -= size;
	}
	fputc('"', stream);
}

static void begin_new_line(struct json_writer *json)
{
	if (json->depth >= json->compact_from_depth)
		return;
	fputc('\n', json->stream);
	for (unsigned i = 0; i < json->depth; i++)
		fputc('\t', json->stream);
}

static void begin_value(struct json_writer *json, const char *key)
{
	if (json->depth > 0) {
		if (json->is_filled_by_depth[json->depth])
			fputs(json->depth >= json->compact_from_depth ? ", " : ",", json->stream);
		begin_new_line(json);
	}
	json->is_filled_by_depth[json->depth] = true;
	if (key) {
		write_quoted_text(json->stream, key);
		fputs(": ", json->stream);
	}
}

static void begin_container(struct json_writer *json, const char *key, char bracket)
{
	begin_value(json, key);
	fputc(bracket, json->stream);
	json->depth += json->depth < JSON_DEPTH_MAX;
	json->is_filled_by_depth[json->depth] = false;
	if (!key && json->depth > 1 && json->depth < json->compact_from_depth)
		json->compact_from_depth = json->depth;
}

static void end_container(struct json_writer *json, char bracket)
{
	bool filled = json->is_filled_by_depth[json->depth],
	     compact = json->depth >= json->compact_from_depth;

	json->depth -= json->depth > 0;
	if (filled && !compact)
		begin_new_line(json);
	if (json->depth < json->compact_from_depth)
		json->compact_from_depth = UINT32_MAX;
	fputc(bracket, json->stream);
}

void json_object_begin(struct json_writer *json, const char *key)
{
	begin_container(json, key, '{');
}

void json_object_end(struct json_writer *json)
{
	end_container(json, '}');
}

void json_array_begin(struct json_writer *json, const char *key)
{
	begin_container(json, key, '[');
}

void json_array_end(struct json_writer *json)
{
	end_container(json, ']');
}

void json_put_text(struct json_writer *json, const char *key, const char *value)
{
	if (!value) {
		json_put_null(json, key);
		return;
	}
	begin_value(json, key);
	write_quoted_text(json->stream, value);
}

void json_put_count(struct json_writer *json, const char *key, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	begin_value(json, key);
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	fwrite(digits + at, 1, sizeof(digits) - at, json->stream);
}

void json_put_digits(struct json_writer *json, const char *key, const char *digits)
{
	begin_value(json, key);
	fputs(digits, json->stream);
}

void json_put_signed_integer(struct json_writer *json, const char *key, int64_t value)
{
	begin_value(json, key);
	fprintf(json->stream, "%" PRId64, value);
}

static void put_number_with_digits(struct json_writer *json, const char *key, double value,
				   int digits)
{
	if (!isfinite(value)) {
		json_put_null(json, key);
		return;
	}
	begin_value(json, key);
	fprintf(json->stream, "%.*g", digits, value);
}

void json_put_real_with_6_digits(struct json_writer *json, const char *key, double value)
{
	put_number_with_digits(json, key, value, 6);
}

void json_put_real_with_12_digits(struct json_writer *json, const char *key, double value)
{
	put_number_with_digits(json, key, value, 12);
}

void json_put_boolean(struct json_writer *json, const char *key, bool value)
{
	begin_value(json, key);
	fputs(value ? "true" : "false", json->stream);
}

void json_put_null(struct json_writer *json, const char *key)
{
	begin_value(json, key);
	fputs("null", json->stream);
}

void json_put_bytes_as_hexadecimal(struct json_writer *json, const char *key, const uint8_t *bytes,
				   size_t size)
{
	begin_value(json, key);
	fputc('"', json->stream);
	for (size_t i = 0; i < size; i++)
		fprintf(json->stream, "%02x", bytes[i]);
	fputc('"', json->stream);
}
