/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Command-line options, made from the settings table: every setting is `--name-with-dashes VALUE`.
 *
 * A boolean needs no value: `--trace`, `--trace=off`, `--trace off`, `--no-trace`. Values are
 * attached (`--freq=100`, `-f100`) or follow. Options that are no settings (`--cputime [HZ]`,
 * `--quiet`, a report's filters) come from the command as `struct extra_option`. Everything after
 * `--` is an operand; where operands are a program, so is everything from the first one on.
 */
#ifndef KYMO_SETTINGS_OPTIONS_H
#define KYMO_SETTINGS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "settings/effective.h"

enum option_argument_kind {
	OPTION_ARGUMENT_NONE,
	OPTION_ARGUMENT_REQUIRED,
	OPTION_ARGUMENT_OPTIONAL_NUMBER, /* optional: taken when it is attached, or follows as a
					    number, on or off */
	OPTION_ARGUMENT_ATTACHED         /* optional: attached with = only */
};

struct parsed_command_line;

struct extra_option {
	const char *name; /* without dashes */
	const char *metavar;
	const char *help;
	const char *choices; /* the words that it takes, with commas between; NULL: no list */
	/* `value` is NULL when there is none. */
	int (*apply)(struct parsed_command_line *result, const struct extra_option *option,
		     const char *value, struct problem *problem);
	size_t offset; /* of the field that `apply` sets, where it is a generic one */
	enum option_argument_kind argument;
	char letter;
	bool advanced; /* not on the one-screen page */
};

/* A short name that a setting has in one command, -R or -MR; it goes before those of the table. */
struct short_option_entry {
	char letters[4];
	enum setting_id id;
};

struct options_grammar {
	const char *command; /* "sample" */
	const struct short_option_entry *short_options;
	size_t short_option_count;
	const struct extra_option *extra_options;
	size_t extra_option_count;
	bool (*accepts_setting)(
		enum setting_id id); /* which settings are options of this command */
	bool runs_program;           /* the first operand ends the options */
	bool lists_settings;         /* it shows values of settings that are none of its options */
};

struct parsed_command_line {
	struct effective_settings *settings;
	void *context; /* the command's own options */
	char **operands;
	size_t operand_count;
	const char *help_topic; /* NULL: no help asked for; "": the command's page */
};

/* Applies argv[0 … count). result->operands points into argv, which is permuted. 0 or -EINVAL. */
int options_parse_arguments(const struct options_grammar *grammar, char **arguments, size_t count,
			    struct parsed_command_line *result, struct problem *problem);

/* Generic `apply` functions for fields of result->context, at `offset`. A text can be set once:
 * nothing that was asked for is left out without a word. */
int option_set_flag(struct parsed_command_line *result, const struct extra_option *option,
		    const char *value, struct problem *problem);
int option_set_text(struct parsed_command_line *result, const struct extra_option *option,
		    const char *value, struct problem *problem);
/* Verbosity, shared by all commands. */
int option_apply_quiet(struct parsed_command_line *result, const struct extra_option *option,
		       const char *value, struct problem *problem);
int option_apply_verbose(struct parsed_command_line *result, const struct extra_option *option,
			 const char *value, struct problem *problem);

int option_apply_help(struct parsed_command_line *result, const struct extra_option *option,
		      const char *value, struct problem *problem);

#define OPTION_QUIET_INITIALIZER                                                                   \
	{                                                                                          \
		.name = "quiet", .letter = 'q', .apply = option_apply_quiet,                       \
		.help = "Say nothing but errors and what was lost."                                \
	}
#define OPTION_VERBOSE_INITIALIZER                                                                 \
	{                                                                                          \
		.name = "verbose", .letter = 'v', .argument = OPTION_ARGUMENT_OPTIONAL_NUMBER,     \
		.metavar = "LEVEL", .apply = option_apply_verbose,                                 \
		.help = "Say more; may be repeated."                                               \
	}
#define OPTION_HELP_INITIALIZER                                                                    \
	{                                                                                          \
		.name = "help", .letter = 'h', .argument = OPTION_ARGUMENT_ATTACHED,               \
		.metavar = "TOPIC", .apply = option_apply_help,                                    \
		.help = "Show help: a page, --help=TOPIC, or --help=all."                          \
	}

#endif
