/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Explicit tasks. A task that waits for others runs them on its own stack: they are regions inside
 * it, and it goes on when they are over. A task that was taken off the thread (untied, or it yields
 * for good) ends there; its next part is a region of its own wherever it runs. The data word that
 * the runtime keeps for the tool in each task holds a number for explicit tasks, else 0.
 */
#include <stdatomic.h>

#include "libkymo-dl/ompt.h"

static uint64_t get_task_id(const union ompt_data *task)
{
	return task ? task->value : 0;
}

static void task_on_create(union ompt_data *encountering, const void *frame, union ompt_data *task,
			   int flags, int has_dependences, const void *code)
{
	static _Atomic uint64_t last;
	struct region_value values[2];

	(void)encountering;
	(void)frame;
	(void)has_dependences;
	if (!(flags & OMPT_TASK_EXPLICIT) || !task)
		return;
	task->value = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
	values[0] = ompt_address_to_value("code", code);
	values[1] = ompt_number_to_value("task", task->value);
	ompt_record_mark(OMPT_NAME_TASK_CREATE, values, 2);
}

/* Does the thread go back to something that `prior` was started from? Then `prior` has left it. */
static bool task_has_left_thread(uint64_t prior, int status, uint64_t next)
{
	if (status != OMPT_TASK_YIELD && status != OMPT_TASK_SWITCH)
		return true;
	return next != prior && (!next || ompt_region_is_open(OMPT_NAME_TASK, next));
}

static void task_on_schedule(union ompt_data *from, int status, union ompt_data *to)
{
	uint64_t prior = get_task_id(from), next = get_task_id(to);
	struct region_value values[] = {ompt_number_to_value("task", next)};

	/* Events that switch nothing. */
	if (status == OMPT_TASK_EARLY_FULFILL || status == OMPT_TASK_LATE_FULFILL ||
	    status == OMPT_TASKWAIT_COMPLETE)
		return;
	if (prior && task_has_left_thread(prior, status, next))
		ompt_end_region(OMPT_NAME_TASK, prior);
	if (next && !ompt_region_is_open(OMPT_NAME_TASK, next))
		ompt_begin_region(OMPT_NAME_TASK, next, values, 1);
}

static const char *get_cancelled_construct_name(int flags)
{
	return flags & OMPT_CANCEL_PARALLEL    ? "parallel"
	       : flags & OMPT_CANCEL_SECTIONS  ? "sections"
	       : flags & OMPT_CANCEL_LOOP      ? "loop"
	       : flags & OMPT_CANCEL_TASKGROUP ? "taskgroup"
					       : "task";
}

static void task_on_cancel(union ompt_data *task, int flags, const void *code)
{
	struct region_value values[] = {
		ompt_address_to_value("code", code),
		ompt_text_to_value("what", get_cancelled_construct_name(flags)),
		ompt_text_to_value("how", flags & OMPT_CANCEL_ACTIVATED   ? "activated"
					  : flags & OMPT_CANCEL_DISCARDED ? "discarded"
									  : "detected")};

	(void)task;
	ompt_record_mark(OMPT_NAME_CANCEL, values, 3);
}

void ompt_set_task_callbacks(ompt_set_callback set)
{
	set(OMPT_TASK_CREATE, (ompt_function)task_on_create);
	set(OMPT_TASK_SCHEDULE, (ompt_function)task_on_schedule);
	set(OMPT_CANCEL, (ompt_function)task_on_cancel);
}
