/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Command-line options, made from the settings table: every setting is `--name-with-dashes VALUE`.
 *
 * A boolean needs no value: `--trace`, `--trace=off`, `--trace off`, `--no-trace`. Values are
 * attached (`--freq=100`, `-f100`) or follow. Options that are no settings (`--cputime [HZ]`,
 * `--quiet`, a report's filters) come from the command as `struct option_extra`. Everything after
 * `--` is an operand; where operands are a program, so is everything from the first one on.
 */
#ifndef KYMO_CMD_OPTIONS_H
#define KYMO_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/resolved.h"

enum option_argument {
	OPTION_ALONE,
	OPTION_REQUIRED,
	OPTION_NUMBER,  /* optional: taken when it is attached, or follows as a number, on or off */
	OPTION_ATTACHED /* optional: attached with = only */
};

struct options_result;

struct option_extra {
	const char *name; /* without dashes */
	const char *metavar;
	const char *help;
	/* `value` is NULL when there is none. */
	int (*apply)(struct options_result *result, const struct option_extra *option,
		     const char *value, struct problem *problem);
	size_t offset; /* of the field that `apply` sets, where it is a generic one */
	enum option_argument argument;
	char letter;
	bool advanced; /* not on the one-screen page */
};

/* A short name that a setting has in one command, -R or -MR; it goes before those of the table. */
struct option_short {
	char letters[4];
	enum setting_id id;
};

struct options_grammar {
	const char *command; /* "sample" */
	const struct option_short *shorts;
	size_t short_count;
	const struct option_extra *extras;
	size_t extra_count;
	bool (*accepts)(enum setting_id id); /* which settings are options of this command */
	bool runs_program;                   /* the first operand ends the options */
};

struct options_result {
	struct resolved *settings;
	void *context; /* the command's own options */
	char **operands;
	size_t operand_count;
	const char *help_topic; /* NULL: no help asked for; "": the command's page */
};

/* Applies argv[0 … count). result->operands points into argv, which is permuted. 0 or -EINVAL. */
int options_parse(const struct options_grammar *grammar, char **arguments, size_t count,
		  struct options_result *result, struct problem *problem);

/* Generic `apply` functions for fields of result->context, at `offset`. A text can be set once:
 * nothing that was asked for is left out without a word. */
int option_set_flag(struct options_result *result, const struct option_extra *option,
		    const char *value, struct problem *problem);
int option_set_text(struct options_result *result, const struct option_extra *option,
		    const char *value, struct problem *problem);
/* Verbosity, shared by all commands. */
int option_quiet(struct options_result *result, const struct option_extra *option,
		 const char *value, struct problem *problem);
int option_verbose(struct options_result *result, const struct option_extra *option,
		   const char *value, struct problem *problem);

int option_help(struct options_result *result, const struct option_extra *option, const char *value,
		struct problem *problem);

#define OPTION_QUIET                                                                               \
	{                                                                                          \
		.name = "quiet", .letter = 'q', .apply = option_quiet,                             \
		.help = "Say nothing but errors and what was lost."                                \
	}
#define OPTION_VERBOSE                                                                             \
	{                                                                                          \
		.name = "verbose", .letter = 'v', .argument = OPTION_NUMBER, .metavar = "LEVEL",   \
		.apply = option_verbose, .help = "Say more; may be repeated."                      \
	}
#define OPTION_HELP                                                                                \
	{                                                                                          \
		.name = "help", .letter = 'h', .argument = OPTION_ATTACHED, .metavar = "TOPIC",    \
		.apply = option_help, .help = "Show help: a page, --help=TOPIC, or --help=all."    \
	}

#endif
