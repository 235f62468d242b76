/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What `kymo instrument` was asked for, from settings and options to rules.
 */
#ifndef KYMO_PLANNING_INSTRUMENT_REQUEST_H
#define KYMO_PLANNING_INSTRUMENT_REQUEST_H

#include "planning/module.h"
#include "settings/effective.h"

enum function_list_kind { PRINT_AVAILABLE, PRINT_INSTRUMENTED, PRINT_EXCLUDED, PRINT_OVERLAPPING };
enum { PRINT_LIST_COUNT = PRINT_OVERLAPPING + 1 };

/* Options that are no settings. Texts are those of the command line. */
struct instrument_command_options {
	const char *rewritten_file_path; /* -o: the new file; NULL: none */
	const char *pid;                 /* -p */
	const char *mode;                /* -M: trace, sampling, coverage */
	const char *print[PRINT_LIST_COUNT];
	bool is_simulation, sample;
};

/* A setup with everything that it points to. */
struct instrumentation_request {
	struct instrumentation_setup setup;
	struct selection_rules *rules;
	unsigned signature_part_flags; /* of setup, for lists */
	char cache[4096];
	char mode_restrict_pattern[256];
};

/* Checks everything; also turns sampling on or off as the mode says. -EINVAL or errors of list
 * files. */
int instrument_request_init(struct instrumentation_request *ret,
			    struct effective_settings *settings,
			    const struct instrument_command_options *options,
			    struct problem *problem);
void instrument_request_deinit(struct instrumentation_request *request);

#endif
