/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Addresses to places; see resolve.h. Places and functions are found again by a 64-bit hash of
 * interned pointers alone: with a million of them a collision has odds of one in 10^7.
 */
#include "analysis/symbols/resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/runtime_code.h"
#include "analysis/session_kind.h"
#include "analysis/symbols/function_starts.h"
#include "analysis/symbols/symbols.h"

/* An address to look up, for one tree node. */
struct address_reference {
	uint64_t offset;       /* in the file; for run-time code the pc */
	uint64_t since_ns;     /* of run-time code, see calltree.h */
	uint32_t group_number; /* file or, above the files, process */
	uint32_t reference_number;
};

struct address_references {
	const struct session *session;
	struct symbol_resolution *resolution;
	bool is_out_of_memory;
	struct address_reference *items;
	size_t count;
	uint32_t *group_by_module; /* by module */
	uint32_t *module_by_group; /* by group: a representative */
	uint32_t file_count;
};

void resolution_deinit(struct symbol_resolution *resolution)
{
	free(resolution->places);
	free(resolution->chains);
	free(resolution->chain_place_indexes);
	free(resolution->chain_by_reference_number);
	free(resolution->process_by_tree_node);
	id_map_deinit(&resolution->place_index_by_hash);
	id_map_deinit(&resolution->function_id_by_hash);
	id_map_deinit(&resolution->chain_by_interpreted_frame);
}

static uint64_t combine_hash(uint64_t hash, uint64_t value)
{
	return id_map_hash_key(hash * 31 + value);
}

static uint32_t find_or_add_function_id(struct symbol_resolution *resolution,
					const struct code_location *place, const char *scope)
{
	uint64_t key = combine_hash(combine_hash(1, (uintptr_t)place->function), (uintptr_t)scope);
	uint32_t id = id_map_get(&resolution->function_id_by_hash, key);

	if (id != ID_MAP_NONE)
		return id;
	id = resolution->function_count;
	if (id_map_set(&resolution->function_id_by_hash, key, id) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	resolution->function_count++;
	return id;
}

uint32_t resolution_find_or_add_location(struct symbol_resolution *resolution,
					 struct code_location place, const char *scope)
{
	uint64_t key = combine_hash(combine_hash(place.line, (uintptr_t)place.function),
				    (uintptr_t)place.file);
	uint32_t index;

	key = combine_hash(combine_hash(combine_hash(key, place.kind), (uintptr_t)scope),
			   place.address);
	index = id_map_get(&resolution->place_index_by_hash, key);
	if (index != ID_MAP_NONE)
		return index;
	place.function_id = find_or_add_function_id(resolution, &place, scope);
	if (place.function_id == MODEL_ENTRY_INDEX_NONE ||
	    array_reserve_one_more((void **)&resolution->places, &resolution->place_capacity,
				   resolution->place_count, sizeof(place)) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	index = (uint32_t)resolution->place_count;
	if (id_map_set(&resolution->place_index_by_hash, key, index) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	resolution->places[resolution->place_count++] = place;
	return index;
}

/* ---- gathering ---- */

/* Modules of one file share a group, in whatever process and wherever they are. */
static int group_modules_by_file(struct address_references *references,
				 const struct session *session)
{
	struct id_map files = {0};
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < session->module_count; i++) {
		const struct model_module *module = &session->modules[i];
		uint64_t key = (uintptr_t)module->path;
		uint32_t group;

		for (uint32_t byte = 0; byte < module->build_id_size; byte++)
			key = combine_hash(key, module->build_id[byte]);
		group = id_map_get(&files, key);
		if (group == ID_MAP_NONE) {
			group = references->file_count++;
			references->module_by_group[group] = i;
			result = id_map_set(&files, key, group);
		}
		references->group_by_module[i] = group;
	}
	id_map_deinit(&files);
	return result;
}

/* Has no file: its chain is there at once. */
static int add_interpreted_reference(struct symbol_resolution *resolution, uint32_t process,
				     uint64_t frame, uint32_t number)
{
	uint32_t chain = resolution_find_or_add_interpreted_chain(resolution, process, frame);

	resolution->chain_by_reference_number[number] = chain;
	return chain == MODEL_ENTRY_INDEX_NONE ? -ENOMEM : 0;
}

static int gather_tree_addresses(struct address_references *references,
				 struct symbol_resolution *resolution)
{
	const struct session *session = resolution->session;
	const struct calltree *tree = &session_get_private(session)->tree;

	for (uint32_t i = 0; i < tree->count; i++) {
		const struct calltree_node *node = &tree->nodes[i];
		struct address_reference *reference = &references->items[references->count];

		resolution->chain_by_reference_number[i] = MODEL_ENTRY_INDEX_NONE;
		resolution->process_by_tree_node[i] =
			node->parent == CALLTREE_NO_NODE
				? (uint32_t)node->address
				: resolution->process_by_tree_node[node->parent];
		if (node->module == CALLTREE_MODULE_INTERPRETED) {
			if (add_interpreted_reference(resolution,
						      resolution->process_by_tree_node[i],
						      node->address, i) < 0)
				return -ENOMEM;
			continue;
		}
		if (calltree_module_is_special(node->module))
			continue;
		reference->reference_number = i;
		reference->offset = node->address;
		reference->since_ns = node->since_ns;
		reference->group_number =
			references->file_count + resolution->process_by_tree_node[i];
		if (!module_is_jit_code_or_none(session, node->module)) {
			const struct model_module *module = &session->modules[node->module];

			reference->group_number = references->group_by_module[node->module];
			reference->offset += module->file_offset - module->start;
		}
		references->count++;
	}
	return 0;
}

void address_references_add_address(struct address_references *references, uint32_t index,
				    uint64_t address, uint32_t number)
{
	address_references_add_address_at(references, index, address, 0, number);
}

void address_references_add_address_at(struct address_references *references, uint32_t index,
				       uint64_t address, uint64_t time_ns, uint32_t number)
{
	const struct session *session = references->session;
	struct process_private *process = &session_get_private(session)->processes[index];
	struct address_reference *reference = &references->items[references->count];
	uint32_t module = MODULE_MAP_NO_MODULE;

	if (spool_frame_is_interpreted(address)) {
		if (add_interpreted_reference(references->resolution, index, address, number) < 0)
			references->is_out_of_memory = true;
		return;
	}
	references->count++;
	if (time_ns)
		module = module_map_find_module(&process->module_map, address, time_ns);
	if (module == MODULE_MAP_NO_MODULE)
		module = module_map_find_module(&process->module_map, address,
						session->processes[index].end_ns);
	if (module == MODULE_MAP_NO_MODULE)
		module = module_map_find_module(&process->module_map, address,
						session->processes[index].start_ns);
	*reference = (struct address_reference){.offset = address,
						.group_number = references->file_count + index,
						.reference_number = number};
	if (!module_is_jit_code_or_none(session, module)) {
		reference->group_number = references->group_by_module[module];
		reference->offset +=
			session->modules[module].file_offset - session->modules[module].start;
	}
}

/* What kinds of data want named has numbers after the tree's last node, kind by kind. */
static void gather_addresses_of_all_data_kinds(struct address_references *references,
					       struct symbol_resolution *resolution)
{
	struct session *session = resolution->session;
	uint32_t first = session_get_private(session)->tree.count;

	for (uint32_t i = 0; i < session->data_kind_count; i++) {
		const struct session_data_kind_operations *kind = session->data_kinds[i].kind;

		if (!kind->address_count)
			continue;
		kind->gather_addresses(references, session, first);
		first += (uint32_t)kind->address_count(session);
	}
}

/* All addresses to look up, at most. */
static size_t compute_address_count_max(const struct session *session)
{
	size_t count = session_get_private(session)->tree.count;

	for (uint32_t i = 0; i < session->data_kind_count; i++) {
		const struct session_data_kind_operations *kind = session->data_kinds[i].kind;

		if (kind->address_count)
			count += kind->address_count(session);
	}
	return count;
}

static int compare_references_by_group(const void *left, const void *right)
{
	const struct address_reference *a = left, *b = right;

	if (a->group_number != b->group_number)
		return a->group_number < b->group_number ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->since_ns < b->since_ns ? -1 : a->since_ns > b->since_ns;
}

static int address_references_init_from_session(struct address_references *references,
						struct symbol_resolution *resolution)
{
	const struct session *session = resolution->session;
	size_t count = compute_address_count_max(session);

	references->session = session;
	references->resolution = resolution;
	references->items = calloc(count + 1, sizeof(*references->items));
	references->group_by_module =
		calloc(session->module_count + 1, sizeof(*references->group_by_module));
	references->module_by_group =
		calloc(session->module_count + 1, sizeof(*references->module_by_group));
	if (!references->items || !references->group_by_module || !references->module_by_group ||
	    group_modules_by_file(references, session) < 0)
		return -ENOMEM;
	if (gather_tree_addresses(references, resolution) < 0)
		return -ENOMEM;
	for (size_t i = session_get_private(session)->tree.count; i < count; i++)
		resolution->chain_by_reference_number[i] = MODEL_ENTRY_INDEX_NONE;
	gather_addresses_of_all_data_kinds(references, resolution);
	if (references->is_out_of_memory)
		return -ENOMEM;
	if (references->count > 1)
		qsort(references->items, references->count, sizeof(*references->items),
		      compare_references_by_group);
	return 0;
}

static void address_references_deinit(struct address_references *references)
{
	free(references->items);
	free(references->group_by_module);
	free(references->module_by_group);
}

/* ---- one file or process ---- */

/* A run of references of one group and their distinct addresses. */
struct address_reference_group {
	struct address_reference *items;
	size_t count;
	uint64_t *offsets, *times;
	size_t offset_count;
	const struct model_module *module; /* a representative; NULL for run-time code */
	const char *name, *function_scope_name;
	bool is_runtime_code, is_file_replaced;
};

int resolution_append_chain(struct symbol_resolution *resolution, uint64_t relative_pc)
{
	if (array_reserve_one_more((void **)&resolution->chains, &resolution->chain_capacity,
				   resolution->chain_count, sizeof(*resolution->chains)) < 0)
		return -ENOMEM;
	resolution->chains[resolution->chain_count++] = (struct code_location_chain){
		.relative_pc = relative_pc, .first = (uint32_t)resolution->chain_place_count};
	return 0;
}

int resolution_append_location(struct symbol_resolution *resolution, uint32_t place)
{
	if (place == MODEL_ENTRY_INDEX_NONE ||
	    array_reserve_one_more((void **)&resolution->chain_place_indexes,
				   &resolution->chain_place_capacity, resolution->chain_place_count,
				   sizeof(*resolution->chain_place_indexes)) < 0)
		return -ENOMEM;
	resolution->chain_place_indexes[resolution->chain_place_count++] = place;
	resolution->chains[resolution->chain_count - 1].count++;
	return 0;
}

/* Code without a name is called after where its function begins, as far as that is known, else all
 * of a module's is one function: each address as a function of its own would hide how much there
 * is. The frames stay apart by their addresses. */
static int append_unresolved_location(struct symbol_resolution *resolution,
				      const struct address_reference_group *group,
				      const struct function_starts *starts, uint64_t address)
{
	struct arena *arena = &session_get_private(resolution->session)->arena;
	struct code_location place = {.kind = FRAME_UNRESOLVED, .address = address};
	uint64_t start = function_starts_find_by_address(starts, address);
	char name[512];

	if (group->is_file_replaced)
		snprintf(name, sizeof(name), "[replaced: %s]", group->function_scope_name);
	else if (group->name[0] == '[')
		snprintf(name, sizeof(name), "%s", group->name);
	else if (start)
		snprintf(name, sizeof(name), "[%s+0x%" PRIx64 "]", group->name, start);
	else
		snprintf(name, sizeof(name), "[%s]", group->name);
	place.function = arena_intern_string(arena, name);
	if (!place.function)
		return -ENOMEM;
	return resolution_append_location(
		resolution,
		resolution_find_or_add_location(resolution, place, group->function_scope_name));
}

static int append_frame_location(struct symbol_resolution *resolution,
				 const struct address_reference_group *group,
				 const struct symbolizer_frame *frame)
{
	struct arena *arena = &session_get_private(resolution->session)->arena;
	struct code_location place = {.line = frame->line, .function_line = frame->function_line};

	place.kind = group->is_runtime_code ? FRAME_JIT
		     : frame->inlined       ? FRAME_INLINE
					    : FRAME_NATIVE;
	place.function = arena_intern_string(arena, frame->function);
	if (frame->linkage_name)
		place.linkage_name = arena_intern_string(arena, frame->linkage_name);
	if (frame->file)
		place.file = arena_intern_string(arena, frame->file);
	if (!place.function || (frame->linkage_name && !place.linkage_name) ||
	    (frame->file && !place.file))
		return -ENOMEM;
	return resolution_append_location(
		resolution,
		resolution_find_or_add_location(resolution, place, group->function_scope_name));
}

/* `symbols` may be empty: nothing is resolved then. */
static int add_chains_of_group(struct symbol_resolution *resolution,
			       const struct address_reference_group *group,
			       const struct symbolizer_request_result *symbols,
			       const struct function_starts *starts)
{
	for (size_t i = 0; i < group->offset_count; i++) {
		const struct symbolizer_frame_chain *chain =
			i < symbols->chain_count ? &symbols->chains[i] : NULL;
		uint64_t address = chain ? chain->vaddr : group->offsets[i];
		int result = resolution_append_chain(resolution, address);

		if (result == 0 && (!chain || chain->count == 0))
			result = append_unresolved_location(resolution, group, starts, address);
		for (uint32_t k = 0; result == 0 && chain && k < chain->count; k++)
			result = append_frame_location(resolution, group,
						       &symbols->frames[chain->first + k]);
		if (result < 0)
			return result;
	}
	return 0;
}

static bool are_references_to_same_code(const struct address_reference *a,
					const struct address_reference *b)
{
	return a->offset == b->offset && a->since_ns == b->since_ns;
}

/* Gives each node its chain; the first chain of the group is `first`. */
static void assign_chains_to_references(struct symbol_resolution *resolution,
					const struct address_reference_group *group, size_t first)
{
	size_t chain = first;

	for (size_t i = 0; i < group->count; i++) {
		if (i > 0 && !are_references_to_same_code(&group->items[i], &group->items[i - 1]))
			chain++;
		resolution->chain_by_reference_number[group->items[i].reference_number] =
			(uint32_t)chain;
	}
}

static bool module_ran_on_this_machine(const struct session *session,
				       const struct model_module *module)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	return *host && !strcmp(session->processes[module->process].host, host);
}

static int symbolize_group(struct symbol_resolution *resolution,
			   const struct address_references *references,
			   const struct address_reference_group *group,
			   struct symbolizer_request_result *symbols, struct problem *problem)
{
	const struct session *session = resolution->session;
	const struct session_options *options = &session_get_private(session)->options;
	uint32_t number = group->items[0].group_number;

	if (options->skip_symbolizing)
		return 0;
	if (group->is_runtime_code) {
		uint32_t process = number - references->file_count;
		struct symbolizer_jit_request request = {
			.pid = session->processes[process].pid,
			.owner = session_get_process_owner_uid(session, process),
			.jitdump_path = runtime_code_find_jitdump_path(session, process),
			.process_start_realtime_ns =
				session_get_process_creation_ns(session, process),
			.sample_times_ns = group->times,
			.session_directory = session->directory,
			.pcs = group->offsets,
			.count = group->offset_count};

		return symbolize_jit_code(&request, symbols, problem);
	}
	struct symbolizer_request request = {
		.path = group->module->path,
		.build_id = group->module->build_id,
		.build_id_size = group->module->build_id_size,
		.inode = module_ran_on_this_machine(session, group->module) ? group->module->inode
									    : 0,
		.pid = session->processes[group->module->process].pid,
		.mapping_start = group->module->start,
		.mapping_end = group->module->end,
		.offsets = group->offsets,
		.count = group->offset_count,
		.with_inlines = options->with_inlines,
		.skip_advice = options->skip_advice,
		.debug_search_path = options->debug_search_path,
		.symbol_cache_directory = options->symbol_cache_directory};

	return symbolize_module(&request, symbols, problem);
}

static int copy_advice_to_modules(struct symbol_resolution *resolution,
				  const struct address_references *references,
				  const struct address_reference_group *group, const char *advice)
{
	struct session *session = resolution->session;

	if (!advice || group->is_runtime_code)
		return 0;
	advice = arena_intern_string(&session_get_private(session)->arena, advice);
	if (!advice)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->module_count; i++) {
		if (references->group_by_module[i] == group->items[0].group_number)
			session->modules[i].advice = advice;
	}
	return 0;
}

static int resolve_addresses_of_group(struct symbol_resolution *resolution,
				      const struct address_references *references,
				      struct address_reference_group *group,
				      struct problem *problem)
{
	struct symbolizer_request_result symbols = {0};
	struct function_starts starts = {0};
	size_t first = resolution->chain_count;
	int result;

	for (size_t i = 0; i < group->count; i++) {
		if (i > 0 && are_references_to_same_code(&group->items[i], &group->items[i - 1]))
			continue;
		group->times[group->offset_count] = group->items[i].since_ns;
		group->offsets[group->offset_count++] = group->items[i].offset;
	}
	result = symbolize_group(resolution, references, group, &symbols, problem);
	if (result < 0)
		return result;
	group->is_file_replaced =
		symbols.status == SYMBOLIZER_FILE_REPLACED && !group->is_runtime_code;
	if (symbols.unresolved_chain_count && !group->is_runtime_code)
		function_starts_read(&starts, group->module->path, group->module->build_id,
				     group->module->build_id_size);
	result = add_chains_of_group(resolution, group, &symbols, &starts);
	function_starts_deinit(&starts);
	if (result == 0)
		result = copy_advice_to_modules(resolution, references, group, symbols.advice);
	symbolizer_result_deinit(&symbols);
	if (result < 0)
		return session_set_out_of_memory_problem(problem);
	assign_chains_to_references(resolution, group, first);
	return 0;
}

static int resolve_all_groups(struct symbol_resolution *resolution,
			      struct address_references *references, struct problem *problem)
{
	const struct session *session = resolution->session;
	uint64_t *offsets = calloc(references->count + 1, sizeof(*offsets));
	uint64_t *times = calloc(references->count + 1, sizeof(*times));
	int result = offsets && times ? 0 : session_set_out_of_memory_problem(problem);

	for (size_t i = 0; result == 0 && i < references->count;) {
		struct address_reference_group group = {
			.items = &references->items[i], .offsets = offsets, .times = times};
		uint32_t number = group.items[0].group_number;

		while (i < references->count && references->items[i].group_number == number)
			i++;
		group.count = (size_t)(&references->items[i] - group.items);
		group.is_runtime_code = number >= references->file_count;
		group.function_scope_name = group.name = "[unknown]";
		if (!group.is_runtime_code) {
			group.module = &session->modules[references->module_by_group[number]];
			group.name = group.module->name;
			group.function_scope_name = group.module->path;
		}
		result = resolve_addresses_of_group(resolution, references, &group, problem);
	}
	free(offsets);
	free(times);
	return result;
}

int resolution_pass_names_to_data_kinds(const struct symbol_resolution *resolution)
{
	const struct session *session = resolution->session;
	uint32_t first = session_get_private(session)->tree.count;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < session->data_kind_count; i++) {
		const struct session_data_kind_operations *kind = session->data_kinds[i].kind;

		if (!kind->address_count)
			continue;
		result = kind->take_symbol_names(resolution, first);
		first += (uint32_t)kind->address_count(session);
	}
	return result;
}

int resolution_resolve_session(struct symbol_resolution *resolution, struct session *session,
			       struct problem *problem)
{
	size_t count = compute_address_count_max(session);
	struct address_references references = {0};
	int result;

	*resolution = (struct symbol_resolution){.session = session};
	resolution->chain_by_reference_number =
		calloc(count + 1, sizeof(*resolution->chain_by_reference_number));
	resolution->process_by_tree_node =
		calloc(count + 1, sizeof(*resolution->process_by_tree_node));
	if (!resolution->chain_by_reference_number || !resolution->process_by_tree_node ||
	    address_references_init_from_session(&references, resolution) < 0)
		result = session_set_out_of_memory_problem(problem);
	else
		result = resolve_all_groups(resolution, &references, problem);
	address_references_deinit(&references);
	if (result < 0)
		resolution_deinit(resolution);
	return result;
}
