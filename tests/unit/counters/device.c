/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Device counting through the public functions: on the test's device, where every value is known,
 * and on the host.
 */
#include "../libkymo-sdk/scenario.h"

#include <rocprofiler-sdk/experimental/counters.h>
#include <time.h>

#include "mock.h"
#include "tool.h"

static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;
static rocprofiler_counter_config_id_t config;
static rocprofiler_status_t chosen;
static int chosen_count;

static void choose(rocprofiler_context_id_t id, rocprofiler_agent_id_t agent,
		   rocprofiler_device_counting_agent_cb_t set_config, void *data)
{
	CHECK_EQUAL(id.handle, context.handle);
	CHECK_EQUAL(agent.handle, *(uint64_t *)data);
	chosen_count++;
	if (config.handle)
		chosen = set_config(id, config);
}

static uint64_t agent;

static int initialize(void)
{
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_buffer(context, 4096, 2048, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     tool_records, NULL, &buffer));
	OK(rocprofiler_configure_device_counting_service(
		context, buffer, (rocprofiler_agent_id_t){agent}, choose, &agent));
	REFUSED(rocprofiler_configure_device_counting_service(
			context, buffer, (rocprofiler_agent_id_t){agent}, choose, &agent),
		INVALID_ARGUMENT);
	return 0;
}

static rocprofiler_status_t sample(rocprofiler_counter_record_t *records, size_t *count)
{
	return rocprofiler_sample_device_counting_service(
		context, (rocprofiler_user_data_t){.value = 99}, ROCPROFILER_COUNTER_FLAG_NONE,
		records, count);
}

static void known_values(void)
{
	rocprofiler_counter_record_t records[8];
	size_t count = 0;

	mock_start("gfx_test", true);
	mock_event("SQ", "WAVES", NULL, COUNTING_DIMENSION_WGP, 4, 0);
	agent = mock_agent;
	scenario_tool(initialize);
	config = tool_config(agent, "WAVES", NULL);
	REFUSED(sample(records, &count), CONTEXT_NOT_STARTED);
	OK(rocprofiler_start_context(context));
	OK(chosen);
	CHECK_EQUAL(mock.started, 1);
	REFUSED(sample(records, &count), OUT_OF_RESOURCES);
	CHECK_EQUAL(count, 4);
	REFUSED(sample(records, NULL), INVALID_ARGUMENT);
	count = 8;
	OK(sample(records, &count));
	CHECK_EQUAL(count, 4);
	for (int i = 0; i < 4; i++) {
		CHECK(records[i].counter_value == i + 1);
		CHECK_EQUAL(records[i].dispatch_id, 0);
		CHECK_EQUAL(records[i].user_data.value, 99);
		CHECK_EQUAL(records[i].agent_id.handle, agent);
		CHECK_EQUAL(tool_position(records[i].id, COUNTING_DIMENSION_WGP), i);
	}
	/* They are in the buffer, too, and alone there where nobody has room for them. */
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(tool_value_count, 4);
	OK(rocprofiler_sample_device_counting_service(context,
						      (rocprofiler_user_data_t){.value = 1},
						      ROCPROFILER_COUNTER_FLAG_ASYNC, NULL, NULL));
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(tool_value_count, 8);
	CHECK_EQUAL(tool_header_count, 0);
	OK(rocprofiler_stop_context(context));
	CHECK_EQUAL(mock.stopped, 1);
	REFUSED(sample(records, &count), CONTEXT_NOT_STARTED);
	OK(rocprofiler_start_context(context));
	CHECK_EQUAL(chosen_count, 2);
	OK(rocprofiler_stop_context(context));
}

static void differences(void)
{
	rocprofiler_counter_record_t records[8];
	size_t count;

	mock_start("gfx_test", true);
	mock_event("SQ", "WAVES", NULL, 0);
	agent = mock_agent;
	scenario_tool(initialize);
	config = tool_config(agent, "WAVES", NULL);
	OK(rocprofiler_start_context(context));
	for (int i = 1; i <= 3; i++) {
		mock.scale = 10.0 * i * i;
		count = 8;
		OK(rocprofiler_sample_device_counting_service(
			context, (rocprofiler_user_data_t){.value = 1},
			KYMO_COUNTER_FLAG_SINCE_LAST_SAMPLE, records, &count));
		CHECK_EQUAL(count, 1);
		CHECK(records[0].counter_value == 10.0 * (i * i - (i - 1) * (i - 1)));
	}
}

/* The host's own: time of the process is about what the kernel says of it. */
static void host(void)
{
	rocprofiler_counter_record_t record;
	struct timespec before, now;
	size_t count = 1;

	agent = device_sink()->host_agent();
	scenario_tool(initialize);
	config = tool_config(agent, "task_clock", NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	OK(rocprofiler_start_context(context));
	do {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((now.tv_sec - before.tv_sec) * 1000000000 + now.tv_nsec - before.tv_nsec <
		 50000000);
	OK(sample(&record, &count));
	CHECK_EQUAL(count, 1);
	CHECK(record.counter_value > 20e6 && record.counter_value < 200e6);
	OK(rocprofiler_stop_context(context));
}

SCENARIO(known_values)
SCENARIO(differences)
SCENARIO(host)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_values),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
