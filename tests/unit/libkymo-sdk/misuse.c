/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Every function with every argument that it must refuse, at every time of the library's life: the
 * documented status, and no crash.
 */
#include "common/array.h"
#include "scenario.h"

#include "libkymo-sdk/agents.h"

#include "libkymo-sdk/runtimes/runtimes.h"

static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	(void)record;
	(void)user_data;
	(void)data;
}

static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)headers;
	(void)count;
	(void)data;
	(void)dropped;
}

static int request(rocprofiler_thread_id_t tid, rocprofiler_context_id_t of,
		   rocprofiler_external_correlation_id_request_kind_t kind,
		   rocprofiler_tracing_operation_t operation, uint64_t internal,
		   rocprofiler_user_data_t *external, void *data)
{
	(void)tid;
	(void)of;
	(void)kind;
	(void)operation;
	(void)internal;
	(void)external;
	(void)data;
	return 1;
}

static rocprofiler_status_t agents_answer = ROCPROFILER_STATUS_ERROR_DIM_NOT_FOUND;

static rocprofiler_status_t agents(rocprofiler_agent_version_t version, const void **list,
				   size_t count, void *data)
{
	CHECK_EQUAL(version, ROCPROFILER_AGENT_INFO_VERSION_0);
	CHECK(data == &agents_answer);
	CHECK(count > 0);
	for (size_t i = 0; i < count; i++) {
		const rocprofiler_agent_v0_t *agent = list[i];

		CHECK_EQUAL(agent->size, sizeof(*agent));
		CHECK_EQUAL(agent->node_id, i);
		CHECK_EQUAL(agent->logical_node_id, i);
		CHECK(agent->name && agent->vendor_name && agent->product_name &&
		      agent->model_name);
		CHECK(agent->type == ROCPROFILER_AGENT_TYPE_CPU ||
		      agent->type == ROCPROFILER_AGENT_TYPE_GPU);
		for (size_t j = 0; j < i; j++)
			CHECK(((const rocprofiler_agent_v0_t *)list[j])->id.handle !=
			      agent->id.handle);
	}
	CHECK_EQUAL(((const rocprofiler_agent_v0_t *)list[0])->type, ROCPROFILER_AGENT_TYPE_CPU);
	return agents_answer;
}

/* What is the same at any time. */
static void at_any_time(void)
{
	rocprofiler_version_triplet_t version = {0, 0, 0};
	rocprofiler_context_id_t none = {0};
	rocprofiler_user_data_t value = {.value = 1};
	uint32_t major = 0;
	rocprofiler_thread_id_t tid = 0;

	OK(rocprofiler_get_version(NULL, NULL, NULL));
	OK(rocprofiler_get_version(&major, NULL, NULL));
	CHECK_EQUAL(major, ROCPROFILER_VERSION_MAJOR);
	OK(rocprofiler_get_version_triplet(&version));
	CHECK_EQUAL(10000 * version.major + 100 * version.minor + version.patch,
		    ROCPROFILER_VERSION);
	REFUSED(rocprofiler_get_version_triplet(NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_get_timestamp(NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_get_thread_id(NULL), INVALID_ARGUMENT);
	OK(rocprofiler_get_thread_id(&tid));
	CHECK_EQUAL(tid, gettid());
	REFUSED(rocprofiler_is_initialized(NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_is_finalized(NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_create_context(NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_context_is_active(none, NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_context_is_valid(none, NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_push_external_correlation_id(none, tid, value), CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_pop_external_correlation_id(none, tid, NULL), CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_configure_external_correlation_id_request_service(none, NULL, 0,
									      request, NULL),
		CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_create_callback_thread(NULL), INVALID_ARGUMENT);
	OK(rocprofiler_at_internal_thread_create(NULL, NULL, 0, NULL));
	REFUSED(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_NONE, agents,
						   sizeof(rocprofiler_agent_v0_t), NULL),
		INVALID_ARGUMENT);
	REFUSED(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, NULL,
						   sizeof(rocprofiler_agent_v0_t), NULL),
		INVALID_ARGUMENT);
	REFUSED(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, agents,
						   sizeof(rocprofiler_agent_v0_t) + 1, NULL),
		INCOMPATIBLE_ABI);
	REFUSED(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, agents,
						   sizeof(rocprofiler_agent_v0_t), &agents_answer),
		DIM_NOT_FOUND);
}

static int inside(void)
{
	rocprofiler_buffer_tracing_kind_t hip = ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API;
	rocprofiler_context_id_t none = {0};
	int kinds[] = {-1, 0, ROCPROFILER_CALLBACK_TRACING_LAST, 0xfff, 1 << 30};

	at_any_time();
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_buffer(context, 1, 0, ROCPROFILER_BUFFER_POLICY_LOSSLESS, take, NULL,
				     &buffer));
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		rocprofiler_status_t status = rocprofiler_configure_callback_tracing_service(
			context, (rocprofiler_callback_tracing_kind_t)kinds[i], NULL, 0, tell,
			NULL);

		CHECK_EQUAL(status, ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
		if (kinds[i] == ROCPROFILER_CALLBACK_TRACING_LAST)
			kinds[i] = ROCPROFILER_BUFFER_TRACING_LAST;
		REFUSED(rocprofiler_configure_buffer_tracing_service(
				context, (rocprofiler_buffer_tracing_kind_t)kinds[i], NULL, 0,
				buffer),
			KIND_NOT_FOUND);
	}
	REFUSED(rocprofiler_configure_callback_tracing_service(
			context, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, NULL, NULL),
		INVALID_ARGUMENT);
	REFUSED(rocprofiler_configure_callback_tracing_service(
			none, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, tell, NULL),
		CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_configure_buffer_tracing_service(none, hip, NULL, 0, buffer),
		CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_configure_buffer_tracing_service(context, hip, NULL, 0,
							     (rocprofiler_buffer_id_t){0}),
		BUFFER_NOT_FOUND);
	REFUSED(rocprofiler_at_intercept_table_registration(NULL, 0, NULL), INVALID_ARGUMENT);
	return 0;
}

static void statuses(void)
{
	at_any_time();
	REFUSED(rocprofiler_start_context(context), CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_stop_context(context), CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_flush_buffer(buffer), BUFFER_NOT_FOUND);
	REFUSED(rocprofiler_destroy_buffer(buffer), BUFFER_NOT_FOUND);
	scenario_tool(inside);
	at_any_time();
	OK(rocprofiler_start_context(context));
	OK(rocprofiler_flush_buffer(buffer));
	scenario_finalizer(*scenario_client);
	at_any_time();
	REFUSED(rocprofiler_flush_buffer(buffer), FINALIZED);
	scenario_finalizer((rocprofiler_client_id_t){.handle = 99});
}

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
					   uint32_t version, void **tables, uint64_t count,
					   uint64_t *identifier);
const char *rocprofiler_register_error_string(int code);
int rocprofiler_register_iterate_registration_info(int (*callback)(void *, void *), void *data);
int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
			      uint64_t count);

struct info {
	size_t size;
	const char *name;
	uint32_t version;
	uint64_t count;
};

static int infos;

static int look(void *data, void *context_data)
{
	const struct info *info = data;

	CHECK(context_data == &infos);
	CHECK_EQUAL(info->size, sizeof(*info));
	CHECK(!strcmp(info->name, "hip"));
	CHECK_EQUAL(info->count, 1);
	return ++infos == 3;
}

static void runtimes(void)
{
	uint64_t table[4] = {sizeof(table)}, identifier = 99;
	void *tables[] = {table};

	CHECK_EQUAL(rocprofiler_register_library_api_table("hup", NULL, 1, tables, 1, &identifier),
		    4);
	CHECK_EQUAL(rocprofiler_register_library_api_table(NULL, NULL, 1, tables, 1, &identifier),
		    4);
	CHECK_EQUAL(rocprofiler_register_library_api_table("hip", NULL, 1, tables, 0, &identifier),
		    3);
	CHECK_EQUAL(rocprofiler_register_library_api_table("hip", NULL, 1, NULL, 1, &identifier),
		    3);
	CHECK_EQUAL(identifier, 99);
	for (uint64_t i = 0; i < 8; i++) {
		CHECK_EQUAL(rocprofiler_register_library_api_table("hip", NULL, 1, tables, 1,
								   &identifier),
			    1);
		CHECK_EQUAL(identifier % 8, i);
	}
	CHECK_EQUAL(rocprofiler_register_library_api_table("hip", NULL, 1, tables, 1, NULL), 7);
	CHECK_EQUAL(rocprofiler_register_iterate_registration_info(look, &infos), 0);
	CHECK_EQUAL(infos, 3);
	CHECK_EQUAL(rocprofiler_register_iterate_registration_info(NULL, NULL), 0);
	for (int i = -1; i < 12; i++)
		CHECK(strlen(rocprofiler_register_error_string(i)) >= 7);
	CHECK_EQUAL(rocprofiler_set_api_table("nothing", 1, 0, tables, 1), -1);
	CHECK_EQUAL(rocprofiler_set_api_table(NULL, 1, 0, NULL, 0), -1);
	setenv("ROCPROFILER_REGISTER_ENABLED", "off", 1);
	CHECK_EQUAL(rocprofiler_register_library_api_table("hup", NULL, 1, tables, 1, NULL), 0);
}

/* A tool that is named and is not there, or is none, is no reason to stop. */
static void named_tools(void)
{
	setenv("ROCP_TOOL_LIBRARIES", ":/nowhere/libtool.so::libc.so.6:", 1);
	scenario_tool(inside);
	OK(rocprofiler_start_context(context));
}

static void shown(rocprofiler_intercept_table_t type, uint64_t version, uint64_t instance,
		  void **tables, uint64_t count, void *data)
{
	CHECK_EQUAL(version, 70000);
	CHECK_EQUAL(count, 1);
	CHECK_EQUAL(*(uint64_t *)tables[0], 32);
	*(int *)data = (int)type * 10 + (int)instance;
}

static int shown_type;

static int intercepting(void)
{
	OK(rocprofiler_at_intercept_table_registration(
		shown, ROCPROFILER_RCCL_TABLE | ROCPROFILER_HIP_RUNTIME_TABLE, &shown_type));
	return 0;
}

static void tables_are_shown(void)
{
	uint64_t table[4] = {sizeof(table)};
	void *tables[] = {table};

	scenario_tool(intercepting);
	CHECK_EQUAL(rocprofiler_set_api_table("hip_compiler", 70000, 0, tables, 1), 0);
	CHECK_EQUAL(shown_type, 0);
	CHECK_EQUAL(rocprofiler_set_api_table("hip", 70000, 0, tables, 1), 0);
	CHECK_EQUAL(shown_type, ROCPROFILER_HIP_RUNTIME_TABLE * 10);
	CHECK_EQUAL(rocprofiler_set_api_table("rccl", 70000, 0, tables, 1), 0);
	CHECK_EQUAL(shown_type, ROCPROFILER_RCCL_TABLE * 10);
	CHECK_EQUAL(rocprofiler_set_api_table("rccl", 70000, 0, tables, 1), 0);
	CHECK_EQUAL(shown_type, ROCPROFILER_RCCL_TABLE * 10 + 1);
}

static uint32_t seen_by(const rocprofiler_agent_v0_t *agent)
{
	return agent->runtime_visibility.hsa + 2u * agent->runtime_visibility.hip;
}

static const rocprofiler_agent_v0_t *find_agent(uint64_t id)
{
	const rocprofiler_agent_v0_t *agent = sdk_agent_find_by_id(id);

	CHECK(agent != NULL);
	return agent;
}

/* ROCR lists devices 2 and, by its uuid, 0; HIP takes the second of them. */
static void visible_agents(void)
{
	uint64_t ids[4];

	setenv("ROCR_VISIBLE_DEVICES", "2,gpu-0100000000000000,9", 1);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	for (unsigned i = 0; i < 4; i++) {
		rocprofiler_agent_v0_t agent = {.type = ROCPROFILER_AGENT_TYPE_GPU,
						.name = "gfx942",
						.vendor_name = i < 3 ? "AMD" : "NVIDIA"};

		agent.uuid.bytes[0] = (uint8_t)(i + 1);
		ids[i] = sdk_agent_register(&agent, true).handle;
		/* The same device is the same agent. */
		CHECK_EQUAL(sdk_agent_register(&agent, true).handle, ids[i]);
		CHECK_EQUAL(find_agent(ids[i])->logical_node_type_id, i);
	}
	CHECK_EQUAL(seen_by(find_agent(ids[0])), 3);
	CHECK_EQUAL(seen_by(find_agent(ids[1])), 0);
	CHECK_EQUAL(seen_by(find_agent(ids[2])), 1);
	CHECK_EQUAL(seen_by(find_agent(ids[3])), 2);
	CHECK(sdk_agent_find_by_id(0) == NULL);
}

SCENARIO(statuses)
SCENARIO(runtimes)
SCENARIO(named_tools)
SCENARIO(tables_are_shown)
SCENARIO(visible_agents)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statuses),       cmocka_unit_test(test_runtimes),
		cmocka_unit_test(test_named_tools),    cmocka_unit_test(test_tables_are_shown),
		cmocka_unit_test(test_visible_agents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
