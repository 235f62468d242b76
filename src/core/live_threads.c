/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See live_threads.h.
 */
#include "core/live_threads.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/maps.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "core/sources.h"
#include "core/text.h"
#include "core/ticks.h"

#define NAMES_FOLLOWED 1000 /* with more threads, only the names at their ends are taken */
#define TASK_LINKS     2 /* of /proc/self/task besides one a thread (kernel, proc_task_getattr) */
#define COMING_NS      1000000 /* of CPU time: before that a thread has not begun what it is for */

static void read_name(uint32_t tid, char *name)
{
	char path[64];
	struct text text = text_on(path, sizeof(path));
	long fd, length;

	text_string(&text, "/proc/self/task/");
	text_unsigned(&text, tid);
	text_string(&text, "/comm");
	name[0] = 0;
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	length = sys_read((int)fd, name, THREAD_NAME_SIZE - 1);
	sys_close((int)fd);
	name[length > 0 ? length : 0] = 0;
	if (length > 0 && name[length - 1] == '\n')
		name[length - 1] = 0;
}

void live_threads_describe(struct runtime *runtime, struct thread *thread)
{
	struct track *track = &runtime->track;

	if (thread->how == THREAD_INTERNAL)
		memcpy(thread->name, "kymo", 5);
	else if (!thread->name[0]) /* it did not begin under our eyes, and could not tell */
		read_name(thread->tid, thread->name);
	track_begin(track, SPOOL_RECORD_THREAD_START);
	track_fixed(track, thread->start_ticks);
	track_unsigned(track, thread->internal_id);
	track_unsigned(track, thread->sequent_id);
	track_unsigned(track, thread->tid);
	track_unsigned(track, thread->parent == THREADS_NONE ? 0 : (uint64_t)thread->parent + 1);
	track_unsigned(track, thread->entry);
	track_string(track, thread->name);
	track_unsigned(track, thread->how);
	track_end(track);
	thread->started = true;
}

/* Threads are named after they began, by themselves or by others (pthread_setname_np). */
static void note_name(struct runtime *runtime, struct thread *thread, const char *name)
{
	struct track *track = &runtime->track;

	if (!name[0] || !strncmp(name, thread->name, THREAD_NAME_SIZE))
		return;
	memcpy(thread->name, name, THREAD_NAME_SIZE);
	thread->name[THREAD_NAME_SIZE - 1] = 0;
	track_begin(track, SPOOL_RECORD_THREAD_NAME);
	track_unsigned(track, thread->internal_id);
	track_string(track, thread->name);
	track_end(track);
}

void live_threads_follow_names(struct runtime *runtime)
{
	char name[THREAD_NAME_SIZE];

	if (runtime->background.live_count > NAMES_FOLLOWED)
		return;
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		memset(name, 0, sizeof(name));
		if (thread->how != THREAD_INTERNAL)
			read_name(thread->tid, name);
		note_name(runtime, thread, name);
	}
}

/* CPU time that was to be sampled; 0 for threads that were not. */
static uint64_t collected_cpu(const struct thread *thread)
{
	uint64_t end = thread->end_cpu_ns > thread->armed_cpu_ns
			       ? thread->end_cpu_ns - thread->armed_cpu_ns
			       : 0;
	uint64_t passed = thread->passed_over_ns;

	end = thread->collected_ns + (thread->armed ? end : 0);
	if (thread->excluded && thread->end_cpu_ns > thread->excluded_cpu_ns)
		passed += thread->end_cpu_ns - thread->excluded_cpu_ns;
	return end > passed ? end - passed : 0;
}

static void write_end(struct runtime *runtime, const struct thread *thread, uint64_t ticks)
{
	struct track *track = &runtime->track;
	uint64_t collected = collected_cpu(thread);

	track_begin(track, SPOOL_RECORD_THREAD_END);
	track_fixed(track, ticks);
	track_unsigned(track, thread->internal_id);
	track_unsigned(track, collected > thread->covered_ns ? collected : thread->covered_ns);
	track_unsigned(track, thread->covered_ns);
	track_unsigned(track, thread->samples);
	track_unsigned(track, thread->signals);
	track_end(track);
}

static void begin(struct runtime *runtime, struct thread *thread)
{
	struct background *background = &runtime->background;

	live_threads_describe(runtime, thread);
	thread->seen = background->scan;
	thread->live_next = background->live;
	thread->live_previous = NULL;
	if (background->live)
		background->live->live_previous = thread;
	background->live = thread;
	background->live_count++;
	if (thread->how != THREAD_INTERNAL) {
		background->program_threads++;
		sources_open(runtime, thread);
	}
}

static void end(struct runtime *runtime, struct thread *thread)
{
	struct background *background = &runtime->background;

	sampler_close_stream(thread);
	if (runtime->hooks)
		runtime->hooks->thread_gone(thread);
	note_name(runtime, thread, thread->end_name);
	write_end(runtime, thread, thread->end_ticks ? thread->end_ticks : ticks_now());
	sources_close(thread);
	background->past_signals += thread->signals;
	background->past_handler_ticks += thread->handler_ticks;
	background->past_covered_ns += thread->covered_ns;
	background->past_samples += thread->samples;
	if (thread->live_previous)
		thread->live_previous->live_next = thread->live_next;
	else
		background->live = thread->live_next;
	if (thread->live_next)
		thread->live_next->live_previous = thread->live_previous;
	background->live_count--;
	if (thread->how != THREAD_INTERNAL)
		background->program_threads--;
	atomic_store_explicit(&thread->state, THREAD_ENDED, memory_order_release);
	threads_recycle(&runtime->threads, thread);
}

void live_threads_process(struct runtime *runtime)
{
	struct thread *thread = threads_take_announced(&runtime->threads);

	while (thread) {
		enum thread_announcement what;
		struct thread *next = threads_next_announced(&runtime->threads, thread, &what);
		if (!thread->started)
			begin(runtime, thread);
		if (what == THREAD_ANNOUNCED_END)
			end(runtime, thread);
		thread = next;
	}
}

static void found(struct runtime *runtime, uint32_t tid)
{
	struct thread *thread = threads_allocate(&runtime->threads, THREAD_FOUND, THREADS_NONE);

	if (!thread)
		return;
	thread->start_ticks = ticks_now();
	/* CPU time before now was not ours to sample */
	thread->cpu_ns = ticks_thread_cpu_ns(tid);
	if (threads_bind(&runtime->threads, thread, tid) != thread) {
		threads_discard(&runtime->threads, thread);
		return;
	}
	atomic_store_explicit(&thread->state, THREAD_LIVE, memory_order_release);
	begin(runtime, thread);
}

/* One that is created takes the block that was made for it, with its number, as soon as it runs,
 * which on a busy machine can be a while after it is on the list. */
static bool may_be_coming(struct runtime *runtime, uint32_t tid)
{
	return atomic_load_explicit(&runtime->threads.coming, memory_order_relaxed) &&
	       ticks_thread_cpu_ns(tid) < COMING_NS;
}

static void look_at(struct runtime *runtime, const char *name)
{
	struct thread *thread;
	uint64_t tid = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		tid = tid * 10 + (unsigned)(*name - '0');
	if (*name || !tid || tid == runtime->background.thread.tid)
		return;
	thread = threads_by_tid(&runtime->threads, (uint32_t)tid);
	if (thread && atomic_load_explicit(&thread->state, memory_order_acquire) != THREAD_FREE)
		thread->seen = runtime->background.scan;
	else if (!may_be_coming(runtime, (uint32_t)tid))
		found(runtime, (uint32_t)tid);
}

/* The kernel's struct linux_dirent64 (getdents64(2)). */
struct directory_entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

static bool read_tasks(struct runtime *runtime)
{
	char buffer[8192] __attribute__((aligned(8)));
	long fd = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), length;

	if (fd < 0)
		return false;
	while ((length = sys_call3(SYS_getdents64, fd, (long)buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < length;) {
			const struct directory_entry *entry =
				(const struct directory_entry *)(buffer + at);
			look_at(runtime, entry->name);
			at += entry->size;
		}
	}
	sys_close((int)fd);
	return length == 0;
}

void live_threads_scan(struct runtime *runtime)
{
	struct background *background = &runtime->background;
	uint64_t start = ticks_clock_ns(CLOCK_MONOTONIC);
	struct thread *thread, *next;
	struct stat status;

	/* The link count tells whether any thread is unknown or gone without listing them. */
	if (!sys_call4(SYS_newfstatat, SYS_AT_WORKING_DIRECTORY, (long)"/proc/self/task",
		       (long)&status, 0) &&
	    status.st_nlink == background->live_count + 1 + TASK_LINKS)
		return;
	background->scan++;
	if (!read_tasks(runtime))
		return;
	/* Ends announced before a thread left the list are worked off first; what is still missing
	 * ended silently. */
	live_threads_process(runtime);
	for (thread = background->live; thread; thread = next) {
		next = thread->live_next;
		if (thread->seen != background->scan && !atomic_load(&thread->announcement))
			end(runtime, thread);
	}
	background->scan_cost_ns = ticks_clock_ns(CLOCK_MONOTONIC) - start;
}

static bool lacks_stack(const struct thread *thread)
{
	return !thread->bounds.high && thread->stack_seen && !thread->stack_looked_up;
}

/* Stacks that libc makes have a guard below them, and nothing else is in their mapping: it is there
 * as long as the thread. Of others nothing is known; they are read with care. */
static void take_stack(struct thread *thread, const struct maps_line *line, bool guarded)
{
	if (!lacks_stack(thread) || thread->stack_seen < line->start ||
	    thread->stack_seen >= line->end)
		return;
	thread->stack_looked_up = true;
	if (!guarded || !line->readable || !line->writable || line->path[0])
		return;
	thread->bounds.low = line->start;
	/* release: a handler that sees the upper end sees the lower one */
	__atomic_store_n(&thread->bounds.high, line->end, __ATOMIC_RELEASE);
}

void live_threads_find_stacks(struct runtime *runtime)
{
	static char *buffer;
	static uint64_t size;
	uint64_t guard_end = 0;
	struct maps_line line;
	bool any = false;
	char *text;

	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next)
		any = any || lacks_stack(thread);
	if (!any || maps_read("/proc/self/maps", &buffer, &size) <= 0)
		return;
	for (text = buffer; maps_next(&text, &line);) {
		for (struct thread *thread = runtime->background.live; thread;
		     thread = thread->live_next)
			take_stack(thread, &line, guard_end == line.start);
		guard_end = line.readable ? 0 : line.end;
	}
	maps_free(&buffer, size);
	size = 0;
}

void live_threads_totals(struct runtime *runtime)
{
	struct background *background = &runtime->background;
	struct spool_file_header *header = runtime->spool.header;
	uint64_t signals = background->past_signals, ticks = background->past_handler_ticks;
	uint64_t covered = background->past_covered_ns, samples = background->past_samples;

	for (const struct thread *thread = background->live; thread; thread = thread->live_next) {
		signals += thread->signals;
		ticks += thread->handler_ticks;
		covered += thread->covered_ns;
		samples += thread->samples;
	}
	header->signals = signals;
	header->handler_ticks = ticks;
	header->cpu_covered_ns = covered;
	header->samples = samples;
	header->threads = runtime->threads.registered;
	header->helper_cpu_ns =
		ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID) + allocators_cpu_ns(&runtime->allocators);
	if (runtime->wall_sampler.own && runtime->wall_sampler.own->tid)
		header->helper_cpu_ns += ticks_thread_cpu_ns(runtime->wall_sampler.own->tid);
}

void live_threads_write_totals(struct runtime *runtime)
{
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		thread->end_cpu_ns = ticks_thread_cpu_ns(thread->tid);
		write_end(runtime, thread, ticks_now());
	}
}
