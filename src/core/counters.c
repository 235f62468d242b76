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

static long open_counter(const struct perf_event_name *event, uint32_t tid)
{
	struct perf_event_attr attr = {0};
	long fd;

	attr.type = event->type;
	attr.config = event->config;
	attr.config1 = event->config1;
	attr.config2 = event->config2;
	attr.size = sizeof(attr);
	attr.exclude_hv = 1;
	attr.disabled = 1;
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
		long fd = known ? open_counter(&event, thread->tid) : -ENOENT;
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

static uint64_t read_pmc(uint32_t index)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
}

/* The protocol of perf_event_mmap_page: read until the sequence did not change
 * (linux/perf_event.h). */
static uint64_t read_counter(const volatile struct perf_event_mmap_page *page)
{
	uint64_t count, enabled, running;
	uint32_t sequence;

	do {
		uint32_t index;
		sequence = page->lock;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		enabled = page->time_enabled;
		running = page->time_running;
		count = (uint64_t)page->offset;
		index = page->index;
		if (page->cap_user_rdpmc && index) {
			unsigned unused = 64u - page->pmc_width;
			count += (uint64_t)((int64_t)(read_pmc(index - 1) << unused) >> unused);
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (page->lock != sequence);
	if (running && running < enabled)
		count = (uint64_t)((double)count * (double)enabled / (double)running);
	return count;
}

void counters_read(const struct thread *thread, uint64_t *values)
{
	for (unsigned i = 0; i < THREAD_COUNTERS; i++) {
		if (thread->counter_page[i])
			values[i] = read_counter(thread->counter_page[i]);
	}
}
