/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * An instruction is either copied as it is, or copied with another displacement (RIP-relative
 * operands), or re-encoded (branches, calls). A call of X at `from` becomes
 *
 *     lea -8(%rsp), %rsp; push %rcx; lea behind(%rip), %rcx; mov %rcx, 8(%rsp); pop %rcx; jmp X
 *
 * where `behind` is the address behind the original call: flags and registers are as they were, and
 * so is what the call would have left on the stack, wherever the module is loaded.
 */
#include "binary/plan/relocate.h"

#include <errno.h>
#include <string.h>

#define JUMP_INSTRUCTION_BYTES   5u
#define MEMORY_OPERAND_BYTES_MAX 64u /* no memory operand is larger */

struct instruction_relocation_state {
	const uint8_t *bytes;
	const struct instruction *instruction;
	uint64_t old_vaddr, new_vaddr, moved_window_low, moved_window_high;
	uint8_t *output;
	uint32_t output_length; /* of what is in `out` */
};

static void emit_bytes(struct instruction_relocation_state *relocation, const void *bytes,
		       size_t size)
{
	memcpy(relocation->output + relocation->output_length, bytes, size);
	relocation->output_length += (uint32_t)size;
}

static void emit_byte(struct instruction_relocation_state *relocation, unsigned byte)
{
	relocation->output[relocation->output_length++] = (uint8_t)byte;
}

/* Four bytes that lead from `behind` bytes after them to `target`. */
static int emit_relative_distance(struct instruction_relocation_state *relocation, uint64_t target,
				  uint32_t behind)
{
	uint64_t end = relocation->new_vaddr + relocation->output_length + 4 + behind;
	int64_t distance = (int64_t)(target - end);
	int32_t value = (int32_t)distance;

	if (value != distance)
		return -ERANGE;
	emit_bytes(relocation, &value, sizeof(value));
	return 0;
}

static bool is_in_moved_window(const struct instruction_relocation_state *relocation,
			       uint64_t address)
{
	return address > relocation->moved_window_low && address < relocation->moved_window_high;
}

/* With 66 and without REX.W the processors of AMD and Intel disagree on what it is. */
static bool is_branch_size_vendor_dependent(const struct instruction *instruction)
{
	return instruction->prefix_bits & INSTRUCTION_PREFIX_66 &&
	       !(instruction->rex & INSTRUCTION_REX_W);
}

static int relocate_rip_relative_operand(struct instruction_relocation_state *relocation)
{
	const struct instruction *instruction = relocation->instruction;
	uint32_t head = instruction->displacement_offset, tail = instruction->length - head - 4u;
	bool is_address = !instruction->opcode_map && instruction->opcode == 0x8d;
	uint64_t target = instruction->target;
	int error;

	/* The bytes in the window are about to change. */
	if (!is_address && target + MEMORY_OPERAND_BYTES_MAX > relocation->moved_window_low &&
	    target < relocation->moved_window_high)
		return -ENOTSUP;
	if (instruction->prefix_bits & INSTRUCTION_PREFIX_67)
		return -ENOTSUP;
	emit_bytes(relocation, relocation->bytes, head);
	error = emit_relative_distance(relocation, target, tail);
	emit_bytes(relocation, relocation->bytes + head + 4, tail);
	return error;
}

static int emit_jump(struct instruction_relocation_state *relocation, uint64_t target)
{
	emit_byte(relocation, 0xe9);
	return emit_relative_distance(relocation, target, 0);
}

/* jrcxz and loop have no long form:  jrcxz 1f; jmp 2f; 1: jmp target; 2: */
static int relocate_short_branch(struct instruction_relocation_state *relocation)
{
	const struct instruction *instruction = relocation->instruction;

	if (instruction->prefix_bits & INSTRUCTION_PREFIX_67)
		emit_byte(relocation, 0x67);
	emit_byte(relocation, instruction->opcode);
	emit_byte(relocation, 2);
	emit_byte(relocation, 0xeb);
	emit_byte(relocation, JUMP_INSTRUCTION_BYTES);
	return emit_jump(relocation, instruction->target);
}

static int relocate_branch(struct instruction_relocation_state *relocation)
{
	const struct instruction *instruction = relocation->instruction;
	bool is_long = instruction->opcode_map == 1;

	if (instruction->has_modrm) /* xbegin: aborts would come back here */
		return -ENOTSUP;
	if (!is_long && instruction->opcode >= 0xe0)
		return relocate_short_branch(relocation);
	emit_byte(relocation, 0x0f);
	emit_byte(relocation, 0x80u | (instruction->opcode & 0x0fu));
	return emit_relative_distance(relocation, instruction->target, 0);
}

/* Below its return address a call leaves nothing on the stack that is needed. */
static int emit_push_of_return_address(struct instruction_relocation_state *relocation)
{
	static const uint8_t load[] = {0x48, 0x8d, 0x64, 0x24, 0xf8, 0x51, 0x48, 0x8d, 0x0d};
	static const uint8_t store[] = {0x48, 0x89, 0x4c, 0x24, 0x08, 0x59};
	int error;

	emit_bytes(relocation, load, sizeof(load));
	error = emit_relative_distance(relocation,
				       relocation->old_vaddr + relocation->instruction->length, 0);
	emit_bytes(relocation, store, sizeof(store));
	return error;
}

static int relocate_call(struct instruction_relocation_state *relocation)
{
	int error = emit_push_of_return_address(relocation);

	return error ? error : emit_jump(relocation, relocation->instruction->target);
}

/* Does the address or register that it calls through depend on rsp, which the push changes? */
static bool call_target_depends_on_rsp(const struct instruction_relocation_state *relocation,
				       uint32_t modrm_at)
{
	const struct instruction *instruction = relocation->instruction;

	if ((instruction->modrm & 7) != 4)
		return false;
	if (instruction->modrm >= 0xc0) /* the register itself; with REX.B it is r12 */
		return !(instruction->rex & INSTRUCTION_REX_B);
	return (relocation->bytes[modrm_at + 1] & 7) == 4 &&
	       !(instruction->rex & INSTRUCTION_REX_B);
}

static int relocate_call_indirect(struct instruction_relocation_state *relocation)
{
	const struct instruction *instruction = relocation->instruction;
	uint32_t jump_at, modrm_at = 0;
	int error;

	while (relocation->bytes[modrm_at] != 0xff)
		modrm_at++;
	modrm_at++;
	if ((instruction->modrm >> 3 & 7) != 2 || is_branch_size_vendor_dependent(instruction) ||
	    call_target_depends_on_rsp(relocation, modrm_at))
		return -ENOTSUP;
	error = emit_push_of_return_address(relocation);
	if (error)
		return error;
	jump_at = relocation->output_length;
	if (instruction->is_rip_relative)
		error = relocate_rip_relative_operand(relocation);
	else
		emit_bytes(relocation, relocation->bytes, instruction->length);
	if (error)
		return error;
	/* /2 is call, /4 is jmp */
	relocation->output[jump_at + modrm_at] = (uint8_t)((instruction->modrm & 0xc7) | 4 << 3);
	return 0;
}

static int relocate_instruction_by_kind(struct instruction_relocation_state *relocation)
{
	const struct instruction *instruction = relocation->instruction;
	bool is_direct = instruction->flow == INSTRUCTION_CALL ||
			 instruction->flow == INSTRUCTION_JUMP ||
			 instruction->flow == INSTRUCTION_BRANCH;
	bool is_call = instruction->flow == INSTRUCTION_CALL ||
		       instruction->flow == INSTRUCTION_CALL_INDIRECT;

	if (is_direct && (is_branch_size_vendor_dependent(instruction) ||
			  is_in_moved_window(relocation, instruction->target)))
		return -ENOTSUP;
	/* It would return into what is overwritten. */
	if (is_call && is_in_moved_window(relocation, relocation->old_vaddr + instruction->length))
		return -ENOTSUP;
	switch (instruction->flow) {
	case INSTRUCTION_CALL:
		return relocate_call(relocation);
	case INSTRUCTION_JUMP:
		return emit_jump(relocation, instruction->target);
	case INSTRUCTION_BRANCH:
		return relocate_branch(relocation);
	case INSTRUCTION_CALL_INDIRECT:
		return relocate_call_indirect(relocation);
	default:
		if (instruction->is_rip_relative)
			return relocate_rip_relative_operand(relocation);
		emit_bytes(relocation, relocation->bytes, instruction->length);
		return 0;
	}
}

int relocate_instruction(const uint8_t *bytes, const struct instruction *instruction, uint64_t from,
			 uint64_t to, uint64_t window_low, uint64_t window_high, uint8_t *out)
{
	struct instruction_relocation_state relocation = {.bytes = bytes,
							  .instruction = instruction,
							  .old_vaddr = from,
							  .new_vaddr = to,
							  .moved_window_low = window_low,
							  .moved_window_high = window_high,
							  .output = out};
	int error = relocate_instruction_by_kind(&relocation);

	return error ? error : (int)relocation.output_length;
}
