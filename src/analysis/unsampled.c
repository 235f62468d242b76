/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See unsampled.h.
 */
#include "analysis/unsampled.h"

#include <errno.h>

#include "analysis/session_private.h"

uint64_t session_get_thread_unsampled_ns(const struct session *session, uint32_t index)
{
	const struct session_options *options = &session_get_private(session)->options;
	const struct model_thread *thread = &session->threads[index];
	const struct model_process *process = &session->processes[thread->process];

	/* Of what a ring overwrote nobody knows whether it was sampled. */
	if (options->from_ns || options->to_ns || thread->how == 3 ||
	    process->losses[SPOOL_LOSS_RING_OVERWRITE] ||
	    thread->cpu_ns <= thread->covered_ns + thread->blocked_ns ||
	    (process->cpu_source == SPOOL_CPU_SOURCE_NONE && process->cpu_covered_ns == 0 &&
	     !process->is_short_process))
		return 0;
	return thread->cpu_ns - thread->covered_ns - thread->blocked_ns;
}

uint64_t session_get_missing_sample_count(const struct session *session, uint32_t index)
{
	const struct model_process *process = &session->processes[index];

	/* A filter leaves samples out, a ring overwrites them. */
	if (session->has_only_part_of_time || session->has_only_part_of_threads ||
	    process->losses[SPOOL_LOSS_RING_OVERWRITE] ||
	    process->header_sample_count <= process->samples)
		return 0;
	return process->header_sample_count - process->samples;
}

uint32_t session_get_unsampled_node(const struct session *session, uint32_t process)
{
	const struct session_private *private = session_get_private(session);
	uint32_t node = private->processes[process].unsampled_time_node;

	return node == CALLTREE_NO_NODE || !private->session_node_by_tree_node
		       ? MODEL_ENTRY_INDEX_NONE
		       : private->session_node_by_tree_node[node];
}

int session_add_unsampled_nodes(struct session *session)
{
	struct session_private *private = session_get_private(session);

	for (uint32_t i = 0; i < session->thread_count; i++) {
		struct process_private *process = &private->processes[session->threads[i].process];
		uint64_t unsampled = session_get_thread_unsampled_ns(session, i);

		if (!unsampled)
			continue;
		process->unsampled_time_node = calltree_find_or_add_child(
			&private->tree, process->root, CALLTREE_SPECIAL_ADDRESS_BIT,
			CALLTREE_MODULE_UNSAMPLED_TIME);
		if (process->unsampled_time_node == CALLTREE_NO_NODE)
			return -ENOMEM;
		private->tree.sums[SPOOL_SOURCE_CPU][process->unsampled_time_node].weight +=
			unsampled;
	}
	return 0;
}
