/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See spins.h.
 */
#include "binary/causal/spins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/instruction.h"
#include "binary/symbols/symbols.h"

#define SPIN_FUNCTION_BYTES_MAX 512u /* of a function */
#define SEARCHED_SEGMENT_BYTES_MAX                                                                 \
	(1ull << 28) /* of a segment; larger programs are not searched                             \
		      */
#define SPIN_PAUSES_OR_READS_NOTED_MAX 8u

struct pauses_and_memory_reads {
	uint64_t pause_addresses[SPIN_PAUSES_OR_READS_NOTED_MAX],
		memory_read_addresses[SPIN_PAUSES_OR_READS_NOTED_MAX]; /* addresses; the last reads
									*/
	unsigned pause_count, memory_read_count;
};

static bool is_pause_instruction(const struct instruction *instruction)
{
	return !instruction->opcode_map && instruction->opcode == 0x90 &&
	       instruction->length == 2 && instruction->prefix_bits == INSTRUCTION_PREFIX_F3;
}

/* An operand in memory, other than an address that is only computed (lea) or a hint (nop). */
static bool instruction_uses_memory(const struct instruction *instruction)
{
	bool lea = !instruction->opcode_map && instruction->opcode == 0x8d;
	bool nop = instruction->opcode_map == 1 && instruction->opcode >= 0x18 &&
		   instruction->opcode <= 0x1f;

	return instruction->has_modrm && instruction->modrm >> 6 != 3 && !lea && !nop;
}

static bool list_has_address_in_range(const uint64_t *list, unsigned count, uint64_t from,
				      uint64_t to)
{
	for (unsigned i = 0; i < count; i++) {
		if (list[i] >= from && list[i] <= to)
			return true;
	}
	return false;
}

static void append_address_if_room(uint64_t *list, unsigned *count, uint64_t address)
{
	if (*count < SPIN_PAUSES_OR_READS_NOTED_MAX)
		list[(*count)++] = address;
}

static bool decode_instruction_at_offset(const uint8_t *code, size_t size, uint64_t address,
					 size_t at, struct instruction *ret)
{
	return instruction_decode(code + at, size - at, address + at, ret);
}

/* Pauses and uses of memory; false: it calls something, or goes where nobody knows. */
static bool collect_pauses_and_reads(const uint8_t *code, size_t size, uint64_t address,
				     struct pauses_and_memory_reads *spin)
{
	struct instruction instruction;

	for (size_t at = 0; at < size; at += instruction.length) {
		if (!decode_instruction_at_offset(code, size, address, at, &instruction))
			return false;
		if (is_pause_instruction(&instruction))
			append_address_if_room(spin->pause_addresses, &spin->pause_count,
					       address + at);
		if (instruction_uses_memory(&instruction))
			append_address_if_room(spin->memory_read_addresses,
					       &spin->memory_read_count, address + at);
		if (instruction.flow == INSTRUCTION_CALL ||
		    instruction.flow == INSTRUCTION_CALL_INDIRECT ||
		    instruction.flow == INSTRUCTION_JUMP_INDIRECT)
			return false;
	}
	return spin->pause_count;
}

bool causal_is_spin_function_code(const uint8_t *code, size_t size, uint64_t address)
{
	struct pauses_and_memory_reads spin = {.pause_count = 0};
	struct instruction instruction;
	bool any = false;

	if (size > SPIN_FUNCTION_BYTES_MAX || !collect_pauses_and_reads(code, size, address, &spin))
		return false;
	for (size_t at = 0; at < size; at += instruction.length) {
		uint64_t here = address + at;

		if (!decode_instruction_at_offset(code, size, address, at, &instruction))
			return false;
		if (instruction.flow != INSTRUCTION_JUMP && instruction.flow != INSTRUCTION_BRANCH)
			continue;
		if (instruction.target < address || instruction.target >= address + size)
			return false;
		if (instruction.target > here)
			continue;
		if (!list_has_address_in_range(spin.pause_addresses, spin.pause_count,
					       instruction.target, here) ||
		    !list_has_address_in_range(spin.memory_read_addresses, spin.memory_read_count,
					       instruction.target, here))
			return false;
		any = true;
	}
	return any;
}

/* ---- in a file ---- */

static int add_spin_function_as_named_place(struct causal_places *places, const char *name)
{
	struct causal_named_place *larger =
		reallocarray(places->list, places->count + 1, sizeof(*larger));
	struct causal_named_place *place;

	if (!larger)
		return -ENOMEM;
	places->list = larger;
	place = &larger[places->count];
	*place = (struct causal_named_place){.kind = CAUSAL_POINT_SPIN, .function = strdup(name)};
	if (!place->function)
		return -ENOMEM;
	snprintf(place->name, sizeof(place->name), "%s", name);
	places->count++;
	return 0;
}

/* Where the user wants visits counted is no wait. */
static bool is_function_named_as_place(const struct causal_places *places, const char *name)
{
	for (size_t i = 0; i < places->count; i++) {
		if (places->list[i].function && !strcmp(places->list[i].function, name))
			return true;
	}
	return false;
}

struct spin_search_state {
	struct causal_places *places;
	struct elf_file *file;
	struct symbol_table *symbols; /* NULL: not needed yet */
	unsigned count;
};

static int read_symbols_once(struct spin_search_state *search)
{
	int error;

	if (search->symbols)
		return 0;
	error = symbols_create(&search->symbols);
	if (!error)
		error = symbols_add_file(search->symbols, search->file);
	return error ? error : symbols_sort_and_flatten(search->symbols);
}

/* One that has a pause at this place, in a segment. */
static int add_spin_function_around_pause(struct spin_search_state *search, const uint8_t *bytes,
					  const Elf64_Phdr *segment, uint64_t vaddr)
{
	int error = read_symbols_once(search);
	const struct symbol *symbol =
		error ? NULL : symbols_find_at_address(search->symbols, vaddr);
	uint64_t at;

	if (!symbol || symbol->address < segment->p_vaddr || !symbol->size ||
	    is_function_named_as_place(search->places, symbol->name) ||
	    strlen(symbol->name) >= CAUSAL_NAME_SIZE)
		return error;
	at = symbol->address - segment->p_vaddr;
	if (symbol->size > segment->p_filesz - at ||
	    !causal_is_spin_function_code(bytes + at, symbol->size, symbol->address))
		return 0;
	search->count++;
	return add_spin_function_as_named_place(search->places, symbol->name);
}

static int add_spin_functions_of_segment(struct spin_search_state *search,
					 const Elf64_Phdr *segment)
{
	static const uint8_t pause[] = {0xf3, 0x90};
	size_t size = segment->p_filesz;
	uint8_t *bytes, *at;
	int error = 0;

	if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || size < sizeof(pause) ||
	    size > SEARCHED_SEGMENT_BYTES_MAX)
		return 0;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	at = elf_read_bytes(search->file, segment->p_offset, bytes, size) ? NULL : bytes;
	while (!error && at && search->count < CAUSAL_SPIN_FUNCTIONS_MAX &&
	       (at = memmem(at, size - (size_t)(at - bytes), pause, sizeof(pause)))) {
		error = add_spin_function_around_pause(search, bytes, segment,
						       segment->p_vaddr + (uint64_t)(at - bytes));
		at += sizeof(pause);
	}
	free(bytes);
	return error;
}

int causal_places_add_spin_functions(struct causal_places *places, const char *path,
				     struct problem *problem)
{
	struct spin_search_state search = {.places = places};
	struct problem ignored;
	int error = 0;

	if (elf_open(path, &search.file, &ignored))
		return 0;
	for (size_t i = 0; !error && i < search.file->segment_count; i++)
		error = add_spin_functions_of_segment(&search, &search.file->segments[i]);
	symbols_destroy(search.symbols);
	elf_close(search.file);
	return error ? problem_set(problem, error, "out of memory") : 0;
}
