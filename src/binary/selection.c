/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Going through the functions of a plan; see selection.h.
 */
#include "binary/selection.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "binary/selection_code.h"
#include "binary/selection_defaults.h"
#include "binary/selection_rules.h"

enum { PLACES = PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK };

/* One run over a module. */
struct selecting {
	const struct selection_rules *rules;
	const struct selection_module *module;
	const struct selection_names *names;
	const struct plan_function *functions;
	size_t count;
	enum selection_verdict module_verdict; /* counts for all of its functions */
	bool internal;                         /* only SELECTION_INTERNAL_INCLUDE brings any in */
	bool module_restricted, module_included;
	struct selection_code *code; /* NULL: no rule about code */
};

/* A function and the names that it has. */
struct candidate {
	const struct plan_function *function;
	const struct selection_name *names;
	size_t name_count;
	const char *file; /* of the source; NULL: unknown, or not part of signatures */
	uint32_t line;
};

/* The signature of one of its names, where that is more than the readable name. */
static bool candidate_signature_matches(const struct selecting *selecting,
					const struct candidate *candidate, const char *mangled,
					const struct selection_pattern *pattern)
{
	char *signature;
	bool matches;

	if (!candidate->file)
		return false;
	signature = selection_signature(mangled, candidate->file, candidate->line,
					selecting->rules->request.labels);
	matches = selection_pattern_matches(pattern, signature);
	free(signature);
	return matches;
}

/* What lists call a function without a symbol: "[liblua.so+0x1234]". */
static bool candidate_nameless_matches(const struct selecting *selecting,
				       const struct candidate *candidate,
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
static bool candidate_matches(const struct selecting *selecting, const struct candidate *candidate,
			      enum selection_expression which)
{
	const struct selection_pattern *pattern = &selecting->rules->expressions[which];

	for (size_t i = 0; pattern->given && i < candidate->name_count; i++) {
		const char *mangled = candidate->names[i].mangled;

		if (selection_pattern_matches_symbol(pattern, mangled) ||
		    candidate_signature_matches(selecting, candidate, mangled, pattern))
			return true;
	}
	return pattern->given && !candidate->name_count &&
	       candidate_nameless_matches(selecting, candidate, pattern);
}

static bool candidate_is_routine(const struct candidate *candidate)
{
	for (size_t i = 0; i < candidate->name_count; i++) {
		if (selection_is_routine(candidate->names[i].mangled))
			return true;
	}
	return false;
}

static bool candidate_is_main(const struct selecting *selecting, const struct candidate *candidate)
{
	const char *main_function = selecting->rules->request.main_function;

	if (!selecting->module->is_program || !main_function)
		return false;
	for (size_t i = 0; i < candidate->name_count; i++) {
		if (!strcmp(candidate->names[i].mangled, main_function))
			return true;
	}
	return false;
}

static bool candidate_listed(const struct selecting *selecting, const struct candidate *candidate)
{
	const struct selection_list *list = selecting->rules->list;
	const char *path = selecting->module->path;
	bool listed = false;

	/* All names, though one would do: the list notes which of its own were found. */
	for (size_t i = 0; i < candidate->name_count; i++) {
		const char *mangled = candidate->names[i].mangled;
		char *readable = demangle(mangled), *plain = NULL;

		if (readable)
			plain = selection_plain_name(readable);
		listed |= selection_list_has_name(list, path, mangled);
		if (readable)
			listed |= selection_list_has_name(list, path, readable);
		if (plain)
			listed |= selection_list_has_name(list, path, plain);
		free(readable);
		free(plain);
	}
	return candidate->name_count
		       ? listed
		       : selection_list_has_address(list, path, candidate->function->vaddr);
}

/* A function's bytes reach into the next one's. */
static bool candidate_overlaps(const struct selecting *selecting, size_t index)
{
	const struct plan_function *function = &selecting->functions[index];

	if (index + 1 < selecting->count && !(selecting->functions[index + 1].flags & PLACES) &&
	    function->vaddr + function->size > selecting->functions[index + 1].vaddr)
		return true;
	return index &&
	       selecting->functions[index - 1].vaddr + selecting->functions[index - 1].size >
		       function->vaddr;
}

static enum selection_verdict judge_size(const struct selecting *selecting,
					 const struct plan_function *function)
{
	const struct selection_request *request = &selecting->rules->request;
	bool loops = function->flags & PLAN_FUNCTION_LOOPS;

	if (function->size < (loops ? request->minimum_range_loop : request->minimum_range))
		return SELECTION_ADDRESS_RANGE;
	if (function->instructions <
	    (loops ? request->minimum_instructions_loop : request->minimum_instructions))
		return SELECTION_INSTRUCTIONS;
	return SELECTION_CHOSEN;
}

/* Linkage, visibility and size: for what nobody asked for by name. */
static enum selection_verdict judge_kind(const struct selecting *selecting,
					 const struct candidate *candidate)
{
	const struct selection_request *request = &selecting->rules->request;
	unsigned linkage = candidate->name_count ? candidate->names[0].linkage : LINKAGE_NONE;
	unsigned visibility =
		candidate->name_count ? candidate->names[0].visibility : VISIBILITY_NONE;
	enum selection_verdict verdict;

	if (request->linkages && !(request->linkages & 1u << linkage))
		return SELECTION_LINKAGE;
	if (request->visibilities && !(request->visibilities & 1u << visibility))
		return SELECTION_VISIBILITY;
	verdict = judge_size(selecting, candidate->function);
	if (!verdict && selection_code_reads(selecting->code, candidate->function))
		return SELECTION_INSTRUCTION_TEXT;
	return verdict;
}

/* What is left alone by default. Naming a function brings routines back. */
static enum selection_verdict judge_defaults(const struct selecting *selecting,
					     const struct candidate *candidate)
{
	if (selecting->internal &&
	    !candidate_matches(selecting, candidate, SELECTION_INTERNAL_INCLUDE))
		return SELECTION_INTERNAL;
	if (selecting->module_verdict == SELECTION_SYSTEM_MODULE)
		return SELECTION_SYSTEM_MODULE;
	if (candidate_is_routine(candidate) &&
	    !candidate_matches(selecting, candidate, SELECTION_INCLUDE))
		return SELECTION_ROUTINE;
	return candidate->function->instructions < 2 ? SELECTION_TINY : SELECTION_CHOSEN;
}

static bool judge_restricted(const struct selecting *selecting, const struct candidate *candidate)
{
	const struct selection_rules *rules = selecting->rules;

	if (!selection_rules_given(rules, SELECTION_RESTRICT) &&
	    !selection_rules_given(rules, SELECTION_MODULE_RESTRICT))
		return true;
	return selecting->module_restricted ||
	       candidate_matches(selecting, candidate, SELECTION_RESTRICT);
}

static bool judge_included(const struct selecting *selecting, const struct candidate *candidate)
{
	return selecting->module_included ||
	       candidate_matches(selecting, candidate, SELECTION_INCLUDE) ||
	       selection_code_calls(selecting->code, candidate->function) ||
	       candidate_is_main(selecting, candidate);
}

/* The user's rules. */
static enum selection_verdict judge_asked(const struct selecting *selecting,
					  const struct candidate *candidate, size_t index)
{
	const struct selection_request *request = &selecting->rules->request;

	if (selecting->module_verdict == SELECTION_EXCLUDED ||
	    candidate_matches(selecting, candidate, SELECTION_EXCLUDE))
		return SELECTION_EXCLUDED;
	if (!request->allow_overlapping && candidate_overlaps(selecting, index))
		return SELECTION_OVERLAPPING;
	if (request->dynamic_callsites && candidate->function->flags & PLAN_FUNCTION_INDIRECT)
		return SELECTION_CHOSEN;
	if (!judge_restricted(selecting, candidate))
		return SELECTION_NOT_RESTRICTED;
	if (judge_included(selecting, candidate))
		return SELECTION_CHOSEN;
	return judge_kind(selecting, candidate);
}

static enum selection_verdict judge(const struct selecting *selecting,
				    const struct candidate *candidate, size_t index)
{
	enum selection_verdict verdict;

	/* The list is to note also what cannot be instrumented. */
	bool listed = selecting->rules->list && candidate_listed(selecting, candidate);

	if (!candidate->function->stub)
		return SELECTION_NOT_PATCHABLE;
	if (selecting->rules->list)
		return listed ? SELECTION_CHOSEN : SELECTION_NOT_INCLUDED;
	verdict = judge_defaults(selecting, candidate);
	return verdict ? verdict : judge_asked(selecting, candidate, index);
}

static enum plan_mode choose_mode(const struct selecting *selecting,
				  const struct candidate *candidate)
{
	if (selecting->rules->request.count_all ||
	    candidate_matches(selecting, candidate, SELECTION_COUNT_ONLY))
		return PLAN_MODE_COUNT;
	if (candidate_matches(selecting, candidate, SELECTION_ARGUMENTS))
		return PLAN_MODE_ARGUMENTS;
	return PLAN_MODE_FULL;
}

/* Loops and blocks follow the function that they are in. */
static void select_places(const struct selecting *selecting, size_t function_count,
			  struct selection *ret)
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
		ret->verdicts[i] =
			function_count ? ret->verdicts[low] : (uint8_t)SELECTION_NOT_PATCHABLE;
		/* Also where nothing is patched: then another place counts it, or it is known that
		 * it was not measured. */
		if (ret->verdicts[i] == SELECTION_CHOSEN)
			ret->modes[i] = PLAN_MODE_COUNT;
		if (!selecting->functions[i].stub)
			ret->verdicts[i] = SELECTION_NOT_PATCHABLE;
	}
}

/* Parts of functions and what the linker made are no functions that anybody would miss. */
static bool is_function(const struct plan_function *function)
{
	return function->reason != PLAN_FRAGMENT && function->reason != PLAN_LINKER_CODE &&
	       function->reason != PLAN_NO_RETURN_ADDRESS;
}

static void select_all(struct selecting *selecting, struct selection *ret)
{
	size_t index = 0;

	for (; index < selecting->count && !(selecting->functions[index].flags & PLACES); index++) {
		struct candidate candidate = {.function = &selecting->functions[index]};
		enum selection_verdict verdict;

		candidate.names = selection_names_at(selecting->names, candidate.function->vaddr,
						     &candidate.name_count);
		candidate.file =
			selection_sources_at(selecting->module->sources, index, &candidate.line);
		verdict = judge(selecting, &candidate, index);
		ret->verdicts[index] = (uint8_t)verdict;
		if (verdict == SELECTION_CHOSEN)
			ret->modes[index] = (uint8_t)choose_mode(selecting, &candidate);
		if (!is_function(candidate.function))
			continue;
		ret->functions++;
		ret->patchable += candidate.function->stub != 0;
		ret->chosen += verdict == SELECTION_CHOSEN;
		ret->verdict_counts[verdict]++;
	}
	select_places(selecting, index, ret);
}

int selection_make(const struct selection_rules *rules, const struct selection_module *module,
		   const struct selection_names *names, struct selection *ret,
		   struct problem *problem)
{
	struct selecting selecting = {
		.rules = rules,
		.module = module,
		.names = names,
		.functions = plan_functions(module->plan),
		.count = module->plan->header->functions.count,
		.module_verdict = selection_of_module(rules, module->path),
	};
	char family[64];

	selection_family(module->path, family);
	selecting.internal =
		selection_rules_internal(rules, family) &&
		!selection_rules_module(rules, SELECTION_MODULE_INTERNAL_INCLUDE, module->path);
	selecting.module_restricted =
		selection_rules_module(rules, SELECTION_MODULE_RESTRICT, module->path);
	selecting.module_included =
		selection_rules_module(rules, SELECTION_MODULE_INCLUDE, module->path);
	memset(ret, 0, sizeof(*ret));
	ret->count = selecting.count;
	ret->modes = calloc(selecting.count + 1, 1);
	ret->verdicts = calloc(selecting.count + 1, 1);
	if (!ret->modes || !ret->verdicts ||
	    selection_code_create(
		    module->file, names, &rules->expressions[SELECTION_CALLER_INCLUDE],
		    &rules->expressions[SELECTION_INSTRUCTION_EXCLUDE], &selecting.code)) {
		selection_deinit(ret);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	select_all(&selecting, ret);
	selection_code_destroy(selecting.code);
	return 0;
}

void selection_deinit(struct selection *selection)
{
	free(selection->modes);
	free(selection->verdicts);
	memset(selection, 0, sizeof(*selection));
}
