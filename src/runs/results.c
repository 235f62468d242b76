/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Results; see results.h.
 */
#include "runs/results.h"
#include "analysis/symbols/symbols.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "analysis/allocations/allocations.h"
#include "analysis/interpreted/interpreted.h"
#include "analysis/nccl/nccl.h"
#include "analysis/open/open.h"
#include "analysis/regions/calls.h"
#include "common/foreign_file.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "counting/results.h"
#include "files/atomic_file.h"
#include "launch/result_path.h"
#include "output/formats/formats.h"
#include "output/json/metadata.h"
#include "output/summary/summary.h"
#include "runs/nccl_results.h"

/* A process needs a header and a first segment at least. */
#define RESULTS_FREE_DISK_BYTES_LEAST (64u << 10)

struct session_options
results_settings_to_session_options(const struct effective_settings *settings)
{
	const char *cache = effective_setting_text(settings, SETTING_SYMBOL_CACHE);

	return (struct session_options){
		.with_inlines = effective_setting_bool(settings, SETTING_SAMPLING_INCLUDE_INLINES),
		.debug_search_path = effective_setting_text(settings, SETTING_DEBUG_PATH),
		.profile_nodes =
			(uint32_t)effective_setting_integer(settings, SETTING_PROFILE_MAX_NODES),
		.symbol_cache_directory = !*cache                 ? NULL
					  : strcmp(cache, "none") ? cache
								  : "",
	};
}

struct output_options results_settings_to_output_options(const struct effective_settings *settings)
{
	return (struct output_options){
		.flat = effective_setting_bool(settings, SETTING_FLAT_PROFILE),
		.is_timeline_wanted = effective_setting_bool(settings, SETTING_TIMELINE_PROFILE),
		.per_thread = !effective_setting_bool(settings, SETTING_COLLAPSE_THREADS),
		.collapse_processes = effective_setting_bool(settings, SETTING_COLLAPSE_PROCESSES),
		.is_compressed = effective_setting_bool(settings, SETTING_TRACE_COMPRESS),
	};
}

static bool results_has_samples(const struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (session->processes[i].samples)
			return true;
	}
	return false;
}

static bool format_is_listed(const struct effective_settings *settings, const char *name)
{
	return setting_find_choice_index(
		       setting_slice_from_text(name),
		       effective_setting_text(settings, SETTING_OUTPUT_FORMATS)) >= 0;
}

/* Formats of samples say nothing where only calls were recorded. */
static bool format_is_listed_and_meaningful(const struct effective_settings *settings,
					    const struct session *session, const char *name)
{
	if (!session_get_calls(session)->words || results_has_samples(session))
		return format_is_listed(settings, name);
	if (!strcmp(name, "folded") || !strcmp(name, "pprof") || !strcmp(name, "html"))
		return false;
	return format_is_listed(settings, name);
}

static bool results_has_coverage(const struct effective_settings *settings,
				 const struct session *session)
{
	return strcmp(effective_setting_text(settings, SETTING_COVERAGE), "none") &&
	       (session_get_calls(session)->module_count > 0 ||
		interpreted_code_has_coverage(session));
}

/* TRACE and PROFILE switch whole groups of formats; there is no file of allocations or coverage
 * without any. */
static bool format_is_to_be_written(const struct effective_settings *settings,
				    const struct session *session,
				    const struct output_format *format)
{
	bool is_trace = !strcmp(format->name, "perfetto");

	/* The formats of coverage. */
	if (format->can_join_sessions)
		return format_is_listed(settings, format->name) &&
		       results_has_coverage(settings, session);
	if (!strcmp(format->name, "memory") && !session_get_allocation_site_count(session))
		return false;
	return format_is_listed_and_meaningful(settings, session, format->name) &&
	       effective_setting_bool(settings, is_trace ? SETTING_TRACE : SETTING_PROFILE);
}

/* Whether anything is written that names functions. */
static bool any_format_is_to_be_written(const struct effective_settings *settings,
					const struct session *session)
{
	for (size_t i = 0; i < output_format_count; i++) {
		if (format_is_to_be_written(settings, session, output_formats[i]))
			return true;
	}
	return false;
}

/* Compiled code has no file but this one, and /tmp is cleaned: keep a copy. Never follows a link
 * or reads another user's file (perf's rule for these maps as well), or one that an earlier process
 * with the same pid has left. */
static void copy_perf_map_of_process(const struct session *session, uint32_t process,
				     const char *directory)
{
	const struct foreign_open_policy how =
		foreign_make_policy_for_owner(session_get_process_owner_uid(session, process));
	uint32_t pid = session->processes[process].pid;
	char from[64], to[PATH_MAX];
	struct stat status;
	int in, out;

	snprintf(from, sizeof(from), "/tmp/perf-%u.map", pid);
	in = foreign_open_file(&how, from, &status);
	if (in < 0)
		return;
	if (snprintf(to, sizeof(to), "%s/perf-%u.map", directory, pid) < (int)sizeof(to) &&
	    !jit_map_predates_process(&status, session_get_process_creation_ns(session, process))) {
		unlink(to); /* of an earlier report */
		out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		while (out >= 0 && sendfile(out, in, NULL, 1 << 20) > 0)
			;
		if (out >= 0)
			close(out);
	}
	close(in);
}

static int write_metadata_to_stream(const void *session, FILE *stream, struct problem *problem)
{
	return output_write_metadata_json(*(struct session *const *)session, stream, problem);
}

static int write_metadata_file(struct session *session, const char *directory, const char *prefix,
			       struct problem *problem)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%smetadata.json", directory, prefix) >=
	    (int)sizeof(path))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", path);
	return atomic_file_write_by_callback(path, write_metadata_to_stream, &session, NULL,
					     problem);
}

static int write_all_formats(const struct effective_settings *settings, struct session *session,
			     const char *directory, const char *prefix)
{
	struct output_options options = results_settings_to_output_options(settings);
	struct problem problem;
	int failed = 0, error;

	for (size_t i = 0; i < output_format_count; i++) {
		const struct output_format *format = output_formats[i];
		uint64_t bytes = 0;

		if (!format_is_to_be_written(settings, session, format))
			continue;
		error = output_write_file(session, format, &options, directory, prefix, &bytes,
					  &problem);
		if (error) {
			message_error("no %s: %s", format->file_name, problem.text);
			failed = error;
		} else {
			message_detail("%s%s: %llu bytes", prefix, format->file_name,
				       (unsigned long long)bytes);
		}
	}
	error = nccl_results_write(session, directory, prefix, UINT64_MAX, &problem);
	if (error) {
		message_error("no nccl/: %s", problem.text);
		failed = error;
	}
	error = counters_results_write(session, directory, prefix, &problem);
	if (error) {
		message_error("no files of counters: %s", problem.text);
		failed = error;
	}
	error = write_metadata_file(session, directory, prefix, &problem);
	if (error)
		message_error("no metadata.json: %s", problem.text);
	return error ? error : failed;
}

static int make_directories_of_prefix(const char *directory, const char *prefix,
				      struct problem *problem)
{
	char path[PATH_MAX];
	const char *slash = strrchr(prefix, '/');
	int error;

	if (!slash)
		return 0;
	snprintf(path, sizeof(path), "%s/%.*s", directory, (int)(slash - prefix), prefix);
	error = result_make_directories(path);
	return error ? problem_set(problem, error, "cannot make '%s': %s", path, strerror(-error))
		     : 0;
}

/* Is there any spool file, if only an empty one? */
static bool session_has_any_spool_file(const char *session_directory)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/spool", session_directory);
	directory = opendir(path);
	while (directory && !found && (entry = readdir(directory)))
		found = strstr(entry->d_name, ".spool") != NULL;
	if (directory)
		closedir(directory);
	return found;
}

/* No process left a spool file that begins: the usual reason is a disk without room. */
static void report_nothing_recorded(const char *session_directory)
{
	struct statvfs space;

	if (!statvfs(session_directory, &space) &&
	    (uint64_t)space.f_bavail * space.f_frsize < RESULTS_FREE_DISK_BYTES_LEAST)
		message_error("nothing was recorded: the disk of '%s' is full (%llu KiB free)",
			      session_directory,
			      (unsigned long long)(space.f_bavail * space.f_frsize / 1024));
	else if (session_has_any_spool_file(session_directory))
		message_error("nothing was recorded: a limit leaves no room for the first records "
			      "(SPOOL_LIMIT, ulimit -f)");
	else
		message_error("nothing was recorded: the program did not load kymo's library, or "
			      "could not write "
			      "to '%s/spool'",
			      session_directory);
}

static void report_results_loss(void *context, const char *text)
{
	(void)context;
	message_error("the results are not complete: %s", text);
}

int results_write_all_outputs(const struct effective_settings *settings,
			      const char *session_directory, const char *result_directory,
			      const char *prefix, bool summary, struct problem *problem)
{
	struct session_options options = results_settings_to_session_options(settings);
	struct output_options summary_options = results_settings_to_output_options(settings);
	struct session *session;
	int error = make_directories_of_prefix(result_directory, prefix, problem);

	options.results = result_directory;
	options.results_display_name = message_get_shown_path(result_directory);
	if (!error)
		error = session_open(session_directory, &options, &session, problem);
	if (error)
		return error;
	if (!session->process_count && !session_get_nccl_data(session))
		report_nothing_recorded(session_directory);
	for (uint32_t i = 0; i < session->process_count; i++)
		copy_perf_map_of_process(session, i, session_directory);
	summary = summary && message_get_verbosity() >= 0;
	if (summary || any_format_is_to_be_written(settings, session))
		error = session_symbolize(session, problem);
	if (!error) {
		error = write_all_formats(settings, session, result_directory, prefix);
		problem_set(problem, 0, "some results are missing");
	}
	summary_options.columns = message_get_columns(STDERR_FILENO);
	if (summary)
		output_write_summary(session, &summary_options, stderr,
				     message_uses_color(STDERR_FILENO), problem);
	else
		output_report_losses(session, report_results_loss, NULL);
	session_close(session);
	return error;
}
