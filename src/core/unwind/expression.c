/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * DWARF expressions of unwind rules (DWARF 5, 2.5 and 6.4.2) become operations of fixed size, which
 * the walker runs without decoding or checking. What occurs in practice is PLT entries
 * (rsp + 8 + ((rip & 15) >= 11) * 8), frames kept in memory (*(rsp - 8) + 8), stack realignment
 * (*(rbp - 8)) and OpenSSL's rsp + r9 * 8 + 8. Branches occur nowhere and are refused, which lets
 * the operand stack be checked once, here and when a cached table is loaded.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/array.h"
#include "core/unwind/cfi.h"
#include "core/unwind/dwarf.h"

enum {
	DW_OP_DEREF = 0x06,
	DW_OP_CONST1U = 0x08,
	DW_OP_CONST1S = 0x09,
	DW_OP_CONST2U = 0x0a,
	DW_OP_CONST2S = 0x0b,
	DW_OP_CONST4U = 0x0c,
	DW_OP_CONST4S = 0x0d,
	DW_OP_CONST8U = 0x0e,
	DW_OP_CONST8S = 0x0f,
	DW_OP_CONSTU = 0x10,
	DW_OP_CONSTS = 0x11,
	DW_OP_OVER = 0x14,
	DW_OP_PICK = 0x15,
	DW_OP_PLUS_UCONST = 0x23,
	DW_OP_LIT0 = 0x30,
	DW_OP_LIT31 = 0x4f,
	DW_OP_BREG0 = 0x70,
	DW_OP_BREG31 = 0x8f,
	DW_OP_BREGX = 0x92,
	DW_OP_NOP = 0x96
};

/* DWARF operations without operand and ours. */
static uint8_t get_operation_code_of_dwarf_operation(uint8_t operation)
{
	static const struct {
		uint8_t dwarf, code;
	} pairs[] = {
		{DW_OP_DEREF, UNWIND_OP_DEREF}, {0x12, UNWIND_OP_DUP}, {0x13, UNWIND_OP_DROP},
		{0x16, UNWIND_OP_SWAP},         {0x17, UNWIND_OP_ROT}, {0x1a, UNWIND_OP_AND},
		{0x1c, UNWIND_OP_MINUS},        {0x1e, UNWIND_OP_MUL}, {0x1f, UNWIND_OP_NEG},
		{0x20, UNWIND_OP_NOT},          {0x21, UNWIND_OP_OR},  {0x22, UNWIND_OP_PLUS},
		{0x24, UNWIND_OP_SHL},          {0x25, UNWIND_OP_SHR}, {0x26, UNWIND_OP_SHRA},
		{0x27, UNWIND_OP_XOR},          {0x29, UNWIND_OP_EQ},  {0x2a, UNWIND_OP_GE},
		{0x2b, UNWIND_OP_GT},           {0x2c, UNWIND_OP_LE},  {0x2d, UNWIND_OP_LT},
		{0x2e, UNWIND_OP_NE},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(pairs); i++)
		if (pairs[i].dwarf == operation)
			return pairs[i].code;
	return UNWIND_OP_END;
}

static bool read_constant_operand(struct dwarf_cursor *cursor, uint8_t operation, int64_t *ret)
{
	if (operation >= DW_OP_LIT0 && operation <= DW_OP_LIT31)
		*ret = operation - DW_OP_LIT0;
	else if (operation >= DW_OP_CONST1U && operation <= DW_OP_CONST8S && operation % 2 == 0)
		*ret = (int64_t)dwarf_read_unsigned(cursor, 1u << (operation - DW_OP_CONST1U) / 2);
	else if (operation >= DW_OP_CONST1U && operation <= DW_OP_CONST8S)
		*ret = dwarf_read_signed(cursor, 1u << (operation - DW_OP_CONST1U) / 2);
	else if (operation == DW_OP_CONSTU)
		*ret = (int64_t)dwarf_read_uleb(cursor);
	else if (operation == DW_OP_CONSTS)
		*ret = dwarf_read_sleb(cursor);
	else
		return false;
	return true;
}

/* One DWARF operation to ours; code UNWIND_OP_END: not supported. */
static struct unwind_expression_operation translate_dwarf_operation(struct dwarf_cursor *cursor,
								    uint8_t operation)
{
	struct unwind_expression_operation op = {.code = UNWIND_OP_END};
	uint64_t reg = UINT64_MAX;

	if (read_constant_operand(cursor, operation, &op.operand)) {
		op.code = UNWIND_OP_CONSTANT;
	} else if (operation >= DW_OP_BREG0 && operation <= DW_OP_BREG31) {
		reg = (uint64_t)operation - DW_OP_BREG0;
	} else if (operation == DW_OP_BREGX) {
		reg = dwarf_read_uleb(cursor);
	} else if (operation == DW_OP_PLUS_UCONST) {
		op.code = UNWIND_OP_ADD_CONSTANT;
		op.operand = (int64_t)dwarf_read_uleb(cursor);
	} else if (operation == DW_OP_OVER || operation == DW_OP_PICK) {
		op.code = UNWIND_OP_PICK;
		op.reg = operation == DW_OP_OVER ? 1 : (uint8_t)dwarf_read_unsigned(cursor, 1);
	} else {
		op.code = get_operation_code_of_dwarf_operation(operation);
	}
	if (reg <= DWARF_REGISTER_RIP) {
		op.code = UNWIND_OP_REGISTER_PLUS_CONSTANT;
		op.reg = (uint8_t)reg;
		op.operand = dwarf_read_sleb(cursor);
	}
	return op;
}

static bool append_operation(struct cfi_section *section, struct unwind_expression_operation op)
{
	if (section->expression_op_count >= UNWIND_TABLE_OPS_MAX ||
	    !unwind_vector_reserve(&section->expression_ops,
				   (section->expression_op_count + 1) * sizeof(op)))
		return false;
	((struct unwind_expression_operation *)
		 section->expression_ops.data)[section->expression_op_count++] = op;
	return true;
}

static bool expressions_are_equal(const struct unwind_expression_operation *a,
				  const struct unwind_expression_operation *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (a[i].code != b[i].code || a[i].reg != b[i].reg || a[i].operand != b[i].operand)
			return false;
	return true;
}

/* Gives the expression at the end of the list its place: that of an equal one met before, if any.
 * Looks at the first 256 operations only, so that a hostile section costs no quadratic time. */
static uint32_t reuse_equal_expression(struct cfi_section *section, uint32_t start)
{
	const struct unwind_expression_operation *ops = section->expression_ops.data;
	uint32_t length = section->expression_op_count - start;
	uint32_t limit = start < 256 ? start : 256;

	for (uint32_t i = 0; i + length <= limit; i++) {
		if (expressions_are_equal(ops + i, ops + start, length)) {
			section->expression_op_count = start;
			return i;
		}
	}
	return start;
}

bool cfi_translate_expression(struct cfi_section *section, const uint8_t *bytes, uint64_t size,
			      bool push_cfa, uint32_t *ret)
{
	struct dwarf_cursor cursor = dwarf_cursor_init(bytes, size);
	uint32_t start = section->expression_op_count;

	if (push_cfa &&
	    !append_operation(section, (struct unwind_expression_operation){.code = UNWIND_OP_CFA}))
		goto refuse;
	while (cursor.at < cursor.end) {
		uint8_t operation = *cursor.at++;
		struct unwind_expression_operation op;

		if (operation == DW_OP_NOP)
			continue;
		op = translate_dwarf_operation(&cursor, operation);
		if (cursor.bad || op.code == UNWIND_OP_END || !append_operation(section, op))
			goto refuse;
	}
	if (!append_operation(section,
			      (struct unwind_expression_operation){.code = UNWIND_OP_END}) ||
	    !unwind_ops_are_valid(section->expression_ops.data, section->expression_op_count,
				  start))
		goto refuse;
	*ret = reuse_equal_expression(section, start);
	return true;
refuse:
	section->expression_op_count = start;
	return false;
}

/* Operands taken and left by each operation. */
static const struct {
	uint8_t popped_count, pushed_count;
} operation_stack_effects[UNWIND_OP_COUNT] = {
	[UNWIND_OP_END] = {1, 1},
	[UNWIND_OP_CONSTANT] = {0, 1},
	[UNWIND_OP_REGISTER_PLUS_CONSTANT] = {0, 1},
	[UNWIND_OP_CFA] = {0, 1},
	[UNWIND_OP_DEREF] = {1, 1},
	[UNWIND_OP_ADD_CONSTANT] = {1, 1},
	[UNWIND_OP_PLUS] = {2, 1},
	[UNWIND_OP_MINUS] = {2, 1},
	[UNWIND_OP_MUL] = {2, 1},
	[UNWIND_OP_AND] = {2, 1},
	[UNWIND_OP_OR] = {2, 1},
	[UNWIND_OP_XOR] = {2, 1},
	[UNWIND_OP_SHL] = {2, 1},
	[UNWIND_OP_SHR] = {2, 1},
	[UNWIND_OP_SHRA] = {2, 1},
	[UNWIND_OP_EQ] = {2, 1},
	[UNWIND_OP_NE] = {2, 1},
	[UNWIND_OP_LT] = {2, 1},
	[UNWIND_OP_LE] = {2, 1},
	[UNWIND_OP_GT] = {2, 1},
	[UNWIND_OP_GE] = {2, 1},
	[UNWIND_OP_NEG] = {1, 1},
	[UNWIND_OP_NOT] = {1, 1},
	[UNWIND_OP_DUP] = {1, 2},
	[UNWIND_OP_DROP] = {1, 0},
	[UNWIND_OP_SWAP] = {2, 2},
	[UNWIND_OP_ROT] = {3, 3},
	[UNWIND_OP_PICK] = {1, 2},
};

bool unwind_ops_are_valid(const struct unwind_expression_operation *ops, uint32_t count,
			  uint32_t start)
{
	uint32_t depth = 0;

	for (uint32_t i = start; i < count; i++) {
		const struct unwind_expression_operation *op = &ops[i];

		if (op->code >= UNWIND_OP_COUNT ||
		    depth < operation_stack_effects[op->code].popped_count)
			return false;
		if (op->code == UNWIND_OP_END)
			return true;
		if (op->code == UNWIND_OP_REGISTER_PLUS_CONSTANT && op->reg > DWARF_REGISTER_RIP)
			return false;
		if (op->code == UNWIND_OP_PICK && op->reg >= depth)
			return false;
		depth = depth - operation_stack_effects[op->code].popped_count +
			operation_stack_effects[op->code].pushed_count;
		if (depth > UNWIND_OPERAND_STACK_MAX)
			return false;
	}
	return false;
}
