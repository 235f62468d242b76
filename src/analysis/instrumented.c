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

#include "analysis/calls_private.h"
#include "analysis/instrumented_names.h"
#include "analysis/plan_table.h"
#include "analysis/session_private.h"
#include "common/region_categories.h"

struct resolving {
	struct session *session;
	struct process_calls *calls;
	uint32_t process;
	const char *category;
	const struct model_instrumented *module;
	struct plan_functions plan;
};

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* ---- places in functions ---- */

/* Of the functions, which come first and are sorted by address, the one that holds a place. */
static const struct plan_function *function_around(const struct plan_functions *plan,
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
static uint32_t loop_number(const struct plan_functions *plan, uint32_t index)
{
	const struct plan_function *function = function_around(plan, plan->list[index].vaddr);
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

static int add_region(struct resolving *resolving, uint32_t id, struct model_region *region)
{
	uint32_t index;

	region->process = resolving->process;
	region->category = resolving->category;
	if (!region->name)
		return -ENOMEM;
	index = region_add_anonymous(resolving->session, region);
	if (index == MODEL_NONE)
		return -ENOMEM;
	resolving->calls->regions[id] = index;
	return 0;
}

/* Without its plan a function is known by its number alone. */
static int add_number(struct resolving *resolving, uint32_t id)
{
	const struct model_instrumented *module = resolving->module;
	struct arena *arena = &session_private(resolving->session)->arena;
	struct model_region region = {.kind = SPOOL_REGION_NAMED};

	region.name = module ? arena_format(arena, "[function %" PRIu32 " of %s]",
					    id - module->first_id, file_name(module->module))
			     : arena_format(arena, "[function %" PRIu32 "]", id);
	return add_region(resolving, id, &region);
}

static int add_function(struct resolving *resolving, uint32_t id)
{
	uint32_t index = id - resolving->module->first_id;
	const struct plan_function *function = &resolving->plan.list[index];
	struct model_region region = {.kind = SPOOL_REGION_FUNCTION,
				      .address = function->vaddr + resolving->module->bias};

	if (function->flags & PLAN_FUNCTION_IS_BLOCK)
		return 0;
	if (function->flags & PLAN_FUNCTION_IS_LOOP)
		region.loop = loop_number(&resolving->plan, index);
	region.name = arena_format(&session_private(resolving->session)->arena, "[0x%" PRIx64 "]",
				   region.address);
	return add_region(resolving, id, &region);
}

static int add_used(struct resolving *resolving, uint32_t from, uint32_t to)
{
	int result = 0;

	for (uint32_t id = from; result == 0 && id < to && id < resolving->calls->limit; id++) {
		if (!calls_used(resolving->calls, id) ||
		    resolving->calls->regions[id] != MODEL_NONE)
			continue;
		result = id - from < resolving->plan.count ? add_function(resolving, id)
							   : add_number(resolving, id);
	}
	return result;
}

static uint32_t count_used(const struct process_calls *calls, uint32_t from, uint32_t to)
{
	uint32_t count = 0;

	for (uint32_t id = from; id < to && id < calls->limit; id++)
		count += calls_used(calls, id);
	return count;
}

/* Results keep a copy of what they need, so that they can be moved and the cache cleared. */
static int read_plan(struct resolving *resolving, const struct model_instrumented *module)
{
	const char *copy =
		arena_format(&session_private(resolving->session)->arena, "%s/instrumentation/%s",
			     resolving->session->directory, file_name(module->plan));
	int result;

	if (!copy)
		return -ENOMEM;
	result = plan_functions_read(copy, &resolving->plan);
	return result < 0 && result != -ENOMEM ? plan_functions_read(module->plan, &resolving->plan)
					       : result;
}

static int resolve_module(struct resolving *resolving, struct model_instrumented *module)
{
	uint32_t end = module->first_id + module->count;
	int result = 0;

	module->called = count_used(resolving->calls, module->first_id, end);
	if (module->called == 0)
		return 0;
	resolving->module = module;
	result = read_plan(resolving, module);
	module->plan_known = result == 0;
	if (result < 0 && result != -ENOMEM)
		result = session_note(resolving->session,
				      "the functions of %s have no names: their plan %s cannot be "
				      "read (%s)",
				      module->module, module->plan, strerror(-result));
	if (result == 0)
		result = add_used(resolving, module->first_id, end);
	if (result == 0 && module->plan_known && resolving->plan.count &&
	    !instrumented_is_mapped(resolving->session, module,
				    resolving->plan.list[0].vaddr + module->bias))
		result = instrumented_name(resolving->session, module, resolving->calls,
					   &resolving->plan);
	plan_functions_deinit(&resolving->plan);
	resolving->module = NULL;
	return result;
}

static int make_table(struct process_calls *calls)
{
	for (uint32_t word = CALL_IDS / 64; calls->limit == 0 && word-- > 0;) {
		if (calls->used[word])
			calls->limit = (word + 1) * 64;
	}
	calls->regions = malloc((calls->limit + 1) * sizeof(*calls->regions));
	if (!calls->regions)
		return -ENOMEM;
	for (uint32_t id = 0; id < calls->limit; id++)
		calls->regions[id] = MODEL_NONE;
	return 0;
}

/* Of a plan that was read: what has no region is meant to have none. */
static bool is_known(const struct session *session, uint32_t process, uint32_t id)
{
	for (uint32_t i = 0; i < session->calls->module_count; i++) {
		const struct model_instrumented *module = &session->calls->modules[i];

		if (module->process == process && module->plan_known && id >= module->first_id &&
		    id - module->first_id < module->count)
			return true;
	}
	return false;
}

static int make_regions(struct session *session, uint32_t process)
{
	struct session_private *private = session_private(session);
	struct resolving resolving = {.session = session,
				      .calls = &private->processes[process].calls,
				      .process = process};
	int result = make_table(resolving.calls);

	resolving.category = arena_intern(&private->arena, region_categories[REGION_HOST].name);
	if (!resolving.category)
		return -ENOMEM;
	resolving.calls->used[0] &= ~(uint64_t)1; /* id 0 is no function */
	for (uint32_t i = 0; result == 0 && i < session->calls->module_count; i++) {
		if (session->calls->modules[i].process == process)
			result = resolve_module(&resolving, &session->calls->modules[i]);
	}
	for (uint32_t id = 0; result == 0 && id < resolving.calls->limit; id++) {
		if (calls_used(resolving.calls, id) && resolving.calls->regions[id] == MODEL_NONE &&
		    !is_known(session, process, id))
			result = add_number(&resolving, id);
	}
	return result;
}

/* ---- sums ---- */

static int by_id(const void *left, const void *right)
{
	const struct call_count *a = left, *b = right;

	return a->id < b->id ? -1 : a->id > b->id;
}

static int by_calls(const void *left, const void *right)
{
	const struct model_counted *a = left, *b = right;

	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

void calls_sort(struct session *session)
{
	if (session->calls->counted_count > 1)
		qsort(session->calls->counted, session->calls->counted_count,
		      sizeof(*session->calls->counted), by_calls);
}

/* Of one process: over its threads. */
static int add_counts(struct session *session, uint32_t process)
{
	struct process_calls *own = &session_private(session)->processes[process].calls;
	struct model_calls *calls = session->calls;
	size_t *capacity = &session_private(session)->calls_capacity.counted;
	uint32_t before = calls->counted_count;

	if (own->count_count > 1)
		qsort(own->counts, own->count_count, sizeof(*own->counts), by_id);
	for (size_t i = 0; i < own->count_count; i++) {
		const struct call_count *count = &own->counts[i];
		struct model_counted *last = calls->counted_count > before
						     ? &calls->counted[calls->counted_count - 1]
						     : NULL;

		if (last && last->id == count->id) {
			last->calls += count->calls;
			continue;
		}
		if (array_reserve((void **)&calls->counted, capacity, calls->counted_count,
				  sizeof(*calls->counted)) < 0)
			return -ENOMEM;
		calls->counted[calls->counted_count++] =
			(struct model_counted){.process = process,
					       .id = count->id,
					       .region = own->regions[count->id],
					       .calls = count->calls};
	}
	return 0;
}

int instrumented_resolve(struct session *session, uint32_t process)
{
	struct process_calls *own = &session_private(session)->processes[process].calls;
	struct model_calls *calls = session->calls;
	int result;

	if (!own->used)
		return 0;
	result = make_regions(session, process);
	if (result < 0)
		return result;
	for (uint32_t i = 0; i < calls->demoted_count; i++) {
		if (calls->demoted[i].process == process)
			calls->demoted[i].region = own->regions[calls->demoted[i].id];
	}
	return add_counts(session, process);
}

/* ---- life ---- */

void process_calls_deinit(struct process_calls *calls)
{
	free(calls->parts);
	free(calls->used);
	free(calls->regions);
	free(calls->counts);
	id_map_deinit(&calls->count_of);
}

void session_free_calls(struct session *session)
{
	if (!session->calls)
		return;
	free(session->calls->modules);
	free(session->calls->counted);
	free(session->calls->demoted);
}
