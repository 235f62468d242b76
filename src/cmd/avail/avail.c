/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail`: what can be set, with the values that count here and where they come from; output
 * formats; sampling sources and perf events that work on this machine.
 */
#include "cmd/avail/avail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/help/generate.h"
#include "common/array.h"
#include "common/pattern.h"
#include "console/message.h"
#include "output/formats/formats.h"
#include "output/output.h"
#include "settings/command.h"
#include "settings/listing.h"
#include "settings/probe.h"
#include "settings/suggest.h"

enum { AVAIL_LINE_WIDTH = 100 };

struct avail_option_values {
	const char *config_path; /* -G FILE */
	const char *agent;       /* --agent N */
	bool json, markdown, lists_advanced, lists_device_counters;
};

static const struct extra_option avail_extra_options[] = {
	{.name = "generate-config",
	 .letter = 'G',
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "FILE",
	 .apply = option_set_text,
	 .offset = offsetof(struct avail_option_values, config_path),
	 .help = "Write the settings to a configuration file (JSON when FILE ends in .json, "
		 "standard output for -)."},
	{.name = "json",
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_option_values, json),
	 .help = "Print everything, or the section, as JSON."},
	{.name = "markdown",
	 .letter = 'M',
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_option_values, markdown),
	 .help = "Print the table of all settings in Markdown."},
	{.name = "advanced",
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_option_values, lists_advanced),
	 .help = "List advanced settings as well."},
	{.name = "all",
	 .letter = 'a',
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_option_values, lists_advanced),
	 .help = "The same as --advanced."},
	{.name = "counters",
	 .apply = option_set_flag,
	 .offset = offsetof(struct avail_option_values, lists_device_counters),
	 .help = "List the counters of devices, for --counters and --device-counters."},
	{.name = "agent",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "N",
	 .apply = option_set_text,
	 .offset = offsetof(struct avail_option_values, agent),
	 .help = "Only those of this device."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool avail_accepts_setting(enum setting_id id)
{
	return id == SETTING_CONFIG_FILE || id == SETTING_PRESET || id == SETTING_FORCE ||
	       id == SETTING_COLOR || id == SETTING_COUNTER_DEFS;
}

static const struct options_grammar avail_grammar = {
	.command = "avail",
	.extra_options = avail_extra_options,
	.extra_option_count = ARRAY_SIZE(avail_extra_options),
	.accepts_setting = avail_accepts_setting,
	.lists_settings = true,
};

bool avail_setting_matches_filter(const struct avail_listing_filter *filter, enum setting_id id)
{
	const struct setting *setting = &settings_table[id];

	if (setting->visibility > filter->visibility_max)
		return false;
	return !filter->expression || !regexec(filter->expression, setting->name, 0, NULL, 0) ||
	       !regexec(filter->expression, setting->help, 0, NULL, 0);
}

static void avail_print_settings(const struct effective_settings *settings,
				 const struct avail_listing_filter *filter)
{
	const char *category = "";
	char origin[128];
	int column;

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct setting *setting = &settings_table[id];
		const struct effective_value *value = &settings->values[id];

		if (!avail_setting_matches_filter(filter, (enum setting_id)id))
			continue;
		if (strcmp(category, setting->category)) {
			printf("%s%s\n", *category ? "\n" : "",
			       listing_get_category_title(setting->category));
			category = setting->category;
		}
		column = printf("  %s = ", setting->name);
		column += (int)listing_print_sanitized_text(stdout, value->text);
		if (value->origin != ORIGIN_DEFAULT) {
			column += printf("  (");
			column += (int)listing_print_sanitized_text(
				stdout, effective_describe_origin(value, origin, sizeof(origin)));
			column += printf(")");
		}
		if (value->origin == ORIGIN_DEFAULT && !*value->text && setting->fallback_setting)
			column += printf("  (as %s)", setting->fallback_setting);
		if (column > 41)
			column = printf("\n") - 1;
		printf("%*s", 42 - column, "");
		listing_print_wrapped(stdout, setting->help, 42, 42, AVAIL_LINE_WIDTH);
	}
}

static void avail_print_formats(const struct effective_settings *settings,
				const struct avail_listing_filter *filter)
{
	(void)settings;
	(void)filter;
	puts("Output formats (--format)");
	for (size_t i = 0; i < output_format_count; i++)
		printf("  %-10s %-17s %s\n", output_formats[i]->name, output_formats[i]->file_name,
		       output_formats[i]->description);
}

static void avail_print_sampling_sources(const struct effective_settings *settings,
					 const struct avail_listing_filter *filter)
{
	struct probed_sampling_source sources[PROBE_SOURCE_COUNT];
	bool chosen = false;

	(void)settings;
	(void)filter;
	probe_sampling_sources(sources);
	puts("Sources of CPU-time samples, best first (--sampling-source)");
	for (unsigned i = 0; i < PROBE_SOURCE_COUNT; i++) {
		printf("  %-13s %-4s", sources[i].name, sources[i].works ? "yes" : "no");
		printf("%s%s\n", sources[i].description,
		       sources[i].works && !chosen ? "; used here" : "");
		printf("%*s", 19, "");
		listing_print_wrapped(stdout, sources[i].detail, 19, 19, AVAIL_LINE_WIDTH);
		chosen = chosen || sources[i].works;
	}
}

const struct avail_section avail_sections[] = {
	{"settings", avail_print_settings, avail_settings_to_json},
	{"formats", avail_print_formats, avail_formats_to_json},
	{"sources", avail_print_sampling_sources, avail_sampling_sources_to_json},
	{"events", avail_print_generic_perf_events, avail_generic_perf_events_to_json},
	{"counters", avail_print_all_perf_events, avail_all_perf_events_to_json},
	{"components", avail_print_region_components, avail_region_components_to_json},
	{"categories", avail_print_region_categories, avail_region_categories_to_json},
	{"wrappers", avail_print_wrappers, avail_wrappers_to_json},
	{"presets", avail_print_presets, avail_presets_to_json},
	{NULL, NULL, NULL},
};

/* A request, from the operands. */
struct avail_parsed_operands {
	const struct avail_section *section; /* NULL: none named */
	bool has_expression;
	regex_t expression;
};

static int avail_parse_operands(const struct parsed_command_line *result,
				struct avail_parsed_operands *ret, struct problem *problem)
{
	size_t next = 0;
	char why[128];
	int error;

	*ret = (struct avail_parsed_operands){.section = NULL};
	for (const struct avail_section *section = avail_sections;
	     result->operand_count && section->name; section++) {
		if (!strcmp(section->name, result->operands[0])) {
			ret->section = section;
			next = 1;
		}
	}
	if (result->operand_count > next + 1)
		return problem_set(problem, -EINVAL, "one expression only (not also '%s')",
				   result->operands[next + 1]);
	if (result->operand_count == next)
		return 0;
	error = pattern_compile(&ret->expression, result->operands[next], REG_ICASE, why,
				sizeof(why));
	if (error == PATTERN_REFUSED)
		return problem_set(problem, -EINVAL, "'%.200s' is refused: %s",
				   result->operands[next], why);
	if (error)
		return problem_set(problem, -EINVAL, "'%.200s' is not a regular expression: %s",
				   result->operands[next], why);
	ret->has_expression = true;
	return 0;
}

/* An expression that matches nothing is most likely a name with a typing error. */
static int avail_set_no_match_problem(const char *expression, struct problem *problem)
{
	struct suggestion suggestion;
	char hint[128];

	suggestion_init(&suggestion, expression, strlen(expression));
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL)
			suggestion_offer(&suggestion, settings_table[id].name,
					 strlen(settings_table[id].name));
	}
	for (const struct avail_section *section = avail_sections; section->name; section++)
		suggestion_offer(&suggestion, section->name, strlen(section->name));
	return problem_set(problem, -ENOENT, "no setting matches '%s'%s", expression,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

static int avail_print_or_write_by_options(const struct effective_settings *settings,
					   const struct avail_option_values *options,
					   const struct avail_parsed_operands *request,
					   const char *expression, struct problem *problem)
{
	struct avail_listing_filter filter = {
		/* Who asks by name means advanced ones as well. */
		.visibility_max = options->lists_advanced || request->has_expression
					  ? SETTING_ADVANCED
					  : SETTING_BASIC,
		.expression = request->has_expression ? &request->expression : NULL,
	};
	const struct avail_section *section = request->section ? request->section : avail_sections;
	bool any = false;

	if (options->agent && !options->lists_device_counters)
		return problem_set(problem, -EINVAL, "--agent works only with --counters");
	if (options->lists_device_counters)
		return avail_print_device_counters(settings, &filter, options->agent, options->json,
						   problem);
	for (unsigned id = 0; id < SETTING_COUNT; id++)
		any = any || avail_setting_matches_filter(&filter, (enum setting_id)id);
	if (!any && section == avail_sections)
		return avail_set_no_match_problem(expression, problem);
	if (options->config_path)
		return avail_write_config(settings, &filter, options->config_path,
					  effective_setting_bool(settings, SETTING_FORCE), problem);
	if (options->json)
		return avail_print_json(settings, &filter,
					request->section ? request->section->name : NULL, stdout,
					problem);
	if (options->markdown) {
		generate_markdown_settings_table();
		return 0;
	}
	section->print(settings, &filter);
	if (!request->section && !request->has_expression)
		puts("\nAlso: kymo avail formats | sources | events | counters | components | "
		     "categories | wrappers |\npresets; --advanced lists more settings.");
	return 0;
}

static int avail_run_command(char **arguments, size_t count)
{
	struct effective_settings settings;
	struct avail_option_values options = {0};
	struct parsed_command_line result = {.context = &options};
	struct avail_parsed_operands request;
	struct problem problem;
	int status = command_parse_and_read_settings(&avail_command_description, arguments, count,
						     &settings, &result),
	    error;

	if (status != COMMAND_CONTINUE)
		return status;
	error = avail_parse_operands(&result, &request, &problem);
	if (!error)
		error = avail_print_or_write_by_options(
			&settings, &options, &request,
			result.operand_count ? result.operands[result.operand_count - 1] : "",
			&problem);
	if (error)
		message_error("%s", problem.text);
	if (request.has_expression)
		regfree(&request.expression);
	effective_deinit(&settings);
	return error ? EXIT_KYMO_FAILED : message_flush_stdout_or_report_error(EXIT_SUCCESS);
}

const struct command avail_command_description = {
	.name = "avail",
	.summary = "list settings, formats, counters, and what works on this machine",
	.synopsis = "avail [options] [SECTION] [EXPRESSION]",
	.text = "Lists a section: settings (the default) with their current values and where they "
		"come from, formats of output, sources of samples, events (the kernel's generic "
		"perf events), counters (all perf events of this machine), components (measures of "
		"regions), categories of regions, wrappers (wrapped functions), presets. "
		"EXPRESSION is a "
		"regular expression that selects by name or description.\n"
		"\n"
		"kymo tries each source and event to find out whether it works.",
	.examples =
		"kymo avail sources        which kind of sampling works here, and why not others\n"
		"kymo avail realtime       settings about real time\n"
		"kymo avail counters miss  perf events about misses\n"
		"kymo avail --counters     counters of devices\n"
		"kymo avail -G kymo.conf   a configuration file to edit\n"
		"kymo avail --preset gpu -G gpu.conf  a preset as a configuration file\n",
	.words = "settings formats sources events counters components categories wrappers presets",
	.grammar = &avail_grammar,
	.run = avail_run_command,
};
