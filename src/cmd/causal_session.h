/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A session of causal profiling: the program is run, once or several times, with the controller of
 * experiments (causal_control.h) and the server of maps (causal_server.h) beside it; then what was
 * measured is turned into results.
 */
#ifndef KYMO_CMD_CAUSAL_SESSION_H
#define KYMO_CMD_CAUSAL_SESSION_H

#include "cmd/launch.h"

/* As run_program(). `settings` are launch->settings. */
int causal_session(struct launch *launch, struct resolved *settings);

#endif
