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

#include "output/perfetto_regions.h"

enum {
	INTERNED_CATEGORIES = 1,
	INTERNED_EVENT_NAMES = 2,
	INTERNED_VALUE_NAMES = 3,
	INTERNED_SOURCE_LOCATIONS = 4,

	DEFAULTS_TRACK_EVENT = 11,
	DEFAULTS_CLOCK = 58,
	TRACK_EVENT_DEFAULTS_TRACK = 11,

	/* The first of the clocks that belong to one sequence. */
	CLOCK_OF_SEQUENCE = 64,
	CLOCK_ID_BOOTTIME = 6,

	/* More names of values than programs have; further ones are written out each time. */
	VALUE_NAMES_MAX = 1 << 16,
	NUMBERED_VALUES_MAX = 32, /* of one event */
	/* The largest plain event: all parts are there, each number ten bytes. */
	PLAIN_EVENT_MAX = 96,
};

static int number_categories(struct perfetto_region_names *names, const struct model_regions *model)
{
	for (uint32_t i = 0; i < model->region_count; i++) {
		int error = strings_add(&names->category_strings, model->regions[i].category,
					&names->category_of_region[i]);
		if (error != 0)
			return error;
	}
	names->categories = calloc((size_t)names->category_strings.count + 1, sizeof(uint32_t));
	return names->categories != NULL ? 0 : -ENOMEM;
}

int perfetto_region_writer_init(struct perfetto_region_writer *writer, struct perfetto *trace)
{
	const struct model_regions *model = trace->session->regions;
	struct perfetto_region_names *names = &writer->names;
	size_t count = (size_t)model->region_count + 1;

	*writer = (struct perfetto_region_writer){.trace = trace};
	strings_init(&names->category_strings);
	strings_init(&names->value_strings);
	names->names = calloc(count, sizeof(uint32_t));
	names->category_of_region = calloc(count, sizeof(uint32_t));
	names->values = calloc(VALUE_NAMES_MAX, sizeof(uint32_t));
	if (names->names == NULL || names->category_of_region == NULL || names->values == NULL ||
	    number_categories(names, model) != 0)
		return problem_set(trace->problem, -ENOMEM, "no memory for the Perfetto trace");
	return 0;
}

void perfetto_region_writer_deinit(struct perfetto_region_writer *writer)
{
	struct perfetto_region_names *names = &writer->names;

	for (uint32_t i = 0; i < names->value_strings.count; i++)
		free((void *)(uintptr_t)names->value_strings.text[i]);
	strings_deinit(&names->value_strings);
	strings_deinit(&names->category_strings);
	free(names->names);
	free(names->category_of_region);
	free(names->categories);
	free(names->values);
}

static void write_clock(struct protobuf *out, unsigned clock, uint64_t time_ns, bool incremental)
{
	protobuf_open(out, 1);
	protobuf_uint(out, 1, clock);
	protobuf_uint(out, 2, time_ns);
	if (incremental)
		protobuf_uint(out, 3, 1);
	protobuf_close(out);
}

/* From here on, times of the sequence are differences that begin with `time_ns`. */
static void write_clocks(struct protobuf *out, uint64_t time_ns)
{
	protobuf_open(out, PACKET_CLOCK_SNAPSHOT);
	write_clock(out, CLOCK_OF_SEQUENCE, time_ns, true);
	write_clock(out, CLOCK_ID_BOOTTIME, time_ns, false);
	protobuf_close(out);
}

void perfetto_region_begin_thread(struct perfetto_region_writer *writer, uint32_t thread,
				  uint64_t time_ns)
{
	struct perfetto *trace = writer->trace;
	struct protobuf *out = &trace->writer;

	writer->names.generation++;
	writer->sequence = perfetto_sequence(trace->session->process_count, 0) + thread;
	writer->last_ns = time_ns;
	protobuf_open(out, TRACE_PACKET);
	protobuf_uint(out, PACKET_SEQUENCE_ID, writer->sequence);
	protobuf_uint(out, PACKET_SEQUENCE_FLAGS, SEQUENCE_STATE_CLEARED | SEQUENCE_NEEDS_STATE);
	protobuf_open(out, PACKET_DEFAULTS);
	protobuf_open(out, DEFAULTS_TRACK_EVENT);
	protobuf_uint(out, TRACK_EVENT_DEFAULTS_TRACK, perfetto_thread_track(trace, thread));
	protobuf_close(out);
	protobuf_uint(out, DEFAULTS_CLOCK, CLOCK_OF_SEQUENCE);
	protobuf_close(out);
	write_clocks(out, time_ns);
	protobuf_close(out);
}

/* The number of a value's name, MODEL_NONE where it has none. */
static uint32_t number_value_name(struct perfetto_region_writer *writer, const char *name)
{
	struct strings *strings = &writer->names.value_strings;
	uint32_t known = strings->count, number;

	if (known == VALUE_NAMES_MAX || strings_add(strings, name, &number) != 0)
		return MODEL_NONE;
	if (number == known) {
		char *copy = strdup(name);
		if (copy == NULL)
			writer->trace->writer.error = -ENOMEM;
		strings->text[number] = copy;
	}
	return number;
}

static void write_text(struct protobuf *out, unsigned field, uint32_t iid, const char *text)
{
	protobuf_open(out, field);
	protobuf_uint(out, 1, iid);
	protobuf_string(out, 2, text);
	protobuf_close(out);
}

static void intern_region(struct perfetto_region_writer *writer, uint32_t index)
{
	struct perfetto_region_names *names = &writer->names;
	struct protobuf *out = &writer->trace->writer;
	const struct model_region *region = &writer->trace->session->regions->regions[index];
	uint32_t category = names->category_of_region[index];

	names->names[index] = names->generation;
	if (names->categories[category] != names->generation) {
		names->categories[category] = names->generation;
		write_text(out, INTERNED_CATEGORIES, category + 1, region->category);
	}
	write_text(out, INTERNED_EVENT_NAMES, index + 1, region->name);
	if (region->file == NULL)
		return;
	protobuf_open(out, INTERNED_SOURCE_LOCATIONS);
	protobuf_uint(out, 1, index + 1);
	protobuf_string(out, 2, region->file);
	protobuf_string(out, 3, region->name);
	if (region->line != 0)
		protobuf_uint(out, 4, region->line);
	protobuf_close(out);
}

/* Numbers the names of the event's values and says whether anything of it was not sent yet. */
static bool has_new_names(struct perfetto_region_writer *writer,
			  const struct perfetto_region_event *event, uint32_t *numbers)
{
	const struct perfetto_region_names *names = &writer->names;
	bool is_new =
		event->region != MODEL_NONE && names->names[event->region] != names->generation;

	for (uint32_t i = 0; i < event->value_count && i < NUMBERED_VALUES_MAX; i++) {
		numbers[i] = number_value_name(writer, event->values[i].name);
		if (numbers[i] != MODEL_NONE && names->values[numbers[i]] != names->generation)
			is_new = true;
	}
	return is_new;
}

/* Interned data may stand in the packet that first uses it. */
static void write_names(struct perfetto_region_writer *writer,
			const struct perfetto_region_event *event, const uint32_t *numbers)
{
	struct perfetto_region_names *names = &writer->names;
	struct protobuf *out = &writer->trace->writer;

	protobuf_open(out, PACKET_INTERNED_DATA);
	if (event->region != MODEL_NONE && names->names[event->region] != names->generation)
		intern_region(writer, event->region);
	for (uint32_t i = 0; i < event->value_count && i < NUMBERED_VALUES_MAX; i++) {
		if (numbers[i] == MODEL_NONE || names->values[numbers[i]] == names->generation)
			continue;
		names->values[numbers[i]] = names->generation;
		write_text(out, INTERNED_VALUE_NAMES, numbers[i] + 1, event->values[i].name);
	}
	protobuf_close(out);
}

static void write_value(struct perfetto_region_writer *writer, const struct model_value *value,
			uint32_t number)
{
	struct protobuf *out = &writer->trace->writer;

	protobuf_open(out, TRACK_EVENT_ANNOTATIONS);
	if (number != MODEL_NONE)
		protobuf_uint(out, ANNOTATION_NAME_IID, number + 1);
	else
		protobuf_string(out, ANNOTATION_NAME, value->name);
	switch (value->type) {
	case SPOOL_VALUE_SIGNED:
		protobuf_uint(out, ANNOTATION_INT, (uint64_t)value->number);
		break;
	case SPOOL_VALUE_UNSIGNED:
		protobuf_uint(out, ANNOTATION_UINT, (uint64_t)value->number);
		break;
	case SPOOL_VALUE_ADDRESS:
		protobuf_uint(out, ANNOTATION_POINTER, (uint64_t)value->number);
		break;
	case SPOOL_VALUE_REAL:
		protobuf_double(out, ANNOTATION_DOUBLE, value->real);
		break;
	case SPOOL_VALUE_TEXT:
		protobuf_string(out, ANNOTATION_STRING, value->text);
		break;
	}
	protobuf_close(out);
}

static void write_note(struct perfetto_region_writer *writer,
		       const struct perfetto_region_event *event)
{
	struct protobuf *out = &writer->trace->writer;

	protobuf_open(out, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(out, ANNOTATION_NAME, event->note);
	if (event->note_value != 0)
		protobuf_uint(out, ANNOTATION_UINT, event->note_value);
	else
		protobuf_uint(out, ANNOTATION_BOOL, 1);
	protobuf_close(out);
}

/* Times of a thread do not go back but by what clocks are converted with; a slice that seems to
 * begin before what came before it begins with that. */
static uint64_t time_passed(struct perfetto_region_writer *writer, uint64_t time_ns)
{
	uint64_t passed = time_ns > writer->last_ns ? time_ns - writer->last_ns : 0;

	writer->last_ns += passed;
	return passed;
}

static uint8_t *put_fixed64(uint8_t *at, unsigned field, uint64_t value)
{
	at = protobuf_put_varint(at, (uint64_t)field << 3 | PROTOBUF_FIXED64);
	for (int byte = 0; byte < 8; byte++)
		*at++ = (uint8_t)(value >> (8 * byte));
	return at;
}

static uint8_t *put_head(struct perfetto_region_writer *writer, uint8_t *at, uint64_t time_ns)
{
	at = protobuf_put_uint(at, PACKET_TIMESTAMP, time_passed(writer, time_ns));
	at = protobuf_put_uint(at, PACKET_SEQUENCE_ID, writer->sequence);
	return protobuf_put_uint(at, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
}

/* The event without its values. */
static uint8_t *put_event(struct perfetto_region_writer *writer, uint8_t *at,
			  const struct perfetto_region_event *event)
{
	at = protobuf_put_uint(at, TRACK_EVENT_TYPE, event->type);
	if (event->track != 0)
		at = protobuf_put_uint(at, TRACK_EVENT_TRACK, event->track);
	if (event->region != MODEL_NONE) {
		uint32_t category = writer->names.category_of_region[event->region];
		at = protobuf_put_uint(at, TRACK_EVENT_CATEGORY_IIDS, category + 1);
		at = protobuf_put_uint(at, TRACK_EVENT_NAME_IID, event->region + 1);
		if (writer->trace->session->regions->regions[event->region].file != NULL)
			at = protobuf_put_uint(at, TRACK_EVENT_SOURCE_LOCATION_IID,
					       event->region + 1);
	}
	if (event->flow != 0)
		at = put_fixed64(at, TRACK_EVENT_FLOWS, event->flow);
	if (event->count_track != 0) {
		at = protobuf_put_uint(at, TRACK_EVENT_EXTRA_COUNTER_VALUES, event->count);
		at = protobuf_put_uint(at, TRACK_EVENT_EXTRA_COUNTER_TRACKS, event->count_track);
	}
	return at;
}

/* Budget: some 60 ns for a begin or end whose names are known. */
static void write_plain(struct perfetto_region_writer *writer,
			const struct perfetto_region_event *event)
{
	struct protobuf *out = &writer->trace->writer;

	if (!protobuf_room(out, PLAIN_EVENT_MAX))
		return;
	uint8_t *at = out->bytes + out->used;
	*at++ = TRACE_PACKET << 3 | PROTOBUF_LENGTH;
	uint8_t *packet_length = at++;
	at = put_head(writer, at, event->time_ns);
	*at++ = PACKET_TRACK_EVENT << 3 | PROTOBUF_LENGTH;
	uint8_t *event_length = at++;
	at = put_event(writer, at, event);
	*event_length = (uint8_t)(at - event_length - 1);
	*packet_length = (uint8_t)(at - packet_length - 1);
	protobuf_commit(out, at);
}

static void write_detailed(struct perfetto_region_writer *writer,
			   const struct perfetto_region_event *event)
{
	struct protobuf *out = &writer->trace->writer;
	uint32_t numbers[NUMBERED_VALUES_MAX];

	protobuf_open(out, TRACE_PACKET);
	if (protobuf_room(out, PLAIN_EVENT_MAX))
		out->used = (size_t)(put_head(writer, out->bytes + out->used, event->time_ns) -
				     out->bytes);
	if (has_new_names(writer, event, numbers))
		write_names(writer, event, numbers);
	protobuf_open(out, PACKET_TRACK_EVENT);
	if (protobuf_room(out, PLAIN_EVENT_MAX))
		out->used = (size_t)(put_event(writer, out->bytes + out->used, event) - out->bytes);
	for (uint32_t i = 0; i < event->value_count; i++)
		write_value(writer, &event->values[i],
			    i < NUMBERED_VALUES_MAX ? numbers[i] : MODEL_NONE);
	if (event->note != NULL)
		write_note(writer, event);
	protobuf_close(out);
	protobuf_close(out);
}

void perfetto_region_write_event(struct perfetto_region_writer *writer,
				 const struct perfetto_region_event *event)
{
	bool known = event->region == MODEL_NONE ||
		     writer->names.names[event->region] == writer->names.generation;

	if (known && event->value_count == 0 && event->note == NULL)
		write_plain(writer, event);
	else
		write_detailed(writer, event);
}

void perfetto_region_write_counter(struct perfetto_region_writer *writer, uint64_t track,
				   uint64_t time_ns, double value)
{
	struct protobuf *out = &writer->trace->writer;
	bool is_integer = fabs(value) < 9e15 && value == trunc(value);
	uint64_t bits;

	if (!protobuf_room(out, PLAIN_EVENT_MAX))
		return;
	memcpy(&bits, &value, sizeof(bits));
	uint8_t *at = out->bytes + out->used;
	*at++ = TRACE_PACKET << 3 | PROTOBUF_LENGTH;
	uint8_t *packet_length = at++;
	at = put_head(writer, at, time_ns);
	*at++ = PACKET_TRACK_EVENT << 3 | PROTOBUF_LENGTH;
	uint8_t *event_length = at++;
	at = protobuf_put_uint(at, TRACK_EVENT_TYPE, TRACK_EVENT_COUNTER_TYPE);
	at = protobuf_put_uint(at, TRACK_EVENT_TRACK, track);
	at = is_integer ? protobuf_put_uint(at, TRACK_EVENT_COUNTER, (uint64_t)(int64_t)value)
			: put_fixed64(at, TRACK_EVENT_DOUBLE_COUNTER, bits);
	*event_length = (uint8_t)(at - event_length - 1);
	*packet_length = (uint8_t)(at - packet_length - 1);
	protobuf_commit(out, at);
}
