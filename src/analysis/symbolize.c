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

#include "analysis/symbolize_internal.h"
#include "binary/dwarf.h"
#include "binary/symbols.h"

/* One run over the addresses of a module. */
struct lookup {
	struct symbolize_builder *builder;
	struct symbols *symbols;
	struct dwarf_result dwarf;         /* places NULL: none */
	struct symbolize_frame *functions; /* names of dwarf.functions once used; function NULL:
					      not yet */
	const struct symbol *last_symbol;  /* whose name is in `last_name` */
	struct symbolize_frame last_name;
};

static int load_symbols(const struct symbolize_files *files, struct symbols **ret)
{
	struct symbols *symbols;
	int error = symbols_create(&symbols);
	if (error)
		return error;
	error = symbols_add(symbols, files->file);
	if (!error && files->debug && symbols_origin(symbols) != SYMBOLS_FULL)
		error = symbols_add(symbols, files->debug);
	if (!error)
		error = symbols_finish(symbols);
	if (error) {
		symbols_destroy(symbols);
		return error;
	}
	*ret = symbols;
	return 0;
}

static int load_dwarf(const struct symbolize_files *files, const uint64_t *addresses, size_t count,
		      struct lookup *lookup)
{
	const struct elf_file *file = symbolize_files_dwarf(files);
	if (!file)
		return 0;
	int error = dwarf_lookup(file, files->shared, addresses, count,
				 lookup->builder->storage->pool, &lookup->dwarf);
	if (error)
		return error == -ENOMEM ? error : 0;
	lookup->functions = calloc(lookup->dwarf.function_count + 1, sizeof(*lookup->functions));
	return lookup->functions ? 0 : -ENOMEM;
}

/* Name and id of a function that was inlined, or that has no symbol. */
static int dwarf_function_frame(struct lookup *lookup, uint32_t index, struct symbolize_frame *ret)
{
	struct symbolize_frame *known = &lookup->functions[index];
	if (!known->function) {
		const struct dwarf_function *function = &lookup->dwarf.functions[index];
		const char *name = function->linkage_name ? function->linkage_name : function->name;
		int error =
			symbolize_builder_name(lookup->builder, name ? name : "[unnamed]", known);
		if (!error)
			error = symbolize_builder_function(lookup->builder, known->function,
							   function->line, 0, &known->function_id);
		if (error)
			return error;
		known->function_line = function->line;
	}
	*ret = *known;
	return 0;
}

/* Name and id of a real function by its symbol; the line of its declaration where known. Addresses
 * come in order, so the last symbol is mostly this one as well. */
static int symbol_frame(struct lookup *lookup, const struct symbol *symbol, uint32_t line,
			struct symbolize_frame *ret)
{
	if (symbol != lookup->last_symbol) {
		lookup->last_symbol = NULL;
		int error =
			symbolize_builder_name(lookup->builder, symbol->name, &lookup->last_name);
		if (error)
			return error;
		lookup->last_symbol = symbol;
		lookup->last_name.function_line = UINT32_MAX;
	}
	if (lookup->last_name.function_line != line) {
		int error = symbolize_builder_function(lookup->builder, lookup->last_name.function,
						       line, line ? 0 : symbol->address,
						       &lookup->last_name.function_id);
		if (error)
			return error;
		lookup->last_name.function_line = line;
	}
	*ret = lookup->last_name;
	return 0;
}

/* Appends the frames of one address, innermost first. */
static int append_chain(struct lookup *lookup, const struct symbol *symbol,
			const struct dwarf_place *place)
{
	const struct dwarf_result *dwarf = &lookup->dwarf;
	const char *file = place->file;
	uint32_t line = place->line;
	uint32_t scope = place->scope;
	while (scope != DWARF_NONE || symbol) {
		struct symbolize_frame frame;
		uint32_t function =
			scope != DWARF_NONE ? dwarf->scopes[scope].function : DWARF_NONE;
		bool outermost = scope == DWARF_NONE || dwarf->scopes[scope].parent == DWARF_NONE;
		int error;
		if (outermost && symbol)
			error = symbol_frame(
				lookup, symbol,
				function != DWARF_NONE ? dwarf->functions[function].line : 0,
				&frame);
		else
			error = dwarf_function_frame(lookup, function, &frame);
		if (error)
			return error;
		frame.file = file;
		frame.line = line;
		frame.inlined = !outermost;
		error = symbolize_builder_frame(lookup->builder, &frame);
		if (error || outermost)
			return error;
		file = dwarf->scopes[scope].call_file;
		line = dwarf->scopes[scope].call_line;
		scope = dwarf->scopes[scope].parent;
	}
	return 0;
}

static bool place_equal(const struct dwarf_place *a, const struct dwarf_place *b)
{
	return a->scope == b->scope && a->file == b->file && a->line == b->line;
}

/* Fills the chains of addresses that have a link-time address, in ascending order; neighbours at
 * the same place share their frames. */
static int build_chains(struct lookup *lookup, const uint64_t *addresses, size_t count,
			struct symbolize_chain *chains)
{
	static const struct dwarf_place nowhere = {.scope = DWARF_NONE};
	struct symbolize_result *result = &lookup->builder->result;
	const struct dwarf_place *before = NULL;
	const struct symbol *symbol_before = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct dwarf_place *place =
			lookup->dwarf.places ? &lookup->dwarf.places[i] : &nowhere;
		const struct symbol *symbol = symbols_find(lookup->symbols, addresses[i]);
		chains[i].vaddr = addresses[i];
		if (before && symbol == symbol_before && place_equal(place, before)) {
			chains[i].first = chains[i - 1].first;
			chains[i].count = chains[i - 1].count;
			continue;
		}
		chains[i].first = (uint32_t)result->frame_count;
		int error = append_chain(lookup, symbol, place);
		if (error)
			return error;
		chains[i].count = (uint32_t)result->frame_count - chains[i].first;
		before = place;
		symbol_before = symbol;
	}
	return 0;
}

static enum symbolize_status status_of(const struct lookup *lookup)
{
	if (lookup->dwarf.places)
		return SYMBOLIZE_FULL;
	switch (symbols_origin(lookup->symbols)) {
	case SYMBOLS_FULL:
	case SYMBOLS_MINI:
		return SYMBOLIZE_NAMES;
	case SYMBOLS_EXPORTS:
		return SYMBOLIZE_EXPORTS;
	case SYMBOLS_NONE:
		break;
	}
	return SYMBOLIZE_NO_SYMBOLS;
}

static int resolve(struct symbolize_builder *builder, const struct symbolize_request *request,
		   const struct symbolize_files *files, const uint64_t *addresses, size_t count,
		   struct symbolize_chain *chains)
{
	struct lookup lookup = {.builder = builder};
	int error = load_symbols(files, &lookup.symbols);
	if (!error && request->inlines)
		error = load_dwarf(files, addresses, count, &lookup);
	if (!error)
		error = build_chains(&lookup, addresses, count, chains);
	if (!error)
		builder->result.status = status_of(&lookup);
	dwarf_result_deinit(&lookup.dwarf);
	free(lookup.functions);
	symbols_destroy(lookup.symbols);
	return error;
}

/* A link-time address and the place of its offset in the request. */
struct item {
	uint64_t address;
	size_t index;
};

static int item_compare(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* Converts what segments hold; ascending, as they are in every file that a linker made. */
static size_t items_convert(const struct elf_file *file, const uint64_t *offsets, size_t count,
			    struct item *items, struct symbolize_chain *chains)
{
	size_t used = 0;
	bool ascending = true;
	for (size_t i = 0; i < count; i++) {
		uint64_t address;
		chains[i].vaddr = offsets[i];
		if (!elf_offset_to_vaddr(file, offsets[i], &address))
			continue;
		ascending &= used == 0 || address > items[used - 1].address;
		items[used++] = (struct item){address, i};
	}
	if (!ascending)
		qsort(items, used, sizeof(*items), item_compare);
	return used;
}

/* Resolves the items' addresses and gives each item the chain of its address. */
static int items_resolve(struct symbolize_builder *builder, const struct symbolize_request *request,
			 const struct symbolize_files *files, const struct item *items,
			 size_t count)
{
	uint64_t *addresses = malloc((count + 1) * sizeof(*addresses));
	struct symbolize_chain *found = calloc(count + 1, sizeof(*found));
	size_t unique = 0;
	int error = addresses && found ? 0 : -ENOMEM;
	for (size_t i = 0; !error && i < count; i++) {
		if (unique == 0 || addresses[unique - 1] != items[i].address)
			addresses[unique++] = items[i].address;
	}
	if (!error)
		error = resolve(builder, request, files, addresses, unique, found);
	for (size_t i = 0, at = 0; !error && i < count; i++) {
		at += found[at].vaddr != items[i].address;
		builder->result.chains[items[i].index] = found[at];
	}
	free(addresses);
	free(found);
	return error;
}

int symbolize_compute(const struct symbolize_request *request, const struct symbolize_files *files,
		      const uint64_t *offsets, size_t count, struct symbolize_result *ret)
{
	struct symbolize_builder builder;
	int error = symbolize_builder_init(&builder, count);
	if (error)
		return error;
	struct item *items = malloc((count + 1) * sizeof(*items));
	if (items) {
		size_t used =
			items_convert(files->file, offsets, count, items, builder.result.chains);
		error = items_resolve(&builder, request, files, items, used);
		free(items);
	} else {
		error = -ENOMEM;
	}
	if (error) {
		symbolize_builder_deinit(&builder);
		return error;
	}
	symbolize_builder_finish(&builder, ret);
	return 0;
}
