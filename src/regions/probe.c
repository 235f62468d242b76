/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See probe.h.
 */
#include "regions/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "common/perf_events.h"
#include "common/settings_value.h"
#include "common/syscalls.h"
#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "core/counters.h"
#include "core/notices.h"
#include "core/own_thread.h"
#include "core/program.h"
#include "regions/state.h"

#define PAGE_BYTES               4096u
#define PROBE_IDLE_WAIT_NS       500000000ull
#define PROBE_ANSWER_TIMEOUT_NS  50000000ull /* then the reading is given up */
#define PROC_FILE_SIZE_MAX       1024
#define NOTICE_BIT_SCALED_COUNTS 31

static struct {
	struct own_thread thread;
	_Atomic(struct probe_reading_request *) requests;
	_Atomic uint32_t wake, is_stop_requested, is_running;
	struct perf_event_code events[PERF_EVENT_COMPONENTS_PER_PROFILE_MAX];
	uint32_t event_count;
	int statm_fd;
	_Atomic uint32_t told; /* bit per thing that has been said */
} probe;

/* ---- what it reads ---- */

static const char *parse_number(const char *text, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;

	for (;; text++) {
		unsigned digit = *text >= '0' && *text <= '9'   ? (unsigned)(*text - '0')
				 : *text >= 'a' && *text <= 'f' ? (unsigned)(*text - 'a' + 10)
								: 99;
		if (digit >= base)
			break;
		value = value * base + digit;
	}
	*ret = value;
	return text;
}

static void parse_event_codes(const char *text)
{
	struct text_slice rest = setting_slice_from_text(text), code;

	probe.event_count = 0;
	while (probe.event_count < PERF_EVENT_COMPONENTS_PER_PROFILE_MAX &&
	       setting_next_list_word(&rest, &code))
		perf_event_parse_code(code.text, code.length, &probe.events[probe.event_count++]);
}

static bool read_proc_file(int fd, char *buffer)
{
	long length = sys_pread(fd, buffer, PROC_FILE_SIZE_MAX - 1, 0);

	buffer[length > 0 ? length : 0] = 0;
	return length > 0;
}

/* statm: size and resident pages (proc(5)). */
static void read_proc_statm(struct probe_reading_request *request)
{
	char buffer[PROC_FILE_SIZE_MAX];
	const char *text = buffer;
	uint64_t pages;

	if (probe.statm_fd < 0)
		probe.statm_fd = (int)sys_open("/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
	if (probe.statm_fd < 0 || !read_proc_file(probe.statm_fd, buffer))
		return;
	text = parse_number(text, 10, &pages);
	request->memory_bytes[COMPONENT_MEMORY_VIRTUAL] = pages * PAGE_BYTES;
	parse_number(text + 1, 10, &pages);
	request->memory_bytes[COMPONENT_MEMORY_RESIDENT] = pages * PAGE_BYTES;
}

/* io: "rchar: N", "wchar: N", "syscr: N", "syscw: N", "read_bytes: N", "write_bytes: N" a line. */
static void read_proc_io(struct probe_reading_request *request)
{
	static const int8_t lines[] = {COMPONENT_IO_READ_CHARS, COMPONENT_IO_WRITTEN_CHARS, -1, -1,
				       COMPONENT_IO_READ_BYTES, COMPONENT_IO_WRITTEN_BYTES};
	char buffer[PROC_FILE_SIZE_MAX];
	const char *text = buffer;

	if (!program_read_task_file(request->tid, "io", buffer, sizeof(buffer)))
		return;
	for (unsigned line = 0; *text && line < sizeof(lines); line++) {
		uint64_t value;

		while (*text && (*text < '0' || *text > '9'))
			text++;
		text = parse_number(text, 10, &value);
		if (lines[line] >= 0)
			request->io_bytes[lines[line]] = value;
	}
}

static void post_notice_once(uint32_t what, uint64_t argument, const char *text)
{
	if (!(atomic_fetch_or(&probe.told, 1u << what) & 1u << what))
		notices_post(kymo_regions.background, SPOOL_NOTICE_FALLBACK, argument, text, NULL);
}

static void open_thread_events(struct probe_reading_request *request)
{
	for (uint32_t i = 0; i < probe.event_count; i++) {
		void *page;

		request->event_fds[i] =
			(int)counters_open_perf_event(&probe.events[i], request->tid, true);
		request->event_mmap_pages[i] = NULL;
		if (request->event_fds[i] < 0) {
			post_notice_once(
				i, (uint64_t)-request->event_fds[i],
				"a perf event among the components cannot be counted here and "
				"stays zero");
			continue;
		}
		page = sys_mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, request->event_fds[i], 0);
		if (!sys_mmap_failed(page))
			request->event_mmap_pages[i] = page;
	}
	request->has_opened_events = true;
}

static uint64_t get_scaled_count_and_post_notice(const struct counter_reading *reading)
{
	if (counter_reading_is_partial(reading))
		post_notice_once(
			NOTICE_BIT_SCALED_COUNTS, 0,
			"more perf events than hardware counters: the kernel counted them in "
			"turns, and kymo scaled the counts up");
	return counter_reading_get_scaled_count(reading);
}

static void read_thread_events(struct probe_reading_request *request)
{
	struct counter_reading reading;

	if (!request->has_opened_events)
		open_thread_events(request);
	for (uint32_t i = 0; i < probe.event_count; i++) {
		if (request->event_fds[i] >= 0 &&
		    sys_read(request->event_fds[i], &reading, sizeof(reading)) == sizeof(reading))
			request->events[i] = get_scaled_count_and_post_notice(&reading);
	}
}

static void close_thread_events(struct probe_reading_request *request)
{
	for (uint32_t i = 0; request->has_opened_events && i < probe.event_count; i++) {
		if (request->event_mmap_pages[i])
			sys_munmap(request->event_mmap_pages[i], PAGE_BYTES);
		if (request->event_fds[i] >= 0)
			sys_close(request->event_fds[i]);
	}
	request->has_opened_events = false;
}

/* ---- its thread ---- */

static void answer_probe_request(struct probe_reading_request *request)
{
	if (request->what & PROBE_READ_MEMORY)
		read_proc_statm(request);
	if (request->what & PROBE_READ_IO)
		read_proc_io(request);
	if (request->what & PROBE_READ_EVENTS)
		read_thread_events(request);
	if (request->what & PROBE_CLOSE_EVENTS)
		close_thread_events(request);
	atomic_store_explicit(&request->done, 1, memory_order_release);
	futex_wake_all_waiters(&request->done);
}

static void run_probe_thread(void *argument)
{
	struct thread *own = argument;

	own_thread_announce_registry_block(&probe.thread, kymo_regions.threads, own);
	while (!atomic_load(&probe.is_stop_requested)) {
		uint32_t wake = atomic_load(&probe.wake);
		struct probe_reading_request *request = atomic_exchange(&probe.requests, NULL),
					     *next;

		own_thread_apply_credentials_if_new(&probe.thread);
		if (!request) {
			futex_wait(&probe.wake, wake, PROBE_IDLE_WAIT_NS);
			continue;
		}
		for (; request; request = next) {
			next = request->next;
			answer_probe_request(request);
		}
	}
	atomic_store(&probe.is_running, 0);
}

int probe_start_background_thread(const char *events)
{
	struct thread *own = threads_allocate_block(kymo_regions.threads, THREAD_ORIGIN_INTERNAL,
						    THREADS_NO_PARENT);
	int error;

	if (!own)
		return -ENOMEM;
	parse_event_codes(events);
	probe.statm_fd = -1;
	probe.is_stop_requested = 0;
	probe.requests = NULL;
	probe.is_running = 1;
	error = own_thread_start_with_registry_block(&probe.thread, "kymo-probe", run_probe_thread,
						     own, kymo_regions.threads);
	if (error)
		probe.is_running = 0;
	return error;
}

void probe_set_not_running(void)
{
	probe.is_running = 0;
}

bool probe_request_and_wait(struct probe_reading_request *request, uint32_t what)
{
	struct probe_reading_request *head = atomic_load(&probe.requests);
	uint64_t end;

	if (!atomic_load_explicit(&probe.is_running, memory_order_relaxed))
		return false;
	/* An earlier request that was given up may still be on the list. */
	if (request->what && !atomic_load_explicit(&request->done, memory_order_acquire))
		return false;
	request->what = what;
	request->tid = (uint32_t)sys_gettid();
	atomic_store_explicit(&request->done, 0, memory_order_relaxed);
	do {
		request->next = head;
	} while (!atomic_compare_exchange_weak(&probe.requests, &head, request));
	atomic_fetch_add(&probe.wake, 1);
	futex_wake_all_waiters(&probe.wake);
	end = read_posix_clock_ns(CLOCK_MONOTONIC) + PROBE_ANSWER_TIMEOUT_NS;
	while (!atomic_load_explicit(&request->done, memory_order_acquire)) {
		uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC);

		if (now >= end)
			return false;
		futex_wait(&request->done, 0, end - now);
	}
	return true;
}

bool probe_read_thread_event_counts(struct probe_reading_request *request)
{
	struct counter_reading reading;

	if (!request->has_opened_events)
		return probe_request_and_wait(request, PROBE_READ_EVENTS);
	for (uint32_t i = 0; i < probe.event_count; i++) {
		if (request->event_fds[i] < 0)
			continue;
		if (!request->event_mmap_pages[i] ||
		    !counters_read_mmap_page(request->event_mmap_pages[i], &reading))
			return probe_request_and_wait(request, PROBE_READ_EVENTS);
		request->events[i] = get_scaled_count_and_post_notice(&reading);
	}
	return true;
}

void probe_request_close_events(struct probe_reading_request *request)
{
	if (request->has_opened_events)
		probe_request_and_wait(request, PROBE_CLOSE_EVENTS);
}
