/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The slow ways of the trampoline code, and the stream of words that it writes (kymo/spool.h,
 * CALLS).
 *
 * Called by the trampoline code only, on the program's threads, in the midst of anything.
 */
#ifndef KYMO_INSTRUMENT_CALLS_H
#define KYMO_INSTRUMENT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/runtime.h"
#include "kymo/plan.h"

struct shadow_stack_node;

/* What the trampoline code has on the stack when it calls a slow way; lowest address first. */
struct calls_saved_registers {
	uint64_t flags, rbp, r11, r10, r9, r8, rdi, rsi, rdx, status, rax, rcx;
	uint64_t stub_return_address, number;
};

/* slot: where the function's return address is; id: of the process. 0: recorded, the call is to go
 * on by way of its exit. slot NULL: `id` is a word that found no room, without its time, or
 * CALLS_RESERVED_EVENTS. */
uint32_t calls_handle_entry_slow_path(uint64_t *slot, uint64_t id,
				      const struct calls_saved_registers *registers);
/* Puts the return address into the slot. slot NULL: as above. */
void calls_handle_exit_slow_path(uint64_t *slot, uint64_t id,
				 const struct calls_saved_registers *registers);
void calls_handle_count_slow_path(uint64_t id);

/* What the trampoline code tries before those: calls that are summed up in place, in a profile of
 * the wall clock alone. They keep all registers and call nothing, so that none has to be saved. */
enum calls_sum_result {
	CALLS_SUM_DONE,
	CALLS_SUM_DECLINED, /* nothing is changed: the slow way has to be taken */
	CALLS_SUM_RESERVED  /* done; a signal handler's events wait (the slow ways with slot NULL
			       and CALLS_RESERVED_EVENTS) */
};
#define CALLS_RESERVED_EVENTS UINT64_MAX

__attribute__((no_caller_saved_registers)) uint32_t calls_sum_entry(uint64_t *slot, uint64_t id);
__attribute__((no_caller_saved_registers)) uint32_t calls_sum_exit(uint64_t *slot, uint64_t id);

/* How calls are recorded in this run: by words, or (PLAN_TRAMPOLINE_SLOW) by way of region_begin(),
 * where components other than the wall clock are asked for, or where some regions are to be left
 * out. */
enum plan_trampoline calls_get_trampoline_mode(void);

/* ---- the thread's life ---- */
void calls_end_thread(void);
/* Its `excluded` changed. */
void calls_apply_thread_exclusion(void);
void calls_release_gone_thread(uint32_t internal_id);
/* In a forked child, on its only thread. */
void calls_reset_in_forked_child(void);
/* kymo leaves the process: streams end. */
void calls_forget_chunks_after_detach(void);
/* Has any call been counted only? Signal-safe. */
bool calls_have_counts(void);
/* Writes counts of calls that changed since *written (by function id). Background thread. */
void calls_write_changed_counts(uint64_t *written, uint32_t first, uint32_t count);
/* Times must not be further apart than words can tell: now and then. Background thread. */
void calls_force_new_records(void);

#endif
