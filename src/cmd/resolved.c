/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Resolved settings; see resolved.h.
 */
#include "cmd/resolved.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "binary/selection_pattern.h"
#include "cmd/causal_speedups.h"
#include "cmd/events.h"
#include "cmd/nearest.h"
#include "common/settings_check.h"
#include "common/wrap_text.h"

int resolved_init(struct resolved *settings, struct problem *problem)
{
	memset(settings, 0, sizeof(*settings));
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		settings->values[id].text = strdup(settings_table[id].default_value);
		if (!settings->values[id].text)
			return problem_set(problem, -ENOMEM, "out of memory");
	}
	return 0;
}

void resolved_deinit(struct resolved *settings)
{
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		free(settings->values[id].text);
		free(settings->values[id].source);
	}
}

/* What a type takes, for messages. */
static const char *resolved_accepts(const struct setting *setting, char *text, size_t size)
{
	static const char *const forms[] = {
		[SETTING_BOOL] = "on or off",
		[SETTING_INTEGER] = "a whole number",
		[SETTING_NUMBER] = "a number",
		[SETTING_SIZE] = "a size such as 64M or 2G",
		[SETTING_DURATION] = "a time such as 1.5, 200ms or 2m",
		[SETTING_STRING] = "text",
		[SETTING_TIDS] = "thread numbers such as 0-3,7",
		[SETTING_PERIODS] = "windows such as realtime:10:1:5 (clock:delay:duration:cycles)",
		[SETTING_PATH] = "a path",
		[SETTING_PATTERN] = "a regular expression",
	};

	if (setting->choices)
		snprintf(text, size, "%s: %s",
			 setting->type == SETTING_LIST ? "a list of" : "one of", setting->choices);
	else if (setting->minimum != 0 || setting->maximum != 0)
		snprintf(text, size, "%s from %.10g to %.10g", forms[setting->type],
			 setting->minimum, setting->maximum);
	else
		snprintf(text, size, "%s",
			 setting->type == SETTING_LIST ? "a list" : forms[setting->type]);
	return text;
}

static int resolved_bad_value(const struct setting *setting, const char *source,
			      enum setting_error error, struct setting_slice culprit,
			      struct problem *problem)
{
	char accepts[512], hint[128] = "";
	const char *why = "is not valid";

	if (error == SETTING_NOT_CHOICE && setting->choices) {
		struct nearest nearest;

		nearest_init(&nearest, culprit.text, culprit.length);
		nearest_offer_list(&nearest, setting->choices);
		nearest_hint(&nearest, "", hint, sizeof(hint));
	} else if (error == SETTING_TOO_SMALL) {
		why = "is too small";
	} else if (error == SETTING_TOO_LARGE) {
		why = "is too large";
	} else if (error == SETTING_BAD_UNIT) {
		why = "has an unknown unit";
	}
	resolved_accepts(setting, accepts, sizeof(accepts));
	if (!culprit.length)
		return problem_set(problem, -EINVAL, "%s: a value is needed: %s", source, accepts);
	return problem_set(problem, -EINVAL, "%s: '%.*s' %s%s (%s takes %s)", source,
			   (int)(culprit.length < 100 ? culprit.length : 100), culprit.text, why,
			   hint, setting->name, accepts);
}

static int resolved_check_wrap(const char *text, const char *source, struct problem *problem)
{
	struct wrap_problem wrong;

	if (wrap_check(text, &wrong))
		return 0;
	return problem_set(problem, -EINVAL,
			   "%s: at character %zu of '%s': '%.20s' %s (WRAP takes "
			   "[type] library:function[(types)]; ...)",
			   source, (size_t)(wrong.where - text) + 1, text, wrong.where, wrong.what);
}

static int resolved_check_pattern(const char *text, const char *source, struct problem *problem)
{
	struct selection_pattern pattern;
	int error = selection_pattern_init(&pattern, text, source, problem);

	selection_pattern_deinit(&pattern);
	return error;
}

/* "RATE,NS" */
static int resolved_check_demotion(const char *text, const char *source, struct problem *problem)
{
	struct setting_slice rest = setting_slice(text), item;
	unsigned count = 0;
	double number;

	for (; setting_list_next(&rest, &item); count++) {
		if (setting_parse_number(item, &number) || !(number > 0))
			count = 100; /* no number */
	}
	if (!count || count == 2)
		return 0;
	return problem_set(problem, -EINVAL,
			   "%s: '%.100s' is not valid (INSTRUMENT_DEMOTE takes calls a second and "
			   "nanoseconds, such as 100000,200)",
			   source, text);
}

/* Intervals are never narrower: they hold what the method itself may be off by (causal_fit.c). */
static int resolved_check_until_ci(const char *text, const char *source, struct problem *problem)
{
	static const double least = 2;
	double percent;

	if (setting_parse_number(setting_slice(text), &percent) || percent == 0 || percent >= least)
		return 0;
	return problem_set(problem, -EINVAL,
			   "%s: '%.100s' is too small: %g is the least that can be reached "
			   "(CAUSAL_UNTIL_CI takes 0, which means never, or a number from %g to "
			   "%g)",
			   source, text, least, least,
			   settings_table[SETTING_CAUSAL_UNTIL_CI].maximum);
}

/* The file lies beside the others: a name, no path. */
static int resolved_check_causal_file(const char *text, const char *source, struct problem *problem)
{
	static const char accepts[] = "the name of a file, without '/' and without .json";

	if (!*text)
		return problem_set(problem, -EINVAL, "%s: a value is needed: %s", source, accepts);
	if (!strchr(text, '/') && strcmp(text, ".") && strcmp(text, "..") &&
	    strlen(text) + strlen(".json") <= NAME_MAX)
		return 0;
	return problem_set(problem, -EINVAL, "%s: '%.100s' is not valid (CAUSAL_FILE takes %s)",
			   source, text, accepts);
}

/* What the type alone does not tell. */
static int resolved_check_meaning(enum setting_id id, const char *text, const char *source,
				  struct problem *problem)
{
	struct setting_slice rest = setting_slice(text), first, second;
	struct causal_speedups speedups;

	if (settings_table[id].type == SETTING_PATTERN)
		return resolved_check_pattern(text, source, problem);
	switch (id) {
	case SETTING_SAMPLING_OVERFLOW_EVENT:
		events_next(&rest, &first);
		if (events_next(&rest, &second))
			return problem_set(problem, -EINVAL,
					   "%s: one event is needed, not a list: '%s'", source,
					   text);
		return events_check(text, source, problem);
	case SETTING_SAMPLING_COUNTERS:
		return events_check(text, source, problem);
	case SETTING_INSTRUMENT_DEMOTE:
		return resolved_check_demotion(text, source, problem);
	case SETTING_WRAP:
		return resolved_check_wrap(text, source, problem);
	case SETTING_CAUSAL_FIXED_SPEEDUP:
		return causal_speedups_parse(text, source, &speedups, problem);
	case SETTING_CAUSAL_UNTIL_CI:
		return resolved_check_until_ci(text, source, problem);
	case SETTING_CAUSAL_FILE:
		return resolved_check_causal_file(text, source, problem);
	case SETTING_COMPONENTS:
		return events_check_components(text, source, problem);
	default:
		return 0;
	}
}

int resolved_set(struct resolved *settings, enum setting_id id, const char *text,
		 enum resolved_origin origin, const char *source, struct problem *problem)
{
	struct resolved_value *value = &settings->values[id];
	struct setting_slice culprit;
	enum setting_error error = setting_check(&settings_table[id], text, &culprit);
	char *copy, *source_copy;

	if (error)
		return resolved_bad_value(&settings_table[id], source, error, culprit, problem);
	if (resolved_check_meaning(id, text, source, problem))
		return -EINVAL;
	if (origin < value->origin)
		return 0;
	copy = strdup(text);
	source_copy = strdup(source);
	if (!copy || !source_copy) {
		free(copy);
		free(source_copy);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	free(value->text);
	free(value->source);
	value->text = copy;
	value->source = source_copy;
	value->origin = origin;
	return 0;
}

enum setting_id resolved_find(const char *name, size_t length)
{
	struct setting_slice slice = {name, length};
	static const size_t prefix = 5;

	if (length > prefix && setting_slice_is((struct setting_slice){name, prefix}, "KYMO_")) {
		slice.text += prefix;
		slice.length -= prefix;
	}
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL &&
		    setting_slice_is(slice, settings_table[id].name))
			return (enum setting_id)id;
	}
	return SETTING_COUNT;
}

int resolved_unknown(const char *name, size_t length, const char *prefix, const char *where,
		     struct problem *problem)
{
	static const size_t prefix_length = 5;
	struct nearest nearest;
	char hint[128];
	const char *bare = name;
	size_t bare_length = length;

	if (length > prefix_length &&
	    setting_slice_is((struct setting_slice){name, prefix_length}, "KYMO_")) {
		bare += prefix_length;
		bare_length -= prefix_length;
	}
	nearest_init(&nearest, bare, bare_length);
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL)
			nearest_offer(&nearest, settings_table[id].name,
				      strlen(settings_table[id].name));
	}
	return problem_set(problem, -EINVAL, "%s: unknown setting '%.*s'%s (kymo avail lists them)",
			   where, (int)(length < 100 ? length : 100), name,
			   nearest_hint(&nearest, prefix, hint, sizeof(hint)));
}

/* One variable NAME=value of this tool. */
static int resolved_read_own(struct resolved *settings, const char *variable, size_t name_length,
			     struct problem *problem)
{
	const char *value = variable + name_length + 1;
	enum setting_id id = resolved_find(variable, name_length);
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)name_length, variable);
	if (id == SETTING_COUNT) {
		for (unsigned i = 0; i < SETTING_COUNT; i++) {
			if (!strcmp(settings_table[i].name, name + 5))
				return 0; /* internal: left by a kymo around this one */
		}
		return resolved_unknown(variable, name_length, "KYMO_", "environment", problem);
	}
	if (!*value) /* the shell's way of unsetting for one command */
		return 0;
	return resolved_set(settings, id, value, ORIGIN_ENVIRONMENT, name, problem);
}

/* A variable of another tool: what kymo does not know or take is none of its business. */
static int resolved_read_alias(struct resolved *settings, const char *variable, size_t name_length,
			       size_t prefix_length)
{
	enum setting_id id = resolved_find(variable + prefix_length, name_length - prefix_length);
	char name[128];
	struct problem ignored;
	int error;

	if (id == SETTING_COUNT || !settings_table[id].alias || !variable[name_length + 1])
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)name_length, variable);
	error = resolved_set(settings, id, variable + name_length + 1, ORIGIN_ALIAS, name,
			     &ignored);
	return error == -ENOMEM ? error : 0;
}

int resolved_read_environment(struct resolved *settings, char **environment,
			      struct problem *problem)
{
	static const char *const prefixes[] = {"OMNITRACE_", "ROCPROFSYS_"};
	int error = 0;

	for (char **variable = environment; *variable && !error; variable++) {
		const char *equals = strchr(*variable, '=');

		if (equals && !strncmp(*variable, "KYMO_", 5))
			error = resolved_read_own(settings, *variable, (size_t)(equals - *variable),
						  problem);
	}
	for (unsigned i = 0; i < 2; i++) {
		size_t length = strlen(prefixes[i]);

		for (char **variable = environment; *variable && !error; variable++) {
			const char *equals = strchr(*variable, '=');

			if (equals && !strncmp(*variable, prefixes[i], length))
				error = resolved_read_alias(settings, *variable,
							    (size_t)(equals - *variable), length);
		}
	}
	return error;
}

const char *resolved_origin_name(enum resolved_origin origin)
{
	static const char *const names[] = {"default", "config", "alias", "environment", "option"};

	return names[origin];
}

const char *resolved_describe(const struct resolved_value *value, char *text, size_t size)
{
	static const char *const words[] = {"default", "file", "environment", "environment",
					    "option"};

	snprintf(text, size, "%s%s%s", words[value->origin], value->source ? " " : "",
		 value->source ? value->source : "");
	return text;
}

const char *resolved_text(const struct resolved *settings, enum setting_id id)
{
	while (!settings->values[id].text[0] && settings_table[id].inherits)
		id = resolved_find(settings_table[id].inherits,
				   strlen(settings_table[id].inherits));
	return settings->values[id].text;
}

bool resolved_bool(const struct resolved *settings, enum setting_id id)
{
	bool value = false;

	setting_parse_bool(setting_slice(resolved_text(settings, id)), &value);
	return value;
}

int64_t resolved_integer(const struct resolved *settings, enum setting_id id)
{
	int64_t value = 0;

	setting_parse_integer(setting_slice(resolved_text(settings, id)), &value);
	return value;
}

bool resolved_is_default(const struct resolved *settings, enum setting_id id)
{
	return settings->values[id].origin == ORIGIN_DEFAULT;
}

const char *resolved_dashed_name(enum setting_id id, char *text, size_t size)
{
	const char *name = settings_table[id].name;
	size_t i = 0;

	for (; name[i] && i + 1 < size; i++)
		text[i] = name[i] == '_' ? '-' : setting_lower(name[i]);
	text[i] = '\0';
	return text;
}

const char *resolved_option_name(enum setting_id id, char *text, size_t size)
{
	if (!settings_table[id].option)
		return resolved_dashed_name(id, text, size);
	snprintf(text, size, "%s", settings_table[id].option);
	return text;
}
