/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the engine of got.h offers the wrappers of the loader and of fork.
 */
#ifndef KYMO_WRAPPERS_GOT_ENGINE_H
#define KYMO_WRAPPERS_GOT_ENGINE_H

#include <stdbool.h>

/* For pthread_atfork. */
void got_before_fork(void);
void got_after_fork(void);
void got_after_fork_in_child(void);

/* Is any function of this name wrapped? */
bool got_wants(const char *symbol);
/* What callers of `function` are led to when it is found by name; `function` itself if it is not
 * wrapped. */
void *got_replacement_of(const char *symbol, void *function);

/* Around a dlopen. */
void got_load_begins(void);
void got_load_ends(void);

/* Does the object that holds this code bring search paths of its own for what it opens? */
bool got_has_search_path(const void *code);

#endif
