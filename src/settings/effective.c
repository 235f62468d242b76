/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Resolved settings; see effective.h.
 */
#include "settings/effective.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "binary/selection/pattern.h"
#include "common/settings_check.h"
#include "common/wrap_text.h"
#include "settings/events.h"
#include "settings/speedups.h"
#include "settings/suggest.h"

int effective_init(struct effective_settings *settings, struct problem *problem)
{
	memset(settings, 0, sizeof(*settings));
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		settings->values[id].text = strdup(settings_table[id].default_value);
		if (!settings->values[id].text)
			return problem_set(problem, -ENOMEM, "out of memory");
	}
	return 0;
}

void effective_deinit(struct effective_settings *settings)
{
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		free(settings->values[id].text);
		free(settings->values[id].source);
	}
}

/* What a type takes, for messages. */
static const char *format_accepted_forms(const struct setting *setting, char *text, size_t size)
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

static int effective_set_bad_value_problem(const struct setting *setting, const char *source,
					   enum setting_error_kind error, struct text_slice culprit,
					   struct problem *problem)
{
	char accepts[512], hint[128] = "";
	const char *why = "is not valid";

	if (error == SETTING_NOT_CHOICE && setting->choices) {
		struct suggestion suggestion;

		suggestion_init(&suggestion, culprit.text, culprit.length);
		suggestion_offer_list(&suggestion, setting->choices);
		suggestion_format_hint(&suggestion, "", hint, sizeof(hint));
	} else if (error == SETTING_TOO_SMALL) {
		why = "is too small";
	} else if (error == SETTING_TOO_LARGE) {
		why = "is too large";
	} else if (error == SETTING_BAD_UNIT) {
		why = "has an unknown unit";
	}
	format_accepted_forms(setting, accepts, sizeof(accepts));
	if (!culprit.length)
		return problem_set(problem, -EINVAL, "%s: needs a value: %s", source, accepts);
	return problem_set(problem, -EINVAL, "%s: '%.*s' %s%s (%s takes %s)", source,
			   (int)(culprit.length < 100 ? culprit.length : 100), culprit.text, why,
			   hint, setting->name, accepts);
}

static int effective_check_wrap(const char *text, const char *source, struct problem *problem)
{
	struct wrap_spec_problem wrong;

	if (wrap_spec_check(text, &wrong))
		return 0;
	return problem_set(problem, -EINVAL,
			   "%s: at character %zu of '%s': '%.20s' %s (WRAP takes "
			   "[type] library:function[(types)]; ...)",
			   source, (size_t)(wrong.where - text) + 1, text, wrong.where, wrong.what);
}

static int effective_check_pattern(const char *text, const char *source, struct problem *problem)
{
	struct selection_pattern pattern;
	int error = selection_pattern_init(&pattern, text, source, problem);

	selection_pattern_deinit(&pattern);
	return error;
}

/* "RATE,NS" */
static int effective_check_instrument_demote(const char *text, const char *source,
					     struct problem *problem)
{
	struct text_slice rest = setting_slice_from_text(text), item;
	unsigned count = 0;
	double number;

	for (; setting_next_list_word(&rest, &item); count++) {
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

/* Intervals are never narrower: they hold what the method itself may be off by
 * (analysis/causal/fit.c). */
static int effective_check_until_ci(const char *text, const char *source, struct problem *problem)
{
	static const double least = 2;
	double percent;

	if (setting_parse_number(setting_slice_from_text(text), &percent) || percent == 0 ||
	    percent >= least)
		return 0;
	return problem_set(problem, -EINVAL,
			   "%s: '%.100s' is too small: %g is the least that can be reached "
			   "(CAUSAL_UNTIL_CI takes 0, which means never, or a number from %g to "
			   "%g)",
			   source, text, least, least,
			   settings_table[SETTING_CAUSAL_UNTIL_CI].maximum);
}

/* The file lies beside the others: a name, no path. */
static int effective_check_causal_file_name(const char *text, const char *source,
					    struct problem *problem)
{
	static const char accepts[] = "the name of a file, without '/' and without .json";

	if (!*text)
		return problem_set(problem, -EINVAL, "%s: needs a value: %s", source, accepts);
	if (!strchr(text, '/') && strcmp(text, ".") && strcmp(text, "..") &&
	    strlen(text) + strlen(".json") <= NAME_MAX)
		return 0;
	return problem_set(problem, -EINVAL, "%s: '%.100s' is not valid (CAUSAL_FILE takes %s)",
			   source, text, accepts);
}

/* What the type alone does not tell. */
static int effective_check_beyond_type(enum setting_id id, const char *text, const char *source,
				       struct problem *problem)
{
	struct text_slice rest = setting_slice_from_text(text), first, second;
	struct causal_speedups speedups;

	if (settings_table[id].type == SETTING_PATTERN)
		return effective_check_pattern(text, source, problem);
	switch (id) {
	case SETTING_SAMPLING_OVERFLOW_EVENT:
		events_next_list_item(&rest, &first);
		if (events_next_list_item(&rest, &second))
			return problem_set(problem, -EINVAL,
					   "%s: takes one event, not a list: '%s'", source, text);
		return events_check_list(text, source, problem);
	case SETTING_SAMPLING_COUNTERS:
		return events_check_list(text, source, problem);
	case SETTING_INSTRUMENT_DEMOTE:
		return effective_check_instrument_demote(text, source, problem);
	case SETTING_WRAP:
		return effective_check_wrap(text, source, problem);
	case SETTING_CAUSAL_FIXED_SPEEDUP:
		return causal_speedups_parse(text, source, &speedups, problem);
	case SETTING_CAUSAL_UNTIL_CI:
		return effective_check_until_ci(text, source, problem);
	case SETTING_CAUSAL_FILE:
		return effective_check_causal_file_name(text, source, problem);
	case SETTING_COMPONENTS:
		return events_check_component_list(text, source, problem);
	default:
		return 0;
	}
}

int effective_set_if_not_overridden(struct effective_settings *settings, enum setting_id id,
				    const char *text, enum effective_origin origin,
				    const char *source, struct problem *problem)
{
	struct effective_value *value = &settings->values[id];
	struct text_slice culprit;
	enum setting_error_kind error =
		setting_check_value_text(&settings_table[id], text, &culprit);
	char *copy, *source_copy;

	if (error)
		return effective_set_bad_value_problem(&settings_table[id], source, error, culprit,
						       problem);
	if (effective_check_beyond_type(id, text, source, problem))
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

enum setting_id effective_find_setting(const char *name, size_t length)
{
	struct text_slice slice = {name, length};
	static const size_t prefix = 5;

	if (length > prefix &&
	    setting_slice_equals_word((struct text_slice){name, prefix}, "KYMO_")) {
		slice.text += prefix;
		slice.length -= prefix;
	}
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL &&
		    setting_slice_equals_word(slice, settings_table[id].name))
			return (enum setting_id)id;
	}
	return SETTING_COUNT;
}

int effective_set_unknown_name_problem(const char *name, size_t length, const char *prefix,
				       const char *where, struct problem *problem)
{
	static const size_t prefix_length = 5;
	struct suggestion suggestion;
	char hint[128];
	const char *bare = name;
	size_t bare_length = length;

	if (length > prefix_length &&
	    setting_slice_equals_word((struct text_slice){name, prefix_length}, "KYMO_")) {
		bare += prefix_length;
		bare_length -= prefix_length;
	}
	suggestion_init(&suggestion, bare, bare_length);
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (settings_table[id].visibility != SETTING_INTERNAL)
			suggestion_offer(&suggestion, settings_table[id].name,
					 strlen(settings_table[id].name));
	}
	return problem_set(problem, -EINVAL, "%s: unknown setting '%.*s'%s (kymo avail lists them)",
			   where, (int)(length < 100 ? length : 100), name,
			   suggestion_format_hint(&suggestion, prefix, hint, sizeof(hint)));
}

/* One variable NAME=value of this tool. */
static int effective_read_kymo_variable(struct effective_settings *settings, const char *variable,
					size_t name_length, struct problem *problem)
{
	const char *value = variable + name_length + 1;
	enum setting_id id = effective_find_setting(variable, name_length);
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)name_length, variable);
	/* Unknown (effective_find_next_unknown_variable), internal, or the shell's way of unsetting
	 * for one command. */
	if (id == SETTING_COUNT || !*value)
		return 0;
	return effective_set_if_not_overridden(settings, id, value, ORIGIN_ENVIRONMENT, name,
					       problem);
}

bool effective_find_next_unknown_variable(char ***variable, struct problem *problem)
{
	for (; **variable; ++*variable) {
		const char *name = **variable, *equals = strchr(name, '=');
		bool known = !equals || strncmp(name, "KYMO_", 5) != 0;
		size_t length = equals ? (size_t)(equals - name) : 0;

		for (unsigned i = 0; i < SETTING_COUNT && !known; i++)
			known = strlen(settings_table[i].name) == length - 5 &&
				!strncmp(settings_table[i].name, name + 5, length - 5);
		if (known)
			continue;
		effective_set_unknown_name_problem(name, length, "KYMO_", "environment", problem);
		++*variable;
		return true;
	}
	return false;
}

/* A variable of another tool: what kymo does not know or take is none of its business. */
static int effective_read_alias_variable(struct effective_settings *settings, const char *variable,
					 size_t name_length, size_t prefix_length)
{
	enum setting_id id =
		effective_find_setting(variable + prefix_length, name_length - prefix_length);
	char name[128];
	struct problem ignored;
	int error;

	if (id == SETTING_COUNT || !settings_table[id].has_peer_aliases ||
	    !variable[name_length + 1])
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)name_length, variable);
	error = effective_set_if_not_overridden(settings, id, variable + name_length + 1,
						ORIGIN_ALIAS, name, &ignored);
	return error == -ENOMEM ? error : 0;
}

int effective_read_environment(struct effective_settings *settings, char **environment,
			       struct problem *problem)
{
	static const char *const prefixes[] = {"OMNITRACE_", "ROCPROFSYS_"};
	int error = 0;

	for (char **variable = environment; *variable && !error; variable++) {
		const char *equals = strchr(*variable, '=');

		if (equals && !strncmp(*variable, "KYMO_", 5))
			error = effective_read_kymo_variable(settings, *variable,
							     (size_t)(equals - *variable), problem);
	}
	for (unsigned i = 0; i < 2; i++) {
		size_t length = strlen(prefixes[i]);

		for (char **variable = environment; *variable && !error; variable++) {
			const char *equals = strchr(*variable, '=');

			if (equals && !strncmp(*variable, prefixes[i], length))
				error = effective_read_alias_variable(
					settings, *variable, (size_t)(equals - *variable), length);
		}
	}
	return error;
}

const char *effective_get_origin_name(enum effective_origin origin)
{
	static const char *const names[] = {"default", "preset",      "config",
					    "alias",   "environment", "option"};

	return names[origin];
}

const char *effective_describe_origin(const struct effective_value *value, char *text, size_t size)
{
	static const char *const words[] = {"default",     "preset",      "file",
					    "environment", "environment", "option"};

	snprintf(text, size, "%s%s%s", words[value->origin], value->source ? " " : "",
		 value->source ? value->source : "");
	return text;
}

const char *effective_setting_text(const struct effective_settings *settings, enum setting_id id)
{
	while (!settings->values[id].text[0] && settings_table[id].fallback_setting)
		id = effective_find_setting(settings_table[id].fallback_setting,
					    strlen(settings_table[id].fallback_setting));
	return settings->values[id].text;
}

bool effective_setting_bool(const struct effective_settings *settings, enum setting_id id)
{
	bool value = false;

	setting_parse_bool(setting_slice_from_text(effective_setting_text(settings, id)), &value);
	return value;
}

int64_t effective_setting_integer(const struct effective_settings *settings, enum setting_id id)
{
	int64_t value = 0;

	setting_parse_integer(setting_slice_from_text(effective_setting_text(settings, id)),
			      &value);
	return value;
}

bool effective_setting_is_default(const struct effective_settings *settings, enum setting_id id)
{
	return settings->values[id].origin == ORIGIN_DEFAULT;
}

const char *effective_build_dashed_setting_name(enum setting_id id, char *text, size_t size)
{
	const char *name = settings_table[id].name;
	size_t i = 0;

	for (; name[i] && i + 1 < size; i++)
		text[i] = name[i] == '_' ? '-' : setting_to_lower_case(name[i]);
	text[i] = '\0';
	return text;
}

const char *effective_format_option_name(enum setting_id id, char *text, size_t size)
{
	if (!settings_table[id].long_option)
		return effective_build_dashed_setting_name(id, text, size);
	snprintf(text, size, "%s", settings_table[id].long_option);
	return text;
}
