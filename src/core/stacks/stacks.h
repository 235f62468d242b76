/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The stack of a thread, native and interpreted: the one way from registers to frames, for samples
 * (sampler.c), threads that wait (wall_watch.c) and calls of wrapped functions
 * (wrappers/memory/walk.c). The native stack is walked first, then frames of interpreted code take
 * the places of those native ones that run them.
 *
 * Signal-safe. The caller keeps the view from being replaced meanwhile.
 */
#ifndef KYMO_CORE_STACKS_STACKS_H
#define KYMO_CORE_STACKS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/interpreters/interpreters.h"
#include "core/unwind/unwind.h"

struct sampled_stack {
	const uint64_t *frames; /* innermost first */
	uint32_t count;
	enum spool_stack_end end;
	enum spool_interpreter_state interpreter_state;
};

/* Memory of one walk. */
struct stack_memory {
	uint64_t *frames;                         /* `maximum` */
	uint64_t *native_frames, *stack_pointers; /* `native_maximum` each */
	uint64_t *interpreted_items;              /* twice the maximum */
	uint32_t maximum, native_maximum;
	struct unwind_scratch *scratch;
};

struct stack_request {
	const struct unwind_all_modules_view *view;
	struct unwind_cache *cache;
	const struct unwind_start_registers *registers;
	const struct unwind_stack_bounds *bounds;
	struct stack_memory memory;
	struct interpreted_code_sink sink; /* gets code that was not met before */
	uint64_t *interpreter_thread;      /* remembers the interpreter's state of the thread */
	uint32_t tid;                      /* of another thread, which waits; 0: the calling one */
	uint64_t pthread;                  /* of that one: its pthread_t; 0: not known */
	/* What the thread has in the register of the first argument, of the system call that it
	 * waits in; 0: not known. */
	uint64_t first_argument;
	bool names_tasks; /* names of asyncio's tasks are frames */
	/* Results: what could not be read, and the native stack by itself. */
	uint32_t lost_frame_walks, lost_code;
	const uint64_t *walked_frames;
	uint32_t walked_count;
	enum spool_stack_end walked_end;
	bool has_interpreted_frames;
};

/* ret->frames is memory.frames or memory.native_frames. */
void stack_walk(struct stack_request *request, struct sampled_stack *ret);

/* May stacks have interpreted frames? */
static inline bool stack_may_be_interpreted(void)
{
	return interpreters_are_present();
}

/* Of the calling thread: a value that tells apart stacks whose native frames are the same. 0: it
 * runs no interpreted code. No signal may have interrupted a frame of the stack. */
uint64_t stack_hash_interpreted_frames(struct stack_request *request);

/* The function and line of interpreted code that the calling thread is in; 0: it is in none. Needs
 * memory.interpreted_items and memory.maximum; without memory.scratch, code that was not met before
 * is lost_code. */
uint64_t stack_find_interpreted_caller(struct stack_request *request);

#endif
