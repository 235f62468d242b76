/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instructions with what was spent at them, for the hottest functions of files that are still those
 * that ran: their build IDs are compared. A function is decoded from its first byte; of what is
 * decoded, the instructions near those with a cost are shown.
 */
#include <errno.h>
#include <inttypes.h>

#include "binary/instruction_text.h"
#include "output/annotate/code_costs.h"
#include "output/web/parts.h"

#define FILES_MAX            8u
#define FUNCTION_BYTES_MAX   (64u << 10)
#define INSTRUCTIONS_MAX     8000u
#define CONTEXT_INSTRUCTIONS 6u
#define PERMILLE_LEAST       5u /* of all, for a function to be shown */
/* Time on a CPU, or events: a wait has no instruction of its own. */
#define WEIGHED_SOURCES (1u << SPOOL_SOURCE_CPU | 1u << SPOOL_SOURCE_OVERFLOW)

struct shown_instructions {
	size_t count;
	int64_t offsets[INSTRUCTIONS_MAX], texts[INSTRUCTIONS_MAX]; /* -1: some are left out */
};

struct assembly_writer {
	struct page_writer *page;
	struct code_costs costs;
	size_t written_functions, written_instructions, left_out, unreadable;
	struct shown_instructions shown; /* of the function in progress */
};

static void list_shown(struct assembly_writer *writer, const struct code_function *function,
		       struct shown_instructions *shown)
{
	char text[INSTRUCTION_TEXT_BYTES];
	bool is_gap = false;

	shown->count = 0;
	for (size_t at = 0; at < function->symbol->size && function->lengths[at] != 0 &&
			    shown->count + 2 < INSTRUCTIONS_MAX;
	     at += code_function_get_length(function, at)) {
		if ((function->lengths[at] & CODE_FUNCTION_SHOWN) == 0) {
			is_gap = true;
			continue;
		}
		if (is_gap && shown->count != 0) {
			shown->offsets[shown->count] = -1;
			shown->texts[shown->count++] = -1;
		}
		is_gap = false;
		if (instruction_to_text(function->bytes + at, function->symbol->size - at,
					function->symbol->address + at, text) == 0)
			return;
		shown->offsets[shown->count] = (int64_t)at;
		shown->texts[shown->count++] = page_get_string_number(writer->page, text);
	}
}

static void write_costs(struct assembly_writer *writer, const struct code_function *function,
			const struct shown_instructions *shown)
{
	FILE *stream = writer->page->stream;
	size_t at = 0, written = 0;

	page_put_key(stream, "costs");
	putc('[', stream);
	for (size_t i = 0; i < function->count; i++) {
		int64_t offset = (int64_t)(function->costs[i].address - function->symbol->address);
		while (at < shown->count && shown->offsets[at] < offset)
			at++;
		if (at == shown->count || shown->offsets[at] != offset)
			continue;
		for (unsigned k = 0; k < MODEL_SOURCE_COUNT; k++) {
			if (function->costs[i].self[k] == 0)
				continue;
			page_put_comma_unless_first(stream, written++);
			fprintf(stream, "[%zu,%u,%" PRIu64 "]", at,
				page_get_column_position(writer->page, 2 * k),
				function->costs[i].self[k]);
		}
	}
	putc(']', stream);
}

static void write_function(struct assembly_writer *writer, const struct code_function *function)
{
	struct page_writer *page = writer->page;
	const struct model_frame *frame = &page->session->frames[function->costs->physical_frame];
	struct shown_instructions *shown = &writer->shown;

	list_shown(writer, function, shown);
	page_put_comma_unless_first(page->stream, writer->written_functions++);
	fprintf(page->stream,
		"{\"name\":%" PRId64 ",\"module\":%" PRId64 ",\"address\":%" PRIu64 ",",
		page_get_string_number(page, frame->function),
		frame->module == MODEL_ENTRY_INDEX_NONE
			? -1
			: page_get_string_number(page, page->session->modules[frame->module].name),
		function->symbol->address);
	page_put_key(page->stream, "at");
	for (size_t i = 0; i < shown->count; i++)
		fprintf(page->stream, "%c%" PRId64, i == 0 ? '[' : ',', shown->offsets[i]);
	fputs(shown->count == 0 ? "[],\"text\":" : "],\"text\":", page->stream);
	for (size_t i = 0; i < shown->count; i++)
		fprintf(page->stream, "%c%" PRId64, i == 0 ? '[' : ',', shown->texts[i]);
	fputs(shown->count == 0 ? "[]," : "],", page->stream);
	write_costs(writer, function, shown);
	putc('}', page->stream);
	writer->written_instructions += shown->count;
}

static int disassemble_function(struct assembly_writer *writer, const struct elf_file *file,
				struct code_function *function)
{
	uint64_t weight = 0, offset;

	for (size_t i = 0; i < function->count; i++)
		weight += code_costs_get_weight(&writer->costs, function->costs[i].self);
	if (weight * 1000 < writer->costs.whole * PERMILLE_LEAST)
		return 0;
	if (function->symbol->size > FUNCTION_BYTES_MAX ||
	    writer->written_instructions >= INSTRUCTIONS_MAX ||
	    !elf_vaddr_to_offset(file, function->symbol->address, &offset)) {
		writer->left_out++;
		return 0;
	}
	int error = code_function_read(function, file, CONTEXT_INSTRUCTIONS);
	if (error == 0)
		write_function(writer, function);
	code_function_deinit(function);
	return error == -ENOMEM ? error : 0;
}

/* ---- a file ---- */

static int disassemble_functions_of_file(struct assembly_writer *writer,
					 const struct code_binary *binary,
					 const struct code_file *code)
{
	const struct address_cost *costs = writer->costs.costs + code->first;
	int error = 0;

	for (size_t i = 0, count; error == 0 && i < code->count; i += count) {
		struct code_function function =
			code_function_find(binary, &costs[i], code->count - i);
		count = function.count;
		if (function.symbol != NULL)
			error = disassemble_function(writer, binary->file, &function);
	}
	return error;
}

static int disassemble_file(struct assembly_writer *writer, const struct code_file *code)
{
	const struct model_module *module = &writer->page->session->modules[code->module];
	enum code_binary_state state;
	struct code_binary binary;
	int error = code_binary_open(&binary, module, module->path, "", &state);

	if (error == 0 && state == CODE_BINARY_OPEN)
		error = disassemble_functions_of_file(writer, &binary, code);
	else
		writer->unreadable++;
	code_binary_close(&binary);
	return error;
}

static int write_functions_of_files(struct assembly_writer *writer)
{
	int error = 0;

	for (uint32_t i = 0; error == 0 && i < writer->costs.file_keys.count; i++) {
		const struct code_file *code = &writer->costs.files[i];
		if (code->weight * 1000 < writer->costs.whole * PERMILLE_LEAST || code->count == 0)
			break;
		if (i >= FILES_MAX)
			writer->left_out++;
		else
			error = disassemble_file(writer, code);
	}
	return error;
}

int page_write_assembly(struct page_writer *page)
{
	struct assembly_writer writer = {.page = page};
	int error;

	if (!instruction_text_is_built_in())
		return 0;
	error = code_costs_init(&writer.costs, page->session, WEIGHED_SOURCES);
	page_put_key(page->stream, "assembly");
	fputs("{\"functions\":[", page->stream);
	if (error == 0)
		error = write_functions_of_files(&writer);
	fprintf(page->stream, "],\"unreadable\":%zu,\"left_out\":%zu},", writer.unreadable,
		writer.left_out);
	code_costs_deinit(&writer.costs);
	return error;
}
