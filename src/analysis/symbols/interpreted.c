/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Frames of interpreted code to places. A function is what begins at one line of one file: lambdas
 * and comprehensions of the same name are several.
 */
#include "analysis/interpreted/interpreted.h"

#include "analysis/symbols/resolve.h"

#define UNKNOWN_FUNCTION_NAME "[Python function without a name]"

static uint32_t find_or_add_interpreted_location(struct symbol_resolution *resolution,
						 uint32_t process, uint64_t frame)
{
	struct arena *arena = &session_get_private(resolution->session)->arena;
	const struct interpreted_code *code = interpreted_code_find(
		resolution->session, process, interpreted_frame_get_code_id(frame));
	struct code_location place = {.kind = FRAME_INTERPRETED, .function = UNKNOWN_FUNCTION_NAME};
	const char *scope;
	char line[24];

	if (!code) {
		place.function = arena_intern_string(arena, UNKNOWN_FUNCTION_NAME);
		return place.function ? resolution_find_or_add_location(resolution, place, NULL)
				      : MODEL_ENTRY_INDEX_NONE;
	}
	snprintf(line, sizeof(line), ":%u", code->first_line);
	scope = arena_format_text(arena, "%s%s", code->file, line);
	place.function = arena_intern_string(arena, code->name);
	place.file = arena_intern_string(arena, code->file);
	place.line = interpreted_code_find_line(code, interpreted_frame_get_position(frame));
	place.function_line = code->first_line;
	if (scope)
		scope = arena_intern_string(arena, scope);
	return place.function && place.file && scope
		       ? resolution_find_or_add_location(resolution, place, scope)
		       : MODEL_ENTRY_INDEX_NONE;
}

uint32_t resolution_find_or_add_interpreted_chain(struct symbol_resolution *resolution,
						  uint32_t process, uint64_t frame)
{
	uint64_t key = frame ^ id_map_hash_key((uint64_t)process + 1);
	uint32_t chain = id_map_get(&resolution->chain_by_interpreted_frame, key), place;

	if (chain != ID_MAP_NONE)
		return chain;
	chain = (uint32_t)resolution->chain_count;
	place = find_or_add_interpreted_location(resolution, process, frame);
	if (place == MODEL_ENTRY_INDEX_NONE || resolution_append_chain(resolution, 0) < 0 ||
	    resolution_append_location(resolution, place) < 0 ||
	    id_map_set(&resolution->chain_by_interpreted_frame, key, chain) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	return chain;
}
