/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `--cputime` and `--realtime`: two settings each, for commands that sample.
 */
#ifndef KYMO_SETTINGS_SAMPLER_OPTIONS_H
#define KYMO_SETTINGS_SAMPLER_OPTIONS_H

#include "settings/options.h"

int option_apply_cputime(struct parsed_command_line *result, const struct extra_option *option,
			 const char *value, struct problem *problem);
int option_apply_realtime(struct parsed_command_line *result, const struct extra_option *option,
			  const char *value, struct problem *problem);

#define OPTION_CPUTIME_INITIALIZER                                                                 \
	{                                                                                          \
		.name = "cputime", .argument = OPTION_ARGUMENT_OPTIONAL_NUMBER, .metavar = "HZ",   \
		.apply = option_apply_cputime,                                                     \
		.help = "Sample on CPU time, at this rate; the default kind of sampling "          \
			"(--cputime=off: not)."                                                    \
	}
#define OPTION_REALTIME_INITIALIZER                                                                \
	{                                                                                          \
		.name = "realtime", .argument = OPTION_ARGUMENT_OPTIONAL_NUMBER, .metavar = "HZ",  \
		.apply = option_apply_realtime,                                                    \
		.help = "Sample on real time, at this rate: shows where threads wait. Alone, it "  \
			"takes the place of CPU time."                                             \
	}

#endif
