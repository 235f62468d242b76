/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Since when the session collects: its first process leaves the time in a file beside the spool
 * files, and whoever comes later reads it there. By the real-time clock, because processes of a
 * session may run on several hosts.
 */
#ifndef KYMO_CORE_PROCESS_SESSION_AGE_H
#define KYMO_CORE_PROCESS_SESSION_AGE_H

#include <stdint.h>

/* Background thread. 0 for the first process, and where nothing can be known. */
uint64_t session_age_get_or_begin_ns(const char *spool_directory);

#endif
