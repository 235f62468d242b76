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
#include "core/counters.h"
#include "core/futex.h"
#include "core/notices.h"
#include "core/own_thread.h"
#include "core/runtime.h"
#include "core/text.h"
#include "core/ticks.h"

#define PAGE          4096u
#define PAUSE_NS      500000000ull
#define ANSWER_NS     50000000ull /* then the reading is given up */
#define FILE_SIZE_MAX 1024
#define TOLD_SCALED   31

static struct {
	struct own_thread thread;
	_Atomic(struct probe_request *) requests;
	_Atomic uint32_t wake, stop, running;
	struct perf_event_name events[COMPONENT_EVENTS_MAX];
	uint32_t event_count;
	int memory_file;
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

static void parse_events(const char *text)
{
	struct setting_slice rest = setting_slice(text), code;

	probe.event_count = 0;
	while (probe.event_count < COMPONENT_EVENTS_MAX && setting_list_next(&rest, &code))
		perf_event_parse_code(code.text, code.length, &probe.events[probe.event_count++]);
}

static bool read_file(int fd, char *buffer)
{
	long length = sys_pread(fd, buffer, FILE_SIZE_MAX - 1, 0);

	buffer[length > 0 ? length : 0] = 0;
	return length > 0;
}

/* statm: size and resident pages (proc(5)). */
static void read_memory(struct probe_request *request)
{
	char buffer[FILE_SIZE_MAX];
	const char *text = buffer;
	uint64_t pages;

	if (probe.memory_file < 0)
		probe.memory_file = (int)sys_open("/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
	if (probe.memory_file < 0 || !read_file(probe.memory_file, buffer))
		return;
	text = parse_number(text, 10, &pages);
	request->memory[COMPONENT_MEMORY_VIRTUAL] = pages * PAGE;
	parse_number(text + 1, 10, &pages);
	request->memory[COMPONENT_MEMORY_RESIDENT] = pages * PAGE;
}

/* io: "rchar: N", "wchar: N", "syscr: N", "syscw: N", "read_bytes: N", "write_bytes: N" a line. */
static void read_io(struct probe_request *request)
{
	static const int8_t lines[] = {COMPONENT_IO_READ_CHARS, COMPONENT_IO_WRITTEN_CHARS, -1, -1,
				       COMPONENT_IO_READ_BYTES, COMPONENT_IO_WRITTEN_BYTES};
	char path[64], buffer[FILE_SIZE_MAX];
	struct text name = text_on(path, sizeof(path));
	const char *text = buffer;
	int fd;

	text_string(&name, "/proc/self/task/");
	text_unsigned(&name, request->tid);
	text_string(&name, "/io");
	fd = (int)sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (!read_file(fd, buffer))
		buffer[0] = 0;
	sys_close(fd);
	for (unsigned line = 0; *text && line < sizeof(lines); line++) {
		uint64_t value;

		while (*text && (*text < '0' || *text > '9'))
			text++;
		text = parse_number(text, 10, &value);
		if (lines[line] >= 0)
			request->io[lines[line]] = value;
	}
}

static void say_once(uint32_t what, uint64_t argument, const char *text)
{
	if (!(atomic_fetch_or(&probe.told, 1u << what) & 1u << what))
		notices_post(&kymo_runtime.background, SPOOL_NOTICE_FALLBACK, argument, text, NULL);
}

static void open_events(struct probe_request *request)
{
	for (uint32_t i = 0; i < probe.event_count; i++) {
		void *page;

		request->descriptors[i] =
			(int)counters_open_event(&probe.events[i], request->tid, true);
		request->pages[i] = NULL;
		if (request->descriptors[i] < 0) {
			say_once(i, (uint64_t)-request->descriptors[i],
				 "a perf event among the components cannot be counted here and "
				 "stays zero");
			continue;
		}
		page = sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, request->descriptors[i], 0);
		if (!sys_failed(page))
			request->pages[i] = page;
	}
	request->opened = true;
}

static uint64_t scaled(const struct counter_reading *reading)
{
	if (counters_is_partial(reading))
		say_once(TOLD_SCALED, 0,
			 "more perf events than counters: they took turns, and their counts are "
			 "scaled up");
	return counters_scaled(reading);
}

static void read_events(struct probe_request *request)
{
	struct counter_reading reading;

	if (!request->opened)
		open_events(request);
	for (uint32_t i = 0; i < probe.event_count; i++) {
		if (request->descriptors[i] >= 0 &&
		    sys_read(request->descriptors[i], &reading, sizeof(reading)) == sizeof(reading))
			request->events[i] = scaled(&reading);
	}
}

static void close_events(struct probe_request *request)
{
	for (uint32_t i = 0; request->opened && i < probe.event_count; i++) {
		if (request->pages[i])
			sys_munmap(request->pages[i], PAGE);
		if (request->descriptors[i] >= 0)
			sys_close(request->descriptors[i]);
	}
	request->opened = false;
}

/* ---- its thread ---- */

static void answer(struct probe_request *request)
{
	if (request->what & PROBE_MEMORY)
		read_memory(request);
	if (request->what & PROBE_IO)
		read_io(request);
	if (request->what & PROBE_EVENTS)
		read_events(request);
	if (request->what & PROBE_CLOSE)
		close_events(request);
	atomic_store_explicit(&request->done, 1, memory_order_release);
	futex_wake(&request->done);
}

static void run(void *argument)
{
	struct thread *own = argument;

	own_thread_known(&probe.thread, &kymo_runtime.threads, own);
	while (!atomic_load(&probe.stop)) {
		uint32_t wake = atomic_load(&probe.wake);
		struct probe_request *request = atomic_exchange(&probe.requests, NULL), *next;

		own_thread_follow_credentials(&probe.thread);
		if (!request) {
			futex_wait(&probe.wake, wake, PAUSE_NS);
			continue;
		}
		for (; request; request = next) {
			next = request->next;
			answer(request);
		}
	}
	atomic_store(&probe.running, 0);
}

int probe_start(const char *events)
{
	struct thread *own = threads_allocate(&kymo_runtime.threads, THREAD_INTERNAL, THREADS_NONE);
	int error;

	if (!own)
		return -ENOMEM;
	parse_events(events);
	probe.memory_file = -1;
	probe.stop = 0;
	probe.requests = NULL;
	probe.running = 1;
	error = own_thread_start_known(&probe.thread, "kymo-probe", run, own,
				       &kymo_runtime.threads);
	if (error)
		probe.running = 0;
	return error;
}

void probe_forget(void)
{
	probe.running = 0;
}

bool probe_read(struct probe_request *request, uint32_t what)
{
	struct probe_request *head = atomic_load(&probe.requests);
	uint64_t end;

	if (!atomic_load_explicit(&probe.running, memory_order_relaxed))
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
	futex_wake(&probe.wake);
	end = ticks_clock_ns(CLOCK_MONOTONIC) + ANSWER_NS;
	while (!atomic_load_explicit(&request->done, memory_order_acquire)) {
		uint64_t now = ticks_clock_ns(CLOCK_MONOTONIC);

		if (now >= end)
			return false;
		futex_wait(&request->done, 0, end - now);
	}
	return true;
}

bool probe_read_events(struct probe_request *request)
{
	struct counter_reading reading;

	if (!request->opened)
		return probe_read(request, PROBE_EVENTS);
	for (uint32_t i = 0; i < probe.event_count; i++) {
		if (request->descriptors[i] < 0)
			continue;
		if (!request->pages[i] || !counters_read_page(request->pages[i], &reading))
			return probe_read(request, PROBE_EVENTS);
		request->events[i] = scaled(&reading);
	}
	return true;
}

void probe_close(struct probe_request *request)
{
	if (request->opened)
		probe_read(request, PROBE_CLOSE);
}
