/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See opened.h.
 */
#include "libkymo/opened.h"

#include <execinfo.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <threads.h>
#include <unistd.h>
#include <unwind.h>

#include "common/array.h"
#include "common/loader.h"
#include "core/runtime.h"
#include "libkymo/api.h"
#include "libkymo/find_object.h"
#include "libkymo/real.h"
#include "wrappers/got/engine.h"
#include "wrappers/got/got.h"
#include "wrappers/wrappers.h"

#define REAL_FUNCTION_WRAPPER_ROW(name)                                                            \
	{.symbol = #name, .replacement = (void *)name, .original = &real_##name},
static struct got_wrapper real_function_wrapper_table[] = {
	FOR_EACH_REAL_FUNCTION(REAL_FUNCTION_WRAPPER_ROW)};

/* A preloaded library is before libc in the loader's list. */
bool opened_libkymo_was_loaded_by_dlopen(void)
{
	return !loader_find_symbol(LOADER_SCOPE_AFTER_OWN_OBJECT, real_function_wrapper_table,
				   "__libc_start_main");
}

void opened_libkymo_add_wrappers(void)
{
	static bool added;

	if (added) {
		got_allow_rewriting_again();
		return;
	}
	added = true;
	got_ignore_own_definitions();
	got_register_fork_handlers();
	/* Objects that are opened later call as well. What was added works without the rest. */
	if (got_add_wrappers(real_function_wrapper_table,
			     ARRAY_SIZE(real_function_wrapper_table)) ||
	    wrappers_loader_add_dlopen_wrappers())
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_WRAPPER);
}

void opened_libkymo_restore_originals(void)
{
	got_restore_originals();
}
