/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_cost_rates.h.
 */
#include "runs/own_cost_rates.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/short_processes.h"
#include "common/monotonic.h"
#include "common/time_units.h"

#define IMAGES_LEAST    10u
#define LOAD_TURNS      9u
#define TIME_LEAST_NS   (30 * MILLISECOND_NS) /* five turns on a quiet machine take half of it */
#define TIME_MAX_NS     (100 * MILLISECOND_NS)
#define RUN_TIME_PARTS  20u /* one of so many */
#define FORK_TURNS      9u
#define SIGNAL_TURNS    5u
#define SIGNALS_IN_TURN 50u

/* Of /proc/PID/smaps, with kymo and without (docs/measured/overhead.md). */
#define COLLECTOR_MAPPINGS   48u
#define COLLECTOR_PAGES_EACH 5u
/* The pages that parent and child write after a fork, without those that the process measures
 * itself (core/base/own_work.h): locks, thread state, the call's region, the loader's tables. */
#define PARENT_WRITTEN_PAGES 6u
#define CHILD_WRITTEN_PAGES  4u

static int compare_differences(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static uint64_t find_median_difference(int64_t *differences, size_t count)
{
	int64_t median;

	if (!count)
		return 0;
	qsort(differences, count, sizeof(*differences), compare_differences);
	median = differences[count / 2];
	return median > 0 ? (uint64_t)median : 0;
}

/* ---- loading ---- */

/* Of a session, so far as it matters whether there are many. */
struct image_counts {
	uint64_t executed_image_count, forked_image_count;
};

static void count_short_images(const char *path, struct image_counts *counts)
{
	struct short_processes processes;
	struct problem problem;

	if (short_processes_read(path, &processes, &problem) < 0)
		return;
	for (size_t i = 0; i < processes.count; i++) {
		counts->executed_image_count +=
			processes.files[i].header.origin == SPOOL_IMAGE_EXECUTED;
		counts->forked_image_count +=
			processes.files[i].header.origin == SPOOL_IMAGE_FORKED;
	}
	short_processes_free(&processes);
}

/* The images with files of their own may be of either kind. */
static struct image_counts count_images(const char *session)
{
	static const char suffix[] = ".spool";
	struct image_counts counts = {0, 0};
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/spool", session);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		size_t length = strlen(entry->d_name);

		counts.executed_image_count +=
			length > strlen(suffix) &&
			!strcmp(entry->d_name + length - strlen(suffix), suffix);
	}
	if (directory)
		closedir(directory);
	counts.forked_image_count = counts.executed_image_count;
	snprintf(path, sizeof(path), SPOOL_SHORT_PATH, session);
	count_short_images(path, &counts);
	return counts;
}

/* A copy of the list, not of its strings; NULL without memory. */
static char **disable_collection(char *const *environment)
{
	static char off[] = "KYMO_ENABLED=off";
	const size_t name = strlen("KYMO_ENABLED=");
	size_t count = 0, kept = 0;
	char **list;

	while (environment[count])
		count++;
	list = calloc(count + 2, sizeof(*list));
	for (size_t i = 0; list && i < count; i++) {
		if (strncmp(environment[i], off, name) != 0)
			list[kept++] = environment[i];
	}
	if (list)
		list[kept] = off;
	return list;
}

static int64_t wait_and_get_cpu_ns(pid_t pid)
{
	struct rusage usage;
	int status;

	while (wait4(pid, &status, 0, &usage) < 0) {
		if (errno != EINTR)
			return -1;
	}
	if (status)
		return -1;
	return (int64_t)(timeval_to_ns(&usage.ru_utime) + timeval_to_ns(&usage.ru_stime));
}

/* CPU time of this command, which returns at once; negative: it could not be run. */
static int64_t run_and_get_cpu_ns(char *const *environment)
{
	static char name[] = "kymo", argument[] = OWN_COST_RETURN_AT_ONCE_ARGUMENT;
	char *const arguments[] = {name, argument, NULL};
	pid_t pid;

	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environment))
		return -1;
	return wait_and_get_cpu_ns(pid);
}

static uint64_t measure_load_ns(char *const *environment, uint64_t limit_ns)
{
	uint64_t end_ns = monotonic_ns() + limit_ns;
	int64_t differences[LOAD_TURNS];
	char **with = disable_collection(environment);
	size_t count = 0;

	while (with && count < LOAD_TURNS && monotonic_ns() < end_ns) {
		int64_t bare = run_and_get_cpu_ns(environ), loaded = run_and_get_cpu_ns(with);

		if (bare < 0 || loaded < 0)
			break;
		differences[count++] = loaded - bare;
	}
	free(with);
	return find_median_difference(differences, count);
}

/* ---- forks ---- */

/* What the collector has mapped for itself in a program of a few libraries, in mappings that the
 * kernel cannot join. */
static char *map_as_collector(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), each = COLLECTOR_PAGES_EACH * page;
	char *memory = mmap(NULL, COLLECTOR_MAPPINGS * each, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, COLLECTOR_MAPPINGS * each, MADV_NOHUGEPAGE);
	memset(memory, 1, COLLECTOR_MAPPINGS * each);
	for (size_t i = 0; i < COLLECTOR_MAPPINGS; i += 2)
		mprotect(memory + i * each, each, PROT_READ);
	return memory;
}

static void unmap_as_collector(char *memory)
{
	munmap(memory, COLLECTOR_MAPPINGS * COLLECTOR_PAGES_EACH * (size_t)sysconf(_SC_PAGESIZE));
}

/* Every second mapping is read-only. */
static void write_collector_pages(char *memory, size_t count)
{
	size_t each = COLLECTOR_PAGES_EACH * (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; memory && i < count; i++)
		*(volatile char *)(memory + (2 * i + 1) * each) = 2;
}

/* CPU time that parent and child take for it; negative: there was no child. `memory`: as the
 * collector's, or NULL. */
static int64_t fork_and_get_cpu_ns(char *memory)
{
	uint64_t begun_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	pid_t pid = fork();
	int64_t child_ns;

	if (!pid) {
		write_collector_pages(memory, CHILD_WRITTEN_PAGES);
		_exit(0);
	}
	write_collector_pages(memory, PARENT_WRITTEN_PAGES);
	child_ns = pid < 0 ? -1 : wait_and_get_cpu_ns(pid);
	if (child_ns < 0)
		return -1;
	return child_ns + (int64_t)(clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
}

static uint64_t measure_fork_ns(void)
{
	int64_t differences[FORK_TURNS];
	size_t count = 0;

	while (count < FORK_TURNS) {
		int64_t bare = fork_and_get_cpu_ns(NULL), more;
		char *memory = map_as_collector();

		if (!memory)
			break;
		more = fork_and_get_cpu_ns(memory);
		unmap_as_collector(memory);
		if (bare < 0 || more < 0)
			break;
		differences[count++] = more - bare;
	}
	return find_median_difference(differences, count);
}

/* ---- signals ---- */

static void handle_own_signal(int signal)
{
	(void)signal;
}

/* The call that sends it stands for the interrupt of the timer, which cannot be had by itself. */
uint64_t own_cost_rates_measure_signal_ns(void)
{
	struct sigaction own = {.sa_handler = handle_own_signal}, previous;
	int64_t times[SIGNAL_TURNS];
	int signal = SIGRTMIN;
	sigset_t only, mask;

	sigemptyset(&own.sa_mask);
	sigemptyset(&only);
	sigaddset(&only, signal);
	if (sigaction(signal, &own, &previous))
		return 0;
	/* Who started kymo may have blocked it. */
	sigprocmask(SIG_UNBLOCK, &only, &mask);
	for (size_t turn = 0; turn < SIGNAL_TURNS; turn++) {
		uint64_t begun_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

		for (size_t i = 0; i < SIGNALS_IN_TURN; i++)
			raise(signal);
		times[turn] = (int64_t)((clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns) /
					SIGNALS_IN_TURN);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(signal, &previous, NULL);
	return find_median_difference(times, SIGNAL_TURNS);
}

void own_cost_rates_measure(struct launch *launch, char *const *environment)
{
	uint64_t start_ns =
		(uint64_t)launch->start.tv_sec * SECOND_NS + (uint64_t)launch->start.tv_nsec;
	uint64_t now_ns = clock_read_ns(CLOCK_REALTIME), limit_ns = 0;
	struct image_counts counts;

	if (now_ns > start_ns)
		limit_ns = (now_ns - start_ns) / RUN_TIME_PARTS;
	if (limit_ns < TIME_LEAST_NS)
		limit_ns = TIME_LEAST_NS;
	if (limit_ns > TIME_MAX_NS)
		limit_ns = TIME_MAX_NS;
	launch->signal_cost_ns = own_cost_rates_measure_signal_ns();
	counts = count_images(launch->session);
	if (counts.forked_image_count >= IMAGES_LEAST)
		launch->fork_cost_ns = measure_fork_ns();
	if (counts.executed_image_count >= IMAGES_LEAST)
		launch->image_load_cost_ns = measure_load_ns(environment, limit_ns);
}
