/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo report`: shows or converts the results of an earlier run.
 *
 * Without a format it prints the summary. What cannot be read is counted and said, and the rest is
 * shown: a torn file is no reason to show nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/nccl/nccl.h"
#include "analysis/open/open.h"
#include "cmd/commands.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/output_formats.h"
#include "common/settings_value.h"
#include "common/trusted_path.h"
#include "console/message.h"
#include "experiments/results.h"
#include "files/atomic_file.h"
#include "launch/result_path.h"
#include "merging/report.h"
#include "output/formats/formats.h"
#include "output/query/query.h"
#include "output/summary/summary.h"
#include "runs/coverage_results.h"
#include "runs/problems.h"
#include "runs/results.h"
#include "settings/suggest.h"

enum { REPORT_FORMATS_MAX = 32 };

/* The command's own options, as text until checked. */
struct report_option_values {
	const char *formats, *output, *table;
	const char *pid, *tid, *from, *to, *table_rows_max, *measure, *minimum_percent;
	bool per_thread;
};

/* A report under way. */
struct report_state {
	struct effective_settings settings;
	struct report_option_values options;
	struct session_options session_options;
	struct output_options output_options;
	const struct output_format *formats[REPORT_FORMATS_MAX];
	size_t format_count;
	struct session *session;
	struct coverage_joined_sessions other_sessions;
};

#define REPORT_TEXT_OPTION_FIELDS(field)                                                           \
	.argument = OPTION_ARGUMENT_REQUIRED, .apply = option_set_text,                            \
	.offset = offsetof(struct report_option_values, field)

static const struct extra_option report_extra_options[] = {
	{.name = "format",
	 .metavar = "LIST",
	 .choices = OUTPUT_FORMATS_ALL,
	 REPORT_TEXT_OPTION_FIELDS(formats),
	 .help = "Formats, by name or file name (kymo avail formats); without it, the summary."},
	{.name = "output",
	 .letter = 'o',
	 .metavar = "PATH",
	 REPORT_TEXT_OPTION_FIELDS(output),
	 .help = "File, or directory for several formats; default: standard output."},
	{.name = "table",
	 .metavar = "NAME",
	 REPORT_TEXT_OPTION_FIELDS(table),
	 .help = "A table of the database (kymo sql --help lists them); --top limits its rows."},
	{.name = "pid",
	 .metavar = "PID",
	 REPORT_TEXT_OPTION_FIELDS(pid),
	 .help = "Only this process."},
	{.name = "tid",
	 .metavar = "TID",
	 REPORT_TEXT_OPTION_FIELDS(tid),
	 .help = "Only this thread."},
	{.name = "from",
	 .metavar = "S",
	 REPORT_TEXT_OPTION_FIELDS(from),
	 .help = "Only what happened after this time, counted from the start."},
	{.name = "to",
	 .metavar = "S",
	 REPORT_TEXT_OPTION_FIELDS(to),
	 .help = "Only what happened before this time, counted from the start."},
	{.name = "top",
	 .metavar = "N",
	 REPORT_TEXT_OPTION_FIELDS(table_rows_max),
	 .help = "Rows in tables; 0: all."},
	{.name = "minimum-percent",
	 .metavar = "P",
	 REPORT_TEXT_OPTION_FIELDS(minimum_percent),
	 .help = "Leave smaller rows out of call trees."},
	{.name = "per-thread",
	 .apply = option_set_flag,
	 .offset = offsetof(struct report_option_values, per_thread),
	 .help = "Show each thread separately."},
	{.name = "measure",
	 .metavar = "cpu|wall|overflow|device",
	 .choices = "cpu,wall,overflow,device",
	 REPORT_TEXT_OPTION_FIELDS(measure),
	 .help = "Measure to show: CPU time, real time, events, or time on devices."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool report_accepts_setting(enum setting_id id)
{
	return id == SETTING_SAMPLING_INCLUDE_INLINES || id == SETTING_DEBUG_PATH ||
	       id == SETTING_SYMBOL_CACHE || id == SETTING_FLAT_PROFILE ||
	       id == SETTING_TIMELINE_PROFILE || id == SETTING_COLLAPSE_THREADS ||
	       id == SETTING_COLLAPSE_PROCESSES || id == SETTING_TRACE_COMPRESS ||
	       id == SETTING_FORCE || id == SETTING_CONFIG_FILE || id == SETTING_COLOR;
}

static const struct options_grammar report_grammar = {
	.command = "report",
	.extra_options = report_extra_options,
	.extra_option_count = ARRAY_SIZE(report_extra_options),
	.accepts_setting = report_accepts_setting,
};

static int report_parse_number(const char *option, const char *text, double maximum, double *ret,
			       struct problem *problem)
{
	if (!text || (setting_parse_number(setting_slice_from_text(text), ret) == SETTING_VALID &&
		      *ret >= 0 && *ret <= maximum))
		return 0;
	return problem_set(problem, -EINVAL, "%s: '%s' is not a number from 0 to %.10g", option,
			   text, maximum);
}

static int report_parse_time(const char *option, const char *text, uint64_t *ret,
			     struct problem *problem)
{
	int64_t ns = 0;

	if (text &&
	    (setting_parse_duration(setting_slice_from_text(text), &ns) != SETTING_VALID || ns < 0))
		return problem_set(problem, -EINVAL, "%s: '%s' is not a time such as 1.5 or 200ms",
				   option, text);
	*ret = (uint64_t)ns;
	return 0;
}

static int report_parse_measure(struct report_state *report, struct problem *problem)
{
	static const char measures[] = "cpu,wall,overflow,device";
	const char *text = report->options.measure;
	struct suggestion suggestion;
	unsigned index;
	char hint[64];

	if (!text)
		return 0;
	if (setting_parse_choice(setting_slice_from_text(text), measures, &index) ==
	    SETTING_VALID) {
		report->output_options.measure = (enum view_measure_kind)index;
		report->output_options.is_measure_given = true;
		return 0;
	}
	suggestion_init(&suggestion, text, strlen(text));
	suggestion_offer_list(&suggestion, measures);
	return problem_set(problem, -EINVAL,
			   "--measure: '%s' is not cpu, wall, overflow or device%s", text,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

static int report_parse_filters(struct report_state *report, struct problem *problem)
{
	const struct report_option_values *options = &report->options;
	double pid = 0, tid = 0, top = report->output_options.top, minimum = 0;
	int error = report_parse_number("--pid", options->pid, 4294967295., &pid, problem);

	if (!error)
		error = report_parse_number("--tid", options->tid, 4294967295., &tid, problem);
	if (!error)
		error = report_parse_number("--top", options->table_rows_max, 1e9, &top, problem);
	if (!error)
		error = report_parse_number("--minimum-percent", options->minimum_percent, 100,
					    &minimum, problem);
	if (!error)
		error = report_parse_time("--from", options->from, &report->session_options.from_ns,
					  problem);
	if (!error)
		error = report_parse_time("--to", options->to, &report->session_options.to_ns,
					  problem);
	if (!error && options->to &&
	    report->session_options.to_ns <= report->session_options.from_ns)
		error = problem_set(problem, -EINVAL, "--to must be later than --from");
	report->session_options.filter_process_pid = (uint32_t)pid;
	report->session_options.filter_thread_tid = (uint32_t)tid;
	report->output_options.top = (unsigned)top;
	report->output_options.is_top_given = options->table_rows_max;
	report->output_options.minimum_percent = minimum;
	report->output_options.is_minimum_given = options->minimum_percent;
	report->output_options.per_thread |= options->per_thread;
	return error ? error : report_parse_measure(report, problem);
}

static const struct output_format *report_find_format(struct text_slice word)
{
	for (size_t i = 0; i < output_format_count; i++) {
		if (setting_slice_equals_word(word, output_formats[i]->name) ||
		    setting_slice_equals_word(word, output_formats[i]->file_name))
			return output_formats[i];
	}
	return NULL;
}

static int report_parse_formats(struct report_state *report, struct problem *problem)
{
	struct text_slice rest = setting_slice_from_text(report->options.formats), word;

	while (setting_next_list_word(&rest, &word)) {
		const struct output_format *format = report_find_format(word);
		struct suggestion suggestion;
		char hint[64];

		if (format && report->format_count < REPORT_FORMATS_MAX) {
			report->formats[report->format_count++] = format;
			continue;
		}
		suggestion_init(&suggestion, word.text, word.length);
		for (size_t i = 0; i < output_format_count; i++)
			suggestion_offer(&suggestion, output_formats[i]->name,
					 strlen(output_formats[i]->name));
		return problem_set(problem, -EINVAL,
				   "unknown format '%.*s'%s (kymo avail formats lists them)",
				   (int)(word.length < 100 ? word.length : 100), word.text,
				   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
	}
	if (report->format_count && report->options.table)
		return problem_set(problem, -EINVAL, "either --format or --table");
	if (report->format_count > 1 && !report->options.output)
		return problem_set(problem, -EINVAL, "several formats need a directory: -o DIR");
	return 0;
}

/* A run with USE_TEMPORARY_FILES=off leaves its result files, but nothing to make others from. */
static int report_check_spool_exists(const char *directory, struct problem *problem)
{
	char *spool;
	bool missing;

	if (asprintf(&spool, "%s/spool", directory) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	missing = access(spool, F_OK) != 0;
	free(spool);
	return missing ? problem_set(problem, -ENOENT,
				     "'%s' has result files but no recorded data "
				     "(USE_TEMPORARY_FILES=off, or spool/ was removed)",
				     directory)
		       : 0;
}

static int report_set_no_data_problem(const struct report_state *report, const char *directory,
				      struct problem *problem)
{
	const struct session *session = report->session;
	const struct report_option_values *options = &report->options;
	const char *why = session->problem_count ? session->problems[0] : NULL;

	if (options->pid || options->tid || options->from || options->to)
		return problem_set(problem, -ENODATA, "no data in '%s' matches the filters",
				   directory);
	if (session_get_nccl_data(session) && session_get_nccl_data(session)->problem_count)
		why = session_get_nccl_data(session)->problems[0];
	return problem_set(problem, -ENODATA, "no readable data in '%s'%s%s", directory,
			   why ? ": " : "", why ? why : "");
}

static bool report_session_is_empty(const struct session *session)
{
	return !session->process_count &&
	       (!session_get_nccl_data(session) || !session_get_nccl_data(session)->process_count);
}

static int report_open_session(struct report_state *report, const char *named,
			       struct problem *problem)
{
	char *directory;
	int error = result_directory_find_existing(named, &directory, problem);

	if (error)
		return error;
	error = report_check_spool_exists(directory, problem);
	if (!error)
		error = session_open(directory, &report->session_options, &report->session,
				     problem);
	if (!error && (report_session_is_empty(report->session) ||
		       (report->options.tid && !report->session->thread_count)))
		error = report_set_no_data_problem(report, directory, problem);
	free(directory);
	return error ? error : session_symbolize(report->session, problem);
}

static int report_write_table(const struct report_state *report, FILE *stream,
			      struct problem *problem)
{
	struct query_options options = {.columns = message_get_columns(fileno(stream))};
	size_t rows = report->options.table_rows_max ? report->output_options.top : 0;
	char sql[128];
	int error = query_format_table_sql(report->options.table, rows, sql, sizeof(sql), problem);

	return error ? error : query_session(report->session, sql, &options, stream, problem);
}

static int report_write_to_stream(const struct report_state *report, FILE *stream,
				  struct problem *problem)
{
	struct output_options options = report->output_options;
	int error;

	options.columns = message_get_columns(fileno(stream));
	if (report->options.table)
		error = report_write_table(report, stream, problem);
	else if (report->format_count)
		error = report->formats[0]->write(report->session, &options, stream, problem);
	else
		error = output_write_summary(report->session, &options, stream,
					     message_uses_color(fileno(stream)), problem);
	if (!error && fflush(stream))
		error = problem_set(problem, -errno, "cannot write the report: %s",
				    strerror(errno));
	if (!error && ferror(stream))
		error = problem_set(problem, -EIO, "cannot write the report");
	return error;
}

/* What is no file, or leads to another place, is written as it is: renaming would put a file where
 * /dev/null or /dev/stdout was. */
static int report_write_without_renaming(const struct report_state *report, const char *path,
					 struct problem *problem)
{
	FILE *stream = fopen(path, "we");
	int error;

	if (!stream)
		return problem_set(problem, -errno, "cannot write '%s': %s", path, strerror(errno));
	error = report_write_to_stream(report, stream, problem);
	if (fclose(stream) && !error)
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	return error;
}

/* Links, pipes and devices are written to in place: not where somebody else put them. */
static int report_check_special_file_owner(const char *path, struct problem *problem)
{
	struct stat status;

	if (lstat(path, &status) || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ||
	    is_trusted_owner(status.st_uid))
		return 0;
	return problem_set(problem, -EPERM,
			   "will not write to '%s': it is a %s of user %u; choose another name",
			   path, S_ISLNK(status.st_mode) ? "symbolic link" : "pipe or device",
			   (unsigned)status.st_uid);
}

static int report_write_to_stream_callback(const void *report, FILE *stream,
					   struct problem *problem)
{
	return report_write_to_stream(report, stream, problem);
}

/* Never over a file that is there, unless that is asked for. */
static int report_write_to_file(const struct report_state *report, const char *path,
				struct problem *problem)
{
	struct stat status;
	int error = report_check_special_file_owner(path, problem);

	if (error)
		return error;
	if (!stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		return report_write_without_renaming(report, path, problem);
	if (!effective_setting_bool(&report->settings, SETTING_FORCE) && !access(path, F_OK))
		return problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it", path);
	if (!lstat(path, &status) && S_ISLNK(status.st_mode))
		return report_write_without_renaming(report, path, problem);
	return atomic_file_write_by_callback(path, report_write_to_stream_callback, report, NULL,
					     problem);
}

/* Some formats have a directory of their own. */
static int report_make_parent_directory(const char *file, struct problem *problem)
{
	char *parent = strndup(file, (size_t)(strrchr(file, '/') - file));
	int error = parent ? result_make_directories(parent) : -ENOMEM;

	free(parent);
	if (error)
		problem_set(problem, error, "cannot make the directory of '%s': %s", file,
			    strerror(-error));
	return error;
}

static int report_write_to_directory(struct report_state *report, const char *path,
				     struct problem *problem)
{
	bool force = effective_setting_bool(&report->settings, SETTING_FORCE);
	struct result_place place;
	int error = result_directory_open_or_create(path, &place, problem);

	if (error)
		return error;
	if (place.descriptor >= 0)
		path = place.path;
	for (size_t i = 0; !error && i < report->format_count; i++) {
		char *file;

		if (asprintf(&file, "%s/%s", path, report->formats[i]->file_name) < 0)
			return problem_set(problem, -ENOMEM, "out of memory");
		if (!force && !access(file, F_OK))
			error = problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it",
					    file);
		else if (!(error = report_make_parent_directory(file, problem)))
			error = output_write_file(report->session, report->formats[i],
						  &report->output_options, path, "", NULL, problem);
		free(file);
	}
	result_place_deinit(&place);
	return error;
}

static int report_write_outputs(struct report_state *report, struct problem *problem)
{
	const char *path = report->options.output;
	struct stat status;

	if (!path || !strcmp(path, "-")) {
		if (report->format_count && report->formats[0]->is_binary && isatty(STDOUT_FILENO))
			return problem_set(problem, -EINVAL,
					   "%s is a binary format: redirect it, or use -o FILE",
					   report->formats[0]->name);
		return report_write_to_stream(report, stdout, problem);
	}
	if (report->format_count && (report->format_count > 1 || path[strlen(path) - 1] == '/' ||
				     (!stat(path, &status) && S_ISDIR(status.st_mode))))
		return report_write_to_directory(report, path, problem);
	return report_write_to_file(report, path, problem);
}

/* Only some formats can join several results. */
static int report_check_formats_can_join_results(const struct report_state *report,
						 const struct parsed_command_line *result,
						 struct problem *problem)
{
	bool joins = report->format_count > 0;

	for (size_t i = 0; i < report->format_count; i++)
		joins &= report->formats[i]->can_join_sessions;
	return result->operand_count > 1 && !joins
		       ? problem_set(problem, -EINVAL, "one result directory only (not also '%s')",
				     result->operands[1])
		       : 0;
}

/* What has no times cannot be cut to a part of them. */
static int report_check_formats_know_times(const struct report_state *report,
					   struct problem *problem)
{
	if (!report->session_options.from_ns && !report->session_options.to_ns)
		return 0;
	for (size_t i = 0; i < report->format_count; i++) {
		if (report->formats[i]->has_whole_run_only)
			return problem_set(problem, -EINVAL,
					   "'%s' shows the whole run only: leave out --from and "
					   "--to",
					   report->formats[i]->name);
	}
	return 0;
}

static int report_open_other_sessions(struct report_state *report,
				      const struct parsed_command_line *result,
				      struct problem *problem)
{
	int error;

	if (result->operand_count < 2)
		return 0;
	error = coverage_open_joined_sessions(result->operands + 1, result->operand_count - 1,
					      &report->session_options, &report->other_sessions,
					      problem);
	report->output_options.other_sessions = report->other_sessions.sessions;
	report->output_options.other_session_count = report->other_sessions.count;
	return error;
}

/* For experiments, the table of predictions is what is asked for where nothing else is; for a
 * merged job, its tables. 1: this is no such result. */
static int report_write_other_kind_of_result(const struct report_state *report, const char *named,
					     struct problem *problem)
{
	const struct report_option_values *options = &report->options;
	const struct merge_report_request request = {
		.formats = options->formats,
		.output = options->output,
		.top = options->table_rows_max ? report->output_options.top
					       : MERGE_REPORT_TABLE_ROWS,
		.force = effective_setting_bool(&report->settings, SETTING_FORCE),
		.wants_records = options->table || options->pid || options->tid || options->from ||
				 options->to};
	char *directory;
	int error = result_directory_find_existing(named, &directory, problem);

	if (error)
		return error;
	error = 1;
	if (!options->formats && !options->table && !options->output &&
	    causal_results_exist_in(directory))
		error = causal_results_print_report(directory, stdout, problem);
	if (error > 0)
		error = merge_report_job(directory, &request, problem);
	free(directory);
	return error;
}

static int report_open_and_write_outputs(struct report_state *report,
					 const struct parsed_command_line *result,
					 struct problem *problem)
{
	const char *named = result->operand_count ? result->operands[0] : NULL;
	int error;

	report->session_options = results_settings_to_session_options(&report->settings);
	report->output_options = results_settings_to_output_options(&report->settings);
	error = report_parse_filters(report, problem);
	if (!error)
		error = report_parse_formats(report, problem);
	if (!error)
		error = report_check_formats_can_join_results(report, result, problem);
	if (!error)
		error = report_check_formats_know_times(report, problem);
	if (!error)
		error = report_write_other_kind_of_result(report, named, problem);
	if (error <= 0)
		return error;
	error = report_open_session(report, named, problem);
	if (!error)
		error = report_open_other_sessions(report, result, problem);
	if (error)
		return error;
	if (report->format_count || report->options.table)
		results_print_problems(report->session);
	return report_write_outputs(report, problem);
}

static int report_run_command(char **arguments, size_t count)
{
	struct report_state report = {.session = NULL};
	struct parsed_command_line result = {.context = &report.options};
	struct problem problem;
	int status = command_parse_and_read_settings(&report_command_description, arguments, count,
						     &report.settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	status = EXIT_SUCCESS;
	if (report_open_and_write_outputs(&report, &result, &problem)) {
		message_error("%s", problem.text);
		status = EXIT_KYMO_FAILED;
	}
	coverage_close_joined_sessions(&report.other_sessions);
	if (report.session)
		session_close(report.session);
	effective_deinit(&report.settings);
	return status;
}

const struct command report_command_description = {
	.name = "report",
	.summary = "show or convert the results of an earlier run",
	.synopsis = "report [options] [DIRECTORY ...]",
	.text = "Reads the result directory of an earlier run (without a name: the newest "
		"kymo-*-output/latest in the current directory) and prints its summary, or writes "
		"it in other formats. It also reads directories of runs that were killed or are "
		"still running: it shows everything readable and counts what is not. The coverage "
		"formats join the results of several runs.",
	.examples = "kymo report                          the newest run here\n"
		    "kymo report --format text DIR        the call tree\n"
		    "kymo report --format html -o f.html  the flame graph, into a file\n"
		    "kymo report --format lcov RUN1 RUN2  coverage of two runs together\n"
		    "kymo report --pid 4711 --from 2s     one process, from the third second on\n",
	.grammar = &report_grammar,
	.run = report_run_command,
	.operands = COMMAND_OPERANDS_RESULTS,
};
