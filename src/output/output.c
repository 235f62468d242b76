/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of outputs, and the one place that opens their files: a writer's bytes go to a
 * temporary file beside the result, which takes the result's name only once everything is on disk.
 */
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/stream.h"
#include "output/writers.h"

const struct output_format output_formats[] = {
	{"text", "profile.txt",
	 "call-tree profile for people: by call path, by function, by thread", false, false,
	 output_text},
	{"json", "profile.json", "the same for programs, with modules, processes and losses", false,
	 false, output_json},
	{"perfetto", "trace.pftrace", "timeline for ui.perfetto.dev: threads, samples, counters",
	 true, false, output_perfetto},
	{"folded", "samples.folded", "folded stacks for flamegraph.pl, inferno and speedscope",
	 false, false, output_folded},
	{"regions-folded", "regions.folded", "the same of regions, by real time, when asked for",
	 false, false, output_regions_folded},
	{"pprof", "profile.pb.gz", "profile for pprof, Pyroscope, Parca and speedscope", true,
	 false, output_pprof},
	{"html", "flamegraph.html", "flame graph for any browser, in one file", false, false,
	 output_html},
	{"memory", "memory.json", "allocation sites and what was not freed, with TRACE_MEMORY",
	 false, false, output_memory},
	{"coverage", "coverage.txt", "functions and lines that were executed, for people", false,
	 true, output_coverage},
	{"coverage-json", "coverage.json", "the same for programs", false, true,
	 output_coverage_json},
	{"lcov", "coverage.info", "the same for genhtml and others that read lcov's files", false,
	 true, output_lcov},
};
const size_t output_format_count = sizeof(output_formats) / sizeof(*output_formats);

const struct output_format *output_find(const char *name)
{
	for (size_t i = 0; i < output_format_count; i++) {
		if (strcmp(output_formats[i].name, name) == 0)
			return &output_formats[i];
	}
	return NULL;
}

static int file_problem(struct problem *problem, const char *doing, const char *path, int error)
{
	const char *remedy = error == ENOSPC || error == EDQUOT
				     ? "free some space, then run `kymo report` on the results"
				     : "check the directory's permissions, or name another with -o";

	snprintf(problem->text, sizeof(problem->text), "cannot %s %s: %s; %s", doing, path,
		 strerror(error), remedy);
	return -error;
}

/* mkstemp makes files private to the user; results follow the umask like any other file. */
static void apply_umask(int file)
{
	mode_t mask = umask(0);

	umask(mask);
	(void)!fchmod(file, 0666 & ~mask);
}

static int write_and_sync(struct session *session, const struct output_format *format,
			  const struct output_options *options, FILE *stream, const char *path,
			  uint64_t *bytes, struct problem *problem)
{
	struct stat status;
	int result = format->write(session, options, stream, problem);

	if (result == -ENOSPC || result == -EDQUOT)
		return file_problem(problem, "write", path, -result);
	if (result < 0)
		return result;
	result = stream_flush(stream);
	if (result < 0)
		return file_problem(problem, "write", path, -result);
	if (fsync(fileno(stream)) != 0 && errno != EINVAL)
		return file_problem(problem, "write", path, errno);
	if (bytes && fstat(fileno(stream), &status) == 0)
		*bytes = (uint64_t)status.st_size;
	return 0;
}

static int write_temporary(struct session *session, const struct output_format *format,
			   const struct output_options *options, char *temporary, const char *path,
			   uint64_t *bytes, struct problem *problem)
{
	int file = mkstemp(temporary);
	FILE *stream;
	int result;

	if (file < 0)
		return file_problem(problem, "create", path, errno);
	apply_umask(file);
	stream = fdopen(file, "w");
	if (!stream) {
		result = file_problem(problem, "create", path, errno);
		close(file);
	} else {
		result = write_and_sync(session, format, options, stream, path, bytes, problem);
		if (fclose(stream) != 0 && result == 0)
			result = file_problem(problem, "write", path, errno);
	}
	if (result == 0 && rename(temporary, path) != 0)
		result = file_problem(problem, "create", path, errno);
	if (result < 0)
		unlink(temporary);
	return result;
}

int output_write_file(struct session *session, const struct output_format *format,
		      const struct output_options *options, const char *directory,
		      const char *prefix, uint64_t *bytes, struct problem *problem)
{
	char *path = NULL, *temporary = NULL;
	int result;

	if (asprintf(&path, "%s/%s%s", directory, prefix ? prefix : "", format->file_name) < 0)
		path = NULL;
	else if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		temporary = NULL;
	if (!path || !temporary) {
		snprintf(problem->text, sizeof(problem->text), "out of memory writing %s",
			 format->file_name);
		result = -ENOMEM;
	} else {
		result = write_temporary(session, format, options, temporary, path, bytes, problem);
	}
	free(path);
	free(temporary);
	return result;
}
