/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail`: what can be set, with the values that count here and where they come from; output
 * formats; sampling sources and perf events that work on this machine.
 */
#include "cmd/avail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/generate.h"
#include "cmd/listing.h"
#include "cmd/message.h"
#include "cmd/nearest.h"
#include "cmd/probe.h"
#include "common/pattern.h"
#include "output/output.h"

enum { AVAIL_WIDTH = 100 };

struct avail_options {
	const char *config; /* -G FILE */
	const char *agent;  /* --agent N */
	bool json, markdown, advanced, counters;
};

static const struct option_extra avail_extras[] = {
	{.name = "generate-config",
	 .letter = 'G',
	 .argument = OPTION_REQUIRED,
	 .metavar = "FILE",
	 .apply = option_set_text,
	 .offset = offsetof(struct avail_options, config),
	 .help = "Write the settings to a configuration file (JSON when FILE ends in .json, "
		 "standard output for -)."},
	{.name = "json",
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_options, json),
	 .help = "Print everything, or the section, as JSON."},
	{.name = "markdown",
	 .letter = 'M',
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_options, markdown),
	 .help = "Print the table of all settings in Markdown."},
	{.name = "advanced",
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_options, advanced),
	 .help = "List advanced settings as well."},
	{.name = "all",
	 .letter = 'a',
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_options, advanced),
	 .help = "The same as --advanced."},
	{.name = "counters",
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_options, counters),
	 .help = "List the counters of devices, for --counters and --device-counters."},
	{.name = "agent",
	 .argument = OPTION_REQUIRED,
	 .metavar = "N",
	 .apply = option_set_text,
	 .offset = offsetof(struct avail_options, agent),
	 .help = "Only those of this device."},
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static bool avail_accepts(enum setting_id id)
{
	return id == SETTING_CONFIG_FILE || id == SETTING_FORCE || id == SETTING_COLOR ||
	       id == SETTING_COUNTER_DEFS;
}

static const struct options_grammar avail_grammar = {
	.command = "avail",
	.extras = avail_extras,
	.extra_count = sizeof(avail_extras) / sizeof(avail_extras[0]),
	.accepts = avail_accepts,
};

bool avail_matches(const struct avail_filter *filter, enum setting_id id)
{
	const struct setting *setting = &settings_table[id];

	if (setting->visibility > filter->up_to)
		return false;
	return !filter->expression || !regexec(filter->expression, setting->name, 0, NULL, 0) ||
	       !regexec(filter->expression, setting->help, 0, NULL, 0);
}

static void avail_print_settings(const struct resolved *settings, const struct avail_filter *filter)
{
	const char *category = "";
	char origin[128];
	int column;

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct setting *setting = &settings_table[id];
		const struct resolved_value *value = &settings->values[id];

		if (!avail_matches(filter, (enum setting_id)id))
			continue;
		if (strcmp(category, setting->category)) {
			printf("%s%s\n", *category ? "\n" : "",
			       listing_category_title(setting->category));
			category = setting->category;
		}
		column = printf("  %s = ", setting->name);
		column += (int)listing_text(stdout, value->text);
		if (value->origin != ORIGIN_DEFAULT) {
			column += printf("  (");
			column += (int)listing_text(
				stdout, resolved_describe(value, origin, sizeof(origin)));
			column += printf(")");
		}
		if (value->origin == ORIGIN_DEFAULT && !*value->text && setting->inherits)
			column += printf("  (as %s)", setting->inherits);
		if (column > 41)
			column = printf("\n") - 1;
		printf("%*s", 42 - column, "");
		listing_wrap(stdout, setting->help, 42, 42, AVAIL_WIDTH);
	}
}

static void avail_print_formats(const struct resolved *settings, const struct avail_filter *filter)
{
	(void)settings;
	(void)filter;
	puts("Output formats (--format)");
	for (size_t i = 0; i < output_format_count; i++)
		printf("  %-10s %-17s %s\n", output_formats[i].name, output_formats[i].file_name,
		       output_formats[i].description);
}

static void avail_print_sources(const struct resolved *settings, const struct avail_filter *filter)
{
	struct probe_source sources[PROBE_SOURCES];
	bool chosen = false;

	(void)settings;
	(void)filter;
	probe_sources(sources);
	puts("Sources of CPU-time samples, best first (--sampling-source)");
	for (unsigned i = 0; i < PROBE_SOURCES; i++) {
		printf("  %-13s %-4s", sources[i].name, sources[i].works ? "yes" : "no");
		printf("%s%s\n", sources[i].description,
		       sources[i].works && !chosen ? "; used here" : "");
		printf("%*s", 19, "");
		listing_wrap(stdout, sources[i].detail, 19, 19, AVAIL_WIDTH);
		chosen = chosen || sources[i].works;
	}
}

const struct avail_section avail_sections[] = {
	{"settings", avail_print_settings, avail_json_settings},
	{"formats", avail_print_formats, avail_json_formats},
	{"sources", avail_print_sources, avail_json_sources},
	{"events", avail_print_events, avail_json_events},
	{"counters", avail_print_counters, avail_json_counters},
	{"components", avail_print_components, avail_json_components},
	{"categories", avail_print_categories, avail_json_categories},
	{"wrappers", avail_print_wrappers, avail_json_wrappers},
	{NULL, NULL, NULL},
};

/* A request, from the operands. */
struct avail_request {
	const struct avail_section *section; /* NULL: none named */
	bool filtered;
	regex_t expression;
};

static int avail_request_init(const struct options_result *result, struct avail_request *ret,
			      struct problem *problem)
{
	size_t next = 0;
	char why[128];
	int error;

	*ret = (struct avail_request){.section = NULL};
	for (const struct avail_section *section = avail_sections;
	     result->operand_count && section->name; section++) {
		if (!strcmp(section->name, result->operands[0])) {
			ret->section = section;
			next = 1;
		}
	}
	if (result->operand_count > next + 1)
		return problem_set(problem, -EINVAL, "one expression, please (not also '%s')",
				   result->operands[next + 1]);
	if (result->operand_count == next)
		return 0;
	error = pattern_compile(&ret->expression, result->operands[next], REG_ICASE, why,
				sizeof(why));
	if (error == PATTERN_REFUSED)
		return problem_set(problem, -EINVAL, "'%.200s' is refused: %s",
				   result->operands[next], why);
	if (error)
		return problem_set(problem, -EINVAL, "'%.200s' is no regular expression: %s",
				   result->operands[next], why);
	ret->filtered = true;
	return 0;
}

/* An expression that matches nothing is most likely a name with a typing error. */
static int avail_nothing(const char *expression, struct problem *problem)
{
	struct nearest nearest;
	char hint[128];

	nearest_init(&nearest, expression, strlen(expression));
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL)
			nearest_offer(&nearest, settings_table[id].name,
				      strlen(settings_table[id].name));
	}
	for (const struct avail_section *section = avail_sections; section->name; section++)
		nearest_offer(&nearest, section->name, strlen(section->name));
	return problem_set(problem, -ENOENT, "no setting matches '%s'%s", expression,
			   nearest_hint(&nearest, "", hint, sizeof(hint)));
}

static int avail_print(const struct resolved *settings, const struct avail_options *options,
		       const struct avail_request *request, const char *expression,
		       struct problem *problem)
{
	struct avail_filter filter = {
		/* Who asks by name means advanced ones as well. */
		.up_to = options->advanced || request->filtered ? SETTING_ADVANCED : SETTING_BASIC,
		.expression = request->filtered ? &request->expression : NULL,
	};
	const struct avail_section *section = request->section ? request->section : avail_sections;
	bool any = false;

	if (options->agent && !options->counters)
		return problem_set(problem, -EINVAL, "--agent belongs to --counters");
	if (options->counters)
		return avail_device_counters(settings, &filter, options->agent, options->json,
					     problem);
	for (unsigned id = 0; id < SETTING_COUNT; id++)
		any = any || avail_matches(&filter, (enum setting_id)id);
	if (!any && section == avail_sections)
		return avail_nothing(expression, problem);
	if (options->config)
		return avail_write_config(settings, &filter, options->config,
					  resolved_bool(settings, SETTING_FORCE), problem);
	if (options->json)
		return avail_print_json(settings, &filter,
					request->section ? request->section->name : NULL, stdout,
					problem);
	if (options->markdown) {
		generate_markdown_settings();
		return 0;
	}
	section->print(settings, &filter);
	if (!request->section && !request->filtered)
		puts("\nAlso: kymo avail formats | sources | events | counters | components | "
		     "categories | wrappers;\n--advanced lists more settings.");
	return 0;
}

static int avail_run(char **arguments, size_t count)
{
	struct resolved settings;
	struct avail_options options = {0};
	struct options_result result = {.context = &options};
	struct avail_request request;
	struct problem problem;
	int status = command_begin(&command_avail, arguments, count, &settings, &result), error;

	if (status != COMMAND_GO_ON)
		return status;
	error = avail_request_init(&result, &request, &problem);
	if (!error)
		error = avail_print(&settings, &options, &request,
				    result.operand_count ? result.operands[result.operand_count - 1]
							 : "",
				    &problem);
	if (error)
		message_error("%s", problem.text);
	if (request.filtered)
		regfree(&request.expression);
	resolved_deinit(&settings);
	return error ? EXIT_OWN_FAILURE : message_end_answer(EXIT_SUCCESS);
}

const struct command command_avail = {
	.name = "avail",
	.summary = "list settings, formats, counters, and what works on this machine",
	.synopsis = "avail [options] [SECTION] [EXPRESSION]",
	.text = "Lists a section: settings (the default) with the values that count here and where "
		"they come from, formats of output, sources of samples, events (the kernel's "
		"generic perf events), counters (all perf events of this machine), components "
		"(what regions are measured by), categories of regions, wrappers (wrapped "
		"functions). EXPRESSION is a regular expression that chooses by name or "
		"meaning.\n\n"
		"What works is found out by trying it.",
	.examples =
		"kymo avail sources        which kind of sampling works here, and why not others\n"
		"kymo avail realtime       settings about real time\n"
		"kymo avail counters miss  perf events about misses\n"
		"kymo avail --counters     counters of devices\n"
		"kymo avail -G kymo.conf   a configuration file to edit\n",
	.words = "settings formats sources events counters components categories wrappers",
	.grammar = &avail_grammar,
	.run = avail_run,
};
