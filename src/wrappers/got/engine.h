/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the engine of got.h offers the wrappers of the loader and of fork.
 */
#ifndef KYMO_WRAPPERS_GOT_ENGINE_H
#define KYMO_WRAPPERS_GOT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

/* From now on fork waits for scans. */
void got_register_fork_handlers(void);
/* Is this thread, which was borrowed from the program, in the midst of a scan or a fork? What waits
 * for those would wait for itself. */
bool got_thread_is_at_lock(void);
/* The library that this is part of was opened by itself: what it defines of wrapped names are
 * replacements, and no caller's. Before the first scan. */
void got_ignore_own_definitions(void);

/* Is any function of this name wrapped? */
bool got_name_is_wrapped(const char *symbol);
/* Does another library stand before libc's function of this name (LD_PRELOAD)? What such a function
 * does may depend on its caller. */
bool got_name_has_foreign_interposer(const char *symbol);
/* What callers of `function` are led to when it is found by name; `function` itself if it is not
 * wrapped. */
void *got_find_replacement(const char *symbol, void *function);
/* The same for the next definition after the caller's object (RTLD_NEXT of dlsym(3)); NULL: it is
 * not wrapped, or which one it is cannot be told for sure. */
void *got_find_next_replacement(const char *symbol, const void *caller);

/* A number that is another one when a scan found objects that were loaded or unloaded. */
uint64_t got_get_object_change_count(void);

/* Around a dlopen. */
void got_count_load_begin(void);
void got_count_load_end(void);

/* Does the object that holds this code bring search paths of its own for what it opens? */
bool got_caller_has_search_path(const void *code);

#endif
