/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counters_results.h.
 */
#include "cmd/counters_results.h"

#include <stdbool.h>
#include <string.h>

#include "analysis/gpu.h"

static bool is_wanted(const struct gpu_data *data, const char *format)
{
	if (!strcmp(format, "counters"))
		return data->count_rows != 0;
	if (!strcmp(format, "device-counters"))
		return data->reading_rows != 0;
	return !strcmp(format, "counters-json") || !strcmp(format, "counters-db");
}

/* Also if nothing came of it: why is in counters.json. */
static bool was_asked_for(const struct gpu_data *data)
{
	return data->count_rows != 0 || data->reading_rows != 0 || data->filtered_kernels != 0 ||
	       data->losses[GPU_LOSS_NOT_COUNTED] != 0 || data->losses[GPU_LOSS_READINGS] != 0;
}

int counters_results_write(struct session *session, const char *directory, const char *prefix,
			   struct problem *problem)
{
	struct output_options options = {.top = 0};
	const struct gpu_data *data = session->gpu;
	int result = 0;

	if (!data || !was_asked_for(data))
		return 0;
	for (size_t i = 0; !result && i < output_format_count; i++) {
		if (is_wanted(data, output_formats[i].name))
			result = output_write_file(session, &output_formats[i], &options, directory,
						   prefix, NULL, problem);
	}
	return result;
}
