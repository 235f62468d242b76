/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The library's constructor and destructor, and what has to be known about forks.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "causal/causal.h"
#include "core/runtime.h"
#include "instrument/instrument.h"
#include "libkymo/backtraces.h"
#include "libkymo/find_object.h"
#include "libkymo/hooks.h"
#include "libkymo/own_session.h"
#include "libkymo/real.h"
#include "libkymo/session_environment.h"
#include "wrappers/wrappers.h"

void *real_find(_Atomic(void *) *slot, const char *name)
{
	void *function = atomic_load_explicit(slot, memory_order_relaxed);

	if (!function) {
		function = dlsym(RTLD_NEXT, name);
		if (!function)
			abort();
		atomic_store_explicit(slot, function, memory_order_relaxed);
	}
	return function;
}

static void after_fork_in_child(void)
{
	runtime_restart_in_child();
}

__attribute__((destructor)) static void finish(void)
{
	runtime_finish();
}

__attribute__((constructor)) static void start(int count, char **arguments, char **environment)
{
	(void)count;
	(void)arguments;
	find_object_start();
	kymo_runtime.hooks = &libkymo_hooks;
	runtime_start(session_environment_keep(own_session_environment(environment)));
	session_environment_follow(&kymo_runtime.options, environment);
	if (!runtime_active())
		return;
	pthread_atfork(NULL, NULL, after_fork_in_child);
	/* Without memory for it, an end by quick_exit() lacks what was only counted. */
	(void)at_quick_exit(finish);
	causal_start(&kymo_runtime);
	wrappers_start(&kymo_runtime.options.wrappers);
	/* From here RTLD_DEFAULT finds this library's own. */
	if (dlsym(dlopen(NULL, RTLD_LAZY), "backtrace") != (void *)backtrace)
		backtraces_redirect();
	if (causal_on())
		instrument_tell(causal_entered, causal_left);
	instrument_start(&kymo_runtime);
}
