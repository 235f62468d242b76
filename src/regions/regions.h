/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions: what begins and ends on a thread, from whatever source (user API, wrapped functions,
 * instrumented functions, OpenMP, Kokkos, MPI). Each event goes to the trace (a record in a chunk
 * of the thread's own), to the call-tree profile (profile.h), or both, as the settings say.
 *
 * Everything here may be called from any thread at any time, also from signal handlers of the
 * program and before or after the runtime's life: then it does nothing. No call allocates from
 * libc, takes a lock that the program can hold, or changes errno. A call that interrupts another
 * one of the same thread (a signal handler) is counted as lost instead of recorded.
 *
 * Begin and end are kept balanced whatever is switched on or off between them: a region that began
 * unrecorded ends unrecorded, and one that was recorded is ended.
 *
 * All code here is compiled without floating-point and vector registers, so that callers that
 * interrupt arbitrary code (instrumented functions) need not save them.
 */
#ifndef KYMO_REGIONS_REGIONS_H
#define KYMO_REGIONS_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/region_categories.h"
#include "kymo/spool.h"

struct runtime_hooks;

/* 0: nothing is recorded. Stable for the process and its forked children. */
typedef uint32_t region_id;

/* A value that goes with a region. TEXT: `text`, copied at once; others: the bits of `number`. */
struct region_value {
	const char *name;
	enum spool_value_type type;
	union {
		uint64_t number; /* REAL: the bits of the double */
		const char *text;
	};
};

/* The id of a name; the same id for the same (category, name). 0 when the category is off or no
 * room is left. Names longer than 4096 bytes are cut. A table look-up after the first time:
 * wrappers keep the result. */
region_id region_find_or_add_name(enum region_category category, const char *name);
/* In a category of the program's own. */
region_id region_find_or_add_name_in(const char *category, const char *name);
/* The function at a code address; its name is found outside the process. */
region_id region_find_or_add_function(enum region_category category, uint64_t address);
/* One that a patch plan gave a number: its address alone may be another function's, later, when its
 * library was closed. */
region_id region_find_or_add_instrumented_function(uint64_t address, uint32_t function_id);

/* A thread is about to lose its right to read the TSC (core/base/ticks.h). */
void regions_leave_tsc(void);

void region_begin(region_id region);
/* The same where begin and end are in one function, around a call, and this is called from that
 * very function: what was begun so in functions that have been left since (longjmp) ends now,
 * counted as unbalanced. */
void region_begin_around_call(region_id region);
/* The value "caller" of the region that was begun last: the line of interpreted code (Python) that
 * the thread is in, if any. region_begin_around_call() does it. */
void region_attach_interpreted_caller(void);
/* Ends the innermost open `region` of the thread; what is still open inside it ends with it and is
 * counted as unbalanced. Returns false (and counts) when it is not open. */
bool region_end(region_id region);
/* As region_begin and region_end, by name, for programs that pass names each time: costs a look-up
 * in a per-thread cache. Regions may overlap: ending one leaves those inside it open. */
int region_begin_by_name(const char *category, const char *name); /* category NULL: "user" */
int region_end_by_name(const char *category, const char *name);   /* 0, or -ENOENT: not open */

/* Values of the begin, end or mark that this thread recorded last. */
void region_values(const struct region_value *values, size_t count);
void region_write_mark(region_id region);
void region_write_counter(region_id counter, uint64_t real_bits);
void region_write_progress(region_id point, enum spool_progress kind);
/* A call that has ended, as one record: for wrappers whose calls hold no other regions. Times are
 * those of ticks_now(). In the profile, components other than wall_clock measure nothing of it. */
void region_write_whole_call(region_id region, uint64_t begin_ticks, uint64_t end_ticks);

/* Would a region of this category be recorded now by this thread? For wrappers that can avoid work.
 */
bool region_category_is_recorded(enum region_category category);

/* kymo's own code is at work on this thread: wrapped functions called from it pass straight
 * through. Nests. */
void region_enter_kymo_code(void);
void region_leave_kymo_code(void);
bool region_thread_is_in_kymo_code(void);

/* ---- switches (control.c of the core drives them) ---- */

/* Why nothing is recorded; any bit set closes the trampoline. */
enum regions_closed_reason {
	REGIONS_CLOSED_NOT_STARTED = 1, /* not started yet, or the runtime is off */
	REGIONS_CLOSED_BY_WINDOW = 2,   /* outside the collection windows */
	REGIONS_CLOSED_BY_STOP = 4, /* INIT_ENABLED=off, kymo_stop_trace(), kymo ctl stop, signal */
};

/* Signal-safe. The user API's own regions pass STOPPED, not WINDOW. */
void regions_add_closed_reason(enum regions_closed_reason why);
void regions_remove_closed_reason(enum regions_closed_reason why);
uint32_t regions_get_closed_reason_bits(void);
/* For the calling thread alone. */
void regions_stop_in_this_thread(void);
void regions_start_in_this_thread(void);
/* With SELECTED_REGIONS: is the thread inside one? True without the setting. The sampler asks too.
 */
bool regions_thread_is_selected(void);

/* ---- life ---- */

/* Set as the hooks of the runtime before runtime_start(). */
extern const struct runtime_hooks regions_hook_table;

#endif
