/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * System calls that our signal interrupted. SA_RESTART does not restart poll, select, epoll_wait,
 * nanosleep and others (signal(7)): a program that has no signal handlers would see EINTR, which it
 * cannot get without kymo.
 */
#ifndef KYMO_CORE_PROCESS_INTERRUPTED_CALL_H
#define KYMO_CORE_PROCESS_INTERRUPTED_CALL_H

#include "core/process/program_signals.h"

/* Called last in the handler: when the interrupted instruction is a system call of that kind that
 * just failed with EINTR, and only our signal can have been the cause, sets the context so that the
 * call is made again. */
void interrupted_call_restart_if_by_us(const struct program_signals *signals, void *context);

#endif
