/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The machine that line number programs run on: DWARF 5, section 6.2.5. A damaged program ends
 * early; rows before that count.
 */
#include <dwarf.h>

#include "binary/dwarf_lines.h"

struct machine {
	const struct dwarf_line_table *table;
	struct cursor cursor;
	struct dwarf_line_row row; /* registers */
	struct dwarf_line_row last;
	bool in_sequence; /* `last` is a row of this sequence */
	int (*each)(void *context, const struct dwarf_line_row *row, uint64_t end);
	void *context;
};

/* Emits the row before the one that is appended now, whose end is known with it. */
static int row_append(struct machine *machine)
{
	int stop = 0;
	if (machine->in_sequence && machine->last.address < machine->row.address)
		stop = machine->each(machine->context, &machine->last, machine->row.address);
	machine->last = machine->row;
	machine->in_sequence = true;
	return stop;
}

static void registers_reset(struct machine *machine)
{
	machine->row = (struct dwarf_line_row){.file = 1, .line = 1};
	machine->in_sequence = false;
}

static int run_extended(struct machine *machine)
{
	struct cursor *cursor = &machine->cursor;
	uint64_t length = cursor_uleb(cursor);
	const uint8_t *start = cursor->at;
	if (length == 0 || !cursor_skip(cursor, length))
		return 0;
	struct cursor operands = {start + 1, cursor->at, false};
	int stop = 0;
	switch (*start) {
	case DW_LNE_end_sequence:
		stop = row_append(machine);
		registers_reset(machine);
		break;
	case DW_LNE_set_address:
		if (length - 1 <= 8)
			machine->row.address = cursor_fixed(&operands, length - 1);
		break;
	default: /* discriminators and what we do not know */
		break;
	}
	return stop;
}

static int run_standard(struct machine *machine, uint8_t opcode)
{
	const struct dwarf_line_table *table = machine->table;
	struct cursor *cursor = &machine->cursor;
	switch (opcode) {
	case DW_LNS_copy:
		return row_append(machine);
	case DW_LNS_advance_pc:
		machine->row.address += cursor_uleb(cursor) * table->instruction_size;
		return 0;
	case DW_LNS_advance_line:
		machine->row.line += (uint64_t)cursor_sleb(cursor);
		return 0;
	case DW_LNS_set_file:
		machine->row.file = cursor_uleb(cursor);
		return 0;
	case DW_LNS_const_add_pc:
		machine->row.address += (uint64_t)((255 - table->opcode_base) / table->line_range) *
					table->instruction_size;
		return 0;
	case DW_LNS_fixed_advance_pc:
		machine->row.address += cursor_fixed(cursor, 2);
		return 0;
	default: /* column, statement, block, prologue, epilogue, ISA, and unknown ones */
		for (unsigned i = 0; i < table->operand_counts[opcode]; i++)
			cursor_uleb(cursor);
		return 0;
	}
}

int dwarf_line_run(const struct dwarf_line_table *table,
		   int (*each)(void *context, const struct dwarf_line_row *row, uint64_t end),
		   void *context)
{
	struct machine machine = {
		.table = table, .cursor = table->program, .each = each, .context = context};
	registers_reset(&machine);
	int stop = 0;
	while (!stop && cursor_left(&machine.cursor) > 0) {
		uint8_t opcode = cursor_byte(&machine.cursor);
		if (opcode >= table->opcode_base) {
			unsigned special = (unsigned)opcode - table->opcode_base;
			machine.row.address +=
				(uint64_t)(special / table->line_range) * table->instruction_size;
			machine.row.line += (uint64_t)(int64_t)(table->line_base +
								(int)(special % table->line_range));
			stop = row_append(&machine);
		} else if (opcode == 0) {
			stop = run_extended(&machine);
		} else {
			stop = run_standard(&machine, opcode);
		}
	}
	return stop;
}
