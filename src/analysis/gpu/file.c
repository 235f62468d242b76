/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The framing of kymo/gpu_records.h; see gpu.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"

/* More ids than any file has records for would only cost memory. */
static size_t get_smallest_record_size(uint16_t kind)
{
	switch (kind) {
	case GPU_RECORD_STRING:
	case GPU_RECORD_NOTICE:
		return sizeof(struct gpu_string) + 1;
	case GPU_RECORD_AGENT:
		return sizeof(struct gpu_agent);
	case GPU_RECORD_SHAPE:
		return sizeof(struct gpu_shape);
	case GPU_RECORD_KERNEL:
		return sizeof(struct gpu_kernel);
	case GPU_RECORD_COPY:
		return sizeof(struct gpu_copy);
	case GPU_RECORD_CALL:
		return sizeof(struct gpu_call);
	case GPU_RECORD_ALLOCATION:
		return sizeof(struct gpu_allocation);
	case GPU_RECORD_MARKER:
		return sizeof(struct gpu_marker);
	case GPU_RECORD_METRIC:
		return sizeof(struct gpu_metric);
	case GPU_RECORD_COUNTER:
		return sizeof(struct gpu_counter);
	case GPU_RECORD_COUNTED:
		return sizeof(struct gpu_counted);
	case GPU_RECORD_VALUES:
		return sizeof(struct gpu_values);
	case GPU_RECORD_READING:
		return sizeof(struct gpu_reading);
	default:
		return sizeof(struct gpu_record_head);
	}
}

/* Whether what the record says it holds is inside it. */
static bool record_contents_fit_its_size(const struct gpu_record_head *head)
{
	const struct gpu_counter *counter = (const void *)head;
	const struct gpu_values *values = (const void *)head;
	const struct gpu_reading *reading = (const void *)head;

	switch (head->kind) {
	case GPU_RECORD_COUNTER:
		return counter->dimension_count <= GPU_DIMENSIONS_MAX &&
		       sizeof(*counter) + counter->dimension_count * sizeof(struct gpu_dimension) <=
			       head->size;
	case GPU_RECORD_VALUES:
		return values->count <= (head->size - sizeof(*values)) / sizeof(struct gpu_value);
	case GPU_RECORD_READING:
		return reading->count <= (head->size - sizeof(*reading)) / sizeof(struct gpu_value);
	default:
		return true;
	}
}

/* The record at `at`, or NULL: there is none, or it is torn. */
static const struct gpu_record_head *
find_whole_record_at(const struct gpu_records_of_process *process, size_t at)
{
	const struct gpu_record_head *head = (const void *)(process->records + at);

	if (process->size - at < sizeof(*head) || head->size % 8 != 0 ||
	    head->size > process->size - at || head->size < get_smallest_record_size(head->kind))
		return NULL;
	if ((head->kind == GPU_RECORD_STRING || head->kind == GPU_RECORD_NOTICE) &&
	    process->records[at + head->size - 1] != 0)
		return NULL;
	return record_contents_fit_its_size(head) ? head : NULL;
}

/* A file that was shortened while somebody wrote to it has zeros where records were. */
static const struct gpu_record_head *
find_whole_record_behind_hole(const struct gpu_records_of_process *process, size_t *at)
{
	static const uint64_t zero;

	while (*at + sizeof(zero) <= process->size &&
	       memcmp(process->records + *at, &zero, sizeof(zero)) == 0)
		*at += sizeof(zero);
	return *at < process->size ? find_whole_record_at(process, *at) : NULL;
}

int gpu_visit_records(const struct gpu_records_of_process *process,
		      int (*each)(const struct gpu_record_head *record, void *context),
		      void *context)
{
	const struct gpu_record_head *head;
	size_t at = 0;
	int result = 0;

	while (result == 0 && (head = find_whole_record_behind_hole(process, &at)) != NULL) {
		result = each(head, context);
		at += head->size;
	}
	return result;
}

/* Ids count up by one, so a larger one than there are records cannot be. */
static int count_record_by_kind(const struct gpu_record_head *head, void *context)
{
	struct gpu_records_of_process *process = context;

	if (head->kind == GPU_RECORD_STRING)
		process->string_count++;
	else if (head->kind == GPU_RECORD_AGENT)
		process->agent_count++;
	else if (head->kind == GPU_RECORD_SHAPE)
		process->shape_count++;
	else if (head->kind == GPU_RECORD_COUNTER)
		process->counter_count++;
	else if (head->kind == GPU_RECORD_KERNEL || head->kind == GPU_RECORD_COPY ||
		 head->kind == GPU_RECORD_CALL || head->kind == GPU_RECORD_COUNTED ||
		 head->kind == GPU_RECORD_READING)
		process->counted_record_count++;
	return 0;
}

static int index_record_by_id(const struct gpu_record_head *head, void *context)
{
	struct gpu_records_of_process *process = context;
	uint32_t id = head->id;

	if (head->kind == GPU_RECORD_STRING && id != 0 && id <= process->string_count)
		process->strings[id] = ((const struct gpu_string *)head)->text;
	else if (head->kind == GPU_RECORD_AGENT && id != 0 && id <= process->agent_count)
		process->agent_by_id[id] = (const struct gpu_agent *)head;
	else if (head->kind == GPU_RECORD_SHAPE && id != 0 && id <= process->shape_count)
		process->kernel_shape_by_id[id] = (const struct gpu_shape *)head;
	else if (head->kind == GPU_RECORD_COUNTER && id != 0 && id <= process->counter_count)
		process->counters[id] = (const struct gpu_counter *)head;
	return 0;
}

/* Cuts what is behind the last whole record. */
static void cut_after_last_whole_record(struct gpu_records_of_process *process)
{
	const struct gpu_record_head *head;
	size_t end = 0, at = 0;

	while ((head = find_whole_record_behind_hole(process, &at)) != NULL) {
		process->torn_bytes += at - end;
		end = at += head->size;
	}
	process->torn_bytes += process->size - end;
	process->size = end;
}

/* What the header counted and is not there. */
static uint64_t count_missing_records(const struct gpu_records_of_process *process)
{
	const struct gpu_file_header *header = &process->header;
	uint64_t written = header->kernels + header->copies + header->calls + header->counted +
			   header->readings;

	return written > process->counted_record_count ? written - process->counted_record_count
						       : 0;
}

int gpu_process_parse_bytes(uint8_t *bytes, size_t size, struct gpu_records_of_process *ret)
{
	*ret = (struct gpu_records_of_process){.records = bytes};
	if (size < GPU_HEADER_SIZE || memcmp(bytes, GPU_MAGIC, sizeof(ret->header.magic)) != 0) {
		gpu_process_deinit(ret);
		return -EBADMSG;
	}
	memcpy(&ret->header, bytes, sizeof(ret->header));
	if (ret->header.version_major != GPU_VERSION_MAJOR ||
	    ret->header.header_size != GPU_HEADER_SIZE) {
		gpu_process_deinit(ret);
		return -EPROTO;
	}
	ret->size = size - GPU_HEADER_SIZE;
	if (ret->header.committed < ret->size)
		ret->size = ret->header.committed;
	else
		ret->torn_bytes = ret->header.committed - ret->size;
	memmove(bytes, bytes + GPU_HEADER_SIZE, ret->size);
	cut_after_last_whole_record(ret);
	gpu_visit_records(ret, count_record_by_kind, ret);
	ret->missing_record_count = count_missing_records(ret);
	ret->strings = calloc((size_t)ret->string_count + 1, sizeof(*ret->strings));
	ret->agent_by_id = calloc((size_t)ret->agent_count + 1, sizeof(const struct gpu_agent *));
	ret->kernel_shape_by_id =
		calloc((size_t)ret->shape_count + 1, sizeof(const struct gpu_shape *));
	ret->counters = calloc((size_t)ret->counter_count + 1, sizeof(const struct gpu_counter *));
	if (ret->strings == NULL || ret->agent_by_id == NULL || ret->kernel_shape_by_id == NULL ||
	    ret->counters == NULL) {
		gpu_process_deinit(ret);
		return -ENOMEM;
	}
	gpu_visit_records(ret, index_record_by_id, ret);
	return 0;
}

void gpu_process_deinit(struct gpu_records_of_process *process)
{
	free(process->path);
	free(process->records);
	free(process->strings);
	free(process->agent_by_id);
	free(process->kernel_shape_by_id);
	free(process->counters);
	*process = (struct gpu_records_of_process){0};
}

const char *gpu_get_interned_string(const struct gpu_records_of_process *process, uint32_t id)
{
	return id <= process->string_count && process->strings[id] != NULL ? process->strings[id]
									   : "?";
}

const char *gpu_get_agent_name(const struct gpu_records_of_process *process, uint32_t id)
{
	if (id > process->agent_count || process->agent_by_id[id] == NULL)
		return "?";
	return gpu_get_interned_string(process, process->agent_by_id[id]->product);
}

const char *gpu_get_kernel_name_of_shape(const struct gpu_records_of_process *process,
					 uint32_t shape)
{
	if (shape > process->shape_count || process->kernel_shape_by_id[shape] == NULL)
		return "?";
	return gpu_get_interned_string(process, process->kernel_shape_by_id[shape]->kernel);
}

const char *gpu_get_counter_name(const struct gpu_records_of_process *process, uint32_t counter)
{
	if (counter > process->counter_count || process->counters[counter] == NULL)
		return "?";
	return gpu_get_interned_string(process, process->counters[counter]->name);
}

const char *gpu_get_copy_direction_name(uint32_t direction)
{
	static const char *const names[GPU_DIRECTION_COUNT] = {
		"other",          "host to host",     "host to device",
		"device to host", "device to device", "fill"};

	return names[direction < GPU_DIRECTION_COUNT ? direction : GPU_DIRECTION_OTHER];
}

const char *gpu_get_copy_work_name(uint32_t direction)
{
	static const char *const names[GPU_DIRECTION_COUNT] = {"[copy]",
							       "[copy host to host]",
							       "[copy host to device]",
							       "[copy device to host]",
							       "[copy device to device]",
							       "[fill]"};

	return names[direction < GPU_DIRECTION_COUNT ? direction : GPU_DIRECTION_OTHER];
}

static const struct {
	const char *name, *unit;
} metric_names_and_units[GPU_METRIC_COUNT] = {
	[GPU_METRIC_POWER_W] = {"power", "W"},
	[GPU_METRIC_TEMPERATURE_C] = {"temperature", "°C"},
	[GPU_METRIC_SM_CLOCK_MHZ] = {"SM clock", "MHz"},
	[GPU_METRIC_MEMORY_CLOCK_MHZ] = {"memory clock", "MHz"},
	[GPU_METRIC_UTILIZATION] = {"utilization", "%"},
	[GPU_METRIC_MEMORY_UTILIZATION] = {"memory utilization", "%"},
	[GPU_METRIC_MEMORY_USED] = {"memory used", "bytes"},
	[GPU_METRIC_ENERGY_J] = {"energy", "J"},
};

const char *gpu_get_metric_name(uint32_t metric)
{
	return metric < GPU_METRIC_COUNT ? metric_names_and_units[metric].name : NULL;
}

const char *gpu_get_metric_unit(uint32_t metric)
{
	return metric < GPU_METRIC_COUNT ? metric_names_and_units[metric].unit : NULL;
}

const char *gpu_get_loss_text(unsigned loss)
{
	static const char *const texts[GPU_LOSS_COUNT] = {
		[GPU_LOSS_DISK_FULL] = "records of devices dropped: the disk is full",
		[GPU_LOSS_BUFFER] = "records of devices dropped: the buffer was full",
		[GPU_LOSS_RUNTIME] = "records of devices dropped by the vendor's library",
		[GPU_LOSS_INCOMPLETE] = "kernels and copies were unfinished when the program ended",
		[GPU_LOSS_CONFLICT] = "times another tool blocked the recording of devices",
		[GPU_LOSS_NOT_COUNTED] = "kernels ran uncounted although they were selected",
		[GPU_LOSS_READINGS] = "device counters could not be read",
		[GPU_LOSS_SHORTENED] = "records of devices lost: the file was shortened or damaged",
	};

	return loss < GPU_LOSS_COUNT ? texts[loss] : NULL;
}
