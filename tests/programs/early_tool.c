/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A tool that registers itself when it is loaded, as those of frameworks do that hide the function.
 * It writes what came of it to the file that TOOL_OUTPUT names.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

static int asked, initialized, status_before = 9, forced;

static int initialize(rocprofiler_client_finalize_t finalizer, void *data)
{
	(void)finalizer;
	(void)data;
	initialized++;
	return 0;
}

static void finalize(void *data)
{
	const char *path = getenv("TOOL_OUTPUT");
	FILE *output = path ? fopen(path, "w") : NULL;

	(void)data;
	if (!output)
		return;
	fprintf(output, "before %d, forced %d, asked %d, initialized %d\n", status_before, forced,
		asked, initialized);
	fclose(output);
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text,
							   uint32_t priority,
							   rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), initialize, finalize,
							     NULL};

	(void)version;
	(void)text;
	(void)priority;
	id->name = "early";
	asked++;
	return &result;
}

__attribute__((constructor)) static void load(void)
{
	rocprofiler_is_initialized(&status_before);
	forced = rocprofiler_force_configure(rocprofiler_configure);
}
