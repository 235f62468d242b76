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

struct member {
	struct process_origin origin;
	const char *text;
	int leader; /* of its hardware group, an index; -1: goes alone */
};

struct process_set {
	uint32_t count;
	size_t values;
	struct process_cpus cpus;
	pthread_mutex_t lock;
	_Atomic pid_t started_in; /* 0: not yet. A child of fork has events of its own. */
	/* Rows of `count` descriptors: one a thread, or one a CPU in `system`. */
	int *rows, *system;
	uint32_t row_count;
	struct member members[];
};

static enum counting_status problem_of(int error, const char *text,
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

static bool is_hardware(const struct member *member)
{
	return member->origin.source == PROCESS_PERF && member->origin.perf.type != 1;
}

/* The CPU's counters of one thread, opened together and closed again: the kernel refuses a group
 * that is too large. `first_not` is the first that is too many. */
static int try_group(const struct process_set *set, uint32_t *first_not)
{
	int opened[64], leader = -1, error = 0;
	unsigned count = 0;

	for (uint32_t i = 0; i < set->count && error == 0 && count < 64; i++) {
		int one;

		if (!is_hardware(&set->members[i]))
			continue;
		one = process_perf_open(&set->members[i].origin.perf, 0, -1, leader, false);
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

static enum counting_status check(const struct process_set *set, struct counting_problem *problem)
{
	uint32_t first_not = 0;
	int error = try_group(set, &first_not);

	if (error == EINVAL || error == ENOSPC) {
		snprintf(problem->text, sizeof(problem->text),
			 "%s and what follows it: the CPU has no counters for so many at once",
			 set->members[first_not].text);
		return COUNTING_DOES_NOT_FIT;
	}
	if (error != 0)
		return problem_of(error, set->members[first_not].text, problem);
	for (uint32_t i = 0; i < set->count; i++) {
		const struct process_origin *origin = &set->members[i].origin;
		int opened;

		if (origin->source < PROCESS_PERF || is_hardware(&set->members[i]))
			continue;
		opened = origin->source == PROCESS_PERF
				 ? process_perf_open(&origin->perf, 0, -1, -1, false)
				 : process_perf_open(&origin->perf, -1, set->cpus.numbers[0], -1,
						     false);
		if (opened < 0)
			return problem_of(-opened, set->members[i].text, problem);
		close(opened);
	}
	return COUNTING_OK;
}

static enum counting_status fill(struct process_set *set, const struct counting_request *requests,
				 struct counting_problem *problem)
{
	int leader = -1;

	for (uint32_t i = 0; i < set->count; i++) {
		struct member *member = &set->members[i];
		struct counting_event event = {0};
		enum counting_status status;

		if (requests[i].rollup != COUNTING_ROLLUP_NONE ||
		    requests[i].accumulate != COUNTING_ACCUMULATE_NONE) {
			snprintf(problem->text, sizeof(problem->text),
				 "%s: a CPU has no rollups and accumulates nothing",
				 requests[i].event);
			return COUNTING_NOT_SUPPORTED;
		}
		status = process_event(&set->cpus, requests[i].block, requests[i].event, &event);
		if (status == COUNTING_OK)
			status = process_event_origin(&set->cpus, event.block, event.event,
						      &member->origin);
		if (status != COUNTING_OK) {
			snprintf(problem->text, sizeof(problem->text),
				 "there is no event %s in block %s", requests[i].event,
				 requests[i].block);
			return status;
		}
		member->text = event.event;
		member->leader = -1;
		if (is_hardware(member)) {
			member->leader = leader;
			leader = leader < 0 ? (int)i : leader;
		}
		set->values += counting_event_values(&event);
	}
	return check(set, problem);
}

enum counting_status process_set_make(const struct process_cpus *cpus,
				      const struct counting_request *requests, uint32_t count,
				      struct process_set **made, struct counting_problem *problem)
{
	struct process_set *set = calloc(1, sizeof(*set) + count * sizeof(set->members[0]));
	enum counting_status status;

	problem->text[0] = '\0';
	if (set == NULL)
		return COUNTING_NO_MEMORY;
	set->count = count;
	set->cpus = *cpus;
	pthread_mutex_init(&set->lock, NULL);
	status = fill(set, requests, problem);
	if (status != COUNTING_OK) {
		process_set_free(set);
		return status;
	}
	*made = set;
	return COUNTING_OK;
}

void process_row_close(const int *row, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (row[i] >= 0)
			close(row[i]);
	}
}

static void close_row(const struct process_set *set, const int *row)
{
	process_row_close(row, set->count);
}

static void close_all(struct process_set *set)
{
	for (uint32_t i = 0; i < set->row_count; i++)
		close_row(set, set->rows + (size_t)i * set->count);
	for (uint32_t i = 0; set->system != NULL && i < set->cpus.count; i++)
		close_row(set, set->system + (size_t)i * set->count);
	free(set->rows);
	free(set->system);
	set->rows = set->system = NULL;
	set->row_count = 0;
}

void process_set_free(struct process_set *set)
{
	close_all(set);
	pthread_mutex_destroy(&set->lock);
	free(set);
}

size_t process_set_values(const struct process_set *set)
{
	return set->values;
}

/* ---- opening ---- */

/* inherit: threads that it makes are counted with it. */
static int open_row(const struct process_set *set, int *row, enum process_source source, int thread,
		    int cpu, bool inherit, uint32_t *failed)
{
	for (uint32_t i = 0; i < set->count; i++)
		row[i] = -1;
	for (uint32_t i = 0; i < set->count; i++) {
		const struct member *member = &set->members[i];
		int leader =
			member->leader >= 0 && source == PROCESS_PERF ? row[member->leader] : -1;

		if (member->origin.source != source)
			continue;
		row[i] = process_perf_open(&member->origin.perf, thread, cpu, leader, inherit);
		if (row[i] < 0) {
			int error = -row[i];

			*failed = i;
			close_row(set, row);
			return error;
		}
	}
	return 0;
}

static int add_thread(struct process_set *set, int thread, uint32_t *failed)
{
	size_t rows = set->row_count + 1;
	int *grown = realloc(set->rows, rows * set->count * sizeof(*grown)), error;

	if (grown == NULL)
		return ENOMEM;
	set->rows = grown;
	error = open_row(set, grown + (rows - 1) * set->count, PROCESS_PERF, thread, -1, true,
			 failed);
	if (error == ESRCH) /* it has ended meanwhile */
		return 0;
	set->row_count += error == 0;
	return error;
}

/* One look at the threads that there are. A thread that is made meanwhile, by one that is not open
 * yet, is missed; by one that is, it is inherited, and to open it as well would count it twice. */
static int open_threads(struct process_set *set, uint32_t *failed)
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
		error = add_thread(set, found[i], failed);
	free(found);
	return error;
}

static bool has_source(const struct process_set *set, enum process_source source)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->members[i].origin.source == source)
			return true;
	}
	return false;
}

bool process_set_is_of_threads(const struct process_set *set)
{
	return !has_source(set, PROCESS_PERF_SYSTEM);
}

enum counting_status process_row_open(const struct process_set *set, int *row,
				      struct counting_problem *problem)
{
	uint32_t failed = 0;
	int error = open_row(set, row, PROCESS_PERF, 0, -1, false, &failed);

	return error == 0 ? COUNTING_OK : problem_of(error, set->members[failed].text, problem);
}

enum process_source process_set_source(const struct process_set *set, size_t event,
				       const char **text)
{
	*text = set->members[event].text;
	return set->members[event].origin.source;
}

static int open_cpus(struct process_set *set, uint32_t *failed)
{
	size_t entries = (size_t)set->cpus.count * set->count;

	set->system = malloc(entries * sizeof(*set->system));
	if (set->system == NULL)
		return ENOMEM;
	for (size_t i = 0; i < entries; i++)
		set->system[i] = -1;
	for (uint32_t i = 0; i < set->cpus.count; i++) {
		int error = open_row(set, set->system + (size_t)i * set->count, PROCESS_PERF_SYSTEM,
				     -1, set->cpus.numbers[i], false, failed);

		if (error != 0)
			return error;
	}
	return 0;
}

enum counting_status process_set_start(struct process_set *set, struct counting_problem *problem)
{
	uint32_t failed = 0;
	pid_t own = getpid();
	int error = 0;

	problem->text[0] = '\0';
	if (atomic_load_explicit(&set->started_in, memory_order_acquire) == own)
		return COUNTING_OK;
	pthread_mutex_lock(&set->lock);
	if (set->started_in != own) {
		close_all(set);
		if (has_source(set, PROCESS_PERF))
			error = open_threads(set, &failed);
		if (error == 0 && has_source(set, PROCESS_PERF_SYSTEM))
			error = open_cpus(set, &failed);
		atomic_store_explicit(&set->started_in, error == 0 ? own : 0, memory_order_release);
	}
	pthread_mutex_unlock(&set->lock);
	return error == 0 ? COUNTING_OK : problem_of(error, set->members[failed].text, problem);
}

/* ---- reading ---- */

/* A counter that had to share the hardware has not seen everything. */
bool process_row_read(int descriptor, double *value)
{
	uint64_t read_back[3] = {0}; /* value, time enabled, time running */

	if (read(descriptor, read_back, sizeof(read_back)) != (ssize_t)sizeof(read_back))
		return true;
	*value += (double)read_back[0];
	return read_back[2] + read_back[1] / 100 >= read_back[1];
}

double process_account(enum process_source source, clockid_t clock, const struct rusage *usage)
{
	struct timespec time;

	switch (source) {
	case PROCESS_CPU_TIME:
		clock_gettime(clock, &time);
		return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
	case PROCESS_FAULTS:
		return (double)(usage->ru_minflt + usage->ru_majflt);
	case PROCESS_MINOR_FAULTS:
		return (double)usage->ru_minflt;
	case PROCESS_MAJOR_FAULTS:
		return (double)usage->ru_majflt;
	default:
		return (double)(usage->ru_nvcsw + usage->ru_nivcsw);
	}
}

void process_set_shared(const char *text, struct counting_problem *problem)
{
	snprintf(problem->text, sizeof(problem->text),
		 "%s was counted a part of the time only: somebody else uses the CPU's counters",
		 text);
}

enum counting_status process_set_read(struct process_set *set, double *values,
				      struct counting_problem *problem)
{
	const char *shared = NULL;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	for (uint32_t i = 0; i < set->count; i++) {
		const struct member *member = &set->members[i];

		if (member->origin.source == PROCESS_PERF_SYSTEM) {
			for (uint32_t cpu = 0; cpu < set->cpus.count; cpu++, values++) {
				*values = 0;
				if (!process_row_read(set->system[(size_t)cpu * set->count + i],
						      values))
					shared = member->text;
			}
			continue;
		}
		*values = 0;
		if (member->origin.source < PROCESS_PERF)
			*values = process_account(member->origin.source, CLOCK_PROCESS_CPUTIME_ID,
						  &usage);
		for (uint32_t row = 0;
		     member->origin.source == PROCESS_PERF && row < set->row_count; row++) {
			if (!process_row_read(set->rows[(size_t)row * set->count + i], values))
				shared = member->text;
		}
		values++;
	}
	problem->text[0] = '\0';
	if (shared == NULL)
		return COUNTING_OK;
	process_set_shared(shared, problem);
	return COUNTING_BUSY;
}
