/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The rules in their compiled form, for the parts of selection*.c.
 */
#ifndef KYMO_BINARY_SELECTION_RULES_H
#define KYMO_BINARY_SELECTION_RULES_H

#include "binary/selection.h"
#include "binary/selection_list.h"
#include "binary/selection_pattern.h"

struct selection_rules {
	struct selection_request request; /* texts are borrowed from the caller */
	struct selection_pattern expressions[SELECTION_EXPRESSIONS];
	struct selection_list *list; /* NULL: none was given */
};

/* Is the library of that family one that kymo needs? */
bool selection_rules_internal(const struct selection_rules *rules, const char *family);
bool selection_rules_module(const struct selection_rules *rules, enum selection_expression which,
			    const char *path);
bool selection_rules_given(const struct selection_rules *rules, enum selection_expression which);
#endif
