/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Running the programs of CIEs and FDEs, as far as the CFA and the return address go.
 */
#include "binary/functions/frames.h"

#define RETURN_ADDRESS_DWARF_REGISTER 16 /* DWARF number of the return address on x86-64 */

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

static void set_offset_rule_if_return_address(struct cfa_walk_state *walk, uint64_t reg,
					      int64_t offset)
{
	if (reg != RETURN_ADDRESS_DWARF_REGISTER)
		return;
	walk->row.is_return_address_undefined = false;
	walk->row.is_return_address_moved = offset != -8;
}

static void restore_rule_if_return_address(struct cfa_walk_state *walk, uint64_t reg)
{
	if (reg == RETURN_ADDRESS_DWARF_REGISTER) {
		walk->row.is_return_address_undefined = walk->initial.is_return_address_undefined;
		walk->row.is_return_address_moved = walk->initial.is_return_address_moved;
	}
}

static void set_cfa_rule(struct cfa_walk_state *walk, uint64_t base, int64_t offset)
{
	walk->row.known = base < 16;
	walk->row.base = (uint8_t)base;
	walk->row.offset = offset;
}

static void mark_return_address_moved_if_its_register(struct cfa_walk_state *walk, uint64_t reg)
{
	if (reg == RETURN_ADDRESS_DWARF_REGISTER) {
		walk->row.is_return_address_undefined = false;
		walk->row.is_return_address_moved = true;
	}
}

static int64_t scale_by_data_align(const struct cfa_walk_state *walk, uint64_t value)
{
	return (int64_t)(value * (uint64_t)(int64_t)walk->cie->data_align);
}

/* Rules of registers; false: none of these. */
static bool run_register_rule_instruction(struct cfa_walk_state *walk, uint8_t code)
{
	struct byte_cursor *cursor = &walk->cursor;
	uint64_t reg;

	switch (code) {
	case CFA_OFFSET_EXTENDED:
	case CFA_OFFSET_EXTENDED_SF:
	case CFA_GNU_NEGATIVE_OFFSET:
		reg = cursor_read_uleb128(cursor);
		set_offset_rule_if_return_address(
			walk, reg,
			code == CFA_OFFSET_EXTENDED
				? scale_by_data_align(walk, cursor_read_uleb128(cursor))
			: code == CFA_OFFSET_EXTENDED_SF
				? scale_by_data_align(walk, (uint64_t)cursor_read_sleb128(cursor))
				: -scale_by_data_align(walk, cursor_read_uleb128(cursor)));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore_rule_if_return_address(walk, cursor_read_uleb128(cursor));
		return true;
	case CFA_UNDEFINED:
		if (cursor_read_uleb128(cursor) == RETURN_ADDRESS_DWARF_REGISTER)
			walk->row.is_return_address_undefined = true;
		return true;
	case CFA_SAME_VALUE:
		mark_return_address_moved_if_its_register(walk, cursor_read_uleb128(cursor));
		return true;
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
		mark_return_address_moved_if_its_register(walk, cursor_read_uleb128(cursor));
		cursor_read_uleb128(cursor);
		return true;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		mark_return_address_moved_if_its_register(walk, cursor_read_uleb128(cursor));
		cursor_skip_bytes(cursor, cursor_read_uleb128(cursor));
		return true;
	default:
		return false;
	}
}

static void run_cfa_instruction(struct cfa_walk_state *walk, uint8_t code)
{
	struct byte_cursor *cursor = &walk->cursor;
	uint64_t base;

	switch (code) {
	case CFA_DEF_CFA:
		base = cursor_read_uleb128(cursor);
		set_cfa_rule(walk, base, (int64_t)cursor_read_uleb128(cursor));
		break;
	case CFA_DEF_CFA_SF:
		base = cursor_read_uleb128(cursor);
		set_cfa_rule(walk, base,
			     scale_by_data_align(walk, (uint64_t)cursor_read_sleb128(cursor)));
		break;
	case CFA_DEF_CFA_REGISTER:
		set_cfa_rule(walk, cursor_read_uleb128(cursor), walk->row.offset);
		break;
	case CFA_DEF_CFA_OFFSET:
		walk->row.offset = (int64_t)cursor_read_uleb128(cursor);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		walk->row.offset = scale_by_data_align(walk, (uint64_t)cursor_read_sleb128(cursor));
		break;
	case CFA_DEF_CFA_EXPRESSION:
		walk->row.known = false;
		cursor_skip_bytes(cursor, cursor_read_uleb128(cursor));
		break;
	case CFA_GNU_ARGS_SIZE:
		cursor_read_uleb128(cursor);
		break;
	case CFA_REMEMBER_STATE:
		if (walk->depth < CFA_REMEMBERED_ROWS_MAX)
			walk->remembered[walk->depth] = walk->row;
		walk->depth++;
		break;
	case CFA_RESTORE_STATE:
		if (walk->depth && --walk->depth < CFA_REMEMBERED_ROWS_MAX)
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
static int64_t read_location_advance(struct cfa_walk_state *walk, uint8_t code)
{
	uint64_t units;

	if ((code & 0xc0) == CFA_ADVANCE_LOC)
		units = code & 0x3f;
	else if (code == CFA_ADVANCE_LOC1)
		units = cursor_read_fixed_uint(&walk->cursor, 1);
	else if (code == CFA_ADVANCE_LOC2)
		units = cursor_read_fixed_uint(&walk->cursor, 2);
	else if (code == CFA_ADVANCE_LOC4)
		units = cursor_read_fixed_uint(&walk->cursor, 4);
	else
		return -1;
	return (int64_t)(units * walk->cie->code_align & UINT32_MAX);
}

/* Up to the next row or the program's end. */
static void run_cfa_program_to_next_row(struct cfa_walk_state *walk)
{
	struct byte_cursor *cursor = &walk->cursor;

	while (cursor_remaining_bytes(cursor)) {
		uint8_t code = cursor_read_byte(cursor);
		int64_t distance = read_location_advance(walk, code);
		if (distance > 0) {
			walk->next = walk->location + (uint64_t)distance;
			return;
		}
		if (distance == 0)
			continue;
		if ((code & 0xc0) == CFA_OFFSET)
			set_offset_rule_if_return_address(
				walk, code & 0x3f,
				scale_by_data_align(walk, cursor_read_uleb128(cursor)));
		else if ((code & 0xc0) == CFA_RESTORE)
			restore_rule_if_return_address(walk, code & 0x3f);
		else if (!run_register_rule_instruction(walk, code))
			run_cfa_instruction(walk, code);
		if (cursor->failed) {
			walk->row.known = false;
			cursor->at = cursor->end;
		}
	}
	walk->next = UINT64_MAX;
}

void cfa_walk_begin_at_frame(struct cfa_walk_state *walk, const struct eh_frame_table *frames,
			     const struct eh_frame_fde *frame)
{
	const struct eh_frame_cie *common = &frames->cies[frame->cie_index];

	memset(walk, 0, sizeof(*walk));
	walk->cie = common;
	walk->location = frame->vaddr;
	walk->cursor = (struct byte_cursor){.at = frames->bytes + common->cfa_program_offset,
					    .end = frames->bytes + common->cfa_program_offset +
						   common->cfa_program_size};
	run_cfa_program_to_next_row(walk);
	walk->initial = walk->row;
	walk->cursor = (struct byte_cursor){.at = frames->bytes + frame->cfa_program_offset,
					    .end = frames->bytes + frame->cfa_program_offset +
						   frame->cfa_program_size};
	run_cfa_program_to_next_row(walk);
}

void cfa_walk_to_next_row(struct cfa_walk_state *walk)
{
	walk->location = walk->next;
	walk->has_several_rows = true;
	run_cfa_program_to_next_row(walk);
}
