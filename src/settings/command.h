/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A command of kymo, and what every command does first: settle options, environment and
 * configuration files into one set of settings. The commands themselves are listed in
 * cmd/commands.c, which registers them here for help, manual pages and completion.
 */
#ifndef KYMO_SETTINGS_COMMAND_H
#define KYMO_SETTINGS_COMMAND_H

#include <stddef.h>

#include "settings/options.h"

enum command_operand_kind {
	COMMAND_OPERANDS_OTHER,
	COMMAND_OPERANDS_PROGRAM, /* a program and its arguments */
	COMMAND_OPERANDS_RESULTS, /* result directories */
};

struct command {
	const char *name;
	const char *summary;  /* one line in the list of commands */
	const char *synopsis; /* behind "kymo " */
	const char *text;     /* paragraphs for the manual page, separated by empty lines */
	const char *examples; /* lines for help and manual page */
	enum command_operand_kind operands; /* for completion */
	const char *words;                  /* operands that are words; separated by blanks */
	/* The settings on the one-screen help page; NULL: all. */
	const enum setting_id *page;
	size_t page_count;
	const char *more; /* last lines of that page; NULL: none */
	const struct options_grammar *grammar;
	int (*run)(char **arguments, size_t count); /* the exit status */
};

/* All commands, NULL-terminated, in the order of listings; the first one is what `kymo -- PROGRAM`
 * means. Set once, by main(), before any command begins. */
extern const struct command *const *commands;
/* Prints the page of a command or topic and returns the exit status (cmd/help/help.h). */
typedef int command_show_help(const struct command *command, const char *topic);
void commands_register(const struct command *const *all, command_show_help *show_help);
const struct command *command_find_by_name(const char *name);
/* "unknown command 'x'; did you mean 'y'?" */
void command_report_unknown(const char *name);

/* Result of command_parse_and_read_settings(): go on, or leave with the status. */
enum { COMMAND_CONTINUE = -1 };

/* Parses `arguments` into settings, operands and `context`, reads environment and configuration
 * files, sets verbosity and colour, shows help when asked. Returns COMMAND_CONTINUE, or an exit
 * status; then the settings are gone already. */
int command_parse_and_read_settings(const struct command *command, char **arguments, size_t count,
				    struct effective_settings *settings,
				    struct parsed_command_line *result);

#endif
