/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reads YAML, as much of it as files of counters are written in: one document of mappings and
 * sequences, as blocks or in braces and brackets, plain, quoted and block scalars, comments. Keys
 * are scalars and stand once. Anchors, aliases, tags, directives and "?" keys are mistakes here.
 * Scalars are texts; what they mean is the reader's.
 */
#ifndef KYMO_COUNTERS_YAML_H
#define KYMO_COUNTERS_YAML_H

#include "counters/memory.h"

enum yaml_node_kind { YAML_SCALAR, YAML_MAPPING, YAML_SEQUENCE };

struct yaml_source_position {
	uint32_t offset;       /* in the scalar's text */
	uint32_t line, column; /* in the file, from 1; columns count characters */
};

struct yaml_node {
	enum yaml_node_kind kind;
	uint32_t line, column;
	bool is_plain; /* a scalar without quotes; if its text is empty there was none */
	const char *text;
	size_t length;
	struct yaml_source_position *source_positions; /* of a scalar's text, ascending */
	uint32_t source_positions_count;
	struct yaml_node *key;   /* of a value in a mapping */
	struct yaml_node *first; /* values of a mapping, items of a sequence */
	struct yaml_node *next;
};

#define YAML_PROBLEM_TEXT_SIZE 200

struct yaml_problem {
	uint32_t line, column;
	char text[YAML_PROBLEM_TEXT_SIZE];
};

/* NULL: it is not YAML of this kind; problem says where and why. An empty document is an empty
 * plain scalar. */
struct yaml_node *yaml_parse(struct memory_pool *memory, const char *text, size_t size,
			     struct yaml_problem *problem);
/* The value of a key; NULL: it has none, or is no mapping. */
const struct yaml_node *yaml_find_value(const struct yaml_node *mapping, const char *key);
/* Where a character of a scalar's text is in the file. */
void yaml_offset_to_line_column(const struct yaml_node *scalar, size_t offset, uint32_t *line,
				uint32_t *column);

#endif
