/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help: a page that fits a screen, topics, everything.
 */
#ifndef KYMO_CMD_HELP_H
#define KYMO_CMD_HELP_H

#include "cmd/command.h"

/* Prints the page of a command (topic ""), of a topic, or of everything ("all"). The exit status.
 * `command` NULL: kymo itself. */
int help_show(const struct command *command, const char *topic);

#endif
