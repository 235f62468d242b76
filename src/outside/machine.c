/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See machine.h. What changes while /proc is read is reported by the kernel as well, later in the
 * rings than what is read: it is then known twice, and not missed.
 */
#include "outside/machine.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/process_stat.h"
#include "outside/running.h"

/* The main thread's number is 0. */
static void add_threads(struct outside_world *world, uint32_t pid, uint64_t now_ns)
{
	struct outside_thread *thread = outside_thread_get(world, pid, pid, now_ns);
	struct dirent *entry;
	char path[32];
	DIR *directory;

	if (thread)
		outside_running_read_name(world, thread);
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tid || outside_thread_is_known(world, tid))
			continue;
		thread = outside_thread_get(world, pid, tid, now_ns);
		if (thread)
			outside_running_read_name(world, thread);
	}
	if (directory)
		closedir(directory);
}

static void add_process(struct outside_world *world, uint32_t pid, uint64_t now_ns)
{
	struct outside_process *process;
	struct process_stat stat;

	if (!process_stat_read(pid, &stat) || process_stat_is_of_dead(&stat))
		return;
	add_threads(world, pid, now_ns);
	process = outside_process_find(world, pid);
	if (!process)
		return;
	process->origin = SPOOL_IMAGE_EXECUTED;
	process->parent_pid = stat.parent;
	outside_process_read_identity(world, process);
	outside_process_is_in_scope(world, process, now_ns);
	if (!process->is_kernel_thread)
		outside_modules_read_maps(process, now_ns);
}

int outside_machine_open(struct outside_world *world, struct outside_events *events,
			 uint64_t now_ns)
{
	int error;
	struct dirent *entry;
	DIR *directory;

	outside_running_raise_file_limit();
	error = outside_events_open_machine(events, world->scope->directory);
	if (error)
		return error;
	directory = opendir("/proc");
	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (pid)
			add_process(world, pid, now_ns);
	}
	closedir(directory);
	return 0;
}
