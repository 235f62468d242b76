/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See chain.h. A function is in a source file if its first stretch is: debug information
 * says where functions are declared, but in numbers of files that would have to be read again.
 */
#include "binary/causal/chain.h"

#include <errno.h>
#include <stdlib.h>

#define TARGET_ID_NOT_LOOKED_UP UINT32_MAX

struct causal_function_scope_and_target_state {
	const char *file; /* of its first stretch */
	bool was_met_in_chain, has_line_in_scope, is_scope_known, is_in_scope;
	uint32_t id; /* TARGET_ID_NOT_LOOKED_UP: not asked for yet; 0: out of scope */
};

struct causal_source_file_verdict_slot {
	const char *path; /* NULL: free */
	enum causal_source_scope_verdict verdict;
};

/* One function on the chain with the line that is reached in it. */
struct inline_frame {
	uint32_t scope; /* DWARF_SCOPE_NONE: not known to debug information */
	const char *file;
	uint32_t line;
};

static struct inline_frame get_innermost_frame(const struct causal_inline_target_finder *chain,
					       size_t stretch)
{
	const struct dwarf_source_location *place = &chain->code_ranges->result.places[stretch];

	return (struct inline_frame){place->scope, place->file, place->line};
}

static bool step_to_outer_frame(const struct causal_inline_target_finder *chain,
				struct inline_frame *frame)
{
	const struct dwarf_function_scope *scope;

	if (frame->scope == DWARF_SCOPE_NONE)
		return false;
	scope = &chain->code_ranges->result.scopes[frame->scope];
	if (scope->parent == DWARF_SCOPE_NONE)
		return false;
	*frame = (struct inline_frame){scope->parent, scope->call_file, scope->call_line};
	return true;
}

/* ---- sources ---- */

static struct causal_source_file_verdict_slot *
find_file_verdict_slot(const struct causal_inline_target_finder *chain, const char *path)
{
	size_t at = (size_t)((uintptr_t)path * 0x9e3779b97f4a7c15u >> 32);

	for (;; at++) {
		struct causal_source_file_verdict_slot *slot =
			&chain->files[at & (chain->file_slot_count - 1)];

		if (!slot->path || slot->path == path)
			return slot;
	}
}

static int grow_file_verdict_table(struct causal_inline_target_finder *chain)
{
	struct causal_source_file_verdict_slot *old = chain->files;
	size_t old_slots = chain->file_slot_count, slots = old_slots ? old_slots * 2 : 256;

	chain->files = calloc(slots, sizeof(*chain->files));
	if (!chain->files) {
		chain->files = old;
		return -ENOMEM;
	}
	chain->file_slot_count = slots;
	for (size_t i = 0; i < old_slots; i++) {
		if (old[i].path)
			*find_file_verdict_slot(chain, old[i].path) = old[i];
	}
	free(old);
	return 0;
}

/* Paths are interned: equal ones are the same pointer. */
static int judge_source_file_once(struct causal_inline_target_finder *chain, const char *path,
				  enum causal_source_scope_verdict *ret)
{
	struct causal_source_file_verdict_slot *slot;

	if (!path) {
		*ret = causal_scopes_judge_source_file(chain->scopes, NULL);
		return 0;
	}
	if (chain->used_file_slot_count * 2 >= chain->file_slot_count &&
	    grow_file_verdict_table(chain))
		return -ENOMEM;
	slot = find_file_verdict_slot(chain, path);
	if (!slot->path) {
		slot->path = path;
		slot->verdict = causal_scopes_judge_source_file(chain->scopes, path);
		chain->used_file_slot_count++;
	}
	*ret = slot->verdict;
	return 0;
}

static int check_frame_line_in_scope(struct causal_inline_target_finder *chain,
				     const struct inline_frame *frame, bool *ret)
{
	enum causal_source_scope_verdict verdict;
	int error = judge_source_file_once(chain, frame->file, &verdict);

	if (!error)
		*ret = verdict == CAUSAL_SOURCE_IN_SCOPE ||
		       (verdict == CAUSAL_SOURCE_SCOPE_DEPENDS_ON_LINE &&
			causal_line_is_in_scope(chain->scopes, frame->file, frame->line));
	return error;
}

/* ---- functions ---- */

static const char *get_function_symbol_name(const struct dwarf_function *function)
{
	return function->linkage_name ? function->linkage_name : function->name;
}

static bool is_function_in_scope(struct causal_inline_target_finder *chain, uint32_t index)
{
	struct causal_function_scope_and_target_state *known = &chain->functions[index];

	if (!known->is_scope_known) {
		known->is_in_scope = causal_function_is_in_scope(
			chain->scopes,
			get_function_symbol_name(&chain->code_ranges->result.functions[index]));
		known->is_scope_known = true;
	}
	return known->is_in_scope;
}

/* Before anything is found: the file of each function, and whether a line of it is in scope. */
static int find_files_and_scope_of_functions(struct causal_inline_target_finder *chain)
{
	int error = 0;

	for (size_t i = 0; !error && i < chain->code_ranges->count; i++) {
		struct inline_frame frame = get_innermost_frame(chain, i);
		bool more = frame.scope != DWARF_SCOPE_NONE;

		for (; !error && more; more = step_to_outer_frame(chain, &frame)) {
			struct causal_function_scope_and_target_state *known =
				&chain->functions[chain->code_ranges->result.scopes[frame.scope]
							  .function];
			bool in_scope = false;

			if (!known->was_met_in_chain && frame.file) {
				known->was_met_in_chain = true;
				known->file = frame.file;
			}
			if (!known->has_line_in_scope && frame.file)
				error = check_frame_line_in_scope(chain, &frame, &in_scope);
			known->has_line_in_scope |= in_scope;
		}
	}
	return error;
}

static int
check_function_source_in_scope(struct causal_inline_target_finder *chain,
			       const struct causal_function_scope_and_target_state *known,
			       bool *ret)
{
	enum causal_source_scope_verdict verdict;
	int error = judge_source_file_once(chain, known->file, &verdict);

	*ret = verdict == CAUSAL_SOURCE_IN_SCOPE ||
	       (verdict == CAUSAL_SOURCE_SCOPE_DEPENDS_ON_LINE && known->has_line_in_scope);
	return error;
}

static int find_or_add_function_target(struct causal_inline_target_finder *chain, uint32_t index,
				       uint32_t *ret)
{
	const struct dwarf_function *function = &chain->code_ranges->result.functions[index];
	struct causal_function_scope_and_target_state *known = &chain->functions[index];
	bool source = false;
	int error = 0;

	if (known->id == TARGET_ID_NOT_LOOKED_UP) {
		known->id = 0;
		if (get_function_symbol_name(function))
			error = check_function_source_in_scope(chain, known, &source);
		if (source && is_function_in_scope(chain, index))
			known->id = causal_targets_find_or_add_function(
				chain->targets, chain->module->path,
				get_function_symbol_name(function), known->file, function->line);
	}
	*ret = known->id;
	return error;
}

/* Code that debug information does not speak of. */
static int find_or_add_symbol_target(struct causal_inline_target_finder *chain, uint64_t vaddr,
				     uint32_t *ret)
{
	int error = 0;
	const char *symbol = causal_module_get_symbol_name_at(chain->module, vaddr, &error);

	if (symbol != chain->last_symbol) {
		bool in_scope = symbol &&
				causal_scopes_judge_source_file(chain->scopes, NULL) ==
					CAUSAL_SOURCE_IN_SCOPE &&
				causal_function_is_in_scope(chain->scopes, symbol);

		chain->last_symbol = symbol;
		chain->last_symbol_target_id =
			in_scope ? causal_targets_find_or_add_function(
					   chain->targets, chain->module->path, symbol, NULL, 0)
				 : 0;
	}
	*ret = chain->last_symbol_target_id;
	return error;
}

/* ---- lines ---- */

static int find_or_add_line_target(struct causal_inline_target_finder *chain,
				   const struct inline_frame *frame, uint32_t *ret)
{
	const struct causal_code_ranges *stretches = chain->code_ranges;
	const char *symbol = NULL;
	bool in_scope = false;
	int error;

	*ret = 0;
	if (!frame->file || !frame->line)
		return 0;
	error = check_frame_line_in_scope(chain, frame, &in_scope);
	if (error || !in_scope)
		return error;
	if (frame->scope != DWARF_SCOPE_NONE) {
		uint32_t index = stretches->result.scopes[frame->scope].function;

		if (!is_function_in_scope(chain, index))
			return 0;
		symbol = get_function_symbol_name(&stretches->result.functions[index]);
	} else if (!causal_function_is_in_scope(chain->scopes, NULL)) {
		return 0;
	}
	*ret = causal_targets_find_or_add_line(chain->targets, chain->module->path, symbol,
					       frame->file, frame->line);
	return 0;
}

/* ---- chains ---- */

static void append_experiment_target_id_unless_present(struct causal_inline_target_finder *chain,
						       uint32_t id)
{
	for (size_t i = 0; i < chain->count; i++) {
		if (chain->target_ids[i] == id)
			return;
	}
	if (id && chain->count < CAUSAL_INLINE_CHAIN_TARGETS_MAX)
		chain->target_ids[chain->count++] = id;
}

int causal_inline_target_finder_find_ids(struct causal_inline_target_finder *chain, size_t stretch)
{
	bool lines = causal_scopes_get_granularity(chain->scopes) == CAUSAL_GRANULARITY_LINES;
	struct inline_frame frame = {.scope = DWARF_SCOPE_NONE};
	uint32_t id = 0;
	int error = 0;

	chain->count = 0;
	if (chain->code_ranges->debug)
		frame = get_innermost_frame(chain, stretch);
	if (frame.scope == DWARF_SCOPE_NONE && !lines) {
		error = find_or_add_symbol_target(chain, chain->code_ranges->starts[stretch], &id);
		append_experiment_target_id_unless_present(chain, id);
		return error;
	}
	do {
		error = lines ? find_or_add_line_target(chain, &frame, &id)
			      : find_or_add_function_target(
					chain,
					chain->code_ranges->result.scopes[frame.scope].function,
					&id);
		append_experiment_target_id_unless_present(chain, id);
	} while (!error && step_to_outer_frame(chain, &frame));
	return error;
}

int causal_inline_target_finder_init(struct causal_inline_target_finder *ret,
				     struct causal_module *module,
				     const struct causal_scopes *scopes,
				     struct causal_targets *targets,
				     const struct causal_code_ranges *stretches)
{
	size_t count = stretches->result.function_count;
	int error = 0;

	*ret = (struct causal_inline_target_finder){
		.module = module, .scopes = scopes, .targets = targets, .code_ranges = stretches};
	ret->functions = calloc(count + 1, sizeof(*ret->functions));
	if (!ret->functions)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		ret->functions[i].id = TARGET_ID_NOT_LOOKED_UP;
	if (stretches->debug &&
	    causal_scopes_get_granularity(scopes) == CAUSAL_GRANULARITY_FUNCTIONS)
		error = find_files_and_scope_of_functions(ret);
	if (error)
		causal_inline_target_finder_deinit(ret);
	return error;
}

void causal_inline_target_finder_deinit(struct causal_inline_target_finder *chain)
{
	free(chain->functions);
	free(chain->files);
	chain->functions = NULL;
	chain->files = NULL;
}
