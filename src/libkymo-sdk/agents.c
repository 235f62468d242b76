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

#include "device/registry/devices.h"
#include "libkymo-sdk/base/agent_visibility.h"
#include "libkymo-sdk/base/state.h"

/* Pointers that tools get stay valid; what they point at changes only by more agents being there.
 */
static rocprofiler_agent_v0_t *known_agents[SDK_AGENTS_MAX];
static _Atomic uint32_t
	agent_runtime_bits_table[SDK_AGENTS_MAX]; /* that have told it, by their numbers' bits */
static _Atomic uint32_t known_agent_count;
static pthread_once_t agent_discovery_once = PTHREAD_ONCE_INIT;

static void discover_agents(void)
{
	device_discover_agents();
}

static char *copy_agent_text(const char *text)
{
	char *copy = strdup(text ? text : "");

	if (!copy)
		return (char *)"";
	return copy;
}

static bool agent_has_nonzero_uuid(const rocprofiler_agent_v0_t *agent)
{
	static const rocprofiler_uuid_t none;

	return memcmp(&agent->uuid, &none, sizeof(none)) != 0;
}

static bool are_agents_same(const rocprofiler_agent_v0_t *one, const rocprofiler_agent_v0_t *other)
{
	if (one->type != other->type)
		return false;
	if (agent_has_nonzero_uuid(one) && agent_has_nonzero_uuid(other))
		return !memcmp(&one->uuid, &other->uuid, sizeof(one->uuid));
	if (one->location_id || other->location_id)
		return one->domain == other->domain && one->location_id == other->location_id;
	return !strcmp(one->product_name, other->product_name ? other->product_name : "") &&
	       !strcmp(one->name, other->name ? other->name : "");
}

/* With the lock held. */
static rocprofiler_agent_v0_t *find_known_agent(const rocprofiler_agent_v0_t *agent)
{
	for (uint32_t i = 0; i < atomic_load(&known_agent_count); i++) {
		if (are_agents_same(known_agents[i], agent))
			return known_agents[i];
	}
	return NULL;
}

static void complete_newly_registered_agent(rocprofiler_agent_v0_t *agent, uint32_t number,
					    bool is_visible)
{
	int32_t of_type = 0;

	for (uint32_t i = 0; i < number; i++)
		of_type += known_agents[i]->type == agent->type;
	agent->size = sizeof(*agent);
	agent->id.handle = sdk_get_handle_base() + number + 1;
	agent->node_id = number;
	agent->logical_node_id = (int32_t)number;
	agent->logical_node_type_id = of_type;
	agent->name = copy_agent_text(agent->name);
	agent->vendor_name = copy_agent_text(agent->vendor_name);
	agent->product_name = copy_agent_text(agent->product_name);
	agent->model_name = copy_agent_text(agent->model_name);
	/* Samples take the agents that are "visible to HIP". Other runtimes list only what is. */
	if (!strcmp(agent->vendor_name, "AMD") && agent->type == ROCPROFILER_AGENT_TYPE_GPU)
		sdk_agent_set_visibility_from_env(agent, (uint32_t)of_type);
	else if (is_visible)
		agent->runtime_visibility.hip = 1;
}

rocprofiler_agent_id_t sdk_agent_register(const rocprofiler_agent_v0_t *agent, bool is_visible)
{
	rocprofiler_agent_v0_t *known, *made = malloc(sizeof(*made));
	uint32_t number;

	sdk_acquire_global_lock();
	known = find_known_agent(agent);
	number = atomic_load(&known_agent_count);
	if (!known && made && number < SDK_AGENTS_MAX) {
		*made = *agent;
		complete_newly_registered_agent(made, number, is_visible);
		known_agents[number] = made;
		atomic_store_explicit(&known_agent_count, number + 1, memory_order_release);
		known = made;
		made = NULL;
	}
	sdk_release_global_lock();
	free(made);
	return known ? known->id : (rocprofiler_agent_id_t){0};
}

const rocprofiler_agent_v0_t *sdk_agent_find_by_id(uint64_t id)
{
	uint64_t number;

	pthread_once(&agent_discovery_once, discover_agents);
	number = id - sdk_get_handle_base() - 1;
	return number < atomic_load_explicit(&known_agent_count, memory_order_acquire)
		       ? known_agents[number]
		       : NULL;
}

uint32_t sdk_agents_get_count(void)
{
	pthread_once(&agent_discovery_once, discover_agents);
	return atomic_load_explicit(&known_agent_count, memory_order_acquire);
}

const rocprofiler_agent_v0_t *sdk_agent_get_by_number(uint32_t number)
{
	return known_agents[number];
}

void sdk_agent_add_runtime(rocprofiler_agent_id_t agent, enum device_runtime_kind runtime)
{
	uint64_t number = agent.handle - sdk_get_handle_base() - 1;

	if (number < atomic_load(&known_agent_count))
		atomic_fetch_or(&agent_runtime_bits_table[number], 1u << runtime);
}

uint32_t sdk_agent_get_runtime_bits(uint32_t number)
{
	return atomic_load(&agent_runtime_bits_table[number]);
}

rocprofiler_agent_id_t sdk_get_host_agent_id(void)
{
	pthread_once(&agent_discovery_once, discover_agents);
	for (uint32_t i = 0; i < atomic_load_explicit(&known_agent_count, memory_order_acquire);
	     i++) {
		if (known_agents[i]->type == ROCPROFILER_AGENT_TYPE_CPU)
			return known_agents[i]->id;
	}
	return (rocprofiler_agent_id_t){0};
}
