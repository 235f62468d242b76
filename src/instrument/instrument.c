/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument.h.
 */
#include "instrument/instrument.h"

#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/base/fork_state.h"
#include "core/base/ticks.h"
#include "core/notices.h"
#include "instrument/apply.h"
#include "instrument/arena.h"
#include "instrument/attached.h"
#include "instrument/calls_stream.h"
#include "instrument/demote.h"
#include "instrument/loaded.h"
#include "instrument/rewritten.h"
#include "instrument/shadow.h"
#include "instrument/stack_copies.h"
#include "instrument/state.h"
#include "instrument/unwind.h"
#include "instrument/vectors.h"
#include "regions/names.h"
#include "regions/reentry_guard.h"

#define NEW_CALLS_RECORD_PERIOD_SECONDS                                                            \
	240 /* a word tells times within half an hour or so of the one before */
#define CALL_COUNTS_WRITE_PERIOD_SECONDS 1 /* seconds between two looks at counted calls */

struct instrument_collector_object_pointers kymo_instrument = {.spool = &spool_writer_without_file};

static struct {
	bool on, is_object_being_removed;
	bool told; /* that the loader is not watched */
	uint64_t next_new_records_ticks, next_counts_write_ticks; /* ticks */
	uint64_t *written_counts; /* counts, as last written, by function id */
} current_instrumenting_state;

static enum plan_trampoline compute_trampoline_mode(void)
{
	if (region_load_closed_reason_bits())
		return PLAN_TRAMPOLINE_CLOSED;
	return stack_copies_are_made() ? PLAN_TRAMPOLINE_COUNTS : calls_get_trampoline_mode();
}

static void set_all_trampoline_modes(void)
{
	arenas_set_trampoline_mode(compute_trampoline_mode());
}

void instrument_update_trampolines(void)
{
	if (current_instrumenting_state.on)
		set_all_trampoline_modes();
}

/* Before anything is unmapped. */
static void freeze_all_trampolines_before_unmap(void)
{
	current_instrumenting_state.is_object_being_removed = true;
	arenas_freeze_trampoline_modes();
}

/* Objects that come later run as they are where nobody notices them in time: when dlopen has
 * returned, other threads may be in their code. */
static bool watch_loader(void)
{
	int error =
		loaded_watch_loader(instrument_loaded_objects, freeze_all_trampolines_before_unmap);

	if (error && !current_instrumenting_state.told)
		notices_post(kymo_instrument.background, SPOOL_NOTICE_FALLBACK, (uint64_t)-error,
			     "libraries opened at run time are not instrumented: kymo does not "
			     "know this dynamic loader",
			     NULL);
	current_instrumenting_state.told |= error != 0;
	return !error;
}

static void begin_instrumenting(bool asks, bool attached)
{
	vectors_detect_saved_states();
	atomic_store_explicit(&unwind_trampoline_callbacks, &instrument_unwind_trampoline_ops,
			      memory_order_release);
	kymo_arenas_record_arguments = kymo_instrument.options->arguments[0] != 0;
	current_instrumenting_state.on = true;
	set_all_trampoline_modes();
	if (attached && asks)
		attached_start_instrumenting();
	else
		apply_plans_to_new_objects(APPLY_PATCHES_IN_PROCESS);
}

void instrument_start(bool attached)
{
	bool asks = kymo_instrument.options->socket[0] != 0;

	if (!asks && !rewritten_any_loaded())
		return;
	watch_loader();
	begin_instrumenting(asks, attached);
}

/* What can be closed again is not taken unless that is noticed. */
void instrument_start_for_opened_library(void)
{
	if (!current_instrumenting_state.on && runtime_is_active() && watch_loader())
		begin_instrumenting(false, false);
}

/* Else kymo's own walks come to know of them when a sample has met one, some 30 ms later: the calls
 * that are recorded there make that many times as many samples. */
static void request_module_refresh(void)
{
	modules_request_refresh(kymo_instrument.modules);
	background_wake(kymo_instrument.background);
}

void instrument_loaded_objects(void)
{
	if (current_instrumenting_state.is_object_being_removed) {
		apply_mark_unloaded_arenas();
		current_instrumenting_state.is_object_being_removed = false;
		arenas_unfreeze_trampoline_modes();
	}
	if (!current_instrumenting_state.on || !runtime_is_active())
		return;
	request_module_refresh();
	apply_plans_to_new_objects(APPLY_PATCHES_IN_PROCESS);
}

void instrument_stop(void)
{
	current_instrumenting_state.on = false;
	arenas_set_trampoline_mode(PLAN_TRAMPOLINE_CLOSED);
	apply_forget_seen_objects();
}

bool instrument_find_arena(uint64_t address, struct instrumented_arena *ret)
{
	const struct arena *arena = arena_find_by_address(address);

	if (!arena)
		return false;
	*ret = (struct instrumented_arena){.start = (uint64_t)(uintptr_t)arena->data,
					   .size = arena->size,
					   .bias = arena->bias,
					   .plan = arena->plan};
	return true;
}

uint64_t instrument_find_return_address_of_slot(uint64_t slot)
{
	return shadow_find_return_address(slot);
}

/* ---- hooks ---- */

static void instrument_hook_remember_collector(struct runtime *runtime)
{
	kymo_instrument = (struct instrument_collector_object_pointers){
		.spool = &runtime->spool,
		.records = &runtime->records,
		.background = &runtime->background,
		.threads = &runtime->threads,
		.modules = &runtime->modules,
		.sampler = &runtime->sampler,
		.options = &runtime->options.instrument};
}

/* A forked child's file has nothing yet. */
static int instrument_start_hook_record_arenas(struct runtime *runtime)
{
	uint32_t count = arenas_get_count();

	(void)runtime;
	names_set_background_is_writing(true);
	for (uint32_t i = 0; i < count; i++)
		apply_write_arena_record(arenas_get_one_by_index(i));
	names_set_background_is_writing(false);
	return 0;
}

static void instrument_hook_thread_end(void)
{
	calls_end_thread();
}

static void instrument_hook_thread_gone(struct thread *thread)
{
	calls_release_gone_thread(thread->internal_id);
}

/* Counts are sums since the recording began; that of a child, or the next one of a process that is
 * attached to again, begins again. */
static void clear_call_counts(void)
{
	for (struct shadow_stack_node *node = kymo_shadow_nodes; node; node = node->next) {
		if (node->counts)
			sys_call3(SYS_madvise, (long)node->counts,
				  (PLAN_ID_MAX + 1) * sizeof(uint64_t), MADV_DONTNEED);
	}
	if (current_instrumenting_state.written_counts)
		sys_call3(SYS_madvise, (long)current_instrumenting_state.written_counts,
			  (PLAN_ID_MAX + 1) * sizeof(uint64_t), MADV_DONTNEED);
}

static void instrument_hook_forked(void)
{
	apply_reset_in_forked_child();
	stack_copies_reset_in_forked_child();
	if (!arenas_get_count())
		return;
	calls_reset_in_forked_child();
	clear_call_counts();
	set_all_trampoline_modes();
}

static void instrument_hook_detached(void)
{
	instrument_stop();
	calls_stream_invalidate_chunks();
	calls_force_new_records();
	calls_forget_chunks_after_detach();
	clear_call_counts();
}

KYMO_FORK_CODE static void instrument_hook_collection_switched(void)
{
	if (arenas_get_count())
		set_all_trampoline_modes();
}

static void instrument_hook_exclusion_change(void)
{
	calls_apply_thread_exclusion();
}

static void run_background_round(struct runtime *runtime, bool last)
{
	uint64_t now = ticks_now(), second = kymo_instrument.sampler->tick_hz;
	uint32_t count = arenas_get_count();

	(void)runtime;
	if (!count)
		return;
	demote_queued_functions();
	stack_copies_make_stubs_count();
	if (now >= current_instrumenting_state.next_new_records_ticks) {
		calls_force_new_records();
		current_instrumenting_state.next_new_records_ticks =
			now + NEW_CALLS_RECORD_PERIOD_SECONDS * second;
	}
	if (!last && now < current_instrumenting_state.next_counts_write_ticks)
		return;
	current_instrumenting_state.next_counts_write_ticks =
		now + CALL_COUNTS_WRITE_PERIOD_SECONDS * second;
	if (!current_instrumenting_state.written_counts)
		current_instrumenting_state.written_counts =
			region_map_memory((PLAN_ID_MAX + 1) * sizeof(uint64_t));
	for (uint32_t i = 0; current_instrumenting_state.written_counts && i < count; i++)
		calls_write_changed_counts(current_instrumenting_state.written_counts,
					   arenas_get_one_by_index(i)->first_function_id,
					   arenas_get_one_by_index(i)->count);
}

const struct runtime_hooks instrument_hook_table = {
	.on_prepare = instrument_hook_remember_collector,
	.start = instrument_start_hook_record_arenas,
	.on_thread_end = instrument_hook_thread_end,
	.on_thread_gone_silently = instrument_hook_thread_gone,
	.forked = instrument_hook_forked,
	.on_detach_process = instrument_hook_detached,
	.on_collection_switched = instrument_hook_collection_switched,
	.on_thread_exclusion_changed = instrument_hook_exclusion_change,
	.round = run_background_round,
	.has_unwritten_records = calls_have_counts,
};
