/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of the program that wait by looking again and again (binary/causal/spins.h): they are
 * instrumented, and a call of one is a wait for a thread of the session. Without that nothing shows
 * where a thread stops working and begins to wait, the unapplied delay is paid a sample at a time,
 * and threads that meet more often than samples come wait for all of it.
 */
#ifndef KYMO_CAUSAL_SPINS_H
#define KYMO_CAUSAL_SPINS_H

#include <stdint.h>

/* Background thread: there is one. Again: does nothing. */
void spins_add_function(uint64_t address);
/* The calling thread enters an instrumented function, or leaves it. */
void spins_begin_wait_if_spin_function(uint64_t address);
void spins_end_wait_if_spin_function(uint64_t address);

#endif
