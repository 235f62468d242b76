/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Asks the kymo command to sample a process that no library can be loaded into. Raw system calls
 * only: it is called in children of vfork. Waits for the answer, a second at most.
 */
#ifndef KYMO_LIBKYMO_ASK_OUTSIDE_H
#define KYMO_LIBKYMO_ASK_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>

/* The calling thread is about to execute a program. True: it will be sampled, with all that it
 * starts. */
bool ask_outside_for_exec(const char *spool_directory);
/* A child that was spawned, from now on. */
bool ask_outside_for_child(const char *spool_directory, int pid);

/* True: what is asked for would be done. */
bool ask_outside_if_there(const char *spool_directory);

#endif
