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
#define USER_CALLBACK_LIST(CALLBACK)                                                               \
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

#define DEFINE_UNBOUND_CALLBACK(name, parameters, arguments) static int nothing_##name parameters;
USER_CALLBACK_LIST(DEFINE_UNBOUND_CALLBACK)
#undef DEFINE_UNBOUND_CALLBACK

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define DEFINE_UNBOUND_CALLBACK(name, parameters, arguments)                                       \
	static int nothing_##name parameters                                                       \
	{                                                                                          \
		return KYMO_NO_BINDING;                                                            \
	}
USER_CALLBACK_LIST(DEFINE_UNBOUND_CALLBACK)
#undef DEFINE_UNBOUND_CALLBACK
#pragma GCC diagnostic pop

/* ---- the tables ---- */

struct user_callback_table {
#define TABLE_MEMBER_DECLARATION(name, parameters, arguments) int(*_Atomic name) parameters;
	USER_CALLBACK_LIST(TABLE_MEMBER_DECLARATION)
#undef TABLE_MEMBER_DECLARATION
};

#define TABLE_MEMBER_INITIALIZER(name, parameters, arguments) .name = nothing_##name,
static struct user_callback_table active_callbacks = {USER_CALLBACK_LIST(TABLE_MEMBER_INITIALIZER)};
static struct user_callback_table bound_callbacks = {USER_CALLBACK_LIST(TABLE_MEMBER_INITIALIZER)};
#undef TABLE_MEMBER_INITIALIZER

/* acquire: what was written before a function was put into the table is seen by that function */
#define LOAD_CALLBACK(slot)         atomic_load_explicit(&(slot), memory_order_acquire)
#define STORE_CALLBACK(slot, value) atomic_store_explicit(&(slot), value, memory_order_release)
#define LOAD_ACTIVE_CALLBACK(name)  LOAD_CALLBACK(active_callbacks.name)

#define DEFINE_RELAY_CALLBACK(name, parameters, arguments)                                         \
	static int relay_##name parameters                                                         \
	{                                                                                          \
		return LOAD_CALLBACK(bound_callbacks.name) arguments;                              \
	}
USER_CALLBACK_LIST(DEFINE_RELAY_CALLBACK)
#undef DEFINE_RELAY_CALLBACK

/* Held for some hundred instructions, by threads that change the tables. The word is the holder's
 * process: a forked child does not wait for a thread of its parent. */
static _Atomic int callback_tables_lock;

static void lock_callback_tables(void)
{
	int own = (int)getpid(), seen = 0;

	while (!atomic_compare_exchange_weak_explicit(&callback_tables_lock, &seen, own,
						      memory_order_acquire, memory_order_relaxed)) {
		if (seen == own) {
			sched_yield();
			seen = 0;
		}
	}
}

static void unlock_callback_tables(void)
{
	atomic_store_explicit(&callback_tables_lock, 0, memory_order_release);
}

EXPORTED int kymo_user_bound;

/* With the lock held, after a change of `active`. */
static void update_user_bound_flag(void)
{
	int bound = 0;

#define CHECK_IF_BOUND(name, parameters, arguments)                                                \
	bound |= LOAD_CALLBACK(active_callbacks.name) != nothing_##name;
	USER_CALLBACK_LIST(CHECK_IF_BOUND)
#undef CHECK_IF_BOUND
	__atomic_store_n(&kymo_user_bound, bound, __ATOMIC_RELEASE);
}

/* ---- replacing ---- */

/* Is the member there, by the size of the struct that it is in? */
#define CALLBACKS_HAVE_MEMBER(callbacks, name)                                                     \
	((callbacks)->size >= offsetof(struct kymo_callbacks, name) + sizeof((callbacks)->name))

EXPORTED int kymo_set_callbacks(const struct kymo_callbacks *replacement,
				struct kymo_callbacks *previous)
{
	struct kymo_callbacks wanted = {.size = 0};

	if (replacement)
		memcpy(&wanted, replacement,
		       replacement->size < sizeof(wanted) ? replacement->size : sizeof(wanted));
	lock_callback_tables();
#define EXCHANGE_CALLBACK(name, parameters, arguments)                                             \
	do {                                                                                       \
		int(*now) parameters = LOAD_CALLBACK(active_callbacks.name);                       \
		if (previous && CALLBACKS_HAVE_MEMBER(previous, name))                             \
			previous->name =                                                           \
				now == LOAD_CALLBACK(bound_callbacks.name) ? relay_##name : now;   \
		if (!CALLBACKS_HAVE_MEMBER(&wanted, name) || !wanted.name)                         \
			break;                                                                     \
		STORE_CALLBACK(active_callbacks.name,                                              \
			       wanted.name == relay_##name ? LOAD_CALLBACK(bound_callbacks.name)   \
							   : wanted.name);                         \
	} while (0);
	USER_CALLBACK_LIST(EXCHANGE_CALLBACK)
#undef EXCHANGE_CALLBACK
	update_user_bound_flag();
	unlock_callback_tables();
	return KYMO_SUCCESS;
}

/* ---- binding ---- */

static void bind_callbacks(const struct kymo_callbacks *callbacks)
{
	struct kymo_callbacks none = {.size = 0};

	if (!callbacks)
		callbacks = &none;
	lock_callback_tables();
#define BIND_CALLBACK(name, parameters, arguments)                                                 \
	do {                                                                                       \
		int(*before) parameters = LOAD_CALLBACK(bound_callbacks.name);                     \
		int(*now) parameters = CALLBACKS_HAVE_MEMBER(callbacks, name) && callbacks->name   \
					       ? callbacks->name                                   \
					       : nothing_##name;                                   \
		STORE_CALLBACK(bound_callbacks.name, now);                                         \
		if (LOAD_CALLBACK(active_callbacks.name) == before)                                \
			STORE_CALLBACK(active_callbacks.name, now);                                \
	} while (0);
	USER_CALLBACK_LIST(BIND_CALLBACK)
#undef BIND_CALLBACK
	update_user_bound_flag();
	unlock_callback_tables();
}

__attribute__((visibility("hidden"), used)) struct kymo_user_binding kymo_user_binding_object = {
	.size = sizeof(struct kymo_user_binding), .bind = bind_callbacks};
KYMO_NOTE(1, kymo_user_binding_object);
_Static_assert(KYMO_NOTE_USER == 1, "type of the note above");

static void store_found_dl_binding(void *object, void *context)
{
	*(struct kymo_dl_binding **)context = object;
}

static struct kymo_dl_binding *find_dl_binding(void)
{
	struct kymo_dl_binding *dl = NULL;

	kymo_note_find(KYMO_NOTE_DL, store_found_dl_binding, &dl);
	return dl;
}

__attribute__((constructor)) static void attach_to_dl_at_load(void)
{
	struct kymo_dl_binding *dl = find_dl_binding();

	if (dl)
		dl->attach(&kymo_user_binding_object);
}

__attribute__((destructor)) static void detach_from_dl_at_unload(void)
{
	struct kymo_dl_binding *dl = find_dl_binding();

	if (dl)
		dl->detach(&kymo_user_binding_object);
}

/* ---- the API ---- */

EXPORTED int kymo_push_region(const char *name)
{
	return LIKELY(name) ? LOAD_ACTIVE_CALLBACK(push_region)(NULL, name) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_pop_region(const char *name)
{
	return LIKELY(name) ? LOAD_ACTIVE_CALLBACK(pop_region)(NULL, name) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_push_category_region(const char *category, const char *name,
				       const struct kymo_annotation *annotations, size_t count)
{
	int status;

	if (!name || (count && !annotations))
		return KYMO_BAD_VALUE;
	status = LOAD_ACTIVE_CALLBACK(push_region)(category, name);
	return count && !status ? LOAD_ACTIVE_CALLBACK(annotate)(annotations, count) : status;
}

EXPORTED int kymo_pop_category_region(const char *category, const char *name,
				      const struct kymo_annotation *annotations, size_t count)
{
	int status;

	if (!name || (count && !annotations))
		return KYMO_BAD_VALUE;
	status = LOAD_ACTIVE_CALLBACK(pop_region)(category, name);
	return count && !status ? LOAD_ACTIVE_CALLBACK(annotate)(annotations, count) : status;
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
	status = LOAD_ACTIVE_CALLBACK(mark)(NULL, name);
	return count && !status ? LOAD_ACTIVE_CALLBACK(annotate)(annotations, count) : status;
}

EXPORTED int kymo_mark(const char *name)
{
	return LIKELY(name) ? LOAD_ACTIVE_CALLBACK(mark)(NULL, name) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_counter(const char *name, double value)
{
	return LIKELY(name) ? LOAD_ACTIVE_CALLBACK(counter)(name, value) : KYMO_BAD_VALUE;
}

EXPORTED int kymo_progress(const char *name)
{
	return LIKELY(name) ? LOAD_ACTIVE_CALLBACK(progress)(name, KYMO_PROGRESS_POINT)
			    : KYMO_BAD_VALUE;
}

EXPORTED int kymo_begin(const char *name)
{
	return LIKELY(name) ? LOAD_ACTIVE_CALLBACK(progress)(name, KYMO_PROGRESS_BEGIN)
			    : KYMO_BAD_VALUE;
}

EXPORTED int kymo_end(const char *name)
{
	return LIKELY(name) ? LOAD_ACTIVE_CALLBACK(progress)(name, KYMO_PROGRESS_END)
			    : KYMO_BAD_VALUE;
}

EXPORTED int kymo_start_trace(void)
{
	return LOAD_ACTIVE_CALLBACK(start_trace)();
}

EXPORTED int kymo_stop_trace(void)
{
	return LOAD_ACTIVE_CALLBACK(stop_trace)();
}

EXPORTED int kymo_start_thread_trace(void)
{
	return LOAD_ACTIVE_CALLBACK(start_thread_trace)();
}

EXPORTED int kymo_stop_thread_trace(void)
{
	return LOAD_ACTIVE_CALLBACK(stop_thread_trace)();
}

EXPORTED int kymo_flush(void)
{
	return LOAD_ACTIVE_CALLBACK(flush)();
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
