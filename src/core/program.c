/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See program.h; file formats in proc(5).
 */
#include "core/program.h"

#include <errno.h>
#include <fcntl.h>

#include "common/syscalls.h"
#include "core/base/text.h"
#include "core/base/ticks.h"
#include "core/helper.h"
#include "core/threads.h"

#define PATH_SIZE 96

long program_open_proc_file(const char *name, int flags)
{
	char path[PATH_SIZE];
	struct text_buffer text = text_buffer_init(path, sizeof(path));

	if (helper_is_current_process())
		return helper_get_program_proc_fd() < 0
			       ? -ENOENT
			       : sys_call4(SYS_openat, helper_get_program_proc_fd(), (long)name,
					   O_RDONLY | O_CLOEXEC | flags, 0);
	text_append_string(&text, "/proc/self/");
	text_append_string(&text, name);
	return sys_open(path, O_RDONLY | O_CLOEXEC | flags, 0);
}

long program_open_task_file(uint32_t tid, const char *name)
{
	char path[PATH_SIZE];
	struct text_buffer text = text_buffer_init(path, sizeof(path));

	text_append_string(&text, "task/");
	text_append_unsigned(&text, tid);
	text_append_string(&text, "/");
	text_append_string(&text, name);
	return program_open_proc_file(path, 0);
}

static size_t read_file_and_close(long fd, char *buffer, size_t size)
{
	size_t length = 0;
	long count;

	buffer[0] = 0;
	if (fd < 0)
		return 0;
	while (length + 1 < size &&
	       (count = sys_read((int)fd, buffer + length, size - length - 1)) > 0)
		length += (size_t)count;
	sys_close((int)fd);
	buffer[length] = 0;
	return length;
}

size_t program_read_proc_file(const char *name, char *buffer, size_t size)
{
	return read_file_and_close(program_open_proc_file(name, 0), buffer, size);
}

size_t program_read_task_file(uint32_t tid, const char *name, char *buffer, size_t size)
{
	return read_file_and_close(program_open_task_file(tid, name), buffer, size);
}

/* Clock id of another process's CPU time: ~pid << 3, scheduler clock 2 (kernel,
 * include/linux/posix-timers.h). */
uint64_t program_read_clock_ns(int clock)
{
	if (clock == CLOCK_PROCESS_CPUTIME_ID && helper_is_current_process())
		clock = (int)(~helper_get_program_pid() << 3 | 2);
	return read_posix_clock_ns(clock);
}

static uint64_t parse_number_and_skip_space(const char **at)
{
	uint64_t number = 0;

	for (; **at >= '0' && **at <= '9'; ++*at)
		number = number * 10 + (unsigned)(**at - '0');
	if (**at == ' ')
		++*at;
	return number;
}

/* "run-ns queued-ns arrivals" (Documentation/scheduler/sched-stats.rst). */
uint64_t program_read_task_cpu_and_arrivals(uint32_t tid, uint64_t *ret_arrivals)
{
	char buffer[96];
	const char *at = buffer;
	uint64_t cpu;

	program_read_task_file(tid, "schedstat", buffer, sizeof(buffer));
	cpu = parse_number_and_skip_space(&at);
	parse_number_and_skip_space(&at);
	*ret_arrivals = parse_number_and_skip_space(&at);
	return cpu;
}

uint64_t program_get_cpu_ns_by_tid(uint32_t tid)
{
	uint64_t arrivals;

	return helper_is_current_process() ? program_read_task_cpu_and_arrivals(tid, &arrivals)
					   : read_cpu_ns_of_tid(tid);
}

/* What the event has counted. Another thread of the helper may close it meanwhile, and its number
 * may be another file's then. */
bool program_thread_read_perf_event_count(struct thread *thread, uint64_t *ret)
{
	int fd = __atomic_load_n(&thread->perf_event_fd, __ATOMIC_ACQUIRE);

	return fd >= 0 && sys_read(fd, ret, sizeof(*ret)) == sizeof(*ret) &&
	       __atomic_load_n(&thread->perf_event_fd, __ATOMIC_ACQUIRE) == fd;
}

void program_thread_set_cpu_count_base(struct thread *thread, uint64_t cpu_ns)
{
	uint64_t count;

	thread->event_count_base_cpu_ns =
		program_thread_read_perf_event_count(thread, &count) ? cpu_ns - count : 0;
	thread->is_cpu_time_from_event = thread->perf_event_fd >= 0;
}

bool program_thread_cpu_is_exact(const struct thread *thread)
{
	return !helper_is_current_process() || (thread->is_cpu_time_from_event && thread->armed);
}

uint64_t program_thread_get_cpu_ns(struct thread *thread)
{
	uint64_t count, cpu,
		seen = atomic_load_explicit(&thread->latest_reported_cpu_ns, memory_order_relaxed);

	if (!helper_is_current_process())
		return read_cpu_ns_of_tid(thread->tid);
	if (thread->is_cpu_time_from_event && thread->armed &&
	    program_thread_read_perf_event_count(thread, &count))
		cpu = thread->event_count_base_cpu_ns + count;
	else
		cpu = program_get_cpu_ns_by_tid(thread->tid);
	if (!cpu)
		return 0;
	/* The two ways differ a little; a clock does not go back. */
	while (cpu > seen &&
	       !atomic_compare_exchange_weak_explicit(&thread->latest_reported_cpu_ns, &seen, cpu,
						      memory_order_relaxed, memory_order_relaxed))
		;
	return cpu > seen ? cpu : seen;
}
