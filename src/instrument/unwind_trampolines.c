/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Stacks without stubs, for kymo's own walks.
 *
 * A return address into a stub stands for the one in the shadow stack. A thread that is in a stub
 * is shown at the entry of its function, whether it is about to enter it or has just left it: the
 * slot is then on top of the stack, and holds the return address, or the way back into the stub. A
 * thread at a displaced instruction is shown at the original.
 */
#include <stddef.h>

#include "instrument/arena.h"
#include "instrument/shadow.h"
#include "instrument/unwind.h"

extern const uint8_t instrument_trampoline_begin[], instrument_trampoline_end[];

#define LOCATION_STUB_BODY_OFFSET 39u

/* ---- shadow stacks ---- */

static const struct shadow_entry *find_shadow_entry_from_top(const struct shadow_entry *entry,
							     uint64_t slot)
{
	while (entry->slot != slot && entry->slot != UINT64_MAX)
		entry--;
	return entry->slot == slot ? entry : NULL;
}

/* On another thread, whose top is not ours to read: it may be ending. */
static const struct shadow_entry *
find_shadow_entry_from_bottom(const struct shadow_stack_node *node, uint64_t slot)
{
	const struct shadow_entry *entry = node->entries + 1;

	while (entry < node->end && entry->slot && entry->slot != slot)
		entry++;
	return entry < node->end && entry->slot == slot ? entry : NULL;
}

/* Frame by frame, entries follow each other. kymo's own threads, which look at the stacks of
 * others, have no shadow stack, and zeros for thread-local memory. */
static const struct shadow_entry *find_shadow_entry_of_slot(uint64_t slot,
							    const struct shadow_entry *last)
{
	const struct shadow_entry *entry = NULL;
	const struct shadow_stack_node *node;

	if (last)
		entry = find_shadow_entry_from_top(last - 1, slot);
	if (!entry && kymo_calls.top)
		entry = find_shadow_entry_from_top(kymo_calls.top - 1, slot);
	node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
	for (; !entry && node; node = node->next)
		if (node != kymo_calls.node)
			entry = find_shadow_entry_from_bottom(node, slot);
	return entry;
}

/* ---- stubs ---- */

struct stub_search_result {
	uint64_t start; /* address */
	const uint8_t *code;
	const struct plan_site *site;
	uint64_t address; /* of the site */
	bool place;
};

static const void *get_plan_table_start(const struct arena *arena, const struct plan_table *table)
{
	return (const uint8_t *)arena->plan + table->offset;
}

/* Where the stub that holds the offset begins, by the table that unwinders search too. */
static uint32_t find_stub_start_offset(const struct arena *arena, uint32_t offset)
{
	const struct plan_header *plan = arena->plan;
	uint32_t header = PLAN_STUBS + (uint32_t)(plan->frames.offset - plan->stubs.offset);
	const uint32_t *words = (const void *)((const uint8_t *)arena->data + header);
	uint32_t low = 0, high = words[2];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (words[3 + 2 * middle] + header <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? words[3 + 2 * (low - 1)] + header : 0;
}

static bool find_stub_of_address(const struct arena *arena, uint64_t address,
				 struct stub_search_result *ret)
{
	const struct plan_function *functions =
		get_plan_table_start(arena, &arena->plan->functions);
	const struct plan_site *sites = get_plan_table_start(arena, &arena->plan->sites);
	uint64_t start = (uint64_t)(uintptr_t)arena->data;
	uint32_t offset, number;

	if (!arena->plan->frames.count ||
	    address - start >= PLAN_STUBS + arena->plan->frames.offset - arena->plan->stubs.offset)
		return false;
	offset = find_stub_start_offset(arena, (uint32_t)(address - start));
	if (!offset)
		return false;
	ret->start = start + offset;
	ret->code = (const uint8_t *)(uintptr_t)ret->start;
	ret->place = ret->code[0] != 0x68;
	__builtin_memcpy(&number, ret->code + (ret->place ? 16 : 1), sizeof(number));
	if (number >= arena->plan->functions.count)
		return false;
	ret->site = &sites[functions[number].site];
	ret->address = ret->site->vaddr + arena->bias;
	return true;
}

/* What has to be added to rsp, from an offset in the stub on, to have what it was where the stub
 * began (kymo/plan.h). */
struct stack_depth_row {
	uint8_t offset;
	int8_t depth; /* words */
};

static const struct stack_depth_row function_stub_stack_depth_table[] = {
	{0, 0}, {5, 1}, {12, 0}, {33, 1}, {43, -1}, {53, 0}, {58, 1}, {68, 0}, {69, 1}, {74, 0}};
static const struct stack_depth_row location_stub_stack_depth_table[] = {
	{0, 0}, {5, 16}, {6, 17}, {20, 18}, {30, 17}, {31, 16}, {39, 0}};

static uint64_t look_up_stack_depth(const struct stack_depth_row *depths, size_t count,
				    uint64_t offset)
{
	size_t at = 0;

	while (at + 1 < count && depths[at + 1].offset <= offset)
		at++;
	return (uint64_t)(8 * depths[at].depth);
}

#define STACK_DEPTH_AT_STUB_OFFSET(depths, offset)                                                 \
	look_up_stack_depth(depths, sizeof(depths) / sizeof((depths)[0]), offset)

static bool code_is_displaced_call(const uint8_t *code)
{
	static const char bytes[] = PLAN_CALL_COPY;

	for (size_t i = 0; i + 1 < sizeof(bytes); i++)
		if (code[i] != (uint8_t)bytes[i])
			return false;
	return true;
}

/* Among the displaced instructions, of which most are one instruction still. What follows the last
 * is the jump back to where the window ends. */
static void undo_moved_instruction(struct unwind_trampoline_frame_info *trampoline,
				   const struct arena *arena, const struct stub_search_result *stub)
{
	const struct plan_move *moves = get_plan_table_start(arena, &arena->plan->moves);
	const uint8_t *pc = (const uint8_t *)(uintptr_t)trampoline->ip, *copy;
	uint32_t at = stub->site->move_count;
	int32_t distance;

	moves += stub->site->first_move;
	while (at > 1 && (const uint8_t *)arena->data + moves[at - 1].to > pc)
		at--;
	copy = (const uint8_t *)arena->data + moves[at - 1].to;
	trampoline->ip = stub->address + moves[at - 1].from;
	__builtin_memcpy(&distance, pc + 1, sizeof(distance));
	if (pc == copy)
		return;
	if (code_is_displaced_call(copy))
		trampoline->sp += pc - copy < 5                                   ? 0
				  : pc - copy == 5 || pc - copy >= PLAN_CALL_JUMP ? 8
										  : 16;
	else if (pc[0] == 0xe9 && (uint64_t)(uintptr_t)pc + 5 + (uint64_t)(int64_t)distance ==
					  stub->address + stub->site->window)
		trampoline->ip = stub->address + stub->site->window;
}

static enum unwind_trampoline_kind undo_stub_frame(struct unwind_trampoline_frame_info *trampoline,
						   const struct arena *arena)
{
	struct stub_search_result stub;
	uint64_t offset;

	if (!find_stub_of_address(arena, trampoline->ip, &stub))
		return UNWIND_TRAMPOLINE_NONE;
	offset = trampoline->ip - stub.start;
	trampoline->is_ip_exact = true;
	if (offset >= (stub.place ? LOCATION_STUB_BODY_OFFSET : PLAN_STUB_BODY)) {
		undo_moved_instruction(trampoline, arena, &stub);
		return UNWIND_TRAMPOLINE_UNDONE;
	}
	trampoline->ip = stub.address;
	trampoline->sp +=
		stub.place ? STACK_DEPTH_AT_STUB_OFFSET(location_stub_stack_depth_table, offset)
			   : STACK_DEPTH_AT_STUB_OFFSET(function_stub_stack_depth_table, offset);
	return UNWIND_TRAMPOLINE_UNDONE;
}

static enum unwind_trampoline_kind
undo_replaced_return(struct unwind_trampoline_frame_info *trampoline)
{
	const struct shadow_entry *entry =
		find_shadow_entry_of_slot(trampoline->sp - 8, trampoline->place);

	if (!entry)
		return UNWIND_TRAMPOLINE_NONE;
	trampoline->ip = entry->return_address;
	trampoline->place = entry;
	return UNWIND_TRAMPOLINE_UNDONE;
}

/* Is it what a function returns to? The trampoline's return to a stub is known by its place. */
static bool frame_is_at_return_to_stub(const struct unwind_trampoline_frame_info *trampoline)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)trampoline->ip;

	return !trampoline->is_ip_exact &&
	       trampoline->ip % PLAN_STUB_ALIGN == PLAN_STUB_EXIT % PLAN_STUB_ALIGN &&
	       code[-5] == 0xe8 && code[0] == 0x48 && code[1] == 0x8d && code[4] == 0xf8;
}

static enum unwind_trampoline_kind
undo_trampoline_frame(struct unwind_trampoline_frame_info *trampoline)
{
	const struct arena *arena = arena_find_by_address(trampoline->ip);
	uint64_t offset;

	if (!arena)
		return UNWIND_TRAMPOLINE_NONE;
	offset = trampoline->ip - (uint64_t)(uintptr_t)arena->data;
	if (offset < PLAN_DATA_SIZE)
		return UNWIND_TRAMPOLINE_NONE;
	if (offset >= PLAN_STUBS)
		return frame_is_at_return_to_stub(trampoline) ? undo_replaced_return(trampoline)
							      : undo_stub_frame(trampoline, arena);
	trampoline->ip = (uint64_t)(uintptr_t)instrument_trampoline_begin + offset - PLAN_DATA_SIZE;
	return UNWIND_TRAMPOLINE_HIDDEN;
}

/* ---- for the program's own walks ---- */

bool instrument_has_arenas(void)
{
	return arenas_get_count() != 0;
}

/* What a signal interrupted in a stub is shown at the function's entry, or where the displaced
 * instruction was. Those who ask take it for a return address and look one below. */
bool instrument_find_address_without_stubs(uint64_t ip, uint64_t *ret)
{
	struct unwind_trampoline_frame_info trampoline = {.ip = ip};
	const struct arena *arena = arena_find_by_address(ip);

	*ret = ip;
	if (!arena)
		return true;
	if (ip - (uint64_t)(uintptr_t)arena->data < PLAN_STUBS ||
	    frame_is_at_return_to_stub(&trampoline) ||
	    undo_stub_frame(&trampoline, arena) != UNWIND_TRAMPOLINE_UNDONE)
		return false;
	*ret = trampoline.ip + 1;
	return true;
}

const struct unwind_trampoline_callbacks instrument_unwind_trampoline_ops = {
	.undo = undo_trampoline_frame};
