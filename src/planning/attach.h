/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo instrument -p PID`: a process that runs already is instrumented, and later is as it was.
 */
#ifndef KYMO_PLANNING_ATTACH_H
#define KYMO_PLANNING_ATTACH_H

#include "planning/instrument_request.h"

/* An exit status. */
int instrument_running_process(struct effective_settings *settings,
			       struct instrumentation_request *request,
			       const struct instrument_command_options *options);

#endif
