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

#define AGENTS_MAX     64
#define INTERVAL_MS    10.0
#define VALUES_AT_ONCE 512u

/* Of kymo's tool library alone. */
#pragma weak kymo_configure_device_counting_samples

struct counted_agent {
	rocprofiler_agent_id_t agent;
	rocprofiler_context_id_t context;
	rocprofiler_counter_config_id_t config;
	bool is_on;
	_Atomic bool has_values;
	rocprofiler_status_t status; /* of the start */
};

static const char *names;
static struct counted_agent agents[AGENTS_MAX];
static size_t agent_count;
static uint64_t interval_ns;

/* ---- values ---- */

static void take_samples(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent,
			 const rocprofiler_counter_record_t *records, size_t count, uint64_t start,
			 uint64_t end, void *data)
{
	const rocprofiler_counter_record_t *values[VALUES_AT_ONCE];

	struct counted_agent *counted = data;

	(void)context;
	(void)agent;
	if (count != 0)
		atomic_store(&counted->has_values, true);
	gpu_file_lock();
	for (size_t i = 0; i < count;) {
		size_t taken = 0;

		while (i < count && taken < VALUES_AT_ONCE)
			values[taken++] = &records[i++];
		counter_records_values(values, taken, start, end);
	}
	gpu_file_unlock();
}

/* ---- life ---- */

static void tell(const char *what, rocprofiler_status_t status)
{
	const char *why = counter_choice_why(status);
	char text[640];

	snprintf(text, sizeof(text), "counters of a device are not read: %s: %s", what, why);
	gpu_file_notice(text);
}

static void set_config(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent,
		       rocprofiler_device_counting_agent_cb_t set, void *data)
{
	const struct counted_agent *counted = data;

	(void)agent;
	set(context, counted->config);
}

static void configure(rocprofiler_agent_id_t agent)
{
	struct counted_agent *counted = &agents[agent_count];
	rocprofiler_status_t status;

	counted->agent = agent;
	counted->config = counter_choice(agent, names);
	if (counted->config.handle == 0)
		return;
	status = rocprofiler_create_context(&counted->context);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_configure_device_counting_service(
			counted->context, (rocprofiler_buffer_id_t){0}, agent, set_config, counted);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = kymo_configure_device_counting_samples(counted->context, interval_ns,
								take_samples, counted);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		agent_count++;
	else
		tell("configuring", status);
}

static rocprofiler_status_t each_agent(rocprofiler_agent_version_t version, const void **list,
				       size_t count, void *unused)
{
	(void)version;
	(void)unused;
	for (size_t i = 0; i < count && agent_count < AGENTS_MAX; i++)
		configure(((const rocprofiler_agent_v0_t *)list[i])->id);
	return ROCPROFILER_STATUS_SUCCESS;
}

void count_devices_configure(void)
{
	const char *interval = getenv("KYMO_COUNTER_INTERVAL");
	double ms = interval != NULL ? strtod(interval, NULL) : INTERVAL_MS;

	names = getenv("KYMO_DEVICE_COUNTERS");
	if (names == NULL || *names == '\0')
		return;
	interval_ns = (uint64_t)((ms > 0 ? ms : INTERVAL_MS) * 1e6);
	if (kymo_configure_device_counting_samples == NULL)
		gpu_file_notice("counters of devices are not read: another tool library than "
				"kymo's is loaded");
	else
		rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, each_agent,
						   sizeof(rocprofiler_agent_v0_t), NULL);
}

void count_devices_start(void)
{
	for (size_t i = 0; i < agent_count; i++) {
		rocprofiler_status_t status = rocprofiler_start_context(agents[i].context);

		/* HSA_NOT_LOADED: it begins by itself once the runtime is up. */
		agents[i].status = status;
		agents[i].is_on = status == ROCPROFILER_STATUS_SUCCESS ||
				  status == ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
		if (!agents[i].is_on) {
			tell("starting", status);
			continue;
		}
		/* However short it runs, it was counted. */
		gpu_file_lock();
		names_agent(agents[i].agent);
		gpu_file_unlock();
	}
}

void count_devices_end(void)
{
	for (size_t i = 0; i < agent_count; i++) {
		if (!agents[i].is_on)
			continue;
		rocprofiler_stop_context(agents[i].context);
		agents[i].is_on = false;
		if (atomic_load(&agents[i].has_values))
			continue;
		if (agents[i].status != ROCPROFILER_STATUS_SUCCESS)
			tell("until the program's end", agents[i].status);
		else
			gpu_file_notice("counters of a device are not read: no value came until "
					"the program's end");
	}
}

/* What is counted is the parent's; no thread of the library is here. */
void count_devices_forked(void)
{
	for (size_t i = 0; i < agent_count; i++)
		agents[i].is_on = false;
}
