/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The first look at one process of a session (index in session.processes, its file open):
 * everything but its samples. Records that kinds of data want go to them (analysis/session_kind.h).
 */
#ifndef KYMO_ANALYSIS_SCAN_SCAN_H
#define KYMO_ANALYSIS_SCAN_SCAN_H

#include "analysis/session.h"

/* 0 or a negative errno. */
int session_scan_process(struct session *session, uint32_t process, struct problem *problem);

#endif
