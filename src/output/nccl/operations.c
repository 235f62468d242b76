/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * nccl/operations.jsonl: an operation a line, streamed from the records; docs/reference/nccl.md
 * describes the keys. The first line says what the file is and who the ranks are.
 */
#include "common/array.h"
#include "files/stream.h"
#include "output/nccl/nccl.h"
#include "output/output.h"

#define OPERATIONS_SCHEMA_NAME "kymo.nccl.operations/1"

struct json_line_writer {
	struct nccl_data *data;
	FILE *stream;
};

static void begin_json_line(struct json_writer *json, FILE *stream)
{
	json_writer_init(json, stream);
	json->compact_from_depth = 1;
	json_object_begin(json, NULL);
}

static void end_json_line(struct json_writer *json)
{
	json_object_end(json);
	fputc('\n', json->stream);
}

static void json_put_hash_text(struct json_writer *json, const char *key, uint64_t hash)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)hash);
	json_put_text(json, key, text);
}

static void write_schema_line(const struct json_line_writer *lines, const struct session *session)
{
	const struct nccl_data *data = lines->data;
	struct json_writer json;

	begin_json_line(&json, lines->stream);
	json_put_text(&json, "schema", OPERATIONS_SCHEMA_NAME);
	json_put_text(&json, "kymo_version", KYMO_VERSION);
	json_put_text(&json, "time_clock", "boottime");
	json_put_signed_integer(&json, "realtime_minus_time_ns",
				data->host_count ? data->hosts[0].realtime_minus_boottime_ns : 0);
	json_put_text(&json, "command", session->command_line);
	json_put_count(&json, "processes", data->process_count);
	json_put_count(&json, "communicators", data->communicator_count);
	json_put_count(&json, "unreadable_files", data->unreadable_files);
	end_json_line(&json);
}

/* ---- one operation ---- */

struct operation_flag_name_entry {
	uint32_t flag_bit;
	const char *name;
};

static const struct operation_flag_name_entry operation_flag_names[] = {
	{NCCL_OPERATION_ENQUEUE_ONLY, "enqueue_only"},
	{NCCL_OPERATION_BATCHED, "batched"},
	{NCCL_OPERATION_ALIASED, "aliased"},
	{NCCL_OPERATION_GRAPH, "graph"},
	{NCCL_OPERATION_REPLAYED, "replayed"},
	{NCCL_OPERATION_COUNT_IS_BYTES, "count_is_bytes"},
	{NCCL_OPERATION_TYPE_UNKNOWN, "type_unknown"},
	{NCCL_OPERATION_NO_SEQUENCE, "no_sequence"},
	{NCCL_OPERATION_NETWORK, "network"},
	{NCCL_OPERATION_LATE, "late_events"},
	{NCCL_OPERATION_LOST_CHILD, "lost_events"},
};

size_t nccl_collect_operation_flag_names(const struct nccl_operation_view *view,
					 const struct nccl_communicator_rank *member,
					 const char *ret[NCCL_FLAG_NAMES_OF_OPERATION_MAX])
{
	size_t count = 0;

	_Static_assert(ARRAY_SIZE(operation_flag_names) + 5 <= NCCL_FLAG_NAMES_OF_OPERATION_MAX,
		       "room for all");
	for (size_t i = 0; i < ARRAY_SIZE(operation_flag_names); i++) {
		if (view->flags & operation_flag_names[i].flag_bit &&
		    !(view->kernel &&
		      operation_flag_names[i].flag_bit == NCCL_OPERATION_ENQUEUE_ONLY))
			ret[count++] = operation_flag_names[i].name;
	}
	if (view->kernel && view->timing_source == NCCL_TIMING_SHARED_BY_SEVERAL &&
	    !(view->flags & NCCL_OPERATION_BATCHED))
		ret[count++] = "batched"; /* the launch held several */
	if (view->timing_source == NCCL_TIMING_UNKNOWN &&
	    view->state != NCCL_OPERATION_INCOMPLETE &&
	    !(view->flags & NCCL_OPERATION_ENQUEUE_ONLY))
		ret[count++] = "enqueue_only"; /* the process ended before it said so */
	if (view->state == NCCL_OPERATION_INCOMPLETE)
		ret[count++] = "incomplete";
	if (view->is_waiting)
		ret[count++] = "in_flight";
	if (member->is_rank_count_inferred)
		ret[count++] = "ranks_inferred";
	return count;
}

static void json_put_operation_flag_names(struct json_writer *json,
					  const struct nccl_operation_view *view,
					  const struct nccl_communicator_rank *member)
{
	const char *marks[NCCL_FLAG_NAMES_OF_OPERATION_MAX];
	size_t count = nccl_collect_operation_flag_names(view, member, marks);

	json_array_begin(json, "marks");
	for (size_t i = 0; i < count; i++)
		json_put_text(json, NULL, marks[i]);
	json_array_end(json);
}

static void json_put_process_and_rank(struct json_writer *json, const struct nccl_data *data,
				      const struct nccl_operation_view *view)
{
	const struct nccl_communicator_rank *member = &data->members[view->member];
	const struct nccl_process *process = &data->processes[view->process];

	json_put_text(json, "host", process->file.header.host);
	json_put_count(json, "pid", process->file.header.pid);
	json_put_count(json, "tid", view->record->thread);
	json_put_signed_integer(json, "world_rank", member->job_rank);
	json_put_text(json, "communicator", member->name);
	json_put_hash_text(json, "communicator_hash", member->record.hash);
	json_put_count(json, "communicator_occurrence",
		       data->communicators[member->communicator].same_hash_index);
	json_put_signed_integer(json, "rank", member->rank);
	json_put_count(json, "ranks", member->rank_count);
}

static void json_put_operation_kind_and_size(struct json_writer *json, const struct nccl_data *data,
					     const struct nccl_operation_view *view)
{
	const struct nccl_operation *record = view->record;
	uint32_t process = view->process;

	json_put_text(json, "kind", nccl_get_event_kind_name(record->kind));
	json_put_text(json, "function", data->functions[view->function].name);
	json_put_count(json, "sequence", record->sequence);
	json_put_count(json, "ordinal", record->ordinal);
	if (record->kind == NCCL_KIND_P2P)
		json_put_signed_integer(json, "peer", record->peer);
	else
		json_put_signed_integer(json, "root", record->root);
	json_put_text(json, "data_type", nccl_get_interned_name(data, process, record->data_type));
	json_put_text(json, "algorithm", nccl_get_interned_name(data, process, record->algorithm));
	json_put_text(json, "protocol", nccl_get_interned_name(data, process, record->protocol));
	json_put_count(json, "count", record->count);
	json_put_count(json, "bytes", record->bytes);
	if (view->is_size_known)
		json_put_count(json, "size_bytes", view->size_bytes);
	else
		json_put_null(json, "size_bytes");
	json_put_text(json, "channels_started",
		      nccl_channel_bitmap_to_text(record->channels_started).text);
	json_put_text(
		json, "channels_open",
		nccl_channel_bitmap_to_text(record->channels_started & ~record->channels_stopped)
			.text);
	json_put_count(json, "channels_expected", record->channels_expected);
	if (record->user_tag)
		json_put_count(json, "user_tag", record->user_tag);
	json_put_count(json, "network_kib", record->network_bytes);
}

static void json_put_time_if_known(struct json_writer *json, const char *key, uint64_t time_ns)
{
	if (time_ns)
		json_put_count(json, key, time_ns);
	else
		json_put_null(json, key);
}

static void json_put_operation_times(struct json_writer *json,
				     const struct nccl_operation_view *view)
{
	json_put_count(json, "enqueue_ns", view->enqueue_begin_ns);
	json_put_time_if_known(json, "enqueued_ns", view->enqueue_end_ns);
	json_put_time_if_known(json, "begin_ns", view->is_begin_known ? view->begin_ns : 0);
	json_put_time_if_known(json, "end_ns", view->end_ns);
	if (view->begin_error_ns == UINT64_MAX)
		json_put_null(json, "time_error_ns");
	else
		json_put_count(json, "time_error_ns", view->begin_error_ns);
	if (view->record->gpu_start) {
		json_put_count(json, "gpu_start", view->record->gpu_start);
		json_put_count(json, "gpu_stop", view->record->gpu_stop);
	}
	json_put_time_if_known(json, "duration_ns", view->duration_ns);
	json_put_time_if_known(json, "stamped_ns", view->channel_stamps_span_ns);
	json_put_text(json, "timing", nccl_get_timing_source_name(view->timing_source));
}

/* What several operations did together has no bandwidth of one of them. */
static void json_put_bandwidths(struct json_writer *json, const struct nccl_operation_view *view)
{
	bool own = nccl_timing_source_is_of_one_operation(view->timing_source);
	double bandwidth = nccl_compute_algorithm_bandwidth(view->size_bytes, view->duration_ns);

	if (!own || !view->is_size_known) {
		json_put_null(json, "algbw_gbs");
		json_put_null(json, "busbw_gbs");
		return;
	}
	json_put_real_with_6_digits(json, "algbw_gbs", bandwidth);
	if (view->bus_factor > 0)
		json_put_real_with_6_digits(json, "busbw_gbs", bandwidth * view->bus_factor);
	else
		json_put_null(json, "busbw_gbs");
}

static int write_operation_line(const struct nccl_operation_view *view, void *context)
{
	const struct json_line_writer *lines = context;
	struct json_writer json;

	begin_json_line(&json, lines->stream);
	json_put_process_and_rank(&json, lines->data, view);
	json_put_operation_kind_and_size(&json, lines->data, view);
	json_put_text(&json, "state", nccl_get_operation_state_name(view->state));
	json_put_operation_times(&json, view);
	json_put_bandwidths(&json, view);
	json_put_operation_flag_names(&json, view, &lines->data->members[view->member]);
	end_json_line(&json);
	return 0;
}

static int write_nccl_operations(struct session *session, const struct output_options *options,
				 FILE *stream, struct problem *problem)
{
	struct json_line_writer lines = {session_get_nccl_data(session), stream};
	int result = nccl_require_records(session, problem);

	(void)options;
	if (result < 0)
		return result;
	write_schema_line(&lines, session);
	for (uint32_t i = 0; result == 0 && i < lines.data->process_count; i++)
		result = nccl_visit_operations_of_process(lines.data, i, write_operation_line,
							  &lines, problem);
	return result == 0 ? stream_flush_or_set_problem(stream, "the operations", problem)
			   : result;
}

const struct output_format output_format_nccl_operations = {
	.name = "nccl-operations",
	.file_name = "nccl/operations.jsonl",
	.description = "NCCL operations, one per line",
	.has_whole_run_only = true,
	.write = write_nccl_operations,
};
