/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lists of functions: available, instrumented, excluded (with reasons) and overlapping ones; as
 * files of a result, and printed.
 */
#ifndef KYMO_CMD_INSTRUMENT_LISTS_H
#define KYMO_CMD_INSTRUMENT_LISTS_H

#include "cmd/instrument_module.h"
#include "cmd/instrument_request.h"

struct instrument_lists {
	const struct instrument_module *const *modules;
	size_t count;
	unsigned labels; /* enum selection_label */
	const struct selection_rules *rules;
};

/* Writes <directory>/{available,instrumented,excluded,overlapping}.{txt,json} in one go over the
 * functions; about 5 us each. */
int instrument_lists_write(const struct instrument_lists *lists, const char *directory, bool text,
			   bool json, struct problem *problem);
/* -EINVAL: WHAT is none of functions, functions+, modules, pair, pair+. */
int instrument_lists_check(const char *what, const char *option, struct problem *problem);
void instrument_lists_print(const struct instrument_lists *lists, enum instrument_print list,
			    const char *what, FILE *out);
/* A line a module when kymo is to say more, and one for all of them. */
void instrument_lists_summary(const struct instrument_lists *lists);

#endif
