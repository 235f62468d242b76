/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See python_start.h.
 */
#include "launch/python_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/parts.h"

#define PYTHON_PATH_VARIABLE "PYTHONPATH="

bool launch_has_python_start(const struct launch *launch)
{
	return effective_setting_bool(launch->settings, SETTING_PYTHON_CALLS) &&
	       (effective_setting_bool(launch->settings, SETTING_PYTHON_DECORATORS) ||
		*effective_setting_text(launch->settings, SETTING_PYTHON_SETUP));
}

int launch_format_python_path(char *const *environment, char **ret, struct problem *problem)
{
	const char *before = "";
	char directory[PATH_MAX];
	int error = part_find_path_or_set_problem(PART_PYTHON_START, directory, problem);

	if (error)
		return error;
	*strrchr(directory, '/') = '\0';
	if (strchr(directory, ':'))
		return problem_set(problem, -EINVAL,
				   "PYTHONPATH cannot have '%s', which has a colon: setup code and "
				   "@profile need it",
				   directory);
	for (; *environment; environment++) {
		if (!strncmp(*environment, PYTHON_PATH_VARIABLE, strlen(PYTHON_PATH_VARIABLE)))
			before = *environment + strlen(PYTHON_PATH_VARIABLE);
	}
	if (asprintf(ret, PYTHON_PATH_VARIABLE "%s%s%s", directory, *before ? ":" : "", before) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	return 0;
}
