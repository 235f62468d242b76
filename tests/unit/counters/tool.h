/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a tool that counts does again and again: finds counters by name, makes configs, collects
 * records.
 */
#ifndef KYMO_TESTS_COUNTERS_TOOL_H
#define KYMO_TESTS_COUNTERS_TOOL_H

#include <kymo/counting.h>

#define TOOL_VALUES_MAX 65536

struct tool_found {
	const char *name;
	rocprofiler_counter_id_t id;
};

static rocprofiler_counter_record_t tool_values[TOOL_VALUES_MAX];
static size_t tool_value_count;
static rocprofiler_dispatch_counting_service_record_t tool_headers[64];
static size_t tool_header_count;

static inline rocprofiler_status_t tool_match(rocprofiler_agent_id_t agent,
					      rocprofiler_counter_id_t *counters, size_t count,
					      void *data)
{
	struct tool_found *found = data;

	(void)agent;
	for (size_t i = 0; i < count; i++) {
		rocprofiler_counter_info_v0_t info;

		OK(rocprofiler_query_counter_info(counters[i], ROCPROFILER_COUNTER_INFO_VERSION_0,
						  &info));
		CHECK_EQUAL(info.id.handle, counters[i].handle);
		if (strcmp(info.name, found->name) == 0)
			found->id = counters[i];
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

/* 0: the agent has no such counter. */
static inline rocprofiler_counter_id_t tool_counter(uint64_t agent, const char *name)
{
	struct tool_found found = {.name = name};

	OK(rocprofiler_iterate_agent_supported_counters((rocprofiler_agent_id_t){agent}, tool_match,
							&found));
	return found.id;
}

/* Of counters by name, the last being NULL. */
static inline rocprofiler_counter_config_id_t tool_config(uint64_t agent, ...)
{
	rocprofiler_counter_config_id_t made = {0};
	rocprofiler_counter_id_t ids[32];
	const char *name;
	va_list names;
	size_t count = 0;

	va_start(names, agent);
	while ((name = va_arg(names, const char *)) != NULL) {
		ids[count] = tool_counter(agent, name);
		if (!ids[count].handle)
			fprintf(stderr, "there is no counter %s\n", name);
		CHECK(ids[count].handle != 0);
		count++;
	}
	va_end(names);
	OK(rocprofiler_create_counter_config((rocprofiler_agent_id_t){agent}, ids, count, &made));
	CHECK(made.handle != 0);
	return made;
}

static inline size_t tool_position(rocprofiler_counter_instance_id_t id, uint64_t dimension)
{
	size_t position = 12345;

	OK(rocprofiler_query_record_dimension_position(id, dimension, &position));
	return position;
}

static inline void tool_records(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
				rocprofiler_record_header_t **headers, size_t count, void *data,
				uint64_t dropped)
{
	(void)context;
	(void)buffer;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	for (size_t i = 0; i < count; i++) {
		CHECK_EQUAL(headers[i]->category, ROCPROFILER_BUFFER_CATEGORY_COUNTERS);
		if (headers[i]->kind == ROCPROFILER_COUNTER_RECORD_VALUE) {
			CHECK(tool_value_count < TOOL_VALUES_MAX);
			memcpy(&tool_values[tool_value_count++], headers[i]->payload,
			       sizeof(tool_values[0]));
		} else {
			CHECK_EQUAL(headers[i]->kind,
				    ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER);
			CHECK(tool_header_count < 64);
			memcpy(&tool_headers[tool_header_count++], headers[i]->payload,
			       sizeof(tool_headers[0]));
		}
	}
}

#endif
