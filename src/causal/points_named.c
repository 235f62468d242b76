/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See points_named.h. An address has a slot; its breakpoints are told by the slot's number in the
 * signal's data. The number of a slot that is given up comes back late, so that a signal on its way
 * does not count for another point.
 */
#include "causal/points_named.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "causal/causal.h"
#include "common/syscalls.h"
#include "core/sampler.h"
#include "core/text.h"
#include "core/ticks.h"

/* perf_event_attr of Linux 5.13 with sig_data, which older headers lack (core/sources.c). */
#define ATTR_SIZE_WITH_SIG_DATA 128
#define EVENTS_MAX              65536u
#define LATE_NS                 1000000000ull /* so late a thread of before is not found any more */

struct event_attr {
	struct perf_event_attr base;
	uint8_t more[ATTR_SIZE_WITH_SIG_DATA];
};

struct named_event {
	int fd;
	uint32_t slot, tid;
};

struct named_slot {
	uint64_t address; /* 0: free */
	_Atomic uint32_t point;
	bool seen, told;
	uint64_t opened_ticks; /* 0: not yet; threads made before inherit nothing */
	uint64_t opened_ns;
};

static struct {
	struct named_slot slots[POINTS_NAMED_MAX];
	struct named_event *events;
	uint32_t event_count;
} named;

/* ---- handler ---- */

static void visit(uint64_t mark)
{
	uint64_t slot = mark - SAMPLER_MARK_POINT;

	if (slot < POINTS_NAMED_MAX)
		causal_visit(atomic_load_explicit(&named.slots[slot].point, memory_order_relaxed));
}

/* ---- events ---- */

static int open_breakpoint(uint64_t address, uint32_t tid, uint32_t slot)
{
	struct event_attr attr = {0};

	attr.base.type = PERF_TYPE_BREAKPOINT;
	attr.base.size = ATTR_SIZE_WITH_SIG_DATA;
	attr.base.bp_type = HW_BREAKPOINT_X;
	attr.base.bp_addr = address;
	attr.base.bp_len = sizeof(long);
	attr.base.sample_period = 1;
	attr.base.exclude_kernel = 1;
	attr.base.exclude_hv = 1;
	attr.base.inherit = 1;
	attr.base.inherit_thread = 1;
	attr.base.remove_on_exec = 1;
	attr.base.sigtrap = 1;
	attr.base.sig_data = SAMPLER_MARK_POINT + slot;
	return (int)sys_call6(SYS_perf_event_open, (long)&attr, (long)tid, -1, -1,
			      PERF_FLAG_FD_CLOEXEC, 0);
}

static bool reserve_events(void)
{
	if (!named.events) {
		void *memory =
			sys_mmap(NULL, EVENTS_MAX * sizeof(*named.events), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (!sys_failed(memory))
			named.events = memory;
	}
	return named.events && named.event_count < EVENTS_MAX;
}

static void tell(struct runtime *runtime, const char *why, int error)
{
	char buffer[256];
	struct text text = text_on(buffer, sizeof(buffer));

	text_string(&text, "a progress point is not counted: ");
	text_string(&text, why);
	track_notice(&runtime->track, SPOOL_NOTICE_DISABLED, (uint64_t)-error, buffer);
}

static void watch(struct runtime *runtime, uint32_t slot, uint32_t tid)
{
	int fd = reserve_events() ? open_breakpoint(named.slots[slot].address, tid, slot) : -ENOMEM;

	if (fd >= 0)
		named.events[named.event_count++] = (struct named_event){fd, slot, tid};
	if (fd >= 0 || fd == -ESRCH || named.slots[slot].told)
		return;
	named.slots[slot].told = true;
	tell(runtime,
	     fd == -ENOSPC   ? "the processor's breakpoints are in use"
	     : fd == -EACCES ? "perf events are not permitted"
			     : "no hardware breakpoint can be had",
	     fd);
}

static void unwatch(uint32_t slot)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < named.event_count; i++) {
		if (named.events[i].slot == slot)
			sys_close(named.events[i].fd);
		else
			named.events[kept++] = named.events[i];
	}
	named.event_count = kept;
}

/* ---- slots ---- */

void points_named_begin(void)
{
	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++)
		named.slots[i].seen = false;
}

void points_named_at(struct runtime *runtime, uint64_t address, const char *name,
		     enum causal_point_kind kind)
{
	struct named_slot *free = NULL;

	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++) {
		struct named_slot *slot = &named.slots[i];

		if (slot->address == address) {
			slot->seen = true;
			return;
		}
		if (!slot->address && !free)
			free = slot;
	}
	if (!free) {
		tell(runtime, "there are four hardware breakpoints, and more addresses", -ENOSPC);
		return;
	}
	*free = (struct named_slot){.address = address, .seen = true};
	atomic_store(&free->point, causal_point(name, kind, CAUSAL_ORIGIN_NAMED));
}

static void slot_open(struct runtime *runtime, uint32_t slot)
{
	named.slots[slot].opened_ticks = ticks_now();
	named.slots[slot].opened_ns = ticks_clock_ns(CLOCK_MONOTONIC);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		if (thread->how != THREAD_INTERNAL)
			watch(runtime, slot, thread->tid);
	}
}

void points_named_end(struct runtime *runtime)
{
	atomic_store_explicit(&runtime->sampling.visited, visit, memory_order_release);
	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++) {
		struct named_slot *slot = &named.slots[i];

		if (slot->address && !slot->seen) {
			unwatch(i);
			slot->address = 0;
		} else if (slot->address && !slot->opened_ticks) {
			slot_open(runtime, i);
		}
	}
}

/* ---- threads ---- */

static bool is_watched(uint32_t slot, uint32_t tid)
{
	for (uint32_t i = 0; i < named.event_count; i++) {
		if (named.events[i].slot == slot && named.events[i].tid == tid)
			return true;
	}
	return false;
}

/* A thread that was made before the breakpoint, but was not known yet, or whose maker got it late.
 */
void points_named_follow(struct runtime *runtime)
{
	uint64_t now = ticks_clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++) {
		const struct named_slot *slot = &named.slots[i];

		if (!slot->address || !slot->opened_ticks || now - slot->opened_ns > LATE_NS)
			continue;
		for (struct thread *thread = runtime->background.live; thread;
		     thread = thread->live_next) {
			if (thread->how != THREAD_INTERNAL &&
			    thread->start_ticks < slot->opened_ticks && !is_watched(i, thread->tid))
				watch(runtime, i, thread->tid);
		}
	}
}

void points_named_forked(void)
{
	named.event_count = 0;
	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++)
		named.slots[i].opened_ticks = 0;
}
