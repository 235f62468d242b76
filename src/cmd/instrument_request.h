/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What `kymo instrument` was asked for, from settings and options to rules.
 */
#ifndef KYMO_CMD_INSTRUMENT_REQUEST_H
#define KYMO_CMD_INSTRUMENT_REQUEST_H

#include "cmd/instrument_module.h"
#include "cmd/resolved.h"

enum instrument_print { PRINT_AVAILABLE, PRINT_INSTRUMENTED, PRINT_EXCLUDED, PRINT_OVERLAPPING };
enum { PRINT_LISTS = PRINT_OVERLAPPING + 1 };

/* Options that are no settings. Texts are those of the command line. */
struct instrument_options {
	const char *rewrite; /* -o: the new file; NULL: none */
	const char *pid;     /* -p */
	const char *mode;    /* -M: trace, sampling, coverage */
	const char *print[PRINT_LISTS];
	bool simulate, sample;
};

/* A setup with everything that it points to. */
struct instrument_request {
	struct instrument_setup setup;
	struct selection_rules *rules;
	unsigned labels; /* of setup, for lists */
	char cache[4096];
	char mode_restrict[256];
};

/* Checks everything; also turns sampling on or off as the mode says. -EINVAL or errors of list
 * files. */
int instrument_request_init(struct instrument_request *ret, struct resolved *settings,
			    const struct instrument_options *options, struct problem *problem);
void instrument_request_deinit(struct instrument_request *request);

#endif
