/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A table of distinct strings, numbered from 0 in the order of their first appearance. It borrows
 * the text, which must outlive it, or keeps copies.
 */
#ifndef KYMO_OUTPUT_STRINGS_H
#define KYMO_OUTPUT_STRINGS_H

#include <stdbool.h>
#include <stdint.h>

struct string_table {
	const char **text; /* by number */
	uint32_t *slots;   /* number + 1; open addressing, a power of two of them */
	uint32_t count, capacity;
	bool has_copies;
};

void strings_init(struct string_table *strings);
void strings_init_with_copies(struct string_table *strings);
void strings_deinit(struct string_table *strings);
/* *ret is the number of `text`, new or known. 0 or -ENOMEM. */
int strings_find_or_add(struct string_table *strings, const char *text, uint32_t *ret);

#endif
