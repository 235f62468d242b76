/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The second pass over region events: slices, marks, counters and progress points, each on its
 * track. See regions.h.
 *
 * A counter names a quantity of its process, so all threads that set it share a track. Progress
 * points are counted by thread, because threads are walked one after the other.
 */
#include "output/perfetto/regions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Trace processors drop slices deeper than 512 and then close the wrong ones. */
	SLICE_DEPTH_MAX = 500,
	/* Track numbers that are given out here; processes begin at 1 << 32. */
	FIRST_REGION_TRACK_UUID = 16,
	PROGRESS_KIND_COUNT = SPOOL_PROGRESS_END + 1,
};

struct open_region_stack_entry {
	uint32_t region;
	bool is_drawn;
};

/* A track that a region has beside the thread's, made when it is first needed. */
struct region_extra_track {
	uint32_t generation; /* of a thread; counters have one for all */
	uint32_t number;
	uint64_t count; /* progress points; open slices */
};

struct region_extra_track_set {
	struct region_extra_track overlap_track, counter_track,
		progress_tracks[PROGRESS_KIND_COUNT];
};

struct region_writer_state {
	struct perfetto_trace *trace;
	struct perfetto_region_survey survey;
	struct perfetto_region_writer writer;
	struct region_extra_track_set *extra_tracks_of_region; /* by region */
	struct open_region_stack_entry *open;
	size_t open_count, open_capacity;
	uint32_t thread, next_track_uuid, depth;
	uint64_t inner_undrawn_slice_count; /* slices inside the open one that were too deep to draw
					     */
	uint64_t too_deep_slice_count;
	size_t next_spawn_call_index;
};

static const struct model_region *get_model_region(const struct region_writer_state *walk,
						   uint32_t region)
{
	return &session_get_regions(walk->trace->session)->regions[region];
}

/* True when the track is new and has to be described. */
static bool assign_track_if_new(struct region_writer_state *walk, struct region_extra_track *track)
{
	if (track->generation == walk->writer.names.generation)
		return false;
	*track = (struct region_extra_track){.generation = walk->writer.names.generation,
					     .number = walk->next_track_uuid++};
	return true;
}

static void write_region_track_descriptor(struct region_writer_state *walk, uint32_t number,
					  const char *format, uint32_t region, bool is_counter)
{
	const struct model_thread *thread = &walk->trace->session->threads[walk->thread];
	uint64_t parent = perfetto_get_thread_track_uuid(walk->trace, walk->thread);
	char name[512];

	snprintf(name, sizeof(name), format, get_model_region(walk, region)->name, thread->name,
		 thread->tid);
	if (is_counter)
		perfetto_write_counter_descriptor(walk->trace, number, parent, name, "count");
	else
		perfetto_write_track_descriptor(walk->trace, number, parent, name);
}

/* Where slices of the region go: 0 for the thread's own track. */
static uint64_t find_or_describe_region_slice_track(struct region_writer_state *walk,
						    uint32_t region)
{
	struct region_extra_track *apart = &walk->extra_tracks_of_region[region].overlap_track;

	if (!walk->survey.is_region_overlapping[region])
		return 0;
	if (assign_track_if_new(walk, apart))
		write_region_track_descriptor(walk, apart->number, "%s (overlapping, %s %u)",
					      region, false);
	return apart->number;
}

/* False for a slice that is too deep to be drawn. */
static bool enter_slice_and_check_depth(struct region_writer_state *walk, uint32_t region)
{
	uint64_t depth = walk->survey.is_region_overlapping[region]
				 ? walk->extra_tracks_of_region[region].overlap_track.count++
				 : walk->depth++;

	if (depth < SLICE_DEPTH_MAX)
		return true;
	walk->inner_undrawn_slice_count++;
	walk->too_deep_slice_count++;
	return false;
}

static void leave_slice_depth(struct region_writer_state *walk, uint32_t region)
{
	if (walk->survey.is_region_overlapping[region])
		walk->extra_tracks_of_region[region].overlap_track.count--;
	else
		walk->depth--;
}

/* The child that this event started, as the id of an arrow to it; 0 for none. */
static uint64_t take_next_spawn_flow_id(struct region_writer_state *walk, uint32_t region)
{
	if (!perfetto_region_is_spawn_call(get_model_region(walk, region)))
		return 0;
	if (walk->next_spawn_call_index == walk->survey.spawn_call_count)
		return 0;
	uint32_t child = walk->survey.spawn_calls[walk->next_spawn_call_index++].child;
	return child != MODEL_ENTRY_INDEX_NONE ? perfetto_get_process_track_uuid(walk->trace, child)
					       : 0;
}

static int grow_open_regions(struct region_writer_state *walk)
{
	size_t capacity = walk->open_capacity == 0 ? 64 : walk->open_capacity * 2;
	struct open_region_stack_entry *open = reallocarray(walk->open, capacity, sizeof(*open));

	if (open == NULL)
		return problem_set(walk->trace->problem, -ENOMEM,
				   "no memory for the Perfetto trace");
	walk->open = open;
	walk->open_capacity = capacity;
	return 0;
}

static int write_region_begin(struct region_writer_state *walk,
			      const struct model_region_event *event)
{
	if (walk->open_count == walk->open_capacity && grow_open_regions(walk) != 0)
		return -ENOMEM;
	uint64_t track = find_or_describe_region_slice_track(walk, event->region);
	uint64_t flow = take_next_spawn_flow_id(walk, event->region);
	bool is_drawn = enter_slice_and_check_depth(walk, event->region);

	walk->open[walk->open_count++] = (struct open_region_stack_entry){event->region, is_drawn};
	if (is_drawn)
		perfetto_region_write_event(
			&walk->writer,
			&(struct perfetto_region_event){
				.type = TRACK_EVENT_TYPE_SLICE_BEGIN,
				.time_ns = event->time_ns,
				.region = event->region,
				.track = track,
				.flow = flow,
				.values = event->values,
				.value_count = event->value_count,
				.note_name = event->is_implied ? "began before the data" : NULL});
	return 0;
}

static void write_slice_end(struct region_writer_state *walk,
			    const struct model_region_event *event, uint64_t track)
{
	struct perfetto_region_event end = {.type = TRACK_EVENT_TYPE_SLICE_END,
					    .time_ns = event->time_ns,
					    .region = MODEL_ENTRY_INDEX_NONE,
					    .track = track,
					    .values = event->values,
					    .value_count = event->value_count};

	if (event->is_implied) {
		end.note_name = "not ended";
	} else if (walk->inner_undrawn_slice_count != 0) {
		end.note_name = "deeper regions not drawn";
		end.note_value = walk->inner_undrawn_slice_count;
	}
	walk->inner_undrawn_slice_count = 0;
	perfetto_region_write_event(&walk->writer, &end);
}

static void write_region_end(struct region_writer_state *walk,
			     const struct model_region_event *event)
{
	size_t at = walk->open_count;

	while (at > 0 && walk->open[at - 1].region != event->region)
		at--;
	if (at == 0)
		return;
	at--;
	if (walk->open[at].is_drawn)
		write_slice_end(walk, event,
				find_or_describe_region_slice_track(walk, event->region));
	leave_slice_depth(walk, event->region);
	memmove(&walk->open[at], &walk->open[at + 1],
		(walk->open_count - at - 1) * sizeof(*walk->open));
	walk->open_count--;
}

static void write_complete_region_slice(struct region_writer_state *walk,
					const struct model_region_event *event)
{
	uint64_t track = find_or_describe_region_slice_track(walk, event->region);
	uint64_t flow = take_next_spawn_flow_id(walk, event->region);
	uint64_t begin_ns =
		event->duration_ns < event->time_ns ? event->time_ns - event->duration_ns : 0;

	if (enter_slice_and_check_depth(walk, event->region)) {
		perfetto_region_write_event(
			&walk->writer,
			&(struct perfetto_region_event){.type = TRACK_EVENT_TYPE_SLICE_BEGIN,
							.time_ns = begin_ns,
							.region = event->region,
							.track = track,
							.flow = flow,
							.values = event->values,
							.value_count = event->value_count});
		perfetto_region_write_event(
			&walk->writer,
			&(struct perfetto_region_event){.type = TRACK_EVENT_TYPE_SLICE_END,
							.time_ns = event->time_ns,
							.region = MODEL_ENTRY_INDEX_NONE,
							.track = track});
	}
	leave_slice_depth(walk, event->region);
}

static void write_instant_event(struct region_writer_state *walk,
				const struct model_region_event *event,
				const struct region_extra_track *count)
{
	perfetto_region_write_event(
		&walk->writer,
		&(struct perfetto_region_event){
			.type = TRACK_EVENT_TYPE_INSTANT,
			.time_ns = event->time_ns,
			.region = event->region,
			.flow = event->kind == MODEL_EVENT_MARK
					? take_next_spawn_flow_id(walk, event->region)
					: 0,
			.values = event->values,
			.value_count = event->value_count,
			.count_track_uuid = count != NULL ? count->number : 0,
			.count = count != NULL ? count->count : 0});
}

/* The instant carries the new count of its point, which saves a packet. */
static void write_progress_visit(struct region_writer_state *walk,
				 const struct model_region_event *event)
{
	static const char *const formats[PROGRESS_KIND_COUNT] = {
		[SPOOL_PROGRESS_POINT] = "%s (progress, %s %u)",
		[SPOOL_PROGRESS_BEGIN] = "%s begun (progress, %s %u)",
		[SPOOL_PROGRESS_END] = "%s ended (progress, %s %u)",
	};
	unsigned kind =
		(unsigned)event->progress < PROGRESS_KIND_COUNT ? (unsigned)event->progress : 0;
	struct region_extra_track *track =
		&walk->extra_tracks_of_region[event->region].progress_tracks[kind];

	if (assign_track_if_new(walk, track))
		write_region_track_descriptor(walk, track->number, formats[kind], event->region,
					      true);
	track->count++;
	write_instant_event(walk, event, track);
}

static void write_application_counter_value(struct region_writer_state *walk,
					    const struct model_region_event *event)
{
	struct region_extra_track *track =
		&walk->extra_tracks_of_region[event->region].counter_track;

	if (!isfinite(event->counter))
		return;
	if (track->generation == 0) {
		*track = (struct region_extra_track){.generation = 1,
						     .number = walk->next_track_uuid++};
		perfetto_write_counter_descriptor(
			walk->trace, track->number,
			perfetto_get_process_track_uuid(walk->trace, event->process),
			get_model_region(walk, event->region)->name, NULL);
	}
	perfetto_region_write_counter(&walk->writer, track->number, event->time_ns, event->counter);
}

static void switch_to_thread(struct region_writer_state *walk,
			     const struct model_region_event *event)
{
	uint64_t first_ns = event->time_ns;

	if (event->kind == MODEL_EVENT_REGION_COMPLETE && event->duration_ns < first_ns)
		first_ns -= event->duration_ns;
	walk->thread = event->thread;
	walk->open_count = 0;
	walk->depth = 0;
	walk->inner_undrawn_slice_count = 0;
	perfetto_region_start_thread_sequence(&walk->writer, event->thread, first_ns);
}

static int write_region_event(const struct model_region_event *event, void *context)
{
	struct region_writer_state *walk = context;
	int error = 0;

	if (event->region >= walk->survey.region_count)
		return 0;
	if (event->thread != walk->thread)
		switch_to_thread(walk, event);
	switch (event->kind) {
	case MODEL_EVENT_REGION_BEGIN:
		error = write_region_begin(walk, event);
		break;
	case MODEL_EVENT_REGION_END:
		write_region_end(walk, event);
		break;
	case MODEL_EVENT_REGION_COMPLETE:
		write_complete_region_slice(walk, event);
		break;
	case MODEL_EVENT_MARK:
		write_instant_event(walk, event, NULL);
		break;
	case MODEL_EVENT_COUNTER:
		write_application_counter_value(walk, event);
		break;
	case MODEL_EVENT_PROGRESS:
		write_progress_visit(walk, event);
		break;
	}
	return error != 0 ? error : walk->trace->writer.error;
}

static int write_region_events(struct region_writer_state *walk)
{
	struct perfetto_trace *trace = walk->trace;
	int error = perfetto_region_writer_init(&walk->writer, trace);

	walk->extra_tracks_of_region = calloc((size_t)walk->survey.region_count + 1,
					      sizeof(*walk->extra_tracks_of_region));
	if (error == 0 && walk->extra_tracks_of_region == NULL)
		error = problem_set(trace->problem, -ENOMEM, "no memory for the Perfetto trace");
	if (error == 0)
		error = session_visit_region_events(trace->session, write_region_event, walk,
						    trace->problem);
	if (trace->writer.error != 0)
		error = problem_set(trace->problem, trace->writer.error,
				    "cannot write the Perfetto trace: %s",
				    strerror(-trace->writer.error));
	free(walk->extra_tracks_of_region);
	free(walk->open);
	perfetto_region_writer_deinit(&walk->writer);
	return error;
}

int perfetto_write_regions(struct perfetto_trace *trace)
{
	struct region_writer_state walk = {.trace = trace,
					   .thread = MODEL_ENTRY_INDEX_NONE,
					   .next_track_uuid = FIRST_REGION_TRACK_UUID};
	int error = perfetto_survey_regions(trace, &walk.survey);

	if (error == 0 && walk.survey.events != 0) {
		perfetto_write_all_process_spawn_arrow_ends(trace, &walk.survey);
		error = write_region_events(&walk);
		trace->too_deep_region_count = walk.too_deep_slice_count;
	}
	perfetto_region_survey_deinit(&walk.survey);
	return error;
}
