/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Experiments from anybody, all the way to every output: whatever is read must be fitted and
 * written without complaint.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/data.h"
#include "common/array.h"
#include "output/causal/causal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Paths are the input's: it must not choose files of this machine. */
static void forget_paths(struct causal_data *data)
{
	for (size_t i = 0; i < data->target_count; i++) {
		if (data->targets[i].file)
			*data->targets[i].file = 0;
	}
}

static void write_all(const struct causal_data *data, const struct causal_fit_result *result)
{
	static int (*const writers[])(const struct causal_data *data,
				      const struct causal_fit_result *result, FILE *stream,
				      struct problem *problem) = {
		causal_write_json, causal_write_coz, causal_write_text, causal_write_html};
	struct problem problem;
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
		if (writers[i](data, result, stream, &problem) < 0)
			abort();
	}
	causal_print_summary(data, result, stream, true);
	fclose(stream);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct causal_fit_options options = {.bootstrap = 10, .seed = size};
	struct causal_data data = {0};
	struct causal_fit_result result;
	struct problem problem;
	FILE *stream = size ? fmemopen((void *)(uintptr_t)bytes, size, "r") : NULL;

	if (!stream)
		return 0;
	if (causal_data_read_stream(&data, stream, "input", &problem) == 0) {
		forget_paths(&data);
		if (causal_compute_predictions(&data, &options, &result) == 0) {
			write_all(&data, &result);
			causal_fit_result_deinit(&result);
		}
	}
	fclose(stream);
	causal_data_deinit(&data);
	return 0;
}
