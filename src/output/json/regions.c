/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h. Sums, minima and maxima are whole numbers in the unit of the component, which
 * is part of the key for ns and bytes. A node's values are those of its own call path; a total's
 * sum counts the time of recursive calls once.
 */
#include "output/json/regions.h"

#include <stdio.h>
#include <string.h>

#include "output/region_rows.h"

static const char *get_component_kind_name(enum spool_component_kind kind)
{
	static const char *const names[] = {
		[SPOOL_COMPONENT_PHASE] = "phase",
		[SPOOL_COMPONENT_LEVEL] = "level",
		[SPOOL_COMPONENT_COUNT] = "count",
		[SPOOL_COMPONENT_RATIO] = "ratio",
	};
	return names[kind];
}

void json_put_region_component_descriptions(struct json_writer *json, const struct session *session)
{
	const struct model_regions *regions = session_get_regions(session);

	if (regions->component_count == 0)
		return;
	json_array_begin(json, "components");
	for (uint32_t i = 0; i < regions->component_count; i++) {
		const struct model_region_component *component = &regions->components[i];

		json_object_begin(json, NULL);
		json_put_text(json, "name", component->name);
		json_put_text(json, "unit", component->unit);
		json_put_text(json, "description", component->description);
		json_put_text(json, "kind", get_component_kind_name(component->kind));
		json_object_end(json);
	}
	json_array_end(json);
}

/* ---- values ---- */

/* "sum_ns": the key with its unit. */
static const char *format_statistic_key_with_unit(const char *what,
						  const struct model_region_component *component,
						  char *buffer, size_t size)
{
	bool named = strcmp(component->unit, "ns") == 0 || strcmp(component->unit, "bytes") == 0;

	snprintf(buffer, size, "%s%s%s", what, named ? "_" : "", named ? component->unit : "");
	return buffer;
}

static void json_put_integer_statistic(struct json_writer *json,
				       const struct model_region_component *component,
				       const char *what, double value)
{
	char key[32];

	if (!(value > 0))
		value = 0;
	if (value > 1.8e19)
		value = 1.8e19;
	json_put_count(json, format_statistic_key_with_unit(what, component, key, sizeof(key)),
		       (uint64_t)(value + 0.5));
}

static void json_put_real_statistic(struct json_writer *json,
				    const struct model_region_component *component,
				    const char *what, double value)
{
	char key[32];

	json_put_real_with_12_digits(
		json, format_statistic_key_with_unit(what, component, key, sizeof(key)), value);
}

static void json_put_component_statistics(struct json_writer *json,
					  const struct model_region_component *component,
					  const struct region_value *value, uint64_t count)
{
	json_object_begin(json, component->name);
	if (component->kind == SPOOL_COMPONENT_RATIO) {
		json_put_real_with_6_digits(json, "percent", value->inclusive);
		json_object_end(json);
		return;
	}
	if (component->kind != SPOOL_COMPONENT_LEVEL)
		json_put_integer_statistic(json, component, "sum", value->inclusive);
	if (component->kind == SPOOL_COMPONENT_PHASE)
		json_put_integer_statistic(json, component, "self", value->self);
	if (value->calls.unfinished_sum > 0)
		json_put_integer_statistic(json, component, "unfinished",
					   value->calls.unfinished_sum);
	if (count) {
		json_put_real_statistic(json, component, "mean",
					statistics_get_mean(&value->calls, count));
		json_put_integer_statistic(json, component, "min", value->calls.minimum);
		json_put_integer_statistic(json, component, "max", value->calls.maximum);
		json_put_real_statistic(json, component, "stddev",
					statistics_get_standard_deviation(&value->calls, count));
	}
	json_object_end(json);
}

static void json_put_call_counts(struct json_writer *json, uint64_t count, uint64_t open)
{
	json_put_count(json, "count", count);
	if (open)
		json_put_count(json, "open", open);
}

/* ---- arrays ---- */

static void json_put_region_definitions(struct json_writer *json, const struct session *session)
{
	json_array_begin(json, "regions");
	for (uint32_t i = 0; i < session_get_regions(session)->region_count; i++) {
		const struct model_region *region = &session_get_regions(session)->regions[i];

		json_object_begin(json, NULL);
		json_put_count(json, "id", i);
		json_put_count(json, "process", region->process);
		json_put_text(json, "category", region->category);
		json_put_text(json, "name", region->name);
		if (region->kind == SPOOL_REGION_FUNCTION)
			json_put_count(json, "address", region->address);
		if (region->file) {
			json_put_text(json, "file", region->file);
			json_put_count(json, "line", region->line);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_region_nodes(struct json_writer *json, const struct session *session)
{
	const struct model_regions *regions = session_get_regions(session);

	json_array_begin(json, "region_nodes");
	for (uint32_t i = 0; i < regions->node_count; i++) {
		const struct model_region_node *node = &regions->nodes[i];

		json_object_begin(json, NULL);
		json_put_count(json, "id", i);
		if (node->parent == MODEL_ENTRY_INDEX_NONE)
			json_put_null(json, "parent");
		else
			json_put_count(json, "parent", node->parent);
		json_put_count(json, "region", node->region);
		json_put_text(json, "name", regions->regions[node->region].name);
		json_put_count(json, "process", node->process);
		json_put_count(json, "thread", node->thread);
		json_put_count(json, "depth", node->depth);
		json_put_call_counts(json, node->count, node->open);
		for (uint32_t k = 0; k < regions->component_count; k++) {
			struct region_value value = region_node_get_value(regions, i, k);

			json_put_component_statistics(json, &regions->components[k], &value,
						      node->count);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static int json_put_region_totals(struct json_writer *json, const struct session *session)
{
	const struct model_regions *regions = session_get_regions(session);
	struct region_table_layout_options layout = {.flat = true};
	struct region_rows rows;
	int result = region_rows_build(&rows, session, &layout);

	json_array_begin(json, "region_totals");
	for (uint32_t i = 0; result == 0 && i < rows.count; i++) {
		const struct region_row *row = &rows.rows[i];

		if (row->region == MODEL_ENTRY_INDEX_NONE || !row->has_calls_in_subtree)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "process", row->process);
		json_put_text(json, "category", regions->regions[row->region].category);
		json_put_text(json, "name", regions->regions[row->region].name);
		json_put_call_counts(json, row->count, row->open);
		for (uint32_t k = 0; k < regions->component_count; k++)
			json_put_component_statistics(json, &regions->components[k],
						      region_rows_get_value(&rows, i, k),
						      row->count);
		json_object_end(json);
	}
	json_array_end(json);
	region_rows_deinit(&rows);
	return result;
}

int json_put_region_profile(struct json_writer *json, const struct session *session, bool flat)
{
	if (session_get_regions(session)->region_count == 0)
		return 0;
	json_put_region_component_descriptions(json, session);
	json_put_region_definitions(json, session);
	if (!flat)
		json_put_region_nodes(json, session);
	return json_put_region_totals(json, session);
}

/* ---- counts ---- */

void json_put_session_region_counts(struct json_writer *json, const struct session *session)
{
	const struct model_regions *regions = session_get_regions(session);

	if (regions->region_count == 0)
		return;
	json_object_begin(json, "regions");
	json_put_count(json, "events", regions->events);
	json_put_count(json, "definitions", regions->region_count);
	json_put_count(json, "nodes", regions->node_count);
	json_put_count(json, "unbalanced", regions->unbalanced_region_count);
	json_put_text(json, "profile_from",
		      regions->was_aggregated_in_process ? "process" : "trace");
	json_object_end(json);
}

void json_put_process_rank_and_regions(struct json_writer *json, const struct session *session,
				       uint32_t process)
{
	const struct model_process *model = &session->processes[process];
	uint64_t definitions = 0;

	if (model->rank_count) {
		json_object_begin(json, "rank");
		json_put_count(json, "rank", model->rank);
		json_put_count(json, "size", model->rank_count);
		json_put_text(json, "source", model->rank_source);
		json_object_end(json);
	}
	if (model->region_record_bytes == 0)
		return;
	for (uint32_t i = 0; i < session_get_regions(session)->region_count; i++)
		definitions += session_get_regions(session)->regions[i].process == process;
	json_object_begin(json, "regions");
	json_put_count(json, "events", model->region_events);
	json_put_count(json, "definitions", definitions);
	json_put_count(json, "bytes", model->region_record_bytes);
	json_object_end(json);
}
