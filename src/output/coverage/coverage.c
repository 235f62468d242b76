/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * coverage.txt and coverage.json: shares of modules and source files, then every function.
 */
#include "output/coverage/coverage.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "files/stream.h"
#include "output/format.h"
#include "output/json/parts.h"
#include "output/output.h"

#define NAME_COLUMNS_MAX 120

/* ---- text ---- */

static void write_coverage_share(FILE *stream, struct coverage_share_counts share)
{
	if (share.total_count)
		fprintf(stream, "%8" PRIu64 " %8" PRIu64 " %6.2f  ", share.covered_count,
			share.total_count, coverage_share_to_percent(share));
	else
		fprintf(stream, "%8s %8s %6s  ", "-", "-", "-");
}

static void write_share_columns(FILE *stream, struct coverage_share_counts functions,
				struct coverage_share_counts blocks,
				struct coverage_share_counts lines)
{
	write_coverage_share(stream, functions);
	write_coverage_share(stream, blocks);
	write_coverage_share(stream, lines);
}

static void write_column_titles(FILE *stream, const char *title, const char *last)
{
	fprintf(stream, "\n%s\n%8s %8s %6s  %8s %8s %6s  %8s %8s %6s  %s\n", title, "FUNCTION",
		"OF", "%", "BLOCK", "OF", "%", "LINE", "OF", "%", last);
}

static void write_function_call_counts(FILE *stream, const struct coverage *coverage)
{
	fputs("\nFUNCTIONS\n              CALLS  FUNCTION, SOURCE, MODULE\n", stream);
	for (size_t i = 0; i < coverage->module_count; i++) {
		const struct coverage_module *module = &coverage->modules[i];

		for (size_t k = 0; k < module->unit_count; k++) {
			const struct coverage_code_range *unit = &module->units[k];

			if (unit->block)
				continue;
			fprintf(stream, "%19" PRIu64 "  ", unit->calls);
			format_write_cut_to_width(stream, unit->function, NAME_COLUMNS_MAX);
			if (unit->file) {
				fputs(", ", stream);
				format_write_cut_to_width(stream, unit->file, NAME_COLUMNS_MAX);
				fprintf(stream, ":%" PRIu32, unit->line);
			}
			fputs(", ", stream);
			format_write_cut_to_width(stream, module->path, NAME_COLUMNS_MAX);
			fputc('\n', stream);
		}
	}
}

static void write_coverage_text(FILE *stream, const struct coverage *coverage,
				const struct coverage_source_files *files)
{
	fputs("kymo coverage: what was executed of the functions that were instrumented\n", stream);
	write_column_titles(stream, "ALL", "");
	write_share_columns(stream, coverage->functions, coverage->blocks, coverage->code_lines);
	fputc('\n', stream);
	if (coverage->unmeasured_block_count)
		fprintf(stream,
			"%" PRIu64
			" blocks are not among these: they are too short to be counted\n",
			coverage->unmeasured_block_count);
	write_column_titles(stream, "MODULES", "MODULE");
	for (size_t i = 0; i < coverage->module_count; i++) {
		const struct coverage_module *module = &coverage->modules[i];

		write_share_columns(stream, module->functions, module->blocks, module->code_lines);
		format_write_cut_to_width(stream, module->path, NAME_COLUMNS_MAX);
		fputc('\n', stream);
	}
	write_column_titles(stream, "SOURCE FILES", "FILE");
	for (size_t i = 0; i < files->count; i++) {
		const struct coverage_source_file *file = &files->files[i];

		write_share_columns(stream, file->function_counts, file->block_counts,
				    file->code_line_counts);
		format_write_cut_to_width(stream, file->path ? file->path : "(unknown)",
					  NAME_COLUMNS_MAX);
		fputc('\n', stream);
	}
	write_function_call_counts(stream, coverage);
}

/* ---- JSON ---- */

static void json_put_coverage_share(struct json_writer *json, const char *key,
				    struct coverage_share_counts share)
{
	if (!share.total_count)
		return;
	json_object_begin(json, key);
	json_put_count(json, "covered", share.covered_count);
	json_put_count(json, "total", share.total_count);
	json_put_real_with_6_digits(json, "percent", coverage_share_to_percent(share));
	json_object_end(json);
}

static void json_put_coverage_code_range(struct json_writer *json,
					 const struct coverage_code_range *unit)
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

static void json_put_functions_or_blocks(struct json_writer *json,
					 const struct coverage_module *module, bool blocks)
{
	json_array_begin(json, blocks ? "block_list" : "function_list");
	for (size_t i = 0; i < module->unit_count; i++) {
		if (module->units[i].block == blocks)
			json_put_coverage_code_range(json, &module->units[i]);
	}
	json_array_end(json);
}

static void json_put_modules(struct json_writer *json, const struct coverage *coverage)
{
	json_array_begin(json, "modules");
	for (size_t i = 0; i < coverage->module_count; i++) {
		const struct coverage_module *module = &coverage->modules[i];

		json_object_begin(json, NULL);
		json_put_text(json, "path", module->path);
		json_put_bytes_as_hexadecimal(json, "build_id", module->build_id,
					      module->build_id_size);
		json_put_coverage_share(json, "functions", module->functions);
		json_put_coverage_share(json, "blocks", module->blocks);
		json_put_coverage_share(json, "lines", module->code_lines);
		if (module->unmeasured_block_count)
			json_put_count(json, "blocks_unmeasured", module->unmeasured_block_count);
		json_put_functions_or_blocks(json, module, false);
		if (module->blocks.total_count)
			json_put_functions_or_blocks(json, module, true);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_source_files(struct json_writer *json,
				  const struct coverage_source_files *files)
{
	json_array_begin(json, "files");
	for (size_t i = 0; i < files->count; i++) {
		const struct coverage_source_file *file = &files->files[i];

		json_object_begin(json, NULL);
		json_put_text(json, "path", file->path);
		json_put_coverage_share(json, "functions", file->function_counts);
		json_put_coverage_share(json, "blocks", file->block_counts);
		json_put_coverage_share(json, "lines", file->code_line_counts);
		json_object_end(json);
	}
	json_array_end(json);
}

static int write_coverage_json_document(FILE *stream, const struct coverage *coverage,
					const struct coverage_source_files *files,
					struct problem *problem)
{
	struct json_writer json;

	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", "kymo.coverage/1");
	json_put_coverage_share(&json, "functions", coverage->functions);
	json_put_coverage_share(&json, "blocks", coverage->blocks);
	json_put_coverage_share(&json, "lines", coverage->code_lines);
	json_put_modules(&json, coverage);
	json_put_source_files(&json, files);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}

/* ---- */

static int compute_and_write_coverage(struct session *session, const struct output_options *options,
				      FILE *stream, bool as_json, struct problem *problem)
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
		if (as_json)
			result = write_coverage_json_document(stream, &coverage, &files, problem);
		else
			write_coverage_text(stream, &coverage, &files);
		coverage_source_files_deinit(&files);
	}
	coverage_deinit(&coverage);
	return result < 0 ? result : stream_flush_or_set_problem(stream, "coverage", problem);
}

static int output_write_coverage_text(struct session *session, const struct output_options *options,
				      FILE *stream, struct problem *problem)
{
	return compute_and_write_coverage(session, options, stream, false, problem);
}

const struct output_format output_format_coverage = {
	.name = "coverage",
	.file_name = "coverage.txt",
	.description = "functions and lines that ran, as text",
	.can_join_sessions = true,
	.has_whole_run_only = true,
	.write = output_write_coverage_text,
};

static int write_coverage_json(struct session *session, const struct output_options *options,
			       FILE *stream, struct problem *problem)
{
	return compute_and_write_coverage(session, options, stream, true, problem);
}

const struct output_format output_format_coverage_json = {
	.name = "coverage-json",
	.file_name = "coverage.json",
	.description = "the same as JSON",
	.can_join_sessions = true,
	.has_whole_run_only = true,
	.write = write_coverage_json,
};
