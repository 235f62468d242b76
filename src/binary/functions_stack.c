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
#include "binary/functions_internal.h"

#define OPCODE_POP 0x58 /* to 0x5f */
#define REG_RSP    4

/* A memory operand that is a register and a displacement. */
struct operand {
	bool memory, indexed;
	uint8_t base; /* number as in instructions: 4 rsp, 5 rbp */
	int64_t displacement;
};

/* The bits of REX that concern an operand's registers. VEX with three bytes, EVEX and XOP hold them
 * inverted in their second byte. */
static uint8_t extension_of(const uint8_t *bytes, const struct instruction *instruction)
{
	uint8_t rex = 0;

	if (!instruction->vex)
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

static struct operand operand_of(const uint8_t *bytes, const struct instruction *instruction)
{
	struct operand operand = {0};
	uint8_t rm = instruction->modrm & 7, rex = extension_of(bytes, instruction);

	if (!instruction->has_modrm || instruction->modrm >= 0xc0 || instruction->rip_relative)
		return operand;
	operand.memory = true;
	operand.base = rm;
	if (rm == 4) {
		uint8_t at =
			instruction->displacement_size
				? (uint8_t)(instruction->displacement_at - 1)
				: (uint8_t)(instruction->length - instruction->immediate_size - 1);
		uint8_t sib = bytes[at];
		operand.base = sib & 7;
		operand.indexed = (sib >> 3 & 7) != 4 || rex & INSTRUCTION_REX_X;
		if (operand.base == 5 && instruction->modrm < 0x40)
			operand.memory = false;
	}
	if (rex & INSTRUCTION_REX_B)
		operand.base = (uint8_t)(operand.base + 8);
	if (instruction->displacement_size == 1)
		operand.displacement = (int64_t)(int8_t)bytes[instruction->displacement_at];
	else if (instruction->displacement_size == 4) {
		int32_t value;
		memcpy(&value, bytes + instruction->displacement_at, sizeof(value));
		operand.displacement = value;
	}
	return operand;
}

void stack_watch_start(struct stack_watch *watch, const struct finder *finder, uint32_t frame,
		       uint64_t vaddr)
{
	memset(watch, 0, sizeof(*watch));
	watch->straight = true;
	watch->walk.next = UINT64_MAX;
	watch->walk.row = (struct frame_row){.known = true, .base = FRAME_RSP, .offset = 8};
	if (frame) {
		frame_walk_start(&watch->walk, &finder->frames, &finder->frames.list[frame - 1]);
		frame_walk_to(&watch->walk, vaddr);
		watch->described = watch->walk.next != UINT64_MAX;
	}
}

/* Where CFA - 8 is, from the operand's base register on. */
static bool is_return_slot(const struct stack_watch *watch, const struct operand *operand)
{
	const struct frame_row *row = &watch->walk.row;

	if (operand->indexed)
		return false;
	if (watch->described)
		return row->known && operand->displacement == row->offset - 8 &&
		       ((operand->base == 4 && row->base == FRAME_RSP) ||
			(operand->base == 5 && row->base == FRAME_RBP));
	return watch->straight && operand->base == 4 && operand->displacement == watch->depth;
}

static bool is_long_nop(const struct instruction *instruction)
{
	return instruction->map == 1 && instruction->opcode == 0x1f && !instruction->vex;
}

static void watch_operand(struct stack_watch *watch, const uint8_t *bytes,
			  const struct instruction *instruction, uint64_t vaddr)
{
	struct operand operand = operand_of(bytes, instruction);
	bool is_lea = !instruction->map && instruction->opcode == 0x8d;
	bool to_rsp = is_lea && (instruction->modrm >> 3 & 7) == REG_RSP &&
		      !(instruction->rex & INSTRUCTION_REX_R);

	if (!operand.memory || operand.base > 5 || operand.base < 4 || is_long_nop(instruction))
		return;
	if (operand.base == 4 && operand.displacement < 0 && !to_rsp)
		watch->red_zone = true;
	/* Atomic operations there are fences (lock or $0, (%rsp)). Of lea: to rsp, it is an
	 * addition that keeps the flags; without a displacement, mov; and where the tables go on
	 * with another register at once, the way in and out of aligned frames of assembly. */
	if (instruction->prefixes & INSTRUCTION_PREFIX_LOCK ||
	    (is_lea && (to_rsp || !operand.displacement ||
			(watch->described && watch->walk.next == vaddr + instruction->length))))
		return;
	if (is_return_slot(watch, &operand))
		watch->reads_return = true;
}

/* mov, xchg or pop to rsp, from elsewhere than a frame pointer. */
static bool sets_stack_pointer(const struct instruction *instruction)
{
	bool reg_is_rsp =
		(instruction->modrm >> 3 & 7) == REG_RSP && !(instruction->rex & INSTRUCTION_REX_R);
	bool rm_is_rsp = instruction->modrm >= 0xc0 && (instruction->modrm & 7) == REG_RSP &&
			 !(instruction->rex & INSTRUCTION_REX_B);

	if (instruction->map || instruction->vex)
		return false;
	if (instruction->opcode == 0x5c && !(instruction->rex & INSTRUCTION_REX_B))
		return true;
	if (!instruction->has_modrm || !(instruction->rex & INSTRUCTION_REX_W))
		return false;
	return (instruction->opcode == 0x89 && rm_is_rsp) ||
	       (instruction->opcode == 0x8b && reg_is_rsp) ||
	       (instruction->opcode == 0x87 && (reg_is_rsp || rm_is_rsp));
}

static void watch_stack_pointer(struct stack_watch *watch, const struct instruction *instruction,
				uint64_t vaddr)
{
	const struct frame_row *row = &watch->walk.row;

	if (!sets_stack_pointer(instruction))
		return;
	/* Frames with a pointer of their own, and what the tables say to change right there, are
	 * ordinary code: alloca, epilogues, assembly that aligns its stack. */
	if (watch->described && (!row->known || row->base != FRAME_RSP ||
				 watch->walk.next == vaddr + instruction->length))
		return;
	if (!watch->described && instruction->opcode == 0x89 &&
	    (instruction->modrm >> 3 & 7) == 5 &&
	    !(instruction->rex & INSTRUCTION_REX_R)) /* mov %rbp, %rsp */
		return;
	watch->switches = true;
}

/* push, pop, and sums of constants with rsp. */
static void watch_depth(struct stack_watch *watch, const uint8_t *bytes,
			const struct instruction *instruction)
{
	uint8_t opcode = instruction->opcode;
	bool pops = !instruction->map && !instruction->vex && (opcode & 0xf8) == OPCODE_POP;

	pops |= !instruction->map && opcode == 0x8f && !instruction->vex;
	if (pops &&
	    (watch->described ? watch->walk.row.known && watch->walk.row.base == FRAME_RSP &&
					watch->walk.row.offset == 8 && !watch->depth
			      : watch->depth == 0) &&
	    watch->straight)
		watch->reads_return = true;
	if (instruction->map || instruction->vex || !watch->straight)
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
			value = (int32_t)(int8_t)bytes[instruction->immediate_at];
		else
			memcpy(&value, bytes + instruction->immediate_at, sizeof(value));
		if ((instruction->modrm >> 3 & 7) == 5)
			watch->depth += value;
		else if ((instruction->modrm >> 3 & 7) == 0)
			watch->depth -= value;
	}
	if (watch->depth < 0) /* the return address was dropped */
		watch->reads_return = true;
}

/* The pointer guard: %fs:0x30 (glibc's sysdep.h for x86_64). */
static bool is_pointer_guard(const uint8_t *bytes, const struct instruction *instruction)
{
	uint32_t where;

	if (!(instruction->prefixes & INSTRUCTION_PREFIX_FS) || instruction->displacement_size != 4)
		return false;
	memcpy(&where, bytes + instruction->displacement_at, sizeof(where));
	return where == 0x30 && (instruction->opcode == 0x33 || instruction->opcode == 0x8b);
}

void stack_watch_step(struct stack_watch *watch, const uint8_t *bytes,
		      const struct instruction *instruction, uint64_t vaddr)
{
	frame_walk_to(&watch->walk, vaddr);
	if (instruction->has_modrm && instruction->modrm < 0xc0) {
		watch_operand(watch, bytes, instruction, vaddr);
		if (is_pointer_guard(bytes, instruction))
			watch->mangles = true;
	}
	watch_stack_pointer(watch, instruction, vaddr);
	watch_depth(watch, bytes, instruction);
	/* ret with a number takes what the caller pushed as well. */
	if (instruction->flow == INSTRUCTION_RETURN &&
	    (instruction->immediate_size || instruction->map || instruction->opcode != 0xc3))
		watch->reads_return = true;
	if (instruction->flow != INSTRUCTION_NEXT)
		watch->straight = false;
}
