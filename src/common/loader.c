/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See loader.h. A handle of dlopen(3) is a struct link_map in glibc, and what dlinfo(3) answers
 * with; dlinfo itself would leave a message.
 */
#include "common/loader.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/symbol_hash.h"

static void *find_symbol_address_in_object(const struct symbol_hash_tables *object, uint64_t base,
					   const char *name)
{
	const Elf64_Sym *symbol = symbol_hash_find_symbol(object, SYMBOL_HASH_FUNCTIONS_AND_DATA,
							  name, symbol_hash_compute_gnu_hash(name));
	union {
		void *address;
		void *(*ifunc_resolver)(void);
	} found = {symbol ? (void *)(uintptr_t)(base + symbol->st_value) : NULL};

	if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		return found.ifunc_resolver();
	return found.address;
}

static bool object_has_address(const struct dl_phdr_info *info, uint64_t address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD &&
		    address - (info->dlpi_addr + header->p_vaddr) < header->p_memsz)
			return true;
	}
	return false;
}

struct symbol_search_state {
	enum loader_scope scope;
	const void *own;
	const char *const *names;
	void **found;
	size_t count, missing_count;
	bool has_passed_own_object;
};

static int search_object_for_symbols(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct symbol_search_state *search = argument;
	struct symbol_hash_tables object;
	bool own = search->scope != LOADER_SCOPE_ANY_OBJECT &&
		   object_has_address(info, (uint64_t)(uintptr_t)search->own);

	(void)size;
	if (own)
		search->has_passed_own_object = true;
	if (own != (search->scope == LOADER_SCOPE_OWN_OBJECT) ||
	    (search->scope == LOADER_SCOPE_AFTER_OWN_OBJECT && !search->has_passed_own_object) ||
	    !symbol_hash_read_object(&object, info))
		return 0;
	for (size_t i = 0; i < search->count; i++) {
		if (search->found[i])
			continue;
		search->found[i] =
			find_symbol_address_in_object(&object, info->dlpi_addr, search->names[i]);
		search->missing_count -= search->found[i] != NULL;
	}
	return !search->missing_count;
}

void loader_find_symbols(enum loader_scope where, const void *own, const char *const *names,
			 void **found, size_t count)
{
	struct symbol_search_state search = {where, own, names, found, count, count, false};
	int error = errno;

	for (size_t i = 0; i < count; i++)
		found[i] = NULL;
	dl_iterate_phdr(search_object_for_symbols, &search);
	errno = error;
}

void *loader_find_symbol(enum loader_scope where, const void *own, const char *name)
{
	void *found;

	loader_find_symbols(where, own, &name, &found, 1);
	return found;
}

struct symbol_visit_args {
	const char *name;
	void (*each)(void *symbol, void *argument);
	void *argument;
};

static int visit_symbol_of_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	const struct symbol_visit_args *visit = argument;
	struct symbol_hash_tables object;
	void *symbol;

	(void)size;
	if (!symbol_hash_read_object(&object, info))
		return 0;
	symbol = find_symbol_address_in_object(&object, info->dlpi_addr, visit->name);
	if (symbol)
		visit->each(symbol, visit->argument);
	return 0;
}

void loader_visit_symbol_definitions(const char *name, void (*each)(void *symbol, void *argument),
				     void *argument)
{
	struct symbol_visit_args visit = {name, each, argument};
	int error = errno;

	dl_iterate_phdr(visit_symbol_of_object, &visit);
	errno = error;
}

void *loader_find_symbol_in_handle(void *handle, const char *name)
{
	const struct link_map *map = handle;
	struct symbol_hash_tables object;

	return map && symbol_hash_read_dynamic_section(&object, map->l_addr, map->l_ld)
		       ? find_symbol_address_in_object(&object, map->l_addr, name)
		       : NULL;
}
