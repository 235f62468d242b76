/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The commands of kymo, and what all of them do first: settle options, environment and
 * configuration files into one set of settings.
 */
#ifndef KYMO_CMD_COMMAND_H
#define KYMO_CMD_COMMAND_H

#include <stddef.h>

#include "cmd/options.h"

struct command {
	const char *name;
	const char *summary;  /* one line in the list of commands */
	const char *synopsis; /* behind "kymo " */
	const char *text;     /* paragraphs for the manual page, separated by empty lines */
	const char *examples; /* lines for help and manual page */
	const char *words;    /* operands that are words, for completion; separated by blanks */
	const struct options_grammar *grammar;
	int (*run)(char **arguments, size_t count); /* the exit status */
};

extern const struct command command_sample, command_instrument, command_causal, command_attach,
	command_run, command_counters, command_report, command_merge, command_ctl, command_avail,
	command_help;
/* NULL-terminated, in the order of listings. */
extern const struct command *const commands[];
const struct command *command_find(const char *name);
/* "unknown command 'x'; did you mean 'y'?" */
void command_unknown(const char *name);

/* Result of command_begin(): go on, or leave with the status. */
enum { COMMAND_GO_ON = -1 };

/* Parses `arguments` into settings, operands and `context`, reads environment and configuration
 * files, sets verbosity and colour, shows help when asked. Returns COMMAND_GO_ON, or an exit
 * status; then the settings are gone already. */
int command_begin(const struct command *command, char **arguments, size_t count,
		  struct resolved *settings, struct options_result *result);

#endif
