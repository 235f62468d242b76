/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Help; see help.h. Everything about options comes from the settings table through listing.h.
 *
 * A command's page shows the options most people need, and must fit a screen (24 lines of 100
 * columns); topics and --help=all have the rest.
 */
#include "cmd/help.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/file_limit.h"
#include "cmd/generate.h"
#include "cmd/listing.h"
#include "cmd/message.h"
#include "cmd/nearest.h"
#include "cmd/result_path.h"
#include "cmd/topics.h"

enum { HELP_WIDTH = 100, HELP_COLUMN = 32 };

/* On the one-screen pages of commands with many options. */
static const enum setting_id help_sample[] = {
	SETTING_OUTPUT_PATH,          SETTING_OUTPUT_FORMATS,  SETTING_CONFIG_FILE,
	SETTING_SAMPLING_FREQ,        SETTING_TRACE_DELAY,     SETTING_TRACE_DURATION,
	SETTING_USE_PROCESS_SAMPLING, SETTING_FOLLOW_CHILDREN,
};
static const enum setting_id help_instrument[] = {
	SETTING_OUTPUT_PATH,      SETTING_REGEX_INCLUDE,        SETTING_REGEX_EXCLUDE,
	SETTING_REGEX_RESTRICT,   SETTING_REGEX_MODULE_INCLUDE, SETTING_MIN_INSTRUCTIONS,
	SETTING_INSTRUMENT_COUNT,
};

static const enum setting_id help_causal[] = {
	SETTING_OUTPUT_PATH,         SETTING_CAUSAL_MODE,           SETTING_CAUSAL_PROGRESS,
	SETTING_CAUSAL_BINARY_SCOPE, SETTING_CAUSAL_FUNCTION_SCOPE, SETTING_CAUSAL_FIXED_SPEEDUP,
	SETTING_CAUSAL_DURATION,     SETTING_CAUSAL_UNTIL_CI,       SETTING_CAUSAL_END_TO_END,
	SETTING_CAUSAL_ITERATIONS,
};

/* The settings on a command's page; NULL: all. */
static const enum setting_id *help_page(const struct command *command, size_t *ret_count)
{
	if (command == &command_causal) {
		*ret_count = sizeof(help_causal) / sizeof(help_causal[0]);
		return help_causal;
	}
	if (command == &command_instrument) {
		*ret_count = sizeof(help_instrument) / sizeof(help_instrument[0]);
		return help_instrument;
	}
	*ret_count = sizeof(help_sample) / sizeof(help_sample[0]);
	return command == &command_sample ? help_sample : NULL;
}

/* A walk over options. */
struct help_walk {
	const char *category;        /* last heading printed; NULL: no headings */
	const char *only;            /* category; NULL: all */
	const enum setting_id *page; /* only these, and options that are not advanced; NULL: all */
	size_t page_count;
};

static bool help_is_essential(const struct help_walk *walk, const struct listing_option *option)
{
	if (option->id == SETTING_COUNT)
		return option->visibility == SETTING_BASIC;
	for (size_t i = 0; i < walk->page_count; i++) {
		if (walk->page[i] == option->id)
			return true;
	}
	return false;
}

/* The first sentence; the rest is for the manual. */
static void help_print_short(const char *text, size_t column)
{
	size_t length = strcspn(text, ";.");
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "%.*s", (int)length, text);
	listing_wrap(stdout, sentence, column, HELP_COLUMN, HELP_WIDTH);
}

static void help_option(const struct listing_option *option, void *context)
{
	struct help_walk *walk = context;
	char usage[96];
	int column;

	if ((walk->page && !help_is_essential(walk, option)) ||
	    (walk->only && strcmp(walk->only, option->category)))
		return;
	if (walk->category && strcmp(walk->category, option->category)) {
		printf("\n%s:\n", listing_category_title(option->category));
		walk->category = option->category;
	}
	listing_usage(option, usage, sizeof(usage));
	column = printf("  %s%s", option->letters[0] ? "" : "    ", usage);
	if (column >= HELP_COLUMN)
		column = printf("\n") - 1;
	printf("%*s", HELP_COLUMN - column, "");
	if (walk->page)
		help_print_short(option->help, HELP_COLUMN);
	else
		listing_wrap(stdout, option->help, HELP_COLUMN, HELP_COLUMN, HELP_WIDTH);
}

static void help_examples(const char *examples)
{
	for (const char *line = examples; *line;) {
		size_t length = strcspn(line, "\n");

		printf("  %.*s\n", (int)length, line);
		line += length + (line[length] == '\n');
	}
}

/* Commands with few options show them all on their page. */
static void help_command(const struct command *command, bool all)
{
	struct help_walk walk = {.category = all ? "" : NULL};

	if (!all)
		walk.page = help_page(command, &walk.page_count);
	printf("usage: kymo %s\n", command->synopsis);
	if (all) {
		printf("\n");
		listing_wrap(stdout, command->text, 0, 0, HELP_WIDTH);
	} else {
		printf("\n");
	}
	help_examples(all ? "" : command->examples);
	if (!all)
		printf("\n");
	listing_each_option(command->grammar, help_option, &walk);
	if (command == &command_sample && !all)
		printf("\nMore: --help=all; --help=TOPIC with TOPIC one of settings, sampling, "
		       "windows, process, output,\nmemory, config, keys, exit; kymo help sample is "
		       "the manual page.\n");
	else if ((command == &command_instrument || command == &command_causal) && !all)
		printf("\nMore: --help=all; kymo help %s is the manual page.\n", command->name);
	else if (all)
		help_examples(command->examples);
}

static void help_overview(void)
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

static void help_topic(const struct topic *topic)
{
	printf("%s: %s\n\n", topic->name, topic->summary);
	if (topic->text) {
		fputs(topic->text, stdout);
		return;
	}
	puts("OUTPUT_PATH and OUTPUT_PREFIX (-o) replace these keys; slashes in their values "
	     "become "
	     "_:\n");
	for (unsigned i = 0; result_path_keys[i][0]; i++)
		printf("  %-34s%s\n", result_path_keys[i][0], result_path_keys[i][1]);
}

static bool help_is_category(const char *topic)
{
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL &&
		    !strcmp(settings_table[id].category, topic))
			return true;
	}
	return false;
}

/* All options of one category of settings. */
static void help_category(const struct command *command, const char *category)
{
	struct help_walk walk = {.only = category};

	printf("%s (kymo %s):\n", listing_category_title(category), command->name);
	listing_each_option(command->grammar, help_option, &walk);
}

static int help_unknown(const char *topic)
{
	struct nearest nearest;
	char hint[64];

	nearest_init(&nearest, topic, strlen(topic));
	for (size_t i = 0; i < topic_count; i++)
		nearest_offer(&nearest, topics[i].name, strlen(topics[i].name));
	for (const struct command *const *command = commands; *command; command++)
		nearest_offer(&nearest, (*command)->name, strlen((*command)->name));
	nearest_offer_list(&nearest, "all,general,output,windows,sampling,process,memory");
	message_error("no help on '%.100s'%s (kymo help lists topics)", topic,
		      nearest_hint(&nearest, "", hint, sizeof(hint)));
	return EXIT_OWN_FAILURE;
}

/* A topic, a category of settings, or a word that is both. False when it is neither. */
static bool help_about(const struct command *command, const char *topic)
{
	const struct topic *found = topic_find(topic);
	bool is_category = help_is_category(topic);

	if (found)
		help_topic(found);
	if (found && is_category)
		putchar('\n');
	if (is_category)
		help_category(command ? command : &command_sample, topic);
	return found || is_category;
}

int help_show(const struct command *command, const char *topic)
{
	const struct command *other = command_find(topic);

	if (!*topic && command)
		help_command(command, false);
	else if (!*topic)
		help_overview();
	else if (other)
		help_command(other, false);
	else if (!strcmp(topic, "all"))
		help_command(command ? command : &command_sample, true);
	else if (!help_about(command, topic))
		return help_unknown(topic);
	return message_end_answer(EXIT_SUCCESS);
}

/* Shows the manual page with man(1), the page of this very version, installed or not. False when
 * there is no man(1). */
static bool help_through_man(const struct command *command)
{
	int terminal = dup(STDOUT_FILENO);
	bool shown = false;
	FILE *man;

	file_limit_give_back(); /* kymo writes no files from here on */
	man = terminal >= 0 ? popen("man -l -", "w") : NULL;
	if (man) {
		signal(SIGPIPE, SIG_IGN); /* who leaves the pager early has read enough */
		dup2(fileno(man), STDOUT_FILENO);
		generate_man_command(command);
		fflush(stdout);
		dup2(terminal, STDOUT_FILENO);
		shown = !pclose(man);
	}
	if (terminal >= 0)
		close(terminal);
	return shown;
}

static int help_manual(const struct command *command)
{
	fflush(stdout);
	if (isatty(STDOUT_FILENO) && help_through_man(command))
		return EXIT_SUCCESS;
	help_command(command, true);
	return message_end_answer(EXIT_SUCCESS);
}

static const char *help_generated;

static int help_generate(struct options_result *result, const struct option_extra *option,
			 const char *value, struct problem *problem)
{
	(void)result;
	(void)option;
	(void)problem;
	help_generated = value;
	return 0;
}

static bool help_accepts(enum setting_id id)
{
	(void)id;
	return false;
}

static const struct option_extra help_extras[] = {OPTION_HELP};
/* For the build; not listed. */
static const struct option_extra help_build_extras[] = {
	{.name = "generate", .argument = OPTION_REQUIRED, .apply = help_generate}, OPTION_HELP};

static const struct options_grammar help_grammar = {
	.command = "help",
	.extras = help_extras,
	.extra_count = sizeof(help_extras) / sizeof(help_extras[0]),
	.accepts = help_accepts,
};
static const struct options_grammar help_build_grammar = {
	.command = "help",
	.extras = help_build_extras,
	.extra_count = sizeof(help_build_extras) / sizeof(help_build_extras[0]),
	.accepts = help_accepts,
};

static int help_run(char **arguments, size_t count)
{
	struct options_result result = {0};
	struct problem problem;
	const struct command *command;

	if (options_parse(&help_build_grammar, arguments, count, &result, &problem)) {
		message_error("%s", problem.text);
		return EXIT_OWN_FAILURE;
	}
	if (help_generated)
		return generate(help_generated);
	if (result.help_topic || !result.operand_count)
		return help_show(result.help_topic ? &command_help : NULL,
				 result.help_topic ? result.help_topic : "");
	command = command_find(result.operands[0]);
	return command ? help_manual(command) : help_show(NULL, result.operands[0]);
}

const struct command command_help = {
	.name = "help",
	.summary = "manual pages and topics",
	.synopsis = "help [COMMAND|TOPIC]",
	.text = "Shows the manual page of a command, or a topic.",
	.examples = "kymo help sample    the manual page\n"
		    "kymo help windows   a topic\n",
	.grammar = &help_grammar,
	.run = help_run,
};
