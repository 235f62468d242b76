/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See coverage.h.
 */
#include "analysis/coverage_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plan_table.h"
#include "analysis/session_private.h"

#define PLACES ((unsigned)PLAN_FUNCTION_IS_LOOP | (unsigned)PLAN_FUNCTION_IS_BLOCK)

/* A module of one process, while its units are added. */
struct gathering {
	struct coverage *coverage;
	struct session *session;
	const struct model_instrumented *from;
	const struct model_module *mapped; /* NULL: unknown */
	struct plan_functions plan;
	uint8_t *modes;         /* NULL: unknown, then all that can be patched are */
	uint64_t *region_calls; /* of the session */
};

/* ---- counts ---- */

static uint64_t *sum_calls(const struct session *session)
{
	const struct model_regions *regions = session->regions;
	uint64_t *calls = calloc((size_t)regions->region_count + 1, sizeof(*calls));

	for (uint32_t i = 0; calls && i < regions->node_count; i++)
		calls[regions->nodes[i].region] += regions->nodes[i].count + regions->nodes[i].open;
	return calls;
}

/* What was executed was so once at least, whatever counts say. */
static uint64_t calls_of(const struct gathering *gathering, uint32_t id)
{
	const struct process_calls *calls =
		&session_private(gathering->session)->processes[gathering->from->process].calls;
	uint64_t count = 0;

	if (!calls->used || id >= calls->limit || !calls_used(calls, id))
		return 0;
	if (calls->regions[id] != MODEL_NONE)
		count = gathering->region_calls[calls->regions[id]];
	for (size_t low = 0, high = calls->count_count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (calls->counts[middle].id < id) {
			low = middle + 1;
			continue;
		}
		high = middle;
		if (calls->counts[middle].id != id)
			continue;
		while (middle > 0 && calls->counts[middle - 1].id == id)
			middle--;
		for (; middle < calls->count_count && calls->counts[middle].id == id; middle++)
			count += calls->counts[middle].calls;
		break;
	}
	return count ? count : 1;
}

/* ---- units ---- */

static bool is_chosen(const struct gathering *gathering, uint32_t index)
{
	const struct plan_function *function = &gathering->plan.list[index];

	if (function->flags & PLAN_FUNCTION_IS_LOOP)
		return false;
	if (function->stub == 0 && !(function->flags & PLAN_FUNCTION_IS_BLOCK))
		return false;
	return !gathering->modes || gathering->modes[index] != PLAN_MODE_OFF;
}

/* What counts it: itself, or what is executed as often; MODEL_NONE: nothing does. */
static uint32_t counted_by(const struct gathering *gathering, uint32_t index)
{
	const struct plan_function *function = &gathering->plan.list[index];

	if (function->stub == 0)
		index = function->reason == PLAN_COUNTED_ELSEWHERE ? function->site : MODEL_NONE;
	return index < gathering->plan.count && index < gathering->from->count &&
			       gathering->plan.list[index].stub
		       ? index
		       : MODEL_NONE;
}

static uint64_t file_offset(const struct gathering *gathering, uint64_t vaddr)
{
	const struct model_module *mapped = gathering->mapped;
	uint64_t address = vaddr + gathering->from->bias;

	if (!mapped || address < mapped->start || address >= mapped->end)
		return UINT64_MAX;
	return address - mapped->start + mapped->file_offset;
}

static int add_units(struct gathering *gathering, struct coverage_module *module)
{
	for (uint32_t i = 0; i < gathering->plan.count && i < gathering->from->count; i++) {
		const struct plan_function *function = &gathering->plan.list[i];
		uint32_t counted;

		if (!is_chosen(gathering, i))
			continue;
		counted = counted_by(gathering, i);
		if (array_reserve((void **)&module->units, &module->unit_capacity,
				  module->unit_count, sizeof(*module->units)) < 0)
			return -ENOMEM;
		module->units[module->unit_count++] = (struct coverage_unit){
			.vaddr = function->vaddr,
			.size = function->size,
			.file_offset = file_offset(gathering, function->vaddr),
			.block = (function->flags & PLACES) != 0,
			.unmeasured = counted == MODEL_NONE,
			.calls =
				counted == MODEL_NONE
					? 0
					: calls_of(gathering, gathering->from->first_id + counted)};
	}
	return 0;
}

/* ---- modules ---- */

static struct coverage_module *module_of(struct coverage *coverage, const char *path,
					 const struct plan_functions *plan)
{
	struct coverage_module *module;

	for (size_t i = 0; i < coverage->module_count; i++) {
		module = &coverage->modules[i];
		if (strcmp(module->path, path) == 0 &&
		    module->build_id_size == plan->build_id_size &&
		    memcmp(module->build_id, plan->build_id, plan->build_id_size) == 0)
			return module;
	}
	if (array_reserve((void **)&coverage->modules, &coverage->module_capacity,
			  coverage->module_count, sizeof(*module)) < 0)
		return NULL;
	module = &coverage->modules[coverage->module_count];
	*module = (struct coverage_module){.path = string_pool_intern(coverage->pool, path),
					   .build_id_size = plan->build_id_size};
	memcpy(module->build_id, plan->build_id, sizeof(module->build_id));
	if (!module->path)
		return NULL;
	coverage->module_count++;
	return module;
}

/* The plan's functions lie in one mapping of the file, nearly always. */
static const struct model_module *find_mapping(const struct gathering *gathering)
{
	const struct model_process *process =
		&gathering->session->processes[gathering->from->process];
	uint64_t address =
		gathering->plan.count ? gathering->plan.list[0].vaddr + gathering->from->bias : 0;

	for (uint32_t i = 0; i < process->module_count; i++) {
		const struct model_module *module =
			&gathering->session->modules[process->first_module + i];

		if (address >= module->start && address < module->end)
			return module;
	}
	return NULL;
}

/* "X.modes" beside "X.plan". */
static uint8_t *read_modes(const char *plan_path, uint32_t count)
{
	size_t length = strlen(plan_path);
	uint8_t *modes;
	char *path;
	FILE *file;
	bool good = false;

	if (length < 5 || strcmp(plan_path + length - 5, ".plan") != 0 ||
	    asprintf(&path, "%.*s.modes", (int)length - 5, plan_path) < 0)
		return NULL;
	file = fopen(path, "re");
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

static int gather_module(struct gathering *gathering)
{
	const char *slash = strrchr(gathering->from->plan, '/'), *path = gathering->from->plan;
	struct coverage_module *module;
	char *copy;
	int result;

	if (asprintf(&copy, "%s/instrumentation/%s", gathering->session->directory,
		     slash ? slash + 1 : path) < 0)
		return -ENOMEM;
	result = plan_functions_read(copy, &gathering->plan);
	if (result == 0)
		path = copy;
	else if (result != -ENOMEM)
		result = plan_functions_read(path, &gathering->plan);
	if (result == 0) {
		gathering->modes = read_modes(path, gathering->plan.count);
		gathering->mapped = find_mapping(gathering);
		module = module_of(gathering->coverage, gathering->from->module, &gathering->plan);
		result = module ? add_units(gathering, module) : -ENOMEM;
	} else if (result != -ENOMEM) {
		result = 0; /* session_open() has said it */
	}
	free(copy);
	free(gathering->modes);
	plan_functions_deinit(&gathering->plan);
	gathering->modes = NULL;
	return result;
}

static int gather_session(struct coverage *coverage, struct session *session)
{
	struct gathering gathering = {
		.coverage = coverage, .session = session, .region_calls = sum_calls(session)};
	int result = gathering.region_calls ? 0 : -ENOMEM;

	for (uint32_t i = 0; result == 0 && i < session->calls->module_count; i++) {
		gathering.from = &session->calls->modules[i];
		result = gather_module(&gathering);
	}
	free(gathering.region_calls);
	return result;
}

/* ---- sums ---- */

static int by_kind_and_address(const void *left, const void *right)
{
	const struct coverage_unit *a = left, *b = right;

	if (a->block != b->block)
		return a->block ? 1 : -1;
	return a->vaddr < b->vaddr ? -1 : a->vaddr > b->vaddr;
}

/* A unit of several processes and runs is one. */
static void join_units(struct coverage_module *module)
{
	size_t kept = 0;

	if (module->unit_count > 1)
		qsort(module->units, module->unit_count, sizeof(*module->units),
		      by_kind_and_address);
	for (size_t i = 0; i < module->unit_count; i++) {
		struct coverage_unit *unit = &module->units[i];

		if (kept && by_kind_and_address(&module->units[kept - 1], unit) == 0) {
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
static void drop_unmeasured(struct coverage_module *module)
{
	size_t kept = 0;

	for (size_t i = 0; i < module->unit_count; i++) {
		if (module->units[i].unmeasured)
			module->unmeasured++;
		else
			module->units[kept++] = module->units[i];
	}
	module->unit_count = kept;
}

static void add_share(struct coverage_share *share, uint64_t calls)
{
	share->total++;
	share->covered += calls > 0;
}

static void add_shares(struct coverage_share *to, const struct coverage_share *from)
{
	to->total += from->total;
	to->covered += from->covered;
}

static void sum_module(struct coverage *coverage, struct coverage_module *module)
{
	for (size_t i = 0; i < module->unit_count; i++)
		add_share(module->units[i].block ? &module->blocks : &module->functions,
			  module->units[i].calls);
	for (size_t i = 0; i < module->line_count; i++)
		add_share(&module->code_lines, module->lines[i].count);
	coverage->unmeasured += module->unmeasured;
	add_shares(&coverage->functions, &module->functions);
	add_shares(&coverage->blocks, &module->blocks);
	add_shares(&coverage->code_lines, &module->code_lines);
}

int coverage_make(struct session *const *sessions, size_t count, struct coverage *ret,
		  struct problem *problem)
{
	struct coverage coverage = {0};
	int result = string_pool_create(&coverage.pool);

	for (size_t i = 0; result == 0 && i < count; i++)
		result = gather_session(&coverage, sessions[i]);
	if (result == -ENOMEM)
		session_out_of_memory(problem);
	for (size_t i = 0; result == 0 && i < coverage.module_count; i++) {
		join_units(&coverage.modules[i]);
		drop_unmeasured(&coverage.modules[i]);
		result = coverage_find_source(&coverage, &coverage.modules[i],
					      &session_private(sessions[0])->options, problem);
		if (result == 0)
			sum_module(&coverage, &coverage.modules[i]);
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
	string_pool_destroy(coverage->pool);
	*coverage = (struct coverage){0};
}
