/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where orphans go. The helpers of profiled processes (core/helper.h) are nobody's children, so
 * that no program sees them; when they end, the init process reaps them. In containers it is often
 * a program that never does: there kymo adopts the orphans of what it runs (PR_SET_CHILD_SUBREAPER)
 * and reaps them.
 */
#ifndef KYMO_LAUNCH_REAPER_H
#define KYMO_LAUNCH_REAPER_H

#include <sys/types.h>

/* Takes it upon itself where the init process is not known to do it. Before the program is run. */
void reaper_become_subreaper_if_needed(void);
/* Waits until the child has changed its state (wait4(2) tells which, for it alone); reaps others
 * meanwhile. */
void reaper_wait_for_child(pid_t child);
/* Reaps what has ended, and what ends within a moment. */
void reaper_reap_remaining(void);

#endif
