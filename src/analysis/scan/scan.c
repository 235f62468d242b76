/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The first look at one process's spool: everything but its samples. It comes before the samples
 * because those need the clocks, the modules and the filters' view of the threads, all of which may
 * be recorded after them.
 */
#include "analysis/scan/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/scan/private.h"
#include "analysis/short_processes.h"
#include "common/process_title.h"
#include "common/sampling_sources.h"

static int scan_clock_record(struct spool_scan_state *scan,
			     struct spool_record_payload_cursor *payload)
{
	struct clock_map_point point;

	point.ticks = spool_read_fixed_u64(payload);
	point.monotonic_ns = spool_read_fixed_u64(payload);
	point.boottime_ns = spool_read_fixed_u64(payload);
	point.realtime_ns = spool_read_fixed_u64(payload);
	return payload->bad ? -EBADMSG : clock_map_add_point(&scan->process->clock, &point);
}

static int scan_process_arguments(struct spool_scan_state *scan, const uint8_t *bytes, size_t size)
{
	struct arena *arena = &scan->private->arena;
	char *copy = arena_copy_bytes(arena, bytes, size);
	const char **arguments, *at = copy;
	uint32_t count = 0;

	if (copy)
		size = process_title_trim_padding(copy, size);
	for (size_t i = 0; copy && i < size; i++)
		count += copy[i] == 0;
	count += copy && size > 0 && copy[size - 1] != 0;
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

static int scan_process_record(struct spool_scan_state *scan,
			       struct spool_record_payload_cursor *payload)
{
	struct model_process *model = scan->model;
	const uint8_t *arguments;
	size_t size;

	for (unsigned i = 0; i < 4; i++) /* pid and ppid are in the header; uid and gid unused */
		(void)spool_read_unsigned(payload);
	model->executable = scan_read_string_copy(scan, payload);
	arguments = spool_read_length_prefixed_bytes(payload, &size);
	model->working_directory = scan_read_string_copy(scan, payload);
	model->host = scan_read_string_copy(scan, payload);
	if (!model->executable || !model->working_directory || !model->host)
		return -ENOMEM;
	if (scan_process_arguments(scan, arguments, size) < 0)
		return -ENOMEM;
	return payload->bad ? -EBADMSG : 0;
}

static int scan_metrics_record(struct spool_scan_state *scan,
			       struct spool_record_payload_cursor *payload)
{
	struct model_process *model = scan->model;
	uint64_t ticks = scan_read_ticks_and_raise_last(scan, payload),
		 count = spool_read_unsigned(payload);

	for (uint64_t i = 0; i < count && !payload->bad; i++) {
		uint64_t metric = spool_read_unsigned(payload),
			 value = spool_read_unsigned(payload);

		if (payload->bad || metric > UINT32_MAX)
			return -EBADMSG;
		if (array_reserve_one_more((void **)&model->metrics, &scan->metric_capacity,
					   model->metric_count, sizeof(*model->metrics)) < 0)
			return -ENOMEM;
		model->metrics[model->metric_count++] =
			(struct model_metric_sample){ticks, (uint32_t)metric, value};
	}
	return payload->bad ? -EBADMSG : 0;
}

static int scan_notice_record(struct spool_scan_state *scan,
			      struct spool_record_payload_cursor *payload)
{
	struct model_process *model = scan->model;
	uint64_t ticks = scan_read_ticks_and_raise_last(scan, payload),
		 kind = spool_read_unsigned(payload);
	uint64_t argument = spool_read_unsigned(payload);
	const char *text = scan_read_string_copy(scan, payload);

	if (!text || array_reserve_one_more((void **)&model->notices, &scan->notice_capacity,
					    model->notice_count, sizeof(*model->notices)) < 0)
		return -ENOMEM;
	if (payload->bad || kind > INT32_MAX)
		return -EBADMSG;
	model->notices[model->notice_count++] =
		(struct model_notice){ticks, (enum spool_notice)kind, argument, text};
	if (kind == SPOOL_NOTICE_SOURCE && argument < SAMPLING_SOURCE_NUMBERS_END) {
		model->cpu_source = (enum spool_cpu_source)argument;
		model->cpu_source_reason = text;
	}
	return 0;
}

static int scan_cgroup_record(struct spool_scan_state *scan,
			      struct spool_record_payload_cursor *payload)
{
	scan->model->cgroup = scan_read_string_copy(scan, payload);
	return !scan->model->cgroup ? -ENOMEM : payload->bad ? -EBADMSG : 0;
}

static int scan_times_by_cpu_record(struct spool_scan_state *scan,
				    struct spool_record_payload_cursor *payload)
{
	uint64_t count = spool_read_unsigned(payload);
	struct model_cpu_time *times;

	/* Two bytes each at least. */
	if (payload->bad || count > (uint64_t)(payload->end - payload->at) / 2)
		return -EBADMSG;
	times = arena_allocate(&scan->private->arena, (count + 1) * sizeof(*times));
	if (!times)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		times[i].cpu = (uint32_t)spool_read_unsigned(payload);
		times[i].ns = spool_read_unsigned(payload);
	}
	if (payload->bad)
		return -EBADMSG;
	scan->model->times_by_cpu = times;
	scan->model->times_by_cpu_count = (uint32_t)count;
	return 0;
}

static int scan_record(struct spool_scan_state *scan, struct spool_record_payload_cursor *payload)
{
	switch (payload->kind) {
	case SPOOL_RECORD_SAMPLE:
	case SPOOL_RECORD_SAMPLE_REPEAT:
		return 0;
	case SPOOL_RECORD_SPAN:
		return scan_thread_in_sample_span_record(scan, payload);
	case SPOOL_RECORD_CLOCK:
		return scan_clock_record(scan, payload);
	case SPOOL_RECORD_PROCESS:
		return scan_process_record(scan, payload);
	case SPOOL_RECORD_MODULE:
		return scan_module_record(&scan->modules, payload);
	case SPOOL_RECORD_MODULE_GONE:
		return scan_module_gone_record(&scan->modules, payload);
	case SPOOL_RECORD_THREAD_START:
		return scan_thread_start_record(scan, payload);
	case SPOOL_RECORD_THREAD_NAME:
		return scan_thread_name_record(scan, payload);
	case SPOOL_RECORD_THREAD_END:
		return scan_thread_end_record(scan, payload);
	case SPOOL_RECORD_PROCESS_METRICS:
		return scan_metrics_record(scan, payload);
	case SPOOL_RECORD_NOTICE:
		return scan_notice_record(scan, payload);
	case SPOOL_RECORD_CGROUP:
		return scan_cgroup_record(scan, payload);
	case SPOOL_RECORD_TIMES_BY_CPU:
		return scan_times_by_cpu_record(scan, payload);
	case SPOOL_RECORD_STRING:
		return 0;
	default:
		scan->model->unknown_records++;
		return 0;
	}
}

static bool is_sample_record_kind(uint8_t kind)
{
	return kind >= SPOOL_RECORD_SAMPLE_COMPACT || kind == SPOOL_RECORD_SAMPLE ||
	       kind == SPOOL_RECORD_SAMPLE_REPEAT;
}

static void call_end_chunk_of_kinds(struct spool_scan_state *scan,
				    const struct spool_record_position *place)
{
	const struct session *session = scan->session;

	for (uint32_t i = 0; i < session->data_kind_count; i++) {
		if (session->data_kinds[i].kind->end_chunk)
			session->data_kinds[i].kind->end_chunk(place);
	}
}

static int scan_chunk_records(struct spool_scan_state *scan, size_t chunk,
			      struct spool_chunk_record_cursor *cursor)
{
	struct spool_record_position place = {.session = scan->session,
					      .process = scan->index,
					      .chunk = (uint32_t)chunk,
					      .records = cursor->at,
					      .record = cursor->at};
	struct spool_record_payload_cursor payload;

	for (; spool_read_next_record(cursor, &payload); place.record = cursor->at) {
		const struct session_data_kind_operations *kind =
			scan->data_kind_by_run_record_kind[payload.kind];
		const uint8_t *data = payload.at;
		int result;

		if (kind) {
			cursor->at = place.record;
			result = kind->events(&place, cursor);
			if (result < 0)
				return result;
			continue;
		}
		if (is_sample_record_kind(payload.kind)) {
			scan->model->sample_record_bytes += (uint64_t)(cursor->at - place.record);
			scan->process->file.chunks[chunk].samples = true;
			continue;
		}
		kind = scan->data_kind_by_record_kind[payload.kind];
		result = kind ? kind->record(&place, &payload) : scan_record(scan, &payload);
		if (result == -EBADMSG)
			scan->model->torn_bytes += (uint64_t)(payload.end - data);
		else if (result < 0)
			return result;
	}
	call_end_chunk_of_kinds(scan, &place);
	if (cursor->at != cursor->end) {
		scan->model->torn_chunks++;
		scan->model->torn_bytes += (uint64_t)(cursor->end - cursor->at);
	}
	return 0;
}

static const char *find_path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	/* "[kworker/0:1]" */
	if (path[0] == '[')
		return path;
	return slash && slash[1] ? slash + 1 : path;
}

/* Times were collected as ticks, since the clock records may come last. */
static void convert_process_ticks_to_times(struct spool_scan_state *scan)
{
	struct clock_map *clock = &scan->process->clock;
	struct model_process *model = scan->model;

	for (size_t i = 0; i < model->metric_count; i++)
		model->metrics[i].time_ns =
			clock_map_ticks_to_boottime(clock, model->metrics[i].time_ns);
	for (size_t i = 0; i < model->notice_count; i++)
		model->notices[i].time_ns =
			clock_map_ticks_to_boottime(clock, model->notices[i].time_ns);
	model->start_ns =
		clock_map_ticks_to_boottime(clock, scan->process->file.header.start_ticks);
	scan->process->end_ticks = scan->last_tick;
	model->end_ns = clock_map_ticks_to_boottime(clock, scan->last_tick);
	if (model->end_ns < model->start_ns)
		model->end_ns = model->start_ns;
}

static int finish_process_after_scan(struct spool_scan_state *scan)
{
	struct model_process *model = scan->model;
	struct arena *arena = &scan->private->arena;

	if (!model->executable || !*model->executable)
		model->executable = arena_format_text(arena, "pid %u", model->pid);
	if (!model->host)
		model->host = "";
	if (!model->working_directory)
		model->working_directory = "";
	if (!model->cpu_source_reason)
		model->cpu_source_reason = "";
	if (!model->executable)
		return -ENOMEM;
	model->name = find_path_base_name(model->executable);
	model->command_line =
		session_quote_arguments(arena, model->arguments, model->argument_count);
	if (!model->command_line)
		return -ENOMEM;
	if (!*model->command_line)
		model->command_line = model->executable;
	clock_map_sort_and_set_rate(&scan->process->clock, scan->process->file.header.tick_hz);
	model->handler_ns = clock_map_ticks_to_duration_ns(
		&scan->process->clock, scan->process->file.header.handler_ticks);
	convert_process_ticks_to_times(scan);
	return scan_finish_threads(scan);
}

static int scan_spool_file(struct spool_scan_state *scan, struct problem *problem)
{
	struct spool_file *file = &scan->process->file;
	int result = spool_file_reopen(file, problem);

	for (size_t i = 0; result == 0 && i < file->chunk_count; i++) {
		struct spool_chunk_record_cursor cursor;

		result = spool_file_read_chunk(file, i, &cursor);
		if (result == 0)
			result = scan_chunk_records(scan, i, &cursor);
		else if (result != -ENOMEM)
			problem_set(problem, result, "cannot read %s: %s", file->path,
				    strerror(-result));
	}
	spool_file_close_temporarily(file);
	for (uint32_t i = 0; result == 0 && i < scan->session->data_kind_count; i++) {
		const struct session_data_kind_operations *kind = scan->session->data_kinds[i].kind;

		if (kind->end_records)
			result = kind->end_records(scan->session, scan->index, &scan->last_tick);
	}
	return result;
}

static void copy_header_to_model(struct spool_scan_state *scan)
{
	const struct spool_file *file = &scan->process->file;
	const struct spool_file_header *header = &file->header;
	struct model_process *model = scan->model;

	model->pid = header->pid;
	model->parent_pid = header->parent_pid;
	model->image = header->image;
	model->process_start = header->process_start;
	model->state = header->state;
	model->wait_status = header->exit_status;
	model->header_sample_count = header->samples;
	model->is_short_process = spool_file_is_short_process(file);
	memcpy(model->losses, header->losses, sizeof(model->losses));
	model->torn_bytes = file->torn_bytes;
	model->torn_chunks = file->torn_chunks;
	model->signals = header->signals;
	model->helper_cpu_ns = header->helper_cpu_ns;
	model->kymo_work_ns = header->own_work_ns;
	model->perf_event_switch_cost_ns = header->switch_cost_ns;
	model->origin = (enum spool_image_origin)header->origin;
	model->cpu_covered_ns = header->cpu_covered_ns;
	model->spool_file_bytes = file->size;
	model->overwritten_bytes = header->overwritten_bytes;
	model->spool_path = file->path;
	model->first_thread = scan->session->thread_count;
	model->first_module = scan->session->module_count;
	scan->last_tick = header->end_ticks;
}

static int add_header_clock_point(struct spool_scan_state *scan)
{
	const struct spool_file_header *header = &scan->process->file.header;
	struct clock_map_point point = {header->start_ticks, header->start_boottime_ns,
					header->start_monotonic_ns, header->start_realtime_ns};

	return header->start_boottime_ns ? clock_map_add_point(&scan->process->clock, &point) : 0;
}

static void index_data_kinds_by_record_kind(struct spool_scan_state *scan)
{
	for (uint32_t i = 0; i < scan->session->data_kind_count; i++) {
		const struct session_data_kind_operations *kind = scan->session->data_kinds[i].kind;

		for (const uint8_t *at = kind->wanted_record_kinds; at && *at; at++)
			scan->data_kind_by_record_kind[*at] = kind;
		for (const uint8_t *at = kind->run_record_kinds; at && *at; at++)
			scan->data_kind_by_run_record_kind[*at] = kind;
	}
}

static int call_end_process_of_kinds(struct spool_scan_state *scan)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < scan->session->data_kind_count; i++) {
		const struct session_data_kind_operations *kind = scan->session->data_kinds[i].kind;

		if (kind->end_process)
			result = kind->end_process(scan->session, scan->index);
	}
	return result;
}

int session_scan_process(struct session *session, uint32_t process, struct problem *problem)
{
	struct session_private *private = session_get_private(session);
	struct spool_scan_state scan = {.session = session,
					.private = private,
					.process = &private->processes[process],
					.model = &session->processes[process],
					.index = process};
	int result;

	index_data_kinds_by_record_kind(&scan);
	copy_header_to_model(&scan);
	module_scan_init(&scan.modules, session, process);
	result = add_header_clock_point(&scan);
	if (result == 0)
		result = scan_spool_file(&scan, problem);
	if (result == 0)
		result = finish_process_after_scan(&scan);
	if (result == 0)
		result = module_scan_finish(&scan.modules);
	if (result == 0)
		result = call_end_process_of_kinds(&scan);
	module_scan_deinit(&scan.modules);
	return result == -ENOMEM ? session_set_out_of_memory_problem(problem) : result;
}
