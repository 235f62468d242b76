/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Timers of the program at its end. Interpreters put the default action in the place of a handler
 * when they end (Perl), and leave the timer: what is left to do is over before it is due again,
 * mostly. kymo's part of the end takes milliseconds, in which the signal would kill the program. So
 * a timer's signal that came meanwhile, and would have killed, is as if the program had ended
 * before. Signals that somebody sent stay.
 */
#ifndef KYMO_CORE_PROCESS_PROGRAM_TIMERS_H
#define KYMO_CORE_PROCESS_PROGRAM_TIMERS_H

#include <stdint.h>

/* Blocks what timers would kill the thread by; the signals that were open. */
uint64_t program_timers_hold_deadly_signals(void);
/* Takes what timers sent since, and opens the signals. */
void program_timers_release_signals(uint64_t held);

#endif
