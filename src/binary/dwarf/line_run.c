/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The machine that line number programs run on: DWARF 5, section 6.2.5. A damaged program ends
 * early; rows before that count.
 */
#include <dwarf.h>

#include "binary/dwarf/lines.h"

struct line_program_state {
	const struct dwarf_line_table_header *table_header;
	struct byte_cursor cursor;
	struct dwarf_line_row row; /* registers */
	struct dwarf_line_row last;
	bool has_last_row; /* `last` is a row of this sequence */
	int (*each)(void *context, const struct dwarf_line_row *row, uint64_t end);
	void *context;
};

/* Emits the row before the one that is appended now, whose end is known with it. */
static int emit_previous_line_row(struct line_program_state *machine)
{
	int stop = 0;
	if (machine->has_last_row && machine->last.address < machine->row.address)
		stop = machine->each(machine->context, &machine->last, machine->row.address);
	machine->last = machine->row;
	machine->has_last_row = true;
	return stop;
}

static void reset_line_registers(struct line_program_state *machine)
{
	machine->row = (struct dwarf_line_row){.file = 1, .line = 1};
	machine->has_last_row = false;
}

static int run_extended_opcode(struct line_program_state *machine)
{
	struct byte_cursor *cursor = &machine->cursor;
	uint64_t length = cursor_read_uleb128(cursor);
	const uint8_t *start = cursor->at;
	if (length == 0 || !cursor_skip_bytes(cursor, length))
		return 0;
	struct byte_cursor operands = {start + 1, cursor->at, false};
	int stop = 0;
	switch (*start) {
	case DW_LNE_end_sequence:
		stop = emit_previous_line_row(machine);
		reset_line_registers(machine);
		break;
	case DW_LNE_set_address:
		if (length - 1 <= 8)
			machine->row.address = cursor_read_fixed_uint(&operands, length - 1);
		break;
	default: /* discriminators and what we do not know */
		break;
	}
	return stop;
}

static int run_standard_opcode(struct line_program_state *machine, uint8_t opcode)
{
	const struct dwarf_line_table_header *table = machine->table_header;
	struct byte_cursor *cursor = &machine->cursor;
	switch (opcode) {
	case DW_LNS_copy:
		return emit_previous_line_row(machine);
	case DW_LNS_advance_pc:
		machine->row.address +=
			cursor_read_uleb128(cursor) * table->minimum_instruction_size;
		return 0;
	case DW_LNS_advance_line:
		machine->row.line += (uint64_t)cursor_read_sleb128(cursor);
		return 0;
	case DW_LNS_set_file:
		machine->row.file = cursor_read_uleb128(cursor);
		return 0;
	case DW_LNS_const_add_pc:
		machine->row.address += (uint64_t)((255 - table->opcode_base) / table->line_range) *
					table->minimum_instruction_size;
		return 0;
	case DW_LNS_fixed_advance_pc:
		machine->row.address += cursor_read_fixed_uint(cursor, 2);
		return 0;
	default: /* column, statement, block, prologue, epilogue, ISA, and unknown ones */
		for (unsigned i = 0; i < table->operand_counts[opcode]; i++)
			cursor_read_uleb128(cursor);
		return 0;
	}
}

int dwarf_run_line_program(const struct dwarf_line_table_header *table,
			   int (*each)(void *context, const struct dwarf_line_row *row,
				       uint64_t end),
			   void *context)
{
	struct line_program_state machine = {
		.table_header = table, .cursor = table->program, .each = each, .context = context};
	reset_line_registers(&machine);
	int stop = 0;
	while (!stop && cursor_remaining_bytes(&machine.cursor) > 0) {
		uint8_t opcode = cursor_read_byte(&machine.cursor);
		if (opcode >= table->opcode_base) {
			unsigned special = (unsigned)opcode - table->opcode_base;
			machine.row.address += (uint64_t)(special / table->line_range) *
					       table->minimum_instruction_size;
			machine.row.line += (uint64_t)(int64_t)(table->line_base +
								(int)(special % table->line_range));
			stop = emit_previous_line_row(&machine);
		} else if (opcode == 0) {
			stop = run_extended_opcode(&machine);
		} else {
			stop = run_standard_opcode(&machine, opcode);
		}
	}
	return stop;
}
