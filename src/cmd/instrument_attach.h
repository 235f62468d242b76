/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo instrument -p PID`: a process that runs already is instrumented, and later is as it was.
 */
#ifndef KYMO_CMD_INSTRUMENT_ATTACH_H
#define KYMO_CMD_INSTRUMENT_ATTACH_H

#include "cmd/instrument_request.h"

/* An exit status. */
int instrument_attach(struct resolved *settings, struct instrument_request *request,
		      const struct instrument_options *options);

#endif
