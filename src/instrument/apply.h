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

enum apply_patch_writing_side {
	APPLY_PATCHES_IN_PROCESS,   /* no other thread executes code of the modules asked for */
	APPLY_PATCHES_FROM_OUTSIDE, /* by PLAN_REQUEST_COMMIT, with all threads stopped */
};

/* All objects that are loaded and were not looked at before. How many modules were instrumented, or
 * a negative errno when nobody answers. */
int apply_plans_to_new_objects(enum apply_patch_writing_side way);
/* The same in two steps, for a process that runs: a thread of the program notes the objects (the
 * loader's list is for those only), one of kymo's own asks about them and has them written. */
void apply_queue_new_objects(void);
int apply_plans_to_queued_objects(void);
/* Objects were removed: theirs is marked as gone. */
void apply_mark_unloaded_arenas(void);
/* In a forked child: whoever was at it is not here. */
void apply_reset_in_forked_child(void);
struct arena;
/* Tells the spool which functions an arena's ids are. */
void apply_write_arena_record(const struct arena *arena);
/* The same objects are as they were (detach): may be asked for again. */
void apply_forget_seen_objects(void);

#endif
