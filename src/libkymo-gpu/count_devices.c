/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See count_devices.h. Each agent has a context of its own, so that one which cannot be counted
 * takes no other with it. The tool library hands over the values of every interval
 * (kymo/counting.h), on threads of its own.
 */
#include "libkymo-gpu/count_devices.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "kymo/counting.h"
#include "libkymo-gpu/counter_choice.h"
#include "libkymo-gpu/counter_records.h"
#include "libkymo-gpu/file.h"
#include "libkymo-gpu/names.h"

#define AGENTS_MAX                  64
#define COUNTER_INTERVAL_DEFAULT_MS 10.0
#define VALUES_PER_WRITE_MAX        512u

/* Only kymo's tool library has it. */
#pragma weak kymo_configure_device_counting_samples

struct agent_counting_state {
	rocprofiler_agent_id_t agent;
	rocprofiler_context_id_t context;
	rocprofiler_counter_config_id_t config;
	bool is_counting;
	_Atomic bool has_values;
	rocprofiler_status_t status; /* of the start */
};

static const char *requested_device_counter_names;
static struct agent_counting_state agent_counting_states[AGENTS_MAX];
static size_t counted_agent_count;
static uint64_t counter_interval_ns;

/* ---- values ---- */

static void write_device_samples(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent,
				 const rocprofiler_counter_record_t *records, size_t count,
				 uint64_t start, uint64_t end, void *data)
{
	const rocprofiler_counter_record_t *values[VALUES_PER_WRITE_MAX];

	struct agent_counting_state *counted = data;

	(void)context;
	(void)agent;
	if (count != 0)
		atomic_store(&counted->has_values, true);
	gpu_file_lock();
	for (size_t i = 0; i < count;) {
		size_t taken = 0;

		while (i < count && taken < VALUES_PER_WRITE_MAX)
			values[taken++] = &records[i++];
		counter_records_write_values(values, taken, start, end);
	}
	gpu_file_unlock();
}

/* ---- life ---- */

static void write_device_counting_problem_notice(const char *what, rocprofiler_status_t status)
{
	const char *why = counter_choice_get_problem_text(status);
	char text[640];

	snprintf(text, sizeof(text), "counters of a device are not read: %s: %s", what, why);
	gpu_file_write_notice(text);
}

static void hand_over_agent_counter_config(rocprofiler_context_id_t context,
					   rocprofiler_agent_id_t agent,
					   rocprofiler_device_counting_agent_cb_t set, void *data)
{
	const struct agent_counting_state *counted = data;

	(void)agent;
	set(context, counted->config);
}

static void configure_agent_counting(rocprofiler_agent_id_t agent)
{
	struct agent_counting_state *counted = &agent_counting_states[counted_agent_count];
	rocprofiler_status_t status;

	counted->agent = agent;
	counted->config = counter_choice_create_config(agent, requested_device_counter_names);
	if (counted->config.handle == 0)
		return;
	status = rocprofiler_create_context(&counted->context);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_configure_device_counting_service(
			counted->context, (rocprofiler_buffer_id_t){0}, agent,
			hand_over_agent_counter_config, counted);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = kymo_configure_device_counting_samples(
			counted->context, counter_interval_ns, write_device_samples, counted);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		counted_agent_count++;
	else
		write_device_counting_problem_notice("configuring", status);
}

static rocprofiler_status_t configure_counting_of_each_agent(rocprofiler_agent_version_t version,
							     const void **list, size_t count,
							     void *unused)
{
	(void)version;
	(void)unused;
	for (size_t i = 0; i < count && counted_agent_count < AGENTS_MAX; i++)
		configure_agent_counting(((const rocprofiler_agent_v0_t *)list[i])->id);
	return ROCPROFILER_STATUS_SUCCESS;
}

void device_counting_configure_if_env_asks(void)
{
	const char *interval = secure_getenv("KYMO_COUNTER_INTERVAL");
	double ms = interval != NULL ? strtod(interval, NULL) : COUNTER_INTERVAL_DEFAULT_MS;

	requested_device_counter_names = secure_getenv("KYMO_DEVICE_COUNTERS");
	if (requested_device_counter_names == NULL || *requested_device_counter_names == '\0')
		return;
	counter_interval_ns = (uint64_t)((ms > 0 ? ms : COUNTER_INTERVAL_DEFAULT_MS) * 1e6);
	if (kymo_configure_device_counting_samples == NULL)
		gpu_file_write_notice("counters of devices are not read: another tool library than "
				      "kymo's is loaded");
	else
		rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0,
						   configure_counting_of_each_agent,
						   sizeof(rocprofiler_agent_v0_t), NULL);
}

void device_counting_start(void)
{
	for (size_t i = 0; i < counted_agent_count; i++) {
		rocprofiler_status_t status =
			rocprofiler_start_context(agent_counting_states[i].context);

		/* HSA_NOT_LOADED: it begins by itself once the runtime is up. */
		agent_counting_states[i].status = status;
		agent_counting_states[i].is_counting =
			status == ROCPROFILER_STATUS_SUCCESS ||
			status == ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
		if (!agent_counting_states[i].is_counting) {
			write_device_counting_problem_notice("starting", status);
			continue;
		}
		/* However short it runs, it was counted. */
		gpu_file_lock();
		names_find_or_write_agent(agent_counting_states[i].agent);
		gpu_file_unlock();
	}
}

void device_counting_stop(void)
{
	for (size_t i = 0; i < counted_agent_count; i++) {
		if (!agent_counting_states[i].is_counting)
			continue;
		rocprofiler_stop_context(agent_counting_states[i].context);
		agent_counting_states[i].is_counting = false;
		if (atomic_load(&agent_counting_states[i].has_values))
			continue;
		if (agent_counting_states[i].status != ROCPROFILER_STATUS_SUCCESS)
			write_device_counting_problem_notice("until the program's end",
							     agent_counting_states[i].status);
		else
			gpu_file_write_notice(
				"counters of a device are not read: no value came until "
				"the program's end");
	}
}

/* What is counted is the parent's; no thread of the library is here. */
void device_counting_reset_after_fork(void)
{
	for (size_t i = 0; i < counted_agent_count; i++)
		agent_counting_states[i].is_counting = false;
}
