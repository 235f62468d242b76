/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_spins.h.
 */
#include "binary/causal_spins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/instruction.h"
#include "binary/symbols.h"

#define SPIN_SIZE_MAX 512u         /* of a function */
#define TEXT_MAX      (1ull << 28) /* of a segment; larger programs are not searched */
#define PAUSES_MAX    8u

struct spin {
	uint64_t pauses[PAUSES_MAX], reads[PAUSES_MAX]; /* addresses; the last reads */
	unsigned pause_count, read_count;
};

static bool is_pause(const struct instruction *instruction)
{
	return !instruction->map && instruction->opcode == 0x90 && instruction->length == 2 &&
	       instruction->prefixes == INSTRUCTION_PREFIX_F3;
}

/* An operand in memory, other than an address that is only computed (lea) or a hint (nop). */
static bool uses_memory(const struct instruction *instruction)
{
	bool lea = !instruction->map && instruction->opcode == 0x8d;
	bool nop =
		instruction->map == 1 && instruction->opcode >= 0x18 && instruction->opcode <= 0x1f;

	return instruction->has_modrm && instruction->modrm >> 6 != 3 && !lea && !nop;
}

static bool any_within(const uint64_t *list, unsigned count, uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < count; i++) {
		if (list[i] >= from && list[i] <= to)
			return true;
	}
	return false;
}

static void note(uint64_t *list, unsigned *count, uint64_t address)
{
	if (*count < PAUSES_MAX)
		list[(*count)++] = address;
}

static bool decode(const uint8_t *code, size_t size, uint64_t address, size_t at,
		   struct instruction *ret)
{
	return instruction_decode(code + at, size - at, address + at, ret);
}

/* Pauses and uses of memory; false: it calls something, or goes where nobody knows. */
static bool look(const uint8_t *code, size_t size, uint64_t address, struct spin *spin)
{
	struct instruction instruction;

	for (size_t at = 0; at < size; at += instruction.length) {
		if (!decode(code, size, address, at, &instruction))
			return false;
		if (is_pause(&instruction))
			note(spin->pauses, &spin->pause_count, address + at);
		if (uses_memory(&instruction))
			note(spin->reads, &spin->read_count, address + at);
		if (instruction.flow == INSTRUCTION_CALL ||
		    instruction.flow == INSTRUCTION_CALL_INDIRECT ||
		    instruction.flow == INSTRUCTION_JUMP_INDIRECT)
			return false;
	}
	return spin->pause_count;
}

bool causal_spins_is_one(const uint8_t *code, size_t size, uint64_t address)
{
	struct spin spin = {.pause_count = 0};
	struct instruction instruction;
	bool any = false;

	if (size > SPIN_SIZE_MAX || !look(code, size, address, &spin))
		return false;
	for (size_t at = 0; at < size; at += instruction.length) {
		uint64_t here = address + at;

		if (!decode(code, size, address, at, &instruction))
			return false;
		if (instruction.flow != INSTRUCTION_JUMP && instruction.flow != INSTRUCTION_BRANCH)
			continue;
		if (instruction.target < address || instruction.target >= address + size)
			return false;
		if (instruction.target > here)
			continue;
		if (!any_within(spin.pauses, spin.pause_count, instruction.target, here) ||
		    !any_within(spin.reads, spin.read_count, instruction.target, here))
			return false;
		any = true;
	}
	return any;
}

/* ---- in a file ---- */

static int add_place(struct causal_places *places, const char *name)
{
	struct causal_place *larger =
		reallocarray(places->list, places->count + 1, sizeof(*larger));
	struct causal_place *place;

	if (!larger)
		return -ENOMEM;
	places->list = larger;
	place = &larger[places->count];
	*place = (struct causal_place){.kind = CAUSAL_POINT_SPIN, .function = strdup(name)};
	if (!place->function)
		return -ENOMEM;
	snprintf(place->name, sizeof(place->name), "%s", name);
	places->count++;
	return 0;
}

/* Where the user wants visits counted is no wait. */
static bool is_named(const struct causal_places *places, const char *name)
{
	for (size_t i = 0; i < places->count; i++) {
		if (places->list[i].function && !strcmp(places->list[i].function, name))
			return true;
	}
	return false;
}

struct search {
	struct causal_places *places;
	struct elf_file *file;
	struct symbols *symbols; /* NULL: not needed yet */
	unsigned count;
};

static int open_symbols(struct search *search)
{
	int error;

	if (search->symbols)
		return 0;
	error = symbols_create(&search->symbols);
	if (!error)
		error = symbols_add(search->symbols, search->file);
	return error ? error : symbols_finish(search->symbols);
}

/* One that has a pause at this place, in a segment. */
static int consider(struct search *search, const uint8_t *bytes, const Elf64_Phdr *segment,
		    uint64_t vaddr)
{
	int error = open_symbols(search);
	const struct symbol *symbol = error ? NULL : symbols_find(search->symbols, vaddr);
	uint64_t at;

	if (!symbol || symbol->address < segment->p_vaddr || !symbol->size ||
	    is_named(search->places, symbol->name) || strlen(symbol->name) >= CAUSAL_NAME_SIZE)
		return error;
	at = symbol->address - segment->p_vaddr;
	if (symbol->size > segment->p_filesz - at ||
	    !causal_spins_is_one(bytes + at, symbol->size, symbol->address))
		return 0;
	search->count++;
	return add_place(search->places, symbol->name);
}

static int search_segment(struct search *search, const Elf64_Phdr *segment)
{
	static const uint8_t pause[] = {0xf3, 0x90};
	size_t size = segment->p_filesz;
	uint8_t *bytes, *at;
	int error = 0;

	if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || size < sizeof(pause) ||
	    size > TEXT_MAX)
		return 0;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	at = elf_read(search->file, segment->p_offset, bytes, size) ? NULL : bytes;
	while (!error && at && search->count < CAUSAL_SPINS_MAX &&
	       (at = memmem(at, size - (size_t)(at - bytes), pause, sizeof(pause)))) {
		error = consider(search, bytes, segment, segment->p_vaddr + (uint64_t)(at - bytes));
		at += sizeof(pause);
	}
	free(bytes);
	return error;
}

int causal_spins_add(struct causal_places *places, const char *path, struct problem *problem)
{
	struct search search = {.places = places};
	struct problem ignored;
	int error = 0;

	if (elf_open(path, &search.file, &ignored))
		return 0;
	for (size_t i = 0; !error && i < search.file->segment_count; i++)
		error = search_segment(&search, &search.file->segments[i]);
	symbols_destroy(search.symbols);
	elf_close(search.file);
	return error ? problem_set(problem, error, "out of memory") : 0;
}
