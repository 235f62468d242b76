/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument.h.
 */
#include "instrument/instrument.h"

#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/notices.h"
#include "core/ticks.h"
#include "instrument/apply.h"
#include "instrument/arena.h"
#include "instrument/attached.h"
#include "instrument/calls_stream.h"
#include "instrument/demote.h"
#include "instrument/loaded.h"
#include "instrument/rewritten.h"
#include "instrument/shadow.h"
#include "instrument/unwind.h"
#include "instrument/vectors.h"
#include "regions/gate.h"
#include "regions/names.h"

#define POKE_SECONDS   240 /* a word tells times within half an hour or so of the one before */
#define COUNTS_PERIODS 1   /* seconds between two looks at counted calls */

static struct {
	bool on, removing;
	bool told;                       /* that the loader is not watched */
	uint64_t next_poke, next_counts; /* ticks */
	uint64_t *written;               /* counts, as last written, by function id */
} instrumented;

static void set_gate(void)
{
	arenas_set_gate(region_closed_bits() ? PLAN_GATE_CLOSED : calls_way());
}

/* Before anything is unmapped. */
static void removing(void)
{
	instrumented.removing = true;
	arenas_hold_gates();
}

/* Objects that come later run as they are where nobody notices them in time: when dlopen has
 * returned, other threads may be in their code. */
static bool watch(struct runtime *runtime)
{
	int error = loaded_watch(instrument_loaded, removing);

	if (error && !instrumented.told)
		notices_post(&runtime->background, SPOOL_NOTICE_FALLBACK, (uint64_t)-error,
			     "libraries that are opened while the program runs are not "
			     "instrumented: this dynamic loader is not known",
			     NULL);
	instrumented.told |= error != 0;
	return !error;
}

static void begin(struct runtime *runtime, bool asks)
{
	vectors_init();
	atomic_store_explicit(&unwind_detours, &instrument_detours, memory_order_release);
	arenas_set_arguments(runtime->options.instrument.arguments[0] != 0);
	instrumented.on = true;
	set_gate();
	if (runtime->attached && asks)
		attached_begin(runtime);
	else
		apply_loaded(runtime, APPLY_HERE);
}

void instrument_start(struct runtime *runtime)
{
	bool asks = runtime->options.instrument.socket[0] != 0;

	if (!asks && !rewritten_present())
		return;
	watch(runtime);
	begin(runtime, asks);
}

/* What can be closed again is not taken unless that is noticed. */
void instrument_opened(void)
{
	if (!instrumented.on && runtime_active() && watch(&kymo_runtime))
		begin(&kymo_runtime, false);
}

/* Else kymo's own walks come to know of them when a sample has met one, some 30 ms later: the calls
 * that are recorded there make that many times as many samples. */
static void know_modules(struct runtime *runtime)
{
	modules_want_refresh(&runtime->modules);
	background_wake(&runtime->background);
}

void instrument_loaded(void)
{
	if (instrumented.removing) {
		apply_unloaded();
		instrumented.removing = false;
		arenas_release_gates();
	}
	if (!instrumented.on || !runtime_active())
		return;
	know_modules(&kymo_runtime);
	apply_loaded(&kymo_runtime, APPLY_HERE);
}

void instrument_stop(void)
{
	instrumented.on = false;
	arenas_set_gate(PLAN_GATE_CLOSED);
	apply_forget();
}

bool instrument_find_arena(uint64_t address, struct instrument_arena *ret)
{
	const struct arena *arena = arena_find(address);

	if (!arena)
		return false;
	*ret = (struct instrument_arena){.start = (uint64_t)(uintptr_t)arena->data,
					 .size = arena->size,
					 .bias = arena->bias,
					 .plan = arena->plan};
	return true;
}

uint64_t instrument_return_address(uint64_t slot)
{
	return shadow_return_address(slot);
}

/* ---- hooks ---- */

/* A forked child's file has nothing yet. */
static int start(struct runtime *runtime)
{
	uint32_t count = arena_count();

	(void)runtime;
	names_set_background(true);
	for (uint32_t i = 0; i < count; i++)
		apply_record(arena_at(i));
	names_set_background(false);
	return 0;
}

static void thread_end(void)
{
	calls_thread_end();
}

static void thread_gone(struct thread *thread)
{
	calls_thread_gone(thread->internal_id);
}

/* Counts are sums since the recording began; that of a child, or the next one of a process that is
 * attached to again, begins anew. */
static void forget_counts(void)
{
	for (struct shadow_node *node = kymo_shadow_nodes; node; node = node->next) {
		if (node->counts)
			sys_call3(SYS_madvise, (long)node->counts,
				  (PLAN_ID_MAX + 1) * sizeof(uint64_t), MADV_DONTNEED);
	}
	if (instrumented.written)
		sys_call3(SYS_madvise, (long)instrumented.written,
			  (PLAN_ID_MAX + 1) * sizeof(uint64_t), MADV_DONTNEED);
}

static void forked(void)
{
	apply_forked();
	if (!arena_count())
		return;
	calls_forked();
	forget_counts();
	set_gate();
}

static void left(void)
{
	instrument_stop();
	calls_stream_left();
	calls_poke();
	calls_left();
	forget_counts();
}

static void switched(void)
{
	if (arena_count())
		set_gate();
}

static void thread_switched(void)
{
	calls_thread_switched();
}

static void round_of_background(struct runtime *runtime, bool last)
{
	uint64_t now = ticks_now(), second = runtime->sampling.tick_hz;
	uint32_t count = arena_count();

	if (!count)
		return;
	demote_round(runtime);
	if (now >= instrumented.next_poke) {
		calls_poke();
		instrumented.next_poke = now + POKE_SECONDS * second;
	}
	if (!last && now < instrumented.next_counts)
		return;
	instrumented.next_counts = now + COUNTS_PERIODS * second;
	if (!instrumented.written)
		instrumented.written = region_map((PLAN_ID_MAX + 1) * sizeof(uint64_t));
	for (uint32_t i = 0; instrumented.written && i < count; i++)
		calls_write_counts(runtime, instrumented.written, arena_at(i)->first_id,
				   arena_at(i)->count);
}

const struct runtime_hooks instrument_hooks = {
	.start = start,
	.thread_end = thread_end,
	.thread_gone = thread_gone,
	.forked = forked,
	.left = left,
	.switched = switched,
	.thread_switched = thread_switched,
	.round = round_of_background,
	.keeps = calls_are_counted,
};
