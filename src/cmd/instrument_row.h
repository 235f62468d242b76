/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A function as lists show it.
 */
#ifndef KYMO_CMD_INSTRUMENT_ROW_H
#define KYMO_CMD_INSTRUMENT_ROW_H

#include "cmd/instrument_module.h"
#include "cmd/instrument_request.h"

struct instrument_row {
	const struct plan_function *function;
	const char *module;  /* path */
	const char *mangled; /* NULL: no symbol */
	char *name;          /* readable, without arguments; "[libfoo.so+0x1234]" without symbol */
	char *signature;
	unsigned linkage, visibility;
	enum selection_verdict verdict;
	enum plan_mode mode;
};

/* Of function number `index`; -ENOMEM. */
int instrument_row_init(const struct instrument_module *module, size_t index, unsigned labels,
			struct instrument_row *ret);
void instrument_row_deinit(struct instrument_row *row);
bool instrument_row_is_on(const struct instrument_row *row, enum instrument_print list);
/* "target", "instructions": why it is left out; and as a sentence. */
const char *instrument_row_reason_word(const struct instrument_row *row);
const char *instrument_row_reason(const struct instrument_row *row);
double instrument_row_ratio(const struct instrument_row *row); /* bytes an instruction */

#endif
