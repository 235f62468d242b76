/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The group of functions that allocate memory: where the memory was allocated that is not freed.
 */
#ifndef KYMO_WRAPPERS_MEMORY_MEMORY_H
#define KYMO_WRAPPERS_MEMORY_MEMORY_H

#include "core/base/options.h"

struct runtime;

/* Before the group is added: what it needs of the collector is noted. */
void memory_remember_collector(struct runtime *runtime);
/* As those of wrappers.h. Again for each attachment: with empty tables. */
int wrappers_memory_add(const struct wrapper_options *options);
/* Detached: what was known of blocks is forgotten, and its memory given back. */
void memory_clear_tables(void);

#endif
