/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Option parser; see options.h.
 */
#include "cmd/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/causal_speedups.h"
#include "cmd/nearest.h"
#include "common/settings_periods.h"

enum { OPTION_NAME_MAX = 64 };

/* Where the parser stands. */
struct parser {
	const struct options_grammar *grammar;
	struct options_result *result;
	struct problem *problem;
	char **arguments;
	size_t count, next;
};

/* What an option's name stands for: a setting or an extra. */
struct match {
	const struct option_extra *extra;
	enum setting_id id; /* SETTING_COUNT for extras */
	bool negated;
};

static bool options_lookup(const struct options_grammar *grammar, const char *name, size_t length,
			   struct match *ret)
{
	struct setting_slice slice = {name, length};
	char option[OPTION_NAME_MAX];

	*ret = (struct match){.id = SETTING_COUNT};
	for (size_t i = 0; i < grammar->extra_count; i++) {
		if (setting_slice_is(slice, grammar->extras[i].name)) {
			ret->extra = &grammar->extras[i];
			return true;
		}
	}
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (!grammar->accepts((enum setting_id)id))
			continue;
		if (setting_slice_is(slice, resolved_option_name((enum setting_id)id, option,
								 sizeof(option))) ||
		    setting_slice_is(slice, settings_table[id].name)) {
			ret->id = (enum setting_id)id;
			return true;
		}
	}
	if (length > 3 && !strncmp(name, "no-", 3) &&
	    options_lookup(grammar, name + 3, length - 3, ret) && !ret->negated && !ret->extra &&
	    settings_table[ret->id].type == SETTING_BOOL) {
		ret->negated = true;
		return true;
	}
	return false;
}

static bool options_lookup_letter(const struct options_grammar *grammar, char letter,
				  struct match *ret)
{
	*ret = (struct match){.id = SETTING_COUNT};
	for (size_t i = 0; i < grammar->extra_count; i++) {
		if (grammar->extras[i].letter == letter) {
			ret->extra = &grammar->extras[i];
			return true;
		}
	}
	for (size_t i = 0; i < grammar->short_count; i++) {
		if (grammar->shorts[i].letters[0] == letter && !grammar->shorts[i].letters[1]) {
			ret->id = grammar->shorts[i].id;
			return true;
		}
	}
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (grammar->accepts((enum setting_id)id) &&
		    settings_table[id].short_option == letter) {
			ret->id = (enum setting_id)id;
			return true;
		}
	}
	return false;
}

static int options_unknown(struct parser *parser, const char *argument, size_t length)
{
	const struct options_grammar *grammar = parser->grammar;
	/* An option may be named after its setting as well. */
	char names[SETTING_COUNT][2][OPTION_NAME_MAX], hint[128] = "";
	struct nearest nearest;

	nearest_init(&nearest, argument + 2, length > 2 ? length - 2 : 0);
	for (size_t i = 0; i < grammar->extra_count; i++)
		nearest_offer(&nearest, grammar->extras[i].name, strlen(grammar->extras[i].name));
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (!grammar->accepts((enum setting_id)id))
			continue;
		resolved_option_name((enum setting_id)id, names[id][0], OPTION_NAME_MAX);
		resolved_dashed_name((enum setting_id)id, names[id][1], OPTION_NAME_MAX);
		nearest_offer(&nearest, names[id][0], strlen(names[id][0]));
		nearest_offer(&nearest, names[id][1], strlen(names[id][1]));
	}
	if (argument[1] == '-')
		nearest_hint(&nearest, "--", hint, sizeof(hint));
	return problem_set(parser->problem, -EINVAL, "unknown option '%.*s'%s (see kymo %s --help)",
			   (int)(length < 100 ? length : 100), argument, hint, grammar->command);
}

/* How lists given by several options are joined; NULL: the last one counts. */
static const char *options_joint(enum setting_id id)
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

static int options_set(struct parser *parser, enum setting_id id, const char *value,
		       const char *source)
{
	struct resolved *settings = parser->result->settings;
	const char *joint = options_joint(id);
	char *joined;
	int error;

	if (!*value && settings_table[id].default_value[0])
		return problem_set(parser->problem, -EINVAL, "%s needs a value", source);
	if (!joint || settings->values[id].origin != ORIGIN_OPTION)
		return resolved_set(settings, id, value, ORIGIN_OPTION, source, parser->problem);
	if (asprintf(&joined, "%s%s%s", settings->values[id].text, joint, value) < 0)
		return problem_set(parser->problem, -ENOMEM, "out of memory");
	error = resolved_set(settings, id, joined, ORIGIN_OPTION, source, parser->problem);
	free(joined);
	return error;
}

static bool options_is_switch(const char *text)
{
	return text && (!strcmp(text, "on") || !strcmp(text, "off"));
}

static bool options_is_number(const char *text)
{
	double number;

	return text && (options_is_switch(text) ||
			setting_parse_number(setting_slice(text), &number) == SETTING_VALID);
}

static bool options_is_window(const char *text)
{
	static const struct setting_period defaults = {.cycles = 1};
	struct setting_period period;

	return strchr(text, ':') &&
	       setting_parse_period(setting_slice(text), &defaults, &period) == SETTING_VALID;
}

/* Whether the word continues the list that an option has begun: --periods 2:1 5:1, --speedups 0 10.
 */
static bool options_continues(enum setting_id id, const char *word)
{
	if (settings_table[id].type == SETTING_PERIODS)
		return options_is_window(word);
	return id == SETTING_CAUSAL_FIXED_SPEEDUP && causal_speedups_is_item(word);
}

/* The next argument where it can be a value; NULL at the end and at `--`. */
static const char *options_peek(const struct parser *parser)
{
	const char *next = parser->next < parser->count ? parser->arguments[parser->next] : NULL;

	return next && strcmp(next, "--") ? next : NULL;
}

static int options_apply_setting(struct parser *parser, const struct match *match,
				 const char *source, const char *value)
{
	const char *next = options_peek(parser);
	int error;

	if (settings_table[match->id].type == SETTING_BOOL) {
		if (match->negated && value)
			return problem_set(parser->problem, -EINVAL, "%s takes no value", source);
		if (!value && !match->negated && options_is_switch(next)) {
			value = next;
			parser->next++;
		}
		if (!value)
			value = match->negated ? "off" : "on";
		return options_set(parser, match->id, value, source);
	}
	if (!value && !next)
		return problem_set(parser->problem, -EINVAL, "%s needs a value", source);
	if (!value) {
		value = next;
		parser->next++;
	}
	error = options_set(parser, match->id, value, source);
	while (!error && (next = options_peek(parser)) && options_continues(match->id, next)) {
		parser->next++;
		error = options_set(parser, match->id, next, source);
	}
	return error;
}

static int options_apply_extra(struct parser *parser, const struct option_extra *extra,
			       const char *source, const char *value)
{
	const char *next = options_peek(parser);

	if (value && extra->argument == OPTION_ALONE)
		return problem_set(parser->problem, -EINVAL, "%s takes no value", source);
	if (!value && (extra->argument == OPTION_REQUIRED ||
		       (extra->argument == OPTION_NUMBER && options_is_number(next)))) {
		if (!next)
			return problem_set(parser->problem, -EINVAL, "%s needs a value (%s)",
					   source, extra->metavar);
		value = next;
		parser->next++;
	}
	return extra->apply(parser->result, extra, value, parser->problem);
}

static int options_apply(struct parser *parser, const struct match *match, const char *source,
			 const char *value)
{
	if (match->extra)
		return options_apply_extra(parser, match->extra, source, value);
	return options_apply_setting(parser, match, source, value);
}

static int options_long(struct parser *parser, const char *argument)
{
	const char *name = argument + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	char source[OPTION_NAME_MAX + 2];
	struct match match;

	if (!options_lookup(parser->grammar, name, length, &match))
		return options_unknown(parser, argument, length + 2);
	snprintf(source, sizeof(source), "--%.*s", (int)length, name);
	return options_apply(parser, &match, source, equals ? equals + 1 : NULL);
}

/* Whether a letter can stand in front of another one: -qv, -TP. */
static bool options_letter_alone(const struct match *match)
{
	if (match->extra)
		return match->extra->argument != OPTION_REQUIRED;
	return settings_table[match->id].type == SETTING_BOOL;
}

/* -MI: several letters that are one name. */
static const struct option_short *options_short_word(const struct options_grammar *grammar,
						     const char *argument)
{
	for (size_t i = 0; i < grammar->short_count; i++) {
		const char *letters = grammar->shorts[i].letters;
		size_t length = strlen(letters);

		if (length > 1 && !strncmp(argument + 1, letters, length) &&
		    (!argument[length + 1] || argument[length + 1] == '='))
			return &grammar->shorts[i];
	}
	return NULL;
}

static int options_word(struct parser *parser, const char *argument,
			const struct option_short *word)
{
	struct match match = {.id = word->id};
	char source[OPTION_NAME_MAX];
	const char *equals = strchr(argument, '=');

	snprintf(source, sizeof(source), "-%s", word->letters);
	return options_apply_setting(parser, &match, source, equals ? equals + 1 : NULL);
}

static int options_letters(struct parser *parser, const char *argument)
{
	const struct option_short *word = options_short_word(parser->grammar, argument);
	int error = 0;

	if (word)
		return options_word(parser, argument, word);
	for (const char *letter = argument + 1; *letter && !error; letter++) {
		char source[3] = {'-', *letter, '\0'};
		struct match match;
		const char *rest = letter[1] ? letter + 1 : NULL;

		if (!options_lookup_letter(parser->grammar, *letter, &match))
			return options_unknown(parser, source, 2);
		if (rest && options_letter_alone(&match) && *rest != '=') {
			error = match.extra ? match.extra->apply(parser->result, match.extra, NULL,
								 parser->problem)
					    : options_set(parser, match.id, "on", source);
			continue;
		}
		return options_apply(parser, &match, source,
				     rest && *rest == '=' ? rest + 1 : rest);
	}
	return error;
}

int options_parse(const struct options_grammar *grammar, char **arguments, size_t count,
		  struct options_result *result, struct problem *problem)
{
	struct parser parser = {grammar, result, problem, arguments, count, 0};
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
			error = options_long(&parser, argument);
		else
			error = options_letters(&parser, argument);
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

int option_set_flag(struct options_result *result, const struct option_extra *option,
		    const char *value, struct problem *problem)
{
	(void)value;
	(void)problem;
	*(bool *)((char *)result->context + option->offset) = true;
	return 0;
}

int option_set_text(struct options_result *result, const struct option_extra *option,
		    const char *value, struct problem *problem)
{
	const char **field = (const char **)((char *)result->context + option->offset);

	if (*field && strcmp(*field, value))
		return problem_set(problem, -EINVAL,
				   "--%s takes one %s, and is given '%.100s' as well as '%.100s'",
				   option->name, option->metavar, *field, value);
	*field = value;
	return 0;
}

int option_quiet(struct options_result *result, const struct option_extra *option,
		 const char *value, struct problem *problem)
{
	(void)option;
	(void)value;
	return resolved_set(result->settings, SETTING_VERBOSE, "-1", ORIGIN_OPTION, "--quiet",
			    problem);
}

int option_verbose(struct options_result *result, const struct option_extra *option,
		   const char *value, struct problem *problem)
{
	bool again = result->settings->values[SETTING_VERBOSE].origin == ORIGIN_OPTION;
	int64_t level = resolved_integer(result->settings, SETTING_VERBOSE);
	char text[] = "1";

	(void)option;
	if (again && level > 0)
		text[0] = level > 1 ? '3' : '2';
	return resolved_set(result->settings, SETTING_VERBOSE, value ? value : text, ORIGIN_OPTION,
			    "--verbose", problem);
}

int option_help(struct options_result *result, const struct option_extra *option, const char *value,
		struct problem *problem)
{
	(void)option;
	(void)problem;
	result->help_topic = value ? value : "";
	return 0;
}
