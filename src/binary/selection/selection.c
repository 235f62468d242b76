/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Going through the functions of a plan; see selection.h.
 */
#include "binary/selection/selection.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "binary/selection/code.h"
#include "binary/selection/defaults.h"
#include "binary/selection/rules.h"

enum { LOOP_OR_BLOCK_FLAGS = PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK };

/* One run over a module. */
struct module_selection_state {
	const struct selection_rules *rules;
	const struct selection_module *module;
	const struct selection_symbol_names *names;
	const struct plan_function *functions;
	size_t count;
	enum selection_verdict module_verdict; /* counts for all of its functions */
	bool is_internal_library; /* only SELECTION_RULE_INTERNAL_INCLUDE brings any in */
	bool matches_module_restrict_rule, matches_module_include_rule;
	struct selection_code_rules *code; /* NULL: no rule about code */
};

/* A function and the names that it has. */
struct selection_candidate {
	const struct plan_function *function;
	const struct selection_symbol_name *names;
	size_t name_count;
	const char *file; /* of the source; NULL: unknown, or not part of signatures */
	uint32_t line;
};

/* The signature of one of its names, where that is more than the readable name. */
static bool candidate_signature_matches(const struct module_selection_state *selecting,
					const struct selection_candidate *candidate,
					const char *mangled,
					const struct selection_pattern *pattern)
{
	char *signature;
	bool matches;

	if (!candidate->file)
		return false;
	signature = selection_format_signature(mangled, candidate->file, candidate->line,
					       selecting->rules->request.labels);
	matches = selection_pattern_matches(pattern, signature);
	free(signature);
	return matches;
}

/* What lists call a function without a symbol: "[liblua.so+0x1234]". */
static bool candidate_module_offset_name_matches(const struct module_selection_state *selecting,
						 const struct selection_candidate *candidate,
						 const struct selection_pattern *pattern)
{
	const char *path = selecting->module->path, *slash = strrchr(path, '/');
	char name[NAME_MAX + 32];

	snprintf(name, sizeof(name), "[%s+0x%" PRIx64 "]", slash ? slash + 1 : path,
		 candidate->function->vaddr);
	return selection_pattern_matches(pattern, name);
}

/* Does an expression match one of the names: as in the file, readable with and without arguments,
 * or with file and line? */
static bool candidate_matches_expression(const struct module_selection_state *selecting,
					 const struct selection_candidate *candidate,
					 enum selection_rule_kind which)
{
	const struct selection_pattern *pattern = &selecting->rules->expressions[which];

	for (size_t i = 0; pattern->given && i < candidate->name_count; i++) {
		const char *mangled = candidate->names[i].mangled;

		if (selection_pattern_matches_symbol(pattern, mangled) ||
		    candidate_signature_matches(selecting, candidate, mangled, pattern))
			return true;
	}
	return pattern->given && !candidate->name_count &&
	       candidate_module_offset_name_matches(selecting, candidate, pattern);
}

static bool candidate_is_runtime_routine(const struct selection_candidate *candidate)
{
	for (size_t i = 0; i < candidate->name_count; i++) {
		if (selection_is_runtime_routine(candidate->names[i].mangled))
			return true;
	}
	return false;
}

static bool candidate_is_main(const struct module_selection_state *selecting,
			      const struct selection_candidate *candidate)
{
	const char *main_function = selecting->rules->request.main_function_name;

	if (!selecting->module->is_program || !main_function)
		return false;
	for (size_t i = 0; i < candidate->name_count; i++) {
		if (!strcmp(candidate->names[i].mangled, main_function))
			return true;
	}
	return false;
}

static bool find_and_mark_candidate_on_list(const struct module_selection_state *selecting,
					    const struct selection_candidate *candidate)
{
	const struct selection_list *list = selecting->rules->list;
	const char *path = selecting->module->path;
	bool listed = false;

	/* All names, though one would do: the list notes which of its own were found. */
	for (size_t i = 0; i < candidate->name_count; i++) {
		const char *mangled = candidate->names[i].mangled;
		char *readable = demangle(mangled), *plain = NULL;

		if (readable)
			plain = selection_copy_plain_name(readable);
		listed |= selection_list_find_and_mark_name(list, path, mangled);
		if (readable)
			listed |= selection_list_find_and_mark_name(list, path, readable);
		if (plain)
			listed |= selection_list_find_and_mark_name(list, path, plain);
		free(readable);
		free(plain);
	}
	return candidate->name_count ? listed
				     : selection_list_find_and_mark_address(
					       list, path, candidate->function->vaddr);
}

/* A function's bytes reach into the next one's. */
static bool candidate_overlaps_neighbour(const struct module_selection_state *selecting,
					 size_t index)
{
	const struct plan_function *function = &selecting->functions[index];

	if (index + 1 < selecting->count &&
	    !(selecting->functions[index + 1].flags & LOOP_OR_BLOCK_FLAGS) &&
	    function->vaddr + function->size > selecting->functions[index + 1].vaddr)
		return true;
	return index &&
	       selecting->functions[index - 1].vaddr + selecting->functions[index - 1].size >
		       function->vaddr;
}

static enum selection_verdict judge_function_size(const struct module_selection_state *selecting,
						  const struct plan_function *function)
{
	const struct selection_request *request = &selecting->rules->request;
	bool loops = function->flags & PLAN_FUNCTION_LOOPS;

	if (function->size <
	    (loops ? request->minimum_range_bytes_with_loops : request->minimum_range_bytes))
		return SELECTION_VERDICT_TOO_FEW_BYTES;
	if (function->instructions <
	    (loops ? request->minimum_instructions_with_loops : request->minimum_instructions))
		return SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS;
	return SELECTION_VERDICT_CHOSEN;
}

/* Linkage, visibility and size: for what nobody asked for by name. */
static enum selection_verdict
judge_linkage_visibility_size_text(const struct module_selection_state *selecting,
				   const struct selection_candidate *candidate)
{
	const struct selection_request *request = &selecting->rules->request;
	unsigned linkage = candidate->name_count ? candidate->names[0].linkage : LINKAGE_NONE;
	unsigned visibility =
		candidate->name_count ? candidate->names[0].visibility : VISIBILITY_NONE;
	enum selection_verdict verdict;

	if (request->linkage_bits && !(request->linkage_bits & 1u << linkage))
		return SELECTION_VERDICT_OTHER_LINKAGE;
	if (request->visibility_bits && !(request->visibility_bits & 1u << visibility))
		return SELECTION_VERDICT_OTHER_VISIBILITY;
	verdict = judge_function_size(selecting, candidate->function);
	if (!verdict && selection_instruction_text_matches(selecting->code, candidate->function))
		return SELECTION_VERDICT_EXCLUDED_INSTRUCTION;
	return verdict;
}

/* What is left alone by default. Naming a function brings routines back. */
static enum selection_verdict judge_by_defaults(const struct module_selection_state *selecting,
						const struct selection_candidate *candidate)
{
	if (selecting->is_internal_library &&
	    !candidate_matches_expression(selecting, candidate, SELECTION_RULE_INTERNAL_INCLUDE))
		return SELECTION_VERDICT_INTERNAL_LIBRARY;
	if (selecting->module_verdict == SELECTION_VERDICT_SYSTEM_MODULE)
		return SELECTION_VERDICT_SYSTEM_MODULE;
	if (candidate_is_runtime_routine(candidate) &&
	    !candidate_matches_expression(selecting, candidate, SELECTION_RULE_INCLUDE))
		return SELECTION_VERDICT_RUNTIME_ROUTINE;
	return candidate->function->instructions < 2 ? SELECTION_VERDICT_TINY
						     : SELECTION_VERDICT_CHOSEN;
}

static bool candidate_passes_restriction(const struct module_selection_state *selecting,
					 const struct selection_candidate *candidate)
{
	const struct selection_rules *rules = selecting->rules;

	if (!selection_rules_has_expression(rules, SELECTION_RULE_RESTRICT) &&
	    !selection_rules_has_expression(rules, SELECTION_RULE_MODULE_RESTRICT))
		return true;
	return selecting->matches_module_restrict_rule ||
	       candidate_matches_expression(selecting, candidate, SELECTION_RULE_RESTRICT);
}

static bool candidate_is_included(const struct module_selection_state *selecting,
				  const struct selection_candidate *candidate)
{
	return selecting->matches_module_include_rule ||
	       candidate_matches_expression(selecting, candidate, SELECTION_RULE_INCLUDE) ||
	       selection_calls_matching_callee(selecting->code, candidate->function) ||
	       candidate_is_main(selecting, candidate);
}

/* The user's rules. */
static enum selection_verdict judge_by_users_rules(const struct module_selection_state *selecting,
						   const struct selection_candidate *candidate,
						   size_t index)
{
	const struct selection_request *request = &selecting->rules->request;

	if (selecting->module_verdict == SELECTION_VERDICT_EXCLUDED ||
	    candidate_matches_expression(selecting, candidate, SELECTION_RULE_EXCLUDE))
		return SELECTION_VERDICT_EXCLUDED;
	if (!request->allows_overlapping && candidate_overlaps_neighbour(selecting, index))
		return SELECTION_VERDICT_OVERLAPPING;
	if (request->selects_dynamic_callsites &&
	    candidate->function->flags & PLAN_FUNCTION_INDIRECT)
		return SELECTION_VERDICT_CHOSEN;
	if (!candidate_passes_restriction(selecting, candidate))
		return SELECTION_VERDICT_OUTSIDE_RESTRICTION;
	if (candidate_is_included(selecting, candidate))
		return SELECTION_VERDICT_CHOSEN;
	return judge_linkage_visibility_size_text(selecting, candidate);
}

static enum selection_verdict judge_candidate(const struct module_selection_state *selecting,
					      const struct selection_candidate *candidate,
					      size_t index)
{
	enum selection_verdict verdict;

	/* The list is to note also what cannot be instrumented. */
	bool listed =
		selecting->rules->list && find_and_mark_candidate_on_list(selecting, candidate);

	if (!candidate->function->stub)
		return SELECTION_VERDICT_NOT_PATCHABLE;
	if (selecting->rules->list)
		return listed ? SELECTION_VERDICT_CHOSEN : SELECTION_VERDICT_NOT_ON_LIST;
	verdict = judge_by_defaults(selecting, candidate);
	return verdict ? verdict : judge_by_users_rules(selecting, candidate, index);
}

static enum plan_mode choose_plan_mode_of_candidate(const struct module_selection_state *selecting,
						    const struct selection_candidate *candidate)
{
	if (selecting->rules->request.is_count_only ||
	    candidate_matches_expression(selecting, candidate, SELECTION_RULE_COUNT_CALLS_ONLY))
		return PLAN_MODE_COUNT;
	if (candidate_matches_expression(selecting, candidate, SELECTION_RULE_RECORD_ARGUMENTS))
		return PLAN_MODE_ARGUMENTS;
	return PLAN_MODE_FULL;
}

/* Loops and blocks follow the function that they are in. */
static void select_loops_and_blocks_by_function(const struct module_selection_state *selecting,
						size_t function_count, struct selection *ret)
{
	for (size_t i = function_count; i < selecting->count; i++) {
		size_t low = 0, high = function_count;

		while (high - low > 1) {
			size_t middle = low + (high - low) / 2;

			if (selecting->functions[middle].vaddr <= selecting->functions[i].vaddr)
				low = middle;
			else
				high = middle;
		}
		ret->verdicts[i] = function_count ? ret->verdicts[low]
						  : (uint8_t)SELECTION_VERDICT_NOT_PATCHABLE;
		/* Also where nothing is patched: then another place counts it, or it is known that
		 * it was not measured. */
		if (ret->verdicts[i] == SELECTION_VERDICT_CHOSEN)
			ret->modes[i] = PLAN_MODE_COUNT;
		if (!selecting->functions[i].stub)
			ret->verdicts[i] = SELECTION_VERDICT_NOT_PATCHABLE;
	}
}

/* Parts of functions and what the linker made are no functions that anybody would miss. */
static bool is_not_fragment_or_linker_code(const struct plan_function *function)
{
	return function->reason != PLAN_FRAGMENT && function->reason != PLAN_LINKER_CODE &&
	       function->reason != PLAN_NO_RETURN_ADDRESS;
}

static void select_all_functions(struct module_selection_state *selecting, struct selection *ret)
{
	size_t index = 0;

	for (;
	     index < selecting->count && !(selecting->functions[index].flags & LOOP_OR_BLOCK_FLAGS);
	     index++) {
		struct selection_candidate candidate = {.function = &selecting->functions[index]};
		enum selection_verdict verdict;

		candidate.names = selection_symbol_names_find_at(
			selecting->names, candidate.function->vaddr, &candidate.name_count);
		candidate.file = selection_source_lines_get_file_line(selecting->module->sources,
								      index, &candidate.line);
		verdict = judge_candidate(selecting, &candidate, index);
		ret->verdicts[index] = (uint8_t)verdict;
		if (verdict == SELECTION_VERDICT_CHOSEN)
			ret->modes[index] =
				(uint8_t)choose_plan_mode_of_candidate(selecting, &candidate);
		if (!is_not_fragment_or_linker_code(candidate.function))
			continue;
		ret->function_count++;
		ret->patchable_count += candidate.function->stub != 0;
		ret->chosen_count += verdict == SELECTION_VERDICT_CHOSEN;
		ret->verdict_counts[verdict]++;
	}
	select_loops_and_blocks_by_function(selecting, index, ret);
}

int selection_choose_functions(const struct selection_rules *rules,
			       const struct selection_module *module,
			       const struct selection_symbol_names *names, struct selection *ret,
			       struct problem *problem)
{
	struct module_selection_state selecting = {
		.rules = rules,
		.module = module,
		.names = names,
		.functions = plan_get_functions(module->plan),
		.count = module->plan->header->functions.count,
		.module_verdict = selection_judge_module(rules, module->path),
	};
	char family[64];

	selection_copy_library_base_name(module->path, family);
	selecting.is_internal_library =
		selection_rules_say_kymo_needs_library(rules, family) &&
		!selection_rules_match_module(rules, SELECTION_RULE_MODULE_INTERNAL_INCLUDE,
					      module->path);
	selecting.matches_module_restrict_rule =
		selection_rules_match_module(rules, SELECTION_RULE_MODULE_RESTRICT, module->path);
	selecting.matches_module_include_rule =
		selection_rules_match_module(rules, SELECTION_RULE_MODULE_INCLUDE, module->path);
	memset(ret, 0, sizeof(*ret));
	ret->count = selecting.count;
	ret->modes = calloc(selecting.count + 1, 1);
	ret->verdicts = calloc(selecting.count + 1, 1);
	if (!ret->modes || !ret->verdicts ||
	    selection_code_rules_create(
		    module->file, names, &rules->expressions[SELECTION_RULE_CALLER_INCLUDE],
		    &rules->expressions[SELECTION_RULE_INSTRUCTION_EXCLUDE], &selecting.code)) {
		selection_deinit(ret);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	select_all_functions(&selecting, ret);
	selection_code_rules_destroy(selecting.code);
	return 0;
}

void selection_deinit(struct selection *selection)
{
	free(selection->modes);
	free(selection->verdicts);
	memset(selection, 0, sizeof(*selection));
}
