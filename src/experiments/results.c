/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See results.h.
 */
#include "experiments/results.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/breakpoint_check.h"
#include "console/message.h"
#include "experiments/merge.h"
#include "launch/result_path.h"
#include "output/causal/causal.h"

#define RESULTS_JOURNAL_PATH         "causal/windows.ndjson"
#define RESULTS_EARLIER_JOURNAL_PATH "causal/earlier.ndjson"

/* ---- earlier sessions ---- */

static void results_format_journal_paths(const struct launch *launch, char *earlier, char *journal)
{
	snprintf(earlier, PATH_MAX, "%s/" RESULTS_EARLIER_JOURNAL_PATH, launch->result);
	snprintf(journal, PATH_MAX, "%s/" RESULTS_JOURNAL_PATH, launch->result);
}

int causal_results_set_earlier_aside(const struct launch *launch, struct problem *problem)
{
	char earlier[PATH_MAX], journal[PATH_MAX];
	int error = 0;

	results_format_journal_paths(launch, earlier, journal);
	if (effective_setting_bool(launch->settings, SETTING_CAUSAL_FILE_RESET)) {
		unlink(earlier);
		unlink(journal);
		return 0;
	}
	if (access(journal, F_OK))
		return 0;
	/* a session that was killed has left both */
	if (!access(earlier, F_OK))
		error = causal_merge_journals(earlier, journal, problem);
	if (!error && rename(journal, earlier))
		error = problem_set(problem, -errno, "cannot rename '%s': %s", journal,
				    strerror(errno));
	return error;
}

/* *ret has all experiments, and so has the journal. 1: there are no earlier ones. */
static int results_merge_earlier(const struct launch *launch, struct causal_data *ret,
				 struct problem *problem)
{
	char earlier[PATH_MAX], journal[PATH_MAX];
	int error;

	results_format_journal_paths(launch, earlier, journal);
	if (access(earlier, F_OK))
		return 1;
	snprintf(journal, PATH_MAX, "%s/" RESULTS_JOURNAL_PATH, launch->session);
	error = causal_merge_journals(earlier, journal, problem);
	if (!error)
		error = causal_data_read_file(ret, journal, problem);
	if (!error)
		unlink(earlier);
	return error;
}

/* ---- files ---- */

/* The shared file, maps: processes that are still running have them mapped. */
static void results_remove_shared_files(const char *session)
{
	static const char *const patterns[] = {"%s/causal/control", "%s/causal/map-*",
					       "%s/causal/socket"};

	for (unsigned i = 0; i < ARRAY_SIZE(patterns); i++) {
		char pattern[PATH_MAX];
		glob_t found;

		snprintf(pattern, sizeof(pattern), patterns[i], session);
		if (glob(pattern, GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t file = 0; file < found.gl_pathc; file++)
			unlink(found.gl_pathv[file]);
		globfree(&found);
	}
}

/* A session in memory goes away; its experiments are kept, for `kymo report`. */
static int results_copy_journal_if_in_memory(const struct launch *launch, struct problem *problem)
{
	char from[PATH_MAX], to[PATH_MAX], temporary[PATH_MAX];
	int in, out, error = 0;
	ssize_t sent;

	if (!launch->is_session_in_memory)
		return 0;
	snprintf(to, sizeof(to), "%s/causal", launch->result);
	result_make_directories(to);
	snprintf(from, sizeof(from), "%s/" RESULTS_JOURNAL_PATH, launch->session);
	snprintf(to, sizeof(to), "%s/" RESULTS_JOURNAL_PATH, launch->result);
	if (snprintf(temporary, sizeof(temporary), "%s.tmp", to) >= (int)sizeof(temporary))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", to);
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	error = in < 0 || out < 0 ? -errno : 0;
	while (!error && (sent = sendfile(out, in, NULL, 1 << 20)) != 0)
		error = sent < 0 ? -errno : 0;
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) && !error)
		error = -errno;
	if (!error && rename(temporary, to))
		error = -errno;
	if (!error)
		return 0;
	unlink(temporary);
	return problem_set(problem, error, "cannot write '%s': %s", to, strerror(-error));
}

/* CAUSAL_FILE: the JSON file's name. */
static int results_rename_json_file_if_set(const struct launch *launch, const char *directory,
					   struct problem *problem)
{
	const char *name = effective_setting_text(launch->settings, SETTING_CAUSAL_FILE);
	char from[PATH_MAX], to[PATH_MAX];

	if (!strcmp(name, "experiments"))
		return 0;
	if (snprintf(from, sizeof(from), "%s/experiments.json", directory) >= PATH_MAX ||
	    snprintf(to, sizeof(to), "%s/%s.json", directory, name) >= PATH_MAX)
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a name", name);
	return rename(from, to)
		       ? problem_set(problem, -errno, "cannot write '%s': %s", to, strerror(errno))
		       : 0;
}

static int results_write_files(const struct causal_data *data,
			       const struct causal_fit_result *result, const struct launch *launch,
			       const char *prefix, char *directory, struct problem *problem)
{
	int error;

	if (snprintf(directory, PATH_MAX, "%s/%scausal", launch->result, prefix) >= PATH_MAX)
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path",
				   launch->result);
	error = result_make_directories(directory);
	if (error)
		return problem_set(problem, error, "cannot make '%s': %s", directory,
				   strerror(-error));
	error = causal_write_all_files(data, result, directory, problem);
	if (!error)
		error = results_rename_json_file_if_set(launch, directory, problem);
	return error ? error : results_copy_journal_if_in_memory(launch, problem);
}

/* ---- what to say ---- */

/* Why there are no experiments, or NULL. */
static const char *results_find_why_no_experiments(const struct causal_data *data,
						   const struct causal_program_activity *seen)
{
	for (size_t i = 0; i < data->window_count; i++) {
		if (data->windows[i].target)
			return NULL;
	}
	if (!seen->samples)
		return seen->taken_part
			       ? "no progress was seen: the program used too little CPU time"
			       : "no progress was seen: the program ended too early, or did not "
				 "load kymo's library";
	if (!seen->samples_in_scope)
		return "the program spent no time in the selected functions: see --binary-scope "
		       "(%MAIN% is the program, %ALL% includes libraries), --function-scope and "
		       "--source-scope";
	if (!seen->points && !breakpoints_fire())
		return "no progress point was reached. Functions and lines that --progress names "
		       "cannot be counted here: this machine's hardware breakpoints never fire (a "
		       "hypervisor keeps them back). Call kymo_progress() in the program "
		       "(kymo/user.h), or use --end-to-end";
	if (!seen->points)
		return "the program reached no progress point: name a function with --progress, "
		       "call kymo_progress() in the program (kymo/user.h), or use --end-to-end";
	if (data->run_count > 1)
		return "each run of the program ended before there was anything to measure: give "
		       "it more work per run";
	return "the program ended before the first experiment: run it longer, or several times "
	       "with --iterations";
}

static void results_print_warnings_and_summary(const struct causal_data *data,
					       const struct causal_fit_result *result,
					       const struct causal_program_activity *seen,
					       const char *directory, const char *file)
{
	const char *why = results_find_why_no_experiments(data, seen);

	if (seen->journal_failed)
		message_error("some experiments could not be written to the results");
	for (size_t i = 0; i < data->point_count; i++) {
		char text[512];

		if (causal_format_given_up_point(&data->points[i], text, sizeof(text)))
			message_warning("%s", text);
	}
	if (why)
		message_warning("%s", why);
	if (message_get_verbosity() < 0)
		return;
	if (!why)
		causal_print_summary(data, result, stderr, message_uses_color(STDERR_FILENO));
	message_note("results: %s/report.html, report.txt, %s.json, profile.coz", directory, file);
}

void causal_results_write(const struct causal_data *data, const struct causal_options *options,
			  const struct causal_program_activity *seen, const struct launch *launch,
			  const char *prefix)
{
	struct causal_fit_options fit = {.seed = options->random_seed};
	struct causal_data all = {0};
	char directory[PATH_MAX];
	struct causal_fit_result result;
	struct problem problem;
	int error = results_merge_earlier(launch, &all, &problem);

	if (error < 0)
		message_error("%s", problem.text);
	if (!error)
		data = &all;
	results_remove_shared_files(launch->session);
	if (causal_compute_predictions(data, &fit, &result)) {
		message_error("no predictions: out of memory");
		causal_data_deinit(&all);
		return;
	}
	if (results_write_files(data, &result, launch, prefix, directory, &problem))
		message_error("%s", problem.text);
	else
		results_print_warnings_and_summary(
			data, &result, seen, directory,
			effective_setting_text(launch->settings, SETTING_CAUSAL_FILE));
	causal_fit_result_deinit(&result);
	causal_data_deinit(&all);
}

/* ---- later ---- */

bool causal_results_exist_in(const char *directory)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" RESULTS_JOURNAL_PATH, directory);
	return !access(path, F_OK);
}

int causal_results_print_report(const char *directory, FILE *stream, struct problem *problem)
{
	struct causal_fit_options fit = {0};
	struct causal_fit_result result;
	struct causal_data data = {0};
	char path[PATH_MAX];
	int error;

	snprintf(path, sizeof(path), "%s/" RESULTS_JOURNAL_PATH, directory);
	error = causal_data_read_file(&data, path, problem);
	if (!error) {
		if (data.run_count)
			fit.seed = data.runs[0].seed;
		error = causal_compute_predictions(&data, &fit, &result);
		if (error)
			problem_set(problem, error, "out of memory");
	}
	if (!error) {
		error = causal_write_text(&data, &result, stream, problem);
		causal_fit_result_deinit(&result);
	}
	causal_data_deinit(&data);
	return error;
}
