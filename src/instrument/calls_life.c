/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls.h: what becomes of a thread's calls when it, or the process's recording, ends; and the
 * counts of calls that were only counted.
 */
#include <sys/uio.h>

#include "common/syscalls.h"
#include "instrument/calls_stream.h"
#include "regions/regions.h"

#define COUNTS_A_RECORD 3000u /* a record has room for as many counts, at most 14 bytes each */

static struct shadow_node *first_node(void)
{
	return atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
}

void calls_thread_end(void)
{
	struct calls_thread *calls = &kymo_calls;
	struct shadow_node *node = calls->node;

	calls->stopped = 1;
	calls->limit = NULL;
	if (!node)
		return;
	calls_stream_end(node, calls->at);
	calls->at = calls->end = NULL;
	calls->counts = NULL;
	calls->node = NULL;
	shadow_release(node);
}

void calls_thread_switched(void)
{
	struct calls_thread *calls = &kymo_calls;
	const struct thread *thread = kymo_thread;

	if (!thread)
		return;
	calls->stopped = (thread->excluded & THREAD_EXCLUDED_STOPPED) != 0;
	if (calls->node)
		calls->limit = calls_limit(calls);
}

/* A thread that ended without a word: its own memory is not to be looked at any more. The words
 * end where the zeros begin. */
void calls_thread_gone(uint32_t internal_id)
{
	for (struct shadow_node *node = first_node(); node; node = node->next) {
		if (!atomic_load_explicit(&node->calls, memory_order_acquire) ||
		    node->internal_id != internal_id)
			continue;
		if (node->chunk)
			spool_chunk_retire(&kymo_runtime.spool, node->chunk);
		node->chunk = NULL;
		node->record = node->rest = NULL;
		for (struct shadow_entry *entry = node->entries + 1;
		     entry < node->end && entry->slot; entry++)
			*entry = (struct shadow_entry){0};
		node->internal_id = SHADOW_NO_THREAD;
		atomic_store_explicit(&node->calls, NULL, memory_order_release);
		return;
	}
}

void calls_forked(void)
{
	struct calls_thread *calls = &kymo_calls;
	struct thread *thread = calls->node ? runtime_adopt_this_thread() : NULL;

	shadow_forked(calls->node);
	calls->at = calls->end = NULL;
	atomic_store_explicit(&calls->busy, 0, memory_order_relaxed);
	if (!thread)
		return;
	calls->node->internal_id = thread->internal_id;
	calls->node->tid = thread->tid;
	calls->limit = calls_limit(calls);
}

/* Nothing writes any more: gates are closed, and what was in the gate code is out of it. */
void calls_left(void)
{
	for (struct shadow_node *node = first_node(); node; node = node->next) {
		node->chunk = NULL;
		node->record = node->rest = NULL;
	}
}

/* The thread's memory may go at any moment: the kernel writes to it, or does not. */
void calls_poke(void)
{
	for (struct shadow_node *node = first_node(); node; node = node->next) {
		struct calls_thread *calls =
			atomic_load_explicit(&node->calls, memory_order_acquire);
		uint64_t *none = NULL;
		struct iovec local = {&none, sizeof(none)}, remote;

		if (!calls)
			continue;
		remote = (struct iovec){&calls->end, sizeof(none)};
		sys_call6(SYS_process_vm_writev, kymo_runtime.pid, (long)&local, 1, (long)&remote,
			  1, 0);
	}
}

bool calls_are_counted(void)
{
	for (const struct shadow_node *node = first_node(); node; node = node->next) {
		if (node->counts)
			return true;
	}
	return false;
}

static uint64_t count_of(uint32_t id)
{
	uint64_t sum = 0;

	for (const struct shadow_node *node = first_node(); node; node = node->next) {
		if (node->counts)
			sum += *(volatile uint64_t *)&node->counts[id];
	}
	return sum;
}

/* Sums over all threads, of what changed since it was last written. */
void calls_write_counts(struct runtime *runtime, uint64_t *written, uint32_t first, uint32_t count)
{
	struct track *track = &runtime->track;
	uint32_t changed = 0, next = first;

	for (uint32_t id = first; id < first + count; id++)
		changed += count_of(id) != written[id];
	while (changed) {
		uint32_t part = changed < COUNTS_A_RECORD ? changed : COUNTS_A_RECORD;

		track_begin(track, SPOOL_RECORD_CALL_COUNTS);
		track_unsigned(track, 0);
		track_unsigned(track, part);
		changed -= part;
		for (; part && next < first + count; next++) {
			uint64_t sum = count_of(next);

			if (sum == written[next])
				continue;
			written[next] = sum;
			track_unsigned(track, next);
			track_unsigned(track, sum);
			part--;
		}
		/* A count cannot fall, so those that were seen to differ still do. */
		track_end(track);
	}
}
