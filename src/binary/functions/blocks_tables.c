/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Jump tables as gcc and clang make them:
 *
 *     cmp $N, %edi; ja default                          the bound
 *     lea table(%rip), %rdx                             the base, perhaps far away
 *     movslq (%rdx,%rdi,4), %rax; add %rdx, %rax        an entry: distance from the base
 *     jmp *%rax                                         perhaps with notrack
 *
 *     jmp *table(,%rdi,8)                               entries are addresses: code that is not PIC
 *     jmp *(%rdx,%rdi,8)
 *     mov table(,%rdi,8), %rax; jmp *%rax
 *
 * It is looked for backwards from the jump, as long as control runs straight. What is found is
 * believed only when the entries lead to instructions. Where the bound is not known, the table goes
 * on as long as they do and no other table begins: rather too many targets than too few. Jumps
 * behind the function's epilogue are calls in the tail, through an array of functions perhaps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/functions/blocks_private.h"

#define SEARCHED_INSTRUCTIONS_MAX                                                                  \
	40u /* instructions that are looked at, less than BLOCKS_RECENT_INSTRUCTIONS_MAX */
#define JUMP_TABLE_ENTRIES_MAX           65536u
#define NO_REGISTER                      16u
#define EPILOGUE_SEARCH_INSTRUCTIONS_MAX 4u         /* instructions between it and the jump */
#define TABLE_ENTRY_READS_MAX            (1u << 22) /* in one function; only hostile ones have so many */
#define CONSECUTIVE_OUTSIDE_ENTRIES_MAX  8u
#define PREFIX_NOTRACK                   0x3eu

/* An instruction that was decoded lately, and a register that is looked for before it. */
struct recent_instruction_cursor {
	const struct blocks_workspace *workspace;
	uint32_t number, last; /* of the instruction, and of the last that was decoded */
	const struct instruction *instruction;
	const uint8_t *bytes;
};

static void move_cursor_to_instruction(struct recent_instruction_cursor *place, uint32_t number)
{
	uint32_t slot = number % BLOCKS_RECENT_INSTRUCTIONS_MAX;

	place->number = number;
	place->instruction = &place->workspace->recent_instructions[slot].instruction;
	place->bytes = place->workspace->code + place->workspace->recent_instructions[slot].offset;
}

/* To the instruction before, if control can have come from there. */
static bool step_to_previous_instruction(struct recent_instruction_cursor *place)
{
	if (!place->number || place->last - place->number == BLOCKS_RECENT_INSTRUCTIONS_MAX - 1)
		return false;
	move_cursor_to_instruction(place, place->number - 1);
	switch (place->instruction->flow) {
	case INSTRUCTION_NEXT:
	case INSTRUCTION_BRANCH:
		return true;
	default: /* calls change registers; the others do not go on */
		return false;
	}
}

static unsigned get_modrm_reg_register(const struct instruction *instruction)
{
	return (instruction->modrm >> 3 & 7) | (instruction->rex & INSTRUCTION_REX_R ? 8u : 0);
}

/* The register of ModRM's rm field; NO_REGISTER: it is memory. */
static unsigned get_modrm_rm_register(const struct instruction *instruction)
{
	if (instruction->modrm < 0xc0)
		return NO_REGISTER;
	return (instruction->modrm & 7) | (instruction->rex & INSTRUCTION_REX_B ? 8u : 0);
}

static bool has_rex_w(const struct instruction *instruction)
{
	return instruction->rex & INSTRUCTION_REX_W;
}

/* Memory at base + index * scale + displacement. */
struct memory_operand {
	unsigned base, index; /* NO_REGISTER: none */
	unsigned scale;
	uint64_t displacement;
};

static bool read_sib_operand(const struct recent_instruction_cursor *place,
			     struct memory_operand *ret)
{
	const struct instruction *instruction = place->instruction;
	unsigned modrm = instruction->modrm, rex = instruction->rex, sib;
	int32_t displacement = 0;

	if (modrm >= 0xc0 || (modrm & 7) != 4)
		return false;
	/* SIB follows ModRM, and the displacement, or the end, follows SIB. */
	if (instruction->displacement_size) {
		sib = place->bytes[instruction->displacement_offset - 1];
		if (instruction->displacement_size == 1)
			displacement =
				(int32_t)(int8_t)place->bytes[instruction->displacement_offset];
		else
			memcpy(&displacement, place->bytes + instruction->displacement_offset, 4);
	} else {
		sib = place->bytes[instruction->length - instruction->immediate_size - 1];
	}
	ret->scale = 1u << (sib >> 6);
	ret->index = (sib >> 3 & 7) | (rex & INSTRUCTION_REX_X ? 8u : 0);
	if (ret->index == 4)
		ret->index = NO_REGISTER;
	ret->base = (sib & 7) | (rex & INSTRUCTION_REX_B ? 8u : 0);
	if ((sib & 7) == 5 && modrm < 0x40)
		ret->base = NO_REGISTER;
	ret->displacement = (uint64_t)(int64_t)displacement;
	return true;
}

/* The register that it writes, of those kinds of instructions that compute addresses. */
static unsigned get_written_register(const struct instruction *instruction)
{
	unsigned opcode = instruction->opcode;

	if (instruction->has_vector_prefix || instruction->opcode_map > 1)
		return NO_REGISTER;
	if (instruction->opcode_map) {
		bool reads = (opcode & 0xf0) == 0x40 || opcode == 0xaf ||
			     (opcode >= 0xb6 && opcode <= 0xb8) ||
			     (opcode >= 0xbc && opcode <= 0xbf);
		return reads ? get_modrm_reg_register(instruction) : NO_REGISTER;
	}
	if ((opcode & 0xf0) == 0x50 || (opcode & 0xf8) == 0xb8) /* pop, mov immediate */
		return opcode >= 0x58 ? (opcode & 7) | (instruction->rex & 1 ? 8u : 0)
				      : NO_REGISTER;
	if (opcode == 0x8b || opcode == 0x8d || opcode == 0x63 || opcode == 0x69 ||
	    opcode == 0x6b || (opcode < 0x38 && (opcode & 7) == 3))
		return get_modrm_reg_register(instruction);
	if (opcode == 0x89 || opcode == 0x81 || opcode == 0x83 || opcode == 0xc1 ||
	    opcode == 0xd1 || opcode == 0xd3 || (opcode < 0x38 && (opcode & 7) == 1)) {
		bool compares =
			(opcode == 0x81 || opcode == 0x83) && (instruction->modrm >> 3 & 7) == 7;
		return compares ? NO_REGISTER : get_modrm_rm_register(instruction);
	}
	return NO_REGISTER;
}

/* The register that `to` was copied from, if the instruction is such a copy (also of its lower
 * half, and with other upper bits); NO_REGISTER: it is not. */
static unsigned get_copy_source_register(const struct instruction *instruction, unsigned to)
{
	bool narrow = instruction->opcode_map == 1 && ((instruction->opcode & 0xfe) == 0xb6 ||
						       (instruction->opcode & 0xfe) == 0xbe);

	if (instruction->has_vector_prefix || instruction->opcode_map > 1 ||
	    (instruction->opcode_map && !narrow))
		return NO_REGISTER;
	if (!instruction->opcode_map && instruction->opcode == 0x89 &&
	    get_modrm_rm_register(instruction) == to)
		return get_modrm_reg_register(instruction);
	if ((narrow || instruction->opcode == 0x8b || instruction->opcode == 0x63) &&
	    get_modrm_reg_register(instruction) == to)
		return get_modrm_rm_register(instruction);
	return NO_REGISTER;
}

static bool is_rip_relative_lea(const struct instruction *instruction)
{
	return instruction->is_rip_relative && instruction->opcode == 0x8d &&
	       !instruction->opcode_map;
}

/* The address that `wanted` holds before the instruction at `place`; 0: not known. */
static uint64_t find_address_in_register(struct recent_instruction_cursor place, unsigned wanted)
{
	for (uint32_t i = 0; i < SEARCHED_INSTRUCTIONS_MAX && step_to_previous_instruction(&place);
	     i++) {
		if (get_written_register(place.instruction) != wanted)
			continue;
		if (is_rip_relative_lea(place.instruction))
			return place.instruction->target;
		wanted = get_copy_source_register(place.instruction, wanted);
		if (wanted == NO_REGISTER)
			return 0;
	}
	/* It was loaded before a loop, perhaps. */
	return place.workspace->loaded[wanted];
}

/* What the comparison compares with. */
static bool read_comparison_constant(const struct recent_instruction_cursor *place, uint32_t *ret)
{
	const struct instruction *instruction = place->instruction;
	const uint8_t *at = place->bytes + instruction->immediate_offset;
	bool is_group = (instruction->opcode | 3) == 0x83 && (instruction->modrm >> 3 & 7) == 7;

	if (instruction->opcode_map || instruction->has_vector_prefix ||
	    (!is_group && (instruction->opcode | 1) != 0x3d))
		return false;
	*ret = 0;
	memcpy(ret, at, instruction->immediate_size > 4 ? 4 : instruction->immediate_size);
	return true;
}

static unsigned get_compared_register(const struct instruction *instruction)
{
	if ((instruction->opcode | 1) == 0x3d)
		return 0;
	return get_modrm_rm_register(instruction);
}

/* The nearest ja or jae before the jump, and the comparison that it goes by. */
static void find_jump_table_bound(struct recent_instruction_cursor place, unsigned index,
				  struct blocks_jump_table *table)
{
	uint32_t above = 0, left = 4;

	for (uint32_t i = 0;
	     i < SEARCHED_INSTRUCTIONS_MAX && left && step_to_previous_instruction(&place); i++) {
		const struct instruction *instruction = place.instruction;
		if (instruction->flow == INSTRUCTION_BRANCH && !above) {
			unsigned condition = instruction->opcode & 0x0f;
			bool is_jcc = instruction->opcode_map == 1 || instruction->opcode < 0x80;
			if (is_jcc && (condition == 7 || condition == 3))
				above = condition;
		} else if (above) {
			left--;
			if (read_comparison_constant(&place, &table->entry_bound)) {
				table->entry_bound += above == 7;
				table->exact = get_compared_register(instruction) == index;
				return;
			}
		} else if (index != NO_REGISTER && get_written_register(instruction) == index) {
			index = get_copy_source_register(instruction, index);
		}
	}
}

/* jmp *memory, or mov memory, %reg; jmp *%reg: entries are addresses. */
static bool recognize_absolute_table(struct recent_instruction_cursor *place,
				     struct blocks_jump_table *table)
{
	struct memory_operand operand;

	if (!read_sib_operand(place, &operand) || operand.index == NO_REGISTER ||
	    operand.scale != 8)
		return false;
	table->absolute = true;
	table->at = operand.displacement;
	if (operand.base != NO_REGISTER) {
		uint64_t base = find_address_in_register(*place, operand.base);
		table->at = base ? base + operand.displacement : 0;
	}
	find_jump_table_bound(*place, operand.index, table);
	return true;
}

static bool is_load_of_table_distance(const struct instruction *instruction)
{
	if (instruction->opcode_map || instruction->has_vector_prefix || instruction->modrm >= 0xc0)
		return false;
	return instruction->opcode == (has_rex_w(instruction) ? 0x63 : 0x8b);
}

/* `place` is at the addition of `left` and `right`: one of them is what distances count from, as a
 * rule the table itself, the other was loaded from the table. */
static bool recognize_relative_table(struct recent_instruction_cursor place, unsigned left,
				     unsigned right, struct blocks_jump_table *table)
{
	struct recent_instruction_cursor addition = place;
	struct memory_operand operand = {.base = NO_REGISTER, .index = NO_REGISTER};

	for (uint32_t i = 0; i < SEARCHED_INSTRUCTIONS_MAX && step_to_previous_instruction(&place);
	     i++) {
		unsigned to = get_written_register(place.instruction);
		if ((to != left && to != right) || !is_load_of_table_distance(place.instruction))
			continue;
		table->base = find_address_in_register(addition, to == left ? right : left);
		if (read_sib_operand(&place, &operand) && operand.base != NO_REGISTER)
			table->at = find_address_in_register(place, operand.base);
		if (!table->at)
			table->at = table->base;
		if (!table->base)
			table->base = table->at;
		/* Without optimization the index is multiplied before. */
		find_jump_table_bound(place, operand.scale == 4 ? operand.index : NO_REGISTER,
				      table);
		return true;
	}
	return false;
}

/* Where the register that the jump goes through comes from. */
static bool recognize_table_of_register_jump(struct recent_instruction_cursor place,
					     unsigned wanted, struct blocks_jump_table *table)
{
	for (uint32_t i = 0; i < SEARCHED_INSTRUCTIONS_MAX && step_to_previous_instruction(&place);
	     i++) {
		const struct instruction *instruction = place.instruction;
		unsigned opcode = instruction->opcode;
		if (get_written_register(instruction) != wanted)
			continue;
		if (instruction->opcode_map || !has_rex_w(instruction))
			return false;
		if (opcode == 0x01 || opcode == 0x03) {
			unsigned other = opcode == 0x01 ? get_modrm_reg_register(instruction)
							: get_modrm_rm_register(instruction);
			return other != NO_REGISTER &&
			       recognize_relative_table(place, wanted, other, table);
		}
		if (opcode == 0x8b && instruction->modrm < 0xc0)
			return recognize_absolute_table(&place, table);
		wanted = get_copy_source_register(instruction, wanted);
		if (wanted == NO_REGISTER)
			return false;
	}
	return false;
}

/* Is the stack as the caller left it, just before the jump? */
static bool is_jump_behind_epilogue(struct recent_instruction_cursor place)
{
	for (uint32_t i = 0;
	     i < EPILOGUE_SEARCH_INSTRUCTIONS_MAX && step_to_previous_instruction(&place); i++) {
		const struct instruction *instruction = place.instruction;
		unsigned opcode = instruction->opcode;
		if (instruction->opcode_map || instruction->has_vector_prefix)
			continue;
		if ((opcode & 0xf8) == 0x58 || opcode == 0xc9 || /* pop, leave */
		    ((opcode == 0x83 || opcode == 0x81) && instruction->modrm == 0xc4)) /* add */
			return true;
	}
	return false;
}

int blocks_add_jump_table_if_found(struct basic_blocks *blocks, uint32_t number, uint32_t *ret)
{
	struct blocks_workspace *workspace = blocks->workspace;
	struct blocks_jump_table table = {0};
	struct recent_instruction_cursor place = {.workspace = workspace, .last = number};
	bool found = false;
	int error;

	move_cursor_to_instruction(&place, number);
	if (is_jump_behind_epilogue(place))
		found = false;
	else if (place.instruction->modrm >= 0xc0)
		found = recognize_table_of_register_jump(
			place, get_modrm_rm_register(place.instruction), &table);
	else
		found = recognize_absolute_table(&place, &table);
	/* Compilers say so that the target need not be marked: only a table has such targets. */
	if (!found && place.bytes[0] != PREFIX_NOTRACK) {
		blocks->has_tail_jump = true;
		return 0;
	}
	error = blocks_grow_any_array(&workspace->tables, &workspace->table_capacity,
				      (size_t)workspace->table_count + 1,
				      sizeof(*workspace->tables));
	if (error)
		return error;
	*ret = workspace->table_count;
	workspace->tables[workspace->table_count++] = table;
	return 0;
}

/* ---- entries ---- */

static const struct loaded_byte_range *
find_loaded_range_at(const struct blocks_analysis_input *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->range_count; i++) {
		if (vaddr - image->ranges[i].vaddr < image->ranges[i].size)
			return &image->ranges[i];
	}
	return NULL;
}

/* How many entries fit before the range ends or another table of this function begins. */
static uint32_t count_table_entries_that_fit(const struct blocks_workspace *workspace,
					     const struct blocks_jump_table *table,
					     const struct loaded_byte_range *range)
{
	uint64_t end = range->vaddr + range->size, count;

	for (uint32_t i = 0; i < workspace->table_count; i++) {
		uint64_t other = workspace->tables[i].at;
		if (other > table->at && other < end)
			end = other;
	}
	count = (end - table->at) / (table->absolute ? 8 : 4);
	if (table->exact && count > table->entry_bound)
		count = table->entry_bound;
	return count > JUMP_TABLE_ENTRIES_MAX ? JUMP_TABLE_ENTRIES_MAX : (uint32_t)count;
}

static uint64_t read_table_entry_target(const struct blocks_jump_table *table, const uint8_t *at,
					uint32_t index)
{
	int32_t distance;
	uint64_t address;

	if (table->absolute) {
		memcpy(&address, at + (size_t)index * 8, 8);
		return address;
	}
	memcpy(&distance, at + (size_t)index * 4, 4);
	return table->base + (uint64_t)(int64_t)distance;
}

static int compare_target_by_address(const void *left, const void *right)
{
	uint64_t one, other;

	memcpy(&one, left, sizeof(one));
	memcpy(&other, right, sizeof(other));
	return (one > other) - (one < other);
}

/* Sorts, drops duplicates, marks leaders. */
static void sort_and_mark_table_targets(struct basic_blocks *blocks,
					struct blocks_jump_table *table)
{
	struct blocks_workspace *workspace = blocks->workspace;
	uint64_t *targets = blocks->table_targets + table->first;
	uint32_t kept = 0;

	qsort(targets, table->count, sizeof(*targets), compare_target_by_address);
	for (uint32_t i = 0; i < table->count; i++) {
		uint64_t offset = targets[i] - workspace->vaddr;
		if (kept && targets[kept - 1] == targets[i])
			continue;
		targets[kept++] = targets[i];
		if (offset < workspace->size)
			blocks_set_bit(workspace->block_start_bitmap, (uint32_t)offset);
	}
	table->count = kept;
	blocks->table_target_count = table->first + kept;
}

/* How many entries the table has; 0: it is none. Other parts of the function are elsewhere, so
 * entries that lead out of it are possible. Distances, which are small numbers, are believed only
 * within the bound or between others that lead inside; addresses need not be doubted. */
static uint32_t count_plausible_table_entries(struct blocks_workspace *workspace,
					      const struct blocks_jump_table *table,
					      const uint8_t *at, uint32_t fitting)
{
	const struct blocks_analysis_input *image = workspace->image;
	uint32_t index = 0, inside = 0;

	for (; index < fitting && workspace->table_entry_reads_left;
	     index++, workspace->table_entry_reads_left--) {
		uint64_t target = read_table_entry_target(table, at, index);
		uint64_t offset = target - workspace->vaddr;
		if (offset < workspace->size) {
			if (!blocks_bit_is_set(workspace->instruction_start_bitmap,
					       (uint32_t)offset))
				break;
			inside = index + 1;
		} else if (target < image->code_low || target >= image->code_high ||
			   (!table->absolute && index >= table->entry_bound &&
			    index - inside >= CONSECUTIVE_OUTSIDE_ENTRIES_MAX)) {
			break;
		}
	}
	if (table->exact && index < table->entry_bound)
		return 0;
	if (table->absolute || table->exact)
		return index;
	if (index > table->entry_bound)
		index = table->entry_bound;
	return index > inside ? index : inside;
}

/* The jumps of an interpreter's instructions go through the same table, each by itself: one that
 * was read already is not read again. */
static bool reuse_identical_table(const struct blocks_workspace *workspace,
				  struct blocks_jump_table *table)
{
	for (const struct blocks_jump_table *other = workspace->tables; other < table; other++) {
		if (other->count && other->at == table->at && other->base == table->base &&
		    other->fitting_entry_count == table->fitting_entry_count &&
		    other->entry_bound == table->entry_bound && other->exact == table->exact &&
		    other->absolute == table->absolute) {
			table->first = other->first;
			table->count = other->count;
			return true;
		}
	}
	return false;
}

/* Reads the table as if it lay at table->at. */
static int read_jump_table_at_address(struct basic_blocks *blocks, struct blocks_jump_table *table)
{
	struct blocks_workspace *workspace = blocks->workspace;
	const struct loaded_byte_range *range = find_loaded_range_at(workspace->image, table->at);
	const uint8_t *at;
	uint32_t count;
	int error;

	table->first = blocks->table_target_count;
	table->count = 0;
	if (!table->at || !range)
		return 0;
	at = range->bytes + (table->at - range->vaddr);
	table->fitting_entry_count = count_table_entries_that_fit(workspace, table, range);
	if (reuse_identical_table(workspace, table))
		return 0;
	count = count_plausible_table_entries(workspace, table, at, table->fitting_entry_count);
	if (!count)
		return 0;
	error = blocks_grow_any_array(&blocks->table_targets, &workspace->table_target_capacity,
				      (size_t)table->first + count, sizeof(*blocks->table_targets));
	if (error)
		return error;
	for (uint32_t i = 0; i < count; i++)
		blocks->table_targets[table->first + i] = read_table_entry_target(table, at, i);
	table->count = count;
	sort_and_mark_table_targets(blocks, table);
	return 0;
}

/* Registers are loaded long before, or were kept on the stack: then it is one of the addresses that
 * the function loads, and mostly a single one of them reads as such a table. If none does, an array
 * of addresses is one of functions. */
static int read_jump_table(struct basic_blocks *blocks, struct blocks_jump_table *table)
{
	const struct blocks_workspace *workspace = blocks->workspace;
	bool is_foreign = table->absolute && !table->at;
	int error = read_jump_table_at_address(blocks, table);

	for (uint32_t i = 0; !error && !table->count && i < workspace->loaded_address_count; i++) {
		table->at = workspace->loaded_addresses[i];
		table->base = table->at;
		error = read_jump_table_at_address(blocks, table);
	}
	if (table->count)
		blocks->tables++;
	else if (is_foreign)
		blocks->has_tail_jump = true;
	else
		blocks->unknown_table_jump_count++;
	return error;
}

int blocks_read_jump_tables(struct basic_blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;

	workspace->table_entry_reads_left = TABLE_ENTRY_READS_MAX;
	for (uint32_t i = 0; i < workspace->table_count; i++) {
		struct blocks_jump_table *table = &workspace->tables[i];
		int error = read_jump_table(blocks, table);
		if (error)
			return error;
	}
	return 0;
}
