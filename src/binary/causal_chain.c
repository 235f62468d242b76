/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_chain.h. A function is in a source file if its first stretch is: debug information
 * says where functions are declared, but in numbers of files that would have to be read again.
 */
#include "binary/causal_chain.h"

#include <errno.h>
#include <stdlib.h>

#define ID_UNKNOWN UINT32_MAX

struct causal_chain_function {
	const char *file; /* of its first stretch */
	bool met, line_in_scope, judged, in_scope;
	uint32_t id; /* ID_UNKNOWN: not asked for yet; 0: out of scope */
};

struct causal_chain_file {
	const char *path; /* NULL: free */
	enum causal_source_verdict verdict;
};

/* One function on the chain with the line that is reached in it. */
struct frame_place {
	uint32_t scope; /* DWARF_NONE: not known to debug information */
	const char *file;
	uint32_t line;
};

static struct frame_place frame_first(const struct causal_chain *chain, size_t stretch)
{
	const struct dwarf_place *place = &chain->stretches->result.places[stretch];

	return (struct frame_place){place->scope, place->file, place->line};
}

static bool frame_next(const struct causal_chain *chain, struct frame_place *frame)
{
	const struct dwarf_scope *scope;

	if (frame->scope == DWARF_NONE)
		return false;
	scope = &chain->stretches->result.scopes[frame->scope];
	if (scope->parent == DWARF_NONE)
		return false;
	*frame = (struct frame_place){scope->parent, scope->call_file, scope->call_line};
	return true;
}

/* ---- sources ---- */

static struct causal_chain_file *file_slot(const struct causal_chain *chain, const char *path)
{
	size_t at = (size_t)((uintptr_t)path * 0x9e3779b97f4a7c15u >> 32);

	for (;; at++) {
		struct causal_chain_file *slot = &chain->files[at & (chain->file_slots - 1)];

		if (!slot->path || slot->path == path)
			return slot;
	}
}

static int files_grow(struct causal_chain *chain)
{
	struct causal_chain_file *old = chain->files;
	size_t old_slots = chain->file_slots, slots = old_slots ? old_slots * 2 : 256;

	chain->files = calloc(slots, sizeof(*chain->files));
	if (!chain->files) {
		chain->files = old;
		return -ENOMEM;
	}
	chain->file_slots = slots;
	for (size_t i = 0; i < old_slots; i++) {
		if (old[i].path)
			*file_slot(chain, old[i].path) = old[i];
	}
	free(old);
	return 0;
}

/* Paths are interned: equal ones are the same pointer. */
static int judge_file(struct causal_chain *chain, const char *path, enum causal_source_verdict *ret)
{
	struct causal_chain_file *slot;

	if (!path) {
		*ret = causal_scopes_judge_file(chain->scopes, NULL);
		return 0;
	}
	if (chain->files_used * 2 >= chain->file_slots && files_grow(chain))
		return -ENOMEM;
	slot = file_slot(chain, path);
	if (!slot->path) {
		slot->path = path;
		slot->verdict = causal_scopes_judge_file(chain->scopes, path);
		chain->files_used++;
	}
	*ret = slot->verdict;
	return 0;
}

static int place_in_scope(struct causal_chain *chain, const struct frame_place *frame, bool *ret)
{
	enum causal_source_verdict verdict;
	int error = judge_file(chain, frame->file, &verdict);

	if (!error)
		*ret = verdict == CAUSAL_SOURCE_IN ||
		       (verdict == CAUSAL_SOURCE_BY_LINE &&
			causal_scopes_hold_line(chain->scopes, frame->file, frame->line));
	return error;
}

/* ---- functions ---- */

static const char *function_symbol(const struct dwarf_function *function)
{
	return function->linkage_name ? function->linkage_name : function->name;
}

static bool function_in_scope(struct causal_chain *chain, uint32_t index)
{
	struct causal_chain_function *known = &chain->functions[index];

	if (!known->judged) {
		known->in_scope = causal_scopes_hold_function(
			chain->scopes, function_symbol(&chain->stretches->result.functions[index]));
		known->judged = true;
	}
	return known->in_scope;
}

/* Before anything is found: the file of each function, and whether a line of it is in scope. */
static int functions_survey(struct causal_chain *chain)
{
	int error = 0;

	for (size_t i = 0; !error && i < chain->stretches->count; i++) {
		struct frame_place frame = frame_first(chain, i);
		bool more = frame.scope != DWARF_NONE;

		for (; !error && more; more = frame_next(chain, &frame)) {
			struct causal_chain_function *known =
				&chain->functions[chain->stretches->result.scopes[frame.scope]
							  .function];
			bool in_scope = false;

			if (!known->met && frame.file) {
				known->met = true;
				known->file = frame.file;
			}
			if (!known->line_in_scope && frame.file)
				error = place_in_scope(chain, &frame, &in_scope);
			known->line_in_scope |= in_scope;
		}
	}
	return error;
}

static int function_source_in_scope(struct causal_chain *chain,
				    const struct causal_chain_function *known, bool *ret)
{
	enum causal_source_verdict verdict;
	int error = judge_file(chain, known->file, &verdict);

	*ret = verdict == CAUSAL_SOURCE_IN ||
	       (verdict == CAUSAL_SOURCE_BY_LINE && known->line_in_scope);
	return error;
}

static int function_id(struct causal_chain *chain, uint32_t index, uint32_t *ret)
{
	const struct dwarf_function *function = &chain->stretches->result.functions[index];
	struct causal_chain_function *known = &chain->functions[index];
	bool source = false;
	int error = 0;

	if (known->id == ID_UNKNOWN) {
		known->id = 0;
		if (function_symbol(function))
			error = function_source_in_scope(chain, known, &source);
		if (source && function_in_scope(chain, index))
			known->id = causal_targets_function(chain->targets, chain->module->path,
							    function_symbol(function), known->file,
							    function->line);
	}
	*ret = known->id;
	return error;
}

/* Code that debug information does not speak of. */
static int symbol_id(struct causal_chain *chain, uint64_t vaddr, uint32_t *ret)
{
	int error = 0;
	const char *symbol = causal_module_symbol(chain->module, vaddr, &error);

	if (symbol != chain->last_symbol) {
		bool in_scope = symbol &&
				causal_scopes_judge_file(chain->scopes, NULL) == CAUSAL_SOURCE_IN &&
				causal_scopes_hold_function(chain->scopes, symbol);

		chain->last_symbol = symbol;
		chain->last_id =
			in_scope ? causal_targets_function(chain->targets, chain->module->path,
							   symbol, NULL, 0)
				 : 0;
	}
	*ret = chain->last_id;
	return error;
}

/* ---- lines ---- */

static int line_id(struct causal_chain *chain, const struct frame_place *frame, uint32_t *ret)
{
	const struct causal_stretches *stretches = chain->stretches;
	const char *symbol = NULL;
	bool in_scope = false;
	int error;

	*ret = 0;
	if (!frame->file || !frame->line)
		return 0;
	error = place_in_scope(chain, frame, &in_scope);
	if (error || !in_scope)
		return error;
	if (frame->scope != DWARF_NONE) {
		uint32_t index = stretches->result.scopes[frame->scope].function;

		if (!function_in_scope(chain, index))
			return 0;
		symbol = function_symbol(&stretches->result.functions[index]);
	} else if (!causal_scopes_hold_function(chain->scopes, NULL)) {
		return 0;
	}
	*ret = causal_targets_line(chain->targets, chain->module->path, symbol, frame->file,
				   frame->line);
	return 0;
}

/* ---- chains ---- */

static void chain_add(struct causal_chain *chain, uint32_t id)
{
	for (size_t i = 0; i < chain->count; i++) {
		if (chain->ids[i] == id)
			return;
	}
	if (id && chain->count < CAUSAL_CHAIN_MAX)
		chain->ids[chain->count++] = id;
}

int causal_chain_find(struct causal_chain *chain, size_t stretch)
{
	bool lines = causal_scopes_granularity(chain->scopes) == CAUSAL_LINES;
	struct frame_place frame = {.scope = DWARF_NONE};
	uint32_t id = 0;
	int error = 0;

	chain->count = 0;
	if (chain->stretches->debug)
		frame = frame_first(chain, stretch);
	if (frame.scope == DWARF_NONE && !lines) {
		error = symbol_id(chain, chain->stretches->starts[stretch], &id);
		chain_add(chain, id);
		return error;
	}
	do {
		error = lines ? line_id(chain, &frame, &id)
			      : function_id(chain,
					    chain->stretches->result.scopes[frame.scope].function,
					    &id);
		chain_add(chain, id);
	} while (!error && frame_next(chain, &frame));
	return error;
}

int causal_chain_init(struct causal_chain *ret, struct causal_module *module,
		      const struct causal_scopes *scopes, struct causal_targets *targets,
		      const struct causal_stretches *stretches)
{
	size_t count = stretches->result.function_count;
	int error = 0;

	*ret = (struct causal_chain){
		.module = module, .scopes = scopes, .targets = targets, .stretches = stretches};
	ret->functions = calloc(count + 1, sizeof(*ret->functions));
	if (!ret->functions)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		ret->functions[i].id = ID_UNKNOWN;
	if (stretches->debug && causal_scopes_granularity(scopes) == CAUSAL_FUNCTIONS)
		error = functions_survey(ret);
	if (error)
		causal_chain_deinit(ret);
	return error;
}

void causal_chain_deinit(struct causal_chain *chain)
{
	free(chain->functions);
	free(chain->files);
	chain->functions = NULL;
	chain->files = NULL;
}
