/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "common/utf8.h"

#include <string.h>

size_t utf8_character_size(const char *text, size_t size)
{
	const unsigned char *at = (const unsigned char *)text;
	if (size == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	size_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
	if (at[0] < 0xC2 || at[0] > 0xF4 || length > size)
		return 0;
	/* The second byte alone decides about overlong forms, surrogates and the upper end. */
	unsigned char low = at[0] == 0xE0 ? 0xA0 : at[0] == 0xF0 ? 0x90 : 0x80;
	unsigned char high = at[0] == 0xED ? 0x9F : at[0] == 0xF4 ? 0x8F : 0xBF;
	if (at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++) {
		if ((at[i] & 0xC0) != 0x80)
			return 0;
	}
	return length;
}

bool utf8_is_valid(const char *text, size_t size)
{
	for (size_t i = 0; i < size;) {
		size_t length = utf8_character_size(text + i, size - i);
		if (length == 0)
			return false;
		i += length;
	}
	return true;
}

size_t utf8_copy_replacing_invalid(const char *text, size_t size, char *ret)
{
	size_t written = 0;
	for (size_t i = 0; i < size;) {
		size_t length = utf8_character_size(text + i, size - i);
		if (length == 0) {
			memcpy(ret + written, UTF8_REPLACEMENT, UTF8_REPLACEMENT_SIZE);
			written += UTF8_REPLACEMENT_SIZE;
			i++;
			continue;
		}
		memcpy(ret + written, text + i, length);
		written += length;
		i += length;
	}
	return written;
}

/* C0, DEL, C1 (U+0080 to U+009F); what turns the direction of a line or ends it: U+200E, U+200F,
 * U+2028 to U+202E, U+2066 to U+2069 (Unicode standard annex 9). */
static bool is_control_character(const char *text, size_t length)
{
	const unsigned char *at = (const unsigned char *)text;

	if (length == 1)
		return at[0] < 0x20 || at[0] == 0x7F;
	if (length == 2)
		return at[0] == 0xC2 && at[1] < 0xA0;
	if (length != 3 || at[0] != 0xE2)
		return false;
	if (at[1] == 0x80)
		return at[2] == 0x8E || at[2] == 0x8F || (at[2] >= 0xA8 && at[2] <= 0xAE);
	return at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9;
}

size_t utf8_next_printable_character(const char *text, size_t size, const char **shown,
				     size_t *shown_size)
{
	size_t length = utf8_character_size(text, size);

	*shown = text;
	*shown_size = length;
	if (length == 0) {
		*shown = UTF8_REPLACEMENT;
		*shown_size = UTF8_REPLACEMENT_SIZE;
		return 1;
	}
	if (is_control_character(text, length)) {
		*shown = "?";
		*shown_size = 1;
	}
	return length;
}

size_t utf8_copy_printable(const char *text, size_t length, char *ret, size_t size)
{
	size_t written = 0;
	for (size_t i = 0; i < length;) {
		const char *shown;
		size_t shown_size;
		i += utf8_next_printable_character(text + i, length - i, &shown, &shown_size);
		if (written + shown_size >= size)
			break;
		memcpy(ret + written, shown, shown_size);
		written += shown_size;
	}
	ret[written] = '\0';
	return written;
}
