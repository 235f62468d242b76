/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The bytes of stubs (layout in kymo/plan.h) and their unwind tables.
 */
#ifndef KYMO_BINARY_PLAN_STUBS_H
#define KYMO_BINARY_PLAN_STUBS_H

#include "binary/functions/functions.h"
#include "kymo/plan.h"

struct stubs {
	uint64_t arena_vaddr;
	uint8_t *bytes; /* from PLAN_STUBS of the arena on */
	size_t size, capacity;
	struct plan_move *moves;
	size_t move_count, move_capacity;
};

enum stub_kind { STUB_KIND_FUNCTION, STUB_KIND_LOOP_OR_BLOCK /* loop or block: counts alone */ };

int stubs_init(struct stubs *stubs, uint64_t arena_vaddr);
void stubs_deinit(struct stubs *stubs);
/* Adds the stub of function `number` whose `window` bytes at `vaddr` (whole instructions) move.
 * Fills site->move_count and first_move. Offset in the arena, or negative errno: -ENOTSUP (an
 * instruction cannot be moved), -ERANGE, -ENOMEM; then nothing was added. */
int64_t stubs_append_stub(struct stubs *stubs, enum stub_kind kind, uint32_t number,
			  const uint8_t *code, uint64_t vaddr, uint32_t window,
			  struct plan_site *site);
/* Appends .eh_frame_hdr and .eh_frame for all of it, given the functions that were added and their
 * sites. `frames`: what .eh_frame says about the displaced instructions. ret_frames: where, as an
 * offset in the arena; count 0: there are no stubs. */
int stubs_append_unwind_tables(struct stubs *stubs, const struct eh_frame_table *frames,
			       const struct plan_function *functions, size_t count,
			       const struct plan_site *sites, struct plan_table *ret_frames);

#endif
