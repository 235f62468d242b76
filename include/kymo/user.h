/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The user API: a program says what it does, and kymo records it. Link libkymo-user (pkg-config
 * kymo, or find_package(kymo COMPONENTS user)). In a program that does not run under kymo every
 * call does nothing and returns KYMO_NO_BINDING after a few ns, so the calls can stay in.
 *
 * All functions may be called from any thread; none allocates, blocks or changes errno, with one
 * exception: where libkymo-dl is linked instead of preloaded, the first call loads libkymo. What
 * begins on a thread ends on that thread. Strings are copied where they are kept.
 */
#ifndef KYMO_USER_H
#define KYMO_USER_H

#include "kymo/kymo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- regions ---- */

/* A stretch of time of the calling thread. Regions nest; they may also be popped in another order
 * than that of their beginning: a pop ends the innermost open region of this name and leaves those
 * inside it open. Regions are recorded also while tracing is stopped (kymo_stop_trace). */
int kymo_push_region(const char *name);
int kymo_pop_region(const char *name);
/* The same with values: those of the push belong to the begin, those of the pop to the end. */
int kymo_push_annotated_region(const char *name, const struct kymo_annotation *annotations,
			       size_t count);
int kymo_pop_annotated_region(const char *name, const struct kymo_annotation *annotations,
			      size_t count);
/* In a category of the program's own, which ENABLE_CATEGORIES and DISABLE_CATEGORIES take. */
int kymo_push_category_region(const char *category, const char *name,
			      const struct kymo_annotation *annotations, size_t count);
int kymo_pop_category_region(const char *category, const char *name,
			     const struct kymo_annotation *annotations, size_t count);

/* ---- marks, counters, progress ---- */

/* An instant. */
int kymo_mark(const char *name);
int kymo_annotated_mark(const char *name, const struct kymo_annotation *annotations, size_t count);
/* A value over time: kymo_counter("queue", 12). */
int kymo_counter(const char *name, double value);
/* One unit of work is done. Rates of these are what causal profiling predicts. */
int kymo_progress(const char *name);
/* One unit of work arrives and departs: latency. Any thread may call either. */
int kymo_begin(const char *name);
int kymo_end(const char *name);

/* ---- control ---- */

/* Of the whole process, and of the calling thread alone. */
int kymo_start_trace(void);
int kymo_stop_trace(void);
int kymo_start_thread_trace(void);
int kymo_stop_thread_trace(void);
/* Makes everything recorded so far part of the results, whatever happens next; takes milliseconds.
 */
int kymo_flush(void);

/* Replaces the callbacks that `replacement` names; a member that is NULL stays as it is. What was
 * called before goes to `previous`, also when it is what kymo binds later: a replacement can call
 * it (chain) and it can be put back. Either pointer may be NULL. Set the `size` of both. A thread
 * may still be inside the previous function when this returns. */
int kymo_set_callbacks(const struct kymo_callbacks *replacement, struct kymo_callbacks *previous);

/* KYMO_VERSION of the library. */
int kymo_version(void);
/* Never NULL. */
const char *kymo_error_string(int status);

#ifdef __cplusplus
}
#endif

/* A progress point that is named by its place. */
#define KYMO_STRING_(text)         #text
#define KYMO_STRING(text)          KYMO_STRING_(text)
#define KYMO_PROGRESS              ((void)kymo_progress(__FILE__ ":" KYMO_STRING(__LINE__)))
#define KYMO_PROGRESS_NAMED(label) ((void)kymo_progress(label))
#define KYMO_BEGIN(label)          ((void)kymo_begin(label))
#define KYMO_END(label)            ((void)kymo_end(label))

#endif
