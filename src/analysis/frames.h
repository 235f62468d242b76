/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CPU time that no sample covers: short threads, the time before the first tick, lost samples. It
 * is shown as a frame of its own, so that sums equal the CPU time that the kernel counted.
 */
#ifndef KYMO_ANALYSIS_FRAMES_H
#define KYMO_ANALYSIS_FRAMES_H

#include "analysis/session.h"

/* 0 as well where it is not known or would not make sense (time filter, no CPU sampling). */
uint64_t session_unsampled_ns(const struct session *session, uint32_t thread);
/* The process's "[unsampled]" node, or MODEL_NONE. */
uint32_t session_unsampled_node(const struct session *session, uint32_t process);

#endif
