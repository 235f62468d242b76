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
#include "core/base/ticks.h"
#include "core/threads.h"
#include "regions/names.h"
#include "regions/profile.h"
#include "regions/state.h"
#include "regions/stream.h"

struct regions_state kymo_regions = {.control = &default_collection_control,
				     .spool = &spool_writer_without_file};
__thread struct region_thread_state *kymo_region_thread;
__thread uint32_t kymo_region_own;

/* The lock word is the holder's thread pointer, which only its own signal handlers share. */
static uint32_t get_lock_word_of_this_thread(void)
{
	return (uint32_t)((uintptr_t)&kymo_region_own >> 2) | 1;
}

bool region_lock_is_held_by_this_thread(_Atomic uint32_t *lock)
{
	return atomic_load_explicit(lock, memory_order_relaxed) == get_lock_word_of_this_thread();
}

bool region_acquire_lock_if_not_holder(_Atomic uint32_t *lock)
{
	uint32_t mine = get_lock_word_of_this_thread(), holder = 0;

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

void region_release_lock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

bool region_list_has_word(const char *list, const char *word)
{
	struct text_slice rest = setting_slice_from_text(list), item;

	while (list && setting_next_list_word(&rest, &item)) {
		if (strlen(word) == item.length && !memcmp(item.text, word, item.length))
			return true;
	}
	return false;
}

void *region_map_memory(size_t size)
{
	void *memory;

	if (is_calling_thread_in_own_filter())
		return NULL;
	memory = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return sys_mmap_failed(memory) ? NULL : memory;
}

static struct region_thread_state *pop_free_thread_state(void)
{
	struct region_thread_state *state = NULL;

	if (!atomic_load_explicit(&kymo_regions.free_threads, memory_order_relaxed) ||
	    !region_acquire_lock_if_not_holder(&kymo_regions.free_threads_lock))
		return NULL;
	state = kymo_regions.free_threads;
	if (state)
		kymo_regions.free_threads = state->next;
	region_release_lock(&kymo_regions.free_threads_lock);
	return state;
}

static void push_free_thread_state(struct region_thread_state *state)
{
	if (!region_acquire_lock_if_not_holder(&kymo_regions.free_threads_lock))
		return;
	state->next = kymo_regions.free_threads;
	kymo_regions.free_threads = state;
	region_release_lock(&kymo_regions.free_threads_lock);
}

/* What a recycled state keeps is its memory for frames and its cache of names. */
static void reset_thread_state(struct region_thread_state *state)
{
	state->depth = state->depth_check_limit = state->skipped =
		state->open_selecting_region_count = state->node = 0;
	state->waiting_frame_count = state->left_frame_count = 0;
	state->reserved_event_count = state->unreserved_open_count = 0;
	state->reserved_name_count = 0;
	state->reserved_ticks = 0;
	state->stopped = 0;
	state->may_attach_values = false;
	state->tree = NULL;
	state->thread = NULL;
	state->stream = (struct region_record_stream){0};
	memset(&state->request, 0, sizeof(state->request));
}

static struct region_thread_state *map_thread_state(void)
{
	struct region_thread_state *state = region_map_memory(sizeof(*state));

	if (!state)
		return NULL;
	state->frames = state->initial_frames;
	state->capacity = REGION_FRAMES_INITIAL_CAPACITY;
	return state;
}

static bool allocate_start_values(struct region_thread_state *state)
{
	if (!kymo_regions.keeps_profile || state->starts)
		return true;
	state->starts = region_map_memory(state->capacity * kymo_regions.component_bundle.count *
					  sizeof(uint64_t));
	return state->starts != NULL;
}

struct region_thread_state *region_make_thread_state(void)
{
	struct region_thread_state *state;
	struct thread *thread;

	if (!kymo_regions.started || region_thread_is_in_kymo_code() ||
	    is_calling_thread_off_limits())
		return NULL;
	region_enter_kymo_code();
	state = pop_free_thread_state();
	if (!state)
		state = map_thread_state();
	if (state) {
		/* Early: what signal handlers record meanwhile is reserved in it. */
		reset_thread_state(state);
		state->busy_state = kymo_region_own * REGION_BUSY_PER_KYMO_LEVEL;
		kymo_region_thread = state;
		thread = runtime_find_or_add_this_thread();
		if (thread && allocate_start_values(state)) {
			state->thread = thread;
			thread->regions = state;
		} else {
			kymo_region_thread = NULL;
			push_free_thread_state(state);
			state = NULL;
		}
	}
	region_leave_kymo_code();
	return state;
}

bool region_grow_frames(struct region_thread_state *state)
{
	uint32_t capacity = state->capacity * 2, components = kymo_regions.component_bundle.count;
	struct region_frame *frames = region_map_memory(capacity * sizeof(*frames));
	uint64_t *starts =
		state->starts ? region_map_memory(capacity * components * sizeof(*starts)) : NULL;

	if (!frames || (state->starts && !starts))
		return false;
	memcpy(frames, state->frames, state->depth * sizeof(*frames));
	if (starts)
		memcpy(starts, state->starts, state->depth * components * sizeof(*starts));
	if (state->frames != state->initial_frames)
		sys_munmap(state->frames, state->capacity * sizeof(*frames));
	if (starts)
		sys_munmap(state->starts, state->capacity * components * sizeof(*starts));
	state->frames = frames;
	state->starts = starts;
	state->capacity = capacity;
	return true;
}

/* Its regions that are open last until here: the stream says so by ending, the profile shows them
 * as open. */
static void release_thread_state(struct region_thread_state *state, uint64_t end_ticks)
{
	for (uint32_t i = 0; i < state->depth; i++) {
		const struct region_frame *frame = &state->frames[i];

		if (state->tree && (frame->flags & (REGION_FRAME_PROFILED | REGION_FRAME_LEFT)) ==
					   REGION_FRAME_PROFILED)
			profile_stop_open_call(state->tree, frame->profile_node,
					       frame->profile_begin,
					       region_window_clock(end_ticks));
		/* In a wrapped call the thread was cancelled: no end is missing. */
		if (frame->region & REGION_ID_USER_REGION_BIT)
			spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_UNBALANCED);
	}
	stream_pass_chunk_back_to_spool(state);
	if (state->tree)
		profile_release_tree_for_reuse(state->tree);
	state->tree = NULL;
	push_free_thread_state(state);
}

static void regions_hook_thread_end(void)
{
	struct region_thread_state *state = kymo_region_thread;

	if (!state)
		return;
	kymo_region_thread = NULL;
	region_enter_kymo_code(); /* for good: nothing of this thread is recorded from here on */
	state->thread->regions = NULL;
	probe_request_close_events(&state->request);
	release_thread_state(state, ticks_now());
}

/* A thread that ended without a word, on the background thread. */
static void regions_hook_thread_gone(struct thread *thread)
{
	struct region_thread_state *state = thread->regions;

	thread->regions = NULL;
	if (state)
		release_thread_state(state, thread->end_ticks ? thread->end_ticks : ticks_now());
}

static void regions_hook_forked(void)
{
	struct region_thread_state *state = kymo_region_thread;

	names_forget_chunk_and_free_lock();
	profile_forget_all_trees();
	probe_set_not_running();
	kymo_regions.free_threads_lock = 0;
	if (!state)
		return;
	stream_reset(state);
	state->tree = NULL;
	state->node = 0;
	state->reserved_event_count = state->reserved_name_count = 0;
	state->busy_state = kymo_region_own * REGION_BUSY_PER_KYMO_LEVEL;
	memset(&state->request, 0, sizeof(state->request));
	for (uint32_t i = 0; i < state->depth; i++) {
		state->frames[i].flags &= ~(uint32_t)REGION_FRAME_PROFILED;
		state->frames[i].begin_ticks = ticks_now(); /* in this process */
		state->frames[i].profile_begin = region_window_clock(state->frames[i].begin_ticks);
	}
	state->thread = runtime_find_or_add_this_thread();
	if (state->thread)
		state->thread->regions = state;
	else
		kymo_region_thread = NULL;
}

/* An event under way is waited for, but not for ever: its thread may be stopped. */
#define BUSY_WAIT_YIELDS_MAX 100000
#define SMALL_RING_LIMIT     (UINT64_C(1) << 30)

/* Regions that are open end unrecorded. */
static void regions_hook_thread_detached(struct thread *thread)
{
	struct region_thread_state *state = thread->regions;

	for (int i = 0; state && i < BUSY_WAIT_YIELDS_MAX &&
			atomic_load_explicit(&state->busy_state, memory_order_acquire);
	     i++)
		sys_call0(SYS_sched_yield);
	if (!state)
		return;
	for (uint32_t i = 0; i < state->depth; i++)
		state->frames[i].flags &= REGION_FRAME_SELECTS;
	state->waiting_frame_count = state->left_frame_count = 0;
	stream_pass_chunk_back_to_spool(state);
	state->tree = NULL;
	state->node = 0;
	state->may_attach_values = false;
}

static void regions_hook_detached(void)
{
	names_forget_chunk_and_free_lock();
	profile_forget_all_trees();
	probe_set_not_running();
}

/* One that will overwrite most of a trace, rather than a bound that few runs reach. */
static bool is_small_ring(const struct spool_writer *spool)
{
	return spool->ring && spool->limit < SMALL_RING_LIMIT;
}

static void set_up_bundle_and_fast_path_of_process(void)
{
	const struct region_options *options = kymo_regions.options;
	struct component_bundle *bundle = &kymo_regions.component_bundle;
	bool probes = false, beyond_trace = false;

	components_fill_bundle(bundle, options->components, &probes);
	kymo_regions.stored = 0;
	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct component_description *description = bundle->components[i].description;
		if (!description || description->kind != SPOOL_COMPONENT_RATIO)
			kymo_regions.stored++;
		if (description != &component_table[COMPONENT_WALL_CLOCK] &&
		    description != &component_table[COMPONENT_CALL_COUNT])
			beyond_trace = true;
	}
	kymo_regions.records_events = options->trace;
	/* The trace has the times of all calls, unless it is a small ring: only what it cannot tell
	 * is measured as well. */
	kymo_regions.keeps_profile =
		options->profile && bundle->count &&
		(!options->trace || beyond_trace || is_small_ring(kymo_regions.spool));
	kymo_regions.profiles_ticks_only =
		bundle->count == 1 &&
		bundle->components[0].description == &component_table[COMPONENT_WALL_CLOCK];
	kymo_regions.select = options->selected && *options->selected;
	kymo_regions.max_depth = options->max_depth;
	kymo_regions.throttle_call_count = options->throttle_count;
	kymo_regions.may_skip_regions = kymo_regions.select || kymo_regions.throttle_call_count;
	kymo_regions.throttle_mean_ticks =
		(uint64_t)((unsigned __int128)options->throttle_below_mean_call_ns *
			   kymo_regions.sampler->tick_hz / 1000000000u);
	if (!kymo_regions.may_skip_regions && !kymo_ticks_are_by_clock &&
	    kymo_regions.records_events && !kymo_regions.keeps_profile)
		kymo_regions.fast_path_kind = REGIONS_FAST_PATH_TRACE;
	else if (!kymo_regions.may_skip_regions && !kymo_ticks_are_by_clock &&
		 !kymo_regions.records_events && kymo_regions.keeps_profile &&
		 kymo_regions.profiles_ticks_only && !kymo_regions.has_windows)
		kymo_regions.fast_path_kind = REGIONS_FAST_PATH_PROFILE;
	else
		kymo_regions.fast_path_kind = REGIONS_FAST_PATH_NONE;
	if (kymo_regions.keeps_profile && probes)
		probe_start_background_thread(options->component_event_codes);
}

void regions_leave_tsc(void)
{
	kymo_regions.fast_path_kind = REGIONS_FAST_PATH_NONE;
}

static void regions_hook_connect_to_runtime(struct runtime *runtime)
{
	kymo_regions.control = &runtime->control;
	kymo_regions.spool = &runtime->spool;
	kymo_regions.background = &runtime->background;
	kymo_regions.threads = &runtime->threads;
	kymo_regions.sampler = &runtime->sampler;
	kymo_regions.options = &runtime->options.regions;
}

static int regions_hook_start_recording(struct runtime *runtime)
{
	uint8_t record[4096];
	uint32_t size;
	int error = names_init(kymo_regions.options);

	if (error)
		return error;
	kymo_regions.has_windows = runtime->options.collection_period_count > 0;
	set_up_bundle_and_fast_path_of_process();
	kymo_regions.category_off_bits = names_get_disabled_category_bits();
	names_set_background_is_writing(true);
	if (kymo_regions.keeps_profile) {
		size = components_encode_descriptions(&kymo_regions.component_bundle, record,
						      sizeof(record));
		if (size)
			names_write_record_in_name_chunk(SPOOL_RECORD_COMPONENTS, record, size);
	}
	names_write_all_definitions();
	names_set_background_is_writing(false);
	kymo_regions.started = true;
	return 0;
}

const struct runtime_hooks regions_hook_table = {
	.on_prepare = regions_hook_connect_to_runtime,
	.start = regions_hook_start_recording,
	.on_thread_end = regions_hook_thread_end,
	.on_thread_gone_silently = regions_hook_thread_gone,
	.forked = regions_hook_forked,
	.on_detach_thread = regions_hook_thread_detached,
	.on_detach_process = regions_hook_detached,
};
