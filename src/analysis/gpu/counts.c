/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counts.h. Values of a counter that did not fit into one record follow in the next ones.
 */
#include "analysis/gpu/counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"

/* ---- walking ---- */

struct counter_record_walk_state {
	const struct gpu_records_of_process *process;
	int (*on_counter_total)(const struct gpu_counter_measurement *count, void *context);
	void *context;
	const struct gpu_counted *last_counted_kernel;     /* the last one */
	struct gpu_counter_measurement open_counter_total; /* counter NULL: none */
	struct gpu_value *values;
	size_t value_capacity;
};

static int pass_open_measurement_to_callback(struct counter_record_walk_state *walk)
{
	struct gpu_counter_measurement *open = &walk->open_counter_total;
	int result;

	if (open->counter == NULL)
		return 0;
	open->values = walk->values;
	for (size_t i = 0; i < open->value_count; i++)
		open->total += walk->values[i].value;
	result = walk->on_counter_total(open, walk->context);
	*open = (struct gpu_counter_measurement){0};
	return result;
}

static int append_counter_values(struct counter_record_walk_state *walk,
				 const struct gpu_value *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (array_reserve_one_more((void **)&walk->values, &walk->value_capacity,
					   walk->open_counter_total.value_count,
					   sizeof(*walk->values)) < 0)
			return -ENOMEM;
		walk->values[walk->open_counter_total.value_count++] = values[i];
	}
	return 0;
}

/* What the record belongs to is opened, unless it is open. */
static int add_values_to_open_measurement(struct counter_record_walk_state *walk,
					  const struct gpu_counted *kernel, uint32_t id,
					  uint64_t start, uint64_t end,
					  const struct gpu_value *values, uint32_t count)
{
	const struct gpu_records_of_process *process = walk->process;
	const struct gpu_counter *counter =
		id <= process->counter_count ? process->counters[id] : NULL;
	const struct gpu_counter_measurement *open = &walk->open_counter_total;
	int result = 0;

	if (open->counter != counter || open->kernel != kernel || open->start != start ||
	    open->end != end)
		result = pass_open_measurement_to_callback(walk);
	if (result != 0 || counter == NULL)
		return result;
	walk->open_counter_total.kernel = kernel;
	walk->open_counter_total.counter = counter;
	walk->open_counter_total.start = start;
	walk->open_counter_total.end = end;
	return append_counter_values(walk, values, count);
}

static int read_counter_record(const struct gpu_record_head *head, void *context)
{
	struct counter_record_walk_state *walk = context;
	const struct gpu_values *values = (const void *)head;
	const struct gpu_reading *reading = (const void *)head;
	const struct gpu_counted *kernel = walk->last_counted_kernel;

	if (head->kind == GPU_RECORD_COUNTED) {
		walk->last_counted_kernel = (const void *)head;
		return pass_open_measurement_to_callback(walk);
	}
	if (head->kind == GPU_RECORD_VALUES && kernel != NULL &&
	    kernel->dispatch == values->dispatch)
		return add_values_to_open_measurement(walk, kernel, head->id, kernel->start,
						      kernel->start + kernel->duration,
						      values->values, values->count);
	if (head->kind == GPU_RECORD_READING)
		return add_values_to_open_measurement(walk, NULL, head->id, reading->start,
						      reading->end, reading->values,
						      reading->count);
	return 0;
}

int gpu_visit_counter_measurements(const struct gpu_records_of_process *process,
				   int (*each)(const struct gpu_counter_measurement *count,
					       void *context),
				   void *context)
{
	struct counter_record_walk_state walk = {
		.process = process, .on_counter_total = each, .context = context};
	int result = gpu_visit_records(process, read_counter_record, &walk);

	if (result == 0)
		result = pass_open_measurement_to_callback(&walk);
	free(walk.values);
	return result;
}

void gpu_counter_instance_to_dimension_positions(const struct gpu_counter *counter,
						 uint32_t instance, uint32_t *positions)
{
	for (uint32_t i = counter->dimension_count; i-- > 0;) {
		uint32_t size = counter->dimensions[i].size;

		positions[i] = size != 0 ? instance % size : 0;
		instance = size != 0 ? instance / size : instance;
	}
}

/* ---- sums ---- */

/* What a row is of, as pointers into the process's strings. */
struct counter_row_slot {
	const char *kernel_name, *agent_name, *counter_name;
	size_t row_index_plus_one; /* + 1; 0: free */
};

struct counter_row_summing_state {
	struct gpu_data *data;
	const struct gpu_records_of_process *process;
	struct counter_row_slot *slots;
	size_t used_slot_count, slot_count; /* of `places` */
	size_t row_capacities[2];
};

static size_t hash_counter_row_key(const char *kernel, const char *agent, const char *counter)
{
	uint64_t hash = (uintptr_t)kernel * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ (uintptr_t)agent) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)((hash ^ (uintptr_t)counter) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
}

static struct counter_row_slot *find_counter_row_slot(struct counter_row_slot *places, size_t room,
						      const char *kernel, const char *agent,
						      const char *counter)
{
	size_t i = hash_counter_row_key(kernel, agent, counter) % room;

	while (places[i].row_index_plus_one != 0 &&
	       (places[i].kernel_name != kernel || places[i].agent_name != agent ||
		places[i].counter_name != counter))
		i = (i + 1) % room;
	return &places[i];
}

static int grow_counter_row_slots(struct counter_row_summing_state *summing)
{
	size_t room = summing->slot_count != 0 ? summing->slot_count * 2 : 256;
	struct counter_row_slot *larger = calloc(room, sizeof(*larger));

	if (larger == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < summing->slot_count; i++) {
		const struct counter_row_slot *place = &summing->slots[i];

		if (place->row_index_plus_one != 0)
			*find_counter_row_slot(larger, room, place->kernel_name, place->agent_name,
					       place->counter_name) = *place;
	}
	free(summing->slots);
	summing->slots = larger;
	summing->slot_count = room;
	return 0;
}

static int append_counter_row(struct counter_row_summing_state *summing, const char *kernel,
			      struct gpu_counter_row **ret)
{
	struct gpu_data *data = summing->data;
	struct gpu_counter_row **rows =
		kernel != NULL ? &data->kernel_counter_rows : &data->device_reading_rows;
	size_t *count =
		kernel != NULL ? &data->kernel_counter_row_count : &data->device_reading_row_count;
	struct gpu_counter_row row = {.kernel_name = NULL};

	if (kernel != NULL) {
		row.kernel_name = gpu_demangle_name(kernel);
		if (row.kernel_name == NULL)
			row.kernel_name = strdup(kernel);
		if (row.kernel_name == NULL)
			return -ENOMEM;
	}
	if (array_reserve_one_more((void **)rows, &summing->row_capacities[kernel == NULL], *count,
				   sizeof(**rows)) < 0) {
		free(row.kernel_name);
		return -ENOMEM;
	}
	(*rows)[(*count)++] = row;
	*ret = &(*rows)[*count - 1];
	return 0;
}

static int find_or_add_counter_row(struct counter_row_summing_state *summing, const char *kernel,
				   const char *agent, const char *counter,
				   struct gpu_counter_row **ret)
{
	struct gpu_data *data = summing->data;
	struct gpu_counter_row *rows =
		kernel != NULL ? data->kernel_counter_rows : data->device_reading_rows;
	struct counter_row_slot *place;
	int result = summing->used_slot_count * 2 >= summing->slot_count
			     ? grow_counter_row_slots(summing)
			     : 0;

	if (result != 0)
		return result;
	place = find_counter_row_slot(summing->slots, summing->slot_count, kernel, agent, counter);
	if (place->row_index_plus_one != 0) {
		*ret = &rows[place->row_index_plus_one - 1];
		return 0;
	}
	result = append_counter_row(summing, kernel, ret);
	if (result != 0)
		return result;
	(*ret)->agent_name = agent;
	(*ret)->counter_name = counter;
	*place = (struct counter_row_slot){kernel, agent, counter,
					   kernel != NULL ? data->kernel_counter_row_count
							  : data->device_reading_row_count};
	summing->used_slot_count++;
	return 0;
}

static int add_counter_measurement_to_rows(const struct gpu_counter_measurement *count,
					   void *context)
{
	struct counter_row_summing_state *summing = context;
	const struct gpu_records_of_process *process = summing->process;
	const char *kernel = count->kernel != NULL
				     ? gpu_get_kernel_name_of_shape(process, count->kernel->head.id)
				     : NULL;
	struct gpu_counter_row *row;
	int result = find_or_add_counter_row(
		summing, kernel, gpu_get_agent_name(process, count->counter->agent),
		gpu_get_interned_string(process, count->counter->name), &row);

	if (result != 0)
		return result;
	/* What is no number is neither least nor most where others are. */
	if (row->count == 0 || isnan(row->minimum) || count->total < row->minimum)
		row->minimum = count->total;
	if (row->count == 0 || isnan(row->maximum) || count->total > row->maximum)
		row->maximum = count->total;
	row->count++;
	row->sum += count->total;
	row->ns += count->end - count->start;
	return 0;
}

static int compare_counter_rows_by_name(const void *left, const void *right)
{
	const struct gpu_counter_row *a = left, *b = right;
	int order = a->kernel_name != NULL && b->kernel_name != NULL
			    ? strcmp(a->kernel_name, b->kernel_name)
			    : 0;

	if (order == 0)
		order = strcmp(a->agent_name, b->agent_name);
	return order != 0 ? order : strcmp(a->counter_name, b->counter_name);
}

static void merge_equal_counter_rows(struct gpu_counter_row *rows, size_t *count)
{
	size_t kept = 0;

	if (*count == 0)
		return;
	qsort(rows, *count, sizeof(*rows), compare_counter_rows_by_name);
	for (size_t i = 1; i < *count; i++) {
		struct gpu_counter_row *to = &rows[kept], *from = &rows[i];

		if (compare_counter_rows_by_name(to, from) != 0) {
			rows[++kept] = *from;
			continue;
		}
		if (from->minimum < to->minimum)
			to->minimum = from->minimum;
		if (from->maximum > to->maximum)
			to->maximum = from->maximum;
		to->count += from->count;
		to->sum += from->sum;
		to->ns += from->ns;
		free(from->kernel_name);
	}
	*count = kept + 1;
}

int gpu_sum_counter_rows(struct gpu_data *data)
{
	struct counter_row_summing_state summing = {.data = data};
	int result = 0;

	for (size_t i = 0; result == 0 && i < data->process_count; i++) {
		summing.process = &data->processes[i];
		result = gpu_visit_counter_measurements(summing.process,
							add_counter_measurement_to_rows, &summing);
		data->filtered_out_kernel_count += summing.process->header.filtered;
		data->counted_kernel_count += summing.process->header.counted;
		data->device_reading_count += summing.process->header.readings;
	}
	free(summing.slots);
	merge_equal_counter_rows(data->kernel_counter_rows, &data->kernel_counter_row_count);
	merge_equal_counter_rows(data->device_reading_rows, &data->device_reading_row_count);
	return result;
}

void gpu_counter_rows_deinit(struct gpu_data *data)
{
	for (size_t i = 0; i < data->kernel_counter_row_count; i++)
		free(data->kernel_counter_rows[i].kernel_name);
	free(data->kernel_counter_rows);
	free(data->device_reading_rows);
}
