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
#include "core/base/text.h"
#include "core/runtime.h"

#define PAGE_SIZE 4096u

static void write_missing_counter_notice(struct runtime *runtime, struct text_slice name,
					 long error)
{
	char buffer[160];
	struct text_buffer text = text_buffer_init(buffer, sizeof(buffer));

	text_append_string(&text, "this counter cannot be opened here and stays zero: ");
	for (size_t i = 0; i < name.length; i++)
		text_append_character(&text, name.text[i]);
	process_record_write_notice(&runtime->records, SPOOL_NOTICE_DISABLED, (uint64_t)-error,
				    buffer);
}

long counters_open_perf_event(const struct perf_event_code *event, uint32_t tid, bool running)
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

void counters_open_for_thread(struct runtime *runtime, struct thread *thread)
{
	struct text_slice rest = setting_slice_from_text(runtime->options.counters), name;
	struct text_slice codes = setting_slice_from_text(runtime->options.counter_event_codes),
			  code;
	struct perf_event_code event;

	for (unsigned i = 0; i < THREAD_COUNTERS_MAX && setting_next_list_word(&rest, &name); i++) {
		bool known = setting_next_list_word(&codes, &code)
				     ? !perf_event_parse_code(code.text, code.length, &event)
				     : !perf_event_find_by_name(name.text, name.length, &event);
		long fd = known ? counters_open_perf_event(&event, thread->tid, false) : -ENOENT;
		void *page;
		if (fd < 0) {
			if (!(runtime->background.told_unopenable_counters_mask & 1u << i))
				write_missing_counter_notice(runtime, name, fd);
			runtime->background.told_unopenable_counters_mask |= 1u << i;
			continue;
		}
		page = sys_mmap(NULL, PAGE_SIZE, PROT_READ, MAP_SHARED, (int)fd, 0);
		thread->counter_fd[i] = (int)fd;
		thread->counter_page[i] = sys_mmap_failed(page) ? NULL : page;
	}
}

void counters_set_enabled_for_thread(const struct thread *thread, bool on)
{
	for (unsigned i = 0; i < THREAD_COUNTERS_MAX; i++) {
		if (thread->counter_fd[i] >= 0)
			sys_call3(SYS_ioctl, thread->counter_fd[i],
				  on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	}
}

void counters_close_for_thread(struct thread *thread)
{
	for (unsigned i = 0; i < THREAD_COUNTERS_MAX; i++) {
		if (thread->counter_page[i])
			sys_munmap(thread->counter_page[i], PAGE_SIZE);
		if (thread->counter_fd[i] >= 0)
			sys_close(thread->counter_fd[i]);
		thread->counter_page[i] = NULL;
		thread->counter_fd[i] = -1;
	}
}

void counters_update_from_descriptors(struct thread *thread)
{
	struct counter_reading reading;

	if (thread->sample_count == thread->sample_count_at_counter_read)
		return;
	thread->sample_count_at_counter_read = thread->sample_count;
	for (unsigned i = 0; i < THREAD_COUNTERS_MAX; i++) {
		if (thread->counter_fd[i] >= 0 &&
		    sys_read(thread->counter_fd[i], &reading, sizeof(reading)) == sizeof(reading))
			atomic_store_explicit(&thread->counter_value[i],
					      counter_reading_get_scaled_count(&reading),
					      memory_order_relaxed);
	}
}

static uint64_t read_hardware_counter(uint32_t index)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
}

/* The protocol of perf_event_mmap_page: read until the sequence did not change
 * (linux/perf_event.h). */
bool counters_read_mmap_page(const volatile struct perf_event_mmap_page *page,
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
				(uint64_t)((int64_t)(read_hardware_counter(index - 1) << unused) >>
					   unused);
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (page->lock != sequence);
	return index != 0;
}

uint64_t counter_reading_get_scaled_count(const struct counter_reading *reading)
{
	if (!counter_reading_is_partial(reading))
		return reading->count;
	return (uint64_t)((unsigned __int128)reading->count * reading->enabled / reading->running);
}

void counters_read_for_sample(const struct thread *thread, uint64_t *values)
{
	struct counter_reading reading;

	for (unsigned i = 0; i < THREAD_COUNTERS_MAX; i++) {
		uint64_t followed =
			atomic_load_explicit(&thread->counter_value[i], memory_order_relaxed);

		values[i] = followed;
		if (!thread->counter_page[i])
			continue;
		if (counters_read_mmap_page(thread->counter_page[i], &reading) ||
		    counter_reading_get_scaled_count(&reading) > followed)
			values[i] = counter_reading_get_scaled_count(&reading);
	}
}
