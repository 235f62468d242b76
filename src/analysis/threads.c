/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads of the model, found by what records call them.
 */
#include <errno.h>

#include "analysis/session_private.h"

uint32_t session_find_or_add_thread(struct session *session, uint32_t process, uint64_t internal_id,
				    uint64_t tid, int *result)
{
	struct session_private *private = session_get_private(session);
	struct id_map *ids = &private->processes[process].threads;
	uint32_t index = id_map_get(ids, internal_id), wanted = private->options.filter_thread_tid;

	if (index != ID_MAP_NONE)
		return index;
	if (wanted && wanted != tid)
		return MODEL_ENTRY_INDEX_NONE;
	index = session->thread_count;
	if (array_reserve_one_more((void **)&session->threads, &private->thread_capacity, index,
				   sizeof(*session->threads)) < 0 ||
	    id_map_set(ids, internal_id, index) < 0) {
		*result = -ENOMEM;
		return MODEL_ENTRY_INDEX_NONE;
	}
	session->threads[session->thread_count++] =
		(struct model_thread){.process = process,
				      .internal_id = (uint32_t)internal_id,
				      .sequent_id = (uint32_t)internal_id,
				      .tid = (uint32_t)tid,
				      .parent = MODEL_ENTRY_INDEX_NONE,
				      .how = 2,
				      .end_ns = UINT64_MAX};
	return index;
}
