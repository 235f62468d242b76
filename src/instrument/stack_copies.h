/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs that copy stacks away and back (greenlet, gevent, Ruby's callcc): the same stack address
 * then holds the frames of many coroutines in turn, and a slot alone no longer tells where a call
 * returns to. Such a process goes on without traces on its stacks: calls are counted, and calls
 * that are open already return as before.
 *
 * It is decided before the first copy where the library that copies is known by its file's name or
 * the code that does by its instructions (struct plan_header), and at the first sign of it else.
 */
#ifndef KYMO_INSTRUMENT_STACK_COPIES_H
#define KYMO_INSTRUMENT_STACK_COPIES_H

#include <stdbool.h>

struct arena;

/* Does this file's code copy stacks, as its name says? */
bool stack_copies_are_made_by_file(const char *path);
/* From here on the process counts calls only. Once is enough; signal-safe. The reason is a phrase,
 * `more` (may be NULL) follows it. */
void stack_copies_switch_to_counting(const char *reason, const char *more);
bool stack_copies_are_made(void);
/* Brings stubs to count that are not there yet: at once where a library is loaded, else by the
 * background thread. */
void stack_copies_make_stubs_count(void);
/* In a forked child, whose stubs may have been forgotten. */
void stack_copies_reset_in_forked_child(void);

#endif
