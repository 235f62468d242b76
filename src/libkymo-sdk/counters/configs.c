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
#include "libkymo-sdk/arena.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/state.h"

#define CONFIGS_MAX 65536u

struct sdk_config {
	_Atomic uint32_t references;
	uint64_t id;
	const rocprofiler_agent_v0_t *agent;
	const struct device_counting *counting;
	const struct sdk_counter **counters;
	size_t *inputs; /* of all programs, one after the other: offsets within the values */
	struct counting_request *requests;
	size_t *request_values;
	double *properties; /* their values stand behind those of the set */
	uint64_t *ids;      /* of all records */
	uint32_t counters_count, inputs_count, requests_count, properties_count, ways;
	uint32_t inputs_most;
	size_t values, records, work;
	void *set;
	_Atomic(struct sdk_counted *) spare;
};

static struct sdk_config **configs; /* by number; with the lock held */
static uint32_t configs_count, configs_capacity;

/* ---- making one ---- */

static const struct program *config_program(const struct sdk_config *config, uint32_t number)
{
	return config->counters[number]->counter->program;
}

/* The place of an event among the requests, where it is put if it is not there yet. */
static size_t config_request(struct sdk_config *config, const struct program_input *input)
{
	struct counting_request wanted = {input->counter->block, input->counter->event,
					  input->rollup, input->accumulate};
	size_t offset = 0;

	for (uint32_t i = 0; i < config->requests_count; i++) {
		const struct counting_request *request = &config->requests[i];

		if (request->rollup == wanted.rollup && request->accumulate == wanted.accumulate &&
		    !strcmp(request->block, wanted.block) && !strcmp(request->event, wanted.event))
			return offset;
		offset += config->request_values[i];
	}
	config->requests[config->requests_count] = wanted;
	config->request_values[config->requests_count++] = input->values;
	config->values += input->values;
	return offset;
}

/* Properties are numbered first, and moved behind the set's values when these are counted. */
static void config_gather(struct sdk_config *config)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct program *program = config_program(config, i);

		for (uint32_t j = 0; j < program->inputs_count; j++, at++) {
			const struct program_input *input = &program->inputs[j];

			if (input->counter->kind == COUNTER_EVENT)
				config->inputs[at] = config_request(config, input);
		}
	}
	at = 0;
	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct program *program = config_program(config, i);

		for (uint32_t j = 0; j < program->inputs_count; j++, at++) {
			const struct counter *counter = program->inputs[j].counter;

			if (counter->kind != COUNTER_PROPERTY)
				continue;
			config->inputs[at] = config->values + config->properties_count;
			config->properties[config->properties_count++] =
				sdk_counter_property(config->agent, counter->property);
		}
	}
}

static void config_size(struct sdk_config *config)
{
	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct program *program = config_program(config, i);

		config->inputs_count += program->inputs_count;
		config->records += program->values;
		if (config->inputs_most < program->inputs_count)
			config->inputs_most = program->inputs_count;
		if (config->work < program->work)
			config->work = program->work;
	}
}

static bool config_fill(struct sdk_config *config)
{
	uint64_t *ids;

	config_size(config);
	/* One more of each: none of them may be of size 0. */
	config->inputs = calloc(config->inputs_count + 1, sizeof(config->inputs[0]));
	config->requests = calloc(config->inputs_count + 1, sizeof(config->requests[0]));
	config->request_values =
		calloc(config->inputs_count + 1, sizeof(config->request_values[0]));
	config->properties = calloc(config->inputs_count + 1, sizeof(config->properties[0]));
	config->ids = calloc(config->records + 1, sizeof(config->ids[0]));
	if (!config->inputs || !config->requests || !config->request_values ||
	    !config->properties || !config->ids)
		return false;
	config_gather(config);
	ids = config->ids;
	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct sdk_counter *counter = config->counters[i];

		sdk_counter_instances(counter->id, &counter->counter->shape, ids);
		ids += config_program(config, i)->values;
	}
	return true;
}

rocprofiler_status_t sdk_counting_status(enum counting_status status)
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

static rocprofiler_status_t config_make_set(struct sdk_config *config)
{
	struct counting_problem problem = {.text = ""};
	enum counting_status status;

	config->ways = COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE;
	if (!config->requests_count)
		return ROCPROFILER_STATUS_SUCCESS;
	status = config->counting->set_make(config->agent->id.handle, config->requests,
					    config->requests_count, &config->set, &config->ways,
					    &problem);
	if (status)
		sdk_counters_problem(problem.text[0] ? problem.text : counting_status_text(status));
	return sdk_counting_status(status);
}

static void config_free(struct sdk_config *config)
{
	if (config->set)
		config->counting->set_free(config->set);
	free(atomic_load(&config->spare));
	free((void *)config->counters);
	free(config->inputs);
	free(config->requests);
	free(config->request_values);
	free(config->properties);
	free(config->ids);
	free(config);
}

static bool configs_grow(void)
{
	uint32_t capacity = configs_capacity ? configs_capacity * 2 : 16;
	struct sdk_config **grown;

	if (capacity > CONFIGS_MAX)
		return false;
	grown = (struct sdk_config **)realloc((void *)configs, capacity * sizeof(void *));
	if (!grown)
		return false;
	configs = grown;
	configs_capacity = capacity;
	return true;
}

/* With the lock held. The number of one that was destroyed is given away again as late as can be.
 */
static bool config_publish(struct sdk_config *config)
{
	static uint32_t last;
	uint32_t count = configs_count, number = count;

	if (configs_count < configs_capacity || configs_grow()) {
		configs_count++;
	} else if (count) {
		for (uint32_t tries = 0; tries < count && configs[last]; tries++)
			last = last + 1 < count ? last + 1 : 0;
		if (configs[last])
			return false;
		number = last;
		last = last + 1 < count ? last + 1 : 0;
	} else {
		return false;
	}
	configs[number] = config;
	config->id = sdk_handle_base() + number + 1;
	return true;
}

static struct sdk_config *config_at(uint64_t id)
{
	uint64_t number = id - sdk_handle_base() - 1;

	return number < configs_count ? configs[number] : NULL;
}

static bool config_has(const struct sdk_config *config, const struct sdk_counter *counter)
{
	for (uint32_t i = 0; i < config->counters_count; i++) {
		if (config->counters[i] == counter)
			return true;
	}
	return false;
}

/* The counters of `old`, and behind them those that it does not have. */
static rocprofiler_status_t config_choose(struct sdk_config *config,
					  const struct sdk_counter_kind *kind,
					  const struct sdk_config *old,
					  const rocprofiler_counter_id_t *list, size_t count)
{
	for (uint32_t i = 0; old && i < old->counters_count; i++)
		config->counters[config->counters_count++] = old->counters[i];
	for (size_t i = 0; i < count; i++) {
		const struct sdk_counter *counter = sdk_counter_find(list[i].handle);

		if (!counter)
			return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
		if (counter->kind != kind)
			return ROCPROFILER_STATUS_ERROR_METRIC_NOT_VALID_FOR_AGENT;
		if (!config_has(config, counter))
			config->counters[config->counters_count++] = counter;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t config_make(const rocprofiler_agent_v0_t *agent,
					struct sdk_counter_kind *kind, const struct sdk_config *old,
					const rocprofiler_counter_id_t *list, size_t count,
					struct sdk_config **made)
{
	struct sdk_config *config = calloc(1, sizeof(*config));
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
	status = config_choose(config, kind, old, list, count);
	if (status)
		return status;
	if (!config_fill(config))
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	status = config_make_set(config);
	if (!status && !config_publish(config))
		status = ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	return status;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_create_counter_config(
	rocprofiler_agent_id_t agent_id, rocprofiler_counter_id_t *counters_list,
	size_t counters_count, rocprofiler_counter_config_id_t *config_id)
{
	const rocprofiler_agent_v0_t *agent = sdk_agent_find(agent_id.handle);
	const struct sdk_config *old = NULL;
	struct sdk_config *made = NULL;
	struct sdk_counter_kind *kind;
	rocprofiler_status_t status;

	sdk_counters_problem(NULL);
	if (!config_id || (!counters_list && counters_count) || counters_count > COUNTERS_MAX)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!agent)
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	sdk_counters_lock();
	kind = sdk_counter_kind(agent, &status);
	/* One that is not there is nothing to add to, as upstream has it: its own samples leave the
	 * handle as it was on the stack. */
	if (kind && config_id->handle)
		old = config_at(config_id->handle);
	if (old && old->agent != agent)
		status = ROCPROFILER_STATUS_ERROR_AGENT_MISMATCH;
	if (!status)
		status = config_make(agent, kind, old, counters_list, counters_count, &made);
	if (!status)
		config_id->handle = made->id;
	sdk_counters_unlock();
	if (status && made)
		config_free(made);
	return status;
}

/* Who uses it goes on with it. */
SDK_EXPORT rocprofiler_status_t
rocprofiler_destroy_counter_config(rocprofiler_counter_config_id_t config_id)
{
	struct sdk_config *config;

	sdk_counters_lock();
	config = config_at(config_id.handle);
	if (config)
		configs[config_id.handle - sdk_handle_base() - 1] = NULL;
	sdk_counters_unlock();
	if (config)
		sdk_config_drop(config);
	return ROCPROFILER_STATUS_SUCCESS;
}

/* ---- using one ---- */

struct sdk_config *sdk_config_get(uint64_t id)
{
	struct sdk_config *config;

	sdk_counters_lock();
	config = config_at(id);
	if (config)
		sdk_config_keep(config);
	sdk_counters_unlock();
	return config;
}

void sdk_config_keep(struct sdk_config *config)
{
	atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
}

void sdk_config_drop(struct sdk_config *config)
{
	if (atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) == 1)
		config_free(config);
}

uint64_t sdk_config_agent(const struct sdk_config *config)
{
	return config->agent->id.handle;
}

void *sdk_config_set(const struct sdk_config *config)
{
	return config->set;
}

uint32_t sdk_config_ways(const struct sdk_config *config)
{
	return config->ways;
}

size_t sdk_config_values(const struct sdk_config *config)
{
	return config->values;
}

size_t sdk_config_records(const struct sdk_config *config)
{
	return config->records;
}

const struct device_counting *sdk_config_counting(const struct sdk_config *config)
{
	return config->counting;
}

struct sdk_counted *sdk_config_take(struct sdk_config *config)
{
	struct sdk_counted *counted =
		atomic_exchange_explicit(&config->spare, NULL, memory_order_acquire);
	size_t values = config->values + config->properties_count;
	char *memory;

	if (counted)
		return counted;
	memory = malloc(sizeof(*counted) + config->records * sizeof(rocprofiler_counter_record_t) +
			(config->records + 1) * sizeof(struct arena_record) +
			(config->inputs_most + 1) * sizeof(double *) +
			(config->work + values) * sizeof(double));
	if (!memory)
		return NULL;
	counted = (struct sdk_counted *)(void *)memory;
	counted->config = config;
	counted->records = (rocprofiler_counter_record_t *)(void *)(counted + 1);
	counted->list = (struct arena_record *)(void *)(counted->records + config->records);
	counted->inputs = (const double **)(void *)(counted->list + config->records + 1);
	counted->work = (double *)(void *)(counted->inputs + config->inputs_most + 1);
	counted->values = counted->work + config->work;
	memcpy(counted->values + config->values, config->properties,
	       config->properties_count * sizeof(double));
	return counted;
}

void sdk_config_give(struct sdk_counted *counted)
{
	free(atomic_exchange_explicit(&counted->config->spare, counted, memory_order_release));
}

void sdk_config_evaluate(struct sdk_counted *counted, const double *values, uint64_t dispatch,
			 rocprofiler_user_data_t user_data)
{
	const struct sdk_config *config = counted->config;
	rocprofiler_counter_record_t *record = counted->records;
	const size_t *offsets = config->inputs;
	const uint64_t *ids = config->ids;

	if (values && values != counted->values)
		memcpy(counted->values, values, config->values * sizeof(double));
	for (uint32_t i = 0; i < config->counters_count; i++) {
		const struct program *program = config_program(config, i);
		const double *results;

		for (uint32_t j = 0; j < program->inputs_count; j++)
			counted->inputs[j] = counted->values + *offsets++;
		results = program_evaluate(program, counted->inputs, counted->work);
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
