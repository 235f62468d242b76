/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where libkymo is: found or opened once, on first use.
 */
#ifndef KYMO_LIBKYMO_DL_RUNTIME_H
#define KYMO_LIBKYMO_DL_RUNTIME_H

#include <stdbool.h>

#include "libkymo/api.h"

/* libkymo's table if libkymo has been found; never looks for it. One load. */
const struct runtime_api *dl_runtime_get_api(void);
/* Looks whether libkymo is in the process already (preloaded, or attached to it), opens nothing. */
const struct runtime_api *dl_runtime_find_loaded(void);
/* Opens libkymo if this process is to be recorded. NULL: it is not, or it cannot be opened, or the
 * opening is under way (in this thread or another one; nobody waits). Not in signal handlers. */
const struct runtime_api *dl_runtime_find_or_load(void);

/* By the environment: is this process to be recorded? It belongs to a session, or was told so with
 * KYMO_ENABLED=on. */
bool dl_runtime_is_wanted(void);

#endif
