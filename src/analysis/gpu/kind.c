/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Records of devices as a kind of data of a session. They have files of their own.
 */
#include "analysis/gpu/gpu.h"

#include "analysis/session_kind.h"
#include "analysis/session_private.h"

static int gpu_kind_read_data_of_session(struct session *session, struct problem *problem)
{
	struct gpu_data *gpu = NULL;
	int result = gpu_data_read_directory(session->directory, &gpu, problem);

	if (result < 0)
		return result;
	if (gpu && gpu->process_count && session->has_only_part_of_time) {
		result = session_add_problem_line(
			session, "what devices did is left out: it is shown without --from and "
				 "--to, for the whole run only");
		gpu_data_free(gpu);
		gpu = NULL;
	}
	session_set_kind_data(session, GPU_DATA_KIND_NAME, gpu);
	return result;
}

static void gpu_kind_free_data_of_session(struct session *session)
{
	gpu_data_free(session_get_gpu_data(session));
}

const struct session_data_kind_operations gpu_data_kind_operations = {
	.name = GPU_DATA_KIND_NAME,
	.open = gpu_kind_read_data_of_session,
	.free = gpu_kind_free_data_of_session};
