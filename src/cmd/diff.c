/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo diff`: results of two builds or settings side by side, and a status for CI.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "cmd/commands.h"
#include "common/array.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "merging/output.h"
#include "output/diff/diff.h"
#include "output/incomplete/incomplete.h"
#include "runs/results.h"
#include "settings/suggest.h"

#define CONDITIONS_MAX       16
#define TOP_DEFAULT          20
#define EXIT_CONDITION_HOLDS 1
#define DIFF_FORMAT_WORDS    "text,markdown,json,folded"
#define DIFF_MEASURE_WORDS   "cpu,wall,overflow"

enum diff_format { DIFF_TEXT, DIFF_MARKDOWN, DIFF_JSON, DIFF_FOLDED };

struct diff_option_values {
	const char *kind, *measure, *format, *top;
	const char *conditions[CONDITIONS_MAX];
	size_t condition_count;
};

struct diff_command {
	struct effective_settings settings;
	struct diff_option_values options;
	struct diff_condition conditions[CONDITIONS_MAX];
	struct diff diff;
	enum diff_format format;
	enum view_measure_kind measure;
	unsigned kind;
	size_t top;
};

static int diff_add_condition(struct parsed_command_line *result, const struct extra_option *option,
			      const char *value, struct problem *problem)
{
	struct diff_option_values *options = result->context;

	(void)option;
	if (options->condition_count == CONDITIONS_MAX)
		return problem_set(problem, -EINVAL, "--fail-if can be given %d times at most",
				   CONDITIONS_MAX);
	options->conditions[options->condition_count++] = value;
	return 0;
}

#define DIFF_TEXT_OPTION_FIELDS(field)                                                             \
	.argument = OPTION_ARGUMENT_REQUIRED, .apply = option_set_text,                            \
	.offset = offsetof(struct diff_option_values, field)

static const struct extra_option diff_extra_options[] = {
	{.name = "by",
	 .metavar = "WHAT",
	 .choices = DIFF_ROW_KIND_WORDS,
	 DIFF_TEXT_OPTION_FIELDS(kind),
	 .help = "What the rows are: functions, call paths, lines, threads, regions, kernels of "
		 "devices, or ranks; default: function."},
	{.name = "fail-if",
	 .metavar = "CONDITION",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .apply = diff_add_condition,
	 .help = "Exit with status 1 where it holds and noise does not explain it: total>+3%, "
		 "any>+10%, NAME>+5ms; may be repeated."},
	{.name = "format",
	 .metavar = "FORMAT",
	 .choices = DIFF_FORMAT_WORDS,
	 DIFF_TEXT_OPTION_FIELDS(format),
	 .help = "text, markdown (for a pull request), json, or folded (for difffolded.pl)."},
	{.name = "measure",
	 .metavar = "cpu|wall|overflow",
	 .choices = DIFF_MEASURE_WORDS,
	 DIFF_TEXT_OPTION_FIELDS(measure),
	 .help = "Measure to compare: CPU time, real time, or events; default: that of the first "
		 "result's summary."},
	{.name = "top",
	 .metavar = "N",
	 DIFF_TEXT_OPTION_FIELDS(top),
	 .help = "Rows to show; 0: all. Default: 20."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool diff_accepts_setting(enum setting_id id)
{
	return id == SETTING_SAMPLING_INCLUDE_INLINES || id == SETTING_DEBUG_PATH ||
	       id == SETTING_SYMBOL_CACHE || id == SETTING_CONFIG_FILE || id == SETTING_COLOR;
}

static const struct options_grammar diff_grammar = {
	.command = "diff",
	.extra_options = diff_extra_options,
	.extra_option_count = ARRAY_SIZE(diff_extra_options),
	.accepts_setting = diff_accepts_setting,
};

/* ---- options ---- */

static int diff_parse_choice(const char *option, const char *text, const char *words,
			     unsigned otherwise, unsigned *ret, struct problem *problem)
{
	struct suggestion suggestion;
	char hint[64];

	*ret = otherwise;
	if (!text ||
	    setting_parse_choice(setting_slice_from_text(text), words, ret) == SETTING_VALID)
		return 0;
	suggestion_init(&suggestion, text, strlen(text));
	suggestion_offer_list(&suggestion, words);
	return problem_set(problem, -EINVAL, "%s: '%s' is not one of %s%s", option, text, words,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

static int diff_parse_top(struct diff_command *command, struct problem *problem)
{
	const char *text = command->options.top;
	double top = TOP_DEFAULT;

	if (text && (setting_parse_number(setting_slice_from_text(text), &top) != SETTING_VALID ||
		     top < 0 || top > 1e9))
		return problem_set(problem, -EINVAL, "--top: '%s' is not a number of rows", text);
	command->top = (size_t)top;
	return 0;
}

static int diff_parse_options(struct diff_command *command, struct problem *problem)
{
	unsigned format = DIFF_TEXT, measure = 0;
	int error = diff_parse_choice("--by", command->options.kind, DIFF_ROW_KIND_WORDS,
				      DIFF_BY_FUNCTION, &command->kind, problem);

	if (!error)
		error = diff_parse_choice("--format", command->options.format, DIFF_FORMAT_WORDS,
					  DIFF_TEXT, &format, problem);
	if (!error)
		error = diff_parse_choice("--measure", command->options.measure, DIFF_MEASURE_WORDS,
					  VIEW_MEASURE_CPU_TIME, &measure, problem);
	if (!error)
		error = diff_parse_top(command, problem);
	for (size_t i = 0; !error && i < command->options.condition_count; i++)
		error = diff_condition_parse(command->options.conditions[i],
					     &command->conditions[i], problem);
	command->format = (enum diff_format)format;
	command->measure = (enum view_measure_kind)measure;
	if (!error && command->format == DIFF_FOLDED && command->kind != DIFF_BY_PATH) {
		if (command->options.kind)
			return problem_set(problem, -EINVAL,
					   "--format folded has call paths: leave out --by %s",
					   command->options.kind);
		command->kind = DIFF_BY_PATH;
	}
	return error;
}

/* ---- results ---- */

static int diff_check_operands(const struct parsed_command_line *result, struct problem *problem)
{
	if (result->operand_count >= 2 && result->operand_count % 2 == 0)
		return 0;
	return problem_set(
		problem, -EINVAL,
		"kymo diff takes pairs of results, BEFORE AFTER [BEFORE2 AFTER2 ...]: %zu "
		"%s given",
		result->operand_count, result->operand_count == 1 ? "is" : "are");
}

static int diff_open_session(const struct diff_command *command, const char *named,
			     struct session **ret, struct problem *problem)
{
	struct session_options options = results_settings_to_session_options(&command->settings);
	char *directory;
	int error = result_directory_find_existing(named, &directory, problem);

	if (error)
		return error;
	error = merge_output_check_has_records(directory, problem);
	if (!error)
		error = session_open(directory, &options, ret, problem);
	free(directory);
	return error ? error : session_symbolize(*ret, problem);
}

static bool session_has_measure(const struct session *session, enum view_measure_kind measure)
{
	uint64_t samples[MODEL_SOURCE_COUNT] = {0};

	for (uint32_t i = 0; i < session->thread_count; i++) {
		for (unsigned source = 0; source < SPOOL_SOURCE_COUNT; source++)
			samples[source] += session->threads[i].samples[source];
	}
	return measure == VIEW_MEASURE_REAL_TIME
		       ? samples[SPOOL_SOURCE_WALL] + samples[SPOOL_SOURCE_RUNNABLE] != 0
		       : view_sum_sources_of_measure(samples, measure) != 0;
}

/* Nothing on one side alone is a difference that nobody means. */
static int diff_check_measure(const struct diff_command *command, const struct session *session,
			      const char *named, struct problem *problem)
{
	static const char *const words[] = {"samples of CPU time", "samples of real time",
					    "samples of events"};

	if (command->kind == DIFF_BY_REGION || command->kind == DIFF_BY_KERNEL ||
	    session_has_measure(session, command->diff.measure))
		return 0;
	return problem_set(problem, -ENODATA, "'%s' has no %s%s", named,
			   words[command->diff.measure],
			   command->options.measure ? "" : " (--measure chooses another)");
}

static int diff_read_result(struct diff_command *command, const char *named, size_t index,
			    struct problem *problem)
{
	struct session *session = NULL;
	int error = diff_open_session(command, named, &session, problem);

	if (!error && index == 0)
		diff_init(&command->diff, (enum diff_row_kind)command->kind,
			  command->options.measure ? command->measure
						   : view_choose_default_measure(session));
	if (!error)
		error = diff_check_measure(command, session, named, problem);
	if (!error)
		error = diff_add_run(&command->diff, session, index % 2 ? DIFF_AFTER : DIFF_BEFORE,
				     named, problem);
	if (!error && incomplete_get_first(session, false).text[0])
		message_warning("'%s' is not complete: %s", named,
				incomplete_get_first(session, false).text);
	if (session)
		session_close(session);
	return error;
}

static int diff_check_has_rows(const struct diff_command *command, struct problem *problem)
{
	static const char *const missing[DIFF_BY_COUNT] = {
		[DIFF_BY_REGION] = "regions (--trace on, --wrap or the user API record some)",
		[DIFF_BY_KERNEL] = "kernels of devices",
		[DIFF_BY_RANK] = "ranks of a parallel job",
	};

	if (command->diff.names.count)
		return 0;
	return problem_set(problem, -ENODATA, "these results have no %s",
			   missing[command->kind] ? missing[command->kind] : "samples");
}

static int diff_write(struct diff_command *command, struct problem *problem)
{
	size_t columns = message_get_columns(STDOUT_FILENO);

	switch (command->format) {
	case DIFF_MARKDOWN:
		diff_write_markdown(&command->diff, stdout, command->top);
		return 0;
	case DIFF_JSON:
		return diff_write_json(&command->diff, stdout, problem);
	case DIFF_FOLDED:
		diff_write_folded(&command->diff, stdout);
		return 0;
	default:
		diff_write_text(&command->diff, stdout, command->top, columns ? columns : 100);
		return 0;
	}
}

/* 1: one holds; 0: none does. */
static int diff_check_conditions(const struct diff_command *command, struct problem *problem)
{
	int result = 0;

	for (size_t i = 0; i < command->options.condition_count; i++) {
		char text[1024];
		int holds = diff_condition_check(&command->conditions[i], &command->diff, text,
						 sizeof(text), problem);

		if (holds < 0)
			return holds;
		if (holds)
			message_error("--fail-if '%s': %s", command->options.conditions[i], text);
		result |= holds;
	}
	return result;
}

static int diff_compare_results(struct diff_command *command,
				const struct parsed_command_line *result, struct problem *problem)
{
	int error = diff_parse_options(command, problem);

	if (!error)
		error = diff_check_operands(result, problem);
	for (size_t i = 0; !error && i < result->operand_count; i++)
		error = diff_read_result(command, result->operands[i], i, problem);
	if (!error)
		error = diff_check_has_rows(command, problem);
	if (!error)
		error = diff_judge(&command->diff, problem);
	if (!error)
		error = diff_write(command, problem);
	return error ? error : diff_check_conditions(command, problem);
}

static int diff_run_command(char **arguments, size_t count)
{
	struct diff_command *command = calloc(1, sizeof(*command));
	struct parsed_command_line result = {0};
	struct problem problem;
	int status;

	if (!command) {
		message_error("out of memory");
		return EXIT_KYMO_FAILED;
	}
	result.context = &command->options;
	status = command_parse_and_read_settings(&diff_command_description, arguments, count,
						 &command->settings, &result);
	if (status == COMMAND_CONTINUE) {
		int compared = diff_compare_results(command, &result, &problem);

		if (compared < 0)
			message_error("%s", problem.text);
		status = compared < 0   ? EXIT_KYMO_FAILED
			 : compared > 0 ? EXIT_CONDITION_HOLDS
					: EXIT_SUCCESS;
		status = message_flush_stdout_or_report_error(status);
		diff_deinit(&command->diff);
		effective_deinit(&command->settings);
	}
	free(command);
	return status;
}

const struct command diff_command_description = {
	.name = "diff",
	.summary = "compare results of two builds, with a status for CI",
	.synopsis = "diff [options] BEFORE AFTER [BEFORE2 AFTER2 ...]",
	.text = "Compares what functions, call paths, lines, threads, regions, kernels or ranks "
		"took in two result directories, or in several of each side, named in turn. Rows "
		"are matched by name, so the builds may differ. With four runs and more of each "
		"side it says which changes noise does not explain; with fewer it assumes that "
		"runs differ by 5 %.\n\n"
		"The exit status is 1 where a condition of --fail-if holds, and 125 where the "
		"results cannot be compared.",
	.examples = "kymo diff before after               what changed, by function\n"
		    "kymo diff --by path before after     the same by call path\n"
		    "kymo diff a1 b1 a2 b2 a3 b3 a4 b4 --fail-if 'total>+3%'\n"
		    "                                     fails where the program became slower\n"
		    "kymo diff --format markdown a b      a table for a pull request\n",
	.grammar = &diff_grammar,
	.run = diff_run_command,
	.operands = COMMAND_OPERANDS_RESULTS,
};
