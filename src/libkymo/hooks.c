/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See hooks.h.
 */
#include "libkymo/hooks.h"

#include "causal/causal.h"
#include "instrument/instrument.h"
#include "launches/launches.h"
#include "python/calls.h"
#include "regions/regions.h"
#include "wrappers/wrappers.h"

static void call_prepare_hooks(struct runtime *runtime)
{
	regions_hook_table.on_prepare(runtime);
	instrument_hook_table.on_prepare(runtime);
	wrappers_remember_collector(runtime);
	launches_remember_collector(runtime);
}

static int call_start_hooks(struct runtime *runtime)
{
	int error = regions_hook_table.start(runtime);

	if (!error)
		error = causal_hook_table.start(runtime);
	return error ? error : instrument_hook_table.start(runtime);
}

static void call_thread_end_hooks(void)
{
	causal_hook_table.on_thread_end();
	instrument_hook_table.on_thread_end();
	regions_hook_table.on_thread_end();
}

static void call_thread_gone_silently_hooks(struct thread *thread)
{
	instrument_hook_table.on_thread_gone_silently(thread);
	causal_hook_table.on_thread_gone_silently(thread);
	regions_hook_table.on_thread_gone_silently(thread);
}

static void call_forked_child_hooks(void)
{
	regions_hook_table.forked();
	instrument_hook_table.forked();
	causal_hook_table.forked();
}

static void call_detach_process_hooks(void)
{
	launches_reset_for_new_run();
	instrument_hook_table.on_detach_process();
	causal_hook_table.on_detach_process();
	regions_hook_table.on_detach_process();
}

static void call_detach_thread_hooks(struct thread *thread)
{
	regions_hook_table.on_detach_thread(thread);
}

static void call_collection_switched_hooks(void)
{
	instrument_hook_table.on_collection_switched();
}

static void call_thread_exclusion_changed_hooks(void)
{
	instrument_hook_table.on_thread_exclusion_changed();
}

static void run_background_round(struct runtime *runtime, bool last)
{
	instrument_hook_table.round(runtime, last);
	causal_hook_table.round(runtime, last);
	python_calls_run_round();
}

static bool call_has_unwritten_records_hook(void)
{
	return instrument_hook_table.has_unwritten_records();
}

const struct runtime_hooks libkymo_hook_table = {
	.on_prepare = call_prepare_hooks,
	.start = call_start_hooks,
	.on_thread_end = call_thread_end_hooks,
	.on_thread_gone_silently = call_thread_gone_silently_hooks,
	.forked = call_forked_child_hooks,
	.on_detach_thread = call_detach_thread_hooks,
	.on_detach_process = call_detach_process_hooks,
	.on_collection_switched = call_collection_switched_hooks,
	.on_thread_exclusion_changed = call_thread_exclusion_changed_hooks,
	.round = run_background_round,
	.has_unwritten_records = call_has_unwritten_records_hook,
};
