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

#define KNOWN_MAX  1024
#define AT_ONCE    1024u /* values of a record */
#define DIMENSIONS GPU_DIMENSIONS_MAX

/* A counter of an agent. */
struct known {
	uint64_t counter, agent;
	uint32_t id; /* 0: not in this file yet */
	uint32_t dimension_count;
	uint64_t dimensions[DIMENSIONS]; /* their ids */
	uint32_t sizes[DIMENSIONS];
};

static struct known known[KNOWN_MAX];
static uint32_t known_count, ids_given;

static uint32_t text_of(const char *text)
{
	return text != NULL && *text != '\0' ? gpu_file_string(text) : 0;
}

static void introduce(struct known *counter)
{
	union {
		struct gpu_counter counter;
		char bytes[sizeof(struct gpu_counter) + DIMENSIONS * sizeof(struct gpu_dimension)];
	} record;
	rocprofiler_counter_info_v1_t info = {.size = sizeof(info)};
	rocprofiler_counter_id_t id = {counter->counter};
	uint32_t count = 0;

	if (rocprofiler_query_counter_info(id, ROCPROFILER_COUNTER_INFO_VERSION_1, &info) !=
	    ROCPROFILER_STATUS_SUCCESS)
		return;
	memset(&record, 0, sizeof(record));
	for (; count < info.dimensions_count && count < DIMENSIONS; count++) {
		const rocprofiler_counter_record_dimension_info_t *told = info.dimensions[count];

		counter->dimensions[count] = told->id;
		counter->sizes[count] = (uint32_t)told->instance_size;
		record.counter.dimensions[count] = (struct gpu_dimension){
			gpu_file_string(told->name), (uint32_t)told->instance_size};
	}
	counter->dimension_count = count;
	counter->id = ++ids_given;
	record.counter.head.kind = GPU_RECORD_COUNTER;
	record.counter.head.size =
		(uint16_t)(sizeof(struct gpu_counter) + count * sizeof(struct gpu_dimension));
	record.counter.head.id = counter->id;
	record.counter.name = text_of(info.name);
	record.counter.description = text_of(info.description);
	record.counter.block = text_of(info.block);
	record.counter.expression = text_of(info.expression);
	record.counter.agent = names_agent((rocprofiler_agent_id_t){counter->agent});
	record.counter.flags = (info.is_derived ? GPU_COUNTER_DERIVED : 0) |
			       (info.is_constant ? GPU_COUNTER_CONSTANT : 0);
	record.counter.dimension_count = count;
	gpu_file_write(&record.counter.head);
}

/* NULL: too many, or unknown to the tool library. */
static struct known *find(const rocprofiler_counter_record_t *value)
{
	rocprofiler_counter_id_t id = {0};
	static uint32_t last;

	if (rocprofiler_query_record_counter_id(value->id, &id) != ROCPROFILER_STATUS_SUCCESS)
		return NULL;
	if (last < known_count && known[last].counter == id.handle &&
	    known[last].agent == value->agent_id.handle && known[last].id != 0)
		return &known[last];
	for (last = 0; last < known_count; last++) {
		if (known[last].counter == id.handle && known[last].agent == value->agent_id.handle)
			break;
	}
	if (last == KNOWN_MAX)
		return NULL;
	if (last == known_count)
		known[known_count++] =
			(struct known){.counter = id.handle, .agent = value->agent_id.handle};
	if (known[last].id == 0)
		introduce(&known[last]);
	return known[last].id != 0 ? &known[last] : NULL;
}

static uint32_t instance_of(const struct known *counter, rocprofiler_counter_instance_id_t id)
{
	uint32_t instance = 0;

	for (uint32_t i = 0; i < counter->dimension_count; i++) {
		size_t position = 0;

		rocprofiler_query_record_dimension_position(
			id, (rocprofiler_counter_dimension_id_t)counter->dimensions[i], &position);
		instance = instance * counter->sizes[i] + (uint32_t)position;
	}
	return instance;
}

void counter_records_kernel(const rocprofiler_dispatch_counting_service_data_t *told, size_t count,
			    uint32_t tid)
{
	struct gpu_counted record = {
		.head = {GPU_RECORD_COUNTED, sizeof(record), names_shape(&told->dispatch_info)},
		.start = told->start_timestamp,
		.duration = told->end_timestamp - told->start_timestamp,
		.correlation = told->correlation_id.internal,
		.queue = told->dispatch_info.queue_id.handle,
		.dispatch = told->dispatch_info.dispatch_id,
		.tid = tid,
		.value_count = (uint32_t)count};

	gpu_file_write(&record.head);
}

/* ---- values ---- */

static union {
	struct gpu_values values;
	struct gpu_reading reading;
	char bytes[sizeof(struct gpu_reading) + AT_ONCE * sizeof(struct gpu_value)];
} record; /* under the file's lock */

static void write_values(uint32_t counter, uint64_t dispatch, uint32_t count, uint64_t start,
			 uint64_t end)
{
	uint32_t size = count * (uint32_t)sizeof(struct gpu_value);

	if (dispatch != 0) {
		record.values.head = (struct gpu_record_head){
			GPU_RECORD_VALUES, (uint16_t)(sizeof(struct gpu_values) + size), counter};
		record.values.dispatch = dispatch;
		record.values.count = count;
		record.values.reserved = 0;
	} else {
		record.reading.head = (struct gpu_record_head){
			GPU_RECORD_READING, (uint16_t)(sizeof(struct gpu_reading) + size), counter};
		record.reading.start = start;
		record.reading.end = end;
		record.reading.count = count;
		record.reading.reserved = 0;
	}
	gpu_file_write(&record.values.head);
}

void counter_records_values(const rocprofiler_counter_record_t *const *values, size_t count,
			    uint64_t start, uint64_t end)
{
	size_t i = 0;

	while (i < count) {
		uint64_t dispatch = values[i]->dispatch_id;
		struct known *counter = find(values[i]), *next = counter;
		struct gpu_value *to = dispatch != 0 ? record.values.values : record.reading.values;
		uint32_t taken = 0;

		while (next == counter && taken < AT_ONCE && i < count) {
			if (counter != NULL)
				to[taken] = (struct gpu_value){instance_of(counter, values[i]->id),
							       0, values[i]->counter_value};
			taken++;
			if (++i < count)
				next = find(values[i]);
		}
		if (counter != NULL)
			write_values(counter->id, dispatch, taken, start, end);
		else
			gpu_file_lost(GPU_LOSS_READINGS, taken);
	}
}

void counter_records_forked(void)
{
	ids_given = 0;
	for (uint32_t i = 0; i < known_count; i++)
		known[i].id = 0;
}
