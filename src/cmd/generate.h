/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files made from the command and settings tables: manual pages, shell completion,
 * docs/settings.md. The build runs `kymo help --generate NAME`.
 */
#ifndef KYMO_CMD_GENERATE_H
#define KYMO_CMD_GENERATE_H

#include <stddef.h>

/* Prints the file of that name to standard output: "kymo.1", "kymo-sample.1", "kymo-settings.7",
 * "completion-bash", "completion-zsh", "completion-fish", "settings.md". The exit status. */
int generate(const char *name);

void generate_man_overview(void);
struct command;
void generate_man_command(const struct command *command);
void generate_man_settings(void);
void generate_markdown_settings(void);
void generate_bash(void);
void generate_zsh(void);
void generate_fish(void);

#endif
