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

static uint64_t sample_start, sample_end;
static int sample_count;

static void samples(rocprofiler_context_id_t id, rocprofiler_agent_id_t of,
		    const rocprofiler_counter_record_t *records, size_t count, uint64_t start,
		    uint64_t end, void *data)
{
	CHECK(data == &sample_count);
	CHECK_EQUAL(id.handle, context.handle);
	CHECK_EQUAL(of.handle, agent);
	CHECK_EQUAL(count, 1);
	CHECK(records[0].counter_value == 10 * mock.scale);
	sample_start = start;
	sample_end = end;
	sample_count++;
}

static int initialize_samples(void)
{
	OK(rocprofiler_create_context(&context));
	REFUSED(kymo_configure_device_counting_samples(context, 1000, samples, NULL),
		CONTEXT_INVALID);
	OK(rocprofiler_configure_device_counting_service(context, (rocprofiler_buffer_id_t){0},
							 (rocprofiler_agent_id_t){agent}, choose,
							 &agent));
	REFUSED(kymo_configure_device_counting_samples(context, 1000, NULL, NULL),
		INVALID_ARGUMENT);
	OK(kymo_configure_device_counting_samples(context, 1000000, samples, &sample_count));
	return 0;
}

/* What the device tells by itself, evaluated for each interval. */
static void in_intervals(void)
{
	rocprofiler_counter_id_t id;
	uint64_t totals[4];

	mock_start("gfx_test", true);
	mock_event("SQ", "WAVES", NULL, COUNTING_DIMENSION_WGP, 4, 0);
	agent = mock_agent;
	scenario_tool(initialize_samples);
	OK(rocprofiler_create_counter("TOTAL", 5, "reduce(WAVES,sum)", 17, "", 0,
				      (rocprofiler_agent_id_t){agent}, &id));
	config = tool_config(agent, "TOTAL", NULL);
	mock_sample(1, 2);
	OK(rocprofiler_start_context(context));
	CHECK_EQUAL(mock.interval_ns, 1000000);
	for (uint64_t i = 1; i < 4; i++) {
		mock.scale = (double)i;
		mock_sample(i * 100, i * 100 + 50);
		CHECK_EQUAL(sample_count, i);
		CHECK_EQUAL(sample_start, i * 100);
		CHECK_EQUAL(sample_end, i * 100 + 50);
	}
	device_get_sink()->counting->device_samples_lost(agent, 5);
	OK(rocprofiler_stop_context(context));
	mock_sample(1, 2);
	CHECK_EQUAL(sample_count, 3);
	kymo_counting_totals(totals);
	CHECK_EQUAL(totals[3], 5);
}

static char problems[1024];

static void problem(void *data, const char *text)
{
	(void)data;
	snprintf(problems, sizeof(problems), "%s", text);
}

/* Somebody else counts, it is not permitted, the runtime is not there yet. */
static void refused(void)
{
	rocprofiler_counter_record_t records[8];
	size_t count = 8;
	int active = 1;

	kymo_counting_problem(problem, NULL);
	mock_start("gfx_test", true);
	mock_event("SQ", "WAVES", NULL, 0);
	agent = mock_agent;
	scenario_tool(initialize);
	config = tool_config(agent, "WAVES", NULL);
	mock.start_status = COUNTING_BUSY;
	REFUSED(rocprofiler_start_context(context), NOT_AVAILABLE);
	CHECK(strstr(problems, "another program is counting: the test says so"));
	CHECK(strcmp(kymo_counter_config_problem(), "the test says so") == 0);
	OK(rocprofiler_context_is_active(context, &active));
	CHECK(!active);
	mock.start_status = COUNTING_NOT_PERMITTED;
	REFUSED(rocprofiler_start_context(context), PERMISSION_DENIED);
	mock.start_status = COUNTING_NOT_READY;
	REFUSED(rocprofiler_start_context(context), HSA_NOT_LOADED);
	OK(rocprofiler_context_is_active(context, &active));
	CHECK(active);
	REFUSED(sample(records, &count), HSA_NOT_LOADED);
	mock.start_status = COUNTING_OK;
	device_get_sink()->runtime_ready(DEVICE_RUNTIME_CUDA, 120000);
	CHECK_EQUAL(mock.started, 1);
	count = 8;
	OK(sample(records, &count));
	CHECK_EQUAL(count, 1);
	OK(rocprofiler_stop_context(context));
	CHECK_EQUAL(mock.stopped, 1);
}

/* The host's own: time of the process is about what the kernel says of it. */
static void host(void)
{
	rocprofiler_counter_record_t record;
	struct timespec before, now;
	size_t count = 1;

	agent = device_get_sink()->get_host_agent();
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
SCENARIO(in_intervals)
SCENARIO(refused)
SCENARIO(host)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_values), cmocka_unit_test(test_differences),
		cmocka_unit_test(test_in_intervals), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
