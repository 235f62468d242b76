/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The operations of an unwind rule's expression that need its operand stack alone. Runs in signal
 * handlers; that neither codes nor the stack's depth need a check is seen to by expression.c.
 */
#include "core/unwind/walk.h"

static uint64_t apply_binary_operation(uint8_t code, uint64_t a, uint64_t b)
{
	switch (code) {
	case UNWIND_OP_PLUS:
		return a + b;
	case UNWIND_OP_MINUS:
		return a - b;
	case UNWIND_OP_MUL:
		return a * b;
	case UNWIND_OP_AND:
		return a & b;
	case UNWIND_OP_OR:
		return a | b;
	case UNWIND_OP_XOR:
		return a ^ b;
	case UNWIND_OP_SHL:
		return b < 64 ? a << b : 0;
	case UNWIND_OP_SHR:
		return b < 64 ? a >> b : 0;
	case UNWIND_OP_SHRA:
		return (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
	case UNWIND_OP_EQ:
		return a == b;
	case UNWIND_OP_NE:
		return a != b;
	case UNWIND_OP_LT:
		return (int64_t)a < (int64_t)b;
	case UNWIND_OP_LE:
		return (int64_t)a <= (int64_t)b;
	case UNWIND_OP_GT:
		return (int64_t)a > (int64_t)b;
	default:
		return (int64_t)a >= (int64_t)b;
	}
}

uint32_t unwind_apply_op_to_operand_stack(const struct unwind_expression_operation *op,
					  uint64_t *stack, uint32_t depth)
{
	uint64_t top = stack[depth - 1];

	switch (op->code) {
	case UNWIND_OP_ADD_CONSTANT:
		stack[depth - 1] = top + (uint64_t)op->operand;
		return depth;
	case UNWIND_OP_NEG:
		stack[depth - 1] = 0 - top;
		return depth;
	case UNWIND_OP_NOT:
		stack[depth - 1] = ~top;
		return depth;
	case UNWIND_OP_DUP:
		stack[depth] = top;
		return depth + 1;
	case UNWIND_OP_DROP:
		return depth - 1;
	case UNWIND_OP_SWAP:
		stack[depth - 1] = stack[depth - 2];
		stack[depth - 2] = top;
		return depth;
	case UNWIND_OP_ROT:
		stack[depth - 1] = stack[depth - 2];
		stack[depth - 2] = stack[depth - 3];
		stack[depth - 3] = top;
		return depth;
	case UNWIND_OP_PICK:
		stack[depth] = stack[depth - 1 - op->reg];
		return depth + 1;
	default:
		stack[depth - 2] = apply_binary_operation(op->code, stack[depth - 2], top);
		return depth - 1;
	}
}
