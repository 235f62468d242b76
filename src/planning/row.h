/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A function as lists show it.
 */
#ifndef KYMO_PLANNING_ROW_H
#define KYMO_PLANNING_ROW_H

#include "planning/instrument_request.h"
#include "planning/module.h"

struct function_list_row {
	const struct plan_function *function;
	const char *module;       /* path */
	const char *mangled_name; /* NULL: no symbol */
	char *name; /* readable, without arguments; "[libfoo.so+0x1234]" without symbol */
	char *signature;
	unsigned linkage, visibility;
	enum selection_verdict verdict;
	enum plan_mode mode;
};

/* Fills the row of function number `index`; 0 or -ENOMEM. */
int function_list_row_init(const struct planned_module *module, size_t index, unsigned labels,
			   struct function_list_row *ret);
void function_list_row_deinit(struct function_list_row *row);
bool function_list_row_is_in_list(const struct function_list_row *row,
				  enum function_list_kind list);
/* "target", "instructions": why it is left out; and as a sentence. */
const char *function_list_row_get_reason_word(const struct function_list_row *row);
const char *function_list_row_get_reason_text(const struct function_list_row *row);
double function_list_row_get_bytes_per_insn(
	const struct function_list_row *row); /* bytes an instruction */

#endif
