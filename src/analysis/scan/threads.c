/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The records of threads: their start, name and end. They come in any order.
 */
#include <errno.h>
#include <string.h>

#include "analysis/scan/private.h"
#include "common/array.h"

#define THREAD_CREATED_BY_KYMO 3 /* as in SPOOL_RECORD_THREAD_START */

/* Threads of the tool library and of kymo's own tool: they are in the program's process, but not
 * the program's. */
static bool is_kymo_tool_thread_name(const char *name)
{
	static const char *const names[] = {"kymo-tools", "kymo-cuda", "kymo-gpu", "kymo-nvml"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

int scan_thread_start_record(struct spool_scan_state *scan,
			     struct spool_record_payload_cursor *payload)
{
	uint64_t ticks = scan_read_ticks_and_raise_last(scan, payload),
		 internal_id = spool_read_unsigned(payload);
	uint64_t sequent_id = spool_read_unsigned(payload), tid = spool_read_unsigned(payload);
	uint64_t parent = spool_read_unsigned(payload);
	struct model_thread *thread;
	const char *name;
	uint32_t index;
	int result = 0;

	(void)spool_read_unsigned(payload); /* entry pc */
	name = scan_read_string_copy(scan, payload);
	if (!name)
		return -ENOMEM;
	if (payload->bad)
		return -EBADMSG;
	index = session_find_or_add_thread(scan->session, scan->index, internal_id, tid, &result);
	if (index == MODEL_ENTRY_INDEX_NONE)
		return result;
	thread = &scan->session->threads[index];
	thread->start_ns = ticks;
	thread->sequent_id = (uint32_t)sequent_id;
	thread->tid = (uint32_t)tid;
	thread->parent = parent ? (uint32_t)(parent - 1) : MODEL_ENTRY_INDEX_NONE;
	if (!thread->name)
		thread->name = name;
	/* The name may have come before. */
	thread->how = (int)(spool_read_unsigned(payload) & 0xff);
	if (is_kymo_tool_thread_name(thread->name))
		thread->how = THREAD_CREATED_BY_KYMO;
	return payload->bad ? -EBADMSG : 0;
}

int scan_thread_in_sample_span_record(struct spool_scan_state *scan,
				      struct spool_record_payload_cursor *payload)
{
	uint64_t internal_id = spool_read_unsigned(payload), tid = spool_read_unsigned(payload);
	int result = 0;

	(void)scan_read_ticks_and_raise_last(scan, payload);
	if (payload->bad)
		return -EBADMSG;
	(void)session_find_or_add_thread(scan->session, scan->index, internal_id, tid, &result);
	return result;
}

int scan_thread_name_record(struct spool_scan_state *scan,
			    struct spool_record_payload_cursor *payload)
{
	uint32_t index = id_map_get(&scan->process->threads, spool_read_unsigned(payload));
	const char *name = scan_read_string_copy(scan, payload);

	if (!name)
		return -ENOMEM;
	if (payload->bad)
		return -EBADMSG;
	if (index != ID_MAP_NONE && *name)
		scan->session->threads[index].name = name;
	if (index != ID_MAP_NONE && is_kymo_tool_thread_name(name))
		scan->session->threads[index].how = THREAD_CREATED_BY_KYMO;
	return 0;
}

int scan_thread_end_record(struct spool_scan_state *scan,
			   struct spool_record_payload_cursor *payload)
{
	uint64_t ticks = scan_read_ticks_and_raise_last(scan, payload);
	uint32_t index = id_map_get(&scan->process->threads, spool_read_unsigned(payload));
	uint64_t cpu_ns = spool_read_unsigned(payload), before_ns = 0;

	for (int skipped = 0; skipped < 3; skipped++)
		spool_read_unsigned(payload);
	if (payload->at < payload->end)
		before_ns = spool_read_unsigned(payload);
	if (payload->bad)
		return -EBADMSG;
	scan->process->cpu_time_at_image_start_ns = before_ns;
	if (index != ID_MAP_NONE) {
		scan->session->threads[index].end_ns = ticks;
		scan->session->threads[index].cpu_ns = cpu_ns;
	}
	return 0;
}

/* What exec and the loader used before kymo began is the process's as well; what its earlier images
 * used is theirs. */
static void add_cpu_time_before_start(struct spool_scan_state *scan)
{
	const struct process_private *processes = session_get_private(scan->session)->processes;
	struct process_private *process = scan->process;
	struct model_thread *thread;
	uint64_t earlier_ns = 0;

	if (!scan->model->is_short_process || !scan->model->thread_count ||
	    !process->cpu_time_at_image_start_ns)
		return;
	thread = &scan->session->threads[scan->model->first_thread];
	process->cpu_time_at_image_end_ns = process->cpu_time_at_image_start_ns + thread->cpu_ns;
	if (process->earlier_image_process_index != MODEL_ENTRY_INDEX_NONE)
		earlier_ns =
			processes[process->earlier_image_process_index].cpu_time_at_image_end_ns;
	if (process->earlier_image_process_index != MODEL_ENTRY_INDEX_NONE && !earlier_ns)
		return; /* not known: the image before was sampled */
	if (process->cpu_time_at_image_start_ns > earlier_ns)
		thread->cpu_ns += process->cpu_time_at_image_start_ns - earlier_ns;
}

int scan_finish_threads(struct spool_scan_state *scan)
{
	struct session *session = scan->session;
	struct model_process *model = scan->model;

	model->thread_count = session->thread_count - model->first_thread;
	add_cpu_time_before_start(scan);
	for (uint32_t i = 0; i < model->thread_count; i++) {
		struct model_thread *thread = &session->threads[model->first_thread + i];

		thread->start_ns = thread->start_ns
					   ? clock_map_ticks_to_boottime(&scan->process->clock,
									 thread->start_ns)
					   : model->start_ns;
		if (thread->end_ns != UINT64_MAX)
			thread->end_ns =
				clock_map_ticks_to_boottime(&scan->process->clock, thread->end_ns);
		if (thread->parent != MODEL_ENTRY_INDEX_NONE)
			thread->parent = id_map_get(&scan->process->threads, thread->parent);
		if (!thread->name || !*thread->name)
			thread->name = thread->how == 0
					       ? model->name
					       : arena_format_text(&scan->private->arena,
								   "thread %u", thread->tid);
		if (!thread->name)
			return -ENOMEM;
	}
	return 0;
}
