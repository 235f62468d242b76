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

#include "analysis/gpu.h"
#include "analysis/nccl.h"
#include "cmd/causal_results.h"
#include "cmd/command.h"
#include "cmd/coverage.h"
#include "cmd/message.h"
#include "cmd/nearest.h"
#include "cmd/result_path.h"
#include "cmd/results.h"
#include "common/settings_value.h"
#include "output/format.h"

enum { REPORT_FORMATS_MAX = 32, REPORT_PROBLEMS_SHOWN = 8 };

/* The command's own options, as text until checked. */
struct report_options {
	const char *formats, *output;
	const char *pid, *tid, *from, *to, *top, *measure, *minimum;
	bool per_thread;
};

/* A report under way. */
struct report {
	struct resolved settings;
	struct report_options options;
	struct session_options session_options;
	struct output_options output_options;
	const struct output_format *formats[REPORT_FORMATS_MAX];
	size_t format_count;
	struct session *session;
	struct coverage_others others;
};

#define REPORT_TEXT(field)                                                                         \
	.argument = OPTION_REQUIRED, .apply = option_set_text,                                     \
	.offset = offsetof(struct report_options, field)

static const struct option_extra report_extras[] = {
	{.name = "format",
	 .metavar = "LIST",
	 REPORT_TEXT(formats),
	 .help = "Formats, by name or file name (kymo avail formats); without it, the summary."},
	{.name = "output",
	 .letter = 'o',
	 .metavar = "PATH",
	 REPORT_TEXT(output),
	 .help = "File, or directory for several formats; default: standard output."},
	{.name = "pid", .metavar = "PID", REPORT_TEXT(pid), .help = "Only this process."},
	{.name = "tid", .metavar = "TID", REPORT_TEXT(tid), .help = "Only this thread."},
	{.name = "from",
	 .metavar = "S",
	 REPORT_TEXT(from),
	 .help = "Only what happened after this time since the start."},
	{.name = "to",
	 .metavar = "S",
	 REPORT_TEXT(to),
	 .help = "Only what happened before this time since the start."},
	{.name = "top", .metavar = "N", REPORT_TEXT(top), .help = "Rows in tables; 0: all."},
	{.name = "minimum-percent",
	 .metavar = "P",
	 REPORT_TEXT(minimum),
	 .help = "Leave smaller rows out of trees."},
	{.name = "per-thread",
	 .apply = option_set_flag,
	 .offset = offsetof(struct report_options, per_thread),
	 .help = "Threads apart."},
	{.name = "measure",
	 .metavar = "cpu|wall|overflow",
	 REPORT_TEXT(measure),
	 .help = "What counts: CPU time, real time, or events."},
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static bool report_accepts(enum setting_id id)
{
	return id == SETTING_SAMPLING_INCLUDE_INLINES || id == SETTING_DEBUG_PATH ||
	       id == SETTING_SYMBOL_CACHE || id == SETTING_FLAT_PROFILE ||
	       id == SETTING_TIMELINE_PROFILE || id == SETTING_COLLAPSE_THREADS ||
	       id == SETTING_COLLAPSE_PROCESSES || id == SETTING_TRACE_COMPRESS ||
	       id == SETTING_FORCE || id == SETTING_CONFIG_FILE || id == SETTING_COLOR;
}

static const struct options_grammar report_grammar = {
	.command = "report",
	.extras = report_extras,
	.extra_count = sizeof(report_extras) / sizeof(report_extras[0]),
	.accepts = report_accepts,
};

static int report_number(const char *option, const char *text, double maximum, double *ret,
			 struct problem *problem)
{
	if (!text || (setting_parse_number(setting_slice(text), ret) == SETTING_VALID &&
		      *ret >= 0 && *ret <= maximum))
		return 0;
	return problem_set(problem, -EINVAL, "%s: '%s' is not a number from 0 to %.10g", option,
			   text, maximum);
}

static int report_time(const char *option, const char *text, uint64_t *ret, struct problem *problem)
{
	int64_t ns = 0;

	if (text && (setting_parse_duration(setting_slice(text), &ns) != SETTING_VALID || ns < 0))
		return problem_set(problem, -EINVAL, "%s: '%s' is not a time such as 1.5 or 200ms",
				   option, text);
	*ret = (uint64_t)ns;
	return 0;
}

static int report_measure(struct report *report, struct problem *problem)
{
	static const char measures[] = "cpu,wall,overflow";
	const char *text = report->options.measure;
	struct nearest nearest;
	unsigned index;
	char hint[64];

	if (!text)
		return 0;
	if (setting_parse_choice(setting_slice(text), measures, &index) == SETTING_VALID) {
		report->output_options.measure = (enum view_measure)index;
		report->output_options.measure_given = true;
		return 0;
	}
	nearest_init(&nearest, text, strlen(text));
	nearest_offer_list(&nearest, measures);
	return problem_set(problem, -EINVAL, "--measure: '%s' is none of cpu, wall, overflow%s",
			   text, nearest_hint(&nearest, "", hint, sizeof(hint)));
}

static int report_check_filters(struct report *report, struct problem *problem)
{
	const struct report_options *options = &report->options;
	double pid = 0, tid = 0, top = report->output_options.top, minimum = 0;
	int error = report_number("--pid", options->pid, 4294967295., &pid, problem);

	if (!error)
		error = report_number("--tid", options->tid, 4294967295., &tid, problem);
	if (!error)
		error = report_number("--top", options->top, 1e9, &top, problem);
	if (!error)
		error = report_number("--minimum-percent", options->minimum, 100, &minimum,
				      problem);
	if (!error)
		error = report_time("--from", options->from, &report->session_options.from_ns,
				    problem);
	if (!error)
		error = report_time("--to", options->to, &report->session_options.to_ns, problem);
	if (!error && report->session_options.to_ns &&
	    report->session_options.to_ns <= report->session_options.from_ns)
		error = problem_set(problem, -EINVAL, "--to must be later than --from");
	report->session_options.process_pid = (uint32_t)pid;
	report->session_options.thread_tid = (uint32_t)tid;
	report->output_options.top = (unsigned)top;
	report->output_options.top_given = options->top;
	report->output_options.minimum_percent = minimum;
	report->output_options.minimum_given = options->minimum;
	report->output_options.per_thread |= options->per_thread;
	return error ? error : report_measure(report, problem);
}

static const struct output_format *report_find_format(struct setting_slice word)
{
	for (size_t i = 0; i < output_format_count; i++) {
		if (setting_slice_is(word, output_formats[i].name) ||
		    setting_slice_is(word, output_formats[i].file_name))
			return &output_formats[i];
	}
	return NULL;
}

static int report_check_formats(struct report *report, struct problem *problem)
{
	struct setting_slice rest = setting_slice(report->options.formats), word;

	while (setting_list_next(&rest, &word)) {
		const struct output_format *format = report_find_format(word);
		struct nearest nearest;
		char hint[64];

		if (format && report->format_count < REPORT_FORMATS_MAX) {
			report->formats[report->format_count++] = format;
			continue;
		}
		nearest_init(&nearest, word.text, word.length);
		for (size_t i = 0; i < output_format_count; i++)
			nearest_offer(&nearest, output_formats[i].name,
				      strlen(output_formats[i].name));
		return problem_set(problem, -EINVAL,
				   "unknown format '%.*s'%s (kymo avail formats lists them)",
				   (int)(word.length < 100 ? word.length : 100), word.text,
				   nearest_hint(&nearest, "", hint, sizeof(hint)));
	}
	if (report->format_count > 1 && !report->options.output)
		return problem_set(problem, -EINVAL, "several formats need a directory: -o DIR");
	return 0;
}

static void report_gpu_problems(const struct gpu_data *data)
{
	if (data == NULL)
		return;
	if (data->torn_bytes != 0)
		message_warning("%s of records of devices cannot be read",
				quantity_bytes(data->torn_bytes).text);
	for (size_t i = 0; i < data->problem_count; i++)
		message_warning("%s", data->problems[i]);
}

/* What could not be read, for formats that do not say it themselves. */
static void report_problems(const struct session *session)
{
	size_t shown = session->problem_count;

	report_gpu_problems(session->gpu);
	if (shown > REPORT_PROBLEMS_SHOWN && message_verbosity() < 1)
		shown = REPORT_PROBLEMS_SHOWN;
	for (size_t i = 0; i < shown; i++)
		message_warning("%s", session->problems[i]);
	if (shown < session->problem_count)
		message_warning("… and %zu more (-v shows them)", session->problem_count - shown);
}

/* A run with USE_TEMPORARY_FILES=off leaves its result files, but nothing to make others from. */
static int report_check_spool(const char *directory, struct problem *problem)
{
	char *spool;
	bool missing;

	if (asprintf(&spool, "%s/spool", directory) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	missing = access(spool, F_OK) != 0;
	free(spool);
	return missing ? problem_set(problem, -ENOENT,
				     "'%s' has result files, but the recorded data was not kept "
				     "(USE_TEMPORARY_FILES=off, or its spool/ was removed)",
				     directory)
		       : 0;
}

static int report_nothing(const struct report *report, const char *directory,
			  struct problem *problem)
{
	const struct session *session = report->session;
	const struct report_options *options = &report->options;
	const char *why = session->problem_count ? session->problems[0] : NULL;

	if (options->pid || options->tid || options->from || options->to)
		return problem_set(problem, -ENODATA, "nothing in '%s' passes the filters",
				   directory);
	if (session->nccl && session->nccl->problem_count)
		why = session->nccl->problems[0];
	return problem_set(problem, -ENODATA, "no readable data in '%s'%s%s", directory,
			   why ? ": " : "", why ? why : "");
}

static bool report_is_empty(const struct session *session)
{
	return !session->process_count && (!session->nccl || !session->nccl->process_count);
}

static int report_open(struct report *report, const char *named, struct problem *problem)
{
	char *directory;
	int error = result_directory_find(named, &directory, problem);

	if (error)
		return error;
	error = report_check_spool(directory, problem);
	if (!error)
		error = session_open(directory, &report->session_options, &report->session,
				     problem);
	if (!error && (report_is_empty(report->session) ||
		       (report->options.tid && !report->session->thread_count)))
		error = report_nothing(report, directory, problem);
	free(directory);
	return error ? error : session_symbolize(report->session, problem);
}

static int report_write_stream(struct report *report, FILE *stream, struct problem *problem)
{
	int error;

	if (report->format_count)
		error = report->formats[0]->write(report->session, &report->output_options, stream,
						  problem);
	else
		error = output_summary(report->session, &report->output_options, stream,
				       message_color(fileno(stream)), problem);
	if (!error && fflush(stream))
		error = problem_set(problem, -errno, "cannot write the report: %s",
				    strerror(errno));
	if (!error && ferror(stream))
		error = problem_set(problem, -EIO, "cannot write the report");
	return error;
}

/* What is no file, or leads to another place, is written as it is: renaming would put a file where
 * /dev/null or /dev/stdout was. */
static int report_write_in_place(struct report *report, const char *path, struct problem *problem)
{
	FILE *stream = fopen(path, "we");
	int error;

	if (!stream)
		return problem_set(problem, -errno, "cannot write '%s': %s", path, strerror(errno));
	error = report_write_stream(report, stream, problem);
	if (fclose(stream) && !error)
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	return error;
}

/* To a temporary name, then renamed; never over a file that is there, unless told to. */
static int report_write_file(struct report *report, const char *path, struct problem *problem)
{
	struct stat status;
	char *temporary;
	FILE *stream;
	int error;

	if (!stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		return report_write_in_place(report, path, problem);
	if (!resolved_bool(&report->settings, SETTING_FORCE) && !access(path, F_OK))
		return problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it", path);
	if (!lstat(path, &status) && S_ISLNK(status.st_mode))
		return report_write_in_place(report, path, problem);
	if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	stream = fopen(temporary, "wxe");
	if (!stream) {
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
		free(temporary);
		return error;
	}
	error = report_write_stream(report, stream, problem);
	if (fclose(stream) && !error)
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	if (!error && rename(temporary, path))
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	if (error)
		unlink(temporary);
	free(temporary);
	return error;
}

/* Some formats have a directory of their own. */
static int report_make_parent(const char *file, struct problem *problem)
{
	char *parent = strndup(file, (size_t)(strrchr(file, '/') - file));
	int error = parent ? result_make_directories(parent) : -ENOMEM;

	if (error)
		problem_set(problem, error, "cannot make the directory of '%s': %s", file,
			    strerror(-error));
	free(parent);
	return error;
}

static int report_write_directory(struct report *report, const char *path, struct problem *problem)
{
	bool force = resolved_bool(&report->settings, SETTING_FORCE);
	int error = result_make_directories(path);

	if (error)
		return problem_set(problem, error, "cannot make '%s': %s", path, strerror(-error));
	for (size_t i = 0; !error && i < report->format_count; i++) {
		char *file;

		if (asprintf(&file, "%s/%s", path, report->formats[i]->file_name) < 0)
			return problem_set(problem, -ENOMEM, "out of memory");
		if (!force && !access(file, F_OK))
			error = problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it",
					    file);
		else if (!(error = report_make_parent(file, problem)))
			error = output_write_file(report->session, report->formats[i],
						  &report->output_options, path, "", NULL, problem);
		free(file);
	}
	return error;
}

static int report_write(struct report *report, struct problem *problem)
{
	const char *path = report->options.output;
	struct stat status;

	if (!path || !strcmp(path, "-")) {
		if (report->format_count && report->formats[0]->binary && isatty(STDOUT_FILENO))
			return problem_set(problem, -EINVAL,
					   "%s is a binary format: redirect it, or use -o FILE",
					   report->formats[0]->name);
		return report_write_stream(report, stdout, problem);
	}
	if (report->format_count && (report->format_count > 1 || path[strlen(path) - 1] == '/' ||
				     (!stat(path, &status) && S_ISDIR(status.st_mode))))
		return report_write_directory(report, path, problem);
	return report_write_file(report, path, problem);
}

/* Only some formats can join several results. */
static int report_check_others(const struct report *report, const struct options_result *result,
			       struct problem *problem)
{
	bool joins = report->format_count > 0;

	for (size_t i = 0; i < report->format_count; i++)
		joins &= report->formats[i]->joins;
	return result->operand_count > 1 && !joins
		       ? problem_set(problem, -EINVAL,
				     "one result directory, please (not also '%s')",
				     result->operands[1])
		       : 0;
}

static int report_open_others(struct report *report, const struct options_result *result,
			      struct problem *problem)
{
	int error;

	if (result->operand_count < 2)
		return 0;
	error = coverage_open_others(result->operands + 1, result->operand_count - 1,
				     &report->session_options, &report->others, problem);
	report->output_options.others = report->others.sessions;
	report->output_options.other_count = report->others.count;
	return error;
}

/* Of experiments, the table of predictions is what is asked for where nothing else is. 1: this is
 * no such result. */
static int report_causal(struct report *report, const char *named, struct problem *problem)
{
	char *directory;
	int error = result_directory_find(named, &directory, problem);

	if (error)
		return error;
	error = causal_results_are_in(directory) && !report->options.output
			? causal_results_report(directory, stdout, problem)
			: 1;
	free(directory);
	return error;
}

static int report_make(struct report *report, const struct options_result *result,
		       struct problem *problem)
{
	int error;

	report->session_options = results_session_options(&report->settings);
	report->output_options = results_output_options(&report->settings);
	error = report_check_filters(report, problem);
	if (!error)
		error = report_check_formats(report, problem);
	if (!error)
		error = report_check_others(report, result, problem);
	if (!error && !report->format_count) {
		error = report_causal(report, result->operand_count ? result->operands[0] : NULL,
				      problem);
		if (error <= 0)
			return error;
		error = 0;
	}
	if (!error)
		error = report_open(report, result->operand_count ? result->operands[0] : NULL,
				    problem);
	if (!error)
		error = report_open_others(report, result, problem);
	if (error)
		return error;
	if (report->format_count)
		report_problems(report->session);
	return report_write(report, problem);
}

static int report_run(char **arguments, size_t count)
{
	struct report report = {.session = NULL};
	struct options_result result = {.context = &report.options};
	struct problem problem;
	int status = command_begin(&command_report, arguments, count, &report.settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	status = EXIT_SUCCESS;
	if (report_make(&report, &result, &problem)) {
		message_error("%s", problem.text);
		status = EXIT_OWN_FAILURE;
	}
	coverage_close_others(&report.others);
	if (report.session)
		session_close(report.session);
	resolved_deinit(&report.settings);
	return status;
}

const struct command command_report = {
	.name = "report",
	.summary = "show or convert the results of an earlier run",
	.synopsis = "report [options] [DIRECTORY ...]",
	.text = "Reads the result directory of an earlier run (the newest kymo-*-output/latest "
		"here, "
		"when none is named) and prints its summary, or writes it in other formats. "
		"Directories of runs that were killed, or that are still going on, can be read as "
		"well: everything readable is shown, with a count of what is not. The formats of "
		"coverage join the results of several runs.",
	.examples = "kymo report                          the newest run here\n"
		    "kymo report --format text DIR        the call tree\n"
		    "kymo report --format html -o f.html  the flame graph, into a file\n"
		    "kymo report --format lcov RUN1 RUN2  coverage of two runs together\n"
		    "kymo report --pid 4711 --from 2s     one process, from the third second on\n",
	.grammar = &report_grammar,
	.run = report_run,
};
