/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See selection_code.h. What may be called is found once: addresses of functions, of entries of the
 * procedure linkage table, and of words of the global offset table, by the names that they stand
 * for. Functions are then decoded from their first byte to their last.
 */
#include "binary/selection_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/instruction.h"
#include "binary/symbols.h"

#ifdef KYMO_HAVE_ZYDIS
#include <Zydis/Zydis.h>
#endif

struct selection_code {
	const struct elf_file *file;
	const struct selection_pattern *callee, *text;
	uint64_t *callees; /* sorted addresses */
	size_t callee_count, callee_capacity;
	uint8_t *bytes; /* of the function looked at */
	size_t capacity;
};

static int code_add_callee(struct selection_code *code, uint64_t address)
{
	if (code->callee_count == code->callee_capacity) {
		size_t capacity = code->callee_capacity ? code->callee_capacity * 2 : 64;
		uint64_t *larger = reallocarray(code->callees, capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		code->callees = larger;
		code->callee_capacity = capacity;
	}
	code->callees[code->callee_count++] = address;
	return 0;
}

static int code_add_named(struct selection_code *code, const struct selection_names *names)
{
	const struct selection_name *name;
	int error = 0;

	for (size_t i = 0; !error && (name = selection_names_nth(names, i)); i++) {
		if (selection_pattern_matches_symbol(code->callee, name->mangled))
			error = code_add_callee(code, name->vaddr);
	}
	return error;
}

/* Entries of the procedure linkage table, which symbols.h names "puts@plt". */
static int code_add_linkage(struct selection_code *code)
{
	struct symbols *symbols;
	int error = symbols_create(&symbols);

	if (error)
		return error;
	error = symbols_add(symbols, code->file);
	if (!error)
		error = symbols_finish(symbols);
	for (size_t i = 0; !error && i < symbols_count(symbols); i++) {
		const struct symbol *symbol = symbols_at(symbols, i);
		size_t length = strlen(symbol->name);
		char *name;

		if (length < 5 || strcmp(symbol->name + length - 4, "@plt") != 0)
			continue;
		name = strndup(symbol->name, length - 4);
		if (!name)
			error = -ENOMEM;
		else if (selection_pattern_matches_symbol(code->callee, name))
			error = code_add_callee(code, symbol->address);
		free(name);
	}
	symbols_destroy(symbols);
	return error;
}

/* Words that the loader fills with the address of a named function. */
static int code_add_words(struct selection_code *code, const struct elf_data *relocations,
			  const struct elf_data *table, const struct elf_data *strings)
{
	int error = 0;

	for (size_t at = 0; !error && relocations->size - at >= sizeof(Elf64_Rela);
	     at += sizeof(Elf64_Rela)) {
		Elf64_Rela relocation;
		Elf64_Sym symbol;
		uint64_t index, type;

		memcpy(&relocation, relocations->bytes + at, sizeof(relocation));
		index = ELF64_R_SYM(relocation.r_info);
		type = ELF64_R_TYPE(relocation.r_info);
		if ((type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT) ||
		    index >= table->size / sizeof(symbol))
			continue;
		memcpy(&symbol, table->bytes + index * sizeof(symbol), sizeof(symbol));
		if (symbol.st_name < strings->size &&
		    selection_pattern_matches_symbol(code->callee,
						     (const char *)strings->bytes + symbol.st_name))
			error = code_add_callee(code, relocation.r_offset);
	}
	return error;
}

/* The relocations of one section with what they refer to. Damage: nothing is added. */
static int code_add_relocations(struct selection_code *code, const struct elf_section *section)
{
	const struct elf_file *file = code->file;
	struct elf_data relocations = {0}, table = {0}, strings = {0};
	const struct elf_section *symbols;
	int error;

	if (section->type != SHT_RELA || !section->link || section->link >= file->section_count)
		return 0;
	symbols = &file->sections[section->link];
	if (symbols->link >= file->section_count)
		return 0;
	error = elf_section_read(file, section, &relocations);
	if (!error && !(error = elf_section_read(file, symbols, &table)))
		error = elf_section_read(file, &file->sections[symbols->link], &strings);
	if (!error)
		error = code_add_words(code, &relocations, &table, &strings);
	elf_data_deinit(&relocations);
	elf_data_deinit(&table);
	elf_data_deinit(&strings);
	return error == -ENOMEM ? error : 0;
}

static int code_order(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static int code_find_callees(struct selection_code *code, const struct selection_names *names)
{
	int error = code_add_named(code, names);

	if (!error)
		error = code_add_linkage(code);
	for (size_t i = 0; !error && i < code->file->section_count; i++)
		error = code_add_relocations(code, &code->file->sections[i]);
	if (!error && code->callee_count)
		qsort(code->callees, code->callee_count, sizeof(*code->callees), code_order);
	return error;
}

int selection_code_create(const struct elf_file *file, const struct selection_names *names,
			  const struct selection_pattern *callee,
			  const struct selection_pattern *text, struct selection_code **ret)
{
	struct selection_code *code;
	int error;

	*ret = NULL;
	if (!callee->given && !text->given)
		return 0;
	code = calloc(1, sizeof(*code));
	if (!code)
		return -ENOMEM;
	code->file = file;
	code->callee = callee;
	code->text = text;
	error = callee->given ? code_find_callees(code, names) : 0;
	if (error) {
		selection_code_destroy(code);
		return error;
	}
	*ret = code;
	return 0;
}

void selection_code_destroy(struct selection_code *code)
{
	if (!code)
		return;
	free(code->callees);
	free(code->bytes);
	free(code);
}

/* The function's bytes, or NULL. */
static const uint8_t *code_bytes(struct selection_code *code, const struct plan_function *function)
{
	uint64_t offset;

	if (code->capacity < function->size) {
		uint8_t *larger = realloc(code->bytes, function->size);

		if (!larger)
			return NULL;
		code->bytes = larger;
		code->capacity = function->size;
	}
	if (!elf_vaddr_to_offset(code->file, function->vaddr, &offset) ||
	    elf_read(code->file, offset, code->bytes, function->size))
		return NULL;
	return code->bytes;
}

static bool code_is_callee(const struct selection_code *code, const struct instruction *instruction)
{
	bool leads = instruction->flow == INSTRUCTION_CALL ||
		     instruction->flow == INSTRUCTION_JUMP ||
		     ((instruction->flow == INSTRUCTION_CALL_INDIRECT ||
		       instruction->flow == INSTRUCTION_JUMP_INDIRECT) &&
		      instruction->rip_relative);

	return leads && bsearch(&instruction->target, code->callees, code->callee_count,
				sizeof(*code->callees), code_order);
}

bool selection_code_calls(struct selection_code *code, const struct plan_function *function)
{
	const uint8_t *bytes = code && code->callee_count ? code_bytes(code, function) : NULL;
	struct instruction instruction;

	for (uint32_t at = 0; bytes && at < function->size; at += instruction.length) {
		if (!instruction_decode(bytes + at, function->size - at, function->vaddr + at,
					&instruction))
			return false;
		if (code_is_callee(code, &instruction))
			return true;
	}
	return false;
}

#ifdef KYMO_HAVE_ZYDIS
bool selection_code_has_text(void)
{
	return true;
}

bool selection_code_reads(struct selection_code *code, const struct plan_function *function)
{
	const uint8_t *bytes = code && code->text->given ? code_bytes(code, function) : NULL;
	ZydisDisassembledInstruction instruction;

	for (uint32_t at = 0; bytes && at < function->size; at += instruction.info.length) {
		if (!ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64,
							function->vaddr + at, bytes + at,
							function->size - at, &instruction)))
			return false;
		if (selection_pattern_matches(code->text, instruction.text))
			return true;
	}
	return false;
}
#else
bool selection_code_has_text(void)
{
	return false;
}

bool selection_code_reads(struct selection_code *code, const struct plan_function *function)
{
	(void)code;
	(void)function;
	return false;
}
#endif
