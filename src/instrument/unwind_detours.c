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

extern const uint8_t instrument_gate_begin[], instrument_gate_end[];

#define PLACE_STUB_BODY 39u

/* ---- shadow stacks ---- */

static const struct shadow_entry *find_inwards(const struct shadow_entry *entry, uint64_t slot)
{
	while (entry->slot != slot && entry->slot != UINT64_MAX)
		entry--;
	return entry->slot == slot ? entry : NULL;
}

/* Of another thread, whose top is not ours to read: it may be ending. */
static const struct shadow_entry *find_outwards(const struct shadow_node *node, uint64_t slot)
{
	const struct shadow_entry *entry = node->entries + 1;

	while (entry < node->end && entry->slot && entry->slot != slot)
		entry++;
	return entry < node->end && entry->slot == slot ? entry : NULL;
}

/* Frame by frame, entries follow each other. kymo's own threads, which look at the stacks of
 * others, have no shadow stack, and zeros for thread-local memory. */
static const struct shadow_entry *find_entry(uint64_t slot, const struct shadow_entry *last)
{
	const struct shadow_entry *entry = NULL;
	const struct shadow_node *node;

	if (last)
		entry = find_inwards(last - 1, slot);
	if (!entry && kymo_calls.top)
		entry = find_inwards(kymo_calls.top - 1, slot);
	node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
	for (; !entry && node; node = node->next)
		if (node != kymo_calls.node)
			entry = find_outwards(node, slot);
	return entry;
}

/* ---- stubs ---- */

struct stub {
	uint64_t start; /* address */
	const uint8_t *code;
	const struct plan_site *site;
	uint64_t address; /* of the site */
	bool place;
};

static const void *in_plan(const struct arena *arena, const struct plan_table *table)
{
	return (const uint8_t *)arena->plan + table->offset;
}

/* Where the stub that holds the offset begins, by the table that unwinders search too. */
static uint32_t stub_at(const struct arena *arena, uint32_t offset)
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

static bool find_stub(const struct arena *arena, uint64_t address, struct stub *ret)
{
	const struct plan_function *functions = in_plan(arena, &arena->plan->functions);
	const struct plan_site *sites = in_plan(arena, &arena->plan->sites);
	uint64_t start = (uint64_t)(uintptr_t)arena->data;
	uint32_t offset, number;

	if (!arena->plan->frames.count ||
	    address - start >= PLAN_STUBS + arena->plan->frames.offset - arena->plan->stubs.offset)
		return false;
	offset = stub_at(arena, (uint32_t)(address - start));
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
struct depth {
	uint8_t offset;
	int8_t depth; /* words */
};

static const struct depth function_depths[] = {{0, 0},  {5, 1},  {12, 0}, {33, 1}, {43, -1},
					       {53, 0}, {58, 1}, {68, 0}, {69, 1}, {74, 0}};
static const struct depth place_depths[] = {{0, 0},   {5, 16},  {6, 17}, {20, 18},
					    {30, 17}, {31, 16}, {39, 0}};

static uint64_t depth_at(const struct depth *depths, size_t count, uint64_t offset)
{
	size_t at = 0;

	while (at + 1 < count && depths[at + 1].offset <= offset)
		at++;
	return (uint64_t)(8 * depths[at].depth);
}

#define DEPTH_AT(depths, offset) depth_at(depths, sizeof(depths) / sizeof((depths)[0]), offset)

static bool is_call_copy(const uint8_t *code)
{
	static const char bytes[] = PLAN_CALL_COPY;

	for (size_t i = 0; i + 1 < sizeof(bytes); i++)
		if (code[i] != (uint8_t)bytes[i])
			return false;
	return true;
}

/* Among the displaced instructions, of which most are one instruction still. What follows the last
 * is the jump back to where the window ends. */
static void undo_move(struct unwind_detour *detour, const struct arena *arena,
		      const struct stub *stub)
{
	const struct plan_move *moves = in_plan(arena, &arena->plan->moves);
	const uint8_t *pc = (const uint8_t *)(uintptr_t)detour->ip, *copy;
	uint32_t at = stub->site->move_count;
	int32_t distance;

	moves += stub->site->first_move;
	while (at > 1 && (const uint8_t *)arena->data + moves[at - 1].to > pc)
		at--;
	copy = (const uint8_t *)arena->data + moves[at - 1].to;
	detour->ip = stub->address + moves[at - 1].from;
	__builtin_memcpy(&distance, pc + 1, sizeof(distance));
	if (pc == copy)
		return;
	if (is_call_copy(copy))
		detour->sp += pc - copy < 5                                   ? 0
			      : pc - copy == 5 || pc - copy >= PLAN_CALL_JUMP ? 8
									      : 16;
	else if (pc[0] == 0xe9 && (uint64_t)(uintptr_t)pc + 5 + (uint64_t)(int64_t)distance ==
					  stub->address + stub->site->window)
		detour->ip = stub->address + stub->site->window;
}

static enum unwind_detour_kind undo_stub(struct unwind_detour *detour, const struct arena *arena)
{
	struct stub stub;
	uint64_t offset;

	if (!find_stub(arena, detour->ip, &stub))
		return UNWIND_DETOUR_NONE;
	offset = detour->ip - stub.start;
	detour->exact = true;
	if (offset >= (stub.place ? PLACE_STUB_BODY : PLAN_STUB_BODY)) {
		undo_move(detour, arena, &stub);
		return UNWIND_DETOUR_UNDONE;
	}
	detour->ip = stub.address;
	detour->sp +=
		stub.place ? DEPTH_AT(place_depths, offset) : DEPTH_AT(function_depths, offset);
	return UNWIND_DETOUR_UNDONE;
}

static enum unwind_detour_kind undo_return(struct unwind_detour *detour)
{
	const struct shadow_entry *entry = find_entry(detour->sp - 8, detour->place);

	if (!entry)
		return UNWIND_DETOUR_NONE;
	detour->ip = entry->return_address;
	detour->place = entry;
	return UNWIND_DETOUR_UNDONE;
}

/* Is it what a function returns to? The gate's return to a stub is told by its place. */
static bool is_exit(const struct unwind_detour *detour)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)detour->ip;

	return !detour->exact && detour->ip % PLAN_STUB_ALIGN == PLAN_STUB_EXIT % PLAN_STUB_ALIGN &&
	       code[-5] == 0xe8 && code[0] == 0x48 && code[1] == 0x8d && code[4] == 0xf8;
}

static enum unwind_detour_kind undo(struct unwind_detour *detour)
{
	const struct arena *arena = arena_find(detour->ip);
	uint64_t offset;

	if (!arena)
		return UNWIND_DETOUR_NONE;
	offset = detour->ip - (uint64_t)(uintptr_t)arena->data;
	if (offset < PLAN_DATA_SIZE)
		return UNWIND_DETOUR_NONE;
	if (offset >= PLAN_STUBS)
		return is_exit(detour) ? undo_return(detour) : undo_stub(detour, arena);
	detour->ip = (uint64_t)(uintptr_t)instrument_gate_begin + offset - PLAN_DATA_SIZE;
	return UNWIND_DETOUR_HIDDEN;
}

/* ---- for the program's own walks ---- */

bool instrument_unwind_hides(void)
{
	return arena_count() != 0;
}

/* What a signal interrupted in a stub is shown at the function's entry, or where the displaced
 * instruction was. Those who ask take it for a return address and look one below. */
bool instrument_unwind_shown(uint64_t ip, uint64_t *ret)
{
	struct unwind_detour detour = {.ip = ip};
	const struct arena *arena = arena_find(ip);

	*ret = ip;
	if (!arena)
		return true;
	if (ip - (uint64_t)(uintptr_t)arena->data < PLAN_STUBS || is_exit(&detour) ||
	    undo_stub(&detour, arena) != UNWIND_DETOUR_UNDONE)
		return false;
	*ret = detour.ip + 1;
	return true;
}

const struct unwind_detours instrument_detours = {.undo = undo};
