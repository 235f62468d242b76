/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "output/json_gpu.h"

#include "analysis/gpu.h"

static void write_kernels(struct json_writer *json, const struct gpu_data *data)
{
	json_array_begin(json, "kernels");
	for (size_t i = 0; i < data->kernel_count; i++) {
		const struct gpu_kernel_row *row = &data->kernels[i];

		json_object_begin(json, NULL);
		json_put_text(json, "name", row->name);
		json_put_text(json, "device", row->agent);
		json_put_count(json, "count", row->count);
		json_put_count(json, "total_ns", row->total_ns);
		json_put_count(json, "minimum_ns", row->minimum_ns);
		json_put_count(json, "maximum_ns", row->maximum_ns);
		json_put_count(json, "incomplete", row->incomplete);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_copies(struct json_writer *json, const struct gpu_data *data)
{
	json_array_begin(json, "copies");
	for (unsigned i = 0; i < GPU_DIRECTION_COUNT; i++) {
		const struct gpu_copy_row *row = &data->copies[i];

		if (row->count == 0)
			continue;
		json_object_begin(json, NULL);
		json_put_text(json, "direction", gpu_direction_name(i));
		json_put_count(json, "count", row->count);
		json_put_count(json, "bytes", row->bytes);
		json_put_count(json, "total_ns", row->total_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_missing(struct json_writer *json, const struct gpu_data *data)
{
	json_array_begin(json, "missing");
	for (unsigned i = 0; i < GPU_LOSS_COUNT; i++) {
		if (data->losses[i] == 0 || gpu_loss_explained(i) == NULL)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "count", data->losses[i]);
		json_put_text(json, "what", gpu_loss_explained(i));
		json_object_end(json);
	}
	json_array_end(json);
	json_put_count(json, "unreadable_bytes", data->torn_bytes);
	json_array_begin(json, "problems");
	for (size_t i = 0; i < data->problem_count; i++)
		json_put_text(json, NULL, data->problems[i]);
	json_array_end(json);
}

void json_gpu(struct json_writer *json, const struct session *session)
{
	const struct gpu_data *data = session->gpu;

	if (data == NULL)
		return;
	json_object_begin(json, "devices");
	write_kernels(json, data);
	write_copies(json, data);
	json_put_count(json, "calls", data->call_records);
	write_missing(json, data);
	json_object_end(json);
}
