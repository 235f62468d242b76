/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo annotate`: a function's source lines and instructions with their costs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "cmd/commands.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "merging/output.h"
#include "output/annotate/annotate.h"
#include "output/format.h"
#include "runs/problems.h"
#include "runs/results.h"
#include "settings/suggest.h"

#define ANNOTATE_FORMAT_WORDS  "text,json"
#define ANNOTATE_MEASURE_WORDS "cpu,wall,overflow,device"
#define CONTEXT_DEFAULT        5
#define CONTEXT_MAX            64
#define CANDIDATES_SHOWN_MAX   20u
#define NEAR_NAMES_MAX         5u

enum { ANNOTATE_TEXT, ANNOTATE_JSON };

struct annotate_option_values {
	const char *format, *measure, *context;
	bool source, assembly;
};

struct annotate_command {
	struct effective_settings settings;
	struct annotate_option_values values;
	struct annotation_options options;
	const char *result, *function;
	unsigned format, measure;
	struct session *session;
};

#define ANNOTATE_TEXT_OPTION_FIELDS(field)                                                         \
	.argument = OPTION_ARGUMENT_REQUIRED, .apply = option_set_text,                            \
	.offset = offsetof(struct annotate_option_values, field)

static const struct extra_option annotate_extra_options[] = {
	{.name = "source",
	 .apply = option_set_flag,
	 .offset = offsetof(struct annotate_option_values, source),
	 .help = "Source lines only; without --source and --asm, both."},
	{.name = "asm",
	 .apply = option_set_flag,
	 .offset = offsetof(struct annotate_option_values, assembly),
	 .help = "Instructions only."},
	{.name = "measure",
	 .metavar = "cpu|wall|overflow|device",
	 .choices = ANNOTATE_MEASURE_WORDS,
	 ANNOTATE_TEXT_OPTION_FIELDS(measure),
	 .help = "Measure to show: CPU time, real time, events, or time on devices; default: "
		 "that of the summary."},
	{.name = "context",
	 .metavar = "N",
	 ANNOTATE_TEXT_OPTION_FIELDS(context),
	 .help = "Lines and instructions to show around those with a cost, 0 to 64; default: 5."},
	{.name = "format",
	 .metavar = "FORMAT",
	 .choices = ANNOTATE_FORMAT_WORDS,
	 ANNOTATE_TEXT_OPTION_FIELDS(format),
	 .help = "text or json; default: text."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool annotate_accepts_setting(enum setting_id id)
{
	return id == SETTING_SAMPLING_INCLUDE_INLINES || id == SETTING_DEBUG_PATH ||
	       id == SETTING_SYMBOL_CACHE || id == SETTING_CONFIG_FILE || id == SETTING_COLOR;
}

static const struct options_grammar annotate_grammar = {
	.command = "annotate",
	.extra_options = annotate_extra_options,
	.extra_option_count = ARRAY_SIZE(annotate_extra_options),
	.accepts_setting = annotate_accepts_setting,
};

/* ---- options ---- */

static int annotate_parse_choice(const char *option, const char *text, const char *words,
				 unsigned *ret, struct problem *problem)
{
	struct suggestion suggestion;
	char hint[64];

	if (!text ||
	    setting_parse_choice(setting_slice_from_text(text), words, ret) == SETTING_VALID)
		return 0;
	suggestion_init(&suggestion, text, strlen(text));
	suggestion_offer_list(&suggestion, words);
	return problem_set(problem, -EINVAL, "%s: '%s' is not one of %s%s", option, text, words,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

static int annotate_parse_options(struct annotate_command *command, struct problem *problem)
{
	const struct annotate_option_values *values = &command->values;
	double context = CONTEXT_DEFAULT;
	int error = annotate_parse_choice("--format", values->format, ANNOTATE_FORMAT_WORDS,
					  &command->format, problem);

	if (!error)
		error = annotate_parse_choice("--measure", values->measure, ANNOTATE_MEASURE_WORDS,
					      &command->measure, problem);
	if (error)
		return error;
	if (values->context &&
	    (setting_parse_number(setting_slice_from_text(values->context), &context) !=
		     SETTING_VALID ||
	     context < 0 || context > CONTEXT_MAX || context != (double)(size_t)context))
		return problem_set(problem, -EINVAL,
				   "--context: '%s' is not a whole number of lines from 0 to %d",
				   values->context, CONTEXT_MAX);
	command->options = (struct annotation_options){
		.wants_source = values->source || !values->assembly,
		.wants_assembly = values->assembly || !values->source,
		.context = (size_t)context,
		.columns = message_get_columns(STDOUT_FILENO),
		.debug_path = effective_setting_text(&command->settings, SETTING_DEBUG_PATH)};
	return 0;
}

/* [FUNCTION] [DIRECTORY]: a single one is a result where a directory is called so. */
static int annotate_take_operands(struct annotate_command *command,
				  const struct parsed_command_line *result, struct problem *problem)
{
	struct stat status;

	if (result->operand_count > 2)
		return problem_set(problem, -EINVAL,
				   "kymo annotate takes a function and a result: kymo annotate "
				   "FUNCTION DIRECTORY");
	if (result->operand_count == 2) {
		command->function = result->operands[0];
		command->result = result->operands[1];
	} else if (result->operand_count == 1) {
		if (stat(result->operands[0], &status) == 0 && S_ISDIR(status.st_mode))
			command->result = result->operands[0];
		else
			command->function = result->operands[0];
	}
	return 0;
}

static int annotate_open_session(struct annotate_command *command, struct problem *problem)
{
	struct session_options options = results_settings_to_session_options(&command->settings);
	_cleanup_(cleanup_free) char *directory = NULL;
	int error = result_directory_find_existing(command->result, &directory, problem);

	if (!error)
		error = merge_output_check_has_records(directory, problem);
	if (!error)
		error = session_open(directory, &options, &command->session, problem);
	if (!error)
		error = session_symbolize(command->session, problem);
	if (error)
		return error;
	results_print_problems(command->session);
	if (!command->session->node_count)
		return problem_set(problem, -ENODATA, "'%s' has no samples: nothing to annotate",
				   directory);
	command->options.measure = command->values.measure
					   ? (enum view_measure_kind)command->measure
					   : view_choose_default_measure(command->session);
	return 0;
}

/* ---- the function ---- */

static bool contains_word(const char *text, const char *word)
{
	return strcasestr(text, word) != NULL;
}

/* "; did you mean …?", and names that contain what was given. */
static int annotate_say_unknown(const struct annotate_command *command, struct problem *problem)
{
	const struct session *session = command->session;
	const char *seen[NEAR_NAMES_MAX];
	char hint[256], near[1024] = "";
	struct suggestion suggestion;
	size_t count = 0;

	suggestion_init(&suggestion, command->function, strlen(command->function));
	for (uint32_t i = 0; i < session->frame_count; i++)
		suggestion_offer(&suggestion, session->frames[i].function,
				 strlen(session->frames[i].function));
	for (uint32_t i = 0; i < session->frame_count && count < NEAR_NAMES_MAX; i++) {
		const char *name = session->frames[i].function;
		size_t known = 0, used = strlen(near);
		while (known < count && strcmp(seen[known], name) != 0)
			known++;
		if (known < count || !contains_word(name, command->function) ||
		    (suggestion.best_candidate && strcmp(suggestion.best_candidate, name) == 0))
			continue;
		seen[count++] = name;
		snprintf(near + used, sizeof(near) - used, "%s'%.150s'",
			 used ? ", " : "; names that contain it: ", name);
	}
	return problem_set(problem, -ENOENT, "no function '%s' has samples in this result%s%s",
			   command->function,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)), near);
}

/* What tells this function from the others: its module, or the file of interpreted code. */
static void annotate_print_candidate(const struct annotate_command *command,
				     const struct annotated_function *function)
{
	const struct session *session = command->session;
	const struct model_frame *frame = &session->frames[function->frame];
	const char *module = frame->module == MODEL_ENTRY_INDEX_NONE
				     ? NULL
				     : session->modules[frame->module].name;
	uint32_t line = frame->function_line ? frame->function_line : frame->line;
	struct quantity_text self = quantity_from_measure(function->self, command->options.measure);

	if (frame->file)
		message_error("  %10s  %s%s%s  (%s:%u)", self.text, frame->function,
			      module ? "@" : "", module ? module : "", frame->file, line);
	else
		message_error("  %10s  %s%s%s", self.text, frame->function, module ? "@" : "",
			      module ? module : "");
}

static int annotate_say_ambiguous(const struct annotate_command *command,
				  const struct annotated_function *functions, size_t count,
				  struct problem *problem)
{
	message_error("'%s' means %zu functions:", command->function, count);
	for (size_t i = 0; i < count && i < CANDIDATES_SHOWN_MAX; i++)
		annotate_print_candidate(command, &functions[i]);
	if (count > CANDIDATES_SHOWN_MAX)
		message_error("  … and %zu more", count - CANDIDATES_SHOWN_MAX);
	return problem_set(problem, -EINVAL,
			   "name one of them: the whole name, NAME@MODULE, or FILE:NAME");
}

static int annotate_find_function(const struct annotate_command *command,
				  struct annotated_function *ret, struct problem *problem)
{
	_cleanup_(cleanup_free) struct annotated_function *functions = NULL;
	enum view_measure_kind measure = command->options.measure;
	size_t count = 0;
	int error;

	if (!command->function) {
		error = annotation_find_hottest_function(command->session, measure, ret);
		if (error > 0)
			return problem_set(problem, -ENODATA,
					   "no function has any of this measure in this result "
					   "(--measure chooses another)");
	} else {
		error = annotation_find_functions(command->session, measure, command->function,
						  &functions, &count);
	}
	if (error < 0)
		return problem_set(problem, error, "out of memory");
	if (!command->function)
		return 0;
	if (count == 0)
		return annotate_say_unknown(command, problem);
	if (count > 1)
		return annotate_say_ambiguous(command, functions, count, problem);
	*ret = functions[0];
	return 0;
}

static int annotate_function(struct annotate_command *command, struct problem *problem)
{
	struct annotated_function function;
	struct annotation annotation;
	int error = annotate_find_function(command, &function, problem);

	if (error)
		return error;
	error = annotation_init(&annotation, command->session, &function, &command->options);
	if (error)
		error = problem_set(problem, error, "cannot annotate: %s", strerror(-error));
	else if (command->format == ANNOTATE_JSON)
		error = annotation_write_json(&annotation, stdout, problem);
	else
		annotation_write_text(&annotation, stdout);
	annotation_deinit(&annotation);
	return error;
}

static int annotate_run_command(char **arguments, size_t count)
{
	struct annotate_command command = {.session = NULL};
	struct parsed_command_line result = {.context = &command.values};
	struct problem problem;
	int status = command_parse_and_read_settings(&annotate_command_description, arguments,
						     count, &command.settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	status = EXIT_SUCCESS;
	int error = annotate_parse_options(&command, &problem);
	if (!error)
		error = annotate_take_operands(&command, &result, &problem);
	if (!error)
		error = annotate_open_session(&command, &problem);
	if (!error)
		error = annotate_function(&command, &problem);
	if (error) {
		message_error("%s", problem.text);
		status = EXIT_KYMO_FAILED;
	}
	if (command.session)
		session_close(command.session);
	effective_deinit(&command.settings);
	return message_flush_stdout_or_report_error(status);
}

const struct command annotate_command_description = {
	.name = "annotate",
	.summary = "show a function's source lines and instructions with costs",
	.synopsis = "annotate [options] [FUNCTION] [DIRECTORY]",
	.text = "Prints the source lines and the instructions of one function with what was spent "
		"in each, from a result directory (without a name: the newest "
		"kymo-*-output/latest in the current directory). Without FUNCTION it takes the one "
		"of the program's own code in which, with what libraries did for it, the most was "
		"spent. A function of Python shows the lines of its file.\n\n"
		"FUNCTION is a whole name, a name without parameters, namespaces or classes, "
		"NAME@MODULE, or FILE:NAME. Where a single name is that of a directory, it is the "
		"result. Files that have moved are looked for below the directories of "
		"--debug-path as well.",
	.examples = "kymo annotate                        the hottest function of the newest run\n"
		    "kymo annotate parse DIR              one function\n"
		    "kymo annotate --asm --measure overflow 'ns::parse(int)' DIR\n"
		    "kymo annotate parse@libinput.so DIR  the one of this library\n"
		    "kymo annotate tokens.py:parse DIR    the one of this file\n",
	.grammar = &annotate_grammar,
	.run = annotate_run_command,
	.operands = COMMAND_OPERANDS_RESULTS,
};
