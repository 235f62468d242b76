/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The first pass over region events: regions that overlap, and calls that started processes, each
 * with its child. Which child a call made is told by the pid that it returned where that was
 * recorded, else by the time at which the kernel made the child and the order of pids.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/perfetto_regions.h"

/* Start times of processes are in units of 1/100 s (proc_pid_stat(5), field 22). */
#define KERNEL_TICK_NS UINT64_C(10000000)
#define CLOCK_ERROR_NS UINT64_C(1000000)
#define NEVER          (UINT64_MAX / 2)

struct open_region {
	uint32_t region;
	size_t spawn; /* index + 1; 0: not such a call */
};

struct survey_walk {
	struct perfetto *trace;
	struct perfetto_survey *survey;
	struct open_region *open;
	size_t open_count, open_capacity, spawn_capacity;
	uint32_t thread;
};

/* Makes room for one more; false without memory. */
static bool make_room(void **array, size_t *capacity, size_t count, size_t size)
{
	if (count < *capacity)
		return true;
	size_t larger = *capacity == 0 ? 64 : *capacity * 2;
	void *grown = reallocarray(*array, larger, size);
	if (grown == NULL)
		return false;
	*array = grown;
	*capacity = larger;
	return true;
}

bool perfetto_region_spawns(const struct model_region *region)
{
	static const char *const names[] = {"fork",        "_Fork",        "vfork",  "forkpty",
					    "posix_spawn", "posix_spawnp", "system", "popen"};

	if (strcmp(region->category, "process") != 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(region->name, names[i]) == 0)
			return true;
	}
	return false;
}

/* The child's pid, where the wrapper recorded it as a value of the call. */
static uint32_t pid_of_child(const struct survey_walk *walk, const struct model_event *event)
{
	uint32_t own = walk->trace->session->processes[event->process].pid;

	for (uint32_t i = 0; i < event->value_count; i++) {
		const struct model_value *value = &event->values[i];
		if (strcmp(value->name, "pid") == 0 && value->type <= SPOOL_VALUE_UNSIGNED &&
		    value->number > 0 && value->number <= INT32_MAX && value->number != own)
			return (uint32_t)value->number;
	}
	return 0;
}

static int add_spawn(struct survey_walk *walk, const struct model_event *event, uint64_t begin_ns,
		     uint64_t end_ns)
{
	struct perfetto_survey *survey = walk->survey;

	if (!make_room((void **)&survey->spawns, &walk->spawn_capacity, survey->spawn_count,
		       sizeof(*survey->spawns)))
		return -ENOMEM;
	survey->spawns[survey->spawn_count++] =
		(struct perfetto_spawn){.process = event->process,
					.child = MODEL_NONE,
					.begin_ns = begin_ns,
					.end_ns = end_ns,
					.child_pid = pid_of_child(walk, event)};
	return 0;
}

static int begin_region(struct survey_walk *walk, const struct model_event *event)
{
	const struct session *session = walk->trace->session;
	bool spawns = perfetto_region_spawns(&session->regions->regions[event->region]);

	if (!make_room((void **)&walk->open, &walk->open_capacity, walk->open_count,
		       sizeof(*walk->open)))
		return -ENOMEM;
	if (spawns && add_spawn(walk, event, event->time_ns, NEVER) != 0)
		return -ENOMEM;
	walk->open[walk->open_count++] =
		(struct open_region){event->region, spawns ? walk->survey->spawn_count : 0};
	return 0;
}

static void end_region(struct survey_walk *walk, const struct model_event *event)
{
	size_t at = walk->open_count;

	while (at > 0 && walk->open[at - 1].region != event->region)
		at--;
	if (at == 0)
		return;
	at--;
	if (at != walk->open_count - 1)
		walk->survey->overlaps[event->region] = true;
	if (walk->open[at].spawn != 0) {
		struct perfetto_spawn *spawn = &walk->survey->spawns[walk->open[at].spawn - 1];
		uint32_t pid = pid_of_child(walk, event);
		spawn->end_ns = event->implied ? NEVER : event->time_ns;
		if (pid != 0)
			spawn->child_pid = pid;
	}
	memmove(&walk->open[at], &walk->open[at + 1],
		(walk->open_count - at - 1) * sizeof(*walk->open));
	walk->open_count--;
}

static int each_event(const struct model_event *event, void *context)
{
	struct survey_walk *walk = context;
	const struct model_region *region;
	int error = 0;

	if (event->region >= walk->survey->region_count)
		return 0;
	walk->survey->events++;
	region = &walk->trace->session->regions->regions[event->region];
	if (event->thread != walk->thread) {
		walk->thread = event->thread;
		walk->open_count = 0;
	}
	if (event->kind == MODEL_REGION_BEGIN)
		error = begin_region(walk, event);
	else if (event->kind == MODEL_REGION_END)
		end_region(walk, event);
	else if (event->kind == MODEL_REGION_WHOLE && perfetto_region_spawns(region))
		error = add_spawn(walk, event, event->time_ns - event->duration_ns, event->time_ns);
	else if (event->kind == MODEL_MARK && perfetto_region_spawns(region))
		error = add_spawn(walk, event, event->time_ns, event->time_ns); /* no end: vfork */
	return error;
}

/* Whether the process, which was made at the time that the kernel keeps to 10 ms, can be a child of
 * this call. A mark (vfork, which comes back twice) has no end. */
static bool can_be_child(const struct perfetto_spawn *spawn, const struct model_process *child)
{
	uint64_t made_ns = child->process_start * KERNEL_TICK_NS;

	if (spawn->begin_ns > child->start_ns)
		return false;
	if (spawn->child_pid != 0)
		return spawn->child_pid == child->pid;
	return spawn->begin_ns < made_ns + KERNEL_TICK_NS + CLOCK_ERROR_NS &&
	       (spawn->end_ns > spawn->begin_ns ? spawn->end_ns + CLOCK_ERROR_NS
						: spawn->begin_ns + KERNEL_TICK_NS) > made_ns;
}

/* The call of its parent that made the process; NULL where none was recorded. */
static struct perfetto_spawn *find_spawn(const struct perfetto *trace,
					 const struct perfetto_survey *survey,
					 const struct model_process *child)
{
	const struct model_process *processes = trace->session->processes;
	struct perfetto_spawn *best = NULL;

	for (size_t i = 0; i < survey->spawn_count; i++) {
		struct perfetto_spawn *spawn = &survey->spawns[i];
		const struct model_process *parent = &processes[spawn->process];
		if (spawn->child != MODEL_NONE || parent->pid != child->parent_pid ||
		    strcmp(parent->host, child->host) != 0 || !can_be_child(spawn, child))
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
static int match_children(struct perfetto *trace, struct perfetto_survey *survey)
{
	const struct session *session = trace->session;
	uint32_t *first_images = calloc((size_t)trace->group_count + 1, sizeof(*first_images));

	if (first_images == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (trace->is_first_image[i])
			first_images[trace->group_of_process[i]] = i;
	}
	for (uint32_t group = 0; group < trace->group_count; group++) {
		uint32_t child = first_images[group];
		struct perfetto_spawn *spawn =
			find_spawn(trace, survey, &session->processes[child]);
		if (spawn != NULL)
			spawn->child = child;
	}
	free(first_images);
	return 0;
}

int perfetto_survey_regions(struct perfetto *trace, struct perfetto_survey *ret)
{
	struct survey_walk walk = {.trace = trace, .survey = ret, .thread = MODEL_NONE};

	*ret = (struct perfetto_survey){.region_count = trace->session->regions->region_count};
	ret->overlaps = calloc((size_t)ret->region_count + 1, sizeof(*ret->overlaps));
	if (ret->overlaps == NULL)
		return problem_set(trace->problem, -ENOMEM, "no memory for the Perfetto trace");
	int error = session_each_region_event(trace->session, each_event, &walk, trace->problem);
	free(walk.open);
	if (error == 0)
		error = match_children(trace, ret);
	if (error == -ENOMEM)
		problem_set(trace->problem, error, "no memory for the Perfetto trace");
	return error;
}

void perfetto_survey_deinit(struct perfetto_survey *survey)
{
	free(survey->overlaps);
	free(survey->spawns);
	*survey = (struct perfetto_survey){0};
}

/* The main thread's track, where the calls of the process begin. */
static uint64_t first_track(const struct perfetto *trace, uint32_t process)
{
	const struct model_process *child = &trace->session->processes[process];

	for (uint32_t i = 0; i < child->thread_count; i++) {
		if (trace->session->threads[child->first_thread + i].tid == child->pid)
			return perfetto_thread_track(trace, child->first_thread + i);
	}
	return perfetto_process_track(trace, process);
}

static void write_start(struct perfetto *trace, const struct perfetto_spawn *spawn)
{
	struct protobuf *writer = &trace->writer;
	const struct model_process *child = &trace->session->processes[spawn->child];
	perfetto_open_packet(trace, child->start_ns);
	protobuf_open(writer, PACKET_TRACK_EVENT);
	protobuf_uint(writer, TRACK_EVENT_TYPE, TRACK_EVENT_INSTANT);
	protobuf_uint(writer, TRACK_EVENT_TRACK, first_track(trace, spawn->child));
	protobuf_string(writer, TRACK_EVENT_CATEGORIES, "process");
	protobuf_string(writer, TRACK_EVENT_NAME, "process started");
	protobuf_fixed64(writer, TRACK_EVENT_LAST_FLOWS,
			 perfetto_process_track(trace, spawn->child));
	protobuf_open(writer, TRACK_EVENT_ANNOTATIONS);
	protobuf_string(writer, ANNOTATION_NAME, "parent");
	protobuf_uint(writer, ANNOTATION_UINT, child->parent_pid);
	protobuf_close(writer);
	protobuf_close(writer);
	perfetto_close_packet(trace);
}

void perfetto_write_spawned(struct perfetto *trace, const struct perfetto_survey *survey)
{
	for (size_t i = 0; i < survey->spawn_count; i++) {
		if (survey->spawns[i].child != MODEL_NONE)
			write_start(trace, &survey->spawns[i]);
	}
}
