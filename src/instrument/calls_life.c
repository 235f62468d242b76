/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls.h: what becomes of a thread's calls when it, or the process's recording, ends; and the
 * counts of calls that were only counted.
 */
#include <errno.h>
#include <sys/uio.h>

#include "common/syscalls.h"
#include "instrument/calls_stream.h"
#include "instrument/state.h"
#include "regions/regions.h"

#define COUNTS_PER_RECORD_MAX                                                                      \
	3000u /* a record has room for as many counts, at most 14 bytes each */

static struct shadow_stack_node *get_head_of_shadow_stack_list(void)
{
	return atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
}

/* By pthread_exit, cancellation or because the thread just ended: its calls are over with it. */
static void end_open_regions_of_thread(const struct calls_thread_state *calls)
{
	for (const struct shadow_entry *entry = calls->top - 1; entry > calls->node->entries;
	     entry--) {
		if (shadow_entry_is_open(entry) && entry->flags & SHADOW_FLAG_REGION)
			calls_end_region(calls->node, entry->id, NULL);
	}
}

void calls_end_thread(void)
{
	struct calls_thread_state *calls = &kymo_calls;
	struct shadow_stack_node *node = calls->node;

	calls->stopped = calls->has_ended = true;
	calls->limit = NULL;
	if (!node)
		return;
	end_open_regions_of_thread(calls);
	calls_stream_close_open_record(node, calls->at);
	calls->at = calls->end = NULL;
	calls->counts = NULL;
	calls->node = NULL;
	shadow_release_node(node);
}

void calls_apply_thread_exclusion(void)
{
	struct calls_thread_state *calls = &kymo_calls;
	const struct thread *thread = kymo_thread;

	if (!thread)
		return;
	calls->stopped = (thread->excluded_reasons & THREAD_EXCLUDED_BY_STOP) != 0;
	if (calls->node)
		calls->limit = calls_compute_shadow_limit(calls);
}

/* A thread that ended without a word: its own memory is not to be looked at any more. The words
 * end where the zeros begin. */
void calls_release_gone_thread(uint32_t internal_id)
{
	for (struct shadow_stack_node *node = get_head_of_shadow_stack_list(); node;
	     node = node->next) {
		if (!atomic_load_explicit(&node->calls, memory_order_acquire) ||
		    node->internal_thread_id != internal_id)
			continue;
		if (node->chunk)
			spool_chunk_retire(kymo_instrument.spool, node->chunk);
		node->chunk = NULL;
		node->record = node->rest = NULL;
		for (struct shadow_entry *entry = node->entries + 1;
		     entry < node->end && entry->slot; entry++)
			*entry = (struct shadow_entry){0};
		node->internal_thread_id = SHADOW_NO_THREAD;
		atomic_store_explicit(&node->calls, NULL, memory_order_release);
		return;
	}
}

void calls_reset_in_forked_child(void)
{
	struct calls_thread_state *calls = &kymo_calls;
	struct thread *thread = calls->node ? runtime_find_or_add_this_thread() : NULL;

	shadow_reset_in_forked_child(calls->node);
	calls->at = calls->end = NULL;
	atomic_store_explicit(&calls->busy, 0, memory_order_relaxed);
	if (!thread)
		return;
	calls->node->internal_thread_id = thread->internal_id;
	calls->node->tid = thread->tid;
	calls->limit = calls_compute_shadow_limit(calls);
}

/* Nothing writes any more: trampolines are closed, and what was in the trampoline code is out of
 * it. */
void calls_forget_chunks_after_detach(void)
{
	for (struct shadow_stack_node *node = get_head_of_shadow_stack_list(); node;
	     node = node->next) {
		node->chunk = NULL;
		node->record = node->rest = NULL;
	}
}

/* Its end is the first thing that a thread looks at before it writes a word. The memory may go at
 * any moment if the thread ends without a word: the kernel writes to it, or does not. */
static void empty_record_of_thread(struct calls_thread_state *calls)
{
	uint64_t *none = NULL;
	struct iovec local = {&none, sizeof(none)}, remote = {&calls->end, sizeof(none)};

	sys_call6(SYS_process_vm_writev, kymo_process.pid, (long)&local, 1, (long)&remote, 1, 0);
}

void calls_force_new_records(void)
{
	for (struct shadow_stack_node *node = get_head_of_shadow_stack_list(); node;
	     node = node->next) {
		struct calls_thread_state *calls;

		if (!atomic_load_explicit(&node->calls, memory_order_relaxed))
			continue;
		atomic_store(&node->is_being_poked, true);
		/* After that: a thread that ends waits (shadow_release_node()). */
		calls = atomic_load(&node->calls);
		if (calls && sys_call3(SYS_tgkill, kymo_process.pid, node->tid, 0) != -ESRCH)
			empty_record_of_thread(calls);
		atomic_store(&node->is_being_poked, false);
	}
}

bool calls_have_counts(void)
{
	for (const struct shadow_stack_node *node = get_head_of_shadow_stack_list(); node;
	     node = node->next) {
		if (node->counts)
			return true;
	}
	return false;
}

static uint64_t sum_call_count_of_all_threads(uint32_t id)
{
	uint64_t sum = 0;

	for (const struct shadow_stack_node *node = get_head_of_shadow_stack_list(); node;
	     node = node->next) {
		if (node->counts)
			sum += *(volatile uint64_t *)&node->counts[id];
	}
	return sum;
}

/* Sums over all threads, of what changed since it was last written. */
void calls_write_changed_counts(uint64_t *written, uint32_t first, uint32_t count)
{
	struct process_records *track = kymo_instrument.records;
	uint32_t changed = 0, next = first;

	for (uint32_t id = first; id < first + count; id++)
		changed += sum_call_count_of_all_threads(id) != written[id];
	while (changed) {
		uint32_t part = changed < COUNTS_PER_RECORD_MAX ? changed : COUNTS_PER_RECORD_MAX;

		process_record_begin(track, SPOOL_RECORD_CALL_COUNTS);
		process_record_append_unsigned(track, 0);
		process_record_append_unsigned(track, part);
		changed -= part;
		for (; part && next < first + count; next++) {
			uint64_t sum = sum_call_count_of_all_threads(next);

			if (sum == written[next])
				continue;
			written[next] = sum;
			process_record_append_unsigned(track, next);
			process_record_append_unsigned(track, sum);
			part--;
		}
		/* A count cannot fall, so those that were seen to differ still do. */
		process_record_end_and_commit(track);
	}
}
