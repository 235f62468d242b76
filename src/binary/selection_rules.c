/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See selection_rules.h; and the texts of verdicts.
 */
#include "binary/selection_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/selection_code.h"
#include "binary/selection_defaults.h"

static const char *const verdicts[SELECTION_VERDICTS][2] = {
	[SELECTION_CHOSEN] = {"instrumented", "is instrumented"},
	[SELECTION_NOT_PATCHABLE] = {"not-patchable", "cannot be patched safely"},
	[SELECTION_INTERNAL] = {"internal", "of a library that kymo itself needs"},
	[SELECTION_SYSTEM_MODULE] = {"system-library",
				     "of a library that is left alone unless it is included"},
	[SELECTION_ROUTINE] = {"routine", "start-up code, or an inner part of the C++ run time"},
	[SELECTION_TINY] = {"tiny", "less than two instructions"},
	[SELECTION_EXCLUDED] = {"excluded", "excluded by the user"},
	[SELECTION_OVERLAPPING] = {"overlapping", "shares code with another function"},
	[SELECTION_NOT_RESTRICTED] = {"not-restricted",
				      "matches neither --function-restrict nor --module-restrict"},
	[SELECTION_NOT_INCLUDED] = {"not-listed", "is not on the given list"},
	[SELECTION_LINKAGE] = {"linkage", "has another linkage than asked for"},
	[SELECTION_VISIBILITY] = {"visibility", "has another visibility than asked for"},
	[SELECTION_ADDRESS_RANGE] = {"address-range", "has fewer bytes than --min-address-range"},
	[SELECTION_INSTRUCTIONS] = {"instructions",
				    "has fewer instructions than --min-instructions"},
	[SELECTION_INSTRUCTION_TEXT] = {"instruction-text",
					"holds an instruction of --instruction-exclude"},
};

int selection_rules_create(const struct selection_request *request, struct selection_rules **ret,
			   struct problem *problem)
{
	struct selection_rules *rules = calloc(1, sizeof(*rules));
	int error = 0;

	if (!rules)
		return problem_set(problem, -ENOMEM, "out of memory");
	rules->request = *request;
	for (unsigned i = 0; !error && i < SELECTION_EXPRESSIONS; i++) {
		const char *text = request->expressions[i], *source = request->sources[i];

		error = selection_pattern_init(&rules->expressions[i], text ? text : "",
					       source ? source : "expression", problem);
	}
	if (!error && rules->expressions[SELECTION_INSTRUCTION_EXCLUDE].given &&
	    !selection_code_has_text())
		error = problem_set(problem, -ENOTSUP,
				    "%s: this kymo was built without Zydis, which it would take to "
				    "read instructions",
				    request->sources[SELECTION_INSTRUCTION_EXCLUDE]);
	if (!error && request->list_files && *request->list_files)
		error = selection_list_read(request->list_files, &rules->list, problem);
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
	for (unsigned i = 0; i < SELECTION_EXPRESSIONS; i++)
		selection_pattern_deinit(&rules->expressions[i]);
	selection_list_destroy(rules->list);
	free(rules);
}

size_t selection_rules_misses(const struct selection_rules *rules, const char **ret_first,
			      size_t *ret_count)
{
	size_t misses;

	*ret_first = NULL;
	*ret_count = 0;
	if (!rules->list)
		return 0;
	misses = selection_list_misses(rules->list, ret_first, ret_count);
	if (*ret_first)
		*ret_first = strchr(*ret_first, '|') + 1;
	return misses;
}

bool selection_rules_given(const struct selection_rules *rules, enum selection_expression which)
{
	return rules->expressions[which].given;
}

bool selection_rules_module(const struct selection_rules *rules, enum selection_expression which,
			    const char *path)
{
	return selection_pattern_matches(&rules->expressions[which], path);
}

/* Whether a list of libraries has this one: "libfoo", "libfoo.so" or "libfoo.so.1". */
static bool rules_listed(const char *list, const char *family)
{
	char wanted[64], word[256];

	while (list && *list) {
		size_t length = strcspn(list, ", ");

		snprintf(word, sizeof(word), "%.*s", (int)length, list);
		selection_family(word, wanted);
		if (length && !strcmp(wanted, family))
			return true;
		list += length + strspn(list + length, ", ");
	}
	return false;
}

bool selection_rules_internal(const struct selection_rules *rules, const char *family)
{
	if (rules_listed(rules->request.internal_remove, family))
		return false;
	return selection_is_internal_family(family) ||
	       rules_listed(rules->request.internal_append, family);
}

enum selection_verdict selection_of_module(const struct selection_rules *rules, const char *path)
{
	char family[64];
	bool asked = selection_rules_module(rules, SELECTION_MODULE_INCLUDE, path) ||
		     selection_rules_module(rules, SELECTION_MODULE_RESTRICT, path);

	if (rules->list)
		return SELECTION_CHOSEN;
	selection_family(path, family);
	if (selection_rules_internal(rules, family) &&
	    !selection_rules_given(rules, SELECTION_INTERNAL_INCLUDE) &&
	    !selection_rules_module(rules, SELECTION_MODULE_INTERNAL_INCLUDE, path))
		return SELECTION_INTERNAL;
	if (selection_is_system_family(family) && !asked)
		return SELECTION_SYSTEM_MODULE;
	if (selection_rules_module(rules, SELECTION_MODULE_EXCLUDE, path))
		return SELECTION_EXCLUDED;
	if (selection_rules_given(rules, SELECTION_MODULE_RESTRICT) &&
	    !selection_rules_given(rules, SELECTION_RESTRICT) && !asked)
		return SELECTION_NOT_RESTRICTED;
	return SELECTION_CHOSEN;
}

const char *selection_verdict_word(enum selection_verdict verdict)
{
	return verdicts[verdict][0];
}

const char *selection_verdict_text(enum selection_verdict verdict)
{
	return verdicts[verdict][1];
}
