/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Is this text a value that the setting takes? The one check behind options, environment and
 * configuration files, so that they accept and refuse the same things.
 *
 * Header-only; no state, no allocation, no libc.
 */
#ifndef KYMO_COMMON_SETTINGS_CHECK_H
#define KYMO_COMMON_SETTINGS_CHECK_H

#include "common/settings.h"
#include "common/settings_periods.h"
#include "common/settings_value.h"

static inline enum setting_error_kind setting_check_value_in_range(const struct setting *setting,
								   double value)
{
	if (setting->minimum == 0 && setting->maximum == 0)
		return SETTING_VALID;
	if (!(value >= setting->minimum))
		return SETTING_TOO_SMALL;
	return value <= setting->maximum ? SETTING_VALID : SETTING_TOO_LARGE;
}

static inline enum setting_error_kind setting_check_list(const struct setting *setting,
							 struct text_slice value,
							 struct text_slice *culprit)
{
	while (setting->choices && setting_next_list_word(&value, culprit)) {
		if (setting_find_choice_index(*culprit, setting->choices) < 0)
			return SETTING_NOT_CHOICE;
	}
	return SETTING_VALID;
}

static inline enum setting_error_kind setting_check_periods(struct text_slice value,
							    struct text_slice *culprit)
{
	static const struct setting_collection_period_value defaults = {.cycles = 1};
	struct setting_collection_period_value period;
	enum setting_error_kind error;

	while (setting_parse_next_period(&value, &defaults, culprit, &period, &error)) {
		if (error)
			return error;
	}
	return SETTING_VALID;
}

static inline enum setting_error_kind setting_check_scalar(const struct setting *setting,
							   struct text_slice value)
{
	enum setting_error_kind error;
	double number = 0;
	int64_t integer = 0;
	uint64_t size = 0;

	switch (setting->type) {
	case SETTING_INTEGER:
		error = setting_parse_integer(value, &integer);
		number = (double)integer;
		break;
	case SETTING_SIZE:
		error = setting_parse_size(value, &size);
		number = (double)size;
		break;
	case SETTING_DURATION:
		error = setting_parse_duration(value, &integer);
		number = (double)integer / 1e9;
		break;
	default:
		error = setting_parse_number(value, &number);
		break;
	}
	return error ? error : setting_check_value_in_range(setting, number);
}

/* *culprit is the part of the value that is wrong: all of it, or an item of a list. An empty value
 * is good where the default is empty: it means "unset". */
static inline enum setting_error_kind setting_check_value_text(const struct setting *setting,
							       const char *text,
							       struct text_slice *culprit)
{
	struct text_slice value = setting_trim_blanks(setting_slice_from_text(text));
	unsigned choice;
	bool truth;

	*culprit = value;
	if (!value.length && !setting->default_value[0])
		return SETTING_VALID;
	switch (setting->type) {
	case SETTING_BOOL:
		return setting_parse_bool(value, &truth);
	case SETTING_CHOICE:
		return setting_parse_choice(value, setting->choices, &choice);
	case SETTING_LIST:
		return setting_check_list(setting, value, culprit);
	case SETTING_TIDS:
		return setting_for_each_tid_range(value, NULL, NULL);
	case SETTING_PERIODS:
		return setting_check_periods(value, culprit);
	case SETTING_STRING:
	case SETTING_PATH:
	case SETTING_PATTERN: /* needs libc: the command looks at it */
		return SETTING_VALID;
	case SETTING_INTEGER:
	case SETTING_NUMBER:
	case SETTING_SIZE:
	case SETTING_DURATION:
		break;
	}
	return setting_check_scalar(setting, value);
}

#endif
