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

#include "core/base/options.h"

struct runtime;

/* Before anything is wrapped: what the groups need of the collector is noted. */
void wrappers_remember_collector(struct runtime *runtime);

/* Each adds its tables (got_add_wrappers) if `options` wants it. 0 or negative errno. */
int wrappers_threads_add(const struct wrapper_options *options);   /* pthread locks, joins, … */
int wrappers_processes_add(const struct wrapper_options *options); /* fork, spawn, wait, exit */
int wrappers_waits_add(const struct wrapper_options *options);     /* sleep and I/O */
int wrappers_loader_add(const struct wrapper_options *options);    /* dlopen, dlsym, dlclose */
int wrappers_loader_add_dlopen_wrappers(void); /* the part of it that sees objects come */
int wrappers_loader_add_for_attachment(const struct wrapper_options *options); /* the same */
/* Called when dlopen has returned and objects have come; may be NULL. */
void wrappers_loader_set_listener(void (*opened)(void));
int wrappers_nccl_add(const struct wrapper_options *options);
int wrappers_user_add(const struct wrapper_options *options); /* WRAP */

/* Adds all of them; the next got_scan_and_rewrite() installs them. False: nothing is wrapped. In
 * causal profiling locks and waits are not recorded. */
bool wrappers_add_all(struct runtime *runtime);
/* Those of them that kymo attach offers, for each attachment anew: allocations. */
void wrappers_add_for_attachment(struct runtime *runtime);
/* Detached, and no call is led to a wrapper any more: what they keep is given back. */
void wrappers_forget_attachment(void);

#endif
