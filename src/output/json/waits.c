/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See waits.h.
 */
#include "output/json/waits.h"

#include "analysis/waits/waits.h"

static void json_put_wait_stack(struct json_writer *json, const struct model_wait_stack *stack)
{
	json_array_begin(json, "stack");
	for (uint32_t i = stack->frame_count; i-- > 0;)
		json_put_text(json, NULL, stack->frames[i].function);
	json_array_end(json);
}

static void json_put_wait(struct json_writer *json, const struct session *session,
			  const struct model_wait *wait)
{
	json_object_begin(json, NULL);
	json_put_count(json, "pid", session->processes[wait->process].pid);
	json_put_count(json, "tid", wait->tid);
	json_put_text(json, "thread",
		      wait->thread != MODEL_ENTRY_INDEX_NONE ? session->threads[wait->thread].name
							     : NULL);
	json_put_count(json, "waits", wait->waits);
	json_put_count(json, "blocked_ns", wait->ns);
	json_put_count(json, "longest_ns", wait->longest_ns);
	json_put_wait_stack(json, &wait->stack);
	json_object_begin(json, "waker");
	json_put_text(json, "kind", spool_waker_get_name(wait->waker));
	if (wait->waker == SPOOL_WAKER_THREAD) {
		json_put_count(json, "pid", wait->waker_pid);
		json_put_count(json, "tid", wait->waker_tid);
		json_put_text(json, "thread", wait->waker_name);
		json_put_wait_stack(json, &wait->waker_stack);
	}
	json_object_end(json);
	json_object_end(json);
}

void json_put_waits(struct json_writer *json, const struct session *session)
{
	const struct model_waits *waits = session_get_waits(session);

	if (!waits->count)
		return;
	json_array_begin(json, "waits");
	for (size_t i = 0; i < waits->count; i++)
		json_put_wait(json, session, &waits->list[i]);
	json_array_end(json);
}
