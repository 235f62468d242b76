/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CPU time that no sample covers: short threads, the time before the first tick, lost samples. It
 * is shown as a frame of its own, so that sums equal the CPU time that the kernel counted.
 */
#ifndef KYMO_ANALYSIS_UNSAMPLED_H
#define KYMO_ANALYSIS_UNSAMPLED_H

#include "analysis/session.h"

/* 0 as well where it is not known or would not make sense (time filter, no CPU sampling). */
uint64_t session_get_thread_unsampled_ns(const struct session *session, uint32_t thread);
/* Gives processes that need it an "[unsampled]" node in the tree of addresses. 0 or -ENOMEM. */
int session_add_unsampled_nodes(struct session *session);
/* The process's "[unsampled]" node, or MODEL_ENTRY_INDEX_NONE. */
uint32_t session_get_unsampled_node(const struct session *session, uint32_t process);

#endif
