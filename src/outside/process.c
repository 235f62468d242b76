/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See process.h.
 */
#include "outside/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "common/process_stat.h"
#include "outside/blocking.h"

#define ARGUMENTS_BYTES_MAX 4000u

static struct outside_process **get_process_list(struct outside_world *world, uint32_t pid)
{
	return &world->processes[pid % OUTSIDE_TABLE_SIZE];
}

static struct outside_thread **find_thread_link(struct outside_world *world, uint32_t tid)
{
	struct outside_thread **link = &world->threads[tid % OUTSIDE_TABLE_SIZE];

	while (*link && (*link)->tid != tid)
		link = &(*link)->next;
	return link;
}

struct outside_thread *outside_thread_find(struct outside_world *world, uint32_t tid)
{
	return *find_thread_link(world, tid);
}

int outside_world_init(struct outside_world *world)
{
	world->walked = calloc(world->depth_max, sizeof(*world->walked));
	world->scratch = calloc(1, sizeof(*world->scratch));
	world->cache = unwind_cache_create();
	if (!world->walked || !world->scratch || !world->cache)
		return -ENOMEM;
	world->scratch->stack_pointers = calloc(world->depth_max, sizeof(uint64_t));
	return world->scratch->stack_pointers ? 0 : -ENOMEM;
}

struct outside_process *outside_process_find(struct outside_world *world, uint32_t pid)
{
	struct outside_process *process = *get_process_list(world, pid);

	while (process && process->pid != pid)
		process = process->next;
	return process;
}

/* ---- what /proc says of a process that is there still ---- */

#define KERNEL_THREAD_PARENT 2u /* kthreadd */

/* By then it may have executed another program: its arguments count where the file is the one whose
 * mapping was reported. */
static void read_executable_and_arguments(struct outside_process *process)
{
	char path[64], target[PATH_MAX], arguments[ARGUMENTS_BYTES_MAX];
	ssize_t length;
	int file;

	snprintf(path, sizeof(path), "/proc/%u/exe", process->pid);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return;
	target[length] = '\0';
	if (!process->executable)
		process->executable = strdup(target);
	if (process->arguments || !process->executable || strcmp(process->executable, target))
		return;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", process->pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	length = read(file, arguments, sizeof(arguments));
	close(file);
	process->arguments = length > 0 ? malloc((size_t)length) : NULL;
	process->argument_bytes = process->arguments ? (size_t)length : 0;
	if (process->arguments)
		memcpy(process->arguments, arguments, (size_t)length);
}

void outside_process_read_identity(const struct outside_world *world,
				   struct outside_process *process)
{
	char *cgroup = world->scope ? outside_scope_read_cgroup(world->scope, process->pid) : NULL;

	if (cgroup) {
		free(process->cgroup);
		process->cgroup = cgroup;
	}
	process->is_kernel_thread =
		process->pid == KERNEL_THREAD_PARENT || process->parent_pid == KERNEL_THREAD_PARENT;
	if (!process->is_kernel_thread)
		read_executable_and_arguments(process);
}

/* Processes move between groups and change their users: they are looked at again and again. */
#define SCOPE_CHECK_PAUSE_NS 100000000u

bool outside_process_is_in_scope(struct outside_world *world, struct outside_process *process,
				 uint64_t time_ns)
{
	int found;

	if (!world->scope || outside_scope_is_left_to_kernel(world->scope))
		return true;
	if (time_ns >= process->next_check_ns) {
		process->next_check_ns = time_ns + SCOPE_CHECK_PAUSE_NS;
		found = outside_scope_check_process(world->scope, process->pid);
		if (found >= 0)
			process->membership = found ? OUTSIDE_IN_SCOPE : OUTSIDE_NOT_IN_SCOPE;
	}
	world->unknown_scope += process->membership == OUTSIDE_NOT_LOOKED_AT;
	return process->membership == OUTSIDE_IN_SCOPE;
}

/* ---- spool files ---- */

static void write_clock(struct outside_spool *spool)
{
	uint64_t now = clock_read_ns(CLOCK_MONOTONIC);

	outside_record_begin(spool);
	outside_record_fixed64(spool, now);
	outside_record_fixed64(spool, now);
	outside_record_fixed64(spool, clock_read_ns(CLOCK_BOOTTIME));
	outside_record_fixed64(spool, clock_read_ns(CLOCK_REALTIME));
	outside_record_end(spool, SPOOL_RECORD_CLOCK);
}

static void write_process(struct outside_process *process)
{
	struct outside_spool *spool = process->spool;
	char host[256] = "", path[64], directory[PATH_MAX];
	ssize_t length;

	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "/proc/%u/cwd", process->pid);
	length = readlink(path, directory, sizeof(directory));
	outside_record_begin(spool);
	outside_record_unsigned(spool, process->pid);
	outside_record_unsigned(spool, process->parent_pid);
	outside_record_unsigned(spool, getuid());
	outside_record_unsigned(spool, getgid());
	outside_record_text(spool, process->executable ? process->executable : "");
	outside_record_bytes(spool, process->arguments, process->argument_bytes);
	outside_record_bytes(spool, directory, length > 0 ? (size_t)length : 0);
	outside_record_text(spool, host);
	outside_record_text(spool, "");
	outside_record_end(spool, SPOOL_RECORD_PROCESS);
}

static void write_cgroup(struct outside_process *process)
{
	if (!process->cgroup)
		return;
	outside_record_begin(process->spool);
	outside_record_text(process->spool, process->cgroup);
	outside_record_end(process->spool, SPOOL_RECORD_CGROUP);
}

static void write_times_by_cpu(const struct outside_world *world, struct outside_process *process)
{
	uint32_t used = 0;

	for (uint32_t cpu = 0; process->by_cpu_ns && cpu < world->cpu_count; cpu++)
		used += process->by_cpu_ns[cpu] != 0;
	if (!used)
		return;
	outside_record_begin(process->spool);
	outside_record_unsigned(process->spool, used);
	for (uint32_t cpu = 0; cpu < world->cpu_count; cpu++) {
		if (!process->by_cpu_ns[cpu])
			continue;
		outside_record_unsigned(process->spool, cpu);
		outside_record_unsigned(process->spool, process->by_cpu_ns[cpu]);
	}
	outside_record_end(process->spool, SPOOL_RECORD_TIMES_BY_CPU);
}

static void write_source(const struct outside_world *world, struct outside_process *process)
{
	outside_record_begin(process->spool);
	outside_record_fixed64(process->spool, process->start_ns);
	outside_record_unsigned(process->spool, SPOOL_NOTICE_SOURCE);
	outside_record_unsigned(process->spool, SPOOL_CPU_SOURCE_OUTSIDE);
	outside_record_text(process->spool, world->source_text);
	outside_record_end(process->spool, SPOOL_RECORD_NOTICE);
}

/* Kernel threads, as ps(1) shows them; others keep what can be known of them. NULL: nothing. */
static char *name_without_executable(struct outside_world *world,
				     const struct outside_process *process)
{
	const struct outside_thread *thread = outside_thread_find(world, process->pid);
	char *name = NULL;

	if (!world->scope)
		return NULL;
	if (!process->pid)
		return strdup("[outside of this PID namespace]");
	if (!thread || !thread->name[0])
		return NULL;
	if (asprintf(&name, process->is_kernel_thread ? "[%s]" : "%s", thread->name) < 0)
		return NULL;
	return name;
}

bool outside_process_begin_spool(struct outside_world *world, struct outside_process *process)
{
	struct spool_file_header *header;
	struct process_stat stat;
	uint64_t back = clock_read_ns(CLOCK_MONOTONIC) - process->start_ns;

	if (process->spool)
		return process->spool->file >= 0;
	process->spool = calloc(1, sizeof(*process->spool));
	if (!process->spool)
		return false;
	header = &process->spool->header;
	header->pid = process->pid;
	header->parent_pid = process->parent_pid;
	if (process_stat_read(process->pid, &stat)) {
		header->process_start = stat.start_ticks;
		process->stack_start = stat.stack_start;
	}
	header->tick_clock = 1;
	header->tick_hz = 1000000000;
	header->start_ticks = header->start_monotonic_ns = process->start_ns;
	header->start_boottime_ns = clock_read_ns(CLOCK_BOOTTIME) - back;
	header->start_realtime_ns = clock_read_ns(CLOCK_REALTIME) - back;
	header->origin = process->origin;
	if (outside_spool_create(process->spool, world->spool_directory))
		return false;
	outside_process_read_identity(world, process);
	if (!process->executable)
		process->executable = name_without_executable(world, process);
	if (world->scope)
		process->by_cpu_ns = calloc(world->cpu_count, sizeof(*process->by_cpu_ns));
	write_process(process);
	write_cgroup(process);
	write_clock(process->spool);
	write_source(world, process);
	outside_modules_write_kernel(world, process);
	process->is_view_stale = true;
	return true;
}

static void end_spool(const struct outside_world *world, struct outside_process *process,
		      enum spool_state state, uint64_t time_ns)
{
	struct outside_spool *spool = process->spool;

	outside_waits_write(process);
	if (!spool)
		return;
	write_clock(spool);
	write_times_by_cpu(world, process);
	if (process->pid == world->root_pid)
		spool->header.helper_cpu_ns = world->thread_cpu_ns
						      ? world->thread_cpu_ns
						      : clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	spool->header.process_start = state == SPOOL_STATE_LEFT ? spool->header.process_start : 0;
	outside_spool_close(spool, state, time_ns);
	free(spool);
	process->spool = NULL;
}

/* ---- threads ---- */

void outside_thread_record_start(struct outside_thread *thread)
{
	struct outside_spool *spool = thread->process->spool;

	if (thread->is_recorded)
		return;
	thread->is_recorded = true;
	spool->header.threads++;
	outside_record_begin(spool);
	outside_record_fixed64(spool, thread->start_ns);
	outside_record_unsigned(spool, thread->internal_id);
	outside_record_unsigned(spool, thread->internal_id);
	outside_record_unsigned(spool, thread->tid);
	outside_record_unsigned(spool, 0);
	outside_record_unsigned(spool, 0);
	outside_record_text(spool, thread->name);
	outside_record_unsigned(spool, thread->tid == thread->process->pid ? 0 : 1);
	outside_record_end(spool, SPOOL_RECORD_THREAD_START);
}

static void close_thread_stream(struct outside_thread *thread, uint64_t time_ns)
{
	struct outside_spool *spool = thread->process->spool;

	if (thread->chunk)
		outside_chunk_close(spool, thread->chunk);
	thread->chunk = NULL;
	if (spool && thread->is_recorded) {
		outside_record_begin(spool);
		outside_record_fixed64(spool, time_ns);
		outside_record_unsigned(spool, thread->internal_id);
		outside_record_unsigned(spool, thread->covered_ns);
		outside_record_unsigned(spool, thread->covered_ns);
		outside_record_unsigned(spool, thread->samples);
		outside_record_unsigned(spool, 0);
		outside_record_end(spool, SPOOL_RECORD_THREAD_END);
	}
	thread->is_recorded = false;
}

bool outside_thread_is_known(struct outside_world *world, uint32_t tid)
{
	return outside_thread_find(world, tid) != NULL;
}

static struct outside_process *add_process(struct outside_world *world, uint32_t pid,
					   uint64_t time_ns)
{
	struct outside_process **list = get_process_list(world, pid);
	struct outside_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->pid = pid;
	process->start_ns = time_ns;
	process->origin = SPOOL_IMAGE_FORKED;
	process->next = *list;
	*list = process;
	return process;
}

struct outside_thread *outside_thread_get(struct outside_world *world, uint32_t pid, uint32_t tid,
					  uint64_t time_ns)
{
	struct outside_thread **link = find_thread_link(world, tid), *thread = *link;
	struct outside_process *process;

	if (thread)
		return thread;
	process = outside_process_find(world, pid);
	if (!process)
		process = add_process(world, pid, time_ns);
	thread = process ? calloc(1, sizeof(*thread)) : NULL;
	if (!thread)
		return NULL;
	thread->process = process;
	thread->tid = tid;
	thread->start_ns = time_ns;
	thread->internal_id = process->next_internal_id++;
	process->living_threads++;
	*link = thread;
	return thread;
}

void outside_thread_set_name(struct outside_world *world, struct outside_thread *thread,
			     const char *name)
{
	(void)world;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	if (!thread->is_recorded)
		return;
	outside_record_begin(thread->process->spool);
	outside_record_unsigned(thread->process->spool, thread->internal_id);
	outside_record_text(thread->process->spool, thread->name);
	outside_record_end(thread->process->spool, SPOOL_RECORD_THREAD_NAME);
}

static void free_process(struct outside_world *world, struct outside_process *process)
{
	struct outside_process **link = get_process_list(world, process->pid);

	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	outside_modules_free(process);
	free(process->executable);
	free(process->arguments);
	free(process->cgroup);
	free(process->by_cpu_ns);
	free(process);
}

/* Takes the thread out of the table; its process goes with the last one. */
static void remove_thread(struct outside_world *world, struct outside_thread *thread,
			  enum spool_state state, uint64_t time_ns)
{
	struct outside_process *process = thread->process;
	struct outside_thread **link = find_thread_link(world, thread->tid);

	close_thread_stream(thread, time_ns);
	outside_block_free(thread);
	*link = thread->next;
	free(thread->frames);
	free(thread);
	if (--process->living_threads)
		return;
	/* The program that was asked for is in the results in any case. */
	if (process->pid == world->root_pid)
		outside_process_begin_spool(world, process);
	end_spool(world, process, state, time_ns);
	free_process(world, process);
}

/* Its events end with a thread that was chosen. A CPU's do not: the thread goes on for a moment
 * after it reported its end, and wakes others then. */
void outside_thread_end(struct outside_world *world, struct outside_thread *thread,
			uint64_t time_ns)
{
	if (world->keeps_ended)
		thread->ended_ns = time_ns;
	else
		remove_thread(world, thread, SPOOL_STATE_EXITED, time_ns);
}

void outside_world_remove_ended(struct outside_world *world, uint64_t before_ns)
{
	for (uint32_t i = 0; i < OUTSIDE_TABLE_SIZE; i++) {
		for (struct outside_thread *thread = world->threads[i], *next; thread;
		     thread = next) {
			next = thread->next;
			if (thread->ended_ns && thread->ended_ns < before_ns)
				remove_thread(world, thread, SPOOL_STATE_EXITED, thread->ended_ns);
		}
	}
}

/* ---- processes ---- */

void outside_process_execute(struct outside_world *world, struct outside_thread *thread,
			     const char *name, uint64_t time_ns)
{
	struct outside_process *process = thread->process;

	/* All other threads have ended, and the one that executes is the first one now (execve(2)).
	 */
	for (uint32_t i = 0; process->living_threads > 1 && i < OUTSIDE_TABLE_SIZE; i++) {
		for (struct outside_thread *other = world->threads[i], *next; other; other = next) {
			next = other->next;
			if (other->process == process && other != thread)
				remove_thread(world, other, SPOOL_STATE_EXEC, time_ns);
		}
	}
	close_thread_stream(thread, time_ns);
	outside_block_free(thread);
	thread->samples = thread->covered_ns = 0;
	thread->internal_id = 0;
	thread->start_ns = time_ns;
	end_spool(world, process, SPOOL_STATE_EXEC, time_ns);
	free(process->by_cpu_ns);
	process->by_cpu_ns = NULL;
	process->next_check_ns = 0;
	outside_modules_free(process);
	free(process->executable);
	free(process->arguments);
	process->executable = process->arguments = NULL;
	process->argument_bytes = 0;
	process->next_internal_id = 1;
	process->start_ns = time_ns;
	process->next_maps_reading_ns = process->stack_start = 0;
	process->origin = SPOOL_IMAGE_EXECUTED;
	outside_thread_set_name(world, thread, name);
}

void outside_process_fork(struct outside_world *world, struct outside_process *parent, uint32_t pid,
			  uint64_t time_ns)
{
	struct outside_thread *earlier = outside_thread_find(world, pid);
	struct outside_process *process;

	/* The number of one that has ended is given to another. */
	if (earlier && earlier->ended_ns)
		remove_thread(world, earlier, SPOOL_STATE_EXITED, earlier->ended_ns);
	process = outside_process_find(world, pid);
	if (!process)
		process = add_process(world, pid, time_ns);
	if (!process || !parent || process == parent)
		return;
	process->parent_pid = parent->pid;
	process->is_kernel_thread = parent->pid == KERNEL_THREAD_PARENT;
	process->membership = parent->membership;
	process->cgroup = parent->cgroup ? strdup(parent->cgroup) : NULL;
	process->events_tid = parent->events_tid;
	process->executable = parent->executable ? strdup(parent->executable) : NULL;
	if (parent->arguments && (process->arguments = malloc(parent->argument_bytes))) {
		memcpy(process->arguments, parent->arguments, parent->argument_bytes);
		process->argument_bytes = parent->argument_bytes;
	}
	outside_modules_copy(process, parent);
}

void outside_world_flush(struct outside_world *world, uint64_t now_ns)
{
	for (uint32_t i = 0; i < OUTSIDE_TABLE_SIZE; i++) {
		for (struct outside_process *process = world->processes[i]; process;
		     process = process->next) {
			if (!process->spool)
				continue;
			process->spool->header.end_ticks = now_ns;
			outside_spool_flush(process->spool);
		}
	}
}

void outside_world_deinit(struct outside_world *world, uint64_t now_ns)
{
	for (uint32_t i = 0; i < OUTSIDE_TABLE_SIZE; i++) {
		for (struct outside_thread *thread = world->threads[i], *next; thread;
		     thread = next) {
			next = thread->next;
			remove_thread(world, thread,
				      thread->ended_ns ? SPOOL_STATE_EXITED : SPOOL_STATE_LEFT,
				      thread->ended_ns ? thread->ended_ns : now_ns);
		}
	}
	outside_images_deinit(&world->images);
	free(world->walked);
	if (world->scratch)
		free(world->scratch->stack_pointers);
	free(world->scratch);
	free(world->spool_directory);
}
