/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * coverage.txt and coverage.json: shares of modules and source files, then every function.
 */
#include "output/coverage.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "output/format.h"
#include "output/json_parts.h"
#include "output/stream.h"
#include "output/writers.h"

#define NAME_WIDTH 120

/* ---- text ---- */

static void write_share(FILE *stream, struct coverage_share share)
{
	if (share.total)
		fprintf(stream, "%8" PRIu64 " %8" PRIu64 " %6.2f  ", share.covered, share.total,
			coverage_percent(share));
	else
		fprintf(stream, "%8s %8s %6s  ", "-", "-", "-");
}

static void write_shares(FILE *stream, struct coverage_share functions,
			 struct coverage_share blocks, struct coverage_share lines)
{
	write_share(stream, functions);
	write_share(stream, blocks);
	write_share(stream, lines);
}

static void write_columns(FILE *stream, const char *title, const char *last)
{
	fprintf(stream, "\n%s\n%8s %8s %6s  %8s %8s %6s  %8s %8s %6s  %s\n", title, "FUNCTION",
		"OF", "%", "BLOCK", "OF", "%", "LINE", "OF", "%", last);
}

static void write_functions(FILE *stream, const struct coverage *coverage)
{
	fputs("\nFUNCTIONS\n              CALLS  FUNCTION, SOURCE, MODULE\n", stream);
	for (size_t i = 0; i < coverage->module_count; i++) {
		const struct coverage_module *module = &coverage->modules[i];

		for (size_t k = 0; k < module->unit_count; k++) {
			const struct coverage_unit *unit = &module->units[k];

			if (unit->block)
				continue;
			fprintf(stream, "%19" PRIu64 "  ", unit->calls);
			format_limited(stream, unit->function, NAME_WIDTH);
			if (unit->file) {
				fputs(", ", stream);
				format_limited(stream, unit->file, NAME_WIDTH);
				fprintf(stream, ":%" PRIu32, unit->line);
			}
			fputs(", ", stream);
			format_limited(stream, module->path, NAME_WIDTH);
			fputc('\n', stream);
		}
	}
}

static void write_text(FILE *stream, const struct coverage *coverage,
		       const struct coverage_files *files)
{
	fputs("kymo coverage: what was executed of the functions that were instrumented\n", stream);
	write_columns(stream, "ALL", "");
	write_shares(stream, coverage->functions, coverage->blocks, coverage->code_lines);
	fputc('\n', stream);
	if (coverage->unmeasured)
		fprintf(stream,
			"%" PRIu64
			" blocks are not among these: they are too short to be counted\n",
			coverage->unmeasured);
	write_columns(stream, "MODULES", "MODULE");
	for (size_t i = 0; i < coverage->module_count; i++) {
		const struct coverage_module *module = &coverage->modules[i];

		write_shares(stream, module->functions, module->blocks, module->code_lines);
		format_limited(stream, module->path, NAME_WIDTH);
		fputc('\n', stream);
	}
	write_columns(stream, "SOURCE FILES", "FILE");
	for (size_t i = 0; i < files->count; i++) {
		const struct coverage_file *file = &files->files[i];

		write_shares(stream, file->functions, file->blocks, file->code_lines);
		format_limited(stream, file->path ? file->path : "(unknown)", NAME_WIDTH);
		fputc('\n', stream);
	}
	write_functions(stream, coverage);
}

/* ---- JSON ---- */

static void put_share(struct json_writer *json, const char *key, struct coverage_share share)
{
	if (!share.total)
		return;
	json_object_begin(json, key);
	json_put_count(json, "covered", share.covered);
	json_put_count(json, "total", share.total);
	json_put_number(json, "percent", coverage_percent(share));
	json_object_end(json);
}

static void put_unit(struct json_writer *json, const struct coverage_unit *unit)
{
	json_object_begin(json, NULL);
	json_put_text(json, "function", unit->function);
	if (unit->linkage_name)
		json_put_text(json, "linkage_name", unit->linkage_name);
	if (unit->file) {
		json_put_text(json, "file", unit->file);
		json_put_count(json, "line", unit->line);
	}
	json_put_count(json, "address", unit->vaddr);
	json_put_count(json, "size", unit->size);
	json_put_count(json, "count", unit->calls);
	json_object_end(json);
}

static void put_units(struct json_writer *json, const struct coverage_module *module, bool blocks)
{
	json_array_begin(json, blocks ? "block_list" : "function_list");
	for (size_t i = 0; i < module->unit_count; i++) {
		if (module->units[i].block == blocks)
			put_unit(json, &module->units[i]);
	}
	json_array_end(json);
}

static void put_modules(struct json_writer *json, const struct coverage *coverage)
{
	json_array_begin(json, "modules");
	for (size_t i = 0; i < coverage->module_count; i++) {
		const struct coverage_module *module = &coverage->modules[i];

		json_object_begin(json, NULL);
		json_put_text(json, "path", module->path);
		json_put_hexadecimal(json, "build_id", module->build_id, module->build_id_size);
		put_share(json, "functions", module->functions);
		put_share(json, "blocks", module->blocks);
		put_share(json, "lines", module->code_lines);
		if (module->unmeasured)
			json_put_count(json, "blocks_unmeasured", module->unmeasured);
		put_units(json, module, false);
		if (module->blocks.total)
			put_units(json, module, true);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_files(struct json_writer *json, const struct coverage_files *files)
{
	json_array_begin(json, "files");
	for (size_t i = 0; i < files->count; i++) {
		const struct coverage_file *file = &files->files[i];

		json_object_begin(json, NULL);
		json_put_text(json, "path", file->path);
		put_share(json, "functions", file->functions);
		put_share(json, "blocks", file->blocks);
		put_share(json, "lines", file->code_lines);
		json_object_end(json);
	}
	json_array_end(json);
}

static int write_json(FILE *stream, const struct coverage *coverage,
		      const struct coverage_files *files, struct problem *problem)
{
	struct json_writer json;

	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", "kymo.coverage/1");
	put_share(&json, "functions", coverage->functions);
	put_share(&json, "blocks", coverage->blocks);
	put_share(&json, "lines", coverage->code_lines);
	put_modules(&json, coverage);
	put_files(&json, files);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}

/* ---- */

static int write_one(struct session *session, const struct output_options *options, FILE *stream,
		     bool as_json, struct problem *problem)
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
		if (as_json)
			result = write_json(stream, &coverage, &files, problem);
		else
			write_text(stream, &coverage, &files);
		coverage_files_deinit(&files);
	}
	coverage_deinit(&coverage);
	return result < 0 ? result : stream_check(stream, "coverage", problem);
}

int output_coverage(struct session *session, const struct output_options *options, FILE *stream,
		    struct problem *problem)
{
	return write_one(session, options, stream, false, problem);
}

int output_coverage_json(struct session *session, const struct output_options *options,
			 FILE *stream, struct problem *problem)
{
	return write_one(session, options, stream, true, problem);
}
