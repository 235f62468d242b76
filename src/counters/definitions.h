/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Definitions of counters, as they stand in files: for each name and architecture either an event
 * (block and text) or an expression. Two forms are read, upstream's old one
 *
 *   NAME:
 *     architectures:
 *       gfx90a/gfx942: { block: SQ, event: 4 }      or { expression: ... }, and a description
 *     description: text
 *
 * and its newer one, a list under rocprofiler-sdk: counters:. A mistake is reported with its place
 * and takes the definition away that it is in; all others stay.
 */
#ifndef KYMO_COUNTERS_DEFINITIONS_H
#define KYMO_COUNTERS_DEFINITIONS_H

#include "counters/catalogue.h"
#include "counters/yaml.h"

struct counter_definition {
	const char *name, *architecture, *description;
	const char *block, *event;     /* "" where it is an expression */
	const char *expression;        /* "" where it is an event */
	const struct yaml_node *place; /* the expression, or the event */
	const struct definition_file *file;
	struct counter_definition *next; /* of the same hash, the latest first */
};

struct definition_file {
	const char *path;
	uint32_t number; /* files that are added later come first */
};

#define DEFINITION_BUCKET_COUNT 8192u

struct counter_definitions {
	struct memory_pool memory;
	struct counter_definition **list; /* in order */
	uint32_t count, capacity, files;
	struct counter_definition *hash_buckets[DEFINITION_BUCKET_COUNT];
};

typedef void (*definition_problem_callback_t)(void *context, const char *path, unsigned line,
					      unsigned column, const char *text);

/* Adds what is in a file, which may redefine what others before it have. Returns the number of
 * mistakes told; -1: there is no memory. The path is only shown. */
int definitions_add_file_text(struct counter_definitions *definitions, const char *path,
			      const char *text, size_t size, definition_problem_callback_t told,
			      void *context);
void definitions_free(struct counter_definitions *definitions);
/* For an agent that goes by several architectures, the most exact one first, up to NULL. */
const struct counter_definition *definitions_find(const struct counter_definitions *definitions,
						  const char *name,
						  const char *const *architectures);
/* What a mistake in an expression is called: path:line:column. */
void definition_offset_to_line_column(const struct counter_definition *definition, size_t offset,
				      uint32_t *line, uint32_t *column);
/* Names, cycles and arguments of everything that the latest file defines, on all architectures it
 * names; returns the number of mistakes. */
int definitions_report_last_file_mistakes(const struct counter_definitions *definitions,
					  definition_problem_callback_t told, void *context);

/* One file by itself, or on top of another one (base may be NULL). Returns the number of mistakes;
 * -1: there is no memory. */
int counter_file_report_mistakes(const char *text, size_t size, const char *path,
				 definition_problem_callback_t problem, void *context);
int counter_file_report_mistakes_with_base_file(const char *base, size_t base_size,
						const char *text, size_t size, const char *path,
						definition_problem_callback_t problem,
						void *context);

#endif
