/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument_lists.h.
 */
#include "cmd/instrument_lists.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/instrument_row.h"
#include "cmd/listing.h"
#include "cmd/message.h"
#include "output/json_writer.h"
#include "output/stream.h"

enum { MODULE_COLUMNS = 14 };

static const char *const list_names[PRINT_LISTS] = {"available", "instrumented", "excluded",
						    "overlapping"};

static const char *const mode_words[] = {"off", "full", "count", "arguments"};

/* One list being written. */
struct list_file {
	FILE *text, *json; /* NULL: not wanted */
	struct json_writer writer;
	char text_path[4096], json_path[4096];
};

/* ---- opening and closing ---- */

/* Under another name until it is complete. */
static FILE *list_open(const char *directory, const char *name, const char *ending, char *path,
		       size_t size, struct problem *problem)
{
	char temporary[4200];
	FILE *file;

	snprintf(path, size, "%s/%s.%s", directory, name, ending);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = fopen(temporary, "we");
	if (!file)
		problem_set(problem, -errno, "cannot write '%s': %s", path, strerror(errno));
	return file;
}

static void list_begin(struct list_file *list, const char *name)
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

static int list_open_all(struct list_file lists[PRINT_LISTS], const char *directory, bool text,
			 bool json, struct problem *problem)
{
	memset(lists, 0, PRINT_LISTS * sizeof(*lists));
	for (unsigned i = 0; i < PRINT_LISTS; i++) {
		struct list_file *list = &lists[i];

		if (text &&
		    !(list->text = list_open(directory, list_names[i], "txt", list->text_path,
					     sizeof(list->text_path), problem)))
			return -EIO;
		if (json &&
		    !(list->json = list_open(directory, list_names[i], "json", list->json_path,
					     sizeof(list->json_path), problem)))
			return -EIO;
		list_begin(list, list_names[i]);
	}
	return 0;
}

static int list_close(FILE *file, const char *path, int error, struct problem *problem)
{
	char temporary[4200];

	if (!file)
		return error;
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	if (!error)
		error = stream_check(file, path, problem);
	fclose(file);
	if (!error && rename(temporary, path))
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	if (error)
		unlink(temporary);
	return error;
}

static int list_close_all(struct list_file lists[PRINT_LISTS], int error, struct problem *problem)
{
	for (unsigned i = 0; i < PRINT_LISTS; i++) {
		if (lists[i].json && !error) {
			json_array_end(&lists[i].writer);
			json_object_end(&lists[i].writer);
			error = json_writer_finish(&lists[i].writer, problem);
		}
		error = list_close(lists[i].text, lists[i].text_path, error, problem);
		error = list_close(lists[i].json, lists[i].json_path, error, problem);
	}
	return error;
}

/* ---- rows ---- */

static const char *list_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void list_row_text(FILE *out, const struct instrument_row *row, bool reason)
{
	size_t columns;

	fprintf(out, "0x%016" PRIx64 " %12" PRIu32 " %13" PRIu32 " %5.2f  %-7s %-10s ",
		row->function->vaddr, row->function->size, row->function->instructions,
		instrument_row_ratio(row), selection_linkage_word(row->linkage),
		selection_visibility_word(row->visibility));
	columns = listing_text(out, list_base(row->module));
	fprintf(out, "%*s", columns < MODULE_COLUMNS ? (int)(MODULE_COLUMNS + 1 - columns) : 1, "");
	listing_text(out, row->name);
	if (strcmp(row->signature, row->name) != 0 || reason) {
		fputs(" | ", out);
		listing_text(out, row->signature);
	}
	if (reason)
		fprintf(out, " | %s", instrument_row_reason(row));
	fputc('\n', out);
}

static void list_row_json(struct json_writer *json, const struct instrument_row *row)
{
	json_object_begin(json, NULL);
	json_put_count(json, "start_address", row->function->vaddr);
	json_put_count(json, "address_range", row->function->size);
	json_put_count(json, "instructions", row->function->instructions);
	json_put_number(json, "ratio", instrument_row_ratio(row));
	json_put_text(json, "linkage", selection_linkage_word(row->linkage));
	json_put_text(json, "visibility", selection_visibility_word(row->visibility));
	json_put_text(json, "function", row->name);
	json_put_text(json, "function_signature", row->signature);
	json_put_text(json, "mangled", row->mangled);
	json_put_count(json, "loops", row->function->loops);
	if (row->verdict == SELECTION_CHOSEN) {
		json_put_text(json, "mode", mode_words[row->mode]);
	} else {
		json_put_text(json, "reason", instrument_row_reason_word(row));
		json_put_text(json, "reason_text", instrument_row_reason(row));
	}
	json_object_end(json);
}

static void list_module_begin(struct json_writer *json, const struct instrument_module *module)
{
	json_object_begin(json, NULL);
	json_put_text(json, "module", module->path);
	if (module->plan.header && module->plan.header->build_id_size <= 32)
		json_put_hexadecimal(json, "build_id", module->plan.header->build_id,
				     module->plan.header->build_id_size);
	json_put_count(json, "functions_total", module->selection.functions);
	json_put_count(json, "functions_available", module->selection.patchable);
	json_put_count(json, "functions_instrumented", module->selection.chosen);
	if (module->status)
		json_put_text(json, "reason_text", module->problem.text);
	else if (module->verdict != SELECTION_CHOSEN)
		json_put_text(json, "reason_text", selection_verdict_text(module->verdict));
	json_array_begin(json, "functions");
}

/* The functions of a module; places in them stand behind all functions. */
static size_t list_function_count(const struct instrument_module *module)
{
	size_t count = module->selection.count;

	while (count && plan_functions(&module->plan)[count - 1].flags &
				(PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK))
		count--;
	return count;
}

static int list_module(struct list_file lists[PRINT_LISTS], const struct instrument_module *module,
		       unsigned labels)
{
	size_t count = list_function_count(module);
	int error = 0;

	for (unsigned i = 0; i < PRINT_LISTS; i++) {
		if (lists[i].json)
			list_module_begin(&lists[i].writer, module);
	}
	for (size_t index = 0; !error && index < count; index++) {
		struct instrument_row row;

		error = instrument_row_init(module, index, labels, &row);
		for (unsigned i = 0; !error && i < PRINT_LISTS; i++) {
			if (!instrument_row_is_on(&row, (enum instrument_print)i))
				continue;
			if (lists[i].text)
				list_row_text(lists[i].text, &row, i == PRINT_EXCLUDED);
			if (lists[i].json)
				list_row_json(&lists[i].writer, &row);
		}
		if (!error)
			instrument_row_deinit(&row);
	}
	for (unsigned i = 0; i < PRINT_LISTS; i++) {
		if (lists[i].json) {
			json_array_end(&lists[i].writer);
			json_object_end(&lists[i].writer);
		}
	}
	return error;
}

int instrument_lists_write(const struct instrument_lists *lists, const char *directory, bool text,
			   bool json, struct problem *problem)
{
	struct list_file files[PRINT_LISTS];
	int error = list_open_all(files, directory, text, json, problem);

	for (size_t i = 0; !error && i < lists->count; i++) {
		error = list_module(files, lists->modules[i], lists->labels);
		if (error)
			problem_set(problem, error, "out of memory");
	}
	return list_close_all(files, error, problem);
}

/* ---- printing ---- */

int instrument_lists_check(const char *what, const char *option, struct problem *problem)
{
	static const char *const words[] = {"functions", "functions+", "modules", "pair", "pair+"};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i], what))
			return 0;
	}
	return problem_set(problem, -EINVAL,
			   "--print-%s: '%.100s' cannot be printed (one of: "
			   "functions,functions+,modules,pair,pair+)",
			   option, what);
}

static void list_print_module(const char *path, const char *behind, FILE *out)
{
	fputc('[', out);
	listing_text(out, path);
	fprintf(out, "]%s", behind);
}

static void list_print_row(const struct instrument_row *row, enum instrument_print list,
			   const char *what, FILE *out)
{
	const char *name = what[strlen(what) - 1] == '+' ? row->signature : row->name;

	if (!strncmp(what, "pair", 4))
		list_print_module(row->module, " ", out);
	listing_text(out, name);
	if (list == PRINT_EXCLUDED)
		fprintf(out, ": %s", instrument_row_reason(row));
	fputc('\n', out);
}

void instrument_lists_print(const struct instrument_lists *lists, enum instrument_print list,
			    const char *what, FILE *out)
{
	bool modules_only = !strcmp(what, "modules");

	for (size_t i = 0; i < lists->count; i++) {
		const struct instrument_module *module = lists->modules[i];
		size_t count = list_function_count(module);
		bool any = false;

		for (size_t index = 0; index < count && !(any && modules_only); index++) {
			struct instrument_row row;

			if (instrument_row_init(module, index, lists->labels, &row))
				return;
			if (instrument_row_is_on(&row, list)) {
				any = true;
				if (!modules_only)
					list_print_row(&row, list, what, out);
			}
			instrument_row_deinit(&row);
		}
		if (list == PRINT_EXCLUDED && !count) {
			list_print_module(module->path, ": ", out);
			listing_text(out, module->status ? module->problem.text
							 : selection_verdict_text(module->verdict));
		} else if (any && modules_only) {
			listing_text(out, module->path);
		} else {
			continue;
		}
		fputc('\n', out);
	}
}

/* ---- summary ---- */

static double list_percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

void instrument_lists_summary(const struct instrument_lists *lists)
{
	size_t functions = 0, patchable = 0, chosen = 0, modules = 0;

	for (size_t i = 0; i < lists->count; i++) {
		const struct instrument_module *module = lists->modules[i];
		const struct selection *selection = &module->selection;

		functions += selection->functions;
		patchable += selection->patchable;
		chosen += selection->chosen;
		modules += selection->chosen != 0;
		if (module->status)
			message_detail("%s: not instrumented: %s", module->path,
				       module->problem.text);
		else if (module->verdict)
			message_detail("%s: left alone: %s", module->path,
				       selection_verdict_text(module->verdict));
		else
			message_detail("%s: %zu of %zu functions instrumented (%.1f %%; %.2f %% "
				       "can be)",
				       module->path, selection->chosen, selection->functions,
				       list_percent(selection->chosen, selection->functions),
				       list_percent(selection->patchable, selection->functions));
	}
	message_note("%zu of %zu functions in %zu module%s instrumented (%.1f %%; %.2f %% can be)",
		     chosen, functions, modules, modules == 1 ? "" : "s",
		     list_percent(chosen, functions), list_percent(patchable, functions));
}
