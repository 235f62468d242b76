/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The second pass over region events: slices, marks, counters and progress points, each on its
 * track. See perfetto_regions.h.
 *
 * A counter names a quantity of its process, so all threads that set it share a track. Progress
 * points are counted by thread, because threads are walked one after the other.
 */
#include "output/perfetto_regions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Trace processors drop slices deeper than 512 and then close the wrong ones. */
	SLICE_DEPTH_MAX = 500,
	/* Track numbers that are given out here; processes begin at 1 << 32. */
	FIRST_TRACK = 16,
	PROGRESS_KINDS = SPOOL_PROGRESS_END + 1,
};

struct open_region {
	uint32_t region;
	bool is_drawn;
};

/* A track that a region has beside the thread's, made when it is first needed. */
struct region_track {
	uint32_t generation; /* of a thread; counters have one for all */
	uint32_t number;
	uint64_t count; /* progress points; open slices */
};

struct region_state {
	struct region_track apart, counter, progress[PROGRESS_KINDS];
};

struct region_walk {
	struct perfetto *trace;
	struct perfetto_survey survey;
	struct perfetto_region_writer writer;
	struct region_state *states; /* by region */
	struct open_region *open;
	size_t open_count, open_capacity;
	uint32_t thread, next_track, depth;
	uint64_t left_out; /* slices inside the open one that were too deep to draw */
	uint64_t too_deep;
	size_t next_spawn;
};

static const struct model_region *region_of(const struct region_walk *walk, uint32_t region)
{
	return &walk->trace->session->regions->regions[region];
}

/* True when the track is new and has to be described. */
static bool claim_track(struct region_walk *walk, struct region_track *track)
{
	if (track->generation == walk->writer.names.generation)
		return false;
	*track = (struct region_track){.generation = walk->writer.names.generation,
				       .number = walk->next_track++};
	return true;
}

static void describe_thread_track(struct region_walk *walk, uint32_t number, const char *format,
				  uint32_t region, bool is_counter)
{
	const struct model_thread *thread = &walk->trace->session->threads[walk->thread];
	uint64_t parent = perfetto_thread_track(walk->trace, walk->thread);
	char name[512];

	snprintf(name, sizeof(name), format, region_of(walk, region)->name, thread->name,
		 thread->tid);
	if (is_counter)
		perfetto_describe_counter(walk->trace, number, parent, name, "count");
	else
		perfetto_describe_track(walk->trace, number, parent, name);
}

/* Where slices of the region go: 0 for the thread's own track. */
static uint64_t slice_track(struct region_walk *walk, uint32_t region)
{
	struct region_track *apart = &walk->states[region].apart;

	if (!walk->survey.overlaps[region])
		return 0;
	if (claim_track(walk, apart))
		describe_thread_track(walk, apart->number, "%s (overlapping, %s %u)", region,
				      false);
	return apart->number;
}

/* False for a slice that is too deep to be drawn. */
static bool enter_slice(struct region_walk *walk, uint32_t region)
{
	uint64_t depth =
		walk->survey.overlaps[region] ? walk->states[region].apart.count++ : walk->depth++;

	if (depth < SLICE_DEPTH_MAX)
		return true;
	walk->left_out++;
	walk->too_deep++;
	return false;
}

static void leave_slice(struct region_walk *walk, uint32_t region)
{
	if (walk->survey.overlaps[region])
		walk->states[region].apart.count--;
	else
		walk->depth--;
}

/* The child that this event started, as the id of an arrow to it; 0 for none. */
static uint64_t next_flow(struct region_walk *walk, uint32_t region)
{
	if (!perfetto_region_spawns(region_of(walk, region)))
		return 0;
	if (walk->next_spawn == walk->survey.spawn_count)
		return 0;
	uint32_t child = walk->survey.spawns[walk->next_spawn++].child;
	return child != MODEL_NONE ? perfetto_process_track(walk->trace, child) : 0;
}

static int grow_open(struct region_walk *walk)
{
	size_t capacity = walk->open_capacity == 0 ? 64 : walk->open_capacity * 2;
	struct open_region *open = reallocarray(walk->open, capacity, sizeof(*open));

	if (open == NULL)
		return problem_set(walk->trace->problem, -ENOMEM,
				   "no memory for the Perfetto trace");
	walk->open = open;
	walk->open_capacity = capacity;
	return 0;
}

static int begin_region(struct region_walk *walk, const struct model_event *event)
{
	if (walk->open_count == walk->open_capacity && grow_open(walk) != 0)
		return -ENOMEM;
	uint64_t track = slice_track(walk, event->region);
	uint64_t flow = next_flow(walk, event->region);
	bool is_drawn = enter_slice(walk, event->region);

	walk->open[walk->open_count++] = (struct open_region){event->region, is_drawn};
	if (is_drawn)
		perfetto_region_write_event(
			&walk->writer,
			&(struct perfetto_region_event){
				.type = TRACK_EVENT_SLICE_BEGIN,
				.time_ns = event->time_ns,
				.region = event->region,
				.track = track,
				.flow = flow,
				.values = event->values,
				.value_count = event->value_count,
				.note = event->implied ? "began before the data" : NULL});
	return 0;
}

static void write_end(struct region_walk *walk, const struct model_event *event, uint64_t track)
{
	struct perfetto_region_event end = {.type = TRACK_EVENT_SLICE_END,
					    .time_ns = event->time_ns,
					    .region = MODEL_NONE,
					    .track = track,
					    .values = event->values,
					    .value_count = event->value_count};

	if (event->implied) {
		end.note = "not ended";
	} else if (walk->left_out != 0) {
		end.note = "deeper regions not drawn";
		end.note_value = walk->left_out;
	}
	walk->left_out = 0;
	perfetto_region_write_event(&walk->writer, &end);
}

static void end_region(struct region_walk *walk, const struct model_event *event)
{
	size_t at = walk->open_count;

	while (at > 0 && walk->open[at - 1].region != event->region)
		at--;
	if (at == 0)
		return;
	at--;
	if (walk->open[at].is_drawn)
		write_end(walk, event, slice_track(walk, event->region));
	leave_slice(walk, event->region);
	memmove(&walk->open[at], &walk->open[at + 1],
		(walk->open_count - at - 1) * sizeof(*walk->open));
	walk->open_count--;
}

static void write_whole(struct region_walk *walk, const struct model_event *event)
{
	uint64_t track = slice_track(walk, event->region);
	uint64_t flow = next_flow(walk, event->region);
	uint64_t begin_ns =
		event->duration_ns < event->time_ns ? event->time_ns - event->duration_ns : 0;

	if (enter_slice(walk, event->region)) {
		perfetto_region_write_event(
			&walk->writer,
			&(struct perfetto_region_event){.type = TRACK_EVENT_SLICE_BEGIN,
							.time_ns = begin_ns,
							.region = event->region,
							.track = track,
							.flow = flow,
							.values = event->values,
							.value_count = event->value_count});
		perfetto_region_write_event(&walk->writer, &(struct perfetto_region_event){
								   .type = TRACK_EVENT_SLICE_END,
								   .time_ns = event->time_ns,
								   .region = MODEL_NONE,
								   .track = track});
	}
	leave_slice(walk, event->region);
}

static void write_instant(struct region_walk *walk, const struct model_event *event,
			  const struct region_track *count)
{
	perfetto_region_write_event(
		&walk->writer,
		&(struct perfetto_region_event){
			.type = TRACK_EVENT_INSTANT,
			.time_ns = event->time_ns,
			.region = event->region,
			.flow = event->kind == MODEL_MARK ? next_flow(walk, event->region) : 0,
			.values = event->values,
			.value_count = event->value_count,
			.count_track = count != NULL ? count->number : 0,
			.count = count != NULL ? count->count : 0});
}

/* The instant carries the new count of its point, which saves a packet. */
static void write_progress(struct region_walk *walk, const struct model_event *event)
{
	static const char *const formats[PROGRESS_KINDS] = {
		[SPOOL_PROGRESS_POINT] = "%s (progress, %s %u)",
		[SPOOL_PROGRESS_BEGIN] = "%s begun (progress, %s %u)",
		[SPOOL_PROGRESS_END] = "%s ended (progress, %s %u)",
	};
	unsigned kind = (unsigned)event->progress < PROGRESS_KINDS ? (unsigned)event->progress : 0;
	struct region_track *track = &walk->states[event->region].progress[kind];

	if (claim_track(walk, track))
		describe_thread_track(walk, track->number, formats[kind], event->region, true);
	track->count++;
	write_instant(walk, event, track);
}

static void write_counter(struct region_walk *walk, const struct model_event *event)
{
	struct region_track *track = &walk->states[event->region].counter;

	if (!isfinite(event->counter))
		return;
	if (track->generation == 0) {
		*track = (struct region_track){.generation = 1, .number = walk->next_track++};
		perfetto_describe_counter(walk->trace, track->number,
					  perfetto_process_track(walk->trace, event->process),
					  region_of(walk, event->region)->name, NULL);
	}
	perfetto_region_write_counter(&walk->writer, track->number, event->time_ns, event->counter);
}

static void change_thread(struct region_walk *walk, const struct model_event *event)
{
	uint64_t first_ns = event->time_ns;

	if (event->kind == MODEL_REGION_WHOLE && event->duration_ns < first_ns)
		first_ns -= event->duration_ns;
	walk->thread = event->thread;
	walk->open_count = 0;
	walk->depth = 0;
	walk->left_out = 0;
	perfetto_region_begin_thread(&walk->writer, event->thread, first_ns);
}

static int each_event(const struct model_event *event, void *context)
{
	struct region_walk *walk = context;
	int error = 0;

	if (event->region >= walk->survey.region_count)
		return 0;
	if (event->thread != walk->thread)
		change_thread(walk, event);
	switch (event->kind) {
	case MODEL_REGION_BEGIN:
		error = begin_region(walk, event);
		break;
	case MODEL_REGION_END:
		end_region(walk, event);
		break;
	case MODEL_REGION_WHOLE:
		write_whole(walk, event);
		break;
	case MODEL_MARK:
		write_instant(walk, event, NULL);
		break;
	case MODEL_COUNTER:
		write_counter(walk, event);
		break;
	case MODEL_PROGRESS:
		write_progress(walk, event);
		break;
	}
	return error != 0 ? error : walk->trace->writer.error;
}

static int write_events(struct region_walk *walk)
{
	struct perfetto *trace = walk->trace;
	int error = perfetto_region_writer_init(&walk->writer, trace);

	walk->states = calloc((size_t)walk->survey.region_count + 1, sizeof(*walk->states));
	if (error == 0 && walk->states == NULL)
		error = problem_set(trace->problem, -ENOMEM, "no memory for the Perfetto trace");
	if (error == 0)
		error = session_each_region_event(trace->session, each_event, walk, trace->problem);
	if (trace->writer.error != 0)
		error = problem_set(trace->problem, trace->writer.error,
				    "cannot write the Perfetto trace: %s",
				    strerror(-trace->writer.error));
	free(walk->states);
	free(walk->open);
	perfetto_region_writer_deinit(&walk->writer);
	return error;
}

int perfetto_write_regions(struct perfetto *trace)
{
	struct region_walk walk = {.trace = trace, .thread = MODEL_NONE, .next_track = FIRST_TRACK};
	int error = perfetto_survey_regions(trace, &walk.survey);

	if (error == 0 && walk.survey.events != 0) {
		perfetto_write_spawned(trace, &walk.survey);
		error = write_events(&walk);
		trace->regions_too_deep = walk.too_deep;
	}
	perfetto_survey_deinit(&walk.survey);
	return error;
}
