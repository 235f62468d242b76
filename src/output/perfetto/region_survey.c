/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The first pass over region events: regions that overlap, and calls that started processes, each
 * with its child. Which child a call made is known by the pid that it returned where that was
 * recorded, else by the time at which the kernel made the child and the order of pids.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "common/array.h"
#include "output/perfetto/regions.h"

/* Start times of processes are in units of 1/100 s (proc_pid_stat(5), field 22). */
#define PROCESS_START_TICK_NS UINT64_C(10000000)
#define CLOCK_ERROR_NS_MAX    UINT64_C(1000000)
#define NEVER_NS              (UINT64_MAX / 2)

struct open_region_stack_entry {
	uint32_t region;
	size_t spawn_call_number; /* index + 1; 0: not such a call */
};

struct region_survey_state {
	struct perfetto_trace *trace;
	struct perfetto_region_survey *survey;
	struct open_region_stack_entry *open;
	size_t open_count, open_capacity, spawn_call_capacity;
	uint32_t thread;
	size_t open_mark_number; /* of the thread's last mark of such a call, whose end is not seen
				  * yet: its index + 1; 0: none */
};

bool perfetto_region_is_spawn_call(const struct model_region *region)
{
	static const char *const names[] = {"fork",        "_Fork",        "vfork",  "forkpty",
					    "posix_spawn", "posix_spawnp", "system", "popen"};

	if (strcmp(region->category, "process") != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(region->name, names[i]) == 0)
			return true;
	}
	return false;
}

/* The child's pid, where the wrapper recorded it as a value of the call. */
static uint32_t get_child_pid_from_event(const struct region_survey_state *walk,
					 const struct model_region_event *event)
{
	uint32_t own = walk->trace->session->processes[event->process].pid;

	for (uint32_t i = 0; i < event->value_count; i++) {
		const struct model_event_value *value = &event->values[i];
		if (strcmp(value->name, "pid") == 0 && value->type <= SPOOL_VALUE_UNSIGNED &&
		    value->number > 0 && value->number <= INT32_MAX && value->number != own)
			return (uint32_t)value->number;
	}
	return 0;
}

static int append_spawn_call(struct region_survey_state *walk,
			     const struct model_region_event *event, uint64_t begin_ns,
			     uint64_t end_ns)
{
	struct perfetto_region_survey *survey = walk->survey;

	if (array_reserve_one_more((void **)&survey->spawn_calls, &walk->spawn_call_capacity,
				   survey->spawn_call_count, sizeof(*survey->spawn_calls)) < 0)
		return -ENOMEM;
	survey->spawn_calls[survey->spawn_call_count++] =
		(struct perfetto_spawn_call){.process = event->process,
					     .child = MODEL_ENTRY_INDEX_NONE,
					     .begin_ns = begin_ns,
					     .end_ns = end_ns,
					     .child_pid = get_child_pid_from_event(walk, event)};
	return 0;
}

static int survey_region_begin(struct region_survey_state *walk,
			       const struct model_region_event *event)
{
	const struct session *session = walk->trace->session;
	bool spawns = perfetto_region_is_spawn_call(
		&session_get_regions(session)->regions[event->region]);

	if (array_reserve_one_more((void **)&walk->open, &walk->open_capacity, walk->open_count,
				   sizeof(*walk->open)) < 0)
		return -ENOMEM;
	if (spawns && append_spawn_call(walk, event, event->time_ns, NEVER_NS) != 0)
		return -ENOMEM;
	walk->open[walk->open_count++] = (struct open_region_stack_entry){
		event->region, spawns ? walk->survey->spawn_call_count : 0};
	return 0;
}

static void survey_region_end(struct region_survey_state *walk,
			      const struct model_region_event *event)
{
	size_t at = walk->open_count;

	while (at > 0 && walk->open[at - 1].region != event->region)
		at--;
	if (at == 0)
		return;
	at--;
	if (at != walk->open_count - 1)
		walk->survey->is_region_overlapping[event->region] = true;
	if (walk->open[at].spawn_call_number != 0) {
		struct perfetto_spawn_call *spawn =
			&walk->survey->spawn_calls[walk->open[at].spawn_call_number - 1];
		uint32_t pid = get_child_pid_from_event(walk, event);
		spawn->end_ns = event->is_implied ? NEVER_NS : event->time_ns;
		if (pid != 0)
			spawn->child_pid = pid;
	}
	memmove(&walk->open[at], &walk->open[at + 1],
		(walk->open_count - at - 1) * sizeof(*walk->open));
	walk->open_count--;
}

/* vfork comes back twice and is recorded as a mark. Its child is there before the parent goes on:
 * at the thread's next event at the latest, however long a busy machine took to begin the call. */
static void end_open_mark(struct region_survey_state *walk, uint64_t time_ns)
{
	if (walk->open_mark_number != 0)
		walk->survey->spawn_calls[walk->open_mark_number - 1].end_ns = time_ns;
	walk->open_mark_number = 0;
}

static int survey_region_event(const struct model_region_event *event, void *context)
{
	struct region_survey_state *walk = context;
	const struct model_region *region;
	int error = 0;

	if (event->region >= walk->survey->region_count)
		return 0;
	walk->survey->events++;
	region = &session_get_regions(walk->trace->session)->regions[event->region];
	if (event->thread != walk->thread) {
		walk->thread = event->thread;
		walk->open_count = 0;
		walk->open_mark_number = 0;
	}
	end_open_mark(walk, event->time_ns);
	if (event->kind == MODEL_EVENT_REGION_BEGIN)
		error = survey_region_begin(walk, event);
	else if (event->kind == MODEL_EVENT_REGION_END)
		survey_region_end(walk, event);
	else if (event->kind == MODEL_EVENT_REGION_COMPLETE &&
		 perfetto_region_is_spawn_call(region))
		error = append_spawn_call(walk, event, event->time_ns - event->duration_ns,
					  event->time_ns);
	else if (event->kind == MODEL_EVENT_MARK && perfetto_region_is_spawn_call(region)) {
		error = append_spawn_call(walk, event, event->time_ns, NEVER_NS);
		walk->open_mark_number = error == 0 ? walk->survey->spawn_call_count : 0;
	}
	return error;
}

/* Whether the process, which was made at the time that the kernel keeps to 10 ms, can be a child of
 * this call. */
static bool can_be_child_of_spawn(const struct perfetto_spawn_call *spawn,
				  const struct model_process *child)
{
	uint64_t made_ns = child->process_start * PROCESS_START_TICK_NS;

	if (spawn->begin_ns > child->start_ns)
		return false;
	if (spawn->child_pid != 0)
		return spawn->child_pid == child->pid;
	return spawn->begin_ns < made_ns + PROCESS_START_TICK_NS + CLOCK_ERROR_NS_MAX &&
	       spawn->end_ns + CLOCK_ERROR_NS_MAX > made_ns;
}

/* The call of its parent that made the process; NULL where none was recorded. */
static struct perfetto_spawn_call *find_spawn_of_child(const struct perfetto_trace *trace,
						       const struct perfetto_region_survey *survey,
						       const struct model_process *child)
{
	const struct model_process *processes = trace->session->processes;
	struct perfetto_spawn_call *best = NULL;

	for (size_t i = 0; i < survey->spawn_call_count; i++) {
		struct perfetto_spawn_call *spawn = &survey->spawn_calls[i];
		const struct model_process *parent = &processes[spawn->process];
		if (spawn->child != MODEL_ENTRY_INDEX_NONE || parent->pid != child->parent_pid ||
		    strcmp(parent->host, child->host) != 0 || !can_be_child_of_spawn(spawn, child))
			continue;
		if (spawn->child_pid != 0)
			return spawn;
		if (best == NULL || spawn->begin_ns < best->begin_ns)
			best = spawn;
	}
	return best;
}

/* The children of one parent are asked in the order of their pids, which is that of the calls: they
 * need not start in it. */
static int match_children_to_spawns(struct perfetto_trace *trace,
				    struct perfetto_region_survey *survey)
{
	const struct session *session = trace->session;
	uint32_t *first_images = calloc((size_t)trace->group_count + 1, sizeof(*first_images));

	if (first_images == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (trace->is_first_image_by_process[i])
			first_images[trace->group_of_process[i]] = i;
	}
	for (uint32_t group = 0; group < trace->group_count; group++) {
		uint32_t child = first_images[group];
		struct perfetto_spawn_call *spawn =
			find_spawn_of_child(trace, survey, &session->processes[child]);
		if (spawn != NULL)
			spawn->child = child;
	}
	free(first_images);
	return 0;
}

int perfetto_survey_regions(struct perfetto_trace *trace, struct perfetto_region_survey *ret)
{
	struct region_survey_state walk = {
		.trace = trace, .survey = ret, .thread = MODEL_ENTRY_INDEX_NONE};

	*ret = (struct perfetto_region_survey){
		.region_count = session_get_regions(trace->session)->region_count};
	ret->is_region_overlapping =
		calloc((size_t)ret->region_count + 1, sizeof(*ret->is_region_overlapping));
	if (ret->is_region_overlapping == NULL)
		return problem_set(trace->problem, -ENOMEM, "no memory for the Perfetto trace");
	int error = session_visit_region_events(trace->session, survey_region_event, &walk,
						trace->problem);
	free(walk.open);
	if (error == 0)
		error = match_children_to_spawns(trace, ret);
	if (error == -ENOMEM)
		problem_set(trace->problem, error, "no memory for the Perfetto trace");
	return error;
}

void perfetto_region_survey_deinit(struct perfetto_region_survey *survey)
{
	free(survey->is_region_overlapping);
	free(survey->spawn_calls);
	*survey = (struct perfetto_region_survey){0};
}

/* The main thread's track, where the calls of the process begin. */
static uint64_t get_main_thread_track_uuid(const struct perfetto_trace *trace, uint32_t process)
{
	const struct model_process *child = &trace->session->processes[process];

	for (uint32_t i = 0; i < child->thread_count; i++) {
		if (trace->session->threads[child->first_thread + i].tid == child->pid)
			return perfetto_get_thread_track_uuid(trace, child->first_thread + i);
	}
	return perfetto_get_process_track_uuid(trace, process);
}

static void write_process_spawn_arrow_end(struct perfetto_trace *trace,
					  const struct perfetto_spawn_call *spawn)
{
	struct protobuf_writer *writer = &trace->writer;
	const struct model_process *child = &trace->session->processes[spawn->child];
	perfetto_open_metadata_packet(trace, child->start_ns);
	protobuf_open_message(writer, PACKET_FIELD_TRACK_EVENT);
	protobuf_write_uint(writer, TRACK_EVENT_FIELD_TYPE, TRACK_EVENT_TYPE_INSTANT);
	protobuf_write_uint(writer, TRACK_EVENT_FIELD_TRACK_UUID,
			    get_main_thread_track_uuid(trace, spawn->child));
	protobuf_write_string(writer, TRACK_EVENT_FIELD_CATEGORIES, "process");
	protobuf_write_string(writer, TRACK_EVENT_FIELD_NAME, "process started");
	protobuf_write_fixed64(writer, TRACK_EVENT_FIELD_TERMINATING_FLOWS,
			       perfetto_get_process_track_uuid(trace, spawn->child));
	protobuf_open_message(writer, TRACK_EVENT_FIELD_ANNOTATIONS);
	protobuf_write_string(writer, ANNOTATION_FIELD_NAME, "parent");
	protobuf_write_uint(writer, ANNOTATION_FIELD_UINT_VALUE, child->parent_pid);
	protobuf_close_message(writer);
	protobuf_close_message(writer);
	perfetto_close_metadata_packet(trace);
}

void perfetto_write_all_process_spawn_arrow_ends(struct perfetto_trace *trace,
						 const struct perfetto_region_survey *survey)
{
	for (size_t i = 0; i < survey->spawn_call_count; i++) {
		if (survey->spawn_calls[i].child != MODEL_ENTRY_INDEX_NONE)
			write_process_spawn_arrow_end(trace, &survey->spawn_calls[i]);
	}
}
