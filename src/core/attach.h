/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A second way to start, and a way to end while the program goes on: kymo attach loads the library
 * into a process that runs, and later leaves it as it was. Any number of times.
 *
 * What differs from a start by preloading:
 *   - nothing is collected until whoever attached says so (SPOOL_CONTROL_START);
 *   - all threads are there already and are found by the background thread's scan, their stacks by
 *     where their samples lie;
 *   - the program's calls do not pass our wrappers, so sampling uses a signal whose default is to
 * be ignored: one that comes late, into an exec or after we left, does no harm;
 *   - who attached holds a lock beside the spool file as long as it lives; when it is gone the
 *     library leaves by itself.
 *
 * Detaching keeps what late events of the program's threads could still touch: thread blocks stay,
 * the mappings of the spool file become anonymous memory at the same addresses until the next
 * start.
 */
#ifndef KYMO_CORE_ATTACH_H
#define KYMO_CORE_ATTACH_H

#include <stdint.h>

struct runtime;

/* On a thread of the program, with signals blocked; `environment` must stay. 0, -EALREADY when the
 * process is being profiled, or another negative errno. Returns when records can be written. */
int attach_start_profiling(struct runtime *runtime, char *const *environment);

/* Background thread: is it time to leave? */
void attach_request_detach_if_attacher_gone(struct runtime *runtime, uint64_t now, uint64_t *wait);
/* Background thread: leaves; the thread ends after it. */
void attach_stop_and_detach(struct runtime *runtime);

#endif
