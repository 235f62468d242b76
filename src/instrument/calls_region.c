/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls as regions: what words cannot carry (components kept in the process, arguments, selected
 * regions). The region machinery calls into parts that may use vector registers.
 */
#include "common/syscalls.h"
#include "instrument/arena.h"
#include "instrument/calls_stream.h"
#include "instrument/instrument.h"
#include "instrument/vectors.h"
#include "regions/fast_path.h"
#include "regions/state.h"

#define REGISTER_ARGUMENT_COUNT 6u /* in registers: System V ABI 3.2.3 */

struct call_region_info {
	uint32_t id;
	const struct calls_saved_registers *registers;
};

/* By function id; 0: not asked for yet. Several threads may find the same one out. */
static region_id *_Atomic region_ids_by_function_id;

static region_id find_or_add_function_region(uint32_t id)
{
	region_id *regions = atomic_load_explicit(&region_ids_by_function_id, memory_order_acquire);

	if (!regions) {
		region_id *made = region_map_memory((PLAN_ID_MAX + 1) * sizeof(*made));

		if (!made)
			return 0;
		if (atomic_compare_exchange_strong(&region_ids_by_function_id, &regions, made))
			regions = made;
		else
			sys_munmap(made, (PLAN_ID_MAX + 1) * sizeof(*made));
	}
	if (!regions[id])
		regions[id] = region_find_or_add_instrumented_function(
			arena_get_original_function_address(id), id);
	return regions[id];
}

static uint64_t begin_call_region(void *argument)
{
	static const char *const names[REGISTER_ARGUMENT_COUNT] = {"arg0", "arg1", "arg2",
								   "arg3", "arg4", "arg5"};
	const struct call_region_info *event = argument;
	const struct calls_saved_registers *from = event->registers;
	struct region_value values[REGISTER_ARGUMENT_COUNT];

	region_begin(find_or_add_function_region(event->id));
	if (!arena_function_wants_arguments(event->id))
		return 0;
	const uint64_t numbers[REGISTER_ARGUMENT_COUNT] = {from->rdi, from->rsi, from->rdx,
							   from->rcx, from->r8,  from->r9};

	for (unsigned i = 0; i < REGISTER_ARGUMENT_COUNT; i++)
		values[i] = (struct region_value){
			.name = names[i], .type = SPOOL_VALUE_ADDRESS, .number = numbers[i]};
	region_values(values, REGISTER_ARGUMENT_COUNT);
	return 0;
}

static uint64_t end_call_region(void *argument)
{
	const struct call_region_info *event = argument;

	region_end(find_or_add_function_region(event->id));
	if (event->registers && arena_function_wants_arguments(event->id))
		region_values(&(struct region_value){.name = "return",
						     .type = SPOOL_VALUE_ADDRESS,
						     .number = event->registers->rax},
			      1);
	return 0;
}

/* NULL: calls are recorded. */
static void (*call_begin_listener)(uint64_t address), (*call_end_listener)(uint64_t address);

void instrument_set_call_listeners(void (*entered)(uint64_t address),
				   void (*left)(uint64_t address))
{
	call_end_listener = left;
	call_begin_listener = entered;
}

static uint64_t notify_call_begin_listener(void *argument)
{
	call_begin_listener(arena_get_original_function_address(
		((const struct call_region_info *)argument)->id));
	return 0;
}

static uint64_t notify_call_end_listener(void *argument)
{
	call_end_listener(arena_get_original_function_address(
		((const struct call_region_info *)argument)->id));
	return 0;
}

static uint64_t record_reserved_events(void *thread)
{
	region_record_reserved_events(thread);
	return 0;
}

static void exit_guard_preserving_registers(struct shadow_stack_node *node,
					    struct region_thread_state *thread)
{
	if (!region_guard_try_exit(thread))
		vectors_call_preserving_registers(node->vector_area, record_reserved_events,
						  thread);
}

/* In the usual case nothing is called that may use vector registers, which cost more to keep than
 * all else. */
static bool begin_call_region_fast(struct shadow_stack_node *node, uint32_t id)
{
	const region_id *regions =
		atomic_load_explicit(&region_ids_by_function_id, memory_order_acquire);
	struct region_thread_state *thread;
	bool begun;

	if (!regions || !regions[id] || call_begin_listener || kymo_arenas_record_arguments)
		return false;
	thread = fast_path_mark_thread_busy_or_null();
	if (!thread)
		return false;
	begun = fast_path_try_begin_region(thread, regions[id], NULL);
	exit_guard_preserving_registers(node, thread);
	return begun;
}

static bool end_call_region_fast(struct shadow_stack_node *node, uint32_t id)
{
	const region_id *regions =
		atomic_load_explicit(&region_ids_by_function_id, memory_order_acquire);
	struct region_thread_state *thread;
	bool ended;

	if (!regions || call_begin_listener || kymo_arenas_record_arguments)
		return false;
	thread = fast_path_mark_thread_busy_or_null();
	if (!thread)
		return false;
	ended = !thread->skipped && thread->depth &&
		thread->frames[thread->depth - 1].region == regions[id] &&
		fast_path_try_end_region(thread, &thread->frames[thread->depth - 1]);
	exit_guard_preserving_registers(node, thread);
	return ended;
}

void calls_begin_region(struct shadow_stack_node *node, uint32_t id,
			const struct calls_saved_registers *registers)
{
	struct call_region_info event = {id, registers};

	if (begin_call_region_fast(node, id))
		return;
	vectors_call_preserving_registers(
		node->vector_area,
		call_begin_listener ? notify_call_begin_listener : begin_call_region, &event);
}

void calls_end_region(struct shadow_stack_node *node, uint32_t id,
		      const struct calls_saved_registers *registers)
{
	struct call_region_info event = {id, registers};

	if (end_call_region_fast(node, id))
		return;
	vectors_call_preserving_registers(
		node->vector_area, call_begin_listener ? notify_call_end_listener : end_call_region,
		&event);
}

void calls_record_reserved_events(struct shadow_stack_node *node)
{
	vectors_call_preserving_registers(node->vector_area, record_reserved_events,
					  kymo_region_thread);
}

/* ---- calls that are summed up in place ---- */

/* What could make a call anything but the usual one: declined, and the slow way looks at it. */
static inline bool thread_may_sum_up_calls(const struct calls_thread_state *calls)
{
	return calls->node && !(calls->stopped | kymo_arenas_record_arguments) &&
	       !((uintptr_t)call_begin_listener |
		 atomic_load_explicit(&calls->busy, memory_order_relaxed));
}

static inline uint32_t finish_summing_up(struct region_thread_state *thread)
{
	return region_guard_try_exit(thread) ? CALLS_SUM_DONE : CALLS_SUM_RESERVED;
}

/* The entry is reserved by one instruction, and its slot comes last (shadow.h). */
static inline void push_summed_call(struct calls_thread_state *calls, uint64_t *slot, uint32_t id)
{
	struct shadow_entry *entry = calls->top; /* the thread has had its stack before */

	*(struct shadow_entry *volatile *)&calls->top = entry + 1;
	entry->return_address = *slot;
	entry->id = id;
	entry->flags = SHADOW_FLAG_REGION;
	*(volatile uint64_t *)&entry->slot = (uint64_t)(uintptr_t)slot;
}

uint32_t calls_sum_entry(uint64_t *slot, uint64_t id)
{
	struct calls_thread_state *calls = &kymo_calls;
	const region_id *regions =
		atomic_load_explicit(&region_ids_by_function_id, memory_order_acquire);
	struct region_thread_state *thread;

	if (!regions || !regions[id] || !thread_may_sum_up_calls(calls) ||
	    calls->top >= calls->node->end || calls->top[-1].slot <= (uint64_t)(uintptr_t)slot)
		return CALLS_SUM_DECLINED;
	thread = fast_path_mark_thread_busy_or_null();
	if (!thread)
		return CALLS_SUM_DECLINED;
	if (!fast_path_try_begin_region_as(REGIONS_FAST_PATH_PROFILE, thread, regions[id], NULL)) {
		region_guard_try_exit(thread);
		return CALLS_SUM_DECLINED;
	}
	push_summed_call(calls, slot, (uint32_t)id);
	return finish_summing_up(thread);
}

static inline bool innermost_region_is(const struct region_thread_state *thread, region_id region)
{
	return !thread->skipped && thread->depth &&
	       thread->frames[thread->depth - 1].region == region;
}

uint32_t calls_sum_exit(uint64_t *slot, uint64_t id)
{
	struct calls_thread_state *calls = &kymo_calls;
	const region_id *regions =
		atomic_load_explicit(&region_ids_by_function_id, memory_order_acquire);
	struct shadow_entry *entry = calls->top - 1;
	struct region_thread_state *thread;

	if (!regions || !thread_may_sum_up_calls(calls) ||
	    entry->slot != (uint64_t)(uintptr_t)slot || entry->id != id ||
	    entry->flags != SHADOW_FLAG_REGION)
		return CALLS_SUM_DECLINED;
	thread = fast_path_mark_thread_busy_or_null();
	if (!thread)
		return CALLS_SUM_DECLINED;
	if (!innermost_region_is(thread, regions[id]) ||
	    !fast_path_try_end_region_as(REGIONS_FAST_PATH_PROFILE, thread,
					 &thread->frames[thread->depth - 1])) {
		region_guard_try_exit(thread);
		return CALLS_SUM_DECLINED;
	}
	*slot = entry->return_address;
	*(volatile uint64_t *)&entry->slot = 0; /* entries above the top have none */
	calls->top = shadow_trim_removed_top(entry);
	return finish_summing_up(thread);
}
