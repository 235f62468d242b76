/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help; see help.h. Everything about options comes from the settings table through
 * settings/listing.h.
 *
 * A command's page shows the options most people need, and must fit a screen (24 lines of 100
 * columns); topics and --help=all have the rest.
 */
#include "cmd/help/help.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/help/generate.h"
#include "cmd/help/topics.h"
#include "common/array.h"
#include "console/message.h"
#include "launch/file_limit.h"
#include "launch/result_path.h"
#include "settings/listing.h"
#include "settings/suggest.h"

enum { HELP_LINE_WIDTH = 100, HELP_DESCRIPTION_COLUMN = 32 };

/* A walk over options. */
struct help_option_listing_state {
	const char *last_printed_category; /* last heading printed; NULL: no headings */
	const char *only_category;         /* category; NULL: all */
	const enum setting_id
		*short_page_settings; /* only these, and options that are not advanced; NULL: all */
	size_t short_page_setting_count;
};

static bool help_is_on_short_page(const struct help_option_listing_state *walk,
				  const struct listing_option *option)
{
	if (option->id == SETTING_COUNT)
		return option->visibility == SETTING_BASIC;
	for (size_t i = 0; i < walk->short_page_setting_count; i++) {
		if (walk->short_page_settings[i] == option->id)
			return true;
	}
	return false;
}

/* The first sentence; the rest is for the manual. */
static void help_print_first_sentence(const char *text, size_t column)
{
	size_t length = strcspn(text, ";.");
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "%.*s", (int)length, text);
	listing_print_wrapped(stdout, sentence, column, HELP_DESCRIPTION_COLUMN, HELP_LINE_WIDTH);
}

static void help_print_option(const struct listing_option *option, void *context)
{
	struct help_option_listing_state *walk = context;
	char usage[96];
	int column;

	if ((walk->short_page_settings && !help_is_on_short_page(walk, option)) ||
	    (walk->only_category && strcmp(walk->only_category, option->category)))
		return;
	if (walk->last_printed_category && strcmp(walk->last_printed_category, option->category)) {
		printf("\n%s:\n", listing_get_category_title(option->category));
		walk->last_printed_category = option->category;
	}
	listing_make_usage_text_of_option(option, usage, sizeof(usage));
	column = printf("  %s%s", option->letters[0] ? "" : "    ", usage);
	if (column >= HELP_DESCRIPTION_COLUMN)
		column = printf("\n") - 1;
	printf("%*s", HELP_DESCRIPTION_COLUMN - column, "");
	if (walk->short_page_settings)
		help_print_first_sentence(option->help, HELP_DESCRIPTION_COLUMN);
	else
		listing_print_wrapped(stdout, option->help, HELP_DESCRIPTION_COLUMN,
				      HELP_DESCRIPTION_COLUMN, HELP_LINE_WIDTH);
}

static void help_print_examples(const char *examples)
{
	for (const char *line = examples; *line;) {
		size_t length = strcspn(line, "\n");

		printf("  %.*s\n", (int)length, line);
		line += length + (line[length] == '\n');
	}
}

/* Commands with few options show them all on their page. */
static void help_print_command(const struct command *command, bool all)
{
	struct help_option_listing_state walk = {.last_printed_category = all ? "" : NULL};

	if (!all) {
		walk.short_page_settings = command->page;
		walk.short_page_setting_count = command->page_count;
	}
	printf("usage: kymo %s\n", command->synopsis);
	if (all) {
		printf("\n");
		listing_print_wrapped(stdout, command->text, 0, 0, HELP_LINE_WIDTH);
	} else {
		printf("\n");
	}
	help_print_examples(all ? "" : command->examples);
	if (!all)
		printf("\n");
	listing_for_each_option(command->grammar, help_print_option, &walk);
	if (!all && command->more)
		printf("\n%s", command->more);
	else if (all)
		help_print_examples(command->examples);
}

static void help_print_overview(void)
{
	puts("kymo shows where the time of a program goes.\n\n"
	     "usage: kymo COMMAND [options]\n"
	     "       kymo -- PROGRAM [arguments]    short for kymo sample -- PROGRAM "
	     "[arguments]\n");
	for (const struct command *const *command = commands; *command; command++)
		printf("  %-12s%s\n", (*command)->name, (*command)->summary);
	puts("\nexamples:\n"
	     "  kymo sample -- xz -k file     profile one run; the summary comes at its end\n"
	     "  kymo report --format text     the newest run's call tree\n");
	fputs("topics (kymo help TOPIC):", stdout);
	for (size_t i = 0; i < topic_count; i++)
		printf(" %s", topics[i].name);
	puts("\n\nkymo COMMAND --help shows options, kymo help COMMAND the manual page.");
}

static void help_print_topic(const struct help_topic *topic)
{
	printf("%s: %s\n\n", topic->name, topic->summary);
	if (topic->text) {
		fputs(topic->text, stdout);
		return;
	}
	puts("OUTPUT_PATH and OUTPUT_PREFIX (-o) replace these keys; slashes in their values "
	     "become "
	     "_:\n");
	for (unsigned i = 0; result_path_key_help_texts[i][0]; i++)
		printf("  %-34s%s\n", result_path_key_help_texts[i][0],
		       result_path_key_help_texts[i][1]);
}

static bool help_is_setting_category(const char *topic)
{
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL &&
		    !strcmp(settings_table[id].category, topic))
			return true;
	}
	return false;
}

/* All options of one category of settings. */
static void help_print_category(const struct command *command, const char *category)
{
	struct help_option_listing_state walk = {.only_category = category};

	printf("%s (kymo %s):\n", listing_get_category_title(category), command->name);
	listing_for_each_option(command->grammar, help_print_option, &walk);
}

static int help_report_unknown_topic(const char *topic)
{
	struct suggestion suggestion;
	char hint[64];

	suggestion_init(&suggestion, topic, strlen(topic));
	for (size_t i = 0; i < topic_count; i++)
		suggestion_offer(&suggestion, topics[i].name, strlen(topics[i].name));
	for (const struct command *const *command = commands; *command; command++)
		suggestion_offer(&suggestion, (*command)->name, strlen((*command)->name));
	suggestion_offer_list(&suggestion, "all,general,output,windows,sampling,process,memory");
	message_error("no help about '%.100s'%s (kymo help lists topics)", topic,
		      suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
	return EXIT_KYMO_FAILED;
}

/* A topic, a category of settings, or a word that is both. False when it is neither. */
static bool help_print_topic_or_category(const struct command *command, const char *topic)
{
	const struct help_topic *found = help_topic_find_by_name(topic);
	bool is_category = help_is_setting_category(topic);

	if (found)
		help_print_topic(found);
	if (found && is_category)
		putchar('\n');
	if (is_category)
		help_print_category(command ? command : commands[0], topic);
	return found || is_category;
}

int help_show_page(const struct command *command, const char *topic)
{
	const struct command *other = command_find_by_name(topic);

	if (!*topic && command)
		help_print_command(command, false);
	else if (!*topic)
		help_print_overview();
	else if (other)
		help_print_command(other, false);
	else if (!strcmp(topic, "all"))
		help_print_command(command ? command : commands[0], true);
	else if (!help_print_topic_or_category(command, topic))
		return help_report_unknown_topic(topic);
	return message_flush_stdout_or_report_error(EXIT_SUCCESS);
}

/* Shows the manual page with man(1), the page of this very version, installed or not. False when
 * there is no man(1). */
static bool help_show_through_man(const struct command *command)
{
	int terminal = dup(STDOUT_FILENO);
	bool shown = false;
	FILE *man;

	file_limit_restore_sigxfsz(); /* kymo writes no files from here on */
	man = terminal >= 0 ? popen("man -l -", "w") : NULL;
	if (man) {
		signal(SIGPIPE, SIG_IGN); /* who leaves the pager early has read enough */
		dup2(fileno(man), STDOUT_FILENO);
		generate_man_command_page(command);
		fflush(stdout);
		dup2(terminal, STDOUT_FILENO);
		shown = !pclose(man);
	}
	if (terminal >= 0)
		close(terminal);
	return shown;
}

static int help_show_manual(const struct command *command)
{
	fflush(stdout);
	if (isatty(STDOUT_FILENO) && help_show_through_man(command))
		return EXIT_SUCCESS;
	help_print_command(command, true);
	return message_flush_stdout_or_report_error(EXIT_SUCCESS);
}

static const char *generated_help_file_name;

static int help_apply_generate_option(struct parsed_command_line *result,
				      const struct extra_option *option, const char *value,
				      struct problem *problem)
{
	(void)result;
	(void)option;
	(void)problem;
	generated_help_file_name = value;
	return 0;
}

static bool help_accepts_setting(enum setting_id id)
{
	(void)id;
	return false;
}

static const struct extra_option help_extra_options[] = {OPTION_HELP_INITIALIZER};
/* For the build; not listed. */
static const struct extra_option help_extra_options_with_generate[] = {
	{.name = "generate",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .apply = help_apply_generate_option},
	OPTION_HELP_INITIALIZER};

static const struct options_grammar help_grammar = {
	.command = "help",
	.extra_options = help_extra_options,
	.extra_option_count = ARRAY_SIZE(help_extra_options),
	.accepts_setting = help_accepts_setting,
};
static const struct options_grammar help_grammar_with_generate = {
	.command = "help",
	.extra_options = help_extra_options_with_generate,
	.extra_option_count = ARRAY_SIZE(help_extra_options_with_generate),
	.accepts_setting = help_accepts_setting,
};

static int help_run_command(char **arguments, size_t count)
{
	struct parsed_command_line result = {0};
	struct problem problem;
	const struct command *command;

	if (options_parse_arguments(&help_grammar_with_generate, arguments, count, &result,
				    &problem)) {
		message_error("%s", problem.text);
		return EXIT_KYMO_FAILED;
	}
	if (generated_help_file_name)
		return print_generated_help_file_by_name(generated_help_file_name);
	if (result.help_topic || !result.operand_count)
		return help_show_page(result.help_topic ? &help_command_description : NULL,
				      result.help_topic ? result.help_topic : "");
	command = command_find_by_name(result.operands[0]);
	return command ? help_show_manual(command) : help_show_page(NULL, result.operands[0]);
}

const struct command help_command_description = {
	.name = "help",
	.summary = "manual pages and topics",
	.synopsis = "help [COMMAND|TOPIC]",
	.text = "Shows the manual page of a command, or a help topic.",
	.examples = "kymo help sample    the manual page\n"
		    "kymo help windows   a topic\n",
	.grammar = &help_grammar,
	.run = help_run_command,
};
