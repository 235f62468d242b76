/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Interned data of the sample sequences: mappings, frames with names and source lines, and call
 * stacks, each sent once before its first use. Interning ids are the model's dense ids plus one, so
 * there is nothing to look up: a table says which sequence has sent a thing last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/perfetto/perfetto.h"
#include "output/strings.h"

enum {
	INTERNED_DATA_FIELD_FUNCTION_NAMES = 5,
	INTERNED_DATA_FIELD_FRAMES = 6,
	INTERNED_DATA_FIELD_CALLSTACKS = 7,
	INTERNED_DATA_FIELD_BUILD_IDS = 16,
	INTERNED_DATA_FIELD_MAPPING_PATHS = 17,
	INTERNED_DATA_FIELD_SOURCE_PATHS = 18,
	INTERNED_DATA_FIELD_MAPPINGS = 19,
	INTERNED_DATA_FIELD_COUNTERS = 50,

	PERFETTO_FRAME_KIND_NATIVE = 1,
	PERFETTO_FRAME_KIND_JIT = 4,

	PACKET_DEFAULTS_FIELD_PERF_SAMPLE = 12,
	PACKET_DEFAULTS_FIELD_STACK_SAMPLE = 100,
	PERF_COUNTER_TASK_CLOCK = 3,
	STACK_UNIT_NANOSECONDS = 1,
};

static uint32_t *allocate_interning_table(uint32_t count)
{
	return calloc((size_t)count + 1, sizeof(uint32_t));
}

static int interning_tables_init(struct perfetto_interning_sequence_tables *interned,
				 const struct session *session, uint32_t source_count)
{
	interned->nodes = allocate_interning_table(session->node_count);
	interned->frames = allocate_interning_table(session->frame_count);
	interned->functions = allocate_interning_table(session->function_count);
	interned->sources = allocate_interning_table(source_count);
	interned->modules = allocate_interning_table(session->module_count);
	return interned->nodes != NULL && interned->frames != NULL && interned->functions != NULL &&
			       interned->sources != NULL && interned->modules != NULL
		       ? 0
		       : -ENOMEM;
}

static void interning_tables_deinit(struct perfetto_interning_sequence_tables *interned)
{
	free(interned->nodes);
	free(interned->frames);
	free(interned->functions);
	free(interned->sources);
	free(interned->modules);
	*interned = (struct perfetto_interning_sequence_tables){0};
}

static int assign_source_file_numbers(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;
	struct string_table sources;
	int error = 0;

	strings_init(&sources);
	for (uint32_t i = 0; i < session->frame_count && error == 0; i++) {
		trace->source_path_id_of_frame[i] = MODEL_ENTRY_INDEX_NONE;
		if (session->frames[i].file != NULL)
			error = strings_find_or_add(&sources, session->frames[i].file,
						    &trace->source_path_id_of_frame[i]);
	}
	trace->source_path_count = sources.count;
	strings_deinit(&sources);
	return error;
}

int perfetto_interning_init(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < session->node_count; i++) {
		if (session->nodes[i].depth > deepest)
			deepest = session->nodes[i].depth;
	}
	trace->path = allocate_interning_table(deepest + 1);
	trace->source_path_id_of_frame = allocate_interning_table(session->frame_count);
	trace->begun = calloc((size_t)session->process_count + 1, 1);
	if (trace->path == NULL || trace->source_path_id_of_frame == NULL || trace->begun == NULL)
		return -ENOMEM;
	int error = assign_source_file_numbers(trace);
	for (int stream = 0; stream < PERFETTO_STREAM_COUNT && error == 0; stream++)
		error = interning_tables_init(&trace->interning_tables[stream], session,
					      trace->source_path_count);
	return error;
}

void perfetto_interning_deinit(struct perfetto_trace *trace)
{
	for (int stream = 0; stream < PERFETTO_STREAM_COUNT; stream++)
		interning_tables_deinit(&trace->interning_tables[stream]);
	free(trace->path);
	free(trace->source_path_id_of_frame);
	free(trace->begun);
}

static void write_sample_counter_definition(struct protobuf_writer *writer, unsigned field,
					    uint32_t iid, const char *name, const char *unit)
{
	protobuf_open_message(writer, field);
	if (iid != 0)
		protobuf_write_uint(writer, 1, iid);
	protobuf_write_string(writer, 2, name);
	if (unit != NULL)
		protobuf_write_string(writer, 4, unit);
	else
		protobuf_write_uint(writer, 3, STACK_UNIT_NANOSECONDS);
	protobuf_close_message(writer);
}

/* Custom units keep waiting time out of Perfetto's CPU profile. */
static void write_sample_sequence_defaults(struct protobuf_writer *writer,
					   enum perfetto_sample_stream_kind stream)
{
	protobuf_open_message(writer, PACKET_FIELD_DEFAULTS);
	if (stream == PERFETTO_STREAM_TIME_SAMPLES) {
		protobuf_open_message(writer, PACKET_DEFAULTS_FIELD_PERF_SAMPLE);
		protobuf_open_message(writer, 1);
		protobuf_write_uint(writer, 4, PERF_COUNTER_TASK_CLOCK);
		protobuf_write_string(writer, 10, "cpu-time");
		protobuf_close_message(writer);
		protobuf_close_message(writer);
	}
	protobuf_open_message(writer, PACKET_DEFAULTS_FIELD_STACK_SAMPLE);
	protobuf_write_string(writer, 1,
			      stream == PERFETTO_STREAM_TIME_SAMPLES ? "kymo.waiting"
								     : "kymo.overflow");
	if (stream == PERFETTO_STREAM_TIME_SAMPLES)
		write_sample_counter_definition(writer, 2, 0, "blocked", "blocked ns");
	else
		write_sample_counter_definition(writer, 2, 0, "events", "events");
	protobuf_close_message(writer);
	protobuf_close_message(writer);
}

static void write_sample_sequence_begin(struct perfetto_trace *trace, uint32_t process,
					enum perfetto_sample_stream_kind stream)
{
	struct protobuf_writer *writer = &trace->writer;

	protobuf_open_message(writer, TRACE_FIELD_PACKET);
	protobuf_write_uint(writer, PACKET_FIELD_SEQUENCE_ID,
			    perfetto_get_sample_sequence_id(process, stream));
	protobuf_write_uint(writer, PACKET_FIELD_SEQUENCE_FLAGS,
			    SEQUENCE_FLAG_STATE_CLEARED | SEQUENCE_FLAG_NEEDS_STATE);
	write_sample_sequence_defaults(writer, stream);
	if (stream == PERFETTO_STREAM_TIME_SAMPLES) {
		protobuf_open_message(writer, PACKET_FIELD_INTERNED_DATA);
		write_sample_counter_definition(writer, INTERNED_DATA_FIELD_COUNTERS, 1, "blocked",
						"blocked ns");
		write_sample_counter_definition(writer, INTERNED_DATA_FIELD_COUNTERS, 2, "runnable",
						"runnable ns");
		protobuf_close_message(writer);
	}
	protobuf_close_message(writer);
}

static bool mark_interned_if_new(uint32_t *table, uint32_t index, uint32_t sequence)
{
	if (table[index] == sequence)
		return false;
	table[index] = sequence;
	return true;
}

static void write_interned_text(struct protobuf_writer *writer, unsigned field, uint32_t iid,
				const char *text)
{
	protobuf_open_message(writer, field);
	protobuf_write_uint(writer, 1, iid);
	protobuf_write_string(writer, 2, text);
	protobuf_close_message(writer);
}

/* Paths are lists of components that readers join with "/": ours is one component, without its
 * leading slash. */
static void write_interned_mapping(struct protobuf_writer *writer,
				   const struct model_module *module, uint32_t iid)
{
	const char *path = module->path[0] == '/' ? module->path + 1 : module->path;

	if (module->build_id_size != 0) {
		protobuf_open_message(writer, INTERNED_DATA_FIELD_BUILD_IDS);
		protobuf_write_uint(writer, 1, iid);
		protobuf_write_bytes(writer, 2, module->build_id,
				     module->build_id_size < sizeof(module->build_id)
					     ? module->build_id_size
					     : sizeof(module->build_id));
		protobuf_close_message(writer);
	}
	write_interned_text(writer, INTERNED_DATA_FIELD_MAPPING_PATHS, iid, path);
	protobuf_open_message(writer, INTERNED_DATA_FIELD_MAPPINGS);
	protobuf_write_uint(writer, 1, iid);
	if (module->build_id_size != 0)
		protobuf_write_uint(writer, 2, iid);
	protobuf_write_uint(writer, 3, module->file_offset);
	protobuf_write_uint(writer, 4, module->start);
	protobuf_write_uint(writer, 5, module->end);
	protobuf_write_uint(writer, 7, iid);
	protobuf_write_uint(writer, 8, module->file_offset);
	protobuf_close_message(writer);
}

static void write_interned_frame(struct perfetto_trace *trace,
				 struct perfetto_interning_sequence_tables *interned,
				 uint32_t sequence, uint32_t index)
{
	struct protobuf_writer *writer = &trace->writer;
	const struct model_frame *frame = &trace->session->frames[index];
	uint32_t source = trace->source_path_id_of_frame[index];

	if (mark_interned_if_new(interned->functions, frame->function_id, sequence))
		write_interned_text(writer, INTERNED_DATA_FIELD_FUNCTION_NAMES,
				    frame->function_id + 1, frame->function);
	if (source != MODEL_ENTRY_INDEX_NONE &&
	    mark_interned_if_new(interned->sources, source, sequence))
		write_interned_text(writer, INTERNED_DATA_FIELD_SOURCE_PATHS, source + 1,
				    frame->file);
	if (frame->module != MODEL_ENTRY_INDEX_NONE &&
	    mark_interned_if_new(interned->modules, frame->module, sequence))
		write_interned_mapping(writer, &trace->session->modules[frame->module],
				       frame->module + 1);
	protobuf_open_message(writer, INTERNED_DATA_FIELD_FRAMES);
	protobuf_write_uint(writer, 1, index + 1);
	protobuf_write_uint(writer, 2, frame->function_id + 1);
	if (frame->module != MODEL_ENTRY_INDEX_NONE)
		protobuf_write_uint(writer, 3, frame->module + 1);
	protobuf_write_uint(writer, 4, frame->relative_pc);
	if (source != MODEL_ENTRY_INDEX_NONE)
		protobuf_write_uint(writer, 5, source + 1);
	if (frame->line != 0)
		protobuf_write_uint(writer, 6, frame->line);
	if (frame->kind != FRAME_SYNTHETIC && frame->kind != FRAME_THREAD_STATE &&
	    frame->kind != FRAME_INTERPRETED && frame->kind != FRAME_DEVICE_WORK)
		protobuf_write_uint(writer, 7,
				    frame->kind == FRAME_JIT ? PERFETTO_FRAME_KIND_JIT
							     : PERFETTO_FRAME_KIND_NATIVE);
	protobuf_close_message(writer);
}

static size_t collect_stack_frames(struct perfetto_trace *trace, uint32_t node)
{
	size_t length = 0;

	for (; node != MODEL_ENTRY_INDEX_NONE; node = trace->session->nodes[node].parent)
		trace->path[length++] = trace->session->nodes[node].frame;
	return length;
}

void perfetto_write_interned_stack(struct perfetto_trace *trace, uint32_t process,
				   enum perfetto_sample_stream_kind stream, uint32_t node)
{
	struct protobuf_writer *writer = &trace->writer;
	struct perfetto_interning_sequence_tables *interned = &trace->interning_tables[stream];
	uint32_t sequence = perfetto_get_sample_sequence_id(process, stream);

	if ((trace->begun[process] & 1u << stream) == 0) {
		trace->begun[process] |= (uint8_t)(1u << stream);
		write_sample_sequence_begin(trace, process, stream);
	}
	size_t length = collect_stack_frames(trace, node);
	interned->nodes[node] = sequence;
	protobuf_open_message(writer, TRACE_FIELD_PACKET);
	protobuf_write_uint(writer, PACKET_FIELD_SEQUENCE_ID, sequence);
	protobuf_write_uint(writer, PACKET_FIELD_SEQUENCE_FLAGS, SEQUENCE_FLAG_NEEDS_STATE);
	protobuf_open_message(writer, PACKET_FIELD_INTERNED_DATA);
	for (size_t i = 0; i < length; i++) {
		if (mark_interned_if_new(interned->frames, trace->path[i], sequence))
			write_interned_frame(trace, interned, sequence, trace->path[i]);
	}
	protobuf_open_message(writer, INTERNED_DATA_FIELD_CALLSTACKS);
	protobuf_write_uint(writer, 1, node + 1);
	while (length-- > 0)
		protobuf_write_uint(writer, 2, trace->path[length] + 1);
	protobuf_close_message(writer);
	protobuf_close_message(writer);
	protobuf_close_message(writer);
}
