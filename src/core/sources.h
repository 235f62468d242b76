/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What interrupts threads: perf events with attr.sigtrap, perf events with a signal on overflow,
 * POSIX CPU timers.
 *
 * All of it is done by the background thread on behalf of the program's. It is in another process
 * (helper.h), so events cost the program no descriptors and nothing that the program closes can hit
 * them. Timers it cannot make: timers.h.
 */
#ifndef KYMO_CORE_SOURCES_H
#define KYMO_CORE_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/threads.h"

struct runtime;

/* Is a debugger attached? It would see every SIGTRAP. */
bool sources_program_is_traced(void);
/* Finds out what works here, honouring SAMPLING_SOURCE, and says so in the track. */
void sources_choose_cpu_source(struct runtime *runtime);
/* Opens and starts the thread's sources; falls back per thread (limits), counting what cannot be
 * armed. */
void sources_open_for_thread(struct runtime *runtime, struct thread *thread);
/* Starts or stops what is open, as windows and the thread's state want it: while a window is closed
 * no timer runs. */
void sources_arm_or_disarm_by_state(struct runtime *runtime, struct thread *thread);
/* Draws a new period at random around the current one. */
void sources_randomize_period_of_thread(struct runtime *runtime, struct thread *thread);
void sources_close_for_thread(struct thread *thread);
/* Gives threads that change context often the source that costs nothing there, and back again. */
void sources_change_by_switch_rates(struct runtime *runtime, uint64_t now);

#endif
