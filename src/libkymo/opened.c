/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See opened.h.
 */
#include "libkymo/opened.h"

#include <dlfcn.h>
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

#include "core/runtime.h"
#include "libkymo/api.h"
#include "libkymo/find_object.h"
#include "libkymo/real.h"
#include "wrappers/got.h"
#include "wrappers/got_engine.h"
#include "wrappers/wrappers.h"

#define ROW(name) {.symbol = #name, .replacement = (void *)name, .original = &real_##name},
static struct got_wrapper calls[] = {REAL_FUNCTIONS(ROW)};

/* Look-ups that begin with the program find what only a preloaded library has. */
bool opened_is(void)
{
	void *program = dlopen(NULL, RTLD_LAZY);
	bool found = program && dlsym(program, KYMO_RUNTIME_API_NAME);

	if (!found)
		dlerror(); /* our vain look-up is not the program's to find */
	return !found;
}

void opened_add(void)
{
	static bool added;

	if (added) {
		got_resume();
		return;
	}
	added = true;
	got_hide_own();
	got_follow_forks();
	/* Objects that are opened later call as well. What was added works without the rest. */
	if (got_add(calls, sizeof(calls) / sizeof(calls[0])) || wrappers_loader_follow())
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_WRAPPER);
}

void opened_restore(void)
{
	got_restore();
}
