/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lists of functions: available, instrumented, excluded (with reasons) and overlapping ones; as
 * files of a result, and printed.
 */
#ifndef KYMO_PLANNING_LISTS_H
#define KYMO_PLANNING_LISTS_H

#include "planning/instrument_request.h"
#include "planning/module.h"

struct function_list_output_args {
	const struct planned_module *const *modules;
	size_t count;
	unsigned labels; /* enum selection_signature_part_flag */
	const struct selection_rules *rules;
};

/* Writes <directory>/{available,instrumented,excluded,overlapping}.{txt,json} in one go over the
 * functions; about 5 us each. */
int function_lists_write_files(const struct function_list_output_args *lists, const char *directory,
			       bool text, bool json, struct problem *problem);
/* -EINVAL: WHAT is none of functions, functions+, modules, pair, pair+. */
int instrument_check_print_argument(const char *what, const char *option, struct problem *problem);
void function_lists_print_one(const struct function_list_output_args *lists,
			      enum function_list_kind list, const char *what, FILE *out);
/* A line a module when kymo is to say more, and one for all of them. */
void function_lists_print_summary(const struct function_list_output_args *lists);

#endif
