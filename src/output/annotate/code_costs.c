/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See code_costs.h. A function is decoded from its first byte.
 */
#include "output/annotate/code_costs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/debugfile.h"
#include "binary/instruction.h"

#define SYMBOL_BYTES_MAX (16u << 20) /* of a file's table */
#define CONTEXT_MAX      64u

uint64_t code_costs_get_weight(const struct code_costs *costs, const uint64_t *self)
{
	uint64_t weight = 0;

	for (unsigned i = 0; i < MODEL_SOURCE_COUNT; i++)
		weight += (costs->sources >> i & 1) != 0 ? self[i] : 0;
	return weight;
}

/* ---- costs ---- */

static int find_or_add_file(struct code_costs *costs, const struct model_module *module,
			    uint32_t *ret)
{
	char *key, id[2 * sizeof(module->build_id) + 1] = "";
	int error;

	for (uint32_t i = 0; i < module->build_id_size && i < sizeof(module->build_id); i++)
		snprintf(id + 2 * (size_t)i, 3, "%02x", module->build_id[i]);
	if (asprintf(&key, "%s %s", id, module->path) < 0)
		return -ENOMEM;
	error = strings_find_or_add(&costs->file_keys, key, ret);
	free(key);
	return error;
}

static int find_files_of_modules(struct code_costs *costs)
{
	const struct session *session = costs->session;

	costs->file_of_module =
		malloc(((size_t)session->module_count + 1) * sizeof(*costs->file_of_module));
	costs->files = calloc((size_t)session->module_count + 1, sizeof(*costs->files));
	if (costs->file_of_module == NULL || costs->files == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->module_count; i++) {
		uint32_t file = MODEL_ENTRY_INDEX_NONE;
		costs->file_of_module[i] = file;
		if (session->modules[i].build_id_size == 0 || session->modules[i].path[0] != '/')
			continue;
		if (find_or_add_file(costs, &session->modules[i], &file) != 0)
			return -ENOMEM;
		costs->file_of_module[i] = file;
		costs->files[file].module = i;
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

static void add_cost_of_node(struct code_costs *costs, uint32_t node)
{
	const struct session *session = costs->session;
	const uint64_t *self = session->nodes[node].self_weight;
	const struct model_frame *frame = &session->frames[session->nodes[node].frame];
	uint64_t weight = code_costs_get_weight(costs, self);

	costs->whole += weight;
	if (weight == 0 || frame->module == MODEL_ENTRY_INDEX_NONE ||
	    (frame->kind != FRAME_NATIVE && frame->kind != FRAME_INLINE) ||
	    costs->file_of_module[frame->module] == MODEL_ENTRY_INDEX_NONE)
		return;
	struct address_cost *cost = &costs->costs[costs->cost_count++];
	*cost = (struct address_cost){.address = frame->relative_pc,
				      .file = costs->file_of_module[frame->module],
				      .physical_frame = find_physical_frame(session, node),
				      .innermost_frame = session->nodes[node].frame};
	memcpy(cost->self, self, sizeof(cost->self));
	costs->files[cost->file].weight += weight;
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

static void merge_costs_of_one_address(struct code_costs *costs)
{
	size_t kept = 0;

	for (size_t i = 0; i < costs->cost_count; i++) {
		struct address_cost *cost = &costs->costs[i];
		if (kept != 0 && compare_costs(&costs->costs[kept - 1], cost) == 0) {
			for (int k = 0; k < MODEL_SOURCE_COUNT; k++)
				costs->costs[kept - 1].self[k] += cost->self[k];
			continue;
		}
		if (costs->files[cost->file].count++ == 0)
			costs->files[cost->file].first = kept;
		costs->costs[kept++] = *cost;
	}
	costs->cost_count = kept;
}

int code_costs_init(struct code_costs *costs, const struct session *session, unsigned sources)
{
	*costs = (struct code_costs){.session = session, .sources = sources};
	strings_init_with_copies(&costs->file_keys);
	int error = find_files_of_modules(costs);
	if (error != 0)
		return error;
	costs->costs = calloc((size_t)session->node_count + 1, sizeof(*costs->costs));
	if (costs->costs == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->node_count; i++)
		add_cost_of_node(costs, i);
	if (costs->cost_count != 0)
		qsort(costs->costs, costs->cost_count, sizeof(*costs->costs), compare_costs);
	merge_costs_of_one_address(costs);
	if (costs->file_keys.count != 0)
		qsort(costs->files, costs->file_keys.count, sizeof(*costs->files),
		      compare_files_by_weight);
	return 0;
}

void code_costs_deinit(struct code_costs *costs)
{
	strings_deinit(&costs->file_keys);
	free(costs->file_of_module);
	free(costs->files);
	free(costs->costs);
}

/* ---- a file ---- */

static bool is_file_that_ran(const struct elf_file *file, const struct model_module *module)
{
	return file->build_id_size == module->build_id_size &&
	       memcmp(file->build_id, module->build_id, module->build_id_size) == 0;
}

static bool is_known_kind_of_file(const struct elf_file *file)
{
	const struct elf_section *table = elf_section_find(file, ".symtab");

	return file->machine == EM_X86_64 && (table == NULL || table->size <= SYMBOL_BYTES_MAX);
}

static int add_symbols_of_debug_file(struct code_binary *binary, const char *debug_path)
{
	struct elf_file *debug = NULL;
	int error = debugfile_find(binary->file, debug_path, &debug);

	if (error != 0)
		return error == -ENOMEM ? error : 0;
	error = is_known_kind_of_file(debug) ? symbols_add_file(binary->symbols, debug) : 0;
	elf_close(debug);
	return error;
}

int code_binary_open(struct code_binary *binary, const struct model_module *module,
		     const char *path, const char *debug_path, enum code_binary_state *ret_state)
{
	struct problem problem;
	int error;

	*binary = (struct code_binary){.file = NULL};
	*ret_state = CODE_BINARY_UNREADABLE;
	if (elf_open(path, &binary->file, &problem) < 0) {
		binary->file = NULL;
		return 0;
	}
	if (!is_file_that_ran(binary->file, module))
		*ret_state = CODE_BINARY_OTHER;
	else if (!is_known_kind_of_file(binary->file))
		*ret_state = CODE_BINARY_UNKNOWN;
	else
		*ret_state = CODE_BINARY_OPEN;
	if (*ret_state != CODE_BINARY_OPEN)
		return 0;
	error = symbols_create(&binary->symbols);
	if (error == 0)
		error = symbols_add_file(binary->symbols, binary->file);
	if (error == 0 && (debug_path == NULL || debug_path[0] != 0))
		error = add_symbols_of_debug_file(binary, debug_path);
	if (error == 0)
		error = symbols_sort_and_flatten(binary->symbols);
	return error;
}

void code_binary_close(struct code_binary *binary)
{
	symbols_destroy(binary->symbols);
	if (binary->file != NULL)
		elf_close(binary->file);
}

/* ---- a function ---- */

struct code_function code_function_find(const struct code_binary *binary,
					const struct address_cost *costs, size_t count)
{
	struct code_function function = {
		.symbol = symbols_find_at_address(binary->symbols, costs->address),
		.costs = costs,
		.count = 1};

	if (function.symbol == NULL || function.symbol->size == 0) {
		function.symbol = NULL;
		return function;
	}
	while (function.count < count &&
	       costs[function.count].address < function.symbol->address + function.symbol->size)
		function.count++;
	return function;
}

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

static void mark_near_costs(struct code_function *function, size_t context)
{
	size_t size = function->symbol->size, next = 0, until = 0;
	size_t before[CONTEXT_MAX] = {0}, seen = 0;

	for (size_t at = 0; at < size; at += code_function_get_length(function, at)) {
		size_t end = at + function->lengths[at];
		if (function->lengths[at] == 0)
			return;
		while (next < function->count &&
		       function->costs[next].address < function->symbol->address + at)
			next++;
		if (next < function->count &&
		    function->costs[next].address < function->symbol->address + end) {
			for (size_t i = 0; i < seen && i < context; i++)
				function->lengths[before[i]] |= CODE_FUNCTION_SHOWN;
			until = context + 1;
		}
		if (until != 0) {
			function->lengths[at] |= CODE_FUNCTION_SHOWN;
			until--;
		}
		if (context != 0)
			before[seen++ % context] = at;
	}
}

int code_function_read(struct code_function *function, const struct elf_file *file, size_t context)
{
	size_t size = function->symbol->size;
	uint64_t offset;

	if (!elf_vaddr_to_offset(file, function->symbol->address, &offset))
		return -EBADMSG;
	function->bytes = malloc(size + 1);
	function->lengths = calloc(size + 1, sizeof(*function->lengths));
	if (function->bytes == NULL || function->lengths == NULL)
		return -ENOMEM;
	int error = elf_read_bytes(file, offset, function->bytes, size);
	if (error != 0)
		return error;
	decode_lengths(function);
	mark_near_costs(function, context < CONTEXT_MAX ? context : CONTEXT_MAX);
	return 0;
}

void code_function_deinit(struct code_function *function)
{
	free(function->bytes);
	free(function->lengths);
}
