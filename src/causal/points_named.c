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
#include "common/syscalls.h"
#include "core/sampler.h"
#include "core/text.h"
#include "core/ticks.h"

/* perf_event_attr of Linux 5.13 with sig_data, which older headers lack (core/sources.c). */
#define ATTR_SIZE_WITH_SIG_DATA 128
#define EVENTS_MAX              65536u
#define REFUSED_MAX             16u
#define ENTERED_MAX             64u
/* So late a thread that was there before is not found any more. */
#define LATE_NS 1000000000ull
/* Visits a second, over a stretch of time: one costs 10 us on a virtual machine, whose host sees
 * every breakpoint. */
#define RATE_MAX        10000u
#define RATE_STRETCH_NS 200000000ull
/* A sample that is as near as this behind a visit of the same address, in CPU time of the thread,
 * is of the same moment: it ran out while the visit was told (20 to 60 us later on a virtual
 * machine). Places that are come to as often as that are given up. */
#define NEAR_NS 100000u
/* So many visits that nobody told of are told late; of more, when they were cannot be guessed. */
#define LATE_MAX    16u
#define FLAG_RESUME 0x10000 /* RF of EFLAGS */

struct event_attr {
	struct perf_event_attr base;
	uint8_t more[ATTR_SIZE_WITH_SIG_DATA];
};

struct named_event {
	int fd;
	uint32_t slot, tid;
};

struct named_slot {
	_Atomic uint64_t address; /* 0: free */
	enum points_named_what what;
	_Atomic uint32_t point;
	_Atomic uint32_t begin; /* of the end of a latency: its begin */
	_Atomic uint64_t visits;
	bool seen, told;
	uint64_t opened_ticks; /* 0: not yet; threads made later have inherited it */
	uint64_t opened_ns, looked_ns, looked_visits;
};

static struct {
	struct named_slot slots[POINTS_NAMED_MAX];
	struct named_event *events;
	uint32_t event_count;
	uint64_t refused[REFUSED_MAX]; /* addresses that are visited too often */
	uint32_t refused_count;
	bool told_full;
} named;

/* Functions whose calls are told of; by the background thread for all. */
static struct {
	_Atomic uint32_t count;
	struct {
		uint64_t address;
		uint32_t point;
	} list[ENTERED_MAX];
} entered;

/* ---- on the program's threads ---- */

void causal_entered(uint64_t address)
{
	uint32_t count = atomic_load_explicit(&entered.count, memory_order_acquire);

	spins_entered(address);
	for (uint32_t i = 0; i < count; i++) {
		if (entered.list[i].address == address)
			causal_visit(entered.list[i].point);
	}
}

void causal_left(uint64_t address)
{
	spins_left(address);
}

bool points_named_is_visited(uint64_t address)
{
	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++) {
		const struct named_slot *slot = &named.slots[i];

		if (atomic_load_explicit(&slot->address, memory_order_relaxed) == address &&
		    slot->what == POINTS_NAMED_CODE)
			return true;
	}
	return false;
}

static struct causal_point *point_at(uint32_t point)
{
	struct causal_control *control = atomic_load(&kymo_causal);

	return control && point < CAUSAL_POINTS ? &control->points[point] : NULL;
}

/* What ends had begun: before we looked, or unseen. */
static void begin_what_ended(struct named_slot *slot, uint32_t point)
{
	uint32_t begin = atomic_load_explicit(&slot->begin, memory_order_relaxed);
	const struct causal_point *first = point_at(begin), *last = point_at(point);

	if (first && last && causal_get(&last->visits) > causal_get(&first->visits))
		causal_visit(begin);
}

static void visit(struct named_slot *slot)
{
	uint32_t point = atomic_load_explicit(&slot->point, memory_order_relaxed);

	atomic_fetch_add_explicit(&slot->visits, 1, memory_order_relaxed);
	causal_visit(point);
	begin_what_ended(slot, point);
}

/* The program counts itself (coz.h), in the point, for all processes; we tell when it was. A trap
 * that comes with a sample has no signal of its own, so that visits are told until there are as
 * many as were counted. */
static void visit_counted(struct named_slot *slot)
{
	uint32_t index = atomic_load_explicit(&slot->point, memory_order_relaxed);
	struct causal_point *point = point_at(index);
	uint64_t visits, counted;

	for (uint32_t i = 0; point; i++) {
		visits = causal_get(&point->visits);
		counted = __atomic_load_n(&point->coz[0], __ATOMIC_RELAXED);
		if (visits >= counted)
			return;
		if (i == LATE_MAX || (!i && counted - visits > LATE_MAX))
			atomic_compare_exchange_strong(&point->visits, &visits, counted - 1);
		atomic_fetch_add_explicit(&slot->visits, 1, memory_order_relaxed);
		causal_visit(index);
	}
}

/* The thread's last visit of code. */
static __thread struct {
	uint64_t ip, cpu_ns;
	bool doubled; /* it was seen at a sample, and its own signal comes as well */
} last;

static void note_visit(uint64_t ip, bool doubled)
{
	last.ip = ip;
	last.cpu_ns = ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	last.doubled = doubled;
}

static bool is_same_visit(uint64_t ip)
{
	return last.ip == ip && ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID) - last.cpu_ns < NEAR_NS;
}

static bool another_waits(void)
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
static void visit_at_sample(uint64_t ip, uint64_t flags)
{
	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++) {
		struct named_slot *slot = &named.slots[i];

		if (slot->address && slot->what == POINTS_NAMED_COUNTER) {
			visit_counted(slot);
		} else if (slot->address == ip && flags & FLAG_RESUME && !is_same_visit(ip)) {
			visit(slot);
			note_visit(ip, another_waits());
		}
	}
}

static void visit_at_trap(struct named_slot *slot, uint64_t ip)
{
	if (slot->what == POINTS_NAMED_COUNTER) {
		visit_counted(slot);
		return;
	}
	if (!last.doubled || !is_same_visit(ip))
		visit(slot);
	note_visit(ip, false);
}

static void visited(uint64_t mark, const void *context)
{
	const long long *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t number = mark - SAMPLER_MARK_POINT, ip = (uint64_t)registers[REG_RIP];

	if (number < POINTS_NAMED_MAX)
		visit_at_trap(&named.slots[number], ip);
	else if (number >= SAMPLER_MARK_POINTS)
		visit_at_sample(ip, (uint64_t)registers[REG_EFL]);
}

/* ---- events ---- */

static int open_breakpoint(const struct named_slot *slot, uint32_t tid)
{
	struct event_attr attr = {0};

	attr.base.type = PERF_TYPE_BREAKPOINT;
	attr.base.size = ATTR_SIZE_WITH_SIG_DATA;
	attr.base.bp_type = slot->what == POINTS_NAMED_CODE ? HW_BREAKPOINT_X : HW_BREAKPOINT_W;
	attr.base.bp_addr = slot->address;
	attr.base.bp_len = slot->what == POINTS_NAMED_CODE ? sizeof(long) : HW_BREAKPOINT_LEN_8;
	attr.base.sample_period = 1;
	attr.base.exclude_kernel = 1;
	attr.base.exclude_hv = 1;
	attr.base.inherit = 1;
	attr.base.inherit_thread = 1;
	attr.base.remove_on_exec = 1;
	attr.base.sigtrap = 1;
	attr.base.sig_data = SAMPLER_MARK_POINT + (uint64_t)(slot - named.slots);
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

static const char *point_name(uint32_t point)
{
	const struct causal_point *found = point_at(point);

	return found ? found->name : "?";
}

static void tell(struct runtime *runtime, uint32_t point, const char *why, int error)
{
	char buffer[512];
	struct text text = text_on(buffer, sizeof(buffer));

	text_string(&text, "progress point '");
	text_string(&text, point_name(point));
	text_string(&text, why);
	track_notice(&runtime->track, SPOOL_NOTICE_DISABLED, (uint64_t)-error, buffer);
}

static void tell_refused(struct runtime *runtime, struct named_slot *slot, int error)
{
	if (slot->told || slot->what == POINTS_NAMED_COUNTER) /* which counts without us */
		return;
	slot->told = true;
	tell(runtime, slot->point,
	     error == -ENOSPC   ? "' is not counted: the processor's breakpoints are in use"
	     : error == -EACCES ? "' is not counted: perf events are not permitted"
				: "' is not counted: no hardware breakpoint can be had",
	     error);
}

/* 0, or a negative errno. */
static int watch(struct named_slot *slot, uint32_t tid)
{
	int fd = reserve_events() ? open_breakpoint(slot, tid) : -ENOMEM;

	if (fd < 0)
		return fd;
	named.events[named.event_count++] =
		(struct named_event){fd, (uint32_t)(slot - named.slots), tid};
	return 0;
}

static void unwatch(const struct named_slot *slot)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < named.event_count; i++) {
		if (&named.slots[named.events[i].slot] == slot)
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

/* Entries are never taken back: where no function is instrumented any more, none is entered. */
static void add_entered(uint64_t address, uint32_t point)
{
	uint32_t count = atomic_load(&entered.count);

	for (uint32_t i = 0; i < count; i++) {
		if (entered.list[i].address == address)
			return;
	}
	if (count == ENTERED_MAX)
		return;
	entered.list[count].address = address;
	entered.list[count].point = point;
	atomic_store_explicit(&entered.count, count + 1, memory_order_release);
}

static void tell_without_signal(struct runtime *runtime, enum points_named_what what,
				uint32_t point)
{
	if (what == POINTS_NAMED_CODE && !named.told_full)
		tell(runtime, point,
		     "' is not counted: breakpoints need perf events that come by SIGTRAP", 0);
	named.told_full = true;
}

static bool is_refused(uint64_t address)
{
	for (uint32_t i = 0; i < named.refused_count; i++) {
		if (named.refused[i] == address)
			return true;
	}
	return false;
}

/* UINT32_MAX: it is not the end of anything. */
static uint32_t begin_of(uint32_t point)
{
	const struct causal_point *end = point_at(point), *begin;

	for (uint32_t i = 0; end && end->kind == CAUSAL_POINT_END && i < CAUSAL_POINTS; i++) {
		begin = point_at(i);
		if (begin->state == CAUSAL_POINT_READY && begin->kind == CAUSAL_POINT_BEGIN &&
		    !strncmp(begin->name, end->name, CAUSAL_NAME_SIZE))
			return i;
	}
	return UINT32_MAX;
}

void points_named_at(struct runtime *runtime, enum points_named_what what, uint64_t address,
		     uint32_t point)
{
	struct named_slot *free = NULL;

	if (is_refused(address))
		return;
	if (what == POINTS_NAMED_CALLS) {
		add_entered(address, point);
		return;
	}
	/* without it SIGTRAP is the program's, which it would kill */
	if (runtime->sampling.source != SPOOL_CPU_SOURCE_PERF_SIGTRAP) {
		tell_without_signal(runtime, what, point);
		return;
	}
	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++) {
		struct named_slot *slot = &named.slots[i];

		if (slot->address == address) {
			slot->seen = true;
			return;
		}
		if (!slot->address && !free)
			free = slot;
	}
	if (free) {
		*free = (struct named_slot){.what = what, .seen = true};
		atomic_store(&free->point, point);
		atomic_store(&free->begin, begin_of(point));
		atomic_store(&free->address, address);
	} else if (what == POINTS_NAMED_CODE && !named.told_full) {
		named.told_full = true;
		tell(runtime, point, "' is not counted: there are four hardware breakpoints",
		     -ENOSPC);
	}
}

static void slot_open(struct runtime *runtime, struct named_slot *slot)
{
	slot->opened_ns = slot->looked_ns = ticks_clock_ns(CLOCK_MONOTONIC);
	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		int error = thread->how != THREAD_INTERNAL ? watch(slot, thread->tid) : 0;

		if (error && error != -ESRCH)
			tell_refused(runtime, slot, error);
	}
	slot->opened_ticks = ticks_now();
}

void points_named_end(struct runtime *runtime)
{
	atomic_store_explicit(&runtime->sampling.visited, visited, memory_order_release);
	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++) {
		struct named_slot *slot = &named.slots[i];

		if (slot->address && !slot->seen) {
			unwatch(slot);
			slot->address = 0;
		} else if (slot->address && !slot->opened_ticks) {
			slot_open(runtime, slot);
		}
	}
}

/* ---- rounds ---- */

static bool is_watched(const struct named_slot *slot, uint32_t tid)
{
	for (uint32_t i = 0; i < named.event_count; i++) {
		if (&named.slots[named.events[i].slot] == slot && named.events[i].tid == tid)
			return true;
	}
	return false;
}

/* Threads that were made before the breakpoint, but were not known yet; then those that these have
 * made meanwhile. One that has inherited it after all has it twice, which the kernel tells as one
 * signal, or cannot have it once more. */
static void find_late_threads(struct runtime *runtime, struct named_slot *slot)
{
	bool any = false;

	for (struct thread *thread = runtime->background.live; thread; thread = thread->live_next) {
		if (thread->how != THREAD_INTERNAL && thread->start_ticks < slot->opened_ticks &&
		    !is_watched(slot, thread->tid))
			any |= !watch(slot, thread->tid);
	}
	if (any)
		slot->opened_ticks = ticks_now();
}

static bool is_too_much(struct named_slot *slot, uint64_t now)
{
	uint64_t visits = atomic_load_explicit(&slot->visits, memory_order_relaxed);
	uint64_t passed = now - slot->looked_ns, more = visits - slot->looked_visits;

	if (passed < RATE_STRETCH_NS)
		return false;
	slot->looked_ns = now;
	slot->looked_visits = visits;
	return more > passed * RATE_MAX / 1000000000ull;
}

static void give_up(struct runtime *runtime, struct named_slot *slot)
{
	struct causal_control *control = atomic_load(&kymo_causal);

	unwatch(slot);
	if (control && slot->point < CAUSAL_POINTS)
		atomic_store(&control->points[slot->point].given_up, 1);
	if (named.refused_count < REFUSED_MAX)
		named.refused[named.refused_count++] = slot->address;
	tell(runtime, slot->point,
	     slot->what == POINTS_NAMED_CODE
		     ? "' is visited too often to be counted by breakpoints: name a rarer place"
		     : "' is counted too often to be timed visit by visit",
	     0);
	slot->address = 0;
}

void points_named_follow(struct runtime *runtime)
{
	uint64_t now = ticks_clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++) {
		struct named_slot *slot = &named.slots[i];

		if (!slot->address || !slot->opened_ticks)
			continue;
		if (now - slot->opened_ns < LATE_NS)
			find_late_threads(runtime, slot);
		if (is_too_much(slot, now))
			give_up(runtime, slot);
	}
}

void points_named_forked(void)
{
	named.event_count = 0;
	for (uint32_t i = 0; i < POINTS_NAMED_MAX; i++)
		named.slots[i].opened_ticks = 0;
}
