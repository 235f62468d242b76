/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The targets of a session's causal experiments: functions or lines, numbered in the order in which
 * they are met, the same in all modules and processes.
 *
 * A function is one target a module, whatever instances of it were inlined or cloned; functions
 * that share a name only are distinguished by their file. A line is one target wherever its code
 * is. Thread-safe.
 */
#ifndef KYMO_BINARY_CAUSAL_TARGETS_H
#define KYMO_BINARY_CAUSAL_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings live as long as the table. */
struct causal_target {
	const char *name; /* of the function, readable; of lines: one that has it; NULL: unknown */
	const char *file; /* full path; NULL: unknown */
	const char *module; /* path, as the first process that had it sees it */
	uint32_t line;      /* of functions: where they are defined; 0: unknown */
};

struct causal_targets;

/* -ENOMEM. */
int causal_targets_create(struct causal_targets **ret);
void causal_targets_destroy(struct causal_targets *targets);

/* Ids from 1 on; 0: the table is full, or no memory. `symbol` is as in the file, mangled. `file`
 * counts for functions only where `symbol` is not unique by itself (static ones). */
uint32_t causal_targets_find_or_add_function(struct causal_targets *targets, const char *module,
					     const char *symbol, const char *file, uint32_t line);
uint32_t causal_targets_find_or_add_line(struct causal_targets *targets, const char *module,
					 const char *symbol, const char *file, uint32_t line);

/* How many there are: ids 1 up to this. */
uint32_t causal_targets_get_count(struct causal_targets *targets);
/* False: there is no such target. */
bool causal_targets_copy_target(struct causal_targets *targets, uint32_t id,
				struct causal_target *ret);

#endif
