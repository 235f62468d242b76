/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo instrument` without running anything: what would be instrumented (--simulate), and an
 * instrumented copy of a file (-o).
 */
#ifndef KYMO_CMD_INSTRUMENT_FILE_H
#define KYMO_CMD_INSTRUMENT_FILE_H

#include "cmd/instrument_lists.h"
#include "cmd/launch.h"

/* Writes lists where they belong and prints what was asked for; `out` gets what is printed. */
int instrument_report(const struct instrument_lists *lists, const struct launch *launch,
		      const struct instrument_options *options, FILE *out, struct problem *problem);
/* The program (launch->arguments[0]) and, to simulate running it, its libraries. An exit status. */
int instrument_file(struct launch *launch, struct instrument_request *request,
		    const struct instrument_options *options);

#endif
