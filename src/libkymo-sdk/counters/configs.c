/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Configs: counters of one agent that are counted together. What is needed of the backend is
 * gathered, checked and made into a set when a config is made, and all ids of its values are
 * written down; afterwards nothing of it changes. Who uses one holds a reference.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/base/arena.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/counters/counters.h"

#define COUNTER_CONFIGS_MAX 65536u

struct sdk_counter_config {
	_Atomic uint32_t references;
	uint64_t id;
	const rocprofiler_agent_v0_t *agent;
	const struct device_counting_backend *counting;
	const struct sdk_counter **counters;
	size_t *input_value_offsets; /* of all programs, one after the other: offsets within the
					values */
	struct counting_event_request *requests;
	size_t *values_count_by_request;
	double *property_values; /* their values stand behind those of the set */
	uint64_t *record_ids;    /* of all records */
	uint32_t counters_count, inputs_count, requests_count, properties_count, counting_way_bits;
	uint32_t inputs_count_max_of_program;
	size_t values_count, records_count, scratch_values_count;
	void *set;
	_Atomic(struct sdk_counter_evaluation_memory *) spare;
};

static struct sdk_counter_config **known_counter_configs; /* by number; with the lock held */
static uint32_t known_counter_config_count, known_counter_config_capacity;

/* ---- making one ---- */

static const struct counter_program *
get_config_counter_program(const struct sdk_counter_config *config, uint32_t number)
{
	return config->counters[number]->counter->program;
}

/* The place of an event among the requests, where it is put if it is not there yet. */
static size_t find_or_add_event_request(struct sdk_counter_config *config,
					const struct counter_program_input *input)
{
	struct counting_event_request wanted = {input->counter->block, input->counter->event,
						input->rollup, input->accumulation_resolution};
	size_t offset = 0;

	for (uint32_t i = 0; i < config->requests_count; i++) {
		const struct counting_event_request *request = &config->requests[i];

		if (request->rollup == wanted.rollup &&
		    request->accumulation_resolution == wanted.accumulation_resolution &&
		    !strcmp(request->block, wanted.block) && !strcmp(request->event, wanted.event))
			return offset;
		offset += config->values_count_by_request[i];
	}
	config->requests[config->requests_count] = wanted;
	config->values_count_by_request[config->requests_count++] = input->values;
	config->values_count += input->values;
	return offset;
}

/* Properties are numbered first, and moved behind the set's values when these are counted. */
static void assign_config_input_offsets(struct sdk_counter_config *config)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct counter_program *program = get_config_counter_program(config, i);

		for (uint32_t j = 0; j < program->inputs_count; j++, at++) {
			const struct counter_program_input *input = &program->inputs[j];

			if (input->counter->kind == COUNTER_EVENT)
				config->input_value_offsets[at] =
					find_or_add_event_request(config, input);
		}
	}
	at = 0;
	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct counter_program *program = get_config_counter_program(config, i);

		for (uint32_t j = 0; j < program->inputs_count; j++, at++) {
			const struct counter *counter = program->inputs[j].counter;

			if (counter->kind != COUNTER_PROPERTY)
				continue;
			config->input_value_offsets[at] =
				config->values_count + config->properties_count;
			config->property_values[config->properties_count++] =
				sdk_agent_get_property_value(config->agent,
							     counter->property_index);
		}
	}
}

static void compute_config_sizes(struct sdk_counter_config *config)
{
	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct counter_program *program = get_config_counter_program(config, i);

		config->inputs_count += program->inputs_count;
		config->records_count += program->values;
		if (config->inputs_count_max_of_program < program->inputs_count)
			config->inputs_count_max_of_program = program->inputs_count;
		if (config->scratch_values_count < program->work_values_count)
			config->scratch_values_count = program->work_values_count;
	}
}

static bool allocate_and_fill_config_arrays(struct sdk_counter_config *config)
{
	uint64_t *ids;

	compute_config_sizes(config);
	/* One more of each: none of them may be of size 0. */
	config->input_value_offsets =
		calloc(config->inputs_count + 1, sizeof(config->input_value_offsets[0]));
	config->requests = calloc(config->inputs_count + 1, sizeof(config->requests[0]));
	config->values_count_by_request =
		calloc(config->inputs_count + 1, sizeof(config->values_count_by_request[0]));
	config->property_values =
		calloc(config->inputs_count + 1, sizeof(config->property_values[0]));
	config->record_ids = calloc(config->records_count + 1, sizeof(config->record_ids[0]));
	if (!config->input_value_offsets || !config->requests || !config->values_count_by_request ||
	    !config->property_values || !config->record_ids)
		return false;
	assign_config_input_offsets(config);
	ids = config->record_ids;
	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct sdk_counter *counter = config->counters[i];

		sdk_counter_fill_instance_ids(counter->id, &counter->counter->shape, ids);
		ids += get_config_counter_program(config, i)->values;
	}
	return true;
}

rocprofiler_status_t sdk_counting_status_to_rocprofiler(enum counting_status status)
{
	switch (status) {
	case COUNTING_OK:
		return ROCPROFILER_STATUS_SUCCESS;
	case COUNTING_NO_SUCH_EVENT:
		return ROCPROFILER_STATUS_ERROR_METRIC_NOT_VALID_FOR_AGENT;
	case COUNTING_DOES_NOT_FIT:
		return ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT;
	case COUNTING_NOT_PERMITTED:
		return ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED;
	case COUNTING_BUSY:
		return ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE;
	case COUNTING_NOT_SUPPORTED:
		return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
	case COUNTING_NOT_READY:
		return ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
	case COUNTING_NO_MEMORY:
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	default:
		return ROCPROFILER_STATUS_ERROR;
	}
}

static rocprofiler_status_t create_backend_event_set(struct sdk_counter_config *config)
{
	struct counting_problem problem = {.text = ""};
	enum counting_status status;

	config->counting_way_bits = COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE;
	if (!config->requests_count)
		return ROCPROFILER_STATUS_SUCCESS;
	status = config->counting->set_make(config->agent->id.handle, config->requests,
					    config->requests_count, &config->set,
					    &config->counting_way_bits, &problem);
	if (status)
		sdk_counters_set_thread_problem_text(
			problem.text[0] ? problem.text : counting_status_to_text(status));
	return sdk_counting_status_to_rocprofiler(status);
}

static void free_counter_config(struct sdk_counter_config *config)
{
	if (config->set)
		config->counting->set_free(config->set);
	free(atomic_load(&config->spare));
	free((void *)config->counters);
	free(config->input_value_offsets);
	free(config->requests);
	free(config->values_count_by_request);
	free(config->property_values);
	free(config->record_ids);
	free(config);
}

static bool grow_known_counter_configs(void)
{
	uint32_t capacity = known_counter_config_capacity ? known_counter_config_capacity * 2 : 16;
	struct sdk_counter_config **grown;

	if (capacity > COUNTER_CONFIGS_MAX)
		return false;
	grown = (struct sdk_counter_config **)realloc((void *)known_counter_configs,
						      capacity * sizeof(void *));
	if (!grown)
		return false;
	known_counter_configs = grown;
	known_counter_config_capacity = capacity;
	return true;
}

/* With the lock held. The number of one that was destroyed is given away again as late as can be.
 */
static bool register_counter_config(struct sdk_counter_config *config)
{
	static uint32_t last;
	uint32_t count = known_counter_config_count, number = count;

	if (known_counter_config_count < known_counter_config_capacity ||
	    grow_known_counter_configs()) {
		known_counter_config_count++;
	} else if (count) {
		for (uint32_t tries = 0; tries < count && known_counter_configs[last]; tries++)
			last = last + 1 < count ? last + 1 : 0;
		if (known_counter_configs[last])
			return false;
		number = last;
		last = last + 1 < count ? last + 1 : 0;
	} else {
		return false;
	}
	known_counter_configs[number] = config;
	config->id = sdk_get_handle_base() + number + 1;
	return true;
}

static struct sdk_counter_config *find_counter_config_by_id(uint64_t id)
{
	uint64_t number = id - sdk_get_handle_base() - 1;

	return number < known_counter_config_count ? known_counter_configs[number] : NULL;
}

static bool config_has_counter(const struct sdk_counter_config *config,
			       const struct sdk_counter *counter)
{
	for (uint32_t i = 0; i < config->counters_count; i++) {
		if (config->counters[i] == counter)
			return true;
	}
	return false;
}

/* The counters of `old`, and behind them those that it does not have. */
static rocprofiler_status_t fill_config_counters(struct sdk_counter_config *config,
						 const struct sdk_agent_kind_with_counters *kind,
						 const struct sdk_counter_config *old,
						 const rocprofiler_counter_id_t *list, size_t count)
{
	for (uint32_t i = 0; old && i < old->counters_count; i++)
		config->counters[config->counters_count++] = old->counters[i];
	for (size_t i = 0; i < count; i++) {
		const struct sdk_counter *counter = sdk_counter_find_by_id(list[i].handle);

		if (!counter)
			return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
		if (counter->kind != kind)
			return ROCPROFILER_STATUS_ERROR_METRIC_NOT_VALID_FOR_AGENT;
		if (!config_has_counter(config, counter))
			config->counters[config->counters_count++] = counter;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t create_counter_config_of_agent(
	const rocprofiler_agent_v0_t *agent, struct sdk_agent_kind_with_counters *kind,
	const struct sdk_counter_config *old, const rocprofiler_counter_id_t *list, size_t count,
	struct sdk_counter_config **made)
{
	struct sdk_counter_config *config = calloc(1, sizeof(*config));
	rocprofiler_status_t status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;

	*made = config;
	if (!config)
		return status;
	atomic_init(&config->references, 1);
	config->agent = agent;
	config->counting = kind->counting;
	config->counters = (const struct sdk_counter **)calloc(
		count + (old ? old->counters_count : 0) + 1, sizeof(void *));
	if (!config->counters)
		return status;
	status = fill_config_counters(config, kind, old, list, count);
	if (status)
		return status;
	if (!allocate_and_fill_config_arrays(config))
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	status = create_backend_event_set(config);
	if (!status && !register_counter_config(config))
		status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	return status;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_create_counter_config(
	rocprofiler_agent_id_t agent_id, rocprofiler_counter_id_t *counters_list,
	size_t counters_count, rocprofiler_counter_config_id_t *config_id)
{
	const rocprofiler_agent_v0_t *agent = sdk_agent_find_by_id(agent_id.handle);
	const struct sdk_counter_config *old = NULL;
	struct sdk_counter_config *made = NULL;
	struct sdk_agent_kind_with_counters *kind;
	rocprofiler_status_t status;

	sdk_counters_set_thread_problem_text(NULL);
	if (!config_id || (!counters_list && counters_count) || counters_count > COUNTERS_MAX)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!agent)
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	sdk_counters_acquire_lock();
	kind = sdk_agent_kind_find_or_create(agent, &status);
	/* One that is not there is nothing to add to, as upstream has it: its own samples leave the
	 * handle as it was on the stack. */
	if (kind && config_id->handle)
		old = find_counter_config_by_id(config_id->handle);
	if (old && old->agent != agent)
		status = ROCPROFILER_STATUS_ERROR_AGENT_MISMATCH;
	if (!status)
		status = create_counter_config_of_agent(agent, kind, old, counters_list,
							counters_count, &made);
	if (!status)
		config_id->handle = made->id;
	sdk_counters_release_lock();
	if (status && made)
		free_counter_config(made);
	return status;
}

/* Who uses it goes on with it. */
SDK_EXPORT rocprofiler_status_t
rocprofiler_destroy_counter_config(rocprofiler_counter_config_id_t config_id)
{
	struct sdk_counter_config *config;

	sdk_counters_acquire_lock();
	config = find_counter_config_by_id(config_id.handle);
	if (config)
		known_counter_configs[config_id.handle - sdk_get_handle_base() - 1] = NULL;
	sdk_counters_release_lock();
	if (config)
		sdk_counter_config_release_reference(config);
	return ROCPROFILER_STATUS_SUCCESS;
}

/* ---- using one ---- */

struct sdk_counter_config *sdk_counter_config_acquire_by_id(uint64_t id)
{
	struct sdk_counter_config *config;

	sdk_counters_acquire_lock();
	config = find_counter_config_by_id(id);
	if (config)
		sdk_counter_config_add_reference(config);
	sdk_counters_release_lock();
	return config;
}

void sdk_counter_config_add_reference(struct sdk_counter_config *config)
{
	atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
}

void sdk_counter_config_release_reference(struct sdk_counter_config *config)
{
	if (atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) == 1)
		free_counter_config(config);
}

uint64_t sdk_counter_config_get_agent_id(const struct sdk_counter_config *config)
{
	return config->agent->id.handle;
}

void *sdk_counter_config_get_backend_event_set(const struct sdk_counter_config *config)
{
	return config->set;
}

uint32_t sdk_counter_config_get_counting_ways(const struct sdk_counter_config *config)
{
	return config->counting_way_bits;
}

size_t sdk_counter_config_get_value_count(const struct sdk_counter_config *config)
{
	return config->values_count;
}

size_t sdk_counter_config_get_record_count(const struct sdk_counter_config *config)
{
	return config->records_count;
}

const struct device_counting_backend *
sdk_counter_config_get_backend(const struct sdk_counter_config *config)
{
	return config->counting;
}

struct sdk_counter_evaluation_memory *
sdk_counter_config_take_evaluation_memory(struct sdk_counter_config *config)
{
	struct sdk_counter_evaluation_memory *counted =
		atomic_exchange_explicit(&config->spare, NULL, memory_order_acquire);
	size_t values = config->values_count + config->properties_count;
	char *memory;

	if (counted)
		return counted;
	memory = malloc(sizeof(*counted) +
			config->records_count * sizeof(rocprofiler_counter_record_t) +
			(config->records_count + 1) * sizeof(struct arena_record) +
			(config->inputs_count_max_of_program + 1) * sizeof(double *) +
			(config->scratch_values_count + values) * sizeof(double));
	if (!memory)
		return NULL;
	counted = (struct sdk_counter_evaluation_memory *)(void *)memory;
	counted->config = config;
	counted->records = (rocprofiler_counter_record_t *)(void *)(counted + 1);
	counted->list = (struct arena_record *)(void *)(counted->records + config->records_count);
	counted->inputs = (const double **)(void *)(counted->list + config->records_count + 1);
	counted->work =
		(double *)(void *)(counted->inputs + config->inputs_count_max_of_program + 1);
	counted->values = counted->work + config->scratch_values_count;
	memcpy(counted->values + config->values_count, config->property_values,
	       config->properties_count * sizeof(double));
	return counted;
}

void sdk_counter_config_return_evaluation_memory(struct sdk_counter_evaluation_memory *counted)
{
	free(atomic_exchange_explicit(&counted->config->spare, counted, memory_order_release));
}

void sdk_counter_config_compute_records(struct sdk_counter_evaluation_memory *counted,
					const double *values, uint64_t dispatch,
					rocprofiler_user_data_t user_data)
{
	const struct sdk_counter_config *config = counted->config;
	rocprofiler_counter_record_t *record = counted->records;
	const size_t *offsets = config->input_value_offsets;
	const uint64_t *ids = config->record_ids;

	if (values && values != counted->values)
		memcpy(counted->values, values, config->values_count * sizeof(double));
	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct counter_program *program = get_config_counter_program(config, i);
		const double *results;

		for (uint32_t j = 0; j < program->inputs_count; j++)
			counted->inputs[j] = counted->values + *offsets++;
		results = counter_program_evaluate(program, counted->inputs, counted->work);
		for (size_t j = 0; j < program->values; j++)
			record[j] = (rocprofiler_counter_record_t){
				.id = ids[j],
				.counter_value = results[j],
				.dispatch_id = dispatch,
				.user_data = user_data,
				.agent_id = config->agent->id,
			};
		record += program->values;
		ids += program->values;
	}
}
