/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counter_records.h. A counter is introduced once for each agent that has it; where a value
 * stands in its dimensions is one number.
 */
#include "libkymo-gpu/counter_records.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libkymo-gpu/file.h"
#include "libkymo-gpu/names.h"

#define KNOWN_COUNTERS_MAX     1024
#define VALUES_PER_RECORD_MAX  1024u /* values of a record */
#define COUNTER_DIMENSIONS_MAX GPU_DIMENSIONS_MAX

/* A counter of an agent. */
struct known_counter {
	uint64_t counter, agent;
	uint32_t id; /* 0: not in this file yet */
	uint32_t dimension_count;
	uint64_t dimension_ids[COUNTER_DIMENSIONS_MAX]; /* their ids */
	uint32_t dimension_sizes[COUNTER_DIMENSIONS_MAX];
};

static struct known_counter known_counters[KNOWN_COUNTERS_MAX];
static uint32_t known_counter_count, last_written_counter_id;

static uint32_t find_or_write_optional_string(const char *text)
{
	return text != NULL && *text != '\0' ? gpu_file_find_or_write_string(text) : 0;
}

static void write_counter_definition_record(struct known_counter *counter)
{
	union {
		struct gpu_counter counter;
		char bytes[sizeof(struct gpu_counter) +
			   COUNTER_DIMENSIONS_MAX * sizeof(struct gpu_dimension)];
	} record;
	rocprofiler_counter_info_v1_t info = {.size = sizeof(info)};
	rocprofiler_counter_id_t id = {counter->counter};
	uint32_t count = 0;

	if (rocprofiler_query_counter_info(id, ROCPROFILER_COUNTER_INFO_VERSION_1, &info) !=
	    ROCPROFILER_STATUS_SUCCESS)
		return;
	memset(&record, 0, sizeof(record));
	for (; count < info.dimensions_count && count < COUNTER_DIMENSIONS_MAX; count++) {
		const rocprofiler_counter_record_dimension_info_t *told = info.dimensions[count];

		counter->dimension_ids[count] = told->id;
		counter->dimension_sizes[count] = (uint32_t)told->instance_size;
		record.counter.dimensions[count] = (struct gpu_dimension){
			gpu_file_find_or_write_string(told->name), (uint32_t)told->instance_size};
	}
	counter->dimension_count = count;
	counter->id = ++last_written_counter_id;
	record.counter.head.kind = GPU_RECORD_COUNTER;
	record.counter.head.size =
		(uint16_t)(sizeof(struct gpu_counter) + count * sizeof(struct gpu_dimension));
	record.counter.head.id = counter->id;
	record.counter.name = find_or_write_optional_string(info.name);
	record.counter.description = find_or_write_optional_string(info.description);
	record.counter.block = find_or_write_optional_string(info.block);
	record.counter.expression = find_or_write_optional_string(info.expression);
	record.counter.agent = names_find_or_write_agent((rocprofiler_agent_id_t){counter->agent});
	record.counter.flags = (info.is_derived ? GPU_COUNTER_DERIVED : 0) |
			       (info.is_constant ? GPU_COUNTER_CONSTANT : 0);
	record.counter.dimension_count = count;
	gpu_file_write_record(&record.counter.head);
}

/* NULL: too many, or unknown to the tool library. */
static struct known_counter *
find_or_write_counter_definition(const rocprofiler_counter_record_t *value)
{
	rocprofiler_counter_id_t id = {0};
	static uint32_t last;

	if (rocprofiler_query_record_counter_id(value->id, &id) != ROCPROFILER_STATUS_SUCCESS)
		return NULL;
	if (last < known_counter_count && known_counters[last].counter == id.handle &&
	    known_counters[last].agent == value->agent_id.handle && known_counters[last].id != 0)
		return &known_counters[last];
	for (last = 0; last < known_counter_count; last++) {
		if (known_counters[last].counter == id.handle &&
		    known_counters[last].agent == value->agent_id.handle)
			break;
	}
	if (last == KNOWN_COUNTERS_MAX)
		return NULL;
	if (last == known_counter_count)
		known_counters[known_counter_count++] = (struct known_counter){
			.counter = id.handle, .agent = value->agent_id.handle};
	if (known_counters[last].id == 0)
		write_counter_definition_record(&known_counters[last]);
	return known_counters[last].id != 0 ? &known_counters[last] : NULL;
}

static uint32_t compute_instance_number(const struct known_counter *counter,
					rocprofiler_counter_instance_id_t id)
{
	uint32_t instance = 0;

	for (uint32_t i = 0; i < counter->dimension_count; i++) {
		size_t position = 0;

		rocprofiler_query_record_dimension_position(
			id, (rocprofiler_counter_dimension_id_t)counter->dimension_ids[i],
			&position);
		instance = instance * counter->dimension_sizes[i] + (uint32_t)position;
	}
	return instance;
}

void counter_records_write_counted_kernel(const rocprofiler_dispatch_counting_service_data_t *told,
					  size_t count, uint32_t tid)
{
	struct gpu_counted record = {
		.head = {GPU_RECORD_COUNTED, sizeof(record),
			 names_find_or_write_launch_shape(&told->dispatch_info)},
		.start = told->start_timestamp,
		.duration = told->end_timestamp - told->start_timestamp,
		.correlation = told->correlation_id.internal,
		.queue = told->dispatch_info.queue_id.handle,
		.dispatch = told->dispatch_info.dispatch_id,
		.tid = tid,
		.value_count = (uint32_t)count};

	gpu_file_write_record(&record.head);
}

/* ---- values ---- */

static union {
	struct gpu_values values;
	struct gpu_reading reading;
	char bytes[sizeof(struct gpu_reading) + VALUES_PER_RECORD_MAX * sizeof(struct gpu_value)];
} values_record_buffer; /* under the file's lock */

static void write_counter_values_record(uint32_t counter, uint64_t dispatch, uint32_t count,
					uint64_t start, uint64_t end)
{
	uint32_t size = count * (uint32_t)sizeof(struct gpu_value);

	if (dispatch != 0) {
		values_record_buffer.values.head = (struct gpu_record_head){
			GPU_RECORD_VALUES, (uint16_t)(sizeof(struct gpu_values) + size), counter};
		values_record_buffer.values.dispatch = dispatch;
		values_record_buffer.values.count = count;
		values_record_buffer.values.reserved = 0;
	} else {
		values_record_buffer.reading.head = (struct gpu_record_head){
			GPU_RECORD_READING, (uint16_t)(sizeof(struct gpu_reading) + size), counter};
		values_record_buffer.reading.start = start;
		values_record_buffer.reading.end = end;
		values_record_buffer.reading.count = count;
		values_record_buffer.reading.reserved = 0;
	}
	gpu_file_write_record(&values_record_buffer.values.head);
}

void counter_records_write_values(const rocprofiler_counter_record_t *const *values, size_t count,
				  uint64_t start, uint64_t end)
{
	size_t i = 0;

	while (i < count) {
		uint64_t dispatch = values[i]->dispatch_id;
		struct known_counter *counter = find_or_write_counter_definition(values[i]),
				     *next = counter;
		struct gpu_value *to = dispatch != 0 ? values_record_buffer.values.values
						     : values_record_buffer.reading.values;
		uint32_t taken = 0;

		while (next == counter && taken < VALUES_PER_RECORD_MAX && i < count) {
			if (counter != NULL)
				to[taken] = (struct gpu_value){
					compute_instance_number(counter, values[i]->id), 0,
					values[i]->counter_value};
			taken++;
			if (++i < count)
				next = find_or_write_counter_definition(values[i]);
		}
		if (counter != NULL)
			write_counter_values_record(counter->id, dispatch, taken, start, end);
		else
			gpu_file_add_loss_count(GPU_LOSS_READINGS, taken);
	}
}

void counter_records_reset_after_fork(void)
{
	last_written_counter_id = 0;
	for (uint32_t i = 0; i < known_counter_count; i++)
		known_counters[i].id = 0;
}
