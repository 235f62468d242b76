/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counters.h. Each of several runs is made by a child of kymo, which supervises the program
 * as kymo does otherwise; kymo itself only waits, and ends as the first one that failed.
 */
#include "runs/counters.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/array.h"
#include "console/message.h"
#include "counting/input.h"
#include "counting/query.h"
#include "counting/request.h"
#include "launch/result_path.h"
#include "runs/run_program.h"

/* What this command does not want unless asked for. */
static int set_defaults_of_run_command(struct effective_settings *settings, struct problem *problem)
{
	static const struct {
		enum setting_id id;
		const char *value;
	} values[] = {{SETTING_USE_SAMPLING, "off"}, {SETTING_OUTPUT_FORMATS, "perfetto"}};
	int error = 0;

	for (size_t i = 0; !error && i < ARRAY_SIZE(values); i++) {
		if (effective_setting_is_default(settings, values[i].id))
			error = effective_set_if_not_overridden(settings, values[i].id,
								values[i].value, ORIGIN_OPTION,
								"kymo run", problem);
	}
	return error;
}

static int run_program_once(const struct effective_settings *settings, char **arguments,
			    size_t count)
{
	static const struct profiling_run_callbacks beside;
	struct launch launch = {.settings = settings};
	int status;

	launch.arguments = arguments;
	launch.argument_count = count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	status = run_program(&launch, &beside);
	result_place_deinit(&launch.place);
	free(launch.session);
	return status;
}

/* ---- several runs ---- */

static int set_option_if_given(struct effective_settings *settings, enum setting_id id,
			       const char *value, const char *source, struct problem *problem)
{
	return value ? effective_set_if_not_overridden(settings, id, value, ORIGIN_OPTION, source,
						       problem)
		     : 0;
}

/* What the pass says of itself replaces what was given for all of them. */
static int set_counters_and_filters_of_pass(struct effective_settings *settings,
					    const struct counter_pass *pass, const char *path,
					    struct problem *problem)
{
	const struct {
		enum setting_id id;
		const char *value;
	} values[] = {{SETTING_COUNTERS, pass->counters},
		      {SETTING_KERNEL_INCLUDE, pass->kernel_include_regex},
		      {SETTING_KERNEL_EXCLUDE, pass->kernel_exclude_regex},
		      {SETTING_KERNEL_RANGE, pass->kernel_iteration_range}};
	char *source;
	int error = 0;

	if (asprintf(&source, "%s:%u", path, pass->line) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (size_t i = 0; !error && i < ARRAY_SIZE(values); i++)
		error = set_option_if_given(settings, values[i].id, values[i].value, source,
					    problem);
	free(source);
	return error;
}

static int set_all_settings_of_pass(struct effective_settings *settings,
				    const struct counter_input_file *input, size_t number,
				    const char *path, struct problem *problem)
{
	const struct counter_pass *pass = &input->passes[number];
	char *directory;
	int error = set_counters_and_filters_of_pass(settings, pass, path, problem);

	if (error || input->count == 1)
		return error;
	if (asprintf(&directory, "%s/%s_%zu", effective_setting_text(settings, SETTING_OUTPUT_PATH),
		     input->is_text_format ? "pmc" : "pass", number + 1) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	error = set_option_if_given(settings, SETTING_OUTPUT_PATH, directory, path, problem);
	free(directory);
	return error;
}

static int run_counter_pass(struct effective_settings *settings,
			    const struct counter_input_file *input, size_t number, const char *path,
			    char **arguments, size_t count)
{
	struct problem problem;

	if (!set_all_settings_of_pass(settings, input, number, path, &problem))
		return run_program_once(settings, arguments, count);
	message_error("%s", problem.text);
	return EXIT_KYMO_FAILED;
}

/* The child supervises; signals of the terminal are its business. */
static int wait_for_child(pid_t child)
{
	struct sigaction ignored = {.sa_handler = SIG_IGN}, before[2];
	int status = 0;

	sigaction(SIGINT, &ignored, &before[0]);
	sigaction(SIGQUIT, &ignored, &before[1]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &before[0], NULL);
	sigaction(SIGQUIT, &before[1], NULL);
	return status;
}

/* A mistake in what the last run counts is reported before the first one. In a child, since
 * settings change with each; what the devices themselves are in the way of is reported when they
 * are asked. */
static int check_all_passes(struct effective_settings *settings,
			    const struct counter_input_file *input, const char *path)
{
	struct problem problem;
	json_t *answer;
	bool unused;
	int error = 0;

	if (!effective_setting_bool(settings, SETTING_ENABLED))
		return EXIT_SUCCESS;
	if (counter_query_devices(settings, NULL, &answer, &problem))
		answer = NULL;
	for (size_t i = 0; !error && i < input->count; i++) {
		error = set_counters_and_filters_of_pass(settings, &input->passes[i], path,
							 &problem);
		if (!error)
			error = counters_request_check_kernel_range(settings, &problem);
		if (!error && answer)
			error = counters_request_check_names(
				settings, json_object_get(answer, "agents"), &unused, &problem);
	}
	if (error)
		message_error("%s", problem.text);
	return error ? EXIT_KYMO_FAILED : EXIT_SUCCESS;
}

/* number: of the run; input->count: none, the look ahead. */
static int run_pass_in_child(struct effective_settings *settings,
			     const struct counter_input_file *input, size_t number,
			     const char *path, char **arguments, size_t count)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0) {
		message_error("cannot start a process: %s", strerror(errno));
		return W_EXITCODE(EXIT_KYMO_FAILED, 0);
	}
	if (!child)
		exit(number < input->count
			     ? run_counter_pass(settings, input, number, path, arguments, count)
			     : check_all_passes(settings, input, path));
	return wait_for_child(child);
}

static bool status_ends_all_passes(int status)
{
	return WIFSIGNALED(status) || WEXITSTATUS(status) == EXIT_KYMO_FAILED;
}

static int run_all_passes(struct effective_settings *settings,
			  const struct counter_input_file *input, const char *path,
			  char **arguments, size_t count)
{
	int failure = run_pass_in_child(settings, input, input->count, path, arguments, count);

	for (size_t i = 0; !status_ends_all_passes(failure) && i < input->count; i++) {
		int status;

		message_note("run %zu of %zu: %s", i + 1, input->count, input->passes[i].counters);
		status = run_pass_in_child(settings, input, i, path, arguments, count);
		if (!failure)
			failure = status;
		if (status_ends_all_passes(status))
			break;
	}
	if (failure)
		supervise_exit_like_program(failure);
	return EXIT_SUCCESS;
}

/* The counters of each run are the file's; others on the command line would go uncounted. */
static int check_no_counters_option_with_input(const struct effective_settings *settings,
					       const char *path, struct problem *problem)
{
	if (settings->values[SETTING_COUNTERS].origin != ORIGIN_OPTION)
		return 0;
	return problem_set(
		problem, -EINVAL,
		"--counters and --input cannot both be given: '%s' lists the counters of each run",
		path);
}

int run_program_with_counters(struct effective_settings *settings, const char *path,
			      char **arguments, size_t count)
{
	struct counter_input_file input = {.count = 0};
	struct problem problem;
	int status = EXIT_KYMO_FAILED;

	if ((path && (check_no_counters_option_with_input(settings, path, &problem) ||
		      counter_input_file_read(path, &input, &problem))) ||
	    set_defaults_of_run_command(settings, &problem))
		message_error("%s", problem.text);
	else if (input.count > 1)
		status = run_all_passes(settings, &input, path, arguments, count);
	else if (input.count)
		status = run_counter_pass(settings, &input, 0, path, arguments, count);
	else
		status = run_program_once(settings, arguments, count);
	counter_input_file_deinit(&input);
	return status;
}
