/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help: a page that fits a screen, topics, everything.
 */
#ifndef KYMO_CMD_HELP_HELP_H
#define KYMO_CMD_HELP_HELP_H

#include "settings/command.h"

extern const struct command help_command_description;

/* Prints the page of a command (topic ""), of a topic, or of everything ("all"). The exit status.
 * `command` NULL: kymo itself. */
int help_show_page(const struct command *command, const char *topic);

#endif
