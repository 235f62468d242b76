/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See nccl_results.h.
 */
#include "runs/nccl_results.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "analysis/nccl/nccl.h"
#include "common/time_units.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "output/formats/formats.h"

#define OPERATION_LINE_BYTES 800              /* about */
#define SIGN_OF_LIFE_MAX_NS  (60 * SECOND_NS) /* the plugin gives one more often */

bool nccl_results_is_nccl_format(const struct output_format *format)
{
	return !strncmp(format->file_name, "nccl/", 5);
}

static uint64_t count_operations(const struct nccl_data *data)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		count += data->processes[i].operations;
	return count;
}

/* It is by far the largest file, and can be made at any time. */
static bool operations_are_left_out(const struct session *session,
				    const struct output_format *format, uint64_t operations_max)
{
	uint64_t count = count_operations(session_get_nccl_data(session));

	if (strcmp(format->name, "nccl-operations") != 0 || count <= operations_max)
		return false;
	if (operations_max)
		message_warning(
			"nccl/operations.jsonl is left out: %llu operations would take about "
			"%llu MB. kymo report --format nccl-operations '%s' writes it",
			(unsigned long long)count,
			(unsigned long long)(count * OPERATION_LINE_BYTES / 1000000),
			session->directory);
	return true;
}

int nccl_results_write(struct session *session, const char *directory, const char *prefix,
		       uint64_t operations_max, struct problem *problem)
{
	struct output_options options = {.top = 0};
	char path[PATH_MAX];
	int error;

	if (!session_get_nccl_data(session))
		return 0;
	if (snprintf(path, sizeof(path), "%s/%snccl", directory, prefix ? prefix : "") >=
	    (int)sizeof(path))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", directory);
	error = result_make_directories(path);
	if (error)
		return problem_set(problem, error, "cannot make '%s': %s", path, strerror(-error));
	for (size_t i = 0; !error && i < output_format_count; i++) {
		if (nccl_results_is_nccl_format(output_formats[i]) &&
		    !operations_are_left_out(session, output_formats[i], operations_max))
			error = output_write_file(session, output_formats[i], &options, directory,
						  prefix, NULL, problem);
	}
	return error;
}

bool nccl_results_are_live(const struct session *session)
{
	struct nccl_data *data = session_get_nccl_data(session);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (uint32_t i = 0; data && i < data->process_count; i++) {
		struct nccl_process *process = &data->processes[i];
		uint64_t last = nccl_ticks_to_host_time(process, process->last_ticks) +
				(uint64_t)data->hosts[process->host].realtime_minus_boottime_ns;

		if (process->ended == NCCL_PROCESS_RUNNING ||
		    (process->ended != NCCL_PROCESS_EXITED &&
		     last + SIGN_OF_LIFE_MAX_NS > (uint64_t)now.tv_sec * SECOND_NS))
			return true;
	}
	return false;
}
