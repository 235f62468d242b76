/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See coverage.h.
 */
#include "analysis/coverage/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plan_table.h"
#include "analysis/regions/calls_private.h"
#include "analysis/session_private.h"
#include "common/foreign_file.h"

#define LOOP_OR_BLOCK_FLAGS ((unsigned)PLAN_FUNCTION_IS_LOOP | (unsigned)PLAN_FUNCTION_IS_BLOCK)

/* A module of one process, while its units are added. */
struct code_range_gathering_context {
	struct coverage *coverage;
	struct session *session;
	const struct model_instrumented_module *instrumented_module;
	const struct model_module *mapped_module; /* NULL: unknown */
	struct plan_functions plan_functions;
	uint8_t *function_modes;        /* NULL: unknown, then all that can be patched are */
	uint64_t *call_count_by_region; /* of the session */
};

/* ---- counts ---- */

static uint64_t *sum_calls_by_region(const struct session *session)
{
	const struct model_regions *regions = session_get_regions(session);
	uint64_t *calls = calloc((size_t)regions->region_count + 1, sizeof(*calls));

	for (uint32_t i = 0; calls && i < regions->node_count; i++)
		calls[regions->nodes[i].region] += regions->nodes[i].count + regions->nodes[i].open;
	return calls;
}

/* What was executed was so once at least, whatever counts say. */
static uint64_t count_calls_of_one_function(const struct code_range_gathering_context *gathering,
					    uint32_t id)
{
	const struct calls_of_process *calls =
		process_get_calls(gathering->session, gathering->instrumented_module->process);
	uint64_t count = 0;

	if (!calls->used || id >= calls->limit || !function_id_is_used(calls, id))
		return 0;
	if (calls->regions[id] != MODEL_ENTRY_INDEX_NONE)
		count = gathering->call_count_by_region[calls->regions[id]];
	for (size_t low = 0, high = calls->call_count_entry_count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (calls->call_count_entries[middle].id < id) {
			low = middle + 1;
			continue;
		}
		high = middle;
		if (calls->call_count_entries[middle].id != id)
			continue;
		while (middle > 0 && calls->call_count_entries[middle - 1].id == id)
			middle--;
		for (; middle < calls->call_count_entry_count &&
		       calls->call_count_entries[middle].id == id;
		     middle++)
			count += calls->call_count_entries[middle].calls;
		break;
	}
	return count ? count : 1;
}

/* ---- units ---- */

static bool function_or_block_is_instrumented(const struct code_range_gathering_context *gathering,
					      uint32_t index)
{
	const struct plan_function *function = &gathering->plan_functions.list[index];

	if (function->flags & PLAN_FUNCTION_IS_LOOP)
		return false;
	if (function->stub == 0 && !(function->flags & PLAN_FUNCTION_IS_BLOCK))
		return false;
	return !gathering->function_modes || gathering->function_modes[index] != PLAN_MODE_OFF;
}

/* What counts it: itself, or what is executed as often; MODEL_ENTRY_INDEX_NONE: nothing does. */
static uint32_t
find_function_that_counts_function(const struct code_range_gathering_context *gathering,
				   uint32_t index)
{
	const struct plan_function *function = &gathering->plan_functions.list[index];

	if (function->stub == 0)
		index = function->reason == PLAN_COUNTED_ELSEWHERE ? function->site
								   : MODEL_ENTRY_INDEX_NONE;
	return index < gathering->plan_functions.count &&
			       index < gathering->instrumented_module->count &&
			       gathering->plan_functions.list[index].stub
		       ? index
		       : MODEL_ENTRY_INDEX_NONE;
}

static uint64_t compute_file_offset_of_vaddr(const struct code_range_gathering_context *gathering,
					     uint64_t vaddr)
{
	const struct model_module *mapped = gathering->mapped_module;
	uint64_t address = vaddr + gathering->instrumented_module->bias;

	if (!mapped || address < mapped->start || address >= mapped->end)
		return UINT64_MAX;
	return address - mapped->start + mapped->file_offset;
}

static int add_module_code_ranges(struct code_range_gathering_context *gathering,
				  struct coverage_module *module)
{
	for (uint32_t i = 0;
	     i < gathering->plan_functions.count && i < gathering->instrumented_module->count;
	     i++) {
		const struct plan_function *function = &gathering->plan_functions.list[i];
		uint32_t counted;

		if (!function_or_block_is_instrumented(gathering, i))
			continue;
		counted = find_function_that_counts_function(gathering, i);
		if (array_reserve_one_more((void **)&module->units, &module->unit_capacity,
					   module->unit_count, sizeof(*module->units)) < 0)
			return -ENOMEM;
		module->units[module->unit_count++] = (struct coverage_code_range){
			.vaddr = function->vaddr,
			.size = function->size,
			.file_offset = compute_file_offset_of_vaddr(gathering, function->vaddr),
			.block = (function->flags & LOOP_OR_BLOCK_FLAGS) != 0,
			.is_unmeasured = counted == MODEL_ENTRY_INDEX_NONE,
			.calls = counted == MODEL_ENTRY_INDEX_NONE
					 ? 0
					 : count_calls_of_one_function(
						   gathering,
						   gathering->instrumented_module->first_id +
							   counted)};
	}
	return 0;
}

/* ---- modules ---- */

static struct coverage_module *find_or_add_coverage_module(struct coverage *coverage,
							   const char *path,
							   const struct plan_functions *plan)
{
	struct coverage_module *module;

	for (size_t i = 0; i < coverage->module_count; i++) {
		module = &coverage->modules[i];
		if (!module->is_python && strcmp(module->path, path) == 0 &&
		    module->build_id_size == plan->build_id_size &&
		    memcmp(module->build_id, plan->build_id, plan->build_id_size) == 0)
			return module;
	}
	if (array_reserve_one_more((void **)&coverage->modules, &coverage->module_capacity,
				   coverage->module_count, sizeof(*module)) < 0)
		return NULL;
	module = &coverage->modules[coverage->module_count];
	*module = (struct coverage_module){.path = string_pool_intern(coverage->string_pool, path),
					   .build_id_size = plan->build_id_size};
	memcpy(module->build_id, plan->build_id, sizeof(module->build_id));
	if (!module->path)
		return NULL;
	coverage->module_count++;
	return module;
}

/* The plan's functions lie in one mapping of the file, nearly always. */
static const struct model_module *
find_mapped_module(const struct code_range_gathering_context *gathering)
{
	const struct model_process *process =
		&gathering->session->processes[gathering->instrumented_module->process];
	uint64_t address = gathering->plan_functions.count
				   ? gathering->plan_functions.list[0].vaddr +
					     gathering->instrumented_module->bias
				   : 0;

	for (uint32_t i = 0; i < process->module_count; i++) {
		const struct model_module *module =
			&gathering->session->modules[process->first_module + i];

		if (address >= module->start && address < module->end)
			return module;
	}
	return NULL;
}

/* "X.modes" beside "X.plan". */
static uint8_t *read_function_modes_beside_plan(const char *plan_path, uint32_t count)
{
	size_t length = strlen(plan_path);
	uint8_t *modes;
	char *path;
	FILE *file;
	bool good = false;

	if (length < 5 || strcmp(plan_path + length - 5, ".plan") != 0 ||
	    asprintf(&path, "%.*s.modes", (int)length - 5, plan_path) < 0)
		return NULL;
	file = foreign_open_stream(&foreign_policy_of_result_files, path);
	modes = calloc((size_t)count + 1, 1);
	if (file && modes)
		good = fread(modes, 1, count, file) == count;
	if (file)
		fclose(file);
	free(path);
	if (!good) {
		free(modes);
		return NULL;
	}
	return modes;
}

static int gather_module_code_ranges(struct code_range_gathering_context *gathering)
{
	const char *slash = strrchr(gathering->instrumented_module->plan, '/'),
		   *path = gathering->instrumented_module->plan;
	struct coverage_module *module;
	char *copy;
	int result;

	if (asprintf(&copy, "%s/instrumentation/%s", gathering->session->directory,
		     slash ? slash + 1 : path) < 0)
		return -ENOMEM;
	result = plan_functions_read(copy, &gathering->plan_functions);
	if (result == 0)
		path = copy;
	else if (result != -ENOMEM)
		result = plan_functions_read(path, &gathering->plan_functions);
	if (result == 0) {
		gathering->function_modes =
			read_function_modes_beside_plan(path, gathering->plan_functions.count);
		gathering->mapped_module = find_mapped_module(gathering);
		module = find_or_add_coverage_module(gathering->coverage,
						     gathering->instrumented_module->module,
						     &gathering->plan_functions);
		result = module ? add_module_code_ranges(gathering, module) : -ENOMEM;
	} else if (result != -ENOMEM) {
		result = 0; /* session_open() has said it */
	}
	free(copy);
	free(gathering->function_modes);
	plan_functions_deinit(&gathering->plan_functions);
	gathering->function_modes = NULL;
	return result;
}

static int gather_session_code_ranges(struct coverage *coverage, struct session *session)
{
	struct code_range_gathering_context gathering = {.coverage = coverage,
							 .session = session,
							 .call_count_by_region =
								 sum_calls_by_region(session)};
	int result = gathering.call_count_by_region ? 0 : -ENOMEM;

	for (uint32_t i = 0; result == 0 && i < session_get_calls(session)->module_count; i++) {
		gathering.instrumented_module = &session_get_calls(session)->modules[i];
		result = gather_module_code_ranges(&gathering);
	}
	free(gathering.call_count_by_region);
	return result;
}

/* ---- sums ---- */

static int compare_code_ranges_by_address(const void *left, const void *right)
{
	const struct coverage_code_range *a = left, *b = right;

	if (a->block != b->block)
		return a->block ? 1 : -1;
	return a->vaddr < b->vaddr ? -1 : a->vaddr > b->vaddr;
}

/* A unit of several processes and runs is one. */
static void merge_equal_code_ranges(struct coverage_module *module)
{
	size_t kept = 0;

	if (module->unit_count > 1)
		qsort(module->units, module->unit_count, sizeof(*module->units),
		      compare_code_ranges_by_address);
	for (size_t i = 0; i < module->unit_count; i++) {
		struct coverage_code_range *unit = &module->units[i];

		if (kept && compare_code_ranges_by_address(&module->units[kept - 1], unit) == 0) {
			module->units[kept - 1].calls += unit->calls;
			if (module->units[kept - 1].file_offset == UINT64_MAX)
				module->units[kept - 1].file_offset = unit->file_offset;
		} else {
			module->units[kept++] = *unit;
		}
	}
	module->unit_count = kept;
}

/* Nothing is known of them but their number. */
static void drop_unmeasured_code_ranges(struct coverage_module *module)
{
	size_t kept = 0;

	for (size_t i = 0; i < module->unit_count; i++) {
		if (module->units[i].is_unmeasured)
			module->unmeasured_block_count++;
		else
			module->units[kept++] = module->units[i];
	}
	module->unit_count = kept;
}

static void add_counted_unit_to_share(struct coverage_share_counts *share, uint64_t calls)
{
	share->total_count++;
	share->covered_count += calls > 0;
}

static void add_coverage_share(struct coverage_share_counts *to,
			       const struct coverage_share_counts *from)
{
	to->total_count += from->total_count;
	to->covered_count += from->covered_count;
}

static void sum_module_shares(struct coverage *coverage, struct coverage_module *module)
{
	for (size_t i = 0; i < module->unit_count; i++)
		add_counted_unit_to_share(module->units[i].block ? &module->blocks
								 : &module->functions,
					  module->units[i].calls);
	for (size_t i = 0; i < module->line_count; i++)
		add_counted_unit_to_share(&module->code_lines, module->lines[i].count);
	coverage->unmeasured_block_count += module->unmeasured_block_count;
	add_coverage_share(&coverage->functions, &module->functions);
	add_coverage_share(&coverage->blocks, &module->blocks);
	add_coverage_share(&coverage->code_lines, &module->code_lines);
}

int coverage_compute(struct session *const *sessions, size_t count, struct coverage *ret,
		     struct problem *problem)
{
	struct coverage coverage = {0};
	int result = string_pool_create(&coverage.string_pool);

	for (size_t i = 0; result == 0 && i < count; i++)
		result = gather_session_code_ranges(&coverage, sessions[i]);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = coverage_gather_python(&coverage, sessions[i]);
	if (result == -ENOMEM)
		session_set_out_of_memory_problem(problem);
	for (size_t i = 0; result == 0 && i < coverage.module_count; i++) {
		merge_equal_code_ranges(&coverage.modules[i]);
		drop_unmeasured_code_ranges(&coverage.modules[i]);
		if (coverage.modules[i].is_python)
			coverage_merge_python_lines(&coverage.modules[i]);
		else
			result = coverage_find_module_names_and_lines(
				&coverage, &coverage.modules[i],
				&session_get_private(sessions[0])->options, problem);
		if (result == 0)
			sum_module_shares(&coverage, &coverage.modules[i]);
	}
	if (result < 0)
		coverage_deinit(&coverage);
	else
		*ret = coverage;
	return result;
}

void coverage_deinit(struct coverage *coverage)
{
	for (size_t i = 0; i < coverage->module_count; i++) {
		free(coverage->modules[i].units);
		free(coverage->modules[i].lines);
	}
	free(coverage->modules);
	string_pool_destroy(coverage->string_pool);
	*coverage = (struct coverage){0};
}
