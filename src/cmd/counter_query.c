/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counter_query.h. What the child does with the tool library is in counter_query_child.c.
 */
#include "cmd/counter_query.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/counter_query_child.h"
#include "cmd/launch.h"

static int query_read(int from, pid_t child, json_t **ret, struct problem *problem)
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

int counter_query(const struct resolved *settings, const char *const *lists, json_t **ret,
		  struct problem *problem)
{
	char sdk[PATH_MAX];
	int ends[2], error = launch_find_sdk(sdk, problem);
	pid_t child;

	*ret = NULL;
	if (error)
		return error;
	if (pipe(ends))
		return problem_set(problem, -errno, "cannot make a pipe: %s", strerror(errno));
	child = fork();
	if (!child) {
		close(ends[0]);
		counter_query_child(sdk, resolved_text(settings, SETTING_COUNTER_DEFS), lists,
				    ends[1]);
	}
	error = errno;
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return problem_set(problem, -error, "cannot start a process: %s", strerror(error));
	}
	return query_read(ends[0], child, ret, problem);
}
