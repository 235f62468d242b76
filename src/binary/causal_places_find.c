/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_places.h: where places are in a module.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/causal_places.h"
#include "binary/demangle.h"
#include "binary/dwarf_rows.h"
#include "binary/selection_names.h"

/* So far behind a line that has no code another one is taken for it. */
#define LINES_ON 10u

struct found {
	struct causal_module *module;
	struct causal_place_address *list;
	size_t count, maximum;
};

static void found_add(struct found *found, uint64_t vaddr, size_t place, bool is_function)
{
	uint64_t offset;

	if (found->count == found->maximum || !causal_module_is_code(found->module, vaddr) ||
	    !elf_vaddr_to_offset(found->module->file, vaddr, &offset))
		return;
	for (size_t i = 0; i < found->count; i++) {
		if (found->list[i].offset == offset && found->list[i].place == place)
			return;
	}
	found->list[found->count++] = (struct causal_place_address){offset, place, is_function};
}

/* ---- functions ---- */

/* Is what follows the name only what compilers add to whole functions? ".part" and ".cold" are not
 * what a call enters. */
static bool is_clone(const char *rest)
{
	static const char *const clones[] = {".isra.", ".constprop.", ".lto_priv.", ".llvm."};

	if (strstr(rest, ".part.") || strstr(rest, ".cold"))
		return false;
	for (size_t i = 0; i < sizeof(clones) / sizeof(*clones); i++) {
		if (!strncmp(rest, clones[i], strlen(clones[i])))
			return true;
	}
	return false;
}

/* The last part of "a::b<int>::c(char)": "c". What is mangled has it as well. */
static void last_part(const char *name, char *ret, size_t size)
{
	size_t end = strcspn(name, "(<"), start = end;

	while (start && name[start - 1] != ':' && name[start - 1] != ' ')
		start--;
	snprintf(ret, size, "%.*s", (int)(end - start), name + start);
}

static bool is_named_mangled(const char *symbol, const char *name)
{
	char part[256], *readable, *plain = NULL;
	bool same;

	last_part(name, part, sizeof(part));
	if (!strstr(symbol, part))
		return false;
	readable = demangle(symbol);
	if (readable)
		plain = selection_plain_name(readable);
	same = readable && (!strcmp(readable, name) || (plain && !strcmp(plain, name)));
	free(plain);
	free(readable);
	return same;
}

static bool is_named(const char *symbol, const char *name)
{
	size_t length = strlen(name);

	if (!strncmp(symbol, name, length) && (!symbol[length] || is_clone(symbol + length)))
		return true;
	return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R') &&
	       is_named_mangled(symbol, name);
}

static int find_functions(const struct causal_places *places, struct found *found)
{
	struct selection_names *names;
	const struct selection_name *name;
	int error = selection_names_load(found->module->file, NULL, &names);

	if (error)
		return error;
	for (size_t i = 0; (name = selection_names_nth(names, i)); i++) {
		for (size_t place = 0; place < places->count; place++) {
			if (places->list[place].function &&
			    is_named(name->mangled, places->list[place].function))
				found_add(found, name->vaddr, place, true);
		}
	}
	selection_names_destroy(names);
	return 0;
}

/* ---- lines ---- */

struct line_row {
	uint64_t vaddr;
	size_t place;
};

struct line_rows {
	const struct causal_places *places;
	uint32_t *lines; /* by place: the line that counts, as far as rows passed by */
	struct line_row *list;
	size_t count, capacity;
};

/* Is it that file, or are its last parts that? */
static bool is_file(const char *path, const char *name)
{
	size_t whole = strlen(path), part = strlen(name);

	return part <= whole && !strcmp(path + whole - part, name) &&
	       (part == whole || path[whole - part - 1] == '/' || *name == '/');
}

/* The line itself, or the first one behind it that has code. */
static int meet_row(void *context, const struct dwarf_code_line *line)
{
	struct line_rows *rows = context;

	for (size_t i = 0; i < rows->places->count; i++) {
		const struct causal_place *place = &rows->places->list[i];

		if (place->file && line->line >= place->line &&
		    line->line <= place->line + LINES_ON && line->line < rows->lines[i] &&
		    is_file(line->file, place->file))
			rows->lines[i] = line->line;
	}
	return 0;
}

static int take_row(void *context, const struct dwarf_code_line *line)
{
	struct line_rows *rows = context;

	for (size_t i = 0; i < rows->places->count; i++) {
		const struct causal_place *place = &rows->places->list[i];

		if (!place->file || rows->lines[i] != line->line ||
		    !is_file(line->file, place->file))
			continue;
		if (rows->count == rows->capacity) {
			size_t capacity = rows->capacity ? rows->capacity * 2 : 64;
			struct line_row *larger =
				reallocarray(rows->list, capacity, sizeof(*larger));

			if (!larger)
				return -ENOMEM;
			rows->list = larger;
			rows->capacity = capacity;
		}
		rows->list[rows->count++] = (struct line_row){line->start, i};
	}
	return 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct line_row *a = left, *b = right;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

/* Of the rows that are in the same function, or in the same inlined call, the first one counts: a
 * line with a loop has several. `result` has a place for each different address. */
static void take_firsts(const struct line_rows *rows, const struct dwarf_result *result,
			struct found *found)
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
			found_add(found, rows->list[i].vaddr, rows->list[i].place, false);
	}
}

static int find_lines(const struct causal_places *places, struct found *found)
{
	struct causal_module *module = found->module;
	struct line_rows rows = {.places = places};
	struct dwarf_result result = {0};
	uint64_t *addresses = NULL;
	size_t count = 0;
	int error;

	rows.lines = malloc((places->count + 1) * sizeof(*rows.lines));
	if (!rows.lines)
		return -ENOMEM;
	memset(rows.lines, 0xff, places->count * sizeof(*rows.lines));
	error = dwarf_each_line(module->speaking, module->pool, meet_row, &rows);
	if (!error)
		error = dwarf_each_line(module->speaking, module->pool, take_row, &rows);
	if (!error && rows.count) {
		qsort(rows.list, rows.count, sizeof(*rows.list), compare_rows);
		addresses = malloc(rows.count * sizeof(*addresses));
		error = addresses ? 0 : -ENOMEM;
		for (size_t i = 0; !error && i < rows.count; i++) {
			if (!count || addresses[count - 1] != rows.list[i].vaddr)
				addresses[count++] = rows.list[i].vaddr;
		}
		if (!error)
			error = dwarf_lookup(module->speaking, module->shared, addresses, count,
					     module->pool, &result);
		if (!error)
			take_firsts(&rows, &result, found);
		dwarf_result_deinit(&result);
	}
	free(addresses);
	free(rows.lines);
	free(rows.list);
	return error == -ENODATA ? 0 : error;
}

int causal_places_find(const struct causal_places *places, struct causal_module *module,
		       struct causal_place_address *ret, size_t maximum)
{
	struct found found = {.module = module, .list = ret, .maximum = maximum};
	bool lines = false, functions = false;
	int error = 0;

	for (size_t i = 0; i < places->count; i++) {
		lines |= places->list[i].file != NULL;
		functions |= places->list[i].function != NULL;
	}
	if (functions)
		error = find_functions(places, &found);
	if (!error && lines && module->speaking)
		error = find_lines(places, &found);
	return error ? error : (int)found.count;
}
