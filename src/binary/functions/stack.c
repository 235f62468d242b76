/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a function does with its return address and its stack, seen instruction by instruction.
 *
 * A function whose entry is hooked finds another return address than its caller left. Most never
 * look; those that do (dlsym, allocators that key by call site, profiling hooks, hand-written
 * context switches) touch memory at CFA - 8, pop it, or set rsp to what the unwind tables do not
 * describe. Where there are no tables the straight code from the entry on is followed.
 */
#include "binary/functions/private.h"

#define OPCODE_POP         0x58 /* to 0x5f */
#define MODRM_REGISTER_RSP 4

/* A memory operand that is a register and a displacement. */
struct base_register_operand {
	bool is_memory, has_index_register;
	uint8_t base; /* number as in instructions: 4 rsp, 5 rbp */
	int64_t displacement;
};

/* The bits of REX that concern an operand's registers. VEX with three bytes, EVEX and XOP hold them
 * inverted in their second byte. */
uint8_t instruction_get_operand_rex_bits(const uint8_t *bytes,
					 const struct instruction *instruction)
{
	uint8_t rex = 0;

	if (!instruction->has_vector_prefix)
		return instruction->rex;
	while (*bytes == 0x64 || *bytes == 0x65 || *bytes == 0x67)
		bytes++;
	if (*bytes == 0xc5)
		return 0;
	if (!(bytes[1] & 0x20))
		rex |= INSTRUCTION_REX_B;
	if (!(bytes[1] & 0x40))
		rex |= INSTRUCTION_REX_X;
	return rex;
}

static struct base_register_operand decode_base_operand(const uint8_t *bytes,
							const struct instruction *instruction)
{
	struct base_register_operand operand = {0};
	uint8_t rm = instruction->modrm & 7,
		rex = instruction_get_operand_rex_bits(bytes, instruction);

	if (!instruction->has_modrm || instruction->modrm >= 0xc0 || instruction->is_rip_relative)
		return operand;
	operand.is_memory = true;
	operand.base = rm;
	if (rm == 4) {
		uint8_t at =
			instruction->displacement_size
				? (uint8_t)(instruction->displacement_offset - 1)
				: (uint8_t)(instruction->length - instruction->immediate_size - 1);
		uint8_t sib = bytes[at];
		operand.base = sib & 7;
		operand.has_index_register = (sib >> 3 & 7) != 4 || rex & INSTRUCTION_REX_X;
		if (operand.base == 5 && instruction->modrm < 0x40)
			operand.is_memory = false;
	}
	if (rex & INSTRUCTION_REX_B)
		operand.base = (uint8_t)(operand.base + 8);
	if (instruction->displacement_size == 1)
		operand.displacement = (int64_t)(int8_t)bytes[instruction->displacement_offset];
	else if (instruction->displacement_size == 4) {
		int32_t value;
		memcpy(&value, bytes + instruction->displacement_offset, sizeof(value));
		operand.displacement = value;
	}
	return operand;
}

void stack_watch_begin_at_function(struct stack_watch_state *watch,
				   const struct function_finder *finder, uint32_t frame,
				   uint64_t vaddr)
{
	memset(watch, 0, sizeof(*watch));
	watch->is_straight_line_so_far = true;
	watch->walk.next = UINT64_MAX;
	watch->walk.row =
		(struct cfa_row){.known = true, .base = EH_FRAME_REGISTER_RSP, .offset = 8};
	if (frame) {
		cfa_walk_begin_at_frame(&watch->walk, &finder->frames,
					&finder->frames.list[frame - 1]);
		cfa_walk_to_address(&watch->walk, vaddr);
		watch->described = watch->walk.next != UINT64_MAX;
	}
}

/* Where CFA - 8 is, from the operand's base register on. */
static bool is_return_address_slot(const struct stack_watch_state *watch,
				   const struct base_register_operand *operand)
{
	const struct cfa_row *row = &watch->walk.row;

	if (operand->has_index_register)
		return false;
	if (watch->described)
		return row->known && operand->displacement == row->offset - 8 &&
		       ((operand->base == 4 && row->base == EH_FRAME_REGISTER_RSP) ||
			(operand->base == 5 && row->base == EH_FRAME_REGISTER_RBP));
	return watch->is_straight_line_so_far && operand->base == 4 &&
	       operand->displacement == watch->depth;
}

static bool is_long_nop(const struct instruction *instruction)
{
	return instruction->opcode_map == 1 && instruction->opcode == 0x1f &&
	       !instruction->has_vector_prefix;
}

static void record_stack_operand_use(struct stack_watch_state *watch, const uint8_t *bytes,
				     const struct instruction *instruction, uint64_t vaddr)
{
	struct base_register_operand operand = decode_base_operand(bytes, instruction);
	bool is_lea = !instruction->opcode_map && instruction->opcode == 0x8d;
	bool to_rsp = is_lea && (instruction->modrm >> 3 & 7) == MODRM_REGISTER_RSP &&
		      !(instruction->rex & INSTRUCTION_REX_R);

	if (!operand.is_memory || operand.base > 5 || operand.base < 4 || is_long_nop(instruction))
		return;
	if (operand.base == 4 && operand.displacement < 0 && !to_rsp)
		watch->uses_red_zone = true;
	/* Atomic operations there are fences (lock or $0, (%rsp)). Of lea: to rsp, it is an
	 * addition that keeps the flags; without a displacement, mov; and where the tables go on
	 * with another register at once, the way in and out of aligned frames of assembly. */
	if (instruction->prefix_bits & INSTRUCTION_PREFIX_LOCK ||
	    (is_lea && (to_rsp || !operand.displacement ||
			(watch->described && watch->walk.next == vaddr + instruction->length))))
		return;
	if (is_return_address_slot(watch, &operand))
		watch->reads_return_address = watch->loads_return_address = true;
}

/* mov, xchg or pop to rsp, from elsewhere than a frame pointer. */
static bool instruction_sets_stack_pointer(const struct instruction *instruction)
{
	bool reg_is_rsp = (instruction->modrm >> 3 & 7) == MODRM_REGISTER_RSP &&
			  !(instruction->rex & INSTRUCTION_REX_R);
	bool rm_is_rsp = instruction->modrm >= 0xc0 &&
			 (instruction->modrm & 7) == MODRM_REGISTER_RSP &&
			 !(instruction->rex & INSTRUCTION_REX_B);

	if (instruction->opcode_map || instruction->has_vector_prefix)
		return false;
	if (instruction->opcode == 0x5c && !(instruction->rex & INSTRUCTION_REX_B))
		return true;
	if (!instruction->has_modrm || !(instruction->rex & INSTRUCTION_REX_W))
		return false;
	return (instruction->opcode == 0x89 && rm_is_rsp) ||
	       (instruction->opcode == 0x8b && reg_is_rsp) ||
	       (instruction->opcode == 0x87 && (reg_is_rsp || rm_is_rsp));
}

static void record_stack_pointer_switch(struct stack_watch_state *watch,
					const struct instruction *instruction, uint64_t vaddr)
{
	const struct cfa_row *row = &watch->walk.row;

	if (!instruction_sets_stack_pointer(instruction))
		return;
	/* Frames with a pointer of their own, and what the tables say to change right there, are
	 * ordinary code: alloca, epilogues, assembly that aligns its stack. */
	if (watch->described && (!row->known || row->base != EH_FRAME_REGISTER_RSP ||
				 watch->walk.next == vaddr + instruction->length))
		return;
	if (!watch->described && instruction->opcode == 0x89 &&
	    (instruction->modrm >> 3 & 7) == 5 &&
	    !(instruction->rex & INSTRUCTION_REX_R)) /* mov %rbp, %rsp */
		return;
	watch->switches = true;
}

/* push, pop, and sums of constants with rsp. */
static void track_stack_depth(struct stack_watch_state *watch, const uint8_t *bytes,
			      const struct instruction *instruction)
{
	uint8_t opcode = instruction->opcode;
	bool pops = !instruction->opcode_map && !instruction->has_vector_prefix &&
		    (opcode & 0xf8) == OPCODE_POP;

	pops |= !instruction->opcode_map && opcode == 0x8f && !instruction->has_vector_prefix;
	if (pops &&
	    (watch->described
		     ? watch->walk.row.known && watch->walk.row.base == EH_FRAME_REGISTER_RSP &&
			       watch->walk.row.offset == 8 && !watch->depth
		     : watch->depth == 0) &&
	    watch->is_straight_line_so_far)
		watch->reads_return_address = true;
	if (instruction->opcode_map || instruction->has_vector_prefix ||
	    !watch->is_straight_line_so_far)
		return;
	if ((opcode & 0xf8) == 0x50 || opcode == 0x68 || opcode == 0x6a || opcode == 0x9c ||
	    (opcode == 0xff && (instruction->modrm >> 3 & 7) == 6))
		watch->depth += 8;
	else if (pops || opcode == 0x9d)
		watch->depth -= 8;
	else if ((opcode == 0x83 || opcode == 0x81) && (instruction->modrm & 0xc7) == 0xc4 &&
		 !(instruction->rex & INSTRUCTION_REX_B)) {
		int32_t value = 0;
		if (opcode == 0x83)
			value = (int32_t)(int8_t)bytes[instruction->immediate_offset];
		else
			memcpy(&value, bytes + instruction->immediate_offset, sizeof(value));
		if ((instruction->modrm >> 3 & 7) == 5)
			watch->depth += value;
		else if ((instruction->modrm >> 3 & 7) == 0)
			watch->depth -= value;
	}
	if (watch->depth < 0) /* the return address was dropped */
		watch->reads_return_address = true;
}

/* The pointer guard: %fs:0x30 (glibc's sysdep.h for x86_64). */
static bool is_pointer_guard_access(const uint8_t *bytes, const struct instruction *instruction)
{
	uint32_t where;

	if (!(instruction->prefix_bits & INSTRUCTION_PREFIX_FS) ||
	    instruction->displacement_size != 4)
		return false;
	memcpy(&where, bytes + instruction->displacement_offset, sizeof(where));
	return where == 0x30 && (instruction->opcode == 0x33 || instruction->opcode == 0x8b);
}

void stack_watch_step_instruction(struct stack_watch_state *watch, const uint8_t *bytes,
				  const struct instruction *instruction, uint64_t vaddr)
{
	cfa_walk_to_address(&watch->walk, vaddr);
	if (instruction->has_modrm && instruction->modrm < 0xc0) {
		record_stack_operand_use(watch, bytes, instruction, vaddr);
		if (is_pointer_guard_access(bytes, instruction))
			watch->uses_pointer_guard = true;
	}
	record_stack_pointer_switch(watch, instruction, vaddr);
	track_stack_depth(watch, bytes, instruction);
	/* ret with a number takes what the caller pushed as well. */
	if (instruction->flow == INSTRUCTION_RETURN &&
	    (instruction->immediate_size || instruction->opcode_map || instruction->opcode != 0xc3))
		watch->reads_return_address = true;
	if (instruction->flow != INSTRUCTION_NEXT)
		watch->is_straight_line_so_far = false;
}
