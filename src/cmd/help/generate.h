/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files made from the command and settings tables: manual pages, shell completion,
 * docs/reference/settings.md. The build runs `kymo help --generate NAME`.
 */
#ifndef KYMO_CMD_HELP_GENERATE_H
#define KYMO_CMD_HELP_GENERATE_H

#include <stddef.h>

/* Prints the file of that name to standard output: "kymo.1", "kymo-sample.1", "kymo-settings.7",
 * "completion-bash", "completion-zsh", "completion-fish", "settings.md". The exit status. */
int print_generated_help_file_by_name(const char *name);

void generate_man_overview_page(void);
struct command;
void generate_man_command_page(const struct command *command);
void generate_man_settings_page(void);
void generate_markdown_settings_table(void);
void generate_bash_completion(void);
void generate_zsh_completion(void);
void generate_fish_completion(void);

#endif
