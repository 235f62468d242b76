/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wrappers.h.
 */
#include "wrappers/wrappers.h"

#include "causal/causal.h"
#include "common/array.h"
#include "core/runtime.h"
#include "wrappers/causal/wrappers.h"
#include "wrappers/got/engine.h"
#include "wrappers/got/got.h"
#include "wrappers/memory/memory.h"
#include "wrappers/mpi/mpi.h"
#include "wrappers/wrapped.h"

static bool add_wrapper_groups(int (*const *groups)(const struct wrapper_options *), size_t count,
			       const struct wrapper_options *options)
{
	for (size_t i = 0; i < count; i++) {
		if (groups[i](options))
			return false;
	}
	return true;
}

static bool add_recording_wrappers(const struct wrapper_options *options)
{
	static int (*const groups[])(const struct wrapper_options *) = {
		wrappers_loader_add, wrappers_threads_add, wrappers_processes_add,
		wrappers_waits_add,  wrappers_mpi_add,     wrappers_memory_add,
		wrappers_nccl_add,   wrappers_user_add,
	};

	return add_wrapper_groups(groups, ARRAY_SIZE(groups), options);
}

/* MPI's calls wait as well. */
static bool add_causal_wrappers(const struct wrapper_options *options, uint64_t ticks_per_second)
{
	static int (*const groups[])(const struct wrapper_options *) = {
		wrappers_loader_add, wrappers_mpi_add,  wrappers_memory_add,
		wrappers_nccl_add,   wrappers_user_add,
	};
	struct wrapper_options with_mpi = *options;

	with_mpi.wrap_mpi = true;
	return !wrappers_causal_add(ticks_per_second) &&
	       add_wrapper_groups(groups, ARRAY_SIZE(groups), &with_mpi);
}

void wrappers_remember_collector(struct runtime *runtime)
{
	kymo_wrapped_control = &runtime->control;
	got_set_spool(&runtime->spool);
	memory_remember_collector(runtime);
	mpi_remember_collector(&runtime->background, &runtime->control);
}

bool wrappers_add_all(struct runtime *runtime)
{
	const struct wrapper_options *options = &runtime->options.wrappers;
	bool causal = causal_is_requested_in_environment(runtime->environment), complete;

	if (!options->on && !causal)
		return false;
	/* What was added works without the rest. */
	complete = causal ? add_causal_wrappers(options, runtime->sampler.tick_hz)
			  : add_recording_wrappers(options);
	if (!complete)
		spool_count_loss(&runtime->spool, SPOOL_LOSS_WRAPPER);
	got_register_fork_handlers();
	return true;
}

void wrappers_add_for_attachment(struct runtime *runtime)
{
	if (wrappers_loader_add_for_attachment(&runtime->options.wrappers) ||
	    wrappers_memory_add(&runtime->options.wrappers))
		spool_count_loss(&runtime->spool, SPOOL_LOSS_WRAPPER);
}

void wrappers_forget_attachment(void)
{
	memory_clear_tables();
}
