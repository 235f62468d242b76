/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Packets of region events: the sequence of a thread, names before their first use, one packet an
 * event. Source lines of functions are interned source locations, which cost four bytes a begin.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/perfetto/regions.h"

enum {
	INTERNED_DATA_FIELD_CATEGORIES = 1,
	INTERNED_DATA_FIELD_EVENT_NAMES = 2,
	INTERNED_DATA_FIELD_VALUE_NAMES = 3,
	INTERNED_DATA_FIELD_SOURCE_LOCATIONS = 4,

	PACKET_DEFAULTS_FIELD_TRACK_EVENT = 11,
	PACKET_DEFAULTS_FIELD_CLOCK_ID = 58,
	TRACK_EVENT_DEFAULTS_FIELD_TRACK_UUID = 11,

	/* The first of the clocks that belong to one sequence. */
	SEQUENCE_CLOCK_ID = 64,
	CLOCK_ID_BOOTTIME = 6,

	/* More names of values than programs have; further ones are written out each time. */
	VALUE_NAMES_MAX = 1 << 16,
	EVENT_NUMBERED_VALUES_MAX = 32, /* of one event */
	/* The largest plain event: all parts are there, each number ten bytes. */
	PLAIN_EVENT_BYTES_MAX = 96,
};

static int intern_category_names(struct perfetto_region_name_tables *names,
				 const struct model_regions *model)
{
	for (uint32_t i = 0; i < model->region_count; i++) {
		int error =
			strings_find_or_add(&names->category_strings, model->regions[i].category,
					    &names->category_of_region[i]);
		if (error != 0)
			return error;
	}
	names->category_sent_generation =
		calloc((size_t)names->category_strings.count + 1, sizeof(uint32_t));
	return names->category_sent_generation != NULL ? 0 : -ENOMEM;
}

int perfetto_region_writer_init(struct perfetto_region_writer *writer, struct perfetto_trace *trace)
{
	const struct model_regions *model = session_get_regions(trace->session);
	struct perfetto_region_name_tables *names = &writer->names;
	size_t count = (size_t)model->region_count + 1;

	*writer = (struct perfetto_region_writer){.trace = trace};
	strings_init(&names->category_strings);
	strings_init(&names->value_strings);
	names->name_sent_generation = calloc(count, sizeof(uint32_t));
	names->category_of_region = calloc(count, sizeof(uint32_t));
	names->value_sent_generation = calloc(VALUE_NAMES_MAX, sizeof(uint32_t));
	if (names->name_sent_generation == NULL || names->category_of_region == NULL ||
	    names->value_sent_generation == NULL || intern_category_names(names, model) != 0)
		return problem_set(trace->problem, -ENOMEM, "no memory for the Perfetto trace");
	return 0;
}

void perfetto_region_writer_deinit(struct perfetto_region_writer *writer)
{
	struct perfetto_region_name_tables *names = &writer->names;

	for (uint32_t i = 0; i < names->value_strings.count; i++)
		free((void *)(uintptr_t)names->value_strings.text[i]);
	strings_deinit(&names->value_strings);
	strings_deinit(&names->category_strings);
	free(names->name_sent_generation);
	free(names->category_of_region);
	free(names->category_sent_generation);
	free(names->value_sent_generation);
}

static void write_clock_reading(struct protobuf_writer *out, unsigned clock, uint64_t time_ns,
				bool incremental)
{
	protobuf_open_message(out, 1);
	protobuf_write_uint(out, 1, clock);
	protobuf_write_uint(out, 2, time_ns);
	if (incremental)
		protobuf_write_uint(out, 3, 1);
	protobuf_close_message(out);
}

/* From here on, times of the sequence are differences that begin with `time_ns`. */
static void write_sequence_clock_snapshot(struct protobuf_writer *out, uint64_t time_ns)
{
	protobuf_open_message(out, PACKET_FIELD_CLOCK_SNAPSHOT);
	write_clock_reading(out, SEQUENCE_CLOCK_ID, time_ns, true);
	write_clock_reading(out, CLOCK_ID_BOOTTIME, time_ns, false);
	protobuf_close_message(out);
}

void perfetto_region_start_thread_sequence(struct perfetto_region_writer *writer, uint32_t thread,
					   uint64_t time_ns)
{
	struct perfetto_trace *trace = writer->trace;
	struct protobuf_writer *out = &trace->writer;

	writer->names.generation++;
	writer->sequence =
		perfetto_get_sample_sequence_id(trace->session->process_count, 0) + thread;
	writer->last_packet_time_ns = time_ns;
	protobuf_open_message(out, TRACE_FIELD_PACKET);
	protobuf_write_uint(out, PACKET_FIELD_SEQUENCE_ID, writer->sequence);
	protobuf_write_uint(out, PACKET_FIELD_SEQUENCE_FLAGS,
			    SEQUENCE_FLAG_STATE_CLEARED | SEQUENCE_FLAG_NEEDS_STATE);
	protobuf_open_message(out, PACKET_FIELD_DEFAULTS);
	protobuf_open_message(out, PACKET_DEFAULTS_FIELD_TRACK_EVENT);
	protobuf_write_uint(out, TRACK_EVENT_DEFAULTS_FIELD_TRACK_UUID,
			    perfetto_get_thread_track_uuid(trace, thread));
	protobuf_close_message(out);
	protobuf_write_uint(out, PACKET_DEFAULTS_FIELD_CLOCK_ID, SEQUENCE_CLOCK_ID);
	protobuf_close_message(out);
	write_sequence_clock_snapshot(out, time_ns);
	protobuf_close_message(out);
}

/* The number of a value's name, MODEL_ENTRY_INDEX_NONE where it has none. */
static uint32_t find_or_add_value_name(struct perfetto_region_writer *writer, const char *name)
{
	struct string_table *strings = &writer->names.value_strings;
	uint32_t known = strings->count, number;

	if (known == VALUE_NAMES_MAX || strings_find_or_add(strings, name, &number) != 0)
		return MODEL_ENTRY_INDEX_NONE;
	if (number == known) {
		char *copy = strdup(name);
		if (copy == NULL)
			writer->trace->writer.error = -ENOMEM;
		strings->text[number] = copy;
	}
	return number;
}

static void write_interned_text(struct protobuf_writer *out, unsigned field, uint32_t iid,
				const char *text)
{
	protobuf_open_message(out, field);
	protobuf_write_uint(out, 1, iid);
	protobuf_write_string(out, 2, text);
	protobuf_close_message(out);
}

static void write_interned_region(struct perfetto_region_writer *writer, uint32_t index)
{
	struct perfetto_region_name_tables *names = &writer->names;
	struct protobuf_writer *out = &writer->trace->writer;
	const struct model_region *region =
		&session_get_regions(writer->trace->session)->regions[index];
	uint32_t category = names->category_of_region[index];

	names->name_sent_generation[index] = names->generation;
	if (names->category_sent_generation[category] != names->generation) {
		names->category_sent_generation[category] = names->generation;
		write_interned_text(out, INTERNED_DATA_FIELD_CATEGORIES, category + 1,
				    region->category);
	}
	write_interned_text(out, INTERNED_DATA_FIELD_EVENT_NAMES, index + 1, region->name);
	if (region->file == NULL)
		return;
	protobuf_open_message(out, INTERNED_DATA_FIELD_SOURCE_LOCATIONS);
	protobuf_write_uint(out, 1, index + 1);
	protobuf_write_string(out, 2, region->file);
	protobuf_write_string(out, 3, region->name);
	if (region->line != 0)
		protobuf_write_uint(out, 4, region->line);
	protobuf_close_message(out);
}

/* Numbers the names of the event's values and says whether anything of it was not sent yet. */
static bool number_names_and_check_if_new(struct perfetto_region_writer *writer,
					  const struct perfetto_region_event *event,
					  uint32_t *numbers)
{
	const struct perfetto_region_name_tables *names = &writer->names;
	bool is_new = event->region != MODEL_ENTRY_INDEX_NONE &&
		      names->name_sent_generation[event->region] != names->generation;

	for (uint32_t i = 0; i < event->value_count && i < EVENT_NUMBERED_VALUES_MAX; i++) {
		numbers[i] = find_or_add_value_name(writer, event->values[i].name);
		if (numbers[i] != MODEL_ENTRY_INDEX_NONE &&
		    names->value_sent_generation[numbers[i]] != names->generation)
			is_new = true;
	}
	return is_new;
}

/* Interned data may stand in the packet that first uses it. */
static void write_interned_names(struct perfetto_region_writer *writer,
				 const struct perfetto_region_event *event, const uint32_t *numbers)
{
	struct perfetto_region_name_tables *names = &writer->names;
	struct protobuf_writer *out = &writer->trace->writer;

	protobuf_open_message(out, PACKET_FIELD_INTERNED_DATA);
	if (event->region != MODEL_ENTRY_INDEX_NONE &&
	    names->name_sent_generation[event->region] != names->generation)
		write_interned_region(writer, event->region);
	for (uint32_t i = 0; i < event->value_count && i < EVENT_NUMBERED_VALUES_MAX; i++) {
		if (numbers[i] == MODEL_ENTRY_INDEX_NONE ||
		    names->value_sent_generation[numbers[i]] == names->generation)
			continue;
		names->value_sent_generation[numbers[i]] = names->generation;
		write_interned_text(out, INTERNED_DATA_FIELD_VALUE_NAMES, numbers[i] + 1,
				    event->values[i].name);
	}
	protobuf_close_message(out);
}

static void write_value_annotation(struct perfetto_region_writer *writer,
				   const struct model_event_value *value, uint32_t number)
{
	struct protobuf_writer *out = &writer->trace->writer;

	protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
	if (number != MODEL_ENTRY_INDEX_NONE)
		protobuf_write_uint(out, ANNOTATION_FIELD_NAME_IID, number + 1);
	else
		protobuf_write_string(out, ANNOTATION_FIELD_NAME, value->name);
	switch (value->type) {
	case SPOOL_VALUE_SIGNED:
		protobuf_write_uint(out, ANNOTATION_FIELD_INT_VALUE, (uint64_t)value->number);
		break;
	case SPOOL_VALUE_UNSIGNED:
		protobuf_write_uint(out, ANNOTATION_FIELD_UINT_VALUE, (uint64_t)value->number);
		break;
	case SPOOL_VALUE_ADDRESS:
		protobuf_write_uint(out, ANNOTATION_FIELD_POINTER_VALUE, (uint64_t)value->number);
		break;
	case SPOOL_VALUE_REAL:
		protobuf_write_double(out, ANNOTATION_FIELD_DOUBLE_VALUE, value->real_number);
		break;
	case SPOOL_VALUE_TEXT:
		protobuf_write_string(out, ANNOTATION_FIELD_STRING_VALUE, value->text);
		break;
	}
	protobuf_close_message(out);
}

static void write_note_annotation(struct perfetto_region_writer *writer,
				  const struct perfetto_region_event *event)
{
	struct protobuf_writer *out = &writer->trace->writer;

	protobuf_open_message(out, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(out, ANNOTATION_FIELD_NAME, event->note_name);
	if (event->note_value != 0)
		protobuf_write_uint(out, ANNOTATION_FIELD_UINT_VALUE, event->note_value);
	else
		protobuf_write_uint(out, ANNOTATION_FIELD_BOOL_VALUE, 1);
	protobuf_close_message(out);
}

/* Times of a thread do not go back but by what clocks are converted with; a slice that seems to
 * begin before what came before it begins with that. */
static uint64_t advance_clock_to_event_time(struct perfetto_region_writer *writer, uint64_t time_ns)
{
	uint64_t passed =
		time_ns > writer->last_packet_time_ns ? time_ns - writer->last_packet_time_ns : 0;

	writer->last_packet_time_ns += passed;
	return passed;
}

static uint8_t *encode_fixed64_field(uint8_t *at, unsigned field, uint64_t value)
{
	at = protobuf_encode_varint(at, (uint64_t)field << 3 | PROTOBUF_WIRE_FIXED64);
	for (int byte = 0; byte < 8; byte++)
		*at++ = (uint8_t)(value >> (8 * byte));
	return at;
}

static uint8_t *encode_packet_head(struct perfetto_region_writer *writer, uint8_t *at,
				   uint64_t time_ns)
{
	at = protobuf_encode_uint_field(at, PACKET_FIELD_TIMESTAMP,
					advance_clock_to_event_time(writer, time_ns));
	at = protobuf_encode_uint_field(at, PACKET_FIELD_SEQUENCE_ID, writer->sequence);
	return protobuf_encode_uint_field(at, PACKET_FIELD_SEQUENCE_FLAGS,
					  SEQUENCE_FLAG_NEEDS_STATE);
}

/* The event without its values. */
static uint8_t *encode_track_event(struct perfetto_region_writer *writer, uint8_t *at,
				   const struct perfetto_region_event *event)
{
	at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_TYPE, event->type);
	if (event->track != 0)
		at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_TRACK_UUID, event->track);
	if (event->region != MODEL_ENTRY_INDEX_NONE) {
		uint32_t category = writer->names.category_of_region[event->region];
		at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_CATEGORY_IIDS, category + 1);
		at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_NAME_IID, event->region + 1);
		if (session_get_regions(writer->trace->session)->regions[event->region].file !=
		    NULL)
			at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_SOURCE_LOCATION_IID,
							event->region + 1);
	}
	if (event->flow != 0)
		at = encode_fixed64_field(at, TRACK_EVENT_FIELD_FLOWS, event->flow);
	if (event->count_track_uuid != 0) {
		at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_EXTRA_COUNTER_VALUES,
						event->count);
		at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_EXTRA_COUNTER_TRACKS,
						event->count_track_uuid);
	}
	return at;
}

/* Budget: some 60 ns for a begin or end whose names are known. */
static void write_event_without_values(struct perfetto_region_writer *writer,
				       const struct perfetto_region_event *event)
{
	struct protobuf_writer *out = &writer->trace->writer;

	if (!protobuf_reserve_bytes(out, PLAIN_EVENT_BYTES_MAX))
		return;
	uint8_t *at = out->bytes + out->used;
	*at++ = TRACE_FIELD_PACKET << 3 | PROTOBUF_WIRE_LENGTH_DELIMITED;
	uint8_t *packet_length = at++;
	at = encode_packet_head(writer, at, event->time_ns);
	*at++ = PACKET_FIELD_TRACK_EVENT << 3 | PROTOBUF_WIRE_LENGTH_DELIMITED;
	uint8_t *event_length = at++;
	at = encode_track_event(writer, at, event);
	*event_length = (uint8_t)(at - event_length - 1);
	*packet_length = (uint8_t)(at - packet_length - 1);
	protobuf_commit_bytes(out, at);
}

static void write_event_with_values(struct perfetto_region_writer *writer,
				    const struct perfetto_region_event *event)
{
	struct protobuf_writer *out = &writer->trace->writer;
	uint32_t numbers[EVENT_NUMBERED_VALUES_MAX];

	protobuf_open_message(out, TRACE_FIELD_PACKET);
	if (protobuf_reserve_bytes(out, PLAIN_EVENT_BYTES_MAX))
		out->used = (size_t)(encode_packet_head(writer, out->bytes + out->used,
							event->time_ns) -
				     out->bytes);
	if (number_names_and_check_if_new(writer, event, numbers))
		write_interned_names(writer, event, numbers);
	protobuf_open_message(out, PACKET_FIELD_TRACK_EVENT);
	if (protobuf_reserve_bytes(out, PLAIN_EVENT_BYTES_MAX))
		out->used = (size_t)(encode_track_event(writer, out->bytes + out->used, event) -
				     out->bytes);
	for (uint32_t i = 0; i < event->value_count; i++)
		write_value_annotation(writer, &event->values[i],
				       i < EVENT_NUMBERED_VALUES_MAX ? numbers[i]
								     : MODEL_ENTRY_INDEX_NONE);
	if (event->note_name != NULL)
		write_note_annotation(writer, event);
	protobuf_close_message(out);
	protobuf_close_message(out);
}

void perfetto_region_write_event(struct perfetto_region_writer *writer,
				 const struct perfetto_region_event *event)
{
	bool known = event->region == MODEL_ENTRY_INDEX_NONE ||
		     writer->names.name_sent_generation[event->region] == writer->names.generation;

	if (known && event->value_count == 0 && event->note_name == NULL)
		write_event_without_values(writer, event);
	else
		write_event_with_values(writer, event);
}

void perfetto_region_write_counter(struct perfetto_region_writer *writer, uint64_t track,
				   uint64_t time_ns, double value)
{
	struct protobuf_writer *out = &writer->trace->writer;
	bool is_integer = fabs(value) < 9e15 && value == trunc(value);
	uint64_t bits;

	if (!protobuf_reserve_bytes(out, PLAIN_EVENT_BYTES_MAX))
		return;
	memcpy(&bits, &value, sizeof(bits));
	uint8_t *at = out->bytes + out->used;
	*at++ = TRACE_FIELD_PACKET << 3 | PROTOBUF_WIRE_LENGTH_DELIMITED;
	uint8_t *packet_length = at++;
	at = encode_packet_head(writer, at, time_ns);
	*at++ = PACKET_FIELD_TRACK_EVENT << 3 | PROTOBUF_WIRE_LENGTH_DELIMITED;
	uint8_t *event_length = at++;
	at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_TYPE, TRACK_EVENT_TYPE_COUNTER);
	at = protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_TRACK_UUID, track);
	at = is_integer ? protobuf_encode_uint_field(at, TRACK_EVENT_FIELD_COUNTER_VALUE,
						     (uint64_t)(int64_t)value)
			: encode_fixed64_field(at, TRACK_EVENT_FIELD_DOUBLE_COUNTER, bits);
	*event_length = (uint8_t)(at - event_length - 1);
	*packet_length = (uint8_t)(at - packet_length - 1);
	protobuf_commit_bytes(out, at);
}
