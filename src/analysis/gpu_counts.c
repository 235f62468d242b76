/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See gpu_counts.h. Values of a counter that did not fit into one record follow in the next ones.
 */
#include "analysis/gpu_counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"

/* ---- walking ---- */

struct walk {
	const struct gpu_process *process;
	int (*each)(const struct gpu_count *count, void *context);
	void *context;
	const struct gpu_counted *kernel; /* the last one */
	struct gpu_count open;            /* counter NULL: none */
	struct gpu_value *values;
	size_t capacity;
};

static int finish(struct walk *walk)
{
	struct gpu_count *open = &walk->open;
	int result;

	if (open->counter == NULL)
		return 0;
	open->values = walk->values;
	for (size_t i = 0; i < open->value_count; i++)
		open->total += walk->values[i].value;
	result = walk->each(open, walk->context);
	*open = (struct gpu_count){0};
	return result;
}

static int add_values(struct walk *walk, const struct gpu_value *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (array_reserve((void **)&walk->values, &walk->capacity, walk->open.value_count,
				  sizeof(*walk->values)) < 0)
			return -ENOMEM;
		walk->values[walk->open.value_count++] = values[i];
	}
	return 0;
}

/* What the record belongs to is opened, unless it is open. */
static int take(struct walk *walk, const struct gpu_counted *kernel, uint32_t id, uint64_t start,
		uint64_t end, const struct gpu_value *values, uint32_t count)
{
	const struct gpu_process *process = walk->process;
	const struct gpu_counter *counter =
		id <= process->counter_count ? process->counters[id] : NULL;
	const struct gpu_count *open = &walk->open;
	int result = 0;

	if (open->counter != counter || open->kernel != kernel || open->start != start ||
	    open->end != end)
		result = finish(walk);
	if (result != 0 || counter == NULL)
		return result;
	walk->open.kernel = kernel;
	walk->open.counter = counter;
	walk->open.start = start;
	walk->open.end = end;
	return add_values(walk, values, count);
}

static int take_record(const struct gpu_record_head *head, void *context)
{
	struct walk *walk = context;
	const struct gpu_values *values = (const void *)head;
	const struct gpu_reading *reading = (const void *)head;
	const struct gpu_counted *kernel = walk->kernel;

	if (head->kind == GPU_RECORD_COUNTED) {
		walk->kernel = (const void *)head;
		return finish(walk);
	}
	if (head->kind == GPU_RECORD_VALUES && kernel != NULL &&
	    kernel->dispatch == values->dispatch)
		return take(walk, kernel, head->id, kernel->start, kernel->start + kernel->duration,
			    values->values, values->count);
	if (head->kind == GPU_RECORD_READING)
		return take(walk, NULL, head->id, reading->start, reading->end, reading->values,
			    reading->count);
	return 0;
}

int gpu_each_count(const struct gpu_process *process,
		   int (*each)(const struct gpu_count *count, void *context), void *context)
{
	struct walk walk = {.process = process, .each = each, .context = context};
	int result = gpu_each(process, take_record, &walk);

	if (result == 0)
		result = finish(&walk);
	free(walk.values);
	return result;
}

void gpu_count_positions(const struct gpu_counter *counter, uint32_t instance, uint32_t *positions)
{
	for (uint32_t i = counter->dimension_count; i-- > 0;) {
		uint32_t size = counter->dimensions[i].size;

		positions[i] = size != 0 ? instance % size : 0;
		instance = size != 0 ? instance / size : instance;
	}
}

/* ---- sums ---- */

/* What a row is of, as pointers into the process's strings. */
struct place {
	const char *kernel, *agent, *counter;
	size_t row; /* + 1; 0: free */
};

struct summing {
	struct gpu_data *data;
	const struct gpu_process *process;
	struct place *places;
	size_t used, room; /* of `places` */
	size_t capacity[2];
};

static size_t hash_of(const char *kernel, const char *agent, const char *counter)
{
	uint64_t hash = (uintptr_t)kernel * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ (uintptr_t)agent) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)((hash ^ (uintptr_t)counter) * UINT64_C(0x9e3779b97f4a7c15) >> 20);
}

static struct place *place_of(struct place *places, size_t room, const char *kernel,
			      const char *agent, const char *counter)
{
	size_t i = hash_of(kernel, agent, counter) % room;

	while (places[i].row != 0 && (places[i].kernel != kernel || places[i].agent != agent ||
				      places[i].counter != counter))
		i = (i + 1) % room;
	return &places[i];
}

static int grow(struct summing *summing)
{
	size_t room = summing->room != 0 ? summing->room * 2 : 256;
	struct place *larger = calloc(room, sizeof(*larger));

	if (larger == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < summing->room; i++) {
		const struct place *place = &summing->places[i];

		if (place->row != 0)
			*place_of(larger, room, place->kernel, place->agent, place->counter) =
				*place;
	}
	free(summing->places);
	summing->places = larger;
	summing->room = room;
	return 0;
}

static int new_row(struct summing *summing, const char *kernel, struct gpu_count_row **ret)
{
	struct gpu_data *data = summing->data;
	struct gpu_count_row **rows = kernel != NULL ? &data->counts : &data->readings;
	size_t *count = kernel != NULL ? &data->count_rows : &data->reading_rows;
	struct gpu_count_row row = {.kernel = NULL};

	if (kernel != NULL) {
		row.kernel = gpu_demangled(kernel);
		if (row.kernel == NULL)
			row.kernel = strdup(kernel);
		if (row.kernel == NULL)
			return -ENOMEM;
	}
	if (array_reserve((void **)rows, &summing->capacity[kernel == NULL], *count,
			  sizeof(**rows)) < 0) {
		free(row.kernel);
		return -ENOMEM;
	}
	(*rows)[(*count)++] = row;
	*ret = &(*rows)[*count - 1];
	return 0;
}

static int find_row(struct summing *summing, const char *kernel, const char *agent,
		    const char *counter, struct gpu_count_row **ret)
{
	struct gpu_data *data = summing->data;
	struct gpu_count_row *rows = kernel != NULL ? data->counts : data->readings;
	struct place *place;
	int result = summing->used * 2 >= summing->room ? grow(summing) : 0;

	if (result != 0)
		return result;
	place = place_of(summing->places, summing->room, kernel, agent, counter);
	if (place->row != 0) {
		*ret = &rows[place->row - 1];
		return 0;
	}
	result = new_row(summing, kernel, ret);
	if (result != 0)
		return result;
	(*ret)->agent = agent;
	(*ret)->counter = counter;
	*place = (struct place){kernel, agent, counter,
				kernel != NULL ? data->count_rows : data->reading_rows};
	summing->used++;
	return 0;
}

static int add_count(const struct gpu_count *count, void *context)
{
	struct summing *summing = context;
	const struct gpu_process *process = summing->process;
	const char *kernel =
		count->kernel != NULL ? gpu_kernel_name(process, count->kernel->head.id) : NULL;
	struct gpu_count_row *row;
	int result = find_row(summing, kernel, gpu_agent_name(process, count->counter->agent),
			      gpu_string(process, count->counter->name), &row);

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

static int by_name(const void *left, const void *right)
{
	const struct gpu_count_row *a = left, *b = right;
	int order = a->kernel != NULL && b->kernel != NULL ? strcmp(a->kernel, b->kernel) : 0;

	if (order == 0)
		order = strcmp(a->agent, b->agent);
	return order != 0 ? order : strcmp(a->counter, b->counter);
}

static void merge(struct gpu_count_row *rows, size_t *count)
{
	size_t kept = 0;

	if (*count == 0)
		return;
	qsort(rows, *count, sizeof(*rows), by_name);
	for (size_t i = 1; i < *count; i++) {
		struct gpu_count_row *to = &rows[kept], *from = &rows[i];

		if (by_name(to, from) != 0) {
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
		free(from->kernel);
	}
	*count = kept + 1;
}

int gpu_counts_sum(struct gpu_data *data)
{
	struct summing summing = {.data = data};
	int result = 0;

	for (size_t i = 0; result == 0 && i < data->process_count; i++) {
		summing.process = &data->processes[i];
		result = gpu_each_count(summing.process, add_count, &summing);
		data->filtered_kernels += summing.process->header.filtered;
		data->counted_records += summing.process->header.counted;
		data->reading_records += summing.process->header.readings;
	}
	free(summing.places);
	merge(data->counts, &data->count_rows);
	merge(data->readings, &data->reading_rows);
	return result;
}

void gpu_counts_deinit(struct gpu_data *data)
{
	for (size_t i = 0; i < data->count_rows; i++)
		free(data->counts[i].kernel);
	free(data->counts);
	free(data->readings);
}
