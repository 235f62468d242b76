/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Running the programs of CIEs and FDEs, as far as the CFA and the return address go.
 */
#include "binary/functions_frames.h"

#define RETURN_REGISTER 16 /* DWARF number of the return address on x86-64 */

enum {
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f,
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0
};

static void return_address_at(struct frame_walk *walk, uint64_t reg, int64_t offset)
{
	if (reg != RETURN_REGISTER)
		return;
	walk->row.orphan = false;
	walk->row.moved = offset != -8;
}

static void restore(struct frame_walk *walk, uint64_t reg)
{
	if (reg == RETURN_REGISTER) {
		walk->row.orphan = walk->initial.orphan;
		walk->row.moved = walk->initial.moved;
	}
}

static void define(struct frame_walk *walk, uint64_t base, int64_t offset)
{
	walk->row.known = base < 16;
	walk->row.base = (uint8_t)base;
	walk->row.offset = offset;
}

static void other_rule(struct frame_walk *walk, uint64_t reg)
{
	if (reg == RETURN_REGISTER) {
		walk->row.orphan = false;
		walk->row.moved = true;
	}
}

static int64_t scaled(const struct frame_walk *walk, uint64_t value)
{
	return (int64_t)(value * (uint64_t)(int64_t)walk->common->data_align);
}

/* Rules of registers; false: none of these. */
static bool step_register(struct frame_walk *walk, uint8_t code)
{
	struct cursor *cursor = &walk->cursor;
	uint64_t reg;

	switch (code) {
	case CFA_OFFSET_EXTENDED:
	case CFA_OFFSET_EXTENDED_SF:
	case CFA_GNU_NEGATIVE_OFFSET:
		reg = cursor_uleb(cursor);
		return_address_at(walk, reg,
				  code == CFA_OFFSET_EXTENDED ? scaled(walk, cursor_uleb(cursor))
				  : code == CFA_OFFSET_EXTENDED_SF
					  ? scaled(walk, (uint64_t)cursor_sleb(cursor))
					  : -scaled(walk, cursor_uleb(cursor)));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore(walk, cursor_uleb(cursor));
		return true;
	case CFA_UNDEFINED:
		if (cursor_uleb(cursor) == RETURN_REGISTER)
			walk->row.orphan = true;
		return true;
	case CFA_SAME_VALUE:
		other_rule(walk, cursor_uleb(cursor));
		return true;
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
		other_rule(walk, cursor_uleb(cursor));
		cursor_uleb(cursor);
		return true;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		other_rule(walk, cursor_uleb(cursor));
		cursor_skip(cursor, cursor_uleb(cursor));
		return true;
	default:
		return false;
	}
}

static void step_frame_address(struct frame_walk *walk, uint8_t code)
{
	struct cursor *cursor = &walk->cursor;
	uint64_t base;

	switch (code) {
	case CFA_DEF_CFA:
		base = cursor_uleb(cursor);
		define(walk, base, (int64_t)cursor_uleb(cursor));
		break;
	case CFA_DEF_CFA_SF:
		base = cursor_uleb(cursor);
		define(walk, base, scaled(walk, (uint64_t)cursor_sleb(cursor)));
		break;
	case CFA_DEF_CFA_REGISTER:
		define(walk, cursor_uleb(cursor), walk->row.offset);
		break;
	case CFA_DEF_CFA_OFFSET:
		walk->row.offset = (int64_t)cursor_uleb(cursor);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		walk->row.offset = scaled(walk, (uint64_t)cursor_sleb(cursor));
		break;
	case CFA_DEF_CFA_EXPRESSION:
		walk->row.known = false;
		cursor_skip(cursor, cursor_uleb(cursor));
		break;
	case CFA_GNU_ARGS_SIZE:
		cursor_uleb(cursor);
		break;
	case CFA_REMEMBER_STATE:
		if (walk->depth < FRAME_REMEMBER_MAX)
			walk->remembered[walk->depth] = walk->row;
		walk->depth++;
		break;
	case CFA_RESTORE_STATE:
		if (walk->depth && --walk->depth < FRAME_REMEMBER_MAX)
			walk->row = walk->remembered[walk->depth];
		else
			walk->row.known = false;
		break;
	case 0:
		break;
	default: /* unknown: nothing can be said from here on */
		cursor->failed = true;
	}
}

/* Bytes that an instruction moves on, or -1: it is another one. */
static int64_t step_advance(struct frame_walk *walk, uint8_t code)
{
	uint64_t units;

	if ((code & 0xc0) == CFA_ADVANCE_LOC)
		units = code & 0x3f;
	else if (code == CFA_ADVANCE_LOC1)
		units = cursor_fixed(&walk->cursor, 1);
	else if (code == CFA_ADVANCE_LOC2)
		units = cursor_fixed(&walk->cursor, 2);
	else if (code == CFA_ADVANCE_LOC4)
		units = cursor_fixed(&walk->cursor, 4);
	else
		return -1;
	return (int64_t)(units * walk->common->code_align & UINT32_MAX);
}

/* Up to the next row or the program's end. */
static void run(struct frame_walk *walk)
{
	struct cursor *cursor = &walk->cursor;

	while (cursor_left(cursor)) {
		uint8_t code = cursor_byte(cursor);
		int64_t distance = step_advance(walk, code);
		if (distance > 0) {
			walk->next = walk->location + (uint64_t)distance;
			return;
		}
		if (distance == 0)
			continue;
		if ((code & 0xc0) == CFA_OFFSET)
			return_address_at(walk, code & 0x3f, scaled(walk, cursor_uleb(cursor)));
		else if ((code & 0xc0) == CFA_RESTORE)
			restore(walk, code & 0x3f);
		else if (!step_register(walk, code))
			step_frame_address(walk, code);
		if (cursor->failed) {
			walk->row.known = false;
			cursor->at = cursor->end;
		}
	}
	walk->next = UINT64_MAX;
}

void frame_walk_start(struct frame_walk *walk, const struct frames *frames,
		      const struct frame *frame)
{
	const struct frame_common *common = &frames->commons[frame->common];

	memset(walk, 0, sizeof(*walk));
	walk->common = common;
	walk->location = frame->vaddr;
	walk->cursor =
		(struct cursor){.at = frames->bytes + common->program,
				.end = frames->bytes + common->program + common->program_size};
	run(walk);
	walk->initial = walk->row;
	walk->cursor = (struct cursor){.at = frames->bytes + frame->program,
				       .end = frames->bytes + frame->program + frame->program_size};
	run(walk);
}

void frame_walk_on(struct frame_walk *walk)
{
	walk->location = walk->next;
	walk->moved_on = true;
	run(walk);
}
