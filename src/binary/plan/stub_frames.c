/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unwind tables of stubs: what .eh_frame_hdr and .eh_frame say about the code in an arena.
 *
 * Every stub has an FDE that is right at each instruction, for debuggers and for whatever unwinds
 * out of a signal handler. The stub's own part is the same for all; the displaced instructions have
 * the rows of the function that they came from, at their new places.
 *
 * From the function's return until its return address is back in place, the caller is found through
 * the shadow stacks (instrument/shadow.h), by an expression that looks for the slot. There the CFA
 * is 4 above the caller's rsp, and rsp is distinguished: unwinders that throw identify frames by
 * their CFA (libgcc's uw_identify_context), so a stub's must be no function's; and gdb wants CFAs
 * to rise. DWARF 5, 6.4 and 2.5; LSB Core, 10.6.
 */
#include "binary/plan/stubs.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "binary/functions/frames.h"
#include "common/array.h"

enum { /* call frame instructions */
       CFA_ADVANCE_LOC1 = 0x02,
       CFA_ADVANCE_LOC2 = 0x03,
       CFA_REMEMBER_STATE = 0x0a,
       CFA_RESTORE_STATE = 0x0b,
       CFA_DEF_CFA = 0x0c,
       CFA_DEF_CFA_OFFSET = 0x0e,
       CFA_DEF_CFA_EXPRESSION = 0x0f,
       CFA_VAL_EXPRESSION = 0x16,
       CFA_ADVANCE_LOC = 0x40,
       CFA_OFFSET_OF_REGISTER = 0x80,
       CFA_RESTORE = 0xc0,
       EH_FRAME_REGISTER_RIP = 16
};

enum { /* operations of expressions */
       DWARF_OP_DEREF = 0x06,
       DWARF_OP_CONST1U = 0x08,
       DWARF_OP_CONST1S = 0x09,
       DWARF_OP_DUP = 0x12,
       DWARF_OP_DROP = 0x13,
       DWARF_OP_PICK = 0x15,
       DWARF_OP_AND = 0x1a,
       DWARF_OP_MINUS = 0x1c,
       DWARF_OP_PLUS = 0x22,
       DWARF_OP_PLUS_UCONST = 0x23,
       DWARF_OP_SHL = 0x24,
       DWARF_OP_SHR = 0x25,
       DWARF_OP_SHRA = 0x26,
       DWARF_OP_BRA = 0x28,
       DWARF_OP_NE = 0x2e,
       DWARF_OP_SKIP = 0x2f,
       DWARF_OP_LIT0 = 0x30,
       DWARF_OP_BREG0 = 0x70, /* + register, SLEB128 */
       DWARF_OP_DEREF_SIZE = 0x94
};

enum {
	EH_ENCODING_PCREL_SDATA4 = 0x1b,
	EH_ENCODING_UDATA4 = 0x03,
	EH_ENCODING_DATAREL_SDATA4 = 0x3b
};

/* Two bytes of distance from behind themselves; constants in two bytes. */
#define BRANCH_DISTANCE_INITIALIZER(from, to)                                                      \
	(uint8_t)((to) - (from)-3), (uint8_t)((unsigned)((to) - (from)-3) >> 8)
#define TWO_BYTE_ULEB128_INITIALIZER(value)                                                        \
	(uint8_t)(((value)&0x7f) | 0x80), (uint8_t)((value) >> 7)

/* Where the stub's first distance leads to the data page from: the field behind `mov
 * trampoline(%rip)`.
 */
#define STUB_TRAMPOLINE_DISTANCE_OFFSET 22u
#define FUNCTION_STUB_ROW_BYTES_MAX     128u
#define TRAMPOLINE_TO_SHADOW_NODES_BYTES                                                           \
	(4 + PLAN_TRAMPOLINE_CONSTANTS +                                                           \
	 (uint32_t)offsetof(struct plan_trampoline_constants, shadow_nodes) -                      \
	 (uint32_t)offsetof(struct plan_arena_data, trampoline))

/* The caller's address by the shadow stacks; the CFA is on the stack. The part of the stub that
 * needs it is 16 bytes at a multiple of 16. Not found: the slot's own contents, since the last
 * instructions of a stub have it put right already, unless they lead back into the stub. */
/* clang-format off */
static const uint8_t shadow_stack_search_expression[] = {
	/* libgcc cannot pick the lowest value of all: the CFA stays where it is */
	DWARF_OP_DUP, DWARF_OP_LIT0 + 12, DWARF_OP_MINUS, /* slot */
	DWARF_OP_BREG0 + EH_FRAME_REGISTER_RIP, 0, DWARF_OP_CONST1S, 0xf0, DWARF_OP_AND, DWARF_OP_LIT0 + 26, DWARF_OP_MINUS,
	DWARF_OP_DUP, DWARF_OP_DEREF_SIZE, 4, DWARF_OP_CONST1U, 32, DWARF_OP_SHL, DWARF_OP_CONST1U, 32, DWARF_OP_SHRA, DWARF_OP_PLUS,
	DWARF_OP_PLUS_UCONST, TWO_BYTE_ULEB128_INITIALIZER(TRAMPOLINE_TO_SHADOW_NODES_BYTES), DWARF_OP_DEREF, /* slot, address of the list's head */
	/*  0 */ DWARF_OP_DEREF,
	/*  1: slot, node */ DWARF_OP_DUP,
	/*  2 */ DWARF_OP_BRA, BRANCH_DISTANCE_INITIALIZER(2, 24),
	/*  5 */ DWARF_OP_DROP, DWARF_OP_DEREF, DWARF_OP_DUP,
	/*  8 */ DWARF_OP_BREG0 + EH_FRAME_REGISTER_RIP, 0, DWARF_OP_MINUS, DWARF_OP_CONST1U, 128, DWARF_OP_PLUS,
	/* 14 */ DWARF_OP_LIT0 + 8, DWARF_OP_SHR,
	/* 16 */ DWARF_OP_BRA, BRANCH_DISTANCE_INITIALIZER(16, 51),
	/* 19 */ DWARF_OP_DROP, DWARF_OP_LIT0,
	/* 21 */ DWARF_OP_SKIP, BRANCH_DISTANCE_INITIALIZER(21, 51),
	/* 24 */ DWARF_OP_DUP, DWARF_OP_PLUS_UCONST, PLAN_SHADOW_ENTRIES, DWARF_OP_DEREF,
	/* 28: slot, node, entry */ DWARF_OP_PLUS_UCONST, PLAN_SHADOW_ENTRY,
	/* 30 */ DWARF_OP_DUP, DWARF_OP_PLUS_UCONST, PLAN_SHADOW_SLOT, DWARF_OP_DEREF, DWARF_OP_DUP,
	/* 35 */ DWARF_OP_BRA, BRANCH_DISTANCE_INITIALIZER(35, 44),
	/* 38 */ DWARF_OP_DROP, DWARF_OP_DROP, DWARF_OP_DEREF,
	/* 41 */ DWARF_OP_SKIP, BRANCH_DISTANCE_INITIALIZER(41, 1),
	/* 44 */ DWARF_OP_PICK, 3, DWARF_OP_NE,
	/* 47 */ DWARF_OP_BRA, BRANCH_DISTANCE_INITIALIZER(47, 28),
	/* 50 */ DWARF_OP_DEREF,
	/* 51 */
};
/* clang-format on */
_Static_assert(PLAN_STUB_EXIT % 16 == 0 && PLAN_STUB_EXIT - STUB_TRAMPOLINE_DISTANCE_OFFSET == 26,
	       "how the expression finds the data page");

/* The CIE: FDEs have distances as addresses; factors 1 and -8; the CFA is rsp + 8; return addresses
 * are searched. FDEs say otherwise for most of their stub. */
static const uint8_t stub_cie_bytes[] = {
	1,
	'z',
	'R',
	0,
	1,
	0x78,
	EH_FRAME_REGISTER_RIP,
	1,
	EH_ENCODING_PCREL_SDATA4,
	CFA_DEF_CFA,
	EH_FRAME_REGISTER_RSP,
	8,
	CFA_VAL_EXPRESSION,
	EH_FRAME_REGISTER_RIP,
	sizeof(shadow_stack_search_expression),
};

struct unwind_table_writer {
	struct stubs *stubs;
	const struct eh_frame_table *frames;                    /* of the module */
	uint32_t cie_offset;                                    /* offset of the CIE in the arena */
	uint32_t last_row_offset;                               /* of the last row, from the stub */
	uint8_t encoded_stub_rows[FUNCTION_STUB_ROW_BYTES_MAX]; /* of a stub's own part, once they
								 * were written
								 */
	size_t encoded_stub_rows_size;
	int error;
};

/* ---- bytes ---- */

static void append_bytes(struct unwind_table_writer *writer, const void *bytes, size_t size)
{
	struct stubs *stubs = writer->stubs;
	size_t capacity = stubs->capacity ? stubs->capacity : 1u << 12;

	while (capacity - stubs->size < size)
		capacity *= 2;
	if (capacity != stubs->capacity) {
		uint8_t *larger = realloc(stubs->bytes, capacity);

		if (!larger) {
			writer->error = -ENOMEM;
			return;
		}
		stubs->bytes = larger;
		stubs->capacity = capacity;
	}
	memcpy(stubs->bytes + stubs->size, bytes, size);
	stubs->size += size;
}

#define APPEND_BYTES(writer, ...)                                                                  \
	append_bytes(writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void append_uint32(struct unwind_table_writer *writer, uint32_t word)
{
	append_bytes(writer, &word, sizeof(word));
}

static void append_uleb128(struct unwind_table_writer *writer, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		APPEND_BYTES(writer, (uint8_t)(value | 0x80));
	APPEND_BYTES(writer, (uint8_t)value);
}

/* Where the next byte goes, as an offset in the arena. */
static uint32_t get_current_arena_offset(const struct unwind_table_writer *writer)
{
	return PLAN_STUBS + (uint32_t)writer->stubs->size;
}

/* Begins an entry, whose length is not known yet; where that belongs. */
static size_t begin_unwind_entry(struct unwind_table_writer *writer)
{
	append_uint32(writer, 0);
	return writer->stubs->size - 4;
}

static void end_unwind_entry(struct unwind_table_writer *writer, size_t begin)
{
	uint32_t length;

	while (writer->stubs->size % 4 && !writer->error)
		APPEND_BYTES(writer, 0);
	length = (uint32_t)(writer->stubs->size - begin - 4);
	if (!writer->error)
		memcpy(writer->stubs->bytes + begin, &length, sizeof(length));
}

/* ---- rows ---- */

/* What follows holds from this offset in the stub on. */
static void append_location_advance(struct unwind_table_writer *writer, uint32_t location)
{
	uint32_t distance = location - writer->last_row_offset;

	if (distance && distance < 0x40)
		APPEND_BYTES(writer, (uint8_t)(CFA_ADVANCE_LOC | distance));
	else if (distance && distance < 0x100)
		APPEND_BYTES(writer, CFA_ADVANCE_LOC1, (uint8_t)distance);
	else if (distance)
		APPEND_BYTES(writer, CFA_ADVANCE_LOC2, (uint8_t)distance, (uint8_t)(distance >> 8));
	writer->last_row_offset = location;
}

/* CFA = rsp + offset, in two ways of saying so: behind a row that said the same with another
 * offset, and behind any row. */
static void append_cfa_offset(struct unwind_table_writer *writer, uint32_t location,
			      uint64_t offset)
{
	append_location_advance(writer, location);
	APPEND_BYTES(writer, CFA_DEF_CFA_OFFSET);
	append_uleb128(writer, offset);
}

static void append_cfa_definition(struct unwind_table_writer *writer, uint32_t location,
				  uint64_t offset)
{
	append_location_advance(writer, location);
	APPEND_BYTES(writer, CFA_DEF_CFA, EH_FRAME_REGISTER_RSP);
	append_uleb128(writer, offset);
}

/* An offset that is no multiple of 8. */
static void append_cfa_offset_expression(struct unwind_table_writer *writer, uint32_t location,
					 int offset)
{
	append_location_advance(writer, location);
	APPEND_BYTES(writer, CFA_DEF_CFA_EXPRESSION, 2, DWARF_OP_BREG0 + EH_FRAME_REGISTER_RSP,
		     (uint8_t)(offset & 0x7f));
}

/* The function has returned: from here on the shadow stacks are asked, as the CIE says. That is
 * recalled and not restored, because DW_CFA_restore is libgcc's "unsaved", whatever the CIE says
 * (execute_cfa_program in gcc's unwind-dw2.c). */
static void append_function_exit_rows(struct unwind_table_writer *writer)
{
	/* Callers are looked up one below their return address. */
	append_location_advance(writer, PLAN_STUB_EXIT - 1);
	APPEND_BYTES(writer, CFA_RESTORE_STATE);
	append_cfa_offset_expression(writer, PLAN_STUB_EXIT - 1, 4);
	APPEND_BYTES(writer, CFA_VAL_EXPRESSION, EH_FRAME_REGISTER_RSP, 2, DWARF_OP_LIT0 + 4,
		     DWARF_OP_MINUS);
	append_cfa_offset_expression(writer, 53, 12);
	append_cfa_offset_expression(writer, 58, 20);
	append_cfa_definition(writer, 63, 16);
	APPEND_BYTES(writer, CFA_OFFSET_OF_REGISTER | EH_FRAME_REGISTER_RIP, 1,
		     CFA_RESTORE | EH_FRAME_REGISTER_RSP);
}

/* The part that all stubs of functions have (kymo/plan.h), in the same bytes. */
static void append_and_cache_function_stub_rows(struct unwind_table_writer *writer)
{
	const size_t begin = writer->stubs->size;

	APPEND_BYTES(writer, CFA_REMEMBER_STATE, CFA_OFFSET_OF_REGISTER | EH_FRAME_REGISTER_RIP, 1);
	append_cfa_offset(writer, 5, 16);
	append_cfa_offset(writer, 12, 8);
	append_cfa_offset(writer, 33, 16);
	append_cfa_offset(writer, 43, 0);
	append_function_exit_rows(writer);
	append_cfa_offset(writer, 68, 8);
	append_cfa_offset(writer, PLAN_STUB_SKIPPED, 16);
	append_cfa_offset(writer, 74, 8);
	append_location_advance(writer, PLAN_STUB_BODY);
	if (writer->error || writer->stubs->size - begin > sizeof(writer->encoded_stub_rows))
		return;
	writer->encoded_stub_rows_size = writer->stubs->size - begin;
	memcpy(writer->encoded_stub_rows, writer->stubs->bytes + begin,
	       writer->encoded_stub_rows_size);
}

static void append_function_stub_rows(struct unwind_table_writer *writer)
{
	if (!writer->encoded_stub_rows_size) {
		append_and_cache_function_stub_rows(writer);
	} else {
		append_bytes(writer, writer->encoded_stub_rows, writer->encoded_stub_rows_size);
		writer->last_row_offset = PLAN_STUB_BODY;
	}
}

/* The part that all stubs of places have, in a frame of which only rsp is known to change. */
static void append_block_stub_rows(struct unwind_table_writer *writer, const struct cfa_row *row)
{
	static const struct {
		uint8_t location, depth;
	} rows[] = {{5, 128}, {6, 136}, {20, 144}, {30, 136}, {31, 128}, {39, 0}};

	if (!row->known || row->base != EH_FRAME_REGISTER_RSP)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		append_cfa_offset(writer, rows[i].location,
				  (uint64_t)(row->offset + rows[i].depth));
}

/* ---- rows of displaced instructions ---- */

struct displaced_site_instructions {
	const struct plan_site *site;
	const struct plan_move *moves; /* of the site */
	uint32_t stub_offset,
		jump_back_offset; /* in the arena; `back`: of what is behind the last one */
};

/* The jump that leads on to `vaddr`. Its distance has four bytes, so that is no accident. */
static uint32_t find_jump_back_from_stub(const struct stubs *stubs, uint32_t from, uint32_t end,
					 uint64_t vaddr)
{
	for (uint32_t at = from; at + 5 <= end; at++) {
		const uint8_t *code = stubs->bytes + (at - PLAN_STUBS);
		int32_t distance;

		memcpy(&distance, code + 1, sizeof(distance));
		if (code[0] == 0xe9 &&
		    stubs->arena_vaddr + at + 5 + (uint64_t)(int64_t)distance == vaddr)
			return at;
	}
	return end;
}

/* Where the row of an address in the window begins. */
static uint32_t get_displaced_row_location(const struct displaced_site_instructions *displaced,
					   uint64_t vaddr)
{
	for (uint32_t i = 0; i < displaced->site->move_count; i++)
		if (displaced->site->vaddr + displaced->moves[i].from >= vaddr)
			return displaced->moves[i].to - displaced->stub_offset;
	return displaced->jump_back_offset - displaced->stub_offset;
}

/* The instructions that the walk has just run, without the one that ends the row. */
static void append_cfa_instructions_of_row(struct unwind_table_writer *writer,
					   const struct cfa_walk_state *walk, const uint8_t *begin)
{
	const uint8_t *end = walk->cursor.at;
	uint64_t distance = walk->next - walk->location;

	if (walk->cursor.failed)
		return;
	if (walk->next == UINT64_MAX)
		;
	else if (distance < 0x40 && end[-1] == (CFA_ADVANCE_LOC | distance))
		end -= 1;
	else if (distance < 0x100 && end[-1] == distance && end[-2] == CFA_ADVANCE_LOC1)
		end -= 2;
	else
		end -= end[-3] == CFA_ADVANCE_LOC2 ? 3 : 5;
	if (end > begin)
		append_bytes(writer, begin, (size_t)(end - begin));
}

/* A displaced call puts its return address on the stack and jumps. */
static void append_displaced_call_rows(struct unwind_table_writer *writer,
				       const struct displaced_site_instructions *displaced,
				       const struct cfa_row *row)
{
	uint32_t last = displaced->moves[displaced->site->move_count - 1].to;
	const uint8_t *copy = writer->stubs->bytes + (last - PLAN_STUBS);

	if (writer->stubs->size - (last - PLAN_STUBS) < PLAN_CALL_JUMP ||
	    memcmp(copy, PLAN_CALL_COPY, sizeof(PLAN_CALL_COPY) - 1) || !row->known ||
	    row->base != EH_FRAME_REGISTER_RSP ||
	    last - displaced->stub_offset < writer->last_row_offset)
		return;
	append_cfa_offset(writer, last + 5 - displaced->stub_offset, (uint64_t)(row->offset + 8));
	append_cfa_offset(writer, last + 6 - displaced->stub_offset, (uint64_t)(row->offset + 16));
	append_cfa_offset(writer, last + PLAN_CALL_JUMP - displaced->stub_offset,
			  (uint64_t)(row->offset + 8));
}

static const struct eh_frame_fde *find_fde_of_address(const struct eh_frame_table *frames,
						      uint64_t vaddr)
{
	size_t low = 0, high = frames->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (frames->list[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && vaddr - frames->list[low - 1].vaddr < frames->list[low - 1].size
		       ? &frames->list[low - 1]
		       : NULL;
}

/* The function's own rows, up to the one in force at the site; false: it has none that can be taken
 * over. */
static bool append_rows_up_to_site(struct unwind_table_writer *writer, uint64_t vaddr,
				   struct cfa_walk_state *walk)
{
	const struct eh_frame_fde *frame = find_fde_of_address(writer->frames, vaddr);
	const uint8_t *begin;

	if (!frame)
		return false;
	cfa_walk_begin_at_frame(walk, writer->frames, frame);
	if (walk->cie->code_align != 1 || walk->cie->data_align != -8 ||
	    walk->initial.is_return_address_moved || walk->initial.is_return_address_undefined ||
	    !walk->initial.known || walk->initial.base != EH_FRAME_REGISTER_RSP ||
	    walk->initial.offset != 8)
		return false;
	begin = writer->frames->bytes + frame->cfa_program_offset;
	append_cfa_instructions_of_row(writer, walk, begin);
	while (walk->next <= vaddr && walk->next != UINT64_MAX) {
		begin = walk->cursor.at;
		cfa_walk_to_next_row(walk);
		append_cfa_instructions_of_row(writer, walk, begin);
	}
	return true;
}

static void append_rows_of_displaced_site(struct unwind_table_writer *writer,
					  struct cfa_walk_state *walk,
					  const struct displaced_site_instructions *displaced)
{
	while (walk->next != UINT64_MAX &&
	       walk->next <= displaced->site->vaddr + displaced->site->window) {
		const uint8_t *begin = walk->cursor.at;

		append_location_advance(writer, get_displaced_row_location(displaced, walk->next));
		cfa_walk_to_next_row(walk);
		append_cfa_instructions_of_row(writer, walk, begin);
	}
	append_displaced_call_rows(writer, displaced, &walk->row);
}

/* ---- entries ---- */

static void append_cie(struct unwind_table_writer *writer)
{
	size_t begin = begin_unwind_entry(writer);

	writer->cie_offset = get_current_arena_offset(writer) - 4;
	append_uint32(writer, 0);
	append_bytes(writer, stub_cie_bytes, sizeof(stub_cie_bytes));
	append_bytes(writer, shadow_stack_search_expression,
		     sizeof(shadow_stack_search_expression));
	end_unwind_entry(writer, begin);
}

static void append_fde_of_stub(struct unwind_table_writer *writer,
			       const struct plan_function *function, const struct plan_site *site,
			       uint32_t end)
{
	const bool place = function->flags & (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK);
	struct displaced_site_instructions displaced = {.site = site,
							.moves = writer->stubs->moves +
								 site->first_move,
							.stub_offset = function->stub};
	size_t begin = begin_unwind_entry(writer);
	struct cfa_walk_state walk;
	bool known;

	displaced.jump_back_offset =
		find_jump_back_from_stub(writer->stubs, displaced.moves[site->move_count - 1].to,
					 end, site->vaddr + site->window);
	append_uint32(writer, get_current_arena_offset(writer) - writer->cie_offset);
	append_uint32(writer, function->stub - get_current_arena_offset(writer));
	append_uint32(writer, end - function->stub);
	APPEND_BYTES(writer, 0);
	writer->last_row_offset = 0;
	if (place)
		APPEND_BYTES(writer, CFA_OFFSET_OF_REGISTER | EH_FRAME_REGISTER_RIP, 1);
	else
		append_function_stub_rows(writer);
	known = append_rows_up_to_site(writer, site->vaddr, &walk);
	if (known && place)
		append_block_stub_rows(writer, &walk.row);
	if (known)
		append_rows_of_displaced_site(writer, &walk, &displaced);
	end_unwind_entry(writer, begin);
}

/* ---- the table ---- */

struct stub_offset_and_function {
	uint32_t stub_offset, function_index;
};

static int compare_stub_by_offset(const void *left, const void *right)
{
	const struct stub_offset_and_function *a = left, *b = right;

	return a->stub_offset < b->stub_offset ? -1 : a->stub_offset > b->stub_offset;
}

/* The functions with a stub, by stub; NULL: none, or no memory (*ret_count not 0). */
static struct stub_offset_and_function *list_stubs_by_offset(const struct plan_function *functions,
							     size_t count, size_t *ret_count)
{
	struct stub_offset_and_function *order;
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += functions[i].stub != 0;
	*ret_count = found;
	order = found ? malloc(found * sizeof(*order)) : NULL;
	if (!order)
		return NULL;
	found = 0;
	for (uint32_t i = 0; i < count; i++)
		if (functions[i].stub)
			order[found++] = (struct stub_offset_and_function){
				.stub_offset = functions[i].stub, .function_index = i};
	for (size_t i = 1; i < found; i++) {
		if (order[i - 1].stub_offset > order[i].stub_offset) {
			qsort(order, found, sizeof(*order), compare_stub_by_offset);
			break;
		}
	}
	return order;
}

/* Header and room for a table of `count` rows; where the table begins, in the stubs' bytes. */
static size_t append_eh_frame_header(struct unwind_table_writer *writer, size_t count)
{
	size_t table;

	while (writer->stubs->size % 8 && !writer->error)
		APPEND_BYTES(writer, 0xcc);
	APPEND_BYTES(writer, 1, EH_ENCODING_PCREL_SDATA4, EH_ENCODING_UDATA4,
		     EH_ENCODING_DATAREL_SDATA4);
	append_uint32(writer, (uint32_t)(8 + 8 * count)); /* from this field to .eh_frame */
	append_uint32(writer, (uint32_t)count);
	table = writer->stubs->size;
	for (size_t i = 0; i < 2 * count && !writer->error; i++)
		append_uint32(writer, 0);
	return table;
}

static void append_eh_frame_entries(struct unwind_table_writer *writer,
				    const struct plan_function *functions,
				    const struct plan_site *sites,
				    const struct stub_offset_and_function *order, size_t count)
{
	const uint32_t end = get_current_arena_offset(writer);
	size_t table = append_eh_frame_header(writer, count);
	uint32_t header = PLAN_STUBS + (uint32_t)table - 12;

	append_cie(writer);
	for (size_t i = 0; i < count && !writer->error; i++) {
		const struct plan_function *function = &functions[order[i].function_index];
		uint32_t row[2] = {function->stub - header,
				   get_current_arena_offset(writer) - header};

		memcpy(writer->stubs->bytes + table + 8 * i, row, sizeof(row));
		append_fde_of_stub(writer, function, &sites[function->site],
				   i + 1 < count ? order[i + 1].stub_offset : end);
	}
	append_uint32(writer, 0);
}

int stubs_append_unwind_tables(struct stubs *stubs, const struct eh_frame_table *frames,
			       const struct plan_function *functions, size_t count,
			       const struct plan_site *sites, struct plan_table *ret_frames)
{
	struct unwind_table_writer writer = {.stubs = stubs, .frames = frames};
	size_t stub_count, begin = (stubs->size + 7) & ~(size_t)7;
	struct stub_offset_and_function *order =
		list_stubs_by_offset(functions, count, &stub_count);

	*ret_frames = (struct plan_table){0};
	if (!order)
		return stub_count ? -ENOMEM : 0;
	append_eh_frame_entries(&writer, functions, sites, order, stub_count);
	free(order);
	if (writer.error)
		return writer.error;
	*ret_frames =
		(struct plan_table){.offset = PLAN_STUBS + begin, .count = stubs->size - begin};
	return 0;
}
