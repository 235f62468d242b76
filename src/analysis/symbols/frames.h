/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Frames and nodes of the model, out of the tree of addresses and what each address is called.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_FRAMES_H
#define KYMO_ANALYSIS_SYMBOLS_FRAMES_H

#include "analysis/session.h"

/* Once a session. 0 or a negative errno. */
int build_session_frames_and_nodes(struct session *session, struct problem *problem);

#endif
