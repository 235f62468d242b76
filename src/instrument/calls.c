/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls.h. While a thread is in here its limit is 0 and `busy` names the call: what a signal
 * handler calls meanwhile is counted and passes straight through.
 */
#include "instrument/calls.h"

#include "common/syscalls.h"
#include "core/ticks.h"
#include "instrument/arena.h"
#include "instrument/calls_stream.h"
#include "instrument/shadow.h"
#include "instrument/vectors.h"
#include "regions/gate.h"

/* Words leave nothing out: not by category, depth, selection or throttling. */
static bool is_all_recorded(void)
{
	return !kymo_regions.careful && kymo_regions.max_depth >= SHADOW_ENTRIES - 1 &&
	       !(kymo_regions.categories_off & 1u << REGION_HOST);
}

enum plan_gate calls_way(void)
{
	return kymo_regions.trace && !kymo_regions.profile && is_all_recorded() &&
			       !kymo_ticks_are_ns && !arenas_want_arguments()
		       ? PLAN_GATE_FAST
		       : PLAN_GATE_SLOW;
}

struct shadow_entry *calls_limit(const struct calls_thread *calls)
{
	return calls->stopped || calls_way() == PLAN_GATE_SLOW ? NULL : calls->node->end;
}

static void lost(enum spool_loss loss)
{
	spool_count_loss(&kymo_runtime.spool, loss);
}

/* ---- first call of a thread ---- */

static uint64_t acquire(void *unused)
{
	struct thread *thread;
	struct shadow_node *node;

	(void)unused;
	thread = runtime_adopt_this_thread();
	node = thread ? shadow_take() : NULL;
	if (!node)
		return 0;
	node->internal_id = thread->internal_id;
	node->tid = thread->tid;
	kymo_calls.node = node;
	kymo_calls.top = node->entries + 1;
	kymo_calls.counts = node->counts;
	return 1;
}

/* The vector registers are kept in memory of this moment alone: the thread has none yet. */
static bool make_thread(void)
{
	void *area;
	bool made;

	if (region_closed_bits() & CONTROL_CLOSED_START || region_is_own())
		return false;
	area = region_map(SHADOW_VECTORS);
	if (!area)
		return false;
	made = vectors_keep(area, acquire, NULL);
	sys_munmap(area, SHADOW_VECTORS);
	return made;
}

/* ---- entry ---- */

/* What was left without returning ends here, as far as anybody knows. */
static void end_left(const struct shadow_entry *entry)
{
	lost(SPOOL_LOSS_CALL_UNWOUND);
	if (entry->flags & SHADOW_REGION)
		calls_region_end(kymo_calls.node, entry->id, NULL);
	else
		calls_write(&kymo_calls, entry->id, CALL_LEFT, ticks_now());
}

/* The caller jumped here instead of calling: its call is at an end, and this one takes over its
 * entry, which knows the way back. */
static void take_over(struct calls_thread *calls, struct shadow_entry *entry, uint32_t id,
		      const struct calls_registers *registers)
{
	uint64_t now = ticks_now();

	if (entry->flags & SHADOW_REGION) {
		calls_region_end(calls->node, entry->id, NULL);
		calls_region_begin(calls->node, id, registers);
	} else {
		calls_write(calls, entry->id, CALL_LEFT, now);
		calls_write(calls, id, CALL_ENTRY, now);
	}
	entry->id = id;
}

static bool push(struct calls_thread *calls, uint64_t *slot, uint32_t id,
		 const struct calls_registers *registers)
{
	bool region = calls_way() == PLAN_GATE_SLOW;
	struct shadow_entry *entry = calls->top;

	if (entry >= calls->node->end) {
		lost(SPOOL_LOSS_CALL_DEPTH);
		return false;
	}
	entry->return_address = *slot;
	entry->id = id;
	entry->flags = region ? SHADOW_REGION : 0;
	entry->slot = (uint64_t)(uintptr_t)slot;
	calls->top = entry + 1;
	if (region)
		calls_region_begin(calls->node, id, registers);
	else
		calls_write(calls, id, CALL_ENTRY, ticks_now());
	return true;
}

static bool enter_call(struct calls_thread *calls, uint64_t *slot, uint32_t id,
		       const struct calls_registers *registers)
{
	struct shadow_entry *before;

	if (!calls->node && !make_thread())
		return false;
	if (calls->stopped || arena_is_foreign(id, *slot))
		return false;
	before = calls->top - 1;
	if (before->slot == (uint64_t)(uintptr_t)slot && *slot == arena_exit_address(before->id)) {
		take_over(calls, before, id, registers);
		return true;
	}
	if (before->slot <= (uint64_t)(uintptr_t)slot)
		shadow_clean(calls, (uint64_t)(uintptr_t)slot, end_left);
	return push(calls, slot, id, registers);
}

/* A handler that was left by siglongjmp while it was in here comes back no more: seen from a call
 * further out on the thread's own stack. */
static bool is_abandoned(uint64_t busy, uint64_t slot)
{
	const struct thread *thread = kymo_thread;

	return thread && busy >= thread->bounds.low && slot < thread->bounds.high && busy < slot &&
	       !shadow_is_interrupted(busy, slot);
}

static bool begin(struct calls_thread *calls, uint64_t slot)
{
	uint64_t busy = atomic_load_explicit(&calls->busy, memory_order_relaxed);

	if (busy && !is_abandoned(busy, slot)) {
		lost(SPOOL_LOSS_CALL_REENTRY);
		return false;
	}
	calls->limit = NULL;
	atomic_store_explicit(&calls->busy, slot, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

static void end(struct calls_thread *calls)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&calls->busy, 0, memory_order_relaxed);
	if (calls->node)
		calls->limit = calls_limit(calls);
}

uint32_t calls_entry_slow(uint64_t *slot, uint64_t id, const struct calls_registers *registers)
{
	struct calls_thread *calls = &kymo_calls;
	bool recorded;

	if (!slot) {
		calls_write_word(calls, id, true);
		return 0;
	}
	if (!*kymo_runtime.same_process || !begin(calls, (uint64_t)(uintptr_t)slot))
		return 1;
	recorded = enter_call(calls, slot, (uint32_t)id, registers);
	end(calls);
	return !recorded;
}

/* ---- exit ---- */

void calls_exit_slow(uint64_t *slot, uint64_t id, const struct calls_registers *registers)
{
	struct calls_thread *calls = &kymo_calls;
	struct shadow_entry entry;
	uint64_t now = ticks_now();
	bool own;

	if (!slot) {
		calls_write_word(calls, id, false);
		return;
	}
	/* An exit in the midst of something else: that was abandoned. */
	own = calls->node != NULL;
	calls->limit = NULL;
	atomic_store_explicit(&calls->busy, (uint64_t)(uintptr_t)slot, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	/* Without its return address the thread cannot go on. */
	if (!shadow_pop(calls, (uint64_t)(uintptr_t)slot, (uint32_t)id, &entry, end_left))
		__builtin_trap();
	*slot = entry.return_address;
	if (own && *kymo_runtime.same_process && !(region_closed_bits() & CONTROL_CLOSED_START)) {
		if (entry.flags & SHADOW_REGION)
			calls_region_end(calls->node, entry.id, registers);
		else
			calls_write(calls, entry.id, CALL_EXIT, now);
	}
	end(calls);
}

/* ---- counted calls ---- */

void calls_count_slow(uint64_t id)
{
	struct calls_thread *calls = &kymo_calls;
	struct shadow_node *node;

	if (!*kymo_runtime.same_process || !begin(calls, 1))
		return;
	node = calls->node || make_thread() ? calls->node : NULL;
	if (node && !node->counts) {
		uint64_t *counts = region_map((PLAN_ID_MAX + 1) * sizeof(uint64_t));

		node->counts = counts;
	}
	if (node && node->counts) {
		calls->counts = node->counts;
		calls->counts[id]++;
	}
	end(calls);
}
