/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See agents.h. Backends tell what they can see without starting a runtime when agents are asked
 * for the first time, and the rest when its runtime is started by the program.
 */
#include "libkymo-sdk/agents.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "libkymo-sdk/agent_visibility.h"
#include "libkymo-sdk/start.h"
#include "libkymo-sdk/state.h"

#define AGENTS_MAX 1024

/* Pointers that tools get stay valid; what they point at changes only by more agents being there.
 */
static rocprofiler_agent_v0_t *agents[AGENTS_MAX];
static _Atomic uint32_t agent_runtimes[AGENTS_MAX]; /* that have told it, by their numbers' bits */
static _Atomic uint32_t agent_count;
static pthread_once_t agent_once = PTHREAD_ONCE_INIT;

static void agent_discover(void)
{
	device_discover();
}

static char *agent_text(const char *text)
{
	char *copy = strdup(text ? text : "");

	if (!copy)
		return (char *)"";
	return copy;
}

static bool agent_has_uuid(const rocprofiler_agent_v0_t *agent)
{
	static const rocprofiler_uuid_t none;

	return memcmp(&agent->uuid, &none, sizeof(none)) != 0;
}

static bool agent_is_same(const rocprofiler_agent_v0_t *one, const rocprofiler_agent_v0_t *other)
{
	if (one->type != other->type)
		return false;
	if (agent_has_uuid(one) && agent_has_uuid(other))
		return !memcmp(&one->uuid, &other->uuid, sizeof(one->uuid));
	if (one->location_id || other->location_id)
		return one->domain == other->domain && one->location_id == other->location_id;
	return !strcmp(one->product_name, other->product_name ? other->product_name : "") &&
	       !strcmp(one->name, other->name ? other->name : "");
}

/* With the lock held. */
static rocprofiler_agent_v0_t *agent_known(const rocprofiler_agent_v0_t *agent)
{
	for (uint32_t i = 0; i < atomic_load(&agent_count); i++) {
		if (agent_is_same(agents[i], agent))
			return agents[i];
	}
	return NULL;
}

static void agent_place(rocprofiler_agent_v0_t *agent, uint32_t number, bool is_visible)
{
	int32_t of_type = 0;

	for (uint32_t i = 0; i < number; i++)
		of_type += agents[i]->type == agent->type;
	agent->size = sizeof(*agent);
	agent->id.handle = sdk_handle_base() + number + 1;
	agent->node_id = number;
	agent->logical_node_id = (int32_t)number;
	agent->logical_node_type_id = of_type;
	agent->name = agent_text(agent->name);
	agent->vendor_name = agent_text(agent->vendor_name);
	agent->product_name = agent_text(agent->product_name);
	agent->model_name = agent_text(agent->model_name);
	/* Samples take the agents that are "visible to HIP". Other runtimes list only what is. */
	if (!strcmp(agent->vendor_name, "AMD") && agent->type == ROCPROFILER_AGENT_TYPE_GPU)
		sdk_agent_set_visibility(agent, (uint32_t)of_type);
	else if (is_visible)
		agent->runtime_visibility.hip = 1;
}

rocprofiler_agent_id_t sdk_agent_register(const rocprofiler_agent_v0_t *agent, bool is_visible)
{
	rocprofiler_agent_v0_t *known, *made = malloc(sizeof(*made));
	uint32_t number;

	sdk_lock();
	known = agent_known(agent);
	number = atomic_load(&agent_count);
	if (!known && made && number < AGENTS_MAX) {
		*made = *agent;
		agent_place(made, number, is_visible);
		agents[number] = made;
		atomic_store_explicit(&agent_count, number + 1, memory_order_release);
		known = made;
		made = NULL;
	}
	sdk_unlock();
	free(made);
	return known ? known->id : (rocprofiler_agent_id_t){0};
}

const rocprofiler_agent_v0_t *sdk_agent_find(uint64_t id)
{
	uint64_t number;

	pthread_once(&agent_once, agent_discover);
	number = id - sdk_handle_base() - 1;
	return number < atomic_load_explicit(&agent_count, memory_order_acquire) ? agents[number]
										 : NULL;
}

uint32_t sdk_agent_count(void)
{
	pthread_once(&agent_once, agent_discover);
	return atomic_load_explicit(&agent_count, memory_order_acquire);
}

const rocprofiler_agent_v0_t *sdk_agent_at(uint32_t number)
{
	return agents[number];
}

void sdk_agent_add_runtime(rocprofiler_agent_id_t agent, enum device_runtime runtime)
{
	uint64_t number = agent.handle - sdk_handle_base() - 1;

	if (number < atomic_load(&agent_count))
		atomic_fetch_or(&agent_runtimes[number], 1u << runtime);
}

uint32_t sdk_agent_runtimes(uint32_t number)
{
	return atomic_load(&agent_runtimes[number]);
}

rocprofiler_agent_id_t sdk_agent_host(void)
{
	pthread_once(&agent_once, agent_discover);
	for (uint32_t i = 0; i < atomic_load_explicit(&agent_count, memory_order_acquire); i++) {
		if (agents[i]->type == ROCPROFILER_AGENT_TYPE_CPU)
			return agents[i]->id;
	}
	return (rocprofiler_agent_id_t){0};
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_available_agents(
	rocprofiler_agent_version_t version, rocprofiler_query_available_agents_cb_t callback,
	size_t agent_size, void *user_data)
{
	const void *pointers[AGENTS_MAX];
	uint32_t count;

	if (version != ROCPROFILER_AGENT_INFO_VERSION_0 || !callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (agent_size > sizeof(rocprofiler_agent_v0_t))
		return ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI;
	sdk_start();
	pthread_once(&agent_once, agent_discover);
	count = atomic_load_explicit(&agent_count, memory_order_acquire);
	for (uint32_t i = 0; i < count; i++)
		pointers[i] = agents[i];
	return callback(version, pointers, count, user_data);
}
