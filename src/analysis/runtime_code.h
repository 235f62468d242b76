/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code that a run-time compiler put where other code was before: the same address is another
 * function at another time. A jitdump says when. Nodes of the tree are then distinguished by the
 * code they are in, so the tree grows with what the compiler made, not with samples.
 */
#ifndef KYMO_ANALYSIS_RUNTIME_CODE_H
#define KYMO_ANALYSIS_RUNTIME_CODE_H

#include "analysis/session_private.h"

/* After the scan of a process, before its samples. 0 or -ENOMEM. */
int runtime_code_load_jitdump(struct session *session, uint32_t process);
/* Code in no file, whose names come from its compiler. */
bool module_is_jit_code_or_none(const struct session *session, uint32_t module);
/* Since when the code at that address has been there (CLOCK_MONOTONIC); 0: not known. Only where
 * the process has a jitmap. */
uint64_t runtime_code_find_code_creation_ns(const struct process_private *process, uint64_t address,
					    uint64_t time_ns);
/* The jitdump that a process mapped, as compilers do to be noticed; or NULL. */
const char *runtime_code_find_jitdump_path(const struct session *session, uint32_t process);

#endif
