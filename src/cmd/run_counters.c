/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See run_counters.h. Each of several runs is made by a child of kymo, which supervises the program
 * as kymo does otherwise; kymo itself only waits, and ends as the first one that failed.
 */
#include "cmd/run_counters.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/counter_input.h"
#include "cmd/counter_query.h"
#include "cmd/counters_request.h"
#include "cmd/message.h"
#include "cmd/run_program.h"

/* What this command does not want unless asked for. */
static int run_defaults(struct resolved *settings, struct problem *problem)
{
	static const struct {
		enum setting_id id;
		const char *value;
	} values[] = {{SETTING_USE_SAMPLING, "off"}, {SETTING_OUTPUT_FORMATS, "perfetto"}};
	int error = 0;

	for (size_t i = 0; !error && i < sizeof(values) / sizeof(*values); i++) {
		if (resolved_is_default(settings, values[i].id))
			error = resolved_set(settings, values[i].id, values[i].value, ORIGIN_OPTION,
					     "kymo run", problem);
	}
	return error;
}

static int run_once(const struct resolved *settings, char **arguments, size_t count)
{
	static const struct run_beside beside;
	struct launch launch = {.settings = settings};
	int status;

	launch.arguments = arguments;
	launch.argument_count = count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	status = run_program(&launch, &beside);
	free(launch.result);
	free(launch.session);
	return status;
}

/* ---- several runs ---- */

static int run_set(struct resolved *settings, enum setting_id id, const char *value,
		   const char *source, struct problem *problem)
{
	return value ? resolved_set(settings, id, value, ORIGIN_OPTION, source, problem) : 0;
}

/* What the pass says of itself replaces what was given for all of them. */
static int run_settle_counters(struct resolved *settings, const struct counter_pass *pass,
			       const char *path, struct problem *problem)
{
	const struct {
		enum setting_id id;
		const char *value;
	} values[] = {{SETTING_COUNTERS, pass->counters},
		      {SETTING_KERNEL_INCLUDE, pass->include},
		      {SETTING_KERNEL_EXCLUDE, pass->exclude},
		      {SETTING_KERNEL_RANGE, pass->range}};
	char *source;
	int error = 0;

	if (asprintf(&source, "%s:%u", path, pass->line) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (size_t i = 0; !error && i < sizeof(values) / sizeof(*values); i++)
		error = run_set(settings, values[i].id, values[i].value, source, problem);
	free(source);
	return error;
}

static int run_settle(struct resolved *settings, const struct counter_input *input, size_t number,
		      const char *path, struct problem *problem)
{
	const struct counter_pass *pass = &input->passes[number];
	char *directory;
	int error = run_settle_counters(settings, pass, path, problem);

	if (error || input->count == 1)
		return error;
	if (asprintf(&directory, "%s/%s_%zu", resolved_text(settings, SETTING_OUTPUT_PATH),
		     input->is_text ? "pmc" : "pass", number + 1) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	error = run_set(settings, SETTING_OUTPUT_PATH, directory, path, problem);
	free(directory);
	return error;
}

static int run_pass(struct resolved *settings, const struct counter_input *input, size_t number,
		    const char *path, char **arguments, size_t count)
{
	struct problem problem;

	if (!run_settle(settings, input, number, path, &problem))
		return run_once(settings, arguments, count);
	message_error("%s", problem.text);
	return EXIT_OWN_FAILURE;
}

/* The child supervises; signals of the terminal are its business. */
static int run_wait(pid_t child)
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

/* A mistake in what the last run counts is told before the first one. In a child, since settings
 * change with each; what the devices themselves are in the way of is told when they are asked. */
static int run_look_ahead(struct resolved *settings, const struct counter_input *input,
			  const char *path)
{
	struct problem problem;
	json_t *answer;
	bool unused;
	int error = 0;

	if (!resolved_bool(settings, SETTING_ENABLED))
		return EXIT_SUCCESS;
	if (counter_query(settings, NULL, &answer, &problem))
		answer = NULL;
	for (size_t i = 0; !error && i < input->count; i++) {
		error = run_settle_counters(settings, &input->passes[i], path, &problem);
		if (!error)
			error = counters_request_check_range(settings, &problem);
		if (!error && answer)
			error = counters_request_check_names(
				settings, json_object_get(answer, "agents"), &unused, &problem);
	}
	if (error)
		message_error("%s", problem.text);
	return error ? EXIT_OWN_FAILURE : EXIT_SUCCESS;
}

/* number: of the run; input->count: none, the look ahead. */
static int run_in_child(struct resolved *settings, const struct counter_input *input, size_t number,
			const char *path, char **arguments, size_t count)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child < 0) {
		message_error("cannot start a process: %s", strerror(errno));
		return W_EXITCODE(EXIT_OWN_FAILURE, 0);
	}
	if (!child)
		exit(number < input->count
			     ? run_pass(settings, input, number, path, arguments, count)
			     : run_look_ahead(settings, input, path));
	return run_wait(child);
}

static bool run_is_over(int status)
{
	return WIFSIGNALED(status) || WEXITSTATUS(status) == EXIT_OWN_FAILURE;
}

static int run_all(struct resolved *settings, const struct counter_input *input, const char *path,
		   char **arguments, size_t count)
{
	int failure = run_in_child(settings, input, input->count, path, arguments, count);

	for (size_t i = 0; !run_is_over(failure) && i < input->count; i++) {
		int status;

		message_note("run %zu of %zu: %s", i + 1, input->count, input->passes[i].counters);
		status = run_in_child(settings, input, i, path, arguments, count);
		if (!failure)
			failure = status;
		if (run_is_over(status))
			break;
	}
	if (failure)
		supervise_exit_like(failure);
	return EXIT_SUCCESS;
}

/* The counters of each run are the file's; others on the command line would go uncounted. */
static int run_check_input(const struct resolved *settings, const char *path,
			   struct problem *problem)
{
	if (settings->values[SETTING_COUNTERS].origin != ORIGIN_OPTION)
		return 0;
	return problem_set(problem, -EINVAL,
			   "--counters and --input cannot both be given: '%s' says what each run "
			   "counts",
			   path);
}

int run_counters(struct resolved *settings, const char *path, char **arguments, size_t count)
{
	struct counter_input input = {.count = 0};
	struct problem problem;
	int status = EXIT_OWN_FAILURE;

	if ((path && (run_check_input(settings, path, &problem) ||
		      counter_input_read(path, &input, &problem))) ||
	    run_defaults(settings, &problem))
		message_error("%s", problem.text);
	else if (input.count > 1)
		status = run_all(settings, &input, path, arguments, count);
	else if (input.count)
		status = run_pass(settings, &input, 0, path, arguments, count);
	else
		status = run_once(settings, arguments, count);
	counter_input_deinit(&input);
	return status;
}
