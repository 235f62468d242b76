/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tools written for any release from 0.0 to 1.0: all names that were ever documented, in one file.
 * Compiled, in C and C++; that the functions do what the new ones do is what inlines are.
 */
#include <rocprofiler-sdk/agent_profile.h>
#include <rocprofiler-sdk/dispatch_profile.h>
#include <rocprofiler-sdk/experimental/counters.h>
#include <rocprofiler-sdk/profile_config.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#define USE(thing) (void)(thing)

/* 0.0 to 0.4 */
static void dispatched(rocprofiler_profile_counting_dispatch_data_t data,
		       rocprofiler_profile_config_id_t *config, rocprofiler_user_data_t *user_data,
		       void *args)
{
	USE(data);
	USE(user_data);
	*config = *(rocprofiler_profile_config_id_t *)args;
}

static void recorded(rocprofiler_profile_counting_dispatch_data_t data,
		     rocprofiler_record_counter_t *records, size_t count,
		     rocprofiler_user_data_t user_data, void *args)
{
	rocprofiler_profile_counting_dispatch_record_t header = {0, 0, {0, {0}},
								 0, 0, data.dispatch_info};

	USE(header);
	USE(records);
	USE(count);
	USE(user_data);
	USE(args);
}

static void agent_started(rocprofiler_context_id_t context, rocprofiler_agent_id_t agent,
			  rocprofiler_agent_set_profile_callback_t set_config, void *args)
{
	USE(agent);
	set_config(context, *(rocprofiler_profile_config_id_t *)args);
}

rocprofiler_status_t release_0_4(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
				 rocprofiler_agent_id_t agent, rocprofiler_user_data_t data);
rocprofiler_status_t release_0_4(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
				 rocprofiler_agent_id_t agent, rocprofiler_user_data_t data)
{
	static rocprofiler_profile_config_id_t config;
	rocprofiler_profile_counting_dispatch_callback_t dispatch = dispatched;
	rocprofiler_profile_counting_record_callback_t record = recorded;
	rocprofiler_agent_profile_callback_t started = agent_started;
	rocprofiler_counter_id_t counter = {0};

	rocprofiler_create_profile_config(agent, &counter, 1, &config);
	rocprofiler_configure_buffered_dispatch_profile_counting_service(context, buffer, dispatch,
									 &config);
	rocprofiler_configure_callback_dispatch_profile_counting_service(context, dispatch, &config,
									 record, NULL);
	rocprofiler_configure_agent_profile_counting_service(context, buffer, agent, started,
							     &config);
	rocprofiler_sample_agent_profile_counting_service(context, data,
							  ROCPROFILER_COUNTER_FLAG_ASYNC);
	return rocprofiler_destroy_profile_config(config);
}

/* 0.5 and 0.6, the level of most documentation */
static rocprofiler_status_t dimensions(rocprofiler_counter_id_t id,
				       const rocprofiler_record_dimension_info_t *info,
				       size_t count, void *args)
{
	size_t position = 0;

	USE(id);
	USE(args);
	for (size_t i = 0; i < count; i++)
		rocprofiler_query_record_dimension_position(0, info[i].id, &position);
	return rocprofiler_query_record_dimension_position(0, ROCPROFILER_DIMENSION_XCC, &position);
}

rocprofiler_status_t release_0_6(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
				 rocprofiler_agent_id_t agent,
				 const rocprofiler_record_header_t *header);
rocprofiler_status_t release_0_6(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
				 rocprofiler_agent_id_t agent,
				 const rocprofiler_record_header_t *header)
{
	rocprofiler_dispatch_counting_service_callback_t dispatch = dispatched;
	rocprofiler_dispatch_counting_record_callback_t record = recorded;
	rocprofiler_device_counting_service_callback_t started = agent_started;
	rocprofiler_counter_id_t counter = {0};
	rocprofiler_counter_info_v0_t info;
	size_t instances = 0;

	rocprofiler_configure_buffered_dispatch_counting_service(context, buffer, dispatch, NULL);
	rocprofiler_configure_callback_dispatch_counting_service(context, dispatch, NULL, record,
								 NULL);
	rocprofiler_configure_device_counting_service(context, buffer, agent, started, NULL);
	rocprofiler_iterate_counter_dimensions(counter, dimensions, NULL);
	rocprofiler_query_counter_instance_count(agent, counter, &instances);
	rocprofiler_load_counter_definition("", 0, ROCPROFILER_COUNTER_FLAG_NONE);
	if (header->kind == ROCPROFILER_BUFFER_TRACING_PAGE_MIGRATION) {
		const rocprofiler_buffer_tracing_page_migration_record_t *page =
			(const rocprofiler_buffer_tracing_page_migration_record_t *)header->payload;

		USE(page->page_migrate.trigger == ROCPROFILER_PAGE_MIGRATION_TRIGGER_PREFETCH);
	}
	if (header->kind == ROCPROFILER_PC_SAMPLING_RECORD_SAMPLE) {
		const rocprofiler_pc_sampling_record_t *sample =
			(const rocprofiler_pc_sampling_record_t *)header->payload;

		USE(sample->pc.loaded_code_object_id);
	}
	return rocprofiler_query_counter_info(counter, ROCPROFILER_COUNTER_INFO_VERSION_0, &info);
}

/* 1.0 */
rocprofiler_status_t release_1_0(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
				 rocprofiler_agent_id_t agent);
rocprofiler_status_t release_1_0(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
				 rocprofiler_agent_id_t agent)
{
	rocprofiler_dispatch_counting_service_cb_t dispatch = dispatched;
	rocprofiler_dispatch_counting_record_cb_t record = recorded;
	rocprofiler_device_counting_service_cb_t started = agent_started;
	rocprofiler_counter_config_id_t config = {0};
	rocprofiler_counter_record_t records[1];
	rocprofiler_user_data_t data = {0};
	size_t count = 1;

	rocprofiler_create_counter_config(agent, NULL, 0, &config);
	rocprofiler_configure_buffer_dispatch_counting_service(context, buffer, dispatch, NULL);
	rocprofiler_configure_callback_dispatch_counting_service(context, dispatch, NULL, record,
								 NULL);
	rocprofiler_configure_device_counting_service(context, buffer, agent, started, NULL);
	rocprofiler_sample_device_counting_service(context, data, ROCPROFILER_COUNTER_FLAG_NONE,
						   records, &count);
	return rocprofiler_destroy_counter_config(config);
}

/* After 1.0 */
int after_1_0(rocprofiler_status_t status);
int after_1_0(rocprofiler_status_t status)
{
	return status == ROCPROFILER_STATUS_ERROR_CONFIG_NOT_FOUND ||
	       status == ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_REGISTER_VERSION;
}
