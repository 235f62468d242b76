/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See launched.h.
 */
#include "analysis/launched.h"

#include <errno.h>

static uint32_t find_or_add_named_child(struct session *session, uint32_t parent, const char *name,
					uint32_t module)
{
	struct session_private *private = session_get_private(session);
	const char *interned = arena_intern_string(&private->arena, name);

	if (!interned)
		return CALLTREE_NO_NODE;
	return calltree_find_or_add_child(
		&private->tree, parent,
		CALLTREE_SPECIAL_ADDRESS_BIT | (uint64_t)(uintptr_t)interned, module);
}

uint32_t launched_find_or_add_reason(struct session *session, uint32_t process, const char *text)
{
	return find_or_add_named_child(session,
				       session_get_private(session)->processes[process].root, text,
				       CALLTREE_MODULE_NO_LAUNCH);
}

/* Threads are told apart in outputs that separate them. */
static int keep_work_of_thread(struct session *session, uint32_t node,
			       const struct launched_work *work)
{
	struct session_private *private = session_get_private(session);
	struct launched_thread_work *row;

	if (work->thread == MODEL_ENTRY_INDEX_NONE)
		return 0;
	if (array_reserve_one_more((void **)&private->launched, &private->launched_capacity,
				   private->launched_count, sizeof(*private->launched)) < 0)
		return -ENOMEM;
	session->threads[work->thread].samples[MODEL_SOURCE_DEVICE] += work->count;
	session->threads[work->thread].weight[MODEL_SOURCE_DEVICE] += work->ns;
	row = &private->launched[private->launched_count++];
	*row = (struct launched_thread_work){work->thread, node, work->count, work->ns};
	return 0;
}

int launched_add_work(struct session *session, const struct launched_work *work)
{
	struct session_private *private = session_get_private(session);
	uint32_t node = find_or_add_named_child(session, work->node, work->name,
						CALLTREE_MODULE_DEVICE_WORK);

	if (node == CALLTREE_NO_NODE)
		return -ENOMEM;
	private->tree.sums[MODEL_SOURCE_DEVICE][node].samples += work->count;
	private->tree.sums[MODEL_SOURCE_DEVICE][node].weight += work->ns;
	return keep_work_of_thread(session, node, work);
}
