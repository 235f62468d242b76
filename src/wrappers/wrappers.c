/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wrappers.h.
 */
#include "wrappers/wrappers.h"

#include <pthread.h>

#include "core/runtime.h"
#include "wrappers/got.h"
#include "wrappers/got_engine.h"

static bool add_all(const struct options_wrappers *options)
{
	static int (*const groups[])(const struct options_wrappers *) = {
		wrappers_loader_add, wrappers_threads_add, wrappers_processes_add,
		wrappers_waits_add,  wrappers_mpi_add,     wrappers_memory_add,
		wrappers_nccl_add,   wrappers_user_add,
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (groups[i](options))
			return false;
	}
	return true;
}

void wrappers_start(const struct options_wrappers *options)
{
	if (!options->on)
		return;
	/* What was added works without the rest. */
	if (!add_all(options))
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_WRAPPER);
	pthread_atfork(got_before_fork, got_after_fork, got_after_fork_in_child);
	got_scan();
}

void wrappers_stop(void)
{
	got_restore();
}
