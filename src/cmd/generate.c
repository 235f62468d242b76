/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which generated file, and docs/settings.md; see generate.h.
 */
#include "cmd/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/listing.h"
#include "cmd/message.h"

static void markdown_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '<')
			putchar('\\');
		putchar(*text);
	}
}

static void markdown_setting(unsigned id)
{
	const struct setting *setting = &settings_table[id];
	char option[64];

	printf("| `%s` | `--%s`", setting->name,
	       resolved_option_name((enum setting_id)id, option, sizeof(option)));
	if (setting->short_option)
		printf(", `-%c`", setting->short_option);
	printf(" | %s | %s%s%s | ", listing_type_name(setting->type),
	       *setting->default_value ? "`" : "", setting->default_value,
	       *setting->default_value ? "`" : "");
	markdown_text(setting->help);
	if (setting->choices && setting->type == SETTING_CHOICE)
		printf(" One of `%s`.", setting->choices);
	if (setting->inherits)
		printf(" Unset: as `%s`.", setting->inherits);
	if (setting->visibility == SETTING_ADVANCED)
		printf(" *(advanced)*");
	puts(" |");
}

void generate_markdown_settings(void)
{
	const char *category = "";

	puts("# Settings\n\n"
	     "Generated from `src/common/settings_table.c` by `kymo help --generate "
	     "settings.md`.\n\n"
	     "Each setting is an option (`--freq 500`), an environment variable "
	     "(`KYMO_SAMPLING_FREQ=500`) and a line of a\n"
	     "configuration file (`sampling_freq = 500`); an option beats the environment, which "
	     "beats files, which beat the default.");
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct setting *setting = &settings_table[id];

		if (setting->visibility == SETTING_INTERNAL)
			continue;
		if (strcmp(category, setting->category)) {
			category = setting->category;
			printf("\n## %s\n\n| Setting | Option | Type | Default | Meaning |\n"
			       "|---|---|---|---|---|\n",
			       listing_category_title(category));
		}
		markdown_setting(id);
	}
}

int generate(const char *name)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} files[] = {
		{"kymo.1", generate_man_overview},  {"kymo-settings.7", generate_man_settings},
		{"completion-bash", generate_bash}, {"completion-zsh", generate_zsh},
		{"completion-fish", generate_fish}, {"settings.md", generate_markdown_settings},
	};
	char page[64];

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!strcmp(files[i].name, name)) {
			files[i].print();
			return message_end_answer(EXIT_SUCCESS);
		}
	}
	for (const struct command *const *command = commands; *command; command++) {
		snprintf(page, sizeof(page), "kymo-%s.1", (*command)->name);
		if (!strcmp(page, name)) {
			generate_man_command(*command);
			return message_end_answer(EXIT_SUCCESS);
		}
	}
	message_error("nothing to generate called '%s'", name);
	return EXIT_OWN_FAILURE;
}
