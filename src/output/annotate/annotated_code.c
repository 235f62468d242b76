/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The instructions of an annotation: of the function itself, with what is inlined into it, and of
 * functions that it is inlined into.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/instruction_text.h"
#include "output/annotate/annotate.h"
#include "output/annotate/code_costs.h"

#define FUNCTION_BYTES_MAX (1u << 20)
#define FUNCTIONS_MAX      50u

struct code_reader {
	struct annotation *annotation;
	struct code_costs costs;
	const struct model_module *module;
	struct code_binary binary;
	enum code_binary_state state;
	uint64_t shown; /* of the function's self, in instructions */
};

static uint64_t get_value(const struct code_reader *reader, const uint64_t *by_source)
{
	return view_sum_sources_of_measure(by_source, reader->annotation->options->measure);
}

static bool is_of_function(const struct code_reader *reader, uint32_t frame)
{
	return reader->annotation->session->frames[frame].function_id ==
	       reader->annotation->function.function_id;
}

static uint64_t get_self(const struct code_reader *reader, const struct address_cost *cost)
{
	return is_of_function(reader, cost->innermost_frame) ? get_value(reader, cost->self) : 0;
}

static uint64_t sum_self(const struct code_reader *reader, const struct address_cost *costs,
			 size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += get_self(reader, &costs[i]);
	return sum;
}

/* Leaves the costs of the function, and moves those of each file together. */
static void keep_costs_of_function(struct code_reader *reader)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < reader->costs.file_keys.count; i++)
		reader->costs.files[i].count = 0;
	for (size_t i = 0; i < reader->costs.cost_count; i++) {
		const struct address_cost *cost = &reader->costs.costs[i];
		if (is_of_function(reader, cost->innermost_frame) ||
		    is_of_function(reader, cost->physical_frame))
			reader->costs.costs[kept++] = *cost;
	}
	reader->costs.cost_count = kept;
}

static struct annotated_code *add_code(struct code_reader *reader, const struct address_cost *costs,
				       size_t count)
{
	struct annotation *annotation = reader->annotation;

	if (array_reserve_one_more((void **)&annotation->codes, &annotation->code_capacity,
				   annotation->code_count, sizeof(*annotation->codes)) != 0)
		return NULL;
	struct annotated_code *code = &annotation->codes[annotation->code_count++];
	*code = (struct annotated_code){.path = reader->module->path,
					.self = sum_self(reader, costs, count)};
	return code;
}

/* ---- instructions ---- */

static int add_instruction(struct code_reader *reader, struct annotated_code *code,
			   const struct code_function *function, size_t at, bool follows_gap)
{
	struct annotation *annotation = reader->annotation;
	uint64_t address = function->symbol->address + at;
	char text[INSTRUCTION_TEXT_BYTES];

	if (instruction_to_text(function->bytes + at, function->symbol->size - at, address, text) ==
	    0)
		snprintf(text, sizeof(text), "%s",
			 instruction_text_is_built_in() ? "(not decoded)"
							: "(kymo is built without a disassembler)");
	if (array_reserve_one_more((void **)&code->instructions, &code->capacity, code->count,
				   sizeof(*code->instructions)) != 0)
		return -ENOMEM;
	struct annotated_instruction *instruction = &code->instructions[code->count++];
	*instruction = (struct annotated_instruction){
		.address = address,
		.follows_gap = follows_gap,
		.frame = MODEL_ENTRY_INDEX_NONE,
		.text = arena_copy_bytes(&annotation->arena, text, strlen(text))};
	for (size_t i = 0; i < function->count; i++) {
		const struct address_cost *cost = &function->costs[i];
		if (cost->address != address)
			continue;
		instruction->self += get_self(reader, cost);
		instruction->with_inlined += get_value(reader, cost->self);
		instruction->frame = cost->innermost_frame;
	}
	reader->shown += instruction->self;
	return instruction->text == NULL ? -ENOMEM : 0;
}

static int add_instructions(struct code_reader *reader, struct annotated_code *code,
			    const struct code_function *function)
{
	bool is_gap = false;
	int error = 0;

	for (size_t at = 0; error == 0 && at < function->symbol->size && function->lengths[at] != 0;
	     at += code_function_get_length(function, at)) {
		bool is_shown = (function->lengths[at] & CODE_FUNCTION_SHOWN) != 0;
		if (is_shown)
			error = add_instruction(reader, code, function, at,
						is_gap && code->count != 0);
		is_gap = !is_shown;
	}
	return error;
}

static const char *find_reason(const struct code_reader *reader,
			       const struct code_function *function)
{
	if (function->symbol == NULL)
		return "no symbol of the file covers these addresses";
	if (function->symbol->size > FUNCTION_BYTES_MAX)
		return "the function is larger than 1 MiB";
	if (reader->annotation->code_count > FUNCTIONS_MAX)
		return "fifty functions are shown, and this is one more";
	return NULL;
}

static int add_function(struct code_reader *reader, struct code_function *function)
{
	struct annotation *annotation = reader->annotation;
	struct annotated_code *code = add_code(reader, function->costs, function->count);
	int error = 0;

	if (code == NULL)
		return -ENOMEM;
	code->problem = find_reason(reader, function);
	if (function->symbol != NULL) {
		code->symbol = arena_copy_bytes(&annotation->arena, function->symbol->name,
						strlen(function->symbol->name));
		if (code->symbol == NULL)
			return -ENOMEM;
	}
	if (code->problem != NULL)
		return 0;
	error = code_function_read(function, reader->binary.file, annotation->options->context);
	if (error == 0)
		error = add_instructions(reader, code, function);
	else if (error != -ENOMEM) {
		code->problem = "the file ends before the function does";
		error = 0;
	}
	code_function_deinit(function);
	return error;
}

/* ---- files ---- */

static bool open_binary(const char *path, void *context)
{
	struct code_reader *reader = context;
	enum code_binary_state state;
	struct code_binary binary;
	const char *debug_path = reader->annotation->options->debug_path;
	int error = code_binary_open(&binary, reader->module, path, debug_path, &state);

	if (error == 0 && state == CODE_BINARY_OPEN) {
		reader->binary = binary;
		reader->state = state;
		return true;
	}
	code_binary_close(&binary);
	if (reader->state == CODE_BINARY_UNREADABLE)
		reader->state = state == CODE_BINARY_OPEN ? CODE_BINARY_UNREADABLE : state;
	return false;
}

static int add_file_that_cannot_be_shown(struct code_reader *reader,
					 const struct address_cost *costs, size_t count,
					 const char *tried)
{
	static const char *const reasons[] = {
		[CODE_BINARY_UNREADABLE] = "no program file that can be read",
		[CODE_BINARY_OTHER] = "the file is another build than the one that ran",
		[CODE_BINARY_UNKNOWN] = "the file is not of x86-64, or has too many symbols",
	};
	struct annotated_code *code = add_code(reader, costs, count);

	if (code == NULL)
		return -ENOMEM;
	code->problem = arena_format_text(
		&reader->annotation->arena,
		"%s; looked for %s (--debug-path names directories to look below)",
		reasons[reader->state], tried);
	return code->problem == NULL ? -ENOMEM : 0;
}

static int add_file(struct code_reader *reader, const struct address_cost *costs, size_t count)
{
	const char *path, *tried;

	reader->module =
		&reader->annotation->session->modules
			 [reader->annotation->session->frames[costs->innermost_frame].module];
	reader->state = CODE_BINARY_UNREADABLE;
	int error = annotation_try_places(reader->annotation, reader->module->path, open_binary,
					  reader, &path, &tried);
	if (error != 0)
		return error;
	if (path == NULL)
		return add_file_that_cannot_be_shown(reader, costs, count, tried);
	for (size_t i = 0, taken; error == 0 && i < count; i += taken) {
		struct code_function function =
			code_function_find(&reader->binary, &costs[i], count - i);
		taken = function.count;
		error = add_function(reader, &function);
	}
	code_binary_close(&reader->binary);
	return error;
}

static int compare_codes_by_self(const void *left, const void *right)
{
	const struct annotated_code *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return strcmp(a->symbol != NULL ? a->symbol : "", b->symbol != NULL ? b->symbol : "");
}

static unsigned find_sources_of_measure(enum view_measure_kind measure)
{
	unsigned sources = 0;

	for (unsigned i = 0; i < MODEL_SOURCE_COUNT; i++) {
		uint64_t one[MODEL_SOURCE_COUNT] = {0};
		one[i] = 1;
		if (view_sum_sources_of_measure(one, measure) != 0)
			sources |= 1u << i;
	}
	return sources;
}

int annotation_add_code(struct annotation *annotation)
{
	struct code_reader reader = {.annotation = annotation};
	int error = code_costs_init(&reader.costs, annotation->session,
				    find_sources_of_measure(annotation->options->measure));

	if (error == 0)
		keep_costs_of_function(&reader);
	for (size_t i = 0, count; error == 0 && i < reader.costs.cost_count; i += count) {
		const struct address_cost *costs = &reader.costs.costs[i];
		count = 1;
		while (i + count < reader.costs.cost_count && costs[count].file == costs->file)
			count++;
		error = add_file(&reader, costs, count);
	}
	if (annotation->code_count != 0)
		qsort(annotation->codes, annotation->code_count, sizeof(*annotation->codes),
		      compare_codes_by_self);
	if (annotation->function.self > reader.shown)
		annotation->self_without_address = annotation->function.self - reader.shown;
	code_costs_deinit(&reader.costs);
	return error;
}
