/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of build.c.
 */
#ifndef KYMO_BINARY_PLAN_PRIVATE_H
#define KYMO_BINARY_PLAN_PRIVATE_H

#include "binary/instruction.h"
#include "binary/plan/plan.h"
#include "binary/plan/stubs.h"

/* Raised whenever the planner decides something else than before: older plans are then no longer
 * taken from the cache. */
#define PLANNER_REVISION 8u

#define JUMP_INSTRUCTION_BYTES 5u

uint32_t plan_options_to_variant_number(const struct plan_options *options);

/* window.c: how the entry of a function can be patched. */
struct plan_patch_window_info {
	uint64_t at;   /* behind endbr64 */
	uint32_t size; /* bytes whose instructions move */
	uint8_t reason, patch_how;
};

void plan_patch_window_find_at_entry(const struct functions *functions,
				     const struct function *function,
				     struct plan_patch_window_info *ret);

/* Can the instructions of a window move? */
bool plan_patch_window_can_move(const struct functions *functions,
				const struct plan_patch_window_info *window);
/* The first window in the `size` bytes of a block; where nothing is run behind them, it may reach
 * over padding, to `room`. */
void plan_patch_window_find_in_block(const struct functions *functions, uint64_t vaddr,
				     uint32_t size, uint32_t room,
				     struct plan_patch_window_info *ret);
/* nop or int3. */
bool plan_is_padding_instruction(const uint8_t *bytes, const struct instruction *instruction);

/* places.c: loops and blocks. They are numbered from functions->count on; `function` is the
 * place that is counted there. */
struct plan_block_patch {
	struct plan_patch_window_info window;
	uint32_t function;
};

struct plan_loop_and_block_lists {
	struct plan_function *list; /* without stubs; reasons say what is wanted */
	size_t count, capacity;
	struct plan_block_patch *block_patches; /* by address */
	size_t block_patch_count, block_patch_capacity;
};

int plan_loop_and_block_lists_init(const struct functions *functions,
				   const struct plan_options *options,
				   struct plan_loop_and_block_lists *ret);
void plan_loop_and_block_lists_deinit(struct plan_loop_and_block_lists *places);

/* place.c: the arena's address. `room`: bytes that it may take. -ENOSPC: none. */
int plan_choose_arena_address(const struct elf_file *file, const struct functions *functions,
			      enum plan_arena_placement_kind placement, uint64_t room,
			      uint64_t *ret);

#endif
