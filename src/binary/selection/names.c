/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See names.h.
 */
#include "binary/selection/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/debugfile.h"
#include "binary/minidebug.h"

enum { NAME_STRING_TABLES_MAX = 8 };

struct selection_symbol_names {
	struct selection_symbol_name *list;
	size_t count, capacity;
	uint8_t *string_tables[NAME_STRING_TABLES_MAX]; /* string tables that names point into */
	size_t string_table_count;
};

static int append_selection_name(struct selection_symbol_names *names,
				 const struct selection_symbol_name *name)
{
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? names->capacity * 2 : 1024;
		struct selection_symbol_name *list =
			reallocarray(names->list, capacity, sizeof(*names->list));

		if (!list)
			return -ENOMEM;
		names->list = list;
		names->capacity = capacity;
	}
	names->list[names->count++] = *name;
	return 0;
}

/* Few leading underscores, no dots (clones), global. */
static uint8_t compute_symbol_name_rank(const char *name, uint8_t linkage)
{
	unsigned rank = linkage == LINKAGE_GLOBAL ? 0 : linkage == LINKAGE_LOCAL ? 2 : 1;
	bool is_mangled = name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');

	for (unsigned i = 0; !is_mangled && i < 3 && name[i] == '_'; i++)
		rank += 4;
	if (strchr(name, '.'))
		rank += 16;
	return (uint8_t)rank;
}

static uint8_t symbol_to_linkage(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return LINKAGE_GLOBAL;
	case STB_WEAK:
		return LINKAGE_WEAK;
	case STB_GNU_UNIQUE:
		return LINKAGE_UNIQUE;
	default:
		return LINKAGE_LOCAL;
	}
}

static uint8_t symbol_to_visibility(const Elf64_Sym *symbol)
{
	static const uint8_t of_elf[] = {VISIBILITY_DEFAULT, VISIBILITY_INTERNAL, VISIBILITY_HIDDEN,
					 VISIBILITY_PROTECTED};

	return of_elf[ELF64_ST_VISIBILITY(symbol->st_other)];
}

static int add_names_of_symbols(struct selection_symbol_names *names,
				const struct elf_section_data *table,
				const struct elf_section_data *strings)
{
	int error = 0;

	for (size_t at = 0; !error && table->size - at >= sizeof(Elf64_Sym);
	     at += sizeof(Elf64_Sym)) {
		struct selection_symbol_name name;
		Elf64_Sym symbol;
		unsigned type;

		memcpy(&symbol, table->bytes + at, sizeof(symbol));
		type = ELF64_ST_TYPE(symbol.st_info);
		if (symbol.st_name >= strings->size || symbol.st_shndx == SHN_UNDEF ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
			continue;
		name = (struct selection_symbol_name){
			.vaddr = symbol.st_value,
			.mangled = (const char *)strings->bytes + symbol.st_name,
			.linkage = symbol_to_linkage(&symbol),
			.visibility = symbol_to_visibility(&symbol),
		};
		if (!*name.mangled || name.mangled[0] == '$')
			continue;
		name.rank = compute_symbol_name_rank(name.mangled, name.linkage);
		error = append_selection_name(names, &name);
	}
	return error;
}

/* Cuts "@VERSION" off all strings, in our own copy. */
static void cut_symbol_versions(struct elf_section_data *strings)
{
	uint8_t *end = strings->bytes + strings->size;

	for (uint8_t *at = strings->bytes; (at = memchr(at, '@', (size_t)(end - at))); at++) {
		if (at > strings->bytes && at[-1])
			*at = 0;
	}
}

/* The first section of that type. Damage is no error: there is just nothing to add. */
static int add_names_of_symbol_table(struct selection_symbol_names *names,
				     const struct elf_file *file, uint32_t type)
{
	const struct elf_section *section = NULL;
	struct elf_section_data table, strings;
	int error;

	for (size_t i = 0; !section && i < file->section_count; i++) {
		if (file->sections[i].type == type && file->sections[i].link < file->section_count)
			section = &file->sections[i];
	}
	if (!section || names->string_table_count == NAME_STRING_TABLES_MAX)
		return 0;
	error = elf_section_read(file, section, &table);
	if (error)
		return error == -ENOMEM ? error : 0;
	error = elf_section_read(file, &file->sections[section->link], &strings);
	if (!error) {
		cut_symbol_versions(&strings);
		names->string_tables[names->string_table_count++] = strings.bytes;
		error = add_names_of_symbols(names, &table, &strings);
	}
	elf_section_data_deinit(&table);
	return error == -ENOMEM ? error : 0;
}

static int add_symbol_names_of_elf_file(struct selection_symbol_names *names,
					const struct elf_file *file)
{
	struct elf_file *inner;
	int error = add_names_of_symbol_table(names, file, SHT_SYMTAB);

	if (!error)
		error = add_names_of_symbol_table(names, file, SHT_DYNSYM);
	if (!error && !minidebug_open(file, &inner)) {
		error = add_names_of_symbol_table(names, inner, SHT_SYMTAB);
		elf_close(inner);
	}
	return error;
}

static int compare_names_by_address(const void *left, const void *right)
{
	const struct selection_symbol_name *a = left, *b = right;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->mangled, b->mangled);
}

/* .symtab and .dynsym say the same twice. */
static void sort_and_merge_names(struct selection_symbol_names *names)
{
	size_t kept = 0;

	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), compare_names_by_address);
	for (size_t i = 0; i < names->count; i++) {
		if (kept && names->list[kept - 1].vaddr == names->list[i].vaddr &&
		    !strcmp(names->list[kept - 1].mangled, names->list[i].mangled))
			continue;
		names->list[kept++] = names->list[i];
	}
	names->count = kept;
}

int selection_symbol_names_load(const struct elf_file *file, const char *debug_path,
				struct selection_symbol_names **ret)
{
	struct selection_symbol_names *names = calloc(1, sizeof(*names));
	struct elf_file *debug;
	int error;

	if (!names)
		return -ENOMEM;
	error = add_symbol_names_of_elf_file(names, file);
	if (!error && !debugfile_find(file, debug_path, &debug)) {
		error = add_names_of_symbol_table(names, debug, SHT_SYMTAB);
		elf_close(debug);
	}
	if (error) {
		selection_symbol_names_destroy(names);
		return error;
	}
	sort_and_merge_names(names);
	*ret = names;
	return 0;
}

void selection_symbol_names_destroy(struct selection_symbol_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->string_table_count; i++)
		free(names->string_tables[i]);
	free(names->list);
	free(names);
}

const struct selection_symbol_name *
selection_symbol_names_find_at(const struct selection_symbol_names *names, uint64_t vaddr,
			       size_t *ret_count)
{
	size_t low = 0, high = names ? names->count : 0, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (names->list[middle].vaddr < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	end = low;
	while (names && end < names->count && names->list[end].vaddr == vaddr)
		end++;
	*ret_count = end - low;
	return end > low ? &names->list[low] : NULL;
}

const struct selection_symbol_name *
selection_symbol_names_get_nth(const struct selection_symbol_names *names, size_t index)
{
	return names && index < names->count ? &names->list[index] : NULL;
}

/* Bytes at `text` that look like brackets but are part of a name: "operator<<", "operator()" and
 * "(anonymous namespace)". */
static size_t count_name_bytes_like_brackets(const char *text)
{
	if (!strncmp(text, "(anonymous namespace)", 21))
		return 21;
	if (strncmp(text, "operator", 8))
		return 0;
	return !strncmp(text + 8, "()", 2) ? 10 : 8 + strspn(text + 8, "<>=-[]");
}

/* Up to the parenthesis of the arguments: the first one that is not part of the name and not inside
 * other brackets. */
char *selection_copy_plain_name(const char *demangled)
{
	size_t length = strlen(demangled), at = 0;
	int depth = 0;

	while (at < length) {
		char character = demangled[at];
		size_t skipped = count_name_bytes_like_brackets(demangled + at);

		if (character == '(' && !depth && !skipped)
			break;
		if (!skipped && (character == '<' || character == '{' || character == '['))
			depth++;
		if (!skipped && depth && (character == '>' || character == '}' || character == ']'))
			depth--;
		at += skipped ? skipped : 1;
	}
	return strndup(demangled, at);
}

/* Behind the last blank that is in no brackets; but blanks belong to names of operators. */
const char *selection_skip_return_type(const char *plain)
{
	static const char word[] = "operator";
	const char *name = plain;
	int depth = 0;

	for (const char *at = plain; *at;) {
		size_t skipped = count_name_bytes_like_brackets(at);

		if (!skipped && strchr("<{[(", *at))
			depth++;
		if (!skipped && depth && strchr(">}])", *at))
			depth--;
		if (*at == ' ' && !depth) {
			if (at - plain >= (long)strlen(word) &&
			    !strncmp(at - strlen(word), word, strlen(word)))
				break;
			name = at + 1;
		}
		at += skipped ? skipped : 1;
	}
	return name;
}

const char *selection_linkage_to_word(unsigned linkage)
{
	static const char *const words[] = {"none", "global", "weak", "local", "unique"};

	return words[linkage];
}

const char *selection_visibility_to_word(unsigned visibility)
{
	static const char *const words[] = {"none", "default", "internal", "hidden", "protected"};

	return words[visibility];
}
