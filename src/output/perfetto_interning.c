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

#include "output/perfetto.h"
#include "output/strings.h"

enum {
	INTERNED_FUNCTION_NAMES = 5,
	INTERNED_FRAMES = 6,
	INTERNED_CALLSTACKS = 7,
	INTERNED_BUILD_IDS = 16,
	INTERNED_MAPPING_PATHS = 17,
	INTERNED_SOURCE_PATHS = 18,
	INTERNED_MAPPINGS = 19,
	INTERNED_COUNTERS = 50,

	FRAME_KIND_NATIVE = 1,
	FRAME_KIND_JIT = 4,

	DEFAULTS_PERF_SAMPLE = 12,
	DEFAULTS_STACK_SAMPLE = 100,
	PERF_COUNTER_TASK_CLOCK = 3,
	STACK_UNIT_NANOSECONDS = 1,
};

static uint32_t *table_new(uint32_t count)
{
	return calloc((size_t)count + 1, sizeof(uint32_t));
}

static int interned_init(struct perfetto_interned *interned, const struct session *session,
			 uint32_t source_count)
{
	interned->nodes = table_new(session->node_count);
	interned->frames = table_new(session->frame_count);
	interned->functions = table_new(session->function_count);
	interned->sources = table_new(source_count);
	interned->modules = table_new(session->module_count);
	return interned->nodes != NULL && interned->frames != NULL && interned->functions != NULL &&
			       interned->sources != NULL && interned->modules != NULL
		       ? 0
		       : -ENOMEM;
}

static void interned_deinit(struct perfetto_interned *interned)
{
	free(interned->nodes);
	free(interned->frames);
	free(interned->functions);
	free(interned->sources);
	free(interned->modules);
	*interned = (struct perfetto_interned){0};
}

static int number_sources(struct perfetto *trace)
{
	const struct session *session = trace->session;
	struct strings sources;
	int error = 0;

	strings_init(&sources);
	for (uint32_t i = 0; i < session->frame_count && error == 0; i++) {
		trace->source_of_frame[i] = MODEL_NONE;
		if (session->frames[i].file != NULL)
			error = strings_add(&sources, session->frames[i].file,
					    &trace->source_of_frame[i]);
	}
	trace->source_count = sources.count;
	strings_deinit(&sources);
	return error;
}

int perfetto_interning_init(struct perfetto *trace)
{
	const struct session *session = trace->session;
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < session->node_count; i++) {
		if (session->nodes[i].depth > deepest)
			deepest = session->nodes[i].depth;
	}
	trace->path = table_new(deepest + 1);
	trace->source_of_frame = table_new(session->frame_count);
	trace->begun = calloc((size_t)session->process_count + 1, 1);
	if (trace->path == NULL || trace->source_of_frame == NULL || trace->begun == NULL)
		return -ENOMEM;
	int error = number_sources(trace);
	for (int stream = 0; stream < PERFETTO_STREAM_COUNT && error == 0; stream++)
		error = interned_init(&trace->interned[stream], session, trace->source_count);
	return error;
}

void perfetto_interning_deinit(struct perfetto *trace)
{
	for (int stream = 0; stream < PERFETTO_STREAM_COUNT; stream++)
		interned_deinit(&trace->interned[stream]);
	free(trace->path);
	free(trace->source_of_frame);
	free(trace->begun);
}

static void write_counter(struct protobuf *writer, unsigned field, uint32_t iid, const char *name,
			  const char *unit)
{
	protobuf_open(writer, field);
	if (iid != 0)
		protobuf_uint(writer, 1, iid);
	protobuf_string(writer, 2, name);
	if (unit != NULL)
		protobuf_string(writer, 4, unit);
	else
		protobuf_uint(writer, 3, STACK_UNIT_NANOSECONDS);
	protobuf_close(writer);
}

/* Custom units keep waiting time out of Perfetto's CPU profile. */
static void write_defaults(struct protobuf *writer, enum perfetto_stream stream)
{
	protobuf_open(writer, PACKET_DEFAULTS);
	if (stream == PERFETTO_STREAM_TIME) {
		protobuf_open(writer, DEFAULTS_PERF_SAMPLE);
		protobuf_open(writer, 1);
		protobuf_uint(writer, 4, PERF_COUNTER_TASK_CLOCK);
		protobuf_string(writer, 10, "cpu-time");
		protobuf_close(writer);
		protobuf_close(writer);
	}
	protobuf_open(writer, DEFAULTS_STACK_SAMPLE);
	protobuf_string(writer, 1,
			stream == PERFETTO_STREAM_TIME ? "kymo.waiting" : "kymo.overflow");
	if (stream == PERFETTO_STREAM_TIME)
		write_counter(writer, 2, 0, "blocked", "blocked ns");
	else
		write_counter(writer, 2, 0, "events", "events");
	protobuf_close(writer);
	protobuf_close(writer);
}

static void begin_sequence(struct perfetto *trace, uint32_t process, enum perfetto_stream stream)
{
	struct protobuf *writer = &trace->writer;

	protobuf_open(writer, TRACE_PACKET);
	protobuf_uint(writer, PACKET_SEQUENCE_ID, perfetto_sequence(process, stream));
	protobuf_uint(writer, PACKET_SEQUENCE_FLAGS, SEQUENCE_STATE_CLEARED | SEQUENCE_NEEDS_STATE);
	write_defaults(writer, stream);
	if (stream == PERFETTO_STREAM_TIME) {
		protobuf_open(writer, PACKET_INTERNED_DATA);
		write_counter(writer, INTERNED_COUNTERS, 1, "blocked", "blocked ns");
		write_counter(writer, INTERNED_COUNTERS, 2, "runnable", "runnable ns");
		protobuf_close(writer);
	}
	protobuf_close(writer);
}

static bool claim(uint32_t *table, uint32_t index, uint32_t sequence)
{
	if (table[index] == sequence)
		return false;
	table[index] = sequence;
	return true;
}

static void write_text(struct protobuf *writer, unsigned field, uint32_t iid, const char *text)
{
	protobuf_open(writer, field);
	protobuf_uint(writer, 1, iid);
	protobuf_string(writer, 2, text);
	protobuf_close(writer);
}

/* Paths are lists of components that readers join with "/": ours is one component, without its
 * leading slash. */
static void write_module(struct protobuf *writer, const struct model_module *module, uint32_t iid)
{
	const char *path = module->path[0] == '/' ? module->path + 1 : module->path;

	if (module->build_id_size != 0) {
		protobuf_open(writer, INTERNED_BUILD_IDS);
		protobuf_uint(writer, 1, iid);
		protobuf_bytes(writer, 2, module->build_id,
			       module->build_id_size < sizeof(module->build_id)
				       ? module->build_id_size
				       : sizeof(module->build_id));
		protobuf_close(writer);
	}
	write_text(writer, INTERNED_MAPPING_PATHS, iid, path);
	protobuf_open(writer, INTERNED_MAPPINGS);
	protobuf_uint(writer, 1, iid);
	if (module->build_id_size != 0)
		protobuf_uint(writer, 2, iid);
	protobuf_uint(writer, 3, module->file_offset);
	protobuf_uint(writer, 4, module->start);
	protobuf_uint(writer, 5, module->end);
	protobuf_uint(writer, 7, iid);
	protobuf_uint(writer, 8, module->file_offset);
	protobuf_close(writer);
}

static void write_frame(struct perfetto *trace, struct perfetto_interned *interned,
			uint32_t sequence, uint32_t index)
{
	struct protobuf *writer = &trace->writer;
	const struct model_frame *frame = &trace->session->frames[index];
	uint32_t source = trace->source_of_frame[index];

	if (claim(interned->functions, frame->function_id, sequence))
		write_text(writer, INTERNED_FUNCTION_NAMES, frame->function_id + 1,
			   frame->function);
	if (source != MODEL_NONE && claim(interned->sources, source, sequence))
		write_text(writer, INTERNED_SOURCE_PATHS, source + 1, frame->file);
	if (frame->module != MODEL_NONE && claim(interned->modules, frame->module, sequence))
		write_module(writer, &trace->session->modules[frame->module], frame->module + 1);
	protobuf_open(writer, INTERNED_FRAMES);
	protobuf_uint(writer, 1, index + 1);
	protobuf_uint(writer, 2, frame->function_id + 1);
	if (frame->module != MODEL_NONE)
		protobuf_uint(writer, 3, frame->module + 1);
	protobuf_uint(writer, 4, frame->relative_pc);
	if (source != MODEL_NONE)
		protobuf_uint(writer, 5, source + 1);
	if (frame->line != 0)
		protobuf_uint(writer, 6, frame->line);
	if (frame->kind != FRAME_SYNTHETIC)
		protobuf_uint(writer, 7,
			      frame->kind == FRAME_JIT ? FRAME_KIND_JIT : FRAME_KIND_NATIVE);
	protobuf_close(writer);
}

static size_t frames_of_stack(struct perfetto *trace, uint32_t node)
{
	size_t length = 0;

	for (; node != MODEL_NONE; node = trace->session->nodes[node].parent)
		trace->path[length++] = trace->session->nodes[node].frame;
	return length;
}

void perfetto_intern_stack(struct perfetto *trace, uint32_t process, enum perfetto_stream stream,
			   uint32_t node)
{
	struct protobuf *writer = &trace->writer;
	struct perfetto_interned *interned = &trace->interned[stream];
	uint32_t sequence = perfetto_sequence(process, stream);

	if ((trace->begun[process] & 1u << stream) == 0) {
		trace->begun[process] |= (uint8_t)(1u << stream);
		begin_sequence(trace, process, stream);
	}
	size_t length = frames_of_stack(trace, node);
	interned->nodes[node] = sequence;
	protobuf_open(writer, TRACE_PACKET);
	protobuf_uint(writer, PACKET_SEQUENCE_ID, sequence);
	protobuf_uint(writer, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
	protobuf_open(writer, PACKET_INTERNED_DATA);
	for (size_t i = 0; i < length; i++) {
		if (claim(interned->frames, trace->path[i], sequence))
			write_frame(trace, interned, sequence, trace->path[i]);
	}
	protobuf_open(writer, INTERNED_CALLSTACKS);
	protobuf_uint(writer, 1, node + 1);
	while (length-- > 0)
		protobuf_uint(writer, 2, trace->path[length] + 1);
	protobuf_close(writer);
	protobuf_close(writer);
	protobuf_close(writer);
}
