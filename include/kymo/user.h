/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The user API: a program says what it does, and kymo records it. Link libkymo-user (pkg-config
 * kymo, or find_package(kymo COMPONENTS user)). In a program that does not run under kymo every
 * call does nothing and returns KYMO_NO_BINDING at once, so the calls can stay in.
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

/* ---- calls that do nothing, without a call ---- */

/* Not 0 while calls go anywhere. Of libkymo-user, which alone writes it. */
extern int kymo_user_bound;

/* With gcc and clang the functions above that programs call often are expanded in place as far as
 * that test, and called as before where it holds. gnu_inline: their addresses are the library's. */
#if defined(__GNUC__) && defined(__linux__) && !defined(KYMO_USER_NO_INLINE)
#define KYMO_USER_INLINE_(name, parameters, arguments, valid)                                      \
	int name##_bound_ parameters __asm__(#name);                                               \
	extern __inline__ __attribute__((__gnu_inline__)) int name parameters                      \
	{                                                                                          \
		if (__builtin_expect(__atomic_load_n(&kymo_user_bound, __ATOMIC_RELAXED) != 0, 0)) \
			return name##_bound_ arguments;                                            \
		return (valid) ? KYMO_NO_BINDING : KYMO_BAD_VALUE;                                 \
	}
#define KYMO_USER_INLINE_NAME_(name_of_function)                                                   \
	KYMO_USER_INLINE_(name_of_function, (const char *name), (name), name)
#define KYMO_USER_INLINE_VALUES_(name_of_function)                                                 \
	KYMO_USER_INLINE_(                                                                         \
		name_of_function,                                                                  \
		(const char *name, const struct kymo_annotation *annotations, size_t count),       \
		(name, annotations, count), name && (annotations || !count))
#define KYMO_USER_INLINE_CATEGORY_(name_of_function)                                               \
	KYMO_USER_INLINE_(name_of_function,                                                        \
			  (const char *category, const char *name,                                 \
			   const struct kymo_annotation *annotations, size_t count),               \
			  (category, name, annotations, count), name && (annotations || !count))
KYMO_USER_INLINE_NAME_(kymo_push_region)
KYMO_USER_INLINE_NAME_(kymo_pop_region)
KYMO_USER_INLINE_VALUES_(kymo_push_annotated_region)
KYMO_USER_INLINE_VALUES_(kymo_pop_annotated_region)
KYMO_USER_INLINE_CATEGORY_(kymo_push_category_region)
KYMO_USER_INLINE_CATEGORY_(kymo_pop_category_region)
KYMO_USER_INLINE_NAME_(kymo_mark)
KYMO_USER_INLINE_VALUES_(kymo_annotated_mark)
KYMO_USER_INLINE_(kymo_counter, (const char *name, double value), (name, value), name)
KYMO_USER_INLINE_NAME_(kymo_progress)
KYMO_USER_INLINE_NAME_(kymo_begin)
KYMO_USER_INLINE_NAME_(kymo_end)
#undef KYMO_USER_INLINE_
#undef KYMO_USER_INLINE_NAME_
#undef KYMO_USER_INLINE_VALUES_
#undef KYMO_USER_INLINE_CATEGORY_
#endif

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
