/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Asking whoever started this program, or attached to it, for plans (kymo/plan.h).
 *
 * A descriptor is open in the calling thread's table between begin and end. One thread at a time.
 */
#ifndef KYMO_INSTRUMENT_REQUEST_H
#define KYMO_INSTRUMENT_REQUEST_H

#include "kymo/plan.h"

/* Connected descriptor, out of the way of the program's own, or a negative errno. */
int request_connect(const char *socket_path);
/* Sends *request and waits for *answer. 0, or a negative errno when nobody answered. */
int request_send_and_receive(int fd, const struct plan_request *request,
			     struct plan_answer *answer);
void request_disconnect(int fd);

#endif
