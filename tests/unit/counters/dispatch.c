/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting kernel by kernel, and what is refused: through the public functions, on a device that
 * counts what the test says.
 */
#include "../libkymo-sdk/scenario.h"

#include <rocprofiler-sdk/experimental/counters.h>

#include "mock.h"
#include "tool.h"

static rocprofiler_context_id_t context, other;
static rocprofiler_buffer_id_t buffer;
static rocprofiler_counter_config_id_t config;
static int asked, told;
static bool by_callback;
static char problems[4096];

static void choose(rocprofiler_dispatch_counting_service_data_t data,
		   rocprofiler_counter_config_id_t *chosen, rocprofiler_user_data_t *user_data,
		   void *args)
{
	CHECK(args == &asked);
	CHECK_EQUAL(data.dispatch_info.agent_id.handle, mock_agent);
	CHECK_EQUAL(data.dispatch_info.queue_id.handle, 7);
	CHECK_EQUAL(data.dispatch_info.workgroup_size.x, 64);
	CHECK_EQUAL(data.dispatch_info.dispatch_id, (uint64_t)asked + 1);
	CHECK_EQUAL(data.start_timestamp, 0);
	asked++;
	/* Kernel 2 is declined. */
	if (data.dispatch_info.kernel_id != 2)
		*chosen = config;
	user_data->value = 1000 + data.dispatch_info.kernel_id;
}

static void record(rocprofiler_dispatch_counting_service_data_t data,
		   rocprofiler_counter_record_t *records, size_t count,
		   rocprofiler_user_data_t user_data, void *args)
{
	CHECK(args == &told);
	CHECK(data.start_timestamp > 0 && data.end_timestamp == data.start_timestamp + 500);
	CHECK_EQUAL(count, 4);
	CHECK_EQUAL(user_data.value, 1000 + data.dispatch_info.kernel_id);
	for (size_t i = 0; i < count; i++) {
		CHECK(records[i].counter_value == (double)(i + 1));
		CHECK_EQUAL(records[i].dispatch_id, data.dispatch_info.dispatch_id);
		CHECK_EQUAL(records[i].user_data.value, user_data.value);
	}
	told++;
}

static void problem(void *data, const char *text)
{
	size_t length = strlen(problems);

	CHECK(data == problems);
	snprintf(problems + length, sizeof(problems) - length, "%s\n", text);
}

static int initialize(void)
{
	kymo_counting_problem(problem, problems);
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_context(&other));
	OK(rocprofiler_create_buffer(context, 4096, 2048, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     tool_records, NULL, &buffer));
	if (by_callback)
		OK(rocprofiler_configure_callback_dispatch_counting_service(context, choose, &asked,
									    record, &told));
	else
		OK(rocprofiler_configure_buffer_dispatch_counting_service(context, buffer, choose,
									  &asked));
	REFUSED(rocprofiler_configure_buffer_dispatch_counting_service(context, buffer, choose,
								       NULL),
		SERVICE_ALREADY_CONFIGURED);
	REFUSED(rocprofiler_configure_buffer_dispatch_counting_service(
			context, (rocprofiler_buffer_id_t){1}, choose, NULL),
		BUFFER_NOT_FOUND);
	REFUSED(rocprofiler_configure_buffer_dispatch_counting_service(
			(rocprofiler_context_id_t){1}, buffer, choose, NULL),
		CONTEXT_INVALID);
	OK(rocprofiler_configure_callback_dispatch_counting_service(other, choose, &asked, record,
								    &told));
	return 0;
}

static void begin(void)
{
	mock_start("gfx_test", true);
	mock_event("SQ", "WAVES", NULL, COUNTING_DIMENSION_WGP, 4, 0);
	mock_event("SQ", "CYCLES", NULL, 0);
	mock_event("L2", "MANY", NULL, COUNTING_DIMENSION_SHADER_ENGINE, 64, COUNTING_DIMENSION_WGP,
		   64, 0);
	scenario_tool(initialize);
}

static void buffered(void)
{
	begin();
	config = tool_config(mock_agent, "CYCLES", "WAVES", NULL);
	CHECK(!mock_kernel(1, 1, 2));
	CHECK_EQUAL(asked, 0);
	OK(rocprofiler_start_context(context));
	REFUSED(rocprofiler_start_context(other), CONTEXT_CONFLICT);
	CHECK(mock.dispatches);
	CHECK(mock_kernel(1, 1, 2));
	CHECK(!mock_kernel(2, 1, 2));
	CHECK(mock_kernel(3, 1, 2));
	OK(rocprofiler_stop_context(context));
	CHECK(!mock.dispatches);
	CHECK(!mock_kernel(4, 1, 2));
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(asked, 3);
	CHECK_EQUAL(tool_header_count, 2);
	CHECK_EQUAL(tool_value_count, 10);
	CHECK_EQUAL(tool_headers[1].dispatch_info.dispatch_id, 3);
	CHECK_EQUAL(tool_headers[1].num_records, 5);
	CHECK(tool_headers[1].correlation_id.internal > tool_headers[0].correlation_id.internal);
	/* In the order of the request, all instances of each. */
	for (int i = 0; i < 10; i++) {
		CHECK(tool_values[i].counter_value == (i % 5 ? i % 5 : 1));
		CHECK_EQUAL(tool_values[i].dispatch_id, i < 5 ? 1 : 3);
		CHECK_EQUAL(tool_values[i].user_data.value, i < 5 ? 1001 : 1003);
	}
	/* The other may count now. */
	OK(rocprofiler_start_context(other));
	OK(rocprofiler_stop_context(other));
}

static void by_record_callback(void)
{
	uint64_t now, totals[4];

	by_callback = true;
	begin();
	config = tool_config(mock_agent, "WAVES", NULL);
	OK(rocprofiler_start_context(context));
	for (int i = 0; i < 3; i++) {
		now = device_get_sink()->now() + 1000000000;
		mock_kernel((device_handle)(i + 5), now, now + 500);
	}
	CHECK_EQUAL(told, 3);
	kymo_counting_totals(totals);
	CHECK_EQUAL(totals[0], 3);
	CHECK_EQUAL(totals[2], 0);
}

/* A kernel whose records are more than the whole buffer: they come in one piece. */
static void larger_than_the_buffer(void)
{
	begin();
	config = tool_config(mock_agent, "MANY", NULL);
	OK(rocprofiler_start_context(context));
	for (device_handle i = 10; i < 14; i++)
		CHECK(mock_kernel(i, 1, 2));
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(tool_header_count, 4);
	CHECK_EQUAL(tool_value_count, 4 * 4096);
	for (size_t i = 0; i < tool_value_count; i++) {
		CHECK_EQUAL(tool_values[i].dispatch_id, i / 4096 + 1);
		CHECK(tool_values[i].counter_value == (double)(i % 4096 + 1));
		CHECK_EQUAL(tool_position(tool_values[i].id, COUNTING_DIMENSION_WGP), i % 64);
		CHECK_EQUAL(tool_position(tool_values[i].id, COUNTING_DIMENSION_SHADER_ENGINE),
			    i % 4096 / 64);
	}
}

static void not_counted(void)
{
	uint64_t totals[4];

	begin();
	config = tool_config(mock_agent, "WAVES", NULL);
	OK(rocprofiler_start_context(context));
	mock_kernel_not_counted(COUNTING_TIMED_OUT, "spin waits for flag");
	mock_kernel_not_counted(COUNTING_TIMED_OUT, "spin waits for flag");
	mock_kernel_not_counted(COUNTING_FILTERED, "");
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(tool_header_count, 0);
	kymo_counting_totals(totals);
	CHECK_EQUAL(totals[0], 0);
	CHECK_EQUAL(totals[1], 1);
	CHECK_EQUAL(totals[2], 2);
	/* Once. */
	CHECK(strstr(problems, "spin waits for flag"));
	CHECK(!strstr(strstr(problems, "spin waits for flag") + 1, "spin waits for flag"));
}

static void configs(void)
{
	rocprofiler_counter_config_id_t made = {0}, first;
	rocprofiler_agent_id_t agent;
	rocprofiler_counter_id_t waves, cycles, foreign, unknown = {65000}, twice[3];

	begin();
	agent.handle = mock_agent;
	waves = tool_counter(mock_agent, "WAVES");
	cycles = tool_counter(mock_agent, "CYCLES");
	foreign = tool_counter(device_get_sink()->get_host_agent(), "task_clock");
	CHECK(foreign.handle && foreign.handle != waves.handle);
	REFUSED(rocprofiler_create_counter_config((rocprofiler_agent_id_t){1}, &waves, 1, &made),
		AGENT_NOT_FOUND);
	REFUSED(rocprofiler_create_counter_config(agent, &unknown, 1, &made), COUNTER_NOT_FOUND);
	REFUSED(rocprofiler_create_counter_config(agent, &foreign, 1, &made),
		METRIC_NOT_VALID_FOR_AGENT);
	REFUSED(rocprofiler_create_counter_config(agent, NULL, 1, &made), INVALID_ARGUMENT);
	/* Duplicates go; what is there already is added to. */
	twice[0] = twice[1] = twice[2] = waves;
	OK(rocprofiler_create_counter_config(agent, twice, 3, &made));
	first = made;
	OK(rocprofiler_create_counter_config(agent, &cycles, 1, &made));
	CHECK(made.handle != first.handle);
	/* What is not there is not added to, and is no mistake. */
	made.handle = 12;
	mock.fits = 1;
	OK(rocprofiler_create_counter_config(agent, &cycles, 1, &made));
	CHECK(made.handle != 12 && made.handle != first.handle);
	made = first;
	REFUSED(rocprofiler_create_counter_config(agent, &cycles, 1, &made), EXCEEDS_HW_LIMIT);
	CHECK(strstr(kymo_counter_config_problem(), "CYCLES does not fit"));
	CHECK_EQUAL(made.handle, first.handle);
	mock.fits = 0;
	mock.make_status = COUNTING_NOT_PERMITTED;
	REFUSED(rocprofiler_create_counter_config(agent, &cycles, 1, &made), PERMISSION_DENIED);
	mock.make_status = COUNTING_BUSY;
	REFUSED(rocprofiler_create_counter_config(agent, &cycles, 1, &made), NOT_AVAILABLE);
	mock.make_status = COUNTING_OK;
	OK(rocprofiler_destroy_counter_config(first));
	OK(rocprofiler_destroy_counter_config((rocprofiler_counter_config_id_t){77}));
	made = first;
	OK(rocprofiler_create_counter_config(agent, &cycles, 1, &made));
	CHECK(made.handle != first.handle);
	CHECK_EQUAL(mock.sets, 4);
	CHECK_EQUAL(mock.sets_freed, 1);
}

/* Tools that make one for each kernel do not run out of them. */
static void many_configs(void)
{
	rocprofiler_counter_config_id_t kept = {0}, made;
	rocprofiler_agent_id_t agent;
	rocprofiler_counter_id_t cycles;

	begin();
	agent.handle = mock_agent;
	cycles = tool_counter(mock_agent, "CYCLES");
	OK(rocprofiler_create_counter_config(agent, &cycles, 1, &kept));
	for (unsigned i = 0; i < 70000; i++) {
		made.handle = 0;
		OK(rocprofiler_create_counter_config(agent, &cycles, 1, &made));
		CHECK(made.handle != kept.handle);
		OK(rocprofiler_destroy_counter_config(made));
	}
	OK(rocprofiler_destroy_counter_config(kept));
}

/* One that is destroyed while kernels are counted with it goes on. */
static void destroyed_in_use(void)
{
	struct device_kernel_launch kernel;
	device_handle handle;
	double values[4] = {1, 2, 3, 4};

	begin();
	kernel = (struct device_kernel_launch){
		.agent = mock_agent, .symbol = 1, .queue = 7, .group_threads = {64, 1, 1}};
	config = tool_config(mock_agent, "WAVES", NULL);
	OK(rocprofiler_start_context(context));
	handle = device_get_sink()->kernel_enqueue(&kernel);
	CHECK(device_get_sink()->counting->dispatch_select_set(handle, &kernel) != NULL);
	device_get_sink()->kernel_submitted(handle, false);
	OK(rocprofiler_destroy_counter_config(config));
	CHECK_EQUAL(mock.sets_freed, 0);
	device_get_sink()->counting->dispatch_counted(handle, values, 4, 1, 2);
	CHECK_EQUAL(mock.sets_freed, 1);
	device_get_sink()->kernel_complete(handle, NULL, 1, 2);
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(tool_value_count, 4);
	/* What the tool names now is not there. */
	CHECK(!mock_kernel(1, 1, 2));
	CHECK(strstr(problems, "names a config that does not exist"));
}

static rocprofiler_status_t dimensions(rocprofiler_counter_id_t id,
				       const rocprofiler_counter_record_dimension_info_t *info,
				       size_t count, void *data)
{
	(void)id;
	CHECK_EQUAL(count, 2);
	CHECK(strcmp(info[0].name, "DIMENSION_SHADER_ENGINE") == 0);
	CHECK_EQUAL(info[1].instance_size, 64);
	CHECK_EQUAL(info[1].id, COUNTING_DIMENSION_WGP);
	*(int *)data = 1;
	return ROCPROFILER_STATUS_ERROR_THREAD_NOT_FOUND;
}

static void queries(void)
{
	rocprofiler_counter_info_v1_t info;
	rocprofiler_counter_id_t many;
	size_t count = 0;
	int seen = 0;

	begin();
	many = tool_counter(mock_agent, "MANY");
	OK(rocprofiler_query_counter_info(many, ROCPROFILER_COUNTER_INFO_VERSION_1, &info));
	CHECK(strcmp(info.name, "MANY") == 0 && strcmp(info.block, "L2") == 0);
	CHECK(strcmp(info.expression, "") == 0 && !info.is_derived && !info.is_constant);
	CHECK_EQUAL(info.dimensions_count, 2);
	CHECK_EQUAL(info.dimensions_instances_count, 4096);
	/* Pointers into one array. */
	CHECK((*info.dimensions)[1].instance_size == 64 && info.dimensions[1]->instance_size == 64);
	CHECK_EQUAL(info.dimensions_instances[4095]->dimensions[0]->index, 63);
	CHECK_EQUAL((*info.dimensions_instances)[65].dimensions[1]->index, 1);
	CHECK_EQUAL((*info.dimensions_instances)[65].counter_id, many.handle);
	REFUSED(rocprofiler_query_counter_info((rocprofiler_counter_id_t){0},
					       ROCPROFILER_COUNTER_INFO_VERSION_0, &info),
		COUNTER_NOT_FOUND);
	REFUSED(rocprofiler_query_counter_info(many, ROCPROFILER_COUNTER_INFO_VERSION_NONE, &info),
		INCOMPATIBLE_ABI);
	REFUSED(rocprofiler_iterate_counter_dimensions(many, dimensions, &seen), THREAD_NOT_FOUND);
	CHECK(seen);
	OK(rocprofiler_query_counter_instance_count((rocprofiler_agent_id_t){mock_agent}, many,
						    &count));
	CHECK_EQUAL(count, 4096);
	OK(rocprofiler_query_counter_info(tool_counter(mock_agent, "simd_count"),
					  ROCPROFILER_COUNTER_INFO_VERSION_1, &info));
	CHECK(info.is_constant && info.dimensions_count == 1);
	CHECK(strcmp(info.dimensions[0]->name, "DIMENSION_INSTANCE") == 0);
	REFUSED(rocprofiler_iterate_agent_supported_counters((rocprofiler_agent_id_t){3},
							     tool_match, NULL),
		AGENT_NOT_FOUND);
}

/* A context may count kernels or agents. */
static void device_choose(rocprofiler_context_id_t id, rocprofiler_agent_id_t agent,
			  rocprofiler_device_counting_agent_cb_t set_config, void *data)
{
	(void)agent;
	(void)data;
	REFUSED(set_config((rocprofiler_context_id_t){1}, config), CONTEXT_INVALID);
	REFUSED(set_config(context, config), CONFIGURATION_LOCKED);
	REFUSED(set_config(id, (rocprofiler_counter_config_id_t){1}), PROFILE_NOT_FOUND);
	REFUSED(set_config(id, config), AGENT_MISMATCH);
}

static int initialize_both(void)
{
	rocprofiler_agent_id_t agent = {mock_agent};

	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_context(&other));
	OK(rocprofiler_create_buffer(context, 4096, 2048, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     tool_records, NULL, &buffer));
	OK(rocprofiler_configure_buffer_dispatch_counting_service(context, buffer, choose, NULL));
	REFUSED(rocprofiler_configure_device_counting_service(context, buffer, agent, device_choose,
							      NULL),
		AGENT_DISPATCH_CONFLICT);
	OK(rocprofiler_configure_device_counting_service(other, (rocprofiler_buffer_id_t){0}, agent,
							 device_choose, NULL));
	REFUSED(rocprofiler_configure_buffer_dispatch_counting_service(other, buffer, choose, NULL),
		AGENT_DISPATCH_CONFLICT);
	return 0;
}

static void one_way(void)
{
	size_t count = 4;
	rocprofiler_counter_record_t records[4];

	mock_start("gfx_test", true);
	mock_event("SQ", "WAVES", NULL, 0);
	scenario_tool(initialize_both);
	config = tool_config(device_get_sink()->get_host_agent(), "task_clock", NULL);
	/* It sets none: nothing is counted, and that is no mistake. */
	OK(rocprofiler_start_context(other));
	OK(rocprofiler_sample_device_counting_service(other, (rocprofiler_user_data_t){.value = 0},
						      ROCPROFILER_COUNTER_FLAG_NONE, records,
						      &count));
	CHECK_EQUAL(count, 0);
	CHECK_EQUAL(mock.started, 0);
}

SCENARIO(buffered)
SCENARIO(by_record_callback)
SCENARIO(larger_than_the_buffer)
SCENARIO(not_counted)
SCENARIO(configs)
SCENARIO(many_configs)
SCENARIO(destroyed_in_use)
SCENARIO(queries)
SCENARIO(one_way)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buffered),
		cmocka_unit_test(test_by_record_callback),
		cmocka_unit_test(test_larger_than_the_buffer),
		cmocka_unit_test(test_not_counted),
		cmocka_unit_test(test_configs),
		cmocka_unit_test(test_many_configs),
		cmocka_unit_test(test_destroyed_in_use),
		cmocka_unit_test(test_queries),
		cmocka_unit_test(test_one_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
