/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables for unwinders that run in this process; see unwind.h.
 *
 * A thread's own tables are one FDE for the place that callees return to, whichever stub it is in.
 * Its expression tries the entry that `hint` points at; then this thread's shadow stack, innermost
 * first; then those of other threads, for coroutines that moved. The hint is set when the unwinder
 * asks for the tables: the next entry of that stub's function behind the last one. It is a guess:
 * unwinders begin again without a word, and signal handlers unwind in between.
 */
#include "instrument/unwind.h"

#include <stddef.h>

#include "instrument/arena.h"
#include "instrument/shadow.h"
#include "instrument/trampoline_frames.h"

enum { /* DWARF 5, 7.7.1 */
       OP_ADDRESS = 0x03,
       OP_DEREF = 0x06,
       OP_CONST1U = 0x08,
       OP_DUP = 0x12,
       OP_DROP = 0x13,
       OP_PICK = 0x15,
       OP_MINUS = 0x1c,
       OP_PLUS = 0x22,
       OP_PLUS_CONSTANT = 0x23,
       OP_BRANCH = 0x28,
       OP_NE = 0x2e,
       OP_SKIP = 0x2f,
       OP_LITERAL = 0x30,
       OP_RSP = 0x77,
       CFA_EXPRESSION = 0x0f,
       CFA_VALUE_EXPRESSION = 0x16,
       REGISTER_RSP = 7,
       REGISTER_RIP = 16
};

#define EH_PE_OMIT            0xff
#define EXPRESSION_END_OFFSET 106 /* the expression's end */
#define EXPRESSION_LENGTH     (1 + EXPRESSION_END_OFFSET)

/* Two bytes of distance from behind themselves. */
#define ENCODE_BRANCH_DISTANCE(from, to)                                                           \
	(uint8_t)((to) - (from)-3), (uint8_t)((unsigned)((to) - (from)-3) >> 8)

_Static_assert(offsetof(struct shadow_stack_node, next) == 0 &&
		       offsetof(struct shadow_stack_node, entries) == PLAN_SHADOW_ENTRIES &&
		       offsetof(struct shadow_entry, return_address) == 0 &&
		       offsetof(struct shadow_entry, slot) == PLAN_SHADOW_SLOT &&
		       sizeof(struct shadow_entry) == PLAN_SHADOW_ENTRY &&
		       offsetof(struct calls_thread_state, top) == 0,
	       "what expressions know of shadow stacks");

struct thread_eh_frame_image {
	uint8_t header[4]; /* .eh_frame_hdr, without a table */
	const void *frames;
	/* .eh_frame: CIE without augmentation */
	uint32_t cie_length, cie_id;
	uint8_t cie_body[16];
	/* FDE; its addresses are absolute */
	uint32_t length, back;
	uint64_t begin, address_range_bytes;
	uint8_t rule[3];
	/* the expression: the CFA is on the stack */
	uint8_t load_hint_ops[4];
	const struct shadow_entry *const *hint_address;
	uint8_t check_hint_ops[17];
	struct shadow_entry *const *top_address;
	uint8_t search_own_stack_ops[27];
	struct shadow_stack_node *_Atomic const *nodes_address;
	uint8_t search_other_stacks_ops[35];
	uint8_t padding[2];
	uint32_t end;
} __attribute__((packed));

static const struct thread_eh_frame_image thread_eh_frame_template = {
	.header = {1, 0, EH_PE_OMIT, EH_PE_OMIT},
	.cie_length = 4 + 16,
	.cie_body = {1, 0, 1, 0x78, REGISTER_RIP, CFA_EXPRESSION, 2, OP_RSP, 4, /* rsp + 4 */
		     CFA_VALUE_EXPRESSION, REGISTER_RSP, 2, OP_LITERAL + 4, OP_MINUS},
	.length = offsetof(struct thread_eh_frame_image, end) -
		  offsetof(struct thread_eh_frame_image, back),
	.back = offsetof(struct thread_eh_frame_image, back) -
		offsetof(struct thread_eh_frame_image, cie_length),
	.address_range_bytes = PLAN_STUB_BODY,
	.rule = {CFA_VALUE_EXPRESSION, REGISTER_RIP, EXPRESSION_LENGTH},
	/* clang-format off */
	/* libgcc cannot pick the lowest value of all: the CFA stays where it is */
	.load_hint_ops = {OP_DUP, /* 0 */ OP_LITERAL + 12, OP_MINUS, OP_ADDRESS},
	.check_hint_ops = {
		/* 11: slot, place of the hint */ OP_DEREF, OP_DUP, OP_PLUS_CONSTANT, PLAN_SHADOW_SLOT,
		/* 15 */ OP_DEREF, OP_PICK, 2, OP_NE,
		/* 19 */ OP_BRANCH, ENCODE_BRANCH_DISTANCE(19, 26), OP_DEREF,
		/* 23 */ OP_SKIP, ENCODE_BRANCH_DISTANCE(23, EXPRESSION_END_OFFSET),
		/* 26 */ OP_DROP, OP_ADDRESS},
	.search_own_stack_ops = {
		/* 36: slot, place of the top */ OP_DEREF,
		/* 37 */ OP_CONST1U, PLAN_SHADOW_ENTRY, OP_MINUS, OP_DUP, OP_PLUS_CONSTANT,
		/* 42 */ PLAN_SHADOW_SLOT, OP_DEREF, OP_DUP, OP_PICK, 3, OP_NE,
		/* 48 */ OP_BRANCH, ENCODE_BRANCH_DISTANCE(48, 56), OP_DROP, OP_DEREF,
		/* 53 */ OP_SKIP, ENCODE_BRANCH_DISTANCE(53, EXPRESSION_END_OFFSET),
		/* 56: the sentinel's slot is -1 */ OP_LITERAL + 1, OP_PLUS,
		/* 58 */ OP_BRANCH, ENCODE_BRANCH_DISTANCE(58, 37), OP_DROP, OP_ADDRESS},
	.search_other_stacks_ops = {
		/* 71: slot, place of the first node */ OP_DEREF, OP_DUP,
		/* 73 */ OP_BRANCH, ENCODE_BRANCH_DISTANCE(73, 79),
		/* 76: 0, the end of the stack */ OP_SKIP, ENCODE_BRANCH_DISTANCE(76, EXPRESSION_END_OFFSET),
		/* 79 */ OP_DUP, OP_PLUS_CONSTANT, PLAN_SHADOW_ENTRIES, OP_DEREF,
		/* 83: slot, node, entry */ OP_PLUS_CONSTANT, PLAN_SHADOW_ENTRY, OP_DUP,
		/* 86 */ OP_PLUS_CONSTANT, PLAN_SHADOW_SLOT, OP_DEREF, OP_DUP,
		/* 90 */ OP_BRANCH, ENCODE_BRANCH_DISTANCE(90, 99), OP_DROP, OP_DROP, OP_DEREF,
		/* 96 */ OP_SKIP, ENCODE_BRANCH_DISTANCE(96, 72),
		/* 99 */ OP_PICK, 3, OP_NE,
		/* 102 */ OP_BRANCH, ENCODE_BRANCH_DISTANCE(102, 83), OP_DEREF},
	/* clang-format on */
};
_Static_assert(offsetof(struct thread_eh_frame_image, padding) -
			       offsetof(struct thread_eh_frame_image, load_hint_ops) ==
		       EXPRESSION_LENGTH,
	       "length of the expression");
_Static_assert((offsetof(struct thread_eh_frame_image, end) -
		offsetof(struct thread_eh_frame_image, back)) %
			       4 ==
		       0,
	       "entries are multiples of 4");

/* What a thread's unwinder is at. */
struct thread_unwind_walk_state {
	const struct shadow_entry *hint_entry;
	uint64_t first; /* address of the unwinder's caller */
	bool are_tables_ready, is_unwinding;
	struct thread_eh_frame_image tables;
};

static __thread struct thread_unwind_walk_state this_thread_unwind_state;

static void prepare_thread_unwind_state(void)
{
	this_thread_unwind_state.hint_entry = kymo_calls.top - 1;
	this_thread_unwind_state.tables = thread_eh_frame_template;
	this_thread_unwind_state.tables.frames = &this_thread_unwind_state.tables.cie_length;
	this_thread_unwind_state.tables.hint_address = &this_thread_unwind_state.hint_entry;
	this_thread_unwind_state.tables.top_address = &kymo_calls.top;
	this_thread_unwind_state.tables.nodes_address = &kymo_shadow_nodes;
	this_thread_unwind_state.are_tables_ready = true;
}

/* ---- the hint ---- */

#define HINT_SEARCH_STEPS_MAX 64

/* From `entry` on, outwards. */
static const struct shadow_entry *find_shadow_entry_of_function(const struct shadow_entry *entry,
								uint32_t id, uint64_t stack)
{
	for (unsigned i = 0; i < HINT_SEARCH_STEPS_MAX && entry->slot != UINT64_MAX; i++, entry--)
		if (entry->id == id && shadow_entry_is_open(entry) && entry->slot >= stack)
			return entry;
	return NULL;
}

/* Entries below our own frame were left without returning. */
static void advance_hint_entry(uint32_t id)
{
	uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	const struct shadow_entry *top = kymo_calls.top - 1, *found;

	while (!this_thread_unwind_state.is_unwinding && top->slot < stack)
		top--;
	found = find_shadow_entry_of_function(
		this_thread_unwind_state.is_unwinding &&
				this_thread_unwind_state.hint_entry->slot != UINT64_MAX
			? this_thread_unwind_state.hint_entry - 1
			: top,
		id, stack);
	if (!found && this_thread_unwind_state.is_unwinding)
		found = find_shadow_entry_of_function(top, id, stack);
	if (found)
		this_thread_unwind_state.hint_entry = found;
	this_thread_unwind_state.is_unwinding = found != NULL;
}

/* Unwinders look themselves up first; for the second phase of a throw they begin at their caller.
 */
static void detect_unwinder_restart(uint64_t address, uint64_t caller)
{
	const uint64_t near = 1u << 17; /* libgcc_s has less code than that */

	if (!this_thread_unwind_state.are_tables_ready)
		return;
	if (address - caller + near < 2 * near) {
		this_thread_unwind_state.is_unwinding = false;
		this_thread_unwind_state.first = 0;
	} else if (!this_thread_unwind_state.first) {
		this_thread_unwind_state.first = address;
	} else if (address == this_thread_unwind_state.first) {
		this_thread_unwind_state.is_unwinding = false;
	}
}

/* ---- which tables ---- */

/* Is this the last byte of a stub's call of the function's body? Then what follows is the same in
 * all stubs, but for the number. */
static bool is_stub_return_address(uint64_t address, const struct arena *arena,
				   uint32_t *ret_number)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)(address + 1);
	uint64_t start = (uint64_t)(uintptr_t)arena->data;
	int32_t distance;

	if ((address + 1) % PLAN_STUB_ALIGN != PLAN_STUB_EXIT % PLAN_STUB_ALIGN ||
	    address - start < PLAN_STUBS + PLAN_STUB_EXIT - 1 ||
	    address - start + PLAN_STUB_BODY > arena->size || code[5] != 0x68 || code[10] != 0xe8)
		return false;
	__builtin_memcpy(ret_number, code + 6, sizeof(*ret_number));
	__builtin_memcpy(&distance, code + 11, sizeof(distance));
	return address + 16 + (uint64_t)(int64_t)distance == start + PLAN_TRAMPOLINE_EXIT;
}

static const void *prepare_frame_tables_for_stub(uint64_t address, uint32_t id)
{
	if (!this_thread_unwind_state.are_tables_ready)
		prepare_thread_unwind_state();
	advance_hint_entry(id);
	this_thread_unwind_state.tables.begin = address + 1 - PLAN_STUB_EXIT;
	return &this_thread_unwind_state.tables;
}

bool instrument_find_unwind_tables(uint64_t address, uint64_t caller, struct unwind_tables *ret)
{
	const struct arena *arena = arena_find_by_address(address);
	uint64_t start, offset;
	uint32_t number;

	if (!arena) {
		detect_unwinder_restart(address, caller);
		return false;
	}
	start = (uint64_t)(uintptr_t)arena->data;
	offset = address - start;
	ret->start = start;
	ret->end = start + arena->size;
	if (offset < PLAN_DATA_SIZE)
		return false;
	if (offset < PLAN_STUBS)
		ret->eh_frame_hdr = trampoline_frames_get_eh_frame_hdr(
			(const void *)(uintptr_t)(start + PLAN_DATA_SIZE));
	else if (is_stub_return_address(address, arena, &number))
		ret->eh_frame_hdr =
			prepare_frame_tables_for_stub(address, arena->first_function_id + number);
	else
		ret->eh_frame_hdr = arena->plan->frames.count
					    ? (const void *)(uintptr_t)(start + PLAN_STUBS +
									arena->plan->frames.offset -
									arena->plan->stubs.offset)
					    : NULL;
	return ret->eh_frame_hdr != NULL;
}
