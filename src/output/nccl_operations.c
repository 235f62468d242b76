/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * nccl/operations.jsonl: an operation a line, streamed from the records; docs/nccl.md describes the
 * keys. The first line says what the file is and who the ranks are.
 */
#include "output/nccl.h"
#include "output/stream.h"
#include "output/writers.h"

#define SCHEMA "kymo.nccl.operations/1"

struct lines {
	struct nccl_data *data;
	FILE *stream;
};

static void begin_line(struct json_writer *json, FILE *stream)
{
	json_writer_init(json, stream);
	json->compact_from = 1;
	json_object_begin(json, NULL);
}

static void end_line(struct json_writer *json)
{
	json_object_end(json);
	fputc('\n', json->stream);
}

static void put_hash(struct json_writer *json, const char *key, uint64_t hash)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)hash);
	json_put_text(json, key, text);
}

static void write_head(const struct lines *lines, const struct session *session)
{
	const struct nccl_data *data = lines->data;
	struct json_writer json;

	begin_line(&json, lines->stream);
	json_put_text(&json, "schema", SCHEMA);
	json_put_text(&json, "kymo_version", KYMO_VERSION);
	json_put_text(&json, "time_clock", "boottime");
	json_put_signed(&json, "realtime_minus_time_ns",
			data->host_count ? data->hosts[0].realtime_minus_boottime_ns : 0);
	json_put_text(&json, "command", session->command_line);
	json_put_count(&json, "processes", data->process_count);
	json_put_count(&json, "communicators", data->team_count);
	json_put_count(&json, "unreadable_files", data->unreadable_files);
	end_line(&json);
}

/* ---- one operation ---- */

struct flag_name {
	uint32_t flag;
	const char *name;
};

static const struct flag_name flag_names[] = {
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

size_t nccl_marks(const struct nccl_view *view, const struct nccl_member *member,
		  const char *ret[NCCL_MARKS])
{
	size_t count = 0;

	_Static_assert(sizeof(flag_names) / sizeof(*flag_names) + 5 <= NCCL_MARKS, "room for all");
	for (size_t i = 0; i < sizeof(flag_names) / sizeof(*flag_names); i++) {
		if (view->flags & flag_names[i].flag &&
		    !(view->kernel && flag_names[i].flag == NCCL_OPERATION_ENQUEUE_ONLY))
			ret[count++] = flag_names[i].name;
	}
	if (view->kernel && view->timing == NCCL_TIMING_SHARED &&
	    !(view->flags & NCCL_OPERATION_BATCHED))
		ret[count++] = "batched"; /* the launch held several */
	if (view->timing == NCCL_TIMING_NONE && view->state != NCCL_OPERATION_INCOMPLETE &&
	    !(view->flags & NCCL_OPERATION_ENQUEUE_ONLY))
		ret[count++] = "enqueue_only"; /* the process ended before it said so */
	if (view->state == NCCL_OPERATION_INCOMPLETE)
		ret[count++] = "incomplete";
	if (view->is_waiting)
		ret[count++] = "in_flight";
	if (member->ranks_inferred)
		ret[count++] = "ranks_inferred";
	return count;
}

static void put_marks(struct json_writer *json, const struct nccl_view *view,
		      const struct nccl_member *member)
{
	const char *marks[NCCL_MARKS];
	size_t count = nccl_marks(view, member, marks);

	json_array_begin(json, "marks");
	for (size_t i = 0; i < count; i++)
		json_put_text(json, NULL, marks[i]);
	json_array_end(json);
}

static void put_who(struct json_writer *json, const struct nccl_data *data,
		    const struct nccl_view *view)
{
	const struct nccl_member *member = &data->members[view->member];
	const struct nccl_process *process = &data->processes[view->process];

	json_put_text(json, "host", process->file.header.host);
	json_put_count(json, "pid", process->file.header.pid);
	json_put_count(json, "tid", view->record->thread);
	json_put_signed(json, "world_rank", process->rank);
	json_put_text(json, "communicator", member->name);
	put_hash(json, "communicator_hash", member->record.hash);
	json_put_count(json, "communicator_occurrence", data->teams[member->team].occurrence);
	json_put_signed(json, "rank", member->rank);
	json_put_count(json, "ranks", member->ranks);
}

static void put_what(struct json_writer *json, const struct nccl_data *data,
		     const struct nccl_view *view)
{
	const struct nccl_operation *record = view->record;
	uint32_t process = view->process;

	json_put_text(json, "kind", nccl_kind_name(record->kind));
	json_put_text(json, "function", data->functions[view->function].name);
	json_put_count(json, "sequence", record->sequence);
	json_put_count(json, "ordinal", record->ordinal);
	if (record->kind == NCCL_KIND_P2P)
		json_put_signed(json, "peer", record->peer);
	else
		json_put_signed(json, "root", record->root);
	json_put_text(json, "data_type", nccl_text_of(data, process, record->data_type));
	json_put_text(json, "algorithm", nccl_text_of(data, process, record->algorithm));
	json_put_text(json, "protocol", nccl_text_of(data, process, record->protocol));
	json_put_count(json, "count", record->count);
	json_put_count(json, "bytes", record->bytes);
	if (view->size_known)
		json_put_count(json, "size_bytes", view->size_bytes);
	else
		json_put_null(json, "size_bytes");
	json_put_text(json, "channels_started", nccl_channels_text(record->channels_started).text);
	json_put_text(
		json, "channels_open",
		nccl_channels_text(record->channels_started & ~record->channels_stopped).text);
	json_put_count(json, "channels_expected", record->channels_expected);
	if (record->user_tag)
		json_put_count(json, "user_tag", record->user_tag);
	json_put_count(json, "network_kib", record->network_bytes);
}

static void put_time(struct json_writer *json, const char *key, uint64_t time_ns)
{
	if (time_ns)
		json_put_count(json, key, time_ns);
	else
		json_put_null(json, key);
}

static void put_when(struct json_writer *json, const struct nccl_view *view)
{
	json_put_count(json, "enqueue_ns", view->enqueue_ns);
	put_time(json, "enqueued_ns", view->enqueued_ns);
	put_time(json, "begin_ns", view->begin_known ? view->begin_ns : 0);
	put_time(json, "end_ns", view->end_ns);
	if (view->begin_error_ns == UINT64_MAX)
		json_put_null(json, "time_error_ns");
	else
		json_put_count(json, "time_error_ns", view->begin_error_ns);
	if (view->record->gpu_start) {
		json_put_count(json, "gpu_start", view->record->gpu_start);
		json_put_count(json, "gpu_stop", view->record->gpu_stop);
	}
	put_time(json, "duration_ns", view->duration_ns);
	put_time(json, "stamped_ns", view->stamped_ns);
	json_put_text(json, "timing", nccl_timing_name(view->timing));
}

/* Of what several operations did together there is no bandwidth of one of them. */
static void put_bandwidth(struct json_writer *json, const struct nccl_view *view)
{
	bool own = nccl_timing_is_own(view->timing);
	double bandwidth = nccl_algorithm_bandwidth(view->size_bytes, view->duration_ns);

	if (!own || !view->size_known) {
		json_put_null(json, "algbw_gbs");
		json_put_null(json, "busbw_gbs");
		return;
	}
	json_put_number(json, "algbw_gbs", bandwidth);
	if (view->bus_factor > 0)
		json_put_number(json, "busbw_gbs", bandwidth * view->bus_factor);
	else
		json_put_null(json, "busbw_gbs");
}

static int write_operation(const struct nccl_view *view, void *context)
{
	const struct lines *lines = context;
	struct json_writer json;

	begin_line(&json, lines->stream);
	put_who(&json, lines->data, view);
	put_what(&json, lines->data, view);
	json_put_text(&json, "state", nccl_state_name(view->state));
	put_when(&json, view);
	put_bandwidth(&json, view);
	put_marks(&json, view, &lines->data->members[view->member]);
	end_line(&json);
	return 0;
}

int output_nccl_operations(struct session *session, const struct output_options *options,
			   FILE *stream, struct problem *problem)
{
	struct lines lines = {session->nccl, stream};
	int result = nccl_check(session, problem);

	(void)options;
	if (result < 0)
		return result;
	write_head(&lines, session);
	for (uint32_t i = 0; result == 0 && i < lines.data->process_count; i++)
		result = nccl_each_operation(lines.data, i, write_operation, &lines, problem);
	return result == 0 ? stream_check(stream, "the operations", problem) : result;
}
