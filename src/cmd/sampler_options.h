/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `--cputime` and `--realtime`: two settings each, for commands that sample.
 */
#ifndef KYMO_CMD_SAMPLER_OPTIONS_H
#define KYMO_CMD_SAMPLER_OPTIONS_H

#include "cmd/options.h"

int option_cputime(struct options_result *result, const struct option_extra *option,
		   const char *value, struct problem *problem);
int option_realtime(struct options_result *result, const struct option_extra *option,
		    const char *value, struct problem *problem);

#define OPTION_CPUTIME                                                                             \
	{                                                                                          \
		.name = "cputime", .argument = OPTION_NUMBER, .metavar = "HZ",                     \
		.apply = option_cputime,                                                           \
		.help = "Sample on CPU time, at this rate; the default kind of sampling "          \
			"(--cputime=off: not)."                                                    \
	}
#define OPTION_REALTIME                                                                            \
	{                                                                                          \
		.name = "realtime", .argument = OPTION_NUMBER, .metavar = "HZ",                    \
		.apply = option_realtime,                                                          \
		.help = "Sample on real time, at this rate: shows where threads wait. Alone, it "  \
			"takes the place of CPU time."                                             \
	}

#endif
