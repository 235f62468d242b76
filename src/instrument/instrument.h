/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instrumented functions in the profiled process: plans are asked for and applied, entries and
 * exits recorded, and everything undone.
 *
 * Life: instrument_start() once the runtime runs (constructor; or attach, on a thread of kymo's
 * own); instrument_loaded_objects() whenever objects were loaded; instrument_stop() when kymo
 * leaves the process. Arenas are never unmapped: return addresses into them may lie on stacks.
 *
 * What runs at entry and exit of functions (trampoline.S, calls.c, shadow.c) uses general registers
 * alone, calls nothing of libc, takes no lock and allocates from the kernel only.
 */
#ifndef KYMO_INSTRUMENT_INSTRUMENT_H
#define KYMO_INSTRUMENT_INSTRUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/runtime.h"

/* Asks for the plans of all loaded objects and applies them; finds rewritten ones. Does nothing
 * when KYMO_INSTRUMENT is not set and nothing loaded is rewritten. */
void instrument_start(bool attached);
/* A rewritten library was opened, by a thread that has run none of its code yet; where nothing was
 * instrumented before. */
void instrument_start_for_opened_library(void);
/* Before instrument_start(): calls, their begins and ends, are passed on instead of recorded, on
 * the calling thread. */
void instrument_set_call_listeners(void (*entered)(uint64_t address),
				   void (*left)(uint64_t address));
/* Objects may have been loaded that no thread has executed yet. */
void instrument_loaded_objects(void);
/* All threads go on; nothing new is recorded. */
void instrument_stop(void);
/* What calls leave on stacks changed (stack_copies.h). Signal-safe. */
void instrument_update_trampolines(void);

/* ---- for unwinders ---- */

/* The arena that an address lies in. */
struct instrumented_arena {
	uint64_t start, size;
	uint64_t bias;                  /* of the module */
	const struct plan_header *plan; /* mapped, read-only */
};
bool instrument_find_arena(uint64_t address, struct instrumented_arena *ret);

/* The true return address of a call whose return address slot is at `slot` and holds an address of
 * an arena; 0: not known. Signal-safe. */
uint64_t instrument_find_return_address_of_slot(uint64_t slot);

/* ---- the thread's part of runtime_hooks ---- */
extern const struct runtime_hooks instrument_hook_table;

#endif
