/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The region state of threads: made at a thread's first event, given back at its end, carried over
 * a fork. States are recycled and never unmapped: a late event of a signal handler finds valid
 * memory.
 */
#include <string.h>
#include <sys/mman.h>

#include "common/settings_value.h"
#include "common/syscalls.h"
#include "core/ticks.h"
#include "regions/names.h"
#include "regions/profile.h"
#include "regions/state.h"
#include "regions/stream.h"

struct regions kymo_regions;
__thread struct region_thread *kymo_region_thread;
__thread uint32_t kymo_region_own;

/* The lock word is the holder's thread pointer, which only its own signal handlers share. */
bool region_lock(_Atomic uint32_t *lock)
{
	uint32_t mine = (uint32_t)((uintptr_t)&kymo_region_own >> 2) | 1, holder = 0;

	while (!atomic_compare_exchange_weak_explicit(lock, &holder, mine, memory_order_acquire,
						      memory_order_relaxed)) {
		if (holder == mine)
			return false;
		if (holder)
			sys_call0(SYS_sched_yield);
		holder = 0;
	}
	return true;
}

void region_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

bool region_list_has(const char *list, const char *word)
{
	struct setting_slice rest = setting_slice(list), item;

	while (list && setting_list_next(&rest, &item)) {
		if (strlen(word) == item.length && !memcmp(item.text, word, item.length))
			return true;
	}
	return false;
}

void *region_map(size_t size)
{
	void *memory =
		sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return sys_failed(memory) ? NULL : memory;
}

static struct region_thread *take_free(void)
{
	struct region_thread *state = NULL;

	if (!atomic_load_explicit(&kymo_regions.free_threads, memory_order_relaxed) ||
	    !region_lock(&kymo_regions.free_lock))
		return NULL;
	state = kymo_regions.free_threads;
	if (state)
		kymo_regions.free_threads = state->next;
	region_unlock(&kymo_regions.free_lock);
	return state;
}

static void give_back(struct region_thread *state)
{
	if (!region_lock(&kymo_regions.free_lock))
		return;
	state->next = kymo_regions.free_threads;
	kymo_regions.free_threads = state;
	region_unlock(&kymo_regions.free_lock);
}

/* What a recycled state keeps is its memory for frames and its cache of names. */
static void reset(struct region_thread *state)
{
	state->depth = state->limit = state->skipped = state->selected = state->node = 0;
	state->stopped = 0;
	state->values_allowed = false;
	state->tree = NULL;
	state->thread = NULL;
	state->stream = (struct region_stream){0};
	memset(&state->request, 0, sizeof(state->request));
}

static struct region_thread *make_state(void)
{
	struct region_thread *state = region_map(sizeof(*state));

	if (!state)
		return NULL;
	state->frames = state->first_frames;
	state->capacity = REGION_FRAMES_FIRST;
	return state;
}

static bool make_starts(struct region_thread *state)
{
	if (!kymo_regions.profile || state->starts)
		return true;
	state->starts = region_map(state->capacity * kymo_regions.bundle.count * sizeof(uint64_t));
	return state->starts != NULL;
}

struct region_thread *region_thread_make(void)
{
	struct region_thread *state;
	struct thread *thread;

	if (!kymo_regions.runtime || region_is_own())
		return NULL;
	region_enter_own();
	thread = runtime_adopt_this_thread();
	state = thread ? take_free() : NULL;
	if (thread && !state)
		state = make_state();
	if (state) {
		reset(state);
		state->thread = thread;
		if (make_starts(state)) {
			thread->regions = state;
			state->busy = kymo_region_own * REGION_BUSY_OWN;
			kymo_region_thread = state;
		} else {
			give_back(state);
			state = NULL;
		}
	}
	region_leave_own();
	return state;
}

bool region_frames_grow(struct region_thread *state)
{
	uint32_t capacity = state->capacity * 2, components = kymo_regions.bundle.count;
	struct region_frame *frames = region_map(capacity * sizeof(*frames));
	uint64_t *starts =
		state->starts ? region_map(capacity * components * sizeof(*starts)) : NULL;

	if (!frames || (state->starts && !starts))
		return false;
	memcpy(frames, state->frames, state->depth * sizeof(*frames));
	if (starts)
		memcpy(starts, state->starts, state->depth * components * sizeof(*starts));
	if (state->frames != state->first_frames)
		sys_munmap(state->frames, state->capacity * sizeof(*frames));
	if (starts)
		sys_munmap(state->starts, state->capacity * components * sizeof(*starts));
	state->frames = frames;
	state->starts = starts;
	state->capacity = capacity;
	return true;
}

/* Its regions that are open end here: the stream says so by ending, the profile shows them as open.
 */
static void release(struct region_thread *state)
{
	for (uint32_t i = 0; i < state->depth; i++)
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_UNBALANCED);
	stream_close(state);
	if (state->tree)
		profile_release(state->tree);
	state->tree = NULL;
	give_back(state);
}

static void thread_end(void)
{
	struct region_thread *state = kymo_region_thread;

	if (!state)
		return;
	kymo_region_thread = NULL;
	region_enter_own(); /* for good: nothing of this thread is recorded from here on */
	state->thread->regions = NULL;
	probe_close(&state->request);
	release(state);
}

/* A thread that ended without a word, on the background thread. */
static void thread_gone(struct thread *thread)
{
	struct region_thread *state = thread->regions;

	thread->regions = NULL;
	if (state)
		release(state);
}

static void forked(void)
{
	struct region_thread *state = kymo_region_thread;

	names_forget_chunk();
	profile_forget_all();
	probe_forget();
	kymo_regions.free_lock = 0;
	if (!state)
		return;
	stream_forget(state);
	state->tree = NULL;
	state->node = 0;
	state->busy = kymo_region_own * REGION_BUSY_OWN;
	memset(&state->request, 0, sizeof(state->request));
	for (uint32_t i = 0; i < state->depth; i++)
		state->frames[i].flags &= ~(uint32_t)FRAME_PROFILED;
	state->thread = runtime_adopt_this_thread();
	if (state->thread)
		state->thread->regions = state;
	else
		kymo_region_thread = NULL;
}

/* An event under way is waited for, but not for ever: its thread may be stopped. */
#define LEAVE_TURNS 100000

/* Regions that are open end unrecorded. */
static void thread_left(struct thread *thread)
{
	struct region_thread *state = thread->regions;

	for (int i = 0;
	     state && i < LEAVE_TURNS && atomic_load_explicit(&state->busy, memory_order_acquire);
	     i++)
		sys_call0(SYS_sched_yield);
	if (!state)
		return;
	for (uint32_t i = 0; i < state->depth; i++)
		state->frames[i].flags &= FRAME_SELECTS;
	stream_close(state);
	state->tree = NULL;
	state->node = 0;
	state->values_allowed = false;
}

static void left(void)
{
	names_forget_chunk();
	profile_forget_all();
	probe_forget();
}

static void set_up(struct runtime *runtime)
{
	const struct options_regions *options = &runtime->options.regions;
	struct bundle *bundle = &kymo_regions.bundle;
	bool probes = false, beyond_trace = false;

	components_choose(bundle, options->components, &probes);
	kymo_regions.stored = 0;
	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct component_description *description = bundle->components[i].description;
		if (!description || description->kind != SPOOL_COMPONENT_RATIO)
			kymo_regions.stored++;
		if (description != &component_table[COMPONENT_WALL_CLOCK] &&
		    description != &component_table[COMPONENT_TRIP_COUNT])
			beyond_trace = true;
	}
	kymo_regions.trace = options->trace;
	/* The trace has the times of all calls, unless it is a ring: only what it cannot tell is
	 * measured as well. */
	kymo_regions.profile = options->profile && bundle->count &&
			       (!options->trace || beyond_trace || runtime->spool.ring);
	kymo_regions.ticks_only =
		bundle->count == 1 &&
		bundle->components[0].description == &component_table[COMPONENT_WALL_CLOCK];
	kymo_regions.select = options->selected && *options->selected;
	kymo_regions.max_depth = options->max_depth;
	kymo_regions.throttle_count = options->throttle_count;
	kymo_regions.careful = kymo_regions.select || kymo_regions.throttle_count;
	kymo_regions.throttle_ticks = (uint64_t)((unsigned __int128)options->throttle_ns *
						 runtime->sampling.tick_hz / 1000000000u);
	if (!kymo_regions.careful && !kymo_ticks_are_ns && kymo_regions.trace &&
	    !kymo_regions.profile)
		kymo_regions.quick = REGIONS_QUICK_TRACE;
	else if (!kymo_regions.careful && !kymo_ticks_are_ns && !kymo_regions.trace &&
		 kymo_regions.profile && kymo_regions.ticks_only)
		kymo_regions.quick = REGIONS_QUICK_PROFILE;
	else
		kymo_regions.quick = REGIONS_QUICK_NONE;
	if (kymo_regions.profile && probes)
		probe_start(options->component_events);
}

static int start(struct runtime *runtime)
{
	uint8_t record[4096];
	uint32_t size;
	int error = names_init(&runtime->options.regions);

	if (error)
		return error;
	set_up(runtime);
	kymo_regions.categories_off = names_categories_off();
	names_set_background(true);
	if (kymo_regions.profile) {
		size = components_describe(&kymo_regions.bundle, record, sizeof(record));
		if (size)
			names_write(SPOOL_RECORD_COMPONENTS, record, size);
	}
	names_define_all();
	names_set_background(false);
	kymo_regions.runtime = runtime;
	return 0;
}

const struct runtime_hooks regions_hooks = {
	.start = start,
	.thread_end = thread_end,
	.thread_gone = thread_gone,
	.forked = forked,
	.thread_left = thread_left,
	.left = left,
};
