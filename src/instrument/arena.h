/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arenas in the process: where the stubs of a module are, and the data page that steers them.
 *
 * A table that only grows, written by one thread at a time and read by anybody, also in signal
 * handlers.
 */
#ifndef KYMO_INSTRUMENT_ARENA_H
#define KYMO_INSTRUMENT_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/plan.h"

#define ARENAS_MAX 4096u

struct arena {
	struct plan_arena_data *data; /* start of the arena */
	uint64_t size;
	uint64_t bias, low, high; /* of the module, as loaded: [low, high) are addresses */
	uint32_t first_function_id, count;
	const struct plan_header *plan; /* in memory of its own (core/base/file_copy.h) */
	const uint8_t *modes;           /* count bytes */
	const char *plan_path, *module_path;
	bool is_module_unloaded; /* its module was unloaded */
	bool is_made_at_start;   /* PLAN_NOTE_ARENA_IS_MADE_AT_START */
	bool are_stubs_counting; /* the process copies stacks: calls are only counted */
	uint32_t met;            /* in which walk over the loaded objects (apply.c) */
};

/* Maps the arena of a plan for a module at `bias`: the data page, the trampoline code, the stubs
 * from it. 0; -EEXIST: the place is taken; or another negative errno. The trampoline is
 * closed. */
int arena_map_at_planned_address(const struct plan_header *plan, uint64_t bias,
				 struct arena *arena);
/* For an arena that is mapped already (rewritten file): puts the trampoline code in and fills the
 * data page. Expects data, size. */
int arena_fill_mapped(struct arena *arena);
/* Makes it known, gives it function ids, and tells a V8 in its module whom to ask for return
 * addresses (struct plan_header). The arena to keep, or NULL when there is no room. */
struct arena *arena_add(const struct arena *arena);
/* One that was made for the same plan and place before, or NULL. */
struct arena *arena_reuse_earlier(const struct plan_header *plan, uint64_t bias);
uint32_t arenas_get_count(void);
struct arena *arenas_get_one_by_index(uint32_t index);
/* The arena that an address lies in; signal-safe. */
struct arena *arena_find_by_address(uint64_t address);
/* Where calls of a function return to, as long as they are open; 0: no such function. */
uint64_t arena_get_stub_exit_of_function(uint32_t id);
/* Where the function is in the process; 0: no such function. */
uint64_t arena_get_original_function_address(uint32_t id);
/* Is the address in code that may look at return addresses (struct plan_header)? */
bool arena_code_may_read_return_addresses(uint32_t id, uint64_t address);
/* Is the function to be recorded with its arguments? */
bool arena_function_wants_arguments(uint32_t id);
/* Is any? Set by KYMO_INSTRUMENT_ARGUMENTS before the first arena. */
extern bool kymo_arenas_record_arguments;
/* The state of all trampolines, and of those of arenas that come. */
void arenas_set_trampoline_mode(enum plan_trampoline trampoline);
/* Objects are about to be unmapped, and arenas of rewritten ones with them: until the second call,
 * by when those are marked as gone, trampolines stay as they are. */
void arenas_freeze_trampoline_modes(void);
void arenas_unfreeze_trampoline_modes(void);

#endif
