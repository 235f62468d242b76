/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Records of devices as a kind of data of a session. They have files of their own, but for the call
 * paths of launches.
 */
#include "analysis/gpu/gpu.h"

#include <errno.h>

#include "analysis/session_kind.h"
#include "analysis/session_private.h"

static struct launch_path_list *get_launch_paths_of_processes(const struct session *session)
{
	return session_find_kind_data_of_processes(session, GPU_DATA_KIND_NAME);
}

static int gpu_kind_read_launch_path(const struct spool_record_position *place,
				     struct spool_record_payload_cursor *payload)
{
	return launch_path_list_read_record(
		&get_launch_paths_of_processes(place->session)[place->process], place->session,
		payload);
}

static int gpu_kind_convert_times_of_launch_paths(struct session *session, uint32_t process)
{
	struct clock_map *clock = &session_get_private(session)->processes[process].clock;
	struct launch_path_list *list = &get_launch_paths_of_processes(session)[process];

	for (size_t i = 0; i < list->count; i++)
		list->paths[i].time_ns = clock_map_ticks_to_boottime(clock, list->paths[i].time_ns);
	return 0;
}

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
	if (result == 0 && gpu)
		result = gpu_steps_find(gpu, session_find_launch_setting(session, "STEP_RANGE"));
	if (result == 0 && gpu)
		result = gpu_add_launched_work_to_tree(session, gpu,
						       get_launch_paths_of_processes(session));
	return result == -ENOMEM ? session_set_out_of_memory_problem(problem) : result;
}

static void gpu_kind_free_data_of_session(struct session *session)
{
	struct launch_path_list *lists = get_launch_paths_of_processes(session);

	for (uint32_t i = 0; lists && i < session->process_count; i++)
		launch_path_list_deinit(&lists[i]);
	gpu_data_free(session_get_gpu_data(session));
}

static const uint8_t wanted_record_kinds[] = {SPOOL_RECORD_LAUNCH_PATH, 0};

const struct session_data_kind_operations gpu_data_kind_operations = {
	.name = GPU_DATA_KIND_NAME,
	.process_data_bytes = sizeof(struct launch_path_list),
	.wanted_record_kinds = wanted_record_kinds,
	.record = gpu_kind_read_launch_path,
	.end_process = gpu_kind_convert_times_of_launch_paths,
	.open = gpu_kind_read_data_of_session,
	.free = gpu_kind_free_data_of_session};
