/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions that are functions are called as the symbolizer calls their addresses.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/regions/kinds.h"
#include "analysis/symbols/resolve.h"

size_t regions_kind_count_function_addresses(const struct session *session)
{
	return session_get_regions(session)->region_count;
}

void regions_kind_gather_function_addresses(struct address_references *references,
					    struct session *session, uint32_t first)
{
	const struct model_regions *regions = session_get_regions(session);

	for (uint32_t i = 0; i < regions->region_count; i++) {
		const struct model_region *region = &regions->regions[i];

		if (region->kind == SPOOL_REGION_FUNCTION)
			address_references_add_address(references, region->process, region->address,
						       first + i);
	}
}

/* Functions without a name are distinguished by where they begin in their module. NULL: out of
 * memory. */
static const char *format_unresolved_region_name(struct arena *arena,
						 const struct code_location *place,
						 uint64_t relative_pc, const char *otherwise)
{
	char name[512];

	if (strcmp(place->function, "[unknown]") == 0)
		return otherwise;
	if (strstr(place->function, "+0x"))
		return place->function;
	snprintf(name, sizeof(name), "%.*s+0x%" PRIx64 "]", (int)strcspn(place->function, "]"),
		 place->function, relative_pc);
	return arena_intern_string(arena, name);
}

/* A loop is called after its function and where it is in it. NULL: out of memory. */
static const char *format_loop_name(struct arena *arena, const struct code_location *place,
				    const struct model_region *region, const char *function)
{
	char name[4096];

	if (place->file && place->line)
		snprintf(name, sizeof(name), "%s [loop#%" PRIu32 ", line %" PRIu32 "]", function,
			 region->loop, place->line);
	else
		snprintf(name, sizeof(name), "%s [loop#%" PRIu32 "]", function, region->loop);
	return arena_intern_string(arena, name);
}

int regions_kind_set_all_names_by_symbol(const struct symbol_resolution *resolution, uint32_t first)
{
	struct session_private *private = session_get_private(resolution->session);
	const struct model_regions *regions = session_get_regions(resolution->session);

	for (uint32_t i = 0; i < regions->region_count; i++) {
		struct model_region *region = &regions->regions[i];
		uint32_t index = resolution->chain_by_reference_number[first + i];
		const struct code_location_chain *chain;
		const struct code_location *place;

		if (index == MODEL_ENTRY_INDEX_NONE)
			continue;
		/* The outermost: what is inlined at a function's first address is another one. */
		chain = &resolution->chains[index];
		place = &resolution->places[resolution->chain_place_indexes[chain->first +
									    chain->count - 1]];
		region->file = place->file;
		region->line = place->function_line ? place->function_line : place->line;
		region->name =
			place->kind == FRAME_UNRESOLVED
				? format_unresolved_region_name(&private->arena, place,
								chain->relative_pc, region->name)
				: place->function;
		if (region->loop && region->name) {
			region->name =
				format_loop_name(&private->arena, place, region, region->name);
			region->line = place->line;
		}
		if (!region->name)
			return -ENOMEM;
	}
	return 0;
}
