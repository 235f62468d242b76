/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A tool in C that OpenMP's runtime reports to: it counts parallel regions, worksharing and the
 * time that threads wait in barriers. The tool library is what the runtime finds in the process, so
 * it must be there before: LD_PRELOAD=openmp.so. What comes out goes to the file that SAMPLE_OUTPUT
 * names.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

static atomic_uint_fast64_t regions, loops, waits, waited, unfinished;
static rocprofiler_context_id_t context;

/* A wait that the end of the process interrupts has no end. */
static void reported(rocprofiler_callback_tracing_record_t record,
		     rocprofiler_user_data_t *user_data, void *data)
{
	rocprofiler_timestamp_t now = 0;

	(void)data;
	switch (record.operation) {
	case ROCPROFILER_OMPT_ID_parallel_begin:
		atomic_fetch_add(&regions, 1);
		break;
	case ROCPROFILER_OMPT_ID_work:
		atomic_fetch_add(&loops, record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER);
		break;
	case ROCPROFILER_OMPT_ID_sync_region_wait:
		rocprofiler_get_timestamp(&now);
		if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
			user_data->value = now;
			atomic_fetch_add(&unfinished, 1);
			break;
		}
		atomic_fetch_sub(&unfinished, 1);
		atomic_fetch_add(&waits, 1);
		atomic_fetch_add(&waited, now - user_data->value);
		break;
	default:
		break;
	}
}

static int initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	(void)finalize;
	(void)data;
	if (rocprofiler_create_context(&context) != ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_configure_callback_tracing_service(
		    context, ROCPROFILER_CALLBACK_TRACING_OMPT, NULL, 0, reported, NULL) !=
		    ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_start_context(context) != ROCPROFILER_STATUS_SUCCESS)
		return -1;
	return 0;
}

static void finalize(void *data)
{
	const char *path = getenv("SAMPLE_OUTPUT");
	FILE *output = path && *path ? fopen(path, "w") : stderr;

	(void)data;
	if (!output)
		return;
	fprintf(output, "parallel regions %" PRIu64 "\nloops %" PRIu64 "\n", (uint64_t)regions,
		(uint64_t)loops);
	fprintf(output, "waits %" PRIu64 ", %" PRIu64 " ns, unfinished %" PRIu64 "\n",
		(uint64_t)waits, (uint64_t)waited, (uint64_t)unfinished);
	if (output != stderr)
		fclose(output);
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
	(void)priority;
	client_id->name = "openmp";
	return &result;
}
