/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A profile for Firefox Profiler (https://profiler.firefox.com), in its processed format: threads
 * with samples, whose weights are of the measure and which carry their CPU time as well, and calls
 * of regions as markers.
 */
#include "output/exchange/gecko.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/regions/regions.h"
#include "output/incomplete/incomplete.h"
#include "output/region_intervals.h"

#define SAMPLES_MAX        1000000u
#define MARKERS_MAX        200000u
#define PROCESSED_VERSION  60
#define GECKO_VERSION      31
#define NAME_BYTES         512u
#define MARKER_INSTANT     0
#define MARKER_INTERVAL    1
#define MARKER_TYPE_REGION "KymoRegion"

/* The longest calls of regions, by thread. */
struct marker_list {
	const struct timed_samples *samples;
	struct region_interval *intervals; /* their `thread` is a group */
	size_t count, capacity;
	uint64_t least_ns, dropped; /* shorter ones are left out; how many */
};

static uint64_t get_length(const struct region_interval *interval)
{
	return interval->end_ns > interval->begin_ns ? interval->end_ns - interval->begin_ns : 0;
}

static void drop_shortest(struct marker_list *list)
{
	size_t kept = 0;

	list->least_ns = list->least_ns == 0 ? 1000 : list->least_ns * 2;
	for (size_t i = 0; i < list->count; i++) {
		if (get_length(&list->intervals[i]) >= list->least_ns)
			list->intervals[kept++] = list->intervals[i];
	}
	list->dropped += list->count - kept;
	list->count = kept;
}

static int add_interval(const struct region_interval *interval, void *context)
{
	struct marker_list *list = context;

	if (get_length(interval) < list->least_ns) {
		list->dropped++;
		return 0;
	}
	while (list->count >= MARKERS_MAX)
		drop_shortest(list);
	if (list->count == list->capacity) {
		size_t capacity = list->capacity * 2 + 256;
		struct region_interval *intervals =
			reallocarray(list->intervals, capacity, sizeof(*intervals));
		if (intervals == NULL)
			return -ENOMEM;
		list->intervals = intervals;
		list->capacity = capacity;
	}
	list->intervals[list->count] = *interval;
	list->intervals[list->count++].thread = list->samples->group_of_thread[interval->thread];
	return 0;
}

static int compare_intervals_by_thread(const void *left, const void *right)
{
	const struct region_interval *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return a->end_ns > b->end_ns ? -1 : a->end_ns < b->end_ns;
}

/* ---- numbers ---- */

/* ms, exact to the ns. */
static void put_ms(struct json_writer *json, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
	json_put_digits(json, key, text);
}

static uint64_t get_time_since_start(const struct session *session, uint64_t time_ns)
{
	if (time_ns > session->end_ns)
		time_ns = session->end_ns;
	return time_ns > session->start_ns ? time_ns - session->start_ns : 0;
}

/* ---- meta ---- */

static void put_note(struct json_writer *json, const char *label, const char *text)
{
	json_object_begin(json, NULL);
	json_put_text(json, "label", label);
	json_put_text(json, "format", "string");
	json_put_text(json, "value", text);
	json_object_end(json);
}

static void put_incomplete_note(void *context, const char *text)
{
	put_note(context, "Incomplete", text);
}

/* What the viewer shows as more information on the profile: what it has, and what is missing. */
static void write_notes(struct gecko_writer *writer, const struct marker_list *markers)
{
	const struct session *session = writer->session;
	struct json_writer *json = &writer->json;
	char text[200];

	json_array_begin(json, "extra");
	json_object_begin(json, NULL);
	json_put_text(json, "label", "kymo");
	json_array_begin(json, "entries");
	put_note(json, "Weights", view_measure_get_name(writer->measure));
	if (session->has_only_part_of_time)
		put_note(json, "Time", "the selected part of the run");
	if (writer->samples.span_ns != 0) {
		snprintf(text, sizeof(text),
			 "of one thread and stack within %" PRIu64 " ms are added up",
			 writer->samples.span_ns / 1000000);
		put_note(json, "Samples", text);
	}
	if (markers->dropped != 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " shorter than %" PRIu64 " us are left out",
			 markers->dropped, markers->least_ns / 1000);
		put_note(json, "Regions", text);
	}
	incomplete_visit(session, false, put_incomplete_note, json);
	json_array_end(json);
	json_object_end(json);
	json_array_end(json);
}

static void write_marker_schema(struct json_writer *json)
{
	json_array_begin(json, "markerSchema");
	json_object_begin(json, NULL);
	json_put_text(json, "name", MARKER_TYPE_REGION);
	json_put_text(json, "tooltipLabel", "{marker.name}");
	json_put_text(json, "tableLabel", "{marker.data.category}");
	json_put_text(json, "chartLabel", "{marker.name}");
	json_array_begin(json, "display");
	json_put_text(json, NULL, "marker-chart");
	json_put_text(json, NULL, "marker-table");
	json_put_text(json, NULL, "timeline-overview");
	json_array_end(json);
	json_array_begin(json, "fields");
	json_object_begin(json, NULL);
	json_put_text(json, "key", "category");
	json_put_text(json, "label", "Category");
	json_put_text(json, "format", "string");
	json_object_end(json);
	json_array_end(json);
	json_object_end(json);
	json_array_end(json);
}

static void write_meta(struct gecko_writer *writer, const struct marker_list *markers)
{
	const struct session *session = writer->session;
	struct json_writer *json = &writer->json;

	json_object_begin(json, "meta");
	json_put_count(json, "version", GECKO_VERSION);
	json_put_count(json, "preprocessedProfileVersion", PROCESSED_VERSION);
	json_put_count(json, "interval", 1);
	put_ms(json, "startTime", exchange_get_start_realtime_ns(session));
	json_put_count(json, "processType", 0);
	json_put_text(json, "product", session->command_line);
	json_put_text(json, "importedFrom", "kymo " KYMO_VERSION);
	json_put_count(json, "stackwalk", 1);
	json_put_boolean(json, "debug", false);
	json_put_text(json, "platform", "X11");
	json_put_text(json, "oscpu", "Linux x86_64");
	json_put_boolean(json, "symbolicated", true);
	json_put_boolean(json, "usesOnlyOneStackType", true);
	json_put_boolean(json, "sourceCodeIsNotOnSearchfox", true);
	json_object_begin(json, "sampleUnits");
	json_put_text(json, "time", "ms");
	json_put_text(json, "eventDelay", "ms");
	json_put_text(json, "threadCPUDelta", "ns");
	json_object_end(json);
	gecko_write_categories(writer);
	write_marker_schema(json);
	write_notes(writer, markers);
	json_object_end(json);
}

/* ---- threads ---- */

static void write_weights(struct gecko_writer *writer, const struct timed_sample *samples,
			  size_t count)
{
	struct json_writer *json = &writer->json;
	bool is_time = writer->measure != VIEW_MEASURE_COUNTER_EVENTS;

	json_array_begin(json, "weight");
	for (size_t i = 0; i < count; i++) {
		if (is_time)
			put_ms(json, NULL, samples[i].weight);
		else
			json_put_count(json, NULL, samples[i].weight);
	}
	json_array_end(json);
	json_put_text(json, "weightType", is_time ? "tracing-ms" : "samples");
	if (!is_time)
		return;
	json_array_begin(json, "threadCPUDelta");
	for (size_t i = 0; i < count; i++)
		json_put_count(json, NULL,
			       samples[i].source == SPOOL_SOURCE_CPU ? samples[i].weight : 0);
	json_array_end(json);
}

static void write_samples(struct gecko_writer *writer, const struct timed_sample *samples,
			  size_t count)
{
	struct json_writer *json = &writer->json;

	json_object_begin(json, "samples");
	json_array_begin(json, "stack");
	for (size_t i = 0; i < count; i++)
		json_put_count(json, NULL, gecko_get_stack(writer, &samples[i]));
	json_array_end(json);
	json_array_begin(json, "time");
	for (size_t i = 0; i < count; i++)
		put_ms(json, NULL, samples[i].time_ns);
	json_array_end(json);
	write_weights(writer, samples, count);
	json_put_count(json, "length", count);
	json_object_end(json);
}

static void write_marker_data(struct gecko_writer *writer, const struct region_interval *markers,
			      size_t count)
{
	const struct model_regions *regions = session_get_regions(writer->session);
	struct json_writer *json = &writer->json;

	json_array_begin(json, "data");
	for (size_t i = 0; i < count; i++) {
		json_object_begin(json, NULL);
		json_put_text(json, "type", MARKER_TYPE_REGION);
		json_put_text(json, "category", regions->regions[markers[i].region].category);
		json_object_end(json);
	}
	json_array_end(json);
	json_array_begin(json, "name");
	for (size_t i = 0; i < count; i++)
		json_put_count(
			json, NULL,
			gecko_get_string_number(writer, regions->regions[markers[i].region].name));
	json_array_end(json);
}

static void write_markers(struct gecko_writer *writer, const struct region_interval *markers,
			  size_t count)
{
	const struct session *session = writer->session;
	struct json_writer *json = &writer->json;

	json_object_begin(json, "markers");
	write_marker_data(writer, markers, count);
	json_array_begin(json, "startTime");
	for (size_t i = 0; i < count; i++)
		put_ms(json, NULL, get_time_since_start(session, markers[i].begin_ns));
	json_array_end(json);
	json_array_begin(json, "endTime");
	for (size_t i = 0; i < count; i++)
		put_ms(json, NULL, get_time_since_start(session, markers[i].end_ns));
	json_array_end(json);
	json_array_begin(json, "phase");
	for (size_t i = 0; i < count; i++)
		json_put_count(json, NULL, markers[i].is_mark ? MARKER_INSTANT : MARKER_INTERVAL);
	json_array_end(json);
	json_array_begin(json, "category");
	for (size_t i = 0; i < count; i++)
		json_put_count(json, NULL, GECKO_OTHER);
	json_array_end(json);
	json_put_count(json, "length", count);
	json_object_end(json);
}

static void put_end_ms(struct json_writer *json, const struct session *session, const char *key,
		       uint64_t end_ns)
{
	if (end_ns >= session->end_ns)
		json_put_null(json, key);
	else
		put_ms(json, key, get_time_since_start(session, end_ns));
}

/* The first thread of a process in the file stands for the process in the viewer. */
static void write_thread_head(struct gecko_writer *writer, uint32_t group)
{
	const struct session *session = writer->session;
	struct json_writer *json = &writer->json;
	char name[NAME_BYTES], number[32];
	uint32_t process;
	const struct model_thread *thread = timed_samples_get_thread(session, group, &process);
	const struct model_process *of = &session->processes[process];

	json_put_text(json, "processType", "default");
	snprintf(name, sizeof(name), "%s", thread != NULL ? thread->name : "other threads");
	json_put_text(json, "name", name);
	json_put_text(json, "processName", of->name);
	snprintf(number, sizeof(number), "%" PRIu32, of->pid);
	if (of->image != 0) /* another program of the same process */
		snprintf(number, sizeof(number), "%" PRIu32 ".%" PRIu32, of->pid, of->image);
	json_put_text(json, "pid", number);
	if (thread != NULL)
		json_put_count(json, "tid", thread->tid);
	else
		json_put_text(json, "tid", "others");
	json_put_boolean(json, "isMainThread", thread != NULL && thread->tid == of->pid);
	json_put_boolean(json, "showMarkersInTimeline", true);
	put_ms(json, "processStartupTime", get_time_since_start(session, of->start_ns));
	put_end_ms(json, session, "processShutdownTime", of->end_ns);
	put_ms(json, "registerTime",
	       get_time_since_start(session, thread != NULL ? thread->start_ns : of->start_ns));
	put_end_ms(json, session, "unregisterTime", thread != NULL ? thread->end_ns : of->end_ns);
	json_array_begin(json, "pausedRanges");
	json_array_end(json);
}

/* Threads with samples or calls of regions; both lists are in order of the groups. */
static void write_threads(struct gecko_writer *writer, const struct marker_list *markers)
{
	const struct timed_samples *samples = &writer->samples;
	size_t sample = 0, marker = 0;

	json_array_begin(&writer->json, "threads");
	for (uint32_t group = 0; group < samples->group_count; group++) {
		size_t first_sample = sample, first_marker = marker;

		while (sample < samples->count && samples->samples[sample].group == group)
			sample++;
		while (marker < markers->count && markers->intervals[marker].thread == group)
			marker++;
		if (sample == first_sample && marker == first_marker)
			continue;
		json_object_begin(&writer->json, NULL);
		write_thread_head(writer, group);
		write_samples(writer, samples->samples + first_sample, sample - first_sample);
		write_markers(writer, markers->intervals + first_marker, marker - first_marker);
		json_object_end(&writer->json);
	}
	json_array_end(&writer->json);
}

static int write_profile(struct gecko_writer *writer, struct session *session,
			 struct problem *problem)
{
	struct marker_list markers = {.samples = &writer->samples};
	int error = gecko_tables_init(writer);

	if (error == 0)
		error = region_intervals_visit(session, add_interval, &markers, problem);
	if (error == 0 && markers.count != 0)
		qsort(markers.intervals, markers.count, sizeof(*markers.intervals),
		      compare_intervals_by_thread);
	if (error == 0) {
		json_object_begin(&writer->json, NULL);
		writer->json.compact_from_depth = 1; /* all of it: columns are long */
		write_meta(writer, &markers);
		gecko_write_libraries(writer);
		write_threads(writer, &markers);
		error = gecko_write_shared_tables(writer);
		json_object_end(&writer->json);
	}
	free(markers.intervals);
	return error;
}

static int output_write_gecko(struct session *session, const struct output_options *options,
			      FILE *stream, struct problem *problem)
{
	struct gecko_writer writer = {.session = session,
				      .measure = exchange_get_measure(session, options)};

	problem->text[0] = 0;
	json_writer_init(&writer.json, stream);
	int error =
		timed_samples_init(&writer.samples, session, writer.measure, SAMPLES_MAX, problem);
	if (error == 0)
		error = write_profile(&writer, session, problem);
	if (error == 0)
		error = json_writer_finish(&writer.json, problem);
	gecko_tables_deinit(&writer);
	timed_samples_deinit(&writer.samples);
	return exchange_finish(stream, error, "the profile for Firefox Profiler", problem);
}

const struct output_format output_format_gecko = {
	.name = "gecko",
	.file_name = "profile.gecko.json",
	.description = "Firefox Profiler: threads, samples, regions",
	.write = output_write_gecko,
};
