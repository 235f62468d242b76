/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See whole_machine.h. The program, if any, only says when the end is: nothing is loaded into it.
 */
#include "runs/whole_machine.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "common/settings_value.h"
#include "common/time_units.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "outside/scope.h"
#include "runs/conflicts.h"
#include "runs/from_outside.h"
#include "runs/results.h"

#define ARGUMENTS_MAX 8
#define LINGER_MS     50 /* past the duration, which the collector follows */

struct machine_run {
	struct launch launch;
	struct outside_scope scope;
	struct target target;
	char *arguments[ARGUMENTS_MAX]; /* that stand for the machine in the results */
	bool has_program;
};

/* ---- before ---- */

static int choose_scope(struct outside_scope *scope, const struct whole_machine_request *request,
			struct problem *problem)
{
	if (!!request->cgroup + !!request->container + !!request->user > 1)
		return problem_set(problem, -EINVAL,
				   "--cgroup, --container and --user cannot be combined");
	if (request->cgroup)
		return outside_scope_set_cgroup(scope, request->cgroup, problem);
	if (request->container)
		return outside_scope_set_container(scope, request->container, problem);
	return request->user ? outside_scope_set_user(scope, request->user, problem) : 0;
}

/* Results are named after the program, or after what is sampled. */
static void name_run(struct machine_run *run, const struct whole_machine_request *request,
		     char **arguments, size_t count)
{
	const struct {
		const char *option, *value;
	} parts[] = {{"--cgroup", request->cgroup},
		     {"--container", request->container},
		     {"--user", request->user}};

	run->has_program = count > 0;
	run->launch.arguments = count ? arguments : run->arguments;
	run->launch.argument_count = count;
	if (count)
		return;
	run->arguments[run->launch.argument_count++] = (char *)"all-cpus";
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!parts[i].value)
			continue;
		run->arguments[run->launch.argument_count++] = (char *)parts[i].option;
		run->arguments[run->launch.argument_count++] = (char *)parts[i].value;
	}
}

static int find_program(struct machine_run *run, struct problem *problem)
{
	return run->has_program
		       ? target_find_program(run->launch.arguments[0], &run->target, problem)
		       : 0;
}

static void report_start(const struct machine_run *run, bool has_duration)
{
	const struct outside_scope *scope = &run->scope;
	const char *end = run->has_program || has_duration ? "" : "; Ctrl-C ends it";

	if (scope->kind == OUTSIDE_SCOPE_ALL)
		message_note("sampling the whole machine%s", end);
	else if (scope->kind == OUTSIDE_SCOPE_USER)
		message_note("sampling the processes of user %u%s", (unsigned)scope->user, end);
	else if (scope->directory >= 0)
		message_note("sampling control group '%s', which the kernel selects%s",
			     *scope->cgroup ? scope->cgroup : "/", end);
	else
		message_note("sampling control group '%s' (%s), which kymo selects by "
			     "/proc/PID/cgroup: this hierarchy has no perf events%s",
			     *scope->cgroup ? scope->cgroup : "/",
			     *scope->controllers ? scope->controllers : "version 2", end);
}

/* ---- while it runs ---- */

/* TRACE_DELAY and TRACE_DURATION; -1: no end. */
static int64_t get_duration_ns(const struct effective_settings *settings)
{
	int64_t delay = 0, duration = 0;

	setting_parse_duration(
		setting_slice_from_text(effective_setting_text(settings, SETTING_TRACE_DELAY)),
		&delay);
	setting_parse_duration(
		setting_slice_from_text(effective_setting_text(settings, SETTING_TRACE_DURATION)),
		&duration);
	return duration > 0 ? delay + duration : -1;
}

static void block_end_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGHUP);
	sigaddset(signals, SIGQUIT);
	sigprocmask(SIG_BLOCK, signals, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Until the time is over, or a signal asks for the end. */
static void wait_for_end(const sigset_t *signals, int64_t duration)
{
	struct pollfd wanted = {signalfd(-1, signals, SFD_CLOEXEC), POLLIN, 0};
	int64_t end = (int64_t)monotonic_ns() + duration + LINGER_MS * (int64_t)MILLISECOND_NS;
	struct signalfd_siginfo taken;
	int64_t left = -1;

	do {
		if (duration >= 0)
			left = (end - (int64_t)monotonic_ns()) / (int64_t)MILLISECOND_NS;
		if (duration >= 0 && left <= 0)
			break;
	} while (poll(&wanted, 1, left > INT32_MAX ? INT32_MAX : (int)left) <= 0);
	/* What asked for the end is not to end the writing of results. */
	if ((wanted.revents & POLLIN) && read(wanted.fd, &taken, sizeof(taken)) < 0)
		message_detail("a signal came");
	if (wanted.fd >= 0)
		close(wanted.fd);
}

static int sample_until_end(struct machine_run *run, struct supervised_program_end *end,
			    struct problem *problem)
{
	struct launch *launch = &run->launch;
	int64_t duration = get_duration_ns(launch->settings);
	sigset_t signals, none;
	int error;

	*end = (struct supervised_program_end){.pid = getpid(), .wait_status = -1};
	if (!run->has_program)
		block_end_signals(&signals);
	error = from_outside_start_machine(launch, problem);
	if (error)
		return error;
	report_start(run, duration >= 0);
	if (run->has_program) {
		error = supervise_run_program(run->target.path, launch->arguments, environ, end);
		if (!error && end->exec_errno)
			error = -end->exec_errno;
		if (error)
			problem_set(problem, error, "cannot execute '%s': %s", run->target.path,
				    strerror(-error));
		/* Its CPU time is not what the samples are compared with. */
		end->user_ns = end->system_ns = 0;
		return error;
	}
	wait_for_end(&signals, duration);
	signal(SIGINT, SIG_IGN); /* what was typed is done; from here on it is about the results */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

/* ---- afterwards ---- */

static int write_results(struct machine_run *run, const struct supervised_program_end *end,
			 struct problem *problem)
{
	struct launch *launch = &run->launch;
	struct result_key_values keys = {launch->arguments[0], launch->start, getpid()};
	static char message[PATH_MAX + 100];
	char *prefix = NULL;
	int error;

	snprintf(message, sizeof(message),
		 "kymo: interrupted; the recorded data is complete: kymo report %s\n",
		 launch->session);
	if (launch_write_json(launch, end, problem))
		message_error("%s", problem->text);
	supervise_install_exit_on_interrupt(end->wait_status < 0 ? 0 : end->wait_status, message);
	error = result_path_expand_keys(
		effective_setting_text(launch->settings, SETTING_OUTPUT_PREFIX), &keys, &prefix,
		problem);
	if (!error)
		error = results_write_all_outputs(launch->settings, launch->session, launch->result,
						  prefix, true, problem);
	if (!error)
		error = launch_move_or_remove_session(launch, true, problem);
	if (error)
		message_error("%s (recorded data: %s)", problem->text, launch->session);
	free(prefix);
	return error;
}

static void report_unknown(const struct outside_result *result)
{
	if (result->unknown_scope)
		message_warning("%llu samples are left out: their processes ended before kymo "
				"could see whose they were",
				(unsigned long long)result->unknown_scope);
}

/* An exit status. */
static int run_and_write_results(struct machine_run *run, struct problem *problem)
{
	struct supervised_program_end end;
	struct outside_result result;
	int error = launch_create_directories(&run->launch, problem);

	if (!error)
		error = sample_until_end(run, &end, problem);
	result = from_outside_finish(&run->launch);
	if (error) {
		if (run->launch.result && run->launch.session)
			launch_remove_created_directories(&run->launch);
		message_error("%s", problem->text);
		return EXIT_KYMO_FAILED;
	}
	report_unknown(&result);
	if (end.discards_results)
		message_note("interrupted twice, no results written; to write them: kymo report %s",
			     run->launch.session);
	else
		error = write_results(run, &end, problem);
	if (run->has_program)
		supervise_exit_like_program(end.wait_status);
	return error ? EXIT_KYMO_FAILED : EXIT_SUCCESS;
}

int whole_machine_sample(const struct whole_machine_request *request,
			 const struct effective_settings *settings, char **arguments, size_t count)
{
	struct machine_run run = {
		.scope = OUTSIDE_SCOPE_INITIALIZER,
		.target = {.obstacle = ""},
		.launch = {.settings = settings, .is_sampled_from_outside = true}};
	struct problem problem;
	int status = EXIT_KYMO_FAILED, error;

	clock_gettime(CLOCK_REALTIME, &run.launch.start);
	name_run(&run, request, arguments, count);
	error = conflicts_check_settings(settings, &problem);
	if (!error)
		error = choose_scope(&run.scope, request, &problem);
	if (!error)
		error = find_program(&run, &problem);
	if (!error)
		error = from_outside_check_machine(&run.launch, &run.scope, &problem);
	if (error)
		message_error("%s", problem.text);
	else
		status = run_and_write_results(&run, &problem);
	outside_scope_deinit(&run.scope);
	result_place_deinit(&run.launch.place);
	free(run.launch.session);
	return status;
}
