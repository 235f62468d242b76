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
 * and its newer one, a list under rocprofiler-sdk: counters:. A mistake is told with its place and
 * takes the definition away that it is in; all others stay.
 */
#ifndef KYMO_COUNTERS_DEFINITIONS_H
#define KYMO_COUNTERS_DEFINITIONS_H

#include "counters/catalogue.h"
#include "counters/yaml.h"

struct definition {
	const char *name, *architecture, *description;
	const char *block, *event;     /* "" where it is an expression */
	const char *expression;        /* "" where it is an event */
	const struct yaml_node *place; /* the expression, or the event */
	const struct definition_file *file;
	struct definition *next; /* of the same hash, the latest first */
};

struct definition_file {
	const char *path;
	uint32_t number; /* files that are added later come first */
};

#define DEFINITION_BUCKETS 8192u

struct definitions {
	struct memory memory;
	struct definition **list; /* in order */
	uint32_t count, capacity, files;
	struct definition *buckets[DEFINITION_BUCKETS];
};

typedef void (*definition_told_t)(void *context, const char *path, unsigned line, unsigned column,
				  const char *text);

/* Adds what is in a file, which may define anew what others before it have. Returns the number of
 * mistakes told; -1: there is no memory. The path is only shown. */
int definitions_add(struct definitions *definitions, const char *path, const char *text,
		    size_t size, definition_told_t told, void *context);
void definitions_free(struct definitions *definitions);
/* For an agent that goes by several architectures, the most exact one first, up to NULL. */
const struct definition *definitions_find(const struct definitions *definitions, const char *name,
					  const char *const *architectures);
/* What a mistake in an expression is called: path:line:column. */
void definition_place(const struct definition *definition, size_t offset, uint32_t *line,
		      uint32_t *column);
/* Names, cycles and arguments of everything that the latest file defines, on all architectures it
 * names; returns the number of mistakes. */
int definitions_check(const struct definitions *definitions, definition_told_t told, void *context);

/* One file by itself, or on top of another one (base may be NULL). Returns the number of mistakes;
 * -1: there is no memory. */
int counter_file_check(const char *text, size_t size, const char *path, definition_told_t problem,
		       void *context);
int counter_file_check_on(const char *base, size_t base_size, const char *text, size_t size,
			  const char *path, definition_told_t problem, void *context);

#endif
