/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions whose code is used otherwise than by calling it: bytes that are read or copied, and
 * addresses that are calculated from a code address (its end minus its start, its page, a place
 * some bytes on). The first bytes of such a function are not replaced.
 *
 * What a register or a word of the frame holds is followed along the code as it lies, from the
 * instruction that takes the address on; leaving the function ends that. Whatever may write a
 * register that is not understood here ends it for that register. Addresses that come from data, or
 * from another function, are not followed.
 */
#include "binary/functions/private.h"

#define REGISTER_RDX     2
#define REGISTER_RSP     4
#define REGISTER_RBP     5
#define REGISTER_RSI     6
#define COPIED_BYTES_MAX (1u << 20)
#define CALL_CLOBBERED   0x0fc7u /* rax, rcx, rdx, rsi, rdi, r8 to r11 */

enum operation { OPERATION_LEA = 0x8d, OPERATION_LOAD = 0x8b, OPERATION_STORE = 0x89 };

static void forget_register(struct code_address_watch *watch, unsigned number)
{
	watch->registers[number] = 0;
	watch->held_registers &= ~(1u << number);
	if (number == REGISTER_RDX)
		watch->copied_size = 0;
}

static void hold_address(struct code_address_watch *watch, unsigned number, uint64_t address)
{
	forget_register(watch, number);
	if (!address)
		return;
	watch->registers[number] = address;
	watch->held_registers |= 1u << number;
}

static void mark_function_used_as_data(struct function_finder *finder, uint64_t address)
{
	const struct function *function = functions_find_at_address(finder->functions, address);

	if (function)
		finder_mark_address(finder, MARK_USED_AS_DATA, function->vaddr);
}

/* All that a copy of so many bytes takes along: a word of marks at a time, since functions are far
 * apart. */
static void mark_functions_used_as_data(struct function_finder *finder, uint64_t low, uint64_t high)
{
	const uint64_t *starts = finder->address_mark_bits[MARK_FUNCTION_START];
	uint64_t end = finder->code_low + finder->code_size, at = low;

	mark_function_used_as_data(finder, low);
	if (high - low > COPIED_BYTES_MAX)
		return;
	if (at < finder->code_low)
		at = finder->code_low;
	if (high > end)
		high = end;
	while (at < high) {
		uint64_t bit = at - finder->code_low, marks = starts[bit / 64] >> bit % 64;

		if (marks) {
			at += (uint64_t)__builtin_ctzll(marks);
			if (at < high)
				finder_mark_address(finder, MARK_USED_AS_DATA, at);
			at++;
		} else {
			at += 64 - bit % 64;
		}
	}
}

static unsigned get_reg_number(const struct instruction *instruction)
{
	return (instruction->modrm >> 3 & 7u) | (instruction->rex & INSTRUCTION_REX_R ? 8u : 0);
}

static unsigned get_rm_number(const struct instruction *instruction)
{
	return (instruction->modrm & 7u) | (instruction->rex & INSTRUCTION_REX_B ? 8u : 0);
}

/* The registers of a memory operand, as bits, and its base and displacement where it has no
 * index. */
struct memory_operand_registers {
	uint32_t bits;
	bool is_plain;
	uint8_t base;
	int32_t displacement;
};

static struct memory_operand_registers decode_memory_operand(const uint8_t *bytes,
							     const struct instruction *instruction)
{
	struct memory_operand_registers operand = {0};
	unsigned base = instruction->modrm & 7u, index = REGISTER_RSP;

	uint8_t rex = instruction_get_operand_rex_bits(bytes, instruction);

	if (!instruction->has_modrm || instruction->modrm >= 0xc0 || instruction->is_rip_relative)
		return operand;
	if (base == REGISTER_RSP) {
		unsigned at = instruction->displacement_size
				      ? instruction->displacement_offset - 1u
				      : instruction->length - instruction->immediate_size - 1u;
		unsigned sib = bytes[at];

		base = sib & 7;
		index = (sib >> 3 & 7) | (rex & INSTRUCTION_REX_X ? 8u : 0);
		if (index != REGISTER_RSP)
			operand.bits |= 1u << index;
		if (base == REGISTER_RBP && instruction->modrm < 0x40)
			return operand;
	}
	if (rex & INSTRUCTION_REX_B)
		base |= 8;
	operand.bits |= 1u << base;
	operand.base = (uint8_t)base;
	operand.is_plain = index == REGISTER_RSP;
	if (instruction->displacement_size == 1)
		operand.displacement =
			(bytes[instruction->displacement_offset] ^ 0x80) - 0x80; /* signed */
	else if (instruction->displacement_size == 4)
		memcpy(&operand.displacement, bytes + instruction->displacement_offset,
		       sizeof(operand.displacement));
	return operand;
}

/* ---- words of the frame ---- */

static struct code_address_slot *find_frame_slot(struct code_address_watch *watch,
						 const struct memory_operand_registers *operand)
{
	for (uint32_t i = 0; i < watch->slot_count; i++) {
		if (watch->slots[i].base == operand->base &&
		    watch->slots[i].displacement == operand->displacement)
			return &watch->slots[i];
	}
	return NULL;
}

static bool is_frame_operand(const struct memory_operand_registers *operand)
{
	return operand->is_plain &&
	       (operand->base == REGISTER_RSP || operand->base == REGISTER_RBP);
}

static void store_address_in_frame(struct code_address_watch *watch,
				   const struct memory_operand_registers *operand, uint64_t address)
{
	struct code_address_slot *slot = find_frame_slot(watch, operand);

	if (!slot && address && watch->slot_count < CODE_ADDRESS_SLOTS_MAX)
		slot = &watch->slots[watch->slot_count++];
	if (slot)
		*slot = (struct code_address_slot){operand->displacement, operand->base, address};
}

/* ---- instructions ---- */

/* add, or, and, sub, xor with a register: 01, 03 and so on; not adc, sbb, cmp. */
static bool is_arithmetic_of_registers(const struct instruction *instruction)
{
	unsigned kind = instruction->opcode >> 3;

	return !instruction->opcode_map && instruction->has_modrm && instruction->opcode < 0x38 &&
	       (instruction->opcode & 5) == 1 && kind != 2 && kind != 3;
}

/* The same with a constant: 81, 83. */
static bool is_arithmetic_with_constant(const struct instruction *instruction)
{
	unsigned kind = instruction->modrm >> 3 & 7;

	return !instruction->opcode_map &&
	       (instruction->opcode == 0x81 || instruction->opcode == 0x83) &&
	       instruction->modrm >= 0xc0 && kind != 2 && kind != 3 && kind != 7;
}

static bool writes_no_register(const struct instruction *instruction)
{
	unsigned opcode = instruction->opcode;

	if (instruction->opcode_map)
		return instruction->opcode_map == 1 && opcode == 0x1f;
	return (opcode >= 0x38 && opcode <= 0x3b) || opcode == 0x84 || opcode == 0x85 ||
	       opcode == 0xf6 || opcode == 0xc6 || opcode == 0xc7 ||
	       ((opcode == 0x81 || opcode == 0x83 || opcode == 0x80) &&
		(instruction->modrm >> 3 & 7) == 7);
}

static void calculate_with_register(struct code_address_watch *watch,
				    struct function_finder *finder, unsigned first, unsigned second)
{
	uint64_t one = watch->registers[first], other = watch->registers[second];

	if (one)
		mark_function_used_as_data(finder, one);
	if (other)
		mark_function_used_as_data(finder, other);
	if (one && other)
		mark_functions_used_as_data(finder, one < other ? one : other,
					    one < other ? other : one);
	forget_register(watch, first);
}

static void step_memory_operand(struct code_address_watch *watch, struct function_finder *finder,
				const uint8_t *bytes, const struct instruction *instruction)
{
	struct memory_operand_registers operand = decode_memory_operand(bytes, instruction);
	bool is_move = !instruction->opcode_map && !instruction->has_vector_prefix &&
		       instruction->rex & INSTRUCTION_REX_W;
	unsigned reg = get_reg_number(instruction);

	for (unsigned i = 0; i < 16; i++) {
		if (operand.bits & watch->held_registers & 1u << i &&
		    !(instruction->opcode_map == 1 && instruction->opcode == 0x1f))
			mark_function_used_as_data(finder, watch->registers[i]);
	}
	if (is_move && instruction->opcode == OPERATION_STORE) {
		if (is_frame_operand(&operand))
			store_address_in_frame(watch, &operand, watch->registers[reg]);
		return;
	}
	if (is_move && instruction->opcode == OPERATION_LOAD && is_frame_operand(&operand)) {
		const struct code_address_slot *slot = find_frame_slot(watch, &operand);

		hold_address(watch, reg, slot ? slot->address : 0);
		return;
	}
	if (instruction->has_vector_prefix)
		return;
	/* add, sub and so on from memory to a register */
	if (is_arithmetic_of_registers(instruction) && instruction->opcode & 2)
		calculate_with_register(watch, finder, reg, reg);
	else if (!writes_no_register(instruction) && !(instruction->opcode == 0x88))
		forget_register(watch, reg);
}

static void step_register_operands(struct code_address_watch *watch, struct function_finder *finder,
				   const struct instruction *instruction)
{
	unsigned reg = get_reg_number(instruction), rm = get_rm_number(instruction);
	bool is_move = !instruction->opcode_map && instruction->rex & INSTRUCTION_REX_W;

	if (is_move && instruction->opcode == OPERATION_STORE) {
		hold_address(watch, rm, watch->registers[reg]);
	} else if (is_move && instruction->opcode == OPERATION_LOAD) {
		hold_address(watch, reg, watch->registers[rm]);
	} else if (is_arithmetic_of_registers(instruction)) {
		bool clears = reg == rm; /* xor, sub with itself */

		if (clears)
			forget_register(watch, rm);
		else if (instruction->opcode & 2)
			calculate_with_register(watch, finder, reg, rm);
		else
			calculate_with_register(watch, finder, rm, reg);
	} else if (is_arithmetic_with_constant(instruction)) {
		calculate_with_register(watch, finder, rm, rm);
	} else if (!writes_no_register(instruction)) {
		forget_register(watch, reg);
		forget_register(watch, rm);
		if (instruction->opcode == 0xf7) { /* mul, div */
			forget_register(watch, 0);
			forget_register(watch, REGISTER_RDX);
		}
	}
}

/* Without ModRM: what is moved, popped or exchanged, and what names no register. */
static void step_implicit_registers(struct code_address_watch *watch,
				    struct function_finder *finder, const uint8_t *bytes,
				    const struct instruction *instruction)
{
	unsigned opcode = instruction->opcode,
		 number = (opcode & 7u) | (instruction->rex & INSTRUCTION_REX_B ? 8u : 0);
	uint64_t value = 0;

	if (!instruction->opcode_map && (opcode & 0xf0) == 0x50) { /* push, pop */
		if (opcode >= 0x58)
			forget_register(watch, number);
		return;
	}
	if (instruction->opcode_map || (opcode & 0xf8) != 0xb8) {
		forget_register(watch, number);
		for (unsigned i = 0; i < 16; i++) { /* string and accumulator instructions */
			if (opcode != 0x90 && (CALL_CLOBBERED >> i & 1))
				forget_register(watch, i);
		}
		return;
	}
	memcpy(&value, bytes + instruction->immediate_offset,
	       instruction->immediate_size > 8 ? 8 : instruction->immediate_size);
	hold_address(watch, number,
		     finder->has_absolute_addresses && finder_is_in_code(finder, value) ? value
											: 0);
	if (number == REGISTER_RDX && value <= COPIED_BYTES_MAX)
		watch->copied_size = (uint32_t)value;
}

static void step_branch(struct code_address_watch *watch, struct function_finder *finder,
			const struct instruction *instruction)
{
	uint64_t source = watch->registers[REGISTER_RSI];

	if (source && instruction->flow != INSTRUCTION_RETURN &&
	    finder_get_import_of_branch(finder, instruction) == IMPORT_COPIES_MEMORY)
		mark_functions_used_as_data(finder, source, source + watch->copied_size);
	if (instruction->flow == INSTRUCTION_CALL ||
	    instruction->flow == INSTRUCTION_CALL_INDIRECT) {
		for (unsigned i = 0; i < 16; i++) {
			if (CALL_CLOBBERED >> i & 1)
				forget_register(watch, i);
		}
	} else if (instruction->flow != INSTRUCTION_BRANCH &&
		   !(instruction->flow == INSTRUCTION_JUMP &&
		     instruction->target - watch->vaddr < watch->size)) {
		while (watch->held_registers)
			forget_register(watch, (unsigned)__builtin_ctz(watch->held_registers));
		watch->copied_size = 0;
	}
}

/* How code of the large model finds its data: from the address of the lea on, or of the movabs in
 * front of it (System V ABI 3.5.5). */
static bool is_base_of_large_model(const struct code_address_watch *watch, uint64_t target,
				   uint64_t vaddr)
{
	return target == vaddr || (watch->wide_move && target == watch->wide_move);
}

/* Takes the address of code, or reads where a function begins. True: that is all. */
static bool step_rip_relative(struct code_address_watch *watch, struct function_finder *finder,
			      const struct instruction *instruction, uint64_t vaddr)
{
	unsigned reg = get_reg_number(instruction);
	bool is_plain = !instruction->opcode_map && !instruction->has_vector_prefix;
	uint64_t held;

	if (finder_is_in_code(finder, instruction->target)) {
		if (is_plain && instruction->opcode == OPERATION_LEA) {
			hold_address(watch, reg,
				     is_base_of_large_model(watch, instruction->target, vaddr)
					     ? 0
					     : instruction->target);
			return true;
		}
		/* Constants stand in code as well, but not where a function begins. */
		if (finder_has_mark(finder, MARK_FUNCTION_START, instruction->target))
			mark_function_used_as_data(finder, instruction->target);
		return false;
	}
	held = is_plain ? finder_get_code_address_in_slot(finder, instruction->target) : 0;
	if (!held)
		return false;
	if (instruction->opcode == OPERATION_LOAD) {
		hold_address(watch, reg, held);
		return true;
	}
	if (is_arithmetic_of_registers(instruction))
		mark_function_used_as_data(finder, held);
	return false;
}

/* movabs: a constant of eight bytes. */
static bool is_wide_move(const struct instruction *instruction)
{
	return !instruction->opcode_map && (instruction->opcode & 0xf8) == 0xb8 &&
	       instruction->immediate_size == 8;
}

void code_address_watch_step(struct code_address_watch *watch, struct function_finder *finder,
			     const uint8_t *bytes, const struct instruction *instruction,
			     uint64_t vaddr)
{
	if (instruction->flow != INSTRUCTION_NEXT) {
		step_branch(watch, finder, instruction);
		return;
	}
	if (instruction->is_rip_relative && step_rip_relative(watch, finder, instruction, vaddr)) {
		watch->wide_move = 0;
		return;
	}
	watch->wide_move = is_wide_move(instruction) ? vaddr : 0;
	if (!watch->held_registers && !watch->slot_count && instruction->has_modrm)
		return;
	if (!instruction->has_modrm)
		step_implicit_registers(watch, finder, bytes, instruction);
	else if (instruction->modrm < 0xc0)
		step_memory_operand(watch, finder, bytes, instruction);
	else if (!instruction->has_vector_prefix)
		step_register_operands(watch, finder, instruction);
}
