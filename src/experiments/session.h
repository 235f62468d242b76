/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A session of causal profiling: the program is run, once or several times, with the controller of
 * experiments (control.h) and the server of maps (server.h) beside it; then what was
 * measured is turned into results.
 */
#ifndef KYMO_EXPERIMENTS_SESSION_H
#define KYMO_EXPERIMENTS_SESSION_H

#include "launch/launch.h"

/* As run_program(). `settings` are launch->settings. */
int causal_session_run(struct launch *launch, struct effective_settings *settings);

#endif
