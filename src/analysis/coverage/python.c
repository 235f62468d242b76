/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Coverage of Python: a source file is a module, its code objects are the functions, and the lines
 * are those of their line tables. Lines are known where the interpreter tells them (3.12 and
 * later); of a process that does not, only functions are counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/coverage/private.h"
#include "analysis/interpreted/interpreted.h"
#include "analysis/session_private.h"

struct python_gathering {
	struct coverage *coverage;
	bool has_lines; /* of the process */
	int error;
};

static struct coverage_module *find_or_add_file(struct coverage *coverage, const char *file)
{
	const char *path = string_pool_intern(coverage->string_pool, file);

	for (size_t i = 0; path && i < coverage->module_count; i++) {
		if (coverage->modules[i].is_python && coverage->modules[i].path == path)
			return &coverage->modules[i];
	}
	if (!path || array_reserve_one_more((void **)&coverage->modules, &coverage->module_capacity,
					    coverage->module_count, sizeof(*coverage->modules)) < 0)
		return NULL;
	coverage->modules[coverage->module_count] =
		(struct coverage_module){.path = path, .is_python = true};
	return &coverage->modules[coverage->module_count++];
}

/* What stands for the address of a function: where it begins, and its name, since lambdas and
 * comprehensions of one line are several. */
static uint64_t make_function_key(const struct interpreted_code *code)
{
	uint32_t hash = 2166136261u;

	for (const char *at = code->name; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619u;
	return (uint64_t)code->first_line << 32 | hash;
}

static int add_function(struct coverage *coverage, struct coverage_module *module,
			const struct interpreted_code *code)
{
	const char *name = string_pool_intern(coverage->string_pool, code->name);

	if (!name || array_reserve_one_more((void **)&module->units, &module->unit_capacity,
					    module->unit_count, sizeof(*module->units)) < 0)
		return -ENOMEM;
	module->units[module->unit_count++] = (struct coverage_code_range){
		.vaddr = make_function_key(code),
		.file_offset = UINT64_MAX,
		.calls = code->is_called,
		.function = name,
		.file = module->path,
		.line = code->first_line,
	};
	return 0;
}

static int add_line(struct coverage_module *module, uint32_t line, uint64_t count)
{
	if (array_reserve_one_more((void **)&module->lines, &module->line_capacity,
				   module->line_count, sizeof(*module->lines)) < 0)
		return -ENOMEM;
	module->lines[module->line_count++] =
		(struct coverage_line){.file = module->path, .line = line, .count = count};
	return 0;
}

static int add_line_with_code(void *context, uint32_t line)
{
	return add_line(context, line, 0);
}

static int add_lines(struct coverage_module *module, const struct interpreted_code *code)
{
	int error = interpreted_code_visit_lines(code, add_line_with_code, module);

	for (uint32_t i = 0; !error && i < code->line_count; i++)
		error = add_line(module, code->lines[i], 1);
	return error;
}

static int add_code(void *context, const struct interpreted_code *code)
{
	struct python_gathering *gathering = context;
	struct coverage_module *module;
	int error;

	/* Code that a program makes of texts is in no file. */
	if (!code->is_measured || !*code->file || code->file[0] == '<')
		return 0;
	module = find_or_add_file(gathering->coverage, code->file);
	if (!module)
		return -ENOMEM;
	error = add_function(gathering->coverage, module, code);
	return error || !gathering->has_lines ? error : add_lines(module, code);
}

static int note_lines(void *context, const struct interpreted_code *code)
{
	struct python_gathering *gathering = context;

	gathering->has_lines |= code->line_count != 0;
	return 0;
}

int coverage_gather_python(struct coverage *coverage, const struct session *session)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < session->process_count; i++) {
		struct python_gathering gathering = {.coverage = coverage};

		interpreted_code_visit(session, i, note_lines, &gathering);
		error = interpreted_code_visit(session, i, add_code, &gathering);
	}
	return error;
}

static int compare_lines(const void *left, const void *right)
{
	const struct coverage_line *a = left, *b = right;

	return a->line < b->line ? -1 : a->line > b->line;
}

/* A line of several code objects and processes is one. How often it ran is not known. */
void coverage_merge_python_lines(struct coverage_module *module)
{
	size_t kept = 0;

	if (module->line_count > 1)
		qsort(module->lines, module->line_count, sizeof(*module->lines), compare_lines);
	for (size_t i = 0; i < module->line_count; i++) {
		if (kept && module->lines[kept - 1].line == module->lines[i].line)
			module->lines[kept - 1].count |= module->lines[i].count;
		else
			module->lines[kept++] = module->lines[i];
	}
	module->line_count = kept;
}
