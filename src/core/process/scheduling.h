/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * When threads of kymo's own get a processor beside the program's threads.
 */
#ifndef KYMO_CORE_PROCESS_SCHEDULING_H
#define KYMO_CORE_PROCESS_SCHEDULING_H

#include <stdbool.h>

/* The calling thread, which works for some 20 us at a time, asks to be let in soon when it is
 * woken. `before_realtime`: also before threads that have its own real-time priority, which it has
 * from the program; without the permission for that it stays as it is. */
void scheduling_request_prompt_turns(bool before_realtime);

#endif
