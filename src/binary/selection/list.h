/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lists of functions that are given back in: instrumented.json of an earlier run, or a text with a
 * name a line (plain, mangled or whole signature; # begins a comment).
 */
#ifndef KYMO_BINARY_SELECTION_LIST_H
#define KYMO_BINARY_SELECTION_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"

struct selection_list;

/* `files` are separated by colons. */
int selection_list_read_files(const char *files, struct selection_list **ret,
			      struct problem *problem);
void selection_list_destroy(struct selection_list *list);
/* `module` is a path; the last part counts. By name; or, where the list says it, by address alone
 * for functions without a name. */
bool selection_list_find_and_mark_name(const struct selection_list *list, const char *module,
				       const char *name);
bool selection_list_find_and_mark_address(const struct selection_list *list, const char *module,
					  uint64_t vaddr);
/* How many functions of the list have not been asked for by any of their names, of so many; the
 * first of them as "module|name". */
size_t selection_list_count_missing(const struct selection_list *list, const char **ret_first,
				    size_t *ret_count);

#endif
