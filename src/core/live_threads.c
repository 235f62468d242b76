/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See live_threads.h.
 */
#include "core/live_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/base/own_work.h"
#include "core/base/ticks.h"
#include "core/process/maps.h"
#include "core/program.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "core/sources.h"

#define LIVE_THREADS_FOR_NAME_CHECKS_MAX                                                           \
	1000 /* with more threads, only the names at their ends are taken                          \
	      */
#define TASK_DIRECTORY_BASE_LINKS                                                                  \
	2 /* of /proc/PID/task besides one a thread (kernel, proc_task_getattr) */
#define STARTING_THREAD_CPU_MAX_NS                                                                 \
	1000000 /* of CPU time: before that a thread has not begun what it is for */

static void read_thread_name(uint32_t tid, char *name)
{
	size_t length = program_read_task_file(tid, "comm", name, THREAD_NAME_SIZE);

	if (length && name[length - 1] == '\n')
		name[length - 1] = 0;
}

void live_threads_write_start_record(struct runtime *runtime, struct thread *thread)
{
	struct process_records *track = &runtime->records;

	if (thread->origin == THREAD_ORIGIN_INTERNAL)
		memcpy(thread->name, "kymo", 5);
	else if (!thread->name[0]) /* it did not begin under our eyes, and could not tell */
		read_thread_name(thread->tid, thread->name);
	process_record_begin(track, SPOOL_RECORD_THREAD_START);
	process_record_append_fixed64(track, thread->start_ticks);
	process_record_append_unsigned(track, thread->internal_id);
	process_record_append_unsigned(track, thread->sequential_id);
	process_record_append_unsigned(track, thread->tid);
	process_record_append_unsigned(
		track, thread->parent == THREADS_NO_PARENT ? 0 : (uint64_t)thread->parent + 1);
	process_record_append_unsigned(track, thread->entry);
	process_record_append_string(track, thread->name);
	process_record_append_unsigned(track, thread->origin);
	process_record_end_and_commit(track);
	thread->started = true;
}

/* Threads are named after they began, by themselves or by others (pthread_setname_np). */
static void record_thread_name_if_changed(struct runtime *runtime, struct thread *thread,
					  const char *name)
{
	struct process_records *track = &runtime->records;

	if (!name[0] || !strncmp(name, thread->name, THREAD_NAME_SIZE))
		return;
	memcpy(thread->name, name, THREAD_NAME_SIZE);
	thread->name[THREAD_NAME_SIZE - 1] = 0;
	process_record_begin(track, SPOOL_RECORD_THREAD_NAME);
	process_record_append_unsigned(track, thread->internal_id);
	process_record_append_string(track, thread->name);
	process_record_end_and_commit(track);
}

void live_threads_record_changed_names(struct runtime *runtime)
{
	char name[THREAD_NAME_SIZE];

	if (runtime->background.live_thread_count > LIVE_THREADS_FOR_NAME_CHECKS_MAX)
		return;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		memset(name, 0, sizeof(name));
		if (thread->origin != THREAD_ORIGIN_INTERNAL)
			read_thread_name(thread->tid, name);
		record_thread_name_if_changed(runtime, thread, name);
	}
}

/* CPU time that was to be sampled; 0 for threads that were not. */
static uint64_t compute_thread_cpu_ns_to_be_sampled(const struct thread *thread)
{
	uint64_t end = thread->end_cpu_ns > thread->cpu_ns_at_arming
			       ? thread->end_cpu_ns - thread->cpu_ns_at_arming
			       : 0;
	uint64_t passed = thread->total_excluded_cpu_ns;

	end = thread->collected_cpu_ns +
	      (thread->armed || thread->counts_cpu_before_arming ? end : 0);
	if (thread->excluded_reasons && thread->end_cpu_ns > thread->cpu_ns_at_exclusion)
		passed += thread->end_cpu_ns - thread->cpu_ns_at_exclusion;
	return end > passed ? end - passed : 0;
}

static void write_thread_end_record(struct runtime *runtime, const struct thread *thread,
				    uint64_t ticks)
{
	struct process_records *track = &runtime->records;
	uint64_t collected = compute_thread_cpu_ns_to_be_sampled(thread);

	process_record_begin(track, SPOOL_RECORD_THREAD_END);
	process_record_append_fixed64(track, ticks);
	process_record_append_unsigned(track, thread->internal_id);
	process_record_append_unsigned(track, collected > thread->covered_ns ? collected
									     : thread->covered_ns);
	process_record_append_unsigned(track, thread->covered_ns);
	process_record_append_unsigned(track, thread->sample_count);
	process_record_append_unsigned(track, thread->signal_count);
	process_record_end_and_commit(track);
}

static void add_live_thread_and_record_start(struct runtime *runtime, struct thread *thread)
{
	struct background_state *background = &runtime->background;

	live_threads_write_start_record(runtime, thread);
	thread->seen = background->scan;
	thread->live_next = background->live;
	thread->live_previous = NULL;
	if (background->live)
		background->live->live_previous = thread;
	background->live = thread;
	background->live_thread_count++;
	if (thread->origin != THREAD_ORIGIN_INTERNAL) {
		background->program_thread_count++;
		sources_open_for_thread(runtime, thread);
	}
}

static void remove_live_thread_and_record_end(struct runtime *runtime, struct thread *thread)
{
	struct background_state *background = &runtime->background;

	sampler_close_stream(thread);
	if (runtime->hooks)
		runtime->hooks->on_thread_gone_silently(thread);
	wall_sampler_record_thread_end(runtime, thread);
	record_thread_name_if_changed(runtime, thread, thread->end_name);
	write_thread_end_record(runtime, thread,
				thread->end_ticks ? thread->end_ticks : ticks_now());
	sources_close_for_thread(thread);
	background->ended_threads_signal_count += thread->signal_count;
	background->ended_threads_handler_ticks += thread->handler_ticks;
	background->ended_threads_covered_ns += thread->covered_ns;
	background->ended_threads_sample_count += thread->sample_count;
	background->ended_threads_switch_cost_ns += thread->switch_rate.switch_cost_ns;
	if (thread->live_previous)
		thread->live_previous->live_next = thread->live_next;
	else
		background->live = thread->live_next;
	if (thread->live_next)
		thread->live_next->live_previous = thread->live_previous;
	background->live_thread_count--;
	if (thread->origin != THREAD_ORIGIN_INTERNAL)
		background->program_thread_count--;
	atomic_store_explicit(&thread->state, THREAD_STATE_ENDED, memory_order_release);
	threads_unbind_and_free_one_block(&runtime->threads, thread);
}

static struct ending_thread *get_ending_thread(struct runtime *runtime, uint32_t tid)
{
	return &runtime->background.ending[tid % ENDING_THREADS];
}

static void note_ending_thread(struct runtime *runtime, const struct thread *thread)
{
	*get_ending_thread(runtime, thread->tid) = (struct ending_thread){
		.tid = thread->tid, .scan = runtime->background.scan, .cpu_ns = thread->end_cpu_ns};
}

/* It is no new thread while it is on its way out, as long as that costs next to nothing: what runs
 * on (destructors of thread-local data) is sampled. A tid that one scan has not seen is free. */
static bool is_ending_thread(struct runtime *runtime, uint32_t tid)
{
	struct ending_thread *ending = get_ending_thread(runtime, tid);

	if (ending->tid != tid || ending->scan + 1 < runtime->background.scan ||
	    program_get_cpu_ns_by_tid(tid) > ending->cpu_ns + STARTING_THREAD_CPU_MAX_NS)
		return false;
	ending->scan = runtime->background.scan;
	return true;
}

void live_threads_process_announced(struct runtime *runtime)
{
	struct thread *thread = threads_take_announced(&runtime->threads);

	while (thread) {
		enum thread_announcement_kind what;
		struct thread *next = threads_get_next_announced(&runtime->threads, thread, &what);
		if (!thread->started)
			add_live_thread_and_record_start(runtime, thread);
		if (what == THREAD_ANNOUNCED_END) {
			note_ending_thread(runtime, thread);
			remove_live_thread_and_record_end(runtime, thread);
		}
		thread = next;
	}
}

static void add_found_thread(struct runtime *runtime, uint32_t tid)
{
	struct thread *thread =
		threads_allocate_block(&runtime->threads, THREAD_ORIGIN_FOUND, THREADS_NO_PARENT);

	if (!thread)
		return;
	thread->start_ticks = ticks_now();
	/* CPU time before now was not ours to sample */
	thread->cpu_ns = program_get_cpu_ns_by_tid(tid);
	if (!threads_bind_found_tid(&runtime->threads, thread, tid)) {
		threads_free_block(&runtime->threads, thread);
		return;
	}
	add_live_thread_and_record_start(runtime, thread);
}

/* One that is created takes the block that was made for it, with its number, as soon as it runs,
 * which on a busy machine can be a while after it is on the list. */
static bool thread_may_be_starting(struct runtime *runtime, uint32_t tid)
{
	return atomic_load_explicit(&runtime->threads.not_yet_running_count,
				    memory_order_relaxed) &&
	       program_get_cpu_ns_by_tid(tid) < STARTING_THREAD_CPU_MAX_NS;
}

static void find_or_add_thread_of_task_entry(struct runtime *runtime, const char *name)
{
	struct thread *thread;
	uint64_t tid = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		tid = tid * 10 + (unsigned)(*name - '0');
	if (*name || !tid)
		return;
	thread = threads_find_by_tid(&runtime->threads, (uint32_t)tid);
	if (thread &&
	    atomic_load_explicit(&thread->state, memory_order_acquire) != THREAD_STATE_FREE)
		thread->seen = runtime->background.scan;
	else if (!is_ending_thread(runtime, (uint32_t)tid) &&
		 !thread_may_be_starting(runtime, (uint32_t)tid))
		add_found_thread(runtime, (uint32_t)tid);
}

/* The kernel's struct linux_dirent64 (getdents64(2)). */
struct kernel_directory_entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

static bool scan_task_directory(struct runtime *runtime)
{
	char buffer[8192] __attribute__((aligned(8)));
	long fd = program_open_proc_file("task", O_DIRECTORY), length;

	if (fd < 0)
		return false;
	while ((length = sys_call3(SYS_getdents64, fd, (long)buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < length;) {
			const struct kernel_directory_entry *entry =
				(const struct kernel_directory_entry *)(buffer + at);
			find_or_add_thread_of_task_entry(runtime, entry->name);
			at += entry->size;
		}
	}
	sys_close((int)fd);
	return length == 0;
}

static long stat_task_directory(struct stat *status)
{
	long fd = program_open_proc_file("task", O_PATH | O_DIRECTORY), error;

	if (fd < 0)
		return fd;
	error = sys_call2(SYS_fstat, fd, (long)status);
	sys_close((int)fd);
	return error;
}

/* Did the thread end without a word? Not by the listing of /proc alone, which ends early where the
 * thread that it stands at exits meanwhile (next_tid() in fs/proc/base.c), and is older than a
 * thread that has the same tid and has taken the block over by now. */
static bool is_silently_ended(struct runtime *runtime, struct thread *thread)
{
	bool is_gone = threads_find_by_tid(&runtime->threads, thread->tid) != thread ||
		       sys_call3(SYS_tgkill, kymo_process.pid, thread->tid, 0) == -ESRCH;

	/* Its end is announced before it is gone: in this order no announcement is missed. */
	if (!is_gone || atomic_load(&thread->announcement_kind))
		return false;
	return atomic_load(&thread->state) == THREAD_STATE_LIVE || threads_end_found_block(thread);
}

void live_threads_scan_tasks(struct runtime *runtime)
{
	struct background_state *background = &runtime->background;
	uint64_t start = read_posix_clock_ns(CLOCK_MONOTONIC);
	struct thread *thread, *next;
	struct stat status;

	background->scan++;
	/* The link count tells whether any thread is unknown or gone without listing them. */
	if (!stat_task_directory(&status) &&
	    status.st_nlink == background->program_thread_count + TASK_DIRECTORY_BASE_LINKS)
		return;
	if (!scan_task_directory(runtime))
		return;
	/* Ends announced before a thread left the list are worked off first; what is still missing
	 * ended silently. */
	live_threads_process_announced(runtime);
	for (thread = background->live; thread; thread = next) {
		next = thread->live_next;
		if (thread->origin ==
		    THREAD_ORIGIN_INTERNAL) /* one of the helper's, which is not in there */
			continue;
		if (thread->seen != background->scan && is_silently_ended(runtime, thread))
			remove_live_thread_and_record_end(runtime, thread);
	}
	background->thread_scan_cost_ns = read_posix_clock_ns(CLOCK_MONOTONIC) - start;
}

static bool thread_needs_stack_lookup(const struct thread *thread)
{
	return !thread->stack_bounds.high && thread->seen_stack_pointer &&
	       !thread->was_stack_looked_up;
}

/* Stacks that libc makes have a guard below them, and nothing else is in their mapping: it is there
 * as long as the thread. Of others nothing is known; they are read with care. */
static void set_stack_bounds_if_in_mapping(struct thread *thread, const struct maps_line *line,
					   bool guarded)
{
	if (!thread_needs_stack_lookup(thread) || thread->seen_stack_pointer < line->start ||
	    thread->seen_stack_pointer >= line->end)
		return;
	thread->was_stack_looked_up = true;
	if (!guarded || !line->readable || !line->writable || line->path[0])
		return;
	thread->stack_bounds.low = line->start;
	/* release: a handler that sees the upper end sees the lower one */
	__atomic_store_n(&thread->stack_bounds.high, line->end, __ATOMIC_RELEASE);
}

void live_threads_find_stack_bounds(struct runtime *runtime)
{
	static char *buffer;
	static uint64_t size;
	uint64_t guard_end = 0;
	struct maps_line line;
	bool any = false;
	char *text;

	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		any = any || thread_needs_stack_lookup(thread);
	if (!any || maps_read_whole_file("/proc/self/maps", &buffer, &size) <= 0)
		return;
	for (text = buffer; maps_parse_next_line(&text, &line);) {
		for (struct thread *thread = runtime->background.live; thread;
		     thread = thread->live_next)
			set_stack_bounds_if_in_mapping(thread, &line, guard_end == line.start);
		guard_end = line.readable ? 0 : line.end;
	}
	maps_free_buffer(&buffer, size);
	size = 0;
}

void live_threads_sum_totals_into_header(struct runtime *runtime)
{
	struct background_state *background = &runtime->background;
	struct spool_file_header *header = runtime->spool.header;
	uint64_t signals = background->ended_threads_signal_count,
		 ticks = background->ended_threads_handler_ticks;
	uint64_t covered = background->ended_threads_covered_ns,
		 samples = background->ended_threads_sample_count;
	uint64_t switch_cost = background->ended_threads_switch_cost_ns;

	for (const struct thread *thread = background->live; thread; thread = thread->live_next) {
		signals += thread->signal_count;
		ticks += thread->handler_ticks;
		covered += thread->covered_ns;
		samples += thread->sample_count;
		switch_cost += thread->switch_rate.switch_cost_ns;
	}
	header->signals = signals;
	header->handler_ticks = ticks;
	header->cpu_covered_ns = covered;
	header->samples = samples;
	header->threads = runtime->threads.registered_count;
	header->helper_cpu_ns = read_posix_clock_ns(CLOCK_PROCESS_CPUTIME_ID); /* of the helper */
	header->switch_cost_ns = switch_cost;
	own_work_write_to_header(header);
}

void live_threads_write_end_records(struct runtime *runtime)
{
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		thread->end_cpu_ns = program_thread_get_cpu_ns(thread);
		write_thread_end_record(runtime, thread, ticks_now());
	}
}
