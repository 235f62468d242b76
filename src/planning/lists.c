/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See lists.h.
 */
#include "planning/lists.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "console/message.h"
#include "files/stream.h"
#include "output/json_writer.h"
#include "planning/row.h"
#include "settings/listing.h"

enum { MODULE_COLUMN_WIDTH = 14 };

static const char *const function_list_names[PRINT_LIST_COUNT] = {"available", "instrumented",
								  "excluded", "overlapping"};

static const char *const plan_mode_words[] = {"off", "full", "count", "arguments"};

/* One list being written. */
struct function_list_writer_state {
	FILE *text, *json; /* NULL: not wanted */
	struct json_writer writer;
	char text_path[4096], json_path[4096];
};

/* ---- opening and closing ---- */

/* Under another name until it is complete. */
static FILE *list_open_temporary_file(const char *directory, const char *name, const char *ending,
				      char *path, size_t size, struct problem *problem)
{
	char temporary[4200];
	FILE *file;

	snprintf(path, size, "%s/%s.%s", directory, name, ending);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	unlink(temporary);
	file = fopen(temporary, "wxe");
	if (!file)
		problem_set(problem, -errno, "cannot write '%s': %s", path, strerror(errno));
	return file;
}

static void list_write_heading(struct function_list_writer_state *list, const char *name)
{
	if (list->text)
		fprintf(list->text, "%-18s %12s %13s %5s  %-7s %-10s %-14s %s%s\n", "StartAddress",
			"AddressRange", "#Instructions", "Ratio", "Linkage", "Visibility", "Module",
			"Function | FunctionSignature",
			strcmp(name, "excluded") ? "" : " | Reason");
	if (!list->json)
		return;
	json_writer_init(&list->writer, list->json);
	json_object_begin(&list->writer, NULL);
	json_put_text(&list->writer, "schema", "kymo.functions");
	json_put_count(&list->writer, "version", 1);
	json_put_text(&list->writer, "list", name);
	json_array_begin(&list->writer, "modules");
}

static int lists_open_all_output_files(struct function_list_writer_state lists[PRINT_LIST_COUNT],
				       const char *directory, bool text, bool json,
				       struct problem *problem)
{
	memset(lists, 0, PRINT_LIST_COUNT * sizeof(*lists));
	for (unsigned i = 0; i < PRINT_LIST_COUNT; i++) {
		struct function_list_writer_state *list = &lists[i];

		if (text && !(list->text = list_open_temporary_file(
				      directory, function_list_names[i], "txt", list->text_path,
				      sizeof(list->text_path), problem)))
			return -EIO;
		if (json && !(list->json = list_open_temporary_file(
				      directory, function_list_names[i], "json", list->json_path,
				      sizeof(list->json_path), problem)))
			return -EIO;
		list_write_heading(list, function_list_names[i]);
	}
	return 0;
}

static int list_close_and_rename_file(FILE *file, const char *path, int error,
				      struct problem *problem)
{
	char temporary[4200];

	if (!file)
		return error;
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	if (!error)
		error = stream_flush_or_set_problem(file, path, problem);
	fclose(file);
	if (!error && rename(temporary, path))
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	if (error)
		unlink(temporary);
	return error;
}

static int lists_close_all_output_files(struct function_list_writer_state lists[PRINT_LIST_COUNT],
					int error, struct problem *problem)
{
	for (unsigned i = 0; i < PRINT_LIST_COUNT; i++) {
		if (lists[i].json && !error) {
			json_array_end(&lists[i].writer);
			json_object_end(&lists[i].writer);
			error = json_writer_finish(&lists[i].writer, problem);
		}
		error = list_close_and_rename_file(lists[i].text, lists[i].text_path, error,
						   problem);
		error = list_close_and_rename_file(lists[i].json, lists[i].json_path, error,
						   problem);
	}
	return error;
}

/* ---- rows ---- */

static const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void list_write_row_text(FILE *out, const struct function_list_row *row, bool reason)
{
	size_t columns;

	fprintf(out, "0x%016" PRIx64 " %12" PRIu32 " %13" PRIu32 " %5.2f  %-7s %-10s ",
		row->function->vaddr, row->function->size, row->function->instructions,
		function_list_row_get_bytes_per_insn(row), selection_linkage_to_word(row->linkage),
		selection_visibility_to_word(row->visibility));
	columns = listing_print_sanitized_text(out, path_base_name(row->module));
	fprintf(out, "%*s",
		columns < MODULE_COLUMN_WIDTH ? (int)(MODULE_COLUMN_WIDTH + 1 - columns) : 1, "");
	listing_print_sanitized_text(out, row->name);
	if (strcmp(row->signature, row->name) != 0 || reason) {
		fputs(" | ", out);
		listing_print_sanitized_text(out, row->signature);
	}
	if (reason)
		fprintf(out, " | %s", function_list_row_get_reason_text(row));
	fputc('\n', out);
}

static void list_write_row_json(struct json_writer *json, const struct function_list_row *row)
{
	json_object_begin(json, NULL);
	json_put_count(json, "start_address", row->function->vaddr);
	json_put_count(json, "address_range", row->function->size);
	json_put_count(json, "instructions", row->function->instructions);
	json_put_real_with_6_digits(json, "ratio", function_list_row_get_bytes_per_insn(row));
	json_put_text(json, "linkage", selection_linkage_to_word(row->linkage));
	json_put_text(json, "visibility", selection_visibility_to_word(row->visibility));
	json_put_text(json, "function", row->name);
	json_put_text(json, "function_signature", row->signature);
	json_put_text(json, "mangled", row->mangled_name);
	json_put_count(json, "loops", row->function->loops);
	if (row->verdict == SELECTION_VERDICT_CHOSEN) {
		json_put_text(json, "mode", plan_mode_words[row->mode]);
	} else {
		json_put_text(json, "reason", function_list_row_get_reason_word(row));
		json_put_text(json, "reason_text", function_list_row_get_reason_text(row));
	}
	json_object_end(json);
}

static void list_begin_module_json(struct json_writer *json, const struct planned_module *module)
{
	json_object_begin(json, NULL);
	json_put_text(json, "module", module->path);
	if (module->plan.header && module->plan.header->build_id_size <= 32)
		json_put_bytes_as_hexadecimal(json, "build_id", module->plan.header->build_id,
					      module->plan.header->build_id_size);
	json_put_count(json, "functions_total", module->selection.function_count);
	json_put_count(json, "functions_available", module->selection.patchable_count);
	json_put_count(json, "functions_instrumented", module->selection.chosen_count);
	if (module->status)
		json_put_text(json, "reason_text", module->problem.text);
	else if (module->verdict != SELECTION_VERDICT_CHOSEN)
		json_put_text(json, "reason_text", selection_verdict_to_text(module->verdict));
	json_array_begin(json, "functions");
}

/* The functions of a module; places in them stand behind all functions. */
static size_t list_count_module_functions(const struct planned_module *module)
{
	size_t count = module->selection.count;

	while (count && plan_get_functions(&module->plan)[count - 1].flags &
				(PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK))
		count--;
	return count;
}

static int
lists_write_functions_of_module(struct function_list_writer_state lists[PRINT_LIST_COUNT],
				const struct planned_module *module, unsigned labels)
{
	size_t count = list_count_module_functions(module);
	int error = 0;

	for (unsigned i = 0; i < PRINT_LIST_COUNT; i++) {
		if (lists[i].json)
			list_begin_module_json(&lists[i].writer, module);
	}
	for (size_t index = 0; !error && index < count; index++) {
		struct function_list_row row;

		error = function_list_row_init(module, index, labels, &row);
		for (unsigned i = 0; !error && i < PRINT_LIST_COUNT; i++) {
			if (!function_list_row_is_in_list(&row, (enum function_list_kind)i))
				continue;
			if (lists[i].text)
				list_write_row_text(lists[i].text, &row, i == PRINT_EXCLUDED);
			if (lists[i].json)
				list_write_row_json(&lists[i].writer, &row);
		}
		if (!error)
			function_list_row_deinit(&row);
	}
	for (unsigned i = 0; i < PRINT_LIST_COUNT; i++) {
		if (lists[i].json) {
			json_array_end(&lists[i].writer);
			json_object_end(&lists[i].writer);
		}
	}
	return error;
}

int function_lists_write_files(const struct function_list_output_args *lists, const char *directory,
			       bool text, bool json, struct problem *problem)
{
	struct function_list_writer_state files[PRINT_LIST_COUNT];
	int error = lists_open_all_output_files(files, directory, text, json, problem);

	for (size_t i = 0; !error && i < lists->count; i++) {
		error = lists_write_functions_of_module(files, lists->modules[i], lists->labels);
		if (error)
			problem_set(problem, error, "out of memory");
	}
	return lists_close_all_output_files(files, error, problem);
}

/* ---- printing ---- */

int instrument_check_print_argument(const char *what, const char *option, struct problem *problem)
{
	static const char *const words[] = {"functions", "functions+", "modules", "pair", "pair+"};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(words[i], what))
			return 0;
	}
	return problem_set(problem, -EINVAL,
			   "--print-%s: '%.100s' cannot be printed (one of: "
			   "functions,functions+,modules,pair,pair+)",
			   option, what);
}

static void list_print_module_path(const char *path, const char *behind, FILE *out)
{
	fputc('[', out);
	listing_print_sanitized_text(out, path);
	fprintf(out, "]%s", behind);
}

static void list_print_row(const struct function_list_row *row, enum function_list_kind list,
			   const char *what, FILE *out)
{
	const char *name = what[strlen(what) - 1] == '+' ? row->signature : row->name;

	if (!strncmp(what, "pair", 4))
		list_print_module_path(row->module, " ", out);
	listing_print_sanitized_text(out, name);
	if (list == PRINT_EXCLUDED)
		fprintf(out, ": %s", function_list_row_get_reason_text(row));
	fputc('\n', out);
}

void function_lists_print_one(const struct function_list_output_args *lists,
			      enum function_list_kind list, const char *what, FILE *out)
{
	bool modules_only = !strcmp(what, "modules");

	for (size_t i = 0; i < lists->count; i++) {
		const struct planned_module *module = lists->modules[i];
		size_t count = list_count_module_functions(module);
		bool any = false;

		for (size_t index = 0; index < count && !(any && modules_only); index++) {
			struct function_list_row row;

			if (function_list_row_init(module, index, lists->labels, &row))
				return;
			if (function_list_row_is_in_list(&row, list)) {
				any = true;
				if (!modules_only)
					list_print_row(&row, list, what, out);
			}
			function_list_row_deinit(&row);
		}
		if (list == PRINT_EXCLUDED && !count) {
			list_print_module_path(module->path, ": ", out);
			listing_print_sanitized_text(
				out, module->status ? module->problem.text
						    : selection_verdict_to_text(module->verdict));
		} else if (any && modules_only) {
			listing_print_sanitized_text(out, module->path);
		} else {
			continue;
		}
		fputc('\n', out);
	}
}

/* ---- summary ---- */

static double compute_percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

void function_lists_print_summary(const struct function_list_output_args *lists)
{
	size_t functions = 0, patchable = 0, chosen = 0, modules = 0;

	for (size_t i = 0; i < lists->count; i++) {
		const struct planned_module *module = lists->modules[i];
		const struct selection *selection = &module->selection;

		functions += selection->function_count;
		patchable += selection->patchable_count;
		chosen += selection->chosen_count;
		modules += selection->chosen_count != 0;
		if (module->status)
			message_detail("%s: not instrumented: %s", module->path,
				       module->problem.text);
		else if (module->verdict)
			message_detail("%s: left alone: %s", module->path,
				       selection_verdict_to_text(module->verdict));
		else
			message_detail(
				"%s: %zu of %zu functions instrumented (%.1f %%; %.2f %% "
				"can be)",
				module->path, selection->chosen_count, selection->function_count,
				compute_percent(selection->chosen_count, selection->function_count),
				compute_percent(selection->patchable_count,
						selection->function_count));
	}
	message_note("%zu of %zu functions in %zu module%s instrumented (%.1f %%; %.2f %% can be)",
		     chosen, functions, modules, modules == 1 ? "" : "s",
		     compute_percent(chosen, functions), compute_percent(patchable, functions));
}
