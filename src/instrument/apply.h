/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instrumenting a module: its plan is asked for, its arena mapped, its patches written, here where
 * no thread can be executing it, or by kymo from outside.
 */
#ifndef KYMO_INSTRUMENT_APPLY_H
#define KYMO_INSTRUMENT_APPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/runtime.h"

enum apply_way {
	APPLY_HERE,    /* no other thread executes code of the modules asked for */
	APPLY_OUTSIDE, /* by PLAN_REQUEST_COMMIT, with all threads stopped */
};

/* All objects that are loaded and were not looked at before. How many modules were instrumented, or
 * a negative errno when nobody answers. */
int apply_loaded(struct runtime *runtime, enum apply_way way);
/* The same in two steps, for a process that runs: a thread of the program notes the objects (the
 * loader's list is for those only), one of kymo's own asks about them and has them written. */
void apply_note(struct runtime *runtime);
int apply_noted(struct runtime *runtime);
/* Objects were removed: theirs is marked as gone. */
void apply_unloaded(void);
/* In a forked child: whoever was at it is not here. */
void apply_forked(void);
struct arena;
/* Tells the spool which functions an arena's ids are. */
void apply_record(const struct arena *arena);
/* The same objects are as they were (detach): may be asked for again. */
void apply_forget(void);

#endif
