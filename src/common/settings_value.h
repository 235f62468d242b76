/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From the text of a setting's value to the value.
 *
 * Values are slices (pointer and length), so that list items need no copy. Parsing is strict: all
 * of the text must be understood, or the function says why not and leaves *ret alone. Blanks around
 * a value are ignored. Nothing depends on the locale, which is why strtod is not used.
 *
 * Header-only; no state, no allocation, no libc: usable in the profiled process and in handlers.
 * Windows (SETTING_PERIODS) are in settings_periods.h, checks against the table in
 * settings_check.h.
 */
#ifndef KYMO_COMMON_SETTINGS_VALUE_H
#define KYMO_COMMON_SETTINGS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/array.h"
#include "common/settings.h"

enum setting_error_kind {
	SETTING_VALID,
	SETTING_EMPTY,     /* a value is needed */
	SETTING_MALFORMED, /* not of the form that the type wants */
	SETTING_TOO_SMALL, /* below the minimum */
	SETTING_TOO_LARGE, /* above the maximum, or not representable */
	SETTING_BAD_UNIT,  /* number is good, suffix is not */
	SETTING_NOT_CHOICE /* none of the choices */
};

/* A piece of text; not terminated. */
struct text_slice {
	const char *text;
	size_t length;
};

/* ---- characters and slices ---- */

static inline bool setting_is_blank_character(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static inline bool setting_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool setting_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline char setting_to_lower_case(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline struct text_slice setting_slice_from_text(const char *text)
{
	struct text_slice slice = {text, 0};

	while (text && text[slice.length])
		slice.length++;
	return slice;
}

static inline struct text_slice setting_trim_blanks(struct text_slice slice)
{
	while (slice.length && setting_is_blank_character(slice.text[0])) {
		slice.text++;
		slice.length--;
	}
	while (slice.length && setting_is_blank_character(slice.text[slice.length - 1]))
		slice.length--;
	return slice;
}

/* Equal to a word, whatever the case; `-` and `_` count as the same. */
static inline bool setting_slice_equals_word(struct text_slice slice, const char *word)
{
	size_t i = 0;

	for (; i < slice.length; i++) {
		char a = setting_to_lower_case(slice.text[i]), b = setting_to_lower_case(word[i]);

		if (!word[i] || (a == '-' ? '_' : a) != (b == '-' ? '_' : b))
			return false;
	}
	return !word[i];
}

/* ---- lists ---- */

static inline bool setting_is_list_separator(char c)
{
	return c == ',' || c == ';' || setting_is_blank_character(c);
}

/* Takes the next word of a list off *rest. False at the end. Empty items are skipped. */
static inline bool setting_next_list_word(struct text_slice *rest, struct text_slice *word)
{
	while (rest->length && setting_is_list_separator(rest->text[0])) {
		rest->text++;
		rest->length--;
	}
	*word = (struct text_slice){rest->text, 0};
	while (rest->length && !setting_is_list_separator(rest->text[0])) {
		rest->text++;
		rest->length--;
		word->length++;
	}
	return word->length > 0;
}

/* ---- booleans and choices ---- */

static inline enum setting_error_kind setting_parse_bool(struct text_slice value, bool *ret)
{
	static const char *const words[2][6] = {{"off", "false", "no", "0", "f", "n"},
						{"on", "true", "yes", "1", "t", "y"}};

	value = setting_trim_blanks(value);
	if (!value.length)
		return SETTING_EMPTY;
	for (unsigned i = 0; i < 6; i++) {
		for (unsigned truth = 0; truth < 2; truth++) {
			if (setting_slice_equals_word(value, words[truth][i])) {
				*ret = truth;
				return SETTING_VALID;
			}
		}
	}
	return SETTING_MALFORMED;
}

/* Position of a word in a comma-separated list of choices, or -1. */
static inline int setting_find_choice_index(struct text_slice word, const char *choices)
{
	struct text_slice rest = setting_slice_from_text(choices), choice;

	for (int index = 0; setting_next_list_word(&rest, &choice); index++) {
		size_t i = 0;

		while (i < choice.length && i < word.length &&
		       setting_to_lower_case(choice.text[i]) == setting_to_lower_case(word.text[i]))
			i++;
		if (i == choice.length && i == word.length)
			return index;
	}
	return -1;
}

/* *ret is the position in `choices`. Where on and off are among them, every word for a boolean
 * will do. */
static inline enum setting_error_kind setting_parse_choice(struct text_slice value,
							   const char *choices, unsigned *ret)
{
	bool truth;
	int index;

	value = setting_trim_blanks(value);
	if (!value.length)
		return SETTING_EMPTY;
	index = setting_find_choice_index(value, choices);
	if (index < 0 && setting_parse_bool(value, &truth) == SETTING_VALID)
		index = setting_find_choice_index(setting_slice_from_text(truth ? "on" : "off"),
						  choices);
	if (index < 0)
		return SETTING_NOT_CHOICE;
	*ret = (unsigned)index;
	return SETTING_VALID;
}

/* ---- numbers ---- */

/* Digits taken off the front of *rest. */
static inline enum setting_error_kind setting_parse_leading_digits(struct text_slice *rest,
								   uint64_t *ret)
{
	uint64_t value = 0;

	if (!rest->length || !setting_is_digit(rest->text[0]))
		return SETTING_MALFORMED;
	while (rest->length && setting_is_digit(rest->text[0])) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(rest->text[0] - '0'), &value))
			return SETTING_TOO_LARGE;
		rest->text++;
		rest->length--;
	}
	*ret = value;
	return SETTING_VALID;
}

static inline enum setting_error_kind setting_parse_integer(struct text_slice value, int64_t *ret)
{
	uint64_t magnitude;
	bool negative;
	enum setting_error_kind error;

	value = setting_trim_blanks(value);
	if (!value.length)
		return SETTING_EMPTY;
	negative = value.text[0] == '-';
	if (negative || value.text[0] == '+') {
		value.text++;
		value.length--;
	}
	error = setting_parse_leading_digits(&value, &magnitude);
	if (error)
		return error;
	if (value.length)
		return SETTING_MALFORMED;
	if (magnitude > INT64_MAX)
		return negative ? SETTING_TOO_SMALL : SETTING_TOO_LARGE;
	*ret = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	return SETTING_VALID;
}

/* Exponent of a number: e, sign, one to three digits; nothing is taken when it is not one. */
static inline int setting_parse_leading_exponent(struct text_slice *rest)
{
	struct text_slice look = *rest;
	bool negative = false;
	uint64_t digits = 0;

	if (look.length < 2 || setting_to_lower_case(look.text[0]) != 'e')
		return 0;
	look.text++;
	look.length--;
	if (look.text[0] == '-' || look.text[0] == '+') {
		negative = look.text[0] == '-';
		look.text++;
		look.length--;
	}
	if (setting_parse_leading_digits(&look, &digits) || digits > 999)
		return 0;
	*rest = look;
	return negative ? -(int)digits : (int)digits;
}

/* A decimal number off the front of *rest, exact to the last digit of a double for what people
 * write (up to 18 significant digits, powers of ten up to 22). */
static inline enum setting_error_kind setting_parse_leading_number(struct text_slice *rest,
								   double *ret)
{
	struct text_slice look = *rest;
	uint64_t mantissa = 0;
	unsigned digits = 0;
	int scale = 0;
	bool negative = false, point = false;
	double value;

	if (look.length && (look.text[0] == '-' || look.text[0] == '+')) {
		negative = look.text[0] == '-';
		look.text++;
		look.length--;
	}
	for (; look.length; look.text++, look.length--) {
		if (look.text[0] == '.' && !point) {
			point = true;
			continue;
		}
		if (!setting_is_digit(look.text[0]))
			break;
		digits++;
		if (mantissa < UINT64_C(100000000000000000)) {
			mantissa = mantissa * 10 + (uint64_t)(look.text[0] - '0');
			scale -= point;
		} else {
			scale += !point;
		}
	}
	if (!digits)
		return SETTING_MALFORMED;
	scale += setting_parse_leading_exponent(&look);
	value = (double)mantissa;
	if (scale > 400 || scale < -400)
		return SETTING_TOO_LARGE;
	for (; scale > 0; scale--)
		value *= 10;
	if (scale < 0) {
		double divisor = 1;

		for (; scale < 0; scale++)
			divisor *= 10;
		value /= divisor;
	}
	*ret = negative ? -value : value;
	*rest = look;
	return SETTING_VALID;
}

static inline enum setting_error_kind setting_parse_number(struct text_slice value, double *ret)
{
	double number = 0;
	enum setting_error_kind error;

	value = setting_trim_blanks(value);
	if (!value.length)
		return SETTING_EMPTY;
	error = setting_parse_leading_number(&value, &number);
	if (error)
		return error;
	if (value.length)
		return SETTING_MALFORMED;
	*ret = number;
	return SETTING_VALID;
}

/* ---- sizes and durations ---- */

/* Bytes: a number and K, M, G or T (powers of 1024), also written KB or KiB. */
static inline enum setting_error_kind setting_parse_size(struct text_slice value, uint64_t *ret)
{
	static const char units[] = "kmgt";
	double number = 0;
	enum setting_error_kind error;

	value = setting_trim_blanks(value);
	if (!value.length)
		return SETTING_EMPTY;
	error = setting_parse_leading_number(&value, &number);
	if (error)
		return error;
	if (number < 0)
		return SETTING_TOO_SMALL;
	value = setting_trim_blanks(value);
	if (value.length && setting_to_lower_case(value.text[0]) != 'b') {
		unsigned unit = 0;

		while (units[unit] && units[unit] != setting_to_lower_case(value.text[0]))
			unit++;
		if (!units[unit])
			return SETTING_BAD_UNIT;
		number *= (double)(UINT64_C(1024) << 10 * unit);
		value.text++;
		value.length--;
	}
	if (value.length && !setting_slice_equals_word(value, "b") &&
	    !setting_slice_equals_word(value, "ib"))
		return SETTING_BAD_UNIT;
	if (number >= 9223372036854775808.0) /* 2^63: no file is larger */
		return SETTING_TOO_LARGE;
	*ret = (uint64_t)(number + 0.5);
	return SETTING_VALID;
}

/* Nanoseconds from seconds, or from a number with unit ns, us, ms, s, m (or min), h. */
static inline enum setting_error_kind setting_parse_duration(struct text_slice value, int64_t *ret)
{
	static const struct {
		const char *name;
		double nanoseconds_per_unit;
	} units[] = {{"", 1e9},  {"s", 1e9},  {"sec", 1e9},  {"ms", 1e6},  {"us", 1e3},
		     {"ns", 1.}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
	double number = 0;
	enum setting_error_kind error;

	value = setting_trim_blanks(value);
	if (!value.length)
		return SETTING_EMPTY;
	error = setting_parse_leading_number(&value, &number);
	if (error)
		return error;
	value = setting_trim_blanks(value);
	for (unsigned i = 0; i < ARRAY_SIZE(units); i++) {
		if (!setting_slice_equals_word(value, units[i].name))
			continue;
		number *= units[i].nanoseconds_per_unit;
		if (number >= 9e18)
			return SETTING_TOO_LARGE;
		if (number <= -9e18)
			return SETTING_TOO_SMALL;
		*ret = (int64_t)(number + (number < 0 ? -0.5 : 0.5));
		return SETTING_VALID;
	}
	return SETTING_BAD_UNIT;
}

/* ---- thread numbers ---- */

typedef void (*setting_tid_range_callback)(uint64_t first, uint64_t last, void *context);

/* Calls `range` for every item of a list such as 0-3,7; `range` may be NULL to check only. */
static inline enum setting_error_kind
setting_for_each_tid_range(struct text_slice value, setting_tid_range_callback range, void *context)
{
	struct text_slice item;

	while (setting_next_list_word(&value, &item)) {
		uint64_t first, last;
		enum setting_error_kind error = setting_parse_leading_digits(&item, &first);

		if (error)
			return error;
		last = first;
		if (item.length && item.text[0] == '-') {
			item.text++;
			item.length--;
			error = setting_parse_leading_digits(&item, &last);
			if (error)
				return error;
		}
		if (item.length || last < first)
			return SETTING_MALFORMED;
		if (range)
			range(first, last, context);
	}
	return SETTING_VALID;
}

#endif
