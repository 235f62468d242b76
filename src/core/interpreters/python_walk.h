/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One walk along the frames of a thread of CPython, for the files that it is made of: python.c goes
 * along the frames, python_thread.c finds the thread's state, python_tasks.c the task that runs,
 * python_waiters.c those that wait for it.
 */
#ifndef KYMO_CORE_INTERPRETERS_PYTHON_WALK_H
#define KYMO_CORE_INTERPRETERS_PYTHON_WALK_H

#include "core/interpreters/python.h"

#define THREAD_INTERPRETER_OFFSET 16u /* PyThreadState.interp, all versions */
#define PYTHON_ROOTS_MAX          8u

/* The outermost of coroutines (or generators) that run one another, and how many items there are
 * up to its frame. */
struct python_root {
	uint64_t object, code;
	uint32_t items;
};

struct python_walk {
	struct interpreted_walk *walk;
	const struct python_layout *layout;
	uint64_t thread; /* PyThreadState */
	uint64_t chunk;  /* of the thread's stack of frames: where the walk is; 0: not known yet */
	uint32_t frame_count;
	struct python_root roots[PYTHON_ROOTS_MAX]; /* innermost first */
	uint32_t root_count;
	bool is_in_coroutine; /* the last frame was one's */
	/* Objects that live and types that were looked at need no checked reads (python_waiters.c).
	 */
	bool reads_objects_directly;
};

/* What a type is, in the lowest bits of its address. */
enum python_type_kind {
	PYTHON_TYPE_UNKNOWN,
	PYTHON_TYPE_STRING,
	PYTHON_TYPE_INTEGER,
	PYTHON_TYPE_METHOD, /* of a C function */
	PYTHON_TYPE_WRAPPER,
	PYTHON_TYPE_FUNCTION,
	PYTHON_TYPE_PARTIAL,
	PYTHON_TYPE_OTHER,
	PYTHON_TYPE_MASK = 7
};

struct python_task {
	uint64_t address, type, callback, awaited, coroutine, name;
};

static inline uint64_t python_get_runtime(const struct interpreted_walk *walk)
{
	return walk->interpreter->symbols[PYTHON_RUNTIME];
}

static inline uint64_t python_make_frame_item(uint32_t code_id, uint32_t position)
{
	return SPOOL_INTERPRETED_FRAME_BIT | (uint64_t)code_id << SPOOL_INTERPRETED_POSITION_BITS |
	       position;
}

/* PyThreadState of the thread that is walked; 0: it has none. */
uint64_t python_find_thread_state(const struct interpreted_walk *walk);
/* The interpreter ends, and frees the states of other threads, which may go on. */
bool python_ends_for_thread(const struct interpreted_walk *walk, uint64_t thread);
enum spool_interpreter_state python_get_thread_state(const struct python_walk *python);
/* Reads a word of memory that is there as long as the thread's state is. */
bool python_read_lasting_word(const struct python_walk *python, uint64_t address, uint64_t *ret);

/* Reads what is no frame; all of `size` is words. */
bool python_read_object(struct python_walk *python, uint64_t address, void *to, size_t size);
enum python_type_kind python_find_kind_of_object(struct python_walk *python, uint64_t object);
bool python_read_task(struct python_walk *python, uint64_t address, struct python_task *ret);
/* The task that waits for this one, or for something that is done after it; false: none is known.
 */
bool python_find_waiter_of_task(struct python_walk *python, const struct python_task *task,
				struct python_task *ret);

/* Puts the names of the tasks that run outside of their coroutines' frames. */
void python_tasks_insert(struct python_walk *python);
/* Looks for what python_tasks_insert() needs. Background thread only. */
void python_tasks_search(struct interpreter *interpreter);

#endif
