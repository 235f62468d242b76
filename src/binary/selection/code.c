/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See code.h. What may be called is found once: addresses of functions, of entries of the
 * procedure linkage table, and of words of the global offset table, by the names that they stand
 * for. Functions are then decoded from their first byte to their last.
 */
#include "binary/selection/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/instruction.h"
#include "binary/instruction_text.h"
#include "binary/symbols/symbols.h"

struct selection_code_rules {
	const struct elf_file *file;
	const struct selection_pattern *callee_pattern, *instruction_text_pattern;
	uint64_t *callee_addresses; /* sorted addresses */
	size_t callee_address_count, callee_address_capacity;
	uint8_t *bytes; /* of the function looked at */
	size_t capacity;
};

static int append_callee_address(struct selection_code_rules *code, uint64_t address)
{
	if (code->callee_address_count == code->callee_address_capacity) {
		size_t capacity =
			code->callee_address_capacity ? code->callee_address_capacity * 2 : 64;
		uint64_t *larger = reallocarray(code->callee_addresses, capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		code->callee_addresses = larger;
		code->callee_address_capacity = capacity;
	}
	code->callee_addresses[code->callee_address_count++] = address;
	return 0;
}

static int add_callees_by_name(struct selection_code_rules *code,
			       const struct selection_symbol_names *names)
{
	const struct selection_symbol_name *name;
	int error = 0;

	for (size_t i = 0; !error && (name = selection_symbol_names_get_nth(names, i)); i++) {
		if (selection_pattern_matches_symbol(code->callee_pattern, name->mangled))
			error = append_callee_address(code, name->vaddr);
	}
	return error;
}

/* Entries of the procedure linkage table, which binary/symbols/symbols.h names "puts@plt". */
static int add_plt_callees(struct selection_code_rules *code)
{
	struct symbol_table *symbols;
	int error = symbols_create(&symbols);

	if (error)
		return error;
	error = symbols_add_file(symbols, code->file);
	if (!error)
		error = symbols_sort_and_flatten(symbols);
	for (size_t i = 0; !error && i < symbols_get_count(symbols); i++) {
		const struct symbol *symbol = symbols_get_nth(symbols, i);
		size_t length = strlen(symbol->name);
		char *name;

		if (length < 5 || strcmp(symbol->name + length - 4, "@plt") != 0)
			continue;
		name = strndup(symbol->name, length - 4);
		if (!name)
			error = -ENOMEM;
		else if (selection_pattern_matches_symbol(code->callee_pattern, name))
			error = append_callee_address(code, symbol->address);
		free(name);
	}
	symbols_destroy(symbols);
	return error;
}

/* Words that the loader fills with the address of a named function. */
static int add_got_slots_of_matching_callees(struct selection_code_rules *code,
					     const struct elf_section_data *relocations,
					     const struct elf_section_data *table,
					     const struct elf_section_data *strings)
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
		    selection_pattern_matches_symbol(code->callee_pattern,
						     (const char *)strings->bytes + symbol.st_name))
			error = append_callee_address(code, relocation.r_offset);
	}
	return error;
}

/* The relocations of one section with what they refer to. Damage: nothing is added. */
static int add_callees_of_relocations(struct selection_code_rules *code,
				      const struct elf_section *section)
{
	const struct elf_file *file = code->file;
	struct elf_section_data relocations = {0}, table = {0}, strings = {0};
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
		error = add_got_slots_of_matching_callees(code, &relocations, &table, &strings);
	elf_section_data_deinit(&relocations);
	elf_section_data_deinit(&table);
	elf_section_data_deinit(&strings);
	return error == -ENOMEM ? error : 0;
}

static int compare_callee_addresses(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static int find_callee_addresses(struct selection_code_rules *code,
				 const struct selection_symbol_names *names)
{
	int error = add_callees_by_name(code, names);

	if (!error)
		error = add_plt_callees(code);
	for (size_t i = 0; !error && i < code->file->section_count; i++)
		error = add_callees_of_relocations(code, &code->file->sections[i]);
	if (!error && code->callee_address_count)
		qsort(code->callee_addresses, code->callee_address_count,
		      sizeof(*code->callee_addresses), compare_callee_addresses);
	return error;
}

int selection_code_rules_create(const struct elf_file *file,
				const struct selection_symbol_names *names,
				const struct selection_pattern *callee,
				const struct selection_pattern *text,
				struct selection_code_rules **ret)
{
	struct selection_code_rules *code;
	int error;

	*ret = NULL;
	if (!callee->given && !text->given)
		return 0;
	code = calloc(1, sizeof(*code));
	if (!code)
		return -ENOMEM;
	code->file = file;
	code->callee_pattern = callee;
	code->instruction_text_pattern = text;
	error = callee->given ? find_callee_addresses(code, names) : 0;
	if (error) {
		selection_code_rules_destroy(code);
		return error;
	}
	*ret = code;
	return 0;
}

void selection_code_rules_destroy(struct selection_code_rules *code)
{
	if (!code)
		return;
	free(code->callee_addresses);
	free(code->bytes);
	free(code);
}

/* The function's bytes, or NULL. */
static const uint8_t *read_function_bytes(struct selection_code_rules *code,
					  const struct plan_function *function)
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
	    elf_read_bytes(code->file, offset, code->bytes, function->size))
		return NULL;
	return code->bytes;
}

static bool instruction_calls_matching_callee(const struct selection_code_rules *code,
					      const struct instruction *instruction)
{
	bool leads = instruction->flow == INSTRUCTION_CALL ||
		     instruction->flow == INSTRUCTION_JUMP ||
		     ((instruction->flow == INSTRUCTION_CALL_INDIRECT ||
		       instruction->flow == INSTRUCTION_JUMP_INDIRECT) &&
		      instruction->is_rip_relative);

	return leads &&
	       bsearch(&instruction->target, code->callee_addresses, code->callee_address_count,
		       sizeof(*code->callee_addresses), compare_callee_addresses);
}

bool selection_calls_matching_callee(struct selection_code_rules *code,
				     const struct plan_function *function)
{
	const uint8_t *bytes =
		code && code->callee_address_count ? read_function_bytes(code, function) : NULL;
	struct instruction instruction;

	for (uint32_t at = 0; bytes && at < function->size; at += instruction.length) {
		if (!instruction_decode(bytes + at, function->size - at, function->vaddr + at,
					&instruction))
			return false;
		if (instruction_calls_matching_callee(code, &instruction))
			return true;
	}
	return false;
}

bool selection_is_built_with_disassembler(void)
{
	return instruction_text_is_built_in();
}

bool selection_instruction_text_matches(struct selection_code_rules *code,
					const struct plan_function *function)
{
	const uint8_t *bytes = code && code->instruction_text_pattern->given
				       ? read_function_bytes(code, function)
				       : NULL;
	char text[INSTRUCTION_TEXT_BYTES];
	uint32_t length;

	for (uint32_t at = 0; bytes && at < function->size; at += length) {
		length = instruction_to_text(bytes + at, function->size - at, function->vaddr + at,
					     text);
		if (!length)
			return false;
		if (selection_pattern_matches(code->instruction_text_pattern, text))
			return true;
	}
	return false;
}
