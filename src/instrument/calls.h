/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The slow ways of the gate code, and the stream of words that it writes (kymo/spool.h, CALLS).
 *
 * Called by the gate code only, on the program's threads, in the midst of anything.
 */
#ifndef KYMO_INSTRUMENT_CALLS_H
#define KYMO_INSTRUMENT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/runtime.h"
#include "kymo/plan.h"

struct shadow_node;

/* What the gate code has on the stack when it calls a slow way; lowest address first. */
struct calls_registers {
	uint64_t flags, rbp, r11, r10, r9, r8, rdi, rsi, rdx, status, rax, rcx;
	uint64_t stub_return, number;
};

/* slot: where the function's return address is; id: of the process. 0: recorded, the call is to go
 * on by way of its exit. slot NULL: `id` is a word that found no room, without its time. */
uint32_t calls_entry_slow(uint64_t *slot, uint64_t id, const struct calls_registers *registers);
/* Puts the return address into the slot. */
void calls_exit_slow(uint64_t *slot, uint64_t id, const struct calls_registers *registers);
void calls_count_slow(uint64_t id);

/* How calls are recorded in this run: by words, or (PLAN_GATE_SLOW) by way of region_begin(), where
 * components other than the wall clock are asked for, or where some regions are to be left out. */
enum plan_gate calls_way(void);

/* ---- the thread's life ---- */
void calls_thread_end(void);
/* Its `excluded` changed. */
void calls_thread_switched(void);
void calls_thread_gone(uint32_t internal_id);
/* In a forked child, on its only thread. */
void calls_forked(void);
/* kymo leaves the process: streams end. */
void calls_left(void);
/* Has any call been counted only? Signal-safe. */
bool calls_are_counted(void);
/* Writes counts of calls that changed since *written (by function id). Background thread. */
void calls_write_counts(struct runtime *runtime, uint64_t *written, uint32_t first, uint32_t count);
/* Times must not be further apart than words can tell: now and then. Background thread. */
void calls_poke(void);

#endif
