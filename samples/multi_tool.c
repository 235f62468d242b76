/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tools side by side: built three times, with another NAME and kind of its own. Each has its own
 * contexts and sees its own events, whatever the others do; the one with FAILS says that it cannot
 * be initialized, and only it is gone. What they say goes to the file that SAMPLE_OUTPUT names.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

static atomic_uint_fast64_t events;
static rocprofiler_context_id_t context;

static void say(const char *what, uint64_t number)
{
	const char *path = getenv("SAMPLE_OUTPUT");
	FILE *output = path && *path ? fopen(path, "a") : stderr;

	if (!output)
		return;
	fprintf(output, NAME ": %s %" PRIu64 "\n", what, number);
	if (output != stderr)
		fclose(output);
}

static void traced(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		   void *data)
{
	(void)user_data;
	(void)data;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER)
		atomic_fetch_add(&events, 1);
}

static int initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	(void)finalize;
	(void)data;
	if (rocprofiler_create_context(&context) != ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_configure_callback_tracing_service(context, KIND, NULL, 0, traced, NULL) !=
		    ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_start_context(context) != ROCPROFILER_STATUS_SUCCESS)
		return -1;
#if defined(FAILS)
	say("gives up", 0);
	return -1;
#else
	return 0;
#endif
}

static void finalize(void *data)
{
	(void)data;
	say("events", atomic_load(&events));
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version,
							   const char *runtime_version,
							   uint32_t priority,
							   rocprofiler_client_id_t *client_id)
{
	static rocprofiler_tool_configure_result_t result = {
		sizeof(rocprofiler_tool_configure_result_t), initialize, finalize, NULL};

	(void)version;
	(void)runtime_version;
	client_id->name = NAME;
	say("asked with priority", priority);
	return &result;
}
