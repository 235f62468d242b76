/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Line tables of CPython. Each is a list of steps through the code, in the order of its
 * instructions; how a step is coded is in Objects/lnotab_notes.txt (up to 3.10) and
 * Objects/locations.md (3.11) of CPython. The bytes come from a program: nothing is believed.
 */
#include "analysis/interpreted/interpreted.h"

#define NO_LINE_IN_3_10 (-128)

/* What 3.11 writes for a run of instructions. */
enum location_kind {
	LOCATION_LINE_0 = 10, /* up to 12: that many lines on, columns follow in two bytes */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15
};

struct table_cursor {
	const uint8_t *at, *end;
};

static uint32_t read_byte(struct table_cursor *cursor)
{
	return cursor->at < cursor->end ? *cursor->at++ : 0;
}

/* Six bits a byte, the lowest first; bit 6: more follow. */
static uint64_t read_number(struct table_cursor *cursor)
{
	uint64_t value = 0;
	uint32_t byte = 64;

	for (unsigned shift = 0; byte & 64 && shift < 60; shift += 6) {
		byte = read_byte(cursor);
		value |= (uint64_t)(byte & 63) << shift;
	}
	return value;
}

static int64_t read_signed_number(struct table_cursor *cursor)
{
	uint64_t value = read_number(cursor);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* The next run of instructions: moves *line to its line, and the cursor behind it. False: it has no
 * line. */
static bool read_location(struct table_cursor *cursor, int64_t *line)
{
	uint32_t kind = read_byte(cursor) >> 3 & 15;

	if (kind < LOCATION_LINE_0) {
		read_byte(cursor);
	} else if (kind < LOCATION_NO_COLUMNS) {
		*line += kind - LOCATION_LINE_0;
		cursor->at += cursor->end - cursor->at < 2 ? cursor->end - cursor->at : 2;
	} else if (kind != LOCATION_NONE) {
		*line += read_signed_number(cursor);
	}
	if (kind == LOCATION_LONG) {
		for (int i = 0; i < 3; i++)
			read_number(cursor);
	}
	return kind != LOCATION_NONE;
}

static int64_t find_line_of_3_11(struct table_cursor cursor, int64_t line, uint64_t unit)
{
	uint64_t begin = 0;

	while (cursor.at < cursor.end) {
		uint32_t units = (*cursor.at & 7u) + 1;

		read_location(&cursor, &line);
		begin += units;
		if (unit < begin)
			return line;
	}
	return line;
}

static int64_t find_line_of_3_10(struct table_cursor cursor, int64_t line, uint64_t unit)
{
	uint64_t begin = 0;

	while (cursor.end - cursor.at >= 2) {
		uint32_t bytes = read_byte(&cursor);
		int32_t lines = (int32_t)(read_byte(&cursor) ^ 0x80) - 0x80; /* signed */

		if (lines != NO_LINE_IN_3_10)
			line += lines;
		begin += bytes;
		if (2 * unit < begin)
			return line;
	}
	return line;
}

static int64_t find_line_of_3_6(struct table_cursor cursor, int64_t line, uint64_t unit)
{
	uint64_t begin = 0;

	while (cursor.end - cursor.at >= 2) {
		uint32_t bytes = read_byte(&cursor);
		int32_t lines = (int32_t)(read_byte(&cursor) ^ 0x80) - 0x80; /* signed */

		begin += bytes;
		if (begin > 2 * unit)
			return line;
		line += lines;
	}
	return line;
}

uint32_t interpreted_code_find_line(const struct interpreted_code *code, uint32_t position)
{
	struct table_cursor cursor = {code->table, code->table + code->table_size};
	int64_t line = code->first_line;

	if (!position || !code->table_size)
		return code->first_line;
	if (code->table_kind == SPOOL_LINES_CPYTHON_3_11)
		line = find_line_of_3_11(cursor, line, position - 1);
	else if (code->table_kind == SPOOL_LINES_CPYTHON_3_10)
		line = find_line_of_3_10(cursor, line, position - 1);
	else if (code->table_kind == SPOOL_LINES_CPYTHON_3_6)
		line = find_line_of_3_6(cursor, line, position - 1);
	return line > 0 && line < UINT32_MAX ? (uint32_t)line : code->first_line;
}

/* Tables of 3.11 and later: lines are measured in these versions only. */
int interpreted_code_visit_lines(const struct interpreted_code *code,
				 int (*visit)(void *context, uint32_t line), void *context)
{
	struct table_cursor cursor = {code->table, code->table + code->table_size};
	int64_t line = code->first_line;
	int error = 0;

	if (code->table_kind != SPOOL_LINES_CPYTHON_3_11)
		return 0;
	while (!error && cursor.at < cursor.end) {
		bool has_line = read_location(&cursor, &line);

		if (has_line && line > 0 && line < UINT32_MAX)
			error = visit(context, (uint32_t)line);
	}
	return error;
}
