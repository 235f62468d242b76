/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sources.h.
 */
#include "binary/selection/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/debugfile.h"
#include "binary/demangle.h"
#include "binary/dwarf/dwarf.h"
#include "binary/selection/selection.h"

struct selection_source_line_table {
	struct string_pool *string_pool;
	struct dwarf_lookup_result_lists result;
	size_t count;     /* of places */
	uint64_t *starts; /* ascending, without duplicates: places[i] is that of starts[i] */
};

static int find_source_lines(struct selection_source_line_table *sources,
			     const struct elf_file *file, const char *debug_path)
{
	struct elf_file *debug = NULL, *shared = NULL;
	const struct elf_file *speaking = file;
	int error;

	if (!dwarf_file_has_debug_info(file)) {
		error = debugfile_find(file, debug_path, &debug);
		if (error)
			return error;
		speaking = debug;
	}
	if (debugfile_find_dwz_shared(speaking, debug_path, &shared))
		shared = NULL;
	error = dwarf_lookup_addresses(speaking, shared, sources->starts, sources->count,
				       sources->string_pool, &sources->result);
	elf_close(shared);
	elf_close(debug);
	return error;
}

int selection_source_lines_load(const struct elf_file *file, const char *debug_path,
				const struct plan *plan, struct selection_source_line_table **ret)
{
	struct selection_source_line_table *sources = calloc(1, sizeof(*sources));
	size_t count = plan->header->functions.count;
	int error = -ENOMEM;

	*ret = NULL;
	if (!sources)
		return -ENOMEM;
	sources->starts = calloc(count + 1, sizeof(*sources->starts));
	for (size_t i = 0; sources->starts && i < count; i++) {
		uint64_t vaddr = plan_get_functions(plan)[i].vaddr;

		if (!i || vaddr > sources->starts[sources->count - 1])
			sources->starts[sources->count++] = vaddr;
		else
			break; /* places in functions */
	}
	if (sources->starts && !string_pool_create(&sources->string_pool))
		error = find_source_lines(sources, file, debug_path);
	if (error) {
		selection_source_lines_destroy(sources);
		return error == -ENOMEM ? error : 0;
	}
	*ret = sources;
	return 0;
}

void selection_source_lines_destroy(struct selection_source_line_table *sources)
{
	if (!sources)
		return;
	if (sources->result.places)
		dwarf_lookup_result_lists_deinit(&sources->result);
	if (sources->string_pool)
		string_pool_destroy(sources->string_pool);
	free(sources->starts);
	free(sources);
}

const char *selection_source_lines_get_file_line(const struct selection_source_line_table *sources,
						 size_t index, uint32_t *ret_line)
{
	*ret_line = 0;
	if (!sources || index >= sources->count)
		return NULL;
	*ret_line = sources->result.places[index].line;
	return sources->result.places[index].file;
}

char *selection_format_signature(const char *mangled, const char *file, uint32_t line,
				 unsigned labels)
{
	char *name = demangle(mangled), *plain, *signature;
	int length;

	if (!name)
		name = strdup(mangled);
	if (name && !(labels & SELECTION_SIGNATURE_ARGUMENTS)) {
		plain = selection_copy_plain_name(name);
		free(name);
		name = plain;
	}
	if (!name || !file || !(labels & (SELECTION_SIGNATURE_FILE | SELECTION_SIGNATURE_LINE)))
		return name;
	if (!(labels & SELECTION_SIGNATURE_LINE))
		length = asprintf(&signature, "%s [%s]", name, file);
	else if (labels & SELECTION_SIGNATURE_FILE)
		length = asprintf(&signature, "%s [%s:%u]", name, file, line);
	else
		length = asprintf(&signature, "%s [%u]", name, line);
	free(name);
	return length < 0 ? NULL : signature;
}
