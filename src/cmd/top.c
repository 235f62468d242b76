/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo top`: what a program does now, renewed each second, from the files that it writes while it
 * runs. A program or process that is named is sampled by a kymo of its own, beside this one, which
 * only looks.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "cmd/commands.h"
#include "cmd/top.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "console/terminal.h"
#include "launch/directory_tree.h"
#include "launch/result_path.h"
#include "launch/target.h"
#include "merging/output.h"
#include "output/live/live.h"
#include "runs/results.h"

#define ROWS_DEFAULT     10
#define MS               1000000
#define FIRST_DATA_MS    30000
#define FIRST_LOOK_MS    3000 /* of a result that another kymo writes, and has perhaps just begun */
#define SHARE_OF_LOOKING 4    /* a look takes a fifth of the time at most */

static const char key_help[] = "q quit  a all / the last interval  t total / self  space pause";

#define TOP_TEXT_OPTION_FIELDS(field)                                                              \
	.argument = OPTION_ARGUMENT_REQUIRED, .apply = option_set_text,                            \
	.offset = offsetof(struct top_option_values, field)

static const struct extra_option top_extra_options[] = {
	{.name = "pid",
	 .letter = 'p',
	 .metavar = "PID",
	 TOP_TEXT_OPTION_FIELDS(pid),
	 .help = "Attach to this process."},
	{.name = "interval",
	 .metavar = "S",
	 TOP_TEXT_OPTION_FIELDS(interval),
	 .help = "Time between two looks; default: 1."},
	{.name = "count",
	 .metavar = "N",
	 TOP_TEXT_OPTION_FIELDS(count),
	 .help = "End after so many looks; default: with the program."},
	{.name = "top",
	 .metavar = "N",
	 TOP_TEXT_OPTION_FIELDS(rows),
	 .help = "Rows of functions and of threads in plain output; default: 10."},
	{.name = "plain",
	 .apply = option_set_flag,
	 .offset = offsetof(struct top_option_values, is_plain),
	 .help = "Print each look below the last, for logs; so without a terminal."},
	{.name = "freq",
	 .letter = 'f',
	 .metavar = "HZ",
	 TOP_TEXT_OPTION_FIELDS(freq),
	 .help = "Samples per second and thread; default: 100."},
	{.name = "realtime",
	 .apply = option_set_flag,
	 .offset = offsetof(struct top_option_values, realtime),
	 .help = "Show where threads wait as well."},
	{.name = "output",
	 .letter = 'o',
	 .metavar = "DIR",
	 TOP_TEXT_OPTION_FIELDS(output),
	 .help = "Keep the result, and the program's output, in this directory."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool top_accepts_setting(enum setting_id id)
{
	return id == SETTING_SAMPLING_INCLUDE_INLINES || id == SETTING_DEBUG_PATH ||
	       id == SETTING_SYMBOL_CACHE || id == SETTING_CONFIG_FILE || id == SETTING_COLOR ||
	       id == SETTING_FORCE;
}

static const struct options_grammar top_grammar = {
	.command = "top",
	.extra_options = top_extra_options,
	.extra_option_count = ARRAY_SIZE(top_extra_options),
	.accepts_setting = top_accepts_setting,
	.runs_program = true,
};

/* ---- options ---- */

static int top_parse_number(const char *option, const char *text, double least, double most,
			    double *ret, struct problem *problem)
{
	if (!text || (setting_parse_number(setting_slice_from_text(text), ret) == SETTING_VALID &&
		      *ret >= least && *ret <= most))
		return 0;
	return problem_set(problem, -EINVAL, "%s: '%s' is not a number from %g to %.10g", option,
			   text, least, most);
}

static int top_parse_count(const char *option, const char *text, double most, double *ret,
			   struct problem *problem)
{
	int error = top_parse_number(option, text, 1, most, ret, problem);

	if (error || *ret == (double)(uint64_t)*ret)
		return error;
	return problem_set(problem, -EINVAL, "%s: '%s' is not a whole number", option, text);
}

static int top_parse_options(struct top_command *command, struct problem *problem)
{
	const struct top_option_values *values = &command->values;
	double interval = 1, count = 0, rows = ROWS_DEFAULT, pid = 0, freq = 0;
	int error = top_parse_number("--interval", values->interval, 0.1, 3600, &interval, problem);

	if (!error)
		error = top_parse_count("--count", values->count, 1e9, &count, problem);
	if (!error)
		error = top_parse_count("--top", values->rows, 10000, &rows, problem);
	if (!error)
		error = top_parse_count("--pid", values->pid, 4294967295., &pid, problem);
	if (!error)
		error = top_parse_number("--freq", values->freq, 0.01, 10000, &freq, problem);
	command->interval_ms = (int64_t)(interval * 1000);
	command->looks_left = (uint64_t)count;
	command->options.rows_max = (size_t)rows;
	return error;
}

static bool top_has_screen(const struct top_command *command)
{
	return !command->values.is_plain && terminal_is_there();
}

/* ---- the result ---- */

static int top_choose_result(struct top_command *command, const struct parsed_command_line *result,
			     struct problem *problem)
{
	struct target target;
	int error;

	if (command->values.pid && result->operand_count)
		return problem_set(problem, -EINVAL, "either --pid, or a program or result");
	if (!command->values.pid && !command->is_program) {
		if (result->operand_count > 1)
			return problem_set(problem, -EINVAL,
					   "one result only; a program stands behind --: kymo top "
					   "-- PROGRAM");
		error = result_directory_find_existing(result->operand_count ? result->operands[0]
									     : NULL,
						       &command->directory, problem);
		return error ? error : merge_output_check_has_records(command->directory, problem);
	}
	if (command->is_program && target_find_program(result->operands[0], &target, problem)) {
		command->status_of_failure = EXIT_PROGRAM_NOT_FOUND;
		return -ENOENT;
	}
	error = top_make_directory(command, problem);
	return error ? error
		     : top_start_child(command, result->operands, result->operand_count,
				       top_has_screen(command), problem);
}

/* ---- looking ---- */

static uint64_t top_get_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A process that was killed has no last word in its file. */
static bool top_process_runs(const struct model_process *process)
{
	return process->state == SPOOL_STATE_OPEN &&
	       (kill((pid_t)process->pid, 0) == 0 || errno == EPERM);
}

static bool top_session_runs(const struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (top_process_runs(&session->processes[i]))
			return true;
	}
	return false;
}

/* 1: there are no data yet, and `problem` says why. */
static int top_look(struct top_command *command, struct problem *problem)
{
	struct session_options options = results_settings_to_session_options(&command->settings);
	struct session *session = NULL;
	int error;

	options.skip_advice = true;
	if (session_open(command->directory, &options, &session, problem) != 0)
		return 1;
	if (session->process_count == 0) {
		problem_set(problem, -ENODATA, "%s",
			    session->problem_count ? session->problems[0] : "no process yet");
		session_close(session);
		return 1;
	}
	error = session_symbolize(session, problem);
	if (!error) {
		bool runs = command->child || top_session_runs(session);
		if (!runs)
			command->has_ended = true;
		if (live_update(&command->view, session,
				runs ? top_get_time_ns() : session->end_ns) != 0)
			error = problem_set(problem, -ENOMEM, "out of memory");
	}
	session_close(session);
	return error;
}

static int top_show(struct top_command *command, struct problem *problem)
{
	_cleanup_(cleanup_free) char *text = NULL;
	size_t size = 0;
	FILE *stream;
	int error;

	if (!command->terminal.is_open) {
		errno = 0;
		error = live_write(&command->view, &command->options, stdout);
		putchar('\n');
		if (!error && (fflush(stdout) != 0 || ferror(stdout)))
			return problem_set(problem, errno ? -errno : -EIO,
					   "cannot write to standard output: %s",
					   strerror(errno ? errno : EIO));
		return error ? problem_set(problem, error, "out of memory") : 0;
	}
	terminal_get_size(&command->options.columns, &command->options.lines);
	command->options.note = command->is_paused ? "paused: space goes on" : key_help;
	stream = open_memstream(&text, &size);
	if (!stream)
		return problem_set(problem, -ENOMEM, "out of memory");
	error = live_write(&command->view, &command->options, stream);
	if (fclose(stream) != 0 || error)
		return problem_set(problem, -ENOMEM, "out of memory");
	terminal_show(text);
	return 0;
}

/* ---- keys and time ---- */

static void top_take_key(struct top_command *command, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
		command->was_asked_to_end = true;
		break;
	case 'a':
		command->options.is_since_start = !command->options.is_since_start;
		break;
	case 't':
		command->options.is_by_total = !command->options.is_by_total;
		break;
	case ' ':
		command->is_paused = !command->is_paused;
		break;
	default:
		break;
	}
}

static int64_t top_get_time_ms(void)
{
	return (int64_t)(top_get_time_ns() / MS);
}

/* Until the time of the next look, or the end of all looks. */
static int top_wait(struct top_command *command, int64_t until_ms, struct problem *problem)
{
	int error = 0;

	while (!error && !command->was_asked_to_end && !command->has_ended) {
		int64_t left_ms = until_ms - top_get_time_ms();
		if (left_ms <= 0 && !command->is_paused)
			break;
		left_ms = left_ms > 100 || left_ms <= 0 ? 100 : left_ms;
		if (command->terminal.is_open) {
			int key = terminal_wait_for_key((int)left_ms);
			command->was_asked_to_end |= key < 0; /* the terminal is gone */
			top_take_key(command, key);
			if (key > 0 && command->view.time_ns != 0)
				error = top_show(command, problem);
		} else {
			nanosleep(&(struct timespec){.tv_nsec = left_ms * MS}, NULL);
		}
		command->was_asked_to_end |= top_was_signalled();
		top_look_after_child(command, WNOHANG);
	}
	return error;
}

static int top_say_no_data(const struct top_command *command, struct problem *problem)
{
	int status = command->child_status;

	if (command->has_ended && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_KYMO_FAILED)
		return problem_set(problem, -ECHILD,
				   "the program could not be sampled (kymo %s says why)",
				   command->values.pid ? "attach" : "sample");
	struct problem reason = *problem;

	return problem_set(problem, -ENODATA, "'%s' has no data to show: %s", command->directory,
			   reason.text);
}

static int top_look_until_the_end(struct top_command *command, struct problem *problem)
{
	int64_t began_ms = top_get_time_ms();
	bool is_last = false;
	int error = 0;

	while (!error && !command->was_asked_to_end) {
		int64_t look_ms = top_get_time_ms(), cost_ms, wait_ms;

		is_last = command->has_ended;
		error = top_look(command, problem);
		if (error == 0 && command->view.time_ns > command->view.time_before_ns)
			error = top_show(command, problem);
		else if (error > 0 &&
			 (is_last ||
			  look_ms - began_ms > (command->child ? FIRST_DATA_MS : FIRST_LOOK_MS)))
			error = command->view.time_ns ? 0 : top_say_no_data(command, problem);
		else if (error > 0)
			error = 0;
		if (error || is_last || (command->has_ended && !command->child) ||
		    (command->view.time_ns && command->looks_left && --command->looks_left == 0))
			break;
		cost_ms = top_get_time_ms() - look_ms;
		wait_ms = command->view.time_ns ? command->interval_ms : 50;
		if (wait_ms < SHARE_OF_LOOKING * cost_ms)
			wait_ms = SHARE_OF_LOOKING * cost_ms;
		error = top_wait(command, look_ms + wait_ms, problem);
	}
	return error;
}

/* The screen is gone, and the last interval of a log has what came late: all since the start. */
static int top_show_whole_run(struct top_command *command, struct problem *problem)
{
	bool is_shown = command->options.is_since_start ||
			command->view.time_before_ns == command->view.start_ns;

	if (command->view.time_ns == 0 || (is_shown && !top_has_screen(command)))
		return 0;
	command->options.is_since_start = true;
	command->options.lines = 0;
	command->options.note = NULL;
	return top_show(command, problem);
}

static int top_view(struct top_command *command, const struct parsed_command_line *result,
		    struct problem *problem)
{
	int error = top_parse_options(command, problem);

	if (error)
		return error;
	top_catch_signals(command);
	error = top_choose_result(command, result, problem);
	if (error)
		return error;
	command->options.columns = message_get_columns(STDOUT_FILENO);
	if (top_has_screen(command))
		terminal_open(&command->terminal);
	error = top_look_until_the_end(command, problem);
	terminal_close(&command->terminal);
	top_end_child(command);
	return error ? error : top_show_whole_run(command, problem);
}

/* As a shell has it: a signal that ended the program counts from 128. */
static int top_get_status_of_program(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int top_run_command(char **arguments, size_t count)
{
	struct top_command command = {.status_of_failure = EXIT_KYMO_FAILED};
	struct parsed_command_line result = {.context = &command.values};
	struct problem problem;
	int status = command_parse_and_read_settings(&top_command_description, arguments, count,
						     &command.settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	status = EXIT_SUCCESS;
	/* A mistyped name of a result must not run a program. */
	command.is_program = result.operand_count && result.operands > arguments &&
			     strcmp(result.operands[-1], "--") == 0;
	int error = top_view(&command, &result, &problem);
	bool is_broken_pipe = error == -EPIPE && !command.ignores_broken_pipes;
	if (error) {
		if (!is_broken_pipe)
			message_error("%s", problem.text);
		status = command.status_of_failure;
	} else if (!command.values.pid && !command.was_asked_to_end) {
		status = top_get_status_of_program(command.child_status);
	}
	if (command.is_temporary)
		directory_remove_tree(command.directory);
	live_deinit(&command.view);
	free(command.directory);
	effective_deinit(&command.settings);
	if (is_broken_pipe) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	return message_flush_stdout_or_report_error(status);
}

const struct command top_command_description = {
	.name = "top",
	.summary = "watch functions and threads of a running program",
	.synopsis = "top [options] [RESULT | -p PID | -- PROGRAM [arguments]]",
	.text = "Shows what a program does now, renewed each second: functions by self and total, "
		"threads by CPU time and, with real time, by what they wait. It looks at a result "
		"that is being written (without a name: the newest kymo-*-output/latest in the "
		"current directory), attaches to a process, or starts a program. 100 % is one CPU "
		"for all of the interval.\n\n"
		"Keys: q ends; a shows all since the start, or the last interval; t sorts by total "
		"or self; the space bar pauses. A program that kymo top started ends with it; a "
		"process that it attached to goes on. The program's output is not shown; -o keeps "
		"it. Without a terminal, or with --plain, each look is printed below the last.",
	.examples = "kymo top -- ./server            start a program and watch it\n"
		    "kymo top -p 4711 --realtime     a running process, and what it waits for\n"
		    "kymo top --plain --interval 10 kymo-server-output/latest >>log\n",
	.grammar = &top_grammar,
	.run = top_run_command,
	.operands = COMMAND_OPERANDS_PROGRAM,
};
