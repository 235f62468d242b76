/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counter_query_child.h. The tool library is found at run time: kymo does not link it.
 */
#include "cmd/counter_query_child.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/counting.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#include "cmd/counter_query.h"
#include "common/settings_value.h"

#define PATIENCE_S   60
#define COUNTERS_MAX 256

static struct {
	__typeof__(rocprofiler_force_configure) *force_configure;
	__typeof__(rocprofiler_query_available_agents) *query_available_agents;
	__typeof__(rocprofiler_iterate_agent_supported_counters) *iterate_agent_supported_counters;
	__typeof__(rocprofiler_query_counter_info) *query_counter_info;
	__typeof__(rocprofiler_create_counter_config) *create_counter_config;
	__typeof__(rocprofiler_get_status_string) *get_status_string;
	/* kymo/counting.h; may be NULL */
	const char *(*counter_config_problem)(void);
	rocprofiler_status_t (*counter_ways)(rocprofiler_counter_id_t counter, uint32_t *ways);
} sdk_calls;

static const char *const *query_lists; /* COUNTER_LISTS; NULL: none */
static json_t *query_agents;

static bool query_load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "kymo: cannot load '%s': %s\n", path, dlerror());
		return false;
	}
#define FIND(name)                                                                                 \
	*(void **)&sdk_calls.name = dlsym(library, "rocprofiler_" #name);                          \
	if (!sdk_calls.name)                                                                       \
	return false
	FIND(force_configure);
	FIND(query_available_agents);
	FIND(iterate_agent_supported_counters);
	FIND(query_counter_info);
	FIND(create_counter_config);
	FIND(get_status_string);
#undef FIND
	*(void **)&sdk_calls.counter_config_problem = dlsym(library, "kymo_counter_config_problem");
	*(void **)&sdk_calls.counter_ways = dlsym(library, "kymo_counter_ways");
	return true;
}

/* OpenCL's loader makes itself known to its layers when it is first asked for anything. */
static void query_load_opencl(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL);
	int (*get_platforms)(unsigned count, void **platforms, unsigned *found);
	unsigned found = 0;

	if (!library)
		return;
	*(void **)&get_platforms = dlsym(library, "clGetPlatformIDs");
	if (get_platforms)
		get_platforms(0, NULL, &found);
}

/* ---- counters ---- */

static void put_text(json_t *object, const char *key, const char *text)
{
	if (text && *text)
		json_object_set_new(object, key, json_string(text));
}

static json_t *query_dimensions(const rocprofiler_counter_info_v1_t *info)
{
	json_t *array = json_array();

	for (uint64_t i = 0; i < info->dimensions_count; i++) {
		json_t *dimension = json_object();

		put_text(dimension, "name", info->dimensions[i]->name);
		json_object_set_new(dimension, "size",
				    json_integer((json_int_t)info->dimensions[i]->instance_size));
		json_array_append_new(array, dimension);
	}
	return array;
}

static void query_ways(json_t *counter, rocprofiler_counter_id_t id)
{
	uint32_t ways = KYMO_COUNTING_OF_KERNELS | KYMO_COUNTING_OF_DEVICES;

	if (sdk_calls.counter_ways)
		sdk_calls.counter_ways(id, &ways);
	json_object_set_new(counter, "kernels", json_boolean(ways & KYMO_COUNTING_OF_KERNELS));
	json_object_set_new(counter, "devices", json_boolean(ways & KYMO_COUNTING_OF_DEVICES));
}

static bool query_is_named(const char *list, const char *name)
{
	struct setting_slice rest = setting_slice(list), word;

	while (setting_list_next(&rest, &word)) {
		if (word.length == strlen(name) && !memcmp(word.text, name, word.length))
			return true;
	}
	return false;
}

/* Those of an agent that are in a list. */
struct chosen {
	rocprofiler_counter_id_t ids[COUNTERS_MAX];
	const char *names[COUNTERS_MAX];
	size_t count;
};

struct counters {
	json_t *array;
	struct chosen chosen[COUNTER_LISTS];
};

static void query_choose(struct counters *counters, rocprofiler_counter_id_t id, const char *name)
{
	for (int i = 0; query_lists && i < COUNTER_LISTS; i++) {
		struct chosen *chosen = &counters->chosen[i];

		if (chosen->count == COUNTERS_MAX || !query_is_named(query_lists[i], name))
			continue;
		chosen->names[chosen->count] = name;
		chosen->ids[chosen->count++] = id;
	}
}

static rocprofiler_status_t query_counters(rocprofiler_agent_id_t agent,
					   rocprofiler_counter_id_t *ids, size_t count,
					   void *context)
{
	struct counters *counters = context;

	(void)agent;
	for (size_t i = 0; i < count; i++) {
		rocprofiler_counter_info_v1_t info = {.size = sizeof(info)};
		json_t *counter;

		if (sdk_calls.query_counter_info(ids[i], ROCPROFILER_COUNTER_INFO_VERSION_1,
						 &info) != ROCPROFILER_STATUS_SUCCESS)
			continue;
		counter = json_object();
		put_text(counter, "name", info.name);
		put_text(counter, "description", info.description);
		put_text(counter, "block", info.block);
		put_text(counter, "expression", info.expression);
		json_object_set_new(counter, "constant", json_boolean(info.is_constant));
		json_object_set_new(counter, "derived", json_boolean(info.is_derived));
		json_object_set_new(counter, "dimensions", query_dimensions(&info));
		query_ways(counter, ids[i]);
		json_array_append_new(counters->array, counter);
		query_choose(counters, ids[i], info.name);
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static const char *query_why(rocprofiler_status_t status)
{
	const char *why =
		sdk_calls.counter_config_problem ? sdk_calls.counter_config_problem() : NULL;

	return why && *why ? why : sdk_calls.get_status_string(status);
}

static void query_refuse(json_t *refused, int list, const char *name, rocprofiler_status_t status)
{
	json_t *one = json_object();

	put_text(one, "name", name);
	put_text(one, "why", query_why(status));
	json_object_set_new(one, "list", json_integer(list));
	json_object_set_new(one, "fits",
			    json_boolean(status != ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT));
	json_array_append_new(refused, one);
}

/* One by one where they cannot be had together, so that those too many are known. */
static void query_check(rocprofiler_agent_id_t agent, json_t *refused, int list,
			struct chosen *chosen)
{
	rocprofiler_counter_config_id_t whole = {0}, more;

	if (!chosen->count || sdk_calls.create_counter_config(agent, chosen->ids, chosen->count,
							      &whole) == ROCPROFILER_STATUS_SUCCESS)
		return;
	whole.handle = 0;
	for (size_t i = 0; i < chosen->count; i++) {
		rocprofiler_status_t status;

		more = whole;
		status = sdk_calls.create_counter_config(agent, &chosen->ids[i], 1, &more);
		if (status == ROCPROFILER_STATUS_SUCCESS)
			whole = more;
		else
			query_refuse(refused, list, chosen->names[i], status);
	}
}

/* ---- agents ---- */

/* OpenCL's devices are known once the program uses OpenCL (device/opencl/agents.c has the names),
 * all others from the start. */
static bool query_is_early(const rocprofiler_agent_v0_t *agent)
{
	return strncmp(agent->name, "opencl_", 7) != 0 && strcmp(agent->name, "pocl_cpu") != 0;
}

static void query_agent(const rocprofiler_agent_v0_t *agent)
{
	struct counters *counters = calloc(1, sizeof(*counters));
	json_t *object = json_object(), *refused = json_array();
	rocprofiler_status_t status;

	if (!counters)
		return;
	counters->array = json_array();
	json_object_set_new(object, "node", json_integer((json_int_t)agent->logical_node_id));
	json_object_set_new(object, "type",
			    json_string(agent->type == ROCPROFILER_AGENT_TYPE_GPU ? "gpu" : "cpu"));
	put_text(object, "name", agent->name);
	put_text(object, "product", agent->product_name);
	put_text(object, "vendor", agent->vendor_name);
	status = sdk_calls.iterate_agent_supported_counters(agent->id, query_counters, counters);
	if (status != ROCPROFILER_STATUS_SUCCESS)
		put_text(object, "problem", sdk_calls.get_status_string(status));
	json_object_set_new(object, "counters", counters->array);
	json_object_set_new(object, "early", json_boolean(query_is_early(agent)));
	for (int i = 0; i < COUNTER_LISTS; i++)
		query_check(agent->id, refused, i, &counters->chosen[i]);
	json_object_set_new(object, "refused", refused);
	json_array_append_new(query_agents, object);
	free(counters);
}

static rocprofiler_status_t query_each(rocprofiler_agent_version_t version, const void **list,
				       size_t count, void *unused)
{
	(void)version;
	(void)unused;
	for (size_t i = 0; i < count; i++)
		query_agent(list[i]);
	return ROCPROFILER_STATUS_SUCCESS;
}

static int query_initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	(void)finalize;
	(void)data;
	return 0;
}

static rocprofiler_tool_configure_result_t *query_configure(uint32_t version, const char *runtime,
							    uint32_t priority,
							    rocprofiler_client_id_t *client)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), query_initialize, NULL,
							     NULL};

	(void)version;
	(void)runtime;
	(void)priority;
	client->name = "kymo";
	return &result;
}

/* No other tools, and no session of kymo's that it may run in. */
static bool query_prepare(const char *sdk, const char *definitions)
{
	unsetenv("ROCP_TOOL_LIBRARIES");
	unsetenv("KYMO_SPOOL_DIRECTORY");
	return !setenv("OPENCL_LAYERS", sdk, 1) &&
	       (!*definitions || !setenv("KYMO_COUNTER_DEFS", definitions, 1)) && query_load(sdk);
}

void counter_query_child(const char *sdk, const char *definitions, const char *const *lists, int to)
{
	json_t *root = json_object();

	alarm(PATIENCE_S);
	query_lists = lists;
	query_agents = json_array();
	if (!query_prepare(sdk, definitions) ||
	    sdk_calls.force_configure(query_configure) != ROCPROFILER_STATUS_SUCCESS)
		_exit(1);
	query_load_opencl();
	sdk_calls.query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, query_each,
					 sizeof(rocprofiler_agent_v0_t), NULL);
	json_object_set_new(root, "agents", query_agents);
	_exit(json_dumpfd(root, to, 0) ? 1 : 0);
}
