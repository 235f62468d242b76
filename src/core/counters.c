/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counters.h.
 */
#include "core/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "common/perf_events.h"
#include "common/settings_value.h"
#include "common/syscalls.h"
#include "core/runtime.h"
#include "core/text.h"

#define PAGE_SIZE 4096u

static void say_missing(struct runtime *runtime, struct setting_slice name, long error)
{
	char buffer[160];
	struct text text = text_on(buffer, sizeof(buffer));

	text_string(&text, "this counter cannot be opened here and stays zero: ");
	for (size_t i = 0; i < name.length; i++)
		text_character(&text, name.text[i]);
	track_notice(&runtime->track, SPOOL_NOTICE_DISABLED, (uint64_t)-error, buffer);
}

long counters_open_event(const struct perf_event_name *event, uint32_t tid, bool running)
{
	struct perf_event_attr attr = {0};
	long fd;

	attr.type = event->type;
	attr.config = event->config;
	attr.config1 = event->config1;
	attr.config2 = event->config2;
	attr.size = sizeof(attr);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.exclude_hv = 1;
	attr.disabled = !running;
	fd = sys_call6(SYS_perf_event_open, (long)&attr, (long)tid, -1, -1, PERF_FLAG_FD_CLOEXEC,
		       0);
	if (fd >= 0)
		return fd;
	attr.exclude_kernel = 1;
	return sys_call6(SYS_perf_event_open, (long)&attr, (long)tid, -1, -1, PERF_FLAG_FD_CLOEXEC,
			 0);
}

void counters_open(struct runtime *runtime, struct thread *thread)
{
	struct setting_slice rest = setting_slice(runtime->options.counters), name;
	struct setting_slice codes = setting_slice(runtime->options.counter_events), code;
	struct perf_event_name event;

	for (unsigned i = 0; i < THREAD_COUNTERS && setting_list_next(&rest, &name); i++) {
		bool known = setting_list_next(&codes, &code)
				     ? !perf_event_parse_code(code.text, code.length, &event)
				     : !perf_event_find(name.text, name.length, &event);
		long fd = known ? counters_open_event(&event, thread->tid, false) : -ENOENT;
		void *page;
		if (fd < 0) {
			if (!(runtime->background.told_counters & 1u << i))
				say_missing(runtime, name, fd);
			runtime->background.told_counters |= 1u << i;
			continue;
		}
		page = sys_mmap(NULL, PAGE_SIZE, PROT_READ, MAP_SHARED, (int)fd, 0);
		thread->counter_fd[i] = (int)fd;
		thread->counter_page[i] = sys_failed(page) ? NULL : page;
	}
}

void counters_switch(const struct thread *thread, bool on)
{
	for (unsigned i = 0; i < THREAD_COUNTERS; i++) {
		if (thread->counter_fd[i] >= 0)
			sys_call3(SYS_ioctl, thread->counter_fd[i],
				  on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	}
}

void counters_close(struct thread *thread)
{
	for (unsigned i = 0; i < THREAD_COUNTERS; i++) {
		if (thread->counter_page[i])
			sys_munmap(thread->counter_page[i], PAGE_SIZE);
		if (thread->counter_fd[i] >= 0)
			sys_close(thread->counter_fd[i]);
		thread->counter_page[i] = NULL;
		thread->counter_fd[i] = -1;
	}
}

void counters_follow(struct thread *thread)
{
	struct counter_reading reading;

	if (thread->samples == thread->counter_samples)
		return;
	thread->counter_samples = thread->samples;
	for (unsigned i = 0; i < THREAD_COUNTERS; i++) {
		if (thread->counter_fd[i] >= 0 &&
		    sys_read(thread->counter_fd[i], &reading, sizeof(reading)) == sizeof(reading))
			atomic_store_explicit(&thread->counter_value[i], counters_scaled(&reading),
					      memory_order_relaxed);
	}
}

static uint64_t read_pmc(uint32_t index)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
}

/* The protocol of perf_event_mmap_page: read until the sequence did not change
 * (linux/perf_event.h). */
bool counters_read_page(const volatile struct perf_event_mmap_page *page,
			struct counter_reading *ret)
{
	uint32_t sequence, index;

	do {
		sequence = page->lock;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		ret->enabled = page->time_enabled;
		ret->running = page->time_running;
		ret->count = (uint64_t)page->offset;
		index = page->cap_user_rdpmc ? page->index : 0;
		if (index) {
			unsigned unused = 64u - page->pmc_width;
			ret->count +=
				(uint64_t)((int64_t)(read_pmc(index - 1) << unused) >> unused);
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (page->lock != sequence);
	return index != 0;
}

uint64_t counters_scaled(const struct counter_reading *reading)
{
	if (!counters_is_partial(reading))
		return reading->count;
	return (uint64_t)((unsigned __int128)reading->count * reading->enabled / reading->running);
}

void counters_read(const struct thread *thread, uint64_t *values)
{
	struct counter_reading reading;

	for (unsigned i = 0; i < THREAD_COUNTERS; i++) {
		uint64_t followed =
			atomic_load_explicit(&thread->counter_value[i], memory_order_relaxed);

		values[i] = followed;
		if (!thread->counter_page[i])
			continue;
		if (counters_read_page(thread->counter_page[i], &reading) ||
		    counters_scaled(&reading) > followed)
			values[i] = counters_scaled(&reading);
	}
}
