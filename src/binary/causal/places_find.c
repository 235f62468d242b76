/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See places.h: where places are in a module.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/causal/places.h"
#include "binary/demangle.h"
#include "binary/dwarf/rows.h"
#include "binary/selection/names.h"
#include "common/array.h"

/* So far behind a line that has no code another one is taken for it. */
#define NEXT_CODE_LINE_DISTANCE_MAX 10u

struct found_place_address_list {
	struct causal_module *module;
	struct causal_named_place_address *list;
	size_t count, capacity;
};

static void add_found_place_address(struct found_place_address_list *found, uint64_t vaddr,
				    size_t place, bool is_function)
{
	uint64_t offset;

	if (found->count == found->capacity || !causal_module_has_code_at(found->module, vaddr) ||
	    !elf_vaddr_to_offset(found->module->file, vaddr, &offset))
		return;
	for (size_t i = 0; i < found->count; i++) {
		if (found->list[i].offset == offset && found->list[i].place == place)
			return;
	}
	found->list[found->count++] =
		(struct causal_named_place_address){offset, place, is_function};
}

/* ---- functions ---- */

/* Is what follows the name only what compilers add to whole functions? ".part" and ".cold" are not
 * what a call enters. */
static bool is_whole_function_clone_suffix(const char *rest)
{
	static const char *const clones[] = {".isra.", ".constprop.", ".lto_priv.", ".llvm."};

	if (strstr(rest, ".part.") || strstr(rest, ".cold"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(clones); i++) {
		if (!strncmp(rest, clones[i], strlen(clones[i])))
			return true;
	}
	return false;
}

/* The last part of "a::b<int>::c(char)": "c". What is mangled has it as well. */
static void copy_last_name_component(const char *name, char *ret, size_t size)
{
	size_t end = strcspn(name, "(<"), start = end;

	while (start && name[start - 1] != ':' && name[start - 1] != ' ')
		start--;
	snprintf(ret, size, "%.*s", (int)(end - start), name + start);
}

static bool mangled_symbol_demangles_to_name(const char *symbol, const char *name)
{
	char part[256], *readable, *plain = NULL;
	bool same;

	copy_last_name_component(name, part, sizeof(part));
	if (!strstr(symbol, part))
		return false;
	readable = demangle(symbol);
	if (readable)
		plain = selection_copy_plain_name(readable);
	same = readable && (!strcmp(readable, name) || (plain && !strcmp(plain, name)));
	free(plain);
	free(readable);
	return same;
}

static bool symbol_has_name(const char *symbol, const char *name)
{
	size_t length = strlen(name);

	if (!strncmp(symbol, name, length) &&
	    (!symbol[length] || is_whole_function_clone_suffix(symbol + length)))
		return true;
	return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R') &&
	       mangled_symbol_demangles_to_name(symbol, name);
}

static int find_addresses_of_all_function_places(const struct causal_places *places,
						 struct found_place_address_list *found)
{
	struct selection_symbol_names *names;
	const struct selection_symbol_name *name;
	int error = selection_symbol_names_load(found->module->file, NULL, &names);

	if (error)
		return error;
	for (size_t i = 0; (name = selection_symbol_names_get_nth(names, i)); i++) {
		for (size_t place = 0; place < places->count; place++) {
			if (places->list[place].function &&
			    symbol_has_name(name->mangled, places->list[place].function))
				add_found_place_address(found, name->vaddr, place, true);
		}
	}
	selection_symbol_names_destroy(names);
	return 0;
}

/* ---- lines ---- */

struct named_place_line_row {
	uint64_t vaddr;
	size_t place;
};

struct named_place_line_rows {
	const struct causal_places *places;
	uint32_t *nearest_code_line_by_place; /* by place: the line that counts, as far as rows
						 passed by */
	struct named_place_line_row *list;
	size_t count, capacity;
};

/* Is it that file, or are its last parts that? */
static bool path_matches_file_name(const char *path, const char *name)
{
	size_t whole = strlen(path), part = strlen(name);

	return part <= whole && !strcmp(path + whole - part, name) &&
	       (part == whole || path[whole - part - 1] == '/' || *name == '/');
}

/* The line itself, or the first one behind it that has code. */
static int update_nearest_code_lines_of_places(void *context,
					       const struct dwarf_line_code_range *line)
{
	struct named_place_line_rows *rows = context;

	for (size_t i = 0; i < rows->places->count; i++) {
		const struct causal_named_place *place = &rows->places->list[i];

		if (place->file && line->line >= place->line &&
		    line->line <= place->line + NEXT_CODE_LINE_DISTANCE_MAX &&
		    line->line < rows->nearest_code_line_by_place[i] &&
		    path_matches_file_name(line->file, place->file))
			rows->nearest_code_line_by_place[i] = line->line;
	}
	return 0;
}

static int collect_matching_line_row(void *context, const struct dwarf_line_code_range *line)
{
	struct named_place_line_rows *rows = context;

	for (size_t i = 0; i < rows->places->count; i++) {
		const struct causal_named_place *place = &rows->places->list[i];

		if (!place->file || rows->nearest_code_line_by_place[i] != line->line ||
		    !path_matches_file_name(line->file, place->file))
			continue;
		if (rows->count == rows->capacity) {
			size_t capacity = rows->capacity ? rows->capacity * 2 : 64;
			struct named_place_line_row *larger =
				reallocarray(rows->list, capacity, sizeof(*larger));

			if (!larger)
				return -ENOMEM;
			rows->list = larger;
			rows->capacity = capacity;
		}
		rows->list[rows->count++] = (struct named_place_line_row){line->start, i};
	}
	return 0;
}

static int compare_rows_by_address(const void *left, const void *right)
{
	const struct named_place_line_row *a = left, *b = right;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

/* Among the rows that are in the same function, or in the same inlined call, the first one counts:
 * a line with a loop has several. `result` has a place for each different address. */
static void add_first_row_of_each_function(const struct named_place_line_rows *rows,
					   const struct dwarf_lookup_result_lists *result,
					   struct found_place_address_list *found)
{
	size_t at = 0;

	for (size_t i = 0; i < rows->count; i++) {
		bool first = true;
		size_t other_at = 0;

		at += i && rows->list[i].vaddr != rows->list[i - 1].vaddr;
		for (size_t j = 0; first && j < i; j++) {
			other_at += j && rows->list[j].vaddr != rows->list[j - 1].vaddr;
			first = rows->list[j].place != rows->list[i].place ||
				result->places[other_at].scope != result->places[at].scope;
		}
		if (first)
			add_found_place_address(found, rows->list[i].vaddr, rows->list[i].place,
						false);
	}
}

static int find_addresses_of_all_line_places(const struct causal_places *places,
					     struct found_place_address_list *found)
{
	struct causal_module *module = found->module;
	struct named_place_line_rows rows = {.places = places};
	struct dwarf_lookup_result_lists result = {0};
	uint64_t *addresses = NULL;
	size_t count = 0;
	int error;

	rows.nearest_code_line_by_place =
		malloc((places->count + 1) * sizeof(*rows.nearest_code_line_by_place));
	if (!rows.nearest_code_line_by_place)
		return -ENOMEM;
	memset(rows.nearest_code_line_by_place, 0xff,
	       places->count * sizeof(*rows.nearest_code_line_by_place));
	error = dwarf_for_each_line_range(module->debug_info_file, module->string_pool,
					  update_nearest_code_lines_of_places, &rows);
	if (!error)
		error = dwarf_for_each_line_range(module->debug_info_file, module->string_pool,
						  collect_matching_line_row, &rows);
	if (!error && rows.count) {
		qsort(rows.list, rows.count, sizeof(*rows.list), compare_rows_by_address);
		addresses = malloc(rows.count * sizeof(*addresses));
		error = addresses ? 0 : -ENOMEM;
		for (size_t i = 0; !error && i < rows.count; i++) {
			if (!count || addresses[count - 1] != rows.list[i].vaddr)
				addresses[count++] = rows.list[i].vaddr;
		}
		if (!error)
			error = dwarf_lookup_addresses(module->debug_info_file, module->shared,
						       addresses, count, module->string_pool,
						       &result);
		if (!error)
			add_first_row_of_each_function(&rows, &result, found);
		dwarf_lookup_result_lists_deinit(&result);
	}
	free(addresses);
	free(rows.nearest_code_line_by_place);
	free(rows.list);
	return error == -ENODATA ? 0 : error;
}

int causal_named_places_find_addresses(const struct causal_places *places,
				       struct causal_module *module,
				       struct causal_named_place_address *ret, size_t maximum)
{
	struct found_place_address_list found = {
		.module = module, .list = ret, .capacity = maximum};
	bool lines = false, functions = false;
	int error = 0;

	for (size_t i = 0; i < places->count; i++) {
		lines |= places->list[i].file != NULL;
		functions |= places->list[i].function != NULL;
	}
	if (functions)
		error = find_addresses_of_all_function_places(places, &found);
	if (!error && lines && module->debug_info_file)
		error = find_addresses_of_all_line_places(places, &found);
	return error ? error : (int)found.count;
}
