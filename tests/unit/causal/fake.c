/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See fake.h.
 */
#include "fake.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "causal/map.h"
#include "causal/points_named.h"
#include "core/sampler.h"

#define BLOCKS         256
#define FAKE_INNERMOST 0x100u

struct causal_control *fake_control;
bool fake_at_breakpoint;

static struct thread blocks[BLOCKS];
static _Atomic uint32_t block_count;
static const uint32_t same_process = 1;
static uint64_t hz;

/* ---- the map ---- */

static uint32_t lists[FAKE_TARGETS][2]; /* a target, and the end of the list */

/* The lists stay. */
void causal_map_begin_use(void)
{
}

void causal_map_end_use(void)
{
}

const uint32_t *causal_map_find_targets_of_address(uint64_t address)
{
	uint64_t target = (address - FAKE_CODE) / 16;

	return lists[address >= FAKE_CODE && target < FAKE_TARGETS ? target : 0];
}

bool points_named_has_breakpoint_at(uint64_t address)
{
	return fake_at_breakpoint && address == FAKE_INNERMOST;
}

void causal_map_start_requests(struct runtime *runtime, const char *directory)
{
	(void)runtime;
	(void)directory;
}

void causal_map_request_and_publish(struct runtime *runtime)
{
	(void)runtime;
}

void causal_map_reset_after_fork(void)
{
}

/* ---- the session ---- */

int fake_begin(void **state)
{
	(void)state;
	hz = ticks_init_and_get_hz();
	if (!fake_control)
		fake_control = mmap(NULL, sizeof(*fake_control), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(fake_control, MAP_FAILED);
	madvise(fake_control, sizeof(*fake_control), MADV_REMOVE);
	memset(fake_control, 0, offsetof(struct causal_control, targets));
	fake_control->ticks_per_second = hz;
	fake_control->expires = UINT64_MAX;
	kymo_process.zeroed_in_forked_child = &same_process;
	causal_set_tick_constants(hz);
	kymo_causal_rates.epoch_learning_ticks = 0;
	atomic_store(&kymo_causal, fake_control);
	for (uint32_t i = 0; i < FAKE_TARGETS; i++)
		lists[i][0] = i;
	memset(blocks, 0, sizeof(blocks));
	block_count = 0;
	fake_thread();
	return 0;
}

int fake_end(void **state)
{
	(void)state;
	atomic_store(&kymo_causal, NULL);
	return 0;
}

struct thread *fake_thread(void)
{
	uint32_t index = atomic_fetch_add(&block_count, 1);

	assert_true(index < BLOCKS);
	blocks[index].index = index;
	kymo_causal_thread = NULL;
	kymo_causal_unread = 0;
	kymo_thread = &blocks[index];
	return kymo_thread;
}

void fake_experiment(uint32_t target, uint32_t permille)
{
	static uint64_t epoch;

	fake_control->start_delay = fake_control->global_delay;
	epoch++;
	fake_control->could_run[epoch % 2] = fake_control->took_part[epoch % 2] = 0;
	atomic_store(&fake_control->experiment, epoch << CAUSAL_EPOCH_SHIFT | CAUSAL_ACTIVE |
							(uint64_t)permille << CAUSAL_SPEEDUP_SHIFT |
							target);
}

void fake_sample(uint32_t target, uint64_t cpu_ns)
{
	const uint64_t frames[] = {FAKE_INNERMOST, FAKE_CODE + 16 * target + 1};
	const struct sampled_stack stack = {.frames = frames, .count = 2};
	struct causal_thread *state = causal_find_or_make_current_state();

	if (state && causal_try_enter_state(state)) { /* the epoch began before the sample */
		causal_sync_with_experiment(fake_control, state);
		causal_leave_state(state);
	}
	causal_attribute_sample(kymo_thread, &stack, cpu_ns, ticks_now());
}

void fake_release(void)
{
	struct causal_thread *state = causal_find_or_make_current_state();

	assert_true(causal_try_enter_state(state));
	causal_sync_with_experiment(fake_control, state);
	causal_pause_burst(fake_control, state, ticks_now());
	causal_apply_unapplied_delay(fake_control, state);
	causal_leave_state(state);
}

void fake_owe(uint64_t ns)
{
	atomic_fetch_add(&fake_control->global_delay, causal_ns_to_ticks(ns));
}

uint64_t fake_delay_ns(void)
{
	const struct causal_thread *self = causal_find_or_make_current_state();

	assert_non_null(self);
	return self ? causal_ticks_to_ns(causal_compute_local_delay_at(self, ticks_now()) -
					 self->start)
		    : 0;
}

uint64_t fake_most_ns(void)
{
	return causal_ticks_to_ns(causal_compute_global_delay(fake_control, ticks_now()) -
				  fake_control->start_delay);
}

uint64_t fake_count_ns(const _Atomic uint64_t *ticks)
{
	return causal_ticks_to_ns(atomic_load(ticks));
}

uint64_t fake_now_ns(void)
{
	return read_posix_clock_ns(CLOCK_MONOTONIC);
}

void fake_assert_near(uint64_t a_ns, uint64_t b_ns)
{
	assert_in_range(a_ns + 25000, b_ns, b_ns + 50000);
}
