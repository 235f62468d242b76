/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See results.h.
 */
#include "counting/results.h"

#include <stdbool.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "output/formats/formats.h"

static bool format_has_counter_data(const struct gpu_data *data, const char *format)
{
	if (!strcmp(format, "counters"))
		return data->kernel_counter_row_count != 0;
	if (!strcmp(format, "device-counters"))
		return data->device_reading_row_count != 0;
	return !strcmp(format, "counters-json") || !strcmp(format, "counters-db");
}

/* Also if nothing came of it: why is in counters.json. */
static bool was_counting_requested(const struct gpu_data *data)
{
	return data->kernel_counter_row_count != 0 || data->device_reading_row_count != 0 ||
	       data->filtered_out_kernel_count != 0 || data->losses[GPU_LOSS_NOT_COUNTED] != 0 ||
	       data->losses[GPU_LOSS_READINGS] != 0;
}

int counters_results_write(struct session *session, const char *directory, const char *prefix,
			   struct problem *problem)
{
	struct output_options options = {.top = 0};
	const struct gpu_data *data = session_get_gpu_data(session);
	int result = 0;

	if (!data || !was_counting_requested(data))
		return 0;
	for (size_t i = 0; !result && i < output_format_count; i++) {
		if (format_has_counter_data(data, output_formats[i]->name))
			result = output_write_file(session, output_formats[i], &options, directory,
						   prefix, NULL, problem);
	}
	return result;
}
