/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The first look at one process's spool: everything but its samples. It comes before the samples
 * because those need the clocks, the modules and the filters' view of the threads, all of which may
 * be recorded after them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/allocations_private.h"
#include "analysis/scan_calls.h"
#include "analysis/scan_modules.h"
#include "analysis/scan_regions.h"
#include "analysis/session_private.h"

#define THREAD_OF_KYMO 3 /* as in SPOOL_RECORD_THREAD_START */

struct scan {
	struct session *session;
	struct session_private *private;
	struct process_private *process;
	struct model_process *model;
	uint32_t index; /* of the process */
	size_t metric_capacity, notice_capacity;
	uint64_t last_tick;
	struct scan_modules modules;
	struct scan_regions regions;
	struct scan_calls calls;
};

static const char *take_string(struct scan *scan, struct spool_payload *payload)
{
	size_t size;
	const uint8_t *bytes = spool_bytes(payload, &size);

	return arena_copy(&scan->private->arena, bytes, size);
}

static uint64_t take_ticks(struct scan *scan, struct spool_payload *payload)
{
	uint64_t ticks = spool_fixed(payload);

	if (!payload->bad && ticks > scan->last_tick && ticks < UINT64_MAX)
		scan->last_tick = ticks;
	return ticks;
}

static int scan_clock(struct scan *scan, struct spool_payload *payload)
{
	struct clock_point point;

	point.ticks = spool_fixed(payload);
	point.monotonic_ns = spool_fixed(payload);
	point.boottime_ns = spool_fixed(payload);
	point.realtime_ns = spool_fixed(payload);
	return payload->bad ? -EBADMSG : clock_map_add(&scan->process->clock, &point);
}

static int scan_arguments(struct scan *scan, const uint8_t *bytes, size_t size)
{
	struct arena *arena = &scan->private->arena;
	const char *copy = arena_copy(arena, bytes, size), *at = copy;
	const char **arguments;
	uint32_t count = 0;

	for (size_t i = 0; i < size; i++)
		count += bytes[i] == 0;
	count += size > 0 && bytes[size - 1] != 0;
	arguments = arena_allocate(arena, (count + 1) * sizeof(*arguments));
	if (!copy || !arguments)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		arguments[i] = at;
		at += strlen(at) + 1;
	}
	scan->model->arguments = arguments;
	scan->model->argument_count = count;
	return 0;
}

static int scan_process(struct scan *scan, struct spool_payload *payload)
{
	struct model_process *model = scan->model;
	const uint8_t *arguments;
	size_t size;

	for (unsigned i = 0; i < 4; i++) /* pid and ppid are in the header; uid and gid unused */
		(void)spool_unsigned(payload);
	model->executable = take_string(scan, payload);
	arguments = spool_bytes(payload, &size);
	model->working_directory = take_string(scan, payload);
	model->host = take_string(scan, payload);
	if (!model->executable || !model->working_directory || !model->host)
		return -ENOMEM;
	if (scan_arguments(scan, arguments, size) < 0)
		return -ENOMEM;
	return payload->bad ? -EBADMSG : 0;
}

/* The thread with this internal id, made if it is new. NULL: left out by a filter, or *result set.
 */
static struct model_thread *thread_of(struct scan *scan, uint64_t internal_id, uint64_t tid,
				      int *result)
{
	struct session *session = scan->session;
	uint32_t index = id_map_get(&scan->process->threads, internal_id);
	uint32_t wanted = scan->private->options.thread_tid;
	struct model_thread *thread;

	if (index != ID_MAP_NONE)
		return &session->threads[index];
	if (wanted && wanted != tid)
		return NULL;
	index = session->thread_count;
	if (array_reserve((void **)&session->threads, &scan->private->thread_capacity, index,
			  sizeof(*session->threads)) < 0 ||
	    id_map_set(&scan->process->threads, internal_id, index) < 0) {
		*result = -ENOMEM;
		return NULL;
	}
	thread = &session->threads[session->thread_count++];
	*thread = (struct model_thread){.process = scan->index,
					.internal_id = (uint32_t)internal_id,
					.sequent_id = (uint32_t)internal_id,
					.tid = (uint32_t)tid,
					.parent = MODEL_NONE,
					.how = 2,
					.end_ns = UINT64_MAX};
	return thread;
}

/* Of the tool library and kymo's own tool: they are in the program's process, but not the
 * program's. */
static bool is_own_thread(const char *name)
{
	static const char *const names[] = {"kymo-tools", "kymo-cuda", "kymo-gpu", "kymo-nvml"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

static int scan_thread_start(struct scan *scan, struct spool_payload *payload)
{
	uint64_t ticks = take_ticks(scan, payload), internal_id = spool_unsigned(payload);
	uint64_t sequent_id = spool_unsigned(payload), tid = spool_unsigned(payload);
	uint64_t parent = spool_unsigned(payload);
	struct model_thread *thread;
	const char *name;
	int result = 0;

	(void)spool_unsigned(payload); /* entry pc */
	name = take_string(scan, payload);
	if (!name)
		return -ENOMEM;
	if (payload->bad)
		return -EBADMSG;
	thread = thread_of(scan, internal_id, tid, &result);
	if (!thread)
		return result;
	thread->start_ns = ticks;
	thread->sequent_id = (uint32_t)sequent_id;
	thread->tid = (uint32_t)tid;
	thread->parent = parent ? (uint32_t)(parent - 1) : MODEL_NONE;
	if (!thread->name)
		thread->name = name;
	/* The name may have come before. */
	thread->how = (int)(spool_unsigned(payload) & 0xff);
	if (is_own_thread(thread->name))
		thread->how = THREAD_OF_KYMO;
	return payload->bad ? -EBADMSG : 0;
}

static int scan_span(struct scan *scan, struct spool_payload *payload)
{
	uint64_t internal_id = spool_unsigned(payload), tid = spool_unsigned(payload);
	int result = 0;

	(void)take_ticks(scan, payload);
	if (payload->bad)
		return -EBADMSG;
	(void)thread_of(scan, internal_id, tid, &result);
	return result;
}

static int scan_thread_name(struct scan *scan, struct spool_payload *payload)
{
	uint32_t index = id_map_get(&scan->process->threads, spool_unsigned(payload));
	const char *name = take_string(scan, payload);

	if (!name)
		return -ENOMEM;
	if (payload->bad)
		return -EBADMSG;
	if (index != ID_MAP_NONE && *name)
		scan->session->threads[index].name = name;
	if (index != ID_MAP_NONE && is_own_thread(name))
		scan->session->threads[index].how = THREAD_OF_KYMO;
	return 0;
}

static int scan_thread_end(struct scan *scan, struct spool_payload *payload)
{
	uint64_t ticks = take_ticks(scan, payload);
	uint32_t index = id_map_get(&scan->process->threads, spool_unsigned(payload));
	uint64_t cpu_ns = spool_unsigned(payload);

	if (payload->bad)
		return -EBADMSG;
	if (index != ID_MAP_NONE) {
		scan->session->threads[index].end_ns = ticks;
		scan->session->threads[index].cpu_ns = cpu_ns;
	}
	return 0;
}

static int scan_metrics(struct scan *scan, struct spool_payload *payload)
{
	struct model_process *model = scan->model;
	uint64_t ticks = take_ticks(scan, payload), count = spool_unsigned(payload);

	for (uint64_t i = 0; i < count && !payload->bad; i++) {
		uint64_t metric = spool_unsigned(payload), value = spool_unsigned(payload);

		if (payload->bad || metric > UINT32_MAX)
			return -EBADMSG;
		if (array_reserve((void **)&model->metrics, &scan->metric_capacity,
				  model->metric_count, sizeof(*model->metrics)) < 0)
			return -ENOMEM;
		model->metrics[model->metric_count++] =
			(struct model_metric_sample){ticks, (uint32_t)metric, value};
	}
	return payload->bad ? -EBADMSG : 0;
}

static int scan_notice(struct scan *scan, struct spool_payload *payload)
{
	struct model_process *model = scan->model;
	uint64_t ticks = take_ticks(scan, payload), kind = spool_unsigned(payload);
	uint64_t argument = spool_unsigned(payload);
	const char *text = take_string(scan, payload);

	if (!text || array_reserve((void **)&model->notices, &scan->notice_capacity,
				   model->notice_count, sizeof(*model->notices)) < 0)
		return -ENOMEM;
	if (payload->bad || kind > INT32_MAX)
		return -EBADMSG;
	model->notices[model->notice_count++] =
		(struct model_notice){ticks, (enum spool_notice)kind, argument, text};
	if (kind == SPOOL_NOTICE_SOURCE && argument <= SPOOL_CPU_SOURCE_TIMER) {
		model->cpu_source = (enum spool_cpu_source)argument;
		model->cpu_source_text = text;
	}
	return 0;
}

/* ---- regions ---- */

/* As an index, or MODEL_NONE where thread_of() gives none. */
static uint32_t thread_index(struct scan *scan, uint64_t internal_id, uint64_t tid, int *result)
{
	const struct model_thread *thread = thread_of(scan, internal_id, tid, result);

	return thread ? (uint32_t)(thread - scan->session->threads) : MODEL_NONE;
}

static int scan_thread_regions(struct scan *scan, struct spool_payload *payload,
			       const uint8_t *record)
{
	uint64_t internal_id = spool_unsigned(payload), tid = spool_unsigned(payload);
	uint32_t thread;
	int result = 0;

	if (payload->bad)
		return -EBADMSG;
	thread = thread_index(scan, internal_id, tid, &result);
	return result ? result : scan_region_span(&scan->regions, payload, record, thread);
}

static int scan_profile(struct scan *scan, const struct spool_payload *payload)
{
	struct spool_profile_part part;
	uint32_t thread;
	int result = 0;

	if ((size_t)(payload->end - payload->at) < sizeof(part))
		return -EBADMSG;
	memcpy(&part, payload->at, sizeof(part));
	if (part.node_count == 0)
		return 0;
	thread = thread_index(scan, part.internal_id, part.tid, &result);
	return result ? result : scan_profile_part(&scan->regions, payload, &part, thread);
}

static int scan_calls_record(struct scan *scan, const struct spool_payload *payload)
{
	struct spool_calls head;
	uint32_t thread;
	int result = 0;

	if ((size_t)(payload->end - payload->at) < sizeof(head))
		return -EBADMSG;
	memcpy(&head, payload->at, sizeof(head));
	thread = thread_index(scan, head.internal_id, head.tid, &result);
	return result ? result
		      : scan_call_words(&scan->calls, payload, &head, thread, scan->regions.chunk,
					scan->regions.records);
}

/* True: it is a record of instrumented functions, and *result says how it went. */
static bool scan_function_record(struct scan *scan, struct spool_payload *payload, int *result)
{
	switch (payload->kind) {
	case SPOOL_RECORD_INSTRUMENTED:
		*result = scan_instrumented(&scan->calls, payload);
		return true;
	case SPOOL_RECORD_CALLS:
		*result = scan_calls_record(scan, payload);
		return true;
	case SPOOL_RECORD_CALL_COUNTS:
		*result = scan_call_counts(&scan->calls, payload);
		return true;
	case SPOOL_RECORD_CALL_DEMOTED:
		*result = scan_call_demoted(&scan->calls, payload);
		return true;
	default:
		return false;
	}
}

/* True: it is a record of regions, and *result says how it went. */
static bool scan_region_record(struct scan *scan, struct spool_payload *payload,
			       const uint8_t *record, int *result)
{
	switch (payload->kind) {
	case SPOOL_RECORD_REGION:
		*result = scan_region(&scan->regions, payload);
		return true;
	case SPOOL_RECORD_REGION_SPAN:
		*result = scan_thread_regions(scan, payload, record);
		return true;
	case SPOOL_RECORD_COMPONENTS:
		*result = scan_components(&scan->regions, payload);
		return true;
	case SPOOL_RECORD_PROFILE:
		*result = scan_profile(scan, payload);
		return true;
	case SPOOL_RECORD_RANK:
		*result = scan_rank(&scan->regions, payload);
		return true;
	case SPOOL_RECORD_CALL_SITE:
		*result = scan_call_site(scan->session, scan->index, payload);
		return true;
	case SPOOL_RECORD_ALLOCATIONS:
		*result = scan_allocations(scan->session, scan->index, payload);
		return true;
	case SPOOL_RECORD_PROFILE_SHARED:
		*result = 0;
		return true;
	default:
		return false;
	}
}

static int scan_record(struct scan *scan, struct spool_payload *payload)
{
	switch (payload->kind) {
	case SPOOL_RECORD_SAMPLE:
	case SPOOL_RECORD_SAMPLE_REPEAT:
		return 0;
	case SPOOL_RECORD_SPAN:
		return scan_span(scan, payload);
	case SPOOL_RECORD_CLOCK:
		return scan_clock(scan, payload);
	case SPOOL_RECORD_PROCESS:
		return scan_process(scan, payload);
	case SPOOL_RECORD_MODULE:
		return scan_module(&scan->modules, payload);
	case SPOOL_RECORD_MODULE_GONE:
		return scan_module_gone(&scan->modules, payload);
	case SPOOL_RECORD_THREAD_START:
		return scan_thread_start(scan, payload);
	case SPOOL_RECORD_THREAD_NAME:
		return scan_thread_name(scan, payload);
	case SPOOL_RECORD_THREAD_END:
		return scan_thread_end(scan, payload);
	case SPOOL_RECORD_PROCESS_METRICS:
		return scan_metrics(scan, payload);
	case SPOOL_RECORD_NOTICE:
		return scan_notice(scan, payload);
	case SPOOL_RECORD_STRING:
		return 0;
	default:
		scan->model->unknown_records++;
		return 0;
	}
}

static int scan_chunk(struct scan *scan, size_t chunk, struct spool_cursor *cursor)
{
	struct spool_payload payload;
	const uint8_t *begin = cursor->at;

	scan_regions_begin_chunk(&scan->regions, (uint32_t)chunk, begin);
	while (spool_next(cursor, &payload)) {
		const uint8_t *data = payload.at;
		int result;

		if (scan_is_region_event(payload.kind)) {
			cursor->at = begin;
			if (scan_region_events(&scan->regions, cursor) < 0)
				return -ENOMEM;
			begin = cursor->at;
			continue;
		}
		if (payload.kind >= SPOOL_RECORD_SAMPLE_COMPACT ||
		    payload.kind == SPOOL_RECORD_SAMPLE ||
		    payload.kind == SPOOL_RECORD_SAMPLE_REPEAT) {
			scan->model->sample_bytes += (uint64_t)(cursor->at - begin);
			scan->process->file.chunks[chunk].samples = true;
			begin = cursor->at;
			continue;
		}
		if (scan_region_record(scan, &payload, begin, &result))
			scan->model->region_bytes += (uint64_t)(cursor->at - begin);
		else if (!scan_function_record(scan, &payload, &result))
			result = scan_record(scan, &payload);
		if (result == -EBADMSG)
			scan->model->torn_bytes += (uint64_t)(payload.end - data);
		else if (result < 0)
			return result;
		begin = cursor->at;
	}
	scan_regions_end_chunk(&scan->regions, begin);
	if (cursor->at != cursor->end) {
		scan->model->torn_chunks++;
		scan->model->torn_bytes += (uint64_t)(cursor->end - cursor->at);
	}
	return 0;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Times were collected as ticks, since the clock records may come last. */
static void convert_times(struct scan *scan)
{
	struct clock_map *clock = &scan->process->clock;
	struct model_process *model = scan->model;

	for (size_t i = 0; i < model->metric_count; i++)
		model->metrics[i].time_ns = clock_map_boottime(clock, model->metrics[i].time_ns);
	for (size_t i = 0; i < model->notice_count; i++)
		model->notices[i].time_ns = clock_map_boottime(clock, model->notices[i].time_ns);
	model->start_ns = clock_map_boottime(clock, scan->process->file.header.start_ticks);
	model->end_ns = clock_map_boottime(clock, scan->last_tick);
	if (model->end_ns < model->start_ns)
		model->end_ns = model->start_ns;
}

/* Gives threads their names, times and parents once all of them are known. */
static int finish_threads(struct scan *scan)
{
	struct session *session = scan->session;
	struct model_process *model = scan->model;

	model->thread_count = session->thread_count - model->first_thread;
	for (uint32_t i = 0; i < model->thread_count; i++) {
		struct model_thread *thread = &session->threads[model->first_thread + i];

		thread->start_ns = thread->start_ns ? clock_map_boottime(&scan->process->clock,
									 thread->start_ns)
						    : model->start_ns;
		if (thread->end_ns != UINT64_MAX)
			thread->end_ns = clock_map_boottime(&scan->process->clock, thread->end_ns);
		if (thread->parent != MODEL_NONE)
			thread->parent = id_map_get(&scan->process->threads, thread->parent);
		if (!thread->name || !*thread->name)
			thread->name = thread->how == 0 ? model->name
							: arena_format(&scan->private->arena,
								       "thread %u", thread->tid);
		if (!thread->name)
			return -ENOMEM;
	}
	return 0;
}

static int finish_process(struct scan *scan)
{
	struct model_process *model = scan->model;
	struct arena *arena = &scan->private->arena;

	if (!model->executable || !*model->executable)
		model->executable = arena_format(arena, "pid %u", model->pid);
	if (!model->host)
		model->host = "";
	if (!model->working_directory)
		model->working_directory = "";
	if (!model->cpu_source_text)
		model->cpu_source_text = "";
	if (!model->executable)
		return -ENOMEM;
	model->name = last_component(model->executable);
	model->command_line = session_quote(arena, model->arguments, model->argument_count);
	if (!model->command_line)
		return -ENOMEM;
	if (!*model->command_line)
		model->command_line = model->executable;
	clock_map_finish(&scan->process->clock, scan->process->file.header.tick_hz);
	model->handler_ns =
		clock_map_duration(&scan->process->clock, scan->process->file.header.handler_ticks);
	convert_times(scan);
	return finish_threads(scan);
}

static int scan_file(struct scan *scan, struct problem *problem)
{
	struct spool_file *file = &scan->process->file;
	int result = spool_file_resume(file, problem);

	for (size_t i = 0; result == 0 && i < file->chunk_count; i++) {
		struct spool_cursor cursor;

		result = spool_file_read(file, i, &cursor);
		if (result == 0)
			result = scan_chunk(scan, i, &cursor);
		else if (result != -ENOMEM)
			problem_set(problem, result, "cannot read %s: %s", file->path,
				    strerror(-result));
	}
	spool_file_pause(file);
	if (result == 0)
		result = scan_regions_finish(&scan->regions);
	if (scan->regions.last > scan->last_tick)
		scan->last_tick = scan->regions.last;
	if (scan->calls.last > scan->last_tick)
		scan->last_tick = scan->calls.last;
	return result;
}

static void take_header(struct scan *scan)
{
	const struct spool_file *file = &scan->process->file;
	const struct spool_file_header *header = &file->header;
	struct model_process *model = scan->model;

	model->pid = header->pid;
	model->parent_pid = header->parent_pid;
	model->image = header->image;
	model->process_start = header->process_start;
	model->state = header->state;
	model->exit_status = header->exit_status;
	model->header_samples = header->samples;
	memcpy(model->losses, header->losses, sizeof(model->losses));
	model->torn_bytes = file->torn_bytes;
	model->torn_chunks = file->torn_chunks;
	model->signals = header->signals;
	model->helper_cpu_ns = header->helper_cpu_ns;
	model->cpu_covered_ns = header->cpu_covered_ns;
	model->spool_bytes = file->size;
	model->spool_path = file->path;
	model->first_thread = scan->session->thread_count;
	model->first_module = scan->session->module_count;
	scan->last_tick = header->end_ticks;
}

static int header_clock(struct scan *scan)
{
	const struct spool_file_header *header = &scan->process->file.header;
	struct clock_point point = {header->start_ticks, header->start_boottime_ns,
				    header->start_monotonic_ns, header->start_realtime_ns};

	return header->start_boottime_ns ? clock_map_add(&scan->process->clock, &point) : 0;
}

int session_scan(struct session *session, uint32_t process, struct problem *problem)
{
	struct session_private *private = session_private(session);
	struct scan scan = {.session = session,
			    .private = private,
			    .process = &private->processes[process],
			    .model = &session->processes[process],
			    .index = process};
	int result;

	take_header(&scan);
	scan_modules_init(&scan.modules, session, process);
	scan_regions_init(&scan.regions, session, process);
	scan_calls_init(&scan.calls, session, process);
	result = header_clock(&scan);
	if (result == 0)
		result = scan_file(&scan, problem);
	if (result == 0)
		result = finish_process(&scan);
	if (result == 0)
		result = scan_modules_finish(&scan.modules);
	if (result == 0)
		result = scan_calls_finish(&scan.calls);
	scan_modules_deinit(&scan.modules);
	scan_regions_deinit(&scan.regions);
	return result == -ENOMEM ? session_out_of_memory(problem) : result;
}
