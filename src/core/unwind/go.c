/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See go.h. Positions and values come from the file: each is checked before it is used.
 */
#include "core/unwind/go.h"

#include "core/unwind/dwarf.h"

#define FLAG_OUTERMOST       1u /* abi.FuncFlagTopFrame */
#define FLAG_SWITCHES_STACKS 2u /* abi.FuncFlagSPWrite: the table says nothing of it */
#define HEADER_BYTES         8u /* magic, two zeros, size of the least instruction, size of an address */

/* Magic numbers, and what differs: whether addresses count from the start of the code, and where a
 * function's description has its flags. */
static const struct {
	uint32_t magic;
	bool relative;
	uint32_t flag_field;
} formats[] = {
	{0xfffffff1, true, 41},  /* Go 1.20 */
	{0xfffffff0, true, 37},  /* Go 1.18 */
	{0xfffffffa, false, 41}, /* Go 1.16 */
};

static uint64_t read_number(const struct unwind_go_table *table, uint64_t position, unsigned size)
{
	struct dwarf_cursor cursor = dwarf_cursor_init(table->bytes, table->size);

	dwarf_skip_bytes(&cursor, position);
	return dwarf_read_unsigned(&cursor, size);
}

bool unwind_go_find_table(const struct unwind_image *image, struct unwind_go_table *ret)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	struct unwind_go_table table = {0};
	uint64_t address, text_size, at = HEADER_BYTES;
	unsigned format = 0;

	for (unsigned i = 0; i < 2 && !table.bytes; i++)
		table.bytes = unwind_image_find_section(image, names[i], &address, &table.size);
	if (!table.bytes || table.size < 128 || table.bytes[6] != 1 || table.bytes[7] != 8)
		return false;
	while (read_number(&table, 0, 4) != formats[format].magic) {
		if (++format == sizeof(formats) / sizeof(formats[0]))
			return false;
	}
	table.function_count = read_number(&table, at, 8);
	at += 16; /* and the number of files */
	if (formats[format].relative) {
		table.text_address = read_number(&table, at, 8);
		at += 8;
	}
	/* A position-independent program has it filled in by the loader. */
	if (formats[format].relative && !table.text_address)
		unwind_image_find_section(image, ".text", &table.text_address, &text_size);
	at += 24; /* names, compilation units, files */
	table.pc_values = read_number(&table, at, 8);
	table.functions = read_number(&table, at + 8, 8);
	table.address_size = formats[format].relative ? 4 : 8;
	table.sp_values_field = table.address_size + 12;
	table.flag_field = formats[format].flag_field;
	if (table.pc_values >= table.size || table.functions >= table.size ||
	    table.function_count >= (table.size - table.functions) / (2 * table.address_size))
		return false;
	*ret = table;
	return true;
}

bool unwind_go_get_function(const struct unwind_go_table *table, uint64_t index,
			    uint64_t *ret_address, uint64_t *ret_position)
{
	uint64_t at = table->functions + index * 2 * table->address_size;

	*ret_address = table->text_address + read_number(table, at, table->address_size);
	*ret_position = table->functions +
			read_number(table, at + table->address_size, table->address_size);
	return index == table->function_count ||
	       *ret_position + table->flag_field + 1 <= table->size;
}

/* Go's functions keep the caller's rbp right below the return address, where they have a frame. */
static struct unwind_rule make_rule(int32_t size)
{
	struct unwind_rule rule = {.cfa = {.kind = UNWIND_LOCATION_REGISTER_PLUS_OFFSET,
					   .reg = DWARF_REGISTER_RSP,
					   .value = size + 8},
				   .ra = {.kind = UNWIND_LOCATION_AT_CFA_OFFSET, .value = -8},
				   .bp = {.kind = UNWIND_LOCATION_SAME_REGISTER},
				   .bx = {.kind = UNWIND_LOCATION_UNDEFINED}};

	if (size >= 8)
		rule.bp = (struct unwind_value_location){.kind = UNWIND_LOCATION_AT_CFA_OFFSET,
							 .value = -16};
	return rule;
}

/* Pairs of a value's change (zigzag) and the bytes of code that it holds for; the first value is
 * -1, and a change of 0 behind the first pair is the end (runtime/symtab.go, step). */
bool unwind_go_emit_rows(const struct unwind_go_table *table, uint64_t position, uint64_t begin,
			 uint64_t end, const struct cfi_row_sink *sink)
{
	static const struct unwind_rule outermost = {.cfa = {.kind = UNWIND_LOCATION_UNDEFINED}};
	uint64_t flags = read_number(table, position + table->flag_field, 1), pc = begin;
	struct dwarf_cursor cursor = dwarf_cursor_init(table->bytes, table->size);
	int64_t size = -1;

	if (flags & FLAG_OUTERMOST)
		return sink->row(sink->context, begin, &outermost);
	if (flags & FLAG_SWITCHES_STACKS)
		return true;
	dwarf_skip_bytes(&cursor, table->pc_values +
					  read_number(table, position + table->sp_values_field, 4));
	while (pc < end) {
		uint64_t change = dwarf_read_uleb(&cursor), bytes = dwarf_read_uleb(&cursor);
		struct unwind_rule rule;

		if (cursor.bad || (!change && pc != begin) || !bytes)
			return true;
		size += (int64_t)(change >> 1) ^ -(int64_t)(change & 1);
		rule = make_rule((int32_t)size);
		if (size < 0 || size > INT32_MAX - 8)
			return true;
		if (!sink->row(sink->context, pc, &rule))
			return false;
		pc += bytes;
	}
	return true;
}
