/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The state that CPython keeps of a thread: where it is, and what it says of the global lock.
 */
#include "core/interpreters/list.h"
#include "core/interpreters/python_walk.h"

#include <pthread.h>

#define THREAD_KEY_INT_OFFSET 4u /* Py_tss_t: initialized, key */
/* The global lock, all versions (struct _gil_runtime_state): the thread that took it last, whether
 * it is taken, and what threads wait on: two pairs of condition variable and mutex. */
#define LOCK_HOLDER_OFFSET  8u
#define LOCK_TAKEN_OFFSET   16u
#define LOCK_WAITS_OFFSET   32u
#define LOCK_WAITS_END      208u
#define SUBINTERPRETERS_MAX 64u
#define THREADS_MAX         8192u

/* In the place of a thread's state: it has none, and how many looks more it is believed to have
 * none. */
#define FOREIGN_THREAD_BIT   1u
#define FOREIGN_THREAD_LOOK  2u
#define FOREIGN_THREAD_LOOKS 16u

/* ---- which thread ---- */

/* Raw clones may share the thread pointer of their creator, and so its thread-specific values. */
static bool state_names_this_thread(const struct python_layout *layout, uint64_t state)
{
	uint64_t owner, tid;

	return memory_is_plausible_pointer(state) &&
	       memory_read_checked(state + layout->thread_pthread, &owner, sizeof(owner)) &&
	       owner == (uint64_t)pthread_self() &&
	       (!layout->thread_tid ||
		(memory_read_checked(state + layout->thread_tid, &tid, sizeof(tid)) &&
		 tid == (uint64_t)sys_gettid()));
}

/* The thread's state is kept in a thread-specific value, also while it waits for the lock. It is
 * believed when it names this thread. */
INTERPRETED_UNSANITIZED
static uint64_t find_state_of_this_thread(const struct interpreted_walk *walk)
{
	const struct python_layout *layout = walk->interpreter->layout;
	const uint8_t *key =
		(const uint8_t *)(uintptr_t)(python_get_runtime(walk) + layout->runtime_thread_key);
	uint64_t *known = walk->merge->interpreter_thread, state;

	if (!*(const volatile int32_t *)(const void *)key)
		return 0;
	state = (uint64_t)(uintptr_t)pthread_getspecific(
		*(const volatile pthread_key_t *)(const void *)(key + THREAD_KEY_INT_OFFSET));
	if (!state || (known && *known == state))
		return state;
	if (!state_names_this_thread(layout, state))
		return 0;
	if (known)
		*known = state;
	return state;
}

/* The interpreter ends, and frees the states of other threads, which may go on. */
bool python_ends_for_thread(const struct interpreted_walk *walk, uint64_t thread)
{
	const struct python_layout *layout = walk->interpreter->layout;
	uint64_t ending = 0;

	/* Of the library's data, which is there while the interpreter is present. */
	memory_read_directly(python_get_runtime(walk) + layout->runtime_finalizing, &ending,
			     sizeof(ending));
	return ending && ending != thread;
}

/* Before 3.11 the state has no thread ID, but what pthread_self() returned. */
static bool state_is_of_task(const struct interpreted_walk *walk, uint64_t thread)
{
	const struct python_layout *layout = walk->interpreter->layout;
	uint32_t offset = layout->thread_tid ? layout->thread_tid : layout->thread_pthread;
	uint64_t id, wanted = layout->thread_tid ? walk->stack->tid : walk->stack->pthread;

	return wanted && memory_is_plausible_pointer(thread) &&
	       memory_read_checked(thread + offset, &id, sizeof(id)) && id == wanted;
}

/* From the list of all threads, which may change meanwhile. */
static uint64_t search_state_of_task(const struct interpreted_walk *walk)
{
	const struct python_layout *layout = walk->interpreter->layout;
	uint64_t interpreter, thread;

	if (!memory_read_checked(python_get_runtime(walk) + layout->runtime_interpreters,
				 &interpreter, 8))
		return 0;
	for (uint32_t i = 0; i < SUBINTERPRETERS_MAX && memory_is_plausible_pointer(interpreter);
	     i++) {
		if (!memory_read_checked(interpreter + layout->interpreter_threads, &thread, 8))
			return 0;
		for (uint32_t k = 0; k < THREADS_MAX && memory_is_plausible_pointer(thread); k++) {
			if (state_is_of_task(walk, thread))
				return thread;
			if (!memory_read_checked(thread + layout->thread_next, &thread, 8))
				return 0;
		}
		if (!memory_read_checked(interpreter + layout->interpreter_next, &interpreter, 8))
			return 0;
	}
	return 0;
}

/* A thread that is none of Python's is looked for again only after some looks at it: the list of
 * all threads may be long. Where there are several interpreters, it may be the next one's. */
static bool is_known_as_foreign(uint64_t *known)
{
	if (!known || !(*known & FOREIGN_THREAD_BIT))
		return false;
	if (*known == FOREIGN_THREAD_BIT) {
		*known = 0;
		return false;
	}
	*known -= FOREIGN_THREAD_LOOK;
	return true;
}

/* A state that was freed may name the thread still, or an earlier one whose pthread_t it has. */
static bool state_is_listed(const struct interpreted_walk *walk, uint64_t thread)
{
	const struct python_layout *layout = walk->interpreter->layout;
	uint64_t links[THREAD_INTERPRETER_OFFSET / 8 + 1], at; /* previous, next, interpreter */

	if (!memory_read_checked(thread, links, sizeof(links)))
		return false;
	at = links[0] ? links[0] + layout->thread_next
		      : links[THREAD_INTERPRETER_OFFSET / 8] + layout->interpreter_threads;
	return memory_read_checked(at, &at, sizeof(at)) && at == thread;
}

static uint64_t find_state_of_other_thread(const struct interpreted_walk *walk)
{
	uint64_t *known = walk->merge->interpreter_thread, found;

	if (is_known_as_foreign(known))
		return 0;
	if (known && state_is_of_task(walk, *known) && state_is_listed(walk, *known))
		return *known;
	found = search_state_of_task(walk);
	if (!known)
		return found;
	*known = found;
	if (!found && atomic_load_explicit(&interpreter_list_count, memory_order_relaxed) == 1)
		*known = FOREIGN_THREAD_LOOKS * FOREIGN_THREAD_LOOK + FOREIGN_THREAD_BIT;
	return found;
}

uint64_t python_find_thread_state(const struct interpreted_walk *walk)
{
	return walk->stack->tid ? find_state_of_other_thread(walk)
				: find_state_of_this_thread(walk);
}

/* ---- the lock ---- */

bool python_read_lasting_word(const struct python_walk *python, uint64_t address, uint64_t *ret)
{
	if (python->walk->stack->tid)
		return memory_read_checked(address, ret, sizeof(*ret));
	memory_read_directly(address, ret, sizeof(*ret));
	return true;
}

static uint64_t find_lock(const struct python_walk *python)
{
	const struct python_layout *layout = python->layout;
	uint64_t interpreter, lock;

	if (layout->runtime_lock)
		return python_get_runtime(python->walk) + layout->runtime_lock;
	if (!python_read_lasting_word(python, python->thread + THREAD_INTERPRETER_OFFSET,
				      &interpreter) ||
	    !memory_is_plausible_pointer(interpreter) ||
	    !python_read_lasting_word(python, interpreter + layout->interpreter_lock, &lock) ||
	    !memory_is_plausible_pointer(lock))
		return 0;
	return lock;
}

/* A thread that waits for the lock waits on what is in the lock, whoever tells it to. */
enum spool_interpreter_state python_get_thread_state(const struct python_walk *python)
{
	const struct native_stack *stack = python->walk->stack;
	uint64_t lock = find_lock(python), holder, taken;

	if (!lock || !python_read_lasting_word(python, lock + LOCK_HOLDER_OFFSET, &holder) ||
	    !python_read_lasting_word(python, lock + LOCK_TAKEN_OFFSET, &taken))
		return SPOOL_INTERPRETER_STATE_NONE;
	if ((int32_t)taken > 0 && holder == python->thread)
		return stack->tid ? SPOOL_INTERPRETER_WAITS_LOCKED : SPOOL_INTERPRETER_RUNS_LOCKED;
	if (stack->first_argument - lock >= LOCK_WAITS_OFFSET &&
	    stack->first_argument - lock < LOCK_WAITS_END)
		return SPOOL_INTERPRETER_WAITS_FOR_LOCK;
	return stack->tid ? SPOOL_INTERPRETER_WAITS_UNLOCKED : SPOOL_INTERPRETER_RUNS_UNLOCKED;
}
