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
 * is 4 above the caller's rsp, and rsp is told apart: unwinders that throw identify frames by their
 * CFA (libgcc's uw_identify_context), so a stub's must be no function's; and gdb wants CFAs to
 * rise.
 *
 * DWARF 5, 6.4 and 2.5; LSB Core, 10.6.
 */
#include "binary/stubs.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "binary/functions_frames.h"

enum { /* call frame instructions */
       CFA_ADVANCE1 = 0x02,
       CFA_ADVANCE2 = 0x03,
       CFA_REMEMBER = 0x0a,
       CFA_RECALL = 0x0b,
       CFA_DEFINE = 0x0c,
       CFA_OFFSET = 0x0e,
       CFA_EXPRESSION = 0x0f,
       CFA_VALUE_EXPRESSION = 0x16,
       CFA_ADVANCE = 0x40,
       CFA_SAVED = 0x80,
       CFA_RESTORE = 0xc0,
       REGISTER_RIP = 16
};

enum { /* operations of expressions */
       OP_DEREF = 0x06,
       OP_CONST1U = 0x08,
       OP_CONST1S = 0x09,
       OP_DUP = 0x12,
       OP_DROP = 0x13,
       OP_PICK = 0x15,
       OP_AND = 0x1a,
       OP_MINUS = 0x1c,
       OP_PLUS = 0x22,
       OP_PLUS_CONSTANT = 0x23,
       OP_SHL = 0x24,
       OP_SHR = 0x25,
       OP_SHRA = 0x26,
       OP_BRANCH = 0x28,
       OP_NE = 0x2e,
       OP_SKIP = 0x2f,
       OP_LITERAL = 0x30,
       OP_REGISTER = 0x70, /* + register, SLEB128 */
       OP_DEREF_SIZE = 0x94
};

enum { ENCODED_RELATIVE = 0x1b, ENCODED_COUNT = 0x03, ENCODED_TABLE = 0x3b };

/* Two bytes of distance from behind themselves; constants in two bytes. */
#define TO(from, to) (uint8_t)((to) - (from)-3), (uint8_t)((unsigned)((to) - (from)-3) >> 8)
#define ULEB2(value) (uint8_t)(((value)&0x7f) | 0x80), (uint8_t)((value) >> 7)

/* Where the stub's first distance leads to the data page from: the field behind `mov gate(%rip)`.
 */
#define GATE_DISTANCE     22u
#define FUNCTION_ROWS_MAX 128u
#define TO_NODES                                                                                   \
	(4 + PLAN_GATE_CONSTANTS + (uint32_t)offsetof(struct plan_gate_constants, shadow_nodes) -  \
	 (uint32_t)offsetof(struct plan_arena_data, gate))

/* The caller's address by the shadow stacks; the CFA is on the stack. The part of the stub that
 * needs it is 16 bytes at a multiple of 16. Not found: the slot's own contents, since the last
 * instructions of a stub have it put right already, unless they lead back into the stub. */
/* clang-format off */
static const uint8_t search_shadows[] = {
	/* libgcc cannot pick the lowest value of all: the CFA stays where it is */
	OP_DUP, OP_LITERAL + 12, OP_MINUS, /* slot */
	OP_REGISTER + REGISTER_RIP, 0, OP_CONST1S, 0xf0, OP_AND, OP_LITERAL + 26, OP_MINUS,
	OP_DUP, OP_DEREF_SIZE, 4, OP_CONST1U, 32, OP_SHL, OP_CONST1U, 32, OP_SHRA, OP_PLUS,
	OP_PLUS_CONSTANT, ULEB2(TO_NODES), OP_DEREF, /* slot, address of the list's head */
	/*  0 */ OP_DEREF,
	/*  1: slot, node */ OP_DUP,
	/*  2 */ OP_BRANCH, TO(2, 24),
	/*  5 */ OP_DROP, OP_DEREF, OP_DUP,
	/*  8 */ OP_REGISTER + REGISTER_RIP, 0, OP_MINUS, OP_CONST1U, 128, OP_PLUS,
	/* 14 */ OP_LITERAL + 8, OP_SHR,
	/* 16 */ OP_BRANCH, TO(16, 51),
	/* 19 */ OP_DROP, OP_LITERAL,
	/* 21 */ OP_SKIP, TO(21, 51),
	/* 24 */ OP_DUP, OP_PLUS_CONSTANT, PLAN_SHADOW_ENTRIES, OP_DEREF,
	/* 28: slot, node, entry */ OP_PLUS_CONSTANT, PLAN_SHADOW_ENTRY,
	/* 30 */ OP_DUP, OP_PLUS_CONSTANT, PLAN_SHADOW_SLOT, OP_DEREF, OP_DUP,
	/* 35 */ OP_BRANCH, TO(35, 44),
	/* 38 */ OP_DROP, OP_DROP, OP_DEREF,
	/* 41 */ OP_SKIP, TO(41, 1),
	/* 44 */ OP_PICK, 3, OP_NE,
	/* 47 */ OP_BRANCH, TO(47, 28),
	/* 50 */ OP_DEREF,
	/* 51 */
};
/* clang-format on */
_Static_assert(PLAN_STUB_EXIT % 16 == 0 && PLAN_STUB_EXIT - GATE_DISTANCE == 26,
	       "how the expression finds the data page");

/* The CIE: FDEs have distances as addresses; factors 1 and -8; the CFA is rsp + 8; return addresses
 * are searched. FDEs say otherwise for most of their stub. */
static const uint8_t common_entry[] = {
	1,
	'z',
	'R',
	0,
	1,
	0x78,
	REGISTER_RIP,
	1,
	ENCODED_RELATIVE,
	CFA_DEFINE,
	FRAME_RSP,
	8,
	CFA_VALUE_EXPRESSION,
	REGISTER_RIP,
	sizeof(search_shadows),
};

struct frame_writer {
	struct stubs *stubs;
	const struct frames *frames;     /* of the module */
	uint32_t common;                 /* offset of the CIE in the arena */
	uint32_t location;               /* of the last row, from the stub */
	uint8_t rows[FUNCTION_ROWS_MAX]; /* of a stub's own part, once they were written */
	size_t rows_size;
	int error;
};

/* ---- bytes ---- */

static void put(struct frame_writer *writer, const void *bytes, size_t size)
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

#define PUT(writer, ...)                                                                           \
	put(writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put_word(struct frame_writer *writer, uint32_t word)
{
	put(writer, &word, sizeof(word));
}

static void put_unsigned(struct frame_writer *writer, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		PUT(writer, (uint8_t)(value | 0x80));
	PUT(writer, (uint8_t)value);
}

/* Where the next byte goes, as an offset in the arena. */
static uint32_t here(const struct frame_writer *writer)
{
	return PLAN_STUBS + (uint32_t)writer->stubs->size;
}

/* Begins an entry, whose length is not known yet; where that belongs. */
static size_t begin_entry(struct frame_writer *writer)
{
	put_word(writer, 0);
	return writer->stubs->size - 4;
}

static void end_entry(struct frame_writer *writer, size_t begin)
{
	uint32_t length;

	while (writer->stubs->size % 4 && !writer->error)
		PUT(writer, 0);
	length = (uint32_t)(writer->stubs->size - begin - 4);
	if (!writer->error)
		memcpy(writer->stubs->bytes + begin, &length, sizeof(length));
}

/* ---- rows ---- */

/* What follows holds from this offset in the stub on. */
static void advance(struct frame_writer *writer, uint32_t location)
{
	uint32_t distance = location - writer->location;

	if (distance && distance < 0x40)
		PUT(writer, (uint8_t)(CFA_ADVANCE | distance));
	else if (distance && distance < 0x100)
		PUT(writer, CFA_ADVANCE1, (uint8_t)distance);
	else if (distance)
		PUT(writer, CFA_ADVANCE2, (uint8_t)distance, (uint8_t)(distance >> 8));
	writer->location = location;
}

/* CFA = rsp + offset, in two ways of saying so: behind a row that said the same with another
 * offset, and behind any row. */
static void put_offset(struct frame_writer *writer, uint32_t location, uint64_t offset)
{
	advance(writer, location);
	PUT(writer, CFA_OFFSET);
	put_unsigned(writer, offset);
}

static void put_definition(struct frame_writer *writer, uint32_t location, uint64_t offset)
{
	advance(writer, location);
	PUT(writer, CFA_DEFINE, FRAME_RSP);
	put_unsigned(writer, offset);
}

/* An offset that is no multiple of 8. */
static void put_odd_offset(struct frame_writer *writer, uint32_t location, int offset)
{
	advance(writer, location);
	PUT(writer, CFA_EXPRESSION, 2, OP_REGISTER + FRAME_RSP, (uint8_t)(offset & 0x7f));
}

/* The function has returned: from here on the shadow stacks are asked, as the CIE says. That is
 * recalled and not restored, because DW_CFA_restore is libgcc's "unsaved", whatever the CIE says
 * (execute_cfa_program in gcc's unwind-dw2.c). */
static void put_exit_rows(struct frame_writer *writer)
{
	/* Callers are looked up one below their return address. */
	advance(writer, PLAN_STUB_EXIT - 1);
	PUT(writer, CFA_RECALL);
	put_odd_offset(writer, PLAN_STUB_EXIT - 1, 4);
	PUT(writer, CFA_VALUE_EXPRESSION, FRAME_RSP, 2, OP_LITERAL + 4, OP_MINUS);
	put_odd_offset(writer, 53, 12);
	put_odd_offset(writer, 58, 20);
	put_definition(writer, 63, 16);
	PUT(writer, CFA_SAVED | REGISTER_RIP, 1, CFA_RESTORE | FRAME_RSP);
}

/* The part that all stubs of functions have (kymo/plan.h), in the same bytes. */
static void make_function_rows(struct frame_writer *writer)
{
	const size_t begin = writer->stubs->size;

	PUT(writer, CFA_REMEMBER, CFA_SAVED | REGISTER_RIP, 1);
	put_offset(writer, 5, 16);
	put_offset(writer, 12, 8);
	put_offset(writer, 33, 16);
	put_offset(writer, 43, 0);
	put_exit_rows(writer);
	put_offset(writer, 68, 8);
	put_offset(writer, PLAN_STUB_SKIPPED, 16);
	put_offset(writer, 74, 8);
	advance(writer, PLAN_STUB_BODY);
	if (writer->error || writer->stubs->size - begin > sizeof(writer->rows))
		return;
	writer->rows_size = writer->stubs->size - begin;
	memcpy(writer->rows, writer->stubs->bytes + begin, writer->rows_size);
}

static void put_function_rows(struct frame_writer *writer)
{
	if (!writer->rows_size) {
		make_function_rows(writer);
	} else {
		put(writer, writer->rows, writer->rows_size);
		writer->location = PLAN_STUB_BODY;
	}
}

/* The part that all stubs of places have, in a frame of which only rsp is known to change. */
static void put_place_rows(struct frame_writer *writer, const struct frame_row *row)
{
	static const struct {
		uint8_t location, depth;
	} rows[] = {{5, 128}, {6, 136}, {20, 144}, {30, 136}, {31, 128}, {39, 0}};

	if (!row->known || row->base != FRAME_RSP)
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		put_offset(writer, rows[i].location, (uint64_t)(row->offset + rows[i].depth));
}

/* ---- rows of displaced instructions ---- */

struct displaced {
	const struct plan_site *site;
	const struct plan_move *moves; /* of the site */
	uint32_t stub, back;           /* in the arena; `back`: of what is behind the last one */
};

/* The jump that leads on to `vaddr`. Its distance has four bytes, so that is no accident. */
static uint32_t find_back(const struct stubs *stubs, uint32_t from, uint32_t end, uint64_t vaddr)
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
static uint32_t new_location(const struct displaced *displaced, uint64_t vaddr)
{
	for (uint32_t i = 0; i < displaced->site->move_count; i++)
		if (displaced->site->vaddr + displaced->moves[i].from >= vaddr)
			return displaced->moves[i].to - displaced->stub;
	return displaced->back - displaced->stub;
}

/* The instructions that the walk has just run, without the one that ends the row. */
static void put_program(struct frame_writer *writer, const struct frame_walk *walk,
			const uint8_t *begin)
{
	const uint8_t *end = walk->cursor.at;
	uint64_t distance = walk->next - walk->location;

	if (walk->cursor.failed)
		return;
	if (walk->next == UINT64_MAX)
		;
	else if (distance < 0x40 && end[-1] == (CFA_ADVANCE | distance))
		end -= 1;
	else if (distance < 0x100 && end[-1] == distance && end[-2] == CFA_ADVANCE1)
		end -= 2;
	else
		end -= end[-3] == CFA_ADVANCE2 ? 3 : 5;
	if (end > begin)
		put(writer, begin, (size_t)(end - begin));
}

/* A displaced call puts its return address on the stack and jumps. */
static void put_call_rows(struct frame_writer *writer, const struct displaced *displaced,
			  const struct frame_row *row)
{
	uint32_t last = displaced->moves[displaced->site->move_count - 1].to;
	const uint8_t *copy = writer->stubs->bytes + (last - PLAN_STUBS);

	if (writer->stubs->size - (last - PLAN_STUBS) < PLAN_CALL_JUMP ||
	    memcmp(copy, PLAN_CALL_COPY, sizeof(PLAN_CALL_COPY) - 1) || !row->known ||
	    row->base != FRAME_RSP || last - displaced->stub < writer->location)
		return;
	put_offset(writer, last + 5 - displaced->stub, (uint64_t)(row->offset + 8));
	put_offset(writer, last + 6 - displaced->stub, (uint64_t)(row->offset + 16));
	put_offset(writer, last + PLAN_CALL_JUMP - displaced->stub, (uint64_t)(row->offset + 8));
}

static const struct frame *find_frame(const struct frames *frames, uint64_t vaddr)
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
static bool begin_rows(struct frame_writer *writer, uint64_t vaddr, struct frame_walk *walk)
{
	const struct frame *frame = find_frame(writer->frames, vaddr);
	const uint8_t *begin;

	if (!frame)
		return false;
	frame_walk_start(walk, writer->frames, frame);
	if (walk->common->code_align != 1 || walk->common->data_align != -8 ||
	    walk->initial.moved || walk->initial.orphan || !walk->initial.known ||
	    walk->initial.base != FRAME_RSP || walk->initial.offset != 8)
		return false;
	begin = writer->frames->bytes + frame->program;
	put_program(writer, walk, begin);
	while (walk->next <= vaddr && walk->next != UINT64_MAX) {
		begin = walk->cursor.at;
		frame_walk_on(walk);
		put_program(writer, walk, begin);
	}
	return true;
}

static void go_on_rows(struct frame_writer *writer, struct frame_walk *walk,
		       const struct displaced *displaced)
{
	while (walk->next != UINT64_MAX &&
	       walk->next <= displaced->site->vaddr + displaced->site->window) {
		const uint8_t *begin = walk->cursor.at;

		advance(writer, new_location(displaced, walk->next));
		frame_walk_on(walk);
		put_program(writer, walk, begin);
	}
	put_call_rows(writer, displaced, &walk->row);
}

/* ---- entries ---- */

static void put_common(struct frame_writer *writer)
{
	size_t begin = begin_entry(writer);

	writer->common = here(writer) - 4;
	put_word(writer, 0);
	put(writer, common_entry, sizeof(common_entry));
	put(writer, search_shadows, sizeof(search_shadows));
	end_entry(writer, begin);
}

static void put_entry(struct frame_writer *writer, const struct plan_function *function,
		      const struct plan_site *site, uint32_t end)
{
	const bool place = function->flags & (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK);
	struct displaced displaced = {.site = site,
				      .moves = writer->stubs->moves + site->first_move,
				      .stub = function->stub};
	size_t begin = begin_entry(writer);
	struct frame_walk walk;
	bool known;

	displaced.back = find_back(writer->stubs, displaced.moves[site->move_count - 1].to, end,
				   site->vaddr + site->window);
	put_word(writer, here(writer) - writer->common);
	put_word(writer, function->stub - here(writer));
	put_word(writer, end - function->stub);
	PUT(writer, 0);
	writer->location = 0;
	if (place)
		PUT(writer, CFA_SAVED | REGISTER_RIP, 1);
	else
		put_function_rows(writer);
	known = begin_rows(writer, site->vaddr, &walk);
	if (known && place)
		put_place_rows(writer, &walk.row);
	if (known)
		go_on_rows(writer, &walk, &displaced);
	end_entry(writer, begin);
}

/* ---- the table ---- */

struct stub_order {
	uint32_t stub, function;
};

static int order_compare(const void *left, const void *right)
{
	const struct stub_order *a = left, *b = right;

	return a->stub < b->stub ? -1 : a->stub > b->stub;
}

/* The functions with a stub, by stub; NULL: none, or no memory (*ret_count not 0). */
static struct stub_order *order_stubs(const struct plan_function *functions, size_t count,
				      size_t *ret_count)
{
	struct stub_order *order;
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
			order[found++] =
				(struct stub_order){.stub = functions[i].stub, .function = i};
	for (size_t i = 1; i < found; i++) {
		if (order[i - 1].stub > order[i].stub) {
			qsort(order, found, sizeof(*order), order_compare);
			break;
		}
	}
	return order;
}

/* Header and room for a table of `count` rows; where the table begins, in the stubs' bytes. */
static size_t put_header(struct frame_writer *writer, size_t count)
{
	size_t table;

	while (writer->stubs->size % 8 && !writer->error)
		PUT(writer, 0xcc);
	PUT(writer, 1, ENCODED_RELATIVE, ENCODED_COUNT, ENCODED_TABLE);
	put_word(writer, (uint32_t)(8 + 8 * count)); /* from this field to .eh_frame */
	put_word(writer, (uint32_t)count);
	table = writer->stubs->size;
	for (size_t i = 0; i < 2 * count && !writer->error; i++)
		put_word(writer, 0);
	return table;
}

static void put_entries(struct frame_writer *writer, const struct plan_function *functions,
			const struct plan_site *sites, const struct stub_order *order, size_t count)
{
	const uint32_t end = here(writer);
	size_t table = put_header(writer, count);
	uint32_t header = PLAN_STUBS + (uint32_t)table - 12;

	put_common(writer);
	for (size_t i = 0; i < count && !writer->error; i++) {
		const struct plan_function *function = &functions[order[i].function];
		uint32_t row[2] = {function->stub - header, here(writer) - header};

		memcpy(writer->stubs->bytes + table + 8 * i, row, sizeof(row));
		put_entry(writer, function, &sites[function->site],
			  i + 1 < count ? order[i + 1].stub : end);
	}
	put_word(writer, 0);
}

int stubs_add_frames(struct stubs *stubs, const struct frames *frames,
		     const struct plan_function *functions, size_t count,
		     const struct plan_site *sites, struct plan_table *ret_frames)
{
	struct frame_writer writer = {.stubs = stubs, .frames = frames};
	size_t stub_count, begin = (stubs->size + 7) & ~(size_t)7;
	struct stub_order *order = order_stubs(functions, count, &stub_count);

	*ret_frames = (struct plan_table){0};
	if (!order)
		return stub_count ? -ENOMEM : 0;
	put_entries(&writer, functions, sites, order, stub_count);
	free(order);
	if (writer.error)
		return writer.error;
	*ret_frames =
		(struct plan_table){.offset = PLAN_STUBS + begin, .count = stubs->size - begin};
	return 0;
}
