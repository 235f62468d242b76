/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of plan_build.c.
 */
#ifndef KYMO_BINARY_PLAN_INTERNAL_H
#define KYMO_BINARY_PLAN_INTERNAL_H

#include "binary/plan.h"
#include "binary/stubs.h"

/* Raised whenever the planner decides something else than before: older plans are then no longer
 * taken from the cache. */
#define PLANNER_REVISION 4u

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

/* plan_place.c: the arena's address. `room`: bytes that it may take. -ENOSPC: none. */
int plan_place(const struct elf_file *file, const struct functions *functions,
	       enum plan_placement placement, uint64_t room, uint64_t *ret);

#endif
