/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See functions.h. First all places where functions begin are gathered, then all that refers to
 * code is marked, then each function is looked through once, and last it is decided what each is.
 */
#include "binary/functions.h"

#include <errno.h>
#include <stdlib.h>

#include "binary/functions_internal.h"

#define FUNCTIONS_MAX (1u << 24)
#define FOREIGN_LEAST (64u << 10)

static const uint8_t *bytes_in(const struct code_range *ranges, size_t count, uint64_t vaddr,
			       size_t *ret_size)
{
	for (size_t i = 0; i < count; i++) {
		if (vaddr - ranges[i].vaddr < ranges[i].size) {
			*ret_size = ranges[i].size - (vaddr - ranges[i].vaddr);
			return ranges[i].bytes + (vaddr - ranges[i].vaddr);
		}
	}
	return NULL;
}

const uint8_t *functions_data(const struct functions *functions, uint64_t vaddr, size_t *ret_size)
{
	return bytes_in(functions->loaded, functions->loaded_count, vaddr, ret_size);
}

const uint8_t *functions_bytes(const struct functions *functions, uint64_t vaddr, size_t *ret_size)
{
	return bytes_in(functions->code, functions->code_count, vaddr, ret_size);
}

bool functions_is_target(const struct functions *functions, uint64_t vaddr)
{
	uint64_t bit = vaddr - functions->targets_low;

	return bit < functions->targets_high - functions->targets_low &&
	       functions->targets[bit / 64] >> bit % 64 & 1;
}

/* The last one that begins at or before the address. */
static struct function *last_before(const struct functions *functions, uint64_t vaddr)
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

const struct function *functions_at(const struct functions *functions, uint64_t vaddr)
{
	const struct function *function = last_before(functions, vaddr);

	return function && vaddr - function->vaddr < function->size ? function : NULL;
}

struct function *finder_function_at(const struct finder *finder, uint64_t vaddr)
{
	struct function *function;

	if (!finder_is(finder, MARK_START, vaddr))
		return NULL;
	function = last_before(finder->functions, vaddr);
	return function && function->vaddr == vaddr ? function : NULL;
}

void finder_mark_taken(struct finder *finder, uint64_t vaddr)
{
	finder_mark(finder, MARK_TARGET, vaddr);
	finder_mark(finder, MARK_ENTRY, vaddr);
}

int finder_add_function(struct finder *finder, uint64_t vaddr, uint64_t size, uint32_t frame)
{
	struct functions *functions = finder->functions;
	size_t left;

	if (!functions_bytes(functions, vaddr, &left) || size > left)
		return 0;
	if (functions->count == FUNCTIONS_MAX)
		return -E2BIG;
	if (functions->count == finder->capacity) {
		size_t capacity = finder->capacity ? 2 * finder->capacity : 1024;
		struct function *list = realloc(functions->list, capacity * sizeof(*list));
		struct finder_function *extra;
		if (!list)
			return -ENOMEM;
		functions->list = list;
		extra = realloc(finder->extra, capacity * sizeof(*extra));
		if (!extra)
			return -ENOMEM;
		finder->extra = extra;
		finder->capacity = capacity;
	}
	functions->list[functions->count] =
		(struct function){.vaddr = vaddr,
				  .size = (uint32_t)size,
				  .flags = PLAN_FUNCTION_NO_SYMBOL | PLAN_FUNCTION_LOCAL};
	finder->extra[functions->count] = (struct finder_function){.frame = frame};
	functions->count++;
	finder_mark(finder, MARK_START, vaddr);
	return 0;
}

static int allocate_marks(struct finder *finder)
{
	struct functions *functions = finder->functions;
	uint64_t bits = functions->targets_high - functions->targets_low;

	for (unsigned i = 0; i < MARK_COUNT; i++) {
		finder->marks[i] = calloc(bits / 64 + 1, sizeof(uint64_t));
		if (!finder->marks[i])
			return -ENOMEM;
	}
	return 0;
}

/* A symbol outside all frames, or in the middle of one. */
static int add_symbol(struct finder *finder, const struct finder_symbol *symbol, uint64_t end,
		      uint64_t next)
{
	struct functions *functions = finder->functions;
	size_t count = functions->count, left;
	uint64_t size = symbol->size;
	int error;

	if (!symbol->function || !functions_bytes(functions, symbol->vaddr, &left))
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

static void apply_symbol(struct finder *finder, const struct finder_symbol *symbol)
{
	struct functions *functions = finder->functions;
	struct function *function = &functions->list[functions->count - 1];
	struct finder_function *extra = &finder->extra[functions->count - 1];

	if (!functions->count || function->vaddr != symbol->vaddr)
		return;
	if (symbol->reason)
		function->reason = symbol->reason;
	if (symbol->function && !symbol->part)
		extra->has_symbol = true;
	if (symbol->global) {
		finder_mark_taken(finder, symbol->vaddr);
		function->flags &= (uint16_t)~PLAN_FUNCTION_LOCAL;
	}
	extra->named_part = symbol->part;
	function->flags &= (uint16_t)~PLAN_FUNCTION_NO_SYMBOL;
}

/* In the order of addresses, frames and symbols together. */
static int add_functions(struct finder *finder)
{
	const struct frames *frames = &finder->frames;
	size_t frame = 0, name = 0;
	uint64_t end = 0;
	int error = 0;

	while (!error && (frame < frames->count || name < finder->name_count)) {
		uint64_t at = frame < frames->count ? frames->list[frame].vaddr : UINT64_MAX;
		const struct finder_symbol *symbol =
			name < finder->name_count ? &finder->names[name] : NULL;
		if (!symbol || at <= symbol->vaddr) {
			if (!frame || frames->list[frame - 1].vaddr != at)
				error = finder_add_function(finder, at, frames->list[frame].size,
							    (uint32_t)frame + 1);
			if (at + frames->list[frame].size > end)
				end = at + frames->list[frame].size;
			frame++;
			continue;
		}
		if (!finder_is(finder, MARK_START, symbol->vaddr)) {
			uint64_t next = name + 1 < finder->name_count ? symbol[1].vaddr : at;
			error = add_symbol(finder, symbol, end, next < at ? next : at);
		}
		if (!error && finder->functions->count)
			apply_symbol(finder, symbol);
		name++;
	}
	return error;
}

/* The largest stretch of code between two unwind tables. Padding, the procedure linkage table and a
 * few functions of assembly are smaller than what brings a language runtime of its own. */
static void note_foreign(struct finder *finder)
{
	struct functions *functions = finder->functions;
	const struct frames *frames = &finder->frames;
	uint64_t end = functions->targets_low, largest = FOREIGN_LEAST;

	if (functions->set_resolver)
		return;
	for (size_t i = 0; i < frames->count; i++) {
		const struct frame *frame = &frames->list[i];
		size_t left = 0;

		if (frame->vaddr > end && frame->vaddr - end > largest &&
		    functions_bytes(functions, end, &left) && left >= frame->vaddr - end) {
			largest = frame->vaddr - end;
			functions->foreign_low = end;
			functions->foreign_high = frame->vaddr;
		}
		if (frame->vaddr + frame->size > end)
			end = frame->vaddr + frame->size;
	}
}

static void name_functions(struct finder *finder)
{
	struct functions *functions = finder->functions;

	for (size_t i = 0; finder->symbols && i < functions->count; i++) {
		struct function *function = &functions->list[i];
		const struct symbol *symbol = symbols_find(finder->symbols, function->vaddr);
		if (!symbol || symbol->address != function->vaddr)
			continue;
		enum plan_reason reason = finder_name_reason(symbol->name);
		if (!reason && !functions->set_resolver && finder_name_is_called(symbol->name))
			reason = PLAN_READS_RETURN;
		function->name = symbol->name;
		function->flags &= (uint16_t)~PLAN_FUNCTION_NO_SYMBOL;
		if (reason)
			function->reason = (uint8_t)reason;
		if (finder_name_is_part(symbol->name))
			finder->extra[i].named_part = true;
		else
			finder->extra[i].has_symbol = true;
	}
}

/* Room up to the next function or target, where there is nothing but padding. */
static void measure_space(struct functions *functions)
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
		functions_bytes(functions, function->vaddr, &left);
		if (limit > after + 16)
			limit = after + 16;
		if (limit > function->vaddr + left)
			limit = function->vaddr + left;
		function->space = function->size;
		while (after < limit && !functions_is_target(functions, after)) {
			after++;
			function->space++;
		}
	}
}

static void finder_deinit(struct finder *finder)
{
	for (unsigned i = 0; i < MARK_COUNT; i++)
		free(finder->marks[i]);
	free(finder->names);
	free(finder->extra);
	free(finder->twice_slots);
	frames_deinit(&finder->frames);
}

static int find(struct finder *finder, struct problem *problem)
{
	int error = finder_load(finder, problem);

	if (error)
		return error;
	finder->go = elf_section_find(finder->file, ".gopclntab") != NULL;
	error = allocate_marks(finder);
	if (!error)
		error = frames_read(finder->file, &finder->frames);
	if (!error)
		error = finder_read_symbols(finder);
	if (!error)
		error = add_functions(finder);
	if (!error)
		note_foreign(finder);
	if (!error)
		name_functions(finder);
	if (!error)
		error = finder_mark_references(finder);
	if (!error)
		error = finder_scan(finder);
	if (error)
		return problem_set(problem, error, "%s: its functions cannot be listed: %s",
				   finder->file->path, strerror(-error));
	return 0;
}

void functions_destroy(struct functions *functions)
{
	if (!functions)
		return;
	for (size_t i = 0; i < functions->loaded_count; i++)
		free((void *)(uintptr_t)functions->loaded[i].bytes);
	free(functions->loaded);
	free(functions->code);
	free(functions->list);
	free(functions->targets);
	frames_deinit(&functions->frames);
	free(functions);
}

int functions_find(const struct elf_file *file, const struct symbols *symbols,
		   struct functions **ret, struct problem *problem)
{
	struct finder finder = {.file = file, .symbols = symbols};
	int error;

	finder.functions = calloc(1, sizeof(*finder.functions));
	if (!finder.functions)
		return problem_set(problem, -ENOMEM, "out of memory");
	error = find(&finder, problem);
	if (!error) {
		finder.functions->targets = finder.marks[MARK_TARGET];
		finder.marks[MARK_TARGET] = NULL;
		finder.functions->frames = finder.frames;
		finder.frames = (struct frames){0};
		measure_space(finder.functions);
		finder_deinit(&finder);
		*ret = finder.functions;
		return 0;
	}
	finder_deinit(&finder);
	functions_destroy(finder.functions);
	return error;
}
