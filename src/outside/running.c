/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See running.h. Events come first and /proc afterwards: what changes between is then known twice,
 * and not missed. Threads are listed until no new one turns up; those that a listed thread starts
 * inherit its events.
 */
#include "outside/running.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Events take two descriptors a thread and CPU. */
void outside_running_raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void outside_running_read_name(struct outside_world *world, struct outside_thread *thread)
{
	char path[64], name[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", thread->process->pid, thread->tid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
	outside_thread_set_name(world, thread, name);
}

/* Threads that are not known yet; how many, or negative errno. */
static int open_new_threads(struct outside_world *world, struct outside_events *events, pid_t pid,
			    uint64_t now_ns)
{
	char path[32];
	struct dirent *entry;
	int opened = 0, error = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	if (!directory)
		return -ESRCH;
	while (!error && (entry = readdir(directory))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		struct outside_thread *thread;

		if (!tid || outside_thread_is_known(world, tid))
			continue;
		error = outside_events_open_task(events, (pid_t)tid, false);
		if (error == -ESRCH) { /* it has ended meanwhile */
			error = 0;
			continue;
		}
		thread = error ? NULL : outside_thread_get(world, (uint32_t)pid, tid, now_ns);
		if (thread)
			outside_running_read_name(world, thread);
		opened++;
	}
	closedir(directory);
	return error ? error : opened;
}

int outside_running_open(struct outside_world *world, struct outside_events *events, pid_t pid,
			 uint64_t now_ns)
{
	struct outside_thread *main_thread;
	struct outside_process *process;
	int opened;

	outside_running_raise_file_limit();
	/* The main thread's number is 0. */
	opened = outside_events_open_task(events, pid, false);
	if (opened)
		return opened;
	main_thread = outside_thread_get(world, (uint32_t)pid, (uint32_t)pid, now_ns);
	if (main_thread)
		outside_running_read_name(world, main_thread);
	do
		opened = open_new_threads(world, events, pid, now_ns);
	while (opened > 0);
	process = outside_process_find(world, (uint32_t)pid);
	if (opened < 0 || !process)
		return opened < 0 ? opened : -ENOMEM;
	process->origin = SPOOL_IMAGE_EXECUTED;
	outside_modules_read_maps(process, now_ns);
	return 0;
}
