/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See nccl_results.h.
 */
#include "cmd/nccl_results.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cmd/result_path.h"

bool nccl_results_is_format(const struct output_format *format)
{
	return !strncmp(format->file_name, "nccl/", 5);
}

int nccl_results_write(struct session *session, const char *directory, const char *prefix,
		       struct problem *problem)
{
	struct output_options options = {.top = 0};
	char path[PATH_MAX];
	int error;

	if (!session->nccl)
		return 0;
	if (snprintf(path, sizeof(path), "%s/%snccl", directory, prefix ? prefix : "") >=
	    (int)sizeof(path))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", directory);
	error = result_make_directories(path);
	if (error)
		return problem_set(problem, error, "cannot make '%s': %s", path, strerror(-error));
	for (size_t i = 0; !error && i < output_format_count; i++) {
		if (nccl_results_is_format(&output_formats[i]))
			error = output_write_file(session, &output_formats[i], &options, directory,
						  prefix, NULL, problem);
	}
	return error;
}
