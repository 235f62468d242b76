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
#include "regions/state.h"

#define ARGUMENTS 6u /* in registers: System V ABI 3.2.3 */

struct call_event {
	uint32_t id;
	const struct calls_registers *registers;
};

/* By function id; 0: not asked for yet. Several threads may find the same one out. */
static region_id *_Atomic regions_of_calls;

static region_id region_of(uint32_t id)
{
	region_id *regions = atomic_load_explicit(&regions_of_calls, memory_order_acquire);

	if (!regions) {
		region_id *made = region_map((PLAN_ID_MAX + 1) * sizeof(*made));

		if (!made)
			return 0;
		if (atomic_compare_exchange_strong(&regions_of_calls, &regions, made))
			regions = made;
		else
			sys_munmap(made, (PLAN_ID_MAX + 1) * sizeof(*made));
	}
	if (!regions[id])
		regions[id] = region_function(REGION_HOST, arena_function_address(id));
	return regions[id];
}

static uint64_t begin(void *argument)
{
	static const char *const names[ARGUMENTS] = {"arg0", "arg1", "arg2",
						     "arg3", "arg4", "arg5"};
	const struct call_event *event = argument;
	const struct calls_registers *from = event->registers;
	struct region_value values[ARGUMENTS];

	region_begin(region_of(event->id));
	if (!arena_wants_arguments(event->id))
		return 0;
	const uint64_t numbers[ARGUMENTS] = {from->rdi, from->rsi, from->rdx,
					     from->rcx, from->r8,  from->r9};

	for (unsigned i = 0; i < ARGUMENTS; i++)
		values[i] = (struct region_value){
			.name = names[i], .type = SPOOL_VALUE_ADDRESS, .number = numbers[i]};
	region_values(values, ARGUMENTS);
	return 0;
}

static uint64_t end(void *argument)
{
	const struct call_event *event = argument;

	region_end(region_of(event->id));
	if (event->registers && arena_wants_arguments(event->id))
		region_values(&(struct region_value){.name = "return",
						     .type = SPOOL_VALUE_ADDRESS,
						     .number = event->registers->rax},
			      1);
	return 0;
}

/* NULL: calls are recorded. */
static void (*told)(uint64_t address), (*told_end)(uint64_t address);

void instrument_tell(void (*entered)(uint64_t address), void (*left)(uint64_t address))
{
	told_end = left;
	told = entered;
}

static uint64_t tell_begin(void *argument)
{
	told(arena_function_address(((const struct call_event *)argument)->id));
	return 0;
}

static uint64_t tell_end(void *argument)
{
	told_end(arena_function_address(((const struct call_event *)argument)->id));
	return 0;
}

void calls_region_begin(struct shadow_node *node, uint32_t id,
			const struct calls_registers *registers)
{
	struct call_event event = {id, registers};

	vectors_keep(node->vectors, told ? tell_begin : begin, &event);
}

void calls_region_end(struct shadow_node *node, uint32_t id,
		      const struct calls_registers *registers)
{
	struct call_event event = {id, registers};

	vectors_keep(node->vectors, told ? tell_end : end, &event);
}
