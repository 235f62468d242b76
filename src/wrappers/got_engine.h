/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the engine of got.h offers the wrappers of the loader and of fork.
 */
#ifndef KYMO_WRAPPERS_GOT_ENGINE_H
#define KYMO_WRAPPERS_GOT_ENGINE_H

#include <stdbool.h>

/* From now on fork waits for scans. */
void got_follow_forks(void);
/* Is this thread, which was borrowed from the program, in the midst of a scan or a fork? What waits
 * for those would wait for itself. */
bool got_is_busy_here(void);
/* The library that this is part of was opened by itself: what it defines of wrapped names are
 * replacements, and no caller's. Before the first scan. */
void got_hide_own(void);

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
