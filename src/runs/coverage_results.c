/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See coverage_results.h.
 */
#include "runs/coverage_results.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/open/open.h"
#include "launch/result_path.h"

int coverage_open_joined_sessions(char *const *directories, size_t count,
				  const struct session_options *options,
				  struct coverage_joined_sessions *ret, struct problem *problem)
{
	int error = 0;

	*ret = (struct coverage_joined_sessions){.sessions = calloc(count + 1, sizeof(void *))};
	if (!ret->sessions)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (size_t i = 0; !error && i < count; i++) {
		char *directory;

		error = result_directory_find_existing(directories[i], &directory, problem);
		if (error)
			break;
		error = session_open(directory, options, &ret->sessions[i], problem);
		free(directory);
		ret->count += !error;
	}
	return error;
}

void coverage_close_joined_sessions(struct coverage_joined_sessions *others)
{
	for (size_t i = 0; i < others->count; i++)
		session_close(others->sessions[i]);
	free(others->sessions);
	*others = (struct coverage_joined_sessions){0};
}
