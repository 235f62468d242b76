/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The addresses of one module looked up in its files: symbol table, debug information, chains.
 *
 * Names of real functions are those of the symbol table, so that they are the same with and without
 * debug information and the same that other profilers show; debug information adds the lines and
 * the inlined calls. Each source fails on its own: without debug information there are names,
 * without symbols there is still the advice what to install.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/symbols/private.h"
#include "binary/dwarf/dwarf.h"
#include "binary/symbols/symbols.h"

/* One run over the addresses of a module. */
struct module_symbol_lookup_state {
	struct symbolizer_result_builder *builder;
	struct symbol_table *symbols;
	struct dwarf_lookup_result_lists dwarf_lookup_result; /* places NULL: none */
	struct symbolizer_frame *frame_by_dwarf_function;     /* names of dwarf.functions once used;
						  function NULL:     not yet */
	const struct symbol *last_symbol; /* whose name is in `last_symbol_frame` */
	struct symbolizer_frame last_symbol_frame;
};

static int load_symbols(const struct symbolizer_files *files, struct symbol_table **ret)
{
	struct symbol_table *symbols;
	int error = symbols_create(&symbols);
	if (error)
		return error;
	error = symbols_add_file(symbols, files->file);
	if (!error && files->debug && symbols_get_origin(symbols) != SYMBOLS_FROM_SYMTAB)
		error = symbols_add_file(symbols, files->debug);
	if (!error)
		error = symbols_sort_and_flatten(symbols);
	if (error) {
		symbols_destroy(symbols);
		return error;
	}
	*ret = symbols;
	return 0;
}

static int look_up_dwarf_of_addresses(const struct symbolizer_files *files,
				      const uint64_t *addresses, size_t count,
				      struct module_symbol_lookup_state *lookup)
{
	const struct elf_file *file = symbolizer_files_find_dwarf(files);
	if (!file)
		return 0;
	int error = dwarf_lookup_addresses(file, files->shared, addresses, count,
					   lookup->builder->storage->string_pool,
					   &lookup->dwarf_lookup_result);
	if (error)
		return error == -ENOMEM ? error : 0;
	lookup->frame_by_dwarf_function = calloc(lookup->dwarf_lookup_result.function_count + 1,
						 sizeof(*lookup->frame_by_dwarf_function));
	return lookup->frame_by_dwarf_function ? 0 : -ENOMEM;
}

/* Name and id of a function that was inlined, or that has no symbol. */
static int make_frame_from_dwarf_function(struct module_symbol_lookup_state *lookup, uint32_t index,
					  struct symbolizer_frame *ret)
{
	struct symbolizer_frame *known = &lookup->frame_by_dwarf_function[index];
	if (!known->function) {
		const struct dwarf_function *function =
			&lookup->dwarf_lookup_result.functions[index];
		const char *name = function->linkage_name ? function->linkage_name : function->name;
		int error = symbolizer_builder_set_frame_name(lookup->builder,
							      name ? name : "[unnamed]", known);
		if (!error)
			error = symbolizer_find_or_add_function_id(lookup->builder, known->function,
								   function->line, 0,
								   &known->function_id);
		if (error)
			return error;
		known->function_line = function->line;
	}
	*ret = *known;
	return 0;
}

/* Name and id of a real function by its symbol; the line of its declaration where known. Addresses
 * come in order, so the last symbol is mostly this one as well. */
static int make_frame_from_symbol(struct module_symbol_lookup_state *lookup,
				  const struct symbol *symbol, uint32_t line,
				  struct symbolizer_frame *ret)
{
	if (symbol != lookup->last_symbol) {
		lookup->last_symbol = NULL;
		int error = symbolizer_builder_set_frame_name(lookup->builder, symbol->name,
							      &lookup->last_symbol_frame);
		if (error)
			return error;
		lookup->last_symbol = symbol;
		lookup->last_symbol_frame.function_line = UINT32_MAX;
	}
	if (lookup->last_symbol_frame.function_line != line) {
		int error = symbolizer_find_or_add_function_id(
			lookup->builder, lookup->last_symbol_frame.function, line,
			line ? 0 : symbol->address, &lookup->last_symbol_frame.function_id);
		if (error)
			return error;
		lookup->last_symbol_frame.function_line = line;
	}
	*ret = lookup->last_symbol_frame;
	return 0;
}

/* Appends the frames of one address, innermost first. */
static int append_frames_of_address(struct module_symbol_lookup_state *lookup,
				    const struct symbol *symbol,
				    const struct dwarf_source_location *place)
{
	const struct dwarf_lookup_result_lists *dwarf = &lookup->dwarf_lookup_result;
	const char *file = place->file;
	uint32_t line = place->line;
	uint32_t scope = place->scope;
	while (scope != DWARF_SCOPE_NONE || symbol) {
		struct symbolizer_frame frame;
		uint32_t function = scope != DWARF_SCOPE_NONE ? dwarf->scopes[scope].function
							      : DWARF_SCOPE_NONE;
		bool outermost = scope == DWARF_SCOPE_NONE ||
				 dwarf->scopes[scope].parent == DWARF_SCOPE_NONE;
		int error;
		if (outermost && symbol)
			error = make_frame_from_symbol(
				lookup, symbol,
				function != DWARF_SCOPE_NONE ? dwarf->functions[function].line : 0,
				&frame);
		else
			error = make_frame_from_dwarf_function(lookup, function, &frame);
		if (error)
			return error;
		frame.file = file;
		frame.line = line;
		frame.inlined = !outermost;
		error = symbolizer_builder_append_frame(lookup->builder, &frame);
		if (error || outermost)
			return error;
		file = dwarf->scopes[scope].call_file;
		line = dwarf->scopes[scope].call_line;
		scope = dwarf->scopes[scope].parent;
	}
	return 0;
}

static bool dwarf_source_locations_are_equal(const struct dwarf_source_location *a,
					     const struct dwarf_source_location *b)
{
	return a->scope == b->scope && a->file == b->file && a->line == b->line;
}

/* Fills the chains of addresses that have a link-time address, in ascending order; neighbours at
 * the same place share their frames. */
static int build_frame_chains_of_addresses(struct module_symbol_lookup_state *lookup,
					   const uint64_t *addresses, size_t count,
					   struct symbolizer_frame_chain *chains)
{
	static const struct dwarf_source_location nowhere = {.scope = DWARF_SCOPE_NONE};
	struct symbolizer_request_result *result = &lookup->builder->result;
	const struct dwarf_source_location *before = NULL;
	const struct symbol *symbol_before = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct dwarf_source_location *place =
			lookup->dwarf_lookup_result.places ? &lookup->dwarf_lookup_result.places[i]
							   : &nowhere;
		const struct symbol *symbol =
			symbols_find_at_address(lookup->symbols, addresses[i]);
		chains[i].vaddr = addresses[i];
		if (before && symbol == symbol_before &&
		    dwarf_source_locations_are_equal(place, before)) {
			chains[i].first = chains[i - 1].first;
			chains[i].count = chains[i - 1].count;
			continue;
		}
		chains[i].first = (uint32_t)result->frame_count;
		int error = append_frames_of_address(lookup, symbol, place);
		if (error)
			return error;
		chains[i].count = (uint32_t)result->frame_count - chains[i].first;
		before = place;
		symbol_before = symbol;
	}
	return 0;
}

static enum symbolizer_status_kind
find_symbolizer_status(const struct module_symbol_lookup_state *lookup)
{
	if (lookup->dwarf_lookup_result.places)
		return SYMBOLIZER_LINES_AND_NAMES;
	switch (symbols_get_origin(lookup->symbols)) {
	case SYMBOLS_FROM_SYMTAB:
	case SYMBOLS_FROM_MINIDEBUG:
		return SYMBOLIZER_NAMES_ONLY;
	case SYMBOLS_FROM_DYNSYM:
		return SYMBOLIZER_EXPORTS_ONLY;
	case SYMBOLS_FROM_NONE:
		break;
	}
	return SYMBOLIZER_NO_SYMBOLS;
}

static int build_frame_chains_from_files(struct symbolizer_result_builder *builder,
					 const struct symbolizer_request *request,
					 const struct symbolizer_files *files,
					 const uint64_t *addresses, size_t count,
					 struct symbolizer_frame_chain *chains)
{
	struct module_symbol_lookup_state lookup = {.builder = builder};
	int error = load_symbols(files, &lookup.symbols);
	if (!error && request->with_inlines)
		error = look_up_dwarf_of_addresses(files, addresses, count, &lookup);
	if (!error)
		error = build_frame_chains_of_addresses(&lookup, addresses, count, chains);
	if (!error)
		builder->result.status = find_symbolizer_status(&lookup);
	dwarf_lookup_result_lists_deinit(&lookup.dwarf_lookup_result);
	free(lookup.frame_by_dwarf_function);
	symbols_destroy(lookup.symbols);
	return error;
}

/* A link-time address and the place of its offset in the request. */
struct indexed_address {
	uint64_t address;
	size_t index;
};

static int compare_items_by_address(const void *left, const void *right)
{
	const struct indexed_address *a = left, *b = right;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* Converts what segments hold; ascending, as they are in every file that a linker made. */
static size_t offsets_to_address_items(const struct elf_file *file, const uint64_t *offsets,
				       size_t count, struct indexed_address *items,
				       struct symbolizer_frame_chain *chains)
{
	size_t used = 0;
	bool ascending = true;
	for (size_t i = 0; i < count; i++) {
		uint64_t address;
		chains[i].vaddr = offsets[i];
		if (!elf_offset_to_vaddr(file, offsets[i], &address))
			continue;
		ascending &= used == 0 || address > items[used - 1].address;
		items[used++] = (struct indexed_address){address, i};
	}
	if (!ascending)
		qsort(items, used, sizeof(*items), compare_items_by_address);
	return used;
}

/* Resolves the items' addresses and gives each item the chain of its address. */
static int resolve_address_items(struct symbolizer_result_builder *builder,
				 const struct symbolizer_request *request,
				 const struct symbolizer_files *files,
				 const struct indexed_address *items, size_t count)
{
	uint64_t *addresses = malloc((count + 1) * sizeof(*addresses));
	struct symbolizer_frame_chain *found = calloc(count + 1, sizeof(*found));
	size_t unique = 0;
	int error = addresses && found ? 0 : -ENOMEM;
	for (size_t i = 0; !error && i < count; i++) {
		if (unique == 0 || addresses[unique - 1] != items[i].address)
			addresses[unique++] = items[i].address;
	}
	if (!error)
		error = build_frame_chains_from_files(builder, request, files, addresses, unique,
						      found);
	for (size_t i = 0, at = 0; !error && i < count; i++) {
		at += found[at].vaddr != items[i].address;
		builder->result.chains[items[i].index] = found[at];
	}
	free(addresses);
	free(found);
	return error;
}

int symbolize_offsets_from_files(const struct symbolizer_request *request,
				 const struct symbolizer_files *files, const uint64_t *offsets,
				 size_t count, struct symbolizer_request_result *ret)
{
	struct symbolizer_result_builder builder;
	int error = symbolizer_builder_init(&builder, count);
	if (error)
		return error;
	struct indexed_address *items = malloc((count + 1) * sizeof(*items));
	if (items) {
		size_t used = offsets_to_address_items(files->file, offsets, count, items,
						       builder.result.chains);
		error = resolve_address_items(&builder, request, files, items, used);
		free(items);
	} else {
		error = -ENOMEM;
	}
	if (error) {
		symbolizer_builder_deinit(&builder);
		return error;
	}
	symbolizer_builder_finish(&builder, ret);
	return 0;
}
