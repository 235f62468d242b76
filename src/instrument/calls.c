/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls.h. While a thread is in here its limit is 0 and `busy` names the call: what a signal
 * handler calls meanwhile is counted and passes straight through.
 */
#include "instrument/calls.h"

#include "common/syscalls.h"
#include "core/base/ticks.h"
#include "instrument/arena.h"
#include "instrument/calls_stream.h"
#include "instrument/shadow.h"
#include "instrument/stack_copies.h"
#include "instrument/state.h"
#include "instrument/vectors.h"
#include "regions/reentry_guard.h"

#define STACK_COPIES_SEEN_TEXT                                                                     \
	"calls are only counted from here on, because the program copies stacks"

/* Words leave nothing out: not by category, depth, selection or throttling. */
static bool no_filter_leaves_calls_out(void)
{
	return !kymo_regions.may_skip_regions && kymo_regions.max_depth >= SHADOW_ENTRIES_MAX - 1 &&
	       !(kymo_regions.category_off_bits & 1u << REGION_INSTRUMENTED);
}

enum plan_trampoline calls_get_trampoline_mode(void)
{
	return kymo_regions.records_events && !kymo_regions.keeps_profile &&
			       no_filter_leaves_calls_out() && !kymo_ticks_are_by_clock &&
			       !kymo_arenas_record_arguments
		       ? PLAN_TRAMPOLINE_FAST
		       : PLAN_TRAMPOLINE_SLOW;
}

struct shadow_entry *calls_compute_shadow_limit(const struct calls_thread_state *calls)
{
	return calls->stopped || calls_get_trampoline_mode() == PLAN_TRAMPOLINE_SLOW
		       ? NULL
		       : calls->node->end;
}

static void count_call_loss(enum spool_loss loss)
{
	spool_count_loss(kymo_instrument.spool, loss);
}

/* ---- first call of a thread ---- */

static uint64_t acquire_shadow_stack(void *unused)
{
	struct thread *thread;
	struct shadow_stack_node *node;

	(void)unused;
	thread = runtime_find_or_add_this_thread();
	node = thread ? shadow_acquire_node() : NULL;
	if (!node)
		return 0;
	node->internal_thread_id = thread->internal_id;
	node->tid = thread->tid;
	kymo_calls.node = node;
	kymo_calls.top = node->entries + 1;
	kymo_calls.counts = node->counts;
	return 1;
}

/* The vector registers are kept in memory of this moment alone: the thread has none yet. */
static bool init_calls_thread(void)
{
	void *area;
	bool made;

	if (region_load_closed_reason_bits() & CONTROL_CLOSED_NOT_STARTED)
		return false;
	if (region_thread_is_in_kymo_code()) {
		count_call_loss(SPOOL_LOSS_CALL_REENTRY);
		return false;
	}
	area = region_map_memory(SHADOW_THREAD_VECTOR_AREA_BYTES);
	if (!area)
		return false;
	made = vectors_call_preserving_registers(area, acquire_shadow_stack, NULL);
	sys_munmap(area, SHADOW_THREAD_VECTOR_AREA_BYTES);
	return made;
}

/* ---- entry ---- */

/* What was left without returning ends here, as far as anybody knows. */
static void end_abandoned_call(const struct shadow_entry *entry)
{
	count_call_loss(SPOOL_LOSS_CALL_UNWOUND);
	if (entry->flags & SHADOW_FLAG_REGION)
		calls_end_region(kymo_calls.node, entry->id, NULL);
	else
		calls_write_call_word(&kymo_calls, entry->id, CALL_WORD_ABANDONED, ticks_now());
}

/* The caller jumped here instead of calling: its call is at an end, and this one takes over its
 * entry, which knows the way back. */
static void record_tail_call(struct calls_thread_state *calls, struct shadow_entry *entry,
			     uint32_t id, const struct calls_saved_registers *registers)
{
	uint64_t now = ticks_now();

	if (entry->flags & SHADOW_FLAG_REGION) {
		calls_end_region(calls->node, entry->id, NULL);
		calls_begin_region(calls->node, id, registers);
	} else {
		calls_write_call_word(calls, entry->id, CALL_WORD_ABANDONED, now);
		calls_write_call_word(calls, id, CALL_WORD_ENTRY, now);
	}
	entry->id = id;
}

static bool push_and_record_call(struct calls_thread_state *calls, uint64_t *slot, uint32_t id,
				 const struct calls_saved_registers *registers)
{
	bool region = calls_get_trampoline_mode() == PLAN_TRAMPOLINE_SLOW;
	struct shadow_entry *entry = calls->top;

	if (entry >= calls->node->end) {
		count_call_loss(SPOOL_LOSS_CALL_DEPTH);
		return false;
	}
	entry->return_address = *slot;
	entry->id = id;
	entry->flags = region ? SHADOW_FLAG_REGION : 0;
	entry->slot = (uint64_t)(uintptr_t)slot;
	calls->top = entry + 1;
	if (region)
		calls_begin_region(calls->node, id, registers);
	else
		calls_write_call_word(calls, id, CALL_WORD_ENTRY, ticks_now());
	return true;
}

static bool record_call_entry(struct calls_thread_state *calls, uint64_t *slot, uint32_t id,
			      const struct calls_saved_registers *registers)
{
	struct shadow_entry *before;

	if (calls->has_ended) {
		count_call_loss(SPOOL_LOSS_CALL_REENTRY);
		return false;
	}
	if (!calls->node && !init_calls_thread())
		return false;
	if (calls->stopped || arena_code_may_read_return_addresses(id, *slot))
		return false;
	before = calls->top - 1;
	if (before->slot == (uint64_t)(uintptr_t)slot &&
	    *slot == arena_get_stub_exit_of_function(before->id)) {
		record_tail_call(calls, before, id, registers);
		return true;
	}
	if (before->slot <= (uint64_t)(uintptr_t)slot)
		shadow_end_stale_entries(calls, (uint64_t)(uintptr_t)slot, end_abandoned_call);
	return push_and_record_call(calls, slot, id, registers);
}

/* A handler that was left by siglongjmp while it was in here comes back no more: seen from a call
 * on the thread's own stack that no handler can have made. */
static bool handler_was_abandoned(uint64_t busy, uint64_t slot)
{
	const struct thread *thread = kymo_thread;

	return thread && thread_no_handler_is_between(thread, busy, slot) &&
	       !shadow_is_interrupted_by_handler_at(busy, slot);
}

static bool try_begin_slow_path(struct calls_thread_state *calls, uint64_t slot)
{
	uint64_t busy = atomic_load_explicit(&calls->busy, memory_order_relaxed);

	if (busy && !handler_was_abandoned(busy, slot)) {
		count_call_loss(SPOOL_LOSS_CALL_REENTRY);
		return false;
	}
	calls->limit = NULL;
	atomic_store_explicit(&calls->busy, slot, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

static void end_slow_path(struct calls_thread_state *calls)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&calls->busy, 0, memory_order_relaxed);
	if (calls->node)
		calls->limit = calls_compute_shadow_limit(calls);
}

static void handle_event_without_slot(struct calls_thread_state *calls, uint64_t id, bool entry)
{
	if (id == CALLS_RESERVED_EVENTS)
		calls_record_reserved_events(calls->node);
	else
		calls_write_word_that_had_no_room(calls, id, entry);
}

uint32_t calls_handle_entry_slow_path(uint64_t *slot, uint64_t id,
				      const struct calls_saved_registers *registers)
{
	struct calls_thread_state *calls = &kymo_calls;
	bool recorded;

	if (!slot) {
		handle_event_without_slot(calls, id, true);
		return 0;
	}
	if (!process_is_where_runtime_started() ||
	    !try_begin_slow_path(calls, (uint64_t)(uintptr_t)slot))
		return 1;
	recorded = record_call_entry(calls, slot, (uint32_t)id, registers);
	end_slow_path(calls);
	return !recorded;
}

/* ---- exit ---- */

static uint64_t switch_to_counting(void *argument)
{
	(void)argument;
	stack_copies_switch_to_counting(STACK_COPIES_SEEN_TEXT, NULL);
	return 0;
}

/* What is called may use vector registers, which hold what the program's function returns. */
static void switch_to_counting_at_exit(const struct calls_thread_state *calls)
{
	if (!stack_copies_are_made())
		vectors_call_preserving_registers(calls->node->vector_area, switch_to_counting,
						  NULL);
}

/* The call has returned before: its stack was copied away then, and is back. */
static void return_again(const struct calls_thread_state *calls, uint64_t *slot, uint32_t id)
{
	uint64_t address;

	/* Without its return address the thread cannot go on. */
	if (!shadow_find_return_address_of_returned_call(calls, id, &address))
		__builtin_trap();
	*slot = address;
	count_call_loss(SPOOL_LOSS_CALL_UNWOUND);
	switch_to_counting_at_exit(calls);
}

/* The usual case, as the trampoline code has it. */
static bool pop_innermost_entry(struct calls_thread_state *calls, uint64_t slot, uint32_t id,
				struct shadow_entry *ret)
{
	struct shadow_entry *entry = calls->top - 1;

	if (!calls->node || entry->slot != slot || entry->id != id ||
	    entry->flags & ~SHADOW_FLAG_REGION)
		return false;
	*ret = *entry;
	entry->slot = 0; /* entries above the top have none */
	calls->top = shadow_trim_removed_top(entry);
	return true;
}

void calls_handle_exit_slow_path(uint64_t *slot, uint64_t id,
				 const struct calls_saved_registers *registers)
{
	struct calls_thread_state *calls = &kymo_calls;
	struct shadow_entry entry;
	bool own;

	if (!slot) {
		handle_event_without_slot(calls, id, false);
		return;
	}
	/* An exit in the midst of something else: that was abandoned. */
	own = calls->node != NULL;
	calls->limit = NULL;
	atomic_store_explicit(&calls->busy, (uint64_t)(uintptr_t)slot, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (!pop_innermost_entry(calls, (uint64_t)(uintptr_t)slot, (uint32_t)id, &entry) &&
	    !shadow_pop_entry(calls, (uint64_t)(uintptr_t)slot, (uint32_t)id, &entry,
			      end_abandoned_call)) {
		return_again(calls, slot, (uint32_t)id);
		end_slow_path(calls);
		return;
	}
	*slot = entry.return_address;
	if (own && entry.flags & SHADOW_FLAG_REUSED)
		switch_to_counting_at_exit(calls);
	if (own && process_is_where_runtime_started() &&
	    !(region_load_closed_reason_bits() & CONTROL_CLOSED_NOT_STARTED)) {
		if (entry.flags & SHADOW_FLAG_REGION)
			calls_end_region(calls->node, entry.id, registers);
		else
			calls_write_call_word(calls, entry.id, CALL_WORD_EXIT, ticks_now());
	}
	end_slow_path(calls);
}

/* ---- counted calls ---- */

void calls_handle_count_slow_path(uint64_t id)
{
	struct calls_thread_state *calls = &kymo_calls;
	struct shadow_stack_node *node;

	if (!process_is_where_runtime_started() || !try_begin_slow_path(calls, 1))
		return;
	node = calls->node || init_calls_thread() ? calls->node : NULL;
	if (node && !node->counts) {
		uint64_t *counts = region_map_memory((PLAN_ID_MAX + 1) * sizeof(uint64_t));

		node->counts = counts;
	}
	if (node && node->counts) {
		calls->counts = node->counts;
		calls->counts[id]++;
	}
	end_slow_path(calls);
}
