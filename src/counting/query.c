/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See query.h. What the child does with the tool library is in query_child.c.
 */
#include "counting/query.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counting/query_child.h"
#include "launch/launch.h"
#include "launch/parts.h"

static int read_query_answer(int from, pid_t child, json_t **ret, struct problem *problem)
{
	json_error_t error;
	int status = 0;

	*ret = json_loadfd(from, 0, &error);
	close(from);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (*ret)
		return 0;
	if (WIFSIGNALED(status))
		return problem_set(problem, -EIO,
				   "asking the devices for their counters failed: %s%s",
				   strsignal(WTERMSIG(status)),
				   WTERMSIG(status) == SIGALRM ? " (it took too long)" : "");
	return problem_set(problem, -EIO, "asking the devices for their counters failed");
}

int counter_query_devices(const struct effective_settings *settings, const char *const *lists,
			  json_t **ret, struct problem *problem)
{
	char sdk[PATH_MAX];
	int ends[2], error = part_find_path_or_set_problem(PART_LIBKYMO_SDK, sdk, problem);
	pid_t child;

	*ret = NULL;
	if (error)
		return error;
	if (pipe(ends))
		return problem_set(problem, -errno, "cannot make a pipe: %s", strerror(errno));
	child = fork();
	if (!child) {
		close(ends[0]);
		counter_query_execute_in_child(
			sdk, effective_setting_text(settings, SETTING_COUNTER_DEFS), lists,
			ends[1]);
	}
	error = errno;
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return problem_set(problem, -error, "cannot start a process: %s", strerror(error));
	}
	return read_query_answer(ends[0], child, ret, problem);
}
