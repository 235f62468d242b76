/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * coverage.info: coverage as lcov writes it (geninfo(1), "FILES"), for genhtml and whatever else
 * reads that. Functions go by their mangled names, as gcov has them. Code whose source is not known
 * has no place in this format.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "files/stream.h"
#include "output/coverage/coverage.h"
#include "output/output.h"

static const char *get_code_range_linkage_name(const struct coverage_code_range *unit)
{
	return unit->linkage_name ? unit->linkage_name : unit->function;
}

/* Text up to a line break: names come from files that anybody may have made. */
static void lcov_put_text_and_line_end(FILE *stream, const char *text)
{
	for (; *text; text++)
		fputc(*text == '\n' || *text == '\r' ? '?' : *text, stream);
	fputc('\n', stream);
}

/* Units are by line and name: the same function of several modules is one. */
static bool find_next_distinct_function(const struct coverage_source_file *file, size_t *at,
					const struct coverage_code_range **ret, uint64_t *calls)
{
	while (*at < file->code_range_count &&
	       (file->code_ranges[*at]->block || !file->code_ranges[*at]->line))
		++*at;
	if (*at == file->code_range_count)
		return false;
	*ret = file->code_ranges[*at];
	*calls = 0;
	for (; *at < file->code_range_count; ++*at) {
		const struct coverage_code_range *unit = file->code_ranges[*at];

		if (unit->block || unit->line != (*ret)->line ||
		    strcmp(get_code_range_linkage_name(unit), get_code_range_linkage_name(*ret)) !=
			    0)
			break;
		*calls += unit->calls;
	}
	return true;
}

static void lcov_put_functions(FILE *stream, const struct coverage_source_file *file)
{
	const struct coverage_code_range *unit;
	uint64_t calls, found = 0, hit = 0;

	for (size_t at = 0; find_next_distinct_function(file, &at, &unit, &calls);) {
		fprintf(stream, "FN:%" PRIu32 ",", unit->line);
		lcov_put_text_and_line_end(stream, get_code_range_linkage_name(unit));
	}
	for (size_t at = 0; find_next_distinct_function(file, &at, &unit, &calls);) {
		fprintf(stream, "FNDA:%" PRIu64 ",", calls);
		lcov_put_text_and_line_end(stream, get_code_range_linkage_name(unit));
		found++;
		hit += calls > 0;
	}
	fprintf(stream, "FNF:%" PRIu64 "\nFNH:%" PRIu64 "\n", found, hit);
}

static void lcov_put_lines(FILE *stream, const struct coverage_source_file *file)
{
	uint64_t found = 0, hit = 0;

	for (size_t i = 0; i < file->line_count; found++) {
		uint32_t line = file->lines[i]->line;
		uint64_t count = 0;

		for (; i < file->line_count && file->lines[i]->line == line; i++)
			count = file->lines[i]->count > count ? file->lines[i]->count : count;
		fprintf(stream, "DA:%" PRIu32 ",%" PRIu64 "\n", line, count);
		hit += count > 0;
	}
	fprintf(stream, "LF:%" PRIu64 "\nLH:%" PRIu64 "\n", found, hit);
}

static int output_write_lcov(struct session *session, const struct output_options *options,
			     FILE *stream, struct problem *problem)
{
	struct coverage_source_files files;
	struct coverage coverage;
	int result = coverage_compute_over_sessions(session, options, &coverage, problem);

	if (result < 0)
		return result;
	result = coverage_source_files_build(&coverage, &files);
	if (result < 0) {
		problem_set(problem, result, "cannot write coverage: %s", strerror(-result));
	} else {
		for (size_t i = 0; i < files.count; i++) {
			if (!files.files[i].path)
				continue;
			fputs("TN:\nSF:", stream);
			lcov_put_text_and_line_end(stream, files.files[i].path);
			lcov_put_functions(stream, &files.files[i]);
			lcov_put_lines(stream, &files.files[i]);
			fputs("end_of_record\n", stream);
		}
		coverage_source_files_deinit(&files);
	}
	coverage_deinit(&coverage);
	return result < 0 ? result : stream_flush_or_set_problem(stream, "coverage", problem);
}

const struct output_format output_format_lcov = {
	.name = "lcov",
	.file_name = "coverage.info",
	.description = "the same for genhtml and other readers of lcov files",
	.can_join_sessions = true,
	.has_whole_run_only = true,
	.write = output_write_lcov,
};
