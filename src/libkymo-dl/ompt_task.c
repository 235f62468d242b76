/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Explicit tasks. A task that waits for others runs them on its own stack: they are regions inside
 * it, and it goes on when they are over. A task that was taken off the thread (untied, or it yields
 * for good) ends there; its next part is a region of its own wherever it runs. The data word that
 * the runtime keeps for the tool in each task says which ones are explicit.
 */
#include "libkymo-dl/ompt.h"

enum { TASK_IS_EXPLICIT = 1 };

static bool task_is_explicit(const union ompt_data *task)
{
	return task && task->value == TASK_IS_EXPLICIT;
}

static void task_create(union ompt_data *encountering, const void *frame, union ompt_data *task,
			int flags, int has_dependences, const void *code)
{
	struct region_value values[] = {ompt_address("code", code), ompt_address("task", task)};

	(void)encountering;
	(void)frame;
	(void)has_dependences;
	if (!(flags & OMPT_TASK_EXPLICIT) || !task)
		return;
	task->value = TASK_IS_EXPLICIT;
	ompt_mark(OMPT_NAME_TASK_CREATE, values, 2);
}

/* Does the thread go back to something that `prior` was started from? Then `prior` has left it. */
static bool task_has_left(const union ompt_data *prior, int status, const union ompt_data *next)
{
	if (status != OMPT_TASK_YIELD && status != OMPT_TASK_SWITCH)
		return true;
	return next != prior && (!task_is_explicit(next) || ompt_is_open(OMPT_NAME_TASK, next));
}

static void task_schedule(union ompt_data *prior, int status, union ompt_data *next)
{
	struct region_value values[] = {ompt_address("task", next)};

	/* Events that switch nothing. */
	if (status == OMPT_TASK_EARLY_FULFILL || status == OMPT_TASK_LATE_FULFILL ||
	    status == OMPT_TASKWAIT_COMPLETE)
		return;
	if (task_is_explicit(prior) && task_has_left(prior, status, next))
		ompt_end(OMPT_NAME_TASK, prior);
	if (task_is_explicit(next) && !ompt_is_open(OMPT_NAME_TASK, next))
		ompt_begin(OMPT_NAME_TASK, next, values, 1);
}

static const char *task_cancelled(int flags)
{
	return flags & OMPT_CANCEL_PARALLEL    ? "parallel"
	       : flags & OMPT_CANCEL_SECTIONS  ? "sections"
	       : flags & OMPT_CANCEL_LOOP      ? "loop"
	       : flags & OMPT_CANCEL_TASKGROUP ? "taskgroup"
					       : "task";
}

static void task_cancel(union ompt_data *task, int flags, const void *code)
{
	struct region_value values[] = {
		ompt_address("code", code), ompt_text("what", task_cancelled(flags)),
		ompt_text("how", flags & OMPT_CANCEL_ACTIVATED   ? "activated"
				 : flags & OMPT_CANCEL_DISCARDED ? "discarded"
								 : "detected")};

	(void)task;
	ompt_mark(OMPT_NAME_CANCEL, values, 3);
}

void ompt_task_set(ompt_set_callback set)
{
	set(OMPT_TASK_CREATE, (ompt_function)task_create);
	set(OMPT_TASK_SCHEDULE, (ompt_function)task_schedule);
	set(OMPT_CANCEL, (ompt_function)task_cancel);
}
