/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See selection_sources.h.
 */
#include "binary/selection_sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/debugfile.h"
#include "binary/demangle.h"
#include "binary/dwarf.h"
#include "binary/selection.h"

struct selection_sources {
	struct string_pool *pool;
	struct dwarf_result result;
	size_t count;     /* of places */
	uint64_t *starts; /* ascending, without duplicates: places[i] is that of starts[i] */
};

static int sources_lookup(struct selection_sources *sources, const struct elf_file *file,
			  const char *debug_path)
{
	struct elf_file *debug = NULL, *shared = NULL;
	const struct elf_file *speaking = file;
	int error;

	if (!dwarf_present(file)) {
		error = debugfile_find(file, debug_path, &debug);
		if (error)
			return error;
		speaking = debug;
	}
	if (debugfile_find_shared(speaking, debug_path, &shared))
		shared = NULL;
	error = dwarf_lookup(speaking, shared, sources->starts, sources->count, sources->pool,
			     &sources->result);
	elf_close(shared);
	elf_close(debug);
	return error;
}

int selection_sources_load(const struct elf_file *file, const char *debug_path,
			   const struct plan *plan, struct selection_sources **ret)
{
	struct selection_sources *sources = calloc(1, sizeof(*sources));
	size_t count = plan->header->functions.count;
	int error = -ENOMEM;

	*ret = NULL;
	if (!sources)
		return -ENOMEM;
	sources->starts = calloc(count + 1, sizeof(*sources->starts));
	for (size_t i = 0; sources->starts && i < count; i++) {
		uint64_t vaddr = plan_functions(plan)[i].vaddr;

		if (!i || vaddr > sources->starts[sources->count - 1])
			sources->starts[sources->count++] = vaddr;
		else
			break; /* places in functions */
	}
	if (sources->starts && !string_pool_create(&sources->pool))
		error = sources_lookup(sources, file, debug_path);
	if (error) {
		selection_sources_destroy(sources);
		return error == -ENOMEM ? error : 0;
	}
	*ret = sources;
	return 0;
}

void selection_sources_destroy(struct selection_sources *sources)
{
	if (!sources)
		return;
	if (sources->result.places)
		dwarf_result_deinit(&sources->result);
	if (sources->pool)
		string_pool_destroy(sources->pool);
	free(sources->starts);
	free(sources);
}

const char *selection_sources_at(const struct selection_sources *sources, size_t index,
				 uint32_t *ret_line)
{
	*ret_line = 0;
	if (!sources || index >= sources->count)
		return NULL;
	*ret_line = sources->result.places[index].line;
	return sources->result.places[index].file;
}

char *selection_signature(const char *mangled, const char *file, uint32_t line, unsigned labels)
{
	char *name = demangle(mangled), *plain, *signature;
	int length;

	if (!name)
		name = strdup(mangled);
	if (name && !(labels & SELECTION_LABEL_ARGUMENTS)) {
		plain = selection_plain_name(name);
		free(name);
		name = plain;
	}
	if (!name || !file || !(labels & (SELECTION_LABEL_FILE | SELECTION_LABEL_LINE)))
		return name;
	if (!(labels & SELECTION_LABEL_LINE))
		length = asprintf(&signature, "%s [%s]", name, file);
	else if (labels & SELECTION_LABEL_FILE)
		length = asprintf(&signature, "%s [%s:%u]", name, file, line);
	else
		length = asprintf(&signature, "%s [%u]", name, line);
	free(name);
	return length < 0 ? NULL : signature;
}
