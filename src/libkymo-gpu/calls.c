/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls.h. Of CUDA the driver's functions are recorded, which the runtime's come down to: both
 * would be twice the cost for one more name. A function that gives work to a device must be
 * recorded to have an arrow to it. AMD's own tool library has none of these kinds; there it is
 * HIP's functions.
 */
#include "libkymo-gpu/calls.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

enum recorded_call_kind {
	CALL_KIND_CUDA_RUNTIME = 0x1000,
	CALL_KIND_CUDA_DRIVER = 0x1001,
	CALL_KIND_OPENCL = 0x1002
};

struct api_call_id_range {
	int first, last;
};

/* cupti_driver_cbid.h: launches, graphs, copies and fills, waits. */
static const struct api_call_id_range cuda_driver_work_call_id_ranges[] = {
	{17, 17},   {115, 117}, {121, 121}, {126, 126}, {216, 226}, {249, 254}, {276, 293},
	{295, 295}, {305, 307}, {318, 321}, {397, 433}, {436, 436}, {440, 440}, {442, 442},
	{477, 478}, {480, 480}, {514, 515}, {652, 653}, {776, 779},
};

/* Places in the table of OpenCL's loaders (cl_icd.h): builds, waits, everything that is enqueued.
 */
static const struct api_call_id_range opencl_work_call_id_ranges[] = {
	{30, 30}, {41, 41}, {46, 63}, {86, 89}, {98, 99}, {101, 106}, {128, 132}, {139, 139},
};

static void append_call_ids_of_ranges(const struct api_call_id_range *ranges, size_t count,
				      int32_t operations[1024], size_t *used)
{
	for (size_t i = 0; i < count; i++) {
		for (int operation = ranges[i].first; operation <= ranges[i].last; operation++)
			operations[(*used)++] = operation;
	}
}

static bool configure_buffer_tracing_of_one_kind(rocprofiler_context_id_t context,
						 rocprofiler_buffer_id_t buffer, int kind,
						 const int32_t *operations, size_t count)
{
	return rocprofiler_configure_buffer_tracing_service(
		       context, (rocprofiler_buffer_tracing_kind_t)kind, operations, count,
		       buffer) == ROCPROFILER_STATUS_SUCCESS;
}

bool calls_recording_is_disabled_by_env(void)
{
	const char *asked = secure_getenv("KYMO_GPU_CALLS");

	return asked != NULL && strcmp(asked, "none") == 0;
}

void calls_configure_tracing(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer)
{
	const char *asked = secure_getenv("KYMO_GPU_CALLS");
	bool all = asked != NULL && strcmp(asked, "all") == 0;
	int32_t driver[1024], opencl[1024];
	size_t driver_count = 0, opencl_count = 0;

	if (calls_recording_is_disabled_by_env())
		return;
	if (!all) {
		append_call_ids_of_ranges(cuda_driver_work_call_id_ranges,
					  ARRAY_SIZE(cuda_driver_work_call_id_ranges), driver,
					  &driver_count);
		append_call_ids_of_ranges(opencl_work_call_id_ranges,
					  ARRAY_SIZE(opencl_work_call_id_ranges), opencl,
					  &opencl_count);
	}
	if (!configure_buffer_tracing_of_one_kind(context, buffer, CALL_KIND_CUDA_DRIVER, driver,
						  driver_count))
		configure_buffer_tracing_of_one_kind(
			context, buffer, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0);
	configure_buffer_tracing_of_one_kind(context, buffer, CALL_KIND_OPENCL, opencl,
					     opencl_count);
	if (all)
		configure_buffer_tracing_of_one_kind(context, buffer, CALL_KIND_CUDA_RUNTIME, NULL,
						     0);
}

bool calls_is_recorded_call_kind(uint32_t kind)
{
	return kind == CALL_KIND_CUDA_RUNTIME || kind == CALL_KIND_CUDA_DRIVER ||
	       kind == CALL_KIND_OPENCL || kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API;
}
