/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See points_named.h. An address has a slot, whose number is in the data of its signals.
 */
#include "causal/points_named.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "causal/causal.h"
#include "causal/spins.h"
#include "causal/state.h"
#include "common/breakpoint_check.h"
#include "common/syscalls.h"
#include "core/base/text.h"
#include "core/base/ticks.h"
#include "core/process/task_state.h"
#include "core/sampler.h"
#include "core/sampling_source.h"

/* perf_event_attr of Linux 5.13 with sig_data, which older headers lack (core/sources.c). */
#define PERF_ATTR_SIZE_WITH_SIG_DATA    128
#define BREAKPOINT_EVENTS_MAX           65536u
#define BREAKPOINTS_DO_NOT_FIRE         (-ENOTRECOVERABLE) /* no errno of perf_event_open(2) */
#define GIVEN_UP_ADDRESSES_MAX          16u
#define FUNCTIONS_COUNTED_AS_VISITS_MAX 64u
/* So late a thread that was there before is not found any more. */
#define LATE_THREAD_SEARCH_DURATION_NS 1000000000ull
/* Visits a second, over a burst of time: one costs 10 us on a virtual machine, whose host sees
 * every breakpoint. */
#define VISIT_RATE_MAX_PER_SECOND 10000u
#define VISIT_RATE_WINDOW_NS      200000000ull
/* A sample that is as near as this behind a visit of the same address, in CPU time of the thread,
 * is of the same moment: it ran out while the visit was told (20 to 60 us later on a virtual
 * machine). Places that are come to as often as that are given up. */
#define SAME_VISIT_CPU_NS  100000u
#define EFLAGS_RESUME_FLAG 0x10000 /* RF of EFLAGS */

struct perf_attr_with_sig_data {
	struct perf_event_attr base;
	uint8_t more[PERF_ATTR_SIZE_WITH_SIG_DATA];
};

struct breakpoint_event {
	int fd;
	uint32_t slot_index, tid;
};

struct breakpoint_slot {
	_Atomic uint64_t address; /* 0: free */
	_Atomic uint32_t point_index;
	_Atomic uint32_t begin_point_index; /* of the end of a latency: its begin */
	_Atomic uint64_t visits;
	bool was_seen_in_update, was_problem_reported;
	uint64_t opened_ticks; /* 0: not yet; threads made later have inherited it */
	uint64_t opened_boottime_ns;
	uint64_t opened_monotonic_ns, rate_checked_ns, visits_at_rate_check;
};

static struct {
	struct breakpoint_slot slots[POINTS_NAMED_BREAKPOINT_SLOTS];
	struct breakpoint_event *perf_events;
	uint32_t perf_event_count;
	uint64_t given_up_addresses[GIVEN_UP_ADDRESSES_MAX]; /* addresses that are visited too often
							      */
	uint32_t given_up_address_count;
	bool was_unavailability_reported;
} breakpoint_table;

/* Functions whose calls are visits; written by the background thread for all. */
static struct {
	_Atomic uint32_t count;
	struct {
		uint64_t address;
		uint32_t point;
	} list[FUNCTIONS_COUNTED_AS_VISITS_MAX];
} functions_counted_as_visits;

/* ---- on the program's threads ---- */

void causal_handle_function_entry(uint64_t address)
{
	uint32_t count =
		atomic_load_explicit(&functions_counted_as_visits.count, memory_order_acquire);

	spins_begin_wait_if_spin_function(address);
	for (uint32_t i = 0; i < count; i++) {
		if (functions_counted_as_visits.list[i].address == address)
			causal_record_visit(functions_counted_as_visits.list[i].point);
	}
}

void causal_handle_function_exit(uint64_t address)
{
	spins_end_wait_if_spin_function(address);
}

bool points_named_has_breakpoint_at(uint64_t address)
{
	for (uint32_t i = 0; i < POINTS_NAMED_BREAKPOINT_SLOTS; i++) {
		const struct breakpoint_slot *slot = &breakpoint_table.slots[i];

		if (atomic_load_explicit(&slot->address, memory_order_relaxed) == address)
			return true;
	}
	return false;
}

static struct causal_point *find_causal_point_at_index(uint32_t point)
{
	struct causal_control *control = atomic_load(&kymo_causal);

	return control && point < CAUSAL_POINTS ? &control->points[point] : NULL;
}

/* What ends had begun: before we looked, or unseen. */
static void record_begin_point_visit_if_missing(struct breakpoint_slot *slot, uint32_t point)
{
	uint32_t begin = atomic_load_explicit(&slot->begin_point_index, memory_order_relaxed);
	const struct causal_point *first = find_causal_point_at_index(begin),
				  *last = find_causal_point_at_index(point);

	if (first && last &&
	    causal_load_relaxed(&last->visits) > causal_load_relaxed(&first->visits))
		causal_record_visit(begin);
}

static void count_breakpoint_slot_visit(struct breakpoint_slot *slot)
{
	uint32_t point = atomic_load_explicit(&slot->point_index, memory_order_relaxed);

	atomic_fetch_add_explicit(&slot->visits, 1, memory_order_relaxed);
	causal_record_visit(point);
	record_begin_point_visit_if_missing(slot, point);
}

/* The thread's last visit of code. */
static __thread struct {
	uint64_t ip, thread_cpu_ns;
	bool has_own_signal_pending; /* it was seen at a sample, and its own signal comes as well */
} last;

static void set_last_visit_of_this_thread(uint64_t ip, bool doubled)
{
	last.ip = ip;
	last.thread_cpu_ns = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	last.has_own_signal_pending = doubled;
}

static bool is_same_visit_as_last(uint64_t ip)
{
	return last.ip == ip && read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID) - last.thread_cpu_ns <
					SAME_VISIT_CPU_NS;
}

static bool another_trap_is_pending(void)
{
	uint64_t pending = 0;

	sys_call2(SYS_rt_sigpending, (long)&pending, sizeof(pending));
	return pending >> (SIGTRAP - 1) & 1;
}

/* SIGTRAP is not queued: of a breakpoint and a sample at the same moment one signal comes, and
 * traps take long enough for the sampler's clock to run out in one in a hundred. That the
 * breakpoint was taken shows in the resume flag, which faults set (Intel SDM 3B, 18.3.1.1): the
 * instruction has not run yet, and is not to be stopped at again. It shows as well where the sample
 * comes right behind the breakpoint's own signal. */
static void count_visits_at_sample(uint64_t ip, uint64_t flags)
{
	for (uint32_t i = 0; i < POINTS_NAMED_BREAKPOINT_SLOTS; i++) {
		struct breakpoint_slot *slot = &breakpoint_table.slots[i];

		if (slot->address == ip && flags & EFLAGS_RESUME_FLAG &&
		    !is_same_visit_as_last(ip)) {
			count_breakpoint_slot_visit(slot);
			set_last_visit_of_this_thread(ip, another_trap_is_pending());
		}
	}
}

static void count_visit_at_trap(struct breakpoint_slot *slot, uint64_t ip)
{
	if (!last.has_own_signal_pending || !is_same_visit_as_last(ip))
		count_breakpoint_slot_visit(slot);
	set_last_visit_of_this_thread(ip, false);
}

static void handle_breakpoint_visit(uint64_t mark, const void *context)
{
	const long long *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t number = mark - SAMPLER_SIGNAL_COOKIE_BREAKPOINT_FIRST,
		 ip = (uint64_t)registers[REG_RIP];

	if (number < POINTS_NAMED_BREAKPOINT_SLOTS)
		count_visit_at_trap(&breakpoint_table.slots[number], ip);
	else if (number >= SAMPLER_SIGNAL_BREAKPOINT_COOKIE_COUNT)
		count_visits_at_sample(ip, (uint64_t)registers[REG_EFL]);
}

/* ---- events ---- */

static int open_breakpoint_event(const struct breakpoint_slot *slot, uint32_t tid)
{
	struct perf_attr_with_sig_data attr = {0};

	attr.base.type = PERF_TYPE_BREAKPOINT;
	attr.base.size = PERF_ATTR_SIZE_WITH_SIG_DATA;
	attr.base.bp_type = HW_BREAKPOINT_X;
	attr.base.bp_addr = slot->address;
	attr.base.bp_len = sizeof(long);
	attr.base.sample_period = 1;
	attr.base.exclude_kernel = 1;
	attr.base.exclude_hv = 1;
	attr.base.inherit = 1;
	attr.base.inherit_thread = 1;
	attr.base.remove_on_exec = 1;
	attr.base.sigtrap = 1;
	attr.base.sig_data =
		SAMPLER_SIGNAL_COOKIE_BREAKPOINT_FIRST + (uint64_t)(slot - breakpoint_table.slots);
	return (int)sys_call6(SYS_perf_event_open, (long)&attr, (long)tid, -1, -1,
			      PERF_FLAG_FD_CLOEXEC, 0);
}

static bool ensure_room_in_event_table(void)
{
	if (!breakpoint_table.perf_events) {
		void *memory = sys_mmap(
			NULL, BREAKPOINT_EVENTS_MAX * sizeof(*breakpoint_table.perf_events),
			PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (!sys_mmap_failed(memory))
			breakpoint_table.perf_events = memory;
	}
	return breakpoint_table.perf_events &&
	       breakpoint_table.perf_event_count < BREAKPOINT_EVENTS_MAX;
}

static const char *get_name_of_point(uint32_t point)
{
	const struct causal_point *found = find_causal_point_at_index(point);

	return found ? found->name : "?";
}

static void write_point_problem_notice(struct runtime *runtime, uint32_t point, const char *why,
				       int error)
{
	char buffer[512];
	struct text_buffer text = text_buffer_init(buffer, sizeof(buffer));

	text_append_string(&text, "progress point '");
	text_append_string(&text, get_name_of_point(point));
	text_append_string(&text, why);
	process_record_write_notice(&runtime->records, SPOOL_NOTICE_DISABLED, (uint64_t)-error,
				    buffer);
}

static void write_refused_breakpoint_notice(struct runtime *runtime, struct breakpoint_slot *slot,
					    int error)
{
	if (slot->was_problem_reported)
		return;
	slot->was_problem_reported = true;
	write_point_problem_notice(
		runtime, slot->point_index,
		error == -ENOSPC   ? "' is not counted: the processor's breakpoints are in use"
		: error == -EACCES ? "' is not counted: perf events are not permitted"
		: error == BREAKPOINTS_DO_NOT_FIRE
			? "' is not counted: this machine's hardware breakpoints never fire (a "
			  "hypervisor keeps them back)"
			: "' is not counted: no hardware breakpoint is available",
		error);
}

/* 0, or a negative errno. */
static int open_slot_event_for_thread(struct breakpoint_slot *slot, uint32_t tid)
{
	int fd;

	if (!breakpoints_fire())
		return BREAKPOINTS_DO_NOT_FIRE;
	fd = ensure_room_in_event_table() ? open_breakpoint_event(slot, tid) : -ENOMEM;
	if (fd < 0)
		return fd;
	breakpoint_table.perf_events[breakpoint_table.perf_event_count++] =
		(struct breakpoint_event){fd, (uint32_t)(slot - breakpoint_table.slots), tid};
	return 0;
}

static void close_slot_events(const struct breakpoint_slot *slot)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < breakpoint_table.perf_event_count; i++) {
		if (&breakpoint_table.slots[breakpoint_table.perf_events[i].slot_index] == slot)
			sys_close(breakpoint_table.perf_events[i].fd);
		else
			breakpoint_table.perf_events[kept++] = breakpoint_table.perf_events[i];
	}
	breakpoint_table.perf_event_count = kept;
}

/* ---- slots ---- */

void points_named_begin_update(void)
{
	for (uint32_t i = 0; i < POINTS_NAMED_BREAKPOINT_SLOTS; i++)
		breakpoint_table.slots[i].was_seen_in_update = false;
}

/* Entries are never taken back: where no function is instrumented any more, none is entered. */
static void add_function_counted_as_visit(uint64_t address, uint32_t point)
{
	uint32_t count = atomic_load(&functions_counted_as_visits.count);

	for (uint32_t i = 0; i < count; i++) {
		if (functions_counted_as_visits.list[i].address == address)
			return;
	}
	if (count == FUNCTIONS_COUNTED_AS_VISITS_MAX)
		return;
	functions_counted_as_visits.list[count].address = address;
	functions_counted_as_visits.list[count].point = point;
	atomic_store_explicit(&functions_counted_as_visits.count, count + 1, memory_order_release);
}

static void write_missing_sigtrap_notice_once(struct runtime *runtime, uint32_t point)
{
	if (!breakpoint_table.was_unavailability_reported)
		write_point_problem_notice(
			runtime, point,
			"' is not counted: breakpoints need perf events with SIGTRAP", 0);
	breakpoint_table.was_unavailability_reported = true;
}

static bool address_was_given_up(uint64_t address)
{
	for (uint32_t i = 0; i < breakpoint_table.given_up_address_count; i++) {
		if (breakpoint_table.given_up_addresses[i] == address)
			return true;
	}
	return false;
}

/* UINT32_MAX: it is not the end of anything. */
static uint32_t find_begin_point_of_end_point(uint32_t point)
{
	const struct causal_point *end = find_causal_point_at_index(point), *begin;

	for (uint32_t i = 0; end && end->kind == CAUSAL_POINT_END && i < CAUSAL_POINTS; i++) {
		begin = find_causal_point_at_index(i);
		if (begin->state == CAUSAL_POINT_READY && begin->kind == CAUSAL_POINT_BEGIN &&
		    !strncmp(begin->name, end->name, CAUSAL_NAME_SIZE))
			return i;
	}
	return UINT32_MAX;
}

void points_named_add_address(struct runtime *runtime, enum points_named_address_kind what,
			      uint64_t address, uint32_t point)
{
	struct breakpoint_slot *free = NULL;

	if (address_was_given_up(address))
		return;
	if (what == POINTS_NAMED_ADDRESS_OF_TRACED_FUNCTION) {
		add_function_counted_as_visit(address, point);
		return;
	}
	/* without it SIGTRAP is the program's, which it would kill */
	if (runtime->sampler.source != &sampling_source_perf_sigtrap) {
		write_missing_sigtrap_notice_once(runtime, point);
		return;
	}
	for (uint32_t i = 0; i < POINTS_NAMED_BREAKPOINT_SLOTS; i++) {
		struct breakpoint_slot *slot = &breakpoint_table.slots[i];

		if (slot->address == address) {
			slot->was_seen_in_update = true;
			return;
		}
		if (!slot->address && !free)
			free = slot;
	}
	if (free) {
		*free = (struct breakpoint_slot){.was_seen_in_update = true};
		atomic_store(&free->point_index, point);
		atomic_store(&free->begin_point_index, find_begin_point_of_end_point(point));
		atomic_store(&free->address, address);
	} else if (!breakpoint_table.was_unavailability_reported) {
		breakpoint_table.was_unavailability_reported = true;
		write_point_problem_notice(runtime, point,
					   "' is not counted: there are four hardware breakpoints",
					   -ENOSPC);
	}
}

/* Threads that are made from now on inherit the slot's events. */
static void record_slot_opening_time(struct breakpoint_slot *slot)
{
	slot->opened_boottime_ns = read_posix_clock_ns(CLOCK_BOOTTIME);
	slot->opened_ticks = ticks_now();
}

static void open_slot_events_for_all(struct runtime *runtime, struct breakpoint_slot *slot)
{
	slot->opened_monotonic_ns = slot->rate_checked_ns = read_posix_clock_ns(CLOCK_MONOTONIC);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		int error = thread->origin != THREAD_ORIGIN_INTERNAL
				    ? open_slot_event_for_thread(slot, thread->tid)
				    : 0;

		if (error && error != -ESRCH)
			write_refused_breakpoint_notice(runtime, slot, error);
	}
	record_slot_opening_time(slot);
}

void points_named_end_update(struct runtime *runtime)
{
	atomic_store_explicit(&runtime->sampler.visited, handle_breakpoint_visit,
			      memory_order_release);
	for (uint32_t i = 0; i < POINTS_NAMED_BREAKPOINT_SLOTS; i++) {
		struct breakpoint_slot *slot = &breakpoint_table.slots[i];

		if (slot->address && !slot->was_seen_in_update) {
			close_slot_events(slot);
			slot->address = 0;
		} else if (slot->address && !slot->opened_ticks) {
			open_slot_events_for_all(runtime, slot);
		}
	}
}

/* ---- rounds ---- */

static bool slot_has_event_of_thread(const struct breakpoint_slot *slot, uint32_t tid)
{
	for (uint32_t i = 0; i < breakpoint_table.perf_event_count; i++) {
		if (&breakpoint_table.slots[breakpoint_table.perf_events[i].slot_index] == slot &&
		    breakpoint_table.perf_events[i].tid == tid)
			return true;
	}
	return false;
}

/* A thread that was made before the breakpoint was there has not inherited it, even if it ran for
 * the first time later: with many threads and few processors that is the usual case. */
static bool thread_is_older_than_events(const struct thread *thread,
					const struct breakpoint_slot *slot)
{
	uint64_t created;

	return thread->start_ticks < slot->opened_ticks ||
	       !task_read_creation_time(thread->tid, &created) ||
	       created <= slot->opened_boottime_ns;
}

/* Threads that were made before the breakpoint, but were not known yet; then those that these have
 * made meanwhile. One that has inherited it after all has it twice, which the kernel tells as one
 * signal, or cannot have it once more. */
static void open_events_for_late_threads(struct runtime *runtime, struct breakpoint_slot *slot)
{
	bool any = false;

	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		if (thread->origin != THREAD_ORIGIN_INTERNAL &&
		    !slot_has_event_of_thread(slot, thread->tid) &&
		    thread_is_older_than_events(thread, slot))
			any |= !open_slot_event_for_thread(slot, thread->tid);
	}
	if (any)
		record_slot_opening_time(slot);
}

static bool visits_are_too_frequent(struct breakpoint_slot *slot, uint64_t now)
{
	uint64_t visits = atomic_load_explicit(&slot->visits, memory_order_relaxed);
	uint64_t passed = now - slot->rate_checked_ns, more = visits - slot->visits_at_rate_check;

	if (passed < VISIT_RATE_WINDOW_NS)
		return false;
	slot->rate_checked_ns = now;
	slot->visits_at_rate_check = visits;
	return more > passed * VISIT_RATE_MAX_PER_SECOND / 1000000000ull;
}

static void give_up_address_of_breakpoint_slot(struct runtime *runtime,
					       struct breakpoint_slot *slot)
{
	struct causal_control *control = atomic_load(&kymo_causal);

	close_slot_events(slot);
	if (control && slot->point_index < CAUSAL_POINTS)
		atomic_store(&control->points[slot->point_index].given_up, 1);
	if (breakpoint_table.given_up_address_count < GIVEN_UP_ADDRESSES_MAX)
		breakpoint_table.given_up_addresses[breakpoint_table.given_up_address_count++] =
			slot->address;
	write_point_problem_notice(runtime, slot->point_index,
				   "' runs more than 10,000 times a second, more often than "
				   "breakpoints can count: name another line",
				   0);
	slot->address = 0;
}

void points_named_run_background_round(struct runtime *runtime)
{
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < POINTS_NAMED_BREAKPOINT_SLOTS; i++) {
		struct breakpoint_slot *slot = &breakpoint_table.slots[i];

		if (!slot->address || !slot->opened_ticks)
			continue;
		if (now - slot->opened_monotonic_ns < LATE_THREAD_SEARCH_DURATION_NS)
			open_events_for_late_threads(runtime, slot);
		if (visits_are_too_frequent(slot, now))
			give_up_address_of_breakpoint_slot(runtime, slot);
	}
}

void points_named_reset_after_fork(void)
{
	breakpoint_table.perf_event_count = 0;
	for (uint32_t i = 0; i < POINTS_NAMED_BREAKPOINT_SLOTS; i++)
		breakpoint_table.slots[i].opened_ticks = 0;
}
