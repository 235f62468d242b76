/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instrumenting a process that runs: on a thread of kymo's own, while the program goes on; only
 * writing the patches stops it for a moment (PLAN_REQUEST_DONE, once for all objects).
 */
#ifndef KYMO_INSTRUMENT_ATTACHED_H
#define KYMO_INSTRUMENT_ATTACHED_H

/* On a thread of the program; returns at once. */
void attached_start_instrumenting(void);

#endif
