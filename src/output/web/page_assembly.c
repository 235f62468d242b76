/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instructions with what was spent at them, for the hottest functions of files that are still those
 * that ran: their build IDs are compared. A function is decoded from its first byte; of what is
 * decoded, the instructions near those with a cost are shown.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "binary/instruction.h"
#include "binary/instruction_text.h"
#include "binary/symbols/symbols.h"
#include "output/web/parts.h"

#define FILES_MAX            8u
#define FUNCTION_BYTES_MAX   (64u << 10)
#define SYMBOL_BYTES_MAX     (16u << 20) /* of a file's table */
#define INSTRUCTIONS_MAX     8000u
#define CONTEXT_INSTRUCTIONS 6u
#define PERMILLE_LEAST       5u /* of all, for a function to be shown */

/* What was spent at an address of a file. */
struct address_cost {
	uint64_t address;
	uint32_t file;  /* number of its key */
	uint32_t frame; /* of the function that has the address, not of one that is inlined there */
	uint64_t self[MODEL_SOURCE_COUNT];
};

struct code_file {
	uint64_t weight;
	uint32_t module;
	size_t first, count; /* of its costs */
};

struct shown_instructions {
	size_t count;
	int64_t offsets[INSTRUCTIONS_MAX], texts[INSTRUCTIONS_MAX]; /* -1: some are left out */
};

struct assembly_writer {
	struct page_writer *page;
	struct string_table file_keys;
	uint32_t *file_of_module; /* MODEL_ENTRY_INDEX_NONE: it cannot be told from another */
	struct code_file *files;  /* by number of the key, then by weight */
	struct address_cost *costs;
	size_t cost_count, written_functions, written_instructions, left_out, unreadable;
	uint64_t whole;
	struct shown_instructions shown; /* of the function in progress */
};

/* Time on a CPU, or events: a wait has no instruction of its own. */
static uint64_t get_weight(const uint64_t *self)
{
	return self[SPOOL_SOURCE_CPU] + self[SPOOL_SOURCE_OVERFLOW];
}

/* ---- costs ---- */

static int find_or_add_file(struct assembly_writer *writer, const struct model_module *module,
			    uint32_t *ret)
{
	char *key, id[2 * sizeof(module->build_id) + 1] = "";
	int error;

	for (uint32_t i = 0; i < module->build_id_size && i < sizeof(module->build_id); i++)
		snprintf(id + 2 * (size_t)i, 3, "%02x", module->build_id[i]);
	if (asprintf(&key, "%s %s", id, module->path) < 0)
		return -ENOMEM;
	error = strings_find_or_add(&writer->file_keys, key, ret);
	free(key);
	return error;
}

static int find_files_of_modules(struct assembly_writer *writer)
{
	const struct session *session = writer->page->session;

	writer->file_of_module =
		malloc(((size_t)session->module_count + 1) * sizeof(*writer->file_of_module));
	writer->files = calloc((size_t)session->module_count + 1, sizeof(*writer->files));
	if (writer->file_of_module == NULL || writer->files == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->module_count; i++) {
		uint32_t file = MODEL_ENTRY_INDEX_NONE;
		writer->file_of_module[i] = file;
		if (session->modules[i].build_id_size == 0 || session->modules[i].path[0] != '/')
			continue;
		if (find_or_add_file(writer, &session->modules[i], &file) != 0)
			return -ENOMEM;
		writer->file_of_module[i] = file;
		writer->files[file].module = i;
	}
	return 0;
}

/* The node's frame, or the one that it is inlined into. */
static uint32_t find_physical_frame(const struct session *session, uint32_t node)
{
	const struct model_calltree_node *nodes = session->nodes;

	while (session->frames[nodes[node].frame].kind == FRAME_INLINE &&
	       nodes[node].parent != MODEL_ENTRY_INDEX_NONE)
		node = nodes[node].parent;
	return nodes[node].frame;
}

static void add_cost_of_node(struct assembly_writer *writer, uint32_t node)
{
	const struct session *session = writer->page->session;
	const uint64_t *self = session->nodes[node].self_weight;
	const struct model_frame *frame = &session->frames[session->nodes[node].frame];

	writer->whole += get_weight(self);
	if (get_weight(self) == 0 || frame->module == MODEL_ENTRY_INDEX_NONE ||
	    (frame->kind != FRAME_NATIVE && frame->kind != FRAME_INLINE) ||
	    writer->file_of_module[frame->module] == MODEL_ENTRY_INDEX_NONE)
		return;
	struct address_cost *cost = &writer->costs[writer->cost_count++];
	*cost = (struct address_cost){.address = frame->relative_pc,
				      .file = writer->file_of_module[frame->module],
				      .frame = find_physical_frame(session, node)};
	memcpy(cost->self, self, sizeof(cost->self));
	writer->files[cost->file].weight += get_weight(self);
}

static int compare_costs(const void *left, const void *right)
{
	const struct address_cost *a = left, *b = right;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

static int compare_files_by_weight(const void *left, const void *right)
{
	const struct code_file *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->module < b->module ? -1 : a->module > b->module;
}

static int collect_costs(struct assembly_writer *writer)
{
	const struct session *session = writer->page->session;
	size_t kept = 0;

	writer->costs = calloc((size_t)session->node_count + 1, sizeof(*writer->costs));
	if (writer->costs == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->node_count; i++)
		add_cost_of_node(writer, i);
	if (writer->cost_count)
		qsort(writer->costs, writer->cost_count, sizeof(*writer->costs), compare_costs);
	for (size_t i = 0; i < writer->cost_count; i++) {
		struct address_cost *cost = &writer->costs[i];
		if (kept != 0 && compare_costs(&writer->costs[kept - 1], cost) == 0) {
			for (int k = 0; k < MODEL_SOURCE_COUNT; k++)
				writer->costs[kept - 1].self[k] += cost->self[k];
			continue;
		}
		if (writer->files[cost->file].count++ == 0)
			writer->files[cost->file].first = kept;
		writer->costs[kept++] = *cost;
	}
	writer->cost_count = kept;
	if (writer->file_keys.count)
		qsort(writer->files, writer->file_keys.count, sizeof(*writer->files),
		      compare_files_by_weight);
	return 0;
}

/* ---- a function ---- */

struct code_function {
	const struct symbol *symbol;
	const struct address_cost *costs;
	size_t count;
	uint8_t *bytes;
	uint16_t *lengths; /* by offset; 0: no instruction begins there */
};

/* Where the instructions begin, as far as there are any. */
static void decode_lengths(struct code_function *function)
{
	struct instruction instruction;

	for (size_t at = 0; at < function->symbol->size; at += instruction.length) {
		if (!instruction_decode(function->bytes + at, function->symbol->size - at,
					function->symbol->address + at, &instruction))
			return;
		function->lengths[at] = instruction.length;
	}
}

/* Marks the instructions that are shown: bit 15 of their lengths. */
static void mark_near_costs(struct code_function *function)
{
	size_t size = function->symbol->size, next = 0, until = 0;
	size_t before[CONTEXT_INSTRUCTIONS] = {0}, seen = 0;

	for (size_t at = 0; at < size; at += function->lengths[at] & 0x7fff) {
		size_t end = at + function->lengths[at];
		if (function->lengths[at] == 0)
			return;
		while (next < function->count &&
		       function->costs[next].address < function->symbol->address + at)
			next++;
		if (next < function->count &&
		    function->costs[next].address < function->symbol->address + end) {
			for (size_t i = 0; i < seen && i < CONTEXT_INSTRUCTIONS; i++)
				function->lengths[before[i]] |= 0x8000;
			until = CONTEXT_INSTRUCTIONS + 1;
		}
		if (until != 0) {
			function->lengths[at] |= 0x8000;
			until--;
		}
		before[seen++ % CONTEXT_INSTRUCTIONS] = at;
	}
}

static void list_shown(struct assembly_writer *writer, const struct code_function *function,
		       struct shown_instructions *shown)
{
	char text[INSTRUCTION_TEXT_BYTES];
	bool is_gap = false;

	shown->count = 0;
	for (size_t at = 0; at < function->symbol->size && function->lengths[at] != 0 &&
			    shown->count + 2 < INSTRUCTIONS_MAX;
	     at += function->lengths[at] & 0x7fff) {
		if ((function->lengths[at] & 0x8000) == 0) {
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
	const struct model_frame *frame = &page->session->frames[function->costs->frame];
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
	size_t size = function->symbol->size;
	int error;

	for (size_t i = 0; i < function->count; i++)
		weight += get_weight(function->costs[i].self);
	if (weight * 1000 < writer->whole * PERMILLE_LEAST)
		return 0;
	if (size > FUNCTION_BYTES_MAX || writer->written_instructions >= INSTRUCTIONS_MAX ||
	    !elf_vaddr_to_offset(file, function->symbol->address, &offset)) {
		writer->left_out++;
		return 0;
	}
	function->bytes = malloc(size + 1);
	function->lengths = calloc(size + 1, sizeof(*function->lengths));
	error = function->bytes == NULL || function->lengths == NULL ? -ENOMEM : 0;
	if (error == 0 && elf_read_bytes(file, offset, function->bytes, size) == 0) {
		decode_lengths(function);
		mark_near_costs(function);
		write_function(writer, function);
	}
	free(function->bytes);
	free(function->lengths);
	return error;
}

/* ---- a file ---- */

static int disassemble_functions_of_file(struct assembly_writer *writer,
					 const struct elf_file *file,
					 const struct symbol_table *symbols,
					 const struct code_file *code)
{
	const struct address_cost *costs = writer->costs + code->first;
	int error = 0;

	for (size_t i = 0, count; error == 0 && i < code->count; i += count) {
		const struct symbol *symbol = symbols_find_at_address(symbols, costs[i].address);

		count = 1;
		while (symbol != NULL && i + count < code->count &&
		       costs[i + count].address < symbol->address + symbol->size)
			count++;
		if (symbol != NULL && symbol->size != 0)
			error = disassemble_function(writer, file,
						     &(struct code_function){.symbol = symbol,
									     .costs = &costs[i],
									     .count = count});
	}
	return error;
}

static bool is_file_that_ran(const struct elf_file *file, const struct model_module *module)
{
	const struct elf_section *table = elf_section_find(file, ".symtab");

	return file->machine == EM_X86_64 && file->build_id_size == module->build_id_size &&
	       memcmp(file->build_id, module->build_id, module->build_id_size) == 0 &&
	       (table == NULL || table->size <= SYMBOL_BYTES_MAX);
}

static int disassemble_file(struct assembly_writer *writer, const struct code_file *code)
{
	const struct model_module *module = &writer->page->session->modules[code->module];
	struct symbol_table *symbols = NULL;
	struct elf_file *file;
	struct problem problem;
	int error;

	if (elf_open(module->path, &file, &problem) < 0) {
		writer->unreadable++;
		return 0;
	}
	if (!is_file_that_ran(file, module)) {
		writer->unreadable++;
		elf_close(file);
		return 0;
	}
	error = symbols_create(&symbols);
	if (error == 0)
		error = symbols_add_file(symbols, file);
	if (error == 0)
		error = symbols_sort_and_flatten(symbols);
	if (error == 0)
		error = disassemble_functions_of_file(writer, file, symbols, code);
	symbols_destroy(symbols);
	elf_close(file);
	return error;
}

static int write_functions_of_files(struct assembly_writer *writer)
{
	int error = 0;

	for (uint32_t i = 0; error == 0 && i < writer->file_keys.count; i++) {
		const struct code_file *code = &writer->files[i];
		if (code->weight * 1000 < writer->whole * PERMILLE_LEAST || code->count == 0)
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
	strings_init_with_copies(&writer.file_keys);
	error = find_files_of_modules(&writer);
	if (error == 0)
		error = collect_costs(&writer);
	page_put_key(page->stream, "assembly");
	fputs("{\"functions\":[", page->stream);
	if (error == 0)
		error = write_functions_of_files(&writer);
	fprintf(page->stream, "],\"unreadable\":%zu,\"left_out\":%zu},", writer.unreadable,
		writer.left_out);
	strings_deinit(&writer.file_keys);
	free(writer.file_of_module);
	free(writer.files);
	free(writer.costs);
	return error;
}
