/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which generated file, and docs/reference/settings.md; see generate.h.
 */
#include "cmd/help/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "console/message.h"
#include "settings/command.h"
#include "settings/listing.h"

static void markdown_print_escaped_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '<')
			putchar('\\');
		putchar(*text);
	}
}

static void markdown_print_setting(unsigned id)
{
	const struct setting *setting = &settings_table[id];
	char option[64];

	printf("| `%s` | `--%s`", setting->name,
	       effective_format_option_name((enum setting_id)id, option, sizeof(option)));
	if (setting->short_option)
		printf(", `-%c`", setting->short_option);
	printf(" | %s | %s%s%s | ", listing_get_type_name(setting->type),
	       *setting->default_value ? "`" : "", setting->default_value,
	       *setting->default_value ? "`" : "");
	markdown_print_escaped_text(setting->help);
	if (setting->choices && setting->type == SETTING_CHOICE)
		printf(" One of `%s`.", setting->choices);
	if (setting->fallback_setting)
		printf(" Unset: as `%s`.", setting->fallback_setting);
	if (setting->visibility == SETTING_ADVANCED)
		printf(" *(advanced)*");
	puts(" |");
}

void generate_markdown_settings_table(void)
{
	const char *category = "";

	puts("# Settings\n\n"
	     "Generated from `src/common/settings_table.c` by `kymo help --generate "
	     "settings.md`.\n\n"
	     "You can set everything on the command line (`--freq 500`), in the environment\n"
	     "(`KYMO_SAMPLING_FREQ=500`) or in a configuration file (`sampling_freq = 500`). An\n"
	     "option beats the environment, which beats files, which beat presets (`--preset`),\n"
	     "which beat the default.");
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct setting *setting = &settings_table[id];

		if (setting->visibility == SETTING_INTERNAL)
			continue;
		if (strcmp(category, setting->category)) {
			category = setting->category;
			printf("\n## %s\n\n| Setting | Option | Type | Default | Meaning |\n"
			       "|---|---|---|---|---|\n",
			       listing_get_category_title(category));
		}
		markdown_print_setting(id);
	}
}

int print_generated_help_file_by_name(const char *name)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} files[] = {
		{"kymo.1", generate_man_overview_page},
		{"kymo-settings.7", generate_man_settings_page},
		{"completion-bash", generate_bash_completion},
		{"completion-zsh", generate_zsh_completion},
		{"completion-fish", generate_fish_completion},
		{"settings.md", generate_markdown_settings_table},
	};
	char page[64];

	for (unsigned i = 0; i < ARRAY_SIZE(files); i++) {
		if (!strcmp(files[i].name, name)) {
			files[i].print();
			return message_flush_stdout_or_report_error(EXIT_SUCCESS);
		}
	}
	for (const struct command *const *command = commands; *command; command++) {
		snprintf(page, sizeof(page), "kymo-%s.1", (*command)->name);
		if (!strcmp(page, name)) {
			generate_man_command_page(*command);
			return message_flush_stdout_or_report_error(EXIT_SUCCESS);
		}
	}
	message_error("nothing to generate called '%s'", name);
	return EXIT_KYMO_FAILED;
}
