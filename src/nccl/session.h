/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the records go: the session of the kymo command that started this program, or, where only
 * NCCL knows of the plugin, a result directory made here, which `kymo report` takes.
 */
#ifndef KYMO_NCCL_SESSION_H
#define KYMO_NCCL_SESSION_H

#include <stddef.h>

/* Writes the path of the spool directory, which is made if need be. 0 or negative errno; on failure
 * the path is the one that could not be made. */
int session_make_spool_directory(char *ret, size_t size);

#endif
