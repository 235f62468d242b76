/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Answers libkymo, which asks for processes in the middle of a tree (common/outside_request.h).
 */
#ifndef KYMO_OUTSIDE_REQUESTS_H
#define KYMO_OUTSIDE_REQUESTS_H

#include "outside/events.h"
#include "outside/process.h"

/* The socket that is asked; negative errno. */
int outside_requests_listen(const char *spool_directory);
/* Answers who waits there. */
void outside_requests_answer(int listening, struct outside_world *world,
			     struct outside_events *events);

#endif
