/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Option parser; see options.h.
 */
#include "settings/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/settings_periods.h"
#include "settings/speedups.h"
#include "settings/suggest.h"

enum { OPTION_NAME_SIZE = 64 };

/* Where the parser stands. */
struct options_parser {
	const struct options_grammar *grammar;
	struct parsed_command_line *result;
	struct problem *problem;
	char **arguments;
	size_t count, next;
};

/* What an option's name stands for: a setting or an extra. */
struct matched_option {
	const struct extra_option *extra;
	enum setting_id id; /* SETTING_COUNT for extras */
	bool is_negated;
};

static bool options_find_by_name(const struct options_grammar *grammar, const char *name,
				 size_t length, struct matched_option *ret)
{
	struct text_slice slice = {name, length};
	char option[OPTION_NAME_SIZE];

	*ret = (struct matched_option){.id = SETTING_COUNT};
	for (size_t i = 0; i < grammar->extra_option_count; i++) {
		if (setting_slice_equals_word(slice, grammar->extra_options[i].name)) {
			ret->extra = &grammar->extra_options[i];
			return true;
		}
	}
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (!grammar->accepts_setting((enum setting_id)id))
			continue;
		if (setting_slice_equals_word(
			    slice, effective_format_option_name((enum setting_id)id, option,
								sizeof(option))) ||
		    setting_slice_equals_word(slice, settings_table[id].name)) {
			ret->id = (enum setting_id)id;
			return true;
		}
	}
	if (length > 3 && !strncmp(name, "no-", 3) &&
	    options_find_by_name(grammar, name + 3, length - 3, ret) && !ret->is_negated &&
	    !ret->extra && settings_table[ret->id].type == SETTING_BOOL) {
		ret->is_negated = true;
		return true;
	}
	return false;
}

static bool options_find_by_letter(const struct options_grammar *grammar, char letter,
				   struct matched_option *ret)
{
	*ret = (struct matched_option){.id = SETTING_COUNT};
	for (size_t i = 0; i < grammar->extra_option_count; i++) {
		if (grammar->extra_options[i].letter == letter) {
			ret->extra = &grammar->extra_options[i];
			return true;
		}
	}
	for (size_t i = 0; i < grammar->short_option_count; i++) {
		if (grammar->short_options[i].letters[0] == letter &&
		    !grammar->short_options[i].letters[1]) {
			ret->id = grammar->short_options[i].id;
			return true;
		}
	}
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (grammar->accepts_setting((enum setting_id)id) &&
		    settings_table[id].short_option == letter) {
			ret->id = (enum setting_id)id;
			return true;
		}
	}
	return false;
}

static int options_set_unknown_option_problem(struct options_parser *parser, const char *argument,
					      size_t length)
{
	const struct options_grammar *grammar = parser->grammar;
	/* An option may be named after its setting as well. */
	char names[SETTING_COUNT][2][OPTION_NAME_SIZE], hint[128] = "";
	struct suggestion suggestion;

	suggestion_init(&suggestion, argument + 2, length > 2 ? length - 2 : 0);
	for (size_t i = 0; i < grammar->extra_option_count; i++)
		suggestion_offer(&suggestion, grammar->extra_options[i].name,
				 strlen(grammar->extra_options[i].name));
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (!grammar->accepts_setting((enum setting_id)id))
			continue;
		effective_format_option_name((enum setting_id)id, names[id][0], OPTION_NAME_SIZE);
		effective_build_dashed_setting_name((enum setting_id)id, names[id][1],
						    OPTION_NAME_SIZE);
		suggestion_offer(&suggestion, names[id][0], strlen(names[id][0]));
		suggestion_offer(&suggestion, names[id][1], strlen(names[id][1]));
	}
	if (argument[1] == '-')
		suggestion_format_hint(&suggestion, "--", hint, sizeof(hint));
	return problem_set(parser->problem, -EINVAL, "unknown option '%.*s'%s (see kymo %s --help)",
			   (int)(length < 100 ? length : 100), argument, hint, grammar->command);
}

/* How lists given by several options are joined; NULL: the last one counts. */
static const char *get_list_separator_of_setting(enum setting_id id)
{
	switch (id) {
	case SETTING_CONFIG_FILE:
	case SETTING_COUNTER_DEFS:
	case SETTING_INSTRUMENT_LISTS:
		return ":";
	case SETTING_CAUSAL_FIXED_SPEEDUP:
	case SETTING_KERNEL_RANGE:
		return ",";
	case SETTING_WRAP:
	case SETTING_CAUSAL_PROGRESS:
	case SETTING_CAUSAL_BINARY_SCOPE:
	case SETTING_CAUSAL_SOURCE_SCOPE:
	case SETTING_CAUSAL_FUNCTION_SCOPE:
	case SETTING_CAUSAL_BINARY_EXCLUDE:
	case SETTING_CAUSAL_SOURCE_EXCLUDE:
	case SETTING_CAUSAL_FUNCTION_EXCLUDE:
		return ";";
	default:
		break;
	}
	switch (settings_table[id].type) {
	case SETTING_LIST:
	case SETTING_TIDS:
		return ",";
	case SETTING_PERIODS:
		return " ";
	case SETTING_PATTERN:
		return "|";
	default:
		return NULL;
	}
}

static int options_set_or_append_setting(struct options_parser *parser, enum setting_id id,
					 const char *value, const char *source)
{
	struct effective_settings *settings = parser->result->settings;
	const char *joint = get_list_separator_of_setting(id);
	char *joined;
	int error;

	if (!*value && settings_table[id].default_value[0])
		return problem_set(parser->problem, -EINVAL, "%s needs a value", source);
	if (!joint || settings->values[id].origin != ORIGIN_OPTION)
		return effective_set_if_not_overridden(settings, id, value, ORIGIN_OPTION, source,
						       parser->problem);
	if (asprintf(&joined, "%s%s%s", settings->values[id].text, joint, value) < 0)
		return problem_set(parser->problem, -ENOMEM, "out of memory");
	error = effective_set_if_not_overridden(settings, id, joined, ORIGIN_OPTION, source,
						parser->problem);
	free(joined);
	return error;
}

static bool options_is_on_or_off(const char *text)
{
	return text && (!strcmp(text, "on") || !strcmp(text, "off"));
}

static bool options_is_number_or_on_off(const char *text)
{
	double number;

	return text &&
	       (options_is_on_or_off(text) ||
		setting_parse_number(setting_slice_from_text(text), &number) == SETTING_VALID);
}

static bool options_is_collection_period(const char *text)
{
	static const struct setting_collection_period_value defaults = {.cycles = 1};
	struct setting_collection_period_value period;

	return strchr(text, ':') && setting_parse_period(setting_slice_from_text(text), &defaults,
							 &period) == SETTING_VALID;
}

/* Whether the word continues the list that an option has begun: --periods 2:1 5:1, --speedups 0 10.
 */
static bool options_word_continues_list(enum setting_id id, const char *word)
{
	if (settings_table[id].type == SETTING_PERIODS)
		return options_is_collection_period(word);
	return id == SETTING_CAUSAL_FIXED_SPEEDUP && causal_speedups_is_list_item(word);
}

/* The next argument where it can be a value; NULL at the end and at `--`. */
static const char *options_peek_next_value_or_null(const struct options_parser *parser)
{
	const char *next = parser->next < parser->count ? parser->arguments[parser->next] : NULL;

	return next && strcmp(next, "--") ? next : NULL;
}

static int options_apply_option_to_setting(struct options_parser *parser,
					   const struct matched_option *match, const char *source,
					   const char *value)
{
	const char *next = options_peek_next_value_or_null(parser);
	int error;

	if (settings_table[match->id].type == SETTING_BOOL) {
		if (match->is_negated && value)
			return problem_set(parser->problem, -EINVAL, "%s takes no value", source);
		if (!value && !match->is_negated && options_is_on_or_off(next)) {
			value = next;
			parser->next++;
		}
		if (!value)
			value = match->is_negated ? "off" : "on";
		return options_set_or_append_setting(parser, match->id, value, source);
	}
	if (!value && !next)
		return problem_set(parser->problem, -EINVAL, "%s needs a value", source);
	if (!value) {
		value = next;
		parser->next++;
	}
	error = options_set_or_append_setting(parser, match->id, value, source);
	while (!error && (next = options_peek_next_value_or_null(parser)) &&
	       options_word_continues_list(match->id, next)) {
		parser->next++;
		error = options_set_or_append_setting(parser, match->id, next, source);
	}
	return error;
}

static int options_apply_extra_option(struct options_parser *parser,
				      const struct extra_option *extra, const char *source,
				      const char *value)
{
	const char *next = options_peek_next_value_or_null(parser);

	if (value && extra->argument == OPTION_ARGUMENT_NONE)
		return problem_set(parser->problem, -EINVAL, "%s takes no value", source);
	if (!value && (extra->argument == OPTION_ARGUMENT_REQUIRED ||
		       (extra->argument == OPTION_ARGUMENT_OPTIONAL_NUMBER &&
			options_is_number_or_on_off(next)))) {
		if (!next)
			return problem_set(parser->problem, -EINVAL, "%s needs a value (%s)",
					   source, extra->metavar);
		value = next;
		parser->next++;
	}
	return extra->apply(parser->result, extra, value, parser->problem);
}

static int options_apply_matched_option(struct options_parser *parser,
					const struct matched_option *match, const char *source,
					const char *value)
{
	if (match->extra)
		return options_apply_extra_option(parser, match->extra, source, value);
	return options_apply_option_to_setting(parser, match, source, value);
}

static int options_parse_long_option(struct options_parser *parser, const char *argument)
{
	const char *name = argument + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	char source[OPTION_NAME_SIZE + 2];
	struct matched_option match;

	if (!options_find_by_name(parser->grammar, name, length, &match))
		return options_set_unknown_option_problem(parser, argument, length + 2);
	snprintf(source, sizeof(source), "--%.*s", (int)length, name);
	return options_apply_matched_option(parser, &match, source, equals ? equals + 1 : NULL);
}

/* Whether a letter can stand in front of another one: -qv, -TP. */
static bool options_letter_needs_no_value(const struct matched_option *match)
{
	if (match->extra)
		return match->extra->argument != OPTION_ARGUMENT_REQUIRED;
	return settings_table[match->id].type == SETTING_BOOL;
}

/* -MI: several letters that are one name. */
static const struct short_option_entry *
options_find_short_word(const struct options_grammar *grammar, const char *argument)
{
	for (size_t i = 0; i < grammar->short_option_count; i++) {
		const char *letters = grammar->short_options[i].letters;
		size_t length = strlen(letters);

		if (length > 1 && !strncmp(argument + 1, letters, length) &&
		    (!argument[length + 1] || argument[length + 1] == '='))
			return &grammar->short_options[i];
	}
	return NULL;
}

static int options_parse_short_word(struct options_parser *parser, const char *argument,
				    const struct short_option_entry *word)
{
	struct matched_option match = {.id = word->id};
	char source[OPTION_NAME_SIZE];
	const char *equals = strchr(argument, '=');

	snprintf(source, sizeof(source), "-%s", word->letters);
	return options_apply_option_to_setting(parser, &match, source, equals ? equals + 1 : NULL);
}

static int options_parse_short_letters(struct options_parser *parser, const char *argument)
{
	const struct short_option_entry *word = options_find_short_word(parser->grammar, argument);
	int error = 0;

	if (word)
		return options_parse_short_word(parser, argument, word);
	for (const char *letter = argument + 1; *letter && !error; letter++) {
		char source[3] = {'-', *letter, '\0'};
		struct matched_option match;
		const char *rest = letter[1] ? letter + 1 : NULL;

		if (!options_find_by_letter(parser->grammar, *letter, &match))
			return options_set_unknown_option_problem(parser, source, 2);
		if (rest && options_letter_needs_no_value(&match) && *rest != '=') {
			error = match.extra ? match.extra->apply(parser->result, match.extra, NULL,
								 parser->problem)
					    : options_set_or_append_setting(parser, match.id, "on",
									    source);
			continue;
		}
		return options_apply_matched_option(parser, &match, source,
						    rest && *rest == '=' ? rest + 1 : rest);
	}
	return error;
}

int options_parse_arguments(const struct options_grammar *grammar, char **arguments, size_t count,
			    struct parsed_command_line *result, struct problem *problem)
{
	struct options_parser parser = {grammar, result, problem, arguments, count, 0};
	size_t kept = 0;
	int error = 0;

	result->operands = arguments;
	while (!error && parser.next < count) {
		char *argument = arguments[parser.next];

		if (!strcmp(argument, "--") ||
		    (grammar->runs_program && (argument[0] != '-' || !argument[1]))) {
			parser.next += argument[0] == '-' && argument[1] == '-';
			break;
		}
		parser.next++;
		if (argument[0] != '-' || !argument[1])
			arguments[kept++] = argument; /* behind what was read */
		else if (argument[1] == '-')
			error = options_parse_long_option(&parser, argument);
		else
			error = options_parse_short_letters(&parser, argument);
	}
	if (grammar->runs_program) {
		result->operands = arguments + parser.next;
		result->operand_count = count - parser.next;
		return error;
	}
	while (parser.next < count)
		arguments[kept++] = arguments[parser.next++];
	result->operand_count = kept;
	return error;
}

int option_set_flag(struct parsed_command_line *result, const struct extra_option *option,
		    const char *value, struct problem *problem)
{
	(void)value;
	(void)problem;
	*(bool *)((char *)result->context + option->offset) = true;
	return 0;
}

int option_set_text(struct parsed_command_line *result, const struct extra_option *option,
		    const char *value, struct problem *problem)
{
	const char **field = (const char **)((char *)result->context + option->offset);

	if (*field && strcmp(*field, value))
		return problem_set(problem, -EINVAL,
				   "--%s takes one %s, not both '%.100s' and '%.100s'",
				   option->name, option->metavar, *field, value);
	*field = value;
	return 0;
}

int option_apply_quiet(struct parsed_command_line *result, const struct extra_option *option,
		       const char *value, struct problem *problem)
{
	(void)option;
	(void)value;
	return effective_set_if_not_overridden(result->settings, SETTING_VERBOSE, "-1",
					       ORIGIN_OPTION, "--quiet", problem);
}

int option_apply_verbose(struct parsed_command_line *result, const struct extra_option *option,
			 const char *value, struct problem *problem)
{
	bool again = result->settings->values[SETTING_VERBOSE].origin == ORIGIN_OPTION;
	int64_t level = effective_setting_integer(result->settings, SETTING_VERBOSE);
	char text[] = "1";

	(void)option;
	if (again && level > 0)
		text[0] = level > 1 ? '3' : '2';
	return effective_set_if_not_overridden(result->settings, SETTING_VERBOSE,
					       value ? value : text, ORIGIN_OPTION, "--verbose",
					       problem);
}

int option_apply_help(struct parsed_command_line *result, const struct extra_option *option,
		      const char *value, struct problem *problem)
{
	(void)option;
	(void)problem;
	result->help_topic = value ? value : "";
	return 0;
}
