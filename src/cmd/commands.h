/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The list of commands: one file in this room each, and a line in commands.c.
 */
#ifndef KYMO_CMD_COMMANDS_H
#define KYMO_CMD_COMMANDS_H

#include "settings/command.h"

extern const struct command sample_command_description, instrument_command_description,
	causal_command_description, attach_command_description, run_command_description,
	counters_command_description, report_command_description, merge_command_description,
	ctl_command_description, diff_command_description, sql_command_description,
	annotate_command_description, top_command_description, python_command_description;
/* NULL-terminated, in the order of listings; see commands in settings/command.h. */
extern const struct command *const command_table[];

#endif
