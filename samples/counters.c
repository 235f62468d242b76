/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A tool in C that counts: each kernel, and with SAMPLE_DEVICE=MS besides or instead the devices as
 * a whole, every so many milliseconds. It prints a line for each kernel or reading to the file that
 * SAMPLE_OUTPUT names.
 *
 *   SAMPLE_COUNTERS=a,b,...          counted for each kernel
 *   SAMPLE_DEVICE_COUNTERS=a,b,...   counted of devices, every SAMPLE_INTERVAL_MS (10)
 *   SAMPLE_DERIVED=name=expression;...   made first, so that the lists can name them
 *
 * Loaded as it is: LD_PRELOAD=counters.so or ROCP_TOOL_LIBRARIES=counters.so.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/counting.h>
#include <kymo/tools.h>
#include <rocprofiler-sdk/experimental/counters.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#define AGENTS_MAX   16
#define COUNTERS_MAX 32
#define KERNELS_MAX  4096

struct counted_agent {
	rocprofiler_agent_id_t id;
	rocprofiler_counter_config_id_t of_kernels, of_device;
};

static struct {
	rocprofiler_context_id_t context, device_context, names_context;
	struct counted_agent agents[AGENTS_MAX];
	unsigned agent_count;
	const char *kernels[KERNELS_MAX]; /* by id */
	pthread_mutex_t lock;
	FILE *output;
} tool = {.lock = PTHREAD_MUTEX_INITIALIZER};

#pragma weak kymo_configure_device_counting_samples
#pragma weak kymo_counter_config_problem

#define CALL(call)                                                                                 \
	do {                                                                                       \
		rocprofiler_status_t called = (call);                                              \
		if (called != ROCPROFILER_STATUS_SUCCESS) {                                        \
			fprintf(tool.output, "%s: %s\n", #call,                                    \
				rocprofiler_get_status_string(called));                            \
			return -1;                                                                 \
		}                                                                                  \
	} while (0)

static const char *problem(void)
{
	return kymo_counter_config_problem ? kymo_counter_config_problem() : "";
}

/* ---- which counters ---- */

struct search {
	const char *list;
	rocprofiler_counter_id_t found[COUNTERS_MAX];
	size_t count;
};

static int is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	while (*list) {
		size_t word = strcspn(list, ",");

		if (word == length && strncmp(list, name, length) == 0)
			return 1;
		list += word + (list[word] == ',');
	}
	return 0;
}

static rocprofiler_status_t look_through(rocprofiler_agent_id_t agent,
					 rocprofiler_counter_id_t *counters, size_t count,
					 void *data)
{
	struct search *search = data;

	(void)agent;
	for (size_t i = 0; i < count && search->count < COUNTERS_MAX; i++) {
		rocprofiler_counter_info_v0_t info;

		if (rocprofiler_query_counter_info(counters[i], ROCPROFILER_COUNTER_INFO_VERSION_0,
						   &info) == ROCPROFILER_STATUS_SUCCESS &&
		    is_listed(search->list, info.name))
			search->found[search->count++] = counters[i];
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

/* What of the list an agent has; 0: nothing. */
static rocprofiler_counter_config_id_t make_config(rocprofiler_agent_id_t agent,
						   const char *variable)
{
	struct search search = {.list = getenv(variable)};
	rocprofiler_counter_config_id_t config = {0};
	rocprofiler_status_t status;

	if (!search.list ||
	    rocprofiler_iterate_agent_supported_counters(agent, look_through, &search) !=
		    ROCPROFILER_STATUS_SUCCESS ||
	    !search.count)
		return config;
	status = rocprofiler_create_counter_config(agent, search.found, search.count, &config);
	if (status != ROCPROFILER_STATUS_SUCCESS)
		fprintf(tool.output, "config: %s (%s): %s\n", rocprofiler_get_status_name(status),
			rocprofiler_get_status_string(status), problem());
	return config;
}

/* An agent that does not have what the expression names, a CPU beside a GPU, goes without. */
static void make_derived(rocprofiler_agent_id_t agent)
{
	const char *at = getenv("SAMPLE_DERIVED");

	while (at && *at) {
		size_t length = strcspn(at, ";"), name = strcspn(at, "=");
		rocprofiler_counter_id_t counter;
		rocprofiler_status_t status;

		if (name < length) {
			status = rocprofiler_create_counter(
				at, name, at + name + 1, length - name - 1, "", 0, agent, &counter);
			if (status != ROCPROFILER_STATUS_SUCCESS)
				fprintf(tool.output, "agent %" PRIu64 ": %.*s: %s: %s\n",
					agent.handle, (int)length, at,
					rocprofiler_get_status_name(status), problem());
		}
		at += length + (at[length] == ';');
	}
}

static rocprofiler_status_t add_agents(rocprofiler_agent_version_t version, const void **agents,
				       size_t count, void *data)
{
	(void)version;
	(void)data;
	for (size_t i = 0; i < count && tool.agent_count < AGENTS_MAX; i++) {
		const rocprofiler_agent_v0_t *agent = agents[i];
		struct counted_agent *ours = &tool.agents[tool.agent_count];

		for (unsigned known = 0; known < tool.agent_count; known++) {
			if (tool.agents[known].id.handle == agent->id.handle)
				ours = NULL;
		}
		if (!ours)
			continue;
		ours->id = agent->id;
		make_derived(agent->id);
		ours->of_kernels = make_config(agent->id, "SAMPLE_COUNTERS");
		ours->of_device = make_config(agent->id, "SAMPLE_DEVICE_COUNTERS");
		tool.agent_count++;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static struct counted_agent *find_agent(rocprofiler_agent_id_t id)
{
	for (unsigned i = 0; i < tool.agent_count; i++) {
		if (tool.agents[i].id.handle == id.handle)
			return &tool.agents[i];
	}
	return NULL;
}

/* ---- what is told ---- */

static void remember_kernel(rocprofiler_callback_tracing_record_t record,
			    rocprofiler_user_data_t *user_data, void *data)
{
	const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *symbol =
		record.payload;

	(void)user_data;
	(void)data;
	if (record.operation == ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER &&
	    record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD && symbol->kernel_id < KERNELS_MAX)
		tool.kernels[symbol->kernel_id] = strdup(symbol->kernel_name);
}

/* An agent that a runtime told only when it was up is looked at here. */
static void choose(rocprofiler_dispatch_counting_service_data_t dispatch,
		   rocprofiler_counter_config_id_t *config, rocprofiler_user_data_t *user_data,
		   void *data)
{
	struct counted_agent *agent;

	(void)user_data;
	(void)data;
	pthread_mutex_lock(&tool.lock);
	if (!find_agent(dispatch.dispatch_info.agent_id))
		rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, add_agents,
						   sizeof(rocprofiler_agent_v0_t), NULL);
	agent = find_agent(dispatch.dispatch_info.agent_id);
	if (agent)
		*config = agent->of_kernels;
	pthread_mutex_unlock(&tool.lock);
}

static void print_values(const rocprofiler_counter_record_t *records, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		rocprofiler_counter_id_t counter;
		rocprofiler_counter_info_v0_t info = {.name = "?"};

		rocprofiler_query_record_counter_id(records[i].id, &counter);
		rocprofiler_query_counter_info(counter, ROCPROFILER_COUNTER_INFO_VERSION_0, &info);
		fprintf(tool.output, " %s=%.10g", info.name, records[i].counter_value);
	}
	fputc('\n', tool.output);
}

static void counted(rocprofiler_dispatch_counting_service_data_t dispatch,
		    rocprofiler_counter_record_t *records, size_t count,
		    rocprofiler_user_data_t user_data, void *data)
{
	uint64_t kernel = dispatch.dispatch_info.kernel_id;

	(void)user_data;
	(void)data;
	pthread_mutex_lock(&tool.lock);
	fprintf(tool.output, "kernel %" PRIu64 " %s ns=%" PRIu64,
		dispatch.dispatch_info.dispatch_id,
		kernel < KERNELS_MAX && tool.kernels[kernel] ? tool.kernels[kernel] : "?",
		dispatch.end_timestamp - dispatch.start_timestamp);
	print_values(records, count);
	pthread_mutex_unlock(&tool.lock);
}

static void count_device(rocprofiler_context_id_t context, rocprofiler_agent_id_t id,
			 rocprofiler_device_counting_agent_cb_t set_config, void *data)
{
	const struct counted_agent *agent = find_agent(id);

	(void)data;
	if (agent && agent->of_device.handle)
		set_config(context, agent->of_device);
}

static void sampled(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent,
		    const rocprofiler_counter_record_t *records, size_t count, uint64_t start,
		    uint64_t end, void *data)
{
	(void)context;
	(void)data;
	pthread_mutex_lock(&tool.lock);
	fprintf(tool.output, "device %" PRIu64 " at=%" PRIu64 " ns=%" PRIu64, agent.handle, start,
		end - start);
	print_values(records, count);
	pthread_mutex_unlock(&tool.lock);
}

/* ---- beginning and end ---- */

static int configure_devices(void)
{
	const char *asked = getenv("SAMPLE_INTERVAL_MS");
	double ms = asked ? strtod(asked, NULL) : 10;
	rocprofiler_status_t status;
	unsigned used = 0;

	CALL(rocprofiler_create_context(&tool.device_context));
	for (unsigned i = 0; i < tool.agent_count; i++) {
		if (!tool.agents[i].of_device.handle)
			continue;
		CALL(rocprofiler_configure_device_counting_service(
			tool.device_context, (rocprofiler_buffer_id_t){0}, tool.agents[i].id,
			count_device, NULL));
		used++;
	}
	if (!used)
		return 0;
	if (kymo_configure_device_counting_samples)
		CALL(kymo_configure_device_counting_samples(tool.device_context,
							    (uint64_t)(ms * 1e6), sampled, NULL));
	status = rocprofiler_start_context(tool.device_context);
	if (status != ROCPROFILER_STATUS_SUCCESS)
		fprintf(tool.output, "start: %s: %s\n", rocprofiler_get_status_name(status),
			problem());
	return 0;
}

static int initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	(void)finalize;
	(void)data;
	CALL(rocprofiler_create_context(&tool.names_context));
	CALL(rocprofiler_configure_callback_tracing_service(
		tool.names_context, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, NULL, 0,
		remember_kernel, NULL));
	CALL(rocprofiler_start_context(tool.names_context));
	CALL(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, add_agents,
						sizeof(rocprofiler_agent_v0_t), NULL));
	if (getenv("SAMPLE_COUNTERS")) {
		CALL(rocprofiler_create_context(&tool.context));
		CALL(rocprofiler_configure_callback_dispatch_counting_service(tool.context, choose,
									      NULL, counted, NULL));
		CALL(rocprofiler_start_context(tool.context));
	}
	return getenv("SAMPLE_DEVICE_COUNTERS") ? configure_devices() : 0;
}

static void finalize(void *data)
{
	(void)data;
	if (getenv("SAMPLE_DEVICE_COUNTERS"))
		rocprofiler_stop_context(tool.device_context);
	fflush(tool.output);
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version,
							   const char *runtime_version,
							   uint32_t priority,
							   rocprofiler_client_id_t *client_id)
{
	static rocprofiler_tool_configure_result_t result = {
		sizeof(rocprofiler_tool_configure_result_t), initialize, finalize, NULL};
	const char *path = getenv("SAMPLE_OUTPUT");

	(void)version;
	(void)runtime_version;
	(void)priority;
	client_id->name = "counters";
	tool.output = path && *path ? fopen(path, "w") : stderr;
	if (!tool.output) {
		perror(path);
		return NULL;
	}
	return &result;
}
