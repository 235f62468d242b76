/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo sample`: runs a program with libkymo preloaded, then turns what was recorded into results.
 *
 * The program comes first. Whatever goes wrong on kymo's side before the start (no result
 * directory, no library, a program that cannot be profiled) is one line, and the program runs
 * unprofiled, unless STRICT; whatever goes wrong afterwards is reported, and the exit status is
 * still the program's. Mistakes on the command line, in the environment or in configuration files
 * end kymo before the start, since nobody would notice them otherwise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/launch.h"
#include "cmd/left_running.h"
#include "cmd/message.h"
#include "cmd/request.h"
#include "cmd/result_path.h"
#include "cmd/results.h"
#include "cmd/sampler_options.h"
#include "cmd/target.h"
#include "common/settings_value.h"

static bool sample_accepts(enum setting_id id)
{
	return settings_table[id].visibility != SETTING_INTERNAL;
}

static const struct option_extra sample_extras[] = {
	OPTION_CPUTIME, OPTION_REALTIME, OPTION_QUIET, OPTION_VERBOSE, OPTION_HELP,
};

static const struct options_grammar sample_grammar = {
	.command = "sample",
	.extras = sample_extras,
	.extra_count = sizeof(sample_extras) / sizeof(sample_extras[0]),
	.accepts = sample_accepts,
	.runs_program = true,
};

/* The program cannot be profiled: EXIT_OWN_FAILURE under STRICT, else 0, and it runs without. */
static int sample_without(const struct launch *launch, const char *why)
{
	if (resolved_bool(launch->settings, SETTING_STRICT)) {
		message_error("%s; nothing was run (--strict)", why);
		return EXIT_OWN_FAILURE;
	}
	message_error("%s; the program runs unprofiled", why);
	return 0;
}

/* Makes directories and environment. *ret stays NULL when the program is to run unprofiled. */
static int sample_prepare(struct launch *launch, const struct target *target, char ***ret)
{
	struct problem problem;
	char *library = NULL;
	int error;

	*ret = NULL;
	if (!resolved_bool(launch->settings, SETTING_ENABLED))
		return 0;
	if (target->obstacle[0])
		return sample_without(launch, target->obstacle);
	error = launch_find_library(&library, &problem);
	if (!error)
		error = launch_prepare(launch, &problem);
	if (!error)
		error = launch_environment_create(launch, library, environ, ret, &problem);
	free(library);
	return error ? sample_without(launch, problem.text) : 0;
}

/* Daemons and jobs in the background: their data so far is in the results. */
static void sample_note_running(const struct launch *launch)
{
	pid_t pid = 0;
	size_t count = launch->in_memory ? 0 : left_running_count(launch->session, &pid);

	if (count == 1)
		message_note("process %d of the program is still running; the results so far are "
			     "complete, later ones: kymo report %s",
			     (int)pid, launch->session);
	else if (count)
		message_note("%zu processes of the program are still running (one is %d); the "
			     "results so far are complete, later ones: kymo report %s",
			     count, (int)pid, launch->session);
}

/* After the program's end. Nothing here changes the exit status. */
static void sample_finish(struct launch *launch, const struct supervised *end)
{
	struct problem problem;
	struct result_keys keys = {launch->arguments[0], launch->start, getpid()};
	static char message[4400];
	char *prefix = NULL;

	snprintf(message, sizeof(message),
		 "kymo: interrupted; the recorded data is complete: kymo report %s\n",
		 launch->session);
	if (launch_write_json(launch, end, &problem))
		message_error("%s", problem.text);
	if (end->give_up) {
		message_note(
			"interrupted twice, no results written; make them with: kymo report %s",
			launch->session);
		return;
	}
	supervise_give_up_on_interrupt(end->wait_status, message);
	if (result_path_expand(resolved_text(launch->settings, SETTING_OUTPUT_PREFIX), &keys,
			       &prefix, &problem) ||
	    results_write(launch->settings, launch->session, launch->result, prefix, &problem))
		message_error("%s (recorded data: %s)", problem.text, launch->session);
	else
		launch_discard_session(launch);
	sample_note_running(launch);
	free(prefix);
}

/* Runs the program with the environment made for it, or, when that is too long for the kernel
 * (execve(2): E2BIG), with its own. *environment is NULL when it ran unprofiled. */
static int sample_supervise(struct launch *launch, const struct target *target, char ***environment,
			    struct supervised *end)
{
	int status, error = supervise_run(target->path, launch->arguments,
					  *environment ? *environment : environ, end);

	if (!error && end->exec_errno && *environment)
		launch_discard_result(launch);
	if (!error && end->exec_errno == E2BIG && *environment) {
		launch_environment_destroy(*environment);
		*environment = NULL;
		status = sample_without(launch, "no room for kymo's variables beside the "
						"program's arguments and environment");
		if (status)
			return status;
		error = supervise_run(target->path, launch->arguments, environ, end);
	}
	if (error) {
		message_error("cannot start a process: %s", strerror(-error));
		return EXIT_OWN_FAILURE;
	}
	if (!end->exec_errno)
		return 0;
	message_error("cannot execute '%s': %s", target->path, strerror(end->exec_errno));
	return end->exec_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int sample_run_program(struct launch *launch, const struct target *target)
{
	struct supervised end;
	char **environment;
	int status = sample_prepare(launch, target, &environment);

	if (status)
		return status;
	message_detail("running '%s'%s%s", target->path, environment ? ", results in " : "",
		       environment ? launch->result : "");
	status = sample_supervise(launch, target, &environment, &end);
	if (!status && environment)
		sample_finish(launch, &end);
	launch_environment_destroy(environment);
	if (!status)
		supervise_exit_like(end.wait_status);
	return status;
}

/* Path keys are checked early: a mistake there is a mistake on the command line. */
static int sample_check_paths(const struct launch *launch, struct problem *problem)
{
	static const enum setting_id ids[] = {SETTING_OUTPUT_PATH, SETTING_OUTPUT_PREFIX};
	struct result_keys keys = {launch->arguments[0], launch->start, getpid()};
	int error = 0;

	for (unsigned i = 0; !error && i < 2; i++) {
		char *expanded = NULL;

		error = result_path_expand(resolved_text(launch->settings, ids[i]), &keys,
					   &expanded, problem);
		free(expanded);
	}
	return error;
}

static int sample_launch(struct launch *launch)
{
	struct target target;
	struct problem problem;
	int status = EXIT_OWN_FAILURE;

	if (!sample_check_paths(launch, &problem) && !request_check(launch->settings, &problem))
		status = target_resolve(launch->arguments[0], &target, &problem);
	if (!status)
		status = target_inspect(&target, &problem);
	if (!status)
		return sample_run_program(launch, &target);
	message_error("%s", problem.text);
	return status;
}

static int sample_run(char **arguments, size_t count)
{
	struct resolved settings;
	struct options_result result = {0};
	struct launch launch = {.settings = &settings};
	int status = command_begin(&command_sample, arguments, count, &settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	launch.arguments = result.operands; /* argv ends with NULL */
	launch.argument_count = result.operand_count;
	clock_gettime(CLOCK_REALTIME, &launch.start);
	if (launch.argument_count) {
		status = sample_launch(&launch);
	} else {
		message_error("which program? kymo sample [options] -- PROGRAM [arguments] (see "
			      "kymo sample --help)");
		status = EXIT_OWN_FAILURE;
	}
	free(launch.result);
	free(launch.session);
	resolved_deinit(&settings);
	return status;
}

const struct command command_sample = {
	.name = "sample",
	.summary = "run a program, show where its time goes",
	.synopsis = "sample [options] [--] PROGRAM [arguments]",
	.text = "Runs PROGRAM and interrupts its threads many times a second to see what they "
		"are doing. Output, exit status and signals of the program stay as they are; the "
		"results go into a directory of their own, a summary to standard error.\n\n"
		"Processes that the program starts are profiled as well. A program that cannot be "
		"profiled (statically linked, set-user-id) is run all the same, with a message.",
	.examples = "kymo sample -- xz -k file          profile one run\n"
		    "kymo sample --realtime -- ./server shows where threads wait\n"
		    "kymo sample -f 100 -d 30 -- make   100 samples a second, for 30 seconds\n",
	.grammar = &sample_grammar,
	.run = sample_run,
};
