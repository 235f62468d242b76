/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo instrument` without running anything: what would be instrumented (--simulate), and an
 * instrumented copy of a file (-o).
 */
#ifndef KYMO_PLANNING_FILE_H
#define KYMO_PLANNING_FILE_H

#include "launch/launch.h"
#include "planning/lists.h"

/* Writes lists where they belong and prints what was asked for; `out` gets what is printed. */
int instrument_print_and_write_lists(const struct function_list_output_args *lists,
				     const struct launch *launch,
				     const struct instrument_command_options *options, FILE *out,
				     struct problem *problem);
/* The program (launch->arguments[0]) and, to simulate running it, its libraries. An exit status. */
int instrument_list_or_rewrite_file(struct launch *launch, struct instrumentation_request *request,
				    const struct instrument_command_options *options);

#endif
