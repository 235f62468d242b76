/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that were called, counted or covered become regions. The plan of their module says
 * where they are; their names come from the symbolizer, like those of any other code.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plan_table.h"
#include "analysis/regions/calls_private.h"
#include "analysis/regions/instrumented_names.h"
#include "analysis/regions/kinds.h"
#include "analysis/session_private.h"
#include "common/region_categories.h"

struct instrumented_region_builder {
	struct session *session;
	struct calls_of_process *calls;
	uint32_t process;
	const char *category;
	const struct model_instrumented_module *module;
	struct plan_functions plan;
};

static const char *find_file_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* ---- places in functions ---- */

/* The function that holds a place: functions come first and are sorted by address. */
static const struct plan_function *find_function_around_address(const struct plan_functions *plan,
								uint64_t vaddr)
{
	uint32_t low = 0, high = plan->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct plan_function *function = &plan->list[middle];

		if (function->flags & (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK) ||
		    function->vaddr > vaddr)
			high = middle;
		else
			low = middle + 1;
	}
	return low ? &plan->list[low - 1] : NULL;
}

/* The n-th loop of its function, from 1. */
static uint32_t find_loop_number_in_function(const struct plan_functions *plan, uint32_t index)
{
	const struct plan_function *function =
		find_function_around_address(plan, plan->list[index].vaddr);
	uint32_t number = 1;

	while (function && index-- > 0 && plan->list[index].vaddr >= function->vaddr) {
		if (plan->list[index].flags & PLAN_FUNCTION_IS_LOOP)
			number++;
		else if (!(plan->list[index].flags & PLAN_FUNCTION_IS_BLOCK))
			break;
	}
	return number;
}

/* ---- regions ---- */

static int add_region_for_function_id(struct instrumented_region_builder *resolving, uint32_t id,
				      struct model_region *region)
{
	uint32_t index;

	region->process = resolving->process;
	region->category = resolving->category;
	if (!region->name)
		return -ENOMEM;
	index = region_add_without_id(resolving->session, region);
	if (index == MODEL_ENTRY_INDEX_NONE)
		return -ENOMEM;
	resolving->calls->regions[id] = index;
	return 0;
}

/* Without its plan a function is known by its number alone. */
static int add_region_named_by_number(struct instrumented_region_builder *resolving, uint32_t id)
{
	const struct model_instrumented_module *module = resolving->module;
	struct arena *arena = &session_get_private(resolving->session)->arena;
	struct model_region region = {.kind = SPOOL_REGION_NAMED};

	region.name = module ? arena_format_text(arena, "[function %" PRIu32 " of %s]",
						 id - module->first_id,
						 find_file_base_name(module->module))
			     : arena_format_text(arena, "[function %" PRIu32 "]", id);
	return add_region_for_function_id(resolving, id, &region);
}

static int add_region_by_plan_entry(struct instrumented_region_builder *resolving, uint32_t id)
{
	uint32_t index = id - resolving->module->first_id;
	const struct plan_function *function = &resolving->plan.list[index];
	struct model_region region = {.kind = SPOOL_REGION_FUNCTION,
				      .address = function->vaddr + resolving->module->bias};

	if (function->flags & PLAN_FUNCTION_IS_BLOCK)
		return 0;
	if (function->flags & PLAN_FUNCTION_IS_LOOP)
		region.loop = find_loop_number_in_function(&resolving->plan, index);
	region.name = arena_format_text(&session_get_private(resolving->session)->arena,
					"[0x%" PRIx64 "]", region.address);
	return add_region_for_function_id(resolving, id, &region);
}

static int add_regions_of_used_functions(struct instrumented_region_builder *resolving,
					 uint32_t from, uint32_t to)
{
	int result = 0;

	for (uint32_t id = from; result == 0 && id < to && id < resolving->calls->limit; id++) {
		if (!function_id_is_used(resolving->calls, id) ||
		    resolving->calls->regions[id] != MODEL_ENTRY_INDEX_NONE)
			continue;
		result = id - from < resolving->plan.count
				 ? add_region_by_plan_entry(resolving, id)
				 : add_region_named_by_number(resolving, id);
	}
	return result;
}

static uint32_t count_used_functions_of_id_range(const struct calls_of_process *calls,
						 uint32_t from, uint32_t to)
{
	uint32_t count = 0;

	for (uint32_t id = from; id < to && id < calls->limit; id++)
		count += function_id_is_used(calls, id);
	return count;
}

/* Results keep a copy of what they need, so that they can be moved and the cache cleared. */
static int read_plan_or_its_copy(struct instrumented_region_builder *resolving,
				 const struct model_instrumented_module *module)
{
	const char *copy = arena_format_text(&session_get_private(resolving->session)->arena,
					     "%s/instrumentation/%s", resolving->session->directory,
					     find_file_base_name(module->plan));
	int result;

	if (!copy)
		return -ENOMEM;
	result = plan_functions_read(copy, &resolving->plan);
	return result < 0 && result != -ENOMEM ? plan_functions_read(module->plan, &resolving->plan)
					       : result;
}

static int add_regions_of_module(struct instrumented_region_builder *resolving,
				 struct model_instrumented_module *module)
{
	uint32_t end = module->first_id + module->count;
	int result = 0;

	module->called = count_used_functions_of_id_range(resolving->calls, module->first_id, end);
	if (module->called == 0)
		return 0;
	resolving->module = module;
	result = read_plan_or_its_copy(resolving, module);
	module->was_plan_read = result == 0;
	if (result < 0 && result != -ENOMEM)
		result = session_add_problem_line(
			resolving->session,
			"the functions of %s have no names: their plan %s cannot be "
			"read (%s)",
			module->module, module->plan, strerror(-result));
	if (result == 0)
		result = add_regions_of_used_functions(resolving, module->first_id, end);
	if (result == 0 && module->was_plan_read && resolving->plan.count &&
	    !instrumented_module_is_sole_at_address(resolving->session, module,
						    resolving->plan.list[0].vaddr + module->bias))
		result = instrumented_set_region_names(resolving->session, module, resolving->calls,
						       &resolving->plan);
	plan_functions_deinit(&resolving->plan);
	resolving->module = NULL;
	return result;
}

static int allocate_region_table(struct calls_of_process *calls)
{
	for (uint32_t word = CALL_FUNCTION_ID_COUNT / 64; calls->limit == 0 && word-- > 0;) {
		if (calls->used[word])
			calls->limit = (word + 1) * 64;
	}
	calls->regions = malloc((calls->limit + 1) * sizeof(*calls->regions));
	if (!calls->regions)
		return -ENOMEM;
	for (uint32_t id = 0; id < calls->limit; id++)
		calls->regions[id] = MODEL_ENTRY_INDEX_NONE;
	for (size_t i = 0; i < calls->defined_region_count; i++)
		calls->regions[calls->defined_regions[i].id] = calls->defined_regions[i].region;
	return 0;
}

/* Is it of a plan that was read? What has no region is meant to have none. */
static bool id_is_of_known_plan(const struct session *session, uint32_t process, uint32_t id)
{
	for (uint32_t i = 0; i < session_get_calls(session)->module_count; i++) {
		const struct model_instrumented_module *module =
			&session_get_calls(session)->modules[i];

		if (module->process == process && module->was_plan_read && id >= module->first_id &&
		    id - module->first_id < module->count)
			return true;
	}
	return false;
}

static int make_regions_of_process(struct session *session, uint32_t process)
{
	struct session_private *private = session_get_private(session);
	struct instrumented_region_builder resolving = {.session = session,
							.calls =
								process_get_calls(session, process),
							.process = process};
	int result = allocate_region_table(resolving.calls);

	resolving.category =
		arena_intern_string(&private->arena, region_categories[REGION_INSTRUMENTED].name);
	if (!resolving.category)
		return -ENOMEM;
	resolving.calls->used[0] &= ~(uint64_t)1; /* id 0 is no function */
	for (uint32_t i = 0; result == 0 && i < session_get_calls(session)->module_count; i++) {
		if (session_get_calls(session)->modules[i].process == process)
			result = add_regions_of_module(&resolving,
						       &session_get_calls(session)->modules[i]);
	}
	for (uint32_t id = 0; result == 0 && id < resolving.calls->limit; id++) {
		if (function_id_is_used(resolving.calls, id) &&
		    resolving.calls->regions[id] == MODEL_ENTRY_INDEX_NONE &&
		    !id_is_of_known_plan(session, process, id))
			result = add_region_named_by_number(&resolving, id);
	}
	return result;
}

/* ---- sums ---- */

static int compare_counts_by_id(const void *left, const void *right)
{
	const struct function_call_count_entry *a = left, *b = right;

	return a->id < b->id ? -1 : a->id > b->id;
}

static int compare_counted_by_calls(const void *left, const void *right)
{
	const struct model_counted_function *a = left, *b = right;

	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

void calls_kind_sort_counted_functions(struct session *session)
{
	if (session_get_calls(session)->counted_function_count > 1)
		qsort(session_get_calls(session)->counted_functions,
		      session_get_calls(session)->counted_function_count,
		      sizeof(*session_get_calls(session)->counted_functions),
		      compare_counted_by_calls);
}

/* Adds the counts of one process, over its threads. */
static int sum_process_call_counts_by_function(struct session *session, uint32_t process)
{
	struct calls_of_process *own = process_get_calls(session, process);
	struct model_instrumented_calls *calls = session_get_calls(session);
	size_t *capacity = &calls_get_array_capacities(session)->counted_function_capacity;
	uint32_t before = calls->counted_function_count;

	if (own->call_count_entry_count > 1)
		qsort(own->call_count_entries, own->call_count_entry_count,
		      sizeof(*own->call_count_entries), compare_counts_by_id);
	for (size_t i = 0; i < own->call_count_entry_count; i++) {
		const struct function_call_count_entry *count = &own->call_count_entries[i];
		struct model_counted_function *last =
			calls->counted_function_count > before
				? &calls->counted_functions[calls->counted_function_count - 1]
				: NULL;

		if (last && last->id == count->id) {
			last->calls += count->calls;
			continue;
		}
		if (array_reserve_one_more((void **)&calls->counted_functions, capacity,
					   calls->counted_function_count,
					   sizeof(*calls->counted_functions)) < 0)
			return -ENOMEM;
		calls->counted_functions[calls->counted_function_count++] =
			(struct model_counted_function){.process = process,
							.id = count->id,
							.region = own->regions[count->id],
							.calls = count->calls};
	}
	return 0;
}

int instrumented_make_process_regions(struct session *session, uint32_t process)
{
	struct calls_of_process *own = process_get_calls(session, process);
	struct model_instrumented_calls *calls = session_get_calls(session);
	int result;

	if (!own->used)
		return 0;
	result = make_regions_of_process(session, process);
	if (result < 0)
		return result;
	for (uint32_t i = 0; i < calls->demoted_function_count; i++) {
		if (calls->demoted_functions[i].process == process)
			calls->demoted_functions[i].region =
				own->regions[calls->demoted_functions[i].id];
	}
	return sum_process_call_counts_by_function(session, process);
}

/* ---- life ---- */

static void calls_of_process_deinit(struct calls_of_process *calls)
{
	free(calls->parts);
	free(calls->used);
	free(calls->defined_regions);
	free(calls->regions);
	free(calls->call_count_entries);
	id_map_deinit(&calls->call_count_index_by_function);
}

void calls_kind_free_data_of_session(struct session *session)
{
	struct model_instrumented_calls *calls = session_get_calls(session);

	for (uint32_t i = 0; i < session->process_count; i++)
		calls_of_process_deinit(process_get_calls(session, i));
	free(calls->modules);
	free(calls->counted_functions);
	free(calls->demoted_functions);
}
