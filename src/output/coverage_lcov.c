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

#include "output/coverage.h"
#include "output/stream.h"
#include "output/writers.h"

static const char *name_of(const struct coverage_unit *unit)
{
	return unit->linkage_name ? unit->linkage_name : unit->function;
}

/* Text up to a line break: names come from files that anybody may have made. */
static void put_text(FILE *stream, const char *text)
{
	for (; *text; text++)
		fputc(*text == '\n' || *text == '\r' ? '?' : *text, stream);
	fputc('\n', stream);
}

/* Units are by line and name: the same function of several modules is one. */
static bool next_function(const struct coverage_file *file, size_t *at,
			  const struct coverage_unit **ret, uint64_t *calls)
{
	while (*at < file->unit_count && (file->units[*at]->block || !file->units[*at]->line))
		++*at;
	if (*at == file->unit_count)
		return false;
	*ret = file->units[*at];
	*calls = 0;
	for (; *at < file->unit_count; ++*at) {
		const struct coverage_unit *unit = file->units[*at];

		if (unit->block || unit->line != (*ret)->line ||
		    strcmp(name_of(unit), name_of(*ret)) != 0)
			break;
		*calls += unit->calls;
	}
	return true;
}

static void put_functions(FILE *stream, const struct coverage_file *file)
{
	const struct coverage_unit *unit;
	uint64_t calls, found = 0, hit = 0;

	for (size_t at = 0; next_function(file, &at, &unit, &calls);) {
		fprintf(stream, "FN:%" PRIu32 ",", unit->line);
		put_text(stream, name_of(unit));
	}
	for (size_t at = 0; next_function(file, &at, &unit, &calls);) {
		fprintf(stream, "FNDA:%" PRIu64 ",", calls);
		put_text(stream, name_of(unit));
		found++;
		hit += calls > 0;
	}
	fprintf(stream, "FNF:%" PRIu64 "\nFNH:%" PRIu64 "\n", found, hit);
}

static void put_lines(FILE *stream, const struct coverage_file *file)
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

int output_lcov(struct session *session, const struct output_options *options, FILE *stream,
		struct problem *problem)
{
	struct coverage_files files;
	struct coverage coverage;
	int result = coverage_of(session, options, &coverage, problem);

	if (result < 0)
		return result;
	result = coverage_files_make(&coverage, &files);
	if (result < 0) {
		problem_set(problem, result, "cannot write coverage: %s", strerror(-result));
	} else {
		for (size_t i = 0; i < files.count; i++) {
			if (!files.files[i].path)
				continue;
			fputs("TN:\nSF:", stream);
			put_text(stream, files.files[i].path);
			put_functions(stream, &files.files[i]);
			put_lines(stream, &files.files[i]);
			fputs("end_of_record\n", stream);
		}
		coverage_files_deinit(&files);
	}
	coverage_deinit(&coverage);
	return result < 0 ? result : stream_check(stream, "coverage", problem);
}
