/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where a reader of YAML is in its text. For yaml.c (structure) and yaml_scalar.c (scalars) alone.
 */
#ifndef KYMO_COUNTERS_YAML_READER_H
#define KYMO_COUNTERS_YAML_READER_H

#include "counters/yaml.h"

struct yaml_reader {
	struct memory_pool *memory;
	struct yaml_problem *problem;
	const char *text;
	uint32_t size, at;
	uint32_t line, line_start_offset; /* from 1; the offset of its first character */
	uint32_t depth;
	bool failed;
	/* The scalar that is being read. */
	char *scalar_text;
	uint32_t length, capacity;
	struct yaml_source_position *source_positions;
	uint32_t source_positions_count, source_positions_capacity;
};

/* '\0' at the end. */
static inline char yaml_peek_char_ahead(const struct yaml_reader *reader, uint32_t ahead)
{
	return reader->size - reader->at > ahead ? reader->text[reader->at + ahead] : '\0';
}

static inline bool yaml_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool yaml_is_line_end_character(char c)
{
	return c == '\n' || c == '\r' || c == '\0';
}

/* Columns that blocks are indented by are bytes, as they can only be blanks. */
static inline uint32_t yaml_reader_get_offset_in_line(const struct yaml_reader *reader)
{
	return reader->at - reader->line_start_offset;
}

uint32_t yaml_reader_get_column(const struct yaml_reader *reader);
bool yaml_fail(struct yaml_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool yaml_fail_at(struct yaml_reader *reader, uint32_t line, uint32_t column, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));
/* Over the end of a line, which the reader is at. */
void yaml_skip_line_break(struct yaml_reader *reader);
void yaml_skip_blanks(struct yaml_reader *reader);
/* Over blanks, comments and empty lines, to the next thing there is. false: there is a tab where
 * only blanks may be. */
bool yaml_skip_to_content(struct yaml_reader *reader);
/* At "---" or "..." at the beginning of a line. */
bool yaml_is_at_document_marker(const struct yaml_reader *reader);

struct yaml_node *yaml_node_create(struct yaml_reader *reader, enum yaml_node_kind kind);

/* Scalars; the reader is left behind them. parent: lines that belong to it are indented by more;
 * -1: any are. */
struct yaml_node *yaml_read_plain_scalar(struct yaml_reader *reader, int64_t parent, bool in_flow,
					 bool one_line);
struct yaml_node *yaml_read_quoted_scalar(struct yaml_reader *reader, int64_t parent);
struct yaml_node *yaml_read_block_scalar(struct yaml_reader *reader, int64_t parent);

#endif
