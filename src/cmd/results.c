/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Results; see results.h.
 */
#include "cmd/results.h"
#include "analysis/allocations.h"
#include "analysis/calls.h"
#include "analysis/symbolize.h"

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

#include "cmd/counters_results.h"
#include "cmd/message.h"
#include "cmd/nccl_results.h"
#include "cmd/result_path.h"
#include "common/settings_value.h"

/* A process needs a header and a first segment at least. */
#define RESULTS_SPACE_NEEDED (64u << 10)

struct session_options results_session_options(const struct resolved *settings)
{
	const char *cache = resolved_text(settings, SETTING_SYMBOL_CACHE);

	return (struct session_options){
		.inlines = resolved_bool(settings, SETTING_SAMPLING_INCLUDE_INLINES),
		.debug_path = resolved_text(settings, SETTING_DEBUG_PATH),
		.profile_nodes = (uint32_t)resolved_integer(settings, SETTING_PROFILE_MAX_NODES),
		.symbol_cache = !*cache                 ? NULL
				: strcmp(cache, "none") ? cache
							: "",
	};
}

struct output_options results_output_options(const struct resolved *settings)
{
	return (struct output_options){
		.flat = resolved_bool(settings, SETTING_FLAT_PROFILE),
		.timeline = resolved_bool(settings, SETTING_TIMELINE_PROFILE),
		.per_thread = !resolved_bool(settings, SETTING_COLLAPSE_THREADS),
		.collapse_processes = resolved_bool(settings, SETTING_COLLAPSE_PROCESSES),
		.compress = resolved_bool(settings, SETTING_TRACE_COMPRESS),
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

static bool results_listed(const struct resolved *settings, const char *name)
{
	return setting_choice_index(setting_slice(name),
				    resolved_text(settings, SETTING_OUTPUT_FORMATS)) >= 0;
}

/* Formats of samples say nothing where only calls were recorded. */
static bool results_asked_for(const struct resolved *settings, const struct session *session,
			      const char *name)
{
	if (!session->calls->words || results_has_samples(session))
		return results_listed(settings, name);
	if (!strcmp(name, "folded") || !strcmp(name, "pprof") || !strcmp(name, "html"))
		return false;
	return results_listed(settings, name);
}

static bool results_has_coverage(const struct resolved *settings, const struct session *session)
{
	return strcmp(resolved_text(settings, SETTING_COVERAGE), "none") &&
	       session->calls->module_count > 0;
}

/* TRACE and PROFILE switch whole groups of formats; there is no file of allocations or coverage
 * without any. */
static bool results_wanted(const struct resolved *settings, const struct session *session,
			   const struct output_format *format)
{
	bool is_trace = !strcmp(format->name, "perfetto");

	/* The formats of coverage. */
	if (format->joins)
		return results_listed(settings, format->name) &&
		       results_has_coverage(settings, session);
	if (!strcmp(format->name, "memory") && !session_site_count(session))
		return false;
	return results_asked_for(settings, session, format->name) &&
	       resolved_bool(settings, is_trace ? SETTING_TRACE : SETTING_PROFILE);
}

/* Whether anything is written that names functions. */
static bool results_any(const struct resolved *settings, const struct session *session)
{
	for (size_t i = 0; i < output_format_count; i++) {
		if (results_wanted(settings, session, &output_formats[i]))
			return true;
	}
	return false;
}

/* Compiled code has no file but this one, and /tmp is cleaned: keep a copy. Never follows a link
 * or reads another user's file (perf's rule for these maps as well), or one that an earlier process
 * with the same pid has left. */
static void results_keep_jit_map(const char *directory, uint32_t pid, uint64_t made_ns)
{
	char from[64], to[PATH_MAX];
	struct stat status;
	int in, out;

	snprintf(from, sizeof(from), "/tmp/perf-%u.map", pid);
	in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (in < 0)
		return;
	snprintf(to, sizeof(to), "%s/perf-%u.map", directory, pid);
	if (!fstat(in, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
	    !symbolize_jit_is_earlier(&status, made_ns)) {
		out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		while (out >= 0 && sendfile(out, in, NULL, 1 << 20) > 0)
			;
		if (out >= 0)
			close(out);
	}
	close(in);
}

static int results_write_metadata(struct session *session, const char *directory,
				  const char *prefix, struct problem *problem)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	FILE *stream;
	int error;

	snprintf(path, sizeof(path), "%s/%smetadata.json", directory, prefix);
	if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int)sizeof(temporary))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", path);
	stream = fopen(temporary, "we");
	if (!stream)
		return problem_set(problem, -errno, "cannot write '%s': %s", path, strerror(errno));
	error = output_metadata(session, stream, problem);
	if (fclose(stream) && !error)
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	if (!error && rename(temporary, path))
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	if (error)
		unlink(temporary);
	return error;
}

static int results_write_formats(const struct resolved *settings, struct session *session,
				 const char *directory, const char *prefix)
{
	struct output_options options = results_output_options(settings);
	struct problem problem;
	int failed = 0, error;

	for (size_t i = 0; i < output_format_count; i++) {
		const struct output_format *format = &output_formats[i];
		uint64_t bytes = 0;

		if (!results_wanted(settings, session, format))
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
	error = nccl_results_write(session, directory, prefix, &problem);
	if (error) {
		message_error("no nccl/: %s", problem.text);
		failed = error;
	}
	error = counters_results_write(session, directory, prefix, &problem);
	if (error) {
		message_error("no files of counters: %s", problem.text);
		failed = error;
	}
	error = results_write_metadata(session, directory, prefix, &problem);
	if (error)
		message_error("no metadata.json: %s", problem.text);
	return error ? error : failed;
}

static int results_make_prefix(const char *directory, const char *prefix, struct problem *problem)
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
static bool results_has_spool(const char *session_directory)
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
static void results_nothing_recorded(const char *session_directory)
{
	struct statvfs space;

	if (!statvfs(session_directory, &space) &&
	    (uint64_t)space.f_bavail * space.f_frsize < RESULTS_SPACE_NEEDED)
		message_error("nothing was recorded: the disk of '%s' is full (%llu KiB free)",
			      session_directory,
			      (unsigned long long)(space.f_bavail * space.f_frsize / 1024));
	else if (results_has_spool(session_directory))
		message_error("nothing was recorded: no room for the first records (SPOOL_LIMIT, "
			      "ulimit -f)");
	else
		message_error("nothing was recorded: the program did not load kymo's library, or "
			      "could not write "
			      "to '%s/spool'",
			      session_directory);
}

static void results_tell_loss(void *context, const char *text)
{
	(void)context;
	message_error("the results are not complete: %s", text);
}

int results_write(const struct resolved *settings, const char *session_directory,
		  const char *result_directory, const char *prefix, bool summary,
		  struct problem *problem)
{
	struct session_options options = results_session_options(settings);
	struct output_options summary_options = results_output_options(settings);
	struct session *session;
	int error = results_make_prefix(result_directory, prefix, problem);

	if (!error)
		error = session_open(session_directory, &options, &session, problem);
	if (error)
		return error;
	if (!session->process_count && !session->nccl)
		results_nothing_recorded(session_directory);
	for (uint32_t i = 0; i < session->process_count; i++)
		results_keep_jit_map(session_directory, session->processes[i].pid,
				     session_process_made_ns(session, i));
	summary = summary && message_verbosity() >= 0;
	if (summary || results_any(settings, session))
		error = session_symbolize(session, problem);
	if (!error) {
		error = results_write_formats(settings, session, result_directory, prefix);
		problem_set(problem, 0, "some results are missing");
	}
	if (summary)
		output_summary(session, &summary_options, stderr, message_color(STDERR_FILENO),
			       problem);
	else
		output_losses(session, results_tell_loss, NULL);
	session_close(session);
	return error;
}
