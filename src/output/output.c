/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of outputs, and how they become files (whole_file.h).
 */
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/whole_file.h"
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
	{"nccl", "nccl/summary.txt", "NCCL: what is in flight, functions, bandwidths, losses",
	 false, false, output_nccl_text},
	{"nccl-json", "nccl/summary.json", "the same for programs", false, false, output_nccl_json},
	{"nccl-operations", "nccl/operations.jsonl", "an NCCL operation a line", false, false,
	 output_nccl_operations},
	{"nccl-collectives", "nccl/collectives.jsonl", "a collective of all ranks a line", false,
	 false, output_nccl_collectives},
	{"counters", "counter_collection.csv", "counters of kernels, a launch and counter a row",
	 false, false, output_counters_csv},
	{"device-counters", "device_counters.csv",
	 "counters of devices, a reading and counter a row", false, false,
	 output_device_counters_csv},
	{"counters-json", "counters.json", "both for programs, with all instances", false, false,
	 output_counters_json},
	{"counters-db", "results.db", "both as SQLite, with the tables of rocpd; and NCCL's", true,
	 false, output_counters_db},
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

struct written {
	struct session *session;
	const struct output_format *format;
	const struct output_options *options;
};

static int write_format(const void *context, FILE *stream, struct problem *problem)
{
	const struct written *written = context;

	return written->format->write(written->session, written->options, stream, problem);
}

int output_write_file(struct session *session, const struct output_format *format,
		      const struct output_options *options, const char *directory,
		      const char *prefix, uint64_t *bytes, struct problem *problem)
{
	struct written written = {session, format, options};
	char *path;
	int result;

	if (asprintf(&path, "%s/%s%s", directory, prefix ? prefix : "", format->file_name) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing %s", format->file_name);
	result = whole_file_write(path, write_format, &written, bytes, problem);
	free(path);
	return result;
}
