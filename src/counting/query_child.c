/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See query_child.h. The tool library is found at run time: kymo does not link it.
 */
#include "counting/query_child.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/counting.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#include "common/settings_value.h"
#include "counting/query.h"

#define QUERY_TIMEOUT_S       60
#define COUNTERS_PER_LIST_MAX 256

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
} sdk_entry_points;

static const char *const *counter_name_lists_to_query; /* COUNTER_LIST_SETTING_COUNT; NULL: none */
static json_t *agents_json_array;

static bool load_tool_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "kymo: cannot load '%s': %s\n", path, dlerror());
		return false;
	}
#define LOAD_SDK_FUNCTION(name)                                                                    \
	*(void **)&sdk_entry_points.name = dlsym(library, "rocprofiler_" #name);                   \
	if (!sdk_entry_points.name)                                                                \
	return false
	LOAD_SDK_FUNCTION(force_configure);
	LOAD_SDK_FUNCTION(query_available_agents);
	LOAD_SDK_FUNCTION(iterate_agent_supported_counters);
	LOAD_SDK_FUNCTION(query_counter_info);
	LOAD_SDK_FUNCTION(create_counter_config);
	LOAD_SDK_FUNCTION(get_status_string);
#undef LOAD_SDK_FUNCTION
	*(void **)&sdk_entry_points.counter_config_problem =
		dlsym(library, "kymo_counter_config_problem");
	*(void **)&sdk_entry_points.counter_ways = dlsym(library, "kymo_counter_ways");
	return true;
}

/* OpenCL's loader makes itself known to its layers when it is first asked for anything. */
static void initialize_opencl_loader(void)
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

static void json_set_text_unless_empty(json_t *object, const char *key, const char *text)
{
	if (text && *text)
		json_object_set_new(object, key, json_string(text));
}

static json_t *dimensions_to_json(const rocprofiler_counter_info_v1_t *info)
{
	json_t *array = json_array();

	for (uint64_t i = 0; i < info->dimensions_count; i++) {
		json_t *dimension = json_object();

		json_set_text_unless_empty(dimension, "name", info->dimensions[i]->name);
		json_object_set_new(dimension, "size",
				    json_integer((json_int_t)info->dimensions[i]->instance_size));
		json_array_append_new(array, dimension);
	}
	return array;
}

static void set_json_counting_ways(json_t *counter, rocprofiler_counter_id_t id)
{
	uint32_t ways = KYMO_COUNTING_OF_KERNELS | KYMO_COUNTING_OF_DEVICES;

	if (sdk_entry_points.counter_ways)
		sdk_entry_points.counter_ways(id, &ways);
	json_object_set_new(counter, "kernels", json_boolean(ways & KYMO_COUNTING_OF_KERNELS));
	json_object_set_new(counter, "devices", json_boolean(ways & KYMO_COUNTING_OF_DEVICES));
}

static bool is_name_in_list(const char *list, const char *name)
{
	struct text_slice rest = setting_slice_from_text(list), word;

	while (setting_next_list_word(&rest, &word)) {
		if (word.length == strlen(name) && !memcmp(word.text, name, word.length))
			return true;
	}
	return false;
}

/* Those of an agent that are in a list. */
struct chosen_agent_counters {
	rocprofiler_counter_id_t ids[COUNTERS_PER_LIST_MAX];
	const char *names[COUNTERS_PER_LIST_MAX];
	size_t count;
};

struct agent_counters_json_state {
	json_t *array;
	struct chosen_agent_counters chosen_by_list[COUNTER_LIST_SETTING_COUNT];
};

static void choose_counter_if_listed(struct agent_counters_json_state *counters,
				     rocprofiler_counter_id_t id, const char *name)
{
	for (int i = 0; counter_name_lists_to_query && i < COUNTER_LIST_SETTING_COUNT; i++) {
		struct chosen_agent_counters *chosen = &counters->chosen_by_list[i];

		if (chosen->count == COUNTERS_PER_LIST_MAX ||
		    !is_name_in_list(counter_name_lists_to_query[i], name))
			continue;
		chosen->names[chosen->count] = name;
		chosen->ids[chosen->count++] = id;
	}
}

static rocprofiler_status_t append_counters_json(rocprofiler_agent_id_t agent,
						 rocprofiler_counter_id_t *ids, size_t count,
						 void *context)
{
	struct agent_counters_json_state *counters = context;

	(void)agent;
	for (size_t i = 0; i < count; i++) {
		rocprofiler_counter_info_v1_t info = {.size = sizeof(info)};
		json_t *counter;

		if (sdk_entry_points.query_counter_info(ids[i], ROCPROFILER_COUNTER_INFO_VERSION_1,
							&info) != ROCPROFILER_STATUS_SUCCESS)
			continue;
		counter = json_object();
		json_set_text_unless_empty(counter, "name", info.name);
		json_set_text_unless_empty(counter, "description", info.description);
		json_set_text_unless_empty(counter, "block", info.block);
		json_set_text_unless_empty(counter, "expression", info.expression);
		json_object_set_new(counter, "constant", json_boolean(info.is_constant));
		json_object_set_new(counter, "derived", json_boolean(info.is_derived));
		json_object_set_new(counter, "dimensions", dimensions_to_json(&info));
		set_json_counting_ways(counter, ids[i]);
		json_array_append_new(counters->array, counter);
		choose_counter_if_listed(counters, ids[i], info.name);
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static const char *get_refusal_reason_text(rocprofiler_status_t status)
{
	const char *why = sdk_entry_points.counter_config_problem
				  ? sdk_entry_points.counter_config_problem()
				  : NULL;

	return why && *why ? why : sdk_entry_points.get_status_string(status);
}

static void append_refused_counter_json(json_t *refused, int list, const char *name,
					rocprofiler_status_t status)
{
	json_t *one = json_object();

	json_set_text_unless_empty(one, "name", name);
	json_set_text_unless_empty(one, "why", get_refusal_reason_text(status));
	json_object_set_new(one, "list", json_integer(list));
	json_object_set_new(one, "fits",
			    json_boolean(status != ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT));
	json_array_append_new(refused, one);
}

/* One by one where they cannot be had together, so that those too many are known. */
static void find_refused_counters(rocprofiler_agent_id_t agent, json_t *refused, int list,
				  struct chosen_agent_counters *chosen)
{
	rocprofiler_counter_config_id_t whole = {0}, more;

	if (!chosen->count ||
	    sdk_entry_points.create_counter_config(agent, chosen->ids, chosen->count, &whole) ==
		    ROCPROFILER_STATUS_SUCCESS)
		return;
	whole.handle = 0;
	for (size_t i = 0; i < chosen->count; i++) {
		rocprofiler_status_t status;

		more = whole;
		status = sdk_entry_points.create_counter_config(agent, &chosen->ids[i], 1, &more);
		if (status == ROCPROFILER_STATUS_SUCCESS)
			whole = more;
		else
			append_refused_counter_json(refused, list, chosen->names[i], status);
	}
}

/* ---- agents ---- */

/* OpenCL's devices are known once the program uses OpenCL (device/opencl/agents.c has the names),
 * all others from the start. */
static bool is_agent_known_at_start(const rocprofiler_agent_v0_t *agent)
{
	return strncmp(agent->name, "opencl_", 7) != 0 && strcmp(agent->name, "pocl_cpu") != 0;
}

static void append_agent_json(const rocprofiler_agent_v0_t *agent)
{
	struct agent_counters_json_state *counters = calloc(1, sizeof(*counters));
	json_t *object = json_object(), *refused = json_array();
	rocprofiler_status_t status;

	if (!counters)
		return;
	counters->array = json_array();
	json_object_set_new(object, "node", json_integer((json_int_t)agent->logical_node_id));
	json_object_set_new(object, "type",
			    json_string(agent->type == ROCPROFILER_AGENT_TYPE_GPU ? "gpu" : "cpu"));
	json_set_text_unless_empty(object, "name", agent->name);
	json_set_text_unless_empty(object, "product", agent->product_name);
	json_set_text_unless_empty(object, "vendor", agent->vendor_name);
	status = sdk_entry_points.iterate_agent_supported_counters(agent->id, append_counters_json,
								   counters);
	if (status != ROCPROFILER_STATUS_SUCCESS)
		json_set_text_unless_empty(object, "problem",
					   sdk_entry_points.get_status_string(status));
	json_object_set_new(object, "counters", counters->array);
	json_object_set_new(object, "early", json_boolean(is_agent_known_at_start(agent)));
	for (int i = 0; i < COUNTER_LIST_SETTING_COUNT; i++)
		find_refused_counters(agent->id, refused, i, &counters->chosen_by_list[i]);
	json_object_set_new(object, "refused", refused);
	json_array_append_new(agents_json_array, object);
	free(counters);
}

static rocprofiler_status_t append_agents_json(rocprofiler_agent_version_t version,
					       const void **list, size_t count, void *unused)
{
	(void)version;
	(void)unused;
	for (size_t i = 0; i < count; i++)
		append_agent_json(list[i]);
	return ROCPROFILER_STATUS_SUCCESS;
}

static int tool_initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	(void)finalize;
	(void)data;
	return 0;
}

static rocprofiler_tool_configure_result_t *tool_configure(uint32_t version, const char *runtime,
							   uint32_t priority,
							   rocprofiler_client_id_t *client)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), tool_initialize, NULL,
							     NULL};

	(void)version;
	(void)runtime;
	(void)priority;
	client->name = "kymo";
	return &result;
}

/* No other tools, and no session of kymo's that it may run in. */
static bool set_environment_and_load_sdk(const char *sdk, const char *definitions,
					 const char *const *lists)
{
	unsetenv("ROCP_TOOL_LIBRARIES");
	unsetenv("KYMO_SPOOL_DIRECTORY");
	return !setenv("OPENCL_LAYERS", sdk, 1) &&
	       (!*definitions || !setenv("KYMO_COUNTER_DEFS", definitions, 1)) &&
	       (lists == NULL || (!setenv("KYMO_COUNTERS", lists[0], 1) &&
				  !setenv("KYMO_DEVICE_COUNTERS", lists[1], 1))) &&
	       load_tool_library(sdk);
}

void counter_query_execute_in_child(const char *sdk, const char *definitions,
				    const char *const *lists, int to)
{
	json_t *root = json_object();

	alarm(QUERY_TIMEOUT_S);
	counter_name_lists_to_query = lists;
	agents_json_array = json_array();
	if (!set_environment_and_load_sdk(sdk, definitions, lists) ||
	    sdk_entry_points.force_configure(tool_configure) != ROCPROFILER_STATUS_SUCCESS)
		_exit(1);
	initialize_opencl_loader();
	sdk_entry_points.query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0,
						append_agents_json, sizeof(rocprofiler_agent_v0_t),
						NULL);
	json_object_set_new(root, "agents", agents_json_array);
	_exit(json_dumpfd(root, to, 0) ? 1 : 0);
}
