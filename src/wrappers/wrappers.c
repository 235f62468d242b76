/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wrappers.h.
 */
#include "wrappers/wrappers.h"

#include "causal/causal.h"
#include "core/runtime.h"
#include "wrappers/got.h"
#include "wrappers/got_engine.h"

static bool add(int (*const *groups)(const struct options_wrappers *), size_t count,
		const struct options_wrappers *options)
{
	for (size_t i = 0; i < count; i++) {
		if (groups[i](options))
			return false;
	}
	return true;
}

static bool add_recording(const struct options_wrappers *options)
{
	static int (*const groups[])(const struct options_wrappers *) = {
		wrappers_loader_add, wrappers_threads_add, wrappers_processes_add,
		wrappers_waits_add,  wrappers_mpi_add,     wrappers_memory_add,
		wrappers_nccl_add,   wrappers_user_add,
	};

	return add(groups, sizeof(groups) / sizeof(groups[0]), options);
}

/* MPI's calls wait as well. */
static bool add_causal(const struct options_wrappers *options)
{
	static int (*const groups[])(const struct options_wrappers *) = {
		wrappers_loader_add, wrappers_mpi_add,  wrappers_memory_add,
		wrappers_nccl_add,   wrappers_user_add,
	};
	struct options_wrappers with_mpi = *options;

	with_mpi.mpi = true;
	return !wrappers_causal_add() && add(groups, sizeof(groups) / sizeof(groups[0]), &with_mpi);
}

bool wrappers_add(const struct options_wrappers *options)
{
	bool causal = causal_wanted(kymo_runtime.environment);

	if (!options->on && !causal)
		return false;
	/* What was added works without the rest. */
	if (!(causal ? add_causal : add_recording)(options))
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_WRAPPER);
	got_follow_forks();
	return true;
}
