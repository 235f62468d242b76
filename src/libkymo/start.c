/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The library's constructor and destructor, and what has to be known about forks.
 */
#include <pthread.h>
#include <stdlib.h>

#include "causal/causal.h"
#include "core/runtime.h"
#include "instrument/instrument.h"
#include "libkymo/find_object.h"
#include "libkymo/hooks.h"
#include "libkymo/opened.h"
#include "libkymo/own_session.h"
#include "libkymo/session_environment.h"
#include "wrappers/got.h"
#include "wrappers/wrappers.h"

static void after_fork_in_child(void)
{
	runtime_restart_in_child();
}

/* The calls that we need to see come first: what records them calls on to those. */
static void install_wrappers(void)
{
	bool wrapped;

	if (kymo_runtime.opened)
		opened_add();
	wrapped = wrappers_add(&kymo_runtime.options.wrappers);
	if (kymo_runtime.opened || wrapped)
		got_scan();
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
	kymo_runtime.opened = opened_is();
	runtime_start(session_environment_keep(own_session_environment(environment)));
	session_environment_follow(&kymo_runtime.options, environment);
	if (!runtime_active())
		return;
	pthread_atfork(NULL, NULL, after_fork_in_child);
	/* Without memory for it, an end by quick_exit() lacks what was only counted. */
	(void)at_quick_exit(finish);
	causal_start(&kymo_runtime);
	install_wrappers();
	if (causal_on())
		instrument_tell(causal_entered, causal_left);
	instrument_start(&kymo_runtime);
}
