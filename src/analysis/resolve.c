/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Addresses to places; see resolve.h. Places and functions are found again by a 64-bit hash of
 * interned pointers alone: with a million of them a collision has odds of one in 10^7.
 */
#include "analysis/resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/allocations_private.h"
#include "analysis/function_starts.h"
#include "analysis/runtime_code.h"
#include "analysis/symbolize.h"

/* An address to look up, for one tree node. */
struct reference {
	uint64_t offset;   /* in the file; for run-time code the pc */
	uint64_t since_ns; /* of run-time code, see calltree.h */
	uint32_t group;    /* file or, above the files, process */
	uint32_t node;
};

struct references {
	struct reference *items;
	size_t count;
	uint32_t *group_of;  /* by module */
	uint32_t *module_of; /* by group: a representative */
	uint32_t file_count;
};

void resolution_deinit(struct resolution *resolution)
{
	free(resolution->places);
	free(resolution->chains);
	free(resolution->chain_places);
	free(resolution->chain_of);
	free(resolution->process_of);
	id_map_deinit(&resolution->place_index);
	id_map_deinit(&resolution->function_index);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return id_map_mix(hash * 31 + value);
}

static uint32_t function_id(struct resolution *resolution, const struct place *place,
			    const char *scope)
{
	uint64_t key = mix(mix(1, (uintptr_t)place->function), (uintptr_t)scope);
	uint32_t id = id_map_get(&resolution->function_index, key);

	if (id != ID_MAP_NONE)
		return id;
	id = resolution->function_count;
	if (id_map_set(&resolution->function_index, key, id) < 0)
		return MODEL_NONE;
	resolution->function_count++;
	return id;
}

uint32_t resolution_place(struct resolution *resolution, struct place place, const char *scope)
{
	uint64_t key = mix(mix(place.line, (uintptr_t)place.function), (uintptr_t)place.file);
	uint32_t index;

	key = mix(mix(mix(key, place.kind), (uintptr_t)scope), place.address);
	index = id_map_get(&resolution->place_index, key);
	if (index != ID_MAP_NONE)
		return index;
	place.function_id = function_id(resolution, &place, scope);
	if (place.function_id == MODEL_NONE ||
	    array_reserve((void **)&resolution->places, &resolution->place_capacity,
			  resolution->place_count, sizeof(place)) < 0)
		return MODEL_NONE;
	index = (uint32_t)resolution->place_count;
	if (id_map_set(&resolution->place_index, key, index) < 0)
		return MODEL_NONE;
	resolution->places[resolution->place_count++] = place;
	return index;
}

/* ---- gathering ---- */

/* Modules of one file share a group, in whatever process and wherever they are. */
static int group_modules(struct references *references, const struct session *session)
{
	struct id_map files = {0};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < session->module_count; i++) {
		const struct model_module *module = &session->modules[i];
		uint64_t key = (uintptr_t)module->path;
		uint32_t group;

		for (uint32_t byte = 0; byte < module->build_id_size; byte++)
			key = mix(key, module->build_id[byte]);
		group = id_map_get(&files, key);
		if (group == ID_MAP_NONE) {
			group = references->file_count++;
			references->module_of[group] = i;
			result = id_map_set(&files, key, group);
		}
		references->group_of[i] = group;
	}
	id_map_deinit(&files);
	return result;
}

static void gather(struct references *references, struct resolution *resolution)
{
	const struct session *session = resolution->session;
	const struct calltree *tree = &session_private(session)->tree;

	for (uint32_t i = 0; i < tree->count; i++) {
		const struct calltree_node *node = &tree->nodes[i];
		struct reference *reference = &references->items[references->count];

		resolution->chain_of[i] = MODEL_NONE;
		resolution->process_of[i] = node->parent == CALLTREE_NONE
						    ? (uint32_t)node->address
						    : resolution->process_of[node->parent];
		if (node->module == CALLTREE_PROCESS || node->module == CALLTREE_TRUNCATED ||
		    node->module == CALLTREE_UNSAMPLED)
			continue;
		reference->node = i;
		reference->offset = node->address;
		reference->since_ns = node->since_ns;
		reference->group = references->file_count + resolution->process_of[i];
		if (!runtime_code_is(session, node->module)) {
			const struct model_module *module = &session->modules[node->module];

			reference->group = references->group_of[node->module];
			reference->offset += module->file_offset - module->start;
		}
		references->count++;
	}
}

/* An address beside those of the tree; `node` is its number after the tree's last node. */
static void gather_address(struct references *references, const struct resolution *resolution,
			   uint32_t index, uint64_t address, uint32_t node)
{
	const struct session *session = resolution->session;
	struct process_private *process = &session_private(session)->processes[index];
	struct reference *reference = &references->items[references->count++];
	uint32_t module;

	module = module_map_find(&process->module_map, address, session->processes[index].end_ns);
	if (module == MODULE_MAP_NONE)
		module = module_map_find(&process->module_map, address,
					 session->processes[index].start_ns);
	*reference = (struct reference){
		.offset = address, .group = references->file_count + index, .node = node};
	if (!runtime_code_is(session, module)) {
		reference->group = references->group_of[module];
		reference->offset +=
			session->modules[module].file_offset - session->modules[module].start;
	}
}

/* Functions that are regions are looked up as nodes after the tree's last. */
static void gather_regions(struct references *references, struct resolution *resolution)
{
	const struct session *session = resolution->session;
	uint32_t tree_count = session_private(session)->tree.count;

	for (uint32_t i = 0; i < session->regions->region_count; i++) {
		const struct model_region *region = &session->regions->regions[i];

		resolution->chain_of[tree_count + i] = MODEL_NONE;
		if (region->kind == SPOOL_REGION_FUNCTION)
			gather_address(references, resolution, region->process, region->address,
				       tree_count + i);
	}
}

static uint32_t first_site_node(const struct session *session)
{
	return session_private(session)->tree.count + session->regions->region_count;
}

/* Return addresses of allocation sites, after the regions. */
static void gather_sites(struct references *references, struct resolution *resolution)
{
	const struct session *session = resolution->session;
	uint32_t node = first_site_node(session);

	for (uint32_t i = 0; i < session->allocations->count; i++) {
		const struct model_site *site = &session->allocations->sites[i];

		for (uint32_t j = 0; j < site->address_count; j++, node++) {
			resolution->chain_of[node] = MODEL_NONE;
			gather_address(references, resolution, site->process,
				       site->addresses[j] - 1, node);
		}
	}
}

/* All addresses to look up, at most. */
static size_t address_count(const struct session *session)
{
	return first_site_node(session) + allocations_addresses(session);
}

static int by_group_and_offset(const void *left, const void *right)
{
	const struct reference *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->since_ns < b->since_ns ? -1 : a->since_ns > b->since_ns;
}

static int references_init(struct references *references, struct resolution *resolution)
{
	const struct session *session = resolution->session;
	size_t count = address_count(session);

	references->items = calloc(count + 1, sizeof(*references->items));
	references->group_of = calloc(session->module_count + 1, sizeof(*references->group_of));
	references->module_of = calloc(session->module_count + 1, sizeof(*references->module_of));
	if (!references->items || !references->group_of || !references->module_of ||
	    group_modules(references, session) < 0)
		return -ENOMEM;
	gather(references, resolution);
	gather_regions(references, resolution);
	gather_sites(references, resolution);
	if (references->count > 1)
		qsort(references->items, references->count, sizeof(*references->items),
		      by_group_and_offset);
	return 0;
}

static void references_deinit(struct references *references)
{
	free(references->items);
	free(references->group_of);
	free(references->module_of);
}

/* ---- one file or process ---- */

/* A run of references of one group and their distinct addresses. */
struct group {
	struct reference *items;
	size_t count;
	uint64_t *offsets, *times;
	size_t offset_count;
	const struct model_module *module; /* a representative; NULL for run-time code */
	const char *name, *scope;
	bool runtime;
};

static int chain_add(struct resolution *resolution, uint64_t relative_pc)
{
	if (array_reserve((void **)&resolution->chains, &resolution->chain_capacity,
			  resolution->chain_count, sizeof(*resolution->chains)) < 0)
		return -ENOMEM;
	resolution->chains[resolution->chain_count++] = (struct place_chain){
		.relative_pc = relative_pc, .first = (uint32_t)resolution->chain_place_count};
	return 0;
}

static int chain_append(struct resolution *resolution, uint32_t place)
{
	if (place == MODEL_NONE ||
	    array_reserve((void **)&resolution->chain_places, &resolution->chain_place_capacity,
			  resolution->chain_place_count, sizeof(*resolution->chain_places)) < 0)
		return -ENOMEM;
	resolution->chain_places[resolution->chain_place_count++] = place;
	resolution->chains[resolution->chain_count - 1].count++;
	return 0;
}

/* Code without a name is called after where its function begins, as far as that is known, else all
 * of a module's is one function: each address as a function of its own would hide how much there
 * is. The frames stay apart by their addresses. */
static int append_unresolved(struct resolution *resolution, const struct group *group,
			     const struct function_starts *starts, uint64_t address)
{
	struct arena *arena = &session_private(resolution->session)->arena;
	struct place place = {.kind = FRAME_UNRESOLVED, .address = address};
	uint64_t start = function_starts_find(starts, address);
	char name[512];

	if (group->name[0] == '[')
		snprintf(name, sizeof(name), "%s", group->name);
	else if (start)
		snprintf(name, sizeof(name), "[%s+0x%" PRIx64 "]", group->name, start);
	else
		snprintf(name, sizeof(name), "[%s]", group->name);
	place.function = arena_intern(arena, name);
	if (!place.function)
		return -ENOMEM;
	return chain_append(resolution, resolution_place(resolution, place, group->scope));
}

static int append_frame(struct resolution *resolution, const struct group *group,
			const struct symbolize_frame *frame)
{
	struct arena *arena = &session_private(resolution->session)->arena;
	struct place place = {.line = frame->line, .function_line = frame->function_line};

	place.kind = group->runtime ? FRAME_JIT : frame->inlined ? FRAME_INLINE : FRAME_NATIVE;
	place.function = arena_intern(arena, frame->function);
	if (frame->linkage_name)
		place.linkage_name = arena_intern(arena, frame->linkage_name);
	if (frame->file)
		place.file = arena_intern(arena, frame->file);
	if (!place.function || (frame->linkage_name && !place.linkage_name) ||
	    (frame->file && !place.file))
		return -ENOMEM;
	return chain_append(resolution, resolution_place(resolution, place, group->scope));
}

/* `symbols` may be empty: nothing is resolved then. */
static int take_chains(struct resolution *resolution, const struct group *group,
		       const struct symbolize_result *symbols, const struct function_starts *starts)
{
	for (size_t i = 0; i < group->offset_count; i++) {
		const struct symbolize_chain *chain =
			i < symbols->chain_count ? &symbols->chains[i] : NULL;
		uint64_t address = chain ? chain->vaddr : group->offsets[i];
		int result = chain_add(resolution, address);

		if (result == 0 && (!chain || chain->count == 0))
			result = append_unresolved(resolution, group, starts, address);
		for (uint32_t k = 0; result == 0 && chain && k < chain->count; k++)
			result =
				append_frame(resolution, group, &symbols->frames[chain->first + k]);
		if (result < 0)
			return result;
	}
	return 0;
}

static bool same_code(const struct reference *a, const struct reference *b)
{
	return a->offset == b->offset && a->since_ns == b->since_ns;
}

/* Gives each node its chain; the first chain of the group is `first`. */
static void assign_chains(struct resolution *resolution, const struct group *group, size_t first)
{
	size_t chain = first;

	for (size_t i = 0; i < group->count; i++) {
		if (i > 0 && !same_code(&group->items[i], &group->items[i - 1]))
			chain++;
		resolution->chain_of[group->items[i].node] = (uint32_t)chain;
	}
}

static int symbolize_group(struct resolution *resolution, const struct references *references,
			   const struct group *group, struct symbolize_result *symbols,
			   struct problem *problem)
{
	const struct session *session = resolution->session;
	const struct session_options *options = &session_private(session)->options;
	uint32_t number = group->items[0].group;

	if (options->unresolved_only)
		return 0;
	if (group->runtime) {
		uint32_t process = number - references->file_count;
		struct symbolize_jit_request request = {
			.pid = session->processes[process].pid,
			.jitdump_path = runtime_code_dump(session, process),
			.made_ns = session_process_made_ns(session, process),
			.times_ns = group->times,
			.session_directory = session->directory,
			.pcs = group->offsets,
			.count = group->offset_count};

		return symbolize_jit(&request, symbols, problem);
	}
	struct symbolize_request request = {.path = group->module->path,
					    .build_id = group->module->build_id,
					    .build_id_size = group->module->build_id_size,
					    .offsets = group->offsets,
					    .count = group->offset_count,
					    .inlines = options->inlines,
					    .debug_path = options->debug_path,
					    .symbol_cache = options->symbol_cache};

	return symbolize_module(&request, symbols, problem);
}

static int take_advice(struct resolution *resolution, const struct references *references,
		       const struct group *group, const char *advice)
{
	struct session *session = resolution->session;

	if (!advice || group->runtime)
		return 0;
	advice = arena_intern(&session_private(session)->arena, advice);
	if (!advice)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->module_count; i++) {
		if (references->group_of[i] == group->items[0].group)
			session->modules[i].advice = advice;
	}
	return 0;
}

static int resolve_group(struct resolution *resolution, const struct references *references,
			 struct group *group, struct problem *problem)
{
	struct symbolize_result symbols = {0};
	struct function_starts starts = {0};
	size_t first = resolution->chain_count;
	int result;

	for (size_t i = 0; i < group->count; i++) {
		if (i > 0 && same_code(&group->items[i], &group->items[i - 1]))
			continue;
		group->times[group->offset_count] = group->items[i].since_ns;
		group->offsets[group->offset_count++] = group->items[i].offset;
	}
	result = symbolize_group(resolution, references, group, &symbols, problem);
	if (result < 0)
		return result;
	if (symbols.unresolved && !group->runtime)
		function_starts_init(&starts, group->module->path, group->module->build_id,
				     group->module->build_id_size);
	result = take_chains(resolution, group, &symbols, &starts);
	function_starts_deinit(&starts);
	if (result == 0)
		result = take_advice(resolution, references, group, symbols.advice);
	symbolize_result_deinit(&symbols);
	if (result < 0)
		return session_out_of_memory(problem);
	assign_chains(resolution, group, first);
	return 0;
}

static int resolve_all(struct resolution *resolution, struct references *references,
		       struct problem *problem)
{
	const struct session *session = resolution->session;
	uint64_t *offsets = calloc(references->count + 1, sizeof(*offsets));
	uint64_t *times = calloc(references->count + 1, sizeof(*times));
	int result = offsets && times ? 0 : session_out_of_memory(problem);

	for (size_t i = 0; result == 0 && i < references->count;) {
		struct group group = {
			.items = &references->items[i], .offsets = offsets, .times = times};
		uint32_t number = group.items[0].group;

		while (i < references->count && references->items[i].group == number)
			i++;
		group.count = (size_t)(&references->items[i] - group.items);
		group.runtime = number >= references->file_count;
		group.scope = group.name = "[unknown]";
		if (!group.runtime) {
			group.module = &session->modules[references->module_of[number]];
			group.name = group.module->name;
			group.scope = group.module->path;
		}
		result = resolve_group(resolution, references, &group, problem);
	}
	free(offsets);
	free(times);
	return result;
}

/* Functions without a name are told apart by where they begin in their module. NULL: out of
 * memory. */
static const char *unresolved_region(struct arena *arena, const struct place *place,
				     uint64_t relative_pc, const char *otherwise)
{
	char name[512];

	if (strcmp(place->function, "[unknown]") == 0)
		return otherwise;
	if (strstr(place->function, "+0x"))
		return place->function;
	snprintf(name, sizeof(name), "%.*s+0x%" PRIx64 "]", (int)strcspn(place->function, "]"),
		 place->function, relative_pc);
	return arena_intern(arena, name);
}

int resolution_name_sites(const struct resolution *resolution)
{
	return allocations_name(resolution, first_site_node(resolution->session));
}

/* A loop is called after its function and where it is in it. NULL: out of memory. */
static const char *loop_name(struct arena *arena, const struct place *place,
			     const struct model_region *region, const char *function)
{
	char name[4096];

	if (place->file && place->line)
		snprintf(name, sizeof(name), "%s [loop#%" PRIu32 ", line %" PRIu32 "]", function,
			 region->loop, place->line);
	else
		snprintf(name, sizeof(name), "%s [loop#%" PRIu32 "]", function, region->loop);
	return arena_intern(arena, name);
}

int resolution_name_regions(const struct resolution *resolution)
{
	struct session_private *private = session_private(resolution->session);
	const struct model_regions *regions = resolution->session->regions;

	for (uint32_t i = 0; i < regions->region_count; i++) {
		struct model_region *region = &regions->regions[i];
		uint32_t index = resolution->chain_of[private->tree.count + i];
		const struct place_chain *chain;
		const struct place *place;

		if (index == MODEL_NONE)
			continue;
		/* The outermost: what is inlined at a function's first address is another one. */
		chain = &resolution->chains[index];
		place = &resolution->places[resolution->chain_places[chain->first + chain->count -
								     1]];
		region->file = place->file;
		region->line = place->function_line ? place->function_line : place->line;
		region->name = place->kind == FRAME_UNRESOLVED
				       ? unresolved_region(&private->arena, place,
							   chain->relative_pc, region->name)
				       : place->function;
		if (region->loop && region->name) {
			region->name = loop_name(&private->arena, place, region, region->name);
			region->line = place->line;
		}
		if (!region->name)
			return -ENOMEM;
	}
	return 0;
}

int resolution_init(struct resolution *resolution, struct session *session, struct problem *problem)
{
	size_t count = address_count(session);
	struct references references = {0};
	int result;

	*resolution = (struct resolution){.session = session};
	resolution->chain_of = calloc(count + 1, sizeof(*resolution->chain_of));
	resolution->process_of = calloc(count + 1, sizeof(*resolution->process_of));
	if (!resolution->chain_of || !resolution->process_of ||
	    references_init(&references, resolution) < 0)
		result = session_out_of_memory(problem);
	else
		result = resolve_all(resolution, &references, problem);
	references_deinit(&references);
	if (result < 0)
		resolution_deinit(resolution);
	return result;
}
