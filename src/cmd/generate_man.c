/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Manual pages in man(7) macros; see generate.h.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/generate.h"
#include "cmd/listing.h"
#include "cmd/result_path.h"
#include "cmd/topics.h"

/* Backslashes, hyphens, and dots or quotes that begin a line mean something to troff. */
static void man_text(const char *text)
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

static void man_paragraphs(const char *text)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t length = end ? (size_t)(end - text) : strlen(text);
		char paragraph[4096];

		snprintf(paragraph, sizeof(paragraph), "%.*s", (int)length, text);
		fputs(".PP\n", stdout);
		man_text(paragraph);
		putchar('\n');
		text += length + (end ? 2 : 0);
	}
}

static void man_preformatted(const char *text)
{
	fputs(".PP\n.nf\n", stdout);
	man_text(text);
	fputs(".fi\n", stdout);
}

static void man_title(const char *name, int section, const char *summary)
{
	char upper[64];
	size_t i = 0;

	for (; name[i] && i + 1 < sizeof(upper); i++)
		upper[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
	upper[i] = '\0';
	printf(".TH \"%s\" %d \"\" \"kymo %s\" \"kymo manual\"\n.SH NAME\n", upper, section,
	       KYMO_VERSION);
	man_text(name);
	printf(" \\- ");
	man_text(summary);
	putchar('\n');
}

static void man_option(const struct listing_option *option, void *context)
{
	const char **category = context;
	char usage[96];

	if (strcmp(*category, option->category)) {
		*category = option->category;
		printf(".SS %s\n", listing_category_title(option->category));
	}
	fputs(".TP\n.B ", stdout);
	man_text(listing_usage(option, usage, sizeof(usage)));
	putchar('\n');
	man_text(option->help);
	if (option->choices) {
		fputs("\nOne or more of: ", stdout);
		man_text(option->choices);
		putchar('.');
	}
	if (option->id != SETTING_COUNT) {
		const struct setting *setting = &settings_table[option->id];

		fputs("\nSetting ", stdout);
		man_text(setting->name);
		fputs("; default: ", stdout);
		man_text(*setting->default_value ? setting->default_value
			 : setting->inherits     ? setting->inherits
						 : "none");
		putchar('.');
	}
	putchar('\n');
}

static void man_see_also(const char *but)
{
	fputs(".SH SEE ALSO\n.BR kymo (1),\n", stdout);
	for (const struct command *const *command = commands; *command; command++) {
		if (strcmp((*command)->name, but) && *command != &command_help)
			printf(".BR kymo\\-%s (1),\n", (*command)->name);
	}
	fputs(".BR kymo\\-settings (7)\n", stdout);
}

void generate_man_command(const struct command *command)
{
	const char *category = "";
	char name[64];

	snprintf(name, sizeof(name), "kymo-%s", command->name);
	man_title(name, 1, command->summary);
	fputs(".SH SYNOPSIS\n.B kymo ", stdout);
	man_text(command->synopsis);
	fputs("\n.SH DESCRIPTION\n", stdout);
	man_paragraphs(command->text);
	fputs(".SH OPTIONS\n", stdout);
	listing_each_option(command->grammar, man_option, &category);
	fputs(".SH EXIT STATUS\n", stdout);
	if (command->grammar->runs_program)
		man_preformatted(topic_find("exit")->text);
	else
		fputs("0, or 125 when something is wrong with the request or the data.\n", stdout);
	fputs(".SH EXAMPLES\n", stdout);
	man_preformatted(command->examples);
	man_see_also(command->name);
}

void generate_man_overview(void)
{
	man_title("kymo", 1, "profiler that shows where the time of a program goes");
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
		man_text((*command)->summary);
		puts(command_find((*command)->name) == &command_help ? "" : ".");
	}
	fputs(".SH EXIT STATUS\n", stdout);
	man_preformatted(topic_find("exit")->text);
	fputs(".SH ENVIRONMENT\n.TP\n.BR KYMO_ NAME\nAny setting; see\n.BR kymo\\-settings (7).\n"
	      ".TP\n.B NO_COLOR\nNo colour.\n.SH FILES\n.TP\n.I ~/.config/kymo/config\n"
	      "Settings, unless KYMO_CONFIG_FILE names other files.\n",
	      stdout);
	man_see_also("");
}

static void man_setting(const struct setting *setting, const char **category)
{
	if (strcmp(*category, setting->category)) {
		*category = setting->category;
		printf(".SS %s\n", listing_category_title(setting->category));
	}
	printf(".TP\n.BR %s \" (%s", setting->name, listing_type_name(setting->type));
	if (*setting->default_value) {
		fputs(", default ", stdout);
		man_text(setting->default_value);
	}
	fputs(")\"\n", stdout);
	man_text(setting->help);
	if (setting->inherits)
		printf("\nUnset: as %s.", setting->inherits);
	putchar('\n');
}

void generate_man_settings(void)
{
	const char *category = "";

	man_title("kymo-settings", 7, "settings of kymo, configuration files, windows, path keys");
	fputs(".SH DESCRIPTION\n", stdout);
	man_preformatted(topic_find("settings")->text);
	fputs(".SH CONFIGURATION FILES\n", stdout);
	man_preformatted(topic_find("config")->text);
	fputs(".SH COLLECTION WINDOWS\n", stdout);
	man_preformatted(topic_find("windows")->text);
	fputs(".SH REGIONS\n", stdout);
	man_preformatted(topic_find("regions")->text);
	fputs(".SH WRAPPED FUNCTIONS\n", stdout);
	man_preformatted(topic_find("wrappers")->text);
	fputs(".SH PATH KEYS\n", stdout);
	for (unsigned i = 0; result_path_keys[i][0]; i++) {
		fputs(".TP\n.B ", stdout);
		man_text(result_path_keys[i][0]);
		putchar('\n');
		man_text(result_path_keys[i][1]);
		putchar('\n');
	}
	fputs(".SH SETTINGS\n", stdout);
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL)
			man_setting(&settings_table[id], &category);
	}
	man_see_also("");
}
