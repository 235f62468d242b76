/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one kind of interpreter has to say, and what its walk works with.
 *
 * A walk appends items, innermost first: frames (SPOOL_INTERPRETED_FRAME_BIT), and behind the
 * frames that one call of the evaluation loop runs a boundary: an address in that call's own frame
 * on the native stack. An unknown boundary (0) lets the frames be paired by counting calls.
 */
#ifndef KYMO_CORE_INTERPRETERS_KIND_H
#define KYMO_CORE_INTERPRETERS_KIND_H

#include "core/interpreters/exports.h"
#include "core/interpreters/interpreters.h"
#include "core/interpreters/memory.h"

#define INTERPRETER_TYPES_KNOWN 16u

#define INTERPRETED_BOUNDARY_BIT (1ull << 63)

/* An interpreter in the process's memory. */
struct interpreter {
	const struct interpreter_kind *kind;
	uint64_t module_start;
	uint64_t symbols[INTERPRETER_SYMBOLS_MAX]; /* addresses; 0: not exported */
	uint64_t symbol_sizes[INTERPRETER_SYMBOLS_MAX];
	const void *layout;         /* the kind's */
	_Atomic uint64_t code_type; /* found out by the first walk; 0: not yet */
	_Atomic uint32_t is_present;
	/* What a walk misses, as the kind understands it: the background thread searches for it,
	 * after longer and longer pauses, counted in its rounds. 0: nothing. */
	_Atomic uint64_t wanted;
	uint32_t search_pause, search_pause_left;
	/* Python: the running task of each event loop (asyncio) is in this dictionary, of this
	 * PyInterpreterState; types that were met. 0: not known yet. */
	_Atomic uint64_t running_tasks, running_tasks_owner, types[INTERPRETER_TYPES_KNOWN];
};

struct interpreted_walk {
	struct interpreter *interpreter;
	const struct native_stack *stack;
	struct interpreted_merge *merge;
	uint32_t count; /* of merge->items */
	uint32_t capacity;
	bool trusts_memory; /* what the interpreter points to is read directly */
	bool is_full;       /* there was no room for all items */
	/* What the items are does not matter, only that they differ where frames do: one may stand
	 * for all. */
	bool only_differences;
	/* Reads through the kernel that may still be made, and whether code may be described: a
	 * handler that takes longer than the sampling period would hold its thread for ever. */
	uint32_t checked_reads_left;
	bool cannot_describe;
};

struct interpreter_kind {
	const char *name;
	const char *symbols[INTERPRETER_SYMBOLS_MAX]; /* the first must be exported */
	/* The version of the interpreter in a file; 0: unknown. */
	uint32_t (*read_version)(const struct elf_exports *exports, const char *path);
	/* Chooses the layout. NULL, or why this version is not supported. */
	const char *(*recognize)(struct interpreter *interpreter, uint32_t version);
	uint32_t evaluate_symbol; /* place in `symbols` of the function that runs frames */
	/* Appends the items of the thread. False: it runs no code of this interpreter. Signal-safe.
	 */
	bool (*collect)(struct interpreted_walk *walk);
	/* Searches for what is wanted. Background thread only; NULL: nothing ever is. */
	void (*search)(struct interpreter *interpreter);
};

extern const struct interpreter_kind interpreter_kind_python;

static inline bool interpreted_walk_append(struct interpreted_walk *walk, uint64_t item)
{
	if (walk->count == walk->capacity) {
		walk->is_full = true;
		return false;
	}
	walk->merge->items[walk->count++] = item;
	return true;
}

static inline bool interpreted_walk_read_checked(struct interpreted_walk *walk, uint64_t address,
						 void *to, size_t size)
{
	if (!walk->checked_reads_left)
		return false;
	walk->checked_reads_left--;
	return memory_read_checked(address, to, size);
}

#endif
