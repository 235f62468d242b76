/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A program that is its own tool: it exports rocprofiler_configure() because the library it links
 * refers to it, and registers nothing. Its runtime comes late, by dlopen. Not a word of the
 * library's insides.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

static unsigned marks, initialized, finalized;

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	const rocprofiler_callback_tracing_marker_api_data_t *payload = record.payload;

	(void)user_data;
	(void)data;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER &&
	    !strcmp(payload->args.roctxMarkA.message, "late"))
		marks++;
}

static int initialize(rocprofiler_client_finalize_t finalizer, void *data)
{
	static const rocprofiler_tracing_operation_t only[] = {
		ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA};
	rocprofiler_context_id_t context = {0};

	(void)finalizer;
	(void)data;
	initialized++;
	return rocprofiler_create_context(&context) ||
	       rocprofiler_configure_callback_tracing_service(
		       context, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, only, 1, tell,
		       NULL) ||
	       rocprofiler_start_context(context);
}

static void finalize(void *data)
{
	(void)data;
	finalized++;
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version,
							   const char *runtime_version,
							   uint32_t priority,
							   rocprofiler_client_id_t *client_id)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), initialize, finalize,
							     NULL};

	client_id->name = "plain";
	return version && runtime_version && !priority ? &result : NULL;
}

static void check_end(void)
{
	if (finalized != 1) {
		fprintf(stderr, "finalized %u times\n", finalized);
		_Exit(1);
	}
}

int main(int argc, char **argv)
{
	void (*mark)(const char *);
	void *runtime, *symbol;
	int status = -7;

	atexit(check_end);
	/* The library is linked; nothing has been registered. */
	if (rocprofiler_is_initialized(&status) || status || initialized)
		return 2;
	runtime = dlopen(argc > 1 ? argv[1] : "librocprofiler-sdk-roctx.so.1", RTLD_NOW);
	symbol = runtime ? dlsym(runtime, "roctxMarkA") : NULL;
	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	memcpy(&mark, &symbol, sizeof(mark));
	for (int i = 0; i < 3; i++)
		mark("late");
	if (rocprofiler_is_initialized(&status) || status != 1 || initialized != 1 || marks != 3) {
		fprintf(stderr, "status %d, initialized %u, marks %u\n", status, initialized,
			marks);
		return 4;
	}
	return 0;
}
