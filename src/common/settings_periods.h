/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Collection windows: from the text of TRACE_PERIODS to a sequence of (clock, delay, duration,
 * cycles).
 *
 *   specs := spec ((blank | ',' | ';' | newline)+ spec)*         run one after the other
 *   spec  := [clock ':'] delay [':' duration [':' cycles]]       ours, as the specification has it
 *          | delay ':' duration [':' cycles] ':' clock           as the peer's code has it
 *   clock := realtime | monotonic | process_cputime | ... , with or without CLOCK_ and _ID, any
 *            case; a name, never a number, because four bare numbers would be ambiguous
 *
 * Delay and duration are SETTING_DURATIONs. Fields left out come from the caller's defaults.
 * Duration 0: until the end. Cycles 0: for ever.
 *
 * Header-only; no state, no allocation, no libc.
 */
#ifndef KYMO_COMMON_SETTINGS_PERIODS_H
#define KYMO_COMMON_SETTINGS_PERIODS_H

#include "common/array.h"
#include "common/settings_value.h"

/* Values are the kernel's clock ids (linux/time.h). */
enum setting_clock {
	SETTING_CLOCK_REALTIME = 0,
	SETTING_CLOCK_MONOTONIC = 1,
	SETTING_CLOCK_PROCESS_CPUTIME = 2,
	SETTING_CLOCK_MONOTONIC_RAW = 4,
	SETTING_CLOCK_REALTIME_COARSE = 5,
	SETTING_CLOCK_MONOTONIC_COARSE = 6,
	SETTING_CLOCK_BOOTTIME = 7
};

struct setting_collection_period_value {
	enum setting_clock clock;
	int64_t delay_ns;
	int64_t duration_ns; /* 0: until the end */
	uint64_t cycles;     /* 0: for ever */
};

enum { SETTING_PERIOD_FIELDS_MAX = 4 };

static inline enum setting_error_kind setting_parse_clock(struct text_slice value,
							  enum setting_clock *ret)
{
	static const struct {
		const char *name;
		enum setting_clock clock;
	} clocks[] = {{"realtime", SETTING_CLOCK_REALTIME},
		      {"monotonic", SETTING_CLOCK_MONOTONIC},
		      {"process_cputime", SETTING_CLOCK_PROCESS_CPUTIME},
		      {"process_cputime_id", SETTING_CLOCK_PROCESS_CPUTIME},
		      {"cputime", SETTING_CLOCK_PROCESS_CPUTIME},
		      {"monotonic_raw", SETTING_CLOCK_MONOTONIC_RAW},
		      {"realtime_coarse", SETTING_CLOCK_REALTIME_COARSE},
		      {"monotonic_coarse", SETTING_CLOCK_MONOTONIC_COARSE},
		      {"boottime", SETTING_CLOCK_BOOTTIME}};
	static const size_t prefix = 6; /* CLOCK_ */

	value = setting_trim_blanks(value);
	if (!value.length)
		return SETTING_EMPTY;
	if (value.length > prefix &&
	    setting_slice_equals_word((struct text_slice){value.text, prefix}, "clock_")) {
		value.text += prefix;
		value.length -= prefix;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(clocks); i++) {
		if (setting_slice_equals_word(value, clocks[i].name)) {
			*ret = clocks[i].clock;
			return SETTING_VALID;
		}
	}
	return SETTING_NOT_CHOICE;
}

/* Splits at colons: number of fields, or SETTING_PERIOD_FIELDS_MAX + 1 when there are too many. */
static inline unsigned
setting_split_period_into_fields(struct text_slice spec,
				 struct text_slice fields[SETTING_PERIOD_FIELDS_MAX])
{
	unsigned count = 1;

	fields[0] = (struct text_slice){spec.text, 0};
	for (size_t i = 0; i < spec.length; i++) {
		if (spec.text[i] != ':') {
			fields[count - 1].length++;
			continue;
		}
		if (count == SETTING_PERIOD_FIELDS_MAX)
			return SETTING_PERIOD_FIELDS_MAX + 1;
		fields[count++] = (struct text_slice){spec.text + i + 1, 0};
	}
	return count;
}

static inline enum setting_error_kind setting_parse_delay_or_duration(struct text_slice field,
								      int64_t *ret)
{
	int64_t value;
	enum setting_error_kind error;

	if (!field.length)
		return SETTING_VALID;
	error = setting_parse_duration(field, &value);
	if (error)
		return error;
	if (value < 0)
		return SETTING_TOO_SMALL;
	*ret = value;
	return SETTING_VALID;
}

static inline enum setting_error_kind
setting_parse_period(struct text_slice spec, const struct setting_collection_period_value *defaults,
		     struct setting_collection_period_value *ret)
{
	struct text_slice fields[SETTING_PERIOD_FIELDS_MAX];
	struct setting_collection_period_value period = *defaults;
	unsigned count = setting_split_period_into_fields(spec, fields), first = 0;
	int64_t cycles = (int64_t)defaults->cycles;
	enum setting_error_kind error = SETTING_VALID;

	if (count > SETTING_PERIOD_FIELDS_MAX)
		return SETTING_MALFORMED;
	if (fields[0].length && setting_is_letter(fields[0].text[0]))
		error = setting_parse_clock(fields[first++], &period.clock);
	else if (count > 2 && fields[count - 1].length &&
		 setting_is_letter(fields[count - 1].text[0]))
		error = setting_parse_clock(fields[--count], &period.clock);
	if (error)
		return error;
	if (count == first || count - first > 3 || !fields[first].length)
		return SETTING_MALFORMED;
	error = setting_parse_delay_or_duration(fields[first], &period.delay_ns);
	if (!error && count - first > 1)
		error = setting_parse_delay_or_duration(fields[first + 1], &period.duration_ns);
	if (!error && count - first > 2 && fields[first + 2].length)
		error = setting_parse_integer(fields[first + 2], &cycles);
	if (error)
		return error;
	if (cycles < 0)
		return SETTING_TOO_SMALL;
	period.cycles = (uint64_t)cycles;
	*ret = period;
	return SETTING_VALID;
}

/* Takes the next spec off *rest; false at the end. *error says whether *ret is good; *spec is the
 * text it was made from. */
static inline bool setting_parse_next_period(struct text_slice *rest,
					     const struct setting_collection_period_value *defaults,
					     struct text_slice *spec,
					     struct setting_collection_period_value *ret,
					     enum setting_error_kind *error)
{
	if (!setting_next_list_word(rest, spec))
		return false;
	*error = setting_parse_period(*spec, defaults, ret);
	return true;
}

#endif
