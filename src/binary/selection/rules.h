/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The rules in their compiled form, for the parts of selection*.c.
 */
#ifndef KYMO_BINARY_SELECTION_RULES_H
#define KYMO_BINARY_SELECTION_RULES_H

#include "binary/selection/list.h"
#include "binary/selection/pattern.h"
#include "binary/selection/selection.h"

struct selection_rules {
	struct selection_request request; /* texts are borrowed from the caller */
	struct selection_pattern expressions[SELECTION_RULE_KIND_COUNT];
	struct selection_list *list; /* NULL: none was given */
};

/* Is the library of that family one that kymo needs? */
bool selection_rules_say_kymo_needs_library(const struct selection_rules *rules,
					    const char *family);
bool selection_rules_match_module(const struct selection_rules *rules,
				  enum selection_rule_kind which, const char *path);
bool selection_rules_has_expression(const struct selection_rules *rules,
				    enum selection_rule_kind which);
#endif
