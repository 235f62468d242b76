/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See functions.h. First all places where functions begin are gathered, then all that refers to
 * code is marked, then each function is looked through once, and last it is decided what each is.
 */
#include "binary/functions/functions.h"

#include <errno.h>
#include <stdlib.h>

#include "binary/functions/private.h"

#define FUNCTIONS_MAX            (1u << 24)
#define FOREIGN_CODE_LEAST_BYTES (64u << 10)

static const uint8_t *find_bytes_in_ranges(const struct loaded_byte_range *ranges, size_t count,
					   uint64_t vaddr, size_t *ret_size)
{
	for (size_t i = 0; i < count; i++) {
		if (vaddr - ranges[i].vaddr < ranges[i].size) {
			*ret_size = ranges[i].size - (vaddr - ranges[i].vaddr);
			return ranges[i].bytes + (vaddr - ranges[i].vaddr);
		}
	}
	return NULL;
}

const uint8_t *functions_get_loaded_bytes_at(const struct functions *functions, uint64_t vaddr,
					     size_t *ret_size)
{
	return find_bytes_in_ranges(functions->loaded_ranges, functions->loaded_range_count, vaddr,
				    ret_size);
}

const uint8_t *functions_get_code_bytes_at(const struct functions *functions, uint64_t vaddr,
					   size_t *ret_size)
{
	return find_bytes_in_ranges(functions->code_ranges, functions->code_range_count, vaddr,
				    ret_size);
}

bool functions_address_is_control_target(const struct functions *functions, uint64_t vaddr)
{
	uint64_t bit = vaddr - functions->targets_low;

	return bit < functions->targets_high - functions->targets_low &&
	       functions->targets[bit / 64] >> bit % 64 & 1;
}

/* The last one that begins at or before the address. */
static struct function *find_last_function_up_to(const struct functions *functions, uint64_t vaddr)
{
	size_t low = 0, high = functions->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (functions->list[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &functions->list[low - 1] : NULL;
}

const struct function *functions_find_at_address(const struct functions *functions, uint64_t vaddr)
{
	const struct function *function = find_last_function_up_to(functions, vaddr);

	return function && vaddr - function->vaddr < function->size ? function : NULL;
}

struct function *finder_get_function_starting_at(const struct function_finder *finder,
						 uint64_t vaddr)
{
	struct function *function;

	if (!finder_has_mark(finder, MARK_FUNCTION_START, vaddr))
		return NULL;
	function = find_last_function_up_to(finder->functions, vaddr);
	return function && function->vaddr == vaddr ? function : NULL;
}

void finder_mark_address_taken(struct function_finder *finder, uint64_t vaddr)
{
	finder_mark_address(finder, MARK_CONTROL_TARGET, vaddr);
	finder_mark_address(finder, MARK_CALLED_OR_ADDRESS_TAKEN, vaddr);
}

int finder_add_function(struct function_finder *finder, uint64_t vaddr, uint64_t size,
			uint32_t frame)
{
	struct functions *functions = finder->functions;
	size_t left;

	if (!functions_get_code_bytes_at(functions, vaddr, &left) || size > left)
		return 0;
	if (functions->count == FUNCTIONS_MAX)
		return -E2BIG;
	if (functions->count == finder->capacity) {
		size_t capacity = finder->capacity ? 2 * finder->capacity : 1024;
		struct function *list = realloc(functions->list, capacity * sizeof(*list));
		struct finder_function_facts *extra;
		if (!list)
			return -ENOMEM;
		functions->list = list;
		extra = realloc(finder->function_facts, capacity * sizeof(*extra));
		if (!extra)
			return -ENOMEM;
		finder->function_facts = extra;
		finder->capacity = capacity;
	}
	functions->list[functions->count] =
		(struct function){.vaddr = vaddr,
				  .size = (uint32_t)size,
				  .flags = PLAN_FUNCTION_NO_SYMBOL | PLAN_FUNCTION_LOCAL};
	finder->function_facts[functions->count] = (struct finder_function_facts){.frame = frame};
	functions->count++;
	finder_mark_address(finder, MARK_FUNCTION_START, vaddr);
	return 0;
}

static int allocate_mark_bitmaps(struct function_finder *finder)
{
	struct functions *functions = finder->functions;
	uint64_t bits = functions->targets_high - functions->targets_low;

	for (unsigned i = 0; i < MARK_KIND_COUNT; i++) {
		finder->address_mark_bits[i] = calloc(bits / 64 + 1, sizeof(uint64_t));
		if (!finder->address_mark_bits[i])
			return -ENOMEM;
	}
	return 0;
}

/* A symbol outside all frames, or in the middle of one. */
static int add_function_of_symbol(struct function_finder *finder,
				  const struct finder_symbol *symbol, uint64_t end, uint64_t next)
{
	struct functions *functions = finder->functions;
	size_t count = functions->count, left;
	uint64_t size = symbol->size;
	int error;

	if (!symbol->is_function || !functions_get_code_bytes_at(functions, symbol->vaddr, &left))
		return 0;
	if (size == 0 || size > next - symbol->vaddr)
		size = next - symbol->vaddr;
	if (size > left)
		size = left;
	error = finder_add_function(finder, symbol->vaddr, size, 0);
	if (error || functions->count == count)
		return error;
	if (symbol->vaddr < end)
		functions->list[count].reason = PLAN_OVERLAPS;
	else if (finder->frames.count)
		functions->list[count].reason = PLAN_NO_FRAME;
	else if (symbol->size == 0)
		functions->list[count].reason = PLAN_UNCERTAIN;
	return 0;
}

static void copy_symbol_facts_to_last_function(struct function_finder *finder,
					       const struct finder_symbol *symbol)
{
	struct functions *functions = finder->functions;
	struct function *function = &functions->list[functions->count - 1];
	struct finder_function_facts *extra = &finder->function_facts[functions->count - 1];

	if (!functions->count || function->vaddr != symbol->vaddr)
		return;
	if (symbol->reason)
		function->reason = symbol->reason;
	if (symbol->is_function && !symbol->is_part)
		extra->has_symbol = true;
	if (symbol->is_global) {
		finder_mark_address_taken(finder, symbol->vaddr);
		function->flags &= (uint16_t)~PLAN_FUNCTION_LOCAL;
	}
	extra->is_named_as_part = symbol->is_part;
	function->flags &= (uint16_t)~PLAN_FUNCTION_NO_SYMBOL;
}

/* In the order of addresses, frames and symbols together. */
static int add_functions_of_frames_and_symbols(struct function_finder *finder)
{
	const struct eh_frame_table *frames = &finder->frames;
	size_t frame = 0, name = 0;
	uint64_t end = 0;
	int error = 0;

	while (!error && (frame < frames->count || name < finder->address_symbol_count)) {
		uint64_t at = frame < frames->count ? frames->list[frame].vaddr : UINT64_MAX;
		const struct finder_symbol *symbol =
			name < finder->address_symbol_count ? &finder->address_symbols[name] : NULL;
		if (!symbol || at <= symbol->vaddr) {
			if (!frame || frames->list[frame - 1].vaddr != at)
				error = finder_add_function(finder, at, frames->list[frame].size,
							    (uint32_t)frame + 1);
			if (at + frames->list[frame].size > end)
				end = at + frames->list[frame].size;
			frame++;
			continue;
		}
		if (!finder_has_mark(finder, MARK_FUNCTION_START, symbol->vaddr)) {
			uint64_t next =
				name + 1 < finder->address_symbol_count ? symbol[1].vaddr : at;
			error = add_function_of_symbol(finder, symbol, end, next < at ? next : at);
		}
		if (!error && finder->functions->count)
			copy_symbol_facts_to_last_function(finder, symbol);
		name++;
	}
	return error;
}

/* The largest stretch of code between two unwind tables. Padding, the procedure linkage table and a
 * few functions of assembly are smaller than what brings a language runtime of its own. */
static void set_foreign_code_range_without_frames(struct function_finder *finder)
{
	struct functions *functions = finder->functions;
	const struct eh_frame_table *frames = &finder->frames;
	uint64_t end = functions->targets_low, largest = FOREIGN_CODE_LEAST_BYTES;

	if (functions->v8_set_resolver_vaddr)
		return;
	for (size_t i = 0; i < frames->count; i++) {
		const struct eh_frame_fde *frame = &frames->list[i];
		size_t left = 0;

		if (frame->vaddr > end && frame->vaddr - end > largest &&
		    functions_get_code_bytes_at(functions, end, &left) &&
		    left >= frame->vaddr - end) {
			largest = frame->vaddr - end;
			functions->foreign_code_low = end;
			functions->foreign_code_high = frame->vaddr;
		}
		if (frame->vaddr + frame->size > end)
			end = frame->vaddr + frame->size;
	}
}

static void set_function_names_and_plan_reasons(struct function_finder *finder)
{
	struct functions *functions = finder->functions;

	for (size_t i = 0; finder->symbols && i < functions->count; i++) {
		struct function *function = &functions->list[i];
		const struct symbol *symbol =
			symbols_find_at_address(finder->symbols, function->vaddr);
		if (!symbol || symbol->address != function->vaddr)
			continue;
		enum plan_reason reason = finder_get_plan_reason_by_name(symbol->name);
		if (!reason && !functions->v8_set_resolver_vaddr &&
		    finder_name_is_called_by_v8(symbol->name))
			reason = PLAN_READS_RETURN;
		function->name = symbol->name;
		function->flags &= (uint16_t)~PLAN_FUNCTION_NO_SYMBOL;
		if (reason)
			function->reason = (uint8_t)reason;
		if (finder_name_is_cold_part(symbol->name))
			finder->function_facts[i].is_named_as_part = true;
		else
			finder->function_facts[i].has_symbol = true;
	}
}

/* Room up to the next function or target, where there is nothing but padding. */
static void measure_patch_space_of_functions(struct functions *functions)
{
	uint64_t end = 0;

	for (size_t i = 0; i < functions->count; i++) {
		struct function *function = &functions->list[i];
		uint64_t after = function->vaddr + function->size;
		uint64_t limit = i + 1 < functions->count ? function[1].vaddr : after + 16;
		size_t left = 0;

		if (function->vaddr < end && function->reason == PLAN_PATCHABLE)
			function->reason = PLAN_OVERLAPS;
		if (after > end)
			end = after;
		functions_get_code_bytes_at(functions, function->vaddr, &left);
		if (limit > after + 16)
			limit = after + 16;
		if (limit > function->vaddr + left)
			limit = function->vaddr + left;
		function->space = function->size;
		while (after < limit && !functions_address_is_control_target(functions, after)) {
			after++;
			function->space++;
		}
	}
}

static void finder_deinit(struct function_finder *finder)
{
	for (unsigned i = 0; i < MARK_KIND_COUNT; i++)
		free(finder->address_mark_bits[i]);
	free(finder->address_symbols);
	free(finder->function_facts);
	free(finder->import_slots.list);
	free(finder->import_stubs.list);
	free(finder->code_slots);
	free(finder->tail_jumps);
	eh_frame_table_deinit(&finder->frames);
}

static int find_functions(struct function_finder *finder, struct problem *problem)
{
	int error = finder_read_loaded_segments(finder, problem);

	if (error)
		return error;
	finder->has_go_runtime = elf_section_find(finder->file, ".gopclntab") != NULL;
	finder_find_got(finder);
	error = allocate_mark_bitmaps(finder);
	if (!error)
		error = eh_frame_table_read(finder->file, &finder->frames);
	if (!error)
		error = finder_read_symbols(finder);
	if (!error)
		error = add_functions_of_frames_and_symbols(finder);
	if (!error)
		set_foreign_code_range_without_frames(finder);
	if (!error)
		set_function_names_and_plan_reasons(finder);
	if (!error)
		error = finder_mark_references(finder);
	if (!error)
		error = finder_scan_code_and_judge_patching(finder);
	if (error)
		return problem_set(problem, error, "%s: its functions cannot be listed: %s",
				   finder->file->path, strerror(-error));
	return 0;
}

void functions_destroy(struct functions *functions)
{
	if (!functions)
		return;
	for (size_t i = 0; i < functions->loaded_range_count; i++)
		free((void *)(uintptr_t)functions->loaded_ranges[i].bytes);
	free(functions->loaded_ranges);
	free(functions->code_ranges);
	free(functions->list);
	free(functions->targets);
	eh_frame_table_deinit(&functions->frames);
	free(functions);
}

int functions_find_in_file(const struct elf_file *file, const struct symbol_table *symbols,
			   struct functions **ret, struct problem *problem)
{
	struct function_finder finder = {.file = file, .symbols = symbols};
	int error;

	finder.functions = calloc(1, sizeof(*finder.functions));
	if (!finder.functions)
		return problem_set(problem, -ENOMEM, "out of memory");
	error = find_functions(&finder, problem);
	if (!error) {
		finder.functions->targets = finder.address_mark_bits[MARK_CONTROL_TARGET];
		finder.address_mark_bits[MARK_CONTROL_TARGET] = NULL;
		finder.functions->frames = finder.frames;
		finder.frames = (struct eh_frame_table){0};
		measure_patch_space_of_functions(finder.functions);
		finder_deinit(&finder);
		*ret = finder.functions;
		return 0;
	}
	finder_deinit(&finder);
	functions_destroy(finder.functions);
	return error;
}
