/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Services that no device here can give say so, and a mistake in asking for them is told as one,
 * before a tool is initialized, within, and after its end. Calls of what runtimes register, too.
 */
#include "scenario.h"

#include <rocprofiler-sdk/experimental/thread_trace.h>
#include <rocprofiler-sdk/spm.h>

int rocprofiler_register_invoke_all_registrations(void);
int rocprofiler_register_invoke_nonpropagated_registrations(void);

static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;

static rocprofiler_status_t configurations(const rocprofiler_pc_sampling_configuration_t *list,
					   size_t count, void *data)
{
	(void)list;
	(void)count;
	(void)data;
	CHECK(false);
	return ROCPROFILER_STATUS_SUCCESS;
}

static void shader_data(rocprofiler_agent_id_t agent, int64_t engine, void *data, size_t size,
			rocprofiler_user_data_t user)
{
	(void)agent;
	(void)engine;
	(void)data;
	(void)size;
	(void)user;
	CHECK(false);
}

static rocprofiler_thread_trace_control_flags_t
dispatched(rocprofiler_agent_id_t agent, rocprofiler_queue_id_t queue,
	   rocprofiler_async_correlation_id_t correlation, rocprofiler_kernel_id_t kernel,
	   rocprofiler_dispatch_id_t dispatch, void *data, rocprofiler_user_data_t *user)
{
	(void)agent;
	(void)queue;
	(void)correlation;
	(void)kernel;
	(void)dispatch;
	(void)data;
	(void)user;
	CHECK(false);
	return ROCPROFILER_THREAD_TRACE_CONTROL_NONE;
}

static void decoded(rocprofiler_thread_trace_decoder_record_type_t type, void *events,
		    uint64_t size, void *data)
{
	(void)type;
	(void)events;
	(void)size;
	(void)data;
	CHECK(false);
}

static rocprofiler_status_t take_first(rocprofiler_agent_version_t version, const void **agents,
				       size_t count, void *data)
{
	CHECK_EQUAL(version, ROCPROFILER_AGENT_INFO_VERSION_0);
	CHECK(count > 0);
	*(rocprofiler_agent_id_t *)data = ((const rocprofiler_agent_v0_t *)agents[0])->id;
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_agent_id_t first_agent(void)
{
	rocprofiler_agent_id_t agent = {0};

	OK(rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, take_first,
					      sizeof(rocprofiler_agent_v0_t), &agent));
	return agent;
}

#define PC_SAMPLING(context, agent)                                                                \
	rocprofiler_configure_pc_sampling_service(context, agent,                                  \
						  ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP,        \
						  ROCPROFILER_PC_SAMPLING_UNIT_TIME, 1, buffer, 0)

static void pc_sampling(rocprofiler_context_id_t known)
{
	const rocprofiler_context_id_t no_context = {7};
	const rocprofiler_agent_id_t agent = first_agent(), none = {3};

	REFUSED(PC_SAMPLING(no_context, agent), CONTEXT_NOT_FOUND);
	if (known.handle) {
		REFUSED(PC_SAMPLING(known, none), AGENT_NOT_FOUND);
		REFUSED(PC_SAMPLING(known, agent), NOT_IMPLEMENTED);
	}
	REFUSED(rocprofiler_query_pc_sampling_agent_configurations(agent, NULL, NULL),
		INVALID_ARGUMENT);
	REFUSED(rocprofiler_query_pc_sampling_agent_configurations(none, configurations, NULL),
		AGENT_NOT_FOUND);
	REFUSED(rocprofiler_query_pc_sampling_agent_configurations(agent, configurations, NULL),
		NOT_IMPLEMENTED);
	for (int i = -1; i <= ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST + 1; i++) {
		bool is = i >= 0 && i < ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST;

		CHECK_EQUAL(rocprofiler_get_pc_sampling_instruction_type_name(
				    (rocprofiler_pc_sampling_instruction_type_t)i) != NULL,
			    is);
	}
	for (int i = -1; i <= ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_LAST + 1; i++) {
		bool is = i >= 0 && i < ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_LAST;

		CHECK_EQUAL(rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
				    (rocprofiler_pc_sampling_instruction_not_issued_reason_t)i) !=
				    NULL,
			    is);
	}
}

#define DEVICE_TRACE(context, agent, list, count, shader)                                          \
	rocprofiler_configure_device_thread_trace_service(context, agent, list, count, shader,     \
							  (rocprofiler_user_data_t){0})
#define DISPATCH_TRACE(context, agent, list, count, dispatch, shader)                              \
	rocprofiler_configure_dispatch_thread_trace_service(context, agent, list, count, dispatch, \
							    shader, NULL)

static void thread_traces(rocprofiler_context_id_t known)
{
	rocprofiler_thread_trace_parameter_t parameter = {
		.type = ROCPROFILER_THREAD_TRACE_PARAMETER_TARGET_CU};
	const rocprofiler_context_id_t none = {7};
	const rocprofiler_agent_id_t agent = first_agent(), no_agent = {3};

	REFUSED(DEVICE_TRACE(known, agent, &parameter, 1, NULL), INVALID_ARGUMENT);
	REFUSED(DEVICE_TRACE(known, agent, NULL, 1, shader_data), INVALID_ARGUMENT);
	REFUSED(DEVICE_TRACE(none, agent, &parameter, 1, shader_data), CONTEXT_NOT_FOUND);
	REFUSED(DISPATCH_TRACE(known, agent, &parameter, 1, NULL, shader_data), INVALID_ARGUMENT);
	REFUSED(DISPATCH_TRACE(known, agent, &parameter, 1, dispatched, NULL), INVALID_ARGUMENT);
	REFUSED(DISPATCH_TRACE(known, agent, NULL, 1, dispatched, shader_data), INVALID_ARGUMENT);
	REFUSED(DISPATCH_TRACE(none, agent, NULL, 0, dispatched, shader_data), CONTEXT_NOT_FOUND);
	if (!known.handle)
		return;
	REFUSED(DEVICE_TRACE(known, no_agent, &parameter, 1, shader_data), AGENT_NOT_FOUND);
	REFUSED(DEVICE_TRACE(known, agent, NULL, 0, shader_data), NOT_IMPLEMENTED);
	REFUSED(DISPATCH_TRACE(known, no_agent, NULL, 0, dispatched, shader_data), AGENT_NOT_FOUND);
	REFUSED(DISPATCH_TRACE(known, agent, &parameter, 1, dispatched, shader_data),
		NOT_IMPLEMENTED);
}

static void decoders(void)
{
	rocprofiler_thread_trace_decoder_id_t decoder = {0};
	char byte = 0;

	REFUSED(rocprofiler_thread_trace_decoder_create(NULL, "/opt"), INVALID_ARGUMENT);
	REFUSED(rocprofiler_thread_trace_decoder_create(&decoder, NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_thread_trace_decoder_create(&decoder, "/opt"), NOT_IMPLEMENTED);
	CHECK_EQUAL(decoder.handle, 0);
	REFUSED(rocprofiler_thread_trace_decoder_codeobj_load(decoder, 1, 2, 3, NULL, 4),
		INVALID_ARGUMENT);
	REFUSED(rocprofiler_thread_trace_decoder_codeobj_load(decoder, 1, 2, 3, &byte, 1),
		NOT_IMPLEMENTED);
	REFUSED(rocprofiler_thread_trace_decoder_codeobj_unload(decoder, 1), NOT_IMPLEMENTED);
	REFUSED(rocprofiler_trace_decode(decoder, NULL, &byte, 1, NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_trace_decode(decoder, decoded, NULL, 1, NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_trace_decode(decoder, decoded, &byte, 1, NULL), NOT_IMPLEMENTED);
	for (int i = -1; i <= ROCPROFILER_THREAD_TRACE_DECODER_INFO_LAST; i++)
		CHECK_EQUAL(rocprofiler_thread_trace_decoder_info_string(
				    decoder, (rocprofiler_thread_trace_decoder_info_t)i) != NULL,
			    i > 0 && i < ROCPROFILER_THREAD_TRACE_DECODER_INFO_LAST);
	rocprofiler_thread_trace_decoder_destroy(decoder);
}

static void everything(rocprofiler_context_id_t known)
{
	const rocprofiler_counter_config_id_t config = {1};
	size_t position = 9;

	pc_sampling(known);
	thread_traces(known);
	decoders();
	REFUSED(rocprofiler_configure_spm_service((rocprofiler_context_id_t){7}, buffer, config, 1),
		CONTEXT_NOT_FOUND);
	if (known.handle)
		REFUSED(rocprofiler_configure_spm_service(known, buffer, config, 1),
			NOT_IMPLEMENTED);
	REFUSED(rocprofiler_query_record_dimension_position(0, 1, NULL), INVALID_ARGUMENT);
	OK(rocprofiler_query_record_dimension_position(0, 1, &position));
	CHECK_EQUAL(position, 0);
}

static int within(void)
{
	OK(rocprofiler_create_context(&context));
	everything(context);
	/* As a runtime that starts in the middle of it. */
	CHECK_EQUAL(rocprofiler_register_invoke_nonpropagated_registrations(), 2);
	CHECK_EQUAL(rocprofiler_register_invoke_all_registrations(), 2);
	return 0;
}

static void at_any_time(void)
{
	const rocprofiler_context_id_t none = {0};

	everything(none);
	scenario_tool(within);
	everything(context);
	CHECK_EQUAL(rocprofiler_register_invoke_nonpropagated_registrations(), 0);
	CHECK_EQUAL(rocprofiler_register_invoke_all_registrations(), 0);
	scenario_finalizer(*scenario_client);
	everything(none);
}

SCENARIO(at_any_time)

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_at_any_time)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
