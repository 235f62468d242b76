/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All groups of wrapped functions, as the settings switch them on. A group is a file: a table of
 * got_wrapper and the replacements. Installed by the library's constructor on the program's thread,
 * after the runtime has started; not in forked children (they inherit what is rewritten).
 */
#ifndef KYMO_WRAPPERS_WRAPPERS_H
#define KYMO_WRAPPERS_WRAPPERS_H

#include <stdbool.h>

#include "core/options.h"

/* Each adds its tables (got_add) if `options` wants it. 0 or negative errno. */
int wrappers_threads_add(const struct options_wrappers *options);   /* pthread locks, joins, … */
int wrappers_processes_add(const struct options_wrappers *options); /* fork, spawn, wait, exit */
int wrappers_waits_add(const struct options_wrappers *options);     /* sleep and I/O */
int wrappers_loader_add(const struct options_wrappers *options);    /* dlopen, dlsym, dlclose */
int wrappers_loader_follow(void); /* the part of it that sees objects come */
int wrappers_memory_add(const struct options_wrappers *options); /* malloc family */
int wrappers_mpi_add(const struct options_wrappers *options);
int wrappers_nccl_add(const struct options_wrappers *options);
int wrappers_user_add(const struct options_wrappers *options); /* WRAP */
int wrappers_causal_add(void); /* all that waits and wakes, where KYMO_CAUSAL asks for it */

/* Adds all of them; the next got_scan() installs them. False: nothing is wrapped. In causal
 * profiling locks and waits are not recorded. */
bool wrappers_add(const struct options_wrappers *options);

#endif
