/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See load.h.
 */
#include "experiments/load.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOAD_PROCESSES_MAX = 64, LOAD_THREADS_MAX = 16 };

static uint64_t read_involuntary_switches(const char *path)
{
	static const char label[] = "nonvoluntary_ctxt_switches:";
	char text[4096];
	const char *found;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	found = strstr(text, label);
	return found ? strtoull(found + sizeof(label) - 1, NULL, 10) : 0;
}

/* proc(5), schedstat: CPU time, time in queues for a processor, how often; nanoseconds. Nothing
 * where the kernel does not count. */
static uint64_t read_run_queue_wait_ns(const char *path)
{
	unsigned long long queued = 0;
	char text[128];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	return sscanf(text, "%*u %llu", &queued) == 1 ? queued : 0;
}

static void add_usage_of_process_threads(int pid, unsigned *room, struct causal_session_usage *ret)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	while (directory && *room && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, entry->d_name);
		ret->involuntary_switches += read_involuntary_switches(path);
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, entry->d_name);
		ret->run_queue_wait_ns += read_run_queue_wait_ns(path);
		--*room;
	}
	if (directory)
		closedir(directory);
}

/* The clock of another process: ~pid << 3 and 2, the scheduler's count (kernel,
 * include/linux/posix-timers.h); clock_getcpuclockid(3) without asking whether it lives. */
static void add_usage_of_process(int pid, unsigned *room, struct causal_session_usage *ret)
{
	struct timespec time;

	if (clock_gettime((clockid_t)(~(unsigned)pid << 3 | 2u), &time))
		return;
	ret->cpu_ns += (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	add_usage_of_process_threads(pid, room, ret);
}

/* proc(5), stat: the first line is all processors', its eighth number what the hypervisor gave to
 * others, in ticks of sysconf(_SC_CLK_TCK). */
static uint64_t read_stolen_ns(void)
{
	unsigned long long stolen = 0;
	char text[256];
	int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	long rate = sysconf(_SC_CLK_TCK);

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	if (rate <= 0 || sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) != 1)
		return 0;
	return stolen * (1000000000u / (unsigned long)rate);
}

void causal_session_read_usage(const char *session, struct causal_session_usage *ret)
{
	unsigned room = LOAD_THREADS_MAX, count = 0;
	int pids[LOAD_PROCESSES_MAX];
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *directory;

	memset(ret, 0, sizeof(*ret));
	ret->stolen_ns = read_stolen_ns();
	snprintf(path, sizeof(path), "%s/spool", session);
	directory = opendir(path);
	while (directory && count < LOAD_PROCESSES_MAX && (entry = readdir(directory))) {
		int pid = atoi(entry->d_name);
		bool known = pid <= 0;

		for (unsigned i = 0; i < count && !known; i++)
			known = pids[i] == pid;
		if (known)
			continue;
		pids[count++] = pid;
		add_usage_of_process(pid, &room, ret);
	}
	if (directory)
		closedir(directory);
}
