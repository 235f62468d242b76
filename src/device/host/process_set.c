/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sets of such events. perf events of a process are opened for each thread that there is; threads
 * that those make inherit them, and what they counted stays with their makers' when they end.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "device/host/process_events.h"

struct process_counter_set_member {
	struct process_counter_origin origin;
	const char *text;
	int group_leader_index; /* of its hardware group, an index; -1: goes alone */
};

struct process_counter_set {
	uint32_t count;
	size_t values;
	struct system_counting_cpu_list cpus;
	pthread_mutex_t lock;
	_Atomic pid_t started_in_pid; /* 0: not yet. A child of fork has events of its own. */
	/* Rows of `count` descriptors: one a thread, or one a CPU in `system`. */
	int *rows, *system_fds_by_cpu;
	uint32_t row_count;
	struct process_counter_set_member events[];
};

static enum counting_status set_perf_event_open_problem(int error, const char *text,
							struct counting_problem *problem)
{
	switch (error) {
	case EACCES:
	case EPERM:
		snprintf(problem->text, sizeof(problem->text),
			 "%s is not permitted: it needs kernel.perf_event_paranoid of 2 or less "
			 "(0 or less for whole CPUs), or CAP_PERFMON",
			 text);
		return COUNTING_NOT_PERMITTED;
	case EBUSY:
		snprintf(problem->text, sizeof(problem->text), "%s: the CPU's counters are in use",
			 text);
		return COUNTING_BUSY;
	case EMFILE:
	case ENFILE:
		snprintf(problem->text, sizeof(problem->text),
			 "%s: too many open files (one an event and thread)", text);
		return COUNTING_FAILED;
	default:
		snprintf(problem->text, sizeof(problem->text), "%s: perf_event_open: %s", text,
			 strerrordesc_np(error));
		return COUNTING_FAILED;
	}
}

static bool member_is_hardware(const struct process_counter_set_member *member)
{
	return member->origin.source == PROCESS_COUNTER_PERF_OF_THREADS &&
	       member->origin.perf_code.type != 1;
}

/* The CPU's counters of one thread, opened together and closed again: the kernel refuses a group
 * that is too large. `first_not` is the first that is too many. */
static int probe_hardware_group_open(const struct process_counter_set *set, uint32_t *first_not)
{
	int opened[64], leader = -1, error = 0;
	unsigned count = 0;

	for (uint32_t i = 0; i < set->count && error == 0 && count < 64; i++) {
		int one;

		if (!member_is_hardware(&set->events[i]))
			continue;
		one = process_perf_event_open(&set->events[i].origin.perf_code, 0, -1, leader,
					      false);
		if (one < 0) {
			error = -one;
			*first_not = i;
			break;
		}
		leader = leader < 0 ? one : leader;
		opened[count++] = one;
	}
	while (count > 0)
		close(opened[--count]);
	return error;
}

static enum counting_status check_set_can_be_opened(const struct process_counter_set *set,
						    struct counting_problem *problem)
{
	uint32_t first_not = 0;
	int error = probe_hardware_group_open(set, &first_not);

	if (error == EINVAL || error == ENOSPC) {
		snprintf(problem->text, sizeof(problem->text),
			 "%s and what follows it: the CPU has no counters for so many at once",
			 set->events[first_not].text);
		return COUNTING_DOES_NOT_FIT;
	}
	if (error != 0)
		return set_perf_event_open_problem(error, set->events[first_not].text, problem);
	for (uint32_t i = 0; i < set->count; i++) {
		const struct process_counter_origin *origin = &set->events[i].origin;
		int opened;

		if (origin->source < PROCESS_COUNTER_PERF_OF_THREADS ||
		    member_is_hardware(&set->events[i]))
			continue;
		opened = origin->source == PROCESS_COUNTER_PERF_OF_THREADS
				 ? process_perf_event_open(&origin->perf_code, 0, -1, -1, false)
				 : process_perf_event_open(&origin->perf_code, -1,
							   set->cpus.numbers[0], -1, false);
		if (opened < 0)
			return set_perf_event_open_problem(-opened, set->events[i].text, problem);
		close(opened);
	}
	return COUNTING_OK;
}

static enum counting_status fill_set_members(struct process_counter_set *set,
					     const struct counting_event_request *requests,
					     struct counting_problem *problem)
{
	int leader = -1;

	for (uint32_t i = 0; i < set->count; i++) {
		struct process_counter_set_member *member = &set->events[i];
		struct counting_event_info event = {0};
		enum counting_status status;

		if (requests[i].rollup != COUNTING_ROLLUP_NONE ||
		    requests[i].accumulation_resolution != COUNTING_ACCUMULATE_NONE) {
			snprintf(problem->text, sizeof(problem->text),
				 "%s: a CPU has no rollups and accumulates nothing",
				 requests[i].event);
			return COUNTING_NOT_SUPPORTED;
		}
		status = process_find_event(&set->cpus, requests[i].block, requests[i].event,
					    &event);
		if (status == COUNTING_OK)
			status = process_find_counter_origin_by_event_name(
				&set->cpus, event.block, event.event, &member->origin);
		if (status != COUNTING_OK) {
			snprintf(problem->text, sizeof(problem->text),
				 "there is no event %s in block %s", requests[i].event,
				 requests[i].block);
			return status;
		}
		member->text = event.event;
		member->group_leader_index = -1;
		if (member_is_hardware(member)) {
			member->group_leader_index = leader;
			leader = leader < 0 ? (int)i : leader;
		}
		set->values += counting_get_event_value_count(&event);
	}
	return check_set_can_be_opened(set, problem);
}

enum counting_status process_counter_set_create(const struct system_counting_cpu_list *cpus,
						const struct counting_event_request *requests,
						uint32_t count, struct process_counter_set **made,
						struct counting_problem *problem)
{
	struct process_counter_set *set = calloc(1, sizeof(*set) + count * sizeof(set->events[0]));
	enum counting_status status;

	problem->text[0] = '\0';
	if (set == NULL)
		return COUNTING_NO_MEMORY;
	set->count = count;
	set->cpus = *cpus;
	pthread_mutex_init(&set->lock, NULL);
	status = fill_set_members(set, requests, problem);
	if (status != COUNTING_OK) {
		process_counter_set_free(set);
		return status;
	}
	*made = set;
	return COUNTING_OK;
}

void process_close_perf_fd_row(const int *row, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (row[i] >= 0)
			close(row[i]);
	}
}

static void close_perf_fd_row_of_set(const struct process_counter_set *set, const int *row)
{
	process_close_perf_fd_row(row, set->count);
}

static void close_all_perf_fd_rows(struct process_counter_set *set)
{
	for (uint32_t i = 0; i < set->row_count; i++)
		close_perf_fd_row_of_set(set, set->rows + (size_t)i * set->count);
	for (uint32_t i = 0; set->system_fds_by_cpu != NULL && i < set->cpus.count; i++)
		close_perf_fd_row_of_set(set, set->system_fds_by_cpu + (size_t)i * set->count);
	free(set->rows);
	free(set->system_fds_by_cpu);
	set->rows = set->system_fds_by_cpu = NULL;
	set->row_count = 0;
}

void process_counter_set_free(struct process_counter_set *set)
{
	close_all_perf_fd_rows(set);
	pthread_mutex_destroy(&set->lock);
	free(set);
}

size_t process_counter_set_get_value_count(const struct process_counter_set *set)
{
	return set->values;
}

/* ---- opening ---- */

/* inherit: threads that it makes are counted with it. */
static int open_perf_fd_row(const struct process_counter_set *set, int *row,
			    enum process_counter_source source, int thread, int cpu, bool inherit,
			    uint32_t *failed)
{
	for (uint32_t i = 0; i < set->count; i++)
		row[i] = -1;
	for (uint32_t i = 0; i < set->count; i++) {
		const struct process_counter_set_member *member = &set->events[i];
		int leader =
			member->group_leader_index >= 0 && source == PROCESS_COUNTER_PERF_OF_THREADS
				? row[member->group_leader_index]
				: -1;

		if (member->origin.source != source)
			continue;
		row[i] = process_perf_event_open(&member->origin.perf_code, thread, cpu, leader,
						 inherit);
		if (row[i] < 0) {
			int error = -row[i];

			*failed = i;
			close_perf_fd_row_of_set(set, row);
			return error;
		}
	}
	return 0;
}

static int open_and_append_thread_perf_fd_row(struct process_counter_set *set, int thread,
					      uint32_t *failed)
{
	size_t rows = set->row_count + 1;
	int *grown = realloc(set->rows, rows * set->count * sizeof(*grown)), error;

	if (grown == NULL)
		return ENOMEM;
	set->rows = grown;
	error = open_perf_fd_row(set, grown + (rows - 1) * set->count,
				 PROCESS_COUNTER_PERF_OF_THREADS, thread, -1, true, failed);
	if (error == ESRCH) /* it has ended meanwhile */
		return 0;
	set->row_count += error == 0;
	return error;
}

/* One look at the threads that there are. A thread that is made meanwhile, by one that is not open
 * yet, is missed; by one that is, it is inherited, and to open it as well would count it twice. */
static int open_perf_fd_rows_of_all_threads(struct process_counter_set *set, uint32_t *failed)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	int *found = NULL, error = 0;
	size_t count = 0;

	if (tasks == NULL)
		return errno;
	while ((entry = readdir(tasks)) != NULL) {
		int thread = (int)strtol(entry->d_name, NULL, 10);
		int *grown = thread > 0 ? realloc(found, (count + 1) * sizeof(*found)) : NULL;

		if (grown == NULL)
			continue;
		found = grown;
		found[count++] = thread;
	}
	closedir(tasks);
	for (size_t i = 0; i < count && error == 0; i++)
		error = open_and_append_thread_perf_fd_row(set, found[i], failed);
	free(found);
	return error;
}

static bool process_counter_set_has_source(const struct process_counter_set *set,
					   enum process_counter_source source)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->events[i].origin.source == source)
			return true;
	}
	return false;
}

bool process_counter_set_is_thread_countable(const struct process_counter_set *set)
{
	return !process_counter_set_has_source(set, PROCESS_COUNTER_PERF_OF_CPUS);
}

enum counting_status process_open_perf_fd_row_of_this_thread(const struct process_counter_set *set,
							     int *row,
							     struct counting_problem *problem)
{
	uint32_t failed = 0;
	int error =
		open_perf_fd_row(set, row, PROCESS_COUNTER_PERF_OF_THREADS, 0, -1, false, &failed);

	return error == 0 ? COUNTING_OK
			  : set_perf_event_open_problem(error, set->events[failed].text, problem);
}

enum process_counter_source
process_counter_set_get_counter_source(const struct process_counter_set *set, size_t event,
				       const char **text)
{
	*text = set->events[event].text;
	return set->events[event].origin.source;
}

static int open_perf_fd_rows_of_all_cpus(struct process_counter_set *set, uint32_t *failed)
{
	size_t entries = (size_t)set->cpus.count * set->count;

	set->system_fds_by_cpu = malloc(entries * sizeof(*set->system_fds_by_cpu));
	if (set->system_fds_by_cpu == NULL)
		return ENOMEM;
	for (size_t i = 0; i < entries; i++)
		set->system_fds_by_cpu[i] = -1;
	for (uint32_t i = 0; i < set->cpus.count; i++) {
		int error = open_perf_fd_row(set, set->system_fds_by_cpu + (size_t)i * set->count,
					     PROCESS_COUNTER_PERF_OF_CPUS, -1, set->cpus.numbers[i],
					     false, failed);

		if (error != 0)
			return error;
	}
	return 0;
}

enum counting_status process_counter_set_open_once(struct process_counter_set *set,
						   struct counting_problem *problem)
{
	uint32_t failed = 0;
	pid_t own = getpid();
	int error = 0;

	problem->text[0] = '\0';
	if (atomic_load_explicit(&set->started_in_pid, memory_order_acquire) == own)
		return COUNTING_OK;
	pthread_mutex_lock(&set->lock);
	if (set->started_in_pid != own) {
		close_all_perf_fd_rows(set);
		if (process_counter_set_has_source(set, PROCESS_COUNTER_PERF_OF_THREADS))
			error = open_perf_fd_rows_of_all_threads(set, &failed);
		if (error == 0 && process_counter_set_has_source(set, PROCESS_COUNTER_PERF_OF_CPUS))
			error = open_perf_fd_rows_of_all_cpus(set, &failed);
		atomic_store_explicit(&set->started_in_pid, error == 0 ? own : 0,
				      memory_order_release);
	}
	pthread_mutex_unlock(&set->lock);
	return error == 0 ? COUNTING_OK
			  : set_perf_event_open_problem(error, set->events[failed].text, problem);
}

/* ---- reading ---- */

/* A counter that had to share the hardware has not seen everything. */
bool process_read_and_add_perf_value(int descriptor, double *value)
{
	uint64_t read_back[3] = {0}; /* value, time enabled, time running */

	if (read(descriptor, read_back, sizeof(read_back)) != (ssize_t)sizeof(read_back))
		return true;
	*value += (double)read_back[0];
	return read_back[2] + read_back[1] / 100 >= read_back[1];
}

double process_get_clock_or_rusage_value(enum process_counter_source source, clockid_t clock,
					 const struct rusage *usage)
{
	struct timespec time;

	switch (source) {
	case PROCESS_COUNTER_CPU_TIME:
		clock_gettime(clock, &time);
		return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
	case PROCESS_COUNTER_PAGE_FAULTS:
		return (double)(usage->ru_minflt + usage->ru_majflt);
	case PROCESS_COUNTER_MINOR_FAULTS:
		return (double)usage->ru_minflt;
	case PROCESS_COUNTER_MAJOR_FAULTS:
		return (double)usage->ru_majflt;
	default:
		return (double)(usage->ru_nvcsw + usage->ru_nivcsw);
	}
}

void process_set_multiplexed_counter_problem(const char *text, struct counting_problem *problem)
{
	snprintf(problem->text, sizeof(problem->text),
		 "%s was counted only part of the time: another program uses the CPU's counters",
		 text);
}

enum counting_status process_counter_set_read(struct process_counter_set *set, double *values,
					      struct counting_problem *problem)
{
	const char *shared = NULL;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	for (uint32_t i = 0; i < set->count; i++) {
		const struct process_counter_set_member *member = &set->events[i];

		if (member->origin.source == PROCESS_COUNTER_PERF_OF_CPUS) {
			for (uint32_t cpu = 0; cpu < set->cpus.count; cpu++, values++) {
				*values = 0;
				if (!process_read_and_add_perf_value(
					    set->system_fds_by_cpu[(size_t)cpu * set->count + i],
					    values))
					shared = member->text;
			}
			continue;
		}
		*values = 0;
		if (member->origin.source < PROCESS_COUNTER_PERF_OF_THREADS)
			*values = process_get_clock_or_rusage_value(
				member->origin.source, CLOCK_PROCESS_CPUTIME_ID, &usage);
		for (uint32_t row = 0; member->origin.source == PROCESS_COUNTER_PERF_OF_THREADS &&
				       row < set->row_count;
		     row++) {
			if (!process_read_and_add_perf_value(
				    set->rows[(size_t)row * set->count + i], values))
				shared = member->text;
		}
		values++;
	}
	problem->text[0] = '\0';
	if (shared == NULL)
		return COUNTING_OK;
	process_set_multiplexed_counter_problem(shared, problem);
	return COUNTING_BUSY;
}
