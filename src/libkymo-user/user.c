/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of kymo/user.h: one load and one jump to whatever is bound.
 *
 * Two tables of function pointers: `active` is what calls go to, `bound` is what kymo offers (or
 * functions that do nothing). They are the same unless kymo_set_callbacks() put something else into
 * `active`. Where a caller gets to see what was there before, it gets a relay_...() in place of a
 * bound function: the binding may change later, and the relay then goes to the new one.
 *
 * kymo_user_bound says to what kymo/user.h expands in programs whether `active` has anything to
 * call. A program that is no PIE has the variable itself (a copy relocation), so that the library
 * must not be linked -Bsymbolic as far as data goes.
 */
#define KYMO_USER_NO_INLINE
#include "kymo/user.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "kymo/binding.h"

#define EXPORTED          __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/* Name, parameters, arguments of each callback. */
#define USER_CALLBACKS(CALLBACK)                                                                   \
	CALLBACK(push_region, (const char *category, const char *name), (category, name))          \
	CALLBACK(pop_region, (const char *category, const char *name), (category, name))           \
	CALLBACK(annotate, (const struct kymo_annotation *list, size_t count), (list, count))      \
	CALLBACK(mark, (const char *category, const char *name), (category, name))                 \
	CALLBACK(counter, (const char *name, double value), (name, value))                         \
	CALLBACK(progress, (const char *name, enum kymo_progress_kind kind), (name, kind))         \
	CALLBACK(start_trace, (void), ())                                                          \
	CALLBACK(stop_trace, (void), ())                                                           \
	CALLBACK(start_thread_trace, (void), ())                                                   \
	CALLBACK(stop_thread_trace, (void), ())                                                    \
	CALLBACK(flush, (void), ())

/* ---- nothing is bound ---- */

#define NOTHING(name, parameters, arguments) static int nothing_##name parameters;
USER_CALLBACKS(NOTHING)
#undef NOTHING

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NOTHING(name, parameters, arguments)                                                       \
	static int nothing_##name parameters                                                       \
	{                                                                                          \
		return KYMO_NO_BINDING;                                                            \
	}
USER_CALLBACKS(NOTHING)
#undef NOTHING
#pragma GCC diagnostic pop

/* ---- the tables ---- */

struct user_table {
#define MEMBER(name, parameters, arguments) int(*_Atomic name) parameters;
	USER_CALLBACKS(MEMBER)
#undef MEMBER
};

#define INITIAL(name, parameters, arguments) .name = nothing_##name,
static struct user_table user_active = {USER_CALLBACKS(INITIAL)};
static struct user_table user_bound = {USER_CALLBACKS(INITIAL)};
#undef INITIAL

/* acquire: what was written before a function was put into the table is seen by that function */
#define LOAD(slot)         atomic_load_explicit(&(slot), memory_order_acquire)
#define STORE(slot, value) atomic_store_explicit(&(slot), value, memory_order_release)
#define CALL(name)         LOAD(user_active.name)

#define RELAY(name, parameters, arguments)                                                         \
	static int relay_##name parameters                                                         \
	{                                                                                          \
		return LOAD(user_bound.name) arguments;                                            \
	}
USER_CALLBACKS(RELAY)
#undef RELAY

/* Held for some hundred instructions, by threads that change the tables. The word is the holder's
 * process: a forked child does not wait for a thread of its parent. */
static _Atomic int user_lock;

static void user_acquire(void)
{
	int own = (int)getpid(), seen = 0;

	while (!atomic_compare_exchange_weak_explicit(&user_lock, &seen, own, memory_order_acquire,
						      memory_order_relaxed)) {
		if (seen == own) {
			sched_yield();
			seen = 0;
		}
	}
}

static void user_release(void)
{
	atomic_store_explicit(&user_lock, 0, memory_order_release);
}

EXPORTED int kymo_user_bound;

/* With the lock held, after a change of `active`. */
static void user_note_bound(void)
{
	int bound = 0;

#define LOOK(name, parameters, arguments) bound |= LOAD(user_active.name) != nothing_##name;
	USER_CALLBACKS(LOOK)
#undef LOOK
	__atomic_store_n(&kymo_user_bound, bound, __ATOMIC_RELEASE);
}

/* ---- replacing ---- */

/* Is the member there, by the size of the struct that it is in? */
#define HAS(callbacks, name)                                                                       \
	((callbacks)->size >= offsetof(struct kymo_callbacks, name) + sizeof((callbacks)->name))

EXPORTED int kymo_set_callbacks(const struct kymo_callbacks *replacement,
				struct kymo_callbacks *previous)
{
	struct kymo_callbacks wanted = {.size = 0};

	if (replacement)
		memcpy(&wanted, replacement,
		       replacement->size < sizeof(wanted) ? replacement->size : sizeof(wanted));
	user_acquire();
#define EXCHANGE(name, parameters, arguments)                                                      \
	do {                                                                                       \
		int(*now) parameters = LOAD(user_active.name);                                     \
		if (previous && HAS(previous, name))                                               \
			previous->name = now == LOAD(user_bound.name) ? relay_##name : now;        \
		if (!HAS(&wanted, name) || !wanted.name)                                           \
			break;                                                                     \
		STORE(user_active.name,                                                            \
		      wanted.name == relay_##name ? LOAD(user_bound.name) : wanted.name);          \
	} while (0);
	USER_CALLBACKS(EXCHANGE)
#undef EXCHANGE
	user_note_bound();
	user_release();
	return KYMO_SUCCESS;
}

/* ---- binding ---- */

static void user_bind(const struct kymo_callbacks *callbacks)
{
	struct kymo_callbacks none = {.size = 0};

	if (!callbacks)
		callbacks = &none;
	user_acquire();
#define BIND(name, parameters, arguments)                                                          \
	do {                                                                                       \
		int(*before) parameters = LOAD(user_bound.name);                                   \
		int(*now) parameters = HAS(callbacks, name) && callbacks->name ? callbacks->name   \
									       : nothing_##name;   \
		STORE(user_bound.name, now);                                                       \
		if (LOAD(user_active.name) == before)                                              \
			STORE(user_active.name, now);                                              \
	} while (0);
	USER_CALLBACKS(BIND)
#undef BIND
	user_note_bound();
	user_release();
}

__attribute__((visibility("hidden"), used)) struct kymo_user_binding kymo_user_binding_object = {
	.size = sizeof(struct kymo_user_binding), .bind = user_bind};
KYMO_NOTE(1, kymo_user_binding_object);
_Static_assert(KYMO_NOTE_USER == 1, "type of the note above");

static void user_found_dl(void *object, void *context)
{
	*(struct kymo_dl_binding **)context = object;
}

static struct kymo_dl_binding *user_find_dl(void)
{
	struct kymo_dl_binding *dl = NULL;

	kymo_note_find(KYMO_NOTE_DL, user_found_dl, &dl);
	return dl;
}

__attribute__((constructor)) static void user_start(void)
{
	struct kymo_dl_binding *dl = user_find_dl();

	if (dl)
		dl->attach(&kymo_user_binding_object);
}

__attribute__((destructor)) static void user_finish(void)
{
	struct kymo_dl_binding *dl = user_find_dl();

	if (dl)
		dl->detach(&kymo_user_binding_object);
}

/* ---- the API ---- */

EXPORTED int kymo_push_region(const char *name)
{
	return LIKELY(name) ? CALL(push_region)(NULL, name) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_pop_region(const char *name)
{
	return LIKELY(name) ? CALL(pop_region)(NULL, name) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_push_category_region(const char *category, const char *name,
				       const struct kymo_annotation *annotations, size_t count)
{
	int status;

	if (!name || (count && !annotations))
		return KYMO_BAD_VALUE;
	status = CALL(push_region)(category, name);
	return count && !status ? CALL(annotate)(annotations, count) : status;
}

EXPORTED int kymo_pop_category_region(const char *category, const char *name,
				      const struct kymo_annotation *annotations, size_t count)
{
	int status;

	if (!name || (count && !annotations))
		return KYMO_BAD_VALUE;
	status = CALL(pop_region)(category, name);
	return count && !status ? CALL(annotate)(annotations, count) : status;
}

EXPORTED int kymo_push_annotated_region(const char *name, const struct kymo_annotation *annotations,
					size_t count)
{
	return kymo_push_category_region(NULL, name, annotations, count);
}

EXPORTED int kymo_pop_annotated_region(const char *name, const struct kymo_annotation *annotations,
				       size_t count)
{
	return kymo_pop_category_region(NULL, name, annotations, count);
}

EXPORTED int kymo_annotated_mark(const char *name, const struct kymo_annotation *annotations,
				 size_t count)
{
	int status;

	if (!name || (count && !annotations))
		return KYMO_BAD_VALUE;
	status = CALL(mark)(NULL, name);
	return count && !status ? CALL(annotate)(annotations, count) : status;
}

EXPORTED int kymo_mark(const char *name)
{
	return LIKELY(name) ? CALL(mark)(NULL, name) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_counter(const char *name, double value)
{
	return LIKELY(name) ? CALL(counter)(name, value) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_progress(const char *name)
{
	return LIKELY(name) ? CALL(progress)(name, KYMO_PROGRESS_POINT) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_begin(const char *name)
{
	return LIKELY(name) ? CALL(progress)(name, KYMO_PROGRESS_BEGIN) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_end(const char *name)
{
	return LIKELY(name) ? CALL(progress)(name, KYMO_PROGRESS_END) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_start_trace(void)
{
	return CALL(start_trace)();
}

EXPORTED int kymo_stop_trace(void)
{
	return CALL(stop_trace)();
}

EXPORTED int kymo_start_thread_trace(void)
{
	return CALL(start_thread_trace)();
}

EXPORTED int kymo_stop_thread_trace(void)
{
	return CALL(stop_thread_trace)();
}

EXPORTED int kymo_flush(void)
{
	return CALL(flush)();
}

EXPORTED int kymo_version(void)
{
	return KYMO_VERSION;
}

EXPORTED const char *kymo_error_string(int status)
{
	switch (status) {
	case KYMO_SUCCESS:
		return "success";
	case KYMO_NOT_OPEN:
		return "no such region is open on this thread";
	case KYMO_BAD_VALUE:
		return "an argument is NULL or has no known type";
	case KYMO_NO_BINDING:
		return "not running under kymo";
	case KYMO_INTERNAL:
		return "kymo could not; its results say why";
	default:
		return "not a status of kymo";
	}
}
