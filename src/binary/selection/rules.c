/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See rules.h; and the texts of verdicts.
 */
#include "binary/selection/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/selection/code.h"
#include "binary/selection/defaults.h"

static const char *const selection_verdict_words_and_texts[SELECTION_VERDICT_COUNT][2] = {
	[SELECTION_VERDICT_CHOSEN] = {"instrumented", "is instrumented"},
	[SELECTION_VERDICT_NOT_PATCHABLE] = {"not-patchable", "cannot be patched safely"},
	[SELECTION_VERDICT_INTERNAL_LIBRARY] = {"internal", "in a library that kymo needs"},
	[SELECTION_VERDICT_SYSTEM_MODULE] = {"system-library",
					     "in a system library (include it with -MI)"},
	[SELECTION_VERDICT_RUNTIME_ROUTINE] = {"routine",
					       "start-up code, or internals of the C++ runtime"},
	[SELECTION_VERDICT_TINY] = {"tiny", "less than two instructions"},
	[SELECTION_VERDICT_EXCLUDED] = {"excluded", "excluded by the user"},
	[SELECTION_VERDICT_OVERLAPPING] = {"overlapping", "shares code with another function"},
	[SELECTION_VERDICT_OUTSIDE_RESTRICTION] =
		{"not-restricted", "matches neither --function-restrict nor --module-restrict"},
	[SELECTION_VERDICT_NOT_ON_LIST] = {"not-listed", "is not on the given list"},
	[SELECTION_VERDICT_OTHER_LINKAGE] = {"linkage", "has another linkage than asked for"},
	[SELECTION_VERDICT_OTHER_VISIBILITY] = {"visibility",
						"has another visibility than asked for"},
	[SELECTION_VERDICT_TOO_FEW_BYTES] = {"address-range",
					     "has fewer bytes than --min-address-range"},
	[SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS] =
		{"instructions", "has fewer instructions than --min-instructions"},
	[SELECTION_VERDICT_EXCLUDED_INSTRUCTION] =
		{"instruction-text", "holds an instruction of --instruction-exclude"},
};

int selection_rules_create(const struct selection_request *request, struct selection_rules **ret,
			   struct problem *problem)
{
	struct selection_rules *rules = calloc(1, sizeof(*rules));
	int error = 0;

	if (!rules)
		return problem_set(problem, -ENOMEM, "out of memory");
	rules->request = *request;
	for (unsigned i = 0; !error && i < SELECTION_RULE_KIND_COUNT; i++) {
		const char *text = request->rule_expressions[i], *source = request->sources[i];

		error = selection_pattern_init(&rules->expressions[i], text ? text : "",
					       source ? source : "expression", problem);
	}
	if (!error && rules->expressions[SELECTION_RULE_INSTRUCTION_EXCLUDE].given &&
	    !selection_is_built_with_disassembler())
		error = problem_set(problem, -ENOTSUP,
				    "%s: this kymo was built without Zydis, which is needed to "
				    "read instructions",
				    request->sources[SELECTION_RULE_INSTRUCTION_EXCLUDE]);
	if (!error && request->list_file_paths && *request->list_file_paths)
		error = selection_list_read_files(request->list_file_paths, &rules->list, problem);
	if (error) {
		selection_rules_destroy(rules);
		return error;
	}
	*ret = rules;
	return 0;
}

void selection_rules_destroy(struct selection_rules *rules)
{
	if (!rules)
		return;
	for (unsigned i = 0; i < SELECTION_RULE_KIND_COUNT; i++)
		selection_pattern_deinit(&rules->expressions[i]);
	selection_list_destroy(rules->list);
	free(rules);
}

size_t selection_rules_count_missing(const struct selection_rules *rules, const char **ret_first,
				     size_t *ret_count)
{
	size_t misses;

	*ret_first = NULL;
	*ret_count = 0;
	if (!rules->list)
		return 0;
	misses = selection_list_count_missing(rules->list, ret_first, ret_count);
	if (*ret_first)
		*ret_first = strchr(*ret_first, '|') + 1;
	return misses;
}

bool selection_rules_has_expression(const struct selection_rules *rules,
				    enum selection_rule_kind which)
{
	return rules->expressions[which].given;
}

bool selection_rules_match_module(const struct selection_rules *rules,
				  enum selection_rule_kind which, const char *path)
{
	return selection_pattern_matches(&rules->expressions[which], path);
}

/* Whether a list of libraries has this one: "libfoo", "libfoo.so" or "libfoo.so.1". */
static bool list_has_library(const char *list, const char *family)
{
	char wanted[64], word[256];

	while (list && *list) {
		size_t length = strcspn(list, ", ");

		snprintf(word, sizeof(word), "%.*s", (int)length, list);
		selection_copy_library_base_name(word, wanted);
		if (length && !strcmp(wanted, family))
			return true;
		list += length + strspn(list + length, ", ");
	}
	return false;
}

bool selection_rules_say_kymo_needs_library(const struct selection_rules *rules, const char *family)
{
	if (list_has_library(rules->request.internal_libraries_removed, family))
		return false;
	return selection_family_is_needed_by_kymo(family) ||
	       list_has_library(rules->request.internal_libraries_added, family);
}

enum selection_verdict selection_judge_module(const struct selection_rules *rules, const char *path)
{
	char family[64];
	bool asked = selection_rules_match_module(rules, SELECTION_RULE_MODULE_INCLUDE, path) ||
		     selection_rules_match_module(rules, SELECTION_RULE_MODULE_RESTRICT, path);

	if (rules->list)
		return SELECTION_VERDICT_CHOSEN;
	selection_copy_library_base_name(path, family);
	if (selection_rules_say_kymo_needs_library(rules, family) &&
	    !selection_rules_has_expression(rules, SELECTION_RULE_INTERNAL_INCLUDE) &&
	    !selection_rules_match_module(rules, SELECTION_RULE_MODULE_INTERNAL_INCLUDE, path))
		return SELECTION_VERDICT_INTERNAL_LIBRARY;
	if (selection_family_is_system_library(family) && !asked)
		return SELECTION_VERDICT_SYSTEM_MODULE;
	if (selection_rules_match_module(rules, SELECTION_RULE_MODULE_EXCLUDE, path))
		return SELECTION_VERDICT_EXCLUDED;
	if (selection_rules_has_expression(rules, SELECTION_RULE_MODULE_RESTRICT) &&
	    !selection_rules_has_expression(rules, SELECTION_RULE_RESTRICT) && !asked)
		return SELECTION_VERDICT_OUTSIDE_RESTRICTION;
	return SELECTION_VERDICT_CHOSEN;
}

const char *selection_verdict_to_word(enum selection_verdict verdict)
{
	return selection_verdict_words_and_texts[verdict][0];
}

const char *selection_verdict_to_text(enum selection_verdict verdict)
{
	return selection_verdict_words_and_texts[verdict][1];
}
