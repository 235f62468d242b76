/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of plan_build.c.
 */
#ifndef KYMO_BINARY_PLAN_INTERNAL_H
#define KYMO_BINARY_PLAN_INTERNAL_H

#include "binary/instruction.h"
#include "binary/plan.h"
#include "binary/stubs.h"

/* Raised whenever the planner decides something else than before: older plans are then no longer
 * taken from the cache. */
#define PLANNER_REVISION 7u

#define JUMP_SIZE 5u

uint32_t plan_variant(const struct plan_options *options);

/* plan_window.c: how the entry of a function can be patched. */
struct plan_window {
	uint64_t at;   /* behind endbr64 */
	uint32_t size; /* bytes whose instructions move */
	uint8_t reason, how;
};

void plan_window_find(const struct functions *functions, const struct function *function,
		      struct plan_window *ret);

/* Can the instructions of a window move? */
bool plan_window_moves(const struct functions *functions, const struct plan_window *window);
/* The first window in the `size` bytes of a block; where nothing is run behind them, it may reach
 * over padding, to `room`. */
void plan_window_find_place(const struct functions *functions, uint64_t vaddr, uint32_t size,
			    uint32_t room, struct plan_window *ret);
/* nop or int3. */
bool plan_window_is_padding(const uint8_t *bytes, const struct instruction *instruction);

/* plan_places.c: loops and blocks. They are numbered from functions->count on; `function` is the
 * place that is counted there. */
struct plan_patch {
	struct plan_window window;
	uint32_t function;
};

struct plan_places {
	struct plan_function *list; /* without stubs; reasons say what is wanted */
	size_t count, capacity;
	struct plan_patch *patches; /* by address */
	size_t patch_count, patch_capacity;
};

int plan_places_find(const struct functions *functions, const struct plan_options *options,
		     struct plan_places *ret);
void plan_places_deinit(struct plan_places *places);

/* plan_place.c: the arena's address. `room`: bytes that it may take. -ENOSPC: none. */
int plan_place(const struct elf_file *file, const struct functions *functions,
	       enum plan_placement placement, uint64_t room, uint64_t *ret);

#endif
