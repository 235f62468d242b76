/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Manual pages in man(7) macros; see generate.h.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/help/generate.h"
#include "cmd/help/help.h"
#include "cmd/help/topics.h"
#include "launch/result_path.h"
#include "settings/command.h"
#include "settings/listing.h"

/* Backslashes, hyphens, and dots or quotes that begin a line mean something to troff. */
static void man_print_escaped_text(const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", stdout);
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else if (!strncmp(text, "…", 3)) {
			fputs("...", stdout);
			text += 2;
		} else {
			putchar(*text);
		}
		line_start = *text == '\n';
	}
}

static void man_print_paragraphs(const char *text)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t length = end ? (size_t)(end - text) : strlen(text);
		char paragraph[4096];

		snprintf(paragraph, sizeof(paragraph), "%.*s", (int)length, text);
		fputs(".PP\n", stdout);
		man_print_escaped_text(paragraph);
		putchar('\n');
		text += length + (end ? 2 : 0);
	}
}

static void man_print_preformatted(const char *text)
{
	fputs(".PP\n.nf\n", stdout);
	man_print_escaped_text(text);
	fputs(".fi\n", stdout);
}

static void man_print_title(const char *name, int section, const char *summary)
{
	char upper[64];
	size_t i = 0;

	for (; name[i] && i + 1 < sizeof(upper); i++)
		upper[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
	upper[i] = '\0';
	printf(".TH \"%s\" %d \"\" \"kymo %s\" \"kymo manual\"\n.SH NAME\n", upper, section,
	       KYMO_VERSION);
	man_print_escaped_text(name);
	printf(" \\- ");
	man_print_escaped_text(summary);
	putchar('\n');
}

static void man_print_option(const struct listing_option *option, void *context)
{
	const char **category = context;
	char usage[96];

	if (strcmp(*category, option->category)) {
		*category = option->category;
		printf(".SS %s\n", listing_get_category_title(option->category));
	}
	fputs(".TP\n.B ", stdout);
	man_print_escaped_text(listing_make_usage_text_of_option(option, usage, sizeof(usage)));
	putchar('\n');
	man_print_escaped_text(option->help);
	if (option->choices) {
		fputs("\nOne or more of: ", stdout);
		man_print_escaped_text(option->choices);
		putchar('.');
	}
	if (option->id != SETTING_COUNT) {
		const struct setting *setting = &settings_table[option->id];

		fputs("\nSetting ", stdout);
		man_print_escaped_text(setting->name);
		fputs("; default: ", stdout);
		man_print_escaped_text(*setting->default_value     ? setting->default_value
				       : setting->fallback_setting ? setting->fallback_setting
								   : "none");
		putchar('.');
	}
	putchar('\n');
}

static void man_print_see_also(const char *but)
{
	fputs(".SH SEE ALSO\n.BR kymo (1),\n", stdout);
	for (const struct command *const *command = commands; *command; command++) {
		if (strcmp((*command)->name, but) && *command != &help_command_description)
			printf(".BR kymo\\-%s (1),\n", (*command)->name);
	}
	fputs(".BR kymo\\-settings (7)\n", stdout);
}

void generate_man_command_page(const struct command *command)
{
	const char *category = "";
	char name[64];

	snprintf(name, sizeof(name), "kymo-%s", command->name);
	man_print_title(name, 1, command->summary);
	fputs(".SH SYNOPSIS\n.B kymo ", stdout);
	man_print_escaped_text(command->synopsis);
	fputs("\n.SH DESCRIPTION\n", stdout);
	man_print_paragraphs(command->text);
	fputs(".SH OPTIONS\n", stdout);
	listing_for_each_option(command->grammar, man_print_option, &category);
	fputs(".SH EXIT STATUS\n", stdout);
	if (command->grammar->runs_program)
		man_print_preformatted(help_topic_find_by_name("exit")->text);
	else
		fputs("0, or 125 if the request or the data is wrong.\n", stdout);
	fputs(".SH EXAMPLES\n", stdout);
	man_print_preformatted(command->examples);
	man_print_see_also(command->name);
}

void generate_man_overview_page(void)
{
	man_print_title("kymo", 1, "profiler that shows where the time of a program goes");
	fputs(".SH SYNOPSIS\n.B kymo\n.I COMMAND\n[options]\n.br\n.B kymo \\-\\-\n.I PROGRAM\n"
	      "[arguments]\n.SH DESCRIPTION\n"
	      "kymo samples the call stacks of unmodified programs and of the processes they "
	      "start, "
	      "and shows\nwhere their time goes: as a summary on the terminal, as call\\-tree "
	      "profile, Perfetto trace,\nflame graph and more.\n.PP\n.B kymo \\-\\-\n.I PROGRAM\n"
	      "means\n.B kymo sample \\-\\-\n.IR PROGRAM .\n.SH COMMANDS\n",
	      stdout);
	for (const struct command *const *command = commands; *command; command++) {
		printf(".TP\n.B %s\n", (*command)->name);
		man_print_escaped_text((*command)->summary);
		puts(command_find_by_name((*command)->name) == &help_command_description ? ""
											 : ".");
	}
	fputs(".SH EXIT STATUS\n", stdout);
	man_print_preformatted(help_topic_find_by_name("exit")->text);
	fputs(".SH ENVIRONMENT\n.TP\n.BR KYMO_ NAME\nAny setting; see\n.BR kymo\\-settings (7).\n"
	      ".TP\n.B NO_COLOR\nNo colour.\n.SH FILES\n.TP\n.I ~/.config/kymo/config\n"
	      "Settings, unless KYMO_CONFIG_FILE names other files.\n",
	      stdout);
	man_print_see_also("");
}

static void man_print_setting(const struct setting *setting, const char **category)
{
	if (strcmp(*category, setting->category)) {
		*category = setting->category;
		printf(".SS %s\n", listing_get_category_title(setting->category));
	}
	printf(".TP\n.BR %s \" (%s", setting->name, listing_get_type_name(setting->type));
	if (*setting->default_value) {
		fputs(", default ", stdout);
		man_print_escaped_text(setting->default_value);
	}
	fputs(")\"\n", stdout);
	man_print_escaped_text(setting->help);
	if (setting->fallback_setting)
		printf("\nUnset: as %s.", setting->fallback_setting);
	putchar('\n');
}

void generate_man_settings_page(void)
{
	const char *category = "";

	man_print_title("kymo-settings", 7,
			"settings of kymo, configuration files, windows, path keys");
	fputs(".SH DESCRIPTION\n", stdout);
	man_print_preformatted(help_topic_find_by_name("settings")->text);
	fputs(".SH CONFIGURATION FILES\n", stdout);
	man_print_preformatted(help_topic_find_by_name("config")->text);
	fputs(".SH COLLECTION WINDOWS\n", stdout);
	man_print_preformatted(help_topic_find_by_name("windows")->text);
	fputs(".SH REGIONS\n", stdout);
	man_print_preformatted(help_topic_find_by_name("regions")->text);
	fputs(".SH WRAPPED FUNCTIONS\n", stdout);
	man_print_preformatted(help_topic_find_by_name("wrappers")->text);
	fputs(".SH PATH KEYS\n", stdout);
	for (unsigned i = 0; result_path_key_help_texts[i][0]; i++) {
		fputs(".TP\n.B ", stdout);
		man_print_escaped_text(result_path_key_help_texts[i][0]);
		putchar('\n');
		man_print_escaped_text(result_path_key_help_texts[i][1]);
		putchar('\n');
	}
	fputs(".SH SETTINGS\n", stdout);
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL)
			man_print_setting(&settings_table[id], &category);
	}
	man_print_see_also("");
}
