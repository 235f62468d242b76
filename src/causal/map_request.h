/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Asking kymo for the map of a module (kymo/causal.h), without waiting for it. Background thread
 * only: the descriptor is in its table.
 */
#ifndef KYMO_CAUSAL_MAP_REQUEST_H
#define KYMO_CAUSAL_MAP_REQUEST_H

#include "kymo/causal.h"

/* Connected descriptor; -EAGAIN: try later; other negative errno: nobody answers there. `directory`
 * is the session's causal/. */
int map_request_connect(const char *directory);
/* 0, or a negative errno: the server has gone. */
int map_request_send(int fd, const struct causal_request *request);
/* Waits at most that long. 0: *answer is there; -EAGAIN: not yet; other negative errno: the server
 * has gone. */
int map_request_receive_answer(int fd, struct causal_answer *answer, uint64_t timeout_ns);

#endif
