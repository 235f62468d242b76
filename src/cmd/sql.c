/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo sql`: SQL over the results of a run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "cmd/commands.h"
#include "common/array.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "merging/output.h"
#include "output/incomplete/incomplete.h"
#include "output/query/query.h"
#include "runs/results.h"
#include "settings/suggest.h"

struct sql_option_values {
	const char *format;
};

struct sql_command {
	struct effective_settings settings;
	struct sql_option_values values;
	struct query_options options;
	const char *result, *query;
};

static const struct extra_option sql_extra_options[] = {
	{.name = "format",
	 .metavar = "FORMAT",
	 .choices = QUERY_FORMAT_WORDS,
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .apply = option_set_text,
	 .offset = offsetof(struct sql_option_values, format),
	 .help = "table, csv or json; default: table."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool sql_accepts_setting(enum setting_id id)
{
	return id == SETTING_SAMPLING_INCLUDE_INLINES || id == SETTING_DEBUG_PATH ||
	       id == SETTING_SYMBOL_CACHE || id == SETTING_CONFIG_FILE || id == SETTING_COLOR;
}

static const struct options_grammar sql_grammar = {
	.command = "sql",
	.extra_options = sql_extra_options,
	.extra_option_count = ARRAY_SIZE(sql_extra_options),
	.accepts_setting = sql_accepts_setting,
};

static int sql_parse_format(struct sql_command *command, struct problem *problem)
{
	const char *text = command->values.format;
	struct suggestion suggestion;
	unsigned format = QUERY_TABLE;
	char hint[64];

	if (text && setting_parse_choice(setting_slice_from_text(text), QUERY_FORMAT_WORDS,
					 &format) != SETTING_VALID) {
		suggestion_init(&suggestion, text, strlen(text));
		suggestion_offer_list(&suggestion, QUERY_FORMAT_WORDS);
		return problem_set(problem, -EINVAL, "--format: '%s' is not table, csv or json%s",
				   text,
				   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
	}
	command->options.format = (enum query_format)format;
	return 0;
}

/* [RESULT] QUERY: a query has a blank in it, a single word is taken for a result. */
static int sql_take_operands(struct sql_command *command, const struct parsed_command_line *result,
			     struct problem *problem)
{
	if (result->operand_count == 2) {
		command->result = result->operands[0];
		command->query = result->operands[1];
	} else if (result->operand_count == 1 && strpbrk(result->operands[0], " \t\n") &&
		   access(result->operands[0], F_OK) != 0) {
		command->query = result->operands[0];
	} else {
		return problem_set(
			problem, -EINVAL,
			"kymo sql takes a result and one query: kymo sql RESULT 'select * "
			"from functions'");
	}
	return 0;
}

static int sql_query_directory(struct sql_command *command, struct problem *problem)
{
	struct session_options options = results_settings_to_session_options(&command->settings);
	struct session *session = NULL;
	char *directory;
	int error = result_directory_find_existing(command->result, &directory, problem);

	if (error)
		return error;
	error = merge_output_check_has_records(directory, problem);
	if (!error)
		error = session_open(directory, &options, &session, problem);
	free(directory);
	if (!error)
		error = session_symbolize(session, problem);
	if (!error && incomplete_get_first(session, false).text[0])
		message_warning("the results are not complete: %s",
				incomplete_get_first(session, false).text);
	if (!error)
		error = query_session(session, command->query, &command->options, stdout, problem);
	if (session)
		session_close(session);
	return error;
}

static int sql_query(struct sql_command *command, const struct parsed_command_line *result,
		     struct problem *problem)
{
	struct stat status;
	int error = sql_parse_format(command, problem);

	if (!error)
		error = sql_take_operands(command, result, problem);
	if (error)
		return error;
	command->options.columns = message_get_columns(STDOUT_FILENO);
	if (command->result && !stat(command->result, &status) && S_ISREG(status.st_mode))
		return query_database_file(command->result, command->query, &command->options,
					   stdout, problem);
	return sql_query_directory(command, problem);
}

static int sql_run_command(char **arguments, size_t count)
{
	struct sql_command command = {0};
	struct parsed_command_line result = {.context = &command.values};
	struct problem problem;
	int status = command_parse_and_read_settings(&sql_command_description, arguments, count,
						     &command.settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	status = EXIT_SUCCESS;
	if (sql_query(&command, &result, &problem)) {
		message_error("%s", problem.text);
		status = EXIT_KYMO_FAILED;
	}
	effective_deinit(&command.settings);
	return message_flush_stdout_or_report_error(status);
}

const struct command sql_command_description = {
	.name = "sql",
	.summary = "query the results of an earlier run with SQL",
	.synopsis = "sql [options] [RESULT] QUERY",
	.text = "Runs one query of SQLite over a result directory (without a name: the newest "
		"kymo-*-output/latest in the current directory), or over a results.db that "
		"--format db wrote. Tables: metadata, processes, threads, frames, nodes, samples, "
		"stacks, functions, lines, addresses, regions, calls, kernels, copies, "
		"device_work, metrics, "
		"losses, waits, cpu_times, and those of NCCL. docs/reference/database.md has their "
		"columns.",
	.examples = "kymo sql DIR 'select function, self_cpu_ns / 1e6 as ms from functions\n"
		    "              order by 2 desc limit 10'\n"
		    "kymo sql --format csv DIR 'select * from stacks'  for a spreadsheet\n"
		    "kymo report --format db -o results.db DIR         for DuckDB and pandas\n",
	.grammar = &sql_grammar,
	.run = sql_run_command,
	.operands = COMMAND_OPERANDS_RESULTS,
};
